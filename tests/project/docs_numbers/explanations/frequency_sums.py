"""Numbers of docs/explanations/frequency-sums.md."""

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

import quietbits
from quietbits.analysis.simulation.populations import item_probabilities
from quietbits.design.contracts.mechanism import FrequencyMechanism
from quietbits.design.frequencies.item_sketch import ItemSketch  # noqa: F401 - the page's
from quietbits.design.frequencies.item_thresholds import error_threshold, proof_threshold, stated_threshold  # noqa: F401 - the page's
from quietbits.design.frequencies.worst_pair import worst_pair  # noqa: F401 - the page's

ITEMS, CLIENTS, DELTA = 100_000, 50_000, 1e-5
HISTOGRAM = {"width": ITEMS}
SKETCH = {"rows": 15, "width": 1024}
TOSSES, GAUSSIAN, SKELLAM = "sketched-poisson-binomial", "sketched-discrete-gaussian-frequencies", "sketched-skellam-frequencies"


def concentration(population: str) -> float:
    """Return the sum of squared frequencies."""
    return float(np.sum(item_probabilities(population, ITEMS) ** 2))


@cache
def built(name: str, **options: object) -> FrequencyMechanism:
    """Return a mechanism for the page's task: epsilon = 1, replace-one adjacency."""
    task = quietbits.Task(quietbits.Categories(ITEMS), clients=CLIENTS, epsilon=1.0, delta=DELTA, adjacency="replace-one")
    return quietbits.build_mechanism(name, task, options)


def noise(mechanism: FrequencyMechanism) -> float:
    """Return the standard deviation of an item's frequency, without collisions."""
    return float((mechanism.variance_bound / CLIENTS / ITEMS) ** 0.5)


def squared_error(mechanism: FrequencyMechanism) -> float:
    """Return the predicted squared error of all frequencies of Zipf's law."""
    return float(mechanism.variance_bound / CLIENTS + mechanism.shared_variance(item_probabilities("zipf", ITEMS)))


def share_of_noise() -> float:
    """Return each client's noise on a histogram's bucket, in items.

    The unit is an item, not a step of the messages.
    """
    return noise(built(GAUSSIAN, **HISTOGRAM)) * CLIENTS / CLIENTS**0.5


MESSAGES = (
    ("histogram, discrete Gaussian", GAUSSIAN, HISTOGRAM),
    ("histogram, Skellam", SKELLAM, HISTOGRAM),
    ("histogram, tosses (w = 2^17)", TOSSES, {"width": 2**17}),
    ("15 x 1024, discrete Gaussian", GAUSSIAN, SKETCH),
    ("15 x 1024, Skellam, signs", SKELLAM, {**SKETCH, "signed": True}),
    ("15 x 1024, tosses, signs", TOSSES, {**SKETCH, "signed": True}),
)


def message_rows(number: Callable[[float], str]) -> Iterator[list[str]]:
    """Return histograms and sketches: bits, noise of an item, and squared error of all items."""
    for title, name, options in MESSAGES:
        mechanism = built(name, **options)
        yield [title, f"{mechanism.bits_per_client / 1000:.0f}", number(noise(mechanism)), number(squared_error(mechanism))]


def over_histogram(what: str) -> float:
    """Return the factor by which the sketch is shorter, or less accurate, than the histogram.

    Both are with discrete Gaussian noise.
    """
    histogram, sketch = built(GAUSSIAN, **HISTOGRAM), built(GAUSSIAN, **SKETCH)
    if what == "bits":
        return histogram.bits_per_client / sketch.bits_per_client
    return squared_error(sketch) / squared_error(histogram)


def noise_threshold() -> float:
    """Return the frequency that estimates of absent items rarely exceed, by noise alone.

    The sketch is the page's.
    """
    return error_threshold(built(GAUSSIAN, **SKETCH))
