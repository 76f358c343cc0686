"""Attributes: the public categories or bins of one column, and what to do with missing and outside values."""

from __future__ import annotations

import datetime
import re
import unicodedata
from abc import abstractmethod
from collections import Counter
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from schemas.spec.reading import MOST_VALUES, NO_VALUES, Recode, Texts, day_format
from schemas.spec.yaml import Strict

MOST_CATEGORIES = 100_000
_NAME = re.compile(r"[^\W\d][^\"'`\\;]{0,127}")  # a letter of any alphabet, or _
_JOINERS = "\u200c\u200d"  # format characters that are part of writing, in Persian, Hindi or a family of emoji
EPOCH = datetime.date(1970, 1, 1)
READING = ("missing_values", "recode", "format")  # keys that say how files write an attribute, left out where not used


def _invisible(text: str) -> str | None:
    """A character that nobody sees and that changes what is read: a control, a mark of bytes or of direction, half a pair.

    >>> _invisible("no\ufeff"), _invisible("naïve 東京 می\u200cخواهم")
    ('\\ufeff', None)
    """
    kinds = ((character, unicodedata.category(character)) for character in text)
    return next((c for c, kind in kinds if kind in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in _JOINERS), None)


def _plain_label(label: Any) -> str:
    """Whole numbers and true or false are labels as files write them; what may be a formula is quoted where CSV is made."""
    if isinstance(label, bool | int):
        label = str(label).lower()
    if not isinstance(label, str):
        raise ValueError(f'a category is a text, a whole number, true or false; write "{label}" in quotes')
    if not label or label != label.strip() or len(label) > 200:
        raise ValueError(f"category {label!r} must be 1 to 200 printable characters without blanks at its ends")
    if (hidden := _invisible(label)) is not None:
        raise ValueError(f"category {label!r} holds a character that cannot be seen (U+{ord(hidden):04X}); write it without")
    return label


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise ValueError(f"must be a number, not {value!r}")
    return float(value)


def as_date(value: Any) -> datetime.date:
    try:
        return datetime.date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"must be a date written 2000-01-31, not {value!r}") from None


def _missing(policy: Any) -> Any:
    if policy not in ("forbid", "category"):
        raise ValueError(f'is forbid, category, or a list of values that mean missing such as [-9, "NA"]; not {policy!r}')
    return policy


Label = Annotated[str, BeforeValidator(_plain_label)]
Number = Annotated[float, BeforeValidator(_number)]
Date = Annotated[datetime.date, BeforeValidator(as_date)]


class _Attribute(Strict):
    name: str = Field(description="The column's name in the source and in the synthetic sets.")
    missing: Annotated[Literal["forbid", "category"], BeforeValidator(_missing)] = Field(
        default="forbid",
        description="A missing value fails validation (`forbid`), or is a category of its own (`category`); a list such as "
        '[-9, "NA"] says `category`, and which values mean missing.',
    )
    missing_values: Texts = Field(
        default=(),
        max_length=MOST_VALUES,
        description="Values that mean missing, besides empty ones: a list of texts or numbers.",
    )
    recode: Recode = Field(
        default=NO_VALUES,
        max_length=MOST_VALUES,
        description='What values of the file mean: {"1": male, "2": female}; null means missing. Others are read as they are.',
    )

    @model_validator(mode="before")
    @classmethod
    def _values_that_mean_missing(cls, asked: Any) -> Any:
        """`missing: [-9]` says two things: there is a category of missing values, and -9 is one of them."""
        if not isinstance(asked, dict) or not isinstance(asked.get("missing"), tuple | list):
            return asked
        if "missing_values" in asked:
            raise ValueError("missing lists values already; leave missing_values out")
        return asked | {"missing": "category", "missing_values": asked["missing"]}

    @model_serializer(mode="wrap")
    def _said(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What is read as it stands is written, and hashed, as before there were other ways."""
        return {name: value for name, value in plain(self).items() if name not in READING or value}

    def __hash__(self) -> int:
        """By all that can be hashed; what cannot, recode, is left to comparison."""
        return hash(tuple(getattr(self, name) for name in type(self).model_fields if name != "recode"))

    def _meanings(self) -> dict[str, str | None]:
        """What values of the file mean; None is missing. Each means one thing."""
        if both := [value for value in self.missing_values if value in self.recode]:
            raise ValueError(f"{self.name}: {both[0]!r} stands in recode and among the values that mean missing; keep one")
        meanings = self.recode | dict.fromkeys(self.missing_values)
        if self.missing == "forbid" and None in meanings.values():
            raise ValueError(f"{self.name}: values that mean missing need missing: category")
        return meanings

    def as_published(self) -> Self:
        """The attribute of synthetic records, which have nothing left to be read in another way."""
        plain = {name: type(self).model_fields[name].default for name in READING if name in type(self).model_fields}
        return self.model_copy(update=plain)

    @field_validator("name")
    @classmethod
    def _usable_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name) or name != name.strip() or _invisible(name) is not None:
            raise ValueError(
                f"{name!r} cannot name an attribute: begin with a letter; no quotes, semicolons, line breaks or "
                "characters that cannot be seen"
            )
        return name

    @property
    def binned(self) -> bool:
        """Whether a category stands for a range of values."""
        return False

    @property
    @abstractmethod
    def present(self) -> int:
        """The number of categories, the missing one left out."""

    @property
    @abstractmethod
    def present_labels(self) -> tuple[str, ...]:
        """One readable label per category that is not the missing one."""

    @cached_property
    def size(self) -> int:
        """The number of categories, the missing one included."""
        return self.present + (self.missing == "category")

    @property
    def missing_code(self) -> int | None:
        return self.present if self.missing == "category" else None

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One readable label per category code."""
        return (*self.present_labels, *(("(missing)",) if self.missing == "category" else ()))


class _Named(_Attribute):
    categories: tuple[Label, ...] = Field(
        min_length=1,
        max_length=MOST_CATEGORIES,
        description="Every label that may occur, as the data write it: a text, a whole number, `true` or `false`.",
    )

    @field_validator("categories")
    @classmethod
    def _distinct(cls, categories: tuple[str, ...]) -> tuple[str, ...]:
        often = Counter(categories)
        if len(often) < len(categories):
            twice = next(c for c in categories if often[c] > 1)
            raise ValueError(f"category {twice!r} stands twice; keep one")
        if alike := next((c for c in categories if f"'{c}" in often), None):
            raise ValueError(f"categories {alike!r} and {chr(39) + alike!r} may look alike in a spreadsheet; rename one")
        return categories

    @property
    def present(self) -> int:
        return len(self.categories)

    @property
    def present_labels(self) -> tuple[str, ...]:
        return self.categories

    @cached_property
    def code_of(self) -> dict[str, int]:
        """The code of each category."""
        return {category: code for code, category in enumerate(self.categories)}

    @cached_property
    def code_of_text(self) -> dict[str, int]:
        """The code of each text that a file may hold."""
        codes = {None: self.present, **self.code_of}
        return self.code_of | {text: codes[meant] for text, meant in self._meanings().items()}

    @model_validator(mode="after")
    def _readable(self) -> Self:
        for text, meant in self._meanings().items():
            if meant is not None and meant not in self.code_of:
                raise ValueError(f"{self.name}: recode makes {text!r} into {meant!r}, which is none of its categories")
            if meant is None and text in self.code_of:
                raise ValueError(f"{self.name}: {text!r} is a category and means missing; keep one")
        return self


class Categorical(_Named):
    kind: Literal["categorical"] = Field(description="Labels without an order.")


class Ordinal(_Named):
    kind: Literal["ordinal"] = Field(description="Labels in the order given.")


class _Ranged(_Attribute):
    """Values between two public bounds, in bins [edge_i, edge_i+1); the last bin holds the upper bound too."""

    outside: Literal["forbid", "clamp"] = Field(
        default="forbid",
        description="A value beyond the bounds fails validation (`forbid`), or counts as the nearest bound (`clamp`).",
    )
    bins: int | None = Field(
        default=None, ge=1, le=MOST_CATEGORIES, description="How many bins of equal width; or give `edges`, not both."
    )
    if TYPE_CHECKING:  # every kind has these, of its own values, and writes them after `kind`
        bounds: tuple[Any, Any]
        edges: tuple[Any, ...] | None

    @model_validator(mode="after")
    def _edges_or_bins(self) -> Self:
        low, high = self.bounds
        if not low <= high or (low == high and not isinstance(self, Integer)):
            raise ValueError(f"{self.name}: bounds must be [low, high] with low below high, not [{low}, {high}]")
        if self.edges is not None and self.bins is not None:
            raise ValueError(f"{self.name}: give bins or edges, not both")
        if self.edges is not None:
            if len(self.edges) < 2 or any(a >= b for a, b in zip(self.edges, self.edges[1:], strict=False)):
                raise ValueError(f"{self.name}: edges must increase from one to the next, and be at least two")
            if (self.edges[0], self.edges[-1]) != (low, high):
                raise ValueError(f"{self.name}: edges must begin and end with the bounds [{low}, {high}]")
        if self.present > MOST_CATEGORIES:
            raise ValueError(f"{self.name}: {self.present:,} categories; at most {MOST_CATEGORIES:,}. Give bins or edges")
        return self

    @cached_property
    def number_of_text(self) -> dict[str, float | None]:
        """The number that a text of a file stands for, where it is not the one it says; None: it is missing."""
        return {text: None if meant is None else self._within(meant) for text, meant in self._meanings().items()}

    @cached_property
    def number_of_number(self) -> dict[float, float | None]:
        """The same by the number that a text says, however it is written: -9 is -9.0."""
        return {number: meant for text, meant in self.number_of_text.items() if (number := self._number_in(text)) is not None}

    def _number_in(self, text: str) -> float | None:
        try:
            number = float(text)
        except ValueError:
            return None
        return number if abs(number) < 2**53 else None

    def _within(self, meant: str) -> float:
        low, high = self.edge_values[0], self.edge_values[-1] - (self.kind != "numeric")
        number = self._number_in(meant)
        if number is None or not low <= number <= high or (self.kind != "numeric" and number != int(number)):
            raise ValueError(f"{self.name}: recode makes a value into {meant!r}, which is none within its bounds")
        return number

    @model_validator(mode="after")
    def _readable(self) -> Self:
        assert self.number_of_number is not None  # each meaning is within the bounds
        return self

    @property
    def edge_values(self) -> np.ndarray:
        """Where the bins begin, and where the last one ends."""
        return _edges(self)

    @abstractmethod
    def _edge_values(self) -> np.ndarray: ...

    @property
    def present(self) -> int:
        return len(self.edge_values) - 1

    @cached_property
    def code_of(self) -> dict[float, int]:
        """The code of the bin that begins at each edge; at the last edge none begins, and its code is one past them."""
        return {edge: code for code, edge in enumerate(self.edge_values.tolist())}


@lru_cache(maxsize=4096)
def _edges(attribute: _Ranged) -> np.ndarray:
    return attribute._edge_values()  # not kept in the model: an array there would break comparison


class Numeric(_Ranged):
    kind: Literal["numeric"] = Field(description="Numbers, in bins: `bins` or `edges` is needed.")
    bounds: tuple[Number, Number] = Field(description="Lowest and highest value that may occur, from public knowledge.")
    edges: tuple[Number, ...] | None = Field(
        default=None, description="Where bins begin, and where the last one ends; the first and last are the bounds."
    )

    @model_validator(mode="after")
    def _bins_given(self) -> Self:
        if self.bins is None and self.edges is None:
            raise ValueError(f"{self.name}: a numeric attribute needs bins (a number of them) or edges")
        if len(set(self.edge_values.tolist())) < len(self.edge_values):
            raise ValueError(f"{self.name}: {self.bins} bins do not fit between the bounds; give fewer")
        return self

    @property
    def binned(self) -> bool:
        return True

    def _edge_values(self) -> np.ndarray:
        return np.array(self.edges) if self.edges else np.linspace(*self.bounds, (self.bins or 1) + 1)

    @property
    def present_labels(self) -> tuple[str, ...]:
        shown = [f"{edge:.12g}" for edge in self.edge_values]
        ends = [")"] * (len(shown) - 2) + ["]"]
        return tuple(f"[{a}, {b}{end}" for a, b, end in zip(shown, shown[1:], ends, strict=False))


class Integer(_Ranged):
    """Whole numbers; one category each unless bins or edges say otherwise. Edges are the first number of each bin."""

    kind: Literal["integer"] = Field(description="Whole numbers; one category each unless `bins` or `edges` is given.")
    bounds: tuple[int, int] = Field(description="Lowest and highest whole number that may occur, from public knowledge.")
    edges: tuple[int, ...] | None = Field(
        default=None, description="The first whole number of each bin, then the upper bound, which the last bin holds."
    )

    @field_validator("bounds", "edges")
    @classmethod
    def _representable(cls, numbers: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if numbers is not None and max(map(abs, numbers), default=0) > 2**53:
            raise ValueError("whole numbers beyond 2^53 are not supported")
        return numbers

    @model_validator(mode="after")
    def _few_enough(self) -> Self:
        numbers = self.bounds[1] - self.bounds[0] + 1
        if self.bins is not None and self.bins > numbers:
            raise ValueError(f"{self.name}: {self.bins} bins for {numbers} whole numbers; give fewer")
        return self

    @property
    def binned(self) -> bool:
        return bool(self.bins or self.edges)

    def _edge_values(self) -> np.ndarray:
        """First number of each bin, then one past the upper bound."""
        low, high = self.bounds
        if self.edges:
            return np.array([*self.edges[:-1], high + 1])
        count = self.bins or high - low + 1
        if count > MOST_CATEGORIES:
            return np.arange(MOST_CATEGORIES + 2)  # refused by _edges_or_bins, without allocating the range
        return low + (np.arange(count + 1) * (high + 1 - low)) // count

    @property
    def present_labels(self) -> tuple[str, ...]:
        first, last = self.edge_values[:-1].tolist(), (self.edge_values[1:] - 1).tolist()
        return tuple(str(a) if a == b else f"{a}–{b}" for a, b in zip(first, last, strict=True))


class DateAttribute(_Ranged):
    """Days; bins by number or by edges (the first day of each bin, the last edge being the upper bound)."""

    kind: Literal["date"] = Field(description="Days; one category each unless `bins` or `edges` is given.")
    bounds: tuple[Date, Date] = Field(description="First and last day that may occur, from public knowledge.")
    edges: tuple[Date, ...] | None = Field(
        default=None, description="The first day of each bin, then the upper bound, which the last bin holds."
    )
    format: Annotated[str, AfterValidator(day_format)] | None = Field(
        default=None, description="How text says a day, such as `%d.%m.%Y`; otherwise 2000-01-31. A time of day is dropped."
    )

    def _number_in(self, text: str) -> float | None:
        try:
            return float((datetime.date.fromisoformat(text) - EPOCH).days)
        except ValueError:
            return None

    @model_validator(mode="after")
    def _few_enough(self) -> Self:
        days = (self.bounds[1] - self.bounds[0]).days + 1
        if self.bins is not None and self.bins > days:
            raise ValueError(f"{self.name}: {self.bins} bins for {days} days; give fewer")
        return self

    @property
    def binned(self) -> bool:
        return bool(self.bins or self.edges)

    def _edge_values(self) -> np.ndarray:
        """Days since 1970-01-01: the first of each bin, then one past the upper bound."""
        low, high = ((bound - EPOCH).days for bound in self.bounds)
        if self.edges:
            return np.array([*((edge - EPOCH).days for edge in self.edges[:-1]), high + 1])
        count = self.bins or high - low + 1
        return low + (np.arange(count + 1) * (high + 1 - low)) // count

    @property
    def present_labels(self) -> tuple[str, ...]:
        days = [(EPOCH + datetime.timedelta(days=int(d))).isoformat() for d in self.edge_values[:-1]]
        ends = [(EPOCH + datetime.timedelta(days=int(d) - 1)).isoformat() for d in self.edge_values[1:]]
        return tuple(a if a == b else f"{a}…{b}" for a, b in zip(days, ends, strict=True))


Named = Categorical | Ordinal
Ranged = Integer | Numeric | DateAttribute
Attribute = Annotated[Named | Ranged, Field(discriminator="kind")]
