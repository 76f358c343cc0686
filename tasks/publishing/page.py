"""The page of a release: one HTML file that opens from a folder, without network, and says only what is public."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_UP
from fractions import Fraction
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from schemas.budget import show_nanos
from schemas.manifest import Manifest
from schemas.plan import Draw, Plan
from schemas.spec.domain import Domain
from steps_engine.accounting.measures import MEASURES, PURE
from steps_engine.analyses.honesty import inflated_by
from steps_engine.methods.registry import method_of
from steps_engine.methods.views import LevelView, Margin, Pair, View
from tasks.publishing import bundle, pictures
from tasks.publishing.analyses import analysis_views
from tasks.publishing.description import in_order
from tasks.publishing.descriptions import what_it_holds
from tasks.publishing.privacy_loss import loss_view, paid_in_rho, power, powers, short
from tasks.publishing.said import about, derived_rows, rule_rows, value_words
from tasks.publishing.templates import template
from tasks.publishing.verdict import TRUST, trust, trusts, verdict
from tasks.publishing.waves import waves_view
from tasks.tables_on_disk import Stored

MOST_SHOWN = 500  # places in a picture
MOST_PAIRS = 12  # that are listed below the matrix
LONGEST = 12  # signs of a fraction that people read


def view_of(plan: Plan, domain: Domain, tables: Mapping[str, bundle.Content]) -> View:
    """What is shown of a release, from its public tables; sets that lie in files are read in blocks."""
    method = method_of(plan)
    own = method.schemas(plan)
    return method.view(domain, plan, {stage: _opened(content, stage not in own) for stage, content in tables.items()})


def _opened(content: bundle.Content, grows: bool) -> Any:
    """What grows with the rows stays in its file."""
    return Stored(content) if grows and isinstance(content, Path) else bundle.read_table(content)


def make_page(manifest: Manifest, plan: Plan, domain: Domain, view: View) -> bytes:
    """index.html from the manifest (as far as it is known), the plan, the domain and what is shown of the public tables."""
    draws = list(_draw_rows(plan, method_of(plan).sketch(plan).draws))
    page = _template().render(
        manifest=manifest,
        plan=plan,
        domain=domain,
        view=view,
        total=view.total,
        verdict=verdict(view, sum(size > 1 for size in domain.counted.sizes)),
        heading=manifest.title or domain.title or manifest.release,
        about=about(manifest, domain),
        margins=list(_margin_views(view.margins, domain, view.total.estimate)),
        rules=rule_rows(domain),
        derived=[row for row in derived_rows(domain) if row["derived"].name not in {each.level for each in view.levels}],
        matrix=pictures.matrix_picture(view.pairs),
        strongest=_strongest(view.pairs),
        levels=list(map(level_row, view.levels)),
        tree=pictures.tree_picture(view.tree, view.standard_errors) if view.tree else None,
        network=pictures.network_picture(view.network) if view.network else None,
        budget=_budget(manifest),
        waves=waves_view(manifest, plan),
        loss=loss_view(plan),
        analyses=list(analysis_views(manifest, plan)),
        inflated_by=inflated_by(plan),
        draws=draws,
        rounded=any(draw[name][0] in "≈=" for draw in draws for name in ("cost", "scale")),
        files=list(_file_rows(manifest)),
    )
    return page.encode()


def _template() -> jinja2.Template:
    return template("release.html", size=_size, short=_rounded_up, decimal=with_decimal, power=power, powers=powers)


def _margin_views(found: Sequence[Margin], domain: Domain, rows: float) -> Iterator[dict[str, Any]]:
    """The best measured attribute first, each with how many of its categories can be trusted how far."""
    rows = max(rows, 1.0)
    found = [each for each in found if len(each.labels) <= MOST_SHOWN or not domain.geographies or not _is_place(each, domain)]
    noise = [float(margin.half.max()) * len(margin.labels) / rows for margin in found]
    for place in np.argsort(noise, kind="stable"):
        words = Counter(trusts(found[place]))
        badges = [{"word": word, "number": words[word]} for word in TRUST if words[word]]
        attribute = domain.counted.attributes[domain.counted.index(found[place].attribute)]
        picture = pictures.margin_picture(found[place], attribute.shown_labels)
        yield {"attribute": attribute, "badges": badges, "picture": picture, "shape": value_words(attribute)}


def _is_place(margin: Margin, domain: Domain) -> bool:
    """Finest places by the thousand are no picture: their levels are shown, and a listing has all of them."""
    return domain.index(margin.attribute) in domain.geographies


def level_row(level: LevelView) -> dict[str, Any]:
    """A level in one line: how many places, how many rows in the middle one, what intervals reach, and whom to trust."""
    words = Counter(trust(float(count), float(half)) for count, half in zip(level.estimate, level.half, strict=True))
    badges = [{"word": word, "number": words[word]} for word in TRUST if words[word]]
    middle, reach = float(np.median(level.estimate)), float(np.median(level.half))
    return {
        "name": level.level, "places": len(level.labels), "rows": middle, "half": reach, "widest": float(level.half.max()),
        "badges": badges, "counted": level.counted,
    }  # fmt: skip


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
    """A fraction that can be read, and beside it what it is about; of a longer one that alone.

    >>> with_decimal(Fraction(3, 50)), with_decimal(Fraction(2, 3)), with_decimal(Fraction(4)), with_decimal("1/2")
    ('3/50 = 0.06', '2/3 ≈ 0.6667', '4', '1/2 = 0.5')
    >>> with_decimal(Fraction(2982546752273, 649596728970000))
    '≈ 0.004591'
    """
    value = Fraction(value)
    if value.denominator == 1:
        return str(value)
    about = f"{float(value):.4g}"
    sign = "=" if Fraction(about) == value else "≈"
    return f"{value} {sign} {about}" if len(str(value)) <= LONGEST else f"{sign} {about}"


def _runs(sets: list[int]) -> str:
    """
    >>> _runs([1, 2, 3]), _runs([2]), _runs([1, 3])
    ('1–3', '2', '1, 3')
    """
    if len(sets) > 1 and sets == list(range(sets[0], sets[-1] + 1)):
        return f"{sets[0]}–{sets[-1]}"
    return ", ".join(str(set_) for set_ in sets)


def _file_rows(manifest: Manifest) -> Iterator[dict[str, Any]]:
    for name in in_order(manifest.files):
        facts = manifest.files[name]
        yield {"name": name, "what": what_it_holds(name), "size": facts.size, "sha256": facts.sha256}


def _rounded_up(cost: Fraction) -> str:
    return short(cost, ROUND_UP)


def _size(size: int) -> str:
    """
    >>> _size(900), _size(1_234_567)
    ('900 B', '1.2 MB')
    """
    if size < 1000:
        return f"{size} B"
    return f"{size / 1000:.1f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"
