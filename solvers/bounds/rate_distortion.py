"""The rate-distortion function of any finite source and distortion measure, with a certificate."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_choice, check_integer, check_real
from ...arrays import FloatArray
from ...errors import InfeasibleError
from ..numerics.rounding import UNIT
from .blahut_arimoto import CertifiedChannel, ReducedProblem, TestChannel, solve_blahut_arimoto
from .dual_interior_point import solve_interior_point

METHODS = ("interior-point", "blahut-arimoto")
ITERATIONS = {"interior-point": 500, "blahut-arimoto": 200_000}


@dataclass(frozen=True, eq=False)
class RateDistortion:
    """The least rate for a distortion, between two proven numbers.

    Attributes
    ----------
    rate : float
        Mutual information in bits of `channel`, whose distortion is at most the target; errs upward.
    lower_bound : float
        No channel for the target has a lower rate, in bits; from the dual problem, errs downward.
    distortion : float
        Mean distortion of `channel`.
    slope : float
        Bits that one unit of distortion saves: minus the curve's derivative, about.
    channel : ndarray of shape (source symbols, reproduction symbols)
        Probabilities of reproductions. Symbols of probability zero get their best reproduction.
    output : ndarray
        Probabilities of reproductions for the source.
    method : str
        What found it.
    iterations : int
        How many iterations that took.
    """

    rate: float
    lower_bound: float
    distortion: float
    slope: float
    channel: FloatArray
    output: FloatArray
    method: str
    iterations: int

    @property
    def gap(self) -> float:
        """Bits between `lower_bound` and `rate`."""
        return self.rate - self.lower_bound


def rate_distortion(
    source: ArrayLike,
    distortion: ArrayLike,
    target: float,
    *,
    tolerance: float = 1e-6,
    method: str = "interior-point",
    max_iterations: int | None = None,
) -> RateDistortion:
    """Return the least number of bits per symbol that reproduces a source with a mean distortion of at most the target.

    Parameters
    ----------
    source : array_like
        Probabilities of source symbols; they must add up to 1, to 1e-9.
    distortion : array_like of shape (source symbols, reproduction symbols)
        Distortion of each pair; ``inf`` where a reproduction is forbidden.
    target : float
        Largest mean distortion.
    tolerance : float
        Largest gap between rate and lower bound in bits, from 1e-11 to 1.
    method : str
        ``"interior-point"``, on the dual problem with the slope among the unknowns: for gaps of 1e-6 bits or less; or
        ``"blahut-arimoto"``, accelerated: for more symbols and moderate gaps.
    max_iterations : int, optional
        500 and 200 000 by default.

    Returns
    -------
    RateDistortion
        Its gap is at most the tolerance. From the largest distortion that needs no bits on, rate and bound are zero.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If no channel has so low a distortion.
    ConvergenceError
        If the tolerance is not reached.

    Examples
    --------
    >>> import numpy as np
    >>> found = rate_distortion([0.5, 0.5], 1 - np.eye(2), 0.11)
    >>> round(found.rate, 5), found.gap < 1e-6
    (0.50008, True)
    """
    probabilities, matrix = _checked(source, distortion)
    target = check_real("target", target, low=-1e100, high=1e100)
    tolerance = check_real("tolerance", tolerance, low=1e-11, high=1.0)
    check_choice("method", method, METHODS)
    most = check_integer("max_iterations", ITERATIONS[method] if max_iterations is None else max_iterations, low=1, high=10**9)
    possible = probabilities > 0
    means = probabilities[possible] @ matrix[possible]
    best = int(np.argmin(means))
    if means[best] <= target:
        return _without_bits(matrix, best, float(means[best]), method)
    reduced = _reduced(probabilities[possible], matrix[possible], target)
    solve = solve_interior_point if method == "interior-point" else solve_blahut_arimoto
    return _restored(solve(reduced, tolerance * math.log(2), most), matrix, possible, reduced, target, method)


def _checked(source: ArrayLike, distortion: ArrayLike) -> tuple[FloatArray, FloatArray]:
    probabilities, matrix = np.asarray(source, dtype=float), np.asarray(distortion, dtype=float)
    if probabilities.ndim != 1 or probabilities.size == 0 or not np.all(np.isfinite(probabilities)) or np.any(probabilities < 0):
        raise ValueError(f"source must be a list of probabilities, from 0 to 1, got {source!r}")
    total = math.fsum(probabilities)
    if abs(total - 1) > 1e-9:
        raise ValueError(f"source must add up to 1, got a sum of {total!r}; divide by it")
    if matrix.ndim != 2 or matrix.shape[0] != probabilities.size or matrix.shape[1] == 0:
        raise ValueError(f"distortion must have {probabilities.size} rows, one for each source symbol, got the shape {matrix.shape}")
    finite = np.isfinite(matrix)
    if np.any(np.isnan(matrix)) or np.any(matrix == -np.inf) or np.any(np.abs(matrix[finite]) > 1e100):
        raise ValueError("distortion must have numbers from -1e100 to 1e100, or inf for forbidden pairs, got others")
    forbidden = np.flatnonzero((probabilities > 0) & ~finite.any(axis=1))
    if forbidden.size:
        raise InfeasibleError(f"distortion forbids every reproduction of symbol {forbidden[0]}; one must be allowed")
    return probabilities / total, matrix


def _reduced(probabilities: FloatArray, matrix: FloatArray, target: float) -> ReducedProblem:
    least = matrix.min(axis=1)
    least_mean = math.fsum(probabilities * least)
    error = 8 * UNIT * (math.fsum(probabilities * np.abs(least)) + abs(target)) if np.any(least) else 0.0
    if target < least_mean - error:
        raise InfeasibleError(f"target {target!r} is below the least mean distortion, {least_mean!r}; take at least that")
    remaining = target - least_mean
    return ReducedProblem(probabilities, matrix - least[:, None], remaining if remaining > error else 0.0, error)


def _without_bits(matrix: FloatArray, best: int, distortion: float, method: str) -> RateDistortion:
    output = np.zeros(matrix.shape[1])
    output[best] = 1.0
    return RateDistortion(0.0, 0.0, distortion, 0.0, np.tile(output, (matrix.shape[0], 1)), output, method, 0)


def _restored(
    found: CertifiedChannel, matrix: FloatArray, possible: np.ndarray, reduced: ReducedProblem, target: float, method: str
) -> RateDistortion:
    channel: TestChannel = found.channel
    weights = np.zeros(matrix.shape)
    weights[possible] = channel.weights
    impossible = np.flatnonzero(~possible)
    weights[impossible, matrix[impossible].argmin(axis=1)] = 1.0
    bits = 1 / math.log(2)
    distortion = target - (reduced.target - channel.distortion)
    lower = max(found.lower_bound, 0.0) * bits * (1 - 4 * UNIT)
    rate = channel.rate * bits * (1 + 4 * UNIT)
    return RateDistortion(rate, lower, distortion, channel.slope * bits, weights, channel.output, method, found.iterations)
