"""Tests of the coordinate-subsampled Gaussian.

Points under test: errors, bias and bits against predictions, privacy of enumerated small cases, audits, calibration, and plans.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from quietbits.analysis.audits.mechanism_audit import audit
from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.analysis.planner.plan import plan
from quietbits.design.central.subsampled_gaussian import SubsampledGaussianMechanism, calibrate_subsampled_gaussian
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Budget, Task
from quietbits.errors import InfeasibleError

BUDGET = Budget(2.0, 1e-5, "add-or-remove-one")


def test_errors_bias_and_bits_are_as_predicted() -> None:
    mechanism = calibrate_subsampled_gaussian(NormBall(16, 2.0, 3.0), 40, 3, 0.3, 1.2, BUDGET)
    rng = np.random.default_rng(1)
    vectors = mechanism.ball.clip(rng.normal(size=(40, 16)))
    draws = [mechanism.encode(vectors, rng) for _ in range(3000)]
    errors = np.array([mechanism.decode(mechanism.aggregate(messages), 40) for messages in draws]) - vectors.mean(axis=0)
    bias = mechanism.known_bias(vectors).mean(axis=0)
    squares = np.sum((errors - bias) ** 2, axis=1)
    assert np.linalg.norm(bias) > 0
    assert squares.mean() == pytest.approx(float(mechanism.variance(vectors).mean()) / 40, abs=5 * squares.std() / math.sqrt(3000))
    assert np.all(np.abs(errors.mean(axis=0) - bias) < 5 * errors.std(axis=0) / math.sqrt(3000))
    bits = np.mean([mechanism.bits_of_messages(messages).mean() for messages in draws])
    assert bits == pytest.approx(mechanism.bits_per_client, rel=0.01) == 0.3 * 16 * 3


@pytest.mark.parametrize("factor", [1.0, 2.0, 4.0])
def test_the_bias_over_seeds_is_below_its_bound(factor: float) -> None:
    ball, size = NormBall(64, 2.0), 2000
    mechanism = SubsampledGaussianMechanism(ball, 10, 3, 0.3, factor / 8, 4.0, 1e-5)
    vector = np.eye(64)[:1]
    losses = [np.sum(replace(mechanism, rotation_seed=seed).known_bias(vector) ** 2) for seed in range(size)]
    assert math.sqrt(np.mean(losses)) <= mechanism.bias_bound <= mechanism.seed_bias_bound == 1.0
    assert replace(mechanism, coordinate_clip=1.0).bias_bound == 0.0


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("angle", [0.0, 0.4, math.pi / 4])
def test_no_enumerated_case_exceeds_the_guarantee(share: float, angle: float) -> None:
    mechanism = SubsampledGaussianMechanism(NormBall(2, 2.0), 1, 3, share, 1.0, 2.0, 1e-3)
    deviation = mechanism.noise_multiplier * share
    edges = np.linspace(-8 * deviation, 8 * deviation + 1, 400)

    def cells(shift: float) -> np.ndarray:
        return np.append(np.diff(stats.norm.cdf(edges, shift, deviation), prepend=0.0), stats.norm.sf(edges[-1], shift, deviation))

    without, sent = np.ones(1), np.ones(1)
    for coordinate in (math.cos(angle), math.sin(angle)):
        place = coordinate * 3
        below = min(math.floor(place), 2)
        rounded = (below + 1 - place) * cells(below / 3) + (place - below) * cells((below + 1) / 3)
        without = np.outer(without, cells(0.0)).ravel()
        sent = np.outer(sent, (1 - share) * cells(0.0) + share * rounded).ravel()
    factor = math.exp(mechanism.guarantee.epsilon)
    exact = max(np.maximum(0, a - factor * b).sum() for a, b in ((without, sent), (sent, without)))
    assert exact <= 1e-3
    # At half of that epsilon the guarantee does not hold for some of the vectors, which the test above would notice.
    if share == 0.5 and angle == 0.0:
        half = math.exp(mechanism.guarantee.epsilon / 2)
        assert np.maximum(0, sent - half * without).sum() > 1e-3


def test_audits_stay_below_the_guarantee_and_refute_less_noise() -> None:
    task = Task(NormBall(2, 2.0), 2, 2.0, 1e-2, "add-or-remove-one")
    mechanism = build_mechanism("subsampled-gaussian", task, {"coordinate_share": 0.9})
    result = audit(mechanism, 3000, np.random.default_rng(3), delta=1e-2)
    assert not result.refuted
    assert result.measured.epsilon_lower_bound > 0.6
    quiet = replace(mechanism, noise_multiplier=mechanism.noise_multiplier / 3)
    assert audit(quiet, 3000, np.random.default_rng(3), delta=1e-2).measured.refutes(2.0)


def test_other_adjacencies_and_too_many_fine_steps_are_refused() -> None:
    with pytest.raises(InfeasibleError, match="adjacency must be add-or-remove-one for subsampled-gaussian, got replace-one"):
        calibrate_subsampled_gaussian(NormBall(4, 2.0), 3, 3, 0.5, 4.0, replace(BUDGET, adjacency="replace-one"))
    with pytest.raises(ValueError, match="noise_multiplier must be larger for 1000000000 clients"):
        SubsampledGaussianMechanism(NormBall(4, 2.0), 10**9, 3, 1e-6, 1.0, 0.001, 1e-5)


def test_many_rounds_of_long_vectors_cost_little_more_than_unsampled_noise() -> None:
    ball, clients = NormBall(2**17, 2.0), 10_000
    task = Task(ball, clients, 4.0, 1e-6, "add-or-remove-one", rounds=10)
    central = build_mechanism("central-gaussian", task).error().of_mean(clients)
    mechanism = build_mechanism("subsampled-gaussian", task, {"coordinate_share": 1 / 8})
    assert mechanism.bits_per_client == ball.dimension / 2
    assert central < mechanism.error().of_mean(clients) < 1.25 * central < 0.1


def test_plans_rank_it_by_its_true_error() -> None:
    # One round of many clients: sampling costs more than the noise.
    rows = plan(Task(NormBall(4096, 2.0), 10_000, 4.0, 1e-6, "add-or-remove-one"), trust="central").set_index("name")
    errors = rows["predicted_error"]
    assert errors["subsampled-gaussian"] > 1.5 * errors["central-gaussian"]
    assert list(rows.index).index("subsampled-gaussian") > list(rows.index).index("central-gaussian")
