"""Audits refute no guarantee of the registry, and detect too little noise.

Seeds are fixed. A lower bound exceeds the true epsilon with probability 1e-3 or 1e-6 per audit, by the stated confidence.
"""

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quietbits
from quietbits.analysis.audits.dp_rec_audit import quadrature_delta
from quietbits.analysis.audits.mechanism_audit import MechanismAudit, audit, neighbours
from quietbits.analysis.audits.privacy_audit import AuditResult
from quietbits.analysis.audits.secure_sum_audit import secure_sum_score
from quietbits.design.contracts.guarantee import Guarantee
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.frequencies.hadamard_response import HadamardResponse
from quietbits.design.local.laplace import LaplaceMechanism, VectorLaplaceMechanism
from quietbits.design.local.unit_vectors.privunit_g import PrivUnitGMechanism
from quietbits.design.relative_entropy.dp_rec import DpRecMechanism
from quietbits.design.relative_entropy.group_layout import uniform_layout
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.table_mean import TableMeanMechanism
from quietbits.solvers.divergences.discrete_gaussian_divergence import summed_discrete_gaussian_losses

# Two clients have one coordinate and a norm of eight whole steps, so rounding is not random, and epsilon is known exactly.
PAIR = DistributedDiscreteGaussianMechanism(NormBall(1, 2.0, 8.0), clients=2, bits=10, granularity=1.0, local_sigma=6.0, delta=1e-2)


def exact_epsilon(mechanism: DistributedDiscreteGaussianMechanism, delta: float) -> float:
    sigma, shift = mechanism.local_sigma / mechanism.granularity, mechanism.ball.clip_norm / mechanism.granularity
    return summed_discrete_gaussian_losses(mechanism.clients, sigma, round(shift)).epsilon(delta)


@pytest.mark.parametrize(("delta", "share"), [(1e-2, 0.9), (1e-3, 0.8)])
@pytest.mark.parametrize("local_sigma", [6.0, 12.0])
def test_the_distributed_discrete_gaussian_is_measured_against_its_exact_epsilon(local_sigma: float, delta: float, share: float) -> None:
    mechanism = replace(PAIR, local_sigma=local_sigma, delta=delta)
    exact = exact_epsilon(mechanism, delta)
    result = audit(mechanism, 1_000_000, rng(4), confidence=1 - 1e-6).measured
    assert share * exact < result.epsilon_lower_bound <= exact <= mechanism.guarantee.epsilon


def test_too_little_noise_is_found_out() -> None:
    # The cheating mechanisms have half the noise, twice the norm, or the noise of one client instead of two.
    claim = PAIR.guarantee.epsilon
    assert not audit(PAIR, 200_000, rng(5)).refuted
    for forgetful in (
        replace(PAIR, local_sigma=3.0),
        replace(PAIR, ball=NormBall(1, 2.0, 16.0)),
        replace(PAIR, clients=1),
    ):
        result = audit(forgetful, 200_000, rng(5)).measured
        assert result.refutes(claim)
        assert not result.refutes(exact_epsilon(forgetful, 1e-2))


def test_a_larger_delta_takes_something_off() -> None:
    # A shift of 8 with standard deviation 6 sqrt(2) has total variation 0.36, so larger deltas need no epsilon.
    deltas = (1e-3, 1e-2, 0.1, 0.3, 0.4)
    bounds = [audit(PAIR, 100_000, rng(9), delta=delta).measured.epsilon_lower_bound for delta in deltas]
    assert bounds[:-1] == sorted(set(bounds[:-1]), reverse=True)
    assert all(bound <= exact_epsilon(PAIR, delta) for bound, delta in zip(bounds, deltas, strict=True))
    assert bounds[-1] == 0.0 < bounds[-2]


def test_the_same_seed_gives_the_same_audit() -> None:
    assert audit(PAIR, 1000, rng(10)) == audit(PAIR, 1000, rng(10))
    assert audit(PAIR, 1000, rng(10)) != audit(PAIR, 1000, rng(11))


def test_neighbours_are_as_far_apart_as_the_adjacency_lets_them() -> None:
    mechanism = DistributedDiscreteGaussianMechanism(
        NormBall(2, 2.0, 5.0), clients=3, bits=10, granularity=1.0, local_sigma=6.0, delta=1e-2
    )
    pair = neighbours(mechanism)
    np.testing.assert_array_equal(pair.first, [[5, 0], [0, 0], [0, 0]])
    np.testing.assert_array_equal(pair.second, np.zeros((3, 2)))
    pair = neighbours(mechanism, others="same", direction=[3.0, -4.0])
    np.testing.assert_allclose(pair.first, [[3, -4]] * 3, rtol=1e-15)
    np.testing.assert_allclose(pair.second, [[0, 0], [3, -4], [3, -4]], rtol=1e-15)
    # Replace-one neighbours hold opposite vectors.
    pair = neighbours(replace(mechanism, adjacency="replace-one"))
    np.testing.assert_array_equal(pair.first, [[5, 0], [0, 0], [0, 0]])
    np.testing.assert_array_equal(pair.second, [[-5, 0], [0, 0], [0, 0]])


def test_neighbours_of_one_message_are_the_ends_of_the_domain() -> None:
    pair = neighbours(LaplaceMechanism(1.0, (2.0, 5.0)))
    assert (pair.first, pair.second) == (5.0, 2.0)
    for norm, edge in ((1.0, [3.0, 0.0]), (2.0, [3.0, 0.0]), (np.inf, [3.0, 3.0])):
        pair = neighbours(VectorLaplaceMechanism(1.0, NormBall(2, norm, 3.0)))
        np.testing.assert_array_equal(pair.first, edge)
        np.testing.assert_array_equal(pair.second, -pair.first)
    pair = neighbours(VectorLaplaceMechanism(1.0, NormBall(2, 1.0, 3.0)), direction=[1.0, -2.0])
    np.testing.assert_allclose(pair.first, [1.0, -2.0], rtol=1e-15)


def test_an_absent_item_of_a_message_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = HadamardResponse(1.0, 10, 4)
    pair = neighbours(mechanism)
    assert (pair.first, pair.second) == (0, 9)
    absent = replace(mechanism.guarantee, adjacency="add-or-remove-one")
    monkeypatch.setattr(HadamardResponse, "guarantee", absent)
    with pytest.raises(ValueError, match="adjacency must be replace-one for items whose messages are seen, got 'add-or-remove-one'"):
        neighbours(mechanism)


@pytest.mark.parametrize("clients", [1, 3])
def test_the_score_is_the_projection_of_the_estimate(clients: int) -> None:
    mechanism = DistributedDiscreteGaussianMechanism(NormBall(5, 2.0, 9.0), clients, bits=20, granularity=0.5, local_sigma=6.0, delta=1e-2)
    pair = neighbours(mechanism, direction=[1.0, 2.0, 0.0, -1.0, 0.5])
    first, second = pair.first, pair.second
    scores = np.asarray(secure_sum_score(mechanism, first, second)(first, 4, rng(12)))
    messages = mechanism.encode(np.tile(first, (4, 1)), rng(12)).reshape(4, clients, 8)
    estimates = np.array([mechanism.decode(mechanism.aggregate(message), clients) for message in messages])
    expected = estimates @ (first[0] - second[0])
    np.testing.assert_allclose(scores - scores[0], expected - expected[0], rtol=1e-9, atol=1e-9)


def test_rounds_are_drawn_in_blocks_without_a_difference_in_their_distribution() -> None:
    # 300 000 rounds of two clients and four coordinates take three blocks. Means agree within 5 sigma.
    mechanism = DistributedDiscreteGaussianMechanism(NormBall(4, 2.0, 8.0), 2, bits=20, granularity=1.0, local_sigma=6.0, delta=1e-2)
    pair = neighbours(mechanism)
    score = secure_sum_score(mechanism, pair.first, pair.second)
    scores = np.asarray(score(pair.first, 300_000, rng(13)))
    assert scores.shape == (300_000,)
    thirds = scores.reshape(3, -1).mean(axis=1)
    assert np.ptp(thirds) < 5 * math.sqrt(2) * scores.std() / math.sqrt(100_000)


def test_a_population_of_another_size_is_refused() -> None:
    pair = neighbours(PAIR)
    with pytest.raises(ValueError, match="clients of the population must be a whole number from 2 to 2, got 3"):
        secure_sum_score(PAIR, pair.first, pair.second)(np.zeros((3, 1)), 1, rng(0))


def test_the_sum_tells_less_where_it_wraps() -> None:
    # Modulo 16, noise with a standard deviation of 8.5 is nearly uniform, so the sum reveals less than the stated guarantee.
    wide, narrow = (audit(replace(PAIR, bits=bits), 400_000, rng(15), delta=1e-3).measured for bits in (10, 4))
    assert narrow.epsilon_lower_bound < 0.5 < 2 < wide.epsilon_lower_bound


# Mechanisms that state a smaller epsilon than they have are refuted, and the measured bounds stay below the true epsilon.


class LoudTable(TableMeanMechanism):
    guarantee = Guarantee(1.5, "replace-one", "local")


class LoudLaplace(LaplaceMechanism):
    guarantee = Guarantee(1.5, "replace-one", "local")


class LoudUnit(PrivUnitGMechanism):
    guarantee = Guarantee(1.5, "replace-one", "local")


class LoudCode(DpRecMechanism):
    guarantee = Guarantee(0.3, "replace-one", "local", delta=1e-2)


@pytest.mark.parametrize(
    ("mechanism", "repetitions"),
    [
        (LoudTable(generalised_randomised_response(2.0, 2)), 25_000),
        (LoudLaplace(2.0, (0.0, 1.0)), 25_000),
        (LoudUnit(2.0, NormBall(3, 2.0)), 25_000),
        (LoudCode(NormBall(2, 2.0), 1.0, uniform_layout(2, 2, 3), 1e-2), 1000),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_promise_that_is_not_kept_is_refuted(mechanism: Mechanism, repetitions: int) -> None:
    result = audit(mechanism, repetitions, rng(17), confidence=1 - 1e-6)
    assert result.refuted
    assert result.measured.epsilon_lower_bound > mechanism.guarantee.epsilon
    # The audit converts a guarantee to another delta by the mechanism's own account.
    assert not audit(mechanism, repetitions, rng(17), delta=0.05, confidence=1 - 1e-6).refuted


def test_the_coder_of_dp_rec_is_measured_against_its_exact_delta() -> None:
    # With two samples and one coordinate, delta between opposite vectors is known at every epsilon.
    mechanism = DpRecMechanism(NormBall(1, 2.0), clip_ratio=1.0, layout=uniform_layout(1, 1, 1), delta=0.05)
    low, high = 0.0, 4.0
    # The bisection ends at a relative width of 2**-7; the bound must be within a share of the true epsilon.
    for _ in range(9):
        middle = (low + high) / 2
        low, high = (middle, high) if quadrature_delta(1.0, -1.0, 2, middle) > 0.05 else (low, middle)
    result = audit(mechanism, 5000, rng(18))
    assert high == pytest.approx(2.12, abs=0.02)
    assert 0.7 * high < result.measured.epsilon_lower_bound <= low < result.claim.epsilon


def test_a_score_of_messages_is_that_of_their_estimates() -> None:
    # Scores of uncompressed messages equal the contract's default scores up to a factor.
    for mechanism in (LaplaceMechanism(1.0, (0.0, 1.0)), PrivUnitGMechanism(1.0, NormBall(3, 2.0))):
        pair = neighbours(mechanism)
        messages = mechanism.encode(np.stack([pair.first] * 20), rng(19))
        fast, general = (
            score(messages)
            for score in (mechanism.message_score(pair.first, pair.second), Mechanism.message_score(mechanism, pair.first, pair.second))
        )
        np.testing.assert_allclose(general / fast, general[0] / fast[0], rtol=1e-12)


def test_impossible_letters_tell_all() -> None:
    # Each input has letters that the other input never sends, so no finite epsilon holds.
    @dataclass(frozen=True, eq=False)
    class Plain:
        weights = ((1, 0), (0, 1))
        bits_per_client = 1.0

    class Honest(TableMeanMechanism):
        interval = (0.0, 1.0)
        guarantee = Guarantee(5.0, "replace-one", "local")

        def encode(self, values: Any, words: Any) -> np.ndarray:  # noqa: ARG002 - nothing is drawn
            return np.asarray(values, dtype=int)

    result = audit(Honest(Plain()), 10_000, rng(20))
    assert result.refuted
    assert result.measured.unlikely_count == 0


def test_what_an_audit_says() -> None:
    result = AuditResult(1.5, 1e-2, 0.99, "score >= threshold", 0.0, "first", 9, 1, 10)
    for epsilon, refuted in ((1.4, True), (1.5, False)):
        said = MechanismAudit(Guarantee(epsilon, "replace-one", "secure-sum", delta=1e-2), result)
        assert said.refuted == refuted
        assert said.document() == {
            "claimed_epsilon": epsilon,
            "adjacency": "replace-one",
            "trust_model": "secure-sum",
            "refuted": refuted,
            **asdict(result),
        }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": -0.1}, "delta must be a number from 0 to 1, got -0.1"),
        ({"delta": 1.0}, "delta must be a number from 0 to 1, got 1.0"),
        ({"repetitions": 99}, "repetitions must be a whole number from 100 to 100000000, got 99"),
        ({"confidence": 1.0}, "confidence must be a number from 0.5 to 1, got 1.0"),
        ({"others": "none"}, "others must be one of zero, same, got 'none'"),
        ({"direction": [0.0]}, "direction must not be zero"),
        ({"direction": [1.0, 0.0]}, r"direction must have the shape \(1,\), got \(2,\)"),
        ({"direction": [math.nan]}, "direction must hold finite numbers only, got nan"),
        ({"mechanism": LaplaceMechanism(1.0, (0.0, 1.0)), "others": "same"}, "others must be zero where a message is private by itself"),
        ({"mechanism": LaplaceMechanism(1.0, (0.0, 1.0)), "direction": [1.0]}, "direction must be left out for numbers and items"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        audit(**{"mechanism": PAIR, "repetitions": 100, "rng": rng(0)} | options)


def test_the_example_of_the_documentation_runs() -> None:
    text = (Path(quietbits.__file__).parent / "docs" / "how-to" / "audit.md").read_text(encoding="utf-8")
    example = text.split("```python\n")[1].split("```")[0]
    assert "result.refutes(1.0)" in example
    exec(example, {})  # noqa: S102 - the example is the project's own


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)
