"""Few different items in a secure sum: what it gains to know how many there are, or to count them privately first."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...analysis.random_streams import named_stream
from ...analysis.simulation.two_round_frequencies import two_round_frequencies
from ...arguments import check_choice, check_integer
from ...arrays import FloatArray, IntegerArray
from ...design.contracts.task import Budget
from ...design.frequencies.item_thresholds import error_threshold, thresholded
from ...design.frequencies.sketch_calibration import ItemSketchChoice, calibrate_discrete_gaussian_frequencies
from ...design.frequencies.sketched_frequencies import SketchedFrequencies
from ...design.frequencies.sparse_frequencies import calibrate_sparse_frequencies
from ..point import Point

VARIANTS = ("histogram", "histogram-threshold", "sketch", "known", "two-rounds")
PRIORS = ("uniform", "zipf")
CATEGORIES, CLIENTS, EPSILON, DELTA = 100_000, 50_000, 1.0, 1e-5


@dataclass(frozen=True, kw_only=True)
class SparseSumPoint(Point):
    """One round, or two, with discrete Gaussian noise, replace-one adjacency; repetitions of all variants share their items.

    Attributes
    ----------
    variant : str
        ``"histogram"`` of all items; the same with a ``-threshold`` that noise hardly exceeds; an unbiased ``"sketch"``, no longer than
        that for a known number of items; ``"known"``: `SparseFrequencies` for the true number; ``"two-rounds"``.
    prior : str
        Distribution of the items that are held: ``"uniform"``, or ``"zipf"`` with exponent 1.
    distinct : int
        Items that may be held, of all.
    categories, clients, epsilon, delta
        The task.
    repetition : int
        Number of the repetition, from 0.
    """

    variant: str
    prior: str
    distinct: int
    categories: int = CATEGORIES
    clients: int = CLIENTS
    epsilon: float = EPSILON
    delta: float = DELTA
    repetition: int = 0

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return one row: ``squared_error`` and ``largest_error`` of all frequencies, items ``held`` and ``found``, and bits."""
        check_choice("variant", self.variant, VARIANTS)
        categories = check_integer("categories", self.categories, low=2, high=10**7)
        distinct = check_integer("distinct", self.distinct, low=1, high=categories)
        name = f"sparse sums: {self.clients} of {self.distinct} of {categories}, {self.prior}, repetition {self.repetition}"
        rng = named_stream(self.seed, name)
        weights = np.ones(distinct) if check_choice("prior", self.prior, PRIORS) == "uniform" else 1 / np.arange(1, distinct + 1)
        counts = np.zeros(categories, dtype=np.int64)
        counts[rng.choice(categories, distinct, replace=False)] = rng.multinomial(self.clients, weights / weights.sum())
        true = counts / self.clients
        seed = int(rng.integers(2**62))
        found = self._two_rounds(counts, seed) if self.variant == "two-rounds" else self._one_round(counts, seed)
        return [
            {
                "variant": self.variant,
                "prior": self.prior,
                "distinct": self.distinct,
                "repetition": self.repetition,
                "categories": categories,
                "clients": self.clients,
                "epsilon": self.epsilon,
                "delta": self.delta,
                "adjacency": "replace-one",
                "held": int(np.count_nonzero(counts)),
                "reckoned": found.reckoned,
                "found": int(np.count_nonzero((found.frequencies > 0) & (counts > 0))) if self.variant != "histogram" else None,
                "squared_error": float(np.sum((found.frequencies - true) ** 2)),
                "largest_error": float(np.abs(found.frequencies - true).max()),
                "bits_per_client": found.bits_per_client,
                "realised_epsilon": found.epsilon,
            }
        ]

    def _one_round(self, counts: IntegerArray, seed: int) -> "_Estimated":
        budget = Budget(self.epsilon, self.delta, "replace-one")
        known = min(self.clients, self.distinct)
        # That of the items at hand, which nobody knows: it flatters the sketch and the threshold.
        concentration = float(np.sum((counts / self.clients) ** 2))
        mechanism: SketchedFrequencies = calibrate_sparse_frequencies(self.categories, self.clients, budget, known, seed=seed)
        if self.variant != "known":
            histogram = ItemSketchChoice(rows=1, width=self.categories)
            sketch = ItemSketchChoice(message_bits=1.01 * mechanism.bits_per_client, concentration=concentration, seed=seed)
            choice = sketch if self.variant == "sketch" else histogram
            mechanism = calibrate_discrete_gaussian_frequencies(self.categories, self.clients, budget, choice)
        aggregate = np.mod(mechanism.simulated_sum(counts, named_stream(seed, "noise")), mechanism.modulus)
        estimate = mechanism.decode(aggregate, self.clients)
        if self.variant in ("histogram-threshold", "sketch"):
            estimate = thresholded(estimate, error_threshold(mechanism, concentration=concentration))
        reckoned = known if self.variant == "known" else None
        return _Estimated(estimate, mechanism.bits_per_client, mechanism.guarantee.epsilon, reckoned)

    def _two_rounds(self, counts: IntegerArray, seed: int) -> "_Estimated":
        items = np.repeat(np.arange(self.categories), counts)
        found = two_round_frequencies(items, self.categories, self.epsilon, self.delta, seed=seed)
        return _Estimated(found.estimate.decoded, found.bits_per_client, found.guarantee.epsilon, found.mechanism.distinct_items)


@dataclass(frozen=True, eq=False)
class _Estimated:
    frequencies: FloatArray
    bits_per_client: float
    epsilon: float
    reckoned: int | None


def sparse_sum_tasks(seed: int, distinct: tuple[int, ...] = (100, 1000, 5000), repetitions: int = 3) -> list[SparseSumPoint]:
    """Return a task for each number of items, distribution, variant and repetition."""
    return [
        SparseSumPoint(seed=seed, variant=variant, prior=prior, distinct=number, repetition=repetition)
        for number in distinct
        for prior in PRIORS
        for variant in VARIANTS
        for repetition in range(repetitions)
    ]


def arrange_sparse_sums(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the averages over repetitions."""
    setting = ["categories", "clients", "epsilon", "delta", "adjacency", "distinct", "prior", "variant"]
    averaged = ["held", "reckoned", "found", "squared_error", "largest_error", "bits_per_client", "realised_epsilon"]
    frame = rows.astype(dict.fromkeys(averaged, float))
    return frame.groupby(setting, sort=False)[averaged].mean().reset_index()
