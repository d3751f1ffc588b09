"""Points of a Poisson process beyond a horizon, of which only those with rare marks are drawn and the others counted."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy

from ....arrays import FloatArray
from ...noise.random_words import WordSource
from ...noise.redraws import MOST_REDRAWS, Redraws

# Means from which Poisson numbers are drawn by transformed rejection, and from which as rounded normal numbers, closer than 1e-4.
TRANSFORMED_FROM, NORMAL_FROM = 10.0, 2.0**26


def exponentials(words: WordSource, count: int) -> FloatArray:
    """Draw exponential numbers of mean 1, above 0."""
    # Half a step beyond the largest uniform number rounds to 1, of which there is no logarithm.
    return np.asarray(-np.log1p(-np.minimum(words.uniforms(count) + 2.0**-54, 1 - 2.0**-53)))


@dataclass(frozen=True)
class TailPoint:
    """A point (T, V).

    Attributes
    ----------
    before : int
        Number of points between the horizon and this one, of either kind.
    race : float
        ``T V**(1/alpha)``.
    """

    before: int
    race: float


@dataclass(frozen=True)
class TailPoints:
    """Points (T, V) with T beyond a horizon, at rate 1, and V exponential: those with ``T V**(1/alpha) <= reach``, in order.

    Attributes
    ----------
    horizon : float
        Above 0.
    reach : float
        At least 0.
    alpha : float
        Above 1.
    """

    horizon: float
    reach: float
    alpha: float

    def draw(self, words: WordSource) -> Iterator[TailPoint]:
        """Yield the points."""
        # Candidates come at the rate x = (reach / T)**alpha, and are points with probability (1 - e^-x) / x, the chance that V <= x over x.
        past, before = self.horizon, 0
        rest = self._rate_beyond(self.horizon)
        # Candidates are far fewer.
        redraws = Redraws(math.ceil(MOST_REDRAWS + 20 * rest))
        while True:
            redraws.another()
            rest -= float(exponentials(words, 1)[0])
            if rest <= 0:
                return
            time = (self.reach**self.alpha / (rest * (self.alpha - 1))) ** (1 / (self.alpha - 1))
            level = (self.reach / time) ** self.alpha
            chance, place = (float(number) for number in words.uniforms(2))
            if chance * level >= -math.expm1(-level):
                continue
            before += poisson(self._others(past, time), words)
            value = -math.log1p((place + 2.0**-54) * math.expm1(-level))
            yield TailPoint(before, time * value ** (1 / self.alpha))
            past, before = time, before + 1

    def _rate_beyond(self, time: float) -> float:
        """Return the mean number of candidates beyond a time."""
        return math.pow(self.reach, self.alpha) * math.pow(time, 1 - self.alpha) / (self.alpha - 1)

    def _others(self, first: float, last: float) -> float:
        """Return the mean number of other points, at the rate e^-x, between two times."""
        # By parts: the integral of e^-x over T = reach x**(-1/alpha).
        shape = 1 - 1 / self.alpha
        one, two = ((self.reach / time) ** self.alpha for time in (first, last))
        if self.reach == 0:
            return last - first
        beyond = math.gamma(shape) * float(scipy.special.gammaincc(shape, two) - scipy.special.gammaincc(shape, one))
        return max(0.0, last * math.exp(-two) - first * math.exp(-one) - self.reach * beyond)


def poisson(mean: float, words: WordSource) -> int:
    """Draw a Poisson number, exactly up to the rounding of floating point below a mean of 2**26, and closer than 1e-4 from there on."""
    if mean < TRANSFORMED_FROM:
        count, total = 0, float(exponentials(words, 1)[0])
        redraws = Redraws()
        while total <= mean:
            redraws.another()
            count, total = count + 1, total + float(exponentials(words, 1)[0])
        return count
    if mean >= NORMAL_FROM:
        return max(0, round(mean + math.sqrt(mean) * float(words.normals(1)[0])))
    # Hörmann 1993, The transformed rejection method for generating Poisson random variables, algorithm PTRS.
    b = 0.931 + 2.53 * math.sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    accepted = 0.9277 - 3.6224 / (b - 2)
    redraws = Redraws()
    while True:
        redraws.another()
        one, two = (float(number) for number in words.uniforms(2))
        u, v = one - 0.5, two + 2.0**-54
        side = 0.5 - abs(u)
        if side <= 0:
            continue
        k = math.floor((2 * a / side + b) * u + mean + 0.43)
        if side >= 0.07 and v <= accepted:
            return k
        if k < 0 or (side < 0.013 and v > side):
            continue
        if math.log(v * inverse / (a / side**2 + b)) <= k * math.log(mean) - mean - math.lgamma(k + 1):
            return k
