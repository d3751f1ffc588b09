"""Privacy of a sum of discrete Gaussians: the distributed discrete Gaussian mechanism.

Kairouz, Liu, Steinke 2021, *The distributed discrete Gaussian mechanism for federated learning with secure aggregation*. Each of n clients
clips its vector to an L2 norm c, divides by a granularity g, rounds to whole numbers under a bound on the norm, and adds discrete Gaussian
noise of parameter s = sigma / g to each coordinate. The sum of the clients' noise is not discrete Gaussian, but close; tau bounds the
distance.

*Tau.* Theorem 5 of the paper takes tau = 10 sum_{k=1}^{n-1} exp(-2 pi^2 s^2 k / (k + 1)) and requires s >= 1/2; with less noise its
corollary 12 is false. This module's tau is smaller than the theorem's, by a factor of 2.4 to 2.5, and holds for every s. Let rho_v(x) =
exp(-x^2 / (2 v^2)), P_k the distribution of the sum of k clients' noise, and h_k = P_k / rho_{s sqrt(k)}. Completing the square,

    P_{k+1}(y) = const rho_{s sqrt(k+1)}(y) sum_x h_k(x) rho_v(x - y k / (k + 1)),  v^2 = s^2 k / (k + 1),

so that h_{k+1} is a weighted mean of h_k times a theta function, sum_x rho_v(x - z) over whole x, which is largest for whole z and smallest
half-way between (each factor of Jacobi's triple product is). Hence ln h_n varies by at most

    tau = sum_{k=1}^{n-1} ln(sum_x rho_v(x) / sum_x rho_v(x + 1/2)).

*Divergences.* Let P be the sum's distribution, G the discrete Gaussian of parameter S = sqrt(n) s, and compare either with itself shifted
by a whole number m, r = |m| / S. The two privacy losses differ by tau at most, that of G is linear in the noise, and the noise is
sub-Gaussian with variance S^2 (a sum of n discrete Gaussians, each sub-Gaussian with s^2): D_a(P) <= (a/2) r^2 + tau. And by Hoeffding's
lemma D_a(P || G) and D_a(G || P) are at most (a/2) (tau/2)^2, so that the triangle inequality for divergences of this kind (Bun, Steinke
2016, *Concentrated differential privacy*, lemma 29) along P, G, shifted G, shifted P gives D_a(P) <= (a/2) (r + tau)^2. The sums of both
over the coordinates are the bounds of `discrete_gaussian_renyi`, which are those of the paper with the smaller tau.

*More clients.* tau grows with n, without limit for small s, while the noise of further clients, independent of the rest, is
post-processing: a bound for k <= n clients holds for n clients. The bounds are the least over k: over all k up to `DIRECT_TERMS`, then in
steps of `CLIENTS_STEP`, between which more clients may raise them by a relative 1e-11.

*Gaussian noise.* For one delta a sum of discrete Gaussians is nearly as private as a Gaussian (`rounded_gaussian_epsilon`): it is Gaussian
noise that was rounded at random. D(s) is the discrete Gaussian of parameter s, rho_s(x) = exp(-x^2 / (2 s^2)), rho_s(Z - x) its sum over
whole numbers less x, and theta(s) the logarithm of the ratio of the largest such sum to the smallest, about 4 exp(-2 pi^2 s^2)
(`theta_log_ratios`).

*Rounding at random.* Let X be Gaussian with variance S^2 - s^2, and Y a discrete Gaussian around it, ``P(Y = y | X = x) = rho_s(y - x) /
rho_s(Z - x)`` (Peikert 2010, *An efficient and parallel Gaussian sampler for lattices*). With rho_s(Z - x) constant, Y would be D(S). As
it is, the ratio of probabilities lies between e^-theta(s) and e^theta(s), since it cannot be above 1 everywhere, nor below. Shifting X by a
whole number shifts Y by as much, so that Y is no less private than X is.

*Sums.* For the same reason the probabilities of a sum of n numbers of D(s) are within factors of e^-tau and e^tau of those of
D(sqrt(n) s), with the tau of `discrete_gaussian_tau`.

*Privacy.* If all probabilities of two mechanisms differ by factors of at most e^r, in all coordinates of all rounds together, and one is
(epsilon, delta)-private, then the other is (epsilon + 2 r, e^r delta)-private.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import LARGEST_ACCOUNTED_DIMENSION, check_integer, check_real
from ...arrays import FloatArray, IndexArray
from ...errors import InfeasibleError
from ..accounting.exact_privacy_loss import ExactPrivacyLoss
from ..accounting.gaussian_privacy import (
    LARGEST_DELTA,
    SMALLEST_DELTA,
    SMALLEST_MULTIPLIER,
    gaussian_epsilon,
    gaussian_epsilon_exceeds,
    gaussian_epsilons_exceed,
)
from ..accounting.pure_privacy import check_orders
from ..numerics.rounding import UNIT

# Slack for chains of up to 8 units, and for logarithms of ratios that are too small for floating point.
ROUNDING = 8 * UNIT
MOST_CLIENTS = 10**9
SMALLEST_SIGMA, LARGEST_SIGMA = 1e-3, 1e20
# Least probability with which conditional rounding keeps a vector (Kairouz, Liu, Steinke 2021, section 5).
BETA = math.exp(-0.5)
MOST_BITS = 62
# Largest number of terms in the direct sum of tau.
DIRECT_TERMS = 100_000
# Relative error of tau: at most 8 operations on an exponent of at most 745, each off by 2^-53, change its exponential by less than 7e-13.
# The other 30 operations of a term, including a subtraction that cancels four fifths of a number, and the 40 levels of a pairwise sum add
# less than 1e-13.
TAU_ERROR = 1e-12
# Indices of the theta functions' terms; omitted terms are below exp(-36 pi) of the first.
THETA = np.arange(1, 6)
# Variance v from which exp(-2 pi^2 v^2) is below the smallest floating-point number.
WIDE = 40.0
# Largest number of products of exact sums of noise, extent of the noise in standard deviations, and largest omitted probability.
MOST_PRODUCTS = 2 * 10**9
DEVIATIONS = 37.0
LEFT_OUT = 1e-285
# Relative distance of the numbers of clients that the bounds try beyond the direct terms of tau.
CLIENTS_STEP = 1e-4
# Number of bounds computed together (256 kB).
SUMS_TOGETHER = 2**15


def rounded_norm(clip_norm: float, granularity: float, dimension: int, beta: float = BETA) -> float:
    """Return the L2 norm below which conditional rounding keeps vectors, in their units.

    The norm is the square root of min{c^2 + g^2 d / 4 + sqrt(2 ln(1 / beta)) g (c + g sqrt(d) / 2), (c + g sqrt(d))^2}: stochastic rounding
    to multiples of g exceeds the first bound with probability at most beta, and is repeated until it does not; it never exceeds the second
    (Kairouz, Liu, Steinke 2021, proposition 22 and equation 3). The dimension is that of the rounded vector, after the padding of a
    rotation.

    Examples
    --------
    >>> round(rounded_norm(1.0, 0.01, 10_000), 4), round(rounded_norm(1.0, 1.0, 1), 4)
    (1.1247, 1.6583)
    """
    clip_norm = check_real("clip_norm", clip_norm, low=1e-100, high=1e100)
    granularity = check_real("granularity", granularity, low=1e-100, high=1e100)
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_ACCOUNTED_DIMENSION)
    beta = check_real("beta", beta, low=1e-300, high=1 - 1e-12)
    likely = (
        clip_norm**2
        + granularity**2 * dimension / 4
        + math.sqrt(2 * math.log(1 / beta)) * granularity * (clip_norm + granularity * math.sqrt(dimension) / 2)
    )
    return min(math.sqrt(likely), clip_norm + granularity * math.sqrt(dimension))


def discrete_gaussian_tau(clients: int, sigma: float) -> float:
    """Return tau, the distance of a sum of discrete Gaussians from a discrete Gaussian.

    The logarithm of the ratio of the two distributions' probabilities varies by at most tau (the module's docstring has the proof); the
    result is an upper bound on tau. The terms of tau fall with k: beyond the first hundred thousand terms, the last of them stands for all
    later terms. Clients are 1 to 10**9, and sigma, each client's parameter in whole numbers, 0.001 to 10**20.

    Examples
    --------
    >>> discrete_gaussian_tau(1, 1.0), round(discrete_gaussian_tau(100, 1.0) * 1e4, 4)
    (0.0, 2.1912)
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    return _summed_tau(_tau_terms(clients, sigma), clients)


def _tau_terms(clients: int, sigma: float) -> FloatArray:
    """Return the direct terms of tau, for up to the given number of clients."""
    sigma = check_real("sigma", sigma, low=SMALLEST_SIGMA, high=LARGEST_SIGMA)
    terms = min(clients, DIRECT_TERMS + 1) - 1
    return _first_terms(sigma, 1 << terms.bit_length())[:terms]


# Callers ask for many numbers of clients of the same noise, whose terms are the first of the same sequence.
@lru_cache(maxsize=16)
def _first_terms(sigma: float, count: int) -> FloatArray:
    number = np.arange(1, count + 1, dtype=float)
    return theta_log_ratios(sigma**2 * (number / (number + 1)))


def _summed_tau(terms: FloatArray, clients: int) -> float:
    total = float(terms[: clients - 1].sum())
    beyond = max(clients - 1 - DIRECT_TERMS, 0)
    if beyond:
        total += beyond * float(terms[-1])
    return total * (1 + TAU_ERROR)


def theta_log_ratios(variances: FloatArray) -> FloatArray:
    """Return ln(sum_x rho_v(x) / sum_x rho_v(x + 1/2)) for the given v^2.

    The ratio comes from the sums or from their Fourier series. Its relative error is at most TAU_ERROR.
    """
    result = np.empty(len(variances))
    narrow = variances < 1 / (2 * math.pi)
    inverse = 1 / (2 * variances[narrow, None])
    whole = 2 * np.exp(-inverse * THETA**2).sum(axis=1)
    half = np.exp(-inverse * THETA * (THETA + 1)).sum(axis=1)
    result[narrow] = inverse[:, 0] / 4 - math.log(2) + np.log1p(whole) - np.log1p(half)
    # The ratio is 1 + 2 sum q^(j^2), divided by 1 + 2 sum (-1)^j q^(j^2), with q = exp(-2 pi^2 v^2).
    wide = variances >= WIDE
    result[wide] = 0.0
    between = ~narrow & ~wide
    waves = 2 * np.exp(-2 * math.pi**2 * variances[between, None] * THETA**2)
    result[between] = 2 * np.arctanh(waves[:, ::2].sum(axis=1) / (1 + waves[:, 1::2].sum(axis=1)))
    return result


def discrete_gaussian_renyi(clients: int, sigma: float, l2_sensitivity: float, dimension: int, orders: ArrayLike) -> FloatArray:
    """Return Rényi divergences of a sum of vectors with discrete Gaussian noise, rounded upward.

    Vectors have whole coordinates, and every client adds noise; divergences are in nats. They are

        min{ (a/2) r2^2 + tau d,  (a/2) (r2^2 + 2 r1 tau + tau^2 d) },    r_i = D_i / (sqrt(k) s),    D1 = D2 min(sqrt(d), D2)

    (Kairouz, Liu, Steinke 2021, corollary 12 and its remarks, with the tau of `discrete_gaussian_tau`, for which the bounds hold for every
    s; the third bound there is never the least), for k = n clients, or fewer if that bound is smaller.

    Parameters
    ----------
    clients : int
        Number n of clients whose noise is added up, 1 to 10**9.
    sigma : float
        Parameter s of each client's noise in whole numbers, from 0.001 to 10**20.
    l2_sensitivity : float
        Largest L2 distance D2 of two neighbours' sums, in whole numbers: the bound on the norm of a client's vector for add-or-remove-one
        adjacency, where both neighbours have the noise of n clients, and twice that for replace-one.
    dimension : int
        Number d of coordinates.
    orders : array_like of shape (orders,)
        Rényi orders above 1; infinity gives infinity.

    Examples
    --------
    >>> discrete_gaussian_renyi(100, 2.0, 10.0, 1000, [2.0, 4.0]).round(6).tolist()
    [0.25, 0.5]
    """
    array = check_orders(orders)
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    terms = _tau_terms(clients, sigma)
    l2 = check_real("l2_sensitivity", l2_sensitivity, low=0.0, high=1e100)
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_ACCOUNTED_DIMENSION)
    if l2 == 0:
        return np.zeros(len(array))
    factor = l2 * min(math.sqrt(dimension), l2)

    # The other clients' noise is independent of the first k clients' sum, so that adding it reveals no more than that sum does.
    counts = _counts(clients)
    taus = _about(terms, counts)

    of_noise, of_ratios = (l2 / sigma) ** 2 / counts, taus * dimension

    def adding(halves: FloatArray) -> IndexArray:
        return np.asarray(counts[np.argmin(np.multiply.outer(halves, of_noise) + of_ratios, axis=1)].astype(np.intp))

    # The best number of clients rises with the order.
    halves = array / 2
    if adding(halves.min(initial=math.inf, keepdims=True)) == clients:
        added = np.full(len(array), clients)
    else:
        together = max(1, SUMS_TOGETHER // len(counts))
        added = np.concatenate([adding(halves[start : start + together]) for start in range(0, len(halves), together)])
    squared = of_noise + 2 * factor / sigma * taus / np.sqrt(counts) + taus**2 * dimension
    best = int(counts[np.argmin(squared)])

    tau_of = {count: _summed_tau(terms, count) for count in {*added.tolist(), best}}
    first = halves * (l2 / (np.sqrt(added) * sigma)) ** 2 + np.array([tau_of[count] for count in added.tolist()]) * dimension
    noise, tau = math.sqrt(best) * sigma, tau_of[best]
    return np.asarray(np.minimum(first, halves * ((l2 / noise) ** 2 + 2 * (factor / noise) * tau + tau**2 * dimension)))


def _counts(clients: int) -> FloatArray:
    """Return the numbers of clients to try: all with direct terms of tau, then small steps.

    The last number is that of all clients.
    """
    direct = np.arange(1, min(clients, DIRECT_TERMS + 1) + 1, dtype=float)
    if clients == len(direct):
        return direct
    steps = math.ceil(math.log(clients / len(direct)) / CLIENTS_STEP)
    # The grid is the same for every number of clients.
    beyond = np.floor(len(direct) * np.exp(CLIENTS_STEP * np.arange(1, steps + 1)))
    return np.concatenate([direct, beyond[beyond < clients], [clients]])


def _about(terms: FloatArray, counts: FloatArray) -> FloatArray:
    """Return tau for each number of clients, up to rounding."""
    summed = np.concatenate([[0.0], np.cumsum(terms)])[: len(counts)]
    beyond = counts[len(summed) :]
    return summed if not len(beyond) else np.concatenate([summed, summed[-1] + (beyond - len(summed)) * terms[-1]])


def summed_discrete_gaussian_losses(clients: int, sigma: float, shift: int) -> ExactPrivacyLoss:
    """Return the exact privacy loss of a sum of discrete Gaussians against a shifted sum.

    The loss serves checks of the bounds. The distribution of the sum comes from repeated convolution of positive numbers. Both directions
    are alike. The computation omits noise of each client beyond 37 sigma, with a probability below 1e-290; omitted values count as
    `certain`.

    Parameters
    ----------
    clients : int
        Number of clients whose noise is added up, 1 to 1000, or fewer for a large sigma.
    sigma : float
        Parameter of each client's noise, from 0.1 to 1000.
    shift : int
        Shift of the sum, from 1 to 10**6.

    Examples
    --------
    A single discrete Gaussian has the divergence a k^2 / (2 s^2) of a Gaussian at whole orders.

    >>> summed_discrete_gaussian_losses(1, 2.0, 1).renyi_divergences([2.0, 3.0]).round(9).tolist()
    [0.25, 0.375]
    """
    clients = check_integer("clients", clients, low=1, high=1000)
    sigma = check_real("sigma", sigma, low=0.1, high=1000.0)
    shift = check_integer("shift", shift, low=1, high=10**6)
    reach = math.ceil(DEVIATIONS * sigma)
    if (2 * reach * clients) ** 2 > MOST_PRODUCTS:
        raise ValueError(
            f"clients and sigma must be smaller: the sum of {clients} discrete Gaussians of sigma {sigma:g} has too many values"
        )
    noise = np.exp(-(np.arange(-reach, reach + 1, dtype=np.longdouble) ** 2) / (2 * np.longdouble(sigma) ** 2))
    noise /= noise.sum()
    masses, power, rest = np.ones(1, dtype=np.longdouble), noise, clients
    while rest:
        if rest % 2:
            masses = np.convolve(masses, power)
        rest //= 2
        if rest:
            power = np.convolve(power, power)
    masses = masses[masses > np.exp(np.longdouble(-690.0))]
    masses /= masses.sum()
    if shift >= len(masses):
        return ExactPrivacyLoss(np.empty(0), np.empty(0), 1.0, 1.0)
    logarithms = np.log(masses)
    losses = np.asarray(logarithms[shift:] - logarithms[:-shift], dtype=np.float64)
    ends = float(masses[:shift].sum()) + LEFT_OUT
    return ExactPrivacyLoss(logarithms[shift:].astype(np.float64), losses, ends, ends)


def granularity_for_bits(
    clients: int, dimension: int, clip_norm: float, local_sigma: float, bits: int, *, deviations: float = 4.0, flatness: float = 1.0
) -> float:
    """Return the finest granularity at which the sum of vectors fits into a coordinate's bits.

    In the vectors' units, 1/g = sqrt(2^(2 b) - n k^2) / (2 k sqrt(rho c^2 n^2 / d + n sigma^2)): k standard deviations of a coordinate of
    the sum, of the flattened signal, the rounding and the noise, are half the modulus (Kairouz, Liu, Steinke 2021, section 6).

    Parameters
    ----------
    clients : int
        Number n of clients, 1 to 10**9.
    dimension : int
        Number d of coordinates, after padding.
    clip_norm : float
        L2 norm c that vectors are clipped to.
    local_sigma : float
        Parameter of each client's noise, in the vectors' units; above 0.
    bits : int
        Number b of bits of a coordinate; the sum is taken modulo 2**b; 1 to 62.
    deviations : float
        Number k of standard deviations, from 0.1 to 100: 4 leaves a Gaussian coordinate outside with probability 6.3e-5.
    flatness : float
        Flatness rho, from 0 to the dimension: variance of a coordinate of a rotated vector, times d / c^2; 1 if rotation flattens.

    Raises
    ------
    InfeasibleError
        If the bits cannot even hold the rounding; the message gives the fewest bits that can.

    Examples
    --------
    >>> round(granularity_for_bits(100, 1024, 1.0, 0.1, 16), 6)
    0.000401
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_ACCOUNTED_DIMENSION)
    clip_norm = check_real("clip_norm", clip_norm, low=1e-100, high=1e100)
    local_sigma = check_real("local_sigma", local_sigma, low=1e-100, high=1e100)
    bits = check_integer("bits", bits, low=1, high=MOST_BITS)
    deviations = check_real("deviations", deviations, low=0.1, high=100.0)
    flatness = check_real("flatness", flatness, low=0.0, high=float(dimension))
    fewest = fewest_bits(clients, deviations)
    if bits < fewest:
        raise InfeasibleError(
            f"bits must be at least {fewest} to hold {deviations:g} deviations of {clients} clients' rounding, got {bits}"
        )
    room = math.sqrt(4.0**bits - clients * deviations**2)
    return 2 * deviations * math.sqrt(flatness * (clip_norm * clients) ** 2 / dimension + clients * local_sigma**2) / room


def fewest_bits(clients: int, deviations: float) -> int:
    """Return the fewest bits that hold the rounding of all clients.

    The bits satisfy ``4**bits`` > ``clients * deviations**2``.

    Examples
    --------
    >>> fewest_bits(1000, 4.0)
    7
    """
    bits = 1
    while 4.0**bits <= clients * deviations**2:
        bits += 1
    return bits


# Squares of the parameter s of random rounding to try, and theta(s), which falls from 2e-4 to 2e-34 over them.
SMOOTHING_VARIANCES = tuple(quarter / 4 for quarter in range(2, 17))
ROUNDING_RATIOS = tuple(theta_log_ratios(np.array(SMOOTHING_VARIANCES)).tolist())


@dataclass(frozen=True)
class SmoothedSum:
    """Gaussian noise whose randomised rounding is nearly a sum of discrete Gaussians.

    Attributes
    ----------
    sigma : float
        Standard deviation of the Gaussian noise, in whole numbers.
    log_ratio : float
        Bound on the logarithm of the ratio of a coordinate's probabilities, in either direction. The bound is rounded up. Bounds add up
        over coordinates and rounds.
    """

    sigma: float
    log_ratio: float


def smoothed_sums(clients: int, sigma: float) -> list[SmoothedSum]:
    """Return Gaussian noises that account for a sum of discrete Gaussians.

    Larger noise has larger ratios; the list goes from the largest ratio to the smallest, and is empty for a sum of variance 1/2 or less.
    Clients are 1 to 10**9, and sigma, each client's parameter in whole numbers, 0.001 to 10**20.

    Examples
    --------
    >>> smoothed = smoothed_sums(100, 4.0)[-1]
    >>> round(smoothed.sigma, 4), smoothed.log_ratio < 1e-14
    (39.95, True)
    """
    total = discrete_gaussian_tau(clients, sigma)
    variance = clients * sigma**2 * (1 - ROUNDING)
    return [
        SmoothedSum(math.sqrt(variance - square) * (1 - ROUNDING), (total + ratio + ROUNDING) * (1 + 1e-9))
        for square, ratio in zip(SMOOTHING_VARIANCES, ROUNDING_RATIOS, strict=True)
        if square < variance
    ]


def rounded_gaussian_exceeds(noises: list[SmoothedSum], delta: float, most: float) -> NDArray[np.bool_]:
    """Return for each noise whether it has no `rounded_gaussian_epsilon` up to `most`.

    The noises are in units of the sensitivity, and their log-ratios those of all coordinates and rounds together.
    """
    multipliers, ratios = np.array([(noise.sigma, noise.log_ratio) for noise in noises]).reshape(-1, 2).T
    allowed = np.minimum(delta * np.exp(-ratios) * (1 - ROUNDING), LARGEST_DELTA)
    exceeds = (multipliers < SMALLEST_MULTIPLIER) | (allowed < SMALLEST_DELTA)
    possible = ~exceeds
    exceeds[possible] = gaussian_epsilons_exceed(most - 2 * ratios[possible], multipliers[possible], allowed[possible])
    return np.asarray(exceeds)


def rounded_gaussian_epsilon(noise_multiplier: float, log_ratio: float, delta: float, most: float = math.inf) -> float | None:
    """Return epsilon of noise whose probabilities are near those of rounded Gaussian noise.

    The probabilities are within factors of e^r, r being `log_ratio`; the result is an upper bound, and None for too little noise. The noise
    multiplier and r are those of all coordinates and rounds together. The function returns None for an epsilon above `most`.

    Examples
    --------
    >>> round(rounded_gaussian_epsilon(4.0, 1e-9, 1e-5), 4), rounded_gaussian_epsilon(1e-6, 0.0, 1e-5)
    (0.9263, None)
    """
    # The margin of 1e-9 exceeds the ratio's rounding error by far.
    allowed = min(delta * math.exp(-log_ratio) * (1 - ROUNDING), LARGEST_DELTA)
    if noise_multiplier < SMALLEST_MULTIPLIER or allowed < SMALLEST_DELTA:
        return None
    if gaussian_epsilon_exceeds(most - 2 * log_ratio, noise_multiplier, allowed):
        return None
    return gaussian_epsilon(noise_multiplier, allowed) + 2 * log_ratio
