"""The law of DP-REC's decoded messages: the error of their mean, exactly, and draws from it that need no samples of whole vectors.

A group is coded by 2**bits samples whose weights depend on their projections on the group's vector alone. Along it, the sample that is sent
is one of 2**bits normal numbers, drawn by weight; across, it is a standard normal vector, as every sample is. Messages of which only the
average is wanted can therefore be drawn from 2**bits numbers for each group, instead of 2**bits vectors.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import ArrayLike

from ...arguments import check_integer
from ...arrays import FloatArray
from ...design.contracts.mechanism import MOST_CLIENTS
from ...design.relative_entropy.dp_rec import DpRecMechanism
from ...solvers.divergences.importance_resampling import LARGEST_SHIFT, resampled_moments

# Moments are analytic in the shift: up to the largest, 3, interpolation of this degree is as exact as they are.
_DEGREE = 28
# Clip ratios from which the best one is chosen; with smaller ones a mean of a million messages is no better than zero.
SMALLEST_USEFUL_RATIO = 1e-3
# Normal numbers that are drawn at a time.
_NUMBERS_PER_CHUNK = 2**20


@dataclass(frozen=True)
class MessageLaw:
    """What decoded messages are like, one row for each client, in units of the vectors.

    Attributes
    ----------
    bias : ndarray of float64, shape (clients, dimension)
        Expectation of the decoded message less the clipped vector.
    variance : ndarray of float64, shape (clients,)
        Expected squared L2 distance of the decoded message from its expectation: without the bias.
    """

    bias: FloatArray
    variance: FloatArray


@dataclass(frozen=True)
class _MomentCurves:
    """Moments of one coordinate, along the group's vector, by the shift."""

    bias: Chebyshev
    squared_error: Chebyshev


def message_law(mechanism: DpRecMechanism, vectors: ArrayLike) -> MessageLaw:
    """Return bias and variance of each client's decoded message, for vectors of shape (clients, dimension), which are clipped.

    They are as `DpRecMechanism.expected` and `DpRecMechanism.variance` have them, to within 1e-6 in units of sigma, in a small part of the
    time.

    Examples
    --------
    >>> from quietbits.design.relative_entropy.group_layout import uniform_layout
    >>> from quietbits.design.contracts.norm_ball import NormBall
    >>> mechanism = DpRecMechanism(NormBall(dimension=4, norm=2.0), clip_ratio=1.0, layout=uniform_layout(4, groups=1, group_bits=7))
    >>> law = message_law(mechanism, [[1.0, 0.0, 0.0, 0.0]])
    >>> round(float(law.bias[0, 0]), 4), law.variance.round(2).tolist()
    (-0.0202, [3.98])
    """
    units = mechanism.ball.clip(vectors) / mechanism.sigma
    bias = np.zeros_like(units)
    variance = np.full(len(units), float(mechanism.layout.dimension - mechanism.layout.groups))
    for part, bits in zip(mechanism.layout.slices(), mechanism.layout.group_bits, strict=True):
        shifts = np.linalg.norm(units[:, part], axis=1)
        curves = _moment_curves(mechanism.clip_ratio, bits)
        # Rounding may leave a clipped vector longer than the ball by a last digit.
        shifts_in_range = np.minimum(shifts, mechanism.clip_ratio)
        along = curves.bias(shifts_in_range)
        bias[:, part] = _directions(units[:, part], shifts) * along[:, None]
        variance += curves.squared_error(shifts_in_range) - along**2
    return MessageLaw(bias=bias * mechanism.sigma, variance=variance * mechanism.sigma**2)


def draw_decoded(mechanism: DpRecMechanism, vectors: ArrayLike, rng: np.random.Generator) -> FloatArray:
    """Draw decoded messages from their law, over seeds and indices, without coding: one for each vector, which is clipped.

    They have the distribution of those of `DpRecMechanism.encode`.

    Examples
    --------
    >>> from quietbits.design.relative_entropy.group_layout import uniform_layout
    >>> from quietbits.design.contracts.norm_ball import NormBall
    >>> mechanism = DpRecMechanism(NormBall(dimension=4, norm=2.0), clip_ratio=1.0, layout=uniform_layout(4, groups=2, group_bits=7))
    >>> draw_decoded(mechanism, [[0.9, 0.0, 0.0, 0.1]], np.random.default_rng(0)).shape
    (1, 4)
    """
    units = mechanism.ball.clip(vectors) / mechanism.sigma
    decoded = rng.standard_normal(units.shape)
    for part, bits in zip(mechanism.layout.slices(), mechanism.layout.group_bits, strict=True):
        shifts = np.linalg.norm(units[:, part], axis=1)
        directions = _directions(units[:, part], shifts)
        # A vector of zeros has no direction: every sample is as likely.
        along = _draw_particles(shifts, bits, rng) - np.sum(decoded[:, part] * directions, axis=1)
        decoded[:, part] += directions * along[:, None]
    return np.asarray(decoded * mechanism.sigma)


def worst_mean_error(clip_ratio: float, dimension: int, groups: int, bits: int, clients: int) -> float:
    """Return the expected squared L2 error of the mean where all vectors are one of the clip norm, with equal parts in all groups.

    That is over the squared clip norm, with a clip ratio of 0.001 to 3, and 1 to 20 bits for each group. The bias does not average out:
    ``bias**2 + variance / clients``.

    Examples
    --------
    >>> round(worst_mean_error(1.0, dimension=200, groups=1, bits=7, clients=10_000), 5)
    0.02041
    """
    groups = check_integer("groups", groups, low=1, high=dimension)
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    shift = clip_ratio / groups**0.5
    law = resampled_moments(shift, 1 << bits)
    bias = law.mean - shift
    variance = dimension - groups + groups * (law.squared_error - bias**2)
    return float((groups * bias**2 + variance / clients) / clip_ratio**2)


def least_error_clip_ratio(dimension: int, groups: int, bits: int, clients: int) -> float:
    """Return the clip ratio, 0.001 to 3, whose `worst_mean_error` is the least: larger ones have more bias, smaller ones more noise.

    It is found to a relative 1e-5.

    Examples
    --------
    >>> [round(least_error_clip_ratio(200, groups=1, bits=bits, clients=10_000), 2) for bits in (1, 7)]
    [0.59, 1.55]
    """
    # To import it takes longer than most of what imports this module.
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda log_ratio: worst_mean_error(math.exp(log_ratio), dimension, groups, bits, clients),
        bounds=(math.log(SMALLEST_USEFUL_RATIO), math.log(LARGEST_SHIFT)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return min(LARGEST_SHIFT, math.exp(found.x))


def _directions(vectors: FloatArray, lengths: FloatArray) -> FloatArray:
    return np.divide(vectors, lengths[:, None], out=np.zeros_like(vectors), where=lengths[:, None] > 0)


def _draw_particles(shifts: FloatArray, bits: int, rng: np.random.Generator) -> FloatArray:
    """Return one of 2**bits standard normal numbers for each shift m, drawn with probabilities proportional to exp(m x)."""
    particles = np.empty_like(shifts)
    rows = max(1, _NUMBERS_PER_CHUNK >> bits)
    for start in range(0, len(shifts), rows):
        own = shifts[start : start + rows]
        points = rng.standard_normal((len(own), 1 << bits))
        cumulative = np.cumsum(np.exp(own[:, None] * points), axis=1)
        # Strictly below the sum: one of the points is the first to exceed it.
        thresholds = rng.random(len(own)) * cumulative[:, -1]
        chosen = np.argmax(cumulative > thresholds[:, None], axis=1)
        particles[start : start + rows] = points[np.arange(len(own)), chosen]
    return particles


@lru_cache(maxsize=256)
def _moment_curves(largest_shift: float, bits: int) -> _MomentCurves:
    shifts = (np.polynomial.chebyshev.chebpts1(_DEGREE + 1) + 1) / 2 * largest_shift
    laws = [resampled_moments(shift, 1 << bits) for shift in shifts.tolist()]
    bias = [law.mean - shift for law, shift in zip(laws, shifts.tolist(), strict=True)]
    return _MomentCurves(
        bias=Chebyshev.fit(shifts, bias, _DEGREE, domain=[0, largest_shift]),
        squared_error=Chebyshev.fit(shifts, [law.squared_error for law in laws], _DEGREE, domain=[0, largest_shift]),
    )
