"""Whatever a document holds where something else belongs: a description, or a refusal in words; never a traceback."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.errors import SpecError
from schemas.spec import yaml
from tasks.describing.formats import describe
from tasks.describing.writing import Choices, dataset_text

WORDS = """fields name type title description constraints enum required minimum maximum categories value label categoriesOrdered
missingValues trueValues falseValues primaryKey resources schema licenses contributors role dialect delimiter encoding path format
tables tableSchema columns titles datatype base null virtual url privacyUnit privacyId maxContributions publicLength keyValues
exhaustiveKeys partitions predicate lowerBound upperBound partitionValue minInclusive decimalChar properties items oneOf const $ref
$defs @value en""".split()
TYPES = ["string", "integer", "number", "boolean", "date", "time", "datetime", "year", "decimal", "array", "object", "null"]
LEAF = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-10, 10),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(TYPES),
)
VALUE = st.recursive(
    LEAF, lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(WORDS), part, max_size=4), max_leaves=12
)
ENTRY = st.dictionaries(st.sampled_from(WORDS), VALUE, max_size=6)
NAMED = st.tuples(st.text("abc", min_size=1, max_size=3), ENTRY).map(lambda pair: {**pair[1], "name": pair[0]})
DOCUMENTS = st.one_of(
    st.fixed_dictionaries({"fields": st.lists(NAMED | ENTRY, max_size=3)}, optional={word: VALUE for word in WORDS[1:13]}),
    st.fixed_dictionaries({"resources": st.lists(ENTRY, max_size=2)}, optional={"licenses": VALUE, "contributors": VALUE}),
    st.fixed_dictionaries(
        {
            "tableSchema": st.fixed_dictionaries(
                {"columns": st.lists(NAMED | ENTRY, max_size=3)}, optional={"primaryKey": VALUE, "null": VALUE}
            )
        },
        optional={"privacyUnit": VALUE, "maxContributions": VALUE, "publicLength": VALUE, "dialect": VALUE, "tables": VALUE},
    ),
    st.fixed_dictionaries(
        {"properties": st.dictionaries(st.text("ab", max_size=2), VALUE, max_size=3)},
        optional={"required": VALUE, "$defs": VALUE},
    ),
    ENTRY,
)


def read(path: Path) -> None:
    """A description, and a file from it that can be read again."""
    with suppress(SpecError):
        found = describe(path)
        yaml.parse(dataset_text(found, Choices("small", "people", "x.csv"), path.parent))


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(document=DOCUMENTS)
@pytest.mark.whole
def test_json_of_any_shape_is_described_or_refused(document: dict, tmp_path: Path):
    (tmp_path / "any.json").write_text(json.dumps(document))
    read(tmp_path / "any.json")


ELEMENTS = [
    "var",
    "labl",
    "catgry",
    "catValu",
    "valrng",
    "range",
    "invalrng",
    "item",
    "varFormat",
    "qstn",
    "fileDscr",
    "fileName",
    "caseQnty",
    "titl",
]
ATTRIBUTES = st.dictionaries(
    st.sampled_from(["name", "ID", "files", "intrvl", "nature", "dcml", "min", "max", "VALUE", "missing", "type", "category"]),
    st.text("a1.-9Y", max_size=4) | st.sampled_from(["contin", "ordinal", "date", "character"]),
    max_size=4,
)
ELEMENT = st.recursive(
    st.text("ab 1-9.", max_size=5).map(escape),
    lambda inner: st.tuples(st.sampled_from(ELEMENTS), ATTRIBUTES, st.lists(inner, max_size=3)).map(
        lambda part: (
            f"<{part[0]} {' '.join(f'{key}={quoteattr(value)}' for key, value in part[1].items())}>{''.join(part[2])}</{part[0]}>"
        )
    ),
    max_leaves=12,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(parts=st.lists(ELEMENT, max_size=4))
def test_xml_of_any_shape_is_described_or_refused(parts: list[str], tmp_path: Path):
    (tmp_path / "any.xml").write_text(f"<codeBook>{''.join(parts)}</codeBook>")
    read(tmp_path / "any.xml")


@pytest.mark.parametrize(
    "entity", ["<!DOCTYPE x [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]>", "<!DOCTYPE x SYSTEM 'http://127.0.0.1:9/x'>"]
)
def test_no_entity_is_expanded_and_no_address_is_opened(entity: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import socket

    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("reached for the network"))
    (tmp_path / "any.xml").write_text(f"{entity}<codeBook><var name='x'/></codeBook>")
    with pytest.raises(SpecError, match="document type"):
        describe(tmp_path / "any.xml")
