"""A histogram from sums over random halves of the items, with a proof of uniqueness.

The solver is an integer program.

Chen, Özgür, Cormode, Bharadwaj 2023, *The communication cost of security and privacy in federated frequency estimation*, theorem 4.2,
describe a decoder that tries all histograms. `docs/how-to/exact-histograms.md` describes the method and its reach.

Branch and bound (`HistogramTree`) finds all histograms with given sums. A branch is a box, a range for each count. HiGHS finds the real
point of the box that violates the equations least. If it violates them, the multipliers w of that program, rounded to whole numbers, show
that no point of the box meets them: the least of (w^T A) mu over the box is above w^T b. That alone closes a branch. The numbers are whole
and below 2^53, so that neither the solver's tolerances nor rounding can close a branch that has a solution.

Approximate message passing (`guess_histogram`) guesses solutions fast; guesses are checked exactly, and prove nothing. It follows Donoho,
Maleki, Montanari 2009, *Message-passing algorithms for compressed sensing*, with the posterior mean of a count under a prior that is
learned on the way: a share of items occurs, and counts of items that occur are geometric. Where message passing stalls, the solver
guesses a few items: a beam search over sets of items that are taken for granted.
"""

import time
from dataclasses import dataclass, field

import highspy
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_real
from ...arrays import FloatArray, IndexArray, IntegerArray
from ...errors import ConvergenceError, InfeasibleError
from ..numerics.highs_program import new_highs
from .histogram_problem import HistogramProblem, pose_histogram_problem

PRIME = 2**31 - 1

ITERATIONS = 60
DAMPING = 0.7
SETTLED = 1e-3
LEAST_VARIANCE = 1e-9
# Largest excess over a guessed count that posterior means take into account; the search guesses larger counts.
MOST_LEVELS = 64
GUESSES_PER_NODE = 12
DEPTH = 8
# Number of entries of the arrays of a batch of guesses, of 4 MiB each.
BATCH_ENTRIES = 2**20

# Largest whole numbers to which multipliers are rounded. The larger limit is tried if rounding cost the proof.
LARGEST_MULTIPLIERS = (2**20, 2**30)
LARGEST_EXACT = 2**52
LARGEST_SUM = 2.0**62
INTEGRAL = 1e-6
# Number of columns that enter a linear program at a time, and number of columns per row at its start.
COLUMNS_AT_A_TIME = 64
COLUMNS_PER_ROW = 2
ROUNDS_OF_COLUMNS = 10_000
# Largest total violation of the equations that counts as zero: the solver then checks the point, or halves the branch.
FEASIBLE = 1e-6

LONGEST_TIME = 1e6
# Factor by which each round of the search keeps more guesses and examines more branches than the previous round.
GROWTH = 4
FIRST_WIDTH, FIRST_NODES = 4, 64


@dataclass(frozen=True, eq=False)
class HistogramSolution:
    """A histogram with the given sums, and whether another exists.

    Attributes
    ----------
    counts : ndarray of int64, shape (dimension,)
        Histogram: whole numbers, none negative, of sum n, and with S counts = y exactly.
    unique : bool or None
        True: proven unique, in exact integers. False: `other` is another solution. None: the time was up, or no proof was requested.
    other : ndarray of int64, shape (dimension,), or None
        A second histogram with the same sums.
    method : str
        Method that found `counts`: ``"message-passing"`` or ``"branching"``.
    nodes : int
        Number of examined branches of the search tree; about 1 if the linear relaxation suffices.
    """

    counts: IntegerArray
    unique: bool | None
    other: IntegerArray | None
    method: str
    nodes: int


def decode_histogram(
    matrix: ArrayLike, sums: ArrayLike, clients: int, *, time_limit: float = 60.0, prove_unique: bool = True
) -> HistogramSolution:
    """Find whole numbers mu >= 0 with sum n and S mu = y, and prove that they are unique.

    Without uniqueness, the result has another solution.

    Parameters
    ----------
    matrix : array_like of shape (measurements, dimension)
        Matrix S of zeros and ones; at most 2**28 entries.
    sums : array_like of int, shape (measurements,)
        Sums y.
    clients : int
        Number n of items, from 0 to 2**20.
    time_limit : float
        Time limit in seconds; the search may take a little longer.
    prove_unique : bool
        Whether to continue, after the first solution, until it is proven unique or another solution is found.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If no histogram has these sums, which is proven.
    ConvergenceError
        If no solution was found in time.

    Examples
    --------
    >>> matrix = [[1, 0, 1, 0], [0, 1, 1, 0]]
    >>> solution = decode_histogram(matrix, [3, 4], clients=4)
    >>> solution.counts.tolist(), solution.unique
    ([0, 1, 3, 0], True)
    >>> decode_histogram(matrix, [1, 1], clients=2).unique
    False
    """
    problem = pose_histogram_problem(matrix, sums, clients)
    start = time.monotonic()
    deadline = start + check_real("time_limit", time_limit, low=0.0, high=LONGEST_TIME)
    first = guess_histogram(problem, 1, deadline)
    tree = HistogramTree(problem, first.beliefs)
    method = "message-passing"
    width, nodes = FIRST_WIDTH, FIRST_NODES
    counts = first.counts
    while counts is None and not tree.solutions:
        # The loop alternates between both methods: guesses succeed if the tree is large, and the tree ends if no solution exists.
        tree.search(1, deadline, nodes)
        if tree.solutions:
            method = "branching"
        elif tree.exhausted:
            raise InfeasibleError(
                f"no histogram of {problem.clients} items has these {len(problem.sums)} sums: matrix, sums or number of clients are not "
                "those that the items were encoded with"
            )
        elif time.monotonic() > deadline:
            raise ConvergenceError(
                f"no histogram with these sums was found in {time_limit:g} s ({tree.nodes} branches): more measurements make it easier"
            )
        else:
            counts = guess_histogram(problem, width, deadline).counts
            width, nodes = GROWTH * width, GROWTH * nodes
    if counts is not None:
        tree.add(counts)
    if prove_unique:
        tree.search(2, deadline)
    return _solution(problem, tree, method)


@dataclass(frozen=True, eq=False)
class Branch:
    """A box of counts.

    `others` restricts the search to solutions with an item that the first solution lacks.
    """

    lower: IntegerArray
    upper: IntegerArray
    others: bool


@dataclass(eq=False)
class HistogramTree:
    """A search for all solutions, which can be interrupted and resumed.

    After the first solution, the search continues for other solutions. Other solutions have either an item beyond the first solution's
    support, or a larger count on the support alone. The cut "at most n - 1 counts on the support", which holds in all open branches, leads
    to the former solutions. A branch for every item of the support leads to the latter solutions, unless the support's columns are
    independent.

    Attributes
    ----------
    problem : HistogramProblem
        The problem.
    beliefs : ndarray of float64, shape (dimension,)
        Estimated counts, which determine the columns that are tried first. They do not change the proof.
    solutions : list of ndarray
        Solutions so far, at most two.
    nodes : int
        Number of examined branches.
    """

    problem: HistogramProblem
    beliefs: FloatArray
    solutions: list[IntegerArray] = field(default_factory=list)
    nodes: int = 0

    def __post_init__(self) -> None:
        """Open the box of all counts."""
        measurements, dimension = self.problem.matrix.shape
        lower = np.zeros(dimension, dtype=np.int64)
        self._open: list[Branch] = []
        upper = self.problem.caps(lower, np.full(dimension, self.problem.clients, dtype=np.int64))
        if upper is not None:
            self._open = [Branch(lower, upper, others=False)]
        # The rows are the sum, S as signs, and the cut's row, which is filled after the first solution. Signs keep the columns far from
        # parallel.
        self._rows = np.zeros((measurements + 2, dimension))
        self._rows[0] = 1
        self._rows[1:-1] = np.where(self.problem.matrix, 1, -1)
        self._right = np.concatenate([[self.problem.clients], 2 * self.problem.sums - self.problem.clients, [self.problem.clients]])
        first = min(dimension, COLUMNS_PER_ROW * (measurements + 2))
        self._active: IndexArray = np.argsort(-self.beliefs, kind="stable")[:first]
        self._highs = self._program(self._active)

    @property
    def exhausted(self) -> bool:
        """Whether the search has proven that no further solutions exist."""
        return not self._open

    def add(self, solution: IntegerArray) -> None:
        """Enter a vector that solves the problem, before or during the search."""
        self.solutions.append(solution)
        if len(self.solutions) > 1:
            return
        support = np.flatnonzero(solution)
        self._rows[-1, support] = 1
        self._right[-1] = self.problem.clients - 1
        self._active = np.concatenate([self._active, np.setdiff1d(support, self._active)])
        self._highs = self._program(self._active)
        self._open = [Branch(branch.lower, branch.upper, others=True) for branch in self._open]
        if modular_rank(self._rows[:-1, support].astype(np.int64)) == len(support):
            # No other real numbers on the support meet the equations.
            return
        only = np.where(solution > 0, self.problem.clients, 0)
        for item in support:
            lower = np.zeros_like(solution)
            lower[item] = solution[item] + 1
            upper = self.problem.caps(lower, only)
            if upper is not None:
                self._open.append(Branch(lower, upper, others=False))

    def search(self, wanted: int, deadline: float, nodes: int | None = None) -> None:
        """Continue until the search has `wanted` solutions or reaches a limit.

        The limits are that all branches are closed, the time is up, or `nodes` more branches were examined.
        """
        last = None if nodes is None else self.nodes + nodes
        while self._open and len(self.solutions) < wanted and time.monotonic() < deadline and (last is None or self.nodes < last):
            branch = self._open.pop()
            self.nodes += 1
            try:
                # A solution within the branch renews the list of open branches.
                halves = self._split(branch, deadline)
            except _OutOfTimeError:
                halves = [branch]
            self._open += halves

    def _split(self, branch: Branch, deadline: float) -> list[Branch]:
        """Return branches that cover a branch, none if it is closed.

        The method enters any solution within the branch.
        """
        for _ in range(ROUNDS_OF_COLUMNS):
            values = self._relaxation(branch, deadline)
            if values is None:
                entering = self._entering(branch)
                if entering is None:
                    return []
                if len(entering):
                    self._enter(entering)
                    continue
                # The rounded multipliers prove nothing: smaller boxes will be closed, and single points are checked.
                return self._halved(branch, np.zeros(len(branch.lower)))
            counts = np.rint(values).astype(np.int64)
            if np.abs(values - counts).max() < INTEGRAL and self.problem.solved_by(counts) and not self._known(counts):
                # The rest of the branch is searched after the branches that the entered solution opens.
                self._open.append(branch)
                self.add(counts)
                return []
            return self._halved(branch, values)
        raise ConvergenceError(f"a linear program of the histogram decoder took more than {ROUNDS_OF_COLUMNS} rounds of columns")

    def _known(self, counts: IntegerArray) -> bool:
        return any(np.array_equal(counts, solution) for solution in self.solutions)

    def _halved(self, branch: Branch, values: FloatArray) -> list[Branch]:
        """Split a branch at the count farthest from a whole number, or else at the widest range."""
        fraction = values - np.floor(values)
        distance = np.minimum(fraction, 1 - fraction)
        item = int(np.argmax(distance))
        below = int(np.floor(values[item]))
        if distance[item] < INTEGRAL:
            ranges = branch.upper - branch.lower
            item = int(np.argmax(ranges))
            if not ranges[item]:
                # The box is a single point, and not a new solution.
                if self.problem.solved_by(branch.lower) and not self._known(branch.lower):
                    self.add(branch.lower)
                return []
            below = int((branch.lower[item] + branch.upper[item]) // 2)
        halves = []
        upper = branch.upper.copy()
        upper[item] = below
        lower = branch.lower.copy()
        lower[item] = below + 1
        for low, high in ((branch.lower, upper), (lower, branch.upper)):
            capped = self.problem.caps(low, high)
            if capped is not None and (low <= capped).all():
                halves.append(Branch(low, capped, branch.others))
        return halves

    def _relaxation(self, branch: Branch, deadline: float) -> FloatArray | None:
        """Return real counts in the box that meet the equations, or None.

        None means that active columns have no such counts, and HiGHS then has the multipliers.
        """
        raised = np.setdiff1d(np.flatnonzero(branch.lower), self._active)
        if len(raised):
            self._enter(raised)
        active, highs = self._active, self._highs
        count = len(active)
        lower, upper = branch.lower[active].astype(np.float64), branch.upper[active].astype(np.float64)
        highs.changeColsBounds(count, self._first_column + np.arange(count, dtype=np.int32), lower, upper)
        cut = float(self._right[-1]) if branch.others else highspy.kHighsInf
        highs.changeRowBounds(len(self._rows) - 1, -highspy.kHighsInf, cut)
        left = deadline - time.monotonic()
        highs.setOptionValue("time_limit", highs.getRunTime() + max(left, 0.0))
        highs.run()
        status = highs.getModelStatus()
        if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit):
            # Start from scratch: a basis of other bounds sometimes ends in numerical trouble.
            highs.clearSolver()
            highs.run()
            status = highs.getModelStatus()
        if status == highspy.HighsModelStatus.kTimeLimit:
            raise _OutOfTimeError
        if status != highspy.HighsModelStatus.kOptimal:
            raise ConvergenceError(f"a linear program of the histogram decoder ended with {highs.modelStatusToString(status)!r}")
        if highs.getInfo().objective_function_value > FEASIBLE:
            return None
        values = np.zeros(len(branch.lower))
        values[active] = np.clip(np.array(highs.getSolution().col_value)[self._first_column :], lower, upper)
        return values

    def _entering(self, branch: Branch) -> IndexArray | None:
        """Return None if the multipliers close the branch, else the columns that prevent it.

        The columns are outside the program; there may be none.
        """
        # The duals of least violated equations are at most 1.
        duals = -np.array(self._highs.getSolution().row_dual)
        # Only positive multipliers keep the inequality "at most" valid; the multiplier is 0 if the cut does not hold.
        duals[-1] = max(duals[-1], 0.0) if branch.others else 0.0
        best = np.array([], dtype=np.intp)
        for largest in LARGEST_MULTIPLIERS:
            multipliers = np.rint(duals * largest)
            parts = self._least_parts(branch, multipliers)
            if parts is None:
                continue
            right = self._right_side(multipliers)
            if int(parts.sum()) > right:
                return None
            inactive = np.ones(len(parts), dtype=np.bool_)
            inactive[self._active] = False
            if int(parts[~inactive].sum()) > right:
                # Only columns outside the program keep the multipliers from closing the branch.
                candidates = np.flatnonzero(inactive & (parts < 0))
                best = candidates[np.argsort(parts[candidates], kind="stable")[:COLUMNS_AT_A_TIME]]
        return best

    def _least_parts(self, branch: Branch, multipliers: FloatArray) -> IntegerArray | None:
        """Return each count's least addition to (w^T A) mu over the box, in whole numbers.

        The result is None if the numbers could be too large.
        """
        coefficient_bound = float(np.abs(multipliers).sum())
        if coefficient_bound * (self.problem.clients + 1) * 2 > LARGEST_EXACT:
            return None
        coefficients = (multipliers @ self._rows).astype(np.int64)
        parts = np.where(coefficients > 0, coefficients * branch.lower, coefficients * branch.upper)
        return parts if abs(float(parts.sum(dtype=np.float64))) < LARGEST_SUM else None

    def _right_side(self, multipliers: FloatArray) -> int:
        return sum(int(multiplier) * int(right) for multiplier, right in zip(multipliers, self._right, strict=True))

    def _enter(self, columns: IndexArray) -> None:
        """Add columns to the program, in the same order as to `_active`."""
        self._active = np.concatenate([self._active, columns])
        self._add_columns(columns)

    def _add_columns(self, columns: IndexArray) -> None:
        block = self._rows[:, columns]
        places = [np.flatnonzero(column) for column in block.T]
        starts = np.cumsum([0, *(len(place) for place in places)])[:-1].astype(np.int32)
        self._highs.addCols(
            len(columns),
            np.zeros(len(columns)),
            np.zeros(len(columns)),
            np.full(len(columns), float(self.problem.clients)),
            int(sum(len(place) for place in places)),
            starts,
            np.concatenate(places).astype(np.int32),
            np.concatenate([column[place] for column, place in zip(block.T, places, strict=True)]),
        )

    def _program(self, columns: IndexArray) -> highspy.Highs:
        """Return the program of the equations' least violation, by the given columns.

        The costs of violations come first.
        """
        highs = new_highs()
        # One branch differs little from the next, so presolve does not pay.
        highs.setOptionValue("presolve", "off")
        highs.setOptionValue("solver", "simplex")
        model = highspy.HighsLp()
        rows = len(self._rows)
        # Add two columns for each equation, and a single column for the cut, which is an inequality.
        self._first_column = 2 * rows - 1
        model.num_row_, model.num_col_ = rows, self._first_column
        right: NDArray[np.float64] = self._right.astype(np.float64)
        lower = right.copy()
        lower[-1] = -highspy.kHighsInf
        model.row_lower_, model.row_upper_ = lower, right
        model.col_cost_ = np.ones(self._first_column)
        model.col_lower_, model.col_upper_ = np.zeros(self._first_column), np.full(self._first_column, highspy.kHighsInf)
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = np.arange(self._first_column + 1, dtype=np.int32)
        model.a_matrix_.index_ = np.concatenate([np.arange(rows), np.arange(rows - 1)]).astype(np.int32)
        model.a_matrix_.value_ = np.where(np.arange(self._first_column) < rows, -1.0, 1.0)
        if highs.passModel(model) == highspy.HighsStatus.kError:
            raise ConvergenceError("the linear program of the histogram decoder was refused by the solver")
        self._highs = highs
        self._add_columns(columns)
        return highs


def _solution(problem: HistogramProblem, tree: HistogramTree, method: str) -> HistogramSolution:
    if not all(problem.solved_by(counts) for counts in tree.solutions):
        raise ConvergenceError("the histogram decoder found counts that do not have the given sums")
    counts, *others = tree.solutions
    unique = False if others else True if tree.exhausted else None
    return HistogramSolution(counts, unique, others[0] if others else None, method, tree.nodes)


class _OutOfTimeError(Exception):
    """The time ended within a linear program."""


@dataclass(frozen=True, eq=False)
class Guess:
    """Result of message passing.

    Attributes
    ----------
    counts : ndarray of int64, shape (dimension,), or None
        Exact solution; None without a solution.
    beliefs : ndarray of float64, shape (dimension,)
        Estimated counts.
    runs : int
        Number of runs of message passing.
    """

    counts: IntegerArray | None
    beliefs: FloatArray
    runs: int


def guess_histogram(problem: HistogramProblem, width: int, deadline: float) -> Guess:
    """Search for a solution without a guess, then with 1, 2, ... guessed items.

    The search keeps the `width` best sets of guessed items. `deadline` is a time of `time.monotonic`; the search ends soon after it.
    """
    measurements, dimension = problem.matrix.shape
    design = np.where(problem.matrix, np.float32(1), np.float32(-1)) / np.sqrt(measurements, dtype=np.float32)
    beliefs = np.zeros(dimension)
    sets: list[tuple[int, ...]] = [()]
    seen, runs = set(sets), 0
    batch = max(1, BATCH_ENTRIES // dimension)
    for level in range(min(DEPTH, problem.clients) + 1):
        scored: list[tuple[float, tuple[int, ...], IndexArray]] = []
        for start in range(0, len(sets), batch):
            if runs and time.monotonic() > deadline:
                return Guess(None, beliefs, runs)
            part = sets[start : start + batch]
            # Diverging messages lead to no solution.
            with np.errstate(over="ignore", invalid="ignore"):
                counts, residuals = _pass_messages(problem, design, part, deadline)
                rounded_counts = np.rint(counts).astype(np.int64).T
            runs += len(part)
            if level == 0:
                beliefs = np.nan_to_num(counts[:, 0].astype(np.float64))
            for guessed, estimates, rounded, residual in zip(part, counts.T, rounded_counts, residuals, strict=True):
                np.add.at(rounded, np.array(guessed, dtype=np.intp), 1)
                if problem.solved_by(rounded):
                    return Guess(rounded, beliefs, runs)
                scored.append(
                    (float(np.nan_to_num(residual, nan=np.inf)), guessed, np.argsort(-estimates, kind="stable")[:GUESSES_PER_NODE])
                )
        scored.sort(key=lambda entry: entry[:2])
        extended = {tuple(sorted((*guessed, int(item)))): None for _, guessed, items in scored[:width] for item in items}
        sets = [guessed for guessed in extended if guessed not in seen]
        seen.update(sets)
        if not sets:
            break
    return Guess(None, beliefs, runs)


def _pass_messages(
    problem: HistogramProblem, design: NDArray[np.float32], sets: list[tuple[int, ...]], deadline: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return estimated counts beyond guessed items, and the mean squares of residuals.

    Each set of guessed items has a column.
    """
    measurements, dimension = problem.matrix.shape
    left = problem.clients - len(sets[0])
    explained = np.array([problem.matrix[:, list(guessed)].sum(axis=1) for guessed in sets]).reshape(len(sets), measurements)
    target = ((2 * (problem.sums - explained) - left).T / np.sqrt(measurements)).astype(np.float32)
    mean = np.float32(left / dimension)
    levels = max(1, min(left, MOST_LEVELS))
    counts = np.full((dimension, len(sets)), mean)
    residual = target - design @ counts
    excess = np.full(len(sets), np.float32(0.05))
    variance = np.ones(len(sets), dtype=np.float32)
    for _ in range(ITERATIONS):
        noisy = counts + design.T @ residual
        variance = np.maximum((residual**2).mean(axis=0), np.float32(LEAST_VARIANCE))
        estimate, spread, occurs = _posterior(noisy, variance, mean * (1 - excess), excess, levels)
        # The prior's second parameter follows from the first moment and the share of items that occur.
        excess = np.clip(1 - occurs / np.maximum(estimate.sum(axis=0), np.float32(1e-6)), 1e-3, 0.9).astype(np.float32)
        onsager = residual * (spread.sum(axis=0) / variance / measurements)
        moved = DAMPING * (estimate - counts)
        counts = counts + moved
        residual = DAMPING * (target - design @ counts + onsager) + (1 - DAMPING) * residual
        if np.abs(moved).max() < SETTLED or time.monotonic() > deadline:
            break
    return counts, variance


def _posterior(
    noisy: NDArray[np.float32], variance: NDArray[np.float32], share: NDArray[np.float32], excess: NDArray[np.float32], levels: int
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Return means and variances of counts from Gaussian observations, and their support's size.

    The size is the expected number of counts that are not 0.
    """
    # Counts far above all observed counts have no weight.
    levels = int(np.clip(np.rint(np.nan_to_num(noisy.max(initial=0))) + 3, 1, levels))
    nearest = (noisy - np.clip(np.rint(noisy), 0, levels)) ** 2
    zero = (1 - share) * np.exp((nearest - noisy**2) / (2 * variance))
    total, first, second = zero.copy(), np.zeros_like(noisy), np.zeros_like(noisy)
    prior = share * (1 - excess)
    for level in range(1, levels + 1):
        weight = prior * np.exp((nearest - (noisy - np.float32(level)) ** 2) / (2 * variance))
        total += weight
        first += np.float32(level) * weight
        second += np.float32(level * level) * weight
        prior = prior * excess
    # All weights may be 0 if no room is left for another item.
    total = np.maximum(total, np.float32(1e-30))
    mean = first / total
    return mean, second / total - mean**2, (1 - zero / total).sum(axis=0)


def modular_rank(matrix: IntegerArray) -> int:
    """Return the rank modulo 2**31 - 1 of a matrix of 64-bit whole numbers.

    The modular rank is at most the rational rank: full rank is proven. A smaller rank may occur by chance, with a probability of about
    5e-10 for numbers that are unrelated to the prime.

    Examples
    --------
    >>> modular_rank(np.array([[1, 1, 0], [0, 1, 1], [1, 2, 1]]))
    2
    """
    rows = np.asarray(matrix, dtype=np.int64) % PRIME
    rank = 0
    for column in range(rows.shape[1]):
        below = np.flatnonzero(rows[rank:, column])
        if not len(below):
            continue
        rows[[rank, rank + below[0]]] = rows[[rank + below[0], rank]]
        # Products of two residues stay below 2**62.
        pivot = rows[rank] * pow(int(rows[rank, column]), -1, PRIME) % PRIME
        rows[rank + 1 :] = (rows[rank + 1 :] - rows[rank + 1 :, column, None] * pivot) % PRIME
        rank += 1
        if rank == len(rows):
            break
    return rank
