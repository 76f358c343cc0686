"""Checks of what a release says it paid: manifest, plan, ledger proof and the exact sum over its draws."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from schemas.budget import as_fraction, parse_nanos, show_nanos
from schemas.manifest import LedgerProof, Manifest, composition_of, guarantee_of, path_draws
from schemas.manifest_1 import LedgerProof1, Manifest1, guarantee_1
from schemas.plan import Draw, Plan
from schemas.spec.domain import Domain
from steps_engine.methods.tree.election import UTILITIES


def manifest_problems(manifest: Manifest | Manifest1, plan: Plan) -> Iterator[str]:
    """The manifest repeats the plan truly: an outsider may read either."""
    if plan.hash != manifest.plan_hash:
        yield "the plan does not have the hash that the manifest gives"
    if (plan.release, plan.population, plan.spec_hash) != (manifest.release, manifest.population, manifest.spec_hash):
        yield "release, population or spec hash differ from the plan's"
    if manifest.draws != plan.draws:
        yield "the draws differ from the plan's"
    if manifest.guarantee != (guarantee_1(plan) if isinstance(manifest, Manifest1) else guarantee_of(plan)):
        yield "the guarantee is not the one that the plan gives"
    if manifest.composition != composition_of(plan):
        yield "the composition is not the one that the plan gives"


def ledger_problems(proof: LedgerProof | LedgerProof1, manifest: Manifest | Manifest1, plan: Plan) -> Iterator[str]:
    """The charge is for this release and this plan, of exactly its ε, within the grant, and lies in the chain."""
    charge = proof.charge
    if (charge.release, charge.population) != (manifest.release, manifest.population):
        yield "the charge was made for another release or population"
    if charge.amount != parse_nanos(plan.epsilon):
        yield f"ε={show_nanos(charge.amount)} was charged; the release promises ε={plan.epsilon}"
    if not charge.amount <= charge.charged_after <= charge.granted_after:
        yield "the charge exceeds what was granted to the population"
    said = {"plan_hash": plan.hash, "spec_hash": plan.spec_hash, "neighbours": plan.neighbours, "unit": plan.unit}
    if dict(charge.shown) != said:
        yield "the charge was made for another plan, spec, unit or neighbouring relation"
    if proof.leads_to != (proof.head_seq, proof.head):
        yield "the charge does not lead to the head of the ledger that the manifest gives"


def domain_problems(plan: Plan, domain: Domain) -> Iterator[str]:
    unit = domain.unit
    if (plan.population, plan.rows_per_person, plan.unit) != (domain.population, unit.rows_per_person, unit.who):
        yield "population, unit or rows per person differ between plan and domain"


def draw_problems(plan: Plan, leaf_layers: tuple[int, ...]) -> Iterator[str]:
    """Every draw is noisy enough for its share, and the shares on every way from root to leaf sum to ε exactly."""
    for draw in plan.draws:
        yield from _noise_problems(draw, plan)
    places = [(draw.kind, draw.layer, draw.set, draw.nodes) for draw in plan.draws]
    if len(set(places)) < len(places):
        yield "a draw is listed twice"
    if not plan.layers or [layer.layer for layer in plan.layers] != list(range(1, len(plan.layers) + 1)):
        yield "the plan's layers are not numbered 1, 2, 3, …"
    if plan.sparse and any((draw.threshold or 0) < 1 for draw in plan.draws if _counts_cells(draw, plan)):
        yield "the cells have a threshold in some measurements only, or one below 1"
    if any(draw.threshold is not None for draw in plan.draws if not _counts_cells(draw, plan)):
        yield "a draw that is not of the cells has a threshold"
    epsilon = as_fraction(parse_nanos(plan.epsilon))
    for depth in leaf_layers:
        yield from _path_problems(plan, depth, epsilon)


def _counts_cells(draw: Draw, plan: Plan) -> bool:
    return draw.kind == "count" and draw.layer == len(plan.layers)


def _path_problems(plan: Plan, depth: int, epsilon: Fraction) -> Iterator[str]:
    draws = path_draws(plan, depth)
    measured = {(draw.layer, draw.set) for draw in draws if draw.kind == "count"}
    if measured != {(layer, set_) for layer in range(1, depth + 1) for set_ in plan.served}:
        yield f"a leaf in layer {depth} lies below counts that no draw accounts for"
    # A leaf above the last layer takes no part in the elections below it: their share is not spent on it.
    unheld = sum((d.epsilon for d in plan.draws if d.kind == "election" and d.layer >= depth), Fraction())
    total = sum((draw.epsilon for draw in draws), Fraction())
    if total + unheld != epsilon:
        yield f"the shares on the way to a leaf in layer {depth} sum to {total + unheld}, not to ε={plan.epsilon}"


def _noise_problems(draw: Draw, plan: Plan) -> Iterator[str]:
    if draw.epsilon <= 0:
        yield f"draw {draw.name!r} has no share of ε"
    elif draw.scale < draw.sensitivity / draw.epsilon:
        yield f"draw {draw.name!r} has scale {draw.scale}, below sensitivity/ε = {draw.sensitivity / draw.epsilon}"
    least = _least_sensitivity(draw, plan)
    if least is None:
        yield f"draw {draw.name!r} is no election or count of this plan"
    elif draw.sensitivity < least:
        yield f"draw {draw.name!r} has sensitivity {draw.sensitivity}; one person can change it by {least}"


def _least_sensitivity(draw: Draw, plan: Plan) -> Fraction | None:
    """k rows, twice that under substitution; for an election times the spread that its utility declares."""
    person = Fraction(plan.rows_per_person * (2 if plan.neighbours == "substitute" else 1))
    if draw.kind == "count":
        is_count = draw.mechanism == "two_sided_geometric" and draw.set in plan.served and draw.layer >= 1
        return person if is_count else None
    if plan.election is None or plan.election.utility not in UTILITIES or draw.mechanism != plan.election.mechanism:
        return None
    grouped = 2 if plan.election.what == "groups" else 1
    return person * UTILITIES[plan.election.utility].spread * grouped if draw.set is None else None
