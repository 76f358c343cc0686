"""DDI-Codebook (2.5 and its elders): variables, questions, categories, valid ranges.

Summary statistics and frequencies (sumStat, catStat) stand in codebooks too. They were computed from records: never taken.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree.ElementTree import Element

from schemas.errors import SpecError
from tasks.describing.description import DATES, NUMBERS, TEXT, WHOLE, Category, Description, Variable, about
from tasks.describing.documents import Document
from tasks.describing.facts import bound, number, said
from tasks.describing.formats import DescribingFormat, the_table

_RANGES = "valid ranges are the codebook's; some programs write what they saw in the records: compare with the questionnaire"
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")  # some abstracts are a piece of a page
_MOST_MISSING = 100  # whole numbers of a range that means missing


def _claims(document: Document) -> bool:
    return document.is_xml


def _describe(document: Document, asked: str | None) -> Description:
    book = document.xml
    if book.tag != "codeBook":
        raise SpecError(
            f"{document.path}: XML that begins with <{book.tag}>; a DDI codebook begins with <codeBook>. Export it as "
            "DDI-Codebook 2.5."
        )
    files = {each.get("ID") or f"file {n}": each for n, each in enumerate(book.iter("fileDscr"), 1)}
    variables = list(book.iter("var"))
    name, file = the_table(document, files, asked) if len(files) > 1 else next(iter(files.items()), ("", Element("none")))
    if len(files) > 1:
        variables = [each for each in variables if name in (each.get("files") or name).split()]
    rows = number(_text(file, ".//caseQnty").replace(",", ""))
    return Description(
        kind="DDI codebook",
        file=document.path.name,
        variables=tuple(map(_variable, variables)),
        title=_text(book, "./stdyDscr/citation/titlStmt/titl"),
        description=said(_TAG.sub(" ", _text(book, "./stdyDscr/stdyInfo/abstract"))),
        publisher=_text(book, "./stdyDscr/citation/distStmt/distrbtr") or _text(book, "./stdyDscr/citation/prodStmt/producer"),
        records=_text(file, ".//fileName"),
        expected_rows=about(int(rows)) if rows and rows >= 1 else None,
        remarks=(_RANGES,) if any(each.find("valrng/range") is not None for each in variables) else (),
    )


def _text(place: Element | None, path: str) -> str:
    found = place.find(path) if place is not None else None
    return said("".join(found.itertext())) if found is not None else ""


def _variable(var: Element) -> Variable:
    holds = _holds(var)
    categories = tuple(each for each in map(_category, var.iter("catgry")) if each is not None)
    absent = [each.value for each in categories if each.missing]
    present = tuple(each for each in {each.value: each for each in categories if not each.missing}.values())
    invalid = [value for value in _invalid(var) if value not in absent]
    span = var.find("valrng/range")
    low, high = (bound(span.get(end), holds) if span is not None else None for end in ("min", "max"))
    measured = holds in (NUMBERS, WHOLE) and (var.get("intrvl") == "contin" or var.get("nature") in ("interval", "ratio"))
    if measured and present and low is not None and high is not None:
        present = ()  # labels of some values, such as the ends of a scale
    return Variable(
        column=var.get("name") or "",
        holds=holds,
        title=_text(var, "labl"),
        description=_text(var, "qstn/qstnLit") or _text(var, "qstn") or _text(var, "txt"),
        categories=tuple(each for each in present if each.value not in invalid),
        complete=not measured,
        ordered=var.get("nature") == "ordinal",
        low=low,
        high=high,
        may_be_missing=bool(absent or invalid),
        missing_values=(*dict.fromkeys(absent), *invalid),
    )


def _holds(var: Element) -> str:
    form = var.find("varFormat")
    told: dict[str, Any] = form.attrib if form is not None else {}
    if told.get("category") in ("date", "time"):
        return DATES
    if told.get("type") == "character":
        return TEXT
    return WHOLE if (var.get("dcml") or "0") == "0" and "." not in _ends(var) else NUMBERS


def _ends(var: Element) -> str:
    span = var.find("valrng/range")
    return "".join(span.get(end) or "" for end in ("min", "max")) if span is not None else ""


def _category(catgry: Element) -> Category | None:
    value = _text(catgry, "catValu")
    missing = catgry.get("missing") in ("Y", "y", "true", "1")
    return Category(value, _text(catgry, "labl"), missing) if value else None


def _invalid(var: Element) -> list[str]:
    """Values that mean missing: listed, or whole numbers of a short range."""
    values = [item.get("VALUE") or "" for item in var.iterfind("invalrng/item")]
    for span in var.iterfind("invalrng/range"):
        low, high = number(span.get("min")), number(span.get("max"))
        if low is not None and high is not None and 0 <= high - low < _MOST_MISSING:
            values += [str(each) for each in range(int(low), int(high) + 1)]
    return [value for value in dict.fromkeys(values) if value]


ENTRY = DescribingFormat("ddi", 4, "DDI codebook", "XML with a codeBook", _claims, _describe)
