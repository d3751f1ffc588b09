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

    Examples
    --------
    >>> round(least_reach(8, RatioConstraint(1.0, False)), 6)
    0.581977
    """
    farthest = 1 / (inputs_count - 1) if constraint.neighbours_only else 1.0
    return farthest / math.expm1(constraint.log_ratio)


def widened(alphabet: FloatArray, inputs_count: int, constraint: RatioConstraint, slack: float = SLACK) -> FloatArray:
    """Return two letters or more, sorted, with the outermost moved out as little as makes a table possible.

    `slack` is how much farther than they must they reach at least, as a share; letters that reach far enough stay as they are.
    """
    reach = (1 + slack) * least_reach(inputs_count, constraint)
    letters = np.sort(alphabet)
    letters[0] = min(letters[0], -reach)
    letters[-1] = max(letters[-1], 1 + reach)
    return letters


def randomised_response_alphabet(inputs_count: int, letters: int, constraint: RatioConstraint) -> FloatArray:
    """Return the letters of generalised randomised response on a grid of as many points, two or more, as there are letters.

    Inputs between the points of that grid are dithered to them, so that under local privacy a table exists whatever the number of
    inputs. Under metric privacy the letters are those for the whole grid's log ratio, stretched about 1/2 as far as they must reach.
    """
    total = constraint.log_ratio * (inputs_count - 1 if constraint.neighbours_only else 1)
    beyond = letters / 2 / math.expm1(total)
    needed = (1 + SLACK) * least_reach(inputs_count, constraint)
    return np.linspace(-max(beyond, needed), 1 + max(beyond, needed), letters)


def starting_alphabets(inputs_count: int, letters: int, constraint: RatioConstraint, starts: int, rng: np.random.Generator) -> FloatArray:
    """Return alphabets, shape (starts, letters), for which a table exists, to start local searches from.

    The first is that of generalised randomised response; the others are random, in turn symmetric about 1/2 and not: outermost
    letters reach from just as far as they must to `letters` times as far, log-uniformly, and the others are uniform between. The first
    alphabets are the same for any larger number of starts.
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
