"""Weighted logistic regression on distinct rows of categories: Newton steps solved by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, logit
from threadpoolctl import threadpool_limits

RIDGE = 1e-5  # bounds the coefficients under separation; otherwise it moves no score visibly
TOLERANCE = 1e-11  # Newton decrement per record at which the fit has converged: half the log likelihood still to gain
STEPS = 60
SHRINK = 1e-2  # conjugate gradients stop when the residual's energy has shrunk to this share
PATIENCE = 12  # iterations after which the kept preconditioner is made anew
MOST_COLUMNS = 4_000  # the preconditioner is a dense factor: 128 MB at most
SEPARATED = 12.0  # |log odds| beyond which a score is 0 or 1 to five digits

Precondition = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Scores:
    """Fitted probabilities of the distinct rows, and what a reader must know about the fit."""

    probability: np.ndarray
    converged: bool
    separated: bool


def columns(sizes: Sequence[int], interactions: bool) -> int:
    """Columns of the design, the intercept included.

    >>> columns((2, 3, 4), interactions=True)  # 1 + (1 + 2 + 3) + (1·2 + 1·3 + 2·3)
    18
    """
    main = [size - 1 for size in sizes]
    return 1 + sum(main) + ((sum(main) ** 2 - sum(m * m for m in main)) // 2 if interactions else 0)


def design(codes: np.ndarray, sizes: Sequence[int], interactions: bool) -> sparse.csr_array:
    """Intercept, one column per category but the most frequent, and all products of two attributes' columns.

    Leaving out the most frequent category spans the same space as leaving out the first, with far fewer entries.
    """
    usual = np.array([np.bincount(column).argmax() for column in codes.T])
    first = np.cumsum([1, *(size - 1 for size in sizes)], dtype=np.int32)
    column = codes - (codes > usual) + first[:-1]
    unusual = codes != usual
    entries = unusual.sum(axis=1)
    product = _products(sizes, first) if interactions else np.empty((0, 0), np.int32)
    length = 1 + entries + (entries * (entries - 1) // 2 if interactions else 0)
    end = np.cumsum(length)
    indices = np.zeros(end[-1], np.int32)
    for number in np.unique(entries):  # all rows with as many unusual categories at once
        rows = entries == number
        mine = column[rows][unusual[rows]].reshape(np.count_nonzero(rows), number)
        block = [np.zeros((len(mine), 1), np.int32), mine]
        if interactions:
            left, right = np.triu_indices(number, 1)
            block.append(product[mine[:, left], mine[:, right]])
        filled = np.concatenate(block, axis=1)
        indices[(end - length)[rows][:, None] + np.arange(filled.shape[1])] = filled
    indptr = np.concatenate([[0], end]).astype(np.int32)
    return sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(codes), columns(sizes, interactions)))


def _products(sizes: Sequence[int], first: np.ndarray) -> np.ndarray:
    """The column of the product of two main-effect columns."""
    attribute = np.repeat(np.arange(len(sizes)), [size - 1 for size in sizes])
    left, right = np.nonzero(attribute[:, None] < attribute)
    product = np.zeros((first[-1], first[-1]), np.int32)
    product[left + 1, right + 1] = first[-1] + np.arange(len(left))
    return product


def fit_scores(x: sparse.csr_array, zeros: np.ndarray, ones: np.ndarray) -> Scores:
    """Maximum likelihood of P(one | row), where `zeros` and `ones` count the records of each class on a distinct row.

    Newton's equations (XᵀWX + ridge) d = gradient are solved by conjugate gradients whose preconditioner, an earlier
    step's matrix, is kept as long as it serves. BLAS threads only spin on vectors this short: one is enough.
    """
    weight = zeros + ones
    beta = np.zeros(x.shape[1])
    beta[0] = logit(ones.sum() / weight.sum())
    xt, eta = x.T.tocsr(), np.full(len(weight), beta[0])
    precondition, converged = None, False
    with threadpool_limits(1, user_api="blas"):
        for _ in range(STEPS):
            p = expit(eta)
            gradient, curvature = xt @ (ones - weight * p) - RIDGE * beta, weight * p * (1 - p)
            precondition = precondition or _preconditioner(x, xt, curvature)
            direction, iterations = _solve(x, xt, curvature, gradient, precondition)
            converged = bool(gradient @ direction <= 2 * TOLERANCE * weight.sum())
            if converged:
                break
            beta, eta = _search(x, weight, ones, beta, eta, direction)
            precondition = None if iterations > PATIENCE else precondition
    return Scores(expit(eta), converged, bool(np.abs(eta).max() > SEPARATED))


def _preconditioner(x: sparse.csr_array, xt: sparse.csr_array, curvature: np.ndarray) -> Precondition:
    weighted = sparse.csr_array((np.repeat(curvature, np.diff(x.indptr)), x.indices, x.indptr), shape=x.shape)
    information = (xt @ weighted).toarray()
    # A structural zero makes columns collinear and the matrix singular: a speck on the diagonal mends it.
    information[np.diag_indices_from(information)] += RIDGE + 1e-9 * information.diagonal().max()
    factor = cho_factor(information, overwrite_a=True, check_finite=False)
    return lambda residual: cho_solve(factor, residual, check_finite=False)


def _solve(
    x: sparse.csr_array, xt: sparse.csr_array, curvature: np.ndarray, gradient: np.ndarray, precondition: Precondition
) -> tuple[np.ndarray, int]:
    """Preconditioned conjugate gradients for (XᵀWX + ridge) direction = gradient (Hestenes and Stiefel 1952)."""
    direction, residual = np.zeros_like(gradient), gradient
    z = precondition(residual)
    p, energy = z, residual @ z
    goal, iterations = SHRINK * energy, 0
    while energy > goal and iterations < 10 * PATIENCE:
        product = xt @ (curvature * (x @ p)) + RIDGE * p
        length = energy / (p @ product)
        direction, residual = direction + length * p, residual - length * product
        z = precondition(residual)
        energy, before = residual @ z, energy
        p, iterations = z + energy / before * p, iterations + 1
    return direction, iterations


def _search(
    x: sparse.csr_array, weight: np.ndarray, ones: np.ndarray, beta: np.ndarray, eta: np.ndarray, direction: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Halve the Newton step until the penalised likelihood does not fall."""

    def loss(b: np.ndarray, e: np.ndarray) -> float:
        return float(weight @ np.logaddexp(0, e) - ones @ e + RIDGE / 2 * (b @ b))

    along, before, length = x @ direction, loss(beta, eta), 1.0
    while length > 1e-6 and loss(beta + length * direction, eta + length * along) > before:
        length /= 2
    return beta + length * direction, eta + length * along
