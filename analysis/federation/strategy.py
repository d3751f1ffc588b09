"""The server's side: a Flower strategy around another one, which moves the model by the private mean of the clients' updates.

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
from ...design.masked_sum.client import Letter, PublicKeys, Revealed, from_hexadecimal, in_hexadecimal
from ...design.masked_sum.server import MaskingServer
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
# What reading a client's answer may raise, whatever is in it.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError)
REFUSALS = ("raise", "skip")
# Above what calibration may end at.
ROUNDING = 1 + 1e-9


class ServerRound:
    """Made for one round; `open`, `accepted`, `mechanism_of_those_who_stayed` and `mean` in this order.

    Attributes
    ----------
    plan : RoundPlan
        What clients are told.
    before : mapping
        The model's arrays, which clients start from.
    invited : dict
        The wrapped strategy's messages, by node.
    messages : dict
        What has arrived, by node: masked messages, or what a mechanism's `aggregate` makes of one.
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
        """Return the training messages: for a secure sum, to those clients that have given keys and letters."""
        if not self.plan.adds_up:
            return [self._instruction(node, "train", {}, message.content) for node, message in self.invited.items()]
        keys = self._ask("keys", {node: {} for node in self.invited}, _public_keys)
        self._masking.keys = dict(sorted(keys.items()))
        self._masking.check_enough(len(keys), "gave their keys")
        letters = self._ask("letters", dict.fromkeys(keys, self._masking.keys), _letters)
        self._masking.letters = {node: sent for node, sent in letters.items() if sent.keys() == keys.keys()}
        letters = self._masking.letters
        self._masking.check_enough(len(letters), "gave their letters")
        self.plan.built_for(len(letters))  # or say here that it cannot be built, before anyone trains
        return [self._instruction(node, "train", self._masking.letters_to(node), self.invited[node].content) for node in letters]

    def accepted(self, replies: Iterable[Message]) -> dict[int, Message]:
        """Return the clients' replies, by node, and take in their messages; one that is not a message counts as a client that left."""
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
        """Return the mechanism with their number of clients, if there are enough of them to decode anything."""
        if self.plan.adds_up:
            self._masking.check_enough(len(self.messages), "sent their messages")
        elif not self.messages:
            raise InfeasibleError(f"none of {len(self.invited)} clients sent a message")
        return self.plan.built_for(len(self.messages))

    def mean(self, mechanism: Mechanism) -> FloatArray:
        """Return the decoded mean update of those who stayed; for a secure sum, ask them to help with the masks first."""
        if not self.plan.adds_up:
            return np.asarray(mechanism.decode(reduce(mechanism.combine, self.messages.values()), len(self.messages)))
        stayed = list(self.messages)
        revealed = self._ask("reveal", {node: {"survivors": stayed} for node in stayed}, _revealed)
        complete = {node: one for node, one in revealed.items() if self._is_complete(one)}
        total = self._masking.total(self.messages, complete, self._secure_sum().modulus)
        return np.asarray(mechanism.decode(total, len(stayed)))

    def report(self, mechanism: Mechanism | None, refusal: str | None = None) -> RoundReport:
        """Return what became of the round, with the mechanism of those who stayed."""
        guarantee = None if mechanism is None else self.plan.report(mechanism, 1).guarantee
        wrap = mechanism.coordinate_wrap_probability if isinstance(mechanism, SecureSumMechanism) else 0.0
        who = len(self.invited), len(self.messages)
        false = tuple(sorted(self._masking.false_shares))
        return RoundReport(self.number, self.plan.mechanism, *who, guarantee, refusal, self._bytes_up, self._bytes_down, wrap, false)

    def _secure_sum(self) -> SecureSumMechanism:
        """Return the mechanism as those who mask have built it."""
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
        """Refuse what is not one message: several would weigh more than the others."""
        known = self._known_message
        if (message.shape, message.dtype) != (known.shape, known.dtype):
            raise ValueError(f"message must be {known.dtype} of shape {known.shape}, got {message.dtype} of shape {message.shape}")
        if message.dtype.kind == "f" and not np.isfinite(message).all():
            raise ValueError("message must be finite")

    @cached_property
    def _known_message(self) -> NDArray[Any]:
        return known_message(self.plan.built())

    def _is_complete(self, one: Revealed) -> bool:
        gone = self._masking.letters.keys() - self.messages.keys()
        return one.self_seeds.keys() == self.messages.keys() and one.masking_keys.keys() == gone

    def _instruction(self, node: int, stage: str, letter: Mapping[Any, Any], content: RecordDict | None = None) -> Message:
        """Return a message to a node, with the plan, beside what the wrapped strategy sends."""
        stated = ConfigRecord({"plan": self.plan.document(), "stage": stage, "letter": in_hexadecimal(letter)})
        told = RecordDict({**(content or {}), CONFIG: stated})
        self._bytes_down += bytes_of(told)
        return Message(content=told, message_type=self.invited[node].metadata.message_type, dst_node_id=node)

    def _ask(self, stage: str, letters: Mapping[int, Mapping[Any, Any]], read: Callable[[Any], T]) -> dict[int, T]:
        """Send every node a letter, and return what is read in the answers of those that give one in time."""
        messages = [self._instruction(node, stage, letter) for node, letter in letters.items()]
        answers = self._answers(self._grid.send_and_receive(messages, timeout=self._timeout))
        found = {}
        for node in answers.keys() & letters.keys():
            try:
                found[node] = read(json.loads(str(answers[node].content.config_records[CONFIG]["letter"])))
            except UNREADABLE as error:
                logging.getLogger("flwr").warning("quietbits: node %d answers what cannot be read: %s", node, error)
        return found

    def _answers(self, replies: Iterable[Message]) -> dict[int, Message]:
        """Return the replies of invited nodes that are no errors; log the errors."""
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
    """Wraps a strategy, such as ``FedAvg()``, which chooses the nodes, evaluates, and is given the model moved by the private mean.

    It sees one reply, as if of one client whose arrays are the server's plus the decoded mean of all updates: server optimisers such as
    ``FedAdam`` work as they are, and strategies that compare clients with each other have nothing to compare. Clients need
    `PrivateUpdateMod`. Arrays of floating point are one vector, which the mechanism clips to the task's ball; all clients weigh the same.

    A mechanism for secure sums is carried by masked messages (`quietbits.design.masked_sum`): the server learns the sum of those who
    stayed, and the guarantee is computed anew for their noise. It is refused before masks are taken off where it is too weak.

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
        weakest = min(self._released, key=lambda one: one.joint_clients or 0)
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
