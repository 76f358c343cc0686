"""What the commands print for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.output import lifetimes
from flows.output.figures import up
from schemas.counted import counted
from schemas.visible import visible
from steps_engine.accounting.measures import MEASURES, PURE, ZCDP

_console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160)


MOST_PROBLEMS = 20  # shown in a terminal


def _table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(Text(visible(column)), justify="right" if column in right else "left", overflow="fold")
    return table


def _say(*lines: str) -> None:
    for line in lines:
        _console.print(visible(line), markup=False)


def say(*lines: str) -> None:
    """Lines as they are: what a name holds is never read as markup, nor as a control of the terminal."""
    _say(*lines)


def shown_table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: tuple[str, ...] = ()) -> None:
    table = _table(*columns, right=right)
    for row in rows:
        _row(table, *row)
    _console.print(table)


def _row(table: Table, *cells: str) -> None:
    """A row whose cells are shown as they are: `[/x]` in a name is no markup."""
    table.add_row(*(Text(visible(cell)) for cell in cells))


def _time(at: str) -> str:
    return at[:16].replace("T", " ")


def _charge(answer: dict[str, Any]) -> str:
    if "rho" not in answer:
        return f"ε = {answer['epsilon']} charged"
    at = f" at δ = {answer['delta']}" if "delta" in answer else ""
    return f"ρ = {answer['rho']} charged for ε = {up(answer['epsilon'])}{at}"


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
    return f"{account[name]} (ε {up(account[f'{name}_epsilon'])})"


def _measured(account: dict[str, Any]) -> str:
    return PURE.symbol if account["measure"] == "pure" else f"{ZCDP.symbol} (ε at δ = {account['delta']})"


def entries(answer: dict[str, Any]) -> None:
    numbers = ("seq", "amount", "balance")
    table = _table("seq", "at", "who", "what", "population", "release", "amount", "balance", "in", "hash", right=numbers)
    for each in answer["entries"]:
        what = f"{each['kind']} {each['details'].get('stage', '')}".strip()
        amount, symbol = each["epsilon"] or each["rho"], MEASURES[each["measure"]].symbol if each["population"] else ""
        cells = (each["population"], each["release"], amount, each["balance_after"], symbol, each["hash"][:12])
        _row(table, str(each["seq"]), _time(each["at"]), _who(each), what, *(cell or "" for cell in cells))
    _console.print(table if answer["entries"] else "the ledger is empty")


def _who(answer: dict[str, Any]) -> str:
    """The person whose key signed, where people are registered; else the account, as the environment says."""
    return str(answer["signer"] or answer["actor"])


def releases(answer: dict[str, Any]) -> None:
    table = _table("release", "state", "charged", "population", "by", "at", "approved by", right=("charged",))
    for each in answer["releases"]:
        place = (each["population"], _who(each), _time(each["at"]), each["approver"] or "")
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
    _say("everything holds" if answer["ok"] else f"{counted(len(answer['problems']), 'problem')}: this must not be relied on")


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
