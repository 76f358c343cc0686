"""Columns of the synthetic sets, as describing files tell of them: what they hold, what it means, what was counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from schemas.spec.attributes import Attribute
from schemas.spec.derived import Following
from schemas.spec.domain import Domain
from schemas.spec.rules import Rule, spoken
from steps_engine.methods.views import Margin
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

    code: int
    label: str
    meaning: str
    estimate: float | None = None
    half: float | None = None
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
    is_counted: bool = False
    follows_from: str | None = None
    remark: str = ""  # how synthetic values lie where nothing was counted

    @property
    def text(self) -> str:
        """Title and description as one text; empty where neither was given."""
        return ". ".join(part.rstrip(".") for part in (self.words.title, self.words.description) if part)


def column_of(attribute: Attribute, margin: Margin | None) -> Column:
    bounds = getattr(attribute, "bounds", None)
    highest = None if getattr(attribute, "is_open", False) else bounds and _plain(bounds[1])
    return Column(
        name=attribute.name,
        kind=attribute.kind,
        words=attribute,
        categories=tuple(_counted(zip(attribute.labels, attribute.meanings, strict=True), margin)),
        labels=attribute.present_labels,
        bounds=(_plain(bounds[0]), highest) if bounds else None,
        may_be_missing=attribute.missing == "category",
        is_counted=margin is not None,
        remark=value_words(attribute),
    )


def _counted(named: Iterable[tuple[str, str]], margin: Margin | None) -> Iterator[Category]:
    """Categories with what they mean, by their code."""
    for code, (label, meaning) in enumerate(named):
        if margin is None:
            yield Category(code, label, meaning)
        else:
            count, half = float(margin.estimate[code]), float(margin.half[code])
            yield Category(code, label, meaning, count, half, trust(count, half))


def derived_column(following: Following, margin: Margin | None) -> Column:
    """Costs nothing: its counts are sums of those from which it follows."""
    derived = following.derived
    named = [(category, derived.label_texts.get(category, "")) for category in following.categories]
    return Column(
        name=derived.name,
        kind="categorical",
        words=derived,
        categories=tuple(_counted(named, margin)),
        labels=following.categories,
        bounds=None,
        may_be_missing=None in following.codes,
        is_counted=margin is not None,
        follows_from=derived.from_,
    )


@dataclass(frozen=True)
class _WeightWords:
    title: str
    description: str
    source: None = None
    why: None = None


def weight_columns(domain: Domain) -> tuple[Column, ...]:
    """The column that says for how many people of the population a row stands."""
    if domain.weighing is None:
        return ()
    step = _plain(float(domain.weighing.step))
    words = _WeightWords("Weight", "For how many people of the population the row stands; the same in every row.")
    return tuple(
        Column(name=name, kind="numeric", words=words, categories=(), labels=(), bounds=(step, step), may_be_missing=False)
        for name in domain.published_weight
    )


def rule_words(rule: Rule, domain: Domain) -> str:
    """What never meets, attribute by attribute; or what always holds."""
    if rule.never is None:
        return f"Always {rule.always}"
    names = sorted(rule.never, key=domain.source_of)
    return "Never together: " + "; ".join(f"{name} is {spoken(rule.never[name])}" for name in names)


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
