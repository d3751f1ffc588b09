"""Mechanisms that only trainings have: bits, bias, variance, and what they reveal."""

from dataclasses import replace

import numpy as np
import pytest

from quietbits.analysis.training.rivals import RIVALS, training_entry
from quietbits.design.contracts.mechanism import VectorMechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task

OPTIONS = {
    "dp-rec-training": {"clip_ratio": 1.0, "sizes": "2,1", "population": 1000},
    "thresholded-sketch": {"sketch_dimension": 2, "rows": 1, "bits": 20},
}
BITS = {"none": 96, "quantised": 56, "dp-fedavg": 96, "sign-gaussian": 3, "dp-rec-training": 80}
CLIENTS = 20_000


def built(name: str) -> VectorMechanism:
    task = Task(NormBall(3, 2.0, 2.0), CLIENTS, 5.0, 1e-5, "replace-one")
    mechanism = training_entry(name).build(task, OPTIONS.get(name, {}))
    assert isinstance(mechanism, VectorMechanism)
    return mechanism


@pytest.mark.parametrize("name", [name for name in BITS if name != "dp-rec-training"])
def test_the_estimate_is_as_far_off_as_stated(name: str) -> None:
    mechanism = built(name)
    vectors = np.tile([1.2, -0.4, 0.1], (CLIENTS, 1))
    rng = np.random.default_rng(5)
    estimates = []
    for _ in range(4 if name == "dp-fedavg" else 2):
        parts = np.array_split(vectors, 3)
        aggregate = mechanism.aggregate(mechanism.encode(parts[0], rng))
        for part in parts[1:]:
            aggregate = mechanism.combine(aggregate, mechanism.aggregate(mechanism.encode(part, rng)))
        estimates.append(mechanism.decode(aggregate, CLIENTS))
    deviation = np.sqrt(mechanism.variance(vectors).mean() / CLIENTS / len(estimates))
    # Five standard deviations in every coordinate together, and the bias.
    assert np.linalg.norm(np.mean(estimates, axis=0) - vectors[0]) <= mechanism.bias_bound + 5 * deviation + 1e-6
    assert mechanism.bits_per_client == BITS[name]
    assert mechanism.variance(vectors).max() <= mechanism.worst_variance * (1 + 1e-12) or name == "quantised"


def test_variances_are_measured_ones() -> None:
    rng = np.random.default_rng(6)
    vector = np.array([1.2, -0.4, 0.1])
    for name, of_one in (("quantised", True), ("sign-gaussian", True)):
        mechanism = built(name)
        messages = mechanism.encode(np.tile(vector, (CLIENTS, 1)), rng)
        decoded = np.array([mechanism.decode(mechanism.aggregate(messages[[row]]), 1) for row in range(4000)])
        stated = mechanism.variance(vector[None])[0]
        assert decoded.var(axis=0).sum() == pytest.approx(stated, rel=0.1, abs=1e-9), (name, of_one)


def test_a_trusted_servers_noise_is_the_same_in_any_number_of_chunks() -> None:
    mechanism = replace(built("dp-fedavg"), clients=20)
    rng = np.random.default_rng(7)
    zeros = np.zeros((20, 3))
    for chunks in (1, 5):
        totals = [sum(mechanism.aggregate(mechanism.encode(part, rng)) for part in np.array_split(zeros, chunks)) for _ in range(300)]
        assert np.std(totals) == pytest.approx(mechanism.noise_deviation, rel=0.1)


def test_what_is_not_private_says_so_and_the_others_keep_their_budget() -> None:
    for entry in RIVALS:
        epsilon = built(entry.name).privacy().epsilon(1e-5, "replace-one")
        assert (epsilon <= 5.0) == (entry.name not in ("none", "quantised", "dp-rec-training"))


def test_other_names_are_refused() -> None:
    with pytest.raises(ValueError, match=r"mechanism must be one of none, quantised, dp-fedavg, .*, got 'hadamard-response'"):
        training_entry("hadamard-response")
