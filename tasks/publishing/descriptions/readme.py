"""README.txt: what the folder is, in ten lines."""

from __future__ import annotations

from tasks.publishing.description import Description
from tasks.publishing.descriptions import DescribingFile


def _write(said: Description) -> bytes:
    domain = said.domain
    suffixes = sorted({file.name.rsplit(".", 1)[1] for file in said.files if file.set})
    names = f"synthetic-1 … synthetic-{said.plan.sets}" if said.plan.sets > 1 else "synthetic-1"
    what = "the synthetic records" if domain.tables is None else "household rows; household-1, person-1 …: the linked tables"
    who = ", ".join(part for part in (domain.publisher, domain.contact) if part)
    about = f"{said.title} ({said.made_at}){f'. {who}' if who else ''}"
    licence = f"Licence: {domain.licence}. " if domain.licence else ""
    lines = (
        about,
        said.text,
        f"Promise: {said.guarantee.sentence}",
        f"{names} ({', '.join(suffixes)}): {what}. {said.combining} `steps fit` and analysis.R do it.",
        "index.html: the page for people. Read it first: what can be asked of these data, and what cannot.",
        "codebook.html, codebook.csv: what codes mean, counts with errors, and rules. pairs.csv: what goes together.",
        "consistent-counts, noisy-counts, tree (parquet), domain.json, plan.json: what the rows follow from, for who checks.",
        "For programs: datapackage.json (Frictionless), croissant.json (Croissant, schema.org), opendp_deployment.yaml.",
        f"{licence}How to cite: CITATION.cff.",
        f"Check it: steps verify {said.release} --key publisher.pub (pip install {said.code.package}); or by "
        "release.intoto.jsonl, a signed in-toto statement that names every file by its SHA-256.",
    )
    return ("\n".join(lines) + "\n").encode()


ENTRY = DescribingFile("README.txt", 1, "what this folder is, in ten lines", _write)
