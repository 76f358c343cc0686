"""The plan: everything that is decided before data, and the hash that the charge is tied to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from schemas.amounts import WrittenDelta, WrittenEpsilon, WrittenRho
from schemas.identity import FORMAT_3, PLAN_FORMAT, digest, digest_1

_FRACTION = re.compile(r"-?[0-9]{1,500}(/[0-9]{1,500})?")  # "1e999999999" would be a number that no memory holds


def _rational(value: Any) -> Fraction:
    if isinstance(value, str) and not _FRACTION.fullmatch(value):
        raise ValueError("a fraction is written a/b with whole numbers a and b")
    return Fraction(value) if isinstance(value, str | int) and not isinstance(value, bool) else value


Rational = Annotated[Fraction, BeforeValidator(_rational), PlainSerializer(str, return_type=str)]


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


def without(document: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in names}


Table = tuple[str, ...]  # the attributes of a table


class Draw(Frozen):
    """One use of a mechanism, its figures as exact fractions.

    Its scale is sensitivity / ε. Of a discrete Gaussian both are squares: Δ² of the L2 sensitivity, and σ² = Δ² / 2ρ.
    Where an interaction is measured, both are per unit of what one row changes: of the (squared) length of its contrast.
    By the max norm, interactions of many tables get their noise together: one row changes each by 1 at most.
    Draws of one layer touch disjoint nodes (parallel composition); draws of different layers, sets and kinds add up.
    """

    name: str
    kind: Literal["election", "count"]
    mechanism: Literal["two_sided_geometric", "discrete_gaussian", "max_norm", "permute_and_flip", "exponential"]
    layer: int  # of the nodes counted; for an election, of the nodes that are split
    set: int | None  # which synthetic set it serves; None serves all
    tree: str | None = None  # whose tree, where every attribute has one; None: the only tree, or a draw that serves all trees
    # Whose interaction is measured, in place of counts; or that of a pair which was elected, or which noisy numbers chose.
    of: Table | tuple[Table, ...] | Literal["elected", "again"] | None = None
    rows_of: Literal["person"] | None = None  # of linked tables, whose rows are counted: of other members, or of households
    nodes: Literal["inner", "leaves"]  # a leaf above the last layer spends what is left of its path in one draw
    sensitivity: Rational
    epsilon: Rational | None = None  # what it costs under pure differential privacy,
    rho: Rational | None = None  # or under zero-concentrated
    scale: Rational
    threshold: int | None = None  # cells are too many to list: only noisy counts of at least this are kept

    @model_validator(mode="after")
    def _has_one_price(self) -> Self:
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("a draw costs epsilon or rho, one of them")
        named = isinstance(self.of, tuple)
        if self.is_joint != (named and any(isinstance(of, tuple) for of in self.of or ())) or (self.is_joint and not named):
            raise ValueError("noise by the max norm is that of a list of tables, and no other noise is")
        return self

    @model_serializer(mode="wrap")
    def _say_the_price(self, said: SerializerFunctionWrapHandler) -> dict[str, Any]:
        silent = (name for name in ("of", "rows_of") if getattr(self, name) is None)
        return without(said(self), "epsilon" if self.epsilon is None else "rho", *silent)

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables whose interactions are measured, as far as the plan names them; () is the number of rows."""
        if self.of is None or isinstance(self.of, str):
            return ()
        return tuple(of for of in self.of if isinstance(of, tuple)) if self.is_joint else (cast(Table, self.of),)

    @property
    def is_joint(self) -> bool:
        return self.mechanism == "max_norm"

    @property
    def cost(self) -> Fraction:
        """In the measure of its plan."""
        cost = self.rho if self.epsilon is None else self.epsilon
        assert cost is not None
        return cost


class LayerPlan(Frozen):
    """One layer of the tree, as far as it is known before data."""

    layer: int
    attributes: tuple[str, ...] | None  # None: elected
    nodes: int
    nodes_are: Literal["exact", "at most"]
    share: Rational
    expected_error: float  # standard error of a node's count after correction, one set


class ElectionPlan(Frozen):
    utility: str
    what: Literal["attributes", "groups", "pairs"]
    mechanism: Literal["permute_and_flip", "exponential"]
    layers: int
    share: Rational
    candidates: int
    stop: bool = False  # whether ending a branch competes with every way to split it
    by_noise: Rational | None = None  # the chance that noise or chance alone splits a root; None: no threshold

    @model_serializer(mode="wrap")
    def _say_the_threshold(self, said: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(said(self), *(("by_noise",) if self.by_noise is None else ()))


class Considered(Frozen):
    """What `decomposition: auto` compared: the part of all rows that would be misplaced, predicted from public inputs."""

    decomposition: str
    predicted_error: float
    why: str


class Analysis(Frozen):
    """A table or a model that a release's author asked for, names resolved: all that fitting it needs."""

    name: str
    kind: Literal["table", "linear", "logistic"]
    table: Table = ()
    formula: str = ""
    where: dict[str, tuple[str, ...]] = {}  # labels of the categories that rows must have
    within: Rational | None = None
    rows_of: Literal["person"] | None = None  # of linked tables, whose rows it is of: of all persons, or of households

    @model_serializer(mode="wrap")
    def _say_whose_rows(self, said: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(said(self), *(("rows_of",) if self.rows_of is None else ()))


class NeededTable(Frozen):
    """A table of counts that an analysis depends on, and whether the plan measures all of it."""

    of: Table
    measured: bool


class AnalysisPlan(Analysis):
    """What is known of an analysis before data. Widths are halves of 95% intervals, for balanced independent attributes."""

    needs: tuple[NeededTable, ...]
    measured: bool
    share: Rational  # of the budget, that pays for draws of its tables; such a draw may serve other tables too
    expected_width: float | None  # of an average cell's share, or of the widest coefficient; None: nothing can be said
    coefficients: dict[str, float] = {}  # the expected width of each


class WeightPlan(Frozen):
    """Of records with weights: the highest weight, for how many people a unit stands, and as how many units a row may count."""

    highest: Rational
    step: Rational
    units_per_row: int
    inflation: Rational  # so many times larger than of independent rows is the variance of sampling people, at most


def lowest_format(
    measure: str, draws: Iterable[Draw], analyses: Sequence[AnalysisPlan] = (), weight: WeightPlan | None = None
) -> Literal[2, 3]:
    """The lowest format that can say what is drawn, what it costs, and what it is for."""
    says_more = measure == "zcdp" or any(draw.of is not None for draw in draws) or analyses or weight
    return FORMAT_3 if says_more else PLAN_FORMAT


KEYS_3 = ("measure", "rho", "delta", "delta_why", "order")  # that format 3 has and format 2 has not


class Plan(Frozen):
    """What will be drawn and what it costs; a function of public inputs alone."""

    format: Literal[1, 2, 3] = PLAN_FORMAT  # by whose rules it is hashed; documents of version 0.1.0 do not say it
    release: str
    population: str
    decomposition: str
    neighbours: Literal["add_remove", "substitute"]
    rows_per_person: int
    at_most: int | None = None  # persons in a household, where tables are linked; one of them is in the household's row
    unit: str = "person"  # whose data may change between neighbouring data sets; `rows_per_person` are of one of them
    weight: WeightPlan | None = None  # counts are of units of weight, in place of rows
    total: Literal["estimated", "public", "invariant"]
    measure: Literal["pure", "zcdp"] = "pure"  # in which draws are paid
    epsilon: WrittenEpsilon  # what is charged; under zcdp what `rho` promises at `delta`
    rho: WrittenRho | None = None  # what is charged under zcdp
    delta: WrittenDelta | None = None
    delta_why: str | None = None  # the author's reason for a delta that is not far below one in all rows
    order: float | None = None  # of the Rényi divergence: the one that proves epsilon at delta
    sets: int
    budget: Literal["split", "shared"] = "split"
    cells: int
    layers: tuple[LayerPlan, ...]
    election: ElectionPlan | None
    draws: tuple[Draw, ...]
    considered: tuple[Considered, ...] = ()
    analyses: tuple[AnalysisPlan, ...] = ()
    memory_bytes: int
    seconds: float
    spec_hash: str

    @model_validator(mode="after")
    def _says_its_measure(self) -> Self:
        given = [name for name in ("rho", "delta", "order") if getattr(self, name) is not None]
        if given != (["rho", "delta", "order"] if self.measure == "zcdp" else []):
            raise ValueError("a plan in zcdp has rho, delta and order; others have none of them")
        if self.format > 1 and self.format != lowest_format(self.measure, self.draws, self.analyses, self.weight):
            said = "it is paid in rho, measures interactions, has analyses or weights"
            raise ValueError(f"a plan has format 3 if {said}, else format 2")
        priced = "rho" if self.measure == "zcdp" else "epsilon"
        if any(getattr(draw, priced) is None for draw in self.draws):
            raise ValueError(f"every draw of this plan is paid in {priced}")
        return self

    @model_serializer(mode="wrap")
    def _say_what_the_format_knows(self, said: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unknown = KEYS_3 if self.format < 3 else ()
        silent = (name for name in ("analyses", "at_most", "weight") if not getattr(self, name))
        return without(said(self), *unknown, *silent)

    @property
    def units_per_person(self) -> int:
        """By how much one person can change counts: rows, or units of weight."""
        return self.rows_per_person * (self.weight.units_per_row if self.weight else 1)

    @property
    def inflation(self) -> Fraction:
        """By which variances within sets are multiplied: as the domain's, at most so many times those of independent rows."""
        return self.weight.inflation if self.weight else Fraction(self.rows_per_person)

    @property
    def inflates_at_most(self) -> bool:
        """Whether no relation of weights and answers makes variances larger. A design effect below that may be too small."""
        bound = self.rows_per_person * self.weight.highest / self.weight.step if self.weight else 0
        return self.inflation > bound

    @property
    def cost(self) -> str:
        """What is charged, in decimal digits of the measure."""
        return self.rho or self.epsilon

    @property
    def structure_is_drawn(self) -> bool:
        """Whether the structure depends on records, by elections or by a total that guides them."""
        return any(draw.kind == "election" or draw.layer == 0 for draw in self.draws)

    @property
    def served(self) -> tuple[int | None, ...]:
        """The set that each measurement of the counts serves: one per set, or None for one that serves all."""
        return tuple(range(1, self.sets + 1)) if self.budget == "split" else (None,)

    @property
    def measurements(self) -> int:
        return len(self.served)

    @property
    def document(self) -> dict[str, Any]:
        """As plain JSON values: a plan of format 1 says what it said when it was made, and nothing that came later."""
        if self.format == 1:
            return self.model_dump(mode="json", exclude_unset=True, exclude={"format"})
        return self.model_dump(mode="json")

    @property
    def hash(self) -> str:
        """What a charge is tied to: everything but the estimates of time and memory."""
        hashed = {key: value for key, value in self.document.items() if key not in ("seconds", "memory_bytes")}
        return digest_1(hashed) if self.format == 1 else digest(hashed)

    def count_draw(self, layer: int, measurement: int, nodes: str) -> Draw:
        wanted = ("count", layer, self.served[measurement - 1], nodes)
        return next(draw for draw in self.draws if (draw.kind, draw.layer, draw.set, draw.nodes) == wanted)

    def election_draw(self, layer: int) -> Draw:
        return next(d for d in self.draws if (d.kind, d.layer) == ("election", layer))


def read_plan(document: Any) -> Plan:
    """The plan that a document holds; one that names no format is of format 1."""
    return Plan.model_validate({"format": 1, **document} if isinstance(document, dict) else document)
