"""What `steps plan` prints for people: line by line what will be drawn, then what it costs and what to expect."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flows.output import lifetimes
from flows.output.figures import percent, up
from flows.output.terminal import say, shown_table
from schemas.counted import counted, many
from steps_engine.accounting.measures import MEASURES


def plan(answer: dict[str, Any]) -> None:
    """Line by line what will be drawn, then what it costs."""
    sketch = answer["sketch"]
    symbol = MEASURES[answer["measure"]].symbol
    noise = "noise scale" if answer["rho"] is None else "noise σ"
    numbers = (sketch["row"], "nodes", f"share of {symbol}", noise, "expected error")
    cells, sets = f"{many(answer['cells'])} cells", counted(answer["sets"], "synthetic set")
    say(f"{answer['release']}: {cells}, {sets}, {answer['decomposition']}")
    shown_table((numbers[0], sketch["splits"], *numbers[1:]), map(_drawn, sketch["rows"]), right=numbers)
    say(*_elections(answer, symbol))
    for each in sorted(answer["considered"], key=lambda each: each["predicted_error"]):
        chosen = "chosen" if each["decomposition"] == answer["decomposition"] else "not chosen"
        share = percent(each["predicted_error"])
        error = f"misplaces about {share} of rows ({each['why']})"
        say(f"auto      {each['decomposition']}: {error}; {chosen}")
    say(*sketch["remarks"], *(_analysis(each, symbol) for each in answer.get("analyses", ())))
    say(*_notes(answer))
    cost = f"{symbol} = {answer['rho'] or answer['epsilon']} for each {answer['unit']}"
    say(f"cost      {cost}   (population {answer['population']}: {_left(answer)})", *_meaning(answer))
    say(*[f"budget    does not cover this: {answer['why_not_covered']}"] * (not answer["covered"]))
    say(*(f"lifetime  {line}" for line in lifetimes.lines([answer])), _source(answer["source"]))
    takes = f"{answer['memory_bytes'] / 2**20:,.0f} MiB, about {answer['seconds']:,.0f} s for the whole run on one quiet core"
    say(f"estimate  {takes}   plan {answer['hash'][:16]}")


def _drawn(row: dict[str, Any]) -> tuple[str, ...]:
    scale = "" if row["scale"] is None else f"{row['scale']:,.4g}"
    return str(row["number"]), row["what"], row["nodes"], row["share"], scale, f"± {row['expected_error']:,.4g}"


def _elections(answer: dict[str, Any], symbol: str) -> list[str]:
    """What choosing the structure costs: that part of the budget which none of the lines above has."""
    price = "epsilon" if answer["rho"] is None else "rho"
    paid = sum(Fraction(draw[price]) for draw in answer["draws"] if draw["kind"] == "election")
    return [f"elections {percent(float(paid / Fraction(answer[price])))} of {symbol}, to choose what is measured"] * (paid > 0)


def _source(found: dict[str, Any]) -> str:
    """What would be read, or why it cannot be."""
    if not found["problems"]:
        return f"source    {found['words']}; its columns fit"
    return f"source    {'; '.join(filter(None, [found['words'], *found['problems']]))}"


def _analysis(each: dict[str, Any], symbol: str) -> str:
    """One line on an analysis that the release names."""
    share = f"{percent(float(Fraction(each['share'])))} of {symbol}"
    if not each["measured"]:
        lacking = "; ".join(" × ".join(table["of"]) for table in each["needs"] if not table["measured"])
        return f"analysis  {each['name']}: not measured ({lacking})"
    return f"analysis  {each['name']}: {share}; {_expected(each)}"


def _expected(each: dict[str, Any]) -> str:
    """How far a 95% interval is expected to reach, and for what: nothing is known of frequencies before data."""
    if each["expected_width"] is None:
        return "measured; what to expect depends on expected_rows, which the dataset lacks"
    if each["kind"] == "table":
        of = "persons" if each.get("rows_of") else "rows"
        return f"± {100 * each['expected_width']:.3g}% of all {of} expected in an average cell"
    supposed = (
        "if categories are equally frequent but where the dataset says what is `expected`, else up to 5 times as far for one "
        "that 5% of the rows have"
    )
    return f"± {each['expected_width']:.3g} expected in the widest coefficient ({each['kind']}) {supposed}"


def wanted(answer: dict[str, Any]) -> None:
    """In one line: the budget, and what it buys."""
    needed = f"ε = {answer['epsilon_needed']}"
    if answer["rho_needed"]:
        needed = f"ρ = {answer['rho_needed']} (ε = {up(answer['epsilon_needed'])} at δ = {answer['delta']})"
    say(f"{answer['wanted']}: {needed} is needed; {_expected(answer)}", *_notes(answer))


def _notes(answer: dict[str, Any]) -> list[str]:
    return [f"note      {remark}" for remark in answer.get("remarks", ())]


def _left(answer: dict[str, Any]) -> str:
    """What is left of the population's budget, and where it is kept in another measure than the plan's, what that means."""
    if answer["balance"] is None:
        return "no grant yet"
    if answer["balance_measure"] == answer["measure"]:
        return f"{answer['balance']} left"
    left = f"{MEASURES[answer['balance_measure']].symbol} = {answer['balance']} left"
    return f"{left}, from which ρ cannot be paid" if answer["charge"] is None else f"{left}, charged as ρ = {answer['charge']}"


def _meaning(answer: dict[str, Any]) -> list[str]:
    """Of ρ: the ε that it promises at its own δ and at others, and what as much noise would cost without δ."""
    if answer["rho"] is None:
        return []
    told = sorted(answer["promises"], key=lambda promise: bool(promise["delta"] != answer["delta"]))
    same = answer["pure_epsilon_of_same_noise"]
    dear = "" if same > float(answer["epsilon"]) else ": pure epsilon is cheaper here"
    return [
        "promises  " + ", ".join(f"ε = {up(promise['epsilon'])} at δ = {promise['delta']}" for promise in told),
        f"pure      as much noise would cost about ε = {same:,.3g} without δ{dear}",
    ]
