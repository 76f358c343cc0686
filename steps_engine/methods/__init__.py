"""The methods: those of this package, and those that installed packages bring (entry points `steps_release.methods`)."""

from __future__ import annotations

import warnings
from importlib.metadata import entry_points

from schemas.spec.method import register_spec
from steps_engine.methods.cascade.method import CASCADE
from steps_engine.methods.choosing import AutoSpec
from steps_engine.methods.households.method import HOUSEHOLDS
from steps_engine.methods.pairs.method import PAIRS
from steps_engine.methods.places.method import PLACES
from steps_engine.methods.privbayes.method import PRIVBAYES
from steps_engine.methods.registry import register
from steps_engine.methods.tree.method import FLAT, TREE, UH

register_spec("auto", AutoSpec)
for _method in (FLAT, TREE, UH, CASCADE, PRIVBAYES, PAIRS, PLACES, HOUSEHOLDS):
    register(_method)
for _point in entry_points(group="steps_release.methods"):
    try:
        register(_point.load())
    except Exception as error:  # whatever a package does: bundles of other methods must still verify
        warnings.warn(f"the method {_point.name!r} cannot be loaded ({type(error).__name__}) and is not known", stacklevel=1)
