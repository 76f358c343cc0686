"""The cascade on a wide table: `python -m benchmarks.wide 10000000 100` prints seconds and peak memory of fit and synthesis.

`python -m benchmarks.wide ROWS ATTRIBUTES FOLDER` writes the records as Parquet with dataset.yaml and release.yaml instead,
for a whole `steps run`. Attributes have 2 to 20 categories; each copies, half of the time, one of the eight before it, so
that nearly all rows are distinct and every attribute depends on others.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np

from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from schemas.spec.release import Release, ReleaseSpec
from steps_engine import noise
from steps_engine.domain.counting import Counts, no_codes
from steps_engine.methods.cascade.growth import grow
from steps_engine.methods.cascade.sanitize import sanitize
from steps_engine.methods.cascade.synthesize import walk
from steps_engine.methods.planning import make_plan
from steps_engine.noise import SeededRandomness

BLOCK = 2**18
REACH = 8  # how far back the attribute lies that is copied


def sizes_of(attributes: int) -> tuple[int, ...]:
    return tuple(2 + 7 * j % 19 for j in range(attributes))


def block_of_codes(rows: int, sizes: tuple[int, ...], randomness: SeededRandomness) -> np.ndarray:
    """Skewed categories; half of the rows copy an earlier attribute, moved and cut to the categories that there are."""
    codes = no_codes(rows, sizes)
    for j, size in enumerate(sizes):
        own = (noise.uniform(rows, randomness) ** 2 * size).astype(np.int64)
        copied = (codes[:, max(0, j - 1 - 5 * j % REACH)].astype(np.int64) * 3 + j) % size
        codes[:, j] = np.where(noise.uniform(rows, randomness) < 0.5, copied, own) if j else own
    return codes


def blocks(rows: int, sizes: tuple[int, ...]) -> Iterator[np.ndarray]:
    for number, first in enumerate(range(0, rows, BLOCK)):
        yield block_of_codes(min(BLOCK, rows - first), sizes, SeededRandomness(("wide", number)))


def table(rows: int, attributes: int) -> Counts:
    sizes = sizes_of(attributes)
    codes, first = no_codes(rows, sizes), 0
    for block in blocks(rows, sizes):
        codes[first : first + len(block)] = block
        first += len(block)
    return Counts(codes, np.ones(rows, dtype=np.int64))


def domain(rows: int, attributes: int) -> Domain:
    known = {"name": "wide", "population": "wide", "expected_rows": rows}
    each = ({"name": f"a{j}", "kind": "integer", "bounds": (0, size - 1)} for j, size in enumerate(sizes_of(attributes)))
    return Domain.model_validate({**known, "attributes": tuple(each)})


def costs(rows: int, attributes: int) -> dict[str, float]:
    """Seconds of growing, sanitizing and walking at ε = 1, CPU seconds of all three, and the peak memory of this process."""
    counts, of, randomness = table(rows, attributes), domain(rows, attributes), SeededRandomness("wide")
    asked = {"privacy": {"epsilon": Decimal(1)}, "method": method_spec(decomposition="cascade")}
    spec = ReleaseSpec.model_validate({"name": "wide", "dataset": "d", "source": "s", **asked})
    plan = make_plan(Release(spec=spec, domain=of, folder="."))
    cpu, ticks = time.process_time(), [time.perf_counter()]
    trees = grow(of, plan, counts, randomness)
    ticks.append(time.perf_counter())
    fitted = sanitize(of, trees, plan, counts, randomness)
    ticks.append(time.perf_counter())
    made = walk(of, plan, fitted, 1, randomness)
    ticks.append(time.perf_counter())
    spent = dict(zip(("grow", "sanitize", "walk"), np.diff(ticks).tolist(), strict=True))
    status = Path("/proc/self/status").read_text()  # getrusage would inherit the peak of the process that started this one
    peak = int(status.split("VmHWM:")[1].split()[0]) / 2**20
    return {"rows made": len(made), **spent, "seconds": sum(spent.values()), "cpu": time.process_time() - cpu, "peak GiB": peak,
            "planned seconds": plan.seconds, "planned GiB": plan.memory_bytes / 2**30}  # fmt: skip


def write(rows: int, attributes: int, folder: Path) -> None:
    """records.parquet, dataset.yaml and release.yaml."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    of, sizes = domain(rows, attributes), sizes_of(attributes)
    schema = pa.schema([(name, pa.int8()) for name in of.names])
    with pq.ParquetWriter(folder / "records.parquet", schema) as writer:
        for block in blocks(rows, sizes):
            writer.write_batch(pa.record_batch([pa.array(column.astype(np.int8)) for column in block.T], schema=schema))
    attributes_ = [{"name": n, "kind": "integer", "bounds": [0, s - 1]} for n, s in zip(of.names, sizes, strict=True)]
    dataset = {"name": "wide", "population": "wide", "expected_rows": rows, "attributes": attributes_}
    release = {"name": "wide", "dataset": "dataset.yaml", "source": "records.parquet", "privacy": {"epsilon": 1},
               "method": {"decomposition": "cascade"}, "evaluation": {"interactions": False}}  # fmt: skip
    # JSON is YAML.
    (folder / "dataset.yaml").write_text(json.dumps(dataset))
    (folder / "release.yaml").write_text(json.dumps(release))


def main() -> None:
    rows, attributes, *folder = sys.argv[1:]
    if folder:
        write(int(rows), int(attributes), Path(folder[0]))
    else:
        sys.stdout.write(json.dumps(costs(int(rows), int(attributes)), indent=2) + "\n")


if __name__ == "__main__":
    main()
