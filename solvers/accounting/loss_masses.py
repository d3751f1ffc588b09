"""Privacy losses on a grid with the arithmetic of dp-accounting, to the last bit.

The classes compose one distribution for many numbers of rounds, and save what all numbers of rounds share: cumulants for the truncation.
They need neither dp-accounting nor the parts of SciPy that it imports, which take more than half a second to load. Methods have the names
of dp-accounting's `PrivacyLossDistribution`.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from ...arrays import FloatArray

# Mass of the losses that a composition cuts off, as in dp-accounting, and numerators of the exponents of Chernoff's bound on them.
CUT_OFF = 1e-15
EXPONENTS = np.concatenate([np.arange(-20, 0), np.arange(1, 21)])


@dataclass(frozen=True, eq=False)
class LossMasses:
    """A distribution of the privacy loss in one direction, on multiples of an interval.

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
    certain: float

    def self_compose(self, times: int) -> "LossMasses":
        """Return the distribution of the sum of independent losses."""
        low, high = self._ends(times)
        length = high - low + 1
        size = scipy.fft.next_fast_len(max(length, len(self.masses)))
        wrapped = np.real(scipy.fft.ifft(scipy.fft.fft(self.masses, size) ** times))
        certain = CUT_OFF - math.expm1(times * math.log1p(-self.certain))
        return LossMasses(self.interval, self.first * times + low, np.roll(wrapped, -low)[:length], certain)

    def get_epsilon_for_delta(self, delta: float) -> float:
        """Return the least epsilon of at least 0 with a hockey-stick divergence of at most delta."""
        if self.certain > delta:
            return math.inf
        upper, lower = self.certain, 0.0
        loss = (self.first + len(self.masses) - 1) * self.interval
        for mass in self.masses[::-1].tolist():
            if upper > delta and lower > 0 and math.log((upper - delta) / lower) >= loss:
                break
            upper += mass
            lower += math.exp(-loss) * mass
            if upper >= delta and lower == 0:
                return max(0.0, loss)
            loss -= self.interval
        return 0.0 if upper <= lower + delta else math.log((upper - delta) / lower)

    def losses(self) -> FloatArray:
        """Return the losses of the masses."""
        return np.asarray((np.arange(len(self.masses)) + self.first) * self.interval)

    @cached_property
    def _cumulants(self) -> FloatArray:
        """Logarithms of the moment generating function at each exponent, in intervals from the smallest loss."""
        places = np.arange(len(self.masses)) / len(self.masses)
        return np.array([math.log(float(np.exp(exponent * places) @ self.masses)) for exponent in EXPONENTS])

    def _ends(self, times: int) -> tuple[int, int]:
        """Return the ends of the sum's grid by Chernoff's bound, in intervals from the sum of the smallest losses."""
        bounds = (times * self._cumulants + math.log(2 / CUT_OFF)) / (EXPONENTS / len(self.masses))
        low, high = np.floor(bounds[EXPONENTS < 0].max()), np.ceil(bounds[EXPONENTS > 0].min())
        return max(0, int(low)), min((len(self.masses) - 1) * times, int(high))


@dataclass(frozen=True, eq=False)
class DirectedLosses:
    """Privacy losses of a client that is removed, and of a client that is added."""

    removed: LossMasses
    added: LossMasses

    def self_compose(self, times: int) -> "DirectedLosses":
        """Return the losses of independent uses together."""
        return DirectedLosses(self.removed.self_compose(times), self.added.self_compose(times))

    def get_epsilon_for_delta(self, delta: float) -> float:
        """Return the larger epsilon of both directions."""
        return max(self.removed.get_epsilon_for_delta(delta), self.added.get_epsilon_for_delta(delta))


def masses_between(interval: float, first: int, deltas: FloatArray) -> LossMasses:
    """Return the losses whose hockey-stick divergences are linear in e^epsilon between grid points.

    The method is algorithm 1 of Doroshenko et al. 2022, *Connect the dots*.

    Parameters
    ----------
    interval : float
        Distance of grid points.
    first : int
        First grid point, in intervals.
    deltas : ndarray of shape (points,)
        Divergences at the grid points, from 0 to 1; two points at least. Rounding may let them rise.
    """
    differences = np.diff(np.minimum.accumulate(deltas))
    masses = np.empty_like(deltas)
    masses[0] = 1 - deltas[0] + differences[0] / math.expm1(interval)
    masses[1:-1] = (differences[1:] - differences[:-1] * math.exp(interval)) / math.expm1(interval)
    masses[-1] = differences[-1] / math.expm1(-interval)
    return LossMasses(interval, first, np.maximum(0.0, masses), float(np.minimum.accumulate(deltas)[-1]))
