"""The server's Flower strategy, which moves the model by the private mean of updates.

A round asks for keys and letters before training, and for shares of secrets after it, and decodes the mean of the clients that stayed.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_choice, check_integer, check_real
from ...arrays import FloatArray
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import Mechanism, SecureSumMechanism
from ...design.contracts.task import Task, check_task
from ...design.deployment.folder import load_deployment
from ...design.deployment.wire_format import MOST_ROUNDS
from ...design.secure_sum.masked_sum import Letter, MaskingServer, PublicKeys, Revealed, from_hexadecimal, in_hexadecimal
from ...design.secure_sum.modular_arithmetic import check_residues
from ...errors import InfeasibleError
from .deployed_round import DeployedRound
from .flower import (
    CONFIG,
    ArrayRecord,
    ConfigRecord,
    Grid,
    Message,
    MetricRecord,
    RecordDict,
    Strategy,
    array_record,
    bytes_of,
    numpy_arrays,
    only_arrays,
    unpacked_message,
)
from .model_update import Arrays, coordinates, updated_arrays
from .planned_round import PlannedRound
from .round_plan import RoundPlan
from .round_report import RoundReport

T = TypeVar("T")
# Errors that reading a client's answer can raise.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError)
REFUSALS = ("raise", "skip")
# Factor by which calibration may exceed the task's epsilon through rounding.
ROUNDING = 1 + 1e-9


class ServerRound:
    """The server's side of one round.

    Call `open`, `accepted`, `mechanism_of_those_who_stayed` and `mean` in this order.

    Attributes
    ----------
    plan : PlannedRound
        The plan that the clients receive.
    before : mapping
        The model's arrays, from which clients start training.
    invited : dict
        The wrapped strategy's messages, by node.
    messages : dict
        Messages that have arrived, by node: masked messages, or each message's aggregate by a local mechanism.
    """

    def __init__(self, number: int, plan: PlannedRound, before: Arrays, messages: list[Message], grid: Grid, timeout: float) -> None:
        self.number = number
        self.plan = plan
        self.before = before
        self.invited = {message.metadata.dst_node_id: message for message in messages}
        self.messages: dict[int, NDArray[Any]] = {}
        self._grid = grid
        self._timeout = timeout
        self._masking = MaskingServer(plan.name)
        self._bytes_up = self._bytes_down = 0

    def open(self) -> list[Message]:
        """Return the training messages; a secure sum trains only clients with keys and letters."""
        if not self.plan.adds_up:
            return [self._instruction(node, "train", {}, message.content) for node, message in self.invited.items()]
        keys = self._ask("keys", {node: {} for node in self.invited}, _public_keys)
        self._masking.keys = dict(sorted(keys.items()))
        self._masking.check_enough(len(keys), "gave their keys")
        letters = self._ask("letters", dict.fromkeys(keys, self._masking.keys), _letters)
        self._masking.letters = {node: sent for node, sent in letters.items() if sent.keys() == keys.keys()}
        letters = self._masking.letters
        self._masking.check_enough(len(letters), "gave their letters")
        self.plan.built_for(len(letters))  # If the mechanism cannot be built, this call raises an error before any client trains.
        return [self._instruction(node, "train", self._masking.letters_to(node), self.invited[node].content) for node in letters]

    def accepted(self, replies: Iterable[Message]) -> dict[int, Message]:
        """Return the clients' replies by node; an unusable message counts as a drop-out."""
        answers = {}
        for node, answer in sorted(self._answers(replies).items()):
            try:
                self.messages[node] = self._taken_in(unpacked_message(answer.content), node)
            except UNREADABLE as error:
                logging.getLogger("flwr").warning("quietbits: node %d sends no message of the round: %s", node, error)
            else:
                answers[node] = answer
        return answers

    def mechanism_of_those_who_stayed(self) -> Mechanism:
        """Return the mechanism for the clients that stayed, if they are enough to decode."""
        if self.plan.adds_up:
            self._masking.check_enough(len(self.messages), "sent their messages")
        elif not self.messages:
            raise InfeasibleError(f"clients must be at least 1 of {len(self.invited)} to decode a mean, got 0 that sent their messages")
        return self.plan.built_for(len(self.messages))

    def mean(self, mechanism: Mechanism) -> FloatArray:
        """Return the decoded mean update; a secure sum first asks the remaining clients for shares."""
        if not self.plan.adds_up:
            return np.asarray(mechanism.decode(reduce(mechanism.combine, self.messages.values()), len(self.messages)))
        stayed = list(self.messages)
        revealed = self._ask("reveal", {node: {"survivors": stayed} for node in stayed}, _revealed)
        complete = {node: answer for node, answer in revealed.items() if self._is_complete(answer)}
        total = self._masking.total(self.messages, complete, self._secure_sum().modulus)
        return np.asarray(mechanism.decode(total, len(stayed)))

    def report(self, mechanism: Mechanism | None, refusal: str | None = None) -> RoundReport:
        """Return the report of the round, with the guarantee for the clients that stayed."""
        guarantee = None if mechanism is None else self.plan.guarantee(mechanism, 1)
        wrap = mechanism.coordinate_wrap_probability if isinstance(mechanism, SecureSumMechanism) else 0.0
        who = len(self.invited), len(self.messages)
        false = tuple(sorted(self._masking.false_shares))
        return RoundReport(self.number, self.plan.mechanism_name, *who, guarantee, refusal, self._bytes_up, self._bytes_down, wrap, false)

    def _secure_sum(self) -> SecureSumMechanism:
        """Return the mechanism for the clients that mask, as they built it."""
        mechanism = self.plan.built_for(len(self._masking.letters))
        assert isinstance(mechanism, SecureSumMechanism)  # noqa: S101  # for mypy: the plan says so
        return mechanism

    def _taken_in(self, message: NDArray[Any], node: int) -> NDArray[Any]:
        if not self.plan.adds_up:
            return self.plan.aggregate(message, node)
        mechanism, residues = self._secure_sum(), self.plan.residues(message)
        if residues.shape != (mechanism.padded_dimension,):
            raise ValueError(f"message must have {mechanism.padded_dimension} numbers, got the shape {residues.shape}")
        return check_residues("message", residues, mechanism.modulus)

    def _is_complete(self, revealed: Revealed) -> bool:
        gone = self._masking.letters.keys() - self.messages.keys()
        return revealed.self_seeds.keys() == self.messages.keys() and revealed.masking_keys.keys() == gone

    def _instruction(self, node: int, stage: str, letter: Mapping[Any, Any], content: RecordDict | None = None) -> Message:
        """Return a message to a node: the plan and the wrapped strategy's content."""
        stated = ConfigRecord({"plan": self.plan.document(), "stage": stage, "letter": in_hexadecimal(letter)})
        records = RecordDict({**(content or {}), CONFIG: stated})
        self._bytes_down += bytes_of(records)
        return Message(content=records, message_type=self.invited[node].metadata.message_type, dst_node_id=node)

    def _ask(self, stage: str, letters: Mapping[int, Mapping[Any, Any]], read: Callable[[Any], T]) -> dict[int, T]:
        """Send every node a letter, and return the readable answers that arrive in time, by node."""
        messages = [self._instruction(node, stage, letter) for node, letter in letters.items()]
        answers = self._answers(self._grid.send_and_receive(messages, timeout=self._timeout))
        answers_read = {}
        for node in answers.keys() & letters.keys():
            try:
                answers_read[node] = read(json.loads(str(answers[node].content.config_records[CONFIG]["letter"])))
            except UNREADABLE as error:
                logging.getLogger("flwr").warning("quietbits: node %d sends an unreadable answer: %s", node, error)
        return answers_read

    def _answers(self, replies: Iterable[Message]) -> dict[int, Message]:
        """Return the error-free replies of invited nodes, by node; log the errors."""
        answers = {}
        for reply in replies:
            node = reply.metadata.src_node_id
            if reply.has_error():
                logging.getLogger("flwr").warning("quietbits: node %d answers: %s", node, reply.error.reason)
            elif node in self.invited:
                answers[node] = reply
                self._bytes_up += bytes_of(reply.content)
        return answers


def _public_keys(answer: Any) -> PublicKeys:
    return PublicKeys(**from_hexadecimal(answer))


def _letters(answer: Any) -> dict[int, Letter]:
    return {int(node): Letter(**from_hexadecimal(letter)) for node, letter in answer.items()}


def _revealed(answer: Any) -> Revealed:
    return Revealed(*({int(node): bytes.fromhex(share) for node, share in answer[kind].items()} for kind in ("self_seeds", "masking_keys")))


class PrivateMeanStrategy(Strategy):
    """A Flower strategy that moves a wrapped strategy's model by the private mean.

    The wrapped strategy, such as ``FedAvg()``, chooses the nodes and evaluates. It receives a single reply, as if from one client, with the
    server's arrays plus the decoded mean of all updates. So server optimisers such as ``FedAdam`` work unchanged, and strategies that
    compare clients with each other have nothing to compare. Clients need `PrivateUpdateMod`. All floating-point arrays form one vector,
    which the mechanism clips to the task's ball; all clients weigh the same.

    Masked messages (`quietbits.design.secure_sum.masked_sum`) carry a mechanism for secure sums: the server learns the sum over the clients
    that stayed, and the guarantee is computed anew for their noise. The strategy refuses a round with too weak a guarantee before the
    removal of masks.

    The mechanism is either built from a task, or that of a deployment, whose clients send messages in its wire format.

    Parameters
    ----------
    strategy : flwr.serverapp.strategy.Strategy
        The strategy to wrap.
    mechanism : str or None
        A mechanism of the registry for vectors, of the trust model local or secure-sum; None with a deployment.
    task : Task or None
        Task with a ball of the model's dimension, the number of clients whose noise the guarantee counts, and epsilon and delta over all
        rounds; None with a deployment, which states them.
    options : mapping
        Design choices of the mechanism. The server draws omitted seeds, which are public, anew for every round.
    deployment : str, Path or None
        Folder of a deployment for vectors, of the trust model local or secure-sum, in place of a mechanism and a task.
    first_round : int
        Number of the deployment's round, from 0, that is the first round of this run; earlier runs have used those before it.
    largest_epsilon : float or None
        Largest epsilon of all rounds together, if each round had the noise of the clients that stayed; the strategy refuses a round above
        it. None for the epsilon of the task, or of the deployment.
    on_refusal : str
        Effect of a refused round: with ``"raise"`` it raises ``InfeasibleError`` and ends the run; with ``"skip"`` it is logged, and the
        model stays the same.
    timeout : float
        Time in seconds to wait for clients' keys, for their letters and for their shares.
    allow_real_numbers : bool
        Whether to carry a mechanism on real numbers, such as ``"gaussian"``. The low bits of its messages reveal more than the guarantee
        states, and the guarantee then mentions it. Clients' mods must allow real numbers, too.

    Attributes
    ----------
    reports : list of RoundReport
        Reports of all rounds so far.
    """

    def __init__(
        self,
        strategy: Strategy,
        mechanism: str | None = None,
        task: Task | None = None,
        options: Mapping[str, Any] = MappingProxyType({}),
        *,
        deployment: str | Path | None = None,
        first_round: int = 0,
        largest_epsilon: float | None = None,
        on_refusal: str = "raise",
        timeout: float = 600.0,
        allow_real_numbers: bool = False,
    ) -> None:
        self.strategy = strategy
        # The plan refuses mechanisms, tasks and deployments that no federation can carry.
        self.plan: PlannedRound
        if deployment is None:
            checked = check_task(task)
            if mechanism is None:
                raise ValueError(
                    f"mechanism must be a name of the registry, got {mechanism!r}: give one with the task, or a deployment alone"
                )
            if first_round != 0:
                raise ValueError(f"first_round must be 0 without a deployment, got {first_round!r}")
            self.plan = RoundPlan("", mechanism, checked, dict(options), allow_real_numbers=allow_real_numbers)
        else:
            if mechanism is not None or task is not None or options:
                raise ValueError(f"mechanism, task and options must be left out with a deployment, which has its own, got {mechanism!r}")
            check_integer("first_round", first_round, low=0, high=MOST_ROUNDS)
            self.plan = DeployedRound("", load_deployment(deployment), first_round)
        self.largest_epsilon = self.plan.epsilon * ROUNDING if largest_epsilon is None else largest_epsilon
        check_real("largest_epsilon", self.largest_epsilon, low=0.0, high=1e100)
        self.on_refusal = check_choice("on_refusal", on_refusal, REFUSALS)
        self.timeout = check_real("timeout", timeout, low=0.0, high=1e9)
        self.reports: list[RoundReport] = []
        self._round: ServerRound | None = None
        self._released: list[Mechanism] = []

    def guarantee(self) -> Guarantee:
        """Return the proven guarantee of all rounds so far, for a client that took part in each.

        The guarantee counts every round like the round with the fewest clients. A sum over more clients has more noise: the noise of the
        fewer clients, plus noise that does not depend on the client in question.
        """
        if not self._released:
            return Guarantee(0.0, self.plan.adjacency, self.plan.trust_model, delta=self.plan.delta)
        weakest = min(self._released, key=lambda mechanism: mechanism.joint_clients or 0)
        return self.plan.guarantee(weakest, len(self._released))

    def configure_train(self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid) -> Iterable[Message]:
        """State the mechanism to the wrapped strategy's nodes; a secure sum exchanges keys first."""
        self._round = None
        messages = list(self.strategy.configure_train(server_round, arrays, config, grid))
        if not messages:
            return messages
        before = numpy_arrays(only_arrays(messages[0].content, "message"))
        if coordinates(before) != self.plan.dimension:
            what = "deployment" if isinstance(self.plan, DeployedRound) else "task"
            raise ValueError(f"{what} must be for {coordinates(before)} coordinates, as many as the model has, got {self.plan.dimension}")
        opened = ServerRound(server_round, self.plan.at(server_round), before, messages, grid, self.timeout)
        try:
            if max(len(self._released), opened.plan.round_number) >= self.plan.rounds:
                raise InfeasibleError(f"rounds must be more than {self.plan.rounds}, which are over, for another one")
            messages = opened.open()
        except InfeasibleError as error:
            self._refuse(opened, error)
            return []
        if not opened.plan.adds_up:
            # Clients of a local mechanism have sent their messages, whether or not the server uses them.
            self._released.append(opened.plan.built())
        self._round = opened
        return messages

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Decode the mean update of the clients that stayed, or refuse the round."""
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
        reply = next(iter(answers.values()))
        reply.content = moved
        arrays, metrics = self.strategy.aggregate_train(server_round, [reply])
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
        """Leave evaluation, whose metrics are not private, to the wrapped strategy."""
        return self.strategy.configure_evaluate(server_round, arrays, config, grid)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Leave evaluation to the wrapped strategy."""
        return self.strategy.aggregate_evaluate(server_round, replies)

    def summary(self) -> None:
        """Log the mechanism, its budget, and the wrapped strategy's summary."""
        plan = self.plan
        budget = f"epsilon {plan.epsilon:g}, delta {plan.delta:g}, {plan.adjacency} adjacency, {plan.rounds} rounds"
        logging.getLogger("flwr").info("\t├──> quietbits: %s, %s", plan.mechanism_name, budget)
        self.strategy.summary()

    def _mean(self, opened: ServerRound) -> FloatArray:
        """Return the decoded mean update; unmask only if the guarantee is strong enough."""
        mechanism = opened.mechanism_of_those_who_stayed()
        epsilon = self.plan.guarantee(mechanism, self.plan.rounds).epsilon
        if epsilon > self.largest_epsilon:
            raise InfeasibleError(
                f"epsilon must be at most {self.largest_epsilon:g} over {self.plan.rounds} rounds, got {epsilon:.6g} with the "
                f"noise of the {len(opened.messages)} of {len(opened.invited)} clients that stayed"
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
