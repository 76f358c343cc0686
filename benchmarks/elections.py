"""What an elected tree is worth, by utility and height, with and without the stopping rule. `python -m benchmarks.elections`"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.sparse import plan_of, run
from benchmarks.tree import voter_counts
from schemas.spec.method import method_spec
from steps_engine.domain.encoding import encode
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.measures.margins import margins
from steps_engine.evaluation.measures.specks import specks
from steps_engine.noise import SeededRandomness

HEIGHTS = [(layers, stop) for layers in (3, 6, 12) for stop in (False, True)]
ELECTIONS = ({"layers": 3}, *({"layers": layers, "utility": "uneven", "stop": stop} for layers, stop in HEIGHTS))
EPSILONS, REPEATS = ("0.135335", "1", "7.389056"), 3


def main() -> None:
    domain, counts = voter_counts()
    original = Coded(domain.names, domain.sizes, np.repeat(counts.codes, counts.count, axis=0).astype(np.int64))
    title = f"youth voter stand-in, one set, mean of {REPEATS}"
    table = Table("ε", "utility", "layers", "stop", "KS", "3-way TVD", title=title)
    for epsilon in EPSILONS:
        for elect in ELECTIONS:
            found = []
            for repeat in range(REPEATS):
                plan = plan_of(domain, method_spec(decomposition="tree", elect=elect), epsilon)
                (records,) = run(domain, counts, plan, SeededRandomness(("elections", repeat)))
                made = [Coded(domain.names, domain.sizes, encode(records.to_pandas(), domain).astype(np.int64))]
                found.append((specks(original, made, SeededRandomness(0), null=0).ks, margins(original, made, 3).mean))
            figures = (f"{value:.3f}" for value in np.mean(found, axis=0))
            shown = elect.get("utility", "aic"), str(elect["layers"]), "yes" if elect.get("stop") else "no"
            table.add_row(epsilon[:6], *shown, *figures)
    Console().print(table)


if __name__ == "__main__":
    main()
