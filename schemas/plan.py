"""The plan: everything that is decided before data, and the hash that the charge is tied to."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from schemas.budget import WrittenEpsilon
from schemas.identity import PLAN_FORMAT, digest, digest_1

_FRACTION = re.compile(r"-?[0-9]{1,500}(/[0-9]{1,500})?")  # "1e999999999" would be a number that no memory holds


def _rational(value: Any) -> Fraction:
    if isinstance(value, str) and not _FRACTION.fullmatch(value):
        raise ValueError("a fraction is written a/b with whole numbers a and b")
    return Fraction(value) if isinstance(value, str | int) and not isinstance(value, bool) else value


Rational = Annotated[Fraction, BeforeValidator(_rational), PlainSerializer(str, return_type=str)]


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Draw(Frozen):
    """One use of a mechanism: its scale is sensitivity / epsilon, as exact fractions.

    Draws of one layer touch disjoint nodes (parallel composition); draws of different layers, sets and kinds add up.
    """

    name: str
    kind: Literal["election", "count"]
    mechanism: Literal["two_sided_geometric", "permute_and_flip", "exponential"]
    layer: int  # of the nodes counted; for an election, of the nodes that are split
    set: int | None  # which synthetic set it serves; None serves all
    tree: str | None = None  # whose tree, where every attribute has one; None: the only tree, or a draw that serves all trees
    nodes: Literal["inner", "leaves"]  # a leaf above the last layer spends what is left of its path in one draw
    sensitivity: Rational
    epsilon: Rational
    scale: Rational
    threshold: int | None = None  # cells are too many to list: only noisy counts of at least this are kept


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
    what: Literal["attributes", "groups"]
    mechanism: Literal["permute_and_flip", "exponential"]
    layers: int
    share: Rational
    candidates: int
    stop: bool = False  # whether ending a branch competes with every way to split it


class Considered(Frozen):
    """What `decomposition: auto` compared: the part of all rows that would be misplaced, predicted from public inputs."""

    decomposition: str
    predicted_error: float
    why: str


class Plan(Frozen):
    """What will be drawn and what it costs; a function of public inputs alone."""

    format: Literal[1, 2] = PLAN_FORMAT  # by whose rules it is hashed; documents of version 0.1.0 do not say it
    release: str
    population: str
    decomposition: str
    neighbours: Literal["add_remove", "substitute"]
    rows_per_person: int
    unit: str = "person"  # whose data may change between neighbouring data sets; `rows_per_person` are of one of them
    total: Literal["estimated", "public", "invariant"]
    epsilon: WrittenEpsilon  # what is charged
    sets: int
    budget: Literal["split", "shared"] = "split"
    cells: int
    layers: tuple[LayerPlan, ...]
    election: ElectionPlan | None
    draws: tuple[Draw, ...]
    considered: tuple[Considered, ...] = ()
    memory_bytes: int
    seconds: float
    spec_hash: str

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
