"""Speed of trainings: softmax on digits, rounds of 600 clients with one image each, in CPU seconds.

For each mechanism: 500 rounds, from those that fit into a few seconds. The plain average draws clients, computes all their gradients and
their mean with numpy, takes a step, and measures its accuracy, which the engine's table has for each round, too. The engine's overhead is
what a round takes beyond that, and beyond the mechanism's own encoding, aggregation and decoding of the same updates in the same chunks,
over the latter; a checkpoint's time is shared by the rounds between two of them. Rounds take turns, so that other work on the machine slows
down all alike; what is printed is the median round.
"""

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.special import softmax

from quietbits.analysis.datasets.federated_data import Examples
from quietbits.analysis.training.checkpoint import Checkpoint
from quietbits.analysis.training.federation import Federation
from quietbits.analysis.training.local_training import KeptExamples, update_chunks
from quietbits.analysis.training.message_sum import MessageSum
from quietbits.analysis.training.rivals import entries
from quietbits.analysis.training.setting import TrainingSetting
from quietbits.analysis.training.spec import CHECKPOINT_EVERY
from quietbits.analysis.training.task import TrainedMechanism, TrainingTask

CLIENTS, ROUNDS, MEASURED = 600, 500, 100
# Of a mechanism, after which no further round is measured, once there are a few.
SECONDS, FEWEST = 6.0, 4
LOCAL = {"round_epsilon": 4.0}
SUM = {"epsilon": 50.0, "secret_sampling": False}
# Measured a few times, and divided by the rounds between two of them.
CHECKPOINTS = 5
CASES = {
    "none": ({}, {}),
    "quantised": ({}, {}),
    "dp-fedavg": ({"noise_multiplier": 5.0}, {}),
    "sign-gaussian": ({"noise_multiplier": 1.0}, {}),
    "gaussian": ({}, LOCAL),
    "laplace": ({}, LOCAL),
    "cldp": ({}, LOCAL),
    "mvu": ({"bits_in": 5, "bits_out": 1, "metric": "l1"}, LOCAL),
    "skellam": ({"bits": 16}, LOCAL),
    "sqkr": ({}, LOCAL),
    "privunit": ({}, LOCAL),
    "privunit-g": ({}, LOCAL),
    "fast-projunit": ({}, LOCAL),
    "projunit": ({}, LOCAL),
    "rotating-simplex": ({}, LOCAL),
    "minimal-random-coding": ({}, LOCAL),
    "distributed-discrete-gaussian": ({"bits": 16}, SUM),
    "distributed-skellam": ({"bits": 16}, SUM),
    "cpsgd": ({"bits": 24}, SUM),
    "sketched-discrete-gaussian": ({"bits": 16, "sketch_dimension": 165}, SUM),
    "sparse-discrete-gaussian": ({"sparsity": 10}, SUM),
    "poisson-binomial": ({}, {"epsilon": 50.0}),
    "central-sketch": ({"sketch_dimension": 165}, SUM),
    "dp-rec": ({}, LOCAL),
    "dp-rec-training": ({"clip_ratio": 1.0}, {"sampling": "with-replacement", "download": "history"}),
    "minimal-random-coding-plain": ({}, LOCAL),
    "poisson-private-representation": ({}, LOCAL),
}
USUAL = {"clients": 1442, "clients_per_round": CLIENTS, "delta": 1e-5, "adjacency": "replace-one"}


def plain_round(everyone: Examples, test: Examples, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the weights after a step of gradient descent on a draw of the clients: the mean of all their gradients."""
    chosen = rng.choice(len(everyone), CLIENTS, replace=False)
    images = everyone.inputs[chosen]
    errors = softmax(images @ weights[:-1] + weights[-1], axis=1)
    errors[np.arange(CLIENTS), everyone.labels[chosen]] -= 1
    gradients = np.einsum("ci,co->cio", images, errors)
    weights = weights - np.vstack([gradients.mean(axis=0), errors.mean(axis=0)])
    np.mean((test.inputs @ weights[:-1] + weights[-1]).argmax(axis=1) == test.labels)
    return weights


def checkpoint_seconds(run: Federation) -> float:
    """Return the time of one checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, spent = Checkpoint(Path(folder) / "state.npz", CHECKPOINT_EVERY, b"key"), []
        for _ in range(CHECKPOINTS):
            start = time.process_time()
            checkpoint.save(run._arrays())
            spent.append(time.process_time() - start)
    return float(np.median(spent))


def main() -> None:
    """Run the benchmark."""
    if missing := set(entries()) - set(CASES):
        raise ValueError(f"mechanisms without a case: {', '.join(sorted(missing))}")
    for name, (options, fields) in CASES.items():
        started = time.process_time()
        task = TrainingTask(TrainingSetting(rounds=ROUNDS, **USUAL, **fields), TrainedMechanism(name, tuple(options.items())), 0)
        short = replace(task, training=replace(task.training, rounds=MEASURED + 1))
        plan = task.prepare(None)
        prepared = time.process_time() - started
        run = Federation(short.training, plan, short.training.federated_data(0), 0, name)
        everything = run.data.cohort(np.arange(1442)).examples
        weights, rng, words = np.zeros((65, 10)), np.random.default_rng(0), np.random.default_rng(1)
        network, kept = short.training.network(run.data), KeptExamples(run.data)
        spent = {"engine": [], "encode": [], "plain": []}
        for number in range(1, MEASURED + 2):
            if number > FEWEST and sum(map(sum, spent.values())) > SECONDS:
                break
            start = time.process_time()
            run._round(number)
            spent["engine"].append(time.process_time() - start)
            clients = short.training.cohorts.draw(number, rng, repeats=name == "dp-rec-training")
            parameters = run.state.parameters.astype(float)
            chunks = [chunk.copy() for chunk in update_chunks(run._local, network, parameters, kept, clients, rng)]
            start = time.process_time()
            total = MessageSum(plan.mechanism.renewed(number))
            for chunk in chunks:
                total.add(chunk, words)
            total.total(650)
            spent["encode"].append(time.process_time() - start)
            start = time.process_time()
            weights = plain_round(everything, run.data.test, weights, rng)
            spent["plain"].append(time.process_time() - start)
        # Without the first round, in which memory is allocated.
        engine, encode, plain = (float(np.median(spent[part][1:])) for part in ("engine", "encode", "plain"))
        engine += checkpoint_seconds(run) / CHECKPOINT_EVERY
        overhead = (engine - encode - plain) / encode
        print(
            f"{name}: {ROUNDS * engine:.1f} s for {ROUNDS} rounds; encoding {ROUNDS * encode:.1f} s, "
            f"overhead {100 * overhead:.0f} % of it; {engine / plain:.1f} x the plain average ({1e3 * plain:.2f} ms a round); "
            f"prepared in {prepared:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
