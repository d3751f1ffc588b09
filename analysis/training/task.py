"""A run of a grid of trainings as a task of a sweep, with checkpoints and progress notes."""

import hashlib
import json
import math
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path

import numpy as np

from ...design.contracts.privacy import Scalar
from ...design.contracts.registry import check_values
from ...errors import InfeasibleError
from ...files import write_atomically
from ...shown import results_first
from ..catalogue.plug_ins import option_columns, provided_name, provider_columns, provider_folder
from ..catalogue.registry import REGISTRY
from ..datasets.federated_data import FederatedData
from ..sweeps.store import task_key
from .baselines import FILLED_IN, provider_of, training_entry
from .checkpoint import Checkpoint
from .federation import RECORDED, Federation
from .models.named_models import needs_torch
from .plan import TrainingPlan, training_plan
from .setting import TrainingSetting

CHECKPOINTS, MODELS, PROGRESS = "checkpoints", "models", "progress"
# Seconds between two progress notes of a run.
NOTE_SECONDS = 0.5
DIGEST_CHARACTERS = 10


@dataclass(frozen=True)
class TrainedMechanism:
    """A mechanism for vectors, with design choices.

    Attributes
    ----------
    name : str
        Name in the registry, or in `baselines`.
    options : tuple of (str, value)
        Options that differ from the defaults, by name.
    provider : str or None
        Distribution with its version, or script, that provides the mechanism; None for quietbits itself.
    """

    name: str
    options: tuple[tuple[str, Scalar], ...] = ()
    provider: str | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Check the options, and fill in the provider."""
        entry = training_entry(self.name)
        object.__setattr__(self, "provider", provider_of(self.name))
        for name, _ in self.options:
            if name in (*FILLED_IN, "cache"):
                raise ValueError(f"{name} must be left out: the training knows it")
        required = {option.name: 1 for option in entry.options if option.required and option.name in FILLED_IN}
        check_values(self.name, entry.options, {**dict(self.options), **required})

    def __str__(self) -> str:
        """Return name and options in words."""
        shown = ", ".join(f"{name} {value}" for name, value in self.options)
        return f"{self.name} ({shown})" if shown else self.name


@dataclass(frozen=True)
class NoPlan:
    """Record that no mechanism keeps the budget for a model of some dimension, with the reason."""

    dimension: int
    reason: str


@dataclass(frozen=True)
class TrainingTask:
    """A training run: a mechanism, a setting and a seed.

    Attributes
    ----------
    training : TrainingSetting
        The setting.
    mechanism : TrainedMechanism
        Mechanism of the clients' reports.
    seed : int
        Root seed.
    folder : Path or None
        Folder of checkpoints and progress notes, which changes no result.
    checkpoint_every : int
        Number of rounds between two checkpoints, which changes no result.
    keeps_model : bool
        Whether the final model is written to the folder.
    keeps_infeasible : bool
        Whether an infeasible budget gives a single row, without an accuracy and with the reason as `infeasible`, instead of failing.
    """

    training: TrainingSetting
    mechanism: TrainedMechanism
    seed: int
    folder: Path | None = field(default=None, compare=False)
    checkpoint_every: int = field(default=50, compare=False)
    keeps_model: bool = field(default=False, compare=False)
    keeps_infeasible: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        """Setting and mechanism in canonical JSON, with a plug-in's provider."""
        task = {"mechanism": [self.mechanism.name, *self.mechanism.options], "training": asdict(self.training)}
        return provided_name(json.dumps(task, sort_keys=True), self.mechanism.provider)

    @property
    def stream(self) -> str:
        """Name of the random stream of the messages."""
        return str(self.mechanism)

    @property
    def run_name(self) -> str:
        """Name of the run's files."""
        readable = re.sub(r"[^a-z0-9.]+", "-", f"{self.mechanism}-seed-{self.seed}".lower()).strip("-")
        return f"{readable[:80]}-{hashlib.sha256(f'{self.seed} {self.name}'.encode()).hexdigest()[:DIGEST_CHARACTERS]}"

    @property
    def setting(self) -> str:
        """The mechanism and the model in words."""
        return f"{self.mechanism} trains {self.training.model} for {self.training.rounds} rounds"

    @property
    def design(self) -> tuple[TrainingSetting, TrainedMechanism]:
        """Design of the plan, which runs with other seeds share."""
        return self.training, self.mechanism

    def prepare(self, cache: Path | None) -> TrainingPlan | NoPlan:
        """Build the mechanism, and account for all rounds."""
        layers = self.training.network(self._data()).layers
        self._note(f"calibrating {self.mechanism}")
        name, provider = self.mechanism.name, self.mechanism.provider
        if provider is not None:
            REGISTRY.provided(name, provider)
        try:
            return training_plan(self.training, name, dict(self.mechanism.options), layers, provider_folder(cache, provider))
        except InfeasibleError as error:
            if self.keeps_infeasible:
                return NoPlan(layers.dimension, str(error))
            raise

    def run(self, prepared: TrainingPlan | NoPlan) -> list[dict[str, Scalar]]:
        """Train, from a checkpoint if one exists, and return a row for each round."""
        if isinstance(prepared, NoPlan):
            row = self._columns(prepared.dimension) | {"round": self.training.rounds, "accuracy": None, "infeasible": prepared.reason}
            return [{name: row[name] for name in results_first(row)}]
        federation = Federation(self.training, prepared, self._data(), self.seed, self.stream)
        if self.folder is None:
            federation.run()
        else:
            key = task_key(self)
            federation.run(Checkpoint(self.folder / CHECKPOINTS / f"{self.run_name}.npz", self.checkpoint_every, key), _Notes(self))
            if self.keeps_model:
                content = BytesIO()
                np.save(content, federation.state.parameters)
                models = self.folder / MODELS
                models.mkdir(parents=True, exist_ok=True)
                write_atomically(models / f"{self.run_name}.npy", content.getvalue())
        return self._rows(federation)

    def _data(self) -> FederatedData:
        """Return the clients' data.

        Progress notes announce the data, and the import of torch, which takes some seconds.
        """
        self._note(f"reading {self.training.data}")
        data = self.training.federated_data(self.seed)
        if needs_torch(self.training.model) and "torch" not in sys.modules:
            self._note("importing torch")
        return data

    def _note(self, text: str) -> None:
        """Leave a progress note, if there is a folder."""
        if self.folder is not None:
            write_note(self, {"text": text})

    def _columns(self, dimension: int, bits: float | None = None, trust_model: str | None = None) -> dict[str, Scalar]:
        head: dict[str, Scalar] = {"run": self.run_name, "label": str(self.mechanism), "mechanism": self.mechanism.name}
        stated = {
            **self.training.columns(),
            "target_epsilon": self.training.epsilon,
            "seed": self.seed,
            "dimension": dimension,
            "bits_per_client": bits,
            "delta": self.training.delta,
            "adjacency": self.training.adjacency,
            "trust_model": trust_model,
            **provider_columns(self.mechanism.provider),
        }
        return head | option_columns(dict(self.mechanism.options), {*head, *stated, *RECORDED, "round", "epsilon"}) | stated

    def _rows(self, federation: Federation) -> list[dict[str, Scalar]]:
        setting, plan = self.training, federation.plan
        same = self._columns(federation.state.dimension, float(plan.message_bits), plan.trust_model)
        given = {f"built_{name}" for name, _ in self.mechanism.options}
        same |= {name: value for name, value in plan.built().items() if name not in given}
        same["test_examples"] = len(federation.data.test)
        rows = []
        for place in range(setting.rounds):
            row: dict[str, Scalar] = same | {"round": place + 1, "epsilon": float(plan.epsilons[place])}
            for name, both in (("epsilon_amplified", plan.amplified), ("epsilon_unamplified", plan.unamplified)):
                row[name] = None if both is None else float(both[place])
            row |= {f"epsilon_{name.replace('-', '_')}": float(values[place]) for name, values in plan.others.items()}
            measured = {name: federation.records[name][place] for name in RECORDED}
            accuracy, clip = measured.pop("accuracy"), measured.pop("clip_norm")
            row |= {"accuracy": None if math.isnan(accuracy) else accuracy, "clip_norm": clip}
            row |= {name: int(value) for name, value in measured.items()}
            rows.append({name: row[name] for name in results_first(row)})
        return rows


def write_note(task: TrainingTask, note: Mapping[str, object]) -> None:
    """Write a run's progress note, which `run.note_in_words` reads."""
    assert task.folder is not None  # noqa: S101 - as the callers see to
    path = task.folder / PROGRESS / f"{task.run_name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"run": f"{task.mechanism}, seed {task.seed}", **note}), encoding="utf-8")


class _Notes:
    """A writer of progress notes of a run, at intervals."""

    def __init__(self, task: TrainingTask) -> None:
        self._task, self._last = task, time.monotonic()

    def __call__(self, federation: Federation) -> None:
        if federation.state.rounds < federation.setting.rounds and time.monotonic() - self._last < NOTE_SECONDS:
            return
        self._last = time.monotonic()
        write_note(self._task, asdict(federation.progress()))
