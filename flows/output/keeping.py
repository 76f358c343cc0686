"""What the commands that look after a home answer, and print for people."""

from __future__ import annotations

from typing import Any

from flows.output.people_views import UNSIGNED
from flows.output.terminal import MOST_PROBLEMS, _say
from schemas.counted import counted
from schemas.notices import Notice
from tasks.stores.acts import homes
from tasks.stores.approvals import signer_of
from tasks.stores.home import Home
from tasks.stores.identity import public_hex
from tasks.stores.keys import SIGNING, SIGNING_PUBLIC
from tasks.stores.ledger import open_ledger
from tasks.verify.signature import fingerprint

KEPT = "are kept for its evaluation; to count again after the decision instead"
LEFT = "lie about and no run uses them"


def notice(said: Notice) -> dict[str, Any]:
    return said.model_dump(mode="json", exclude_none=True) | {"sentence": said.sentence}


def show_notice(answer: dict[str, Any]) -> None:
    _say(
        f"{answer['release']} {answer['sentence']}", "its bundle stays, with a signed notice (notice.html); so does its charge"
    )


def show_forgotten(answer: dict[str, list[str]]) -> None:
    _say(*(f"{name}: exact counts deleted" for name in answer["forgotten"]))
    _say(*(f"{name}: being run; its exact counts stay until it has ended" for name in answer["running"]))
    if not any(answer.values()):
        _say("no exact counts lie about")


def show_status(answer: dict[str, Any]) -> None:
    ledger, anchor = answer["ledger"], answer["anchor"]
    _say(f"home     {answer['home']}", f"ledger   {ledger['name']}: {ledger['entries']:,} entries, head {ledger['head'][:12]}")
    _say(
        f"anchor   {anchor['path']}: {anchor['heads']:,} heads"
        + (f", {counted(anchor['torn'], 'torn line')}" * bool(anchor["torn"]))
    )
    _say(f"public   {counted(answer['public'], 'release')}", *(f"running  {name}" for name in answer["running"]))
    for kind in ("waiting", "stopped"):
        _say(
            *(
                f"{kind:<8} {each['release']} ({each['state']} since {each['since'][:16]}): {each['next']}"
                for each in answer[kind]
            )
        )
    left = [each["release"] for each in answer["exact_counts"] if not each["running"]]
    waiting = {each["release"] for each in answer["waiting"]}
    _say(*(f"counts   exact counts of {name} {KEPT if name in waiting else LEFT}: steps forget {name}" for name in left))
    if answer["errors"]:
        _say(f"errors   {counted(answer['errors'], 'error')}, told under confidential/errors")
    if not answer["registered"]:
        _say(f"people   {UNSIGNED}")
    _say(*(f"problem: {problem}" for problem in answer["problems"][:MOST_PROBLEMS]))
    _say(
        "everything holds"
        if answer["ok"]
        else f"{counted(len(answer['problems']), 'problem')}: nothing must be released from here"
    )


def key_history(home: Home) -> dict[str, Any]:
    """The public key, and what the ledger knows of those before."""
    changes = [(entry, entry.details["link"]) for entry in homes(open_ledger(home)) if "link" in entry.details]
    told = [{**link, "why": entry.details["why"], "actor": signer_of(entry) or entry.actor} for entry, link in changes]
    there = (home.keys / SIGNING).exists()
    key, file = public_hex(home) if there else None, home.keys / SIGNING_PUBLIC
    told_as = fingerprint(file.read_bytes()) if there and file.exists() else None
    return {"key": key, "fingerprint": told_as, "file": str(file), "history": told}


def show_keys(answer: dict[str, Any]) -> None:
    _say(f"key      {answer['key'] or 'none yet: the first release makes it'}", f"file     {answer['file']}")
    if answer["fingerprint"]:
        _say(f"SHA-256  {answer['fingerprint']}, as steps verify tells whose key signed")
    for link in answer["history"]:
        _say(
            f"{link['date']} {link['kind']} by {link['actor']}: {link['previous'][:16]}… → {link['key'][:16]}… ({link['why']})"
        )
    if (found := answer.get("found")) is not None:
        _say(
            f"nothing was changed: the key was {found['kind']} on {found['date']} for the same reason. Another rotation has "
            "another reason (--why), or a key of its own (--key NAME)"
        )


def show_backup(answer: dict[str, Any]) -> None:
    _say(f"{answer['file']}: {answer['files']:,} files, ledger up to entry {answer['entries']:,}")


def show_restored(answer: dict[str, Any]) -> None:
    _say(f"{answer['home']}: {answer['files']:,} files, ledger up to entry {answer['entries']:,}", *answer["notes"])
