"""The server's plan of a round, with the mechanism, its task and public randomness."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...design.contracts.mechanism import Mechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.privacy import PrivacyReport
from ...design.contracts.real_numbers import REASON, RealNumberMechanism
from ...design.contracts.task import Task
from ..catalogue.registry import build_mechanism, entry_named

# Trust models that a federation can carry, in which the server sees each message, or the sum under masks. Other models need a shuffler or a
# trusted server.
CARRIED_TRUST_MODELS = ("local", "secure-sum")
# Suffix of the names of options that hold public randomness.
SEED = "_seed"
# Length of a probe, and its relative tolerance, as machines differ in the last digits of calibrated parameters.
PROBE_LENGTH, PROBE_TOLERANCE = 16, 1e-6


@dataclass(frozen=True)
class RoundPlan:
    """A round's plan, which the server states and every client builds.

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
        trust = entry_named(self.mechanism).trust_model
        if trust not in CARRIED_TRUST_MODELS:
            raise ValueError(f"mechanism must be of the trust model {' or '.join(CARRIED_TRUST_MODELS)}, got {self.mechanism!r}: {trust}")
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
    def adds_up(self) -> bool:
        """Whether the server may see only the sum of messages."""
        return entry_named(self.mechanism).trust_model == "secure-sum"

    @property
    def digest(self) -> str:
        """SHA-256 of mechanism, task and design choices; all rounds of a task have the same digest."""
        fixed = {name: value for name, value in self.options.items() if not name.endswith(SEED)}
        return hashlib.sha256(replace(self, name="", options=fixed, seed=0, probe=()).document().encode()).hexdigest()

    def built(self) -> Mechanism:
        """Return the mechanism as calibrated for the task's number of clients."""
        return _built(replace(self, name="", probe=()).document())

    def built_for(self, clients: int) -> Mechanism:
        """Return the mechanism for the clients that take part, or for the clients that stay.

        A local mechanism is the same for any number of clients.
        """
        return self.built().for_clients(clients)

    def probed(self) -> "RoundPlan":
        """Return the plan with the probe of the mechanism that this process built."""
        return replace(self, probe=probe_of(self.built()))

    def check_probe(self) -> None:
        """Raise ValueError if the mechanism that this process built is not the server's."""
        probe = probe_of(self.built())
        if len(probe) != len(self.probe) or not np.allclose(probe, self.probe, rtol=PROBE_TOLERANCE, atol=0.0):
            got = f"got {self.probe[:3]}...: versions of libraries differ"
            raise ValueError(f"probe must be {probe[:3]}..., as the mechanism that is built here gives it, {got}")

    def report(self, mechanism: Mechanism, rounds: int) -> PrivacyReport:
        """Report a client's privacy after some rounds, at the task's delta and adjacency."""
        return mechanism.privacy().report(self.task.delta, self.task.adjacency, rounds)

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
def _built(document: str) -> Mechanism:
    plan = RoundPlan.from_document(document)
    mechanism = build_mechanism(plan.mechanism, plan.task, plan.options).renewed(plan.seed)
    return replace(mechanism, allow_real_numbers=True) if isinstance(mechanism, RealNumberMechanism) else mechanism
