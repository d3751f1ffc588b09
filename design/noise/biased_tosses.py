"""Binomial numbers with few trials and many different probabilities: tosses of coins, each with its own bias."""

import numpy as np

from ...arguments import check_integer
from ...arrays import FloatArray, IntegerArray
from .random_words import WordsLike, word_source

MOST_TRIALS = 2**20
LARGEST_BIAS = 0.499
# Coins that are tossed together: a few megabytes.
BLOCK = 2**18
HALF_WORD = np.uint64(2**63)


def count_successes(biases: FloatArray, trials: int, words: WordsLike) -> IntegerArray:
    """Return numbers of successes in trials of probability 1/2 + bias, for each of many biases, in an array of their shape.

    A trial succeeds if a word of 64 bits is below a whole number: its probability is a multiple of 2**-64, rounded toward 1/2 by less than
    2**-64, and no further from 1/2 than the bias. Time is proportional to `trials`; `quietbits.design.noise.binomial_noise` draws many
    numbers of one probability faster.

    Parameters
    ----------
    biases : ndarray of float64, any shape
        Probabilities of success less 1/2, from -0.499 to 0.499.
    trials : int
        From 1 to 2**20.
    words : WordSource or numpy.random.Generator
        ``quietbits.secure_words`` for releases; a generator for experiments.

    Examples
    --------
    >>> from quietbits.design.noise.random_words import seeded_words
    >>> counts = count_successes(np.tile([-0.25, 0.0, 0.4], (100_000, 1)), 10, seeded_words(np.random.default_rng(0)))
    >>> counts.mean(axis=0).round(1).tolist()
    [2.5, 5.0, 9.0]
    """
    words = word_source(words)
    trials = check_integer("trials", trials, low=1, high=MOST_TRIALS)
    flat = np.asarray(biases, dtype=float).ravel()
    if not (np.abs(flat) <= LARGEST_BIAS).all():
        wrong = flat[~(np.abs(flat) <= LARGEST_BIAS)][0]
        raise ValueError(f"biases must be from {-LARGEST_BIAS} to {LARGEST_BIAS}, got {float(wrong)!r}")
    # Exact: a float times a power of two. Truncation is toward 1/2; 0.499 * 2**64 is below 2**63.
    thresholds = np.trunc(flat * 2.0**64).astype(np.int64).view(np.uint64) + HALF_WORD
    counts = np.zeros(len(flat), dtype=np.int64)
    for start in range(0, len(flat), BLOCK):
        block, below = counts[start : start + BLOCK], thresholds[start : start + BLOCK]
        for _ in range(trials):
            block += words(len(block)) < below
    return counts.reshape(np.shape(biases))
