"""How a flat table and a tree would do under `auto`, predicted from public inputs: as they do on a table that is made up."""

from __future__ import annotations

from schemas.counted import many
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.accounting.plans import Outline, allowance_of
from steps_engine.domain.cells import Space
from steps_engine.methods.protocol import Candidate, of_small_margins
from steps_engine.methods.tree.made_up import Layers, distances
from steps_engine.methods.tree.plan import MOST_BYTES, are_likely, bytes_of, outline
from steps_engine.methods.tree.spec import Division, FlatSpec, LayeredSpec, TreeSpec, least_error


def flat_candidate(release: Release) -> Candidate:
    return _predicted(release, FlatSpec(sets=release.spec.method.sets))


def tree_candidate(release: Release) -> Candidate | None:
    """The tree is ours unless an order is given: one layer above the cells, shares by the rule of least error."""
    asked = release.spec.method
    order = asked.named_groups() or top_layer(release.domain)
    shares: Division | None = getattr(asked, "shares", None)
    measure = release.spec.privacy.measure
    return _predicted(release, TreeSpec(order=order, shares=shares or least_error(measure), sets=asked.sets)) if order else None


def _predicted(release: Release, spec: LayeredSpec) -> Candidate:
    """One table of all cells, as a tree of one layer or more."""
    rows, cells = release.domain.expected_units, Space(release.domain).count()
    likely = are_likely(1 if isinstance(spec, FlatSpec) else 2, spec.sets.budget)
    if rows is None or bytes_of(release.domain.all_cells, spec.sets.count, likely) > MOST_BYTES:
        return Candidate(spec, 1.0, "expected_rows is not known" if rows is None else f"{many(cells)} cells do not fit")
    asked = release.asking(spec)
    made = outline(asked, allowance_of(asked), None)
    layers = _layers(release.domain, made, are_likely(len(made.layers), spec.sets.budget))
    error = distances(layers, rows / cells, release.spec.privacy.total != "estimated")
    *above, _ = layers.nodes()
    why = f"noise on {cells:,} cells" + (f" below {above[-1]:,} nodes" if above else "")
    return Candidate(spec, of_small_margins(*error), why)


def _layers(domain: Domain, made: Outline, likely: bool) -> Layers:
    """What a plan measures, as far as a made-up table without rules has it."""
    sizes = dict(zip(domain.names, domain.sizes, strict=True))
    kinds = {(draw.layer, draw.nodes): noise_of(draw) for draw in reversed(made.draws) if draw.kind == "count"}
    noises = (kinds.get((layer.layer, "inner")) or kinds[layer.layer, "leaves"] for layer in made.layers)
    of_layers = tuple(tuple(sizes[name] for name in layer.attributes or ()) for layer in made.layers)
    return Layers(of_layers, tuple(noises), likely)


def top_layer(domain: Domain) -> tuple[tuple[str, ...], ...]:
    """The attributes with the fewest categories, together up to √cells nodes; none where that leaves nothing above or below.

    A family is then about as large as the number of families: small enough to be told empty, few enough to be told apart.
    """
    names, nodes = [], 1
    for size, name in sorted(zip(domain.sizes, domain.names, strict=True), key=lambda each: each[0]):
        nodes *= size
        if size > 1 and nodes**2 > domain.all_cells:
            break
        names += [name] if size > 1 else []
    return (tuple(names),) if names and domain.all_cells > 1 else ()
