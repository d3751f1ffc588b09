"""An empirical audit: a lower bound on epsilon from a mechanism's outputs for neighbours.

A claim (epsilon, delta) states P(E) <= e^epsilon Q(E) + delta for every event E, where P and Q are the two outputs' distributions in either
order. A single event whose probabilities are estimated well enough can refute the claim (Ding, Wang, Wang, Zhang, Kifer 2018, *Detecting
violations of differential privacy*; Jagielski, Ullman, Oprea 2020, *Auditing differentially private machine learning*).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from ...arguments import check_integer, check_real
from ...arrays import FloatArray

Score = Callable[[ArrayLike, int, np.random.Generator], ArrayLike]
"""Function that runs the mechanism ``count`` times on an input and returns a number per output, shape (count,)."""

FEWEST_REPETITIONS, MOST_REPETITIONS = 100, 10**8
# Ratio of the counts of successive tried events. Finer steps hardly help, and each step costs an inverse beta function.
COUNT_RATIO = 1.02


@dataclass(frozen=True)
class AuditResult:
    """The result of an audit: a lower bound on epsilon, and the event that proves it.

    Attributes
    ----------
    epsilon_lower_bound : float
        Lower bound on epsilon: with probability `confidence`, the mechanism is not (epsilon, delta)-private for any smaller epsilon. The
        bound is 0.0 if the audit proves nothing, and looser for fewer repetitions.
    delta : float
        Delta of the audited claim.
    confidence : float
        Least probability, over the draws, with which the bound holds.
    event : str
        ``"score >= threshold"`` or ``"score <= threshold"``.
    threshold : float
        Threshold of the chosen event.
    likelier : str
        Input under which the event is more likely: ``"first"`` or ``"second"``.
    likely_count, unlikely_count : int
        Counts of the event under that input and under the other input, in draws that did not choose the event.
    draws : int
        Number of draws for each input that did not choose the event.
    """

    epsilon_lower_bound: float
    delta: float
    confidence: float
    event: str
    threshold: float
    likelier: str
    likely_count: int
    unlikely_count: int
    draws: int

    def refutes(self, epsilon: float) -> bool:
        """Return whether the audit refutes a claim of this epsilon and at most the audit's delta."""
        return self.epsilon_lower_bound > epsilon


def audit_score(
    score: Score,
    first: ArrayLike,
    second: ArrayLike,
    delta: float,
    repetitions: int,
    rng: np.random.Generator,
    *,
    confidence: float = 0.999,
) -> AuditResult:
    """Bound epsilon from below by scores of a mechanism's outputs for two neighbouring inputs.

    The first half of the outputs chooses an event: scores above or below a threshold, under one input or the other. The second half counts
    the event. With probability `confidence`, the event's probability p under one input and q under the other are both inside the one-sided
    bounds of Clopper and Pearson, and then epsilon is at least ``ln((p - delta) / q)``.

    Parameters
    ----------
    score : callable
        ``score(input, count, rng)`` runs the mechanism that many times and returns one number per output, which is large for evidence of
        one input and small for evidence of the other. A log-likelihood ratio is the best score, if it can be computed.
    first, second : array_like
        Inputs that are neighbours in the sense of the claim.
    delta : float
        The claim's delta, from 0 and below 1.
    repetitions : int
        Number of the mechanism's runs on each input, from 100 to 10**8. The function uses six arrays of half as many numbers.
    rng : numpy.random.Generator
        Source of the mechanism's randomness.
    confidence : float
        Probability with which the bound holds, from 0.5 to 1 - 1e-12.

    Examples
    --------
    The example audits randomised response with epsilon = 1, in 100 000 runs:

    >>> def respond(value, count, rng):
    ...     return np.where(rng.random(count) < math.e / (1 + math.e), value, 1 - value)
    >>> result = audit_score(respond, 0, 1, 0.0, 100_000, np.random.default_rng(0))
    >>> round(result.epsilon_lower_bound, 2), result.refutes(1.0), result.refutes(0.9)
    (0.98, False, True)
    """
    delta = check_real("delta", delta, low=0.0, high=1 - 1e-12)
    confidence = check_real("confidence", confidence, low=0.5, high=1 - 1e-12)
    half = check_integer("repetitions", repetitions, low=FEWEST_REPETITIONS, high=MOST_REPETITIONS) // 2
    pilots = [_scores(score, value, half, rng) for value in (first, second)]
    event = _best_event(pilots[0], pilots[1], delta, confidence)
    draws = repetitions - half
    likely_count, unlikely_count = (
        event.count(_scores(score, value, draws, rng)) for value in ((first, second) if event.first_is_likelier else (second, first))
    )
    bound = float(_lower_bounds(np.array([likely_count]), np.array([unlikely_count]), draws, delta, confidence)[0])
    return AuditResult(
        epsilon_lower_bound=max(0.0, bound),
        delta=delta,
        confidence=confidence,
        event="score >= threshold" if event.above else "score <= threshold",
        threshold=event.threshold,
        likelier="first" if event.first_is_likelier else "second",
        likely_count=likely_count,
        unlikely_count=unlikely_count,
        draws=draws,
    )


@dataclass(frozen=True)
class _Event:
    """Scores on one side of a threshold, including the threshold."""

    threshold: float
    above: bool
    first_is_likelier: bool

    def count(self, scores: FloatArray) -> int:
        return int(np.count_nonzero(scores >= self.threshold if self.above else scores <= self.threshold))


def _scores(score: Score, value: ArrayLike, count: int, rng: np.random.Generator) -> FloatArray:
    scores = np.asarray(score(value, count, rng), dtype=np.float64)
    if scores.shape != (count,):
        raise ValueError(f"score must return an array of shape ({count},), got {scores.shape}")
    if np.isnan(scores).any():
        raise ValueError(f"score must return numbers, got NaN {np.count_nonzero(np.isnan(scores))} times in {count}")
    return scores


def _best_event(first: FloatArray, second: FloatArray, delta: float, confidence: float) -> _Event:
    """Return the event that gives the largest bound on these draws."""
    ascending = np.sort(np.concatenate([first, second]))
    total, ranks = len(ascending), [0]
    while ranks[-1] < total - 1:
        ranks.append(min(total - 1, max(ranks[-1] + 1, int(ranks[-1] * COUNT_RATIO))))
    # Ranks lie near both ends, because events of few outputs give the largest bounds at small deltas.
    thresholds = np.unique(ascending[np.unique(np.concatenate([ranks, total - 1 - np.array(ranks)]))])
    sorted_scores = [np.sort(scores) for scores in (first, second)]
    above = [len(scores) - np.searchsorted(scores, thresholds, side="left") for scores in sorted_scores]
    below = [np.searchsorted(scores, thresholds, side="right") for scores in sorted_scores]
    likely, unlikely = np.concatenate([*above, *below]), np.concatenate([*above[::-1], *below[::-1]])
    bounds = _lower_bounds(likely, unlikely, len(first), delta, confidence)
    place = int(bounds.argmax())
    if bounds[place] == -math.inf:
        return _Event(float(thresholds[-1]), above=True, first_is_likelier=True)
    kind, which = divmod(place, len(thresholds))
    return _Event(float(thresholds[which]), above=kind < 2, first_is_likelier=kind % 2 == 0)


def _lower_bounds(likely: NDArray[np.int64], unlikely: NDArray[np.int64], draws: int, delta: float, confidence: float) -> FloatArray:
    """Return ln((p - delta) / q) with Clopper-Pearson bounds p and q; -inf if p <= delta."""
    failure = (1 - confidence) / 2
    # With few draws, many events have the same counts, so each count's bounds are computed once.
    counts, place = np.unique(likely, return_inverse=True)
    # The inverse of the incomplete beta function takes no parameter 0: p is 0 if the event never occurs, and q is 1 if it always occurs.
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), draws - counts + 1, failure), 0.0)[place]
    counts, place = np.unique(unlikely, return_inverse=True)
    high = np.where(counts < draws, betaincinv(counts + 1, np.maximum(draws - counts, 1), 1 - failure), 1.0)[place]
    return np.log(np.maximum(low - delta, 0.0), where=low > delta, out=np.full(len(low), -math.inf)) - np.log(high)
