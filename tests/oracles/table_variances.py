"""Variances of tables of every kind of objective and privacy, and random dual vectors for them."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import linprog

from quietbits.solvers.bounds.letter_clauses import DualVectors, TableVariance
from quietbits.solvers.bounds.privacy_constraint import RatioConstraint
from quietbits.solvers.table_search.table_program import TableProgram


def _largest(_: int) -> None:
    return None


def _uniform(count: int) -> np.ndarray:
    return np.full(count, 1 / count)


def _every_other(count: int) -> np.ndarray:
    weights = np.where(np.arange(count) % 2 == 0, 1.0, 0.0)
    return weights / weights.sum()


def _almost_first(count: int) -> np.ndarray:
    weights = np.append(1.0, np.full(count - 1, 1e-12))
    return weights / weights.sum()


def _last(count: int) -> np.ndarray:
    return np.append(np.zeros(count - 1), 1.0)


# Input weights for a number of inputs (None for the largest variance), and whether privacy is metric.
KINDS: dict[str, tuple[Callable[[int], np.ndarray | None], bool]] = {
    "average": (_uniform, False),
    "zero weights": (_every_other, False),
    "tiny weights": (_almost_first, False),
    "largest": (_largest, False),
    "metric": (_uniform, True),
    "metric, zero weights": (_last, True),
    "metric, largest": (_largest, True),
}


def variance_of(kind: str, count: int, epsilon: float) -> TableVariance:
    """Return the variance of a kind; epsilon is the log ratio over the whole grid."""
    weights, metric = KINDS[kind]
    constraint = RatioConstraint(epsilon / (count - 1) if metric else epsilon, neighbours_only=metric)
    return TableVariance(np.arange(count) / (count - 1), weights(count), constraint)


def table_program(variance: TableVariance, letters: int) -> TableProgram:
    return TableProgram(variance.inputs, letters, variance.constraint, variance.input_weights)


def spread_letters(variance: TableVariance, letters: int, beyond: float = 1.5) -> np.ndarray:
    """Return equidistant letters that reach beyond [0, 1] by a multiple of the least reach."""
    reach = beyond * (variance.unit - 1)
    return np.linspace(-reach, 1 + reach, letters)


def random_vectors(variance: TableVariance, vectors: int, scale: float, rng: np.random.Generator) -> DualVectors:
    """Return random dual vectors; for the largest variance some of their weights are almost 0."""
    shape = vectors, len(variance.inputs)
    weights = None
    if variance.input_weights is None:
        weights = rng.random(shape) * (rng.random(shape) < 0.7) + 1e-13
        weights /= weights.sum(axis=1, keepdims=True)
    return DualVectors(scale * rng.normal(size=shape), scale * rng.normal(size=shape), weights)


def least_variance(variance: TableVariance, letters: np.ndarray) -> float:
    """Return the least variance of tables with given letters by a linear program as written, inf without a table."""
    inputs, count, size = variance.inputs, len(variance.inputs), len(letters)
    offsets = letters - inputs[:, None]
    rows = np.eye(count)
    equations = np.concatenate([np.kron(rows, np.ones(size)), np.stack([np.kron(rows[i], offsets[i]) for i in range(count)])])
    ratio = np.exp(-variance.constraint.log_ratio)
    pairs = [(i, j) for i in range(count) for j in range(count) if i != j and (not variance.constraint.neighbours_only or abs(i - j) == 1)]
    privacy = np.concatenate([np.kron(ratio * rows[i] - rows[j], np.eye(size)) for i, j in pairs])
    variances = np.stack([np.kron(rows[i], offsets[i] ** 2) for i in range(count)])
    if variance.input_weights is None:
        inequalities, costs = np.concatenate([privacy, variances]), np.append(np.zeros(count * size), 1.0)
        inequalities = np.column_stack([inequalities, np.append(np.zeros(len(privacy)), -np.ones(count))])
        equations = np.column_stack([equations, np.zeros(2 * count)])
    else:
        inequalities, costs = privacy, variance.input_weights @ variances
    result = linprog(costs, inequalities, np.zeros(len(inequalities)), equations, np.repeat([1.0, 0.0], count))
    return float(result.fun) if result.status == 0 else np.inf
