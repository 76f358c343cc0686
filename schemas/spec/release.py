"""release.yaml: one release, as its author writes it."""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, PlainSerializer, Tag, field_validator, model_validator

from schemas.budget import SpecEpsilon
from schemas.errors import SpecError
from schemas.spec import yaml
from schemas.spec.domain import NAME, Domain, load_domain
from schemas.spec.yaml import Strict

ELECTED = "elected"  # an order that the data decide, privately, with a share of ε
PERIOD = re.compile(r"\{(year|quarter|month)\}")


def _exact(value: Any) -> Fraction:
    if isinstance(value, float) and math.isfinite(value):  # from a notebook; specs hold written digits
        value = Decimal(repr(value))
    if isinstance(value, bool) or not isinstance(value, (int, Decimal, Fraction)):
        raise ValueError(f"must be a number, not {value!r}")
    return Fraction(value)


Exact = Annotated[Fraction, BeforeValidator(_exact), PlainSerializer(str, return_type=str)]


class Privacy(Strict):
    """The guarantee that is asked for."""

    epsilon: SpecEpsilon
    neighbours: Literal["add_remove", "substitute"] = "add_remove"
    total: Literal["estimated", "public", "invariant"] = "estimated"

    @model_validator(mode="after")
    def _public_total_needs_substitution(self):
        if self.total == "public" and self.neighbours != "substitute":
            raise ValueError(
                "total: public needs neighbours: substitute, where every data set has the same number of rows; "
                "under add_remove say estimated, or invariant to publish the exact number outside the guarantee"
            )
        return self


class Elect(Strict):
    """Who decides the order: the data, privately, with a share of ε."""

    utility: str = "aic"
    share: Exact = Fraction(1, 10)
    layers: int = Field(ge=1, le=64)
    what: Literal["attributes", "groups"] = "attributes"
    mechanism: Literal["permute_and_flip", "exponential"] = "permute_and_flip"
    stop: bool = False  # whether a branch may end above `layers`, where another layer would cost more than it tells

    @field_validator("share")
    @classmethod
    def _proper(cls, share: Fraction) -> Fraction:
        if not 0 < share < 1:
            raise ValueError(f"share is the part of ε spent on electing, above 0 and below 1; not {float(share):g}")
        return share

    @model_validator(mode="after")
    def _branches_stop_one_by_one(self):
        if self.stop and self.what == "groups":
            raise ValueError("stop: true needs what: attributes; a grouping is elected once for all branches")
        return self


class Sets(Strict):
    """How many synthetic sets, and how they share the budget."""

    count: int = Field(default=1, ge=1, le=100)
    budget: Literal["split", "shared"] = "split"  # m measurements at ε/m each, or one at ε that all sets are drawn from


def _grouped(order: Any) -> Any:
    if isinstance(order, tuple | list):
        return tuple((part,) if isinstance(part, str) else part for part in order)
    return order


def _way_to_order(order: Any) -> str:
    return "word" if isinstance(order, str) else "list"


Order = Annotated[
    Annotated[tuple[tuple[str, ...], ...], Tag("list")] | Annotated[Literal["elected"], Tag("word")],
    Discriminator(_way_to_order),
    BeforeValidator(_grouped),
]


class Method(Strict):
    """How counts become synthetic records."""

    decomposition: Literal["auto", "tree", "cascade", "flat", "uh", "privbayes"] = "auto"
    order: Order | None = None
    elect: Elect | None = None
    layers: int | None = Field(default=None, ge=1, le=64)
    shares: Literal["equal", "cube_root"] | tuple[Exact, ...] | None = None
    sets: Sets = Sets()

    @model_validator(mode="after")
    def _one_way_to_split(self):
        ways = {"order": self.order is not None, "elect": self.elect is not None, "layers": self.layers is not None}
        allowed = {"tree": ("order", "elect"), "uh": ("layers",), "cascade": ("order",), "auto": ("order",)}
        wanted = allowed.get(self.decomposition, ())
        given = [way for way, is_given in ways.items() if is_given]
        needed = self.decomposition in ("tree", "uh")
        if len(given) > 1 or len(given) < needed or not set(given) <= set(wanted):
            takes = " or ".join(wanted) if wanted else "neither order, elect nor layers"
            raise ValueError(f"decomposition: {self.decomposition} takes {takes}; found {', '.join(given) or 'none'}")
        if self.order == ELECTED and self.decomposition != "cascade":
            raise ValueError("order: elected needs decomposition: cascade; name the attributes, most important first")
        if isinstance(self.shares, tuple) and (not self.shares or any(share <= 0 for share in self.shares)):
            raise ValueError("shares are positive numbers, one per layer")
        return self

    @property
    def division(self) -> str | tuple[Fraction, ...]:
        """`shares`; unless given, split sets have the paper's equal layers, and one measurement for all the least noise."""
        return self.shares or ("cube_root" if self.sets.budget == "shared" else "equal")


class EvaluationSpec(Strict):
    """The confidential comparison after publication."""

    classifier: Literal["logistic", "cart"] = "logistic"
    interactions: bool = True


class ReleaseSpec(Strict):
    """One release: which data, which guarantee, which method."""

    name: str
    dataset: str
    source: str
    privacy: Privacy
    method: Method = Method()
    evaluation: EvaluationSpec = EvaluationSpec()
    approval: Literal["none", "required"] = "none"
    formats: tuple[str, ...] = ("parquet",)  # which there are, tasks/publishing/formats knows

    @field_validator("name")
    @classmethod
    def _plain(cls, name: str) -> str:
        if not NAME.fullmatch(PERIOD.sub("2026", name)):
            raise ValueError(
                f"{name!r} is not a name: use 1 to 64 of a–z, 0–9, _ and -, beginning with a letter or digit; "
                "{year}, {quarter} and {month} stand for the period"
            )
        return name

    @field_validator("formats")
    @classmethod
    def _parquet_always(cls, formats: tuple[str, ...]) -> tuple[str, ...]:
        if "parquet" not in formats:
            raise ValueError("formats always holds parquet; others, such as csv, may be added")
        return tuple(sorted(set(formats), reverse=True))


class Release(Strict):
    """A spec with its domain, its period filled in and its source found: everything public that a run depends on."""

    spec: ReleaseSpec
    domain: Domain
    folder: str  # of release.yaml; relative paths start here. Not part of the identity.

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def source(self) -> str:
        """Path or glob of the records, relative ones from the folder of release.yaml."""
        return str(Path(self.folder) / self.spec.source)


def load_release(path: Path | str, period: str | None = None, now: datetime.datetime | None = None) -> Release:
    """The release that a file describes. `period` (2026q4, 2026-11 or 2026) wins over `now`, the run's scheduled time."""
    path = Path(path)
    spec = yaml.validate(ReleaseSpec, yaml.read(path))
    spec = _in_period(spec, period, now)
    try:
        domain = load_domain(path.parent / spec.dataset)
    except SpecError as error:
        raise SpecError(f"{error}" if str(path.parent / spec.dataset) in str(error) else f"{path}: {error}") from None
    check_order(spec, domain, str(path))
    return Release(spec=spec, domain=domain, folder=str(path.parent))


def check_order(spec: ReleaseSpec, domain: Domain, where: str) -> None:
    """Every attribute that an order names exists and stands once."""
    if spec.method.order == ELECTED:
        return
    named = [name for group in spec.method.order or () for name in group]
    for name in named:
        if name not in domain.names:
            raise SpecError(f"{where}: order names {name!r}; the domain has {', '.join(domain.names)}.")
        if named.count(name) > 1:
            raise SpecError(f"{where}: order names {name!r} twice; each attribute splits the records once.")
    if spec.method.order is not None and not all(spec.method.order):
        raise SpecError(f"{where}: order holds an empty group; name at least one attribute in each.")


def _in_period(spec: ReleaseSpec, period: str | None, now: datetime.datetime | None) -> ReleaseSpec:
    used = {part for text in (spec.name, spec.source) for part in PERIOD.findall(text)}
    if not used:
        return spec
    values = _period_values(period, now, used)
    fill = lambda text: PERIOD.sub(lambda match: values[match.group(1)], text)  # noqa: E731
    return spec.model_copy(update={"name": fill(spec.name), "source": fill(spec.source)})


def _period_values(period: str | None, now: datetime.datetime | None, used: set[str]) -> dict[str, str]:
    if period is None:
        at = (now or datetime.datetime.now(datetime.UTC)).astimezone(datetime.UTC)
        return {"year": f"{at.year}", "quarter": f"{(at.month + 2) // 3}", "month": f"{at.month:02d}"}
    match = re.fullmatch(r"([0-9]{4})(?:q([1-4])|-(0[1-9]|1[0-2]))?", period)
    if not match:
        raise SpecError(f"period {period!r} is not one: write 2026, 2026q4 or 2026-11.")
    year, quarter, month = match.groups()
    quarter = quarter or (str((int(month) + 2) // 3) if month else None)
    values = {key: value for key, value in zip(("year", "quarter", "month"), (year, quarter, month), strict=True) if value}
    if used - values.keys():
        lacking = " or ".join(sorted(used - values.keys()))
        raise SpecError(f"period {period!r} does not say the {lacking} that the release names.")
    return values
