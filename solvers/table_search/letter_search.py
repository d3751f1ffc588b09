"""The best letters for few bits: descent on the linear program's value from many starts, then letters moved to where they pay more.

The value of the best table for given letters is smooth almost everywhere in the letters, with kinks and many local optima. Descents start
from generalised randomised response, from the global solution's letters merged into fewer, and from random letters; the best ends are then
perturbed by taking away one letter and splitting another, until that helps no more. For fine grids all this happens on a coarser one with
the same privacy from end to end, and only the best ends are descended from again on the fine one.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import FloatArray
from ...errors import ConvergenceError, InfeasibleError
from ..bounds.privacy_constraint import RatioConstraint
from ..bounds.staircase import StaircaseBound
from ..numerics.nonsmooth_bfgs import minimise_nonsmooth
from .multistart import TableDesign
from .starting_alphabets import randomised_response_alphabet, starting_alphabets, widened
from .table_program import TableProgram

if TYPE_CHECKING:
    from joblib import Parallel

# Inputs of the grid on which the search is wide; finer grids only polish.
WIDE_SEARCH_INPUTS = 16
# Ends of the wide search that are perturbed, and those that are polished on a finer grid.
PERTURBED, POLISHED = 3, 2
# Relative decrease at which descents of the wide search, and of the polish, stop; and after how many linear programs at the latest.
WIDE_TOLERANCE, TOLERANCE = 1e-5, 1e-10
EVALUATIONS, POLISHING_EVALUATIONS = 100, 600
# Letters reach this much farther in the search (relative) than they must: closer to the limit, programs are too degenerate to be solved
# reliably. The outermost letters are drawn in at the end.
SEARCH_SLACK = 1e-5
# With more letters than this, the merged global solution is close to optimal and each program is large: few starts, short descents.
MANY_LETTERS = 16


@dataclass(frozen=True, eq=False)
class LetterProblem:
    """A search for letters.

    Attributes
    ----------
    inputs_count : int
        Number of grid points on [0, 1], a power of two.
    letters : int
        Number of letters.
    constraint : RatioConstraint
        Local or metric privacy.
    input_weights : ndarray of shape (inputs_count,) or None
        Weights of the rows' variances, summing to one; None minimises the largest variance.
    symmetric : bool
        Whether the letters must be mirrored, a_(M-1-j) = 1 - a_j.
    """

    inputs_count: int
    letters: int
    constraint: RatioConstraint
    input_weights: FloatArray | None
    symmetric: bool = False

    def program(self) -> TableProgram:
        """Return the linear program for the table."""
        return TableProgram(np.linspace(0.0, 1.0, self.inputs_count), self.letters, self.constraint, self.input_weights)

    def coarser(self, inputs_count: int) -> "LetterProblem":
        """Return the same problem on a coarser grid, whose inputs divide these, with the same privacy from end to end."""
        constraint = self.constraint
        if constraint.neighbours_only:
            constraint = replace(constraint, log_ratio=constraint.log_ratio * (self.inputs_count - 1) / (inputs_count - 1))
        weights = None if self.input_weights is None else self.input_weights.reshape(inputs_count, -1).sum(axis=1)
        return replace(self, inputs_count=inputs_count, constraint=constraint, input_weights=weights)


@dataclass(frozen=True, eq=False)
class _End:
    """Where a descent ended: a value and letters, or the reason why there are none."""

    value: float
    alphabet: FloatArray
    failure: str = ""


def solve_letters(
    problem: LetterProblem, bound: StaircaseBound, *, starts: int = 16, rng: np.random.Generator, workers: int = 1
) -> TableDesign:
    """Return the best table with a given number of letters that the search finds.

    It is never worse than the best table with the letters of generalised randomised response.

    Parameters
    ----------
    problem : LetterProblem
        The problem.
    bound : StaircaseBound
        Its solution with unlimited letters, whose letters are merged into starts.
    starts : int
        Number of random starts, beside those from randomised response and from merged letters; taken only with few letters.
    rng : numpy.random.Generator
        Source of the random starts.
    workers : int
        Threads that descend at the same time; the result does not depend on it.

    Raises
    ------
    ConvergenceError
        If every start fails; the message says why each did.
    """
    from joblib import Parallel

    few = problem.letters <= MANY_LETTERS
    wide = problem.coarser(min(problem.inputs_count, max(WIDE_SEARCH_INPUTS, problem.letters)))
    begins = _merged_starts(problem.letters, bound)
    begins += list(starting_alphabets(wide.inputs_count, wide.letters, wide.constraint, starts if few else 1, rng))
    with Parallel(n_jobs=workers, prefer="threads") as parallel:
        ends = _descend_all(parallel, wide, begins)
        made, failures = len(begins), [end.failure for end in ends if end.failure]
        tried: list[_End] = []
        for _ in range(4 if few else 0):
            # Those of an end that was perturbed before would end where they did then.
            fresh = [end for end in _best(ends, PERTURBED) if end not in tried]
            tried += fresh
            perturbed = [new for end in fresh for new in _perturbations(end.alphabet)]
            new_ends = _descend_all(parallel, wide, perturbed)
            made += len(perturbed)
            failures += [end.failure for end in new_ends if end.failure]
            gained = min(end.value for end in ends) - min((end.value for end in new_ends), default=np.inf)
            ends += new_ends
            if not gained > 1e-6 * min(end.value for end in ends):
                break
        if wide.inputs_count == problem.inputs_count:
            polished = [end.alphabet for end in _best(ends, POLISHED)]
            ends += _descend_all(parallel, problem, polished, TOLERANCE, POLISHING_EVALUATIONS)
        finer = wide
        while finer.inputs_count < problem.inputs_count:
            finer = problem.coarser(min(problem.inputs_count, finer.inputs_count * 4))
            ends = _descend_all(parallel, finer, [end.alphabet for end in _best(ends, POLISHED)], TOLERANCE, EVALUATIONS)
    randomised_response = widened(
        randomised_response_alphabet(problem.inputs_count, problem.letters, problem.constraint), problem.inputs_count, problem.constraint
    )
    program = problem.program()
    best: TableDesign | None = None
    found = [end.alphabet for end in _best(ends, 1)]
    drawn_in = [_drawn_in(alphabet, problem) for alphabet in found]
    for alphabet in [*drawn_in, *found, randomised_response]:
        try:
            solution = program.solve(alphabet)
        except (ConvergenceError, InfeasibleError) as failure:
            failures.append(str(failure))
            continue
        if best is None or solution.value < best.value:
            best = TableDesign(solution.probabilities, alphabet, solution.value, made, ())
    if best is None:
        raise ConvergenceError(f"all {made} starts failed: " + "; ".join(failures))
    return replace(best, failures=tuple(failures))


def _descend_all(
    parallel: "Parallel",
    problem: LetterProblem,
    begins: list[FloatArray],
    tolerance: float = WIDE_TOLERANCE,
    evaluations: int = EVALUATIONS,
) -> list[_End]:
    from joblib import delayed

    return list(parallel(delayed(_descend)(problem, begin, tolerance, evaluations) for begin in begins))


def _descend(problem: LetterProblem, begin: FloatArray, tolerance: float, evaluations: int) -> _End:
    """Descend from letters, widened or mirrored first where need be."""
    program = problem.program()
    alphabet = widened(begin, problem.inputs_count, problem.constraint, SEARCH_SLACK)
    if problem.symmetric:
        alphabet = (alphabet + 1 - alphabet[::-1]) / 2
    middle, reach = 0.5, float(np.abs(alphabet - 0.5).max())
    half = problem.letters // 2

    def letters(point: FloatArray) -> FloatArray:
        return middle + reach * (np.concatenate([-point, point[::-1]]) if problem.symmetric else point)

    def objective(point: FloatArray) -> tuple[float, FloatArray]:
        wanted = letters(point)
        order = np.argsort(wanted)
        allowed = widened(wanted, problem.inputs_count, problem.constraint, SEARCH_SLACK)
        try:
            solution = program.solve(allowed)
        except (InfeasibleError, ConvergenceError):
            # Letters for which no table is known are outside the domain: the descent turns back.
            return np.inf, np.zeros_like(point)
        gradient = np.empty_like(allowed)
        # A letter that was held back at the least reach does not change the value.
        gradient[order] = np.where(allowed == wanted[order], reach * solution.alphabet_gradient, 0.0)
        return solution.value, gradient[::-1][:half] - gradient[:half] if problem.symmetric else gradient

    start = (alphabet - middle) / reach
    minimum = minimise_nonsmooth(objective, -start[:half] if problem.symmetric else start, tolerance=tolerance, max_evaluations=evaluations)
    if minimum.value == np.inf:
        return _End(np.inf, alphabet, "no table with the starting letters")
    return _End(minimum.value, widened(letters(minimum.point), problem.inputs_count, problem.constraint, SEARCH_SLACK))


def _best(ends: list[_End], count: int) -> list[_End]:
    """Return the best ends that differ from each other in value."""
    chosen: list[_End] = []
    for end in sorted(ends, key=lambda end: end.value):
        if len(chosen) < count and not end.failure and (not chosen or end.value > chosen[-1].value * (1 + 1e-6)):
            chosen.append(end)
    return chosen


def _drawn_in(alphabet: FloatArray, problem: LetterProblem) -> FloatArray:
    """Return the letters with outermost ones that stand at the search's limit drawn in as far as privacy allows."""
    limit = widened(np.full(2, 0.5), problem.inputs_count, problem.constraint, 2 * SEARCH_SLACK)
    inner = alphabet.copy()
    inner[0] = 0.5 if alphabet[0] >= limit[0] else alphabet[0]
    inner[-1] = 0.5 if alphabet[-1] <= limit[1] else alphabet[-1]
    reach = widened(np.full(2, 0.5), problem.inputs_count, problem.constraint)
    inner[0], inner[-1] = min(inner[0], reach[0]), max(inner[-1], reach[1])
    return inner


def _perturbations(alphabet: FloatArray) -> list[FloatArray]:
    """Return alphabets with the two closest letters made one, and another letter made two."""
    closest = int(np.argmin(np.diff(alphabet)))
    fewer = np.delete(alphabet, closest)
    if len(fewer) > 1:
        fewer[closest] = (alphabet[closest] + alphabet[closest + 1]) / 2
    spacing = 0.1 * (alphabet[-1] - alphabet[0]) / len(alphabet)
    return [np.sort(np.append(np.delete(fewer, j), fewer[j] + np.array([-spacing, spacing]))) for j in range(len(fewer))]


def _merged_starts(letters: int, bound: StaircaseBound) -> list[FloatArray]:
    """Return the global solution's letters, merged in groups of neighbours: groups of equal mass, of equal number, of least spread."""
    if len(bound.letters) <= letters:
        extra = np.linspace(bound.letters[0], bound.letters[-1], letters - len(bound.letters) + 2)[1:-1]
        return [np.sort(np.concatenate([bound.letters, extra]))] if len(bound.letters) > 1 else []
    shares = np.cumsum(bound.masses) / bound.masses.sum()
    by_mass = np.minimum((shares * letters * (1 - 1e-12)).astype(int), letters - 1)
    by_number = np.arange(len(shares)) * letters // len(shares)
    return [
        _group_means(groups, bound)
        for groups in (by_mass, by_number, _least_spread_groups(letters, bound))
        if len(np.unique(groups)) == letters
    ]


def _group_means(groups: np.ndarray, bound: StaircaseBound) -> FloatArray:
    return np.bincount(groups, bound.masses * bound.letters) / np.bincount(groups, bound.masses)


def _least_spread_groups(letters: int, bound: StaircaseBound) -> np.ndarray:
    """Merge the pair of neighbouring groups that adds least variance, again and again (Ward's method on a line)."""
    groups = [(float(mass), float(letter), 1) for mass, letter in zip(bound.masses, bound.letters, strict=True)]
    while len(groups) > letters:
        costs = [m * n / (m + n) * (a - b) ** 2 for (m, a, _), (n, b, _) in pairwise(groups)]
        k = int(np.argmin(costs))
        (m, a, p), (n, b, q) = groups[k], groups[k + 1]
        groups[k : k + 2] = [(m + n, (m * a + n * b) / (m + n), p + q)]
    return np.repeat(np.arange(letters), [size for _, _, size in groups])
