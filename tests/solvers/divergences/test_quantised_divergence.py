"""Distances of quantised vectors.

Points under test: equation (10) of cpSGD by simulation, and Rényi divergences without it by enumeration.

The chance of a false alarm is below 1e-5 per statistical test.
"""

import math
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from quietbits.design.transforms.k_level_quantisation import quantise_k_levels
from quietbits.solvers.divergences import quantised_divergence
from quietbits.solvers.divergences.binomial_divergence import shifted_binomial_renyi
from quietbits.solvers.divergences.quantised_divergence import (
    FairBinomialBound,
    fair_binomial_bound,
    quantised_epsilon,
    quantised_l2_bound,
    quantised_renyi,
    quantised_sensitivity,
)

DIMENSION, LEVELS, DRAWS = 64, 9, 4000
# The delta is large, so that the test would detect a bound that fails too often.
DELTA = 0.3


def pairs() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return pairs of vectors in the unit ball: most distant, random, and separated by rounding."""
    rng = np.random.default_rng(1)
    random = rng.normal(size=(2, DIMENSION))
    random /= np.linalg.norm(random, axis=1)[:, None]
    flat = np.full(DIMENSION, 1 / math.sqrt(DIMENSION))
    few = np.concatenate([np.full(4, 0.5), np.zeros(DIMENSION - 4)])
    spike = np.eye(DIMENSION)[0]
    return {"random": (random[0], random[1]), "flat": (flat, -flat), "few": (few, -few), "spike": (spike, -spike), "mixed": (spike, -flat)}


def rounded_differences(first: np.ndarray, second: np.ndarray, seeds: tuple[int, int]) -> np.ndarray:
    """Return level differences of two vectors, with rounding coupled by equal seeds."""
    levels = [
        quantise_k_levels(np.tile(vector, (DRAWS, 1)), LEVELS, 1.0, np.random.default_rng(seed))
        for vector, seed in zip((first, second), seeds, strict=True)
    ]
    return levels[0] - levels[1]


def failures(differences: np.ndarray, delta: float) -> int:
    """Return the number of draws in which any of three bounds fails, for two unit vectors."""
    bound = quantised_sensitivity(DIMENSION, LEVELS, 1.0, 2.0, delta)
    l1, l2, linf = np.abs(differences).sum(axis=1), np.linalg.norm(differences, axis=1), np.abs(differences).max(axis=1)
    return int(np.count_nonzero((l1 > bound.l1) | (l2 > bound.l2) | (linf > bound.linf)))


@pytest.mark.parametrize("pair", sorted(pairs()))
def test_coupled_rounding_keeps_replaced_vectors_within_equation_ten(pair: str) -> None:
    differences = rounded_differences(*pairs()[pair], seeds=(2, 2))
    allowed = binom.isf(1e-6, DRAWS, DELTA)
    assert failures(differences, DELTA) <= allowed
    assert np.abs(differences).max() <= LEVELS - 1


def test_equation_ten_is_about_the_distance_of_two_vectors_of_the_ball() -> None:
    # The paper's D is a bound on norms. With half the distance, as for a bound on distances, the bound fails nearly always.
    first, second = pairs()["flat"]
    differences = rounded_differences(first, second, seeds=(2, 2))
    half = quantised_sensitivity(DIMENSION, LEVELS, 1.0, 1.0, DELTA)
    assert np.mean(np.abs(differences).sum(axis=1) > half.l1) > 0.99
    # A vector and zero are at half the distance, and within half of the bounds.
    removed = rounded_differences(first, np.zeros(DIMENSION), seeds=(3, 3))
    outside = (np.abs(removed).sum(axis=1) > half.l1) | (np.linalg.norm(removed, axis=1) > half.l2)
    assert np.count_nonzero(outside) <= binom.isf(1e-6, DRAWS, DELTA)


@pytest.mark.parametrize("pair", sorted(pairs()))
def test_the_sharper_bound_on_the_l2_norm_holds_and_is_sharper(pair: str) -> None:
    first, second = pairs()[pair]
    distance = float(np.linalg.norm(first - second)) * (LEVELS - 1) / 2
    norms = np.linalg.norm(rounded_differences(first, second, seeds=(7, 7)), axis=1)
    bound = quantised_l2_bound(DIMENSION, distance, DELTA)
    assert np.count_nonzero(norms > bound) <= binom.isf(1e-6, DRAWS, DELTA)
    # Rounding lengthens vectors on average: the distance itself would be no bound.
    assert norms.max() >= distance * (1 - 1e-12)
    assert bound < quantised_sensitivity(DIMENSION, LEVELS, 1.0, float(np.linalg.norm(first - second)), DELTA).l2


def test_the_sharper_bound_by_hand_and_its_faults() -> None:
    assert quantised_l2_bound(16, 3.0, math.exp(-2)) == pytest.approx(math.sqrt(9 + 4 + 10), rel=1e-13)
    assert quantised_l2_bound(16, 0.5, math.exp(-2)) == pytest.approx(math.sqrt(0.25 + 2 + 5), rel=1e-13)
    assert quantised_l2_bound(16, 0.0, 0.1) == 0.0
    with pytest.raises(ValueError, match=r"dimension must be a whole number from 1 to .*, got 0"):
        quantised_l2_bound(0, 1.0, 0.1)
    with pytest.raises(ValueError, match=r"distance must be a number from 0 to 1e\+101, got -1"):
        quantised_l2_bound(4, -1.0, 0.1)
    with pytest.raises(ValueError, match=r"delta must be a number above 0 and below 1, got 0"):
        quantised_l2_bound(4, 1.0, 0.0)


def test_rounding_that_is_not_coupled_exceeds_equation_ten() -> None:
    # The equal vectors are half-way between levels: with coupled rounding they stay equal, with independent rounding half of their
    # coordinates differ.
    halves = np.full(4096, 0.5)
    bound = quantised_sensitivity(4096, 2, 1.0, 0.0, 1e-5)
    first, second, apart = (quantise_k_levels(halves - 0.5, 2, 1.0, np.random.default_rng(seed)) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - apart).sum() > 100 * bound.l1
    assert np.linalg.norm(first - apart) > 8 * bound.l2


def test_the_three_bounds_by_hand() -> None:
    # k = 5 on [-2, 2] gives steps of 1, and a distance of 3 steps; ln(2 / delta) = 2.
    sensitivity = quantised_sensitivity(16, 5, 2.0, 3.0, 2 * math.exp(-2))
    l1 = 12 + math.sqrt(48) + 8 / 3
    assert sensitivity.linf == 6
    assert sensitivity.l1 == pytest.approx(l1, rel=1e-14)
    assert sensitivity.l2 == pytest.approx(3 + math.sqrt(l1 + math.sqrt(48)), rel=1e-14)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dimension": 0}, "dimension must be a whole number from 1 to .*, got 0"),
        ({"levels": 1}, "levels must be a whole number from 2 to 16777216, got 1"),
        ({"bound": 0.0}, "bound must be a number from 1e-105 to 1e\\+101, got 0.0"),
        ({"distance": -1.0}, "distance must be a number from 0 to 1e\\+101, got -1.0"),
        ({"delta": 1.0}, "delta must be a number above 0 and below 1, got 1.0"),
    ],
)
def test_sensitivities_refuse_what_is_out_of_range(changes: dict[str, Any], message: str) -> None:
    arguments = {"dimension": 4, "levels": 5, "bound": 1.0, "distance": 2.0, "delta": 0.1}
    with pytest.raises(ValueError, match=message):
        quantised_sensitivity(**(arguments | changes))


@pytest.mark.parametrize(("trials", "shifts"), [(300, (1, 3)), (3000, (1, 2, 10)), (100_000, (1, 7, 40))])
def test_the_closed_form_bounds_the_exact_divergence_and_is_close_to_it(trials: int, shifts: tuple[int, ...]) -> None:
    orders, log_failure = np.array([1.5, 2.0, 8.0, 32.0]), math.log(1e-9)
    for shift in shifts:
        bound = fair_binomial_bound(trials, shift, orders, log_failure)
        assert bound is not None
        closed = bound.square * shift**2 + bound.linear * shift
        # The sum runs over y >= -w of P**a Q**(1 - a), from the two distributions' logarithms.
        window = math.sqrt(-trials * log_failure / 2)
        value = np.arange(max(shift, math.ceil(trials / 2 - window)), trials + 1)
        assert binom.cdf(value[0] - 1, trials, 0.5) <= bound.failure
        first, second = binom.logpmf(value, trials, 0.5), binom.logpmf(value - shift, trials, 0.5)
        exact = np.array([np.logaddexp.reduce(a * first + (1 - a) * second) / (a - 1) for a in orders])
        assert np.all(exact <= closed)
        # The bound is close for orders whose worst values are inside the window; the cubic terms cost a relative 44 j / N**1.5.
        inside = (orders - 1) * shift < window / 2
        assert inside.sum() >= 2
        assert np.all((closed <= exact * (1 + 600 / trials) + 100 * shift / trials**1.5)[inside])


def test_the_closed_form_agrees_with_the_account_of_binomial_noise() -> None:
    orders = np.array([2.0, 16.0])
    exact = shifted_binomial_renyi(10**6, 0.5, 5, orders, 1e-9).divergences
    bound = fair_binomial_bound(10**6, 5, orders, math.log(1e-9))
    assert bound is not None
    assert bound.square * 25 + bound.linear * 5 == pytest.approx(exact, rel=0.01)


def test_too_few_trials_prove_nothing() -> None:
    assert fair_binomial_bound(50, 1, np.array([2.0]), math.log(1e-9)) is None
    assert quantised_epsilon(50, 1, 2, 1.0, 1e-9) is None


@pytest.mark.parametrize("largest", [1.0, 2.5, 30.0])
def test_the_relaxation_is_above_every_vector_and_close_to_the_worst(largest: float) -> None:
    orders = np.array([1.5, 4.0, 30.0])
    bound = FairBinomialBound(square=orders * 1e-3, linear=1e-4, failure=0.0)

    def divergence(positions: np.ndarray) -> np.ndarray:
        """Return g by its definition, shape (orders, coordinates)."""
        start = np.floor(positions)
        fraction = positions - start
        powers = [(orders - 1)[:, None] * (bound.square[:, None] * j**2 + bound.linear * j) for j in (start, start + 1)]
        return np.asarray(np.log1p((1 - fraction) * np.expm1(powers[0]) + fraction * np.expm1(powers[1])) / (orders - 1)[:, None])

    dimension = 40
    rng = np.random.default_rng(6)
    for distance in (0.5, 3.0, 12.0, 25.0):
        ceiling = quantised_renyi(bound, orders, dimension, distance, largest)
        best = np.zeros(len(orders))
        equal = [np.repeat([1.0, 0.0], [changed, dimension - changed]) for changed in range(1, dimension + 1)]
        for vector in [*equal, *rng.random((50, dimension)) ** 3]:
            result = divergence(np.minimum(vector * distance / np.linalg.norm(vector), largest)).sum(axis=1)
            assert np.all(result <= ceiling)
            best = np.maximum(best, result)
        # Equal coordinates, some of them zero, come near the optimum.
        assert np.all(best >= 0.9 * ceiling)


def test_tiny_divergences_of_many_coordinates_do_not_cancel_out() -> None:
    # An evenly spread distance moves each coordinate by 1/1024 of a step, where g is a share of the divergence of one step.
    orders, dimension = np.array([1.05, 2.0, 50.0]), 2**20
    bound = FairBinomialBound(square=orders * 1e-13, linear=1e-17, failure=0.0)
    whole = (orders - 1) * (bound.square + bound.linear)
    even = dimension * np.log1p(np.expm1(whole) / 1024) / (orders - 1)
    divergences = quantised_renyi(bound, orders, dimension, 1.0, 1.0)
    assert np.all(even <= divergences)
    assert divergences == pytest.approx(even, rel=1e-6)


def test_divergences_beyond_all_numbers_are_infinite() -> None:
    bound = FairBinomialBound(square=np.array([0.01, 1.0]), linear=0.0, failure=0.0)
    divergences = quantised_renyi(bound, np.array([2.0, 10_000.0]), 8, 2.0, 2.0)
    # Equal coordinates come near the worst case.
    even = 8 * math.log1p(math.sqrt(0.5) * math.expm1(0.01))
    assert even <= divergences[0] < 1.1 * even
    assert divergences[1] == np.inf


def test_nothing_is_lost_where_nothing_differs() -> None:
    assert quantised_renyi(FairBinomialBound(np.array([1.0]), 1.0, 0.0), np.array([2.0]), 4, 0.0, 0.0).tolist() == [0.0]


def test_epsilon_grows_with_rounds_and_distance_and_falls_with_trials() -> None:
    def epsilon(trials: int = 10**6, distance: float = 8.0, rounds: int = 1) -> float:
        result = quantised_epsilon(trials, 256, 17, distance, 1e-5, rounds)
        assert result is not None
        return result.epsilon

    assert epsilon(trials=4 * 10**6) < epsilon() < epsilon(distance=9.0)
    assert epsilon() < epsilon(rounds=4) < 4 * epsilon()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trials": 0}, "trials must be a whole number from 1 to .*, got 0"),
        ({"dimension": 0}, "dimension must be a whole number from 1 to .*, got 0"),
        ({"levels": 1}, "levels must be a whole number from 2 to 16777216, got 1"),
        ({"distance": -1.0}, "distance must be a number from 0 to 1e\\+12, got -1.0"),
        ({"delta": 0.0}, "delta must be a number above 0 and below 1, got 0.0"),
        ({"rounds": 0}, "rounds must be a whole number from 1 to .*, got 0"),
    ],
)
def test_epsilon_refuses_what_is_out_of_range(changes: dict[str, Any], message: str) -> None:
    arguments = {"trials": 1000, "dimension": 4, "levels": 5, "distance": 2.0, "delta": 0.1}
    with pytest.raises(ValueError, match=message):
        quantised_epsilon(**(arguments | changes))


@pytest.mark.parametrize("shift", [16.5, 30.5, 40.25])
@pytest.mark.parametrize("order", [1.0001, 2.0, 30.0])
def test_shifts_beyond_those_looked_at_one_by_one_are_bounded(shift: float, order: float) -> None:
    # One coordinate lies between two whole distances, as a mixture of both shifts.
    square, linear = np.array([2e-3]), 3e-3
    bound = FairBinomialBound(square, linear, 0.0)
    low, share = math.floor(shift), shift - math.floor(shift)
    mixed = [(order - 1) * (2e-3 * steps**2 + linear * steps) for steps in (low, low + 1)]
    exact = (mixed[0] + math.log1p(share * math.expm1(mixed[1] - mixed[0]))) / (order - 1)
    computed = float(quantised_renyi(bound, np.array([order]), 1, shift, shift)[0])
    assert exact <= computed <= exact * 1.1
    if order < 1.001:
        # The mean square of the two whole shifts determines the bound; half-way between them it exceeds the square of the shift by a
        # quarter of a step.
        assert exact == pytest.approx(2e-3 * (shift**2 + share * (1 - share)) + linear * shift, rel=1e-3)


def test_no_coordinate_is_further_apart_than_the_levels() -> None:
    # One coordinate with three levels moves by at most two steps, for any distance.
    near, far, more = (quantised_epsilon(10**4, 1, levels, distance, 1e-5) for levels, distance in ((3, 2.0), (3, 50.0), (4, 50.0)))
    assert near is not None
    assert far is not None
    assert more is not None
    assert near.epsilon == pytest.approx(far.epsilon, rel=1e-6)
    assert more.epsilon > far.epsilon * 1.3


@pytest.mark.parametrize("rounds", [1, 300])
@pytest.mark.parametrize("dimension", [1, 50])
def test_ends_of_the_noise_fail_together_with_a_hundredth_of_delta(monkeypatch: pytest.MonkeyPatch, rounds: int, dimension: int) -> None:
    asked: list[float] = []
    bound_of = quantised_divergence.fair_binomial_bound
    monkeypatch.setattr(quantised_divergence, "fair_binomial_bound", lambda *arguments: asked.append(arguments[3]) or bound_of(*arguments))
    assert quantised_epsilon(10**7, dimension, 9, 4.0, 1e-5, rounds) is not None
    assert rounds * dimension * math.exp(asked[0]) == pytest.approx(0.01 * 1e-5, rel=1e-9)


def test_the_quadratic_of_large_shifts_is_hoeffdings() -> None:
    square, linear, orders = np.array([1e-3, 2e-3, 0.2]), 5e-4, np.array([1.5, 20.0, 9.0])
    far = quantised_divergence._far(FairBinomialBound(square, linear, 0.0), orders)
    for place, (own, order) in enumerate(zip(square.tolist(), orders.tolist(), strict=True)):
        step = own + linear
        assert far.square[place] == pytest.approx(own * (1 + (order - 1) * own / 2), rel=1e-14)
        if (order - 1) * own * 16 >= 4:
            expected = (linear, step)
        else:
            expected = (linear + (order - 1) * own * step / 2, own / 4 + (order - 1) * step**2 / 8)
        assert (far.slope[place], far.constant[place]) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(("levels", "distance", "furthest"), [(9, 1.5, 2), (9, 2.25, 3), (3, 50.0, 2), (9, 1e-3, 1)])
def test_every_shift_that_rounding_can_make_is_within_the_bound_on_the_noise(
    monkeypatch: pytest.MonkeyPatch, levels: int, distance: float, furthest: int
) -> None:
    # A fractional distance of a single coordinate is rounded up to the next whole number.
    asked: list[float] = []
    bound_of = quantised_divergence.fair_binomial_bound
    monkeypatch.setattr(quantised_divergence, "fair_binomial_bound", lambda *arguments: asked.append(arguments[1]) or bound_of(*arguments))
    assert quantised_epsilon(10**6, 4, levels, distance, 1e-5) is not None
    assert asked == [furthest]


@pytest.mark.parametrize("order", [1.0001, 2.0, 30.0])
@pytest.mark.parametrize("largest", [2.5, 20.0, 60.0])
def test_the_largest_excess_is_above_that_of_every_distance(order: float, largest: float) -> None:
    square, linear = 2e-3, 3e-3
    orders = np.array([order])
    bound = FairBinomialBound(np.array([square]), linear, 0.0)
    nodes, far = quantised_divergence._nodes(bound, orders, largest), quantised_divergence._far(bound, orders)
    distances = np.linspace(0, largest, 2001)
    low = np.floor(distances)
    at_low, at_high = (square * steps**2 + linear * steps for steps in (low, low + 1))
    mixed = at_low + np.log1p((distances - low) * np.expm1((order - 1) * (at_high - at_low))) / (order - 1)
    # The multipliers put the best distance at either end, and between the ends.
    for multiplier in square * np.array([0.5, 1.0, 1.01, 1.03, 1.05, 1.1, 1.3, 2.0, 10.0]):
        exact = float((mixed - multiplier * distances**2).max())
        computed = float(quantised_divergence._largest_excess(nodes, far, np.array([multiplier]), largest)[0])
        assert exact <= computed <= exact + 0.2 * (exact + multiplier * largest**2)


@pytest.mark.parametrize("trials", [300, 4000, 10**6])
@pytest.mark.parametrize("largest", [1, 20, 60])
def test_the_excess_of_the_closed_form_is_above_the_curvature_of_the_log_ratio(trials: int, largest: int) -> None:
    # The proof bounds artanh(x) by (1 + k) x in the window, which ends at u.
    log_failure = -12.0
    bound = fair_binomial_bound(trials, largest, np.array([2.0]), log_failure)
    if bound is None:
        assert trials == 300
        return
    with mpmath.workdps(40):
        half = (mpmath.mpf(trials) + 1) / 2
        end = (mpmath.sqrt(-trials * mpmath.mpf(log_failure) / 2) + largest) / half
        excess = mpmath.mpf(bound.linear) * half / mpmath.sqrt(trials)
        assert mpmath.atanh(end) <= (1 + excess) * end
        assert 1 + excess <= 1 + end**2 / (3 * (1 - end**2)) * (1 + mpmath.mpf(10) ** -9)
        # The square has a / M, the excess, and the excess's effect on the tilted mean.
        assert bound.square[0] >= (1 + excess) * (1 + (1 + 3 * excess)) / half * (1 - mpmath.mpf(10) ** -15)


def test_the_noise_without_its_ends_is_normalised_in_every_coordinate(monkeypatch: pytest.MonkeyPatch) -> None:
    # The ends fail often in this case. The remaining noise is divided by its mass, (1 - failure)^(-a) to the power of 1 / (a - 1).
    trials, dimension, levels, distance, delta, failure = 10**5, 7, 9, 2.5, 1e-5, 0.02
    curves: list[np.ndarray] = []
    bound_of, curve_of = quantised_divergence.fair_binomial_bound, quantised_divergence.RenyiCurve
    monkeypatch.setattr(quantised_divergence, "fair_binomial_bound", lambda *arguments: replace(bound_of(*arguments), failure=failure))
    monkeypatch.setattr(quantised_divergence, "RenyiCurve", lambda orders, values: curves.append(values) or curve_of(orders, values))
    assert quantised_epsilon(trials, dimension, levels, distance, delta) is not None
    orders = quantised_divergence.ORDERS
    bound = bound_of(trials, 3, orders, math.log(0.01 * delta / dimension))
    reach = distance * quantised_divergence.UPWARD
    without = quantised_renyi(bound, orders, dimension, reach, reach)
    finite = np.isfinite(without) & (orders < 100)
    assert np.count_nonzero(finite) > 10
    expected = (dimension * orders / (orders - 1) * -math.log(1 - failure))[finite]
    np.testing.assert_allclose(curves[0][finite] - without[finite], expected, rtol=1e-8)


def test_a_step_whose_ratio_is_beyond_all_numbers_is_infinite_at_low_orders_too() -> None:
    bound = FairBinomialBound(square=np.array([10.0]), linear=0.0, failure=0.0)
    # The moment is e^990; a bound may be infinite at this order, and is never below the divergence of one whole step.
    assert quantised_renyi(bound, np.array([100.0]), 1, 1.0, 1.0)[0] >= 10.0
    assert quantised_renyi(bound, np.array([100.0]), 1, 0.5, 0.5)[0] >= (990 + math.log(0.5)) / 99
