"""Exact privacy of a shift of binomial noise: loss, delta, epsilon and Rényi divergences."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ..accounting.exact_privacy_loss import ExactPrivacyLoss
from ..accounting.pure_privacy import check_orders
from .cpsgd_theorem import check_rate

MOST_EXACT_TRIALS = 10**10
# Logarithm of the smallest kept probability.
SMALLEST_LOGARITHM = -690.0
# Distance of the smallest kept logarithm below the logarithm of a rare probability, and the omitted share of that probability.
RARE_LOGARITHM, RARE_SHARE = -100.0, 1e-13
# Rare values end about nine deviations from the mean. Most values of all computed shifts together, and the number of shifts that suffices.
RARE_DEVIATIONS, MOST_VALUES, ENOUGH_SHIFTS = 18, 550_000, 16
# Values computed at a time: a distribution has up to four million of them.
BLOCK = 2**15


@dataclass(frozen=True, eq=False)
class BinomialWindow:
    """The distribution of a binomial number, without values of negligible probability.

    Attributes
    ----------
    first : int
        Smallest kept value.
    logarithms : ndarray of longdouble, shape (values,)
        Logarithms of the probabilities of this and the following values; to about twelve digits if long double is double.
    log_remainder : float
        Logarithm of a bound on the probability of all other values; minus infinity if there are none.
    """

    first: int
    logarithms: NDArray[np.longdouble]
    log_remainder: float


@dataclass(frozen=True, eq=False)
class ShiftedBinomialRenyi:
    """Rényi divergences of shifted binomial noise, except for a failure.

    Attributes
    ----------
    divergences : ndarray of float64, shape (orders,)
        Larger divergence of both directions, in nats; infinite where failure is certain.
    failure : float
        Omitted probability: the larger of both directions.
    """

    divergences: FloatArray
    failure: float


@dataclass(frozen=True)
class VectorSteps:
    """Largest steps of the difference of two vectors of whole numbers.

    Attributes
    ----------
    squares, total, largest : int
        Sum of squares, sum of absolute values, and largest absolute value.
    """

    squares: int
    total: int
    largest: int


@dataclass(frozen=True, eq=False)
class ShiftedBinomialLosses:
    """Privacy losses of a binomial number Z and of Z + shift.

    Attributes
    ----------
    forth : ExactPrivacyLoss
        Privacy loss of Z against Z + shift.
    back : ExactPrivacyLoss
        Privacy loss of Z + shift against Z.
    """

    forth: ExactPrivacyLoss
    back: ExactPrivacyLoss


def shifted_binomial_losses(trials: int, probability: float, shift: int, rare: float = 0.0) -> ShiftedBinomialLosses:
    """Return the privacy losses of Z against Z + shift and the reverse, for Z binomial.

    The log-ratio ln(P(Z = x) / P(Z = x - shift)) is the sum of ln((N - j) p / ((j + 1) (1 - p))) over j from x - shift to x - 1, and the
    probabilities follow from the same ratios, starting at the mode: the computation avoids logarithms of factorials, whose rounding errors
    would show in losses as small as 1 / N. Losses fall as x rises. At either end of the support some values belong to only one of the two
    distributions. Values with a probability below 1e-299 count as `certain`; so do values below e^-100 times `rare` if all `certain` values
    together then have at most a 1e-13 share of `rare`.

    Parameters
    ----------
    trials : int
        Number of trials, 1 to 10**10.
    probability : float
        Probability of success, from 1e-9 to 1 - 1e-9.
    shift : int
        Distance of the two numbers, at least 1.
    rare : float
        Smallest probability that matters, at most 1: it limits how far out the distribution is computed.

    Examples
    --------
    >>> forth = shifted_binomial_losses(2, 0.5, 1).forth
    >>> forth.masses.tolist(), forth.losses.round(6).tolist(), forth.certain
    ([0.5, 0.25], [0.693147, -0.693147], 0.25)
    """
    trials = check_integer("trials", trials, low=1, high=MOST_EXACT_TRIALS)
    probability = check_rate(probability)
    shift = check_integer("shift", shift, low=1, high=10**12)
    rare = check_real("rare", rare, low=0.0, high=1.0)
    if rare > 0 and math.log(rare) + RARE_LOGARITHM > SMALLEST_LOGARITHM:
        shifted = _losses(binomial_window(trials, probability, math.log(rare) + RARE_LOGARITHM), shift)
        if max(shifted.forth.certain, shifted.back.certain) <= RARE_SHARE * rare:
            return shifted
    return _losses(binomial_window(trials, probability), shift)


def _losses(window: BinomialWindow, shift: int) -> ShiftedBinomialLosses:
    logarithms = window.logarithms
    if shift >= len(logarithms):
        nothing = ExactPrivacyLoss(np.empty(0), np.empty(0), 1.0, 1.0)
        return ShiftedBinomialLosses(nothing, nothing)
    losses = np.subtract(logarithms[shift:], logarithms[:-shift], out=np.empty(len(logarithms) - shift), casting="same_kind")
    log_masses = logarithms.astype(np.float64)
    ends = (np.exp(end).astype(np.float64) for end in (logarithms[:shift], logarithms[-shift:]))
    lowest, highest = (float(masses.sum()) + math.exp(window.log_remainder) for masses in ends)
    forth = ExactPrivacyLoss(log_masses[shift:], losses, lowest, highest)
    return ShiftedBinomialLosses(forth, ExactPrivacyLoss(log_masses[:-shift], -losses, highest, lowest))


def shifted_binomial_delta(trials: int, probability: float, shift: int, epsilon: float) -> float:
    """Return the smallest delta of a shift of binomial noise, to about twelve digits.

    The shift is (epsilon, delta)-private. Delta is the larger of both directions.

    Examples
    --------
    >>> shifted_binomial_delta(2, 0.5, 1, 0.0)
    0.5
    """
    losses = shifted_binomial_losses(trials, probability, shift)
    return max(losses.forth.delta(epsilon), losses.back.delta(epsilon))


def shifted_binomial_epsilon(trials: int, probability: float, shift: int, delta: float) -> float:
    """Return the smallest epsilon of a shift of binomial noise.

    The shift is (epsilon, delta)-private. Epsilon is the larger of both directions, and too large by as much as a relative error of 1e-10
    in delta. It is infinite if values that only one of the two distributions can have are more probable than delta.

    Examples
    --------
    >>> round(shifted_binomial_epsilon(10**6, 0.5, 1, 1e-6), 6), shifted_binomial_epsilon(10, 0.5, 1, 1e-6)
    (0.005848, inf)
    """
    losses = shifted_binomial_losses(trials, probability, shift)
    return max(losses.forth.epsilon(delta), losses.back.epsilon(delta))


def shifted_binomial_renyi(trials: int, probability: float, shift: int, orders: ArrayLike, neglected: float) -> ShiftedBinomialRenyi:
    """Return Rényi divergences of shifted binomial noise, and a failure probability.

    The supports of Z and Z + shift differ at their ends, so that the Rényi divergence is infinite for every order. Let E be the event that
    the value is common to both supports; the divergence D_a(P given E || Q) is finite. P is (epsilon, failure + delta')-close to Q wherever
    P given E is (epsilon, delta')-close to it, and over several uses divergences and failures add up. Rare values whose probability is at
    most `neglected`, 0 to 0.5, count as failures too, which makes high orders smaller.

    Examples
    --------
    >>> renyi = shifted_binomial_renyi(1000, 0.5, 1, [2.0], 0.0)
    >>> round(float(renyi.divergences[0]), 6), renyi.failure < 1e-280
    (0.004, True)
    """
    neglected = check_real("neglected", neglected, low=0.0, high=0.5)
    losses = shifted_binomial_losses(trials, probability, shift, neglected)
    both = [loss.without_rare_values(neglected) for loss in (losses.forth, losses.back)]
    failure = max(loss.certain for loss in both)
    array = check_orders(orders)
    if failure >= 1:
        return ShiftedBinomialRenyi(np.full(len(array), np.inf), 1.0)
    # The second normalisation of P counts as a factor (1 - c)^(-a) of the sum, and at infinite order as 1 / (1 - c).
    share = np.where(np.isinf(array), 1.0, 1 + 1 / (array - 1))
    divergences = [loss.renyi_divergences(array) - share * math.log1p(-loss.certain) for loss in both]
    return ShiftedBinomialRenyi(np.maximum(np.maximum(*divergences), 0.0), failure)


def vector_binomial_renyi(
    trials: int, probability: float, dimension: int, sensitivities: VectorSteps, orders: ArrayLike, neglected: float
) -> ShiftedBinomialRenyi | None:
    """Return bounds on the Rényi divergences of vectors of whole steps with binomial noise.

    Divergences of coordinates add up. With r_j the larger divergence of a shift by j in either direction, a vector v has at most
    ``max_j (r_j / j^2) sum v_i^2``, ``max_j (r_j / j) sum |v_i|``, and ``max_j r_j`` for each coordinate, j up to the largest coordinate.
    A larger shift reveals more, as binomial noise is log-concave: where shifts are too many, the divergence of the largest of some
    neighbours stands for all of them.

    Parameters
    ----------
    trials, probability
        Parameters of the noise of one coordinate.
    dimension : int
        Number of coordinates.
    sensitivities : VectorSteps
        Largest steps of a vector.
    orders : array_like of shape (orders,)
        Rényi orders above 1.
    neglected : float
        Probability of a coordinate's values that count as failures, as in `shifted_binomial_renyi`.

    Returns
    -------
    ShiftedBinomialRenyi or None
        Divergences of all coordinates, and the failure probability of one coordinate; None if there are too many trials.

    Examples
    --------
    >>> bound = vector_binomial_renyi(1000, 0.5, 4, VectorSteps(2, 2, 1), [2.0], 0.0)
    >>> round(float(bound.divergences[0]), 6)
    0.008
    """
    most = most_shifts(trials, probability)
    if most < min(sensitivities.largest, ENOUGH_SHIFTS):
        return None
    previous, failure, array = 0, 0.0, check_orders(orders)
    per_square, per_step, largest = np.zeros((3, len(array)))
    for step in _chosen_shifts(sensitivities.largest, most):
        shifted = shifted_binomial_renyi(trials, probability, step, array, neglected)
        smallest, failure = previous + 1, max(failure, shifted.failure)
        per_square = np.maximum(per_square, shifted.divergences / smallest**2)
        per_step = np.maximum(per_step, shifted.divergences / smallest)
        largest, previous = np.maximum(largest, shifted.divergences), step
    bounds = sensitivities.squares * per_square, sensitivities.total * per_step, dimension * largest
    return ShiftedBinomialRenyi(np.minimum.reduce(bounds), failure)


def most_shifts(trials: int, probability: float) -> int:
    """Return the largest number of shifts whose divergences are affordable."""
    values = min(trials, RARE_DEVIATIONS * math.sqrt(trials * probability * (1 - probability)) + 100)
    return 0 if trials > MOST_EXACT_TRIALS else int(MOST_VALUES / values)


def _chosen_shifts(largest: int, most: int) -> list[int]:
    """Return all shifts up to the largest, or about as many as given: small shifts and a geometric sequence."""
    if largest <= most:
        return list(range(1, largest + 1))
    few = most // 4
    return [*range(1, few + 1), *np.unique(np.ceil(np.geomspace(few + 1, largest, most - few))).astype(int).tolist()]


@lru_cache(maxsize=1)
def binomial_window(trials: int, probability: float, smallest: float = SMALLEST_LOGARITHM) -> BinomialWindow:
    """Return the distribution of a binomial number without values of negligible probability.

    The logarithms of the omitted values' probabilities are about `smallest` or less.
    """
    variance = trials * probability * (1 - probability)
    # Bernstein's inequality states P(|Z - N p| >= t) <= 2 exp(-t^2 / (2 (variance + t / 3))).
    linear = -2 * smallest / 3
    width = math.ceil((linear + math.sqrt(linear**2 - 8 * smallest * variance)) / 2) + 2
    mode = min(int((trials + 1) * probability), trials)
    first, last = max(0, mode - width), min(trials, mode + width)
    failing = 1 - np.longdouble(probability)
    logarithms = np.zeros(last - first + 1, dtype=np.longdouble)
    for start in range(first, last, BLOCK):
        value = np.arange(start, min(start + BLOCK, last), dtype=np.longdouble)
        # The term is ln((N - j) p / ((j + 1) (1 - p))), with a small argument near the mode.
        ratios = np.log1p((np.longdouble(trials) * np.longdouble(probability) - failing - value) / ((value + 1) * failing))
        ratios[0] += logarithms[start - first]
        np.cumsum(ratios, out=logarithms[start - first + 1 : start - first + 1 + len(ratios)])
    logarithms -= logarithms[mode - first]
    blocks = (logarithms[start : start + BLOCK] for start in range(0, len(logarithms), BLOCK))
    logarithms -= np.log(np.sum([np.exp(block).sum() for block in blocks]))
    # Probabilities rise to the mode and fall beyond it, so the kept values are neighbours.
    kept = logarithms >= smallest
    lowest = int(np.argmax(kept))
    window = logarithms[lowest : lowest + np.count_nonzero(kept)]
    window.flags.writeable = False
    # Beyond the window probabilities fall faster than geometrically, from a value below its last.
    remainder = -math.inf if len(window) == trials + 1 else smallest + 2 * math.log(len(window) + 10.0)
    return BinomialWindow(first + lowest, window, remainder)
