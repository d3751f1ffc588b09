"""Sweeps as TOML files, which are checked and become lists of tasks before any work begins."""

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from ...arguments import check_choice, check_integer, check_real
from ...design.contracts.domains import Categories, Domain, Interval
from ...design.contracts.guarantee import ADJACENCIES
from ...design.contracts.norm_ball import LARGEST_CLIP_NORM, NormBall
from ...design.contracts.options import NONE
from ...design.contracts.task import Task
from ...files import MEGABYTE, read_toml
from ..catalogue.registry import entry_named
from ..random_streams import LARGEST_SEED
from ..simulation.populations import SPARSE_POPULATIONS, check_inputs
from .specification import Combinations, check_distinct, check_keys, check_some, listed, listed_intervals, read_blocks
from .task import MeanTask, MechanismChoice, design_options

MOST_REPETITIONS = 1_000_000
MOST_TASKS = 1_000_000
# Cache size for the last problems of a sweep.
PROBLEMS_KEPT = 64


@dataclass(frozen=True, kw_only=True)
class SweepSpec:
    """Settings to compare: all combinations of values, each repeated.

    Fields are the keys of the file. Clients hold vectors (with `dimension` and `norm`), numbers (with `interval`) or items (with
    `categories`).

    Attributes
    ----------
    mechanism : tuple of MechanismChoice
        The mechanisms, at least one ``[[mechanism]]`` block.
    population : tuple of str
        Names of populations, as in `input_chunks`.
    clients : tuple of int
        Numbers of clients.
    epsilon : tuple of float
        Privacy parameters of all rounds together.
    delta : tuple of float
        Failure probabilities, from 0 to below 1; 0 requires pure privacy. A purely private mechanism meets every delta.
    adjacency : str
        Adjacency of the guarantees, as a sweep does not compare guarantees of different adjacency.
    dimension : tuple of int
        Lengths of the vectors.
    norm : tuple of float
        Orders p of the L_p balls that vectors are clipped to, 1 to 64 or infinity.
    interval : tuple of (float, float)
        Intervals that numbers are clipped to.
    categories : tuple of int
        Numbers of items.
    clip_norm : tuple of float
        Radii of the balls.
    scale : tuple of float
        Scales of the populations, in clip norms, or in halves of the interval.
    nonzero : tuple of int
        Numbers of non-zero coordinates of the populations ``"sparse"`` and ``"sparse-mean"``; empty for their default.
    rounds : tuple of int
        Numbers of rounds that share the budget; the sweep simulates one of them.
    dropout : tuple of float
        Shares of the clients that may drop out (`Budget`); the sweep simulates all clients.
    repetitions : int
        Number of independent draws of inputs and of messages for each setting.
    seed : int
        Root seed of all randomness.

    Raises
    ------
    ValueError
        If a value is out of range, a list is empty, or a value occurs twice. A mechanism's task reports whether the mechanism serves a
        setting.
    """

    mechanism: tuple[MechanismChoice, ...]
    population: tuple[str, ...]
    clients: tuple[int, ...]
    epsilon: tuple[float, ...]
    delta: tuple[float, ...]
    adjacency: str
    dimension: tuple[int, ...] = ()
    norm: tuple[float, ...] = ()
    interval: tuple[tuple[float, float], ...] = ()
    categories: tuple[int, ...] = ()
    clip_norm: tuple[float, ...] = (1.0,)
    scale: tuple[float, ...] = (1.0,)
    nonzero: tuple[int, ...] = ()
    rounds: tuple[int, ...] = (1,)
    dropout: tuple[float, ...] = (0.0,)
    repetitions: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError for a sweep with an invalid task."""
        self._check_domain_is_one()
        for key in LISTED:
            if key not in MAY_BE_EMPTY:
                check_some(key, getattr(self, key))
        check_integer("repetitions", self.repetitions, low=1, high=MOST_REPETITIONS)
        check_integer("seed", self.seed, low=0, high=LARGEST_SEED)
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        for scale in self.scale:
            check_real("scale", scale, low=1 / LARGEST_CLIP_NORM, high=LARGEST_CLIP_NORM)
        for domain, population in itertools.product(self._domains(), self.population):
            check_inputs(population, domain, None)
        for ball, nonzero in itertools.product(self._domains(), self.nonzero):
            check_integer("nonzero", nonzero, low=1, high=ball.dimension if isinstance(ball, NormBall) else 1)
        if self.nonzero and not set(SPARSE_POPULATIONS) & set(self.population):
            raise ValueError(f"nonzero must be left out where no population is sparse, got {', '.join(map(str, self.nonzero))}")
        count = len(self.tasks())
        if count > MOST_TASKS:
            raise ValueError(f"a sweep must have at most {MOST_TASKS} tasks, got {count}: ask for fewer values or repetitions")
        # A task checks its own numbers, so one task per value, with the first values of the other lists, checks all values.
        first = tuple(values[0] for values in self._budgets())
        for place, values in enumerate(self._budgets()):
            for value in values:
                self._problem((*first[:place], value, *first[place + 1 :]))
        for key in LISTED:
            check_distinct(key, getattr(self, key))

    def tasks(self) -> Sequence[MeanTask]:
        """Return the tasks, in an order that depends on the specification only.

        There is a task per population, scale, number of clients, ball or interval, budget, mechanism and repetition; repetitions vary
        fastest. The sequence makes each task on demand.
        """
        # Adjacent tasks share their problem object.
        problem = lru_cache(maxsize=PROBLEMS_KEPT)(self._problem)

        def task(
            kind: tuple[str, int | None], scale: float, budget: tuple[Any, ...], mechanism: MechanismChoice, repetition: int
        ) -> MeanTask:
            return MeanTask(mechanism, problem(budget), *kind, float(scale), repetition, self.seed)

        budgets = Combinations(lambda *budget: budget, *self._budgets())
        return Combinations(task, self._kinds(), self.scale, budgets, self.mechanism, range(self.repetitions))

    def _check_domain_is_one(self) -> None:
        for name in ("interval", "categories"):
            if getattr(self, name) and (self.dimension or self.norm):
                raise ValueError(f"{name} must be left out where dimension or norm is given: clients hold numbers, vectors, or items")
        if self.interval and self.categories:
            raise ValueError("categories must be left out where interval is given: clients hold numbers, or items")
        if not self.interval and not self.categories and not (self.dimension and self.norm):
            missing = "dimension" if self.norm else "norm" if self.dimension else "interval"
            raise ValueError(
                f"{missing} is missing: a sweep must have dimension and norm, for vectors, interval, for numbers, or categories, for items"
            )

    def _kinds(self) -> list[tuple[str, int | None]]:
        kinds: list[tuple[str, int | None]] = []
        for population in self.population:
            numbered = population in SPARSE_POPULATIONS and self.nonzero
            kinds += itertools.product([population], self.nonzero) if numbered else [(population, None)]
        return kinds

    def _budgets(self) -> tuple[Sequence[Any], ...]:
        """Return the values that make up a problem."""
        return self.clients, self._domains(), self.delta, self.epsilon, self.rounds, self.dropout

    def _problem(self, values: tuple[Any, ...]) -> Task:
        clients, domain, delta, epsilon, rounds, dropout = values
        return Task(domain, clients, epsilon, delta, self.adjacency, rounds, dropout=dropout)

    def _domains(self) -> Sequence[Domain]:
        if self.interval:
            return [Interval(low, high) for low, high in self.interval]
        if self.categories:
            return [Categories(size) for size in self.categories]
        return [NormBall(*place) for place in itertools.product(self.dimension, self.norm, self.clip_norm)]


SINGLE = ("repetitions", "seed", "adjacency")
MAY_BE_EMPTY = ("dimension", "norm", "interval", "categories", "nonzero")
KEYS = tuple(field.name for field in fields(SweepSpec))
LISTED = tuple(key for key in KEYS if key not in SINGLE)
REQUIRED = ("mechanism", "population", "clients", "epsilon", "delta", "adjacency")


def load_sweep(path: str | os.PathLike[str], most_bytes: int = MEGABYTE) -> SweepSpec:
    """Read a sweep from a TOML file of at most the given size.

    A ``DataError`` names the file and the wrong key.
    """
    return read_toml(path, parse_sweep, most_bytes)


def parse_sweep(document: Mapping[str, Any]) -> SweepSpec:
    """Return the sweep that a TOML document describes.

    Parameters
    ----------
    document : mapping
        The document, as `tomllib` returns it. Every key except ``seed``, ``repetitions`` and ``adjacency`` takes one value or a list. An
        option in a ``[[mechanism]]`` block also takes a list, for one mechanism per value, and ``"none"`` if it is optional.

    Examples
    --------
    >>> sweep = parse_sweep({"population": "sphere", "clients": 100, "dimension": 4, "norm": 2, "epsilon": [1, 2], "delta": 0,
    ...                      "adjacency": "replace-one", "repetitions": 3, "mechanism": [{"name": "cldp"}]})
    >>> len(sweep.tasks())
    6
    """
    check_keys("a sweep", document, KEYS, REQUIRED)
    values: dict[str, Any] = {key: value if key in SINGLE else listed(value) for key, value in document.items()}
    if "interval" in document:
        values["interval"] = listed_intervals(document["interval"])
    values["mechanism"] = tuple(read_blocks(document["mechanism"], _choice, MOST_TASKS))
    return SweepSpec(**values)


def _choice(name: str, values: dict[str, Any]) -> MechanismChoice:
    optional = {option.name for option in design_options(entry_named(name)) if option.default is None}
    return MechanismChoice(name, tuple((key, None if key in optional and value == NONE else value) for key, value in values.items()))
