"""Columns of the synthetic sets, as describing files tell of them: what they hold, what it means, what was counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from schemas.spec.attributes import Attribute
from schemas.spec.derived import Following
from schemas.spec.domain import Domain
from steps_engine.answers.table import weighted_of, what_of
from steps_engine.methods.views import Margin, View
from tasks.publishing.said import value_words
from tasks.publishing.verdict import trust

Bound = int | float | str
MISSING = "(missing)"


class Words(Protocol):
    """What is said of an attribute, or of one that follows from it."""

    @property
    def title(self) -> str | None: ...

    @property
    def description(self) -> str | None: ...

    @property
    def source(self) -> str | None: ...

    @property
    def why(self) -> str | None: ...


@dataclass(frozen=True)
class Category:
    """What a code stands for and, where it was counted, how many there are: within `half` of the estimate in 95 % of cases."""

    code: int | None  # in tables of counts; None: what no count is made of
    label: str
    meaning: str
    estimate: float | None = None
    half: float | None = None
    error: float | None = None
    trust: str | None = None


@dataclass(frozen=True)
class Column:
    """A column of the synthetic sets: an attribute with what was counted of it, or what follows from one."""

    name: str
    kind: str
    words: Words
    categories: tuple[Category, ...]
    labels: tuple[str, ...]  # of those that are not missing: texts that may stand in the column, or names of bins
    bounds: tuple[Bound, Bound | None] | None  # of numbers, days and times; None above: no end
    may_be_missing: bool
    counted: str = ""  # what its counts are of, such as rows; empty: the release has none
    follows_from: str | None = None
    remark: str = ""  # how synthetic values lie where nothing was counted

    @property
    def text(self) -> str:
        """Title and description as one text; empty where neither was given."""
        return ". ".join(part.rstrip(".") for part in (self.words.title, self.words.description) if part)


def columns_of(domain: Domain, view: View) -> tuple[Column, ...]:
    """Those of the synthetic sets: attributes, what follows from them, and the weight."""
    margins, of = _margins(view), what_of(domain)
    own = (column_of(attribute, margins.get(attribute.name), of) for attribute in domain.attributes)
    derived = (derived_column(each, margins.get(each.derived.name), of) for each in domain.followings)
    return (*own, *derived, *weight_columns(domain))


def person_columns(domain: Domain, view: View) -> tuple[Column, ...]:
    """Those of persons in linked tables: the reference person is counted in the household's row."""
    if domain.tables is None:
        return ()
    margins, of = _margins(view), "members other than the reference person" + weighted_of(domain)
    person = domain.tables.person
    own = zip(person.attributes, domain.own.attributes, strict=True)
    columns = (column_of(each.as_published(), margins.get(each.name), of, counted.labels) for each, counted in own)
    return (*columns, *map(derived_column, person.followings))


def _margins(view: View) -> Mapping[str, Margin]:
    return {margin.attribute: margin for margin in (*view.margins, *view.derived)}


def column_of(
    attribute: Attribute, margin: Margin | None = None, of: str = "rows", among: Sequence[str] | None = None
) -> Column:
    """`among`: the categories that are counted, where these are not all."""
    bounds = getattr(attribute, "bounds", None)
    highest = None if getattr(attribute, "is_open", False) else bounds and _plain(bounds[1])
    return Column(
        name=attribute.name,
        kind=attribute.kind,
        words=attribute,
        categories=tuple(_counted(attribute.labels, attribute.meanings, among or attribute.labels, margin)),
        labels=attribute.present_labels,
        bounds=(_plain(bounds[0]), highest) if bounds else None,
        may_be_missing=attribute.missing == "category",
        counted=of if margin is not None else "",
        remark=value_words(attribute),
    )


def _counted(labels: Sequence[str], meanings: Sequence[str], among: Sequence[str], margin: Margin | None) -> Iterator[Category]:
    """Categories with what they mean, each with its code among those that are counted."""
    codes = {label: code for code, label in enumerate(among)}
    for label, meaning in zip(labels, meanings, strict=True):
        code = codes.get(label)
        if margin is None or code is None:
            yield Category(code, label, meaning)
        else:
            count, half = float(margin.estimate[code]), float(margin.half[code])
            yield Category(code, label, meaning, count, half, float(margin.error[code]), trust(count, half))


def derived_column(following: Following, margin: Margin | None = None, of: str = "rows") -> Column:
    """Costs nothing: its counts are sums of those from which it follows."""
    derived, may_be_missing = following.derived, None in following.codes
    labels = (*following.categories, *((MISSING,) if may_be_missing else ()))
    meanings = [derived.label_texts.get(label, "") for label in labels]
    return Column(
        name=derived.name,
        kind="categorical",
        words=derived,
        categories=tuple(_counted(labels, meanings, labels, margin)),
        labels=following.categories,
        bounds=None,
        may_be_missing=may_be_missing,
        counted=of if margin is not None else "",
        follows_from=derived.from_,
    )


@dataclass(frozen=True)
class _WeightWords:
    title: str
    description: str
    source: None = None
    why: None = None


def weight_columns(domain: Domain) -> tuple[Column, ...]:
    """The column that says for how many people of the population a row stands; of linked tables, households or persons."""
    if domain.weighing is None:
        return ()
    step, of = _plain(float(domain.weighing.step)), "people" if domain.tables is None else "households, or persons,"
    words = _WeightWords("Weight", f"For how many {of} of the population the row stands; the same in every row.")
    said: dict[str, Any] = {"kind": "weight", "words": words, "labels": (), "bounds": (step, step), "may_be_missing": False}
    return tuple(Column(name=name, categories=(Category(None, f"{step}", ""),), **said) for name in domain.published_weight)


def _plain(bound: Any) -> Bound:
    """
    >>> from decimal import Decimal
    >>> _plain(Decimal("10.50")), _plain(Decimal(3)), _plain(7)
    (10.5, 3, 7)
    """
    if hasattr(bound, "isoformat"):
        return str(bound.isoformat())
    if isinstance(bound, str):
        return bound
    return int(bound) if bound == int(bound) else float(bound)
