"""What the server tells clients of a round: which mechanism to build, for which task, with which public randomness."""

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

# Whose messages a server may see as they are, or add up under masks. The others need a shuffler, or trust.
CARRIED_TRUST_MODELS = ("local", "secure-sum")
# How names of options end that are public randomness.
SEED = "_seed"
# Machines differ in the last digits of what they calibrate.
PROBE_LENGTH, PROBE_TOLERANCE = 16, 1e-6


@dataclass(frozen=True)
class RoundPlan:
    """A round, as the server states it and as every client builds it.

    Attributes
    ----------
    name : str
        Of the round: different in every one.
    mechanism : str
        A mechanism of the registry for vectors, of the trust model local or secure-sum.
    task : Task
        The budget of all rounds; its domain is the ball of model updates, its clients those whose noise is counted on.
    options : mapping
        Design choices.
    seed : int
        Of public randomness that is new in every round (`Mechanism.renewed`); seeds of rotations and frames are among the options.
    probe : tuple of float
        The beginning of a message of the server's mechanism about a vector that everyone knows, by `probe_of`: a client that gets another
        one has built another mechanism, with other versions of libraries, and does not take part.
    allow_real_numbers : bool
        Whether messages may be floating-point numbers, whose low bits reveal more than the guarantee says (`RealNumberMechanism`).
    """

    name: str
    mechanism: str
    task: Task
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    seed: int = 0
    probe: tuple[float, ...] = ()
    allow_real_numbers: bool = False

    def __post_init__(self) -> None:
        """Refuse what no federation of these clients can carry."""
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
        """Whether the server is to see the sum of messages alone."""
        return entry_named(self.mechanism).trust_model == "secure-sum"

    @property
    def digest(self) -> str:
        """SHA-256 of the mechanism, task and design choices: the same for all rounds of a task, which differ in public randomness."""
        fixed = {name: value for name, value in self.options.items() if not name.endswith(SEED)}
        return hashlib.sha256(replace(self, name="", options=fixed, seed=0, probe=()).document().encode()).hexdigest()

    def built(self) -> Mechanism:
        """Return the mechanism as it was calibrated, for the task's number of clients."""
        return _built(replace(self, name="", probe=()).document())

    def built_for(self, clients: int) -> Mechanism:
        """Return the mechanism for the number of clients that take part, or stay; in the local trust model it is the same."""
        return self.built().for_clients(clients)

    def probed(self) -> "RoundPlan":
        """Return the plan with the probe of the mechanism that is built here."""
        return replace(self, probe=probe_of(self.built()))

    def check_probe(self) -> None:
        """Raise ValueError if the mechanism that is built here is not the server's."""
        found = probe_of(self.built())
        if len(found) != len(self.probe) or not np.allclose(found, self.probe, rtol=PROBE_TOLERANCE, atol=0.0):
            got = f"got {self.probe[:3]}...: versions of libraries differ"
            raise ValueError(f"probe must be {found[:3]}..., as the mechanism that is built here gives it, {got}")

    def report(self, mechanism: Mechanism, rounds: int) -> PrivacyReport:
        """Return what is known of a client's privacy after some rounds of the mechanism, at the task's delta and adjacency."""
        return mechanism.privacy().report(self.task.delta, self.task.adjacency, rounds)

    def document(self) -> str:
        """Return the plan as JSON."""
        return json.dumps({**vars(self), "task": asdict(self.task), "options": dict(self.options)}, sort_keys=True)

    @classmethod
    def from_document(cls, document: str) -> "RoundPlan":
        """Return the plan that a message states."""
        fields = json.loads(document)
        task = fields.pop("task")
        probe = tuple(fields.pop("probe"))
        return cls(task=Task(**{**task, "domain": NormBall(**task["domain"])}), probe=probe, **fields)


def probe_of(mechanism: Mechanism) -> tuple[float, ...]:
    """Return the first numbers of `known_message`."""
    return tuple(known_message(mechanism).ravel()[:PROBE_LENGTH].astype(float).tolist())


def known_message(mechanism: Mechanism) -> NDArray[Any]:
    """Return the message about a vector of equal coordinates, drawn from a seed that everyone knows."""
    return mechanism.encode(np.ones((1, mechanism.domain.dimension)), np.random.default_rng(0))


def check_releasable(mechanism: str, *, allow_real_numbers: bool) -> None:
    """Raise ValueError for a mechanism on real numbers, unless the caller allows it by name."""
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
