"""The search for the best letters of few bits: descents on the linear program's value.

The value of the best table for given letters is smooth almost everywhere in the letters, with kinks and many local optima. Each descent
moves letters to reduce the value. Descents start from generalised randomised response, from the global solution's letters merged into
fewer, and from random letters; the best ends are then perturbed by removing a letter and splitting another, until perturbations no longer
help. For fine grids the search works on coarser grids with the same privacy from end to end, and descends again on the fine grid from the
best ends only.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...arrays import FloatArray
from ...errors import ConvergenceError, InfeasibleError
from ...progress import OnStep, silent
from ..bounds.privacy_constraint import RatioConstraint
from ..bounds.staircase import StaircaseBound
from ..numerics.nonsmooth_bfgs import minimise_nonsmooth
from .multistart import SearchedTable, randomised_response_alphabet, starting_alphabets, widened
from .table_program import TableProgram

if TYPE_CHECKING:
    from joblib import Parallel

Effort = Literal["quick", "wide", "full"]

# Largest numbers of inputs and of table entries for which a grid has a wide search; finer grids only polish. Grids of up to the last number
# of inputs polish with more linear programs than finer grids.
WIDE_SEARCH_INPUTS, WIDE_SEARCH_ENTRIES, POLISHED_INPUTS = 32, 256, 32
# Number of perturbed ends of the wide search for fewer inputs than four times the letters, and for other problems, whose optima are closer.
# Number of polished ends, as rounding decides the order of close ends. Number of ends that continue from the first of two wide searches,
# and to grids more than four times as fine.
PERTURBED, PERTURBED_OF_CLOSE, POLISHED, FOLLOWED = 3, 5, 4, 2
# Relative decreases at which descents of the wide search and of the polish stop, and their largest numbers of linear programs.
WIDE_TOLERANCE, TOLERANCE = 1e-5, 1e-10
EVALUATIONS, POLISHING_EVALUATIONS, SHORT_EVALUATIONS = 100, 600, 10
# Relative excess over the best previous end's value that descents of a wide search may have.
WORTHWHILE = 1e-3
# The finest grid continues from ends whose value is at most a relative RIVAL above the best value, and whose letters differ from the best
# end's letters by more than the share SAME_LETTERS of their width.
RIVAL, SAME_LETTERS = 1e-3, 0.02
# Largest difference of the letters of ends of the same optimum, after a wide search's descents, as a share of the letters' width.
WIDE_LETTERS = 0.002
# At local epsilons and numbers of letters from these on, the optima differ by where the letters' widest and narrowest gaps lie, so the wide
# search also moves letters of MOVED_ENDS best ends, in up to MOVED_ROUNDS rounds. A moved end starts at a kink and descends slowly at
# first: its descent may have this relative excess over the best previous end's value. A letter between gaps that differ by more than the
# share UNEQUAL of their sum is moved half way between its neighbours.
MOVED_EPSILON, MOVED_LETTERS, MOVED_WORTHWHILE = 5.0, 16, 2e-2
MOVED_ENDS, MOVED_ROUNDS, UNEQUAL = 2, 8, 0.1
# These descents are quick. Their line searches go to where tangents meet. Random letters descend last, and may have the relative excess
# RANDOM_WORTHWHILE. First steps are predicted to gain at most these shares of the value, from first letters and perturbed ends, and from
# moved ends: longer steps end in letters whose linear programs take hundreds of simplex steps, and shorter steps from perturbed ends miss
# the best table at epsilon 7 with some seeds. With quick descents, other problems ended up to 5 % higher: they have no moves.
QUICK_PACE, RANDOM_WORTHWHILE = 5, 0.1
FIRST_DECREASE, MOVED_DECREASE = 0.1, 0.001
# A table this close above a lower bound (relative value) ends the search. Bounds stop this close below the optimum.
MET = 1e-6
# Letters reach this much farther (relative) in the search than necessary: closer to the limit, programs are too degenerate to be solved
# reliably. The outermost letters are drawn in at the end.
SEARCH_SLACK = 1e-5
# Largest number of letters of a full search. With more letters, the merged global solution is close to optimal and each program is large,
# so few starts and short descents suffice.
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
        """Return the same problem on a coarser grid whose inputs divide these.

        The privacy from end to end is the same.
        """
        constraint = self.constraint
        if constraint.neighbours_only:
            constraint = replace(constraint, log_ratio=constraint.log_ratio * (self.inputs_count - 1) / (inputs_count - 1))
        weights = None if self.input_weights is None else self.input_weights.reshape(inputs_count, -1).sum(axis=1)
        return replace(self, inputs_count=inputs_count, constraint=constraint, input_weights=weights)


@dataclass(frozen=True, eq=False)
class _End:
    """End of a descent: a value, letters and their program, or the reason of a failure."""

    value: float
    alphabet: FloatArray
    program: TableProgram | None = None
    failure: str = ""


@dataclass(frozen=True, eq=False)
class _Begin:
    """Beginning of a descent: letters, and a program whose basis is close to theirs, or None."""

    alphabet: FloatArray
    program: TableProgram | None = None


def solve_letters(
    problem: LetterProblem,
    origin: StaircaseBound | SearchedTable,
    *,
    starts: int = 16,
    rng: np.random.Generator,
    workers: int = 1,
    effort: Effort = "full",
    on_step: OnStep = silent,
) -> SearchedTable:
    """Return the best table with a given number of letters that the search finds.

    The table is never worse than the best table with the letters of generalised randomised response.

    Parameters
    ----------
    problem : LetterProblem
        The problem.
    origin : StaircaseBound or SearchedTable
        Solution with unlimited letters, whose letters are merged into starts; or a design for a similar problem with as many letters, to
        descend from on this grid alone.
    starts : int
        Number of random starts, in addition to those from randomised response and from merged letters; used only with few letters.
    rng : numpy.random.Generator
        Source of the random starts.
    workers : int
        Number of threads that descend at the same time; the result does not depend on their number.
    effort : str
        ``"quick"``: a near-optimal table with no random starts, no perturbations, and short descents on finer grids. ``"wide"``: short last
        descents on the problem's own grid. ``"full"``: long descents everywhere.
    on_step : callable
        ``on_step(done, total, text)``, called before each round of descents. The total is the largest number of rounds: a search that
        ends early skips rounds.

    Raises
    ------
    ConvergenceError
        If every start fails; the message gives each reason.
    """
    program = problem.program()
    met = _met(problem, origin)
    if met > 0:
        with suppress(ConvergenceError, InfeasibleError):
            alphabet = _randomised_response(problem)
            solution = program.solve(alphabet)
            if solution.value <= met:
                return SearchedTable(solution.probabilities, alphabet, solution.value, 1, (), program.on_its_own())
    from joblib import Parallel

    with Parallel(n_jobs=workers, prefer="threads") as parallel:
        if isinstance(origin, SearchedTable):
            begin = _End(origin.value, origin.alphabet, origin.program)
            ends, made = _polish_all(parallel, problem, [begin], _last_evaluations(problem, effort)), 1
            failures = [end.failure for end in ends if end.failure]
        else:
            ends, made, failures = _searched(parallel, problem, origin, starts, rng, effort, on_step)
    best: SearchedTable | None = None
    candidates = [(letters, end) for end in _lowest(ends)[:POLISHED] for letters in (_drawn_in(end.alphabet, problem), end.alphabet)]
    for alphabet, end in [*candidates, (_randomised_response(problem), None)]:
        program.start_from(end.program if end else None)
        try:
            solution = program.solve(alphabet)
        except (ConvergenceError, InfeasibleError) as failure:
            failures.append(str(failure))
            continue
        if best is None or solution.value < best.value:
            best = SearchedTable(solution.probabilities, alphabet, solution.value, made, (), program.on_its_own())
    if best is None:
        raise ConvergenceError(f"all {made} starts failed: " + "; ".join(failures))
    return replace(best, failures=tuple(failures))


def _searched(
    parallel: "Parallel",
    problem: LetterProblem,
    bound: StaircaseBound,
    starts: int,
    rng: np.random.Generator,
    effort: Effort,
    on_step: OnStep,
) -> tuple[list[_End], int, list[str]]:
    """Return ends on the problem's grid, the number of starts, and reasons of failures."""
    few = problem.letters <= MANY_LETTERS and effort != "quick"
    begins = _merged_starts(problem.letters, bound)
    made, followed = 0, list[_End]()
    failures: list[str] = []
    rounds, wides = 4 if few else 0, _wide_problems(problem)[: None if few else 1]
    polishes = max(1, len(_finer_grids(wides[-1], problem)))
    done, total = 0, sum(_wide_rounds(wide, rounds) for wide in wides) + polishes
    for wide in wides:

        def on_round(number: int, text: str, before: int = done, grid: int = wide.inputs_count) -> None:
            on_step(before + number, total, f"{text} on {grid} inputs")

        random = starting_alphabets(wide.inputs_count, wide.letters, wide.constraint, starts if few else 1, rng)
        first = [*begins, random[0], *(end.alphabet for end in followed)]
        ends, tried = _wide_search(parallel, wide, first, list(random[1:]), rounds, _met(wide, bound), on_round)
        done += _wide_rounds(wide, rounds)
        made += tried
        failures += [end.failure for end in ends if end.failure]
        best = _best(ends, 1 if effort == "quick" else POLISHED)
        # On the problem's own grid, starts from a coarser search may lead to better optima than their descents on that grid.
        followed = [end for end in best if end.value <= _goal(ends)] + followed[:FOLLOWED]
    if wide.inputs_count == problem.inputs_count:
        on_step(done, total, "descending from the best letters")
        ends += _polish_all(parallel, problem, followed, _last_evaluations(problem, effort))
    for number, finer in enumerate(_finer_grids(wide, problem)):
        on_step(done + number, total, f"descending from the best letters on {finer.inputs_count} inputs")
        if number:
            followed = followed[:FOLLOWED]
        last = finer.inputs_count == problem.inputs_count
        if last and finer.inputs_count > 4 * wide.inputs_count:
            followed = _rivals(followed)
        evaluations = _last_evaluations(problem, effort) if last else SHORT_EVALUATIONS if effort == "quick" else EVALUATIONS
        ends = _polish_all(parallel, finer, followed, evaluations)
        followed = _best(ends, POLISHED)
    on_step(total, total, "rounding the table")
    return ends, made, failures


def _finer_grids(wide: LetterProblem, problem: LetterProblem) -> list[LetterProblem]:
    """Return the problem on each finer grid after the wide search's grid, up to its own."""
    grids = [wide.inputs_count]
    while grids[-1] < problem.inputs_count:
        grids.append(min(problem.inputs_count, grids[-1] * 4))
    return [problem.coarser(grid) for grid in grids[1:]]


def _wide_rounds(problem: LetterProblem, rounds: int) -> int:
    """Return the largest number of rounds of descents of a wide search."""
    return 1 + rounds + (MOVED_ROUNDS if rounds and _moves_gaps(problem) else 0)


def _moves_gaps(problem: LetterProblem) -> bool:
    """Return whether a wide search moves gaps of its best end."""
    constraint = problem.constraint
    return not constraint.neighbours_only and constraint.log_ratio >= MOVED_EPSILON and problem.letters >= MOVED_LETTERS


def _wide_problems(problem: LetterProblem) -> list[LetterProblem]:
    """Return the problem on each grid of a wide search, in order."""
    inputs = max(problem.letters, min(WIDE_SEARCH_INPUTS, WIDE_SEARCH_ENTRIES // problem.letters))
    grids = {min(problem.inputs_count, inputs)}
    # On a grid with an input for each letter, local privacy has other optima than on finer grids: the best tables of 16 letters came from
    # either grid, and were up to 2 % better than those of the other grid. Under metric privacy the finer grid gained at most 0.03 %.
    if inputs == problem.letters and not problem.constraint.neighbours_only:
        grids.add(min(problem.inputs_count, max(inputs, WIDE_SEARCH_INPUTS)))
    return [problem.coarser(grid) for grid in sorted(grids)]


def _met(problem: LetterProblem, origin: StaircaseBound | SearchedTable) -> float:
    """Return the value at which a table of the problem cannot improve any more; 0 if the origin has no bound for the problem's grid."""
    if isinstance(origin, SearchedTable) or len(origin.duals.normalisation) != problem.inputs_count:
        return 0.0
    return origin.lower_bound * (1 + MET)


def _wide_search(
    parallel: "Parallel",
    problem: LetterProblem,
    first: list[FloatArray],
    random: list[FloatArray],
    rounds: int,
    met: float,
    on_round: Callable[[int, str], None],
) -> tuple[list[_End], int]:
    """Descend from letters and from perturbed ends; return ends and the number of starts.

    Descents from random letters follow those from the first letters, and end early if they cannot win. Perturbations of the best ends stop
    when they no longer help, or when an end's value is at most `met`. Moves of the best ends' letters follow.
    """
    on_round(0, "descending from first letters")
    ends = _descend_all(parallel, problem, [_Begin(alphabet) for alphabet in first])
    goal = min(end.value for end in ends) * (1 + RANDOM_WORTHWHILE) if _moves_gaps(problem) else math.inf
    ends += _descend_all(parallel, problem, [_Begin(alphabet) for alphabet in random], goal)
    made = len(ends)
    count = PERTURBED if problem.inputs_count < 4 * problem.letters else PERTURBED_OF_CLOSE
    tried: list[_End] = []
    for number in range(rounds):
        if min(end.value for end in ends) <= met:
            break
        on_round(1 + number, "splitting and merging letters")
        # Perturbations of an optimum that was perturbed before would end at the same places.
        fresh = [end for end in _best(ends, count) if not _is_one_of(end, tried)]
        tried += fresh
        perturbed = [_Begin(new, end.program) for end in fresh for new in _perturbations(end.alphabet)]
        new_ends = _descend_all(parallel, problem, perturbed, _goal(ends))
        made += len(perturbed)
        gained = min(end.value for end in ends) - min((end.value for end in new_ends), default=np.inf)
        ends += new_ends
        if not gained > 1e-6 * min(end.value for end in ends):
            break
    if not _moves_gaps(problem):
        return ends, made
    tried.clear()
    for number in range(MOVED_ROUNDS if rounds else 0):
        best = min(end.value for end in ends)
        fresh = [end for end in _best(ends, MOVED_ENDS) if not _is_one_of(end, tried)]
        if best <= met or not fresh:
            break
        on_round(1 + rounds + number, "moving letters and gaps between them")
        tried += fresh
        moved = [
            _Begin(new, end.program)
            for end in fresh
            for move in (_with_moved_gaps, _with_centred_letters, _with_mirrored_halves)
            for new in move(end.alphabet)
        ]
        ends += _descend_all(parallel, problem, moved, best * (1 + MOVED_WORTHWHILE), MOVED_DECREASE)
        made += len(moved)
        if not min(end.value for end in ends) < best * (1 - 1e-6):
            break
    return ends, made


def _last_evaluations(problem: LetterProblem, effort: Effort) -> int:
    if effort != "full":
        return SHORT_EVALUATIONS
    return POLISHING_EVALUATIONS if problem.inputs_count <= POLISHED_INPUTS else EVALUATIONS


def _randomised_response(problem: LetterProblem) -> FloatArray:
    letters = randomised_response_alphabet(problem.inputs_count, problem.letters, problem.constraint)
    return widened(letters, problem.inputs_count, problem.constraint)


def _goal(ends: list[_End]) -> float:
    """Return a value that ends must reach to be worth a long descent."""
    return min(end.value for end in ends) * (1 + WORTHWHILE)


def _descend_all(
    parallel: "Parallel", problem: LetterProblem, begins: list[_Begin], goal: float = math.inf, first_decrease: float = FIRST_DECREASE
) -> list[_End]:
    """Descend as far as the wide search does, each from its beginning's basis, or from that of randomised response.

    Each end then depends only on its beginning and the goal.
    """
    from joblib import delayed

    if not begins:
        return []
    program = problem.program()
    with suppress(ConvergenceError, InfeasibleError):
        program.solve(_randomised_response(problem))

    quick = _moves_gaps(problem)

    def at(begin: _Begin) -> TableProgram:
        own = program.on_its_own(keeps_best=quick)
        if quick:
            own.start_from(begin.program)
        return own

    how: dict[str, Any] = {"pace": QUICK_PACE, "first_decrease": first_decrease, "tangents": True} if quick else {}
    return list(parallel(delayed(_descend)(problem, at(begin), begin.alphabet, goal=goal, **how) for begin in begins))


def _polish_all(parallel: "Parallel", problem: LetterProblem, ends: list[_End], evaluations: int) -> list[_End]:
    """Descend from ends to the optimum, each from its own basis.

    The ends may be those on a coarser grid.
    """
    from joblib import delayed

    program = problem.program()

    def at(end: _End) -> TableProgram:
        own = program.on_its_own()
        own.start_from(end.program)
        return own

    return list(parallel(delayed(_descend)(problem, at(end), end.alphabet, TOLERANCE, evaluations) for end in ends))


def _descend(
    problem: LetterProblem,
    program: TableProgram,
    begin: FloatArray,
    tolerance: float = WIDE_TOLERANCE,
    evaluations: int = EVALUATIONS,
    goal: float = math.inf,
    **how: Any,
) -> _End:
    """Descend from letters, after widening or mirroring them if necessary; `how` as in `minimise_nonsmooth`."""
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
            # Letters without a table lie outside the domain of the descent.
            return np.inf, np.zeros_like(point)
        gradient = np.empty_like(allowed)
        # The value does not change with a letter that is held at the least reach.
        gradient[order] = np.where(allowed == wanted[order], reach * solution.alphabet_gradient, 0.0)
        return solution.value, gradient[::-1][:half] - gradient[:half] if problem.symmetric else gradient

    start = (alphabet - middle) / reach
    first = -start[:half] if problem.symmetric else start
    minimum = minimise_nonsmooth(objective, first, tolerance=tolerance, max_evaluations=evaluations, goal=goal, **how)
    if minimum.value == np.inf:
        return _End(np.inf, alphabet, failure="no table with the starting letters")
    return _End(minimum.value, widened(letters(minimum.point), problem.inputs_count, problem.constraint, SEARCH_SLACK), program)


def _lowest(ends: list[_End]) -> list[_End]:
    """Return the ends that did not fail, in the order of their values."""
    return sorted((end for end in ends if not end.failure), key=lambda end: end.value)


def _best(ends: list[_End], count: int) -> list[_End]:
    """Return the best ends that belong to different optima."""
    chosen: list[_End] = []
    for end in _lowest(ends):
        if len(chosen) < count and not _is_one_of(end, chosen):
            chosen.append(end)
    return chosen


def _is_one_of(end: _End, others: list[_End]) -> bool:
    """Return whether an end belongs to the optimum of another end, or to its mirror image.

    The mirror image counts if it is as good.
    """
    near = [other.alphabet for other in others if abs(end.value - other.value) <= WORTHWHILE * other.value]
    images = [letters for alphabet in near for letters in (alphabet, 1 - alphabet[::-1])]
    return any(np.abs(end.alphabet - letters).max() <= WIDE_LETTERS * np.ptp(letters) for letters in images)


def _rivals(best: list[_End]) -> list[_End]:
    """Return the ends on a coarser grid that may be the best on a finer grid.

    The rivals are best ends that are close to the best and belong to other optima.
    """

    def rivals(end: _End, leader: _End) -> bool:
        apart = min(np.abs(end.alphabet - letters).max() for letters in (leader.alphabet, 1 - leader.alphabet[::-1]))
        return bool(end.value <= leader.value * (1 + RIVAL) and apart > SAME_LETTERS * np.ptp(leader.alphabet))

    return best[:1] + [end for end in best[1:] if rivals(end, best[0])]


def _drawn_in(alphabet: FloatArray, problem: LetterProblem) -> FloatArray:
    """Return the letters with the outermost letters drawn in as far as privacy allows.

    Only letters at the search's limit move.
    """
    limit = widened(np.full(2, 0.5), problem.inputs_count, problem.constraint, 2 * SEARCH_SLACK)
    inner = alphabet.copy()
    inner[0] = 0.5 if alphabet[0] >= limit[0] else alphabet[0]
    inner[-1] = 0.5 if alphabet[-1] <= limit[1] else alphabet[-1]
    reach = widened(np.full(2, 0.5), problem.inputs_count, problem.constraint)
    inner[0], inner[-1] = min(inner[0], reach[0]), max(inner[-1], reach[1])
    return inner


def _perturbations(alphabet: FloatArray) -> list[FloatArray]:
    """Return alphabets with the two closest letters merged and another letter split."""
    closest = int(np.argmin(np.diff(alphabet)))
    fewer = np.delete(alphabet, closest)
    if len(fewer) > 1:
        fewer[closest] = (alphabet[closest] + alphabet[closest + 1]) / 2
    spacing = 0.1 * (alphabet[-1] - alphabet[0]) / len(alphabet)
    return [np.sort(np.append(np.delete(fewer, j), fewer[j] + np.array([-spacing, spacing]))) for j in range(len(fewer))]


def _with_moved_gaps(alphabet: FloatArray) -> list[FloatArray]:
    """Return alphabets with the widest, or the narrowest, pair of neighbouring gaps moved to each other place."""
    gaps = np.diff(alphabet)
    pairs = gaps[:-1] + gaps[1:]
    moved = []
    for first in (int(np.argmax(pairs)), int(np.argmin(pairs))):
        others = np.delete(gaps, [first, first + 1])
        places = [place for place in range(len(others) + 1) if place != first]
        moved += [np.cumsum([alphabet[0], *np.insert(others, place, gaps[first : first + 2])]) for place in places]
    return moved


def _with_centred_letters(alphabet: FloatArray) -> list[FloatArray]:
    """Return alphabets with a letter moved half way between its neighbours, for each letter between unequal gaps."""
    before, after = np.diff(alphabet)[:-1], np.diff(alphabet)[1:]
    centred = []
    for letter in 1 + np.flatnonzero(np.abs(before - after) > UNEQUAL * (before + after)):
        moved = alphabet.copy()
        moved[letter] = (alphabet[letter - 1] + alphabet[letter + 1]) / 2
        centred.append(moved)
    return centred


def _with_mirrored_halves(alphabet: FloatArray) -> list[FloatArray]:
    """Return the lower half of an even number of letters with its mirror image, and the upper half with its own."""
    lower, upper = np.split(alphabet, 2)
    return [np.sort(np.concatenate([half, 1 - half])) for half in (lower, upper)]


def _merged_starts(letters: int, bound: StaircaseBound) -> list[FloatArray]:
    """Return the global solution's letters, merged in groups of neighbours.

    The groups have equal mass, equal number, or least spread.
    """
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
    """Merge groups of letters by Ward's method on a line.

    Each step merges the pair of neighbouring groups that adds least variance.
    """
    groups = [(float(mass), float(letter), 1) for mass, letter in zip(bound.masses, bound.letters, strict=True)]
    while len(groups) > letters:
        costs = [m * n / (m + n) * (a - b) ** 2 for (m, a, _), (n, b, _) in pairwise(groups)]
        k = int(np.argmin(costs))
        (m, a, p), (n, b, q) = groups[k], groups[k + 1]
        groups[k : k + 2] = [(m + n, (m * a + n * b) / (m + n), p + q)]
    return np.repeat(np.arange(letters), [size for _, _, size in groups])
