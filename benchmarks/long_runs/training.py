"""CPU seconds of trainings: softmax on digits, rounds of 600 clients with one image each.

The benchmark extrapolates 500 rounds of each mechanism from the rounds that fit into a few seconds. The plain average draws clients,
computes all their gradients and their mean with numpy, takes a step, and measures its accuracy, which the engine's table also has for each
round: the plain average is the physical limit. The engine's overhead is a round's time beyond the plain average and beyond the mechanism's
own encoding, aggregation and decoding of the same updates in the same chunks, relative to the latter; the rounds between two checkpoints
share a checkpoint's time. Rounds take turns, so that other work on the machine slows down all alike; the benchmark prints the median round.
A fit for a few mechanisms gives the growth of a round with the number of its clients.
"""

import sys
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import softmax

sys.path.append(str(Path(__file__).parents[1]))
from shared.growth import slope
from shared.physical_limit import beside_limit
from shared.processor_time import timed

from quietbits.analysis.datasets.federated_data import Examples
from quietbits.analysis.training.baselines import entries
from quietbits.analysis.training.checkpoint import Checkpoint
from quietbits.analysis.training.federation import Federation, KeptExamples, MessageSum, update_chunks
from quietbits.analysis.training.setting import TrainingSetting
from quietbits.analysis.training.spec import CHECKPOINT_EVERY
from quietbits.analysis.training.task import TrainedMechanism, TrainingTask
from quietbits.design.contracts.mechanism import VectorMechanism

CLIENTS, ROUNDS, MEASURED = 600, 500, 100
# Rounds of FEWER_CLIENTS and of all clients give the exponent of growth for the mechanisms in GROWING.
FEWER_CLIENTS, GROWING = (75, 150, 300), ("none", "gaussian", "distributed-skellam")
# After SECONDS for a mechanism, and at least FEWEST rounds, no further round is measured.
SECONDS, FEWEST = 6.0, 4
LOCAL = {"round_epsilon": 4.0}
SUM = {"epsilon": 50.0, "secret_sampling": False}
# A checkpoint is measured this many times; the rounds between two checkpoints share its time.
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
USUAL = {"clients": 1442, "delta": 1e-5, "adjacency": "replace-one"}


@dataclass(frozen=True)
class Measured:
    """CPU seconds of preparation and of a round: engine, mechanism, and plain average."""

    prepared: float
    engine: float
    encode: float
    plain: float


def plain_round(everyone: Examples, test: Examples, weights: np.ndarray, rng: np.random.Generator, clients: int) -> np.ndarray:
    """Return the weights after a step of gradient descent on the mean gradient of drawn clients."""
    chosen = rng.choice(len(everyone), clients, replace=False)
    images = everyone.inputs[chosen]
    errors = softmax(images @ weights[:-1] + weights[-1], axis=1)
    errors[np.arange(clients), everyone.labels[chosen]] -= 1
    gradients = np.einsum("ci,co->cio", images, errors)
    weights = weights - np.vstack([gradients.mean(axis=0), errors.mean(axis=0)])
    np.mean((test.inputs @ weights[:-1] + weights[-1]).argmax(axis=1) == test.labels)
    return weights


def checkpoint_seconds(run: Federation) -> float:
    """Return the seconds of a checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "state.npz", CHECKPOINT_EVERY, b"key")
        return float(np.median([timed(lambda: checkpoint.save(run._arrays()))[1] for _ in range(CHECKPOINTS)]))


def summed(mechanism: VectorMechanism, number: int, chunks: list[np.ndarray], random_words: np.random.Generator) -> None:
    """Encode, aggregate and decode the updates of a round."""
    total = MessageSum(mechanism.renewed(number))
    for chunk in chunks:
        total.add(chunk, random_words)
    total.total(650)


def measure(name: str, clients_per_round: int) -> Measured:
    """Measure a mechanism in rounds of a number of clients."""
    options, fields = CASES[name]
    setting = TrainingSetting(rounds=ROUNDS, clients_per_round=clients_per_round, **USUAL, **fields)
    task = TrainingTask(setting, TrainedMechanism(name, tuple(options.items())), 0)
    short = replace(task, training=replace(task.training, rounds=MEASURED + 1))
    plan, prepared = timed(partial(task.prepare, None))
    run = Federation(short.training, plan, short.training.federated_data(0), 0, name)
    everything = run.data.cohort(np.arange(1442)).examples
    weights, rng, words = np.zeros((65, 10)), np.random.default_rng(0), np.random.default_rng(1)
    network, kept = short.training.network(run.data), KeptExamples(run.data)
    spent = {"engine": [], "encode": [], "plain": []}
    for number in range(1, MEASURED + 2):
        if number > FEWEST and sum(map(sum, spent.values())) > SECONDS:
            break
        spent["engine"].append(timed(partial(run._round, number))[1])
        clients = short.training.cohorts.draw(number, rng, repeats=name == "dp-rec-training")
        parameters = run.state.parameters.astype(float)
        chunks = [chunk.copy() for chunk, _ in update_chunks(run._local, network, parameters, kept, clients, rng)]
        spent["encode"].append(timed(partial(summed, plan.mechanism, number, chunks, words))[1])
        weights, taken = timed(partial(plain_round, everything, run.data.test, weights, rng, clients_per_round))
        spent["plain"].append(taken)
    # The first round is omitted, because it allocates memory.
    engine, encode, plain = (float(np.median(spent[part][1:])) for part in ("engine", "encode", "plain"))
    return Measured(prepared, engine + checkpoint_seconds(run) / CHECKPOINT_EVERY, encode, plain)


def main() -> None:
    """Run the benchmark."""
    if missing := set(entries()) - set(CASES):
        raise ValueError(f"mechanisms without a case: {', '.join(sorted(missing))}")
    for name in CASES:
        measured = measure(name, CLIENTS)
        power = None
        if name in GROWING:
            times = [*(measure(name, clients).engine for clients in FEWER_CLIENTS), measured.engine]
            power = slope([*FEWER_CLIENTS, CLIENTS], times)
        print(
            f"{name}: {ROUNDS * measured.engine:.1f} s for {ROUNDS} rounds; encoding {ROUNDS * measured.encode:.1f} s, "
            f"overhead {100 * (measured.engine - measured.encode - measured.plain) / measured.encode:.0f} % of it; "
            f"plain average {1e3 * measured.plain:.2f} ms a round; {beside_limit(measured.engine, measured.plain, power)}; "
            f"prepared in {measured.prepared:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
