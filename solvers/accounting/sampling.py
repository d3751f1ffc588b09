"""Rounds with sampled clients: sampling schemes, and amplification by a secret sample.

A secret sample lowers epsilon, delta and Rényi divergences. The bounds on Rényi divergences hold for every mechanism: they need only the
divergences of a round with all clients. Gaussian noise has better bounds (`sampled_noise`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ..numerics.bisection import first_true
from ..numerics.log_sum_exp import log_sum_exp
from .renyi_curve import RenyiCurve

# Whole orders of the bounds on sampled divergences.
BOUNDED_ORDERS = (*range(2, 32), *range(32, 64, 4), *(round(64 * 2 ** (k / 4)) for k in range(17)))
SMALLEST_PROBABILITY = 1e-9
# Relative error of the sum of exponentials. For orders up to 4096 and probabilities from 1e-12 an exponent is a sum of log-gammas, 60 000
# in all (8 units each), of multiples of logarithms of q and of 1 - q, 151 000 in all (6 units), and of a cumulant (8 units) that is no
# larger than these together, unless the logarithm of the sum is as large as it, and as exact: with the additions 3.1e6 units, and 4100 for
# the sum.
ROUNDING = 7e-10

LARGEST_POPULATION = 10**12
# Relative error of the incomplete beta function; the largest observed error is 6e-14.
TAIL_ERROR = 1e-9
# Largest exponent, whose exponential does not overflow.
LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class PoissonSampling:
    """Each client takes part in a round with the same probability, independently.

    The probability is above 0 and at most 1.
    """

    probability: float

    def __post_init__(self) -> None:
        """Check the probability."""
        object.__setattr__(self, "probability", check_real("sampling_probability", self.probability, low=1e-9, high=1.0))

    @property
    def adjacency(self) -> str:
        """Adjacency that the proofs of amplification assume."""
        return "add-or-remove-one"

    @property
    def share(self) -> float:
        """Probability that a client takes part."""
        return self.probability

    def __str__(self) -> str:
        """Return the sampling in words."""
        return f"Poisson sampling with probability {self.probability:g}"


@dataclass(frozen=True)
class FixedSizeSampling:
    """Each round draws `sample_size` clients of `population` without replacement."""

    population: int
    sample_size: int

    def __post_init__(self) -> None:
        """Check both numbers."""
        check_integer("population", self.population, low=1, high=LARGEST_POPULATION)
        check_integer("sample_size", self.sample_size, low=1, high=self.population)

    @property
    def adjacency(self) -> str:
        """Adjacency that the proofs of amplification assume."""
        return "replace-one"

    @property
    def share(self) -> float:
        """Probability that a client takes part."""
        return self.sample_size / self.population

    def __str__(self) -> str:
        """Return the sampling in words."""
        return f"{self.sample_size} of {self.population} clients sampled without replacement"


Sampling = PoissonSampling | FixedSizeSampling


def stated_sampling(sampling_probability: float | None, population: int | None, sample_size: int | None) -> Sampling | None:
    """Return the sampling that options or a file's keys state; None without any.

    Raises
    ------
    ValueError
        If options of both kinds of sampling are given, or one of a pair is missing, or a number is out of range.

    Examples
    --------
    >>> print(stated_sampling(None, 1000, 10))
    10 of 1000 clients sampled without replacement
    """
    if sampling_probability is not None:
        if population is not None or sample_size is not None:
            raise ValueError(
                f"sampling_probability must be left out with population or sample_size, got {sampling_probability!r}: choose one sampling"
            )
        return PoissonSampling(sampling_probability)
    if population is None and sample_size is None:
        return None
    if population is None or sample_size is None:
        raise ValueError("population and sample_size must be given together: how many clients there are, and how many take part in a round")
    return FixedSizeSampling(population, sample_size)


def sampled_share(sampling: Sampling, adjacency: str) -> float:
    """Return the probability that a client takes part in a round.

    Parameters
    ----------
    sampling : PoissonSampling or FixedSizeSampling
        Sampling of the clients of a round.
    adjacency : str
        Adjacency of the guarantee before amplification.

    Raises
    ------
    ValueError
        If no proof covers amplification by the sampling for this adjacency.
    """
    if adjacency != sampling.adjacency:
        raise ValueError(f"sampling must be for {adjacency} adjacency, got {sampling}, which is for {sampling.adjacency}")
    return sampling.share


def amplified_epsilon(epsilon: float, probability: float) -> float:
    """Return the epsilon after secret sampling with probability q: ln(1 + q (e^epsilon - 1)).

    The failure probability becomes q times as large. The result holds for add-or-remove-one adjacency with Poisson sampling, and for
    replace-one with samples of a fixed size (Balle, Barthe, Gaboardi 2018, *Privacy amplification by subsampling*, theorems 8 and 9).

    Examples
    --------
    >>> round(amplified_epsilon(1.0, 0.01), 6)
    0.017037
    """
    if epsilon > LARGEST_EXPONENT:
        # The rest of the logarithm's argument, (1 - q) / e^epsilon, is below 1e-304.
        return epsilon + math.log(probability)
    return math.log1p(probability * math.expm1(epsilon))


def likely_participations(probability: float, rounds: int, failure: float) -> int:
    """Return a client's largest number of rounds, except with probability `failure`.

    The result is an upper bound. The client is drawn for each round with `probability`, independently of other rounds and of data.

    Examples
    --------
    >>> likely_participations(0.01, 1000, 1e-6), likely_participations(0.01, 1000, 0.0)
    (28, 1000)
    """
    from scipy.special import betainc

    if failure <= 0:
        return rounds
    allowed = failure * (1 - TAIL_ERROR)
    return first_true(0, rounds, lambda most: bool(betainc(most + 1, rounds - most, probability) <= allowed))


def delta_of_everyone(delta: float, share: float) -> float:
    """Return the failure probability of an unsampled round for a sampled round's `delta`.

    The failure probability is ``delta / share``, rounded down and kept below 1.

    Examples
    --------
    >>> round(delta_of_everyone(1e-6, 0.01), 12), delta_of_everyone(0.5, 0.1) < 1
    (0.0001, True)
    """
    return min(delta / share * (1 - 1e-15), math.nextafter(1, 0))


def poisson_sampled_curve(curve: RenyiCurve, probability: float) -> RenyiCurve:
    """Return bounds on the Rényi divergences of a Poisson-sampled round.

    The probability q of a client is from 1e-9 to 1. For whole orders a and cumulants K(l) = (l - 1) r(l) of a round with all clients, (a -
    1) r_q(a) is at most the logarithm of ``(1 - q)^(a-1) (a q - q + 1) + C(a, 2) q^2 (1 - q)^(a-2) e^K(2) + 3 sum_{l>=3} C(a, l) (1 -
    q)^(a-l) q^l e^K(l)`` (Zhu, Wang 2019, *Poisson subsampled Rényi differential privacy*, theorem 5). The curve is for add-or-remove-one
    adjacency and must reach order 2; the result is at whole orders, nowhere above the curve itself.

    Examples
    --------
    >>> gaussian = RenyiCurve(np.arange(2.0, 33.0), np.arange(2.0, 33.0) / 8)
    >>> poisson_sampled_curve(gaussian, 0.01).divergences[:2].round(6).tolist()
    [2.8e-05, 4.5e-05]
    """
    rate = check_real("probability", probability, low=SMALLEST_PROBABILITY, high=1.0)
    if rate == 1:
        return curve
    stays = math.log1p(-rate)

    def log_terms(order: int, cumulants: FloatArray) -> FloatArray:
        # The binomial theorem takes 1 out of the sum; the rest of each term is positive.
        chosen = np.arange(2, order + 1)
        factors = np.where(chosen == 2, log_expm1(cumulants), math.log(3) + cumulants + np.log1p(-np.exp(-cumulants) / 3))
        return np.asarray(log_binomials(order) + chosen * math.log(rate) + (order - chosen) * stays + factors)

    return _sampled(curve, log_terms)


def fixed_size_sampled_curve(curve: RenyiCurve, fraction: float) -> RenyiCurve:
    """Return bounds on the Rényi divergences of a round with a fixed share of the clients.

    A share q of the clients, from 1e-9 to 1, is drawn without replacement. For whole orders a and cumulants K(l) = (l - 1) r(l) of a round
    with all clients, (a - 1) r_q(a) is at most the logarithm of ``1 + q^2 C(a, 2) min(4 (e^K(2) - 1), e^K(2) m(2)) + sum_{l>=3} q^l C(a, l)
    e^K(l) m(l)``, m(l) = min(2, (e^r(inf) - 1)^l) (Wang, Balle, Kasiviswanathan 2019, *Subsampled Rényi differential privacy and analytical
    moments accountant*, theorem 9). The curve is for replace-one adjacency and must reach order 2; the result is at whole orders, nowhere
    above the curve itself.

    Examples
    --------
    >>> gaussian = RenyiCurve(np.arange(2.0, 33.0), np.arange(2.0, 33.0) / 8)
    >>> fixed_size_sampled_curve(gaussian, 0.01).divergences[:2].round(6).tolist()
    [0.000114, 0.000173]
    """
    rate = check_real("fraction", fraction, low=SMALLEST_PROBABILITY, high=1.0)
    if rate == 1:
        return curve
    pure = float(curve.divergences[np.isinf(curve.orders)].min(initial=math.inf))
    log_ratio = math.inf if pure > 700 else float(log_expm1(np.array(pure)))

    def log_terms(order: int, cumulants: FloatArray) -> FloatArray:
        chosen = np.arange(2, order + 1)
        factors = cumulants + np.minimum(math.log(2), chosen * log_ratio)
        factors[0] = min(factors[0], math.log(4) + float(log_expm1(cumulants[0])))
        return np.asarray(log_binomials(order) + chosen * math.log(rate) + factors)

    return _sampled(curve, log_terms)


def _sampled(curve: RenyiCurve, log_terms: Callable[[int, FloatArray], FloatArray]) -> RenyiCurve:
    """Return ln(1 + sum of the terms) / (a - 1) at whole orders a that the curve reaches.

    The terms are ``log_terms(a, cumulants from 2 to a)``.
    """
    finite = np.isfinite(curve.orders) & np.isfinite(curve.divergences)
    finite_orders, divergences = curve.orders[finite], curve.divergences[finite]
    orders = np.array([order for order in BOUNDED_ORDERS if order <= finite_orders.max(initial=1.0)], dtype=int)
    if orders.size == 0:
        raise ValueError(f"curve must have finite divergences at order 2 or above, got orders {curve.orders!r}")
    # The cumulant generating function of the loss, (a - 1) r(a), is convex and 0 at a = 1: between two orders it lies below the chord.
    rising = np.argsort(finite_orders)
    whole = np.arange(2, orders[-1] + 1)
    cumulants = np.interp(whole, [1.0, *finite_orders[rising]], [0.0, *((finite_orders - 1) * divergences)[rising]])
    sampled = np.array([np.logaddexp(0.0, log_sum_exp(log_terms(order, cumulants[: order - 1]))) for order in orders.tolist()])
    return RenyiCurve(orders.astype(float), np.minimum(sampled * (1 + ROUNDING), cumulants[orders - 2]) / (orders - 1))


def log_binomials(order: int) -> FloatArray:
    """Return the logarithms of the binomial coefficients C(order, l), l = 2 to order."""
    chosen = np.arange(2, order + 1)
    return np.asarray(scipy.special.gammaln(order + 1) - scipy.special.gammaln(chosen + 1) - scipy.special.gammaln(order - chosen + 1))


def log_expm1(values: FloatArray) -> FloatArray:
    """Return ln(e^x - 1) without overflow; minus infinity at 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(values > 30, values, np.log(np.expm1(np.minimum(values, 30.0)))))
