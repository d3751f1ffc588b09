"""Exact samples of Pólya noise, a share of discrete Laplace noise.

Pólya noise of shape r is the difference of two independent negative binomial numbers of shape r and ratio q = exp(-1 / scale). Shapes add
up, and shape 1 is discrete Laplace noise. A negative binomial number is a sum of jumps k >= 1, which arrive at the rate r q^k / k each: a
Poisson number of logarithmic ones. Here jumps are proposed at rational rates and thinned, so that no rate is irrational. There are
`_blocks` groups of numbers k, and each is proposed at the rate r, by a number k that is uniform on a block of W numbers, or on a
geometrically distributed block of W / 2^(i + 1) numbers in the last group. The rate of k is r / W, so that k is kept with the probability
W q^k / k, which is at most 1.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...arrays import IntegerArray, WordArray
from .discrete_laplace import LARGEST_SCALE, LEAST_SCALE, discrete_laplace_variance
from .exact_sampler import ALLOWANCE, MOST_EXTENSIONS, WORD_BITS, exponential_bounds, rational_parameter, sample_shape
from .random_words import WordsLike, WordSource, word_source
from .redraws import Redraws
from .skellam_noise import sample_poisson

LEAST_SHAPE, LARGEST_SHAPE = 1e-10, 1e6
# Jumps proposed at a time.
PROPOSED = 2**18
# A proposal beyond this block would have a probability below 2**-1000.
LAST_BLOCK = 1_000


def sample_polya(
    shape: float | Fraction, scale: float | Fraction, size: int | tuple[int, ...], random_words: WordsLike, kind: DTypeLike = np.int64
) -> NDArray[Any]:
    """Draw Pólya noise, exactly.

    Parameters
    ----------
    shape : float, int or Fraction
        Shape r, 1e-10 to 10**6; a float counts as the binary fraction that it is. ``Fraction(1, n)`` is the share of one of n clients.
    scale : float, int or Fraction
        Scale of the discrete Laplace noise of shape 1, 1e-6 to 10**12.
    size : int or tuple of int
        Number of samples, or the shape of the result.
    random_words : WordSource or numpy.random.Generator
        ``quietbits.secure_words`` for releases; a generator, which counts as ``seeded_words`` of it, for experiments.
    kind : dtype-like
        Type of the result; a type of w bits holds the numbers modulo 2**w.

    Examples
    --------
    >>> from quietbits.design.noise.random_words import seeded_words
    >>> shares = sample_polya(Fraction(1, 50), Fraction(7, 2), (50, 20_000), seeded_words(np.random.default_rng(0)))
    >>> round(float(shares.sum(axis=0).var()), 1), round(polya_variance(1, Fraction(7, 2)), 1)
    (24.7, 24.3)
    """
    random_words = word_source(random_words)
    exact_shape = rational_parameter("shape", shape, low=LEAST_SHAPE, high=LARGEST_SHAPE)
    exact_scale = rational_parameter("scale", scale, low=LEAST_SCALE, high=LARGEST_SCALE)
    lengths = sample_shape(size)
    cells = math.prod(lengths)
    total = np.zeros(cells, dtype=kind)
    if cells == 0:
        return total.reshape(lengths)
    blocks = _blocks(exact_scale)
    # Jumps of both signs in every cell; they fall on cells, groups and signs uniformly.
    left = int(sample_poisson(2 * blocks * exact_shape * cells, 1, random_words)[0])
    while left:
        count = min(left, PROPOSED)
        jumps, drawn = _jumps(exact_scale, blocks, count, random_words)
        kept = jumps > 0
        signed = np.where(drawn[kept] & np.uint64(1), -jumps[kept], jumps[kept])
        np.add.at(total, random_words.integers(cells, count)[kept], signed.astype(kind))
        left -= count
    return total.reshape(lengths)


def polya_variance(shape: float | Fraction, scale: float | Fraction) -> float:
    """Return the variance of Pólya noise, the shape times that of discrete Laplace noise.

    Examples
    --------
    >>> round(polya_variance(0.5, 1.0), 6)
    0.920674
    """
    exact = rational_parameter("shape", shape, low=LEAST_SHAPE, high=LARGEST_SHAPE)
    return float(exact) * discrete_laplace_variance(scale)


def _blocks(scale: Fraction) -> int:
    """Return the number of groups: [1, 2), [2, 4), ... up to the scale, and all numbers beyond."""
    return max(0, math.ceil(scale) - 1).bit_length() + 1


def _jumps(scale: Fraction, blocks: int, count: int, random_words: WordSource) -> tuple[IntegerArray, WordArray]:
    """Return proposed jumps, 0 for those that are not kept, and a word with a fresh bit for each."""
    group = random_words.integers(blocks, count)
    last = np.flatnonzero(group == blocks - 1)
    start, width_bits = np.left_shift(1, group), group.copy()
    log_weight = group.astype(np.int64)
    later = _coin_runs(last.size, random_words)
    start[last] += later << (blocks - 1)
    log_weight[last] += later + 1
    drawn = random_words(count)
    # The lowest bit is the sign.
    within = (drawn >> np.uint64(1)) & ((np.uint64(1) << width_bits.astype(np.uint64)) - np.uint64(1))
    jumps = start + within.astype(np.int64)
    return np.where(_kept(jumps, log_weight, scale, random_words), jumps, 0), drawn


def _kept(jumps: IntegerArray, log_weight: IntegerArray, scale: Fraction, random_words: WordSource) -> NDArray[np.bool_]:
    """Return whether U < 2**log_weight exp(-jump / scale) / jump, with a fresh U for each jump."""
    drawn = random_words(len(jumps))
    probability = np.exp(log_weight * math.log(2) - jumps / float(scale)) / jumps
    excess = probability - drawn * 2.0**-WORD_BITS
    kept = excess > ALLOWANCE
    for place in np.flatnonzero(np.abs(excess) <= ALLOWANCE):
        kept[place] = _decide(int(jumps[place]), int(log_weight[place]), scale, int(drawn[place]), random_words)
    return kept


def _decide(jump: int, log_weight: int, scale: Fraction, uniform: int, random_words: WordSource) -> bool:
    """Return whether U < 2**log_weight exp(-jump / scale) / jump, by whole numbers.

    U begins with the bits of `uniform` and is extended as needed.
    """
    bits, redraws = WORD_BITS, Redraws(MOST_EXTENSIONS)
    while True:
        redraws.another()
        low, high = exponential_bounds(jump / scale, bits + log_weight)
        if (uniform + 1) * jump <= low:
            return True
        if uniform * jump >= high:
            return False
        uniform = (uniform << WORD_BITS) + int(random_words(1)[0])
        bits += WORD_BITS


def _coin_runs(count: int, random_words: WordSource) -> IntegerArray:
    """Return numbers of heads before the first tail of fair coins, by the leading zeros of words."""
    runs = np.zeros(count, dtype=np.int64)
    open_places = np.arange(count)
    redraws = Redraws(LAST_BLOCK // WORD_BITS)
    while open_places.size:
        redraws.another()
        drawn = random_words(open_places.size)
        # The upper 53 bits of a word are exact in a float; a word without them counts 11 zeros more at most, and is drawn on.
        upper = (drawn >> np.uint64(11)).astype(np.float64)
        ended = upper > 0
        runs[open_places] += np.where(ended, 53 - np.frexp(upper)[1], 53)
        open_places = open_places[~ended]
    return runs
