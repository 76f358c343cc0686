"""One table that agrees with all trees: the walk uses each histogram for one attribute; here all of them speak at once.

Weights w of the rows minimise  Σ_cells (Σw − y)²/(2V) + τ·KL(w ‖ 1)  over the cells of all trees: y is a noisy
count, projected, V its variance. At the minimum log w = Σ θ_cell with θ = (y − Σw)/(τV), which Newton steps, one tree at a
time, find. Post-processing: it reads noisy counts and public variances.

Tables of few attributes are fitted many at a time: steps for all tables within some attributes change the weights by a factor
of their joint cell alone, so that they are taken on the joint table and reach the rows in one pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steps_engine.domain.contingency import covers
from steps_engine.domain.nodes import Split

TRUST = 1 / 32  # τ: the walk counts as a sample of this part of its rows, since it knows no more than the histograms
SWEEPS = 20
LONGEST_STEP = 0.5  # of log w in one sweep
LARGEST_CHANGE = 20.0  # of w, up or down: a cell that the walk left almost empty cannot blow up
LARGEST_JOINT = 2**15  # cells of a joint table: as many as a core keeps near, and far fewer than rows
ROWS_PER_CELL = 16

FINEST = 2.0**14  # steps of a weight: machines differ by less, and sums of such weights are exact on all of them

Arrays = Sequence[np.ndarray]


def reweight(cells: Arrays, noisy: Arrays, variance: Arrays) -> np.ndarray:
    """Weights of the rows, of about the same total. `cells[t]` is each row's cell in tree t, `noisy[t]` the counts y."""
    weight, angles = np.ones(len(cells[0])), [np.zeros(len(y)) for y in noisy]
    for _ in range(SWEEPS):
        for cell, y, v, angle in zip(cells, noisy, variance, angles, strict=True):
            inside = np.bincount(cell, weights=weight, minlength=len(y))
            step = _newton_step(inside, y, v, angle)
            angle += step
            weight *= np.exp(step).take(cell)
        np.clip(weight, 1 / LARGEST_CHANGE, LARGEST_CHANGE, out=weight)
    return _settled(weight)


def reweight_tables(
    codes: np.ndarray,
    sizes: tuple[int, ...],
    tables: Sequence[Split],
    noisy: Arrays,
    variance: Arrays,
    sweeps: int = SWEEPS,
    each: int = 1,
) -> np.ndarray:
    """The same for tables of attributes, each in rising order. Beside the codes it holds a few columns, however many tables.

    Of `each` rows that stand together one will be taken: their weights sum to as many, exactly, as one more table would ask.
    """
    return fitted(codes, sizes, tables, noisy, variance, [np.zeros(y.shape) for y in noisy], sweeps, each)[0]


def fitted(
    codes: np.ndarray,
    sizes: tuple[int, ...],
    tables: Sequence[Split],
    noisy: Arrays,
    variance: Arrays,
    begun: Arrays,
    sweeps: int = SWEEPS,
    each: int = 1,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Weights of the rows, and θ of every table's cells: from θ on that other rows of the same law were fitted with."""
    passes, angles = _passes(len(codes), sizes, tables), [angle.copy() for angle in begun]
    weight = _begun(codes, sizes, tables, passes, angles)
    for _ in range(sweeps):
        for attributes, served in passes:
            shape = tuple(sizes[j] for j in attributes)
            cells = _cells(codes, attributes, shape)
            joint = np.bincount(cells, weights=weight, minlength=int(np.prod(shape))).reshape(shape)
            factor = np.ones(shape)
            for t in served:
                step = _newton_step(_inside(joint, attributes, tables[t]), noisy[t], variance[t], angles[t])
                angles[t] += step
                change = np.exp(step).reshape([sizes[j] if j in tables[t] else 1 for j in attributes])
                joint *= change
                factor *= change
            weight *= factor.take(cells)
        np.clip(weight, 1 / LARGEST_CHANGE, LARGEST_CHANGE, out=weight)
        if each > 1:
            together = weight.reshape(-1, each)
            together *= each / together.sum(axis=1, keepdims=True)
    return _settled(weight), angles


def _begun(
    codes: np.ndarray, sizes: tuple[int, ...], tables: Sequence[Split], passes: list[tuple[Split, list[int]]], angles: Arrays
) -> np.ndarray:
    """log w = Σ θ_cell."""
    weight = np.ones(len(codes))
    for attributes, served in passes if any(map(np.any, angles)) else []:
        shape = tuple(sizes[j] for j in attributes)
        summed = np.zeros(shape)
        for t in served:
            summed += angles[t].reshape([sizes[j] if j in tables[t] else 1 for j in attributes])
        weight *= np.exp(summed).take(_cells(codes, attributes, shape))
    np.clip(weight, 1 / LARGEST_CHANGE, LARGEST_CHANGE, out=weight)
    return weight


def tables_of(codes: np.ndarray, sizes: tuple[int, ...], tables: Sequence[Split], weight: np.ndarray) -> list[np.ndarray]:
    """Shares of every table's cells in weighted rows."""
    found: dict[int, np.ndarray] = {}
    for attributes, served in _passes(len(codes), sizes, tables):
        shape = tuple(sizes[j] for j in attributes)
        joint = np.bincount(_cells(codes, attributes, shape), weights=weight, minlength=int(np.prod(shape))).reshape(shape)
        found |= {t: _inside(joint, attributes, tables[t]) / max(joint.sum(), 1e-300) for t in served}
    return [found[t] for t in range(len(tables))]


def _passes(rows: int, sizes: tuple[int, ...], tables: Sequence[Split]) -> list[tuple[Split, list[int]]]:
    return covers(tables, sizes, min(LARGEST_JOINT, rows // ROWS_PER_CELL)) if tables else []


def _inside(joint: np.ndarray, attributes: Split, table: Split) -> np.ndarray:
    """A table within a joint one."""
    counts: np.ndarray = joint.sum(axis=tuple(axis for axis, j in enumerate(attributes) if j not in table))
    return counts


def _newton_step(inside: np.ndarray, y: np.ndarray, v: np.ndarray, angle: np.ndarray) -> np.ndarray:
    strength = 1 / (TRUST * v)
    step: np.ndarray = np.clip(((y - inside) * strength - angle) / (1 + inside * strength), -LONGEST_STEP, LONGEST_STEP)
    return step


def _settled(weight: np.ndarray) -> np.ndarray:
    weight *= len(weight) / max(weight.sum(), 1e-300)
    weights: np.ndarray = np.rint(weight * FINEST) / FINEST
    return weights


def _cells(codes: np.ndarray, attributes: Split, shape: tuple[int, ...]) -> np.ndarray:
    """Each row's joint cell, the first attribute slowest; counted in numbers as narrow as the cells allow, which is fast."""
    narrow = np.min_scalar_type(int(np.prod(shape)))
    cells = codes[:, attributes[0]].astype(narrow)
    for j, size in zip(attributes[1:], shape[1:], strict=True):
        cells *= narrow.type(size)
        cells += codes[:, j].astype(narrow, copy=False)
    return cells.astype(np.intp)
