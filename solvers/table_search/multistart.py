"""A designed table, and its search from several starts.

Each start ends with the linear program for the table.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...arguments import check_integer
from ...arrays import FloatArray
from ...errors import ConvergenceError, InfeasibleError
from ...progress import AtMost, OnStep, silent
from ..bounds.privacy_constraint import RatioConstraint
from ..bounds.two_letters import least_reach
from .table_program import TableProgram, TableProgramSolution

# Relative distance by which starting letters reach farther than necessary. At the limit itself, the feasible tables are a single point.
SLACK = 1e-7

MOST_STARTS = 100_000


@dataclass(frozen=True, eq=False)
class SearchedTable:
    """Best table of a solver.

    Attributes
    ----------
    probabilities : ndarray of shape (inputs, letters)
        The table: rows sum to 1, are unbiased and keep the ratio constraint, all up to the linear program's rounding.
    alphabet : ndarray of shape (letters,)
        The letters on the unit interval's scale, increasing.
    value : float
        Weighted sum of the rows' variances, or the largest variance for the worst-case objective: an upper bound on the optimum.
    starts : int
        Number of starts.
    failures : tuple of str
        Reason of each failed start.
    program : TableProgram or None
        A program whose last basis is the table's, or None.
    """

    probabilities: FloatArray
    alphabet: FloatArray
    value: float
    starts: int
    failures: tuple[str, ...]
    program: TableProgram | None = None


def best_of_starts(
    search: Callable[[FloatArray, TableProgramSolution, Callable[[int], None]], FloatArray],
    program: TableProgram,
    constraint: RatioConstraint,
    starts: int,
    rng: np.random.Generator,
    *,
    steps: int = 1,
    on_step: OnStep = silent,
) -> SearchedTable:
    """Run a search for letters from several starts and return the best table.

    The candidates are the tables at the ends and at the beginnings.

    Parameters
    ----------
    search : callable
        Function from starting letters, and the best table for them, to better letters; raises ConvergenceError if it fails. It calls its
        last argument with the number of its steps so far.
    program : TableProgram
        Program that gives the table for a search's last letters, after they are widened as little as makes a table possible.
    constraint : RatioConstraint
        The privacy constraint of the program.
    starts : int
        Number of starts; the first is generalised randomised response, the others are random.
    rng : numpy.random.Generator
        Source of the starting letters.
    steps : int
        Largest number of steps of a search.
    on_step : callable
        ``on_step(done, total, text)``, called after each step; the total is the largest number of steps of all searches.

    Raises
    ------
    ConvergenceError
        If every start fails; the message gives each reason.
    """
    starts = check_integer("starts", starts, low=1, high=MOST_STARTS)
    count = len(program.inputs)
    best: SearchedTable | None = None
    failures: list[str] = []
    for number, alphabet in enumerate(starting_alphabets(count, program.letters, constraint, starts, rng), start=1):

        def report(done: int, number: int = number) -> None:
            on_step((number - 1) * steps + done, AtMost(starts * steps), f"descending from start {number} of {starts}")

        report(0)
        try:
            at_start = program.solve(alphabet)
            best = _better(best, alphabet, at_start)
            alphabet = widened(search(alphabet, at_start, report), count, constraint)
            best = _better(best, alphabet, program.solve(alphabet))
        except (ConvergenceError, InfeasibleError) as failure:
            failures.append(f"start {number}: {failure}")
    on_step(starts * steps, AtMost(starts * steps), "rounding the table")
    if best is None or len(failures) == starts:
        raise ConvergenceError(f"all {starts} starts failed: " + "; ".join(failures))
    return replace(best, starts=starts, failures=tuple(failures))


def _better(best: SearchedTable | None, alphabet: FloatArray, solution: TableProgramSolution) -> SearchedTable:
    """Return the best design so far, or the given solution's design if its value is less."""
    if best is not None and best.value <= solution.value:
        return best
    return SearchedTable(solution.probabilities, alphabet, solution.value, 0, ())


def widened(alphabet: FloatArray, inputs_count: int, constraint: RatioConstraint, slack: float = SLACK) -> FloatArray:
    """Return sorted letters, with the outermost moved out until a table is possible.

    There are two letters or more. The letters reach at least a share `slack` farther than necessary; letters that reach far enough stay as
    they are.
    """
    reach = (1 + slack) * least_reach(inputs_count, constraint)
    letters = np.sort(alphabet)
    letters[0] = min(letters[0], -reach)
    letters[-1] = max(letters[-1], 1 + reach)
    return letters


def randomised_response_alphabet(inputs_count: int, letters: int, constraint: RatioConstraint) -> FloatArray:
    """Return the letters of generalised randomised response on a grid of as many points.

    There are two letters or more. Inputs between the points of that grid are dithered to them, so that under local privacy a table exists
    for every number of inputs. Under metric privacy the letters are those for the whole grid's log ratio, stretched about 1/2 until a table
    exists.
    """
    total = constraint.log_ratio * (inputs_count - 1 if constraint.neighbours_only else 1)
    beyond = letters / 2 / math.expm1(total)
    needed = (1 + SLACK) * least_reach(inputs_count, constraint)
    return np.linspace(-max(beyond, needed), 1 + max(beyond, needed), letters)


def starting_alphabets(inputs_count: int, letters: int, constraint: RatioConstraint, starts: int, rng: np.random.Generator) -> FloatArray:
    """Return alphabets for local searches, for which a table exists, shape (starts, letters).

    The first is that of generalised randomised response; the others are random, in turn symmetric about 1/2 and not. Outermost letters
    reach from the least reach to `letters` times as far, log-uniformly, and the others are uniform between. The first alphabets are the
    same for any larger number of starts.
    """
    alphabets = [randomised_response_alphabet(inputs_count, letters, constraint)]
    needed = (1 + SLACK) * least_reach(inputs_count, constraint)
    for start in range(1, starts):
        low, high = -needed * letters ** rng.random(), 1 + needed * letters ** rng.random()
        inner = rng.random(letters - 2)
        if start % 2:
            high = 1 - low
            pairs = inner[: letters // 2 - 1] / 2
            inner = np.concatenate([pairs, 1 - pairs, np.full(letters % 2, 0.5)])
        alphabets.append(np.sort(np.concatenate([[low, high], low + (high - low) * inner])))
    return np.stack(alphabets)
