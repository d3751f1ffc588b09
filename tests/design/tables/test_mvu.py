"""The designer of tables.

Tables are exact, never worse than reference tables, near the bound, and repeatable.
"""

from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietbits.design.tables import mvu
from quietbits.design.tables.lookup_table import LookupTable
from quietbits.design.tables.mvu import design_mvu, search_mvu, with_certified_bound
from quietbits.design.tables.provenance import record_provenance
from quietbits.design.tables.randomised_response import bitwise_randomised_response, generalised_randomised_response
from quietbits.design.tables.verification import verify_table
from quietbits.errors import ConvergenceError
from quietbits.solvers.bounds.privacy_constraint import ratio_constraint
from quietbits.solvers.bounds.staircase import solve_staircase
from quietbits.solvers.table_search import alternating, table_strategy, trust_region
from quietbits.solvers.table_search.table_program import TableProgram

PRIOR = np.arange(1.0, 9.0)


def check_exactness(table: LookupTable) -> None:
    """Check sums, bias, privacy and certificate of the integer weights in exact arithmetic."""
    count = 2**table.bits_in
    weights = [[int(weight) for weight in row] for row in table.weights]
    assert all(sum(row) == table.total and min(row) >= 0 for row in weights)
    for i, row in enumerate(weights):
        assert sum(w * a for w, a in zip(row, table.alphabet, strict=True)) == Fraction(i, count - 1) * table.total
    assert table.certificate.max_bias == 0
    assert table.certificate.realised_epsilon <= table.epsilon
    # Letters that only some inputs send would have an infinite ratio.
    columns = [column for column in zip(*weights, strict=True) if any(column)]
    if table.metric is None:
        ratio, distance = max(Fraction(max(column), min(column)) for column in columns), 1.0
    else:
        # For powers p >= 1, the ratio of neighbours determines the privacy.
        pairs = [pair for column in columns for pair in pairwise(column)]
        ratio, distance = max(Fraction(max(pair), min(pair)) for pair in pairs), (count - 1) ** -float(table.metric[1:])
    with mpmath.workdps(40):
        realised = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator) / mpmath.mpf(distance)
        assert realised <= table.certificate.realised_epsilon * (1 + mpmath.mpf(2) ** -50)
    assert float(realised) == pytest.approx(table.certificate.realised_epsilon, rel=1e-9)
    alphabet = np.array([float(letter) for letter in table.alphabet])
    variances = (table.probabilities * (np.linspace(0, 1, count)[:, None] - alphabet) ** 2).sum(axis=1)
    assert table.certificate.mean_variance == pytest.approx(variances.mean(), rel=1e-9)
    assert table.certificate.worst_variance == pytest.approx(variances.max(), rel=1e-9)


def objective_of(table: LookupTable) -> float:
    if table.certificate.objective == "worst":
        return table.certificate.worst_variance
    grid = np.array([float(x) for x in np.linspace(*table.interval, 2**table.bits_in)])
    weights = np.full(len(grid), 1 / len(grid)) if table.prior is None else np.array(table.prior)
    return float(weights @ table.variance(grid))


@cache
def designed(epsilon: float, bits_in: int, bits_out: int, metric: str | None = None) -> LookupTable:
    return design_mvu(epsilon, bits_in, bits_out, metric, starts=1)


# The alternating search stays far from the optimum at epsilon 1.
@pytest.mark.parametrize(("epsilon", "bits", "solvers"), [(1, 2, ["trust-region"]), (5, 3, ["trust-region", "alternating"])])
def test_the_design_is_not_worse_than_any_other_method(epsilon: float, bits: int, solvers: list[str]) -> None:
    table = designed(epsilon, bits, bits)
    check_exactness(table)
    value = table.certificate.mean_variance
    others = [generalised_randomised_response(epsilon, bits), bitwise_randomised_response(epsilon, bits)]
    others += [design_mvu(epsilon, bits, bits, solver=solver, starts=1) for solver in solvers]
    for other in others:
        check_exactness(other)
        assert value <= other.certificate.mean_variance * (1 + 1e-9)
    # The gap is the cost of few letters relative to any number of letters.
    assert 0 <= table.certificate.optimality_gap <= 0.02


@pytest.mark.parametrize(("epsilon", "metric"), [(0.5, None), (3, None), (10, None), (0.5, "l1"), (10, "l1"), (1, "l2"), (10, "l2")])
def test_with_one_bit_to_spare_the_table_is_optimal_and_rounding_costs_nothing(epsilon: float, metric: str | None) -> None:
    table = design_mvu(epsilon, 3, 4, metric)
    check_exactness(table)
    assert 0 <= table.certificate.optimality_gap <= 1e-6
    optimum = solve_staircase(3, ratio_constraint(epsilon, 3, metric), np.full(8, 1 / 8)).value
    assert table.certificate.mean_variance == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "metric"), [(1, None), (10, None), (1, "l1"), (10, "l1")])
def test_rounding_costs_less_than_a_millionth_of_the_float_table(epsilon: float, metric: str | None) -> None:
    table = design_mvu(epsilon, 3, 2, metric, starts=1)
    alphabet = np.array([float(letter) for letter in table.alphabet])
    program = TableProgram(np.linspace(0, 1, 8), 4, ratio_constraint(epsilon, 3, metric), np.full(8, 1 / 8))
    assert table.certificate.mean_variance <= program.solve(alphabet).value * (1 + 1e-6)


@pytest.mark.parametrize("objective", ["worst", PRIOR])
@pytest.mark.parametrize("bits_out", [2, 4])
def test_other_objectives_are_served_better_than_by_the_mean(bits_out: int, objective: str | np.ndarray) -> None:
    table, mean = design_mvu(3, 3, bits_out, objective=objective, starts=1), designed(3, 3, bits_out)
    check_exactness(table)
    value = objective_of(table)
    assert table.certificate.lower_bound <= value
    assert table.certificate.optimality_gap == pytest.approx(1 - table.certificate.lower_bound / value, rel=1e-3, abs=1e-8)
    grid_variances = mean.variance(np.linspace(0, 1, 8))
    by_mean = grid_variances.max() if isinstance(objective, str) else objective / objective.sum() @ grid_variances
    assert value <= by_mean * (1 + 1e-9)
    # The table for the mean has the least mean variance.
    assert mean.certificate.mean_variance <= table.certificate.mean_variance * (1 + 1e-9)


def test_prior_weights_need_not_sum_to_one() -> None:
    table, scaled = (design_mvu(3, 3, 4, objective=weights) for weights in (PRIOR, PRIOR / PRIOR.sum()))
    assert table.prior == pytest.approx(scaled.prior)
    assert sum(table.prior) == pytest.approx(1)
    assert objective_of(table) == pytest.approx(objective_of(scaled), rel=1e-7)


@pytest.mark.parametrize(("bits_out", "metric"), [(2, None), (2, "l1")])
def test_symmetric_tables_are_mirrored_exactly(bits_out: int, metric: str | None) -> None:
    table = design_mvu(3, 3, bits_out, metric, symmetric=True, starts=1)
    check_exactness(table)
    assert np.array_equal(table.weights, table.weights[::-1, ::-1])
    assert all(a + b == 1 for a, b in zip(table.alphabet, reversed(table.alphabet), strict=True))
    unrestricted = designed(3, 3, bits_out, metric)
    assert unrestricted.certificate.mean_variance <= table.certificate.mean_variance * (1 + 1e-6)


def test_the_same_seed_gives_the_same_table_however_many_workers() -> None:
    table, other = (design_mvu(2, 3, 2, starts=3, seed=5, workers=workers) for workers in (1, 2))
    assert np.array_equal(table.weights, other.weights)
    assert (table.alphabet, table.total) == (other.alphabet, other.total)
    assert table.provenance.seed == other.provenance.seed == 5


def test_an_interval_moves_the_values_not_the_table() -> None:
    table, unit = design_mvu(2, 2, 3, interval=(-3.0, 5.0)), design_mvu(2, 2, 3)
    assert np.array_equal(table.weights, unit.weights)
    assert table.interval == (-3.0, 5.0)
    assert table.variance(np.array([-3.0, 5.0])) == pytest.approx(64 * unit.variance(np.array([0.0, 1.0])), rel=1e-12)


@pytest.mark.parametrize(("bits_in", "bits_out", "metric"), [(5, 5, "l1"), (6, 3, None), (6, 1, None), (4, 6, "l3")])
def test_sizes_that_are_served_in_other_ways(bits_in: int, bits_out: int, metric: str | None) -> None:
    """The designer covers many letters, a refined grid, one bit, and too strong privacy."""
    table = design_mvu(2 if metric != "l3" else 0.05, bits_in, bits_out, metric, starts=1)
    check_exactness(table)
    assert table.weights.shape == (2**bits_in, 2**bits_out)
    # One bit is further from the lower bound than more bits.
    assert 0 <= table.certificate.optimality_gap <= (0.5 if bits_out == 1 else 0.03)


def test_where_programs_would_be_too_large_a_coarser_grid_gives_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = design_mvu(2, 4, 2, starts=1)
    monkeypatch.setattr(table_strategy, "PROGRAM_BITS", {"local": 6, "metric": 6})
    table = design_mvu(2, 4, 4, starts=1)
    check_exactness(table)
    # The search alone would reach no more than four letters.
    assert np.count_nonzero(table.weights.any(axis=0)) > 4
    assert table.certificate.optimality_gap < 0.03 < searched.certificate.optimality_gap


def test_a_bound_can_be_had_for_any_unbiased_table() -> None:
    table = with_certified_bound(generalised_randomised_response(3, 3))
    bound = designed(3, 3, 4).certificate.lower_bound
    assert table.certificate.lower_bound == pytest.approx(bound, rel=1e-5)
    assert table.certificate.lower_bound <= table.certificate.mean_variance


@pytest.mark.parametrize(("epsilon", "bits_in", "bits_out"), [(18, 1, 2), (20, 3, 4), (20, 3, 3), (20, 2, 9)])
def test_little_privacy_and_letters_to_spare(epsilon: float, bits_in: int, bits_out: int) -> None:
    table = design_mvu(epsilon, bits_in, bits_out, starts=1)
    check_exactness(table)
    assert table.certificate.mean_variance <= generalised_randomised_response(epsilon, bits_in).certificate.mean_variance * (1 + 1e-6)


@pytest.mark.parametrize(("bits_in", "bits_out"), [(1, 1), (1, 3), (2, 4), (2, 2)])
def test_mirrored_tables_are_mirrored_at_the_largest_epsilon_too(bits_in: int, bits_out: int) -> None:
    table = design_mvu(20, bits_in, bits_out, symmetric=True, starts=1)
    check_exactness(table)
    assert all(letter + mirrored == 1 for letter, mirrored in zip(table.alphabet, reversed(table.alphabet), strict=True))
    np.testing.assert_array_equal(table.weights, table.weights[::-1, ::-1])


def test_of_two_inputs_every_metric_is_local_privacy() -> None:
    table = design_mvu(20, 1, 2, "l1")
    check_exactness(table)
    assert table.certificate.optimality_gap <= 1e-6


def test_strong_metric_privacy_and_letters_to_spare() -> None:
    check_exactness(design_mvu(0.1, 3, 4, "l2", starts=1))


@pytest.mark.parametrize(("bits_in", "bits_out"), [(2, 3), (3, 4)])
def test_symmetric_tables_with_letters_to_spare_are_optimal(bits_in: int, bits_out: int) -> None:
    table = design_mvu(2, bits_in, bits_out, symmetric=True)
    check_exactness(table)
    assert table.certificate.optimality_gap <= 1e-6


@settings(max_examples=10)
@given(
    epsilon=st.floats(0.5, 16),
    bits_in=st.integers(1, 3),
    bits_out=st.integers(1, 4),
    metric=st.sampled_from([None, "l1", "l1.5", "l2"]),
)
def test_every_design_is_exact_and_above_its_bound(epsilon: float, bits_in: int, bits_out: int, metric: str | None) -> None:
    table = design_mvu(epsilon, bits_in, bits_out, metric, starts=1)
    check_exactness(table)
    assert table.certificate.lower_bound <= table.certificate.mean_variance
    assert table.bits_per_client == bits_out


@pytest.mark.parametrize(("bits_in", "bits_out"), [(3, 2), (2, 3)])
def test_tables_of_one_search_have_the_bounds_of_their_own_epsilons(bits_in: int, bits_out: int) -> None:
    search = search_mvu(3.0, bits_in, bits_out, None, seed=0)
    assert not search.symmetric
    count = 2**bits_in
    for epsilon in (3.0, 2.0):
        table = search.table(epsilon)
        check_exactness(table)
        assert table.weights.shape == (count, 2**bits_out)
        assert table.interval == (0.0, 1.0)
        optimum = solve_staircase(bits_in, ratio_constraint(epsilon, bits_in, None), np.full(count, 1 / count)).value
        assert table.certificate.lower_bound == pytest.approx(optimum, rel=1e-5)


def test_a_search_descends_from_the_letters_of_an_earlier_search(monkeypatch: pytest.MonkeyPatch) -> None:
    starts, choose = [], mvu.choose_design

    def recorded(*arguments: Any, start: Any = None, **how: Any) -> Any:
        starts.append(start)
        return choose(*arguments, start=start, **how)

    monkeypatch.setattr(mvu, "choose_design", recorded)
    earlier = search_mvu(3.0, 3, 2, None, seed=0)
    later = search_mvu(2.9, 3, 2, None, seed=0, start=earlier)
    assert starts == [None, earlier.made.searched]
    assert later.table(2.9).certificate.mean_variance <= designed(2.9, 3, 2).certificate.mean_variance * (1 + 1e-6)


@pytest.mark.parametrize("solver", ["trust-region", "alternating"])
def test_the_paper_s_solvers_are_called_for_all_inputs_and_letters(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called = []

    def recorded(name: str) -> Any:
        def solve(inputs: np.ndarray, letters: int, *_: object, starts: int, **_how: object) -> None:
            called.append((name, inputs.tolist(), letters, starts))
            raise ConvergenceError("a solver was called")

        return solve

    monkeypatch.setattr(trust_region, "solve_trust_region", recorded("trust-region"))
    monkeypatch.setattr(alternating, "solve_alternating", recorded("alternating"))
    with pytest.raises(ConvergenceError, match="a solver was called"):
        design_mvu(1.0, 2, 3, solver=solver, starts=7)
    with pytest.raises(ConvergenceError, match="a solver was called"):
        design_mvu(1.0, 2, 3, solver=solver)
    (name, inputs, letters, starts), (*_, usual_starts) = called
    assert usual_starts >= 1
    assert (name, letters, starts) == (solver, 8, 7)
    assert inputs == pytest.approx([0, 1 / 3, 2 / 3, 1], rel=1e-12)


def test_the_paper_s_solvers_end_with_their_own_table_even_if_randomised_response_is_better() -> None:
    table = design_mvu(5, 2, 2, solver="alternating", starts=1)
    assert table.certificate.mean_variance > generalised_randomised_response(5, 2).certificate.mean_variance
    assert (table.provenance.solver, table.provenance.seed) == ("alternating", 0)


@pytest.mark.parametrize(("bits_in", "bits_out"), [(1, 2), (1, 3), (2, 3), (2, 5)])
def test_randomised_response_has_mirrored_spare_letters_in_the_outer_gaps(bits_in: int, bits_out: int) -> None:
    response = generalised_randomised_response(2.0, bits_in)
    table = mvu._randomised_response(
        2.0, bits_in, bits_out, None, mvu.TableObjective("mean"), None, (0.0, 1.0), record_provenance("by hand", 0, 0.0)
    )
    verify_table(table)
    used = table.weights.any(axis=0)
    assert np.array_equal(table.weights[:, used], response.weights)
    assert tuple(letter for letter, weighed in zip(table.alphabet, used, strict=True) if weighed) == response.alphabet
    assert all(letter + mirrored == 1 for letter, mirrored in zip(table.alphabet, reversed(table.alphabet), strict=True))
    middle = sum(response.alphabet[:2], Fraction(0)) / 2
    spare = [letter for letter, weighed in zip(table.alphabet, used, strict=True) if not weighed][: (2**bits_out - 2**bits_in) // 2]
    assert all(response.alphabet[0] < letter < middle for letter in spare)


def test_without_a_number_of_starts_the_table_is_no_worse_than_with_one() -> None:
    assert design_mvu(3, 3, 2).certificate.mean_variance <= designed(3, 3, 2).certificate.mean_variance * (1 + 1e-9)
    assert 0 < design_mvu(1.0, 1, 1).provenance.duration < 60


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0}, "epsilon must be a number from 0.001 to 20, got 0"),
        ({"epsilon": float("nan")}, "epsilon must be a number from 0.001 to 20, got nan"),
        ({"epsilon": -1.0}, "epsilon must be a number from 0.001 to 20, got -1.0"),
        ({"epsilon": 21}, "epsilon must be a number from 0.001 to 20, got 21"),
        ({"bits_in": 0}, "bits_in must be a whole number from 1 to 9, got 0"),
        ({"bits_in": 10}, "bits_in must be a whole number from 1 to 9, got 10"),
        ({"bits_in": 2.5}, "bits_in must be a whole number from 1 to 9, got 2.5"),
        ({"bits_out": 0}, "bits_out must be a whole number from 1 to 9, got 0"),
        ({"bits_out": 10}, "bits_out must be a whole number from 1 to 9, got 10"),
        ({"bits_out": 2.5}, "bits_out must be a whole number from 1 to 9, got 2.5"),
        ({"metric": "l0.5"}, "metric must be none, l1, l2 or l<p> with a finite p >= 1, got 'l0.5'"),
        ({"metric": "linf"}, "metric must be none, l1, l2 or l<p> with a finite p >= 1, got 'linf'"),
        ({"objective": "median"}, "objective must be 'mean', 'worst' or 4 weights, got 'median'"),
        ({"objective": [1.0, 1.0]}, "objective must be 'mean', 'worst' or 4 finite non-negative weights, not all zero, got [1.0, 1.0]"),
        ({"objective": [1, 2, -1, 1]}, "finite non-negative weights, not all zero, got [1, 2, -1, 1]"),
        ({"objective": [0, 0, 0, 0]}, "finite non-negative weights, not all zero, got [0, 0, 0, 0]"),
        ({"objective": [1, float("inf"), 1, 1]}, "finite non-negative weights, not all zero, got [1, inf, 1, 1]"),
        ({"objective": ["a", "b", "c", "d"]}, "objective must be 'mean', 'worst' or 4 weights, got ['a', 'b', 'c', 'd']"),
        ({"solver": "magic"}, "solver must be one of staircase, trust-region, alternating, got 'magic'"),
        ({"solver": "alternating", "symmetric": True}, "symmetric=True needs solver 'staircase', got solver 'alternating'"),
        ({"interval": (1.0, 0.0)}, "interval must be two finite numbers with low < high, got (1.0, 0.0)"),
        ({"interval": 3}, "interval must be two numbers (low, high), got 3"),
        ({"seed": -1}, "seed must be a whole number from 0 to 9223372036854775807, got -1"),
        ({"workers": 0}, "workers must be a whole number from 1 to 1024, got 0"),
        ({"starts": 0}, "starts must be a whole number from 1 to 100000, got 0"),
    ],
)
def test_bad_arguments_are_named_with_what_is_needed(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared below
        design_mvu(**({"epsilon": 1.0, "bits_in": 2, "bits_out": 2} | changes))
    assert message in str(caught.value)


def test_where_letters_cost_the_most_the_average_bounds_the_largest_variance() -> None:
    """The bound's proof has equal weights; the dual values of the average, computed on their own, prove as much."""
    table = design_mvu(16.0, 4, 2, objective="worst")
    dual, average = table.certificate.dual, design_mvu(16.0, 4, 2).certificate
    assert dual is not None
    assert dual.input_weights == (1 / 16,) * 16
    assert table.certificate.lower_bound == pytest.approx(average.lower_bound, rel=1e-6)
    assert 0 < (table.certificate.lower_bound or 0) < table.certificate.worst_variance
