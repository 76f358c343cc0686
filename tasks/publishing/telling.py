"""Everything in a bundle that tells of its tables: listings, describing files and the page. All of it follows from the rest
of the bundle, so that whoever has the rest can make it again and compare.
"""

from __future__ import annotations

from schemas.manifest import Manifest
from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.methods.views import View
from steps_engine.methods.weighted import in_people
from tasks.publishing import bundle
from tasks.publishing.description import describe
from tasks.publishing.descriptions import describing_files, written
from tasks.publishing.listings import listings
from tasks.publishing.page import make_page


def told(manifest: Manifest, plan: Plan, domain: Domain, view: View) -> dict[str, bytes]:
    """By name; `manifest` is that of the bundle, with or without what is made here."""
    view = in_people(view, domain)
    listed = listings(view, domain)
    facts = {name: known for name, known in manifest.files.items() if name not in told_names() | {bundle.PLACES}}
    facts |= {name: bundle.facts_of(content) for name, content in listed.items()}
    described = written(describe(manifest, facts, plan, domain, view))
    facts |= {name: bundle.facts_of(content) for name, content in described.items()}
    page = make_page(manifest.model_copy(update={"files": facts}), plan, domain, view)
    return listed | described | {bundle.PAGE: page}


def told_names() -> frozenset[str]:
    return bundle.LISTINGS | describing_files() | {bundle.PAGE}
