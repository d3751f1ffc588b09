"""Randomised response as exact lookup tables, in closed form: no rounding of letters, no bias."""

import math
import time
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from ...arguments import check_integer, check_real
from ...solvers.bounds.privacy_constraint import EPSILON_HIGH, EPSILON_LOW
from .certificate import certified_table
from .lookup_table import LookupTable
from .provenance import record_provenance

TOTAL = 2**62
LARGEST_BITS = 9


def generalised_randomised_response(epsilon: float, bits: int, *, interval: tuple[float, float] = (0.0, 1.0)) -> LookupTable:
    """Return generalised randomised response: the grid index is sent as it is or replaced by another one, as often as privacy requires.

    The weights are o off the diagonal and d on it, with o rounded up and d = total - (B-1) o, so that d / o <= exp(epsilon). With
    (d - o) a_i + o sum_j a_j = total i / (B-1) and sum_j a_j = B/2, the letters are exact rationals: there is no bias (section 3 of
    Chaudhuri, Guo, Rabbat 2022, solved for the letters).

    Parameters
    ----------
    epsilon : float
        Privacy parameter, 0.001 to 20.
    bits : int
        Bits of the grid index and of the message, 1 to 9.
    interval : tuple of float
        Values (low, high) that the grid spans.

    Examples
    --------
    >>> table = generalised_randomised_response(1.0, 1)
    >>> table.certificate.max_bias, round(table.certificate.mean_variance, 6)
    (0.0, 0.920674)
    """
    started = time.perf_counter()
    epsilon, bits = _check(epsilon, bits)
    inputs = 2**bits
    with localcontext() as context:
        context.prec = 50
        others = math.ceil(TOTAL / (Decimal(epsilon).exp() + inputs - 1))
    same = TOTAL - (inputs - 1) * others
    weights = np.full((inputs, inputs), others, dtype=np.int64)
    np.fill_diagonal(weights, same)
    alphabet = tuple((Fraction(TOTAL * i, inputs - 1) - Fraction(others * inputs, 2)) / (same - others) for i in range(inputs))
    return certified_table(
        mechanism="generalised-randomised-response",
        epsilon=epsilon,
        metric=None,
        alphabet=alphabet,
        total=TOTAL,
        weights=weights,
        interval=interval,
        provenance=record_provenance("closed form", 0, time.perf_counter() - started),
    )


def bitwise_randomised_response(epsilon: float, bits: int, *, interval: tuple[float, float] = (0.0, 1.0)) -> LookupTable:
    """Return bitwise randomised response: each bit of the grid index is flipped independently, with privacy epsilon / bits each.

    The weight w_h depends only on the number h of flipped bits; all but w_0 are rounded up and w_0 takes what is left, so that
    w_0 / w_bits <= exp(epsilon). Whatever the weights, a bit's sign then keeps the same share s = sum_h w_h (C(bits-1, h) - C(bits-1, h-1))
    / total of its mean, and the letters 1/2 + (y / (B-1) - 1/2) / s are exactly unbiased (section 3 of Chaudhuri, Guo, Rabbat 2022).

    Arguments are those of `generalised_randomised_response`.
    """
    started = time.perf_counter()
    epsilon, bits = _check(epsilon, bits)
    inputs = 2**bits
    with localcontext() as context:
        context.prec = 50
        odds = (Decimal(epsilon) / bits).exp()
        by_flips = [math.ceil(TOTAL * odds ** (bits - flips) / (1 + odds) ** bits) for flips in range(bits + 1)]
    by_flips[0] = TOTAL - sum(math.comb(bits, flips) * by_flips[flips] for flips in range(1, bits + 1))
    kept = sum(weight * (math.comb(bits - 1, h) - (math.comb(bits - 1, h - 1) if h else 0)) for h, weight in enumerate(by_flips))
    indices = np.arange(inputs)
    flips = np.bitwise_count(indices[:, None] ^ indices)
    alphabet = tuple(Fraction(1, 2) + (Fraction(y, inputs - 1) - Fraction(1, 2)) * Fraction(TOTAL, kept) for y in range(inputs))
    return certified_table(
        mechanism="bitwise-randomised-response",
        epsilon=epsilon,
        metric=None,
        alphabet=alphabet,
        total=TOTAL,
        weights=np.array(by_flips, dtype=np.int64)[flips],
        interval=interval,
        provenance=record_provenance("closed form", 0, time.perf_counter() - started),
    )


def _check(epsilon: float, bits: int) -> tuple[float, int]:
    return check_real("epsilon", epsilon, low=EPSILON_LOW, high=EPSILON_HIGH), check_integer("bits", bits, low=1, high=LARGEST_BITS)
