"""What `steps budget timestamp` answers, as plain JSON values and for people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flows.output.terminal import say
from tasks.stores.home import Home
from tasks.stores.timestamps import Stamp, kept
from tasks.stores.witnesses import Witness, witnesses


def asked(stamp: Stamp, out: Path) -> dict[str, Any]:
    return {"entry": stamp.seq, "head": stamp.head, "request": str(out), "imprint": stamp.imprint.hex()}


def show_asked(answer: dict[str, Any]) -> None:
    say(f"{answer['request']} asks for a timestamp of entry {answer['entry']}. Send it to an authority, then check the answer:")
    say(f"  curl --data-binary @{answer['request']} -H 'Content-Type: application/timestamp-query' -o head.tsr ADDRESS")
    say("  steps budget timestamp --response head.tsr --chain CA.pem")


def witness(found: Witness) -> dict[str, Any]:
    return {
        "entry": found.seq,
        "head": found.head,
        "at": found.at.isoformat(),
        "authority": found.authority,
        "root": found.root,
        "said": str(found),
    }


def show_witness(answer: dict[str, Any]) -> None:
    say(f"{answer['said']}; kept")


def listed(home: Home) -> dict[str, Any]:
    found, problems = witnesses(home)
    unanswered = [stamp.seq for stamp in kept(home) if not stamp.response] if not problems else []
    return {"ok": not problems, "timestamps": [witness(each) for each in found], "unanswered": unanswered, "problems": problems}


def show_listed(answer: dict[str, Any]) -> None:
    say(*(each["said"] for each in answer["timestamps"]))
    say(*(f"entry {seq}: asked for, not answered yet" for seq in answer["unanswered"]))
    say(*(f"problem: {problem}" for problem in answer["problems"]))
    if not any((answer["timestamps"], answer["unanswered"], answer["problems"])):
        say("no timestamp was asked for; see: steps budget timestamp --help")
