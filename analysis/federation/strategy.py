"""The server's Flower strategy, which moves the model by the private mean of updates.

A round asks for keys and letters before training, and for shares of secrets after it, and decodes the mean of the clients that stayed.
"""

import json
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, reduce
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_choice, check_real
from ...arrays import FloatArray
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import Mechanism, SecureSumMechanism
from ...design.contracts.task import Task, check_task
from ...design.secure_sum.masked_sum import Letter, MaskingServer, PublicKeys, Revealed, from_hexadecimal, in_hexadecimal
from ...design.secure_sum.modular_arithmetic import check_residues
from ...errors import InfeasibleError
from ..catalogue.registry import entry_named
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
from .round_plan import SEED, RoundPlan, known_message
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
    plan : RoundPlan
        The plan that the clients receive.
    before : mapping
        The model's arrays, from which clients start training.
    invited : dict
        The wrapped strategy's messages, by node.
    messages : dict
        Messages that have arrived, by node: masked messages, or each message's aggregate by a local mechanism.
    """

    def __init__(self, number: int, plan: RoundPlan, before: Arrays, messages: list[Message], grid: Grid, timeout: float) -> None:
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
                self.messages[node] = self._taken_in(unpacked_message(answer.content))
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
        guarantee = None if mechanism is None else self.plan.report(mechanism, 1).guarantee
        wrap = mechanism.coordinate_wrap_probability if isinstance(mechanism, SecureSumMechanism) else 0.0
        who = len(self.invited), len(self.messages)
        false = tuple(sorted(self._masking.false_shares))
        return RoundReport(self.number, self.plan.mechanism, *who, guarantee, refusal, self._bytes_up, self._bytes_down, wrap, false)

    def _secure_sum(self) -> SecureSumMechanism:
        """Return the mechanism for the clients that mask, as they built it."""
        mechanism = self.plan.built_for(len(self._masking.letters))
        assert isinstance(mechanism, SecureSumMechanism)  # noqa: S101  # for mypy: the plan says so
        return mechanism

    def _taken_in(self, message: NDArray[Any]) -> NDArray[Any]:
        if not self.plan.adds_up:
            self._check_form(message)
            return self.plan.built().aggregate(message)
        mechanism = self._secure_sum()
        if message.shape != (mechanism.padded_dimension,):
            raise ValueError(f"message must have {mechanism.padded_dimension} numbers, got the shape {message.shape}")
        return check_residues("message", message, mechanism.modulus)

    def _check_form(self, message: NDArray[Any]) -> None:
        """Refuse a message of another shape or type, which might hold several messages."""
        expected = self._known_message
        if (message.shape, message.dtype) != (expected.shape, expected.dtype):
            raise ValueError(f"message must be {expected.dtype} of shape {expected.shape}, got {message.dtype} of shape {message.shape}")
        if message.dtype.kind == "f" and not np.isfinite(message).all():
            raise ValueError("message must be finite")

    @cached_property
    def _known_message(self) -> NDArray[Any]:
        return known_message(self.plan.built())

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

    Parameters
    ----------
    strategy : flwr.serverapp.strategy.Strategy
        The strategy to wrap.
    mechanism : str
        A mechanism of the registry for vectors, of the trust model local or secure-sum.
    task : Task
        Task with a ball of the model's dimension, the number of clients whose noise the guarantee counts, and epsilon and delta over all
        rounds.
    options : mapping
        Design choices of the mechanism. The server draws omitted seeds, which are public, anew for every round.
    largest_epsilon : float or None
        Largest epsilon of all rounds of the task together, if each round had the noise of the clients that stayed; the strategy refuses a
        round above it. None for the task's epsilon.
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
        # The plan refuses mechanisms and tasks that no federation can carry.
        RoundPlan("", mechanism, task, self.options, allow_real_numbers=allow_real_numbers)

    def guarantee(self) -> Guarantee:
        """Return the proven guarantee of all rounds so far, for a client that took part in each.

        The guarantee counts every round like the round with the fewest clients. A sum over more clients has more noise: the noise of the
        fewer clients, plus noise that does not depend on the client in question.
        """
        if not self._released:
            return Guarantee(0.0, self.task.adjacency, entry_named(self.mechanism).trust_model, delta=self.task.delta)
        weakest = min(self._released, key=lambda mechanism: mechanism.joint_clients or 0)
        return weakest.privacy().report(self.task.delta, self.task.adjacency, len(self._released)).guarantee

    def configure_train(self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid) -> Iterable[Message]:
        """State the mechanism to the wrapped strategy's nodes; a secure sum exchanges keys first."""
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
        logging.getLogger("flwr").info("\t├──> quietbits: %s, %s, options %s", self.mechanism, self.task, self.options)
        self.strategy.summary()

    def _plan(self, server_round: int) -> RoundPlan:
        """Return a plan with new public randomness, because updates depend on earlier randomness."""
        seeds = [
            option.name for option in entry_named(self.mechanism).options if option.name.endswith(SEED) and option.name not in self.options
        ]
        options = {**self.options, **{name: secrets.randbits(63) for name in seeds}}
        name = f"{server_round}-{secrets.token_hex(8)}"
        seed = secrets.randbits(63)
        return RoundPlan(name, self.mechanism, self.task, options, seed=seed, allow_real_numbers=self.allow_real_numbers).probed()

    def _mean(self, opened: ServerRound) -> FloatArray:
        """Return the decoded mean update; unmask only if the guarantee is strong enough."""
        mechanism = opened.mechanism_of_those_who_stayed()
        report = opened.plan.report(mechanism, self.task.rounds)
        if report.epsilon > self.largest_epsilon:
            raise InfeasibleError(
                f"epsilon must be at most {self.largest_epsilon:g} over {self.task.rounds} rounds, got {report.epsilon:.6g} with the "
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
