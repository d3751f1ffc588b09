"""The law of DP-REC's decoded messages: exact errors of the mean, and draws without coding.

A group is coded by 2**bits samples whose weights depend only on their projections on the group's vector. Along this vector, the sent sample
is one of 2**bits normal numbers, drawn by weight; across it, the sample is a standard normal vector, like every sample. So 2**bits numbers
per group, instead of 2**bits vectors, suffice to draw messages for averages.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import MOST_CLIENTS, check_integer
from ...arrays import FloatArray
from ...design.relative_entropy.dp_rec import DpRecMechanism, unit_directions
from ...solvers.divergences.importance_resampling import LARGEST_SHIFT, resampled_moments

# Smallest clip ratio in the search for the best clip ratio. With smaller ratios, the mean of a million messages is no better than the
# estimate zero.
SMALLEST_USEFUL_RATIO = 1e-3
# Number of normal numbers per batch of draws.
_NUMBERS_PER_CHUNK = 2**20


def draw_decoded(mechanism: DpRecMechanism, vectors: ArrayLike, rng: np.random.Generator) -> FloatArray:
    """Draw a decoded message for each vector from their law, without coding.

    The function clips vectors. Messages have the distribution of those of `DpRecMechanism.encode`, over seeds and indices.

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
        directions = unit_directions(units[:, part], shifts)
        # A vector of zeros has no direction, so all samples are equally likely.
        along = _draw_particles(shifts, bits, rng) - np.sum(decoded[:, part] * directions, axis=1)
        decoded[:, part] += directions * along[:, None]
    return np.asarray(decoded * mechanism.sigma)


def worst_mean_error(clip_ratio: float, dimension: int, groups: int, bits: int, clients: int) -> float:
    """Return the expected squared L2 error of the mean, relative to the squared clip norm.

    All clients hold the same vector of the clip norm, with equal parts in all groups. The clip ratio is 0.001 to 3, with 1 to 20 bits for
    each group. The error is ``bias**2 + variance / clients``, as the bias does not average out.

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
    """Return the clip ratio, 0.001 to 3, with the least `worst_mean_error`.

    Larger ratios have more bias, smaller ratios more noise. The result has a relative error of 1e-5.

    Examples
    --------
    >>> [round(least_error_clip_ratio(200, groups=1, bits=bits, clients=10_000), 2) for bits in (1, 7)]
    [0.59, 1.55]
    """
    # The import is local because it takes longer than most modules that import this module.
    from scipy.optimize import minimize_scalar

    optimum = minimize_scalar(
        lambda log_ratio: worst_mean_error(math.exp(log_ratio), dimension, groups, bits, clients),
        bounds=(math.log(SMALLEST_USEFUL_RATIO), math.log(LARGEST_SHIFT)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return min(LARGEST_SHIFT, math.exp(optimum.x))


def _draw_particles(shifts: FloatArray, bits: int, rng: np.random.Generator) -> FloatArray:
    """Return a standard normal number for each shift m, out of 2**bits weighted numbers.

    The probabilities are proportional to exp(m x).
    """
    particles = np.empty_like(shifts)
    rows = max(1, _NUMBERS_PER_CHUNK >> bits)
    for start in range(0, len(shifts), rows):
        own = shifts[start : start + rows]
        points = rng.standard_normal((len(own), 1 << bits))
        cumulative = np.cumsum(np.exp(own[:, None] * points), axis=1)
        # The threshold is strictly below the sum, so that some point is the first to exceed it.
        thresholds = rng.random(len(own)) * cumulative[:, -1]
        chosen = np.argmax(cumulative > thresholds[:, None], axis=1)
        particles[start : start + rows] = points[np.arange(len(own)), chosen]
    return particles
