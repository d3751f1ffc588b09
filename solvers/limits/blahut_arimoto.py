"""Blahut and Arimoto's accelerated iteration for the rate-distortion function.

The result has a certificate. Rates are in nats. The least distortion of each source symbol is subtracted from its distortions, and their
mean from the target: the subtraction shifts the curve and keeps s D from cancelling. `docs/proofs/frequency-limits.md` has the proofs.
"""

import math
from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray
from ...errors import ConvergenceError
from ..numerics.rounding import UNIT

# exp(-UNDERFLOW) is zero in floats.
UNDERFLOW = 746.0
LEAST_MASS = 1e-280
# After more slopes in a row on one side of the target, the search tries the slope on the other side again.
MOST_ON_ONE_SIDE = 4


@dataclass(frozen=True, eq=False)
class ReducedProblem:
    """A source and a distortion measure without impossible symbols.

    Attributes
    ----------
    source : ndarray
        Probabilities, all above 0.
    distortion : ndarray
        Distortions from 0, which every row contains, to infinity.
    target : float
        Largest mean distortion; 0 asks for the least distortion.
    target_error : float
        Upper bound on the target's rounding error.
    """

    source: FloatArray
    distortion: FloatArray
    target: float
    target_error: float

    @property
    def finite_distortion(self) -> FloatArray:
        """Distortions with 0 in place of infinity, where the channel has no mass."""
        return np.where(np.isfinite(self.distortion), self.distortion, 0.0)

    def steepest(self) -> float:
        """Return a slope at which all but the least distortions have negligible weight."""
        positive = self.distortion[(self.distortion > 0) & np.isfinite(self.distortion)]
        return min(UNDERFLOW / float(positive.min()), 1e300) if positive.size else 1.0

    def kernel(self, slope: float) -> FloatArray:
        """Return exp(-slope * distortion)."""
        return np.asarray(np.exp(-slope * self.distortion))

    @property
    def goal(self) -> float:
        """Distortion below the target by an allowance for rounding."""
        return self.target * (1 - 4 * UNIT * (sum(self.distortion.shape) + 8))

    def channel(self, output: FloatArray, slope: float) -> FloatArray:
        """Return output(y) exp(-slope * d(x, y)), divided by each row's sum."""
        weights = self.kernel(slope) * output
        weights /= weights.sum(axis=1, keepdims=True)
        return weights

    def lower_bound(self, log_weights: FloatArray, slope: float, log_cost: float) -> float:
        """Return Berger's dual lower bound on the rate.

        For every a and every s >= 0, R(D) >= sum_x p(x) a(x) - s D - ln max_y sum_x p(x) exp(a(x) - s d(x, y)), where `log_cost` is the
        last term.
        """
        bound = self.source @ log_weights - slope * self.target - log_cost
        sizes = np.abs(log_weights)
        return float(bound) - self.rounding(float(sizes.max()), float(self.source @ sizes), slope)

    def rounding(self, largest: float, mean: float, slope: float) -> float:
        """Return an allowance for rounding in a bound or a rate, from the size of its logarithms.

        A term of a sum has an error of at most u (4 (746 + 2 largest) + 8), with the error of its exponent. A sum of n terms adds n u. The
        allowance is twice the total. A product of a slope with the target inherits the target's error.
        """
        terms = sum(self.distortion.shape)
        return UNIT * (8 * (UNDERFLOW + 2 * largest) + 4 * terms * (1 + mean) + 64) + slope * (self.target_error + 4 * UNIT * self.target)

    def test_channel(self, output: FloatArray, slope: float, slack: float) -> "TestChannel":
        """Return the best channel for a guess of the output's distribution.

        The channel's distortion is below the target. The channel is output(y) exp(-s d(x, y)) / Z(x) with the least sufficient slope s, to
        `slack` nats.
        """
        finite = self.finite_distortion
        goal = self.goal
        low, high = 0.0, math.inf
        for _ in range(200):
            weights = self.channel(output, slope)
            means = (weights * finite).sum(axis=1)
            distortion = float(self.source @ means)
            if distortion <= goal:
                high = slope
                if self.target == 0 or slope * (goal - distortion) <= slack:
                    return self.measured(weights, slope, distortion)
            else:
                low = slope
            spread = float(self.source @ ((weights * finite**2).sum(axis=1) - means**2))
            aim = goal - 0.25 * min(slack / max(slope, 1e-300), goal)
            slope = slope + (distortion - aim) / spread if spread > 0 else math.inf
            if not low < slope < high:
                slope = (low + high) / 2 if high < math.inf else 2 * low
        raise ConvergenceError(f"no slope has the distortion {self.target!r} for this output")

    def measured(self, weights: FloatArray, slope: float, distortion: float) -> "TestChannel":
        """Return a channel with its mutual information."""
        marginal = self.source @ weights
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(weights > 0, np.log(weights / marginal), 0.0)
        rate = float(self.source @ (weights * ratios).sum(axis=1))
        mean = float(self.source @ (weights * np.abs(ratios)).sum(axis=1))
        return TestChannel(max(rate, 0.0) + self.rounding(0.0, mean, 0.0), distortion, slope, weights, marginal)


@dataclass(frozen=True, eq=False)
class TestChannel:
    """A channel that attains a distortion, and an upper bound on its mutual information in nats."""

    __test__ = False

    rate: float
    distortion: float
    slope: float
    weights: FloatArray
    output: FloatArray


@dataclass(frozen=True, eq=False)
class CertifiedChannel:
    """A channel, a lower bound on every rate for its distortion, and the number of iterations."""

    channel: TestChannel
    lower_bound: float
    iterations: int


def solve_blahut_arimoto(problem: ReducedProblem, tolerance: float, max_iterations: int) -> CertifiedChannel:
    """Return a channel whose rate is within `tolerance` nats of a lower bound.

    The iteration computes the output's distribution for a sequence of slopes, only as precisely as the distance from the target requires;
    regula falsi within a bracket gives the slopes. The bound is the best of all slopes. Where the curve is straight, one slope has many
    distortions, and the channel is a mixture of channels on both sides of the target.

    Raises
    ------
    ConvergenceError
        If `max_iterations` do not suffice.
    """
    finite = problem.finite_distortion
    search = _SlopeSearch(problem.goal)
    output = np.full(problem.distortion.shape[1], 1 / problem.distortion.shape[1])
    steepest = problem.steepest()
    slope = steepest if problem.target == 0 else problem.test_channel(output, 1 / float(finite.max()), 0.1).slope
    spent, precision, lower, gap = 0, max(tolerance / 4, 0.03), 0.0, math.inf
    while spent < max_iterations:
        stage = _fixed_slope(problem, output, slope, precision, max_iterations - spent)
        output, spent = stage.output, spent + stage.iterations
        lower = max(lower, stage.lower_bound)
        channels = [problem.test_channel(output, slope, tolerance / 16)]
        mismatch, visited = 0.0, None
        if problem.target > 0:
            weights = problem.channel(output, slope)
            distortion = float(problem.source @ (weights * finite).sum(axis=1))
            mismatch = abs(channels[0].slope - slope) * abs(distortion - problem.target)
            visited = _Visited(slope, distortion, weights)
            search.add(visited)
            mixed = search.mixture()
            channels += [problem.measured(mixed, slope, problem.goal)] if mixed is not None else []
        channel = min(channels, key=lambda candidate: candidate.rate)
        gap = channel.rate - lower
        if gap <= tolerance:
            return CertifiedChannel(channel, lower, spent)
        if mismatch > precision / 4 or precision <= tolerance / 4:
            slope = slope if visited is None else min(search.next(visited, channels[0].slope), steepest)
        precision = max(tolerance / 8, min(precision / 2, max(mismatch, precision / 8)))
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
    """Return the output's distribution for a slope, until max_y ln c(y) <= precision.

    The result holds the bound at the target, too. One iteration multiplies the output by c(y) = sum_x p(x) exp(-s d(x, y))/Z(x). Every two
    iterations are extrapolated in the logarithms (SQUAREM, Varadhan, Roland 2008, scheme S3), unless the extrapolation raises the objective
    -sum_x p(x) ln Z(x), which two iterations never do.
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
        partition, growth, extrapolated_objective = visit(extrapolated)
        spent += 2
        if extrapolated_objective <= objective:
            output, objective = extrapolated, extrapolated_objective
            reach = 4 * reach if length == reach else reach
        else:
            reach = max(reach / 2, 2.0)
            output = second
            partition, growth, objective = visit(second)
            spent += 1


def _normalised(masses: FloatArray) -> FloatArray:
    masses = np.maximum(masses, LEAST_MASS)
    return np.asarray(masses / masses.sum())


@dataclass(frozen=True, eq=False)
class _Visited:
    """A slope with its channel and the channel's distortion."""

    slope: float
    distortion: float
    weights: FloatArray


class _SlopeSearch:
    """The latest slopes on both sides of the target distortion."""

    def __init__(self, goal: float) -> None:
        self.goal = goal
        # `near` is the latest slope, and `far` the latest slope on the other side of the target.
        self.near: _Visited | None = None
        self.far: _Visited | None = None
        self.side = 0
        self.one_sided = 0
        self.stride = 0.0

    def add(self, visited: _Visited) -> None:
        """Add a slope with its channel."""
        side = 1 if visited.distortion > self.goal else -1
        if side == self.side:
            self.one_sided += 1
        else:
            self.far, self.side, self.one_sided = self.near, side, 1
        self.near = visited

    def mixture(self) -> FloatArray | None:
        """Return the channel of the target distortion between near and far, or None without both."""
        if self.near is None or self.far is None:
            return None
        share = (self.goal - self.far.distortion) / (self.near.distortion - self.far.distortion)
        return np.asarray(share * self.near.weights + (1 - share) * self.far.weights)

    def next(self, near: _Visited, guess: float) -> float:
        """Return the next slope.

        `guess` is the slope at which the latest output would meet the target.
        """
        far = self.far
        if far is None:
            # Outputs adapt to the slope and change the distortion by more than the guess allows for.
            return min(max(guess, near.slope / 2), 2 * near.slope)
        apart = math.log(far.slope / near.slope)
        if self.one_sided > MOST_ON_ONE_SIDE or apart * self.side <= 0:
            # The far slope's output may be too imprecise, so the search retries a slope a little farther away, then farther.
            self.stride = max(2 * self.stride, 2 * abs(apart), 1e-12)
            return near.slope * math.exp(self.side * self.stride)
        self.stride = 0.0
        near_error, far_error = (math.log(max(visited.distortion, 1e-300) / self.goal) for visited in (near, far))
        share = min(max(near_error / (near_error - far_error), 0.05), 0.95)
        return near.slope * math.exp(apart * (0.5 if self.one_sided > 2 else share))
