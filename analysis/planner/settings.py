"""Typical settings, for the documentation: what is wanted, and the plan for it."""

from dataclasses import dataclass

from ...design.contracts.domains import Categories, Interval
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.task import Task
from .plan import plan_task
from .record import Plan


@dataclass(frozen=True)
class TypicalSetting:
    """A task that many have, with the trust model in which it is asked for; None for all.

    Attributes
    ----------
    name, title : str
        For programs, and in words.
    task : Task
        What is wanted.
    trust : str or None
        As in `plan_task`.
    """

    name: str
    title: str
    task: Task
    trust: str | None = None

    def plan(self) -> Plan:
        """Return the plan, without durations, which differ from machine to machine."""
        return plan_task(self.task, trust=self.trust, timed=False)

    @property
    def command(self) -> str:
        """Prints the plan."""
        task, domain = self.task, self.task.domain
        match domain:
            case Interval(low, high):
                held = f"--interval {low:g} {high:g}"
            case Categories(size):
                held = f"--categories {size}"
            case _:
                held = f"--dimension {domain.dimension}"
        words = [f"quietbits plan --clients {task.clients} {held} --epsilon {task.epsilon:g}"]
        words += [f"--delta {task.delta:g}"] if task.delta else []
        words += [f"--adjacency {task.adjacency}"]
        words += [f"--bits {task.bits:g}"] if task.bits is not None else []
        words += [f"--message-bits {task.message_bits:g}"] if task.message_bits is not None else []
        words += [f"--rounds {task.rounds}"] if task.rounds > 1 else []
        words += [f"--trust {self.trust}"] if self.trust is not None else []
        return " ".join(words)


def _vectors(dimension: int) -> NormBall:
    return NormBall(dimension, 2.0)


SETTINGS = (
    TypicalSetting("telemetry", "One number of each device, nobody trusted", Task(Interval(), 100_000, 1.0, 0.0, "replace-one", bits=2)),
    TypicalSetting(
        "local-vectors",
        "Vectors, nobody trusted, a bit a coordinate",
        Task(_vectors(256), 10_000, 4.0, 0.0, "replace-one", bits=1),
        "local",
    ),
    TypicalSetting(
        "secure-vectors",
        "A step of federated learning under a secure sum",
        Task(_vectors(4096), 500, 4.0, 1e-5, "add-or-remove-one"),
        "secure-sum",
    ),
    TypicalSetting(
        "short-messages",
        "The same for a large model, two bits a parameter, ten rounds",
        Task(_vectors(2**17), 500, 4.0, 1e-5, "add-or-remove-one", rounds=10, bits=2),
    ),
    TypicalSetting(
        "local-items",
        "How often each item is held, nobody trusted",
        Task(Categories(1000), 100_000, 1.0, 0.0, "replace-one"),
        "local",
    ),
    TypicalSetting(
        "trusted-items",
        "How often each item is held: what a shuffler or a secure sum buys",
        Task(Categories(100), 10_000, 1.0, 1e-6, "replace-one"),
    ),
)
