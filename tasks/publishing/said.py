"""What dataset.yaml and release.yaml say in words, for the page: who, what, from where, and why. Templates escape all of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from schemas.manifest import Manifest
from schemas.spec.attributes import Attribute
from schemas.spec.domain import Domain
from schemas.spec.flattened import PERSONS, number_of
from schemas.spec.linked import PersonTable
from schemas.spec.numbers import NumberBase
from schemas.spec.rules import Rule


def about(manifest: Manifest, domain: Domain) -> dict[str, Any]:
    """Paragraphs, and facts by their names, as far as they are said."""
    facts = {
        "Publisher": domain.publisher,
        "Contact": domain.contact,
        "Licence": domain.licence,
        "Public facts from": domain.source,
    }
    paragraphs = dict.fromkeys(text for text in (manifest.description, domain.description) if text)
    return {"paragraphs": list(paragraphs), "facts": {name: text for name, text in facts.items() if text}}


_WITHIN = {
    "triangular": "within a bin they fall to none at its upper end",
    "geometric": "within a bin they lie evenly on a scale of logarithms",
}


def value_words(attribute: Attribute) -> str:
    """How synthetic values lie where nothing was counted, if not evenly in their bins."""
    if not isinstance(attribute, NumberBase) or not (attribute.above or attribute.within or attribute.multiples_of):
        return ""
    said = []
    if attribute.above is not None:
        by = f"mean {attribute.above.mean:.12g}" if attribute.above.mean is not None else f"α = {attribute.above.alpha:.12g}"
        name = {"exponential": "an exponential", "pareto": "a Pareto"}[attribute.above.shape]
        said.append(f"above {attribute.highest:.12g} they follow {name} distribution ({by})")
    if attribute.within is not None:
        listed = f"within a bin they follow {len(attribute.fine_values):,} listed values and their weights"
        said.append(_WITHIN[attribute.within] if isinstance(attribute.within, str) else listed)
    said += [f"they are multiples of {attribute.multiples_of:.12g}"] if attribute.multiples_of else []
    return f"Synthetic values by public knowledge, not by records: {'; '.join(said)}."


def rule_rows(domain: Domain) -> list[dict[str, str]]:
    """Every rule as its author wrote it; of linked tables those of both, and what numbers of members add up to."""
    tables, counted = domain.tables, domain.counted
    said: Iterable[Rule] = domain.rules if tables is None else (*tables.household.rules, *tables.person.rules)
    rows = [{"words": _in_order(rule, counted).words, "why": rule.why or ""} for rule in said]
    return rows if tables is None else [*rows, *_adding_up(tables.person)]


def _in_order(rule: Rule, domain: Domain) -> Rule:
    """With attributes as the domain has them: canonical JSON does not keep the order in which they were written."""
    ordered = {name: rule.never[name] for name in sorted(rule.never, key=domain.source_of)} if rule.never else None
    return rule.model_copy(update={"never": ordered})


def _adding_up(person: PersonTable) -> Iterator[dict[str, str]]:
    if len(person.listed_kinds) < 2:
        return
    *listed, rest = person.listed_kinds
    members, most = " + ".join(["1", *map(number_of, listed)]), person.most_of(rest)
    at_most = f" <= {members} + {most}" if most < person.members else ""
    why = f"{PERSONS} counts the reference person and everybody else: who is of none of these kinds is {rest}"
    yield {"words": f"always {members} <= {PERSONS}{at_most}", "why": why}


def derived_rows(domain: Domain) -> list[dict[str, Any]]:
    rows = []
    for following in domain.all_followings:
        derived = following.derived
        shown = (f"{name} · {text}" if (text := derived.label_texts.get(name)) else name for name in following.categories)
        rows.append({"derived": derived, "categories": list(shown)})
    return rows
