import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietbits.design.tables.exact_rounding import (
    RoundedTable,
    _with_spare_letters,
    letter_grid,
    lifted,
    position_candidates,
    rebalanced,
    round_table,
)
from quietbits.design.tables.lookup_table import LookupTable
from quietbits.design.tables.mvu import exact_table
from quietbits.design.tables.provenance import record_provenance
from quietbits.design.tables.table_facts import realised_epsilon, row_moments
from quietbits.design.tables.verification import verify_table
from quietbits.errors import ConvergenceError
from quietbits.solvers.bounds.privacy_constraint import RatioConstraint
from quietbits.solvers.table_search.table_program import TableProgram

TOTAL = 2**62


def constraint_at(epsilon: float, inputs: int, metric: str | None) -> RatioConstraint:
    if metric is None:
        return RatioConstraint(epsilon, neighbours_only=False)
    return RatioConstraint(epsilon / (inputs - 1) ** float(metric[1:]), neighbours_only=True)


def perturbed_letters(epsilon: float, inputs: int, letters: int, metric: str | None, seed: int, symmetric: bool) -> np.ndarray:
    """Return letters that reach far enough, from a stretched, perturbed randomised response."""
    rng = np.random.default_rng(seed)
    spread = constraint_at(epsilon, inputs, metric).log_ratio * (1 if metric is None else inputs - 1)
    reach = 1 + (2 / np.expm1(spread) + 0.1 if metric is None else 6 / spread)
    alphabet = np.sort(0.5 + (np.arange(letters) / (letters - 1) - 0.5) * reach + rng.normal(size=letters) * 0.02 * reach)
    alphabet[0], alphabet[-1] = min(alphabet[0], 0.5 - reach / 2), max(alphabet[-1], 0.5 + reach / 2)
    return (alphabet + 1 - alphabet[::-1]) / 2 if symmetric else alphabet


def program_for(epsilon: float, inputs: int, letters: int, metric: str | None) -> TableProgram:
    return TableProgram(np.arange(inputs) / (inputs - 1), letters, constraint_at(epsilon, inputs, metric), np.full(inputs, 1 / inputs))


def made_exact(epsilon: float, inputs: int, letters: int, metric: str | None, seed: int, symmetric: bool) -> tuple[LookupTable, float]:
    alphabet = perturbed_letters(epsilon, inputs, letters, metric, seed, symmetric)
    program = program_for(epsilon, inputs, letters, metric)
    variance = program.solve(alphabet).value

    def design(target: float) -> tuple[np.ndarray, np.ndarray]:
        nearby = program_for(target, inputs, letters, metric)
        nearby.start_from(program)
        return nearby.solve(alphabet).probabilities, alphabet

    table = exact_table(
        design,
        mechanism="mvu",
        epsilon=epsilon,
        metric=metric,
        symmetric=symmetric,
        provenance=record_provenance("table program", seed, 0.0),
    )
    return table, variance


def assert_exact(table: LookupTable, symmetric: bool) -> None:
    verify_table(table)
    assert table.certificate.max_bias == 0.0
    if symmetric:
        assert (table.weights[::-1, ::-1] == table.weights).all()
        assert all(below + above == 1 for below, above in zip(table.alphabet, table.alphabet[::-1], strict=True))
    else:
        assert list(table.alphabet) == sorted(set(table.alphabet))


@settings(max_examples=50)
@given(
    epsilon=st.floats(0.05, 10.0),
    inputs=st.sampled_from([2, 4, 8, 16]),
    letters=st.sampled_from([2, 4, 8, 16]),
    metric=st.sampled_from([None, "l1", "l1.5", "l2"]),
    seed=st.integers(0, 1000),
    symmetric=st.booleans(),
)
def test_tables_become_exact_for_less_than_a_millionth_of_their_variance(
    epsilon: float, inputs: int, letters: int, metric: str | None, seed: int, symmetric: bool
) -> None:
    table, variance = made_exact(epsilon, inputs, letters, metric, seed, symmetric)
    assert_exact(table, symmetric)
    assert table.certificate.mean_variance <= variance * (1 + 1e-6)


@pytest.mark.parametrize("metric", [None, "l1"])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(("inputs", "letters"), [(8, 2), (8, 4), (8, 8), (32, 8)])
def test_tables_at_epsilon_twenty(inputs: int, letters: int, metric: str | None, symmetric: bool) -> None:
    table, variance = made_exact(20.0, inputs, letters, metric, 0, symmetric)
    assert_exact(table, symmetric)
    assert table.certificate.mean_variance <= variance * (1 + 1e-3)


@pytest.mark.parametrize(("inputs", "letters", "metric"), [(64, 64, None), (512, 4, "l1")])
def test_large_tables(inputs: int, letters: int, metric: str | None) -> None:
    table, variance = made_exact(1.0, inputs, letters, metric, 1, symmetric=False)
    assert_exact(table, symmetric=False)
    assert table.certificate.mean_variance <= variance * (1 + 1e-6)


def randomised_response(epsilon: float, inputs: int) -> tuple[np.ndarray, np.ndarray]:
    odds = np.exp(epsilon)
    table = ((odds - 1) * np.eye(inputs) + 1) / (inputs + odds - 1)
    return table, (np.arange(inputs) / (inputs - 1) * (inputs + odds - 1) - inputs / 2) / (odds - 1)


def assert_rows(rounded: RoundedTable) -> None:
    moments = row_moments(rounded.weights, rounded.alphabet, TOTAL)
    assert (rounded.weights.astype(object).sum(axis=1) == TOTAL).all()
    assert moments.max_bias == 0


@pytest.mark.parametrize("inputs", [64, 512])
def test_evenly_spaced_letters_have_few_free_ratios_and_still_fit(inputs: int) -> None:
    table, alphabet = randomised_response(1.0, inputs)
    rounded = round_table(table, alphabet, RatioConstraint(1.0, neighbours_only=False))
    assert_rows(rounded)
    assert realised_epsilon(rounded.weights, None) <= 1 + 1e-12


def test_letters_may_come_in_any_order() -> None:
    table, alphabet = randomised_response(1.0, 8)
    order = np.random.default_rng(0).permutation(8)
    constraint = RatioConstraint(1.0, neighbours_only=False)
    shuffled, straight = round_table(table[:, order], alphabet[order], constraint), round_table(table, alphabet, constraint)
    assert (shuffled.weights == straight.weights).all()
    assert shuffled.alphabet == straight.alphabet


@pytest.mark.parametrize("place", [0, 4, 8])
def test_dust_becomes_a_column_of_zeros(place: int) -> None:
    table, alphabet = randomised_response(1.0, 8)
    # The column below, between or above the others has entries that differ by more than any epsilon allows.
    dust = np.array([1e-10, 1e-14, 0.0, 1e-10, 3e-11, 0.0, 0.0, 1e-12])
    table = np.insert(table, place, dust, axis=1)
    alphabet = np.insert(alphabet, place, (alphabet[0] - 1) if place == 0 else (alphabet[place - 1] + 0.1))
    # The number of letters is a power of two, as in all tables.
    table = np.concatenate([table, np.zeros((8, 7))], axis=1)
    alphabet = np.concatenate([alphabet, np.linspace(0.3, 0.4, 7)])
    rounded = round_table(table, alphabet, RatioConstraint(1.0, neighbours_only=False))
    assert_rows(rounded)
    assert realised_epsilon(rounded.weights, None) <= 1 + 1e-7
    assert np.count_nonzero(rounded.weights.any(axis=0)) == 8
    assert list(rounded.alphabet) == sorted(set(rounded.alphabet))


COINCIDING = [[-0.6, 0.5, 0.5, 1.6], [-0.6, 0.5 - 1e-14, 0.5 + 1e-14, 1.6], [-0.6, -0.6, 0.1, 0.5, 0.5, 0.9, 1.6, 1.6]]


@pytest.mark.parametrize("alphabet", COINCIDING)
@pytest.mark.parametrize("symmetric", [False, True])
def test_letters_that_coincide_share_a_column_or_stand_at_the_centre(alphabet: list[float], symmetric: bool) -> None:
    letters = np.array(alphabet)
    table = program_for(1.0, 8, len(letters), None).solve(letters).probabilities
    rounded = round_table(table, letters, RatioConstraint(1.0, neighbours_only=False), symmetric=symmetric)
    assert_rows(rounded)
    assert rounded.weights.shape == (8, len(alphabet))
    assert realised_epsilon(rounded.weights, None) <= 1 + 1e-9
    # Only a mirrored table with an odd number of used letters repeats a letter, namely 1/2.
    twice = {letter for letter, after in zip(rounded.alphabet, rounded.alphabet[1:], strict=False) if letter == after}
    assert twice <= ({Fraction(1, 2)} if symmetric else set())
    if symmetric:
        assert (rounded.weights[::-1, ::-1] == rounded.weights).all()


def test_tables_that_are_not_solved_are_refused() -> None:
    table, alphabet = randomised_response(1.0, 8)
    constraint = RatioConstraint(1.0, neighbours_only=False)
    with pytest.raises(ConvergenceError, match=r"the sum of its row 0 is off by 0\.001"):
        round_table(table * 1.001, alphabet, constraint)
    too_little = table * np.where(np.arange(8) == 3, 0.999, 1.0)[:, None]
    with pytest.raises(ConvergenceError, match=r"the sum of its row 3 is off by -0\.001"):
        round_table(too_little, alphabet, constraint)
    with pytest.raises(ConvergenceError, match=r"the mean of its row [0-7] is off by"):
        round_table(table, alphabet * 1.001, constraint)


def test_a_table_is_neither_mirrored_nor_of_another_interval_unless_it_is_said() -> None:
    probabilities, letters = np.array([[0.75, 0.25], [0.125, 0.875]]), np.array([-0.4, 1.2])
    table = exact_table(lambda _: (probabilities, letters), mechanism="mvu", epsilon=2.0, provenance=record_provenance("by hand", 0, 0.0))
    verify_table(table)
    assert table.interval == (0.0, 1.0)
    assert table.probabilities == pytest.approx(probabilities, rel=1e-6)
    assert table.certificate.realised_epsilon == pytest.approx(math.log(6), rel=1e-6)


def test_a_design_that_is_not_private_enough_is_refused() -> None:
    with pytest.raises(ConvergenceError, match=r"the table is not private: in row 0, letter 1 is 0\.00268 below its column"):
        exact_table(
            lambda _: randomised_response(1.01, 2), mechanism="mvu", epsilon=1.0, provenance=record_provenance("a bad design", 0, 0.0)
        )


def test_a_table_that_rounding_cannot_save_is_refused() -> None:
    # Within a solver's tolerance, the identity looks private at epsilon 20, but is not.
    with pytest.raises(ConvergenceError, match=r"realised epsilon is infinite at declared epsilon 20, even with margin 0\.0001"):
        exact_table(
            lambda _: (np.eye(2), np.array([0.0, 1.0])), mechanism="mvu", epsilon=20.0, provenance=record_provenance("the identity", 0, 0.0)
        )


@given(st.integers(2, 8), st.sampled_from([True, False]), st.integers(0, 10**6), st.booleans())
def test_lifting_gives_the_smallest_private_table_above(rows: int, neighbours_only: bool, seed: int, zeros: bool) -> None:
    rng = np.random.default_rng(seed)
    table = rng.exponential(size=(rows, 3)) ** 4 * (rng.random((rows, 3)) > 0.3 if zeros else 1.0)
    constraint = RatioConstraint(0.7, neighbours_only)
    result = lifted(table, constraint)
    distance = np.abs(np.subtract.outer(np.arange(rows), np.arange(rows))) if neighbours_only else 1 - np.eye(rows)
    expected = (table[None] * np.exp(-0.7 * distance)[:, :, None]).max(axis=1)
    assert result == pytest.approx(expected, rel=1e-12)


def test_rebalancing_corrects_sums_and_means_in_large_entries() -> None:
    table, alphabet = randomised_response(8.0, 8)
    disturbed = table * (1 + 1e-7 * np.random.default_rng(0).normal(size=table.shape))
    result = rebalanced(disturbed, alphabet)
    assert result.sum(axis=1) == pytest.approx(np.ones(8), abs=1e-15)
    assert result @ alphabet == pytest.approx(np.arange(8) / 7, abs=1e-15)
    assert result == pytest.approx(table, rel=1e-5)


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(2, 9), st.booleans())
def test_letter_grids_span_their_letters_and_split_them_without_bias(seed: int, count: int, symmetric: bool) -> None:
    alphabet = np.sort(np.random.default_rng(seed).normal(size=count) * 3)
    if symmetric:
        alphabet = (alphabet + 1 - alphabet[::-1]) / 2
    for positions in position_candidates(alphabet, symmetric=symmetric):
        grid = letter_grid(alphabet, positions, 7, 62, symmetric=symmetric)
        assert len(grid.letters) == count
        reach = float(np.ptp(alphabet))
        assert float(grid.letters[0]) == pytest.approx(alphabet[0], abs=1e-12 * reach)
        assert float(grid.letters[-1]) == pytest.approx(alphabet[-1], abs=1e-12 * reach)
        splitting = grid.splitting(alphabet)
        assert (splitting >= 0).all()
        assert splitting.sum(axis=1) == pytest.approx(np.ones(count))
        assert splitting @ [float(letter) for letter in grid.letters] == pytest.approx(alphabet, abs=1e-14 * reach)
        # The equation is the documented condition of an unbiased row.
        for row in (0, 3, 7):
            mean = Fraction(grid.moment(row, 62) * 2**grid.shift, 2**62 * 7 * grid.scale) + Fraction(grid.origin, 7 * grid.scale)
            assert mean == Fraction(row, 7)


def test_entries_too_small_for_exact_rows_are_refused() -> None:
    # Each row uses two letters that the other row never sends, so exact rows would need negative weights.
    letters = np.array([-0.3, 0.41, 0.5, 1.2])
    lower, upper = 0.3 / 0.71, 0.5 / 0.7
    table = np.array([[1 - lower, lower, 0.0, 0.0], [0.0, 0.0, 1 - upper, upper]])
    with pytest.raises(ConvergenceError, match=r"row 1 of the table has too small entries to be made exact"):
        round_table(table, letters, RatioConstraint(60.0, neighbours_only=False))
    rounded = round_table(table, letters, RatioConstraint(30.0, neighbours_only=False))
    assert_rows(rounded)
    assert rounded.weights.min() > 0


def test_an_odd_middle_weight_is_split_so_that_the_table_stays_mirrored() -> None:
    weights = np.array([[3, 3, 2], [2, 3, 3]])
    split = _with_spare_letters(weights, (Fraction(0), Fraction(1, 2), Fraction(1)), 4, symmetric=True)
    assert split.weights.tolist() == [[3, 2, 1, 2], [2, 1, 2, 3]]
    assert split.alphabet == (0, Fraction(1, 2), Fraction(1, 2), 1)


def test_spare_letters_of_a_mirrored_table_are_mirrored_in_the_outer_gaps() -> None:
    weights = np.array([[3, 1, 3, 1, 2], [2, 1, 3, 1, 3]])
    five = _with_spare_letters(weights, tuple(Fraction(quarters, 4) for quarters in range(5)), 8, symmetric=True)
    assert five.weights.tolist() == [[3, 0, 1, 2, 1, 1, 0, 2], [2, 0, 1, 1, 2, 1, 0, 3]]
    assert [float(letter) for letter in five.alphabet] == [0, 0.125, 0.25, 0.5, 0.5, 0.75, 0.875, 1]
    two = _with_spare_letters(np.array([[3, 1], [1, 3]]), (Fraction(0), Fraction(1)), 4, symmetric=True)
    assert two.weights.tolist() == [[3, 0, 0, 1], [1, 0, 0, 3]]
    assert two.alphabet == (0, Fraction(1, 3), Fraction(2, 3), 1)


@pytest.mark.parametrize("lower", [(0.0, 1 / 3), (0.0, 0.2), (0.0, 0.37), (0.0, 1 / 11, 0.3, 0.4)])
def test_positions_of_an_odd_number_of_mirrored_letters_are_mirrored(lower: tuple[float, ...]) -> None:
    # Denominators of the second letter's ratio may be odd: the middle letter then needs twice the denominator.
    letters = [*lower, 0.5, *(1 - letter for letter in reversed(lower))]
    candidates = position_candidates(np.array(letters), symmetric=True)
    for positions in candidates:
        assert all(position + mirrored == positions[-1] for position, mirrored in zip(positions, reversed(positions), strict=True))
    assert min(abs(positions[1] / positions[-1] - lower[1]) for positions in candidates) < 1e-15
