"""opendp_deployment.yaml: a card for the registry of deployments of differential privacy that OpenDP keeps, all three tiers.

What a release does not know is for the person to say who hands the card in: what kind of organisation the curator is has no
line here, and the registry asks for one; regions are told as not stated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tasks.publishing.description import Description
from tasks.publishing.descriptions import DescribingFile
from tasks.publishing.yaml_text import yaml_bytes

NOT_STATED = "not stated"
VARIANTS = {
    "pure differential privacy": "Pure DP",
    "zero-concentrated differential privacy": "Zero-concentrated DP",
}
ADJACENT = {
    "add_remove": "one has all rows of one {unit}, at most {rows}, and the other has none of them; all other rows are equal",
    "substitute": "the rows of one {unit}, at most {rows}, are replaced by others; all other rows are equal",
}


def _write(said: Description) -> bytes:
    return yaml_bytes(
        {
            "url_slug": said.release,
            "deployment": {
                "basic": _basic(said),
                "dp_variant": _variant(said),
                "privacy_loss": _loss(said),
                "deployment_model": _model(said),
                "implementation": _implementation(said),
                "administrative": {
                    "status": "Draft",
                    "registry_authors": [said.domain.publisher or NOT_STATED],
                    "tier": 3,
                },
            },
        }
    )


def _basic(said: Description) -> dict[str, Any]:
    return {
        "name": said.name,
        "data_curators": [{"data_curator_name": said.domain.publisher or NOT_STATED}],
        "description": said.text,
        "intended_use": said.use,
        "data_product_type": "Synthetic data",
        "data_product_region": NOT_STATED,
        "publication_date": said.made_at,
    }


def _variant(said: Description) -> dict[str, Any]:
    names = ", ".join(column.name for column in said.columns)
    return {
        "variant_name": VARIANTS[said.guarantee.definition],
        "data_domain": f"Any number of records on population {said.plan.population}, each with a value of every attribute "
        f"({names}) as codebook.html lists them, and of no combination that a rule excludes. These are public and do not come "
        "from the records.",
        "unprotected_quantities": "\n".join(f"- {text}" for text in said.guarantee.unprotected),
    }


def _loss(said: Description) -> dict[str, Any]:
    rows = f"{said.plan.rows_per_person} row{'' if said.plan.rows_per_person == 1 else 's'}"
    adjacent = ADJACENT[said.guarantee.neighbours].format(unit=said.plan.unit, rows=rows)
    given = " The exact number of rows is published, so both have as many." if said.plan.total == "invariant" else ""
    return {
        "privacy_unit": said.plan.unit,
        "privacy_unit_details": f"Two data sets are adjacent where {adjacent}.{given}",
        "number_of_privacy_units": max(1, round(said.view.total.estimate / said.plan.rows_per_person)),
        "privacy_parameters": said.privacy,
        "privacy_parameters_details": f"{said.guarantee.sentence} The number of units is the published number of rows, "
        "divided by the most that one of them may have.",
    }


def _model(said: Description) -> dict[str, Any]:
    return {
        "model_name": "Central",
        "model_name_details": "One curator holds the records, adds the noise and publishes.",
        "trust_assumptions": "The curator, and whoever administers the machine on which releases are made, are trusted with "
        "the records. Nobody else is trusted with anything: the guarantee holds whatever others know, and however they work "
        "together.",
        "actors": "- Curator: holds the records, decides on budgets, signs releases.\n"
        "- Everybody else: sees the release, all of it, and may know anything about everybody but one.",
        "release_type": "One release",
        "release_type_details": f"All releases on population {said.plan.population} are charged to one budget, before "
        "anything is drawn, and never refunded; manifest.json proves this charge.",
        "data_source_type": "Static",
        "data_source_type_details": "The records were as they were when this release was counted.",
        "access_type": "Non-interactive",
        "access_type_details": "Nobody can ask anything of the records; everything that was drawn is in the bundle.",
    }


def _implementation(said: Description) -> dict[str, Any]:
    return {
        "preprocessing_and_hyperparameter_tuning": "Records are checked against the public domain and counted; that they "
        "passed is public. The plan, which fixes every draw and its noise, is made from public inputs before records are "
        "read. Whatever the structure takes from the records is elected under the same budget.",
        "mechanisms": "\n".join(f"- {text}" for text in _mechanisms(said)),
        "composition": said.composition,
        "post_processing": "Least squares make counts consistent; plausible whole tables are drawn given what was measured, "
        "and rows from the tables. Nothing of it looks at the records.",
        "justification": " ".join(_reasons(said)),
        "utility": f"{said.use} margins.csv has every count with its 95 % interval.",
        "additional_information": "index.html explains the release; manifest.json has every draw as exact fractions.",
    }


def _mechanisms(said: Description) -> Iterator[str]:
    code = said.code
    yield from said.guarantee.mechanisms
    yield "exact whole-number noise from the operating system's randomness; no floating-point number decides a draw"
    yield "not interactive, so that there is no time to be measured; days stand in place of times"
    yield f"{code.package} {code.version}{f', commit {code.commit}' if code.commit else ''}"


def _reasons(said: Description) -> Iterator[str]:
    chosen = "chosen from public inputs" if said.plan.considered else "as the publisher asked"
    yield f"Method {said.plan.decomposition}, {chosen}."
    if said.guarantee.delta_why:
        yield f"The reason for δ: {said.guarantee.delta_why.rstrip('.')}."
    if said.domain.source:
        yield f"Categories, bounds and bins are known from: {said.domain.source.rstrip('.')}."
    yield "Every figure can be checked: steps verify computes composition, scales, counts and rows again."


ENTRY = DescribingFile(
    "opendp_deployment.yaml", 4, "this release as a card for the registry of deployments of differential privacy", _write
)
