"""How a flat table and a tree would do under `auto`, predicted from public inputs.

flat  Positive noise amounts to r = ½·cells·E|noise|/rows. Cut at 0 and scaled, its odds against the records would be r : 1;
      projection takes from small counts first and leaves a quarter. By chance half of these rows suit a small margin.
tree  The same for each layer, with its error after least squares. But a family never misplaces more rows than it holds,
      and in a sparse table most hold few: the noise of the leaves counts as r/∛(1 + 20·cells/rows).
"""

from __future__ import annotations

import math

from schemas.spec.domain import Domain
from schemas.spec.release import Release
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.accounting.plans import allowance_of
from steps_engine.domain.cells import Space
from steps_engine.methods.protocol import Candidate
from steps_engine.methods.tree.plan import MOST_BYTES, bytes_of, outline
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
    if rows is None or bytes_of(release.domain.all_cells, spec.sets.count) > MOST_BYTES:
        return Candidate(spec, 1.0, "expected_rows is not known" if rows is None else f"{cells:,} cells do not fit")
    asked = release.asking(spec)
    made = outline(asked, allowance_of(asked), None)
    *above, leaves = made.layers
    last = next(d for d in made.draws if (d.kind, d.layer, d.nodes) == ("count", leaves.layer, "leaves"))
    noise = cells * noise_of(last).mean_size
    if above:
        noise /= math.cbrt(1 + 20 * cells / rows)
        noise += sum(layer.nodes * layer.expected_error * math.sqrt(2 / math.pi) for layer in above)
    odds = noise / (2 * rows) / 4
    why = f"noise on {cells:,} cells" + (f" below {above[-1].nodes:,} nodes" if above else "")
    return Candidate(spec, float(f"{odds / (1 + odds) / 2:.3g}"), why)


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
