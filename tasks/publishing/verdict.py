"""What a release can and cannot answer, in words that follow from what was measured: published numbers alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steps_engine.methods.views import Margin, Pair, View

PRECISE, ROUGH = 0.05, 0.50  # half the 95 % interval of a category as a part of its own count
TRUST = ("precise", "rough", "mostly noise")
MOST_NAMED = 8


def trust(estimate: float, half: float) -> str:
    """How far one category's count can be trusted, by its own interval.

    >>> trust(1000, 40), trust(1000, 400), trust(10, 40), trust(-3, 0)
    ('precise', 'rough', 'mostly noise', 'mostly noise')
    """
    if estimate <= 0:
        return "precise" if estimate == half == 0 else "mostly noise"
    return "precise" if half <= PRECISE * estimate else "rough" if half <= ROUGH * estimate else "mostly noise"


def trusts(margin: Margin) -> list[str]:
    return [trust(float(count), float(half)) for count, half in zip(margin.estimate, margin.half, strict=True)]


def is_mostly_noise(margin: Margin) -> bool:
    """Whether categories that are mostly noise hold at least half of what was counted."""
    counted = [max(float(count), 0.0) for count in margin.estimate]
    lost = sum(count for count, word in zip(counted, trusts(margin), strict=True) if word == TRUST[-1])
    return 2 * lost >= sum(counted)


@dataclass(frozen=True)
class Relations:
    """Pairs of attributes by what is known of them."""

    pairs: int
    clear: int
    noise: int  # measured, and not to be told from noise
    unknown: int  # measured, and nothing is known of the error
    through: int
    independent: int

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> Relations:
        told = Counter(pair.told for pair in pairs)
        clear = sum(pair.clear for pair in pairs)
        unknown = sum(pair.told == "measured" and pair.strength is None for pair in pairs)
        measured = told["measured"]
        return cls(
            len(pairs), clear, measured - clear - unknown, unknown, told["through others"], told["independent"]
        )  # fmt: skip


def verdict(view: View, attributes: int) -> dict[str, Any]:
    """The sentences on top of a page, and what they count."""
    words = Counter(word for margin in view.margins for word in trusts(margin))
    noisy = [margin.attribute for margin in view.margins if is_mostly_noise(margin)]
    relations = Relations.of(view.pairs)
    return {
        "can": _can(attributes, len(view.margins) - len(noisy), words, relations),
        "cannot": [*_no_relations(relations), *_no_margins(attributes, view.margins, words)],
        "noisy": _named(noisy),
        "relations": relations,
    }


def _can(attributes: int, good: int, words: Counter[str], relations: Relations) -> str:
    if not good:
        shares = "This release can say next to nothing on how common categories are"
    else:
        of = "all" if good == attributes else f"{good} of {attributes}"
        one = attributes == 1
        shares = f"This release can say how common the categories of {'its attribute' if one else f'{of} attributes'} are"
        total = sum(words.values())
        parts = zip(TRUST, ("±\xa05\xa0%", "±\xa050\xa0%"), strict=False)
        known = [f"{words[word]:,} to within {part}" for word, part in parts if words[word]]
        shares += f" (of {total:,} categories {', '.join(known)} of their count)" if known else ""
    if not relations.clear:
        return f"{shares}."
    some = "all" if relations.clear == relations.pairs else f"{relations.clear:,} of {relations.pairs:,}"
    return f"{shares}, and how attributes go together in {some} pairs of them."


def _no_relations(found: Relations) -> list[str]:
    """Why pairs that are not clear cannot be asked about."""
    left = found.pairs - found.clear
    if not left:
        return []
    parts = (
        (found.noise, "measured, but not to be told from noise and chance"),
        (found.unknown, "measured with an error that is not known here"),
        (found.through, "told of by other attributes only"),
        (found.independent, "taken as independent"),
    )
    why = "; ".join(f"{number:,} {text}" for number, text in parts if number)
    if not found.clear:
        none = f"of {_pairs(found.pairs)} none is clear of noise and chance"
        return [f"It cannot say how attributes go together: {none} ({why})."]
    return [f"It cannot say how the attributes of the other {_pairs(left) if left > 1 else 'pair'} go together ({why})."]


def _pairs(number: int) -> str:
    return f"{number:,} pair{'' if number == 1 else 's'}"


def _no_margins(attributes: int, margins: Sequence[Margin], words: Counter[str]) -> list[str]:
    found = []
    if lost := words[TRUST[-1]]:
        found.append(
            f"It cannot say how common {lost:,} of {sum(words.values()):,} categories are: their counts are mostly noise."
        )
    if (unknown := attributes - len(margins)) > 0:
        found.append(f"Of {unknown:,} attribute{'' if unknown == 1 else 's'} it has no count with a known error.")
    return found


def _named(names: Sequence[str]) -> list[str]:
    """
    >>> _named([str(i) for i in range(10)])[-1]
    'and 2 more'
    """
    more = len(names) - MOST_NAMED
    return [*names[:MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]
