"""Audits of scores: lower bounds come near the true epsilon with the stated confidence.

Seeds are fixed. A lower bound exceeds the true epsilon with probability 1e-3 per audit, or by the stated confidence.
"""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from quietbits.analysis.audits.privacy_audit import AuditResult, _lower_bounds, audit_score
from quietbits.design.tables.mvu import design_mvu
from quietbits.design.tables.randomised_response import generalised_randomised_response


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_randomised_response_is_measured_to_a_tenth(epsilon: float) -> None:
    table = generalised_randomised_response(epsilon, 1)
    result = audit_score(lambda value, count, rng: table.encode(np.full(count, value), rng), 0.0, 1.0, 0.0, 200_000, rng(1))
    assert 0.9 * epsilon < result.epsilon_lower_bound <= epsilon
    assert not result.refutes(epsilon)
    assert result.refutes(0.9 * epsilon)


def test_the_letters_of_an_optimised_table() -> None:
    table = design_mvu(2.0, 3, 2, starts=1)
    rows = np.array(table.weights, dtype=float)
    log_ratio = np.log(rows[0] / rows[-1])
    result = audit_score(lambda value, count, rng: log_ratio[table.encode(np.full(count, value), rng)], 0.0, 1.0, 0.0, 100_000, rng(2))
    assert 0.85 * 2.0 < result.epsilon_lower_bound <= 2.0
    # A value audited against itself reveals nothing.
    same = audit_score(lambda value, count, rng: log_ratio[table.encode(np.full(count, value), rng)], 0.5, 0.5, 0.0, 20_000, rng(3))
    assert same.epsilon_lower_bound < 0.1


def test_a_coordinate_without_noise_is_found_out() -> None:
    def score(value: Any, count: int, generator: np.random.Generator) -> np.ndarray:
        noise = generator.normal(size=(count, 3)) * [5.0, 5.0, 0.0]
        return (np.asarray(value) + noise) @ np.ones(3)

    result = audit_score(score, np.zeros(3), [0.0, 0.0, 40.0], 0.0, 20_000, rng(6))
    assert result.refutes(5.0)


def test_the_bound_holds_as_often_as_stated() -> None:
    # 500 audits of randomised response at its exact epsilon have confidence 0.9 each, so 50 + 5 sqrt(45) = 83 may exceed epsilon. The event
    # is the best possible, so the bound would fail without its confidence intervals.
    def score(value: Any, count: int, generator: np.random.Generator) -> np.ndarray:
        return np.where(generator.random(count) < math.e / (1 + math.e), value, 1 - value)

    generator = rng(7)
    bounds = [audit_score(score, 0, 1, 0.0, 2000, generator, confidence=0.9).epsilon_lower_bound for _ in range(500)]
    exceeded = sum(bound > 1 for bound in bounds)
    assert 0 < exceeded <= 83
    assert np.mean(bounds) > 0.8


def test_the_event_is_counted_on_other_draws_than_it_was_chosen_on() -> None:
    # The outputs do not depend on the input, and hundreds of events look good by chance: of 200 audits, 20 + 5 sqrt(18) may exceed zero.
    def score(_: Any, count: int, generator: np.random.Generator) -> np.ndarray:
        return generator.normal(size=count)

    generator = rng(16)
    bounds = [audit_score(score, 0, 1, 0.0, 400, generator, confidence=0.9).epsilon_lower_bound for _ in range(200)]
    assert sum(bound > 0 for bound in bounds) <= 41


def test_the_bound_is_that_of_clopper_and_pearson() -> None:
    # The test finds the bound by a root of binomial tails instead of the inverse incomplete beta function.
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
    # Input 0 always answers 0; input 1 answers 0 or 1. Only the output 1 distinguishes the inputs, and input 0 never gives it.
    def score(value: Any, count: int, generator: np.random.Generator) -> np.ndarray:
        return sign * np.where(generator.random(count) < 0.2, value, 0)

    first, second = (1, 0) if swapped else (0, 1)
    result = audit_score(score, first, second, 0.0, 10_000, rng(8))
    assert result.likelier == ("first" if swapped else "second")
    assert (result.event, result.threshold) == ("score >= threshold" if sign == 1 else "score <= threshold", sign)
    assert (result.unlikely_count, result.draws) == (0, 5000)
    assert 800 < result.likely_count < 1200
    # If none of 5000 outputs is 1, the probability of 1 is at most 1 - 0.0005**(1/5000).
    assert math.log(0.15 / 0.00152) < result.epsilon_lower_bound < math.log(0.25 / 0.00152)


def test_a_refuted_claim_is_one_below_the_bound() -> None:
    result = AuditResult(1.5, 0.0, 0.99, "score >= threshold", 0.0, "first", 9, 1, 10)
    assert [result.refutes(claim) for claim in (1.4, 1.5, 1.6)] == [True, False, False]


def test_scores_of_another_shape_or_none_are_refused() -> None:
    with pytest.raises(ValueError, match=r"score must return an array of shape \(50,\), got \(50, 2\)"):
        audit_score(lambda _, count, __: np.zeros((count, 2)), 0, 1, 0.0, 100, rng(0))
    with pytest.raises(ValueError, match="score must return numbers, got NaN 50 times in 50"):
        audit_score(lambda _, count, __: np.full(count, math.nan), 0, 1, 0.0, 100, rng(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": -0.1}, "delta must be a number from 0 to 1, got -0.1"),
        ({"delta": 1.0}, "delta must be a number from 0 to 1, got 1.0"),
        ({"repetitions": 99}, "repetitions must be a whole number from 100 to 100000000, got 99"),
        ({"confidence": 0.4}, "confidence must be a number from 0.5 to 1, got 0.4"),
        ({"confidence": 1.0}, "confidence must be a number from 0.5 to 1, got 1.0"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"first": 0, "second": 1, "delta": 0.0, "repetitions": 100, "rng": rng(0)} | options
    with pytest.raises(ValueError, match=message):
        audit_score(lambda _, count, __: np.zeros(count), **arguments)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)
