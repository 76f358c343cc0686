"""The manifest of format 1, as version 0.1.0 wrote it: read and verified by its own rules, never written any more.

Its times have seconds, and its ledger proof runs over the entries themselves: `hidden` is a hash over the whole body, in which
a keyed fingerprint of the records stands. Format 2 publishes neither.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.identity import chain_hash, ledger_canonical_1, sha256
from schemas.manifest import MECHANISMS, Code, Composition, FileFacts, Guarantee, Hash, Whole
from schemas.plan import Draw, Frozen, Plan
from schemas.promise import factor
from schemas.spec.domain import Name

FORMAT_1 = "steps-release/1"

Moment = Annotated[str, Field(pattern=r"^[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}(\.[0-9]+)?\+00:00$")]


class ChargeEntry1(Frozen):
    """The ledger's entry that paid; `hidden` is the hash of what is not shown."""

    seq: Whole
    at: Moment
    kind: Literal["charge"]
    population: Name
    release: Name
    key: str
    amount: Whole
    granted_after: Whole
    charged_after: Whole
    shown: dict[str, str | int]
    hidden: Hash


class LedgerProof1(Frozen):
    """The charge's place in the chain of all entries."""

    charge: ChargeEntry1
    previous: Hash
    later: tuple[Hash, ...]
    head_seq: Whole
    head: Hash

    @property
    def leads_to(self) -> tuple[int, str]:
        head = chain_hash(self.previous, sha256(ledger_canonical_1(self.charge.model_dump(mode="json"))))
        for content in self.later:
            head = chain_hash(head, content)
        return self.charge.seq + len(self.later), head


class Manifest1(Frozen):
    """manifest.json of format 1."""

    format: Literal["steps-release/1"]
    release: Name
    population: Name
    made_at: Moment
    guarantee: Guarantee
    composition: Composition
    draws: tuple[Draw, ...]
    plan_hash: Hash
    spec_hash: Hash
    ledger: LedgerProof1
    code: Code
    files: dict[str, FileFacts]


def guarantee_1(plan: Plan) -> Guarantee:
    """The guarantee in the words of version 0.1.0."""
    used = {draw.mechanism for draw in plan.draws}
    return Guarantee(
        definition="pure differential privacy",
        epsilon=plan.epsilon,
        neighbours=plan.neighbours,
        rows_per_person=plan.rows_per_person,
        sentence=_sentence(plan),
        mechanisms=tuple(text for name, text in MECHANISMS.items() if name in used),
        unprotected=_unprotected(plan),
    )


def _sentence(plan: Plan) -> str:
    rows = "one row" if plan.rows_per_person == 1 else f"all of at most {plan.rows_per_person} rows"
    change = {
        "add_remove": f"had that person's data ({rows}) been left out",
        "substitute": f"had that person's data ({rows}) been replaced by anybody else's",
    }[plan.neighbours]
    return (
        f"For every person in the data: whatever can be seen in this release, or concluded from it, would have been about as "
        f"likely {change}, with probabilities that differ by a factor of at most {factor(plan.epsilon)} (ε = {plan.epsilon}); "
        "this holds whatever anyone knows already, and whatever is done with the release later."
    )


def _unprotected(plan: Plan) -> tuple[str, ...]:
    total: dict[str, tuple[str, ...]] = {
        "estimated": (),
        "public": ("the number of rows, which is the same for all neighbouring data",),
        "invariant": ("the exact number of rows, which is published outside the guarantee",),
    }
    return (
        *total[plan.total],
        "the domain: attributes, categories, bounds, bins and rules, none of which come from the records",
        "the plan, and that and when this release was made",
        "that the records passed validation against the domain",
    )
