"""One run of MST or AIM: what benchmarks/peers.py starts with the Python of .cache/peers, where nothing of ours is installed.

The request is JSON, the only argument; codes come in through standard input and go out through standard output, as NumPy
writes arrays. Nothing is written to disk. Stopped at its limit of CPU seconds, or by SIGTERM, AIM answers with the rows of
the last model that it had estimated, and how much of its budget that had cost.
"""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import sys
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from dpmm.models import aim, mst
from dpmm.models.base.mbi import Domain, FactoredInference
from dpmm.models.base.mechanisms import mechanism
from peer_descent import mirror_descent

MODELS = {"MST": mst.MSTGM, "MST in dpmm": mst.MSTGM, "AIM": aim.AIMGM}
GRACE = 300  # CPU seconds to make rows of what there is
in_dpmm = mst.MST._measure


def as_published(self, data, proj, wgt, flatten=None, public=False):
    """A measurement tells the noise that it has, σ/weight, as its authors have it; dpmm tells σ, too little by √attributes."""
    query, values, sigma, attributes = in_dpmm(self, data, proj, wgt, flatten, public)
    return query, values, sigma / wgt, attributes


def seed_noise(random: np.random.RandomState) -> None:
    """The same normal noise from a generator that takes a seed; OpenDP's takes none."""
    for module in (aim, mst, mechanism):
        module.gaussian_noise = lambda sigma, size=None: random.normal(0, sigma, size)


def select_with(iterations: int) -> None:
    """Models that tables are selected by: of MST its margins, of AIM each round's, which goes on from the one before.

    How many iterations these have is no argument of dpmm's; the model in the end has `n_iters`.
    """
    for module in (mst, aim):
        module.FactoredInference = lambda domain, iters, **known: FactoredInference(domain, iters=iterations, **known)


@cache
def size_with(sizes: tuple[tuple[str, int], ...], cliques: tuple[tuple[str, ...], ...], table: tuple[str, ...]) -> float:
    return aim.hypothetical_model_size(Domain.fromdict(dict(sizes)), [*cliques, table])


def room_for(candidates: dict, model: Any, largest: float) -> dict:
    """As aim.filter_candidates; sizes are asked only of tables that the model does not hold, and once of a model."""
    held = set(aim.downward_closure(model.cliques))
    sizes, cliques = tuple(model.domain.config.items()), tuple(model.cliques)
    return {
        table: weight for table, weight in candidates.items() if table in held or size_with(sizes, cliques, table) <= largest
    }


class Stopped(Exception):
    """At the limit, or from outside."""


def stop(number: int, _frame: Any) -> None:
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)  # it comes again every second
    raise Stopped(number)


@dataclass
class Watch:
    """How far AIM has come: rounds begun, and the part of ρ that is spent by the end of the one that is running."""

    rounds: int = 0
    spent: float = 0.0
    estimated: int = 0  # rounds after which a model was estimated
    model: Any = None

    def follow(self, largest: float) -> None:
        """A round begins by asking which tables its model, which may be as large as the part of ρ, has room for."""
        estimate = FactoredInference.estimate

        def begun(candidates, model, size_limit):
            self.rounds, self.spent = self.rounds + 1, size_limit / largest
            return room_for(candidates, model, size_limit)

        def estimated(engine, measurements):
            self.model, self.estimated = estimate(engine, measurements), self.rounds
            return self.model

        aim.filter_candidates, FactoredInference.estimate = begun, estimated

    def rows(self) -> pd.DataFrame:
        return self.model.synthetic_data().df


def fitted(request: dict, codes: np.ndarray, watch: Watch) -> pd.DataFrame:
    """As many rows as the model itself estimates, categories from 0."""
    if request["method"] == "MST":
        mst.MST._measure = as_published
    FactoredInference.mirror_descent = mirror_descent
    random = np.random.RandomState(request["seed"])
    seed_noise(random)
    known = {key: request[key] for key in ("epsilon", "delta")} | request["settings"]
    if "selecting" in known:
        select_with(known.pop("selecting"))
    if request["method"] == "AIM":
        watch.follow(known.get("max_model_size", 80))
    model = MODELS[request["method"]](domain=request["sizes"], random_state=random, n_jobs=1, **known)
    model.fit(pd.DataFrame(codes, columns=list(request["sizes"])))
    return model.generate()[list(request["sizes"])]


def main() -> None:
    request, watch, finished = json.loads(sys.argv[1]), Watch(), True
    if request["seconds"]:
        resource.setrlimit(resource.RLIMIT_CPU, (request["seconds"], request["seconds"] + GRACE))
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the library prints is no part of the answer
    np.random.seed(request["seed"])
    codes = np.load(io.BytesIO(sys.stdin.buffer.read()))
    begun = time.process_time()
    try:
        signal.signal(signal.SIGXCPU, stop)
        signal.signal(signal.SIGTERM, stop)
        rows = fitted(request, codes, watch)
    except Stopped:
        if watch.model is None:
            raise
        rows, finished = watch.rows()[list(request["sizes"])], False
    seconds = time.process_time() - begun
    progress = {"finished": finished, "rounds": watch.rounds, "estimated": watch.estimated, "spent": watch.spent}
    np.savez(answer, rows=rows.to_numpy(np.int64), seconds=seconds, **progress)
    answer.close()


if __name__ == "__main__":
    main()
