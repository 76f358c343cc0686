"""The methods of the studies: how each makes m synthetic frames from an original. A new method is one more entry.

Every private method draws through noise.py with the exact number of rows published beside it (`total: invariant`): the
paper takes n as public, so each synthetic set has n rows. Its ε is pure, or under zero-concentrated privacy the one at δ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import pandas as pd

from schemas.budget import parse_delta
from schemas.errors import SpecError
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from schemas.spec.release import Release, ReleaseSpec, check_names
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.domain.encoding import encode
from steps_engine.methods.registry import METHODS
from steps_engine.methods.run_in_memory import run
from steps_engine.methods.tree.correct import ConsistentCounts, correct
from steps_engine.methods.tree.method import TREE
from steps_engine.noise import Randomness, integers_below
from steps_engine.studies.printed import correct_as_printed

Kind = Literal["release", "projected", "printed", "bootstrap", "original"]
_UNDER_ZCDP = "-zcdp-"  # between a method's name and its δ


@dataclass(frozen=True, repr=False)
class Original:
    """The records of a study, which anybody may see."""

    domain: Domain
    frame: pd.DataFrame
    analyses: tuple[dict[str, str], ...] = ()  # what is asked of them, as release.yaml says it

    @cached_property
    def codes(self) -> np.ndarray:
        return encode(self.frame, self.domain)

    @cached_property
    def counts(self) -> Counts:
        return count_codes(self.codes)


@dataclass(frozen=True)
class StudyMethod:
    """A name, what makes its sets (`kind`), and with which settings."""

    name: str
    title: str
    kind: Kind
    settings: dict[str, Any] = field(default_factory=dict)
    delta: str = ""  # of zero-concentrated privacy; empty: pure, or none
    declared: bool = False  # whether its releases name the study's analyses

    @property
    def definition(self) -> dict[str, Any]:
        """What decides its figures: part of the identity of a grid point."""
        said: dict[str, Any] = {"kind": self.kind, "settings": self.settings}
        said |= {"declared": True} if self.declared else {}
        return {**said, "delta": self.delta} if self.delta else said

    @property
    def spends(self) -> bool:
        """Whether ε matters to it."""
        return self.kind not in ("bootstrap", "original")

    @property
    def has_currencies(self) -> bool:
        """Whether it is drawn in either measure: the printed equations are those of the paper, with its noise."""
        return self.kind in ("release", "projected")

    @property
    def base(self) -> str:
        """The name without its measure."""
        return self.name.partition(_UNDER_ZCDP)[0]

    @property
    def combining(self) -> Literal["split", "shared"]:
        budget: Literal["split", "shared"] = self.settings.get("sets", {}).get("budget", "split")
        return budget


def draw_sets(method: StudyMethod, original: Original, epsilon: str, sets: int, randomness: Randomness) -> list[pd.DataFrame]:
    """m synthetic frames."""
    return _KINDS[method.kind](method, original, epsilon, sets, randomness)


def _released_sets(
    method: StudyMethod, original: Original, epsilon: str, sets: int, randomness: Randomness
) -> list[pd.DataFrame]:
    """What `steps run` would release, from plan to records; some kinds exchange a tree's correction."""
    exchanged = replace(TREE, correction=_CORRECTIONS[method.kind]) if method.kind in _CORRECTIONS else None
    return list(run(asked_release(method, original, epsilon, sets), original.counts, randomness, exchanged).frames)


def asked_release(method: StudyMethod, original: Original, epsilon: str, sets: int) -> Release:
    """What the method would ask of `steps run`."""
    settings = {**method.settings, "sets": {**method.settings.get("sets", {}), "count": sets}}
    privacy: dict[str, Any] = {"epsilon": Decimal(epsilon), "total": "invariant"}
    privacy |= {"delta": Decimal(method.delta)} if method.delta else {}
    asked = {"name": "study", "dataset": "-", "source": "-", "privacy": privacy, "method": method_spec(**settings)}
    asked |= {"analyses": original.analyses} if method.declared else {}
    spec = ReleaseSpec.model_validate(asked)
    check_names(spec, original.domain)
    return Release(spec=spec, domain=original.domain, folder=".")


def _bootstrap(
    _method: StudyMethod, original: Original, _epsilon: str, sets: int, randomness: Randomness
) -> list[pd.DataFrame]:
    """Another sample of the same people: what no private method can be expected to beat."""
    rows = len(original.frame)
    return [original.frame.iloc[integers_below(rows, rows, randomness)].reset_index(drop=True) for _ in range(sets)]


def _original(_method: StudyMethod, original: Original, _epsilon: str, _sets: int, _source: Randomness) -> list[pd.DataFrame]:
    return [original.frame]


_CORRECTIONS: dict[str, Callable[..., ConsistentCounts]] = {
    "projected": partial(correct, likely=False),
    "printed": correct_as_printed,
}
_KINDS: dict[str, Callable[..., list[pd.DataFrame]]] = {
    "release": _released_sets,
    "projected": _released_sets,
    "printed": _released_sets,
    "bootstrap": _bootstrap,
    "original": _original,
}


def named(*methods: StudyMethod) -> dict[str, StudyMethod]:
    return {method.name: method for method in methods}


def known(listed: dict[str, StudyMethod]) -> dict[str, StudyMethod]:
    """The methods that a study lists, then every other registered one that can be asked for by its name alone."""
    others = (name for name in METHODS if name not in listed and _needs_no_options(name))
    return listed | {name: StudyMethod(name, name, "release", {"decomposition": name}) for name in others}


def _needs_no_options(name: str) -> bool:
    try:
        method_spec(name)
    except ValueError:
        return False
    return True


def under_zcdp(method: StudyMethod, delta: str) -> StudyMethod:
    """The same method, its draws paid by the largest ρ that promises (ε, δ)."""
    title = f"{method.name}, zCDP at δ = {delta}"
    return replace(method, name=f"{method.name}{_UNDER_ZCDP}{delta}", title=title, delta=delta)


def find_method(listed: dict[str, StudyMethod], name: str) -> StudyMethod:
    """The method of that name; NAME-zcdp-DELTA is NAME under zero-concentrated privacy.

    >>> find_method(VOTER, "cascade-zcdp-0.000000001").name
    'cascade-zcdp-1e-9'
    """
    base, marked, delta = name.partition(_UNDER_ZCDP)
    method = known(listed).get(base)
    if method is None:
        raise SpecError(f"there is no method {name!r} in this study; it has {', '.join(known(listed))}.")
    if not marked:
        return method
    if not method.has_currencies:
        raise SpecError(f"{name!r} is asked; {base} is not drawn under zero-concentrated privacy. Ask for {base}.")
    try:
        return under_zcdp(method, parse_delta(delta))
    except ValueError as error:
        raise SpecError(f"method {name!r}: {error}.") from None


def find_methods(listed: dict[str, StudyMethod], asked: Sequence[str], deltas: Sequence[str] = ()) -> tuple[StudyMethod, ...]:
    """The methods of these names in the study's order, each followed by itself under zero-concentrated privacy at each δ."""
    found = [find_method(listed, name) for name in asked]
    more = [under_zcdp(method, delta) for method in found if method.has_currencies and not method.delta for delta in deltas]
    place = {name: number for number, name in enumerate(known(listed))}
    each = named(*found, *more).values()
    return tuple(sorted(each, key=lambda method: (place[method.base], float(method.delta or 0))))


def _tree(name: str, title: str, *order: Any, kind: Kind = "release") -> StudyMethod:
    return StudyMethod(name, title, kind, {"decomposition": "tree", "order": order})


def _shared(method: StudyMethod) -> StudyMethod:
    """The same method with one measurement at all of ε, from which the m sets are drawn."""
    settings = {**method.settings, "sets": {"budget": "shared"}}
    return replace(method, name=f"{method.name}-shared", title=f"{method.title}, shared", settings=settings)


def _uh(name: str, title: str, layers: int) -> StudyMethod:
    return StudyMethod(name, title, "release", {"decomposition": "uh", "layers": layers})


BOOTSTRAP = StudyMethod("bootstrap", "another sample (not private)", "bootstrap")
ORIGINAL = StudyMethod("original", "the sample itself (not private)", "original")

FLAT = StudyMethod("flat", "flat Laplace", "projected", {"decomposition": "flat"})
LIKELY = StudyMethod("flat-likely", "flat, likely cells", "release", {"decomposition": "flat"})
CASCADE = StudyMethod("cascade", "cascade", "release", {"decomposition": "cascade"})  # the order is the plan's own
AUTO = StudyMethod("auto", "auto, shared", "release", {"decomposition": "auto", "sets": {"budget": "shared"}})
_PAIRS: dict[str, Any] = {"decomposition": "pairs", "sets": {"budget": "shared"}}  # split sets hide what shrinking does
PAIRS = StudyMethod("pairs", "pairs, model declared, shared", "release", _PAIRS, declared=True)
PAIRS_UNDECLARED = StudyMethod("pairs-undeclared", "pairs, nothing declared, shared", "release", _PAIRS)
PRIVBAYES = StudyMethod("privbayes", "PrivBayes", "release", {"decomposition": "privbayes"})  # degree 2, ε in halves
STEPS_2 = _tree("steps-2", "STEPS-2", "voted", "college")
STEPS = _tree("steps", "STEPS (L=2)", ("x1", "x2", "x4"), ("x3", "y"))

VOTER = named(
    FLAT,
    PRIVBAYES,
    _uh("uh-2", "UH modified-2", 2),
    _uh("uh-3", "UH modified-3", 3),
    STEPS_2,
    _tree("steps-3", "STEPS-3", "voted", "college", "prereg_state"),
    StudyMethod("flat-printed", "flat Laplace, negatives cut", "printed", {"decomposition": "flat"}),
    _tree("steps-2-printed", "STEPS-2 as printed", "voted", "college", kind="printed"),
    _tree("steps-3-printed", "STEPS-3 as printed", "voted", "college", "prereg_state", kind="printed"),
    LIKELY,
    _shared(FLAT),
    _shared(STEPS_2),
    CASCADE,
    _shared(CASCADE),
    PAIRS,
    PAIRS_UNDECLARED,
    AUTO,
    BOOTSTRAP,
)
SIMULATION = named(
    STEPS,
    PRIVBAYES,
    StudyMethod(
        "steps-elected", "STEPS (L=2), groups elected", "release",
        {"decomposition": "tree", "elect": {"utility": "aic", "share": 0.1, "layers": 2, "what": "groups"}},
    ),
    _uh("uh-4", "UH modified (L=4)", 4),
    _tree("steps-printed", "STEPS as printed", ("x1", "x2", "x4"), ("x3", "y"), kind="printed"),
    _shared(STEPS),
    CASCADE,
    _shared(CASCADE),
    PAIRS,
    PAIRS_UNDECLARED,
    AUTO,
    ORIGINAL,
)  # fmt: skip
