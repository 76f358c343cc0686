"""What `steps people` and `steps keys` answer, as JSON values and for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flows.output.terminal import say, shown_table
from tasks.stores.people import Change, People

NOBODY = (
    "nobody is registered: whoever reaches this ledger may grant, run and approve, and names are those of accounts. "
    "Register a first approver: steps people add NAME --role approver --key FILE.pub --as FILE"
)

UNSIGNED = "nobody is registered: no signature is asked for grants, runs and approvals (steps people add)"


def saying_nobody(found: People, show: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    """The same for people, with one line more where nobody is registered."""

    def shown(answer: dict[str, Any]) -> None:
        show(answer)
        say(*[UNSIGNED] * (not found.are_registered))

    return shown


def people(found: People) -> dict[str, Any]:
    """Who is registered, and what was proposed by too few so far."""
    active = [
        {"name": person.name, "roles": list(person.roles), "key": person.key, "since_entry": person.since}
        for person in found.active.values()
    ]
    proposed = [
        {"act": change.act, "name": change.name, "roles": list(change.roles), "key": change.key, "by": sorted(voices)}
        for change, voices in found.proposed.items()
    ]
    return {"people": active, "proposed": proposed, "approvers_needed": found.needed()}


def show_people(answer: dict[str, Any]) -> None:
    if not answer["people"]:
        return say(NOBODY)
    rows = [(each["name"], ", ".join(each["roles"]), each["key"], str(each["since_entry"])) for each in answer["people"]]
    shown_table(("name", "roles", "key", "since entry"), rows)
    for each in answer["proposed"]:
        words = f" as {', '.join(each['roles'])}" if each["roles"] else ""
        say(f"waits for another approver: {each['act']} {each['name']}{words}, said by {', '.join(each['by'])}")


def changed(said: tuple[Change, People]) -> dict[str, Any]:
    """Whether what was said is so, or waits for a second approver."""
    change, found = said
    return {"act": change.act, "name": change.name, "waits": change in found.proposed, **people(found)}


def show_changed(answer: dict[str, Any]) -> None:
    done = "is registered" if answer["act"] == "add" else "is registered no more"
    if answer["waits"]:
        say(f"{answer['name']}: one more approver has to say the same, with a key of their own (--as)")
    else:
        say(f"{answer['name']} {done}")


def show_key(answer: dict[str, Any]) -> None:
    say(f"private  {answer['private']}   (keep it to yourself)", f"public   {answer['public']}", f"key      {answer['key']}")
