"""The manifest: what a release promises, what it paid, and which files it consists of. Everything in it is public."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from schemas.amounts import WrittenDelta, WrittenEpsilon, WrittenRho
from schemas.identity import PLAN_FORMAT, chain_hash, digest
from schemas.plan import Draw, Frozen, Plan, Rational, WeightPlan, without
from schemas.promise import sentence_of, unprotected_by
from schemas.results import AnalysisResult
from schemas.spec.described import Text, Title
from schemas.spec.domain import Domain, Name
from schemas.terms import Terms

FORMAT: Final = "steps-release/2"
# Knows two measures, interactions, analyses, seeds and waves; a manifest has the lowest format that can say it.
FORMAT_3: Final = "steps-release/3"
# How rows follow from what was drawn: seeds, the stream of bits, and every step after it. Another way is another name.
Seeds = Literal["steps-seeds/1", "steps-seeds/2"]
SEEDS_1: Final = "steps-seeds/1"
# The same, and comparisons within a household that bins leave open hold value by value.
SEEDS_2: Final = "steps-seeds/2"

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Day = Annotated[str, Field(pattern=r"^[0-9]{4}(-[0-9]{2}){2}$")]  # a time of day would tell how long a run took on its records
Whole = Annotated[int, Field(strict=True, ge=0, le=2**62)]

MECHANISMS = {
    "two_sided_geometric": "two-sided geometric noise (the exact discrete Laplace) on counts",
    "discrete_gaussian": "the exact discrete Gaussian on counts",
    "max_norm": "noise by the largest change on numbers that are measured together (exact, in whole numbers)",
    "permute_and_flip": "permute-and-flip elections of the attribute that splits a node",
    "exponential": "exponential-mechanism elections of the attribute that splits a node",
}


_ADDS_UP = "layers, trees, measurements and elections add up."
# Below format 3 as it was always written; somebody with several rows may stand in several nodes, which the other one knows.
_ADDS_UP_2 = f"Nodes of one layer of a tree hold different people, so a layer costs what one of its nodes costs; {_ADDS_UP}"
_ADDS_UP_3 = (
    f"Nodes of one layer of a tree share no row, so a layer costs what a node with all rows of somebody costs; {_ADDS_UP}"
)


def adds_up(plan: Plan) -> str:
    """Why the costs of a plan's draws make its cost."""
    return _ADDS_UP_2 if plan.format <= PLAN_FORMAT else _ADDS_UP_3


class Guarantee(Frozen):
    """What is promised to a person (or whatever the unit is) in the data, and what is not covered."""

    definition: Literal["pure differential privacy", "zero-concentrated differential privacy"]
    epsilon: WrittenEpsilon  # under zero-concentrated: at delta
    rho: WrittenRho | None = None
    delta: WrittenDelta | None = None
    delta_why: str | None = None
    order: float | None = None  # of the Rényi divergence, which proves epsilon at delta
    neighbours: Literal["add_remove", "substitute"]
    unit: Name = "person"
    rows_per_person: int
    weight: WeightPlan | None = None  # of records with weights: the bound on them
    sentence: str
    mechanisms: tuple[str, ...]
    unprotected: tuple[str, ...]

    @model_serializer(mode="wrap")
    def _say_what_is_promised(self, said: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unsaid = () if self.rho else ("rho", "delta", "delta_why", "order")
        return without(said(self), *unsaid, *(() if self.weight else ("weight",)))


class Composition(Frozen):
    """How the draws on any way from the root to a leaf add up to ε or ρ, as exact fractions."""

    structure: Rational  # elections, and the number of rows where it had to be drawn to guide them
    measurements: tuple[Rational, ...]  # one per set, or one that all sets share
    sets: Annotated[int, Field(ge=1)]
    total: Rational
    sentence: str


class ChargeEntry(Frozen):
    """The charge as the ledger's public chain has it: a function of public inputs, of nothing that is computed from records."""

    seq: Whole  # among the public entries
    date: Day
    kind: Literal["charge"]
    population: Name
    release: Name
    key: str
    amount: Whole  # in 10⁻⁹ of ε, as are the two below; of ρ where a measure is said
    granted_after: Whole
    charged_after: Whole
    measure: Literal["zcdp"] | None = None  # of the account; none: pure
    shown: Terms

    @model_serializer(mode="wrap")
    def _say_the_measure(self, said: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return said(self) if self.measure else without(said(self), "measure")


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

    format: Literal["steps-release/2", "steps-release/3"]
    release: Name
    title: Title | None = None  # as release.yaml says it, as is the description
    description: Text | None = None
    why: str | None = None  # the author's reason for a large ε
    population: Name
    made_at: Day
    guarantee: Guarantee
    composition: Composition
    draws: tuple[Draw, ...]
    analyses: tuple[AnalysisResult, ...] = ()
    seeds: Seeds | None = None  # by which anybody can make the rows again; none: they cannot be
    plan_hash: Hash
    spec_hash: Hash
    ledger: LedgerProof
    code: Code
    files: dict[str, FileFacts]

    @model_validator(mode="after")
    def _has_the_lowest_format(self) -> Self:
        words = (self.title, self.description, self.why)
        if self.format != format_of(self.guarantee, self.draws, self.ledger, self.analyses, self.seeds, words):
            said = "a measure, weights, interactions, analyses, seeds, words or waves"
            raise ValueError(f"a manifest has format 3 if it says {said}, else format 2")
        return self

    @model_serializer(mode="wrap")
    def _say_what_there_is(self, said: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unsaid = [name for name in ("analyses", "seeds", "title", "description", "why") if not getattr(self, name)]
        return without(said(self), *unsaid)


def seeds_for(domain: Domain) -> Seeds:
    """The first rule that can say how rows of a domain are made."""
    return SEEDS_2 if domain.conditionals or domain.member_conditionals else SEEDS_1


def format_of(
    guarantee: Guarantee,
    draws: tuple[Draw, ...],
    ledger: LedgerProof,
    analyses: tuple[AnalysisResult, ...] = (),
    seeds: Seeds | None = None,
    words: tuple[str | None, ...] = (),
) -> Literal["steps-release/2", "steps-release/3"]:
    """The lowest format that can say what is promised, drawn and charged, what it was for, and how rows follow from it."""
    charge = ledger.charge
    says_more = (
        guarantee.rho or guarantee.weight or charge.measure or any(draw.of is not None for draw in draws) or analyses or seeds
    )
    return FORMAT_3 if says_more or any(words) or charge.shown.overlaps or charge.shown.waves else FORMAT


def guarantee_of(plan: Plan) -> Guarantee:
    """The guarantee that a plan gives, in figures and in words."""
    used = {draw.mechanism for draw in plan.draws}
    return Guarantee(
        definition="pure differential privacy" if plan.measure == "pure" else "zero-concentrated differential privacy",
        epsilon=plan.epsilon,
        rho=plan.rho,
        delta=plan.delta,
        delta_why=plan.delta_why,
        order=plan.order,
        neighbours=plan.neighbours,
        unit=plan.unit,
        rows_per_person=plan.rows_per_person,
        weight=plan.weight,
        sentence=sentence_of(plan),
        mechanisms=tuple(text for name, text in MECHANISMS.items() if name in used),
        unprotected=unprotected_by(plan),
    )
