"""Rounds of trainings beside a bare DP-SGD in numpy, and the fixed time of `quietbits train`.

The bare DP-SGD computes the gradients of a round's clients, clips them, adds Gaussian noise to their sum, and takes a step. It sends no
messages, measures no accuracy and saves nothing; the training does all three. A round's time is the difference of two numbers of rounds,
and both programs take turns. The fixed time is that of a command with few rounds, without the rounds: imports, data, the mechanism and its
accounts, the table and the page.
"""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from shared.processor_time import timed

from quietbits.analysis.datasets.federated_data import Examples
from quietbits.analysis.training.setting import TrainingSetting
from quietbits.analysis.training.task import TrainedMechanism, TrainingTask

POPULATION, CLIENTS = 1442, 600
FEW, MANY, RUNS, COMMANDS = 10, 210, 3, 3
DIGITS = {"clients": POPULATION, "clients_per_round": CLIENTS, "delta": 1e-5, "adjacency": "replace-one"}
POISSON = DIGITS | {"sampling": "poisson", "adjacency": "add-or-remove-one"}


@dataclass(frozen=True)
class Case:
    """A training in words, its mechanism with options, its setting, and the widths of the model's layers."""

    words: str
    mechanism: str
    options: Mapping[str, Any]
    setting: Mapping[str, Any]
    widths: tuple[int, ...] = (64, 10)

    def task(self, rounds: int, folder: Path | None = None) -> TrainingTask:
        """Return the training with a number of rounds."""
        mechanism = TrainedMechanism(self.mechanism, tuple(self.options.items()))
        return TrainingTask(TrainingSetting(rounds=rounds, **self.setting), mechanism, 0, folder)

    def document(self, rounds: int) -> str:
        """Return the training as TOML."""
        common = self.setting | {"rounds": rounds}
        own = {"name": self.mechanism} | self.options
        return "\n".join([*_lines(common), "[[mechanism]]", *_lines(own)])


CASES = (
    Case("a trusted server's Gaussian noise", "dp-fedavg", {}, DIGITS | {"epsilon": 8.0}),
    Case("the same, Poisson sampling", "dp-fedavg", {}, POISSON | {"epsilon": 8.0}),
    Case("the same, 11,830 parameters", "dp-fedavg", {}, DIGITS | {"epsilon": 8.0, "model": "mlp-60-60-60"}, (64, 60, 60, 60, 10)),
    Case("secure sum, 16 bits", "distributed-skellam", {"bits": 16}, DIGITS | {"epsilon": 8.0}),
    Case("MVU, 1 bit", "mvu", {"bits_in": 5, "bits_out": 1, "metric": "l1"}, DIGITS | {"round_epsilon": 8.0}),
)


def _lines(values: Mapping[str, Any]) -> list[str]:
    return [f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value}" for name, value in values.items()]


@dataclass(frozen=True, eq=False)
class BareDpSgd:
    """DP-SGD of a network of ReLU units whose clients have an image each, in plain numpy."""

    examples: Examples
    setting: TrainingSetting
    widths: tuple[int, ...]

    def run(self, rounds: int) -> list[np.ndarray]:
        """Return the weights after some rounds; the last row of each matrix has the biases."""
        rng, setting = np.random.default_rng(0), self.setting
        weights = [rng.normal(0.0, (2 / inputs) ** 0.5, (inputs + 1, outputs)) for inputs, outputs in pairwise(self.widths)]
        for _ in range(rounds):
            count = rng.binomial(POPULATION, CLIENTS / POPULATION) if setting.sampling == "poisson" else CLIENTS
            gradients = self._gradients(weights, rng.choice(POPULATION, count, replace=False))
            gradients *= np.minimum(1.0, setting.clip / np.linalg.norm(gradients, axis=1))[:, None]
            step = (gradients.sum(axis=0) + rng.normal(0.0, setting.clip, gradients.shape[1])) / CLIENTS
            parts = np.split(step, np.cumsum([matrix.size for matrix in weights])[:-1])
            weights = [matrix - part.reshape(matrix.shape) for matrix, part in zip(weights, parts, strict=True)]
        return weights

    def _gradients(self, weights: list[np.ndarray], clients: np.ndarray) -> np.ndarray:
        """Return the gradient of each client, shape (clients, parameters)."""
        layers, ones = [self.examples.inputs[clients]], np.ones((len(clients), 1))
        for matrix in weights:
            sums = layers[-1] @ matrix[:-1] + matrix[-1]
            layers.append(np.maximum(sums, 0.0))
        errors = np.exp(sums - sums.max(axis=1, keepdims=True))
        errors /= errors.sum(axis=1, keepdims=True)
        errors[np.arange(len(clients)), self.examples.labels[clients]] -= 1
        ends = np.cumsum([matrix.size for matrix in weights])
        gradients = np.empty((len(clients), ends[-1]))
        for inputs, matrix, end in zip(layers[-2::-1], weights[::-1], ends[::-1], strict=True):
            own = gradients[:, end - matrix.size : end].reshape(len(clients), *matrix.shape)
            np.einsum("ci,co->cio", np.hstack([inputs, ones]), errors, out=own)
            errors = (errors @ matrix[:-1].T) * (inputs > 0)
        return gradients


def round_seconds(case: Case) -> tuple[float, float]:
    """Return the seconds of a round of the training, and of the bare DP-SGD."""
    prepared = case.task(MANY).prepare(None)
    setting = case.task(MANY).training
    data = setting.federated_data(0)
    bare = BareDpSgd(data.cohort(np.arange(POPULATION)).examples, setting, case.widths)
    spent: dict[str, dict[int, list[float]]] = {"training": {FEW: [], MANY: []}, "bare": {FEW: [], MANY: []}}
    for _ in range(RUNS):
        for rounds in (FEW, MANY):
            plan = replace(prepared, epsilons=prepared.epsilons[:rounds])
            with tempfile.TemporaryDirectory() as folder:
                spent["training"][rounds].append(timed(partial(case.task(rounds, Path(folder)).run, plan))[1])
            spent["bare"][rounds].append(timed(partial(bare.run, rounds))[1])
    return _difference(spent["training"]), _difference(spent["bare"])


def _difference(seconds: Mapping[int, list[float]]) -> float:
    return (min(seconds[MANY]) - min(seconds[FEW])) / (MANY - FEW)


def command_seconds(case: Case) -> float:
    """Return the processor seconds of `quietbits train` with few rounds."""
    taken = []
    for _ in range(COMMANDS):
        with tempfile.TemporaryDirectory() as folder:
            spec = Path(folder) / "training.toml"
            spec.write_text(case.document(FEW))
            before = _children_seconds()
            command = [sys.executable, "-m", "quietbits", "train", str(spec), "--output", str(Path(folder) / "trained")]
            subprocess.run(command, check=True, capture_output=True)
            taken.append(_children_seconds() - before)
    return min(taken)


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print the time of a round and the fixed time of each training."""
    for case in CASES:
        ours, bare = round_seconds(case)
        fixed = command_seconds(case) - FEW * ours
        print(
            f"{case.words + ':':36s} {1e3 * ours:6.2f} ms a round, {ours / bare:5.2f} x bare DP-SGD ({1e3 * bare:.2f} ms); "
            f"{fixed:.2f} s fixed",
            flush=True,
        )


if __name__ == "__main__":
    main()
