"""PrivBayes beside the public DataSynthesizer (Ping, Stoyanovich, Howe 2017): utility of one set and its CPU seconds at ε = 1.

Run with `python -m benchmarks.privbayes [FILE SIZES.json] [--datasynthesizer PYTHON] [--repeats N]`. PYTHON is the interpreter
of an environment that has DataSynthesizer; it runs once, in a process of its own. Without it, earlier figures are quoted.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.cascade import domain_of, read, standin
from schemas.errors import InfrastructureFault
from schemas.spec.domain import Domain
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.domain.counting import count_codes
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.measures.margins import margins
from steps_engine.evaluation.measures.specks import specks
from steps_engine.methods.privbayes.plan import DEGREE
from steps_engine.methods.run_in_memory import run
from steps_engine.noise import SeededRandomness

EPSILON = 1.0
KS, TVD, CPU = "KS (two-way logistic)", "mean 2-way TVD", "CPU seconds of one set"
QUOTED = {KS: "0.26", TVD: "0.020", CPU: "ten minutes"}
SOURCE = "quoted: DataSynthesizer 0.1.13, one set, measured earlier on one youth voter stand-in file (44,821 × 15); no ratio"
DRIVER = """
import json, sys
from importlib.metadata import version
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator

folder, epsilon, degree, rows, seed = sys.argv[1], float(sys.argv[2]), *map(int, sys.argv[3:])
names = json.load(open(f"{folder}/categories.json"))
describer = DataDescriber()
describer.describe_dataset_in_correlated_attribute_mode(
    f"{folder}/original.csv", k=degree, epsilon=epsilon, seed=seed,
    attribute_to_datatype=dict.fromkeys(names, "Integer"),
    attribute_to_is_categorical=dict.fromkeys(names, True),
    attribute_to_is_candidate_key=dict.fromkeys(names, False),
    categorical_attribute_domain_file=f"{folder}/categories.json",
)
describer.save_dataset_description_to_file(f"{folder}/description.json")
generator = DataGenerator()
generator.generate_dataset_in_correlated_attribute_mode(rows, f"{folder}/description.json", seed=seed)
generator.save_synthetic_data(f"{folder}/synthetic.csv")
open(f"{folder}/version", "w").write(version("DataSynthesizer"))
"""


def measure(original: Coded | None = None, repeats: int = 10) -> dict[str, float]:
    """Ours alone: means over sets."""
    original = original or standin()
    domain = domain_of(original)
    made = [_ours(domain, original, repeat) for repeat in range(repeats)]
    ks, tvd = np.mean([_utility(original, codes) for codes, _ in made], axis=0).tolist()
    return {KS: ks, TVD: tvd, CPU: float(np.mean([seconds for _, seconds in made]))}


def _ours(domain: Domain, original: Coded, repeat: int) -> tuple[np.ndarray, float]:
    """One set from codes to records, stage by stage as a release runs it."""
    spec = {"name": "b", "dataset": "d", "source": "s", "privacy": {"epsilon": Decimal(str(EPSILON))}}
    asked = ReleaseSpec.model_validate(spec | {"method": {"decomposition": "privbayes"}})
    randomness, started = SeededRandomness(("PrivBayes", repeat)), time.process_time()
    (records,) = run(Release(spec=asked, domain=domain, folder="."), count_codes(original.codes), randomness).records
    seconds = time.process_time() - started
    return records.select(domain.names).to_pandas().to_numpy(np.int64), seconds


def _utility(original: Coded, codes: np.ndarray) -> tuple[float, float]:
    made = [Coded(original.names, original.sizes, codes)]
    return specks(original, made, SeededRandomness(0), "logistic_interactions", null=0).ks, margins(original, made, 2).mean


def datasynthesizer(python: str, original: Coded, seed: int = 1) -> tuple[str, dict[str, float]]:
    """The package's version and figures; CPU seconds are those of its process and the workers that it starts."""
    with tempfile.TemporaryDirectory() as folder:
        place, names = Path(folder), [f"a{j}" for j in range(len(original.sizes))]
        pd.DataFrame(original.codes, columns=names).to_csv(place / "original.csv", index=False)
        sizes = dict(zip(names, original.sizes, strict=True))
        (place / "categories.json").write_text(json.dumps({name: list(range(size)) for name, size in sizes.items()}))
        asked = [folder, EPSILON, DEGREE, original.total, seed]
        before = _children_seconds()
        done = subprocess.run([python, "-c", DRIVER, *map(str, asked)], capture_output=True, text=True)
        seconds = _children_seconds() - before
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise InfrastructureFault(f"{python} was to run DataSynthesizer and failed: {reason}. Is it installed there?")
        ks, tvd = _utility(original, pd.read_csv(place / "synthetic.csv")[names].to_numpy(np.int64))
        return (place / "version").read_text(), {KS: ks, TVD: tvd, CPU: seconds}


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="FILE and SIZES.json")
    parser.add_argument("--datasynthesizer", metavar="PYTHON", help="interpreter of an environment with DataSynthesizer")
    parser.add_argument("--repeats", type=int, default=10)
    asked = parser.parse_args()
    if len(asked.files) not in (0, 2):
        parser.error("give FILE and SIZES.json, or neither")
    original = read(*asked.files) if asked.files else standin()
    version, theirs = datasynthesizer(asked.datasynthesizer, original) if asked.datasynthesizer else ("quoted", None)
    title = f"{original.total:,} rows × {len(original.names)} attributes, ε = {EPSILON:g}"
    heads = ("figure", f"ours, mean of {asked.repeats}", f"DataSynthesizer, {version}", "theirs / ours")
    table = Table(*heads, title=title, caption=None if theirs else SOURCE)
    for figure, value in measure(original, asked.repeats).items():
        rival = (f"{theirs[figure]:.4g}", f"{theirs[figure] / value:,.1f}") if theirs else (QUOTED[figure], "–")
        table.add_row(figure, f"{value:.4g}", *rival)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
