"""Approximate message passing for histograms: fast guesses at a solution, which are checked exactly, and prove nothing.

Donoho, Maleki, Montanari 2009, *Message-passing algorithms for compressed sensing*, with the posterior mean of a count under a prior
that is learned on the way: a share of items occurs, and counts of those that do are geometric. Where message passing stalls, a few items
are guessed: a beam search over sets of items that are taken for granted.
"""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray, IndexArray, IntegerArray
from .histogram_problem import HistogramProblem

ITERATIONS = 60
DAMPING = 0.7
SETTLED = 1e-3
LEAST_VARIANCE = 1e-9
# Largest count that posterior means take into account above what was guessed; others are reached by guessing.
MOST_LEVELS = 64
GUESSES_PER_NODE = 12
DEPTH = 8
# Entries of the arrays of one batch of guesses: 4 MiB each.
BATCH_ENTRIES = 2**20


@dataclass(frozen=True, eq=False)
class Guess:
    """What message passing came to.

    Attributes
    ----------
    counts : ndarray of int64, shape (dimension,), or None
        A solution, exactly; None if none was found.
    beliefs : ndarray of float64, shape (dimension,)
        Estimated counts.
    runs : int
        Runs of message passing.
    """

    counts: IntegerArray | None
    beliefs: FloatArray
    runs: int


def guess_histogram(problem: HistogramProblem, width: int, deadline: float) -> Guess:
    """Search for a solution: without a guess, then with 1, 2, ... items guessed, of which the `width` best sets are kept.

    `deadline` is a time of `time.monotonic`; the search ends soon after it.
    """
    measurements, dimension = problem.matrix.shape
    design = np.where(problem.matrix, np.float32(1), np.float32(-1)) / np.sqrt(measurements, dtype=np.float32)
    beliefs = np.zeros(dimension)
    sets: list[tuple[int, ...]] = [()]
    seen, runs = set(sets), 0
    batch = max(1, BATCH_ENTRIES // dimension)
    for level in range(min(DEPTH, problem.clients) + 1):
        scored: list[tuple[float, tuple[int, ...], IndexArray]] = []
        for start in range(0, len(sets), batch):
            if runs and time.monotonic() > deadline:
                return Guess(None, beliefs, runs)
            part = sets[start : start + batch]
            # Where messages diverge, they lead to no solution.
            with np.errstate(over="ignore", invalid="ignore"):
                counts, residuals = _pass_messages(problem, design, part, deadline)
                rounded_counts = np.rint(counts).astype(np.int64).T
            runs += len(part)
            if level == 0:
                beliefs = np.nan_to_num(counts[:, 0].astype(np.float64))
            for guessed, found, rounded, residual in zip(part, counts.T, rounded_counts, residuals, strict=True):
                np.add.at(rounded, np.array(guessed, dtype=np.intp), 1)
                if problem.solved_by(rounded):
                    return Guess(rounded, beliefs, runs)
                scored.append((float(np.nan_to_num(residual, nan=np.inf)), guessed, np.argsort(-found, kind="stable")[:GUESSES_PER_NODE]))
        scored.sort(key=lambda entry: entry[:2])
        extended = {tuple(sorted((*guessed, int(item)))): None for _, guessed, items in scored[:width] for item in items}
        sets = [guessed for guessed in extended if guessed not in seen]
        seen.update(sets)
        if not sets:
            break
    return Guess(None, beliefs, runs)


def _pass_messages(
    problem: HistogramProblem, design: NDArray[np.float32], sets: list[tuple[int, ...]], deadline: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return estimated counts beyond guessed items, a column for each set, and the mean squares of what they leave unexplained."""
    measurements, dimension = problem.matrix.shape
    left = problem.clients - len(sets[0])
    known = np.array([problem.matrix[:, list(guessed)].sum(axis=1) for guessed in sets]).reshape(len(sets), measurements)
    target = ((2 * (problem.sums - known) - left).T / np.sqrt(measurements)).astype(np.float32)
    mean = np.float32(left / dimension)
    levels = max(1, min(left, MOST_LEVELS))
    counts = np.full((dimension, len(sets)), mean)
    residual = target - design @ counts
    excess = np.full(len(sets), np.float32(0.05))
    variance = np.ones(len(sets), dtype=np.float32)
    for _ in range(ITERATIONS):
        noisy = counts + design.T @ residual
        variance = np.maximum((residual**2).mean(axis=0), np.float32(LEAST_VARIANCE))
        estimate, spread, occurs = _posterior(noisy, variance, mean * (1 - excess), excess, levels)
        # The prior's second parameter, from the first moment and the share of items that occur.
        excess = np.clip(1 - occurs / np.maximum(estimate.sum(axis=0), np.float32(1e-6)), 1e-3, 0.9).astype(np.float32)
        onsager = residual * (spread.sum(axis=0) / variance / measurements)
        moved = DAMPING * (estimate - counts)
        counts = counts + moved
        residual = DAMPING * (target - design @ counts + onsager) + (1 - DAMPING) * residual
        if np.abs(moved).max() < SETTLED or time.monotonic() > deadline:
            break
    return counts, variance


def _posterior(
    noisy: NDArray[np.float32], variance: NDArray[np.float32], share: NDArray[np.float32], excess: NDArray[np.float32], levels: int
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Return means and variances of counts that were observed with Gaussian noise, and how many of them are expected not to be 0."""
    # Counts far above all that were observed have no weight.
    levels = int(np.clip(np.rint(np.nan_to_num(noisy.max(initial=0))) + 3, 1, levels))
    nearest = (noisy - np.clip(np.rint(noisy), 0, levels)) ** 2
    zero = (1 - share) * np.exp((nearest - noisy**2) / (2 * variance))
    total, first, second = zero.copy(), np.zeros_like(noisy), np.zeros_like(noisy)
    prior = share * (1 - excess)
    for level in range(1, levels + 1):
        weight = prior * np.exp((nearest - (noisy - np.float32(level)) ** 2) / (2 * variance))
        total += weight
        first += np.float32(level) * weight
        second += np.float32(level * level) * weight
        prior = prior * excess
    # Without room for another item, all weights may be 0.
    total = np.maximum(total, np.float32(1e-30))
    mean = first / total
    return mean, second / total - mean**2, (1 - zero / total).sum(axis=0)
