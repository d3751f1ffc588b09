"""Numbers of docs/explanations/sparse-frequencies.md."""

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from quietbits.analysis.random_streams import named_stream
from quietbits.analysis.simulation.two_round_frequencies import two_round_frequencies
from quietbits.arrays import FloatArray, IntegerArray
from quietbits.design.contracts.task import Budget
from quietbits.design.frequencies.item_thresholds import error_threshold, thresholded
from quietbits.design.frequencies.sketch_calibration import ItemSketchChoice, calibrate_discrete_gaussian_frequencies
from quietbits.design.frequencies.sparse_frequencies import calibrate_sparse_frequencies

ITEMS, CLIENTS, DELTA = 100_000, 50_000, 1e-5
DISTINCT = ((100, "uniform"), (1000, "uniform"), (1000, "zipf"), (5000, "zipf"), (5000, "uniform"))
VARIANTS = ("histogram-threshold", "sketch", "known", "two-rounds")


def sparse_estimate(variant: str, counts: IntegerArray, distinct: int, seed: int) -> tuple[FloatArray, float]:
    """Return estimated frequencies and the bits of a message, with discrete Gaussian noise.

    Clients hold at most `distinct` different items.
    """
    categories, clients = len(counts), int(counts.sum())
    if variant == "two-rounds":
        rounds = two_round_frequencies(np.repeat(np.arange(categories), counts), categories, 1.0, DELTA, seed=seed)
        return rounds.estimate.decoded, rounds.bits_per_client
    budget = Budget(1.0, DELTA, "replace-one")
    # The concentration of the actual items, which no server knows, makes the sketch and the threshold look better.
    concentration = float(np.sum((counts / clients) ** 2))
    mechanism = calibrate_sparse_frequencies(categories, clients, budget, distinct, seed=seed)
    if variant != "known":
        histogram = ItemSketchChoice(rows=1, width=categories)
        sketch = ItemSketchChoice(message_bits=1.01 * mechanism.bits_per_client, concentration=concentration, seed=seed)
        mechanism = calibrate_discrete_gaussian_frequencies(categories, clients, budget, sketch if variant == "sketch" else histogram)
    aggregate = np.mod(mechanism.simulated_sum(counts, named_stream(seed, "noise")), mechanism.modulus)
    estimate = mechanism.decode(aggregate, clients)
    if variant != "known":
        estimate = thresholded(estimate, error_threshold(mechanism, concentration=concentration))
    return estimate, mechanism.bits_per_client


@cache
def sparse(variant: str, distinct: int, prior: str) -> tuple[float, float]:
    """Return the mean squared error and bits for few different items.

    The averages are over three repetitions that all variants share.
    """
    results = []
    for repetition in range(3):
        rng = named_stream(0, f"sparse sums: {CLIENTS} of {distinct} of {ITEMS}, {prior}, repetition {repetition}")
        weights = np.ones(distinct) if prior == "uniform" else 1 / np.arange(1, distinct + 1)
        counts = np.zeros(ITEMS, dtype=np.int64)
        counts[rng.choice(ITEMS, distinct, replace=False)] = rng.multinomial(CLIENTS, weights / weights.sum())
        estimate, bits = sparse_estimate(variant, counts, distinct, int(rng.integers(2**62)))
        results.append((float(np.sum((estimate - counts / CLIENTS) ** 2)), bits))
    return tuple(np.mean(results, axis=0).tolist())


def sparse_rows(number: Callable[[float], str]) -> Iterator[list[str]]:
    """Return squared errors and kilobits of each variant."""
    for distinct, prior in DISTINCT:
        cells = [sparse(variant, distinct, prior) for variant in VARIANTS]
        yield [f"{distinct} {prior}", *(f"{number(error)}, {bits / 1000:.0f}" for error, bits in cells)]


def sparse_saving(variant: str, distinct: int, prior: str) -> float:
    """Return the ratio of the bits of a histogram's messages to the bits of sparse messages."""
    return sparse("histogram-threshold", distinct, prior)[1] / sparse(variant, distinct, prior)[1]
