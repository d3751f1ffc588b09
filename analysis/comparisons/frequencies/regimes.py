"""Which mechanism for items wins where: errors within a number of bits, by clients, items and epsilon; predicted, not simulated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ....design.central.histogram import gaussian_histogram_error
from ....design.contracts.domains import Categories
from ....design.contracts.mechanism import FrequencyMechanism
from ....design.contracts.registry import Entry, Values
from ....design.contracts.task import Task
from ....design.frequencies.sketched_frequencies import SketchedFrequencies
from ....errors import InfeasibleError
from ...catalogue.lower_bounds import frequency_lower_bound
from ...catalogue.registry import BUILT_IN
from ...simulation.category_populations import item_probabilities
from ..point import Point
from .simulated_errors import ADJACENCY, DELTA

POPULATION = "zipf"
LOCAL, SHUFFLED, SKETCH, HISTOGRAM = "local", "shuffled", "sketch", "histogram"
# Tosses of all clients for a coordinate from which on more are of no use.
ENOUGH_TOSSES = 4096


@dataclass(frozen=True, kw_only=True)
class RegimePoint(Point):
    """All mechanisms for one problem, each within each number of bits.

    Attributes
    ----------
    clients, categories : int
        Number of clients and of items, whose frequencies follow Zipf's law.
    epsilon : float
        Of the round, at delta = 0 in the local trust model and 1e-5 otherwise, replace-one adjacency.
    budgets : tuple of float
        Bits of a client's message, at most.
    """

    clients: int
    categories: int
    epsilon: float
    budgets: tuple[float, ...]

    @property
    def setting(self) -> str:
        """The point in words."""
        return f"{self.clients} clients, {self.categories} items, epsilon {self.epsilon:g}"

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row for each mechanism and number of bits that it keeps to.

        ``predicted_squared_error`` is the expected one of all frequencies, over noise and sketch, for Zipf's law; ``zero_squared_error``
        that of the answer that all items are as frequent. ``lower_bound`` is one on the worst case over data, of any private mechanism in a
        secure sum, and errs downward.
        """
        frequencies = item_probabilities(POPULATION, self.categories)
        task = Task(Categories(self.categories), self.clients, self.epsilon, DELTA, ADJACENCY)
        head = {
            "clients": self.clients,
            "categories": self.categories,
            "epsilon": self.epsilon,
            "adjacency": ADJACENCY,
            "population": POPULATION,
            "central_squared_error": gaussian_histogram_error(self.categories, self.clients, self.epsilon, DELTA, ADJACENCY),
            "lower_bound": frequency_lower_bound(task, "secure-sum", unbiased=False),
            "zero_squared_error": float(np.sum((frequencies - 1 / self.categories) ** 2)),
        }
        rows = []
        for name, entry in BUILT_IN.items():
            if Categories not in entry.domains or ADJACENCY not in entry.adjacencies:
                continue
            for budget, mechanism in self._offers(entry, float(np.sum(frequencies**2))):
                sketch = mechanism.sketch if isinstance(mechanism, SketchedFrequencies) else None
                kind = entry.trust_model if sketch is None else HISTOGRAM if sketch.direct else SKETCH
                rows.append(
                    head
                    | {
                        "budget": budget,
                        "mechanism": name,
                        "kind": kind,
                        "trust_model": entry.trust_model,
                        "delta": 0.0 if entry.trust_model == LOCAL else DELTA,
                        "bits_per_client": mechanism.bits_per_client,
                        "rows": sketch.rows if sketch else None,
                        "width": sketch.width if sketch else None,
                        "predicted_squared_error": mechanism.worst_variance / self.clients + mechanism.shared_variance(frequencies),
                    }
                )
        return rows

    def _offers(self, entry: Entry, concentration: float) -> Iterator[tuple[float, FrequencyMechanism]]:
        """Yield the mechanism within each number of bits, where there is one with privacy."""
        names = {option.name for option in entry.options}
        if "distinct_items" in names:
            # For data with few different items, which Zipf's law is not.
            return
        made: FrequencyMechanism | None = None
        for budget in sorted(self.budgets, reverse=True):
            # What keeps to fewer bits than it may is also the best for these.
            if made is None or ("concentration" in names and made.bits_per_client > budget):
                values: Values = {}
                if "concentration" in names:
                    values = {"message_bits": budget, "concentration": concentration, "signed": False}
                if "trials" in names:
                    values = {**values, "trials": max(1, ENOUGH_TOSSES // self.clients)}
                delta = 0.0 if entry.trust_model == LOCAL else DELTA
                task = Task(Categories(self.categories), self.clients, self.epsilon, delta, ADJACENCY)
                try:
                    built = entry.mechanism_for(task, values)
                except InfeasibleError:
                    return
                if not isinstance(built, FrequencyMechanism) or built.guarantee.epsilon > self.epsilon:
                    return
                made = built
            if made.bits_per_client <= budget:
                yield budget, made


def regime_points(
    seed: int, clients: Sequence[int], categories: Sequence[int], epsilons: Sequence[float], budgets: tuple[float, ...]
) -> list[RegimePoint]:
    """Return a point for each problem: those that take longest first."""
    return [
        RegimePoint(seed=seed, clients=count, categories=items, epsilon=epsilon, budgets=budgets)
        for count in sorted(clients, reverse=True)
        for items in sorted(categories, reverse=True)
        for epsilon in epsilons
    ]


PROBLEM = ["epsilon", "budget", "clients", "categories"]


def winners(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the row with the least predicted error of each problem and number of bits, with how many times the next kind's error is.

    ``useful`` is whether it is below the error of the answer that all items are as frequent.
    """
    least = rows.sort_values("predicted_squared_error", kind="stable").groupby([*PROBLEM, "kind"], as_index=False).first()
    ordered = least.sort_values([*PROBLEM, "predicted_squared_error"], kind="stable")
    groups = ordered.groupby(PROBLEM)["predicted_squared_error"]
    ordered["next_kind_ratio"] = groups.shift(-1) / ordered["predicted_squared_error"]
    best = ordered.groupby(PROBLEM, as_index=False).head(1)
    return best.assign(useful=best["predicted_squared_error"] < best["zero_squared_error"]).reset_index(drop=True)
