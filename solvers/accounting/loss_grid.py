"""Privacy losses on a grid, composed by Fourier transforms of arrays.

A distribution here needs no package that takes a second to load; its methods have the names of dp-accounting's.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_integer
from ...arrays import FloatArray
from ..numerics.rounding import UNIT
from .renyi_curve import MOST_ROUNDS, check_delta

# Probability of the losses that a composition cuts off at either end, and exponents of Chernoff's bound on them, in inverse deviations.
CUT_OFF = 1e-18
EXPONENTS = np.geomspace(1e-3, 1e3, 121)


@dataclass(frozen=True, eq=False)
class LossGrid:
    """A distribution of the privacy loss on multiples of an interval.

    Attributes
    ----------
    interval : float
        Distance of grid points.
    first : int
        Smallest loss, in intervals.
    masses : ndarray of shape (points,)
        Probabilities of this and the following losses.
    certain : float
        Probability of an infinite loss.
    """

    interval: float
    first: int
    masses: FloatArray
    certain: float = 0.0

    def self_compose(self, times: int) -> "LossGrid":
        """Return the distribution of the sum of independent losses.

        Losses above the composed grid, by Chernoff's bound at most 1e-18 of them, count as infinite; those below it count as others.
        """
        times = check_integer("times", times, low=1, high=MOST_ROUNDS)
        low, high = self._ends(times)
        size = _transform_size(max(high - low + 1, len(self.masses)))
        wrapped = np.fft.irfft(_power(np.fft.rfft(self.masses, size), times), size)
        # The sum of the offsets wraps around the circle of the transform.
        masses = np.roll(wrapped, times * self.first - low)[: high - low + 1]
        # Four operations with at most 4 units each.
        certain = -math.expm1(times * math.log1p(-self.certain)) * (1 + 16 * UNIT) + CUT_OFF
        return LossGrid(self.interval, low, np.maximum(masses, 0.0), certain)

    def get_delta_for_epsilon(self, epsilon: float) -> float:
        """Return the hockey-stick divergence."""
        above = max(math.floor(epsilon / self.interval) + 1 - self.first, 0)
        losses = self.losses(above)
        return self.certain + float(self.masses[above:] @ -np.expm1(np.minimum(epsilon - losses, 0.0)))

    def get_epsilon_for_delta(self, delta: float) -> float:
        """Return the least epsilon of at least 0 with at most this divergence; infinite if there is none."""
        delta = check_delta(delta)
        if self.certain > delta:
            return math.inf
        if self.get_delta_for_epsilon(0.0) <= delta:
            return 0.0
        # The divergence at the first bound is above delta, that at the second is not: it is at most the probability of larger losses, and
        # more than half of the probability of losses that are larger by ln 2.
        tails = self.certain + np.cumsum(self.masses[::-1])
        last = self.first + len(self.masses) - 1
        high = last - int(np.searchsorted(tails, delta, side="right"))
        low = last - int(np.searchsorted(tails, 2 * delta, side="right")) - math.ceil(math.log(2) / self.interval) - 2
        low, high = max(low, 0), max(high + 1, 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.get_delta_for_epsilon(middle * self.interval) > delta else (low, middle)
        above = max(high - self.first, 0)
        masses = self.masses[above:]
        # Between grid points the divergence is linear in e^epsilon.
        weighed = float(masses @ np.exp(high * self.interval - self.losses(above)))
        return min(high * self.interval + math.log((self.certain + float(masses.sum()) - delta) / weighed), high * self.interval)

    def losses(self, start: int = 0) -> FloatArray:
        """Return the losses of the masses from a place on."""
        return self.interval * np.arange(self.first + start, self.first + len(self.masses), dtype=float)

    def _ends(self, times: int) -> tuple[int, int]:
        """Return the ends of the sum's grid, in intervals."""
        lowest, highest = times * self.first, times * (self.first + len(self.masses) - 1)
        losses = self.losses()
        spread = math.sqrt(times * float(self.masses @ losses**2))
        if spread == 0:
            return lowest, highest
        ends = []
        for sign in (1, -1):
            exponents = EXPONENTS / spread
            largest = exponents * sign * (losses[-1] if sign > 0 else losses[0])
            scaled = np.exp(np.outer(sign * exponents, losses) - largest[:, None])
            cumulants = np.log(scaled @ self.masses) + largest
            ends.append(float(np.min((times * cumulants - math.log(CUT_OFF)) / exponents)) / self.interval)
        return max(lowest, math.floor(-ends[1])), min(highest, math.ceil(ends[0]))


def _transform_size(least: int) -> int:
    """Return the smallest power of two, or 3 or 5 times one, that is at least as large: transforms of these sizes are fast."""
    return min(factor << max(math.ceil(least / factor) - 1, 0).bit_length() for factor in (1, 3, 5))


def _power(factors: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """Return powers by squaring, which is many times faster than complex logarithms."""
    power = np.ones_like(factors)
    while True:
        if times % 2:
            power *= factors
        times //= 2
        if times == 0:
            return power
        factors = factors * factors
