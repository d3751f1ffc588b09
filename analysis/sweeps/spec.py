"""Sweeps as files: TOML in, a list of tasks out; every fault is found and named before any work begins."""

import itertools
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ...arguments import check_integer, check_real
from ...design.contracts.mechanism import MOST_CLIENTS
from ...design.contracts.norm_ball import LARGEST_CLIP_NORM, NormBall
from ...errors import DataError
from ..catalogue.vector_mechanisms import MechanismSpec, check_design
from ..random_streams import LARGEST_SEED
from ..simulation.vector_populations import check_population
from .task import MechanismDesign, SweepTask

MOST_REPETITIONS = 1_000_000
MOST_TASKS = 1_000_000
# What MechanismSpec calls None; TOML has no such value.
NO_METRIC = "none"


@dataclass(frozen=True, kw_only=True)
class SweepSpec:
    """What is to be compared: every combination of the values, each repeated. The fields are the keys of a sweep's file.

    Attributes
    ----------
    mechanism : tuple of MechanismSpec
        The mechanisms, one ``[[mechanism]]`` block or more.
    population : tuple of str
        Names of populations, as in `population_chunks`.
    clients : tuple of int
        Numbers of clients.
    dimension : tuple of int
        Lengths of the vectors.
    norm : tuple of float
        p of the L_p balls that vectors are clipped to, 1 to 64 or infinity.
    epsilon : tuple of float
        Privacy parameters of one message: replace-one adjacency, local trust model.
    delta : tuple of float
        From 0 to below 1; 0 asks for pure privacy. A purely private mechanism meets every delta.
    clip_norm : tuple of float
        Radii of the balls.
    scale : tuple of float
        Scales of the populations, in clip norms.
    nonzero : tuple of int
        Numbers of non-zero coordinates of the population ``"sparse"``; empty for its default.
    repetitions : int
        Independent draws of vectors and of messages for each setting.
    seed : int
        Root seed of everything random.

    Raises
    ------
    ValueError
        If a value is out of range, there is none, one is there twice, or a mechanism does not apply to one of the settings.
    """

    mechanism: tuple[MechanismSpec, ...]
    population: tuple[str, ...]
    clients: tuple[int, ...]
    dimension: tuple[int, ...]
    norm: tuple[float, ...]
    epsilon: tuple[float, ...]
    delta: tuple[float, ...]
    clip_norm: tuple[float, ...] = (1.0,)
    scale: tuple[float, ...] = (1.0,)
    nonzero: tuple[int, ...] = ()
    repetitions: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse a sweep of which one task could not be begun."""
        for field in fields(self):
            values = getattr(self, field.name)
            if not isinstance(values, tuple):
                continue
            if not values and field.name != "nonzero":
                raise ValueError(f"{field.name} must have at least one value, got none")
            for position, value in enumerate(values):
                if value in values[:position]:
                    raise ValueError(f"{field.name} must not have the same value twice, got {value!s} twice")
        check_integer("repetitions", self.repetitions, low=1, high=MOST_REPETITIONS)
        check_integer("seed", self.seed, low=0, high=LARGEST_SEED)
        for clients in self.clients:
            check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        for scale in self.scale:
            check_real("scale", scale, low=1 / LARGEST_CLIP_NORM, high=LARGEST_CLIP_NORM)
        for population in self.population:
            check_population(population, None)
        for ball, nonzero in itertools.product(self._balls(), self.nonzero):
            check_integer("nonzero", nonzero, low=1, high=ball.dimension)
        if self.nonzero and "sparse" not in self.population:
            raise ValueError(f"nonzero must be left out where no population is sparse, got {', '.join(map(str, self.nonzero))}")
        count = len(self._settings()) * len(self.mechanism) * self.repetitions
        if count > MOST_TASKS:
            raise ValueError(f"a sweep must have at most {MOST_TASKS} tasks, got {count}: ask for fewer values or repetitions")
        for ball, delta, epsilon, mechanism in itertools.product(self._balls(), self.delta, self.epsilon, self.mechanism):
            check_design(mechanism, ball, epsilon, delta)

    def tasks(self) -> list[SweepTask]:
        """Return the tasks, in an order that depends on the specification only.

        Returns
        -------
        list of SweepTask
            One per population, number of clients, ball, budget, mechanism and repetition; the last varies fastest.
        """
        return [
            SweepTask(
                design=MechanismDesign(mechanism, ball, float(epsilon), float(delta)),
                population=population,
                nonzero=nonzero,
                scale=float(scale),
                clients=clients,
                repetition=repetition,
                seed=self.seed,
            )
            for (population, nonzero), scale, clients, ball, delta, epsilon in self._settings()
            for mechanism in self.mechanism
            for repetition in range(self.repetitions)
        ]

    def _settings(self) -> list[tuple[tuple[str, int | None], float, int, NormBall, float, float]]:
        kinds: list[tuple[str, int | None]] = []
        for population in self.population:
            kinds += itertools.product([population], self.nonzero) if population == "sparse" and self.nonzero else [(population, None)]
        return list(itertools.product(kinds, self.scale, self.clients, self._balls(), self.delta, self.epsilon))

    def _balls(self) -> list[NormBall]:
        return [NormBall(*place) for place in itertools.product(self.dimension, self.norm, self.clip_norm)]


SINGLE = ("repetitions", "seed")
KEYS = tuple(field.name for field in fields(SweepSpec))
REQUIRED = ("mechanism", "population", "clients", "dimension", "norm", "epsilon", "delta")
MECHANISM_KEYS = tuple(field.name for field in fields(MechanismSpec))


def load_sweep(path: str | os.PathLike[str]) -> SweepSpec:
    """Read a sweep from a TOML file.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    SweepSpec
        The sweep, checked.

    Raises
    ------
    DataError
        If the file is not TOML, a key is unknown or missing, or a value will not do; the message names the file and the key.
    OSError
        If the file cannot be read.
    """
    try:
        return parse_sweep(tomllib.loads(Path(path).read_text(encoding="utf-8")))
    except ValueError as error:
        # tomllib's errors, and those of text that is not UTF-8, are ValueErrors too.
        raise DataError(f"{path}: {error}") from error


def parse_sweep(document: Mapping[str, Any]) -> SweepSpec:
    """Return the sweep that a TOML document describes.

    Parameters
    ----------
    document : mapping
        The document, as `tomllib` returns it. Every key but ``seed`` and ``repetitions`` takes one value or a list; so do the parameters
        in a ``[[mechanism]]`` block, where a list stands for one mechanism per value, and ``metric = "none"`` for local privacy.

    Returns
    -------
    SweepSpec
        The sweep, checked.

    Raises
    ------
    ValueError
        If a key is unknown or missing, or a value will not do.

    Examples
    --------
    >>> sweep = parse_sweep({"population": "sphere", "clients": 100, "dimension": 4, "norm": 2, "epsilon": [1, 2], "delta": 0,
    ...                      "repetitions": 3, "mechanism": [{"name": "cldp"}]})
    >>> len(sweep.tasks())
    6
    """
    _check_keys("a sweep", document, KEYS)
    for key in REQUIRED:
        if key not in document:
            raise ValueError(f"{key} is missing: a sweep must have {', '.join(REQUIRED)}")
    values: dict[str, Any] = {key: value if key in SINGLE else _values(value) for key, value in document.items() if key != "mechanism"}
    blocks = document["mechanism"]
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise ValueError(f"mechanism must be written as blocks [[mechanism]], got {blocks!r}")
    mechanisms: list[MechanismSpec] = []
    for number, block in enumerate(blocks, 1):
        try:
            mechanisms += _mechanisms(block)
        except ValueError as error:
            raise ValueError(f"[[mechanism]] number {number}: {error}") from error
    return SweepSpec(mechanism=tuple(mechanisms), **values)


def _mechanisms(block: Mapping[str, Any]) -> list[MechanismSpec]:
    _check_keys("a mechanism", block, MECHANISM_KEYS)
    if "name" not in block:
        raise ValueError("name is missing: a mechanism must have one")
    lists = {key: _values(value) for key, value in block.items()}
    for key, values in lists.items():
        if not values:
            raise ValueError(f"{key} must have at least one value, got none")
    if "metric" in lists:
        lists["metric"] = tuple(None if value == NO_METRIC else value for value in lists["metric"])
    return [MechanismSpec(**dict(zip(lists, chosen, strict=True))) for chosen in itertools.product(*lists.values())]


def _check_keys(what: str, document: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    for key in document:
        if key not in allowed:
            raise ValueError(f"{key} is no key of {what}: there are {', '.join(allowed)}")


def _values(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else (value,)
