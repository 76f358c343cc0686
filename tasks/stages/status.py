"""Status: how a home stands, for a person in the morning or a monitor at night. Reads, and changes nothing."""

from __future__ import annotations

from typing import Any

from schemas.errors import StepsError
from tasks.stages.audit import check_ledger
from tasks.stages.forget import exact_counts
from tasks.stores.anchor import Anchor
from tasks.stores.home import Home, must_be_there
from tasks.stores.identity import must_be_ours
from tasks.stores.ledger import Ledger, open_ledger
from tasks.stores.releases import PUBLIC, ReleaseState
from tasks.stores.running import is_running

NEXT = {
    "charged": "run it again: it resumes",
    "drawn": "run it again: it resumes",
    "approved": "run it again to publish it",
    "published": "run it again: it ends with its evaluation",
    "waiting": "steps approve {name}, or steps reject {name}",
    "burnt": "run it again to pay and draw anew, or steps abandon {name}",
}


def status(home: Home) -> dict[str, Any]:
    """Releases by what has to be done, exact counts lying about, and everything that does not hold."""
    must_be_there(home)
    ledger, counts = open_ledger(home), exact_counts(home)
    problems = [*_faults(must_be_ours, home, ledger), *check_ledger(home)]
    releases = ledger.releases()
    live = [name for name in sorted({*(each.name for each in releases), *counts}) if is_running(home, name)]
    unfinished = [_unfinished(each) for each in releases if each.state in NEXT and each.name not in live]
    return {
        "ok": not problems,
        "home": str(home.path),
        "problems": problems,
        "ledger": {"name": ledger.database.name, "entries": ledger.head()[0], "head": ledger.head()[1]},
        "anchor": _anchor(ledger.anchor),
        "registered": len(ledger.people().active),
        "running": live,
        "waiting": [each for each in unfinished if each["state"] == "waiting"],
        "stopped": [each for each in unfinished if each["state"] != "waiting"],
        "public": sum(each.state in PUBLIC for each in releases),
        "exact_counts": [{"release": name, "running": name in live} for name in counts],
        "errors": len(list((home.path / "confidential" / "errors").glob("*.txt"))),
    }


def _unfinished(release: ReleaseState) -> dict[str, str]:
    return {
        "release": release.name,
        "state": release.state,
        "since": release.at,
        "next": NEXT[release.state].format(name=release.name),
    }


def _anchor(anchor: Anchor) -> dict[str, Any]:
    found = anchor.read()
    return {"path": str(anchor.path), "heads": len(found.heads), "torn": len(found.torn)}


def _faults(check: Any, home: Home, ledger: Ledger) -> list[str]:
    try:
        check(home, ledger)
    except StepsError as error:
        return [str(error)]
    except (ValueError, KeyError, TypeError):  # an edited ledger, which its own check explains
        return []
    return []
