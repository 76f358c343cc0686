"""What is wrong in a spec, as a person who wrote it reads it: the line, the key by its attribute's name, asked and found."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pydantic_core import ErrorDetails

from schemas.nearest import meant
from schemas.spec.document import Document, Keys

LONGEST_FOUND = 40
_KEYS = "`key: value` lines"
_WANTED = {  # by pydantic's name for what it found otherwise
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "a text",
    "tuple_type": "a list, such as [a, b]",
    "list_type": "a list, such as [a, b]",
    "dict_type": _KEYS,
    "model_type": _KEYS,
    "model_attributes_type": _KEYS,
}
_INSTEAD = {"bins": ". Bins of your own are written edges: [a, b, c]"}  # where a list stands for a number
_BOUNDS = {"greater_than": "above {gt}", "greater_than_equal": "at least {ge}", "less_than": "below {lt}"}
_BOUNDS["less_than_equal"] = "at most {le}"


def explained(document: Document, problems: Sequence[ErrorDetails]) -> list[str]:
    """Every problem once. Where a key may have several shapes, those that it has not are told only if nothing else is."""
    placed = [(_path(document, problem), problem) for problem in problems]
    closer = {path for path, problem in placed if problem["type"] not in _WANTED}
    told = [problem for path, problem in placed if path not in closer or problem["type"] not in _WANTED]
    return list(dict.fromkeys(explain(document, problem) for problem in told))


def _path(document: Document, problem: ErrorDetails) -> Keys:
    path: Keys = ()
    for part in (*problem["loc"], *problem.get("ctx", {}).get("path", ())):  # the tags of unions are not keys of the document
        if (*path, part) in document.lines:
            path = (*path, part)
    return (*path, problem["loc"][-1]) if problem["type"] == "missing" and isinstance(problem["loc"][-1], str) else path


def explain(document: Document, problem: ErrorDetails) -> str:
    """File, line and key of a problem, and what it is."""
    path = _path(document, problem)
    place = document.place((*path, problem["ctx"]["key"]) if problem["type"] == "unknown_key" else path)
    key, *owner = reversed([named(document, path[:end]) for end in range(len(path) + 1)])
    text = said(problem)
    for name in (key, *owner):  # an attribute's name stands in the key already
        text = text.removeprefix(f"{name.rpartition('.')[2]}: ")
    return f"{place}: {key + ': ' if key else ''}{text}"


def named(document: Document, path: Keys) -> str:
    """A key as a person finds it: by the attribute's name where it is known."""
    names, part = [], document.data
    for key in path:
        part = _within(part, key)
        known = part.get("name") if isinstance(key, int) and isinstance(part, dict) else None
        names.append(str(known or key))
    return ".".join(names)


def _within(part: Any, key: str | int) -> Any:
    if isinstance(part, dict):
        return part.get(key)
    return part[key] if isinstance(part, tuple) and isinstance(key, int) and key < len(part) else None


def said(problem: ErrorDetails) -> str:
    """What a problem is: what is asked for, and what was found."""
    kind, context = problem["type"], problem.get("ctx", {})
    if kind == "missing":
        return "is needed here" if isinstance(problem["loc"][-1], str) else "has too few values"
    if kind in _WANTED:
        instead = _INSTEAD.get(str(problem["loc"][-1]), "") if isinstance(problem["input"], tuple) else ""
        return f"is {_WANTED[kind]}; found {found(problem['input'])}{instead}"
    if kind in _BOUNDS:
        return f"must be {_BOUNDS[kind].format(**context)}; found {found(problem['input'])}"
    if kind in _CHOICES:
        return _CHOICES[kind](context, problem["input"])
    return problem["msg"].removeprefix("Value error, ")


def _one_of(context: dict[str, Any], value: Any) -> str:
    known = re.findall(r"'([^']*)'", context["expected"])
    near = meant(value, known) if isinstance(value, str) else ""
    return f"is {' or '.join(known)}; found {found(value)}{'. D' + near[1:] if near.startswith('did') else ''}"


def _tag(context: dict[str, Any], _: Any) -> str:
    known = re.findall(r"'([^']*)'", context["expected_tags"])
    key, tag = context["discriminator"].strip("'"), context["tag"]
    return f"{key} is {', '.join(known)}; found {tag!r}, {meant(tag, known)}"


def _no_tag(context: dict[str, Any], _: Any) -> str:
    return f"{context['discriminator'].strip(chr(39))} is needed here"


def _too_few(context: dict[str, Any], _: Any) -> str:
    return f"has {context['actual_length']}; at least {context['min_length']} are needed"


def _too_many(context: dict[str, Any], _: Any) -> str:
    return f"has {context['actual_length']}; at most {context['max_length']} are possible"


_CHOICES: dict[str, Callable[[dict[str, Any], Any], str]] = {
    "literal_error": _one_of,
    "union_tag_invalid": _tag,
    "union_tag_not_found": _no_tag,
    "too_short": _too_few,
    "too_long": _too_many,
}


def found(value: Any) -> str:
    """A value of a spec in a few words.

    >>> found("ten"), found(True), found((1, 2)), found({"a": 1}), found(None)
    ("'ten'", 'true', 'a list', 'keys of its own', 'nothing')
    """
    if isinstance(value, dict | tuple | list):
        return "keys of its own" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return "nothing" if value is None else str(value).lower()
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= LONGEST_FOUND else f"{text[:LONGEST_FOUND]}…"
