"""Where to start the search for letters, and how far the letters must reach for any table to exist."""

import math

import numpy as np

from ...arrays import FloatArray
from ..bounds.privacy_constraint import RatioConstraint

# Starting letters reach this much farther (relative) than they must: at the limit itself the feasible tables are a single point.
SLACK = 1e-7


def least_reach(inputs_count: int, constraint: RatioConstraint) -> float:
    """Return how far beyond [0, 1], on both sides, the letters must reach: a table exists if and only if they do.

    Let s be minus the lowest letter. Unbiased rows have E[a + s | x] = x + s with a + s >= 0, and privacy bounds the ratio of that
    at two inputs: with h the distance from input 0 to the farthest input that is constrained with it, h + s <= exp(log_ratio) s. The
    same holds at the upper end by symmetry. Two letters at -s and 1 + s are enough: their probabilities are linear in x. (This is
    the one-bit mechanism, which for local privacy has letters 1/2 +- (E+1)/(E-1)/2, E = exp(epsilon).)

    Parameters
    ----------
    inputs_count : int
        Number of grid points on [0, 1].
    constraint : RatioConstraint
        Local or metric privacy.

    Returns
    -------
    float
        The least s, positive.

    Examples
    --------
    >>> round(least_reach(8, RatioConstraint(1.0, False)), 6)
    0.581977
    """
    farthest = 1 / (inputs_count - 1) if constraint.neighbours_only else 1.0
    return farthest / math.expm1(constraint.log_ratio)


def widened(alphabet: FloatArray, inputs_count: int, constraint: RatioConstraint, slack: float = SLACK) -> FloatArray:
    """Return the letters with the outermost two moved out as little as makes a table possible, sorted.

    Parameters
    ----------
    alphabet : ndarray of shape (letters,)
        Two or more letters, in any order.
    inputs_count : int
        Number of grid points on [0, 1].
    constraint : RatioConstraint
        Local or metric privacy.
    slack : float
        How much farther than they must the letters reach at least, as a share.

    Returns
    -------
    ndarray of shape (letters,)
        The letters, increasing; those that reached far enough are as they were.
    """
    reach = (1 + slack) * least_reach(inputs_count, constraint)
    letters = np.sort(alphabet)
    letters[0] = min(letters[0], -reach)
    letters[-1] = max(letters[-1], 1 + reach)
    return letters


def randomised_response_alphabet(inputs_count: int, letters: int, constraint: RatioConstraint) -> FloatArray:
    """Return the letters of generalised randomised response on a grid of as many points as there are letters.

    Inputs between the points of that grid are dithered to them, so that under local privacy a table exists whatever the number of
    inputs. Under metric privacy the letters are those for the whole grid's log ratio, stretched about 1/2 as far as they must reach.

    Parameters
    ----------
    inputs_count : int
        Number of grid points on [0, 1].
    letters : int
        Number of letters, at least 2.
    constraint : RatioConstraint
        Local or metric privacy.

    Returns
    -------
    ndarray of shape (letters,)
        The letters, increasing and symmetric about 1/2.
    """
    total = constraint.log_ratio * (inputs_count - 1 if constraint.neighbours_only else 1)
    beyond = letters / 2 / math.expm1(total)
    needed = (1 + SLACK) * least_reach(inputs_count, constraint)
    return np.linspace(-max(beyond, needed), 1 + max(beyond, needed), letters)


def starting_alphabets(inputs_count: int, letters: int, constraint: RatioConstraint, starts: int, rng: np.random.Generator) -> FloatArray:
    """Return alphabets for which a table exists, to start local searches from.

    The first is that of generalised randomised response; the others are random, in turn symmetric about 1/2 and not: outermost
    letters reach from just as far as they must to `letters` times as far, log-uniformly, and the others are uniform between.

    Parameters
    ----------
    inputs_count : int
        Number of grid points on [0, 1].
    letters : int
        Number of letters, at least 2.
    constraint : RatioConstraint
        Local or metric privacy.
    starts : int
        Number of alphabets, at least 1.
    rng : numpy.random.Generator
        Source of the random ones; the first `starts` alphabets are the same for any larger number.

    Returns
    -------
    ndarray of shape (starts, letters)
        The alphabets, each increasing.
    """
    alphabets = [randomised_response_alphabet(inputs_count, letters, constraint)]
    needed = (1 + SLACK) * least_reach(inputs_count, constraint)
    for start in range(1, starts):
        low, high = -needed * letters ** rng.random(), 1 + needed * letters ** rng.random()
        inner = rng.random(letters - 2)
        if start % 2:
            high = 1 - low
            pairs = inner[: letters // 2 - 1] / 2
            inner = np.concatenate([pairs, 1 - pairs, np.full(letters % 2, 0.5)])
        alphabets.append(np.sort(np.concatenate([[low, high], low + (high - low) * inner])))
    return np.stack(alphabets)
