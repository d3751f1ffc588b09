"""Blahut and Arimoto's iteration for the rate-distortion function, accelerated, and the bounds that certify its result.

Everything here is in nats. Distortions are reduced by the least one of each source symbol, and so is the target: that moves the curve and
keeps s D from cancelling. `docs/frequency-limits.md` has the proofs.
"""

import math
from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray
from ...errors import ConvergenceError
from ..numerics.rounding import UNIT

# exp(-x) is zero in floats.
UNDERFLOW = 746.0
LEAST_MASS = 1e-280


@dataclass(frozen=True, eq=False)
class ReducedProblem:
    """A source and a distortion measure without impossible symbols.

    Attributes
    ----------
    source : ndarray
        Probabilities, all above 0.
    distortion : ndarray
        From 0, which every row has, to infinity.
    target : float
        Largest mean distortion; 0 where it is least.
    target_error : float
        How far rounding may have moved the target.
    """

    source: FloatArray
    distortion: FloatArray
    target: float
    target_error: float

    @property
    def finite_distortion(self) -> FloatArray:
        """Distortions with 0 where they are infinite: nothing is ever sent there."""
        return np.where(np.isfinite(self.distortion), self.distortion, 0.0)

    def steepest(self) -> float:
        """Return a slope at which all but the least distortions are as good as forbidden."""
        positive = self.distortion[(self.distortion > 0) & np.isfinite(self.distortion)]
        return min(UNDERFLOW / float(positive.min()), 1e300) if positive.size else 1.0

    def kernel(self, slope: float) -> FloatArray:
        """Return exp(-slope * distortion)."""
        return np.asarray(np.exp(-slope * self.distortion))

    def lower_bound(self, log_weights: FloatArray, slope: float, log_cost: float) -> float:
        """Return Berger's dual bound; errs downward.

        For every a and every s >= 0, R(D) >= sum_x p(x) a(x) - s D - ln max_y sum_x p(x) exp(a(x) - s d(x, y)); `log_cost` is the last term.
        """
        bound = self.source @ log_weights - slope * self.target - log_cost
        return float(bound) - self.rounding(float(np.max(np.abs(log_weights))), slope)

    def rounding(self, largest: float, slope: float) -> float:
        """Return an allowance for rounding in a bound or a rate whose logarithms are at most `largest`.

        Terms of sums have an error of at most u (4 (746 + 2 largest) + 8), their exponents' part included, a sum of n terms n u more; twice
        that. A product of a slope with the target errs by what the target does.
        """
        terms = sum(self.distortion.shape)
        return UNIT * (8 * (UNDERFLOW + 2 * largest) + 4 * terms * (1 + largest) + 64) + slope * (self.target_error + 4 * UNIT * self.target)

    def test_channel(self, output: FloatArray, slope: float, slack: float) -> "TestChannel":
        """Return the best channel for this guess of the output's distribution; its distortion is below the target.

        That is output(y) exp(-s d(x, y)) / Z(x) with the least slope s that suffices, to `slack` nats.
        """
        finite = self.finite_distortion
        goal = self.target * (1 - 4 * UNIT * (sum(self.distortion.shape) + 8))
        low, high = 0.0, math.inf
        for _ in range(200):
            weights = self.kernel(slope) * output
            weights /= weights.sum(axis=1, keepdims=True)
            means = (weights * finite).sum(axis=1)
            distortion = float(self.source @ means)
            if distortion <= goal:
                high = slope
                if self.target == 0 or slope * (goal - distortion) <= slack:
                    return self._measured(output, slope, weights, distortion)
            else:
                low = slope
            spread = float(self.source @ ((weights * finite**2).sum(axis=1) - means**2))
            aim = goal - 0.25 * min(slack / max(slope, 1e-300), goal)
            slope = slope + (distortion - aim) / spread if spread > 0 else math.inf
            if not low < slope < high:
                slope = (low + high) / 2 if high < math.inf else 2 * low
        raise ConvergenceError(f"no slope has the distortion {self.target!r} for the output that was found")

    def _measured(self, output: FloatArray, slope: float, weights: FloatArray, distortion: float) -> "TestChannel":
        marginal = self.source @ weights
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(weights > 0, np.log(weights / marginal), 0.0)
        rate = float(self.source @ (weights * ratios).sum(axis=1))
        used = weights > 0
        largest = float(np.max(np.abs(ratios[used])))
        return TestChannel(max(rate, 0.0) + self.rounding(largest, 0.0), distortion, slope, weights, marginal)


@dataclass(frozen=True, eq=False)
class TestChannel:
    """A channel that attains a distortion, and its mutual information in nats, which errs upward."""

    __test__ = False

    rate: float
    distortion: float
    slope: float
    weights: FloatArray
    output: FloatArray


@dataclass(frozen=True, eq=False)
class CertifiedChannel:
    """A channel, a bound below on every channel's rate for its distortion, and how many iterations they took."""

    channel: TestChannel
    lower_bound: float
    iterations: int


def solve_blahut_arimoto(problem: ReducedProblem, tolerance: float, max_iterations: int) -> CertifiedChannel:
    """Return a channel whose rate is within `tolerance` nats of a lower bound.

    The output's distribution is found for one slope after the other, only as precisely as the distance from the target asks for; the slopes
    by regula falsi within a bracket. The bound is the best of all slopes.

    Raises
    ------
    ConvergenceError
        If `max_iterations` do not suffice.
    """
    finite = problem.finite_distortion
    search = _SlopeSearch(problem.target)
    output = np.full(problem.distortion.shape[1], 1 / problem.distortion.shape[1])
    slope = problem.steepest() if problem.target == 0 else problem.test_channel(output, 1 / float(finite.max()), 0.1).slope
    spent, precision, lower, gap = 0, max(tolerance / 4, 0.03), 0.0, math.inf
    while spent < max_iterations:
        stage = _fixed_slope(problem, output, slope, precision, max_iterations - spent)
        output, spent = stage.output, spent + stage.iterations
        lower = max(lower, stage.lower_bound)
        channel = problem.test_channel(output, slope, tolerance / 16)
        gap = channel.rate - lower
        if gap <= tolerance:
            return CertifiedChannel(channel, lower, spent)
        if problem.target > 0:
            weights = problem.kernel(slope) * output
            distortion = float(problem.source @ ((weights * finite).sum(axis=1) / weights.sum(axis=1)))
            mismatch = abs(channel.slope - slope) * abs(distortion - problem.target)
            if mismatch > precision / 4 or precision <= tolerance / 4:
                slope = search.next(slope, distortion, channel.slope)
            precision = max(tolerance / 8, min(precision / 2, mismatch))
        else:
            precision = max(tolerance / 8, precision / 4)
    raise ConvergenceError(
        f"Blahut and Arimoto's iteration reached a gap of {gap / math.log(2):.3g} bits, not {tolerance / math.log(2):.3g}, "
        f"in {max_iterations} iterations; method='interior-point' is quicker for small gaps"
    )


@dataclass(frozen=True, eq=False)
class _Stage:
    output: FloatArray
    lower_bound: float
    iterations: int


def _fixed_slope(problem: ReducedProblem, output: FloatArray, slope: float, precision: float, most: int) -> _Stage:
    """Return the distribution of outputs for one slope, until max_y ln c(y) is at most the precision, and the bound at the target.

    One iteration multiplies by c(y) = sum_x p(x) exp(-s d(x, y))/Z(x). Every two of them are extrapolated in the logarithms (SQUAREM,
    Varadhan, Roland 2008, scheme S3), unless that raises the objective -sum_x p(x) ln Z(x), which two iterations never do.
    """
    kernel = problem.kernel(slope)
    lower, reach = -math.inf, 4.0

    def visit(point: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        partition = kernel @ point
        return partition, (problem.source / partition) @ kernel, -float(problem.source @ np.log(partition))

    partition, growth, objective = visit(output)
    spent = 1
    while True:
        log_cost = float(np.log(growth.max()))
        lower = max(lower, problem.lower_bound(-np.log(partition), slope, log_cost))
        if log_cost - float((output * growth) @ np.log(np.maximum(growth, LEAST_MASS))) <= precision or spent >= most:
            return _Stage(output, lower, spent)
        first = _normalised(output * growth)
        _, second_growth, _ = visit(first)
        steps = np.log(np.maximum(growth, LEAST_MASS))
        turn = np.log(np.maximum(second_growth, LEAST_MASS)) - steps
        second = _normalised(first * second_growth)
        length = math.sqrt(float(first @ steps**2) / max(float(first @ turn**2), 1e-300))
        length = min(max(length, 1.0), reach)
        exponent = np.log(np.maximum(output, LEAST_MASS)) + 2 * length * steps + length**2 * turn
        extrapolated = _normalised(np.exp(exponent - exponent.max()))
        partition, growth, found = visit(extrapolated)
        spent += 2
        if found <= objective:
            output, objective = extrapolated, found
            reach = 4 * reach if length == reach else reach
        else:
            reach = max(reach / 2, 2.0)
            output = second
            partition, growth, objective = visit(second)
            spent += 1


def _normalised(masses: FloatArray) -> FloatArray:
    masses = np.maximum(masses, LEAST_MASS)
    return np.asarray(masses / masses.sum())


class _SlopeSearch:
    """Slopes on both sides of the target, and the next one to try."""

    def __init__(self, target: float) -> None:
        self.target = target
        self.flat: tuple[float, float] | None = None
        self.steep: tuple[float, float] | None = None

    def next(self, slope: float, distortion: float, guess: float) -> float:
        """Return the next slope; `guess` is that for which the present output would meet the target."""
        point = (slope, math.log(max(distortion, 1e-300) / self.target))
        if point[1] > 0:
            self.flat = point
        else:
            self.steep = point
        if self.flat is None or self.steep is None:
            return guess
        (low, above), (high, below) = self.flat, self.steep
        if not low < high:
            self.flat = self.steep = None
            return guess
        share = min(max(above / (above - below), 0.05), 0.95)
        return low * (high / low) ** share
