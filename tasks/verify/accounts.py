"""Checks of what a release says it paid: manifest, plan, ledger proof and the exact sum over its draws."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_DOWN, ROUND_UP, Context, Decimal
from fractions import Fraction

from schemas.budget import show_nanos
from schemas.manifest import ChargeEntry, LedgerProof, Manifest, adds_up, guarantee_of
from schemas.manifest_1 import ChargeEntry1, LedgerProof1, Manifest1, guarantee_1
from schemas.plan import Draw, Plan
from schemas.spec.domain import Domain
from steps_engine.methods.checked import Ends
from tasks.verify.prices import owed, price_of, symbol_of
from tasks.verify.promises import delta_problems, promise_problems
from tasks.verify.sensitivities import NotKnown, least_sensitivity
from tasks.verify.waves import wave_problems
from tasks.verify.ways import Figures, TreeDraws, cost, figures_of, measurements_of, ways_of, written_cost
from tasks.verify.weights import weight_problems

# What a plan promises in figures and a manifest repeats.
PROMISED = ("epsilon", "rho", "delta", "delta_why", "order", "neighbours", "rows_per_person", "weight")
DEFINITIONS = {"pure": "pure differential privacy", "zcdp": "zero-concentrated differential privacy"}


def manifest_problems(manifest: Manifest | Manifest1, plan: Plan) -> Iterator[str]:
    """The manifest repeats the plan truly: an outsider may read either."""
    if plan.hash != manifest.plan_hash:
        yield "the plan does not have the hash that the manifest gives"
    if (plan.release, plan.population, plan.spec_hash) != (manifest.release, manifest.population, manifest.spec_hash):
        yield "release, population or spec hash differ from the plan's"
    if manifest.draws != plan.draws:
        yield "the draws differ from the plan's"
    worded = guarantee_1(plan) if isinstance(manifest, Manifest1) else guarantee_of(plan)
    said = manifest.guarantee
    repeated = all(getattr(said, name) == getattr(plan, name) for name in PROMISED)
    if not repeated or said.definition != DEFINITIONS.get(plan.measure) or said != worded:
        yield "the guarantee is not the one that the plan gives"
    figures, given = figures_of(plan), manifest.composition
    figures_given = Figures(given.structure, given.measurements, given.total)
    if (figures_given, given.sets, given.sentence) != (figures, plan.sets, adds_up(plan)):
        yield "the composition is not the one that the plan gives"


def ledger_problems(proof: LedgerProof | LedgerProof1, manifest: Manifest | Manifest1, plan: Plan) -> Iterator[str]:
    """The charge is for this release and this plan, of exactly its cost, within the grant, and lies in the chain."""
    charge = proof.charge
    if (charge.release, charge.population) != (manifest.release, manifest.population):
        yield "the charge was made for another release or population"
    yield from _amount_problems(charge, plan)
    if not charge.amount <= charge.charged_after <= charge.granted_after:
        yield "the charge exceeds what was granted to the population"
    said = {"plan_hash": plan.hash, "spec_hash": plan.spec_hash, "neighbours": plan.neighbours, "unit": plan.unit}
    shown = charge.shown.relation if isinstance(charge, ChargeEntry) else charge.shown
    if shown != said:
        yield "the charge was made for another plan, spec, unit or neighbouring relation"
    if isinstance(charge, ChargeEntry):
        yield from wave_problems(charge)
    if proof.leads_to != (proof.head_seq, proof.head):
        yield "the charge does not lead to the head of the ledger that the manifest gives"


def _amount_problems(charge: ChargeEntry | ChargeEntry1, plan: Plan) -> Iterator[str]:
    """What was charged is the plan's cost on an account of that measure; format 1 has accounts of ε only."""
    measure = (charge.measure if isinstance(charge, ChargeEntry) else None) or "pure"
    cost, paid = owed(plan, measure), f"{symbol_of(measure)}={show_nanos(charge.amount)} was charged"
    promised = f"the release promises {symbol_of(plan.measure)}={plan.cost}"
    if cost is None:
        yield f"{paid}; {promised}, which no ε without δ can pay for"
    elif charge.amount != cost:
        price = "" if measure == plan.measure else f", which costs {symbol_of(measure)}={show_nanos(cost)}"
        yield f"{paid}; {promised}{price}"


def domain_problems(plan: Plan, domain: Domain) -> Iterator[str]:
    unit = domain.unit
    if (plan.population, plan.rows_per_person, plan.unit) != (domain.population, unit.rows_per_person, unit.who):
        yield "population, unit or rows per person differ between plan and domain"
    at_most = domain.tables.person.at_most if domain.tables is not None else None
    if plan.at_most != at_most:
        yield "persons in a household differ between plan and domain"
    # Where one with fewer rows may take the place of one with more, neighbours differ in the number that is told for free.
    if plan.total == "public" and plan.rows_per_person > 1 and not unit.exactly:
        yield (
            f"one {plan.unit} has up to {plan.rows_per_person} rows, and the domain does not say exactly as many; "
            "a public number of rows needs everybody's rows to be equally many"
        )
    yield from weight_problems(plan, domain)
    yield from delta_problems(plan, domain)


def plan_problems(plan: Plan, published: Ends | None) -> Iterator[str]:
    """Every draw is noisy enough for its share, and the shares on every way through the trees sum to ε (or ρ) exactly.

    `published` are the layers at which branches end in the published structure; None where that could not be read.
    """
    if plan.rows_per_person < 1:
        yield f"a person has at least one row; the plan says {plan.rows_per_person}"
    if not plan.layers or [layer.layer for layer in plan.layers] != list(range(1, len(plan.layers) + 1)):
        yield "the plan's layers are not numbered 1, 2, 3, …"
    for draw in plan.draws:
        yield from _noise_problems(draw, plan)
    places = [(draw.tree, draw.kind, draw.layer, draw.set, draw.nodes) for draw in plan.draws]
    if len(set(places)) < len(places):
        yield "a draw is listed twice"
    ways = ways_of(plan)
    if published is not None and published.keys() != ways.names:
        yield "there are draws for trees that are not there, or trees without draws"
    if any(draw.set is not None for draw in ways.common):
        yield "a draw that belongs to no tree serves one set only"
    if any(draw.threshold is not None for draw in ways.common):
        yield "a draw that is not of the cells has a threshold"
    for tree in ways.trees:
        yield from _table_problems(tree)
        yield from _threshold_problems(tree)
        yield from _tree_problems(tree, tree.ends | (published or {}).get(tree.tree, frozenset()), plan)
    yield from promise_problems(plan)
    if (total := figures_of(plan).total) != written_cost(plan):
        yield f"the shares on the deepest way sum to {total}, not to {symbol_of(plan.measure)}={plan.cost}"


def _noise_problems(draw: Draw, plan: Plan) -> Iterator[str]:
    """A draw costs no more than its share, at a sensitivity no smaller than the verifier's own."""
    if draw.layer < 0 or (draw.kind == "election" and draw.set is not None) or _elected_otherwise(draw, plan):
        yield f"draw {draw.name!r} is no election or count of this plan"
    try:
        yield from _share_problems(draw, plan)
        least = least_sensitivity(draw, plan)
    except NotKnown as error:
        yield f"draw {draw.name!r}: {error}"
    else:
        if draw.sensitivity < least:
            yield f"draw {draw.name!r} has sensitivity {draw.sensitivity}; one {plan.unit} can change it by {least}"


def _share_problems(draw: Draw, plan: Plan) -> Iterator[str]:
    """The share is one of the plan's measure, and pays for the draw as it is."""
    symbol = symbol_of(plan.measure)
    share, other = (draw.rho, draw.epsilon) if plan.measure == "zcdp" else (draw.epsilon, draw.rho)
    if share is None or other is not None:
        yield f"draw {draw.name!r} is not paid in {symbol}, as its plan is"
    elif share <= 0:
        yield f"draw {draw.name!r} has no share of {symbol}"
    elif draw.scale <= 0 or price_of(draw, plan.measure) > share:
        yield f"draw {draw.name!r} {_too_little(draw, share, plan.measure)}"


def _too_little(draw: Draw, share: Fraction, measure: str) -> str:
    """What was promised of a draw's noise, and what is found."""
    if measure == "pure":
        return f"has scale {draw.scale}, below sensitivity/ε = {draw.sensitivity / share}"
    if draw.scale <= 0:
        return f"has scale {draw.scale}: that is no noise"
    found, paid = _decimal(price_of(draw, measure), ROUND_UP), _decimal(share, ROUND_DOWN)
    return f"has a share of ρ={paid}; by {draw.mechanism} at its scale it costs ρ={found}"


def _decimal(figure: Fraction, rounding: str) -> str:
    """About as many digits as a reader compares."""
    return str(Context(prec=9, rounding=rounding).divide(Decimal(figure.numerator), Decimal(figure.denominator)).normalize())


def _elected_otherwise(draw: Draw, plan: Plan) -> bool:
    return draw.kind == "election" and plan.election is not None and draw.mechanism != plan.election.mechanism


def _table_problems(tree: TreeDraws) -> Iterator[str]:
    """Everybody's rows are in every table whose interaction is measured: layers of one tree, of which each person pays for the
    ways to one end alone, cannot hold two of them.
    """
    tables = {(draw.of, draw.rows_of, draw.layer) for draw in tree.draws}
    if len(tables) > 1 and any(of is not None for of, _, _ in tables):
        yield f"the tree of {tree.tree} holds several tables, and everybody is in each of them: each needs a tree of its own"


def _threshold_problems(tree: TreeDraws) -> Iterator[str]:
    """Only cells of the last layer may be too many to list, and then they are in every measurement."""
    thresholds = [draw.threshold for draw in tree.cells()]
    if any(threshold is not None for threshold in thresholds) and any((threshold or 0) < 1 for threshold in thresholds):
        yield "the cells have a threshold in some measurements only, or one below 1"
    if sum(draw.threshold is not None for draw in tree.draws) > sum(threshold is not None for threshold in thresholds):
        yield "a draw that is not of the cells has a threshold"


def _tree_problems(tree: TreeDraws, ends: frozenset[int], plan: Plan) -> Iterator[str]:
    """Every measurement counts every way to its end, and every way costs what the deepest costs."""
    where, measurements = "" if tree.tree is None else f" of the tree of {tree.tree}", measurements_of(plan)
    for draw in tree.unmet():
        yield f"draw {draw.name!r} lies below every leaf{where}: nobody would pay for it"
    if any(draw.set not in measurements for draw in tree.counts):
        yield f"a count{where} serves none of the plan's measurements"
    most = cost(tree.way(tree.deepest))
    for end in sorted(ends):
        if not all(tree.counted(end, measurement) for measurement in measurements):
            yield f"a leaf in layer {end}{where} lies below counts that no draw accounts for"
        # A branch that ends above an election takes no part in it: its share is spent on the leaf, or stays unspent.
        paid = cost(tree.way(end))
        if most not in (paid, paid + cost(tree.unheld(end))):
            yield f"the shares on the way to a leaf in layer {end}{where} sum to {paid}, on the deepest way to {most}"
