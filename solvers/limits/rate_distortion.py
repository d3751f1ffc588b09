"""The certified rate-distortion function of any finite source and distortion measure.

The default method is an interior point method on Berger's dual, in which the slope is one more unknown: maximise sum_x p(x) a(x) - s D
over a and s >= 0, subject to c(y) = sum_x p(x) exp(a(x) - s d(x, y)) <= 1 for all y. The dual is convex, and its multipliers are the
output's distribution q. A Newton step costs as much as the product of the matrix with its transpose. The methods work in nats; results of
`rate_distortion` are in bits.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve

from ...arguments import check_choice, check_integer, check_real
from ...arrays import FloatArray
from ...errors import ConvergenceError, InfeasibleError
from ..numerics.rounding import UNIT
from .blahut_arimoto import CertifiedChannel, ReducedProblem, TestChannel, solve_blahut_arimoto

START_ITERATIONS = 5
# Least multiplier at the start, as a share of the multipliers' mean.
FLOOR = 0.1
# A step covers this share of the distance to the boundary.
STEP_SHARE = 0.99
# Largest change of a(x) in a step.
LONGEST_EXPONENT = 3.0
# Least product of a multiplier with its slack, as a share of the products' mean: points stay near the central path.
CENTRALITY = 1e-4
# A matrix is scaled to a unit diagonal before the ridge is added; a fixed number of refinements removes the ridge's error.
RIDGE = 1e-14
LEAST_PIVOT = 1e-15
REFINEMENTS = 2

METHODS = ("interior-point", "blahut-arimoto")
ITERATIONS = {"interior-point": 500, "blahut-arimoto": 200_000}


@dataclass(frozen=True, eq=False)
class RateDistortion:
    """The least rate for a distortion, as a proven lower and upper bound.

    Attributes
    ----------
    rate : float
        Upper bound on the mutual information of `channel` in bits; the channel's distortion is at most the target.
    lower_bound : float
        Lower bound, from the dual problem, on every channel's rate for the target in bits.
    distortion : float
        Mean distortion of `channel`.
    slope : float
        Number of bits that one unit of distortion saves, which is about minus the curve's derivative.
    channel : ndarray of shape (source symbols, reproduction symbols)
        Probabilities of reproductions, given each source symbol. Symbols of probability zero get their best reproduction.
    output : ndarray
        Probabilities of reproductions for the source.
    method : str
        Name of the method.
    iterations : int
        Number of the method's iterations.
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
        """Difference between `rate` and `lower_bound`, in bits."""
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
    """Return the least number of bits per symbol that reproduces a source to a mean distortion.

    Parameters
    ----------
    source : array_like
        Probabilities of source symbols; they must add up to 1, to 1e-9.
    distortion : array_like of shape (source symbols, reproduction symbols)
        Distortion of each pair; ``inf`` for a forbidden reproduction.
    target : float
        Largest mean distortion.
    tolerance : float
        Largest gap between rate and lower bound in bits, from 1e-11 to 1.
    method : str
        ``"interior-point"`` solves the dual problem with the slope among the unknowns, for gaps of 1e-6 bits or less; ``"blahut-arimoto"``
        is the accelerated iteration, for more symbols and moderate gaps.
    max_iterations : int, optional
        Largest number of iterations; by default 500 and 200 000.

    Returns
    -------
    RateDistortion
        The gap is at most the tolerance. From the largest distortion that needs no bits on, rate and bound are zero.

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
    >>> curve = rate_distortion([0.5, 0.5], 1 - np.eye(2), 0.11)
    >>> round(curve.rate, 5), curve.gap < 1e-6
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
        raise InfeasibleError(f"target must be at least the least mean distortion {least_mean!r}, got {target!r}")
    remaining = target - least_mean
    return ReducedProblem(probabilities, matrix - least[:, None], remaining if remaining > error else 0.0, error)


def _without_bits(matrix: FloatArray, best: int, distortion: float, method: str) -> RateDistortion:
    output = np.zeros(matrix.shape[1])
    output[best] = 1.0
    return RateDistortion(0.0, 0.0, distortion, 0.0, np.tile(output, (matrix.shape[0], 1)), output, method, 0)


def _restored(
    certified: CertifiedChannel, matrix: FloatArray, possible: np.ndarray, reduced: ReducedProblem, target: float, method: str
) -> RateDistortion:
    channel: TestChannel = certified.channel
    weights = np.zeros(matrix.shape)
    weights[possible] = channel.weights
    impossible = np.flatnonzero(~possible)
    weights[impossible, matrix[impossible].argmin(axis=1)] = 1.0
    bits = 1 / math.log(2)
    distortion = target - (reduced.target - channel.distortion)
    lower = max(certified.lower_bound, 0.0) * bits * (1 - 4 * UNIT)
    rate = channel.rate * bits * (1 + 4 * UNIT)
    return RateDistortion(rate, lower, distortion, channel.slope * bits, weights, channel.output, method, certified.iterations)


def solve_interior_point(problem: ReducedProblem, tolerance: float, max_iterations: int) -> CertifiedChannel:
    """Return a channel whose rate is within `tolerance` nats of a lower bound.

    Raises
    ------
    ConvergenceError
        If `max_iterations` do not suffice, or rounding allows no more progress.
    """
    point = _start(problem)
    gap = math.inf
    for iteration in range(1, max_iterations + 1):
        estimate = point.complementarity + point.imbalance
        if estimate <= tolerance / 2:
            lower = max(0.0, problem.lower_bound(point.log_weights, point.slope, float(np.log(point.costs.max()))))
            channel = problem.test_channel(point.output / point.output.sum(), point.slope, tolerance / 16)
            if gap <= channel.rate - lower and estimate < 1e-3 * tolerance:
                break
            gap = min(gap, channel.rate - lower)
            if gap <= tolerance:
                return CertifiedChannel(channel, lower, iteration)
        moved = point.step()
        if moved is None:
            break
        point = moved
    raise ConvergenceError(
        f"the interior point method reached a gap of {gap / math.log(2):.3g} bits, not {tolerance / math.log(2):.3g}; "
        "a larger tolerance is needed, or a target farther from the least distortion"
    )


def _start(problem: ReducedProblem) -> "_Point":
    """Return a strictly feasible point after some iterations of Blahut and Arimoto."""
    letters = problem.distortion.shape[1]
    output = np.full(letters, 1 / letters)
    if problem.target == 0:
        slope = problem.steepest()
    else:
        slope = problem.test_channel(output, 1 / float(problem.finite_distortion.max()), 0.1).slope
    kernel = problem.kernel(slope)
    for _ in range(START_ITERATIONS):
        growth = (problem.source / (kernel @ output)) @ kernel
        output = output * growth
    partition = kernel @ output
    costs = (problem.source / partition) @ kernel
    log_weights = -np.log(partition) - math.log(costs.max()) - 0.3
    return _Point(problem, log_weights, slope, np.maximum(output, FLOOR / letters), 0.1 / (letters * slope))


class _Point:
    """An interior point: positive slacks 1 - c(y), multipliers and slope.

    The multiplier `unspent` of the slope is positive, too.
    """

    def __init__(
        self, problem: ReducedProblem, log_weights: FloatArray, slope: float, output: FloatArray, unspent: float, hurried: bool = False
    ) -> None:
        self.problem, self.log_weights, self.slope, self.output, self.unspent = problem, log_weights, slope, output, unspent
        self.hurried = hurried
        exponents = (np.log(problem.source) + log_weights)[:, None] - slope * problem.distortion
        # Capping exponents at 100 avoids overflow; a step that is too long still shows in its slacks.
        self.masses = np.exp(np.minimum(exponents, 100.0, out=exponents), out=exponents)
        self.costs = self.masses.sum(axis=0)
        self.slacks = 1 - self.costs
        # At the least distortion the slope stays fixed.
        self.bound_slope = problem.target > 0
        self.products = np.append(output * self.slacks, slope * unspent) if self.bound_slope else output * self.slacks
        self.spent = self.masses * problem.finite_distortion
        self.mean_distortions = self.spent.sum(axis=0)
        # The gradient of the Lagrangian holds the errors of the channel's input distribution and of its distortion.
        self.residual = self.masses @ output - problem.source
        self.slope_residual = problem.target - float(self.mean_distortions @ output) - unspent if self.bound_slope else 0.0

    @property
    def complementarity(self) -> float:
        """Duality gap in nats, if the residuals are zero."""
        return float(self.products.sum())

    @property
    def imbalance(self) -> float:
        """Cost of the residuals in nats, to first order."""
        scale = 1 + float(np.max(np.abs(self.log_weights)))
        return float(np.abs(self.residual).sum()) * scale + abs(self.slope_residual) * self.slope

    def distance(self, products: FloatArray | float, scale: float, slope: float) -> float:
        """Return the distance from the optimality conditions with these complementarity products."""
        off = float(np.abs(self.products - products).sum())
        return off + scale * float(np.abs(self.residual).sum()) + slope * abs(self.slope_residual)

    def step(self) -> "_Point | None":
        """Return the next point by Mehrotra's predictor and corrector, or None if every step fails."""
        system = _NewtonSystem(self)
        mean = self.complementarity / len(self.products)
        if not self.hurried:
            direction = system.solve(np.zeros_like(self.products))
            share = self._longest(direction)
            second_order = np.append(direction.slacks * direction.output, direction.slope * direction.unspent)[: len(self.products)]
            ahead = float(((1 - share) * self.products + share**2 * second_order).sum())
            centring = min(max((ahead / self.complementarity) ** 3, 1e-4), 1.0)
            second_order *= share > 0.1
            moved = self._along(system.solve(centring * mean - second_order), centring * mean)
            if moved is not None:
                return moved
        for centring in (0.5, 1.0):
            moved = self._along(system.solve(np.full_like(self.products, centring * mean)), centring * mean)
            if moved is not None:
                return moved
        return None

    def _longest(self, direction: "_Direction") -> float:
        """Return the largest share of a direction, up to 1, that keeps all variables nonnegative."""
        share = min(_longest(self.slacks, direction.slacks), _longest(self.output, direction.output))
        own = np.array([self.slope, self.unspent])
        return min(share, _longest(own, np.array([direction.slope, direction.unspent]))) if self.bound_slope else share

    def _along(self, direction: "_Direction", products: float) -> "_Point | None":
        """Return the farthest trial point that approaches the central path and stays interior."""
        share = STEP_SHARE * self._longest(direction)
        # Exponentials that nearly vanish have no curvature left to limit a step.
        share = min(share, LONGEST_EXPONENT / max(float(np.max(np.abs(direction.log_weights))), 1e-300))
        if direction.slope > 0:
            share = min(share, self.slope / direction.slope)
        scale = 1 + float(np.max(np.abs(self.log_weights)))
        before = self.distance(products, scale, self.slope)
        for _ in range(25):
            moved = _Point(
                self.problem,
                self.log_weights + share * direction.log_weights,
                self.slope + share * direction.slope,
                self.output + share * direction.output,
                self.unspent + share * direction.unspent,
                hurried=share < 0.3,
            )
            nearer = moved.distance(products, scale, self.slope) <= (1 - 0.01 * share) * before
            if nearer and moved.products.min() > CENTRALITY * moved.products.mean():
                return moved
            share *= 0.6
        return None


@dataclass(frozen=True, eq=False)
class _Direction:
    log_weights: FloatArray
    slope: float
    output: FloatArray
    slacks: FloatArray
    unspent: float


class _NewtonSystem:
    """The factored Newton equations at a point, in a and s alone."""

    def __init__(self, point: _Point) -> None:
        self.point = point
        self.ratios = point.output / point.slacks
        self.diagonal = point.masses @ point.output
        self.scaled = scaled = point.masses * np.sqrt(self.ratios)
        self.wide = scaled.shape[0] <= scaled.shape[1]
        if self.wide:
            matrix = scaled @ scaled.T
            matrix[np.diag_indices_from(matrix)] += self.diagonal
            self.scale = 1 / np.sqrt(matrix.diagonal())
            matrix *= self.scale * self.scale[:, None]
            matrix[np.diag_indices_from(matrix)] += RIDGE
        else:
            # With fewer letters than symbols, the matrix is a diagonal plus low rank, whose inverse is cheaper.
            matrix = (scaled / self.diagonal[:, None]).T @ scaled
            matrix[np.diag_indices_from(matrix)] += 1
        self.factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        # Subtracting each symbol's mean distortion moves a by the mean times s, so that less cancels in the pivot.
        self.means = point.spent @ point.output / self.diagonal
        centred = point.problem.finite_distortion - self.means[:, None]
        spent = point.masses * centred
        self.costs = spent.sum(axis=0)
        self.border = -(spent @ point.output) - point.masses @ (self.ratios * self.costs)
        self.bordered = self._solve_block(self.border)
        corner = float(point.output @ (spent * centred).sum(axis=0) + self.ratios @ self.costs**2) + point.unspent / point.slope
        self.pivot = max(corner - float(self.border @ self.bordered), LEAST_PIVOT * corner)

    def _solve_block(self, right: FloatArray) -> FloatArray:
        solution = self._solve_once(right)
        for _ in range(REFINEMENTS):
            solution = solution + self._solve_once(right - self.diagonal * solution - self.scaled @ (self.scaled.T @ solution))
        return solution

    def _solve_once(self, right: FloatArray) -> FloatArray:
        if self.wide:
            return np.asarray(self.scale * cho_solve(self.factor, self.scale * right, check_finite=False))
        divided = right / self.diagonal
        return np.asarray(divided - self.scaled @ cho_solve(self.factor, self.scaled.T @ divided, check_finite=False) / self.diagonal)

    def solve(self, products: FloatArray) -> _Direction:
        """Return the direction to given products of multipliers and slacks, to first order."""
        point = self.point
        letters = len(point.output)
        change = (products[:letters] - point.products[:letters]) / point.slacks
        plain = self._solve_block(-point.residual - point.masses @ change)
        slope, unspent = 0.0, 0.0
        if point.bound_slope:
            unspent = float(products[-1] - point.products[-1]) / point.slope
            slope_right = -point.slope_residual - float(self.means @ point.residual) + float(self.costs @ change) + unspent
            slope = (slope_right - float(self.border @ plain)) / self.pivot
            unspent -= point.unspent / point.slope * slope
        centred = plain - slope * self.bordered
        rise = centred @ point.masses - slope * self.costs
        return _Direction(centred + slope * self.means, slope, change + self.ratios * rise, -rise, unspent)


def _longest(values: FloatArray, steps: FloatArray) -> float:
    """Return the largest share of the steps, up to 1, that leaves all values nonnegative."""
    falling = steps < 0
    with np.errstate(over="ignore"):
        return min(1.0, float(np.min(-values[falling] / steps[falling]))) if np.any(falling) else 1.0
