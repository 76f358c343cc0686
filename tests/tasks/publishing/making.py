"""Whole bundles for the tests, made by the real engine, ledger and store; and a way to tamper with one and sign it again."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from schemas import tables
from schemas.budget import parse_nanos
from schemas.identity import chain_hash, digest
from schemas.manifest import Guarantee, LedgerProof, format_of, guarantee_of
from schemas.plan import Draw, Plan, read_plan
from schemas.results import AnalysisResult
from schemas.spec.domain import Domain
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.accounting.composition import composition_of
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_of
from steps_engine.methods.run_in_memory import run_plan
from steps_engine.noise import SeededRandomness
from tasks.publishing import bundle
from tasks.publishing.publication import charge_proof
from tasks.publishing.statement import STATEMENT, envelope_of, statement_of
from tasks.stores.artifacts import Reference, Store
from tasks.stores.charging import ChargeRequest
from tasks.stores.home import Home
from tasks.stores.keys import signing_key
from tasks.stores.ledger import Ledger, open_ledger

POLL = Domain.model_validate(
    {
        "name": "poll",
        "population": "town",
        "expected_rows": 4000,
        "attributes": (
            {"name": "voted", "kind": "categorical", "categories": ("no", "yes")},
            {"name": "registered", "kind": "categorical", "categories": ("no", "yes, by <post>")},
            {"name": "age", "kind": "integer", "bounds": (18, 47), "bins": 3, "missing": "category"},
            {"name": "wage", "kind": "numeric", "bounds": (0, Decimal("10.5")), "bins": 2},
            {"name": "since", "kind": "date", "bounds": ("2000-01-01", "2000-12-31"), "bins": 2},
        ),
        "rules": ({"never": {"voted": "yes", "registered": "no"}},),
    }
)
# The same with words for people, some of which a program might stumble over.
WORDED = Domain.model_validate(
    {
        "name": "poll",
        "population": "town",
        "expected_rows": 4000,
        "title": "Who votes, & why",
        "description": "A poll on <turnout> in the town: who voted.",
        "publisher": "Statistics of the Town",
        "registry": {"curator_type": "Government", "region": "Atlantis"},
        "contact": "statistics@town.example",
        "licence": "CC-BY-4.0",
        "source": "The poll's questionnaire of 2026",
        "attributes": (
            {
                "name": "voted",
                "kind": "categorical",
                "categories": ("no", "yes"),
                "title": "Voted",
                "description": 'Question 3: "Did you vote?"',
                "labels": {"no": "did not vote", "yes": "went to the polls"},
                "source": "Question 3",
                "why": "as it was asked",
            },
            {"name": "answer", "kind": "ordinal", "categories": ("=1+2", "on: <post>", "# none"), "missing": "category"},
            {"name": "age", "kind": "integer", "bounds": (18, 47), "bins": 3, "missing": "category", "why": "as in the census"},
            {
                "name": "wage",
                "kind": "numeric",
                "bounds": (0, Decimal("10.5")),
                "bins": 2,
                "above": {"shape": "exponential", "mean": Decimal(20)},
            },
            {"name": "since", "kind": "date", "bounds": ("2000-01-01", "2000-12-31"), "bins": 2},
            {"name": "rose", "kind": "time", "bounds": ("06:00", "09:59"), "bins": 2, "missing": "category"},
        ),
        "derived": ({"name": "turnout", "from": "voted", "by": {"no": "stayed", "yes": "went"}, "title": "Turnout"},),
        "rules": ({"never": {"voted": "yes", "answer": ("# none", None)}, "why": "who voted said how"},),
    }
)
GIVEN = {"decomposition": "tree", "order": ("voted", "age"), "sets": {"count": 2}}
ELECTED = {"decomposition": "tree", "elect": {"layers": 2, "share": Decimal("0.2")}, "sets": {"count": 2}}


@dataclass(frozen=True)
class Made:
    """What `publish` takes."""

    home: Home
    release: Release
    plan: Plan
    references: tuple[Reference, ...]
    proof: LedgerProof
    ledger: Ledger

    @property
    def arguments(self) -> tuple:
        return self.home, self.release, self.plan, self.references, self.proof


def a_release(
    domain: Domain,
    method: dict,
    name: str = "poll-2026",
    epsilon: str = "1",
    formats=("parquet", "csv"),
    analyses: tuple = (),
    **privacy,
) -> Release:
    """Figures of privacy are given as text; with `rho` there is no `epsilon`."""
    spec = {
        "name": name,
        "dataset": "d.yaml",
        "source": "who-voted.csv",
        "method": method,
        "formats": formats,
        "analyses": analyses,
    }
    figures = {name: Decimal(privacy.pop(name)) for name in ("rho", "delta") if name in privacy}
    spec["privacy"] = ({} if "rho" in figures else {"epsilon": Decimal(epsilon)}) | figures | privacy
    return Release(spec=ReleaseSpec.model_validate(spec), domain=domain, folder=".")


def some_counts(domain: Domain, rows: int, seed: int = 1) -> Counts:
    """Random records of allowed cells, concentrated on a few."""
    from steps_engine.domain.cells import Space

    space, rng = Space(domain), np.random.default_rng(seed)
    cells = space.allowed()
    return count_codes(space.codes(rng.choice(cells, rows, p=rng.dirichlet(np.full(len(cells), 0.3)))))


def make(folder: Path, release: Release, counts: Counts, seed: int = 7, account: str | None = None) -> Made:
    """Grant, charge, draw and seal: everything up to publication. `account`: its measure, if not that of the release."""
    home, source = Home(folder), SeededRandomness(seed)
    plan = make_plan(release, source)
    ledger, store = open_ledger(home), Store(home)
    neighbours, cost = plan.neighbours, parse_nanos(plan.cost)
    ledger.grant(plan.population, 4 * cost, "test", neighbours, plan.unit, measure=account or plan.measure)
    asked = {"plan_format": plan.format, "measure": plan.measure}
    hashes = plan.hash, plan.spec_hash, "f" * 64
    ledger.charge(ChargeRequest(plan.release, plan.population, cost, neighbours, plan.unit, *hashes, **asked))
    made, schemas = run_plan(release.domain, plan, counts, source), method_of(plan).schemas(plan)
    linked = tables.linked(release.domain).items()
    schemas |= {f"{kind}-{i}": schema for kind, schema in linked for i in range(1, plan.sets + 1)}
    references = tuple(
        store.write(release.name, stage, table, schemas.get(stage, tables.records(release.domain)), side="public")
        for stage, table in made.tables.items()
    )
    return Made(home, release, plan, references, charge_proof(ledger.entries(), release.name), ledger)


def sign_again(folder: Path, home: Home, change: Callable[[dict[str, Any]], None] | None = None) -> None:
    """Hashes the files as they are now, lets `change` edit the manifest, and signs: what a dishonest publisher could do."""
    manifest = json.loads((folder / bundle.MANIFEST).read_bytes())
    for path in folder.iterdir():
        if path.name not in bundle.UNLISTED and path.is_file():
            manifest["files"][path.name] = bundle.facts_of(path.read_bytes()).model_dump()
    if change is not None:
        change(manifest)
    content = bundle.to_bytes(manifest)
    (folder / bundle.MANIFEST).write_bytes(content)
    (folder / bundle.SIGNATURE).write_bytes(bundle.signature_of(signing_key(home), content))
    with suppress(ValueError, ArithmeticError):  # a manifest that is none has no statement
        (folder / STATEMENT).write_bytes(envelope_of(signing_key(home), statement_of(bundle.read_manifest(content), content)))


def edit_table(path: Path, change: Callable[[dict[str, list]], None]) -> None:
    """Rewrites a Parquet file after `change` edited its columns (as lists)."""
    table = pq.read_table(path)
    columns = table.to_pydict()
    change(columns)
    pq.write_table(pa.table(columns, schema=table.schema), path, compression="zstd")


def edit_json(path: Path, change: Callable[[dict[str, Any]], None]) -> Any:
    value = json.loads(path.read_bytes())
    change(value)
    path.write_bytes(bundle.to_bytes(value))
    return value


def forge_plan(folder: Path, home: Home, change: Callable[[dict[str, Any]], None], **charge: Any) -> None:
    """Another plan, with manifest, charge, chain and signature made to agree with it; `charge`: what it says besides."""
    plan = read_plan(edit_json(folder / bundle.PLAN, change))

    def agree(manifest: dict[str, Any]) -> None:
        manifest["ledger"]["charge"] |= charge
        manifest |= {"plan_hash": plan.hash, "draws": [draw.model_dump(mode="json") for draw in plan.draws]}
        manifest["guarantee"] = guarantee_of(plan).model_dump(mode="json")
        manifest["composition"] = composition_of(plan).model_dump(mode="json")
        manifest["ledger"]["charge"]["shown"]["plan_hash"] = plan.hash
        forge_charge(manifest)

    sign_again(folder, home, agree)


def forge_charge(manifest: dict[str, Any], **charge: Any) -> None:
    """A charge that says this; without a measure if that is None. Chain and format are made to agree with it."""
    entry = manifest["ledger"]["charge"]
    entry |= charge
    if entry.get("measure", "") is None:
        del entry["measure"]
    forge_chain(manifest["ledger"])
    guarantee, proof = Guarantee.model_validate(manifest["guarantee"]), LedgerProof.model_validate(manifest["ledger"])
    draws = tuple(Draw.model_validate(draw) for draw in manifest["draws"])
    analyses = tuple(AnalysisResult.model_validate(each) for each in manifest.get("analyses", ()))
    manifest["format"] = format_of(guarantee, draws, proof, analyses, manifest.get("seeds"))


def forge_chain(proof: dict[str, Any]) -> None:
    """The head that the charge, as it now reads, would lead to."""
    head = chain_hash(proof["previous"], digest(proof["charge"]))
    for content in proof["later"]:
        head = chain_hash(head, content)
    proof["head"] = head
