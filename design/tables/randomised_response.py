"""Randomised response as exact lookup tables, in closed form."""

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
GENERALISED, BITWISE = "generalised-randomised-response", "bitwise-randomised-response"


def generalised_randomised_response(epsilon: float, bits: int, *, interval: tuple[float, float] = (0.0, 1.0)) -> LookupTable:
    """Return generalised randomised response, which keeps or uniformly replaces the grid index.

    The weights are o off the diagonal and d on it, with o rounded up and d = total - (B-1) o, so that d / o <= exp(epsilon). With (d - o)
    a_i + o sum_j a_j = total i / (B-1) and sum_j a_j = B/2, the letters are exact rationals, and there is no bias (section 3 of Chaudhuri,
    Guo, Rabbat 2022, solved for the letters).

    Parameters
    ----------
    epsilon : float
        Privacy parameter, 0.001 to 20.
    bits : int
        Number of bits of the grid index and of the message, 1 to 9.
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
    alphabet = _generalised_letters(inputs, TOTAL, same, others)
    return certified_table(
        mechanism=GENERALISED,
        epsilon=epsilon,
        metric=None,
        alphabet=alphabet,
        total=TOTAL,
        weights=weights,
        interval=interval,
        provenance=record_provenance("closed form", 0, time.perf_counter() - started),
    )


def bitwise_randomised_response(epsilon: float, bits: int, *, interval: tuple[float, float] = (0.0, 1.0)) -> LookupTable:
    """Return bitwise randomised response, which flips every bit of the grid index independently.

    Each bit has the privacy epsilon / bits. The weight w_h depends only on the number h of flipped bits; all but w_0 are rounded up and w_0
    is the remainder, so that w_0 / w_bits <= exp(epsilon). For any weights, a bit's sign then keeps the same share s = sum_h w_h (C(bits-1,
    h) - C(bits-1, h-1)) / total of its mean, and the letters 1/2 + (y / (B-1) - 1/2) / s are exactly unbiased (section 3 of Chaudhuri, Guo,
    Rabbat 2022).

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
    indices = np.arange(inputs)
    flips = np.bitwise_count(indices[:, None] ^ indices)
    alphabet = _bitwise_letters(by_flips, TOTAL)
    return certified_table(
        mechanism=BITWISE,
        epsilon=epsilon,
        metric=None,
        alphabet=alphabet,
        total=TOTAL,
        weights=np.array(by_flips, dtype=np.int64)[flips],
        interval=interval,
        provenance=record_provenance("closed form", 0, time.perf_counter() - started),
    )


def is_generalised_response(table: LookupTable) -> bool:
    """Return whether a table is generalised randomised response at some epsilon."""
    weights, inputs = table.weights, len(table.weights)
    if weights.shape != (inputs, inputs):
        return False
    same, others = int(weights[0, 0]), int(weights[0, 1])
    expected = np.full((inputs, inputs), others, dtype=np.int64)
    np.fill_diagonal(expected, same)
    return same > others and np.array_equal(weights, expected) and table.alphabet == _generalised_letters(inputs, table.total, same, others)


def is_bitwise_response(table: LookupTable) -> bool:
    """Return whether a table is bitwise randomised response at some epsilon.

    Bits are flipped independently if the weight of h flips is ``total q**h (1 - q)**(bits - h)``, with q the probability that the first bit
    is flipped. Weights are rounded up, and the weight of no flip is the rest, so that weights are off by less than ``(bits + 1) 2**bits``.
    """
    weights, bits, total = table.weights, table.bits_in, table.total
    if weights.shape != (2**bits, 2**bits):
        return False
    indices = np.arange(2**bits)
    by_flips = [int(weight) for weight in weights[0, 2 ** np.arange(bits + 1) - 1]]
    if not np.array_equal(weights, np.array(by_flips)[np.bitwise_count(indices[:, None] ^ indices)]):
        return False
    flipped = sum(Fraction(math.comb(bits - 1, flips - 1) * by_flips[flips], total) for flips in range(1, bits + 1))
    independent = [total * flipped**flips * (1 - flipped) ** (bits - flips) for flips in range(bits + 1)]
    near = all(abs(weight - exact) < (bits + 1) * 2**bits for weight, exact in zip(by_flips, independent, strict=True))
    return near and 2 * flipped < 1 and table.alphabet == _bitwise_letters(by_flips, total)


def _generalised_letters(inputs: int, total: int, same: int, others: int) -> tuple[Fraction, ...]:
    return tuple((Fraction(total * i, inputs - 1) - Fraction(others * inputs, 2)) / (same - others) for i in range(inputs))


def _bitwise_letters(by_flips: list[int], total: int) -> tuple[Fraction, ...]:
    bits = len(by_flips) - 1
    kept = sum(weight * (math.comb(bits - 1, h) - (math.comb(bits - 1, h - 1) if h else 0)) for h, weight in enumerate(by_flips))
    last = 2**bits - 1
    return tuple(Fraction(1, 2) + (Fraction(y, last) - Fraction(1, 2)) * Fraction(total, kept) for y in range(last + 1))


def _check(epsilon: float, bits: int) -> tuple[float, int]:
    return check_real("epsilon", epsilon, low=EPSILON_LOW, high=EPSILON_HIGH), check_integer("bits", bits, low=1, high=LARGEST_BITS)
