"""Identity: the one text of a value, and the hashes that tie a charge to what was asked; older forms as they were.

What is hashed has one text, RFC 8785, so that anybody can hash it again in any language. Version 0.1.0 wrote two other forms:
`canonical_1` for plans, domains and manifests, `ledger_canonical_1` for entries. They serve what was written in them, only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import rfc8785

if TYPE_CHECKING:
    from schemas.spec.release import Release

# Of plans and specs. A key that is added later makes another format, in which it would be hashed; a document has the lowest
# format that can say it.
PLAN_FORMAT: Final = 2
FORMAT_3: Final = 3  # knows two measures, interactions, analyses, and whatever a spec could not say before
LARGEST_WHOLE = 2**53 - 1  # what RFC 8785 writes as a number


def canonical(value: Any) -> str:
    """RFC 8785; a whole number beyond 2⁵³ − 1 is written as a string of its digits, since a number would be rounded.

    >>> canonical({"b": 2 * 10**18, "a": [1.0, "ε"]})
    '{"a":[1,"ε"],"b":"2000000000000000000"}'
    """
    return rfc8785.dumps(_writable(value)).decode()


def canonical_flat(value: Mapping[str, str | int | None]) -> str:
    """`canonical` of one level of texts and whole numbers, by the encoder in C: a ledger hashes thousands of them.

    >>> canonical_flat({"b": 2 * 10**18, "a": "ε"}) == canonical({"b": 2 * 10**18, "a": "ε"})
    True
    """
    large = {key: str(part) for key, part in value.items() if isinstance(part, int) and abs(part) > LARGEST_WHOLE}
    return json.dumps({**value, **large}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical_1(value: Any) -> str:
    """Format 1 of plans, domains and manifests: Python's JSON with sorted keys and no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def ledger_canonical_1(value: Any) -> str:
    """Format 1 of the ledger's entries: as `canonical_1`, in ASCII.

    >>> ledger_canonical_1({"b": 1, "a": "ε"})
    '{"a":"\\\\u03b5","b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _writable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _writable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(part) for part in value]
    is_large = isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST_WHOLE
    return str(value) if is_large else value


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def digest(value: Any) -> str:
    return sha256(canonical(value))


def digest_1(value: Any) -> str:
    return sha256(canonical_1(value))


def chain_hash(previous: str, content: str) -> str:
    """An entry's hash. A proof that an entry is below a head needs only the content hashes of the entries between."""
    return sha256(f"{previous}:{content}")


def spec_hash(release: Release, format: int | None = None) -> str:
    """Identity of what was asked: spec and domain, not where the files lie. By the lowest format that can say it, or by 1."""
    document = _without_places(release.model_dump(mode="json"))
    if format != 1:
        asked = release.spec.privacy
        says_more = asked.measure != "pure" or asked.why or release.spec.analyses or _says_more(document)
        format = FORMAT_3 if says_more else PLAN_FORMAT
    if format == 1:
        said = _without_places(release.model_dump(mode="json", exclude_defaults=True))
        return digest_1(_as_in_1(document, said))
    return digest({"format": format, **document})


def _without_places(release: dict[str, Any]) -> dict[str, Any]:
    spec = {key: value for key, value in release["spec"].items() if key not in ("dataset", "source", "expectations")}
    return {"spec": spec, "domain": release["domain"]}


def _says_more(document: dict[str, Any]) -> bool:
    """Whether spec or domain have a key that formats 1 and 2 do not have: a word, a shape, how files are written."""
    spec, domain = document["spec"], document["domain"]
    if "tables" in domain:
        return True
    attributes = [each.keys() - _ATTRIBUTES_1.get(each["kind"], {}).keys() for each in domain["attributes"]]
    rules = [each.keys() - {"never"} for each in domain["rules"]]
    return bool({"title", "description"} & spec.keys() or domain.keys() - _DOMAIN_1.keys() or any(attributes) or any(rules))


# Every key that version 0.1.0 knew; its hash covered them all, given or not.
_NAMED_1 = dict.fromkeys(("name", "missing", "categories", "kind"))
_RANGED_1 = dict.fromkeys(("name", "missing", "outside", "bins", "kind", "bounds", "edges"))
_ATTRIBUTES_1 = {"categorical": _NAMED_1, "ordinal": _NAMED_1, "integer": _RANGED_1, "numeric": _RANGED_1, "date": _RANGED_1}
_SPEC_1: dict[str, Any] = {
    "name": None,
    "privacy": dict.fromkeys(("epsilon", "neighbours", "total")),
    "method": {
        "decomposition": None,
        "order": None,
        "elect": dict.fromkeys(("utility", "share", "layers", "what", "mechanism", "stop")),
        "layers": None,
        "shares": None,
        "sets": dict.fromkeys(("count", "budget")),
    },
    "evaluation": dict.fromkeys(("classifier", "interactions")),
    "approval": None,
    "formats": None,
}
_DOMAIN_1: dict[str, Any] = {
    "name": None,
    "population": None,
    "expected_rows": None,
    "unit": dict.fromkeys(("rows_per_person", "column", "excess")),
    "attributes": None,
    "rules": None,
}


def _as_in_1(asked: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """What version 0.1.0 would have hashed. Keys that it did not know count as soon as they say more than their default."""
    attributes = zip(asked["domain"]["attributes"], said["domain"]["attributes"], strict=True)
    domain = _picked(asked["domain"], said["domain"], _DOMAIN_1)
    domain["attributes"] = [_picked(all_, some, _ATTRIBUTES_1.get(all_["kind"], {})) for all_, some in attributes]
    return {"spec": _picked(asked["spec"], said["spec"], _SPEC_1), "domain": domain}


def _picked(asked: dict[str, Any], said: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """The known keys, null where this version has them no more, and those of the others that were said."""
    picked = {key: value for key, value in said.items() if key not in known}
    for key, parts in known.items():
        value = asked.get(key)
        picked[key] = _picked(value, said.get(key) or {}, parts) if parts and isinstance(value, dict) else value
    return picked
