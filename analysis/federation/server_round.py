"""One round as the server runs it: keys and letters before training, shares of secrets after it, and the decoded mean."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...design.contracts.mechanism import Mechanism, SecureSumMechanism
from ...design.secure_sum.masked_sum import Letter, MaskingServer, PublicKeys, Revealed, from_hexadecimal, in_hexadecimal
from ...design.secure_sum.modular_arithmetic import check_residues
from ...errors import InfeasibleError
from .flower import CONFIG, ConfigRecord, Grid, Message, RecordDict, bytes_of, unpacked_message
from .model_update import Arrays
from .round_plan import RoundPlan, known_message
from .round_report import RoundReport

T = TypeVar("T")
# What reading a client's answer may raise, whatever is in it.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError)


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
