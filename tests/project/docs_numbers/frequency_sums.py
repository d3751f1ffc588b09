"""Numbers of docs/frequency-sums.md."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

import numpy as np
import pandas as pd

import quietbits
from quietbits.analysis.random_streams import named_stream
from quietbits.analysis.simulation.populations import item_probabilities
from quietbits.analysis.simulation.two_round_frequencies import two_round_frequencies
from quietbits.analysis.study.frequency_study import FrequencyStudy, study_frequencies
from quietbits.analysis.study.item_column import ItemColumn, hashed_items
from quietbits.arrays import FloatArray, IntegerArray
from quietbits.design.contracts.mechanism import FrequencyMechanism
from quietbits.design.contracts.task import Budget
from quietbits.design.frequencies.item_sketch import ItemSketch  # noqa: F401 - the page's
from quietbits.design.frequencies.item_thresholds import error_threshold, proof_threshold, stated_threshold, thresholded  # noqa: F401 - the page's
from quietbits.design.frequencies.sketch_calibration import ItemSketchChoice, calibrate_discrete_gaussian_frequencies
from quietbits.design.frequencies.sparse_frequencies import calibrate_sparse_frequencies
from quietbits.design.frequencies.worst_pair import worst_pair  # noqa: F401 - the page's
from quietbits.figures.frequencies.regimes import RegimePoint, winners
from quietbits.figures.frequencies.simulated_errors import CENTRAL, SERIES, FrequencyPoint
from quietbits.solvers.divergences.extreme_tosses import extreme_tosses
from quietbits.solvers.divergences.poisson_binomial_divergence import poisson_binomial_pairs

ITEMS, CLIENTS, DELTA = 100_000, 50_000, 1e-5
HISTOGRAM = {"width": ITEMS}
SKETCH = {"rows": 15, "width": 1024}
TOSSES, GAUSSIAN, SKELLAM = "sketched-poisson-binomial", "sketched-discrete-gaussian-frequencies", "sketched-skellam-frequencies"


LOCAL = (
    "frequency-randomised-response",
    "hadamard-response",
    "recursive-hadamard-response",
    "projective-geometry-response",
    "unary-encoding",
    "subset-selection",
)
SHUFFLED = "shuffled-frequency-randomised-response"
# These are series of the measured errors.
HADAMARD, PROJECTIVE = "Hadamard response", "projective geometry"
TOSSES_SKETCH, TOSSES_BEST = "Poisson-binomial sketch, L = 10", "Poisson-binomial, best"


def cells_cost(clients: int, theta: float = 0.05) -> float:
    """Return the excess, in percent, of the 64-cell bound over the divergence at one extreme.

    The divergence is of order 2, with all other clients at the same extreme.
    """
    cells, extremes = (function(clients, 1, theta).renyi_divergences([2.0])[0] for function in (extreme_tosses, poisson_binomial_pairs))
    return 100 * (cells / extremes - 1)


def concentration(population: str) -> float:
    """Return the sum of squared frequencies."""
    return float(np.sum(item_probabilities(population, ITEMS) ** 2))


@cache
def built(name: str, **options: object) -> FrequencyMechanism:
    """Return a mechanism for the page's task: epsilon = 1, replace-one adjacency."""
    delta = 0.0 if name in LOCAL else DELTA
    task = quietbits.Task(quietbits.Categories(ITEMS), clients=CLIENTS, epsilon=1.0, delta=delta, adjacency="replace-one")
    return quietbits.build_mechanism(name, task, options)


def noise(mechanism: FrequencyMechanism) -> float:
    """Return the standard deviation of an item's frequency, without collisions."""
    return float((mechanism.worst_variance / CLIENTS / ITEMS) ** 0.5)


def squared_error(mechanism: FrequencyMechanism) -> float:
    """Return the predicted squared error of all frequencies of Zipf's law."""
    return float(mechanism.worst_variance / CLIENTS + mechanism.shared_variance(item_probabilities("zipf", ITEMS)))


def share_of_noise() -> float:
    """Return each client's noise per histogram bucket, in items, without several steps per item."""
    return noise(built(GAUSSIAN, **HISTOGRAM)) * CLIENTS / CLIENTS**0.5


MESSAGES = (
    ("histogram, discrete Gaussian", GAUSSIAN, HISTOGRAM),
    ("histogram, Skellam", SKELLAM, HISTOGRAM),
    ("histogram, tosses (w = 2^17)", TOSSES, {"width": 2**17}),
    ("15 x 1024, discrete Gaussian", GAUSSIAN, SKETCH),
    ("15 x 1024, Skellam, signs", SKELLAM, {**SKETCH, "signed": True}),
    ("15 x 1024, tosses, signs", TOSSES, {**SKETCH, "signed": True}),
)


def three_digits(value: float) -> str:
    """Return a number in three digits, with a power of ten below a thousandth."""
    if value >= 1000:
        return f"{value:.0f}"
    if value >= 1e-3:
        return f"{value:#.3g}"
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def message_rows() -> Iterator[list[str]]:
    """Return bits, item noise, and total squared errors of histograms and sketches."""
    for title, name, options in MESSAGES:
        mechanism = built(name, **options)
        yield [title, f"{mechanism.bits_per_client / 1000:.0f}", three_digits(noise(mechanism)), three_digits(squared_error(mechanism))]


def mechanism_rows() -> Iterator[list[str]]:
    """Return every mechanism for items with its predicted squared error and its bits."""
    rows = [(f"`{name}`", name, {}) for name in (*LOCAL, SHUFFLED)]
    for name, width, signs in ((TOSSES, 2**17, True), (GAUSSIAN, ITEMS, False), (SKELLAM, ITEMS, False)):
        rows.append((f"`{name}`, a histogram", name, {"width": width}))
        rows.append((f"`{name}`, 15 x 1024", name, {**SKETCH, **({"signed": True} if signs else {})}))
    for title, name, options in rows:
        mechanism = built(name, **options)
        yield [title, three_digits(squared_error(mechanism)), f"{mechanism.bits_per_client:.0f}"]


def over_histogram(what: str) -> float:
    """Return the ratio of bits and of errors of the discrete Gaussian sketch to the histogram."""
    histogram, sketch = built(GAUSSIAN, **HISTOGRAM), built(GAUSSIAN, **SKETCH)
    if what == "bits":
        return histogram.bits_per_client / sketch.bits_per_client
    return squared_error(sketch) / squared_error(histogram)


def noise_threshold() -> float:
    """Return the threshold that noise alone requires with the page's sketch, in standard errors."""
    return error_threshold(built(GAUSSIAN, **SKETCH))


def regime_rows() -> Iterator[list[str]]:
    """Return the winning mechanism at 10^5 clients, and its error over a trusted server's."""
    budgets = (1e3, 1e5, 1e7)
    for power in range(2, 5):
        row = [f"10^{power}"]
        for epsilon in (1.0, 10.0):
            point = RegimePoint(seed=0, clients=100_000, categories=10**power, epsilon=epsilon, budgets=budgets)
            best = winners(pd.DataFrame(point.run())).set_index("budget")
            for budget in budgets:
                winner = best.loc[budget]
                row.append(f"{winner['kind']}, {winner['predicted_squared_error'] / winner['central_squared_error']:.2f}")
        yield row


@cache
def measured(series: str, population: str, epsilon: float, clients: int = CLIENTS) -> float:
    """Return the mean of three rounds' largest errors, as in the figures."""
    point = FrequencyPoint(seed=0, series=series, population=population, categories=ITEMS, clients=clients, epsilon=epsilon)
    return float(np.mean([row["largest_error"] for row in point.run()]))


CELLS = (("geometric", 1.0), ("geometric", 5.0), ("geometric", 10.0), ("zipf", 1.0), ("zipf", 10.0))


def error_rows() -> Iterator[list[str]]:
    """Return largest errors, times 10^4."""
    for series in (*SERIES, CENTRAL):
        yield [series, *(three_digits(1e4 * measured(series, *cell)) for cell in CELLS)]


def error_ratio(upper: str, lower: str, population: str, epsilon: float) -> float:
    """Return the ratio of the largest errors of two series."""
    return measured(upper, population, epsilon) / measured(lower, population, epsilon)


@cache
def description_words() -> ItemColumn:
    """Return the words of scikit-learn's data set descriptions, one client per word."""
    texts = sorted(entry.read_text(encoding="utf-8") for entry in files("sklearn.datasets.descr").iterdir() if entry.name.endswith(".rst"))
    words = [word for text in texts for word in re.findall(r"[a-z]+", text.lower())]
    return hashed_items(words, 2**14, "words", "sklearn/datasets/descr")


@cache
def words(mechanism: str, delta: float, message_bits: int | None = None) -> FrequencyStudy:
    """Return the study of the real words."""
    options = {} if message_bits is None else {"message_bits": message_bits}
    return study_frequencies(description_words(), mechanism, epsilon=1.0, delta=delta, options=options, top=8)


def word_rows() -> Iterator[list[str]]:
    """Return the most frequent words, with estimated and true frequencies."""
    for item in words(GAUSSIAN, DELTA).items:
        yield [item.item, f"{item.frequency:.4f}", f"{item.true_frequency:.4f}"]


DISTINCT = ((100, "uniform"), (1000, "uniform"), (1000, "zipf"), (5000, "zipf"), (5000, "uniform"))
VARIANTS = ("histogram-threshold", "sketch", "known", "two-rounds")


def sparse_estimate(variant: str, counts: IntegerArray, distinct: int, seed: int) -> tuple[FloatArray, float]:
    """Return estimated frequencies for at most `distinct` items, and the bits of a message."""
    categories, clients = len(counts), int(counts.sum())
    if variant == "two-rounds":
        rounds = two_round_frequencies(np.repeat(np.arange(categories), counts), categories, 1.0, DELTA, seed=seed)
        return rounds.estimate.decoded, rounds.bits_per_client
    budget = Budget(1.0, DELTA, "replace-one")
    # The true concentration of the items, which is unknown in practice, flatters the sketch and the threshold.
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
    """Return mean squared error and bits of few different items, over three repetitions."""
    results = []
    for repetition in range(3):
        rng = named_stream(0, f"sparse sums: {CLIENTS} of {distinct} of {ITEMS}, {prior}, repetition {repetition}")
        weights = np.ones(distinct) if prior == "uniform" else 1 / np.arange(1, distinct + 1)
        counts = np.zeros(ITEMS, dtype=np.int64)
        counts[rng.choice(ITEMS, distinct, replace=False)] = rng.multinomial(CLIENTS, weights / weights.sum())
        estimate, bits = sparse_estimate(variant, counts, distinct, int(rng.integers(2**62)))
        results.append((float(np.sum((estimate - counts / CLIENTS) ** 2)), bits))
    return tuple(np.mean(results, axis=0).tolist())


def sparse_rows() -> Iterator[list[str]]:
    """Return squared errors and kilobits of each variant."""
    for distinct, prior in DISTINCT:
        cells = [sparse(variant, distinct, prior) for variant in VARIANTS]
        yield [f"{distinct} {prior}", *(f"{three_digits(error)}, {bits / 1000:.0f}" for error, bits in cells)]


def sparse_saving(variant: str, distinct: int, prior: str) -> float:
    """Return the factor by which messages are shorter than those of a histogram."""
    return sparse("histogram-threshold", distinct, prior)[1] / sparse(variant, distinct, prior)[1]
