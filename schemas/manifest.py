"""The manifest: what a release promises, what it paid, and which files it consists of. Everything in it is public."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Final, Literal

from pydantic import Field

from schemas.budget import WrittenEpsilon, as_fraction, parse_nanos
from schemas.identity import chain_hash, digest
from schemas.plan import Draw, Frozen, Plan, Rational
from schemas.spec.domain import Name

FORMAT: Final = "steps-release/2"

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Day = Annotated[str, Field(pattern=r"^[0-9]{4}(-[0-9]{2}){2}$")]  # a time of day would tell how long a run took on its records
Whole = Annotated[int, Field(strict=True, ge=0, le=2**62)]

MECHANISMS = {
    "two_sided_geometric": "two-sided geometric noise (the exact discrete Laplace) on counts",
    "permute_and_flip": "permute-and-flip elections of the attribute that splits a node",
    "exponential": "exponential-mechanism elections of the attribute that splits a node",
}


class Guarantee(Frozen):
    """What is promised to a person (or whatever the unit is) in the data, and what is not covered."""

    definition: Literal["pure differential privacy"]
    epsilon: WrittenEpsilon
    neighbours: Literal["add_remove", "substitute"]
    unit: Name = "person"
    rows_per_person: int
    sentence: str
    mechanisms: tuple[str, ...]
    unprotected: tuple[str, ...]


class Composition(Frozen):
    """How the draws on any way from the root to a leaf add up to ε, as exact fractions."""

    structure: Rational  # elections, and the number of rows where it had to be drawn to guide them
    measurements: tuple[Rational, ...]  # one per set, or one that all sets share
    sets: Annotated[int, Field(ge=1)]
    total: Rational
    sentence: str


class Terms(Frozen):
    """What was charged for, and under which relation. Nothing else of a charge is published."""

    plan_hash: Hash
    spec_hash: Hash
    neighbours: Literal["add_remove", "substitute"]
    unit: Name


class ChargeEntry(Frozen):
    """The charge as the ledger's public chain has it: a function of public inputs, of nothing that is computed from records."""

    seq: Whole  # among the public entries
    date: Day
    kind: Literal["charge"]
    population: Name
    release: Name
    key: str
    amount: Whole  # in 10⁻⁹ of ε, as are the two below
    granted_after: Whole
    charged_after: Whole
    shown: Terms


class LedgerProof(Frozen):
    """The charge's place in the public chain: from the entry before it, over the contents after it, to the head."""

    charge: ChargeEntry
    previous: Hash
    later: tuple[Hash, ...]
    head_seq: Whole
    head: Hash

    @property
    def leads_to(self) -> tuple[int, str]:
        """The head that follows from the charge as it reads; `verify` compares it with the one that is given."""
        head = chain_hash(self.previous, digest(self.charge.model_dump(mode="json")))
        for content in self.later:
            head = chain_hash(head, content)
        return self.charge.seq + len(self.later), head


class Code(Frozen):
    """What computed the release."""

    package: str
    version: str
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}(-dirty)?$")] | None
    python: str
    dependencies: dict[str, str]


class FileFacts(Frozen):
    sha256: Hash
    size: Whole


class Manifest(Frozen):
    """manifest.json, signed as a whole."""

    format: Literal["steps-release/2"]
    release: Name
    population: Name
    made_at: Day
    guarantee: Guarantee
    composition: Composition
    draws: tuple[Draw, ...]
    plan_hash: Hash
    spec_hash: Hash
    ledger: LedgerProof
    code: Code
    files: dict[str, FileFacts]


def guarantee_of(plan: Plan) -> Guarantee:
    """The guarantee that a plan gives, in figures and in words."""
    used = {draw.mechanism for draw in plan.draws}
    return Guarantee(
        definition="pure differential privacy",
        epsilon=plan.epsilon,
        neighbours=plan.neighbours,
        unit=plan.unit,
        rows_per_person=plan.rows_per_person,
        sentence=_sentence(plan),
        mechanisms=tuple(text for name, text in MECHANISMS.items() if name in used),
        unprotected=_unprotected(plan),
    )


def _sentence(plan: Plan) -> str:
    rows = "one row" if plan.rows_per_person == 1 else f"all of at most {plan.rows_per_person} rows"
    other = "anybody else's" if plan.unit == "person" else f"any other {plan.unit}'s"
    change = {
        "add_remove": f"had that {plan.unit}'s data ({rows}) been left out",
        "substitute": f"had that {plan.unit}'s data ({rows}) been replaced by {other}",
    }[plan.neighbours]
    return (
        f"For every {plan.unit} in the data: whatever can be seen in this release, or concluded from it, would have been "
        f"about as likely {change}, with probabilities that differ by a factor of at most {factor(plan.epsilon)} "
        f"(ε = {plan.epsilon}); this holds whatever anyone knows already, and whatever is done with the release later."
    )


def factor(epsilon: str) -> str:
    """
    e^ε, rounded up: the sentence says "at most".

    >>> factor("1"), factor("0.2"), factor("40")
    ('2.72', '1.23', 'e^40')
    """
    value = float(as_fraction(parse_nanos(epsilon)))
    return f"{math.ceil(100 * math.exp(value)) / 100:,.2f}" if value <= 10 else f"e^{epsilon}"


def _unprotected(plan: Plan) -> tuple[str, ...]:
    total = {
        "estimated": (),
        "public": ("the number of rows, which is the same for all neighbouring data",),
        "invariant": ("the exact number of rows, which is published outside the guarantee",),
    }[plan.total]
    return (
        *total,
        "the domain: attributes, categories, bounds, bins and rules, none of which come from the records",
        "the plan, and that and when this release was made",
        "that the records passed validation against the domain",
    )


def path_draws(plan: Plan, depth: int) -> tuple[Draw, ...]:
    """The draws that touch one person whose leaf lies in layer `depth`: every election and count on the way down."""
    return tuple(
        draw
        for draw in plan.draws
        if (draw.layer < depth and (draw.kind == "election" or draw.nodes == "inner"))
        or (draw.layer == depth and draw.kind == "count" and draw.nodes == "leaves")
    )


def tree_path(plan: Plan, tree: str, held: int) -> tuple[Draw, ...]:
    """The draws that touch one person in an attribute's own tree, in a leaf below `held` elections."""
    mine = [draw for draw in plan.draws if draw.tree == tree]
    return tuple(d for d in mine if (d.layer < held if d.kind == "election" else d.layer == held))


def longest_way(plan: Plan) -> tuple[Draw, ...]:
    """The draws that touch one person: down the only tree, or down every attribute's tree, to the deepest leaf."""
    if not plan.has_forest:
        return path_draws(plan, len(plan.layers))
    deepest: dict[str, int] = {}
    for draw in plan.draws:
        if draw.tree is not None and draw.kind == "count":
            deepest[draw.tree] = max(draw.layer, deepest.get(draw.tree, 0))
    ways = (tree_path(plan, tree, held) for tree, held in deepest.items())
    return (*(draw for draw in plan.draws if draw.tree is None), *(draw for way in ways for draw in way))


def composition_of(plan: Plan) -> Composition:
    """Sums over the longest way; every other way costs the same, which `verify` checks."""
    draws = longest_way(plan)
    counts = [draw for draw in draws if draw.kind == "count" and not (plan.has_forest and draw.tree is None)]
    structure = sum((draw.epsilon for draw in draws if draw not in counts), Fraction())
    measurements = tuple(sum((d.epsilon for d in counts if d.set == set_), Fraction()) for set_ in plan.served)
    return Composition(
        structure=structure,
        measurements=measurements,
        sets=plan.sets,
        total=sum((draw.epsilon for draw in draws), Fraction()),
        sentence="Nodes of one layer of a tree hold different people, so a layer costs what one of its nodes costs; "
        "layers, trees, measurements and elections add up.",
    )
