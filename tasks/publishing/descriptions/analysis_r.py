"""analysis.R: one file of base R that fits models to a release's sets and combines them by its own rule.

It follows from the domain, the plan and what the manifest says of the analyses. What is the same in every release stands in
pages/analysis.R. Another head or body is another name in FORM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from schemas.plan import Plan
from schemas.results import AnalysisResult
from schemas.spec.attributes import Attribute, Named
from schemas.spec.domain import Domain
from steps_engine.analyses.honesty import combining_of, honesty
from steps_engine.domain.columns import with_derived
from tasks.publishing.description import Description
from tasks.publishing.descriptions import DescribingFile
from tasks.publishing.formats.csv import harmless

FORM = "steps-analysis/1"
_BODY = Path(__file__).parents[1] / "pages" / "analysis.R"
_WITHIN = "within <- colMeans(variances)"  # which weights and several rows of a person inflate
_WIDTH = 110  # of a line
_AFTER = "The numbers are those of `steps fit`.\n"
_LINKED = """\
# Tables are linked: it fits household rows. Models of persons are fitted by `steps fit`, which allows for people of one
# household being alike; persons are in person-1.csv or .parquet and so on, by the key of their household.
"""
_HEAD = """\
# {form}
# Fits models to the synthetic sets beside this file and combines them by the release's own rule. Base R is enough for CSV
# sets; Parquet ones are read by the package arrow. The numbers are those of `steps fit`.
#
#   Rscript analysis.R "{example}"
#   source("analysis.R"); steps_fit("{example}")
#
# In a formula: names, + - : * and 0 or 1; C(name) takes a number by its bins. Interactions with main effects: a * b.

steps_release <- {facts}
"""


def analysis_r(domain: Domain, plan: Plan, results: Sequence[AnalysisResult] = ()) -> bytes:
    """The file, in ASCII: whatever alphabet a label is written in, R reads it in any locale."""
    told = {each.name: each.why for each in results}
    facts = {
        "name": plan.release,
        "sets": plan.sets,
        "budget": plan.budget,
        "rule": combining_of(plan),
        "attributes": [_facts(attribute) for attribute in with_derived(domain).attributes],
        "analyses": [
            {"name": each.name, "why": told.get(each.name) or honesty(each, plan)[1]}
            for each in plan.analyses
            if each.kind != "table"
        ],
    }
    body = _BODY.read_text(encoding="ascii")
    if plan.inflation != 1:
        facts |= {"inflation": float(plan.inflation)}
        assert _WITHIN in body
        body = body.replace(_WITHIN, _WITHIN.replace("<- ", "<- steps_release$inflation * "))
    head = _HEAD.format(form=FORM, facts=_r(facts), example=_example(domain))
    if domain.tables is not None:
        head = head.replace(_AFTER, _AFTER + _LINKED)
    return (head + body).encode("ascii")


def _write(said: Description) -> bytes:
    return analysis_r(said.domain, said.plan, said.analyses)


def _facts(attribute: Attribute) -> dict[str, Any]:
    labels = attribute.present_labels
    facts: dict[str, Any] = {"name": attribute.name, "kind": attribute.kind, "labels": list(labels)}
    if isinstance(attribute, Named):
        return facts | {"written": [harmless(label) for label in labels]}
    layout = attribute.layout
    facts |= {"edges": attribute.edge_values.tolist(), "highest": attribute.highest, "bin": (layout.bin_code + 1).tolist()}
    if not attribute.spikes:
        return facts
    return facts | {"spike": layout.spike.tolist(), "spike_code": (layout.spike_code + 1).tolist()}


def _example(domain: Domain) -> str:
    """A formula of this release, of names that a formula and a comment can hold."""
    plain = [each for each in domain.attributes if each.name.isascii() and each.name.isidentifier()]
    outcome = next((each for each in plain if isinstance(each, Named) and len(each.categories) == 2), None)
    others = [each.name for each in plain if each is not outcome][:2]
    return f"{outcome.name} ~ {' + '.join(others)}" if outcome and others else "outcome ~ one + another"


def _r(value: Any, depth: int = 0) -> str:
    """A value as R writes it."""
    if isinstance(value, Mapping):
        inside = [f"{name} = {_r(part, depth + 1)}" for name, part in value.items()]
        return _wrapped("list", inside, depth)
    if isinstance(value, list):
        plain = all(isinstance(part, str | int | float) for part in value)
        return _wrapped("c" if plain and value else "list", [_r(part, depth + 1) for part in value], depth)
    if isinstance(value, str):
        return _text(value)
    return f"{value}L" if isinstance(value, int) and abs(value) < 2**31 and depth < 2 else repr(value)


def _text(text: str) -> str:
    r"""
    >>> print(_text('a "b" \\ ö'))
    "a \"b\" \\ \u00f6"
    """
    return f'"{"".join(map(_character, text))}"'


def _character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if " " <= character <= "~":
        return character
    return f"\\u{ord(character):04x}" if ord(character) < 2**16 else f"\\U{ord(character):08x}"


def _wrapped(call: str, parts: Iterable[str], depth: int) -> str:
    lines, indent = list(_lines(parts)), "  " * (depth + 1)
    if len(lines) == 1 and len(lines[0]) < _WIDTH and "\n" not in lines[0]:
        return f"{call}({lines[0]})"
    return f"{call}(\n{indent}" + f",\n{indent}".join(lines) + f"\n{'  ' * depth})" if lines else f"{call}()"


def _lines(parts: Iterable[str]) -> Iterator[str]:
    """As many parts in a line as it holds."""
    line = ""
    for part in parts:
        if line and len(line) + len(part) + 2 > _WIDTH:
            yield line
            line = ""
        line = f"{line}, {part}" if line else part
    if line:
        yield line


ENTRY = DescribingFile("analysis.R", 7, "base R: fits models to the sets and combines them by the rule of this release", _write)
