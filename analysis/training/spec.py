"""Trainings as TOML files, which are checked and become runs before any mechanism is built."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from ...arguments import check_integer
from ...design.contracts.options import NONE, Option
from ...files import MEGABYTE, read_toml
from ..random_streams import LARGEST_SEED
from ..sweeps.specification import check_distinct, check_keys, check_some, listed, read_blocks
from .baselines import training_entry
from .plan import check_training
from .setting import KEYS, TrainingSetting
from .task import TrainedMechanism, TrainingTask

# Keys whose values may be None.
MAY_BE_NONE = ("folder", "images", "samples", "batch", "epsilon", "round_epsilon")
# Keys whose values are numbers that need not be whole.
NOT_WHOLE = {field.name for field in fields(TrainingSetting) if field.type in (float, float | None)}
REQUIRED = ("clients", "clients_per_round", "rounds", "delta", "adjacency")
MOST_RUNS = 10**5
CHECKPOINT_EVERY = 50


@dataclass(frozen=True)
class TrainingSpec:
    """A grid of trainings.

    Attributes
    ----------
    runs : tuple of (TrainedMechanism, TrainingSetting)
        The runs, all different.
    seeds : tuple of int
        Root seeds, with each of which every run is done.
    checkpoint_every : int
        Number of rounds between two checkpoints of a run.
    """

    runs: tuple[tuple[TrainedMechanism, TrainingSetting], ...]
    seeds: tuple[int, ...] = (0,)
    checkpoint_every: int = CHECKPOINT_EVERY

    def __post_init__(self) -> None:
        """Refuse an empty grid, and duplicate runs or seeds."""
        check_some("seed", self.seeds)
        check_integer("number of runs", len(self.runs) * len(self.seeds), low=1, high=MOST_RUNS)
        check_integer("checkpoint_every", self.checkpoint_every, low=1, high=10**9)
        for seed in self.seeds:
            check_integer("seed", seed, low=0, high=LARGEST_SEED)
        check_distinct("seed", self.seeds)
        check_distinct("mechanism", self.runs, text=lambda run: str(run[0]))

    def tasks(self, folder: Path | None = None) -> list[TrainingTask]:
        """Return the runs as tasks of a sweep.

        The tasks keep their state and the final models in the folder, if given.
        """
        return [
            TrainingTask(training, mechanism, seed, folder, self.checkpoint_every, keeps_model=folder is not None)
            for mechanism, training in self.runs
            for seed in self.seeds
        ]


def load_training(path: str | os.PathLike[str], most_bytes: int = MEGABYTE) -> TrainingSpec:
    """Read a grid of trainings from a TOML file of at most the given size.

    A ``DataError`` names the file and the wrong key.
    """
    return read_toml(path, parse_training, most_bytes)


def parse_training(document: Mapping[str, Any]) -> TrainingSpec:
    """Return the grid that a TOML document describes.

    Parameters
    ----------
    document : mapping
        The document, as `tomllib` returns it: fields of `TrainingSetting`, each with one value or a list of values, ``seed``,
        ``checkpoint_every``, and blocks ``[[mechanism]]`` with a ``name``, the mechanism's options, and settings that differ for it. Lists
        stand for all combinations, and ``"none"`` for omitting an optional value.

    Examples
    --------
    >>> spec = parse_training({"clients": 100, "clients_per_round": 10, "rounds": 5, "delta": 1e-5, "adjacency": "replace-one",
    ...                        "mechanism": [{"name": "none"}, {"name": "cldp", "epsilon": [10, 20]}]})
    >>> [str(mechanism) for mechanism, _ in spec.runs], len(spec.tasks())
    (['none', 'cldp', 'cldp'], 3)
    """
    check_keys("a training", document, (*KEYS, "seed", "checkpoint_every", "mechanism"))
    common = {key: value for key, value in document.items() if key in KEYS}
    runs = read_blocks(document.get("mechanism"), _run_reader(), MOST_RUNS, common)
    return TrainingSpec(tuple(runs), listed(document.get("seed", 0)), document.get("checkpoint_every", CHECKPOINT_EVERY))


def _run_reader() -> Callable[[str, dict[str, Any]], tuple[TrainedMechanism, TrainingSetting]]:
    """Return a function that makes runs.

    Runs with the same options share their mechanism, which is looked up and checked once.
    """
    mechanisms: dict[str, TrainedMechanism] = {}

    @cache
    def options_by_name(name: str) -> dict[str, Option]:
        return {option.name: option for option in training_entry(name).options}

    def read(name: str, values: dict[str, Any]) -> tuple[TrainedMechanism, TrainingSetting]:
        by_name = options_by_name(name)
        training: dict[str, Any] = {
            key: None if key in MAY_BE_NONE and value == NONE else _as_kept(key, value) for key, value in values.items() if key in KEYS
        }
        # The option converts the number to its own type, so that 1 and 1.0 give the same task and random stream.
        options = {key: by_name[key].check(value) if key in by_name else value for key, value in values.items() if key not in KEYS}
        check_keys("a training", training, KEYS, REQUIRED)
        # The key is a text, because values of unknown options may have any type.
        written = repr((name, options))
        if written not in mechanisms:
            mechanisms[written] = TrainedMechanism(name, tuple(options.items()))
        setting = TrainingSetting(**training)
        check_training(setting, name, options)
        return mechanisms[written], setting

    return read


def _as_kept(key: str, value: Any) -> Any:
    """Return a setting's number with the setting's type, whole or not."""
    return float(value) if key in NOT_WHOLE and isinstance(value, int) and not isinstance(value, bool) else value
