"""One run of MST or AIM: what benchmarks/peers.py starts with the Python of .cache/peers, where nothing of ours is installed.

The request is JSON, the only argument; codes come in through standard input and go out through standard output, as NumPy
writes arrays. Nothing is written to disk.
"""

from __future__ import annotations

import io
import json
import os
import resource
import sys
import time

import numpy as np
import pandas as pd
from dpmm.models import aim, mst
from dpmm.models.base.mechanisms import mechanism

MODELS = {"MST": mst.MSTGM, "MST in dpmm": mst.MSTGM, "AIM": aim.AIMGM}
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
    """The model of one-way tables that MST selects its pairs by; its number of iterations is no argument of dpmm's."""
    full = mst.FactoredInference
    mst.FactoredInference = lambda domain, iters: full(domain, iters=iterations)


def fitted(request: dict, codes: np.ndarray) -> pd.DataFrame:
    """As many rows as the model itself estimates, categories from 0."""
    if request["method"] == "MST":
        mst.MST._measure = as_published
    random = np.random.RandomState(request["seed"])
    seed_noise(random)
    known = {key: request[key] for key in ("epsilon", "delta")} | request["settings"]
    if "selecting" in known:
        select_with(known.pop("selecting"))
    model = MODELS[request["method"]](domain=request["sizes"], random_state=random, n_jobs=1, **known)
    model.fit(pd.DataFrame(codes, columns=list(request["sizes"])))
    return model.generate()[list(request["sizes"])]


def main() -> None:
    request = json.loads(sys.argv[1])
    if request["seconds"]:
        resource.setrlimit(resource.RLIMIT_CPU, (request["seconds"], request["seconds"]))
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the library prints is no part of the answer
    np.random.seed(request["seed"])
    codes = np.load(io.BytesIO(sys.stdin.buffer.read()))
    begun = time.process_time()
    rows = fitted(request, codes).to_numpy(np.int64)
    spent = time.process_time() - begun
    np.savez(answer, rows=rows, seconds=spent)
    answer.close()


if __name__ == "__main__":
    main()
