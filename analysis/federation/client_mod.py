"""A Flower mod for clients, which sends only a mechanism's message about an update."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ...arguments import check_choice, check_probability, check_real
from ...design.contracts.guarantee import ADJACENCIES
from ...design.contracts.mechanism import SecureSumMechanism
from ...design.deployment.deployment import Deployment
from ...design.deployment.folder import load_deployment
from ...design.noise.random_words import secure_words
from ...design.secure_sum.masked_sum import Letter, MaskingClient, PublicKeys, from_hexadecimal, in_hexadecimal
from ...errors import ConvergenceError, InfeasibleError
from ..deployed_clients.encoder import Encoder
from .deployed_round import DeployedRound
from .flower import (
    CONFIG,
    MOD_FAILED,
    ClientAppCallable,
    ConfigRecord,
    Context,
    Error,
    Message,
    RecordDict,
    numpy_arrays,
    only_arrays,
    packed_records,
)
from .model_update import update_vector
from .planned_round import PlannedRound
from .privacy_ledger import PrivacyLedger
from .round_plan import RoundPlan, check_releasable

# Name of the record that holds the client's state between messages; the record never leaves the client's machine.
STATE = "quietbits.state"


@dataclass(frozen=True)
class PrivateUpdateMod:
    """A Flower mod that replaces a ClientApp's arrays by a private message about the update.

    Use it as ``ClientApp(mods=[PrivateUpdateMod()])``, with `PrivateMeanStrategy` on the server. The update is the difference between the
    returned arrays and the server's. The mod clips the update and encodes it with random words of the operating system. It omits metrics,
    which nothing protects. It refuses a training message that states no mechanism, and a round beyond the task's number of rounds.
    Evaluation messages pass unchanged: their metrics are not private.

    Attributes
    ----------
    largest_epsilon : float or None
        The client's budget over all tasks, of this server and of others, by basic composition. The client pays for a task when its first
        message leaves. The account of a secure sum uses the clients that take part and, before the removal of masks, the clients that stay.
        With None the client keeps no budget and relies on the server's budget.
    largest_delta : float
        The budget's failure probability; without `largest_epsilon`, the largest delta of each task.
    adjacency : str
        Adjacency of the budget. Add-or-remove-one guarantees count towards replace-one adjacency by `Guarantee.towards`; with a budget for
        add-or-remove-one adjacency, replace-one tasks are refused.
    ledger : str, Path or None
        File that records the client's spending, across runs and restarts; needed with `largest_epsilon`. Names in braces are keys of the
        node's configuration, as in ``"spent-{partition-id}.sqlite"``: each client needs a separate file.
    allow_real_numbers : bool
        Whether to send messages of mechanisms on real numbers, whose low bits reveal more than the guarantee states.
    deployment : str, Path or None
        Folder of the deployment whose messages this client sends; it refuses every other deployment, and mechanisms without one. With None
        the client builds the mechanism that the server states, and refuses deployments.
    encoder : Encoder or None
        Function of the update, the number of the deployment's round and the client's index that returns the packed message, such as
        ``process_encoder(["node", "driver.mjs"])``. None for the deployment's client in Python, with secure words.
    """

    largest_epsilon: float | None = None
    largest_delta: float = 1e-2
    adjacency: str = "replace-one"
    ledger: str | Path | None = None
    allow_real_numbers: bool = False
    deployment: str | Path | None = None
    encoder: Encoder | None = None

    def __post_init__(self) -> None:
        """Check the limits."""
        check_probability("largest_delta", self.largest_delta)
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        if self.largest_epsilon is not None:
            check_real("largest_epsilon", self.largest_epsilon, low=0.0, high=1e100)
        if (self.largest_epsilon is None) != (self.ledger is None):
            raise ValueError(
                f"ledger must be a file if largest_epsilon is given, and only then, got {self.ledger!r}: it is the budget's record"
            )
        if self.encoder is not None and self._deployed is None:
            raise ValueError(f"encoder must be left out without a deployment, whose messages it encodes, got {self.encoder!r}")

    def __call__(self, msg: Message, ctxt: Context, call_next: ClientAppCallable) -> Message:
        """Answer a message: training messages through the mechanism, all others unchanged."""
        if msg.metadata.message_type.partition(".")[0] != "train":
            return call_next(msg, ctxt)
        try:
            return self._answer(msg, ctxt, call_next)
        except (ValueError, ConvergenceError) as error:
            return Message(Error(MOD_FAILED, f"quietbits: {error}"), reply_to=msg)

    def _answer(self, msg: Message, ctxt: Context, call_next: ClientAppCallable) -> Message:
        stated = msg.content.config_records.get(CONFIG)
        if stated is None:
            raise ValueError("message must state a mechanism: without PrivateMeanStrategy on the server nothing would protect the update")
        plan = self._plan(str(stated["plan"]))
        stage, letter = str(stated["stage"]), json.loads(str(stated.get("letter", "{}")))
        if stage == "keys":
            client = MaskingClient.start(ctxt.node_id, plan.name)
            _keep(ctxt, client, plan)
            return _reply(msg, client.public_keys)
        if stage == "letters":
            client = _kept(ctxt, plan)
            letters = client.share({int(node): PublicKeys(**from_hexadecimal(keys)) for node, keys in letter.items()})
            _keep(ctxt, client, plan)
            return _reply(msg, letters)
        if stage == "reveal":
            client = _kept(ctxt, plan)
            survivors = set(letter["survivors"])
            revealed = client.reveal(survivors)
            self._pay_for_survivors(plan, len(survivors), ctxt)
            ctxt.state[STATE] = ConfigRecord({"rounds": _rounds(ctxt)})
            return _reply(msg, revealed)
        if stage != "train":
            raise ValueError(f"stage must be keys, letters, train or reveal, got {stage!r}")
        return self._train(plan, letter, msg, ctxt, call_next)

    @cached_property
    def _deployed(self) -> Deployment | None:
        return None if self.deployment is None else load_deployment(self.deployment)

    def _plan(self, document: str) -> PlannedRound:
        """Return the plan that the server states, if this client follows it."""
        stated, own = json.loads(document).get("deployment"), None if self._deployed is None else self._deployed.hash
        if stated != own:
            here, there = (f"with the hash {value}" if value else "left out for a mechanism that clients build" for value in (own, stated))
            raise ValueError(f"deployment must be {here}, as for this client, got one {there}")
        if self._deployed is not None:
            return DeployedRound.from_document(document, self._deployed, self.encoder)
        plan = RoundPlan.from_document(document)
        check_releasable(plan.mechanism, allow_real_numbers=self.allow_real_numbers)
        return plan

    def _train(self, plan: PlannedRound, letter: dict[str, Any], msg: Message, ctxt: Context, call_next: ClientAppCallable) -> Message:
        if _rounds(ctxt) >= plan.rounds:
            raise InfeasibleError(f"rounds must be more than {plan.rounds}, after which this client has spent its budget")
        if plan.delta > self.largest_delta:
            raise InfeasibleError(f"delta must be at most {self.largest_delta:g} for this client, got {plan.delta:g}")
        clients = len(letter) + 1 if plan.adds_up else 1
        ledger = self._ledger(ctxt)
        charge = None if ledger is None else (plan.digest, plan.guarantee(plan.built_for(clients), plan.rounds), plan.rounds)
        if ledger is not None and charge is not None:
            ledger.check(*charge)
        plan.check()
        before = numpy_arrays(only_arrays(msg.content, "message"))
        # The app receives the same message as it would without this package.
        msg.content = RecordDict({name: record for name, record in msg.content.items() if name != CONFIG})
        out = call_next(msg, ctxt)
        if out.has_error():
            return out
        update = update_vector(before, numpy_arrays(only_arrays(out.content, "reply")))
        client = None
        message = plan.encode(update, clients, ctxt.node_id, secure_words)
        if plan.adds_up:
            client = _kept(ctxt, plan)
            message = client.mask(message, _modulus(plan), {int(node): Letter(**from_hexadecimal(sent)) for node, sent in letter.items()})
        packed = plan.packed(message, ctxt.node_id)
        # The budget counts the message from this point on, even if it never arrives.
        entry = 0 if ledger is None or charge is None else ledger.record(*charge)
        _keep(ctxt, client, plan, rounds=_rounds(ctxt) + 1, entry=entry)
        return Message(packed_records(packed), reply_to=msg)

    def _ledger(self, ctxt: Context) -> PrivacyLedger | None:
        """Return the client's ledger, or None if the client keeps no budget."""
        if self.largest_epsilon is None:
            return None
        try:
            path = Path(str(self.ledger).format_map(dict(ctxt.node_config))).expanduser()
        except (KeyError, ValueError, IndexError, AttributeError) as error:
            stated = ", ".join(ctxt.node_config)
            raise ValueError(f"ledger must have names in braces from the node's configuration, {stated}, got {self.ledger!r}") from error
        return PrivacyLedger(path, self.largest_epsilon, self.largest_delta, self.adjacency)

    def _pay_for_survivors(self, plan: PlannedRound, survivors: int, ctxt: Context) -> None:
        """Record the weaker guarantee of a masked sum of fewer clients, or refuse to unmask it."""
        ledger = self._ledger(ctxt)
        if ledger is not None:
            guarantee = plan.guarantee(plan.built_for(survivors), plan.rounds)
            ledger.weaken(int(str(ctxt.state.config_records[STATE]["entry"])), guarantee)


def _modulus(plan: PlannedRound) -> int:
    mechanism = plan.built()
    assert isinstance(mechanism, SecureSumMechanism)  # noqa: S101  # for mypy: the plan says so
    return mechanism.modulus


def _reply(msg: Message, document: Any) -> Message:
    return Message(RecordDict({CONFIG: ConfigRecord({"letter": in_hexadecimal(document)})}), reply_to=msg)


def _rounds(ctxt: Context) -> int:
    """Return the number of this run's rounds in which the client sent a message."""
    state = ctxt.state.config_records.get(STATE)
    return 0 if state is None else int(str(state["rounds"]))


def _keep(ctxt: Context, client: MaskingClient | None, plan: PlannedRound, *, rounds: int | None = None, entry: int = 0) -> None:
    """Store the number of rounds and, for a secure sum, the client's state of this round."""
    state: dict[str, Any] = {"rounds": _rounds(ctxt) if rounds is None else rounds}
    if client is not None:
        state |= {"client": client.document(), "plan": plan.document(), "entry": entry}
    ctxt.state[STATE] = ConfigRecord(state)


def _kept(ctxt: Context, plan: PlannedRound) -> MaskingClient:
    state = ctxt.state.config_records.get(STATE)
    kept = None if state is None else state.get("client")
    if not isinstance(kept, bytes):
        raise ValueError(f"round must have begun with this client's keys, got round {plan.name}")
    if state is None or state["plan"] != plan.document():
        raise ValueError(f"plan must be the one for which this client made keys, got another one, of round {plan.name}")
    return MaskingClient.from_document(kept)
