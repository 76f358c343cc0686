"""The audit flow: verifies the ledger and every published bundle again, and fails when anything does not hold."""

from __future__ import annotations

from prefect import flow
from prefect.artifacts import create_markdown_artifact

from flows.runtime.boundary import fit_for_public
from flows.runtime.stages import NOTHING_KEPT, stage
from schemas.errors import EvidenceBroken
from tasks.stages.audit import bundles, check_bundle, check_ledger
from tasks.stores.home import Home

verify_ledger = stage("verify ledger", check_ledger)
verify_bundle = stage("verify bundle", check_bundle)


@flow(name="audit", flow_run_name="audit", **NOTHING_KEPT)
def audit(home: str | None = None) -> dict[str, object]:
    """Re-checks everything that was published, and the ledger behind it."""
    return fit_for_public("audit", _audit)(Home.from_environment(home))


def _audit(home: Home) -> dict[str, object]:
    problems = verify_ledger(home)
    folders = bundles(home)
    for folder in folders:
        problems += verify_bundle.with_options(task_run_name=f"verify {folder.name}")(home, folder)
    checked = f"the ledger and {len(folders)} published bundle(s)"
    text = "\n".join([f"Checked {checked}.", "", *(f"- **{problem}**" for problem in problems or ["everything holds"])])
    create_markdown_artifact(text, key="audit", description="what the audit found")
    if problems:
        raise EvidenceBroken(f"{len(problems)} problem(s) in {checked}: {'; '.join(problems[:5])}")
    return {"ok": True, "problems": [], "bundles": [folder.name for folder in folders]}
