"""Errors of estimated frequencies after projection onto the simplex.

The mechanisms are sketches, histograms, and local messages. The experiments are those of Chen, Özgür, Cormode, Bharadwaj 2023 (figures 2 to
5), with exact accounts and further, better mechanisms.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from ...analysis.catalogue.registry import entry_named
from ...analysis.random_streams import named_stream
from ...analysis.simulation.mean import estimate_once
from ...analysis.simulation.populations import item_chunks
from ...arrays import FloatArray, IntegerArray
from ...design.central.histogram import gaussian_histogram_error
from ...design.contracts.domains import Categories
from ...design.contracts.mechanism import FrequencyMechanism
from ...design.contracts.registry import Values
from ...design.contracts.task import Task
from ...design.frequencies.hadamard_response import published_blocks
from ...design.frequencies.item_sketch import usual_rows
from ...design.frequencies.sketched_frequencies import SketchedFrequencies
from ...design.secure_sum.modular_arithmetic import residues
from ...solvers.decoders.simplex_projection import project_onto_simplex
from ...solvers.limits.frequency_privacy import frequency_bound
from ..point import Point

DELTA, ADJACENCY, FAILURE = 1e-5, "replace-one", 0.05
# Number of tosses of a client for each coordinate in the paper.
PUBLISHED_TOSSES = 10
# Number of items per bucket of a sketch, over all rows. The number of rows makes the median right for all items at once.
COMPRESSION = 6
CENTRAL = "trusted server, Gaussian"


def sketch_size(categories: int) -> Values:
    """Return rows and width of the sketches, which compress d items about sixfold.

    The sketch has ln(d / 0.05) rows, and a power of two as its width.

    Examples
    --------
    >>> sketch_size(100_000)
    {'rows': 15, 'width': 1024}
    """
    rows = usual_rows(categories, FAILURE)
    return {"rows": rows, "width": 2 ** max(1, round(math.log2(categories / COMPRESSION / rows)))}


@dataclass(frozen=True)
class Series:
    """A way to estimate frequencies.

    Attributes
    ----------
    mechanism : str
        Name in the registry.
    options : callable
        Function that returns options of the mechanism from epsilon and the number of items.
    median : bool
        Whether the median decodes rows, as in the paper, in place of the mean.
    """

    mechanism: str
    options: Callable[[float, int], Values] = lambda *_: {}
    median: bool = False


SERIES: Mapping[str, Series] = MappingProxyType(
    {
        "randomised response": Series("frequency-randomised-response"),
        "Hadamard response": Series("hadamard-response", lambda epsilon, items: {"blocks": published_blocks(epsilon, items)}),
        "projective geometry": Series("projective-geometry-response"),
        "Poisson-binomial sketch, L = 10": Series(
            "sketched-poisson-binomial", lambda _, items: {**sketch_size(items), "trials": PUBLISHED_TOSSES}, median=True
        ),
        "discrete Gaussian sketch": Series(
            "sketched-discrete-gaussian-frequencies", lambda _, items: {**sketch_size(items), "signed": True}, median=True
        ),
        "Poisson-binomial, best": Series("sketched-poisson-binomial", lambda _, items: {"width": 1 << (items - 1).bit_length()}),
        "discrete Gaussian histogram": Series("sketched-discrete-gaussian-frequencies", lambda _, items: {"width": items}),
    }
)
"""Series by their names in pictures, from the largest errors to the least."""


@dataclass(frozen=True, kw_only=True)
class FrequencyPoint(Point):
    """Rounds of a series, on items of a population.

    Attributes
    ----------
    series : str
        Name in `SERIES`, or `CENTRAL`: Gaussian noise on the histogram.
    population : str
        Population of `item_chunks`.
    categories, clients : int
        Number of items and of clients.
    epsilon : float
        Privacy parameter of a round, at delta = 1e-5, or 0 for local messages, and replace-one adjacency.
    repetitions : int
        Number of rounds, each with its own items, sketch and noise; items are the same for all series.
    """

    series: str
    population: str
    categories: int
    clients: int
    epsilon: float
    repetitions: int = 3

    @property
    def setting(self) -> str:
        """The point in words."""
        return f"{self.series}, {self.population}, {self.clients} clients, epsilon {self.epsilon:g}"

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row for each round.

        ``largest_error`` and ``error`` are the l_inf and l_2 distances from the true frequencies after projection, ``raw_squared_error`` is
        the squared l_2 distance before projection, and ``predicted_squared_error`` is its expectation, which is missing for medians, as
        medians are biased. ``zero_largest_error`` and ``zero_error`` are the distances of equal frequencies for all items. Bounds are lower
        bounds on the worst case over data for any mechanism of the trust model with that guarantee.
        """
        mechanism, median = self._mechanism(), self.series != CENTRAL and SERIES[self.series].median
        trust = "central" if mechanism is None else mechanism.guarantee.trust_model
        delta = 0.0 if trust == "local" else DELTA
        common = {name: value for name, value in asdict(self).items() if name not in ("seed", "repetitions")} | {
            "adjacency": ADJACENCY,
            "trust_model": trust,
            "delta": delta,
            "realised_epsilon": self.epsilon if mechanism is None else mechanism.guarantee.epsilon,
            "bits_per_client": math.nan if mechanism is None else mechanism.bits_per_client,
            "rows": mechanism.sketch.rows if isinstance(mechanism, SketchedFrequencies) else None,
            "width": mechanism.sketch.width if isinstance(mechanism, SketchedFrequencies) else None,
            "largest_error_bound": self._bound("linf", trust, delta),
            "error_bound": self._bound("l2", trust, delta),
        }
        rows = []
        for repetition, items in enumerate(self._items()):
            counts = np.bincount(items, minlength=self.categories)
            true = counts / self.clients
            words = named_stream(self.seed, f"noise: {self.name}, repetition {repetition}")
            estimate, predicted = self._estimate(mechanism, items, counts, words, median)
            off = project_onto_simplex(estimate) - true
            zero = true - 1 / self.categories
            rows.append(
                common
                | {
                    "repetition": repetition,
                    "largest_error": float(np.abs(off).max()),
                    "error": float(np.linalg.norm(off)),
                    "raw_squared_error": float(np.sum((estimate - true) ** 2)),
                    "predicted_squared_error": math.nan if median else predicted,
                    "zero_largest_error": float(np.abs(zero).max()),
                    "zero_error": float(np.linalg.norm(zero)),
                }
            )
        return rows

    def _mechanism(self) -> FrequencyMechanism | None:
        if self.series == CENTRAL:
            return None
        series = SERIES[self.series]
        entry = entry_named(series.mechanism)
        delta = 0.0 if entry.trust_model == "local" else DELTA
        task = Task(Categories(self.categories), self.clients, self.epsilon, delta, ADJACENCY)
        built = entry.mechanism_for(task, series.options(self.epsilon, self.categories))
        if not isinstance(built, FrequencyMechanism):
            raise TypeError(f"series must be of a mechanism for items, got {self.series!r}")
        return built

    def _bound(self, loss: str, trust: str, delta: float) -> float:
        return frequency_bound(self.categories, self.clients, self.epsilon, delta, trust, loss=loss)

    def _items(self) -> Iterator[IntegerArray]:
        name = f"{self.population} items: {self.categories}, clients {self.clients}"
        for repetition in range(self.repetitions):
            rng = named_stream(self.seed, f"{name}, repetition {repetition}")
            yield np.concatenate(list(item_chunks(self.population, self.categories, self.clients, rng)))

    def _estimate(
        self,
        mechanism: FrequencyMechanism | None,
        items: IntegerArray,
        counts: IntegerArray,
        random_words: np.random.Generator,
        median: bool,
    ) -> tuple[FloatArray, float]:
        true = counts / self.clients
        if mechanism is None:
            predicted = gaussian_histogram_error(self.categories, self.clients, self.epsilon, DELTA, ADJACENCY)
            return true + random_words.normal(0.0, math.sqrt(predicted / self.categories), self.categories), predicted
        predicted = float(mechanism.variance(items).mean()) / self.clients + mechanism.shared_variance(true)
        if not isinstance(mechanism, SketchedFrequencies):
            return estimate_once(mechanism, items, random_words), predicted
        drawn = mechanism if mechanism.sketch.direct else mechanism.renewed(int(random_words.integers(2**63)))
        total = residues(drawn.simulated_sum(counts, random_words), drawn.modulus)
        return drawn.decode_median(total, self.clients) if median else drawn.decode(total, self.clients), predicted


def frequency_points(
    seed: int, population: str, categories: int, clients: Sequence[int], epsilons: Sequence[float], repetitions: int
) -> list[FrequencyPoint]:
    """Return a point for each series, number of clients and epsilon, longest first."""
    return [
        FrequencyPoint(
            seed=seed,
            series=series,
            population=population,
            categories=categories,
            clients=count,
            epsilon=epsilon,
            repetitions=repetitions,
        )
        for count in sorted(clients, reverse=True)
        for epsilon in epsilons
        for series in (*SERIES, CENTRAL)
    ]


SETTING = ["population", "categories", "clients", "epsilon", "series"]
WORDS = ["adjacency", "trust_model"]


def arrange_frequencies(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per setting: means over rounds, with standard errors.

    Standard errors are those of both projected errors.
    """
    order = rows.assign(series=pd.Categorical(rows["series"], [*SERIES, CENTRAL]))
    groups = order.drop(columns="repetition").sort_values(SETTING, kind="stable").groupby(SETTING, observed=True, sort=False)
    averages = groups.mean(numeric_only=True)
    averages.insert(0, "repetitions", groups.size())
    for name in ("largest_error", "error"):
        averages[f"{name}_standard_error"] = groups[name].sem()
    return averages.join(groups[WORDS].first()).reset_index().astype({"series": str})
