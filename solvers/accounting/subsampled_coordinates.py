"""Rényi divergences of Gaussian noise on sums of which every client gives a secret sample of coordinates.

A client's coordinate is rounded at random to one of its neighbouring levels, and added to the sum with the probability q, independently
of other coordinates. `docs/proofs/subsampled-coordinates.md` has the proofs. Let P be the normal law, P_w its shift by w, x a coordinate
between two levels, and M = (1 - q) P + q E[P_w] over its rounding w. For a whole order a the integral of M^a P^(1 - a) is 1 + g(x), with

    g(x) = sum_{i >= 2} C(a, i) q^i (1 - q)^(a - i) (E exp(sum_{u < v} w_u w_v) - 1),

w_1, ..., w_i being independent roundings of x over the noise's deviation. The integral is the larger of both directions, and convex in x
between two levels. Coordinates are independent, so that the logarithms add up. The worst vector of the ball splits its squared norm so that
the sum of ln(1 + g) is the largest, which a concave envelope bounds.
"""

import math

import numpy as np
import scipy

from ...arrays import FloatArray
from ..numerics.concave_envelope import concave_envelope
from ..numerics.log_sum_exp import log_sum_exp
from .renyi_curve import RenyiCurve
from .sampling import ROUNDING, log_binomials, log_expm1

# Whole orders with exact moments; chords bound the orders between them.
WHOLE_ORDERS = (*range(2, 32), *range(32, 64, 4), *range(64, 128, 16), *range(128, 257, 32))
CURVE_ORDERS = tuple(sorted({*(1 + k / 20 for k in range(1, 80)), *map(float, WHOLE_ORDERS)}))
# Number of points from zero to the largest level, at least, between which moments are bounded by chords.
POINTS = 64
# Largest rise of the logarithm between two points for which the chord is used.
STEEPEST = 30.0
# The best order for a divergence of rho a is about the root of ln(1 / delta) / rho; orders go to this multiple of it, at delta = 1e-12.
ORDERS_BEYOND, SMALL_DELTA = 3.0, 1e-12


def subsampled_coordinate_curve(
    noise_multiplier: float, levels: int, share: float, squared_norm: float, dimension: int, log_ratio: float = 0.0
) -> RenyiCurve:
    """Return the Rényi divergences of one noisy sum of secretly sampled coordinates.

    The adjacency is add-or-remove-one, and both directions are bounded.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of a coordinate's noise over the largest level.
    levels : int
        Number of levels above zero, equally far apart; as many are below zero.
    share : float
        Probability, above 0 and below 1, that a client gives a coordinate.
    squared_norm : float
        Largest squared L2 norm of a client's vector before it is rounded, over the largest level squared. No coordinate exceeds the largest
        level.
    dimension : int
        Number of coordinates.
    log_ratio : float
        Bound on the logarithm of the ratio of the noise's probabilities to those of (rounded) Gaussian noise, for each coordinate.

    Examples
    --------
    Without a bound on the norm other than that on coordinates, every coordinate is a sampled Gaussian.

    >>> curve = subsampled_coordinate_curve(5.0, 1, 0.1, squared_norm=7.0, dimension=7)
    >>> from quietbits.solvers.accounting.sampled_noise import poisson_cumulants
    >>> bool(np.isclose(curve.at(2.0), 7 * poisson_cumulants(5.0, 0.1, np.array([2]))[0]))
    True
    """
    moments = _Moments(noise_multiplier, levels, share)

    def total(order: int) -> float:
        bound = _largest_sum(moments.positions, moments.log_moments(order), min(squared_norm, float(dimension)), dimension)
        return bound * (1 + ROUNDING) + (2 * order - 1) * dimension * log_ratio

    at_two = total(2)
    most = ORDERS_BEYOND * (1 + math.sqrt(-2 * math.log(SMALL_DELTA) / at_two)) if at_two > 0 else math.inf
    whole = [order for order in WHOLE_ORDERS if order <= max(most, WHOLE_ORDERS[6])]
    cumulants = [at_two, *(total(order) for order in whole[1:])]
    # The cumulant generating function of the loss, (a - 1) r(a), is convex and 0 at a = 1: between two orders it lies below the chord.
    orders = np.array([order for order in CURVE_ORDERS if order <= whole[-1]])
    return RenyiCurve(orders, np.interp(orders, [1, *whole], [0.0, *cumulants]) / (orders - 1))


class _Moments:
    """Logarithms of the moments 1 + g at equally spaced coordinates from zero to the largest level."""

    def __init__(self, noise_multiplier: float, levels: int, share: float) -> None:
        steps = -(-POINTS // levels)
        numbers = np.arange(levels * steps + 1)
        self.positions = numbers / (levels * steps)
        self._below, self._chance = (part[:, None] for part in (numbers // steps, numbers % steps / steps))
        self._square = (1 / (levels * noise_multiplier)) ** 2
        self._log_share, self._log_rest = math.log(share), math.log1p(-share)
        self._excesses = list[FloatArray]()

    def log_moments(self, order: int) -> FloatArray:
        """Return ln(1 + g) at each position."""
        while len(self._excesses) < order - 1:
            self._excesses.append(self._log_excess(len(self._excesses) + 2))
        chosen = np.arange(2, order + 1)
        weights = log_binomials(order) + chosen * self._log_share + (order - chosen) * self._log_rest
        return np.logaddexp(0.0, log_sum_exp(weights + np.stack(self._excesses[: order - 1], axis=1), axis=1))

    def _log_excess(self, count: int) -> FloatArray:
        """Return ln(E exp(sum_{u < v} w_u w_v) - 1) of `count` roundings at each position."""
        upper = np.arange(count + 1)
        # `upper` roundings of `count` are at the upper level. The sum over pairs is half of the squared sum less the squares.
        products = (count * self._below + upper) ** 2 - (count - upper) * self._below**2 - upper * (self._below + 1) ** 2
        log_choices = scipy.special.gammaln(count + 1) - scipy.special.gammaln(upper + 1) - scipy.special.gammaln(count - upper + 1)
        chances = log_choices + scipy.special.xlogy(upper, self._chance) + scipy.special.xlog1py(count - upper, -self._chance)
        return log_sum_exp(chances + log_expm1(products * self._square / 2), axis=1)


def _largest_sum(positions: FloatArray, log_moments: FloatArray, squared_norm: float, dimension: int) -> float:
    """Return an upper bound on the sum of ln(1 + g) over the coordinates of any vector of a norm.

    For every slope the sum is at most ``dimension`` times the largest difference of ln(1 + g(x)) and ``slope x**2``, plus ``slope`` times
    the squared norm. Between two positions 1 + g is convex, hence at most its chord. The logarithm of the chord less ``slope x**2`` is
    concave, with its largest value where its derivative is zero.
    """
    if not np.all(np.isfinite(log_moments)):
        return math.inf
    envelope = concave_envelope(positions**2, log_moments)
    place = int(np.searchsorted(envelope.costs, squared_norm / dimension, side="right"))
    slope = 0.0
    if 0 < place < len(envelope.costs):
        slope = float((envelope.values[place] - envelope.values[place - 1]) / (envelope.costs[place] - envelope.costs[place - 1]))
    start, width, base = positions[:-1], positions[1] - positions[0], log_moments[:-1]
    steps = np.diff(log_moments)
    rise = np.expm1(np.minimum(steps, STEEPEST))
    # The derivative is zero where 2 slope width (start + width v) (1 + rise v) = rise, v from 0 to 1 being the place between two positions.
    outer = 2 * slope * width
    second, first, constant = outer * width * rise, outer * (start * rise + width), outer * start - rise
    with np.errstate(divide="ignore", invalid="ignore"):
        root = -2 * constant / (first + np.sqrt(np.maximum(first**2 - 4 * second * constant, 0.0)))
    inside = np.clip(np.nan_to_num(root, nan=1.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    places = (np.zeros_like(start), inside, np.ones_like(start))
    chords = np.max([base + np.log1p(rise * place) - slope * (start + width * place) ** 2 for place in places], axis=0)
    # Convex moments are at most the larger end's, too, which serves where a chord is too steep for its quotient.
    tops = np.where(steps > STEEPEST, log_moments[1:] - slope * start**2, chords)
    return float(dimension * tops.max() + slope * squared_norm)
