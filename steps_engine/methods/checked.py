"""What the check of a method's published tables hands over, and how it collects what it finds.

Tables may come from anybody: whatever goes wrong while one is checked is a finding in the list, not an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from schemas.errors import StepsError
from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.inference.noise_test import NoiseTest

T = TypeVar("T")

Finding = tuple[str, str]  # where, and a sentence
Ends = Mapping[str | None, frozenset[int]]  # of every tree (None: the only one) the layers at which a branch ends
Cells = Callable[[int], tuple[np.ndarray, np.ndarray]]  # of a set: the cells that may have rows, increasing, and how many

Rows = Callable[[int], tuple[float, float]]  # of a set: the number of rows that noisy counts tell, and its standard error


@dataclass(frozen=True)
class Checked:
    """What a method's tables were found to be. `ends`, `cells` and `rows` are None where no sound table says them."""

    findings: tuple[Finding, ...]
    ends: Ends | None = None
    cells: Cells | None = None
    rows: Rows | None = None
    noise: NoiseTest | None = None  # what was measured more than once, against the noise that it should have


class TableCheck(Protocol):
    """How a method's tables are checked. Stages whose file is missing or broken are not among `tables`."""

    def schemas(self, plan: Plan) -> dict[str, pa.Schema]: ...

    def check(self, domain: Domain, plan: Plan, tables: Mapping[str, pa.Table]) -> Checked: ...


@dataclass(frozen=True)
class Findings:
    """What was found so far, and where."""

    found: list[Finding] = field(default_factory=list)

    def add(self, place: str, sentence: str) -> None:
        self.found.append((place, printable(sentence)))

    def attempt(self, place: str, function: Callable[..., T], *arguments: Any) -> T | None:
        """The function's value; None, and a finding, when it fails."""
        try:
            return function(*arguments)
        except ValidationError as error:
            places = sorted({".".join(str(part) for part in e["loc"][:2]) for e in error.errors(include_input=False)})
            self.add(place, f"does not have the form of this format: {', '.join(places[:3])}")
        except (StepsError, ValueError) as error:
            self.add(place, str(error))
        except Exception as error:  # a hostile table can fail in any way; each of them is a finding, none a crash
            self.add(place, f"cannot be checked ({type(error).__name__})")
        return None

    def collect(self, place: str, check: Callable[..., Iterable[str]], *arguments: Any) -> bool:
        """Adds every sentence that a check yields; whether there was none."""
        before = len(self.found)
        for sentence in self.attempt(place, lambda: list(check(*arguments))) or ():
            self.add(place, sentence)
        return len(self.found) == before

    def tested(self, place: str, test: Callable[..., NoiseTest], *arguments: Any) -> NoiseTest | None:
        """What a test of the noise found; its problems are added."""
        result = self.attempt(place, test, *arguments)
        for sentence in result.problems if result is not None else ():
            self.add(place, sentence)
        return result


def printable(text: str) -> str:
    """Text from a stranger, safe for a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)[:300]
