"""Which artifact a reference refers to: each kind comes from one stage, and stages say which kinds they take.

For types alone: at run time all of them are References, so that they travel and are compared and sealed as such.
"""

from __future__ import annotations

from typing import NewType

from tasks.stores.artifacts import Reference

PlanReference = NewType("PlanReference", Reference)
CellsReference = NewType("CellsReference", Reference)  # exact counts: CONFIDENTIAL
StructureReference = NewType("StructureReference", Reference)
NoisyReference = NewType("NoisyReference", Reference)
ConsistentReference = NewType("ConsistentReference", Reference)
SetReference = NewType("SetReference", Reference)  # the records of one synthetic set
