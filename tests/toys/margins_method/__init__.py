"""A toy method in one folder: one-way margins, attributes taken for independent. It shows all that a new method has to bring."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import Field

from schemas.plan import LayerPlan, Plan
from schemas.spec.domain import Domain
from schemas.spec.method import MethodSpec
from schemas.spec.release import Release
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.accounting.plans import Allowance, Outline
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import Counts
from steps_engine.domain.encoding import decode
from steps_engine.domain.records import codes_of
from steps_engine.methods.checked import Checked, Findings
from steps_engine.methods.protocol import Candidate, Tables
from steps_engine.methods.views import Dependent, Margin, Sketch, SketchRow, Total, View
from steps_engine.noise import Randomness, uniform


class MarginsSpec(MethodSpec):
    """Options of its own: a factor by which the first attribute gets more of the budget."""

    decomposition: Literal["margins"] = "margins"
    first: int = Field(default=1, ge=1, le=10)


STRUCTURE = pa.schema([pa.field("attribute", pa.string(), nullable=False)])
CELL = [pa.field("attribute", pa.int16(), nullable=False), pa.field("category", pa.int32(), nullable=False)]
ESTIMATES = pa.schema([*CELL, ("estimate", pa.float64()), ("standard_error", pa.float64())])


def noisy_schema(plan: Plan) -> pa.Schema:
    return pa.schema([*CELL, *(pa.field(f"noisy_{i}", pa.int64()) for i in range(1, plan.measurements + 1))])


def cells(domain: Domain) -> dict[str, np.ndarray]:
    attribute = np.repeat(np.arange(len(domain.sizes), dtype=np.int16), domain.sizes)
    return {"attribute": attribute, "category": np.concatenate([np.arange(size, dtype=np.int32) for size in domain.sizes])}


@dataclass(frozen=True)
class MarginsMethod:
    name: str = "margins"
    spec: type[MethodSpec] = MarginsSpec

    def outline(self, release: Release, allowance: Allowance, randomness: Randomness | None) -> Outline:
        assert isinstance(release.spec.method, MarginsSpec)
        domain, weights = release.domain, [release.spec.method.first, *[1] * (len(release.domain.names) - 1)]
        shares = [Fraction(weight, sum(weights)) for weight in weights]
        draws, layers = [], []
        for number, (name, share) in enumerate(zip(domain.names, shares, strict=True), start=1):
            each = share * allowance.total / len(allowance.served)
            draws += [
                allowance.count(f"{name}, {set_ or 'all'}", each, layer=1, set_=set_, tree=name) for set_ in allowance.served
            ]
            error = float(f"{noise_of(draws[-1]).variance ** 0.5:.6g}")
            layers.append(
                LayerPlan(
                    layer=number,
                    attributes=(name,),
                    nodes=domain.sizes[number - 1],
                    nodes_are="exact",
                    share=share,
                    expected_error=error,
                )  # fmt: skip
            )
        return Outline(tuple(layers), tuple(draws), memory_bytes=2**26, seconds=1.0)

    def candidate(self, release: Release) -> Candidate | None:
        return None

    def build(self, domain: Domain, plan: Plan, counts: Counts | None, randomness: Randomness) -> pa.Table:
        return pa.table({"attribute": list(domain.names)}, schema=STRUCTURE)

    def sanitize(self, domain: Domain, plan: Plan, counts: Counts, structure: pa.Table, randomness: Randomness) -> pa.Table:
        exact = [
            np.bincount(codes, weights=counts.count, minlength=size).astype(np.int64)
            for codes, size in zip(counts.codes.T, domain.sizes, strict=True)
        ]
        columns = cells(domain)
        for number, set_ in enumerate(plan.served, start=1):
            draws = {draw.tree: noise_of(draw) for draw in plan.draws if draw.set == set_}
            noisy = [e + draws[name].draw(len(e), randomness) for name, e in zip(domain.names, exact, strict=True)]
            columns[f"noisy_{number}"] = np.concatenate(noisy)
        return pa.table(columns, schema=noisy_schema(plan))

    def correct(self, domain: Domain, plan: Plan, structure: pa.Table, noisy: pa.Table, randomness: Randomness) -> pa.Table:
        drawn = np.stack([noisy[name].to_numpy() for name in noisy.column_names[2:]])
        variance = {draw.tree: noise_of(draw).variance for draw in plan.draws}
        error = np.repeat([(variance[name] / len(drawn)) ** 0.5 for name in domain.names], domain.sizes)
        return pa.table(cells(domain) | {"estimate": drawn.mean(axis=0), "standard_error": error}, schema=ESTIMATES)

    def synthesize(self, domain: Domain, plan: Plan, tables: Tables, which_set: int, randomness: Randomness) -> pa.Table:
        measurement = which_set if plan.budget == "split" else 1
        noisy = np.maximum(tables["noisy-counts"][f"noisy_{measurement}"].to_numpy(), 0)
        margins = np.split(noisy, np.cumsum(domain.sizes)[:-1])
        rows = round(float(np.median([margin.sum() for margin in margins])))
        codes, wrong = np.zeros((rows, len(margins)), dtype=np.int64), np.arange(rows)
        while len(wrong):  # rows that break a rule are drawn again
            for j, margin in enumerate(margins):
                ends = np.cumsum(np.maximum(margin, 1e-9)) / np.maximum(margin, 1e-9).sum()
                place = np.searchsorted(ends, uniform(len(wrong), randomness), side="right")
                codes[wrong, j] = np.minimum(place, len(margin) - 1)
            wrong = wrong[breaking(domain, codes[wrong])]
        return decode(codes, domain, randomness)

    def schemas(self, plan: Plan) -> dict[str, pa.Schema]:
        return {"tree": STRUCTURE, "noisy-counts": noisy_schema(plan), "consistent-counts": ESTIMATES}

    def check(self, domain: Domain, plan: Plan, tables: Tables) -> Checked:
        found = Findings()
        for stage in ("noisy-counts", "consistent-counts"):
            if stage in tables and not all(np.array_equal(tables[stage][name], each) for name, each in cells(domain).items()):
                found.add(stage, "does not have exactly the categories of the domain")
        if "tree" not in tables or tables["tree"]["attribute"].to_pylist() != list(domain.names):
            found.add("tree", "does not have exactly the attributes of the domain")
            return Checked(tuple(found.found))
        return Checked(tuple(found.found), ends={name: frozenset({1}) for name in domain.names})

    def view(self, domain: Domain, plan: Plan, tables: Tables) -> View:
        sets = [codes_of(tables[f"synthetic-{i}"], domain) for i in range(1, plan.sets + 1)]
        frame = tables["consistent-counts"].to_pandas()
        margins = []
        for j, attribute in enumerate(domain.attributes):
            mine = frame[frame["attribute"] == j]
            synthetic = np.mean([np.bincount(codes[:, j], minlength=attribute.size) for codes in sets], axis=0)
            estimate, error = mine["estimate"].to_numpy(), mine["standard_error"].to_numpy()
            margins.append(Margin(attribute.name, attribute.labels, estimate, error, synthetic))
        total = Total(float(margins[0].estimate.sum()), float(np.sqrt((margins[0].error ** 2).sum())), tuple(map(len, sets)))
        network = tuple(Dependent(a.name, (), 1, a.size) for a in domain.attributes)
        text = "Every attribute was counted by itself."
        return View(
            total, tuple(margins), "Counts", "The margins", text, "No arc: nothing depends on anything.", network=network
        )

    def sketch(self, plan: Plan) -> Sketch:
        scales = {draw.tree: float(draw.scale) for draw in plan.draws}
        rows = tuple(
            SketchRow(each.layer, name, str(each.nodes), f"{float(each.share):.2%}", scales[name], each.expected_error)
            for each in plan.layers
            for name in each.attributes or ()
        )
        return Sketch("margin", "of", rows, "shares", {draw.name: f"margin of {draw.tree}" for draw in plan.draws})

    def counts(self, domain: Domain, plan: Plan, tables: Tables, layer: int) -> pd.DataFrame:
        mine = tables["consistent-counts"].to_pandas().query("attribute == @layer - 1")
        attribute = domain.attributes[layer - 1]
        return mine.assign(**{attribute.name: list(attribute.labels)})[[attribute.name, "estimate", "standard_error"]]


def breaking(domain: Domain, codes: np.ndarray) -> np.ndarray:
    """Whether each row breaks a rule."""
    allowed = [part.allowed[tuple(codes[:, j] for j in part.attributes)] for part in Space(domain).components]
    return ~np.logical_and.reduce([np.ones(len(codes), dtype=bool), *allowed])


MARGINS = MarginsMethod()
