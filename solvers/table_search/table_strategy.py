"""The choice of the method that designs a table.

The methods are the certified optimum itself, a search for letters, a coarser grid, and a single bit. The best table with two letters has a
closed form. For many letters on fine grids the table is the best of a coarser grid, to whose rows the finer grid's inputs are dithered.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arrays import FloatArray
from ...errors import ConvergenceError, InfeasibleError
from ...progress import OnStep, silent
from ..bounds.privacy_constraint import RatioConstraint
from ..bounds.ray_pricing import DualValues
from ..bounds.staircase import LEAST_SPREAD, StaircaseBound, solve_staircase, staircase_bound
from ..bounds.two_letters import least_reach
from .letter_search import Effort, LetterProblem, solve_letters
from .multistart import SearchedTable, randomised_response_alphabet, widened
from .table_program import TableProgram, TableProgramSolution

# Largest linear programs of a letter search, as bits of inputs times letters. For larger programs, the best table with fewer letters is
# compared with tables of coarser grids.
PROGRAM_BITS = {"local": 14, "metric": 13}
# Above this epsilon, local privacy costs almost nothing compared with dithering to few letters, and programs on a finer grid than the
# letters' grid have entries from 1 to exp(-epsilon), which double precision does not solve reliably.
NEARLY_PUBLIC = 12.0

# Metric privacy with a log ratio below SMALL_SPREAD over the whole grid is designed on a grid of at most SMALL_SPREAD_BITS bits, and
# dithered. On a finer grid neighbouring rows are too alike for double precision, and dithering adds little to variances that are then above
# 1.
SMALL_SPREAD, SMALL_SPREAD_BITS = 0.5, 5

# Number of inputs of the grid whose bound gives starts if no bound of a finer grid is needed.
STARTS_INPUTS = 64

# Distance below which letters count as equal, as a share of the alphabet's width.
TWINS = 1e-6


@dataclass(frozen=True, eq=False)
class Table:
    """Probabilities of letters for each input, and the letters.

    Attributes
    ----------
    probabilities : ndarray of shape (inputs, letters)
        The table; rows sum to 1, up to rounding.
    alphabet : ndarray of shape (letters,)
        The letters on the unit interval's scale, increasing.
    """

    probabilities: FloatArray
    alphabet: FloatArray


Design = Callable[[RatioConstraint], Table]


@dataclass(frozen=True, eq=False)
class StaircaseDesign:
    """A design that makes a table, with the proof of its quality.

    Attributes
    ----------
    design : callable
        Function that makes the table, at the constraint of the search or a slightly different constraint: letters stay, or are stretched a
        little.
    duals : DualValues or None
        Feasible dual values that prove a lower bound at the constraint of the search, if the caller requested them or the design yields
        them.
    searched : SearchedTable or None
        Result of the search for letters, if there was a search.
    """

    design: Design
    duals: DualValues | None
    searched: SearchedTable | None = None


def choose_design(
    bits_in: int,
    bits_out: int,
    constraint: RatioConstraint,
    input_weights: FloatArray | None,
    symmetric: bool,
    starts: int,
    rng: np.random.Generator,
    workers: int,
    *,
    bounded: bool = True,
    effort: Effort = "full",
    start: SearchedTable | None = None,
    on_step: OnStep = silent,
) -> StaircaseDesign:
    """Search for the best table by the method that suits its size and its privacy.

    Parameters
    ----------
    bits_in, bits_out : int
        Number of bits of the input grid and of the message.
    constraint, input_weights
        Constraint on every column, and the objective.
    symmetric : bool
        Whether to allow only tables mirrored under x -> 1-x.
    starts : int
        Number of random starts.
    rng : numpy.random.Generator
        Source of the starts.
    workers : int
        Number of threads that descend at the same time.
    bounded : bool
        Whether to compute a bound for this grid, from which the search then starts; otherwise it starts from the bound of a coarse grid.
    effort : str
        Effort of the search, as in `solve_letters`.
    start : SearchedTable or None
        Design at a similar constraint: the search descends from its letters instead of starting anew.
    on_step : callable
        Progress of the search for letters, as in `solve_letters`.

    Raises
    ------
    ConvergenceError
        If the search ends without a table.
    """
    weights = input_weights if input_weights is None or not symmetric else (input_weights + input_weights[::-1]) / 2
    search: dict[str, Any] = {"starts": starts, "rng": rng, "workers": workers, "effort": effort, "on_step": on_step}
    # If inputs can hardly be distinguished, two letters lose about as little as the bound does there (a relative loss of about the spread).
    tiny_spread = constraint.log_ratio * (2**bits_in - 1 if constraint.neighbours_only else 1) < LEAST_SPREAD
    if bits_out > bits_in and not tiny_spread:
        try:
            best = solve_staircase(bits_in, constraint, weights)
        except ConvergenceError:
            # `solve_staircase` can fail under metric privacy with a small spread. The search for letters follows, and the certificate
            # states the remaining gap.
            best = None
        if best is not None and len(best.alphabet) <= 2**bits_out:
            proof = best.duals if weights is input_weights else staircase_bound(bits_in, constraint, input_weights).duals
            return StaircaseDesign(lambda tightened: _staircase_table(bits_in, tightened, weights), proof)
    fine = bits_in > bits_out and not constraint.neighbours_only and constraint.log_ratio > NEARLY_PUBLIC
    # The average variance bounds the largest variance, too. If letters cost far more than privacy, both bounds are tiny, and the program of
    # the largest variance takes ten times as long.
    bound_weights = np.full(2**bits_in, 0.5**bits_in) if fine and input_weights is None else input_weights
    bound = staircase_bound(bits_in, constraint, bound_weights) if bounded else None
    duals = None if bound is None else bound.duals
    if bits_out == 1 or tiny_spread:
        return StaircaseDesign(lambda tightened: one_bit_table(2**bits_in, tightened), duals)
    if fine:
        return StaircaseDesign(lambda tightened: _dithered_table(bits_in, bits_out, tightened, weights), duals)
    if constraint.neighbours_only and bits_in > SMALL_SPREAD_BITS and constraint.log_ratio * (2**bits_in - 1) < SMALL_SPREAD:
        coarse, fine = 2**SMALL_SPREAD_BITS, 2**bits_in
        coarse_weights = None if weights is None else weights.reshape(coarse, -1).sum(axis=1)
        problem = LetterProblem(coarse, 2**bits_out, coarse_constraint(fine, coarse, constraint), coarse_weights, symmetric)
        searched = solve_letters(problem, _origin(problem, bound, start), **search)
        on_coarse = table_at_letters(searched, coarse, problem.constraint, coarse_weights)

        def dithered(tightened: RatioConstraint) -> Table:
            table = on_coarse(coarse_constraint(fine, coarse, tightened))
            return Table(dithering_matrix(fine, coarse) @ table.probabilities, table.alphabet)

        return StaircaseDesign(dithered, duals, searched)
    searched_bits = min(bits_out, PROGRAM_BITS["metric" if constraint.neighbours_only else "local"] - bits_in)
    letters = 2**searched_bits
    problem = LetterProblem(2**bits_in, letters, constraint, weights, symmetric)
    searched = solve_letters(problem, _origin(problem, bound, start), **search)
    if searched_bits < bits_out <= bits_in:
        dithered_value = _value(_dithered_table(bits_in, bits_out, constraint, weights), weights)
        if dithered_value < searched.value:
            return StaircaseDesign(lambda tightened: _dithered_table(bits_in, bits_out, tightened, weights), duals)
    return StaircaseDesign(table_at_letters(searched, 2**bits_in, constraint, weights), duals, searched)


def _origin(problem: LetterProblem, bound: StaircaseBound | None, start: SearchedTable | None) -> StaircaseBound | SearchedTable:
    """Return the origin of letters: an earlier design, or a bound.

    Without an earlier design or a bound, the origin is the bound of a coarse grid.
    """
    if start is not None and len(start.alphabet) == problem.letters:
        return start
    if bound is not None:
        return bound
    coarse = problem.coarser(min(problem.inputs_count, STARTS_INPUTS))
    return staircase_bound(coarse.inputs_count.bit_length() - 1, coarse.constraint, coarse.input_weights)


def _staircase_table(bits_in: int, constraint: RatioConstraint, input_weights: FloatArray | None) -> Table:
    table = solve_staircase(bits_in, constraint, input_weights)
    return Table(table.probabilities, table.alphabet)


def _dithered_table(bits_in: int, bits_out: int, constraint: RatioConstraint, input_weights: FloatArray | None) -> Table:
    """Return the better of the tables of coarser grids."""
    tables = [dithered_staircase(bits_in, bits_out, constraint, input_weights)]
    if not constraint.neighbours_only:
        tables.append(dithered_randomised_response(bits_in, bits_out, constraint.log_ratio))
    return min((table for table in tables if len(table.alphabet) <= 2**bits_out), key=lambda table: _value(table, input_weights))


def _value(table: Table, input_weights: FloatArray | None) -> float:
    inputs = np.linspace(0.0, 1.0, len(table.probabilities))
    variances = (table.probabilities * (inputs[:, None] - table.alphabet) ** 2).sum(axis=1)
    return float(variances.max() if input_weights is None else input_weights @ variances)


def table_at_letters(searched: SearchedTable, inputs: int, designed_for: RatioConstraint, input_weights: FloatArray | None) -> Design:
    """Return the design that keeps a table's letters, or stretches them a little.

    A slightly tighter constraint requires the stretching. Letters can be so tight that the best table for them under such a constraint
    costs much more than the best table for stretched letters. The letters of randomised response show how much stretching to try.
    """
    alphabet = _without_twins(searched.alphabet)

    def design(constraint: RatioConstraint) -> Table:
        program = TableProgram(np.linspace(0.0, 1.0, inputs), len(alphabet), constraint, input_weights)
        program.start_from(searched.program)
        before, after = (randomised_response_alphabet(inputs, len(alphabet), c)[-1] - 0.5 for c in (designed_for, constraint))
        stretched = [
            widened(0.5 + (alphabet - 0.5) * (1 + share * (after - before) / before), inputs, constraint)
            for share in (0.0, 0.25, 0.5, 1.0, 1.25, 2.0)
        ]
        solved: list[tuple[TableProgramSolution, FloatArray]] = []
        failures: list[str] = []
        for letters in stretched:
            try:
                solved.append((program.solve(letters), letters))
            except (ConvergenceError, InfeasibleError) as failure:
                failures.append(str(failure))
        if not solved:
            raise ConvergenceError("no program for a table with stretched letters was solved: " + "; ".join(failures))
        solution, letters = min(solved, key=lambda pair: pair[0].value)
        return Table(solution.probabilities, letters)

    return design


def _without_twins(alphabet: FloatArray) -> FloatArray:
    """Return the letters without any that is close to a letter further out.

    The columns of close letters can be added up, and make programs ill-conditioned.
    """
    kept: list[float] = []
    for letter in sorted(alphabet.tolist(), key=lambda letter: -abs(letter - 0.5)):
        if all(abs(letter - other) > TWINS * np.ptp(alphabet) for other in kept):
            kept.append(letter)
    return np.array(sorted(kept))


def one_bit_table(inputs_count: int, constraint: RatioConstraint) -> Table:
    """Return the best table with two letters, for every objective.

    Unbiased rows with letters a < b have probabilities linear in x and variance (x - a)(b - x), smallest for every x when both letters
    reach no farther than privacy requires. For local privacy this is the one-bit mechanism of Girgis et al. (CLDP).
    """
    reach = least_reach(inputs_count, constraint)
    upper = (np.linspace(0.0, 1.0, inputs_count) + reach) / (1 + 2 * reach)
    return Table(np.stack([1 - upper, upper], axis=1), np.array([-reach, 1 + reach]))


def dithered_staircase(bits_in: int, bits_out: int, constraint: RatioConstraint, input_weights: FloatArray | None) -> Table:
    """Return the globally optimal table of a coarse grid, dithered to a finer grid.

    The coarse grid has 2**(bits_out - 1) inputs. Dithering keeps rows unbiased and adds at most a quarter of a squared coarse step to the
    variance. There are at most 2**bits_out letters for weighted variances, perhaps more for the largest variance. The fine grid has at
    least as many inputs, and two letters or more.
    """
    fine, coarse = 2**bits_in, 2 ** (bits_out - 1)
    weights = None if input_weights is None else input_weights.reshape(coarse, -1).sum(axis=1)
    table = solve_staircase(bits_out - 1, coarse_constraint(fine, coarse, constraint), weights)
    return Table(dithering_matrix(fine, coarse) @ table.probabilities, table.alphabet)


def coarse_constraint(fine: int, coarse: int, constraint: RatioConstraint) -> RatioConstraint:
    """Return a coarse table's constraint that keeps a fine grid's constraint after dithering.

    Local privacy stays the same. Metric privacy holds if the coarse neighbours' ratio is at most 1 + (exp(step) - 1) / share, where share
    is a fine step over a coarse step: along a straight line from p to p (1 + g), and over a corner of two such lines, a step of that share
    changes the probability by a factor of at most 1 + share g. The constraint demands slightly more privacy than that.
    """
    if not constraint.neighbours_only:
        return constraint
    share = (coarse - 1) / (fine - 1)
    return RatioConstraint(float(np.log1p(np.expm1(constraint.log_ratio) / share)), neighbours_only=True)


def dithered_randomised_response(bits_in: int, bits_out: int, log_ratio: float) -> Table:
    """Return generalised randomised response on a coarse grid, dithered to a finer grid.

    The coarse grid has 2**bits_out inputs, the fine grid at least as many; the table is for local privacy.
    """
    count = 2**bits_out
    excess = np.expm1(log_ratio)
    response = (excess * np.eye(count) + 1) / (excess + count)
    alphabet = (np.linspace(0.0, 1.0, count) * (excess + count) - count / 2) / excess
    return Table(dithering_matrix(2**bits_in, count) @ response, alphabet)


def dithering_matrix(fine: int, coarse: int) -> FloatArray:
    """Return the dithering probabilities from a fine grid on [0, 1] to a coarse grid.

    Each row has at most two probabilities above 0.
    """
    positions = np.arange(fine) * (coarse - 1)
    lower = np.minimum(positions // (fine - 1), coarse - 2)
    fraction = positions / (fine - 1) - lower
    matrix = np.zeros((fine, coarse))
    matrix[np.arange(fine), lower] = 1 - fraction
    matrix[np.arange(fine), lower + 1] = fraction
    return matrix
