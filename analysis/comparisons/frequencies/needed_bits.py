"""Bits that frequencies need, for a given error and at all, against the bits that every mechanism for items takes.

Theorem 5.1 and Corollary 5.1 of Chen, Özgür, Cormode, Bharadwaj 2023 with constants (`docs/frequency-limits.md`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ....design.central.histogram import gaussian_histogram_error
from ....design.contracts.domains import Categories
from ....design.contracts.registry import Values
from ....design.contracts.task import Task
from ....errors import InfeasibleError
from ....solvers.limits.frequency_limits import necessary_frequency_bits
from ....solvers.limits.histogram_code_size import MOST_CLIENTS as MOST_CODED
from ....solvers.limits.histogram_code_size import code_size
from ....solvers.limits.histogram_entropy import uniform_histogram_entropy
from ...catalogue.lower_bounds import frequency_lower_bound
from ...catalogue.registry import BUILT_IN
from ..point import Point
from .simulated_errors import ADJACENCY, DELTA, FAILURE, sketch_size

BOUNDS, IDENTITY, BERNOULLI = "bounds", "identity code", "Bernoulli code"
LOSS = "l2-squared"
# Squared errors at which necessary bits are drawn: 2 is the largest squared distance of two vectors of frequencies.
LARGEST_ERROR, ERRORS = 2.0, 60
SECURE, LOCAL = "secure-sum", "local"


@dataclass(frozen=True, kw_only=True)
class NeededPoint(Point):
    """One scheme for one problem: what it takes, beside what its error makes necessary; or necessary bits against the error.

    Attributes
    ----------
    mechanism : str
        A name of the registry; ``"identity code"`` or ``"Bernoulli code"``, exact and without privacy; or ``"bounds"``.
    compressed : bool
        Whether items are sketched (`sketch_size`), where the mechanism sketches.
    categories, clients : int
        Number of items and of clients.
    epsilon : float
        Of the round, at delta = 1e-5 in a secure sum and 0 otherwise, replace-one adjacency.
    """

    mechanism: str
    compressed: bool = False
    categories: int
    clients: int
    epsilon: float = 1.0

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row for a scheme, or one for each error.

        ``worst_squared_error`` is expected; ``necessary_bits`` are of a client, for that error under the scheme's trust model, and
        err downward, as do ``histogram_bits``, which an exact histogram takes in a secure sum, and the ``_error_bound``s of privacy.
        """
        items, clients = self.categories, self.clients
        head = {name: value for name, value in asdict(self).items() if name != "seed"} | {
            "adjacency": ADJACENCY,
            "histogram_bits": uniform_histogram_entropy(items, clients).lower,
            "central_squared_error": gaussian_histogram_error(items, clients, self.epsilon, DELTA, ADJACENCY),
            "secure_sum_error_bound": self._privacy_bound(SECURE, DELTA),
            "local_error_bound": self._privacy_bound(LOCAL, 0.0),
        }
        if self.mechanism == BOUNDS:
            errors = np.geomspace(1 / clients**2, LARGEST_ERROR, ERRORS).tolist()
            return [
                head
                | {
                    "trust_model": trust,
                    "worst_squared_error": error,
                    "necessary_bits": necessary_frequency_bits(error, items, clients, trust, loss=LOSS),
                }
                for trust in (SECURE, LOCAL)
                for error in errors
            ]
        row = self._code() if self.mechanism in (IDENTITY, BERNOULLI) else self._offer()
        if "worst_squared_error" in row:
            # Behind a shuffler all messages are seen.
            seen = SECURE if row["trust_model"] == SECURE else LOCAL
            row["necessary_bits"] = necessary_frequency_bits(row["worst_squared_error"], items, clients, seen, loss=LOSS)
        return [head | row]

    def _privacy_bound(self, trust: str, delta: float) -> float | None:
        task = Task(Categories(self.categories), self.clients, self.epsilon, delta, ADJACENCY)
        return frequency_lower_bound(task, trust, unbiased=trust == LOCAL)

    def _code(self) -> dict[str, Any]:
        numbers = self.categories if self.mechanism == IDENTITY else code_size(self.clients, self.categories, FAILURE)
        return {"trust_model": SECURE, "worst_squared_error": 0.0, "bits_per_client": numbers * math.log2(self.clients + 1)}

    def _offer(self) -> dict[str, Any]:
        entry = BUILT_IN[self.mechanism]
        delta = 0.0 if entry.trust_model == LOCAL else DELTA
        task = Task(Categories(self.categories), self.clients, self.epsilon, delta, ADJACENCY)
        options: Values = sketch_size(self.categories) if self.compressed else {}
        try:
            mechanism = entry.mechanism_for(task, options)
        except InfeasibleError as error:
            return {"trust_model": entry.trust_model, "reason": str(error)}
        return {
            "trust_model": entry.trust_model,
            "bits_per_client": mechanism.bits_per_client,
            "worst_squared_error": mechanism.error().of_mean(self.clients),
        }


def needed_points(seed: int, sizes: Sequence[tuple[int, int]], options: Mapping[str, Any]) -> list[NeededPoint]:
    """Return the points of all schemes for problems (clients, items): private mechanisms of the registry, exact codes, and bounds."""
    points = []
    for clients, items in sizes:
        cases = [(BOUNDS, False), (IDENTITY, False)]
        cases += [(BERNOULLI, False)] if clients <= MOST_CODED else []
        for name, entry in BUILT_IN.items():
            if entry.private and Categories in entry.domains and ADJACENCY in entry.adjacencies:
                sketched = {"rows", "width", "slack"} <= {option.name for option in entry.options}
                cases += [(name, False), *([(name, True)] if sketched else [])]
        points += [
            NeededPoint(seed=seed, mechanism=name, compressed=compressed, categories=items, clients=clients, **options)
            for name, compressed in cases
        ]
    return points
