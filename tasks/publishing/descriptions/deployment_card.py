"""opendp_deployment.yaml: a card for the registry of deployments of differential privacy that OpenDP keeps, all three tiers.

What a release cannot know, its publisher says in dataset.yaml (`publisher`, `registry`). What is not said there says so on the
card, which then names what is left to say before it is handed in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from schemas.spec.registry import RegistryFacts
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
    facts = said.domain.registry or RegistryFacts()
    curator = {"data_curator_name": said.domain.publisher, "data_curator_type": facts.curator_type}
    return {
        "name": said.name,
        "data_curators": [{name: text or NOT_STATED for name, text in curator.items()}],
        "description": said.text,
        "intended_use": said.use,
        "data_product_type": "Synthetic data",
        "data_product_region": facts.region or NOT_STATED,
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
        "number_of_privacy_units": max(1, round(_rows(said) / said.plan.rows_per_person)),
        "privacy_parameters": said.privacy,
        "privacy_parameters_details": f"{said.guarantee.sentence} The number of units is {_whose_rows(said)}, "
        "divided by the most that one of them may have.",
    }


def _rows(said: Description) -> float:
    """Of the records: as published or, where these have weights and the number is not, as expected in public."""
    return said.view.total.estimate if said.plan.weight is None else float(said.domain.expected_rows or 1)


def _whose_rows(said: Description) -> str:
    return "the published number of rows" if said.plan.weight is None else "the publicly expected number of records"


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
        "additional_information": "index.html explains the release; manifest.json has every draw as exact fractions."
        + _left_to_say(said),
    }


def _left_to_say(said: Description) -> str:
    """Which keys of dataset.yaml would fill the card."""
    facts = said.domain.registry or RegistryFacts()
    keys = {"publisher": said.domain.publisher, "registry.curator_type": facts.curator_type, "registry.region": facts.region}
    left = [key for key, text in keys.items() if not text]
    return f" Not stated in dataset.yaml, and to be said before this card is handed in: {', '.join(left)}." if left else ""


def _mechanisms(said: Description) -> Iterator[str]:
    code = said.code
    yield from said.guarantee.mechanisms
    yield "exact whole-number noise from the operating system's randomness; no floating-point number decides a draw"
    yield "not interactive, so that there is no time to be measured; days stand in place of times"
    yield f"{code.package} {code.version}{f', commit {code.commit}' if code.commit else ''}"


def _reasons(said: Description) -> Iterator[str]:
    chosen = "chosen from public inputs" if said.plan.considered else "as the publisher asked"
    yield f"Method {said.plan.decomposition}, {chosen}."
    if said.why:
        yield f"The reason for {said.promise}: {said.why.rstrip('.')}."
    if said.guarantee.delta_why:
        yield f"The reason for δ: {said.guarantee.delta_why.rstrip('.')}."
    if said.domain.source:
        yield f"Categories, bounds and bins are known from: {said.domain.source.rstrip('.')}."
    yield "Every figure can be checked: steps verify computes composition, scales, counts and rows again."


ENTRY = DescribingFile(
    "opendp_deployment.yaml", 4, "this release as a card for the registry of deployments of differential privacy", _write
)
