"""Numbers of docs/how-to/exact-histograms.md."""

import math
from collections.abc import Iterator

import numpy as np

from quietbits.analysis.random_streams import named_stream
from quietbits.design.frequencies.exact_histogram import BernoulliCode
from quietbits.design.secure_sum.modular_arithmetic import modular_sum
from quietbits.figures.frequencies.freq_codes import ExactRecoveryPoint
from quietbits.solvers.decoders.exact_histogram import decode_histogram
from quietbits.solvers.limits.histogram_code_size import code_size, code_size_of_histogram


def code_size_rows() -> Iterator[list[str]]:
    """Return the number of measurements that suffice for n items of d."""
    for clients, dimension, name in (
        (30, 1000, "30, 1000"),
        (50, 1000, "50, 1000"),
        (100, 10_000, "100, 10 000"),
        (256, 100_000, "256, 100 000"),
    ):
        distinct = np.repeat((1, 0), (clients, dimension - clients))
        order = clients * math.log(dimension) / math.log(clients)
        yield [name, f"{order:.0f}", str(code_size_of_histogram(distinct, dimension)), str(code_size(clients, dimension))]


# The limit is far beyond the page's decodings, so that the outcome does not depend on the machine.
TIME_LIMIT = 3600.0


def proven_rows() -> Iterator[list[str]]:
    """Return the numbers of histograms with proven unique decodings."""
    for prior, measurements, repetitions in (
        ("uniform", 120, 12),
        ("zipf", 120, 12),
        ("zipf", 100, 3),
        ("geometric", 120, 12),
        ("geometric", 60, 3),
    ):
        rows = [
            ExactRecoveryPoint(
                seed=0, code="bernoulli", prior=prior, measurements=measurements, time_limit=TIME_LIMIT, repetition=repetition
            ).run()[0]
            for repetition in range(repetitions)
        ]
        assert all(row["recovered"] for row in rows if row["proven"])
        yield [prior, str(measurements), f"{sum(row['proven'] for row in rows)} of {repetitions}"]


def histograms_found(clients: int, dimension: int, measurements: int, repetitions: int = 2) -> int:
    """Return the number of uniform histograms with a right decoding but no proof."""
    result = 0
    for repetition in range(repetitions):
        rng = named_stream(0, f"found: {clients} of {dimension}, repetition {repetition}")
        items = rng.integers(dimension, size=clients)
        code = BernoulliCode(dimension, clients, measurements, int(rng.integers(2**62)))
        total = modular_sum(code.encode(items), code.modulus)
        solution = decode_histogram(code.matrix(), total, clients, time_limit=TIME_LIMIT, prove_unique=False)
        result += np.array_equal(solution.counts, np.bincount(items, minlength=dimension))
    return result
