"""Rounds of Gaussian and Laplace noise with sampled clients.

Rényi divergences are sums and a series; privacy losses come from dp-accounting, whose import takes a second and happens on demand.

At whole orders the Rényi divergences of Gaussian noise are the sums that dp-accounting adds up, here without cancellation. For samples of a
fixed size that package's differences are rounding errors for large noise, and its divergences too large by any factor; otherwise both
agree, except that bounds here are never above those of a round with all clients. All orders together take less time than the largest order.

At other orders and with Poisson sampling they are a series (Mironov, Talwar, Zhang 2019, *Rényi differential privacy of the sampled
Gaussian mechanism*, section 3.3). With the likelihood ratio L = e^((2 x - 1) / (2 z^2)), x normal with deviation z, the cumulant (a - 1)
r(a) is ln E[(1 - q + q L)^a]. Below x0 = z^2 ln(1 / q - 1) + 1/2 the power is expanded by u = q L / (1 - q), above by 1 / u, both at most
1. From the term ceil(a) on, the signs alternate and the magnitudes fall, for each x, so that the sum of the omitted terms is less than any
of the terms before. Like dp-accounting, the module adds up magnitudes, and has the same results. A negative term that counts as positive
compensates for all omitted terms. dp-accounting stops at small terms, or reports no result; this module sums the same number of terms
everywhere, in a form in which large exponents do not cancel.
"""

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import scipy

from ...arrays import FloatArray, IntegerArray
from ..numerics.log_sum_exp import log_sum_exp
from ..numerics.rounding import UNIT
from .loss_masses import DirectedLosses, LossMasses, masses_between
from .renyi_curve import DEFAULT_ORDERS, RenyiCurve
from .sampling import ROUNDING, FixedSizeSampling, PoissonSampling, Sampling, amplified_epsilon, log_binomials, log_expm1

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

TERMS_AFTER_ORDER = 1000

# Largest order of the moments of L - 1; beyond it, the bound uses twice the moments of L.
LARGEST_MOMENT = 256
# Numbers of standard deviations between points of the moments' trapezoidal rule, and on each side of the integrand's maximum.
STEP, REACH = 1 / 16, 60

# Whole orders with exact sums; a chord or a series covers the orders between them.
WHOLE_ORDERS = (*range(2, 32), *range(32, 64, 4), *(round(64 * 2 ** (k / 4)) for k in range(25)))
# The best order under small noise and many rounds is between 2 and 5: orders up to there have steps of 1/20.
SAMPLED_ORDERS = tuple(sorted({*(1 + k / 20 for k in range(1, 80)), *(order for order in DEFAULT_ORDERS if order < WHOLE_ORDERS[-1])}))
# Number of steps of the grid of a round's losses up to the largest relevant loss. The grid is fine for small losses, and has
# dp-accounting's usual interval in between.
FEWEST_STEPS, MOST_STEPS, USUAL_INTERVAL = 2_000, 50_000, 1e-4
# Laplace noise spreads its losses evenly, and needs fewer steps.
LAPLACE_STEPS = 1_000
# Number of standard deviations of the noise beyond which its mass, below e^-50, counts as certain failure.
DEVIATIONS = 10.0
# Largest number of points of the grid for the losses of all rounds of sampled noise.
MOST_POINTS = 4e6


# Every number of rounds of a training needs the curve of one round.
@lru_cache(maxsize=128)
def sampled_gaussian_curve(noise_multiplier: float, sampling: Sampling, adjacency: str) -> RenyiCurve:
    """Return the Rényi divergences of one sampled round of Gaussian noise.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation over the L2 sensitivity for the adjacency.
    sampling : PoissonSampling or FixedSizeSampling
        Sampling of the clients of a round.
    adjacency : str
        ``"add-or-remove-one"`` for Poisson sampling, ``"replace-one"`` for samples of a fixed size.

    Returns
    -------
    RenyiCurve
        Upper bounds on the Rényi divergences. Between whole orders the curve is a chord, or for Poisson sampling the series of
        `sampled_gaussian_cumulants`, whichever is lower.

    Raises
    ------
    ValueError
        If the adjacency has no account for that sampling.
    """
    if isinstance(sampling, PoissonSampling) and adjacency == "add-or-remove-one":
        cumulants = poisson_cumulants(noise_multiplier, sampling.probability, np.array(WHOLE_ORDERS))
    elif isinstance(sampling, FixedSizeSampling) and adjacency == "replace-one":
        cumulants = fixed_size_cumulants(noise_multiplier, sampling.sample_size / sampling.population, np.array(WHOLE_ORDERS))
    else:
        raise ValueError(f"{_refusal(sampling, adjacency)} by Rényi divergences")
    # The cumulant generating function of the loss, (a - 1) r(a), is convex and 0 at a = 1: between two orders it lies below the chord.
    orders = np.array(SAMPLED_ORDERS)
    between = np.interp(orders, [1, *WHOLE_ORDERS], [0.0, *cumulants])
    if isinstance(sampling, PoissonSampling) and sampling.probability < 1:
        fractional = orders % 1 > 0
        series = sampled_gaussian_cumulants(noise_multiplier, sampling.probability, orders[fractional])
        between[fractional] = np.minimum(between[fractional], series)
    return RenyiCurve(orders, between / (orders - 1))


def sampled_gaussian_loss(noise_multiplier: float, sampling: Sampling, adjacency: str) -> "DirectedLosses | PrivacyLossDistribution":
    """Return the privacy loss distribution of a Poisson-sampled round of Gaussian noise.

    Losses are rounded upward. The grid of losses follows the largest loss of a round, so that small losses are not lost in rounding.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation over the L2 sensitivity for the adjacency.
    sampling : PoissonSampling
        Sampling of the clients of a round.
    adjacency : str
        ``"add-or-remove-one"``.

    Raises
    ------
    ValueError
        If the adjacency has no account for that sampling.
    """
    probability = _poisson_probability(sampling, adjacency)
    interval = gaussian_loss_interval(noise_multiplier, probability)
    if probability == 1:
        from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

        return from_gaussian_mechanism(noise_multiplier, value_discretization_interval=interval)
    return DirectedLosses(*(_gaussian_masses(noise_multiplier, probability, interval, removed=removed) for removed in (True, False)))


def _gaussian_masses(multiplier: float, probability: float, interval: float, *, removed: bool) -> LossMasses:
    """Return the masses of dp-accounting's `from_gaussian_mechanism` for one direction.

    The masses are the same to the last bit: the loss is inverted at all points of the grid at once.
    """
    # The noise beyond this point has less than a mass of e^-50, and so has its mirror image.
    end = float(scipy.special.ndtri(0.5 * math.exp(-50)) * multiplier)
    ends = (-0.5 - (end - 1.0), -0.5 - -end) if removed else (-0.5 + end, -0.5 + (-end + 1.0))
    largest, least = (_sampled_loss(unscaled / multiplier**2, probability) for unscaled in (ends if removed else ends[::-1]))
    bounds = (least, largest) if removed else (-largest, -least)
    low, high = math.floor(bounds[0] / interval), math.ceil(bounds[1] / interval)
    epsilons = np.arange(low, high + 1) * interval
    sign = 1.0 if removed else -1.0
    inside = sign * epsilons > math.log1p(-probability)
    # Beyond the possible losses, the grid continues below them if the client is removed and above them if it is added.
    deltas = np.zeros_like(epsilons)
    if removed:
        deltas[~inside] = -np.expm1(epsilons[~inside])
    # Without sampling, the loss t solves e^(sign t) = 1 + (e^(sign epsilon) - 1) / probability.
    sampled = sign * epsilons[inside]
    scaled = sampled + np.log(1 / probability)
    with np.errstate(divide="ignore"):
        unsampled = scaled + np.log1p(-np.exp(np.minimum(np.log(1 / probability - 1) - scaled, 0.0)))
    unsampled[sampled == 0] = np.log(1 / probability + (1 - 1 / probability))
    cutoffs = -0.5 - sign * unsampled * multiplier**2 + (0.0 if removed else 1.0)
    below, shifted = cutoffs / multiplier, (cutoffs + sign) / multiplier
    if removed:
        upper = (1 - probability) * scipy.special.ndtr(below) + probability * scipy.special.ndtr(shifted)
        log_lower = scipy.special.log_ndtr(below)
    else:
        upper = scipy.special.ndtr(below)
        log_lower = np.logaddexp(
            np.log1p(-probability) + scipy.special.log_ndtr(below), np.log(probability) + scipy.special.log_ndtr(shifted)
        )
    deltas[inside] = upper - np.exp(epsilons[inside] + log_lower)
    return masses_between(interval, low, np.clip(deltas, 0.0, 1.0))


def _sampled_loss(unsampled: float, probability: float) -> float:
    """Return ln(1 - q + q e^t) for the loss t of the noise without sampling."""
    first, second = unsampled + np.log(probability), np.log(1 - probability)
    return float(max(first, second) + np.log1p(np.exp(min(first, second) - max(first, second))))


def sampled_laplace_loss(scale: float, sampling: Sampling, adjacency: str, interval: float | None = None) -> "PrivacyLossDistribution":
    """Return the privacy loss distribution of a Poisson-sampled round of Laplace noise.

    Losses are rounded upward.

    Parameters
    ----------
    scale : float
        Scale of the noise over the L1 sensitivity for the adjacency.
    sampling, adjacency
        Sampling and adjacency, as in `sampled_gaussian_loss`.
    interval : float or None
        Step of the grid of losses; None for a thousandth of the largest loss.

    Raises
    ------
    ValueError
        If the adjacency has no account for that sampling.
    """
    from dp_accounting.pld.privacy_loss_distribution import from_laplace_mechanism

    probability = _poisson_probability(sampling, adjacency)
    if interval is None:
        interval = amplified_epsilon(1 / scale, probability) / LAPLACE_STEPS
    return from_laplace_mechanism(scale, sampling_prob=probability, value_discretization_interval=interval)


def gaussian_loss_interval(noise_multiplier: float, probability: float) -> float:
    """Return the interval of the grid for the losses of a round of sampled Gaussian noise.

    The interval is a continuous function of the multiplier, so that calibration finds its root.
    """
    largest = amplified_epsilon(DEVIATIONS / noise_multiplier + 0.5 / noise_multiplier**2, probability)
    return min(largest / FEWEST_STEPS, max(largest / MOST_STEPS, USUAL_INTERVAL))


def is_loss_affordable(noise_multiplier: float, probability: float, rounds: int, curve: RenyiCurve) -> bool:
    """Return whether the grid of all rounds' losses together has at most `MOST_POINTS` points."""
    # The divergence of order 2 is about the variance of the loss.
    spread = math.sqrt(rounds * float(curve.divergences[curve.orders == 2][0]))
    return 2 * DEVIATIONS * spread / gaussian_loss_interval(noise_multiplier, probability) <= MOST_POINTS


def _poisson_probability(sampling: Sampling, adjacency: str) -> float:
    if not isinstance(sampling, PoissonSampling) or adjacency != "add-or-remove-one":
        raise ValueError(f"{_refusal(sampling, adjacency)} by privacy loss distributions")
    return sampling.probability


def _refusal(sampling: Sampling, adjacency: str) -> str:
    # dp-accounting supports Poisson sampling with replace-one adjacency, too, for a multiplier over the clip norm. The clip norm is half of
    # the distance between neighbours, to which the multipliers of this module refer.
    return (
        "sampling must be Poisson with add-or-remove-one adjacency, or, of Gaussian noise, without replacement with replace-one adjacency, "
        f"got {sampling} with {adjacency} adjacency: it is not accounted for"
    )


def poisson_cumulants(noise_multiplier: float, probability: float, orders: IntegerArray) -> FloatArray:
    """Return (a - 1) r(a) of a Poisson-sampled round, for whole orders a from 2.

    The adjacency is add-or-remove-one. The result is the logarithm of ``sum_i C(a, i) (1 - q)^(a - i) q^i e^((i^2 - i) / (2 z^2))``
    (Mironov, Talwar, Zhang 2019, *Rényi differential privacy of the sampled Gaussian mechanism*, section 3.3): exact for the mixture from
    the noise alone, the larger of both directions, and rounded upward.

    Examples
    --------
    >>> poisson_cumulants(1.0, 0.01, np.array([2, 32])).round(7).tolist()
    [0.0001718, 348.6345543]
    """
    if probability == 1:
        return np.asarray(orders * (orders - 1) / (2 * noise_multiplier**2))
    # The binomial theorem takes 1 out of the sum; the remainder of each term is positive.
    chosen = np.arange(2, int(orders.max()) + 1)
    factors = log_expm1(chosen * (chosen - 1) / (2 * noise_multiplier**2))
    return _cumulants(orders, chosen * math.log(probability) + factors, math.log1p(-probability))


def fixed_size_cumulants(noise_multiplier: float, share: float, orders: IntegerArray) -> FloatArray:
    """Return upper bounds on (a - 1) r(a) of a round with a fixed share of the clients.

    The adjacency is replace-one. Orders a are whole, from 2, and increase. Bounds are the logarithms of ``1 + sum_i C(a, i) q^i m_i``. With
    L the likelihood ratio of a round with all clients, M(i) = E[L^i] = e^(i (i - 1) / (2 z^2)), and D(i) = E[(L - 1)^i], m_2 is the smaller
    of 4 D(2) and 2 M(2), and m_i that of 2 M(i) and, for a up to 256, of 4 times the geometric mean of D at the even numbers around i
    (Wang, Balle, Kasiviswanathan 2019, *Subsampled Rényi differential privacy and analytical moments accountant*, theorem 27, where D are
    the forward differences of M).

    Examples
    --------
    >>> fixed_size_cumulants(1.0, 0.01, np.array([2, 32])).round(7).tolist()
    [0.0005435, 349.3277015]
    """
    chosen = np.arange(2, int(orders.max()) + 1)
    plain = chosen * (chosen - 1) / (2 * noise_multiplier**2) + math.log(2)
    plain[0] = min(plain[0], math.log(4) + float(log_expm1(np.array(noise_multiplier**-2.0))))
    # The geometric mean of the even moments on either side bounds an odd moment.
    moments = _log_even_moments(noise_multiplier)
    orders_between = chosen[1 : LARGEST_MOMENT - 1]
    means = (moments[orders_between // 2] + moments[(orders_between + 1) // 2]) / 2
    closer = plain.copy()
    closer[1 : LARGEST_MOMENT - 1] = np.minimum(math.log(4) + means, plain[1 : LARGEST_MOMENT - 1])
    weights, small = chosen * math.log(share), orders <= LARGEST_MOMENT
    bounds = np.concatenate([_cumulants(orders[small], weights + closer), _cumulants(orders[~small], weights + plain)])
    # Subsampling never weakens a client's privacy.
    return np.asarray(np.minimum(bounds, orders * (orders - 1) / (2 * noise_multiplier**2)))


def _cumulants(orders: IntegerArray, logarithms: FloatArray, stays: float = 0.0) -> FloatArray:
    """Return a logarithm of a binomial sum for each order a, rounded upward.

    The cumulant is ln(1 + sum_{i >= 2} C(a, i) e^(logarithms[i - 2] + (a - i) stays)).
    """
    sums = [log_sum_exp(log_binomials(order) + logarithms[: order - 1] + np.arange(order - 2, -1, -1) * stays) for order in orders.tolist()]
    return np.asarray(np.logaddexp(0.0, sums) * (1 + ROUNDING))


def _log_even_moments(noise_multiplier: float) -> FloatArray:
    """Return the logarithms of E[(L - 1)^i] for i = 0, 2, ..., 256.

    The moments are integrals of positive functions, analytic in the whole plane. With x normal and t = 1 / z, ln L = t x - t**2 / 2. The
    integrand is largest between t i and t i + sqrt(i), and again around -sqrt(i) if t i is small.
    """
    powers, inverse = np.arange(0, LARGEST_MOMENT + 1, 2)[:, None], 1 / noise_multiplier
    ends = inverse * powers + REACH
    points = ends - STEP * np.arange(int(4 * REACH / STEP))
    losses = inverse * points - inverse**2 / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.maximum(losses, 0.0) + np.log(-np.expm1(-np.abs(losses)))
        exponents = np.where(powers > 0, powers * sizes, 0.0) - points**2 / 2
    return np.asarray(log_sum_exp(exponents, axis=1) + math.log(STEP / math.sqrt(2 * math.pi)))


def sampled_gaussian_cumulants(noise_multiplier: float, probability: float, orders: FloatArray) -> FloatArray:
    """Return (a - 1) r(a) of a Poisson-sampled round of Gaussian noise, rounded upward.

    The adjacency is add-or-remove-one, and the probability of taking part is below 1. The divergence is that of the mixture from the noise
    alone, the larger of both directions (theorem 5 of Mironov, Talwar, Zhang 2019). The bound is close for z of at most about 1; for larger
    noise, the chord between whole orders is lower.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation over the L2 sensitivity.
    probability : float
        Probability q, above 0 and below 1.
    orders : ndarray of shape (orders,)
        Orders a above 1, none of them whole, up to 100.

    Examples
    --------
    >>> sampled_gaussian_cumulants(1.0, 0.01, np.array([1.5, 2.5])).round(7).tolist()
    [6.62e-05, 0.0003267]
    """
    square, log_odds = noise_multiplier**2, math.log1p(-probability) - math.log(probability)
    middle = square * log_odds + 0.5
    rows = [_logarithm(order, noise_multiplier, probability, middle) for order in orders.tolist()]
    # Exponents are sums of a dozen numbers of at most `sizes`, and a binomial coefficient is off by two units for each of its factors. The
    # moment is at least 1, and only terms with a factor exp(-500), too small to count, have larger exponents.
    sizes = orders**2 / square + orders * (abs(math.log(probability)) + abs(math.log1p(-probability))) + min(middle**2 / square, 1000.0)
    return np.maximum(np.array(rows) + UNIT * (4 * TERMS_AFTER_ORDER + 32 * sizes), 0.0)


def _logarithm(order: float, deviation: float, probability: float, middle: float) -> float:
    count = math.ceil(order) + TERMS_AFTER_ORDER + 1
    number = np.arange(count)
    coefficients = np.concatenate([[1.0], np.cumprod(np.abs(order - number[:-1]) / (number[:-1] + 1))])
    log_rate, log_rest = math.log(probability), math.log1p(-probability)
    total = []
    # The powers u^i are integrated below the middle, and the powers u^(a - i) above it. Each integral is a normal probability; Mills' ratio
    # takes its place if large exponents would cancel.
    for powers, sign in ((number, 1.0), (order - number, -1.0)):
        room = sign * (middle - powers) / deviation
        inside = powers * log_rate + (order - powers) * log_rest + powers * (powers - 1) / (2 * deviation**2) + scipy.special.log_ndtr(room)
        beyond = order * log_rest - (middle / deviation) ** 2 / 2 + np.log(scipy.special.erfcx(np.maximum(-room, 0.0) / math.sqrt(2)) / 2)
        total.append(np.where(room > 0, inside, beyond))
    return float(log_sum_exp(np.concatenate(total), weights=np.tile(coefficients, 2)))
