"""A designed table, and how it is found: several starts of a search for letters, each ended by the linear program for the table."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...arguments import check_integer
from ...arrays import FloatArray
from ...errors import ConvergenceError, InfeasibleError
from ..bounds.privacy_constraint import RatioConstraint
from .starting_alphabets import starting_alphabets, widened
from .table_program import TableProgram, TableProgramSolution

MOST_STARTS = 100_000


@dataclass(frozen=True, eq=False)
class TableDesign:
    """The best table that a solver found.

    Attributes
    ----------
    probabilities : ndarray of shape (inputs, letters)
        The table: rows sum to one, are unbiased and keep the ratio constraint, all up to the linear program's rounding.
    alphabet : ndarray of shape (letters,)
        The letters on the unit interval's scale, increasing.
    value : float
        Weighted sum of the rows' variances, or the largest of them for the worst-case objective: an upper bound on the optimum.
    starts : int
        Number of starts made.
    failures : tuple of str
        One line for each start that failed, saying why.
    program : TableProgram or None
        A program whose last basis is the table's, where it is kept.
    """

    probabilities: FloatArray
    alphabet: FloatArray
    value: float
    starts: int
    failures: tuple[str, ...]
    program: TableProgram | None = None


def best_of_starts(
    search: Callable[[FloatArray, TableProgramSolution], FloatArray],
    program: TableProgram,
    constraint: RatioConstraint,
    starts: int,
    rng: np.random.Generator,
) -> TableDesign:
    """Run a search for letters from several starts and return the best table seen at their ends, or at their beginnings.

    Parameters
    ----------
    search : callable
        From starting letters, and the best table for them, to better letters; raises ConvergenceError if it fails.
    program : TableProgram
        Gives the table for the letters that a search ends with, after they are widened as little as makes one possible.
    constraint : RatioConstraint
        The privacy constraint of the program.
    starts : int
        Number of starts; the first is generalised randomised response, the others are random.
    rng : numpy.random.Generator
        Source of the starting letters.

    Raises
    ------
    ConvergenceError
        If every start fails; the message says why each did.
    """
    starts = check_integer("starts", starts, low=1, high=MOST_STARTS)
    count = len(program.inputs)
    best: TableDesign | None = None
    failures: list[str] = []
    for number, alphabet in enumerate(starting_alphabets(count, program.letters, constraint, starts, rng), start=1):
        try:
            at_start = program.solve(alphabet)
            best = _better(best, alphabet, at_start)
            alphabet = widened(search(alphabet, at_start), count, constraint)
            best = _better(best, alphabet, program.solve(alphabet))
        except (ConvergenceError, InfeasibleError) as failure:
            failures.append(f"start {number}: {failure}")
    if best is None or len(failures) == starts:
        raise ConvergenceError(f"all {starts} starts failed: " + "; ".join(failures))
    return replace(best, starts=starts, failures=tuple(failures))


def _better(best: TableDesign | None, alphabet: FloatArray, solution: TableProgramSolution) -> TableDesign:
    """Return the best design so far, or that of this solution if its value is less."""
    if best is not None and best.value <= solution.value:
        return best
    return TableDesign(solution.probabilities, alphabet, solution.value, 0, ())
