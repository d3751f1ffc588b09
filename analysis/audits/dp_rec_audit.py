"""The exact privacy loss of a DP-REC message, beside the claim of its theorem.

An observer of a message knows the index and the seed, and with the seed all K = 2**bits samples. The client draws the seed at random, so
the samples have the same distribution for every input; the weights are the index's distribution. With w and v the weights for two inputs,

    delta(epsilon) = E[ sum_k max(0, w_k - exp(epsilon) v_k) ],    D_a = ln E[ sum_k w_k^a v_k^(1 - a) ] / (a - 1),

where the expectations are over the samples. These formulas make none of the accountant's assumptions. Updates are in units of sigma, so
that their norm is at most the clip ratio c. An absent client has the update 0, for which all weights are equal.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_softmax, softmax

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ...design.transforms.dithering import finite_values
from ...solvers.divergences.dp_rec_privacy import LARGEST_POPULATION, draw_log_moment, lost_delta
from ...solvers.divergences.importance_resampling import (
    LARGEST_ORDER,
    LARGEST_SHIFT,
    MOST_SAMPLES,
    TwoWayDivergences,
    proven_divergences,
    resampling_mixture_divergences,
    resampling_renyi_divergences,
)

LARGEST_EPSILON = 1e3
MOST_TRIALS = 10**9
MOST_BITS = 60
# Largest Rényi order over which the published delta is minimised.
_MOST_MOMENT = 1000
_NUMBERS_PER_CHUNK = 2**20
_QUADRATURE_REACH = 12.0


@dataclass(frozen=True)
class DivergenceAudit:
    """Rényi divergences of a group's message for updates of norm c, in nats, per order.

    Attributes
    ----------
    orders : ndarray of int, shape (orders,)
        Orders a.
    added : ndarray of float64
        True divergence of a client's message from an absent client's message, the update 0.
    removed : ndarray of float64
        True divergence of an absent client's message from the client's.
    opposite : ndarray of float64
        True divergence between two opposite updates, 2 c apart: replace-one.
    gaussian : ndarray of float64
        Divergence a c^2 / 2 of the two coded Gaussian distributions, the basis of the accountant.
    published : ndarray of float64
        Divergence a c^2, twice `gaussian`, which DP-REC's theorem charges beside the part of delta for the bits.
    proven_added, proven_removed : ndarray of float64
        Bounds on `added` and `removed` that hold for every number of samples, without a part of delta (`proven_divergences`).
    """

    orders: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    added: FloatArray
    removed: FloatArray
    opposite: FloatArray
    gaussian: FloatArray
    published: FloatArray
    proven_added: FloatArray
    proven_removed: FloatArray


@dataclass(frozen=True)
class DeltaEstimate:
    """A Monte Carlo estimate of a true delta, with its confidence interval.

    Attributes
    ----------
    estimate : float
        Mean over trials, without bias.
    low, high : float
        Interval that contains the true delta, except with the requested probability (Maurer, Pontil 2009, *Empirical Bernstein Bounds and
        Sample Variance Penalization*, theorem 4, on either side).
    """

    estimate: float
    low: float
    high: float


def audit_divergences(clip_ratio: float, samples: int, orders: ArrayLike) -> DivergenceAudit:
    """Compute a message's true Rényi divergences, beside the claimed divergences.

    Parameters
    ----------
    clip_ratio : float
        Ratio c of the update's norm to sigma, 0.001 to 3.
    samples : int
        Number K of samples, from 1 to 2**20.
    orders : array_like of int, shape (orders,)
        Orders, whole numbers from 2 to 16.

    Returns
    -------
    DivergenceAudit
        Divergences with errors below 1e-6, in any dimension, as weights depend on projections on the update alone.

    Examples
    --------
    Removal gives away more than the Gaussian distributions' divergence at high orders; twice that, which the theorem charges, holds.

    >>> audit = audit_divergences(1.0, samples=16, orders=[2, 8])
    >>> audit.removed.round(3).tolist(), audit.gaussian.tolist(), audit.published.tolist()
    ([0.96, 4.665], [1.0, 4.0], [2.0, 8.0])
    """
    clip_ratio = check_real("clip_ratio", clip_ratio, low=1e-3, high=LARGEST_SHIFT)
    proven = proven_divergences(clip_ratio, samples, orders)
    order = np.asarray(orders, dtype=int)
    gaussian = order * clip_ratio**2 / 2
    return DivergenceAudit(
        orders=order,
        added=resampling_renyi_divergences(clip_ratio, 0.0, samples, orders),
        removed=resampling_renyi_divergences(0.0, clip_ratio, samples, orders),
        opposite=resampling_renyi_divergences(clip_ratio, -clip_ratio, samples, orders),
        gaussian=gaussian,
        published=2 * gaussian,
        proven_added=proven.added,
        proven_removed=proven.removed,
    )


def sampled_divergences(clip_ratio: float, samples: int, population: int, orders: ArrayLike) -> TwoWayDivergences:
    """Compute true Rényi divergences of a draw of one of N clients.

    Parameters
    ----------
    clip_ratio : float
        Ratio c of the update's norm to sigma, 0.001 to 3.
    samples : int
        Number K of samples, from 1 to 2**20.
    population : int
        Number N of clients, at least 2.
    orders : array_like of int, shape (orders,)
        Orders a, whole numbers from 2 to 16.

    Returns
    -------
    TwoWayDivergences
        Divergences of the draw with the client from the draw without, ``ln sum_j C(a, j) (1/N)^j (1 - 1/N)^(a - j) E[(K w)^j] / (a - 1)``,
        and the reverse, in nats. `draw_log_moment` has the first divergence for the two Gaussians, which bounds their reverse divergence.

    Examples
    --------
    >>> exact = sampled_divergences(0.87, samples=128, population=100, orders=[2, 8])
    >>> claimed = np.array([draw_log_moment(0.87, 100, order) / (order - 1) for order in (2, 8)])
    >>> (exact.added / claimed).round(3).tolist(), (exact.removed / claimed).round(3).tolist()
    ([0.951, 0.933], [0.916, 0.771])
    """
    # The import is local because it takes a third of a second, which other functions do not need.
    from scipy.stats import binom

    clip_ratio = check_real("clip_ratio", clip_ratio, low=1e-3, high=LARGEST_SHIFT)
    population = check_integer("population", population, low=2, high=LARGEST_POPULATION)
    whole = [check_integer("orders", order, low=2, high=LARGEST_ORDER) for order in np.asarray(orders).tolist()]
    powers = np.arange(2, max(whole, default=2) + 1)
    moments = (powers - 1) * resampling_renyi_divergences(clip_ratio, 0.0, samples, powers)
    added = []
    for order in whole:
        chosen = powers[: order - 1]
        # Binomial probabilities sum to 1, and the moments 0 and 1 are 1. The other moments are above 1, and only their excess counts.
        excess = binom.pmf(chosen, order, 1 / population) @ np.expm1(moments[: order - 1])
        added.append(math.log1p(excess) / (order - 1))
    removed = resampling_mixture_divergences(clip_ratio, samples, 1 / population, whole)
    return TwoWayDivergences(added=np.array(added), removed=removed)


def published_delta(clip_ratio: float, index_bits: int, epsilon: float) -> float:
    """Return the delta that DP-REC's theorem claims for a message of an always-drawn client.

    Parameters
    ----------
    clip_ratio : float
        Ratio c of the update's norm to sigma, 1e-6 to 100.
    index_bits : int
        Number of bits of the index, 1 to 60.
    epsilon : float
        Privacy parameter, 0 to 1000.

    Returns
    -------
    float
        Delta ``12 exp(c^2) / 2**index_bits + min_m exp(2 M(m + 1) - m epsilon)`` over whole m, M as in `draw_log_moment`; at most 1.

    Examples
    --------
    >>> published_delta(0.5, 4, 1.0), round(published_delta(0.5, 20, 2.0), 4)
    (1.0, 0.0498)
    """
    epsilon = check_real("epsilon", epsilon, low=0.0, high=LARGEST_EPSILON)
    lost = lost_delta(clip_ratio, 1, check_integer("index_bits", index_bits, low=1, high=MOST_BITS))
    moments = range(1, _MOST_MOMENT)
    exponent = min(2 * draw_log_moment(clip_ratio, 1, moment + 1) - moment * epsilon for moment in moments)
    return min(1.0, lost + math.exp(min(0.0, exponent)))


def estimate_delta(
    target: ArrayLike, reference: ArrayLike, samples: int, epsilon: float, trials: int, rng: np.random.Generator, failure: float = 1e-6
) -> DeltaEstimate:
    """Estimate the true delta between two updates' messages by sampling, exact over indices.

    Parameters
    ----------
    target, reference : array_like of shape (dimension,)
        Two updates over sigma; zeros for an absent client.
    samples : int
        Number K of samples, from 1 to 2**20.
    epsilon : float
        Privacy parameter, 0 to 1000.
    trials : int
        Number of draws of samples, at least 2.
    rng : numpy.random.Generator
        Source of the samples.
    failure : float
        Probability with which the interval may miss the true delta, 1e-12 to 0.5.

    Returns
    -------
    DeltaEstimate
        Estimate and interval.

    Examples
    --------
    >>> delta = estimate_delta([0.5, 0.0], [0.0, 0.5], samples=16, epsilon=0.5, trials=10_000, rng=np.random.default_rng(0))
    >>> delta.low < delta.estimate < delta.high
    True
    """
    first, second = finite_values("target", target), finite_values("reference", reference)
    if first.ndim != 1 or first.shape != second.shape or not first.size:
        raise ValueError(f"target and reference must be vectors of the same length, got shapes {first.shape} and {second.shape}")
    samples = check_integer("samples", samples, low=1, high=MOST_SAMPLES)
    epsilon = check_real("epsilon", epsilon, low=0.0, high=LARGEST_EPSILON)
    trials = check_integer("trials", trials, low=2, high=MOST_TRIALS)
    failure = check_real("failure", failure, low=1e-12, high=0.5)
    # Weights depend only on projections on the plane of the two updates, so two dimensions suffice.
    plane = np.linalg.qr(np.stack([first, second], axis=1)).R.T
    chunk = max(1, _NUMBERS_PER_CHUNK // samples)
    values = np.concatenate(
        [_hockey_sticks(plane, samples, epsilon, min(chunk, trials - start), rng) for start in range(0, trials, chunk)],
    )
    estimate, logarithm = float(values.mean()), math.log(4 / failure)
    margin = math.sqrt(2 * float(values.var(ddof=1)) * logarithm / trials) + 7 * logarithm / (3 * (trials - 1))
    return DeltaEstimate(estimate=estimate, low=max(0.0, estimate - margin), high=min(1.0, estimate + margin))


def quadrature_delta(target: float, reference: float, samples: int, epsilon: float) -> float:
    """Return the true delta between messages of updates on a line, by the trapezoidal rule.

    Parameters
    ----------
    target, reference : float
        The two updates over sigma, -3 to 3.
    samples : int
        Number K of samples, 2 or 3.
    epsilon : float
        Privacy parameter, 0 to 1000.

    Returns
    -------
    float
        Delta, with an error below 1e-6 for two samples, 1e-4 for three: the integrand has kinks.

    Examples
    --------
    >>> round(quadrature_delta(1.0, 0.0, samples=2, epsilon=0.5), 4), quadrature_delta(1.0, 0.0, samples=2, epsilon=0.7)
    (0.0193, 0.0)
    """
    target = check_real("target", target, low=-LARGEST_SHIFT, high=LARGEST_SHIFT)
    reference = check_real("reference", reference, low=-LARGEST_SHIFT, high=LARGEST_SHIFT)
    epsilon = check_real("epsilon", epsilon, low=0.0, high=LARGEST_EPSILON)
    if check_integer("samples", samples, low=2, high=3) == 2:
        # Weights depend only on the difference of the samples, of variance 2; both indices contribute equally.
        points, step = np.linspace(-_QUADRATURE_REACH, _QUADRATURE_REACH, 40_001, retstep=True)
        excess = expit(math.sqrt(2) * target * points) - math.exp(epsilon) * expit(math.sqrt(2) * reference * points)
        return float(2 * np.maximum(0, excess) @ np.exp(-(points**2) / 2)) * float(step) / math.sqrt(2 * math.pi)
    points, step = np.linspace(-_QUADRATURE_REACH / 2, _QUADRATURE_REACH / 2, 801, retstep=True)
    # A common shift of the three samples changes no weight, so two orthonormal coordinates across it remain.
    across, along = np.meshgrid(points, points)
    places = np.stack([across / 2**0.5 + along / 6**0.5, -across / 2**0.5 + along / 6**0.5, -2 * along / 6**0.5])
    excess = softmax(target * places, axis=0)[0] - math.exp(epsilon) * softmax(reference * places, axis=0)[0]
    density = np.exp(-(across**2 + along**2) / 2) / (2 * math.pi)
    return float((3 * np.maximum(0, excess) * density).sum()) * float(step) ** 2


def _hockey_sticks(plane: FloatArray, samples: int, epsilon: float, trials: int, rng: np.random.Generator) -> FloatArray:
    places = rng.standard_normal((trials, samples, plane.shape[1])) @ plane.T
    weights = log_softmax(places, axis=1)
    return np.asarray(np.maximum(0, np.exp(weights[..., 0]) - np.exp(epsilon + weights[..., 1])).sum(axis=1))
