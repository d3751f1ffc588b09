"""Audits: below what is true with the stated confidence, near it, and above claims that are wrong.

Seeds are fixed. A bound above the true epsilon has probability 1e-3 or 1e-6 per audit, whichever confidence is given.
"""

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import quietbits
from quietbits.analysis.audits.privacy_audit import AuditResult, _lower_bounds, audit_mechanism
from quietbits.analysis.audits.secure_sum_audit import OTHERS, audit_secure_sum, neighbouring_vectors, secure_sum_score
from quietbits.analysis.catalogue.secure_sum_mechanisms import ADJACENCIES_OF, build_secure_sum_mechanism
from quietbits.design.contracts.guarantee import Guarantee
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from quietbits.design.tables.mvu import design_mvu
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.solvers.divergences.discrete_gaussian_divergence import summed_discrete_gaussian_losses

# Two clients, one coordinate, a norm of eight whole steps: no rounding is random, and epsilon is known exactly.
PAIR = DistributedDiscreteGaussianMechanism(NormBall(1, 2.0, 8.0), clients=2, bits=10, granularity=1.0, local_sigma=6.0, delta=1e-2)


def exact_epsilon(mechanism: DistributedDiscreteGaussianMechanism, delta: float) -> float:
    sigma, shift = mechanism.local_sigma / mechanism.granularity, mechanism.ball.clip_norm / mechanism.granularity
    return summed_discrete_gaussian_losses(mechanism.clients, sigma, round(shift)).epsilon(delta)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_randomised_response_is_measured_to_a_tenth(epsilon: float) -> None:
    table = generalised_randomised_response(epsilon, 1)
    result = audit_mechanism(lambda value, count, rng: table.encode(np.full(count, value), rng), 0.0, 1.0, 0.0, 200_000, rng(1))
    assert 0.9 * epsilon < result.epsilon_lower_bound <= epsilon
    assert not result.refutes(epsilon)
    assert result.refutes(0.9 * epsilon)


def test_the_letters_of_an_optimised_table() -> None:
    table = design_mvu(2.0, 3, 2)
    rows = np.array(table.weights, dtype=float)
    log_ratio = np.log(rows[0] / rows[-1])
    result = audit_mechanism(lambda value, count, rng: log_ratio[table.encode(np.full(count, value), rng)], 0.0, 1.0, 0.0, 200_000, rng(2))
    assert 0.85 * 2.0 < result.epsilon_lower_bound <= 2.0
    # One value against itself tells nothing.
    same = audit_mechanism(lambda value, count, rng: log_ratio[table.encode(np.full(count, value), rng)], 0.5, 0.5, 0.0, 20_000, rng(3))
    assert same.epsilon_lower_bound < 0.1


@pytest.mark.parametrize(("delta", "share"), [(1e-2, 0.9), (1e-3, 0.8)])
@pytest.mark.parametrize("local_sigma", [6.0, 12.0])
def test_the_distributed_discrete_gaussian_is_measured_against_its_exact_epsilon(local_sigma: float, delta: float, share: float) -> None:
    mechanism = replace(PAIR, local_sigma=local_sigma, delta=delta)
    exact = exact_epsilon(mechanism, delta)
    result = audit_secure_sum(mechanism, 1_000_000, rng(4), confidence=1 - 1e-6)
    assert share * exact < result.epsilon_lower_bound <= exact <= mechanism.guarantee.epsilon


def test_too_little_noise_is_found_out() -> None:
    # Half the noise, twice the norm, and the noise of one client instead of two.
    claim = PAIR.guarantee.epsilon
    assert not audit_secure_sum(PAIR, 200_000, rng(5)).refutes(claim)
    for forgetful in (
        replace(PAIR, local_sigma=3.0),
        replace(PAIR, ball=NormBall(1, 2.0, 16.0)),
        replace(PAIR, clients=1),
    ):
        result = audit_secure_sum(forgetful, 200_000, rng(5))
        assert result.refutes(claim)
        assert not result.refutes(exact_epsilon(forgetful, 1e-2))


def test_a_coordinate_without_noise_is_found_out() -> None:
    def score(value: Any, count: int, generator: np.random.Generator) -> np.ndarray:
        noise = generator.normal(size=(count, 3)) * [5.0, 5.0, 0.0]
        return (np.asarray(value) + noise) @ np.ones(3)

    result = audit_mechanism(score, np.zeros(3), [0.0, 0.0, 40.0], 0.0, 20_000, rng(6))
    assert result.refutes(5.0)


def test_the_bound_holds_as_often_as_stated() -> None:
    # Randomised response at its exact epsilon: 2000 audits of confidence 0.9 each, so that 200 + 5 sqrt(180) = 267 may exceed it. The event
    # is the best one there is, so that the bound would not hold without its confidence intervals.
    def score(value: Any, count: int, generator: np.random.Generator) -> np.ndarray:
        return np.where(generator.random(count) < math.e / (1 + math.e), value, 1 - value)

    generator = rng(7)
    bounds = [audit_mechanism(score, 0, 1, 0.0, 2000, generator, confidence=0.9).epsilon_lower_bound for _ in range(2000)]
    exceeded = sum(bound > 1 for bound in bounds)
    assert 0 < exceeded <= 267
    assert np.mean(bounds) > 0.8


def test_the_event_is_counted_on_other_draws_than_it_was_chosen_on() -> None:
    # Outputs that tell nothing, and hundreds of events of which some look good by chance: 400 audits, of which 40 + 5 * 6 may exceed zero.
    def score(_: Any, count: int, generator: np.random.Generator) -> np.ndarray:
        return generator.normal(size=count)

    generator = rng(16)
    bounds = [audit_mechanism(score, 0, 1, 0.0, 400, generator, confidence=0.9).epsilon_lower_bound for _ in range(400)]
    assert sum(bound > 0 for bound in bounds) <= 70


def test_the_bound_is_that_of_clopper_and_pearson() -> None:
    # Found by a root of binomial tails instead of the inverse of an incomplete beta function.
    delta = 0.01
    for likely, unlikely in product((1, 7, 50), (0, 3, 49)):
        bound = _lower_bounds(np.array([likely]), np.array([unlikely]), 50, delta, 0.99)[0]
        low, high = (binomtest(count, 50).proportion_ci(0.99, method="exact") for count in (likely, unlikely))
        expected = math.log((low.low - delta) / high.high) if low.low > delta else -math.inf
        assert bound == pytest.approx(expected, rel=1e-9)


def test_counts_at_the_ends() -> None:
    bounds = _lower_bounds(np.array([0, 100]), np.array([50, 100]), 100, 0.0, 0.99)
    assert bounds[0] == -math.inf
    assert bounds[1] == pytest.approx(math.log(0.005) / 100, rel=1e-12)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_events_on_both_sides_and_in_both_orders(sign: int, swapped: bool) -> None:
    # 0 is answered by 0 always, 1 by 0 or 1: only an output of 1 tells, and it is impossible for 0.
    def score(value: Any, count: int, generator: np.random.Generator) -> np.ndarray:
        return sign * np.where(generator.random(count) < 0.2, value, 0)

    first, second = (1, 0) if swapped else (0, 1)
    result = audit_mechanism(score, first, second, 0.0, 10_000, rng(8))
    assert result.likelier == ("first" if swapped else "second")
    assert (result.event, result.threshold) == ("score >= threshold" if sign == 1 else "score <= threshold", sign)
    assert (result.unlikely_count, result.draws) == (0, 5000)
    assert 800 < result.likely_count < 1200
    # With no such output among 5000, its probability is at most 1 - 0.0005**(1/5000).
    assert math.log(0.15 / 0.00152) < result.epsilon_lower_bound < math.log(0.25 / 0.00152)


def test_a_larger_delta_takes_something_off() -> None:
    # 8 beside a standard deviation of 6 sqrt(2): a total variation of 0.36, and no epsilon is needed beyond.
    deltas = (1e-3, 1e-2, 0.1, 0.3, 0.4)
    bounds = [audit_secure_sum(PAIR, 100_000, rng(9), delta=delta).epsilon_lower_bound for delta in deltas]
    assert bounds[:-1] == sorted(set(bounds[:-1]), reverse=True)
    assert all(bound <= exact_epsilon(PAIR, delta) for bound, delta in zip(bounds, deltas, strict=True))
    assert bounds[-1] == 0.0 < bounds[-2]


def test_the_same_seed_gives_the_same_audit() -> None:
    assert audit_secure_sum(PAIR, 1000, rng(10)) == audit_secure_sum(PAIR, 1000, rng(10))
    assert audit_secure_sum(PAIR, 1000, rng(10)) != audit_secure_sum(PAIR, 1000, rng(11))


def test_a_refuted_claim_is_one_below_the_bound() -> None:
    result = AuditResult(1.5, 0.0, 0.99, "score >= threshold", 0.0, "first", 9, 1, 10)
    assert [result.refutes(claim) for claim in (1.4, 1.5, 1.6)] == [True, False, False]


def test_neighbours_are_as_far_apart_as_the_adjacency_lets_them() -> None:
    mechanism = DistributedDiscreteGaussianMechanism(
        NormBall(2, 2.0, 5.0), clients=3, bits=10, granularity=1.0, local_sigma=6.0, delta=1e-2
    )
    first, second = neighbouring_vectors(mechanism)
    np.testing.assert_array_equal(first, [[5, 0], [0, 0], [0, 0]])
    np.testing.assert_array_equal(second, np.zeros((3, 2)))
    first, second = neighbouring_vectors(mechanism, others="same", direction=[3.0, -4.0])
    np.testing.assert_allclose(first, [[3, -4]] * 3, rtol=1e-15)
    np.testing.assert_allclose(second, [[0, 0], [3, -4], [3, -4]], rtol=1e-15)


class ReplaceOne:
    """A mechanism whose guarantee is for replace-one adjacency."""

    ball = NormBall(2, 2.0, 5.0)
    clients = 2
    guarantee = Guarantee(1.0, "replace-one", "secure-sum", delta=1e-2)


def test_replacing_is_by_the_opposite() -> None:
    first, second = neighbouring_vectors(ReplaceOne())
    np.testing.assert_array_equal(first, [[5, 0], [0, 0]])
    np.testing.assert_array_equal(second, [[-5, 0], [0, 0]])


@pytest.mark.parametrize("clients", [1, 3])
def test_the_score_is_the_projection_of_the_estimate(clients: int) -> None:
    mechanism = DistributedDiscreteGaussianMechanism(NormBall(5, 2.0, 9.0), clients, bits=20, granularity=0.5, local_sigma=6.0, delta=1e-2)
    first, second = neighbouring_vectors(mechanism, direction=[1.0, 2.0, 0.0, -1.0, 0.5])
    scores = np.asarray(secure_sum_score(mechanism, first, second)(first, 4, rng(12)))
    messages = mechanism.encode(np.tile(first, (4, 1)), rng(12)).reshape(4, clients, 8)
    estimates = np.array([mechanism.decode(mechanism.aggregate(one), clients) for one in messages])
    expected = estimates @ (first[0] - second[0])
    np.testing.assert_allclose(scores - scores[0], expected - expected[0], rtol=1e-9, atol=1e-9)


def test_rounds_are_drawn_in_blocks_without_a_difference_in_their_distribution() -> None:
    # 300 000 rounds of two clients and four coordinates take three blocks. Means within 5 sigma.
    mechanism = DistributedDiscreteGaussianMechanism(NormBall(4, 2.0, 8.0), 2, bits=20, granularity=1.0, local_sigma=6.0, delta=1e-2)
    first, second = neighbouring_vectors(mechanism)
    score = secure_sum_score(mechanism, first, second)
    scores = np.asarray(score(first, 300_000, rng(13)))
    assert scores.shape == (300_000,)
    thirds = scores.reshape(3, -1).mean(axis=1)
    assert np.ptp(thirds) < 5 * math.sqrt(2) * scores.std() / math.sqrt(100_000)


@pytest.mark.parametrize(("name", "adjacency"), [(name, adjacency) for name, offered in ADJACENCIES_OF.items() for adjacency in offered])
def test_no_mechanism_is_refuted_and_much_of_its_epsilon_is_found(name: str, adjacency: str) -> None:
    mechanism = build_secure_sum_mechanism(name, NormBall(1, 2.0), 4, 8, 2.0, 1e-2, adjacency=adjacency)
    for others in OTHERS:
        result = audit_secure_sum(mechanism, 50_000, rng(14), others=others, confidence=1 - 1e-6)
        assert not result.refutes(mechanism.guarantee.epsilon)
        assert result.refutes(0.4 * mechanism.guarantee.epsilon)


def test_the_sum_tells_less_where_it_wraps() -> None:
    # Modulo 16, noise with a standard deviation of 8.5 is nearly uniform: less is to be seen than the mechanism is charged for.
    wide, narrow = (audit_secure_sum(replace(PAIR, bits=bits), 100_000, rng(15), delta=1e-3) for bits in (10, 4))
    assert narrow.epsilon_lower_bound < 0.5 < 2 < wide.epsilon_lower_bound


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": -0.1}, "delta must be a number from 0 to 1, got -0.1"),
        ({"delta": 1.0}, "delta must be a number from 0 to 1, got 1.0"),
        ({"repetitions": 99}, "repetitions must be a whole number from 100 to 100000000, got 99"),
        ({"confidence": 0.4}, "confidence must be a number from 0.5 to 1, got 0.4"),
        ({"confidence": 1.0}, "confidence must be a number from 0.5 to 1, got 1.0"),
        ({"others": "none"}, "others must be one of zero, same, got 'none'"),
        ({"direction": [0.0]}, "direction must not be zero"),
        ({"direction": [1.0, 0.0]}, r"direction must have the shape \(1,\), got \(2,\)"),
        ({"direction": [math.nan]}, "direction must hold finite numbers only, got nan"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"repetitions": 100} | options
    with pytest.raises(ValueError, match=message):
        audit_secure_sum(PAIR, arguments.pop("repetitions"), rng(0), **arguments)


def test_scores_of_another_shape_or_none_are_refused() -> None:
    with pytest.raises(ValueError, match=r"score must return an array of shape \(50,\), got \(50, 2\)"):
        audit_mechanism(lambda _, count, __: np.zeros((count, 2)), 0, 1, 0.0, 100, rng(0))
    with pytest.raises(ValueError, match="score must return numbers, got NaN 50 times in 50"):
        audit_mechanism(lambda _, count, __: np.full(count, math.nan), 0, 1, 0.0, 100, rng(0))


def test_a_population_of_another_size_is_refused() -> None:
    first, second = neighbouring_vectors(PAIR)
    with pytest.raises(ValueError, match="clients of the population must be a whole number from 2 to 2, got 3"):
        secure_sum_score(PAIR, first, second)(np.zeros((3, 1)), 1, rng(0))


def test_the_example_of_the_documentation_runs() -> None:
    text = (Path(quietbits.__file__).parent / "docs" / "audit.md").read_text(encoding="utf-8")
    example = text.split("```python\n")[1].split("```")[0]
    assert "result.refutes(1.0)" in example
    exec(example, {})  # noqa: S102 - the example is the project's own


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)
