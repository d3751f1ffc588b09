"""Simulations beside encoding alone, and tasks of a sweep beside bare simulations."""

import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from shared.processor_time import seconds

from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.analysis.simulation.mean import simulate_mean
from quietbits.analysis.simulation.populations import input_chunks
from quietbits.analysis.sweeps.run import run_sweep
from quietbits.analysis.sweeps.task import MeanTask, MechanismChoice
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task
from quietbits.progress import silent

CLIENTS, DIMENSION = 20_000, 100
NAMES = ("distributed-discrete-gaussian", "distributed-skellam", "poisson-binomial")
SMALL_CLIENTS, SMALL_DIMENSION, REPETITIONS, RUNS = 100, 16, 400, 3


def main() -> None:
    """Print a simulation's time over encoding alone, the first time and later, and a sweep's time over bare simulations."""
    vectors = np.random.default_rng(0).standard_normal((CLIENTS, DIMENSION))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for name in NAMES:
        mechanism = build_mechanism(name, Task(NormBall(DIMENSION, 2.0), CLIENTS, 4.0, 1e-5, "replace-one"))
        simulated = partial(simulate_mean, mechanism, [vectors], np.random.default_rng(1))
        first = seconds(simulated, 1)
        later = seconds(simulated, RUNS)
        encoded = seconds(partial(mechanism.encode, vectors, np.random.default_rng(1)), RUNS)
        print(f"simulate {name}: {first / encoded:.2f} x encoding alone the first time, then {later / encoded:.2f} x")
    task = Task(NormBall(SMALL_DIMENSION, 2.0), SMALL_CLIENTS, 4.0, 1e-5, "replace-one")
    tasks = [MeanTask(MechanismChoice.of(NAMES[0]), task, "sphere", repetition=number) for number in range(REPETITIONS)]
    mechanism = tasks[0].prepare(None).mechanism

    def simulate_all() -> None:
        for number in range(REPETITIONS):
            rng = np.random.default_rng(number)
            simulate_mean(mechanism, input_chunks("sphere", task.domain, SMALL_CLIENTS, rng), rng)

    for run in range(RUNS):
        bare = seconds(simulate_all, 1)
        with tempfile.TemporaryDirectory() as folder:
            start = time.process_time()
            run_sweep(tasks, Path(folder) / "sweep", on_step=silent)
            taken = time.process_time() - start
        kind = "first sweep of a process" if run == 0 else "another sweep"
        print(f"{kind}, a task: {1e3 * taken / REPETITIONS:.2f} ms, {taken / bare:.2f} x a bare simulation")


if __name__ == "__main__":
    main()
