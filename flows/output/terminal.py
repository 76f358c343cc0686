"""What the commands print for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.output import lifetimes
from flows.output.figures import percent
from steps_engine.accounting.measures import MEASURES, PURE, ZCDP

_console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160)


MOST_PROBLEMS = 20  # shown in a terminal


def _table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(Text(column), justify="right" if column in right else "left", overflow="fold")
    return table


def _say(*lines: str) -> None:
    for line in lines:
        _console.print(line, markup=False)


def say(*lines: str) -> None:
    """Lines as they are: what a name holds is never read as markup."""
    _say(*lines)


def shown_table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: tuple[str, ...] = ()) -> None:
    table = _table(*columns, right=right)
    for row in rows:
        _row(table, *row)
    _console.print(table)


def _row(table: Table, *cells: str) -> None:
    """A row whose cells are shown as they are: `[/x]` in a name is no markup."""
    table.add_row(*(Text(cell) for cell in cells))


def _time(at: str) -> str:
    return at[:16].replace("T", " ")


def plan(answer: dict[str, Any]) -> None:
    """Line by line what will be drawn, then what it costs."""
    sketch = answer["sketch"]
    symbol = MEASURES[answer["measure"]].symbol
    noise = "noise scale" if answer["rho"] is None else "noise σ"
    numbers = (sketch["row"], "nodes", f"share of {symbol}", noise, "expected error")
    table = _table(numbers[0], sketch["splits"], *numbers[1:], right=numbers)
    for row in sketch["rows"]:
        scale = "" if row["scale"] is None else f"{row['scale']:,.4g}"
        error = f"± {row['expected_error']:,.4g}"
        _row(table, str(row["number"]), row["what"], row["nodes"], row["share"], scale, error)
    _say(f"{answer['release']}: {answer['cells']:,} cells, {answer['sets']} synthetic set(s), {answer['decomposition']}")
    _console.print(table)
    for each in sorted(answer["considered"], key=lambda each: each["predicted_error"]):
        chosen = "chosen" if each["decomposition"] == answer["decomposition"] else "not chosen"
        error = f"misplaces about {percent(each['predicted_error'])} of rows ({each['why']})"
        _say(f"auto      {each['decomposition']}: {error}; {chosen}")
    _say(*sketch["remarks"], *(f"note      {remark}" for remark in answer.get("remarks", ())))
    _say(*(_analysis(each, symbol) for each in answer.get("analyses", ())))
    cost = f"{symbol} = {answer['rho'] or answer['epsilon']} for each {answer['unit']}"
    _say(f"cost      {cost}   (population {answer['population']}: {_left(answer)})", *_meaning(answer))
    _say(*(f"lifetime  {line}" for line in lifetimes.lines([answer])), _source(answer["source"]))
    takes = f"{answer['memory_bytes'] / 2**20:,.0f} MiB, about {answer['seconds']:,.0f} s for the whole run on one quiet core"
    _say(f"estimate  {takes}   plan {answer['hash'][:16]}")


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
        needed = f"ρ = {answer['rho_needed']} (ε = {_up(answer['epsilon_needed'])} at δ = {answer['delta']})"
    _say(f"{answer['wanted']}: {needed} is needed; {_expected(answer)}")


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
        "promises  " + ", ".join(f"ε = {_up(promise['epsilon'])} at δ = {promise['delta']}" for promise in told),
        f"pure      as much noise would cost about ε = {same:,.3g} without δ{dear}",
    ]


def _up(epsilon: str) -> str:
    """With three decimals, rounded up."""
    return f"{Decimal(epsilon).quantize(Decimal('0.001'), ROUND_CEILING).normalize():f}"


def _charge(answer: dict[str, Any]) -> str:
    if "rho" not in answer:
        return f"ε = {answer['epsilon']} charged"
    at = f" at δ = {answer['delta']}" if "delta" in answer else ""
    return f"ρ = {answer['rho']} charged for ε = {_up(answer['epsilon'])}{at}"


def outcome(answer: dict[str, Any]) -> None:
    charged = (
        f"{_charge(answer)} for each {answer['unit']}" if answer["charged"] else "nothing charged: this release existed already"
    )
    page = f"{answer['evaluation']}   (confidential: keep it inside)" if answer["evaluation"] else "not here; no backup has it"
    _say(
        f"released    {answer['release']}",
        f"budget      {charged}; {answer['balance']} left for {answer['population']}",
        f"bundle      {answer['folder']}",
        f"page        {answer['page']}",
        f"evaluation  {page}",
    )
    if "taken_back" in answer:
        _say(f"note        it was {answer['taken_back']}: {answer['folder']}/notice.html")
    if answer["charges"] > 1:
        _say(f"note        charged {answer['charges']} times: an earlier charge was burnt, its sealed draws being lost")


def account(answer: dict[str, Any]) -> None:
    accounts({"accounts": [answer]})
    if (found := answer.get("found")) is not None:
        _say(
            f"nothing was added: entry {found['seq']} of {_time(found['at'])} granted the same, for the same reason. A second "
            "equal grant has another reason (--why), or a key of its own (--key NAME)"
        )


def anchored(answer: dict[str, Any]) -> None:
    state = "begins" if answer["new"] else "lacks nothing; it stays as it is, and ends"
    _say(f"{answer['anchor']} {state} at entry {answer['entry']}")


def migrated(answer: dict[str, Any]) -> None:
    old, new = answer["from"], answer["to"]
    _say(
        f"{answer['ledger']}: its tables " + (f"were format {old} and are {new}" if old < new else f"are format {new} already")
    )


def accounts(answer: dict[str, Any]) -> None:
    amounts = ("granted", "charged", "balance")
    table = _table("population", *amounts, "neighbours", "unit", "in", right=amounts)
    for each in answer["accounts"]:
        shown = (_with_epsilon(each, name) for name in amounts)
        _row(table, each["population"], *shown, each["neighbours"], each["unit"], _measured(each))
    _console.print(table if answer["accounts"] else "no grants yet")
    _say(*lifetimes.lines(answer["accounts"]))


def _with_epsilon(account: dict[str, Any], name: str) -> str:
    """ρ with the ε that it is at the account's δ, rounded up."""
    if account["measure"] == "pure":
        return str(account[name])
    return f"{account[name]} (ε {_up(account[f'{name}_epsilon'])})"


def _measured(account: dict[str, Any]) -> str:
    return PURE.symbol if account["measure"] == "pure" else f"{ZCDP.symbol} (ε at δ = {account['delta']})"


def entries(answer: dict[str, Any]) -> None:
    numbers = ("seq", "amount", "balance")
    table = _table("seq", "at", "who", "what", "population", "release", "amount", "balance", "in", "hash", right=numbers)
    for each in answer["entries"]:
        what = f"{each['kind']} {each['details'].get('stage', '')}".strip()
        amount, symbol = each["epsilon"] or each["rho"], MEASURES[each["measure"]].symbol if each["population"] else ""
        cells = (each["population"], each["release"], amount, each["balance_after"], symbol, each["hash"][:12])
        _row(table, str(each["seq"]), _time(each["at"]), each["actor"], what, *(cell or "" for cell in cells))
    _console.print(table if answer["entries"] else "the ledger is empty")


def releases(answer: dict[str, Any]) -> None:
    table = _table("release", "state", "charged", "population", "by", "at", "approved by", right=("charged",))
    for each in answer["releases"]:
        place = (each["population"], each["actor"], _time(each["at"]), each["approver"] or "")
        _row(table, each["release"], each["state"], _charged(each), *place)
    _console.print(table if answer["releases"] else "no releases yet")


def _charged(answer: dict[str, Any]) -> str:
    return f"{MEASURES[answer['measure']].symbol} = {answer['charged']}"


def trail(answer: dict[str, Any]) -> None:
    _say(
        f"{answer['release']}: {answer['state']}, {_charged(answer)} for each {answer['unit']} of {answer['population']}",
        *answer["notices"],
    )
    if answer["folder"]:
        _say(f"bundle {answer['folder']}")
    for name, digest in answer["hashes"].items():
        _say(f"  {name:<18} {digest}")
    entries({"entries": answer["trail"]})
    context = next((e["details"].get("context") for e in answer["trail"] if e["kind"] == "charge"), None) or {}
    for name, value in context.items():
        _say(f"  {name:<18} {value}")


def findings(answer: dict[str, Any]) -> None:
    for note in answer["notes"]:
        _say(f"note: {note}")
    for problem in answer["problems"][:MOST_PROBLEMS]:
        _say(f"problem: {problem}")
    if (more := len(answer["problems"]) - MOST_PROBLEMS) > 0:
        _say(f"… and {more:,} more; --json lists all of them")
    _say("everything holds" if answer["ok"] else f"{len(answer['problems'])} problem(s): this must not be relied on")


def verdict(answer: dict[str, Any]) -> None:
    """What the bundle says it is, what could be tested, the findings, and last of all whose word that is."""
    from tasks.verify.signature import NOT_ESTABLISHED

    if (told := answer["bundle"]) is not None:
        _say(f"{told['release']} · {told['population']} · {told['guarantee']} · {told['made_at']}", f"key {told['key']}")
    if (noise := answer["noise"]) is not None:
        _say(_tested(noise))
    if answer["recomputed"] is None and told is not None:
        _say("rows: whether each follows from the noisy counts was not tried; --recompute does")
    if (again := answer["recomputed"]) is not None:
        files = again["files"].values()
        _say(again["why_not"] or f"recomputed: {sum(files)} of {len(files)} files follow from the noisy counts")
        if again["otherwise"]:
            _say(f"another version wrote these, and this one would in other words: {', '.join(again['otherwise'])}")
    unsigned = [note for note in answer["notes"] if answer["ok"] and note.endswith(NOT_ESTABLISHED)]
    findings(answer | {"notes": [note for note in answer["notes"] if note not in unsigned]})
    if unsigned:
        _say("who signed is not established: give the publisher's --key")


def _tested(noise: dict[str, Any]) -> str:
    """Noise can be tested where something was measured more than once."""
    untested = noise["untested"]
    once = f"measured once, so that its noise cannot be tested: {', '.join(untested[:5])}" + (" …" if len(untested) > 5 else "")
    if not noise["contrasts"]:
        return "noise: nothing was measured more than once; whether it is as large as the plan says cannot be tested"
    return f"noise: {noise['contrasts']:,} contrasts of noise alone were tested" + (f"; {once}" if untested else "")


def decision(answer: dict[str, Any]) -> None:
    _say(f"{answer['release']} is {answer['state']}", *(answer[name] for name in ("next", "note") if answer.get(name)))


def written(answer: dict[str, Any]) -> None:
    _say(f"{answer['path']}: {answer['rows']:,} rows × {answer['columns']} columns (seed {answer['seed']})")
