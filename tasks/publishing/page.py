"""The page of a release: one HTML file that opens from a folder, without network, and says only what is public."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import ROUND_UP
from fractions import Fraction
from typing import Any

import jinja2
import numpy as np

from schemas.budget import show_nanos
from schemas.manifest import Manifest
from schemas.plan import Draw, Plan
from schemas.spec.domain import Domain
from steps_engine.accounting.measures import MEASURES, PURE
from steps_engine.methods.registry import method_of
from steps_engine.methods.views import Margin, Pair, View
from tasks.publishing import bundle, pictures
from tasks.publishing.analyses import analysis_views
from tasks.publishing.privacy_loss import loss_view, paid_in_rho, power, powers, short
from tasks.publishing.said import about, derived_rows, rule_rows, value_words
from tasks.publishing.templates import template
from tasks.publishing.verdict import TRUST, trusts, verdict

MOST_PAIRS = 12  # that are listed below the matrix

WHAT = {
    "tree": "the nodes of the tree: which attributes split which node",
    "noisy-counts": "every node's count as it was drawn, one column per set",
    "consistent-counts": "least-squares counts with standard errors, and the whole numbers behind each set",
    "synthetic": "synthetic records",
    "domain": "attributes, categories, bounds and rules",
    "plan": "what was decided before the records were read",
    "margins": "counts of every category with 95 % intervals, as on this page",
    "pairs": "every pair of attributes: measured, how strong against the noise, or taken as independent",
    "codebook": "what every code in the tables stands for",
    "sbom.cdx": "the program that computed this, and every package and version beneath it (CycloneDX)",
    "signing-key": "the key that signed the manifest",
}


def view_of(plan: Plan, domain: Domain, tables: dict[str, bytes]) -> View:
    """What is shown of a release, from its public tables."""
    return method_of(plan).view(domain, plan, {stage: bundle.read_table(content) for stage, content in tables.items()})


def make_page(manifest: Manifest, plan: Plan, domain: Domain, view: View) -> bytes:
    """index.html from the manifest (as far as it is known), the plan, the domain and what is shown of the public tables."""
    page = _template().render(
        manifest=manifest,
        plan=plan,
        domain=domain,
        view=view,
        total=view.total,
        verdict=verdict(view, sum(size > 1 for size in domain.sizes)),
        heading=manifest.title or domain.title or manifest.release,
        about=about(manifest, domain),
        margins=list(_margin_views(view.margins, domain, view.total.estimate)),
        rules=rule_rows(domain),
        derived=derived_rows(domain),
        matrix=pictures.matrix_picture(view.pairs),
        strongest=_strongest(view.pairs),
        tree=pictures.tree_picture(view.tree, view.standard_errors) if view.tree else None,
        network=pictures.network_picture(view.network) if view.network else None,
        budget=_budget(manifest),
        loss=loss_view(plan),
        analyses=list(analysis_views(manifest, plan)),
        draws=list(_draw_rows(plan, method_of(plan).sketch(plan).draws)),
        files=list(_file_rows(manifest)),
    )
    return page.encode()


def _template() -> jinja2.Template:
    return template(
        "release.html", count=_count, up=_up, size=_size, short=_rounded_up, decimal=with_decimal, power=power, powers=powers
    )


def _margin_views(found: Sequence[Margin], domain: Domain, rows: float) -> Iterator[dict[str, Any]]:
    """The best measured attribute first, each with how many of its categories can be trusted how far."""
    rows = max(rows, 1.0)
    noise = [float(margin.half.max()) * len(margin.labels) / rows for margin in found]
    for place in np.argsort(noise, kind="stable"):
        words = Counter(trusts(found[place]))
        badges = [{"word": word, "number": words[word]} for word in TRUST if words[word]]
        attribute = domain.attributes[domain.index(found[place].attribute)]
        picture = pictures.margin_picture(found[place], attribute.shown_labels)
        yield {"attribute": attribute, "badges": badges, "picture": picture, "values": value_words(attribute)}


def _strongest(pairs: Sequence[Pair]) -> list[dict[str, str]]:
    """The pairs that stand out most, each with how many times larger it is than noise alone would be."""
    clear = sorted((pair for pair in pairs if pair.clear), key=lambda pair: -(pair.strength or 0.0))[:MOST_PAIRS]
    return [{"first": pair.first, "second": pair.second, "strength": f"{pair.strength:,.1f}"} for pair in clear]


def _budget(manifest: Manifest) -> dict[str, Any]:
    """What the population's account said when this release was charged, in ε or, where the charge says so, in ρ."""
    charge = manifest.ledger.charge
    before = charge.charged_after - charge.amount
    parts = {"before": before, "this": charge.amount, "left": charge.granted_after - charge.charged_after}
    shown = {
        name: {"amount": show_nanos(nanos), "percent": 100 * nanos / charge.granted_after} for name, nanos in parts.items()
    }
    symbol = MEASURES[charge.measure or PURE.name].symbol
    return {"symbol": symbol, "granted": show_nanos(charge.granted_after), "parts": shown}


def _draw_rows(plan: Plan, said: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Draws that differ in nothing but the set they serve, as one row."""
    groups: dict[tuple[tuple[str, Any], ...], list[Draw]] = {}
    for draw in plan.draws:
        groups.setdefault(tuple(draw.model_dump(exclude={"set", "name"}).items()), []).append(draw)
    for draws in groups.values():
        draw = draws[0]
        yield {
            "what": said[draw.name],
            "sets": "all" if draw.set is None else _runs([draw.set for draw in draws if draw.set is not None]),
            "mechanism": draw.mechanism.replace("_", "-"),
            **(paid_in_rho(draw) if draw.rho else _paid_in_epsilon(draw)),
        }


def _paid_in_epsilon(draw: Draw) -> dict[str, str]:
    shown = {"sensitivity": draw.sensitivity, "cost": draw.cost, "scale": draw.scale}
    return {name: with_decimal(value) for name, value in shown.items()}


def with_decimal(value: Fraction | str) -> str:
    """A fraction, and beside it what it is about.

    >>> with_decimal(Fraction(3, 50)), with_decimal(Fraction(2, 3)), with_decimal(Fraction(4)), with_decimal("1/2")
    ('3/50 = 0.06', '2/3 ≈ 0.6667', '4', '1/2 = 0.5')
    """
    value = Fraction(value)
    if value.denominator == 1:
        return str(value)
    about = f"{float(value):.4g}"
    return f"{value} {'=' if Fraction(about) == value else '≈'} {about}"


def _runs(sets: list[int]) -> str:
    """
    >>> _runs([1, 2, 3]), _runs([2]), _runs([1, 3])
    ('1–3', '2', '1, 3')
    """
    if len(sets) > 1 and sets == list(range(sets[0], sets[-1] + 1)):
        return f"{sets[0]}–{sets[-1]}"
    return ", ".join(str(set_) for set_ in sets)


def _file_rows(manifest: Manifest) -> Iterator[dict[str, Any]]:
    for name, facts in sorted(manifest.files.items(), key=lambda item: _file_order(item[0])):
        stem = name.rsplit(".", 1)[0]
        kind = "synthetic" if stem.startswith("synthetic-") else stem
        yield {"name": name, "what": WHAT[kind], "size": facts.size, "sha256": facts.sha256}


def _file_order(name: str) -> tuple[bool, int, str]:
    """Synthetic sets first, in their order."""
    number = name.removeprefix("synthetic-").split(".")[0]
    return (not name.startswith("synthetic-"), int(number) if number.isdigit() else 0, name)


def _rounded_up(cost: Fraction) -> str:
    return short(cost, ROUND_UP)


def _count(value: float) -> str:
    """
    >>> _count(1290240), _count(-0.3)
    ('1,290,240', '0')
    """
    return f"{round(value):,}".replace("-", "−")


def _up(value: float) -> str:
    """Half an interval, never less than it is.

    >>> _up(53.2), _up(54.0)
    ('54', '54')
    """
    return f"{math.ceil(value - 1e-9):,}"


def _size(size: int) -> str:
    """
    >>> _size(900), _size(1_234_567)
    ('900 B', '1.2 MB')
    """
    if size < 1000:
        return f"{size} B"
    return f"{size / 1000:.1f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"
