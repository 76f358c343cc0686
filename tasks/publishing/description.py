"""What a release is, once: every file that tells of it to people or programs says a part of this, in its own words.

All of it follows from what the bundle holds: domain, plan, manifest and the numbers that are shown of its tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schemas.manifest import Code, FileFacts, Guarantee, Manifest
from schemas.plan import Plan
from schemas.results import AnalysisResult
from schemas.spec.domain import Domain
from schemas.tables import HOUSEHOLD, PERSON
from steps_engine.methods.views import View
from tasks.publishing.columns import Column, columns_of, person_columns

WHAT = {  # a file holds, by its name without number and suffix; of describing files their entries say it
    "tree": "the nodes of the tree: which attributes split which node",
    "noisy-counts": "every node's count as it was drawn, one column per set",
    "consistent-counts": "least-squares counts with standard errors, and the whole numbers behind each set",
    "synthetic": "synthetic records",
    "household": "synthetic households, each with its key",
    "person": "synthetic persons, each with its household's key and its number there",
    "domain": "attributes, categories, bounds and rules",
    "plan": "what was decided before the records were read",
    "margins": "counts of every category with 95 % intervals, as index.html shows them",
    "places": "every place at every level with its count, standard error and 95 % interval",
    "pairs": "every pair of attributes: measured, how strong against the noise, or taken as independent",
    "codebook": "what every code stands for, counts of every category with 95 % intervals, and the rules",
    "sbom.cdx": "the program that computed this, and every package and version beneath it (CycloneDX)",
    "signing-key": "the key that signed the manifest",
}
MEDIA = {
    ".parquet": "application/vnd.apache.parquet",
    ".csv": "text/csv",
    ".json": "application/json",
    ".pub": "application/x-pem-file",
    ".R": "text/x-r-source",
}
COMBINING = {
    "split": "each set was made from noise of its own",
    "shared": "the counts were measured once, and each set is one plausible table given that measurement",
}


def stem_of(name: str) -> str:
    """A file by the kind of what it holds."""
    stem = name.rsplit(".", 1)[0]
    return next((kind for kind in ("synthetic", HOUSEHOLD, PERSON) if stem.startswith(f"{kind}-")), stem)


@dataclass(frozen=True)
class File:
    """A file of the bundle."""

    name: str
    facts: FileFacts

    @property
    def what(self) -> str:
        return WHAT[stem_of(self.name)]

    @property
    def media(self) -> str:
        return MEDIA.get("." + self.name.rsplit(".", 1)[1], "application/octet-stream")

    @property
    def set(self) -> int | None:
        """Which synthetic set it holds; None: no set."""
        return int(self.name.removeprefix("synthetic-").split(".")[0]) if stem_of(self.name) == "synthetic" else None


@dataclass(frozen=True)
class Description:
    """A release as anybody may know it."""

    release: str
    name: str  # a title for people, or else the release's own name
    about: str  # what the publisher says of it; may be empty
    why: str | None  # the author's reason for the promise
    made_at: str
    code: Code
    guarantee: Guarantee
    composition: str
    plan: Plan
    domain: Domain
    columns: tuple[Column, ...]
    persons: tuple[Column, ...]  # of linked tables, what their persons have
    view: View
    files: tuple[File, ...]
    analyses: tuple[AnalysisResult, ...]

    @property
    def title(self) -> str:
        return f"{self.name} ({self.release})" if self.name != self.release else self.release

    @property
    def sets(self) -> dict[int, tuple[File, ...]]:
        """The files of each synthetic set."""
        return {number: tuple(file for file in self.files if file.set == number) for number in range(1, self.plan.sets + 1)}

    @property
    def privacy(self) -> dict[str, float]:
        """The figures of the promise."""
        named = {name: getattr(self.guarantee, name) for name in ("epsilon", "rho", "delta")}
        return {name: float(value) for name, value in named.items() if value is not None}

    @property
    def promise(self) -> str:
        """The promise in figures: ε = 1, or ρ = 0.1 (ε = 3 at δ = 1e-9)."""
        said = self.guarantee
        return f"ρ = {said.rho} (ε = {said.epsilon} at δ = {said.delta})" if said.rho else f"ε = {said.epsilon}"

    @property
    def rows(self) -> str:
        """How many rows a set has, in words."""
        least, most = min(self.view.total.rows), max(self.view.total.rows)
        return f"{least:,}" if least == most else f"{least:,} to {most:,}"

    @property
    def summary(self) -> str:
        """The release in a sentence or two."""
        one, attributes = self.plan.sets == 1, len(self.columns) - len(self.domain.published_weight)
        return (
            f"{'One synthetic data set' if one else f'{self.plan.sets} synthetic data sets'} of {self.rows} rows"
            f"{'' if one else ' each'} and {attributes} attribute{'' if attributes == 1 else 's'} on population "
            f"{self.plan.population}, made from noisy counts of confidential records: {self.guarantee.definition} with "
            f"{self.promise} for every {self.plan.unit}. No row stands for a {self.plan.unit}."
            f"{self.linked}{self.people}"
        )

    @property
    def linked(self) -> str:
        """Of linked tables, where persons are."""
        if not self.persons:
            return ""
        number = len(self.persons)
        return (
            f" Rows are households; their persons stand in linked tables, with {number} attribute{'' if number == 1 else 's'}."
        )

    @property
    def people(self) -> str:
        """For how many people rows stand, where records have weights."""
        if self.plan.weight is None:
            return ""
        step = f"{float(self.plan.weight.step):.6g}"
        if self.domain.tables is not None:
            return (
                f" Households have survey weights: counts are of the population, and every row stands for {step} households of "
                f"it, every person for {step} persons; tables in Parquet count such rows."
            )
        return (
            f" Records have survey weights: counts are of the population, and every row stands for {step} people of it; tables "
            f"in Parquet count such rows."
        )

    @property
    def text(self) -> str:
        """What the publisher says of the data, then what the release is."""
        return f"{self.about} {self.summary}" if self.about else self.summary

    @property
    def use(self) -> str:
        """What the release may be used for, by what was measured."""
        counted = len(self.view.margins)
        clear = sum(pair.clear for pair in self.view.pairs)
        asked = "; ".join(f"“{analysis.name}”" for analysis in self.plan.analyses)
        return (
            f"Shares of categories of {counted} attributes, each with its error; relations in {clear} of "
            f"{len(self.view.pairs)} pairs of attributes, those that are clear of noise and chance; writing and testing "
            "programs; teaching."
            f"{f' Its author named these analyses: {asked}.' if asked else ''}"
        )

    @property
    def combining(self) -> str:
        """How to use the sets."""
        if self.plan.sets == 1:
            return "There is one set: standard errors from its rows leave the noise out; margins.csv has those of counts."
        return (
            f"Analyse every set on its own, never their union, and combine the {self.plan.sets} answers as index.html says: "
            f"{COMBINING[self.plan.budget]}."
        )


def describe(manifest: Manifest, files: Mapping[str, FileFacts], plan: Plan, domain: Domain, view: View) -> Description:
    """`files` are those that the description is about: not the ones that are written from it."""
    return Description(
        release=manifest.release,
        name=manifest.title or domain.title or manifest.release,
        about=" ".join(dict.fromkeys(f"{text.rstrip('.')}." for text in (manifest.description, domain.description) if text)),
        why=manifest.why,
        made_at=manifest.made_at,
        code=manifest.code,
        guarantee=manifest.guarantee,
        composition=manifest.composition.sentence,
        plan=plan,
        domain=domain,
        columns=columns_of(domain, view),
        persons=person_columns(domain, view),
        view=view,
        files=tuple(File(name, files[name]) for name in in_order(files)),
        analyses=manifest.analyses,
    )


def in_order(names: Mapping[str, Any]) -> list[str]:
    """Synthetic sets first, in their order."""
    return sorted(names, key=_place)


def _place(name: str) -> tuple[bool, int, str]:
    number = name.removeprefix("synthetic-").split(".")[0]
    return (not name.startswith("synthetic-"), int(number) if number.isdigit() else 0, name)
