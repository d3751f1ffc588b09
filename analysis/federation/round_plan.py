"""The server's plan of a round, with the mechanism, its task and public randomness."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import Mechanism, SecureSumMechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.real_numbers import REASON, RealNumberMechanism
from ...design.contracts.task import Task
from ...design.noise.random_words import WordSource
from ..catalogue.registry import build_mechanism, entry_named
from .packed_message import PackedMessage
from .planned_round import PlannedRound, check_carried

# Suffix of the names of options that hold public randomness.
SEED = "_seed"
# Length of a probe, and its relative tolerance, as machines differ in the last digits of calibrated parameters.
PROBE_LENGTH, PROBE_TOLERANCE = 16, 1e-6


@dataclass(frozen=True)
class RoundPlan(PlannedRound):
    """The plan of a round whose mechanism the server and every client build from a task.

    Attributes
    ----------
    name : str
        Name of the round, different in every round.
    mechanism : str
        A mechanism of the registry for vectors, of the trust model local or secure-sum.
    task : Task
        Task with the budget of all rounds, the ball of model updates, and the number of clients whose noise the guarantee counts.
    options : mapping
        Design choices.
    seed : int
        Seed of public randomness that is new in every round (`Mechanism.renewed`); seeds of rotations and frames are among the options.
    probe : tuple of float
        The first numbers of the server's message about a public vector, by `probe_of`. A client that computes other numbers has built
        another mechanism, for example with other versions of libraries, and does not take part.
    allow_real_numbers : bool
        Whether messages may be floating-point numbers, whose low bits reveal more than the guarantee states (`RealNumberMechanism`).
    """

    name: str
    mechanism: str
    task: Task
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    seed: int = 0
    probe: tuple[float, ...] = ()
    allow_real_numbers: bool = False

    def __post_init__(self) -> None:
        """Refuse mechanisms and tasks that no federation of these clients can carry."""
        check_carried(self.mechanism, self.trust_model)
        check_releasable(self.mechanism, allow_real_numbers=self.allow_real_numbers)
        if not isinstance(self.task.domain, NormBall):
            raise ValueError(f"task must be for a ball of vectors, got {self.task.domain}")
        if self.task.sampling is not None:
            raise ValueError(f"task must be without sampling, got {self.task.sampling}: the server chooses the clients of a round")

    @property
    def ball(self) -> NormBall:
        """The ball of model updates."""
        return self.task.ball(self.mechanism)

    @property
    def mechanism_name(self) -> str:
        """Name of the mechanism."""
        return self.mechanism

    @property
    def trust_model(self) -> str:
        """Trust model of the mechanism's guarantee."""
        return entry_named(self.mechanism).trust_model

    @property
    def epsilon(self) -> float:
        """Privacy parameter of all rounds together."""
        return self.task.epsilon

    @property
    def delta(self) -> float:
        """Failure probability of all rounds together."""
        return self.task.delta

    @property
    def adjacency(self) -> str:
        """Adjacency of the guarantee."""
        return self.task.adjacency

    @property
    def rounds(self) -> int:
        """Number of rounds of the task."""
        return self.task.rounds

    @property
    def dimension(self) -> int:
        """Number of coordinates of an update."""
        return self.task.dimension

    @property
    def digest(self) -> str:
        """SHA-256 of mechanism, task and design choices; all rounds of a task have the same digest."""
        fixed = {name: value for name, value in self.options.items() if not name.endswith(SEED)}
        return hashlib.sha256(replace(self, name="", options=fixed, seed=0, probe=()).document().encode()).hexdigest()

    def at(self, server_round: int) -> Self:
        """Return a round's plan with new public randomness, because updates depend on earlier randomness."""
        seeds = [
            option.name for option in entry_named(self.mechanism).options if option.name.endswith(SEED) and option.name not in self.options
        ]
        options = {**self.options, **{name: secrets.randbits(63) for name in seeds}}
        name = f"{server_round}-{secrets.token_hex(8)}"
        return replace(self, name=name, options=options, seed=secrets.randbits(63)).probed()

    def built(self) -> Mechanism:
        """Return the mechanism as calibrated for the task's number of clients."""
        return _built(replace(self, name="", probe=()).document())

    def probed(self) -> Self:
        """Return the plan with the probe of the mechanism that this process built."""
        return replace(self, probe=probe_of(self.built()))

    def check(self) -> None:
        """Raise ValueError if the mechanism that this process built is not the server's."""
        probe = probe_of(self.built())
        if len(probe) != len(self.probe) or not np.allclose(probe, self.probe, rtol=PROBE_TOLERANCE, atol=0.0):
            got = f"got {self.probe[:3]}...: versions of libraries differ"
            raise ValueError(f"probe must be {probe[:3]}..., as the mechanism that is built here gives it, {got}")

    def guarantee(self, mechanism: Mechanism, rounds: int) -> Guarantee:
        """Return a client's proven guarantee after some rounds, at the task's delta and adjacency."""
        return mechanism.privacy().report(self.task.delta, self.task.adjacency, rounds).guarantee

    def encode(self, update: FloatArray, clients: int, node: int, random_words: WordSource) -> NDArray[Any]:  # noqa: ARG002 - no index
        """Return the mechanism's message."""
        message = self.built_for(clients).encode(update[None], random_words)
        return message[0] if self.adds_up else message

    def packed(self, message: NDArray[Any], node: int) -> PackedMessage:  # noqa: ARG002 - no index
        """Return the message with as few bits as the mechanism states."""
        mechanism = self.built()
        if isinstance(mechanism, SecureSumMechanism):
            return PackedMessage.of(message, len(message) * (mechanism.modulus - 1).bit_length())
        return PackedMessage.of(message, mechanism.bits_per_client)

    def aggregate(self, message: NDArray[Any], node: int) -> NDArray[Any]:  # noqa: ARG002 - no index
        """Return the aggregate of a message that has the shape and type of one message."""
        expected = _known_message(replace(self, name="", probe=()).document())
        if (message.shape, message.dtype) != (expected.shape, expected.dtype):
            raise ValueError(f"message must be {expected.dtype} of shape {expected.shape}, got {message.dtype} of shape {message.shape}")
        if message.dtype.kind == "f" and not np.isfinite(message).all():
            raise ValueError("message must be finite")
        return self.built().aggregate(message)

    def residues(self, message: NDArray[Any]) -> NDArray[Any]:
        """Return the message, which is the residues."""
        return message

    def document(self) -> str:
        """Return the plan as JSON."""
        return json.dumps({**vars(self), "task": asdict(self.task), "options": dict(self.options)}, sort_keys=True)

    @classmethod
    def from_document(cls, document: str) -> "RoundPlan":
        """Return the plan that a message states as JSON."""
        fields = json.loads(document)
        task = fields.pop("task")
        probe = tuple(fields.pop("probe"))
        return cls(task=Task(**{**task, "domain": NormBall(**task["domain"])}), probe=probe, **fields)


def probe_of(mechanism: Mechanism) -> tuple[float, ...]:
    """Return the first numbers of the mechanism's `known_message`."""
    return tuple(known_message(mechanism).ravel()[:PROBE_LENGTH].astype(float).tolist())


def known_message(mechanism: Mechanism) -> NDArray[Any]:
    """Return the message about a vector of equal coordinates, drawn from a public seed."""
    return mechanism.encode(np.ones((1, mechanism.domain.dimension)), np.random.default_rng(0))


def check_releasable(mechanism: str, *, allow_real_numbers: bool) -> None:
    """Raise ValueError for a mechanism on real numbers, unless the caller allows real numbers."""
    if entry_named(mechanism).on_real_numbers and not allow_real_numbers:
        raise ValueError(
            f"mechanism must send whole numbers where messages are released, got {mechanism!r}: {REASON}; allow_real_numbers=True, for the "
            "strategy and for the mod of every client, carries it nevertheless"
        )


@lru_cache(maxsize=2)
def _known_message(document: str) -> NDArray[Any]:
    return known_message(_built(document))


@lru_cache(maxsize=2)
def _built(document: str) -> Mechanism:
    plan = RoundPlan.from_document(document)
    mechanism = build_mechanism(plan.mechanism, plan.task, plan.options).renewed(plan.seed)
    return replace(mechanism, allow_real_numbers=True) if isinstance(mechanism, RealNumberMechanism) else mechanism
