"""Estimates with their 95 % intervals, one line each."""

from __future__ import annotations

import io
import textwrap
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from tasks.answers.frames import Answer

_STYLE: dict[Any, Any] = {"svg.hashsalt": "steps", "svg.fonttype": "none", "font.size": 9, "text.parse_math": False}


def drawn(answer: Answer, format: str) -> bytes:
    """The same bytes for the same answer."""
    document = answer.document
    if "coefficients" in document:
        rows = [(each["name"], each["estimate"], each["low"], each["high"]) for each in document["coefficients"]]
        axis = "coefficient"
    else:
        names, renamed = document["table"], document.get("renamed", {})
        share, low, high = (renamed.get(name, name) for name in ("share", "share_low", "share_high"))
        rows = [(", ".join(str(each[n]) for n in names), each[share], each[low], each[high]) for each in document["cells"]]
        axis = f"share of {'the rows asked for' if document['where'] else 'all rows'}"
    told = [row for row in rows if row[1] is not None]
    written = io.BytesIO()
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(7, 1.4 + 0.28 * max(len(told), 1)), layout="constrained")
        axes = figure.subplots()
        places = range(len(told), 0, -1)
        axes.hlines(places, [row[2] for row in told], [row[3] for row in told], color="#1b4965")
        axes.plot([row[1] for row in told], places, "o", color="#1b4965", markersize=4)
        axes.set_yticks(places, [row[0] for row in told])
        axes.set_ylim(0.4, len(told) + 0.6)
        if axis == "coefficient":
            axes.axvline(0, color="#999999", linewidth=0.8)
        axes.set_title("\n".join(textwrap.wrap(answer.title, 90)), loc="left", fontsize=9)
        axes.set_xlabel(f"{axis}, with 95% intervals")
        warned = "\n".join(line for each in document["warnings"] for line in textwrap.wrap(each, 100))
        figure.supxlabel(warned, fontsize=7, color="#a4372c", x=0.01, ha="left")  # a picture travels alone
        metadata = {"Date": None} if format == "svg" else {"CreationDate": None} if format == "pdf" else {}
        figure.savefig(written, format=format, metadata=metadata)
    return written.getvalue()
