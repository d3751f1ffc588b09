"""What `account` and `calibrate` ask of a mechanism that says nothing else: a budget, for which it is built."""

from collections.abc import Callable, Iterable
from typing import Any

from ...solvers.accounting.sampling import Sampling
from .domains import Domain, Interval
from .guarantee import ADJACENCIES
from .mechanism import MOST_CLIENTS, Mechanism
from .norm_ball import LARGEST_CLIP_NORM, NormBall, parse_norm
from .privacy import Scalar
from .registry import Accountable, Accounted, Option, Target, Values, usual_adjacency
from .task import LARGEST_TARGET, SMALLEST_TARGET, Task

EPSILON = Option("epsilon", float, "Privacy parameter of one round.", low=SMALLEST_TARGET, high=LARGEST_TARGET, unit="nats")
CLIENTS = Option("clients", int, "Number of clients.", 1, 1, MOST_CLIENTS, "clients")
DIMENSION = Option("dimension", int, "Number of coordinates of a vector.", 1, 1, 2**31, "coordinates")
NORM = Option("norm", str, "p of the ball of the vectors.", "2")
CLIP = Option("clip", float, "Norm that vectors are clipped to.", 1.0, 1 / LARGEST_CLIP_NORM, LARGEST_CLIP_NORM, "vectors' units")


def derived_accounting(
    name: str,
    title: str,
    domains: tuple[type, ...],
    adjacencies: tuple[str, ...],
    options: tuple[Option, ...],
    calibrate: Callable[[Task, Values], Mechanism],
) -> Accountable:
    """Return the accounting of an entry: the mechanism is built for an epsilon, and reports on itself; its numbers become details."""
    size = () if Interval in domains else (DIMENSION, NORM, CLIP)

    def domain(values: Values) -> Domain:
        return Interval() if Interval in domains else NormBall(values["dimension"], parse_norm(values["norm"]), values["clip"])

    def built(values: Values, task: Task) -> Accounted:
        mechanism = calibrate(task, {option.name: values[option.name] for option in options})
        return Accounted(
            f"{title}, epsilon {task.epsilon:g}", mechanism.privacy(), task.adjacency, mechanism.bits_per_client, _numbers(mechanism)
        )

    def account(values: Values, adjacency: str | None, sampling: Sampling | None) -> Accounted:
        neighbours = usual_adjacency(adjacency, sampling, adjacencies)
        return built(values, Task(domain(values), values["clients"], values["epsilon"], values["delta"], neighbours))

    def solve(target: Target, given: Values) -> Accounted:
        neighbours = usual_adjacency(target.adjacency, target.sampling, adjacencies or ADJACENCIES)
        task = Task(
            domain(given), given["clients"], target.epsilon, target.delta, neighbours, rounds=target.rounds, sampling=target.sampling
        )
        return built(given, task)

    known: tuple[Any, ...] = (CLIENTS, *size, *options)
    return Accountable(name, title, (EPSILON, *known), account, given=known, solve=solve)


def _numbers(mechanism: Mechanism) -> dict[str, Scalar]:
    """Return what a mechanism's fields say of it, by name."""
    names: Iterable[str] = getattr(mechanism, "__dataclass_fields__", ())
    values = {"epsilon_per_round" if name == "epsilon" else name: getattr(mechanism, name) for name in names}
    return {name: value for name, value in values.items() if isinstance(value, int | float | str)}
