"""The server's side: a Flower strategy around another one, which moves the model by the private mean of the clients' updates."""

import logging
import secrets
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from ...arguments import check_choice, check_real
from ...arrays import FloatArray
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.task import Task, check_task
from ...errors import InfeasibleError
from ..catalogue.registry import entry_named
from .flower import ArrayRecord, ConfigRecord, Grid, Message, MetricRecord, RecordDict, Strategy, array_record, numpy_arrays, only_arrays
from .model_update import coordinates, updated_arrays
from .round_plan import SEED, RoundPlan
from .round_report import RoundReport
from .server_round import ServerRound

REFUSALS = ("raise", "skip")
# Above what calibration may end at.
ROUNDING = 1 + 1e-9


class PrivateMeanStrategy(Strategy):
    """Wraps a strategy, such as ``FedAvg()``, which chooses the nodes, evaluates, and is given the model moved by the private mean.

    It sees one reply, as if of one client whose arrays are the server's plus the decoded mean of all updates: server optimisers such as
    ``FedAdam`` work as they are, and strategies that compare clients with each other have nothing to compare. Clients need
    `PrivateUpdateMod`. Arrays of floating point are one vector, which the mechanism clips to the task's ball; all clients weigh the same.

    A mechanism for secure sums is carried by masked messages (`quietbits.design.secure_sum.masked_sum`): the server learns the sum of those
    who stayed, and the guarantee is computed anew for their noise. It is refused before masks are taken off where it is too weak.

    Parameters
    ----------
    strategy : flwr.serverapp.strategy.Strategy
        The strategy to wrap.
    mechanism : str
        A mechanism of the registry for vectors, of the trust model local or secure-sum.
    task : Task
        The budget: a ball of the model's dimension, the clients whose noise is counted on, epsilon and delta over all rounds.
    options : mapping
        Design choices of the mechanism. Seeds that are not given are drawn anew for every round, by the server: they are public.
    largest_epsilon : float or None
        What all rounds of the task together may spend if each had the noise of those who stayed; None for the task's epsilon. A round
        above it is refused.
    on_refusal : str
        ``"raise"``: a refused round raises ``InfeasibleError`` and ends the run; ``"skip"``: it is logged, and the model stays.
    timeout : float
        How long to wait for clients' keys, letters and shares, in seconds each.
    allow_real_numbers : bool
        Whether to carry a mechanism on real numbers, such as ``"gaussian"``: the low bits of its messages reveal more than the guarantee
        says, and the guarantee's words then say so. Clients' mods must allow it, too.

    Attributes
    ----------
    reports : list of RoundReport
        Of all rounds so far.
    """

    def __init__(
        self,
        strategy: Strategy,
        mechanism: str,
        task: Task,
        options: Mapping[str, Any] = MappingProxyType({}),
        *,
        largest_epsilon: float | None = None,
        on_refusal: str = "raise",
        timeout: float = 600.0,
        allow_real_numbers: bool = False,
    ) -> None:
        self.strategy = strategy
        self.mechanism = mechanism
        self.task = check_task(task)
        self.options = dict(options)
        self.largest_epsilon = task.epsilon * ROUNDING if largest_epsilon is None else largest_epsilon
        check_real("largest_epsilon", self.largest_epsilon, low=0.0, high=1e100)
        self.on_refusal = check_choice("on_refusal", on_refusal, REFUSALS)
        self.timeout = check_real("timeout", timeout, low=0.0, high=1e9)
        self.allow_real_numbers = allow_real_numbers
        self.reports: list[RoundReport] = []
        self._round: ServerRound | None = None
        self._released: list[Mechanism] = []
        # Refuses mechanisms and tasks that cannot be carried.
        RoundPlan("", mechanism, task, self.options, allow_real_numbers=allow_real_numbers)

    def guarantee(self) -> Guarantee:
        """Return what is proven of all rounds so far, for a client that took part in each.

        It is that of the round with the fewest clients, as often as there were rounds: with more clients the sum has more noise, which
        is the sum of fewer clients and something that does not depend on the client in question.
        """
        if not self._released:
            return Guarantee(0.0, self.task.adjacency, entry_named(self.mechanism).trust_model, delta=self.task.delta)
        weakest = min(self._released, key=lambda one: getattr(one, "clients", 0))
        return weakest.privacy().report(self.task.delta, self.task.adjacency, len(self._released)).guarantee

    def configure_train(self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid) -> Iterable[Message]:
        """State the mechanism to the nodes that the wrapped strategy chose; for a secure sum, exchange keys first."""
        self._round = None
        messages = list(self.strategy.configure_train(server_round, arrays, config, grid))
        if not messages:
            return messages
        before = numpy_arrays(only_arrays(messages[0].content, "message"))
        if coordinates(before) != self.task.dimension:
            raise ValueError(f"task must be for {coordinates(before)} coordinates, as many as the model has, got {self.task.dimension}")
        opened = ServerRound(server_round, self._plan(server_round), before, messages, grid, self.timeout)
        try:
            if len(self._released) >= self.task.rounds:
                raise InfeasibleError(f"rounds must be more than {self.task.rounds}, which are over, for another one")
            messages = opened.open()
        except InfeasibleError as error:
            self._refuse(opened, error)
            return []
        if not opened.plan.adds_up:
            # What local clients send is out, whatever the server makes of it.
            self._released.append(opened.plan.built())
        self._round = opened
        return messages

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Decode the mean update of those who stayed, or refuse the round."""
        opened, self._round = self._round, None
        if opened is None:
            return None, None
        answers = opened.accepted(replies)
        try:
            mean = self._mean(opened)
        except ValueError as error:
            self._refuse(opened, error)
            return None, None
        report = opened.report(self._released[-1])
        self.reports.append(report)
        logging.getLogger("flwr").info("quietbits: %s", report)
        moved = RecordDict(
            {
                "arrays": array_record(updated_arrays(opened.before, mean)),
                "metrics": MetricRecord({getattr(self.strategy, "weighted_by_key", "num-examples"): 1.0}),
            }
        )
        one = next(iter(answers.values()))
        one.content = moved
        arrays, metrics = self.strategy.aggregate_train(server_round, [one])
        assert report.guarantee is not None  # noqa: S101  # for mypy: the round was not refused
        stated = {
            "clients": report.stayed,
            "epsilon": report.guarantee.epsilon,
            "delta": report.guarantee.delta,
            "run-epsilon": self.guarantee().epsilon,
            "bytes-up": report.bytes_up,
            "bytes-down": report.bytes_down,
        }
        return arrays, MetricRecord({**(metrics or {}), **stated})

    def configure_evaluate(self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid) -> Iterable[Message]:
        """Leave evaluation to the wrapped strategy: its metrics are not private."""
        return self.strategy.configure_evaluate(server_round, arrays, config, grid)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Leave evaluation to the wrapped strategy."""
        return self.strategy.aggregate_evaluate(server_round, replies)

    def summary(self) -> None:
        """Log the mechanism and its budget, and what the wrapped strategy says."""
        logging.getLogger("flwr").info("\t├──> quietbits: %s, %s, options %s", self.mechanism, self.task, self.options)
        self.strategy.summary()

    def _plan(self, server_round: int) -> RoundPlan:
        """Return the round with public randomness of its own: updates depend on the model, and that on the rounds before."""
        seeds = [one.name for one in entry_named(self.mechanism).options if one.name.endswith(SEED) and one.name not in self.options]
        options = {**self.options, **{name: secrets.randbits(63) for name in seeds}}
        name = f"{server_round}-{secrets.token_hex(8)}"
        seed = secrets.randbits(63)
        return RoundPlan(name, self.mechanism, self.task, options, seed=seed, allow_real_numbers=self.allow_real_numbers).probed()

    def _mean(self, opened: ServerRound) -> FloatArray:
        """Return the decoded mean update; ask for masks only where the guarantee is strong enough."""
        mechanism = opened.mechanism_of_those_who_stayed()
        found = opened.plan.report(mechanism, self.task.rounds)
        if found.epsilon > self.largest_epsilon:
            raise InfeasibleError(
                f"epsilon must be at most {self.largest_epsilon:g} over {self.task.rounds} rounds, and with the noise of the "
                f"{len(opened.messages)} of {len(opened.invited)} clients that stayed it is {found.epsilon:.6g}"
            )
        if opened.plan.adds_up:
            self._released.append(mechanism)
        return opened.mean(mechanism)

    def _refuse(self, opened: ServerRound, error: ValueError) -> None:
        report = opened.report(None, str(error))
        self.reports.append(report)
        logging.getLogger("flwr").error("quietbits: %s", report)
        if self.on_refusal == "raise":
            raise InfeasibleError(str(report)) from error
