"""Tests of mechanisms only of trainings: bits, bias, variance, and privacy."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from quietbits.analysis.training.baselines import baselines, training_entry
from quietbits.analysis.training.federation import MessageSum
from quietbits.analysis.training.reference_mechanisms import rounded_within
from quietbits.design.contracts.mechanism import VectorMechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task
from quietbits.errors import NotFiniteError

OPTIONS = {
    "dp-rec-training": {"clip_ratio": 1.0, "sizes": "2,1", "population": 1000},
    "thresholded-sketch": {"sketch_dimension": 2, "rows": 1, "bits": 20},
}
BITS = {"none": 96, "quantised": 56, "dp-fedavg": 96, "sign-gaussian": 3, "dp-rec-training": 80}
CLIENTS = 20_000


def built(name: str) -> VectorMechanism:
    task = Task(NormBall(3, 2.0, 2.0), CLIENTS, 5.0, 1e-5, "replace-one")
    mechanism = training_entry(name).mechanism_for(task, OPTIONS.get(name, {}))
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
    # The mean error is within five standard deviations of all coordinates together, plus the bias.
    assert np.linalg.norm(np.mean(estimates, axis=0) - vectors[0]) <= mechanism.bias_bound + 5 * deviation + 1e-6
    assert mechanism.bits_per_client == BITS[name]
    assert mechanism.variance(vectors).max() <= mechanism.variance_bound * (1 + 1e-12) or name == "quantised"


def test_variances_are_measured_ones() -> None:
    rng = np.random.default_rng(6)
    vector = np.array([1.2, -0.4, 0.1])
    for name, of_one in (("quantised", True), ("sign-gaussian", True)):
        mechanism = built(name)
        messages = mechanism.encode(np.tile(vector, (CLIENTS, 1)), rng)
        decoded = np.array([mechanism.decode(mechanism.aggregate(messages[[row]]), 1) for row in range(4000)])
        stated = mechanism.variance(vector[None])[0]
        assert decoded.var(axis=0).sum() == pytest.approx(stated, rel=0.1, abs=1e-9), (name, of_one)


@pytest.mark.parametrize("reach", ["largest-coordinate", "clip-norm"])
@pytest.mark.parametrize("bits", [2, 4, 8, 16])
def test_levels_stay_within_the_clip_norm_whatever_the_vector(bits: int, reach: str) -> None:
    """No message is longer than the clip norm, and levels are whole numbers."""
    rng = np.random.default_rng(8)
    ball = NormBall(200, 2.0, 0.3)
    vectors = ball.clip(rng.normal(size=(60, 200)) * 10.0 ** rng.uniform(-4, 4, size=(60, 1)))
    vectors = np.vstack([vectors, np.zeros(200), np.eye(200)[:3] * 0.3, np.full(200, 0.3 / np.sqrt(200)), -np.eye(200)[:1] * 1e-30])
    largest = np.abs(vectors).max(axis=1)
    sent = rounded_within(vectors, largest if reach == "largest-coordinate" else np.full(len(vectors), 0.3), bits, 0.3, rng)
    assert max(sum(Fraction(value) ** 2 for value in row) for row in sent.tolist()) <= Fraction(0.3) ** 2
    for row in sent:
        smallest = np.abs(row)[row != 0].min(initial=np.inf)
        levels = row / smallest if np.isfinite(smallest) else row
        assert np.abs(levels).max() <= 2 ** (bits - 1) - 1 + 1e-6
    assert not sent[60].any()


@pytest.mark.parametrize("reach", ["largest-coordinate", "clip-norm"])
def test_eight_bits_cost_no_epsilon_and_are_as_far_off_as_stated(reach: str) -> None:
    task = Task(NormBall(300, 2.0, 2.0), 500, 3.0, 1e-5, "replace-one")
    floats, levels = (training_entry("dp-fedavg").mechanism_for(task, {"bits": bits, "reach": reach}) for bits in (32, 8))
    assert isinstance(floats, VectorMechanism)
    assert isinstance(levels, VectorMechanism)
    assert levels.privacy().epsilon(1e-5, "replace-one") == floats.privacy().epsilon(1e-5, "replace-one") <= 3.0
    assert (levels.bits_per_client, floats.bits_per_client) == (8 * 300 + 32, 32 * 300)
    rng = np.random.default_rng(9)
    # The sum has hardly any noise, so that the rounding error shows.
    quiet = replace(levels, noise_multiplier=1e-3, clients=10**9)  # type: ignore[type-var]
    vector = rng.normal(size=300) / 10
    for x in (vector, 2.0 * vector / np.linalg.norm(vector)):
        sent = quiet.encode(np.tile(x, (4000, 1)), rng)
        error = np.sum((sent - x) ** 2, axis=1).mean()
        rounding = float(quiet.variance(x[None])[0])
        assert error <= rounding * 1.02
        assert np.linalg.norm(sent.mean(axis=0) - x) <= quiet.bias_bound
        assert rounding <= quiet.variance_bound
        # Far inside the ball no vector is shortened, and the only error is unbiased rounding.
        if np.linalg.norm(x) < 1.8:
            assert error == pytest.approx(rounding, rel=0.02)
            assert np.linalg.norm(sent.mean(axis=0) - x) <= 5 * np.sqrt(rounding / 4000)
    with pytest.raises(ValueError, match="bits must be 32, or from 2 to 16, for dp-fedavg, got 20"):
        training_entry("dp-fedavg").mechanism_for(task, {"bits": 20})


def test_sums_without_messages_are_the_sums_of_messages() -> None:
    """The sum of several blocks of rows has the same bits as that of the messages; levels need messages."""
    task = Task(NormBall(3000, 2.0, 1.5), 40, 4.0, 1e-5, "add-or-remove-one")
    mechanism = training_entry("dp-fedavg").mechanism_for(task, {})
    vectors = np.random.default_rng(0).standard_normal((40, 3000)) * np.linspace(0, 0.1, 40)[:, None]
    total = mechanism.aggregated(vectors, np.random.default_rng(1))
    assert total.tobytes() == mechanism.aggregate(mechanism.encode(vectors, np.random.default_rng(1))).tobytes()
    # Each message would have whole bytes: 32 bits a coordinate, and 9 further bits.
    messages = MessageSum(mechanism, further_bits=9)
    messages.add(vectors, np.random.default_rng(1))
    assert messages.bytes == 40 * (4 * 3000 + 2)
    assert replace(mechanism, bits=8).aggregated(vectors, np.random.default_rng(1)) is None
    # The shape of no vectors is checked where messages are made.
    assert mechanism.aggregated(np.empty((0, 7)), np.random.default_rng(1)) is None
    with pytest.raises(NotFiniteError, match="vectors must hold finite numbers only"):
        mechanism.aggregated(np.where(vectors == vectors[20, 5], np.nan, vectors), np.random.default_rng(1))


def test_a_trusted_servers_noise_is_the_same_in_any_number_of_chunks() -> None:
    mechanism = replace(built("dp-fedavg"), clients=20)
    rng = np.random.default_rng(7)
    zeros = np.zeros((20, 3))
    for chunks in (1, 5):
        totals = [sum(mechanism.aggregate(mechanism.encode(part, rng)) for part in np.array_split(zeros, chunks)) for _ in range(300)]
        assert np.std(totals) == pytest.approx(mechanism.noise_deviation, rel=0.1)


def test_what_is_not_private_says_so_and_the_others_keep_their_budget() -> None:
    for entry in baselines():
        epsilon = built(entry.name).privacy().epsilon(1e-5, "replace-one")
        assert (epsilon <= 5.0) == (entry.name not in ("none", "quantised", "dp-rec-training"))


def test_other_names_are_refused() -> None:
    with pytest.raises(ValueError, match=r"mechanism must be one of none, quantised, dp-fedavg, .*, got 'hadamard-response'"):
        training_entry("hadamard-response")
