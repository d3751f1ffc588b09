"""The price of compression under privacy: bits that are necessary, bits that suffice, and what each mechanism of the registry takes.

Beyond Chen, Choquette-Choo, Kairouz, Suresh 2022, whose necessary bits have no constants.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ....design.contracts.gaussian import central_gaussian_error
from ....design.contracts.mechanism import Mechanism
from ....design.contracts.norm_ball import NormBall
from ....design.contracts.registry import Entry, Values
from ....design.contracts.task import Budget, Task
from ....errors import InfeasibleError
from ...calibration.rate_and_bits import cheapest_rate_and_bits
from ...catalogue.registry import BUILT_IN
from ..point import Point
from .mean_limits import mean_limits

CLIP_NORM, DELTA, ADJACENCY = 1.0, 1e-5, "replace-one"
SLACK = 2.0
# Choices where the usual ones take long, or where there is no usual one.
OPTIONS: Mapping[str, Values] = MappingProxyType(
    {"mvu": {"bits_in": 3, "bits_out": 2, "metric": "l2"}, "sparse-discrete-gaussian": {"sparsity": 4}}
)


@dataclass(frozen=True, kw_only=True)
class PricePoint(Point):
    """One number of clients: the bits between which the best mechanism lies, or what one mechanism takes.

    Attributes
    ----------
    mechanism : str
        A name of the registry; ``"bounds"`` for necessary and sufficient bits.
    clients, dimension : int
        Number of clients, and of coordinates of their vectors of norm at most 1.
    epsilon : float
        Of the round, at delta = 1e-5 and replace-one adjacency.
    """

    mechanism: str
    clients: int
    dimension: int
    epsilon: float

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return one row: a mechanism's bits and worst error beside the trusted server's, or the bits for twice the latter."""
        ball = NormBall(self.dimension, 2.0, CLIP_NORM)
        central = central_gaussian_error(ball, self.clients, self.epsilon, DELTA, ADJACENCY)
        head = {
            "mechanism": self.mechanism,
            "clients": self.clients,
            "dimension": self.dimension,
            "epsilon": self.epsilon,
            "delta": DELTA,
            "adjacency": ADJACENCY,
            "budget": self.clients * self.epsilon,
            "central_squared_error": central,
            "zero_squared_error": CLIP_NORM**2,
        }
        row = self._bounds(ball) if self.mechanism == "bounds" else self._offer(ball, central)
        return [head | row]

    def _bounds(self, ball: NormBall) -> dict[str, Any]:
        limits = mean_limits(Task(ball, self.clients, self.epsilon, DELTA, ADJACENCY), "secure-sum", SLACK)
        necessary = {
            "necessary_bits_any": limits.necessary_bits,
            "necessary_bits_unbiased": limits.necessary_unbiased_bits,
            "lower_bound": limits.private_error,
        }
        budget = Budget(self.epsilon, DELTA, ADJACENCY)
        try:
            best = cheapest_rate_and_bits(ball, self.clients, budget, SLACK)[0]
        except InfeasibleError as error:
            return necessary | {"reason": str(error)}
        return necessary | {
            "sufficient_bits": best.bits_per_parameter * self.dimension,
            "rate": best.rate,
            "bits": best.bits,
            "compressed_error": best.compressed_error,
        }

    def _offer(self, ball: NormBall, central: float) -> dict[str, Any]:
        entry = BUILT_IN[self.mechanism]
        task = Task(ball, self.clients, self.epsilon, DELTA, ADJACENCY)
        try:
            mechanism = _built(entry, task)
        except InfeasibleError as error:
            return {"trust_model": entry.trust_model, "reason": str(error)}
        worst = mechanism.error()
        predicted = worst.variance / self.clients + worst.shared
        return {
            "trust_model": entry.trust_model,
            "bits_per_client": mechanism.bits_per_client,
            "compressed_error": predicted,
            "ratio_to_central": predicted / central,
            "within_slack": bool(predicted <= SLACK * central * (1 + 1e-9)),
        }


def _built(entry: Entry, task: Task) -> Mechanism:
    """Return a mechanism at its usual options; where these are refused, the one of the planner's with the least worst error."""
    own = OPTIONS.get(entry.name, {})
    try:
        return entry.mechanism_for(task, own)
    except InfeasibleError:
        found = []
        for values in entry.candidates(task):
            with suppress(InfeasibleError):
                found.append(entry.mechanism_for(task, {**values, **own}))
        if not found:
            raise
        return min(found, key=lambda one: one.error().of_mean(task.clients))


def serving(entry: Entry) -> bool:
    """Return whether an entry is for vectors of the L2 ball, with replace-one adjacency."""
    return NormBall in entry.domains and (entry.norms is None or 2.0 in entry.norms) and ADJACENCY in entry.adjacencies


def price_points(seed: int, clients: Sequence[int], offered: Sequence[int], dimension: int, epsilon: float) -> list[PricePoint]:
    """Return a task for the bounds at each number of clients, and for each mechanism that serves at each number of `offered`."""
    names = [name for name, entry in BUILT_IN.items() if serving(entry)]
    settings = [("bounds", count) for count in clients] + [(name, count) for count in offered for name in names]
    return [PricePoint(seed=seed, mechanism=name, clients=count, dimension=dimension, epsilon=epsilon) for name, count in settings]
