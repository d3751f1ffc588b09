"""Several starts: the best is kept, what failed is counted and told, and nothing comes out of failures alone."""

import numpy as np
import pytest

from quietbits.errors import ConvergenceError
from quietbits.solvers.bounds.privacy_constraint import ratio_constraint
from quietbits.solvers.table_search.multistart import best_of_starts
from quietbits.solvers.table_search.starting_alphabets import least_reach, starting_alphabets
from quietbits.solvers.table_search.table_program import TableProgram, TableProgramSolution

CONSTRAINT = ratio_constraint(1, 2, None)


def program() -> TableProgram:
    return TableProgram(np.linspace(0, 1, 4), 4, CONSTRAINT, np.full(4, 0.25))


def stay(alphabet: np.ndarray, _: TableProgramSolution) -> np.ndarray:
    return alphabet


def fail(_: np.ndarray, at_start: TableProgramSolution) -> np.ndarray:
    raise ConvergenceError(f"stuck at {at_start.value:.3f}")


def test_the_best_of_the_starts_is_kept() -> None:
    design = best_of_starts(stay, program(), CONSTRAINT, 5, np.random.default_rng(0))
    alphabets = starting_alphabets(4, 4, CONSTRAINT, 5, np.random.default_rng(0))
    values = [program().solve(alphabet).value for alphabet in alphabets]
    assert design.value == pytest.approx(min(values), rel=1e-9)
    assert np.array_equal(design.alphabet, alphabets[np.argmin(values)])
    assert (design.starts, design.failures) == (5, ())


def test_a_search_that_ends_worse_than_it_began_does_no_harm() -> None:
    design = best_of_starts(lambda letters, _: 9 * letters - 4, program(), CONSTRAINT, 1, np.random.default_rng(0))
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


def test_no_starts_are_refused() -> None:
    with pytest.raises(ValueError, match="starts must be a whole number from 1 to 100000, got 0"):
        best_of_starts(stay, program(), CONSTRAINT, 0, np.random.default_rng(0))
