"""Written ε, ρ and δ: digits in, whole numbers or canonical digits out, and a clear refusal of everything else."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from schemas.amounts import SpecDelta, SpecRho, WrittenDelta
from schemas.budget import LARGEST, parse_delta, parse_nanos, show_nanos


@given(st.integers(1, LARGEST))
@pytest.mark.whole
def test_every_amount_reads_as_it_was_written(nanos: int):
    assert parse_nanos(show_nanos(nanos), "rho") == nanos == parse_nanos(Decimal(show_nanos(nanos)))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("0", "rho must be a positive number, not 0"),
        ("-0.5", "rho must be a positive number, not -0.5"),
        ("nan", "rho must be a positive number"),
        ("0.0000000001", "rho 0.0000000001 has more than 9 decimals"),
        ("1e-10", "rho 1e-10 has more than 9 decimals"),
        ("1000001", "rho 1000001 is larger than 1000000"),
        ("much", "rho must be a plain number such as 0.5, not 'much'"),
        (0.5, "rho must be written as a plain number such as 0.5, not float"),
        (True, "rho must be written as a plain number such as 0.5, not bool"),
    ],
)
def test_a_rho_that_cannot_be_is_refused_by_its_name(written: Any, said: str):
    with pytest.raises(ValueError, match=said):
        parse_nanos(written, "rho")


@given(
    st.decimals("1e-300", "0.999999999999999", allow_nan=False, allow_infinity=False).filter(lambda d: len(_digits(d)) <= 15)
)
@pytest.mark.whole
def test_a_delta_has_one_text_with_all_its_digits(delta: Decimal):
    written = parse_delta(delta)
    assert Decimal(written) == delta and parse_delta(written) == written == parse_delta(f"{delta:f}")
    assert TypeAdapter(WrittenDelta).validate_python(written) == written


def _digits(delta: Decimal) -> str:
    return "".join(map(str, delta.as_tuple().digits)).strip("0")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("0", "delta must be above 0, not 0: rho promises no epsilon at delta 0"),
        ("-1e-9", "delta must be above 0"),
        ("1", "delta must be below 1, not 1: it is a probability"),
        (2, "delta must be below 1"),
        ("9e-301", "delta must be at least 1E-300"),
        ("inf", "delta must be a positive number"),
        ("tiny", "delta must be a plain number such as 1e-9, not 'tiny'"),
        (1e-9, "delta must be written as a plain number such as 1e-9, not float"),
        ("0.1234567890123456", "has more than 15 digits"),
    ],
)
def test_a_delta_that_cannot_be_is_refused(written: Any, said: str):
    with pytest.raises(ValueError, match=said):
        parse_delta(written)


@pytest.mark.parametrize("kind", [SpecRho, SpecDelta])
def test_text_is_no_number_in_a_spec(kind: Any):
    with pytest.raises(ValidationError, match="remove the quotes"):
        TypeAdapter(kind).validate_python("0.1")


@pytest.mark.parametrize("text", ["1e-09", "1.0e-9", "0.1", "10e-9", "1E-9", "1e-9 ", "1e-1000"])
def test_a_document_writes_delta_in_one_way(text: str):
    with pytest.raises(ValidationError):
        TypeAdapter(WrittenDelta).validate_python(text)
