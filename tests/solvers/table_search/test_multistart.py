"""Tests of several starts.

Points under test: the best table is kept, failures are counted and reported, and failures alone give no result.

Starting letters permit a table, and are reproducible.
"""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietbits.errors import ConvergenceError
from quietbits.solvers.bounds.privacy_constraint import RatioConstraint, ratio_constraint
from quietbits.solvers.bounds.two_letters import least_reach
from quietbits.solvers.table_search.multistart import best_of_starts, randomised_response_alphabet, starting_alphabets, widened
from quietbits.solvers.table_search.table_program import TableProgram, TableProgramSolution

CONSTRAINT = ratio_constraint(1, 2, None)


def program() -> TableProgram:
    return TableProgram(np.linspace(0, 1, 4), 4, CONSTRAINT, np.full(4, 0.25))


def stay(alphabet: np.ndarray, _: TableProgramSolution, report: Callable[[int], None]) -> np.ndarray:
    report(1)
    return alphabet


def fail(_: np.ndarray, at_start: TableProgramSolution, report: Callable[[int], None]) -> np.ndarray:  # noqa: ARG001
    raise ConvergenceError(f"stuck at {at_start.value:.3f}")


def test_the_best_of_the_starts_is_kept() -> None:
    design = best_of_starts(stay, program(), CONSTRAINT, 5, np.random.default_rng(0))
    alphabets = starting_alphabets(4, 4, CONSTRAINT, 5, np.random.default_rng(0))
    values = [program().solve(alphabet).value for alphabet in alphabets]
    assert design.value == pytest.approx(min(values), rel=1e-9)
    assert np.array_equal(design.alphabet, alphabets[np.argmin(values)])
    assert (design.starts, design.failures) == (5, ())


def test_a_search_that_ends_worse_than_it_began_does_no_harm() -> None:
    design = best_of_starts(lambda letters, *_: 9 * letters - 4, program(), CONSTRAINT, 1, np.random.default_rng(0))
    assert design.value == best_of_starts(stay, program(), CONSTRAINT, 1, np.random.default_rng(0)).value


def test_letters_that_end_too_near_are_widened() -> None:
    wide = np.array([-3.0, 0.4, 0.6, 4.0])
    near = np.array([0.1, 0.4, 0.6, 0.9])
    assert best_of_starts(lambda *_: wide, program(), CONSTRAINT, 1, np.random.default_rng(0)).alphabet[0] > -3
    design = best_of_starts(lambda *_: near, program(), CONSTRAINT, 1, np.random.default_rng(0))
    assert design.value <= program().solve(starting_alphabets(4, 4, CONSTRAINT, 1, np.random.default_rng(0))[0]).value
    assert design.alphabet[0] <= -least_reach(4, CONSTRAINT)


def test_failed_starts_are_counted_and_told() -> None:
    calls = iter([stay, fail, stay])
    design = best_of_starts(lambda *arguments: next(calls)(*arguments), program(), CONSTRAINT, 3, np.random.default_rng(0))
    assert design.starts == 3
    assert [failure.split(" at ")[0] for failure in design.failures] == ["start 2: stuck"]


def test_failures_alone_are_an_error_that_gives_every_reason() -> None:
    with pytest.raises(ConvergenceError, match=r"all 2 starts failed: start 1: stuck at \d.*; start 2: stuck at"):
        best_of_starts(fail, program(), CONSTRAINT, 2, np.random.default_rng(0))


def test_every_step_of_every_start_is_reported() -> None:
    steps = []
    best_of_starts(stay, program(), CONSTRAINT, 2, np.random.default_rng(0), steps=3, on_step=lambda *step: steps.append(step))
    assert [(done, str(total)) for done, total, _ in steps] == [(done, "at most 6") for done in (0, 1, 3, 4, 6)]
    assert [text for *_, text in steps] == [
        *["descending from start 1 of 2"] * 2,
        *["descending from start 2 of 2"] * 2,
        "rounding the table",
    ]


def test_no_starts_are_refused() -> None:
    with pytest.raises(ValueError, match="starts must be a whole number from 1 to 100000, got 0"):
        best_of_starts(stay, program(), CONSTRAINT, 0, np.random.default_rng(0))


def program_for(letters: int, count: int, constraint: RatioConstraint) -> TableProgram:
    return TableProgram(np.linspace(0, 1, count), letters, constraint, np.full(count, 1 / count))


def solve(alphabet: np.ndarray, count: int, constraint: RatioConstraint) -> float:
    return program_for(len(alphabet), count, constraint).solve(alphabet).value


@settings(max_examples=50)
@given(
    epsilon=st.floats(0.1, 10),
    bits_in=st.integers(1, 4),
    letters=st.integers(2, 9),
    metric=st.sampled_from([None, "l1", "l2"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_table_exists_for_every_starting_alphabet(epsilon: float, bits_in: int, letters: int, metric: str | None, seed: int) -> None:
    constraint = ratio_constraint(epsilon, bits_in, metric)
    alphabets = starting_alphabets(2**bits_in, letters, constraint, 3, np.random.default_rng(seed))
    assert alphabets.shape == (3, letters)
    assert np.all(np.diff(alphabets, axis=1) >= 0)
    tables = program_for(letters, 2**bits_in, constraint)
    for alphabet in alphabets:
        assert tables.solve(alphabet).value > 0


def test_two_local_letters_are_those_of_the_one_bit_mechanism() -> None:
    ratio = np.exp(1.5)
    half_width = (ratio + 1) / (ratio - 1) / 2
    letters = randomised_response_alphabet(8, 2, ratio_constraint(1.5, 3, None))
    assert letters == pytest.approx([0.5 - half_width, 0.5 + half_width], rel=2e-6)


def test_local_letters_on_as_many_points_are_those_of_generalised_randomised_response() -> None:
    inputs, ratio = np.linspace(0, 1, 8), np.exp(2)
    table = (np.eye(8) * (ratio - 1) + 1) / (7 + ratio)
    letters = randomised_response_alphabet(8, 8, ratio_constraint(2, 3, None))
    assert table @ letters == pytest.approx(inputs, abs=1e-14)


def test_widening_moves_only_the_outermost_letters_and_no_farther_than_needed() -> None:
    constraint = ratio_constraint(1, 3, "l1")
    reach = least_reach(8, constraint)
    letters = widened(np.array([0.8, 0.1, 0.4]), 8, constraint)
    assert letters == pytest.approx([-reach, 0.4, 1 + reach], rel=1e-5)
    assert solve(letters, 8, constraint) > 0
    wide = np.array([-2 * reach, 0.4, 1 + 2 * reach])
    assert np.array_equal(widened(wide, 8, constraint), wide)


def test_random_alphabets_are_symmetric_in_turn_and_depend_on_the_seed_alone() -> None:
    constraint = ratio_constraint(1, 3, None)
    alphabets = starting_alphabets(8, 7, constraint, 5, np.random.default_rng(3))
    symmetric = [np.allclose(alphabet + alphabet[::-1], 1) for alphabet in alphabets]
    assert symmetric == [True, True, False, True, False]
    assert np.array_equal(alphabets[:2], starting_alphabets(8, 7, constraint, 2, np.random.default_rng(3)))
    assert not np.array_equal(alphabets[1:], starting_alphabets(8, 7, constraint, 5, np.random.default_rng(4))[1:])
