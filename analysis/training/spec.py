"""Trainings as files: TOML in, a list of runs out; everything that can be checked without building a mechanism is checked first."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from ...arguments import check_integer
from ...design.contracts.options import NONE, Option
from ...files import read_toml
from ..random_streams import LARGEST_SEED
from ..sweeps.blocks import block_combinations, values_of
from .plan import check_training
from .rivals import training_entry
from .setting import KEYS, TrainingSetting
from .task import TrainedMechanism, TrainingTask

T = TypeVar("T")
# Keys whose values may be None.
MAY_BE_NONE = ("folder", "images", "samples", "batch", "epsilon", "round_epsilon")
# Keys whose values are numbers that need not be whole.
NOT_WHOLE = {one.name for one in fields(TrainingSetting) if one.type in (float, float | None)}
MOST_RUNS = 10**5
CHECKPOINT_EVERY = 50


@dataclass(frozen=True)
class TrainingSpec:
    """A grid of trainings.

    Attributes
    ----------
    runs : tuple of (TrainedMechanism, TrainingSetting)
        All different.
    seeds : tuple of int
        Root seeds: each run is done with each of them.
    checkpoint_every : int
        Rounds between two checkpoints of a run.
    """

    runs: tuple[tuple[TrainedMechanism, TrainingSetting], ...]
    seeds: tuple[int, ...] = (0,)
    checkpoint_every: int = CHECKPOINT_EVERY

    def __post_init__(self) -> None:
        """Refuse an empty grid, and runs or seeds that are there twice."""
        if not self.seeds:
            raise ValueError("seed must have at least one value, got none")
        check_integer("number of runs", len(self.runs) * len(self.seeds), low=1, high=MOST_RUNS)
        check_integer("checkpoint_every", self.checkpoint_every, low=1, high=10**9)
        for seed in self.seeds:
            check_integer("seed", seed, low=0, high=LARGEST_SEED)
        if seeds := _repeated(self.seeds):
            raise ValueError(f"seed must not be there twice, got {seeds[0]} twice")
        if runs := _repeated(self.runs):
            raise ValueError(f"mechanism must not be there twice, got {runs[0][0]} twice")

    def tasks(self, folder: Path | None = None) -> list[TrainingTask]:
        """Return the runs as tasks of a sweep, which keep their state and the final models in a folder if there is one."""
        return [
            TrainingTask(training, mechanism, seed, folder, self.checkpoint_every, keeps_model=folder is not None)
            for mechanism, training in self.runs
            for seed in self.seeds
        ]

    def seeded(self, seed: int) -> "TrainingSpec":
        """Return the grid with one other seed."""
        return replace(self, seeds=(seed,))


def load_training(path: str | os.PathLike[str]) -> TrainingSpec:
    """Read a grid of trainings from a TOML file; a ``DataError`` names the file and the key that is wrong."""
    return read_toml(path, parse_training)


def parse_training(document: Mapping[str, Any]) -> TrainingSpec:
    """Return the grid that a TOML document describes.

    Parameters
    ----------
    document : mapping
        The document, as `tomllib` returns it: fields of `TrainingSetting`, each with one value or a list of values, ``seed``,
        ``checkpoint_every``, and blocks ``[[mechanism]]`` with a ``name``, the mechanism's options, and settings that differ for it. Lists
        stand for all combinations, and ``"none"`` for leaving out what may be left out.

    Examples
    --------
    >>> spec = parse_training({"clients": 100, "clients_per_round": 10, "rounds": 5, "delta": 1e-5, "adjacency": "replace-one",
    ...                        "mechanism": [{"name": "none"}, {"name": "cldp", "epsilon": [10, 20]}]})
    >>> [str(mechanism) for mechanism, _ in spec.runs], len(spec.tasks())
    (['none', 'cldp', 'cldp'], 3)
    """
    common = dict(document)
    blocks, seeds, every = common.pop("mechanism", None), common.pop("seed", 0), common.pop("checkpoint_every", CHECKPOINT_EVERY)
    for key in common:
        if key not in KEYS:
            raise ValueError(f"{key} is not a key of a training: there are {', '.join((*KEYS, 'seed', 'checkpoint_every', 'mechanism'))}")
    if not isinstance(blocks, list) or not blocks or not all(isinstance(block, dict) for block in blocks):
        raise ValueError(f"mechanism must be written as one or more blocks [[mechanism]], got {blocks!r}")
    runs: list[tuple[TrainedMechanism, TrainingSetting]] = []
    for number, block in enumerate(blocks, 1):
        try:
            runs += _runs({**common, **block}, MOST_RUNS - len(runs))
        except (ValueError, TypeError) as error:
            raise ValueError(f"[[mechanism]] number {number}: {error}") from error
    return TrainingSpec(tuple(runs), values_of(seeds), every)


def _runs(block: Mapping[str, Any], most: int) -> Iterator[tuple[TrainedMechanism, TrainingSetting]]:
    """Yield the runs of a block; those with the same options share their mechanism, which is looked up and checked once."""
    known: dict[str, dict[str, Option]] = {}
    mechanisms: dict[str, TrainedMechanism] = {}
    for name, values in block_combinations(block, most):
        if name not in known:
            known[name] = {option.name: option for option in training_entry(name).options}
        by_name = known[name]
        training: dict[str, Any] = {
            key: None if key in MAY_BE_NONE and value == NONE else _as_kept(key, value) for key, value in values.items() if key in KEYS
        }
        # Of the option's kind: 1 and 1.0 are one number, and one task with its random stream.
        options = {key: by_name[key].check(value) if key in by_name else value for key, value in values.items() if key not in KEYS}
        missing = [key for key in ("clients", "clients_per_round", "rounds", "delta", "adjacency") if key not in training]
        if missing:
            raise ValueError(f"{missing[0]} is missing: a training must have clients, clients_per_round, rounds, delta and adjacency")
        # In words, because what is no option's value yet may be of any kind.
        written = repr((name, options))
        if written not in mechanisms:
            mechanisms[written] = TrainedMechanism(name, tuple(options.items()))
        setting = TrainingSetting(**training)
        check_training(setting, name, options)
        yield mechanisms[written], setting


def _as_kept(key: str, value: Any) -> Any:
    """Return a setting's number as the kind that the setting has, whole or not."""
    return float(value) if key in NOT_WHOLE and isinstance(value, int) and not isinstance(value, bool) else value


def _repeated(values: Iterable[T]) -> list[T]:
    return [value for value, count in Counter(values).items() if count > 1]
