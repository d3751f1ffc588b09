"""Four bounds on a vector's divergence.

Points under test: greedy >= relaxation = envelope >= exact integer optimum >= every pair of vectors.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from composition_program import composition_program_value
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from quietbits.solvers.accounting.renyi_divergence import divergence_by_distance, renyi_matrix
from quietbits.solvers.divergences.vector_composition import (
    compose_distances,
    distance_prices,
    envelope_bound,
    greedy_bound,
    vector_bounds,
    vector_divergences,
)
from quietbits.solvers.numerics.concave_envelope import concave_envelope


def random_table(inputs: int, seed: int) -> NDArray[np.float64]:
    weights = np.random.default_rng(seed).integers(1, 100, size=(inputs, 4)).astype(float)
    return weights / weights.sum(axis=1, keepdims=True)


SETTINGS = {
    "inputs": st.integers(2, 6),
    "seed": st.integers(0, 10**6),
    "order": st.sampled_from([1.2, 2.0, 10.0, math.inf]),
    "dimension": st.integers(1, 5),
    "norm": st.sampled_from([1.0, 1.5, 2.0, 3.0]),
    "distance": st.floats(0.2, 3.0),
}


@settings(max_examples=60, deadline=None)
@given(**SETTINGS)
def test_the_bounds_are_in_order_and_the_envelope_solves_the_program(
    inputs: int, seed: int, order: float, dimension: int, norm: float, distance: float
) -> None:
    table = random_table(inputs, seed)
    bounds = vector_bounds(table, order, dimension, norm, distance)
    assert bounds.greedy >= bounds.linear_program
    program = composition_program_value(renyi_matrix(table, order), dimension, norm, distance)
    assert bounds.linear_program == pytest.approx(program, rel=1e-8)
    tightened = vector_divergences(table, [order], dimension, norm, distance)[0]
    assert tightened <= bounds.linear_program * (1 + 1e-11)
    if norm in (1.0, 2.0, 3.0):
        assert bounds.integer is not None
        assert bounds.integer <= tightened
        assert bounds.integer <= bounds.linear_program


@settings(max_examples=40, deadline=None)
@given(**SETTINGS)
def test_no_pair_of_vectors_passes_the_integer_optimum(
    inputs: int, seed: int, order: float, dimension: int, norm: float, distance: float
) -> None:
    norm = math.floor(norm)
    table = random_table(inputs, seed)
    divergences = renyi_matrix(table, order)
    integer = vector_bounds(table, order, dimension, norm, distance).integer
    assert integer is not None
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, inputs, size=(2, 3000, dimension))
    # The vectors agree in some coordinates, so that they meet the budget.
    pairs[1] = np.where(rng.random((3000, 1)) < rng.random((3000, dimension)), pairs[0], pairs[1])
    near = (np.abs(pairs[0] - pairs[1]) ** norm).sum(axis=1) <= ((inputs - 1) * distance) ** norm * (1 + 1e-12)
    sums = divergences[pairs[0], pairs[1]].sum(axis=1)[near]
    assert sums.max(initial=0.0) <= integer * (1 + 1e-12)


@pytest.mark.parametrize(("norm", "distance"), [(1, 0.5), (1, 1.0), (1, 1.7), (2, 0.75), (2, 1.0), (2, 1.6)])
def test_the_integer_optimum_is_that_of_enumeration(norm: int, distance: float) -> None:
    inputs, dimension = 4, 3
    table = random_table(inputs, seed=8)
    divergences = renyi_matrix(table, 3.0)
    by_distance = [max(divergences[i, k] for i in range(inputs) for k in range(inputs) if abs(i - k) == c) for c in range(inputs)]
    budget = (3 * distance) ** norm * (1 + 1e-12)
    best = max(
        sum(by_distance[c] for c in choice)
        for choice in itertools.product(range(inputs), repeat=dimension)
        if sum(c**norm for c in choice) <= budget
    )
    assert vector_bounds(table, 3.0, dimension, norm, distance).integer == pytest.approx(best, rel=1e-12)


def test_all_bounds_are_equal_where_the_divergence_is_proportional_to_the_price() -> None:
    # With two inputs, a step costs one unit and adds the only divergence.
    table = [[3, 1], [1, 3]]
    (divergence,) = {round(value, 12) for value in renyi_matrix(table, 2.0).ravel() if value > 0}
    bounds = vector_bounds(table, 2.0, dimension=7, norm=1.0, distance=4.0)
    assert bounds.greedy == pytest.approx(4 * divergence, rel=1e-10)
    assert bounds.linear_program == pytest.approx(4 * divergence, rel=1e-10)
    assert bounds.integer == pytest.approx(4 * divergence, rel=1e-10)


def test_a_budget_for_every_coordinate_makes_relaxation_and_optimum_equal() -> None:
    table = random_table(5, seed=2)
    bounds = vector_bounds(table, 2.0, dimension=3, norm=2.0, distance=math.sqrt(3))
    expected = 3 * renyi_matrix(table, 2.0).max()
    # The relaxation is rounded upward by this margin.
    assert expected <= bounds.linear_program <= expected * (1 + 2e-12)
    assert bounds.integer == pytest.approx(expected, rel=1e-12)
    assert bounds.greedy > expected


def test_rounding_never_puts_the_relaxation_below_the_optimum() -> None:
    # All coordinates may be at the largest distance, so both sums are eight times the same number, rounded in two ways.
    for order in (1.3, 2.0, 8.5, 100.0, 1e4, 1e6):
        for inputs in (2, 4, 8):
            table = np.full((inputs, inputs), 1000) + np.eye(inputs, dtype=int) * 1718
            bounds = vector_bounds(table, order, dimension=8, norm=2.0, distance=3.0)
            assert bounds.integer is not None
            assert bounds.greedy >= bounds.linear_program >= bounds.integer


def test_a_budget_beyond_all_numbers_leaves_every_coordinate_free() -> None:
    table = random_table(512, seed=2)
    far, free = (vector_bounds(table, 2.0, dimension=3, norm=norm, distance=1e6) for norm in (64.0, math.inf))
    assert far.greedy == math.inf
    assert far.linear_program == pytest.approx(free.linear_program, rel=1e-11)
    assert far.integer == pytest.approx(free.integer, rel=1e-12)


def test_the_largest_norm_leaves_every_coordinate_free() -> None:
    table = random_table(6, seed=3)
    matrix = renyi_matrix(table, 2.0)
    distances = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    for distance, steps in ((0.2, 1), (0.65, 3), (1.0, 5), (9.0, 5)):
        bounds = vector_bounds(table, 2.0, dimension=10, norm=math.inf, distance=distance)
        expected = 10 * matrix[distances <= steps].max()
        assert bounds.greedy == bounds.linear_program == bounds.integer == pytest.approx(expected, rel=1e-12)


def test_distances_out_of_reach_are_left_out_of_the_guarantee() -> None:
    # One bit reveals little, and divergences grow with the squared distance, so mixing in far pairs raises the relaxation.
    table = np.column_stack([np.arange(20, 29), np.arange(28, 19, -1)])
    matrix = renyi_matrix(table, 2.0)
    distances = np.abs(np.subtract.outer(np.arange(9), np.arange(9)))
    (bound,) = vector_divergences(table, [2.0], dimension=1, norm=1.0, distance=0.5)
    envelope = concave_envelope(range(5), [matrix[distances == k].max() for k in range(5)])
    assert bound == pytest.approx(float(envelope.value(4)), rel=1e-10)
    assert bound < 0.6 * vector_bounds(table, 2.0, dimension=1, norm=1.0, distance=0.5).linear_program


def test_the_dimension_does_not_cost_anything() -> None:
    table = random_table(32, seed=6)
    million = vector_bounds(table, 2.0, dimension=10**6, norm=1.0, distance=1.0)
    assert million.integer is not None
    assert million.integer == pytest.approx(vector_bounds(table, 2.0, dimension=31, norm=1.0, distance=1.0).integer, rel=1e-12)
    assert million.linear_program == pytest.approx(million.greedy, rel=1e-9)


def test_what_is_not_affordable_is_not_computed() -> None:
    assert vector_bounds(random_table(512, seed=1), 2.0, dimension=128, norm=2.0, distance=1.0).integer is None
    assert vector_bounds(random_table(4, seed=1), 2.0, dimension=128, norm=1.5, distance=1.0).integer is None


def test_a_letter_that_only_one_input_sends_makes_every_bound_infinite() -> None:
    bounds = vector_bounds([[1, 1, 0], [1, 0, 1]], 2.0, dimension=3, norm=1.0, distance=1.0)
    assert bounds.greedy == bounds.linear_program == bounds.integer == math.inf


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dimension": 0}, "dimension must be a whole number from 1"),
        ({"norm": 0.5}, "norm must be a number from 1"),
        ({"norm": math.nan}, "norm must be a number from 1"),
        ({"distance": 0.0}, "distance must be a number from 1e-09"),
        ({"distance": math.nan}, "distance must be a number from 1e-09"),
        ({"order": 1.0}, "orders must be above 1, got 1.0"),
    ],
)
def test_arguments_out_of_range_are_refused(changed: dict[str, float], message: str) -> None:
    arguments = {"order": 2.0, "dimension": 3, "norm": 1.0, "distance": 1.0} | changed
    with pytest.raises(ValueError, match=message):
        vector_bounds([[3, 1], [1, 3]], **arguments)


def test_a_program_that_is_too_large_is_refused() -> None:
    with pytest.raises(ValueError, match="dimension must be a whole number from 1 to 250000"):
        composition_program_value([[0.0, 1.0], [1.0, 0.0]], 10**6, 1.0, 1.0)
    with pytest.raises(ValueError, match="divergences must be a square array of finite numbers"):
        composition_program_value([[0.0, math.inf], [1.0, 0.0]], 1, 1.0, 1.0)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.floats(0.01, 10), st.floats(0, 10)), max_size=12), st.floats(0, 5), st.floats(0, 15))
def test_the_envelope_is_the_best_mixture_of_two_points(points: list[tuple[float, float]], at_zero: float, cost: float) -> None:
    xs, ys = [0.0, *(x for x, _ in points)], [at_zero, *(y for _, y in points)]
    reached = max(y for x, y in zip(xs, ys, strict=True) if x <= cost)
    for (x, y), (other_x, other_y) in itertools.permutations(zip(xs, ys, strict=True), 2):
        if x <= cost < other_x:
            reached = max(reached, y + (other_y - y) * (cost - x) / (other_x - x))
    assert float(concave_envelope(xs, ys).value(cost)) == pytest.approx(reached, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("costs", "values", "message"),
    [
        ([0, 1], [0, math.inf], "values must be finite numbers of at least 0"),
        ([0, 1], [0, -1], "values must be finite numbers of at least 0"),
        ([0, 1], [0], "values must be finite numbers of at least 0"),
        ([1, 2], [0, 1], "costs must be at least 0, with a cost of 0 among them"),
        ([0, -1], [0, 1], "costs must be at least 0, with a cost of 0 among them"),
    ],
)
def test_points_that_have_no_envelope_are_refused(costs: list[float], values: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        concave_envelope(costs, values)


@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("distance", [0.4, 1.0])
def test_known_distances_compose_as_the_table_does(norm: float, distance: float) -> None:
    table, orders = random_table(5, seed=8), [1.5, 4.0, math.inf]
    composed = compose_distances(divergence_by_distance(table, orders), 3, norm, distance)
    np.testing.assert_allclose(composed, vector_divergences(table, orders, 3, norm, distance), rtol=1e-12)
    if math.isinf(norm):
        # Every coordinate may be as far apart as the whole vector.
        reach = math.floor(distance * 4)
        largest = [max(renyi_matrix(table, order)[i, j] for i in range(5) for j in range(5) if abs(i - j) <= reach) for order in orders]
        assert (composed >= 3 * np.array(largest)).all()
        assert composed == pytest.approx(3 * np.array(largest), rel=1e-6)


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 3.0, 7.3])
def test_a_vector_can_spend_all_of_its_budget_on_one_coordinate(norm: float) -> None:
    # If rounding takes a whole step from the budget, the bound misses the largest divergence.
    for inputs in (2, 4, 16, 64, 256):
        for steps in range(1, inputs):
            spending = distance_prices(inputs, norm, steps / (inputs - 1))
            assert spending.prices[steps] <= spending.budget < spending.prices[steps] * (1 + 1e-9)


def test_relaxations_are_never_rounded_down() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        divergences, prices = np.append(0.0, np.cumsum(rng.random(3))), np.arange(4.0) ** 1.5
        budget = float(rng.uniform(0.1, 20.0))
        steepest = max(Fraction(gain) / Fraction(price) for gain, price in zip(divergences[1:].tolist(), prices[1:].tolist(), strict=True))
        assert Fraction(greedy_bound(divergences, prices, budget)) >= Fraction(budget) * steepest
        # One coordinate spends all of its budget, on a mixture of at least two neighbouring choices.
        spent = min(Fraction(budget), Fraction(float(prices[-1])))
        mixtures = [
            Fraction(low) + (Fraction(high) - Fraction(low)) * (spent - Fraction(below)) / (Fraction(above) - Fraction(below))
            for (low, below), (high, above) in itertools.combinations(zip(divergences.tolist(), prices.tolist(), strict=True), 2)
            if Fraction(below) <= spent <= Fraction(above)
        ]
        assert Fraction(envelope_bound(divergences, prices, 1, budget)) >= max(mixtures)
