"""Lower bounds on tables with a given number of letters, by a tree of boxes of letters.

A node of the tree holds a box for each letter, in increasing order. Clauses (`letter_clauses`) narrow the boxes, or leave none. Otherwise
column generation bounds the tables whose letters lie in any of the boxes: it stops when its dual values prove the target in the boxes, or
when its table is better than the target. Its dual values become a clause either way, and the box in which its letters scatter most is
split.
When the tree is empty, no table has a variance below the target, and the dual vectors alone prove it: `hitting_set.replay` checks them
without a linear program. `proof_thinning` leaves out dual vectors that the replay does not need.
"""

import math
import time
from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray, IndexArray
from ...errors import ConvergenceError, InfeasibleError
from ...progress import OnStep, silent
from ..numerics.highs_program import new_highs, run_highs
from ..numerics.nonsmooth_bfgs import minimise_nonsmooth
from ..table_search.multistart import widened
from ..table_search.table_program import TableProgram
from .hitting_set import NO_SPLITS, Boxes, Narrowed, Splits, bisection, narrowed, root_boxes, split_boxes
from .letter_clauses import Clauses, DualVectors, TableVariance, clauses_of, joined, no_vectors, ray_value, weights_of
from .proof_thinning import Proof, splits_of, thinned
from .ray_pricing import DualValues, best_staircases, best_walks

# Artificial columns, which keep the master program feasible, cost this many units (the variance over the number of inputs). For B inputs
# the cost grows with max(1, (B / 4)**2), and for small epsilon, where all rays are alike and prices are high, with 1 / (exp(epsilon) - 1).
ARTIFICIAL_COST = 30.0
# Number of recent columns per input that the master program keeps.
COLUMNS_PER_INPUT = 60
# Dual vectors are rounded to this many digits of their unit, and weights to this many decimals, so that a file of them is short.
DIGITS, WEIGHT_DECIMALS = 9, 12
# Least distance of a box's split from its ends, as a share of its width.
LEAST_SHARE = 0.15
# Largest number of rounds of column generation in a node; the last dual values become a clause wherever it stops.
MOST_ROUNDS = 60
# The first tolerance is a half, and each tolerance is this share of the one before, until the requested tolerance is reached.
NEXT_TOLERANCE = 0.5
# Least tolerance. The programs' own errors are smaller by a few orders of magnitude.
LEAST_TOLERANCE = 1e-7
# Distance from 0, in units, within which boxes without any letters are bisected.
FAR = 10.0
# One bounded node in this many looks for a better table.
NODES_PER_TABLE = 4
# Largest number of evaluations of a descent from a better table's letters.
EVALUATIONS = 60


@dataclass(frozen=True, eq=False)
class LetterBound:
    """A proven lower bound on the variance of every table with a number of letters.

    Attributes
    ----------
    lower_bound : float
        Lower bound on the variance; 0 if no target was proven in time.
    vectors : DualVectors
        Dual vectors whose clauses prove the bound; no more than the replay needs.
    splits : Splits
        Splits of boxes that steer the replay of the proof.
    alphabet : ndarray of shape (letters,)
        Letters of the best table.
    value : float
        Variance of the best table with these letters.
    nodes : int
        Number of nodes of the search.
    seconds : float
        Duration of the search.
    """

    lower_bound: float
    vectors: DualVectors
    splits: Splits
    alphabet: FloatArray
    value: float
    nodes: int
    seconds: float

    @property
    def gap(self) -> float:
        """Share of the best table's variance by which a better table may improve on it."""
        return (self.value - self.lower_bound) / self.value


def bound_letters(
    variance: TableVariance,
    alphabet: FloatArray,
    *,
    tolerance: float = 1e-3,
    seconds: float = 60.0,
    on_step: OnStep = silent,
) -> LetterBound:
    """Bound the variance of every table with as many letters as an alphabet.

    The search proves targets below the best table's variance, each closer than the one before, and can stop at any time.

    Parameters
    ----------
    variance : TableVariance
        Objective, grid and privacy.
    alphabet : ndarray of shape (letters,)
        Letters of a good table, 2 or more.
    tolerance : float
        Gap at which to stop, at least 1e-7.
    seconds : float
        Time limit in seconds.
    on_step : callable
        Called after every node, ``on_step(nodes, 0, text)``; the text states the bound so far and the number of open nodes.

    Raises
    ------
    InfeasibleError
        If no table has the given letters.
    """
    search = _Search(variance, np.sort(alphabet), time.monotonic() + seconds, on_step)
    sought, lower_bound = 0.5, 0.0
    proven: list[_ProvenTarget] = []
    while True:
        # The margin makes the gap, after rounding, at most the tolerance.
        target = search.value * (1 - sought * (1 - 1e-9))
        if target > lower_bound and not search.proves(target, target / (1 - sought / 2)):
            if search.late:
                break
            # A better table was found: the next target is lower.
            continue
        if target > lower_bound:
            lower_bound = target
            proven.append(_ProvenTarget(target, len(search.vectors()), search.splits()))
        if sought <= max(tolerance, LEAST_TOLERANCE):
            break
        sought = max(sought * NEXT_TOLERANCE, tolerance, LEAST_TOLERANCE)
    vectors, splits, lower_bound = no_vectors(variance), NO_SPLITS, 0.0
    for last in reversed(proven):
        proof = thinned(Proof(search.vectors().take(slice(last.vectors)), last.splits), variance, len(alphabet), last.target)
        if proof is not None:
            vectors, splits, lower_bound = proof.vectors, proof.splits, last.target
            break
    duration = time.monotonic() - search.deadline + seconds
    return LetterBound(lower_bound, vectors, splits, search.alphabet, search.value, search.nodes, duration)


@dataclass(frozen=True, eq=False)
class _ProvenTarget:
    """A target that a search has proven, the number of dual vectors at the time, and the splits."""

    target: float
    vectors: int
    splits: Splits


@dataclass(frozen=True, eq=False)
class _NodeBound:
    """Result of column generation in a node of the tree.

    It consists of the last dual vector, whether that vector proves the target, and the letters and masses of the last table. The vector and
    the table are missing if the linear program's solver failed at once.
    """

    vector: DualVectors | None
    proven: bool
    letters: FloatArray
    masses: FloatArray


@dataclass(frozen=True, eq=False)
class _OpenNode:
    """Boxes left to search, the clauses they may miss, and the number of clauses at the time.

    The boxes are the part `side` (0 below, 1 above) of split number `split`, -1 for the root.
    """

    boxes: Boxes
    open_clauses: IndexArray
    clauses: int
    split: int = -1
    side: int = 0


class _Search:
    """The state of a search: its clauses, its best table, and its linear programs."""

    def __init__(self, variance: TableVariance, alphabet: FloatArray, deadline: float, on_step: OnStep) -> None:
        self.variance, self.deadline, self._on_step = variance, deadline, on_step
        self._mirrored = variance.symmetric
        self._constraint = variance.constraint
        self._program = TableProgram(variance.inputs, len(alphabet), self._constraint, variance.input_weights)
        self.alphabet, self.value = alphabet, self._program.solve(alphabet).value
        self._master = _BoxMaster(variance, self.value)
        self._pool = _ClausePool(variance)
        self._splits: list[tuple[int, float]] = []
        self._following: list[list[int]] = []
        self.nodes, self._bounds, self.proven = 0, 0, 0.0

    @property
    def late(self) -> bool:
        """Whether the time limit has passed."""
        return time.monotonic() > self.deadline

    def vectors(self) -> DualVectors:
        """Return the dual vectors of all clauses so far."""
        return self._pool.vectors()

    def splits(self) -> Splits:
        """Return the splits of the last search."""
        return splits_of(self._splits, self._following)

    def proves(self, target: float, too_close: float) -> bool:
        """Search the tree for a target, and return whether the target is proven.

        The result is False if time ran out, or if the search came upon a table that is better than `too_close`. A target that is close
        below the optimum would take far more nodes than the requested tolerance does.
        """
        self._pool.retarget(target)
        self._splits, self._following = [], []
        stack = [_OpenNode(root_boxes(self.variance, len(self.alphabet)), np.arange(len(self._pool)), len(self._pool))]
        while stack:
            if self.late or self.value < too_close:
                return False
            stack += self._search(stack.pop(), target)
            self.nodes += 1
            self._on_step(self.nodes, 0, f"bound {self.proven:.6g}, {len(stack)} open nodes")
        self.proven = target
        return True

    def _search(self, node: _OpenNode, target: float) -> list[_OpenNode]:
        """Return the nodes into which a node is split.

        There are none if the node's boxes hold no table below the target.
        """
        inside = self._narrowed(node)
        if inside is None:
            return []
        bound = self._master.bound(_union(inside.boxes), target)
        self._bounds += 1
        before = len(self._pool)
        if bound.vector is not None:
            self._pool.add(bound.vector, target)
        if bound.proven:
            return []
        if self._bounds % NODES_PER_TABLE == 0 or len(np.unique(bound.letters)) <= len(self.alphabet):
            self._try(_means(inside.boxes, bound))
        again = self._narrowed(_OpenNode(inside.boxes, inside.open_clauses, before))
        if again is None:
            return []
        letter, point = _split(again.boxes, bound, FAR * self.variance.unit)
        number = len(self._splits)
        self._splits.append((letter, point))
        self._following.append([-1, -1])
        if node.split >= 0:
            self._following[node.split][node.side] = number
        parts = split_boxes(again.boxes, letter, point)
        return [_OpenNode(boxes, again.open_clauses, len(self._pool), number, side) for side, boxes in enumerate(parts)]

    def _narrowed(self, node: _OpenNode) -> Narrowed | None:
        open_clauses = np.concatenate([node.open_clauses, np.arange(node.clauses, len(self._pool))])
        return narrowed(node.boxes, self._pool.clauses, open_clauses, mirrored=self._mirrored)

    def _try(self, letters: FloatArray) -> None:
        """Descend from letters if they permit a better table."""
        if self._value_and_gradient(letters)[0] < self.value * (1 - LEAST_TOLERANCE):
            minimum = minimise_nonsmooth(self._value_and_gradient, letters, tolerance=LEAST_TOLERANCE, max_evaluations=EVALUATIONS)
            self.alphabet, self.value = self._widened(minimum.point), minimum.value

    def _value_and_gradient(self, letters: FloatArray) -> tuple[float, FloatArray]:
        """Return the variance with letters in any order, after widening, and its gradient."""
        order, alphabet = np.argsort(letters), self._widened(letters)
        try:
            solution = self._program.solve(alphabet)
        except (InfeasibleError, ConvergenceError):
            # If letters permit no table, or the solver cannot finish the program, the value is infinite.
            return np.inf, np.zeros_like(letters)
        gradient = np.empty_like(letters)
        # The value does not change with a letter that is held at the least reach.
        gradient[order] = np.where(alphabet == letters[order], solution.alphabet_gradient, 0.0)
        return solution.value, gradient

    def _widened(self, letters: FloatArray) -> FloatArray:
        return widened(letters, len(self.variance.inputs), self._constraint)


class _ClausePool:
    """Dual vectors and their clauses, in arrays that grow.

    For symmetric weights, a vector's mirror image follows it.
    """

    def __init__(self, variance: TableVariance) -> None:
        self._variance = variance
        self._vectors: list[DualVectors] = []
        self.clauses = clauses_of(no_vectors(variance), variance, 1.0)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def vectors(self) -> DualVectors:
        """Return the dual vectors, without their mirror images."""
        return joined([no_vectors(self._variance), *self._vectors])

    def add(self, vector: DualVectors, target: float) -> None:
        """Add the clause of a dual vector and of its mirror image."""
        self._vectors.append(vector)
        self._extend(clauses_of(vector.with_mirrors() if self._variance.symmetric else vector, self._variance, target))

    def retarget(self, target: float) -> None:
        """Compute all clauses anew for another target."""
        vectors = self.vectors()
        self._count = 0
        self._extend(clauses_of(vectors.with_mirrors() if self._variance.symmetric else vectors, self._variance, target))

    def _extend(self, clauses: Clauses) -> None:
        needed = self._count + len(clauses)
        if needed > len(self.clauses):
            more = max(needed, 256, 2 * len(self.clauses)) - len(self.clauses)
            shape = more, self.clauses.starts.shape[1]
            self.clauses = Clauses(
                np.concatenate([self.clauses.starts, np.full(shape, np.inf)]), np.concatenate([self.clauses.ends, np.full(shape, -np.inf)])
            )
        self.clauses.starts[self._count : needed] = clauses.starts
        self.clauses.ends[self._count : needed] = clauses.ends
        self._count = needed


class _BoxMaster:
    """Column generation over staircase rays whose letters lie in a union of intervals."""

    def __init__(self, variance: TableVariance, scale: float) -> None:
        count = len(variance.inputs)
        self._variance, self._scale = variance, scale / count
        self._reach = np.sqrt(scale)
        self._decimals = DIGITS - math.floor(math.log10(self._scale))
        self._artificial_cost = ARTIFICIAL_COST * max(1.0, (count / 4) ** 2) * max(1.0, variance.unit - 1)
        self._best_rays = best_walks if variance.constraint.neighbours_only else best_staircases
        self._letters = np.empty(0)
        # The largest variance has a row for each input's variance, and a column for the largest of them.
        self._columns = np.empty((0, 2 * count if variance.input_weights is not None else 3 * count))
        self._first_ray = 4 * count + (variance.input_weights is None)
        self._costs, self._masses = np.empty(0), np.empty(0)
        self._highs = new_highs()
        self._rebuild()

    def bound(self, union: FloatArray, target: float) -> _NodeBound:
        """Generate columns until the node is decided.

        The method stops when the dual values prove the target, the table is better than the target, or no column violates the dual values.
        """
        allowed = _inside(self._letters, union)
        self._set_upper_bounds(allowed)
        strategies = highspy.simplex_constants.SimplexStrategy
        self._highs.setOptionValue("simplex_strategy", strategies.kSimplexStrategyDual)
        count = len(self._variance.inputs)
        for _ in range(MOST_ROUNDS):
            try:
                optimum = run_highs(self._highs, "the master program over privacy rays in boxes")
            except (ConvergenceError, InfeasibleError):
                # The node is split without a bound, which the proof does not need. A new program does not inherit the old program's
                # numerical trouble.
                self._rebuild()
                return _NodeBound(None, False, np.empty(0), np.empty(0))
            self._highs.setOptionValue("simplex_strategy", strategies.kSimplexStrategyPrimal)
            vector = self._dual_vector(optimum.row_duals)
            clause = clauses_of(vector, self._variance, target)
            proven = not np.any(np.maximum(clause.starts[0][:, None], union[:, 0]) <= np.minimum(clause.ends[0][:, None], union[:, 1]))
            artificial = optimum.variables[: 4 * count].max() > 1e-9
            if proven or (not artificial and optimum.value * self._scale < target) or not self._price(vector, union):
                break
        masses = optimum.variables[self._first_ray :]
        masses = np.concatenate([masses, np.zeros(len(self._letters) - len(masses))]) * self._masses
        used = masses > 1e-12
        letters, masses = self._letters[used], masses[used]
        if len(self._letters) > 2 * COLUMNS_PER_INPUT * count:
            self._rebuild()
        return _NodeBound(vector, proven, letters, masses)

    def _dual_vector(self, row_duals: FloatArray) -> DualVectors:
        count = len(self._variance.inputs)
        prices, slopes = row_duals[None, :count] * self._scale, row_duals[None, count : 2 * count] * (self._scale / self._reach)
        prices, slopes = prices.round(self._decimals), slopes.round(self._decimals)
        if self._variance.input_weights is not None:
            return DualVectors(prices, slopes)
        # The sum falls short of 1 while the artificial columns alone serve the rows. More weight keeps dual values feasible.
        weights = np.maximum(row_duals[2 * count :], 0.0) / count
        weights = weights + max(0.0, 1 - weights.sum()) / count
        return DualVectors(prices, slopes, (weights / weights.sum())[None, :].round(WEIGHT_DECIMALS))

    def _price(self, vector: DualVectors, union: FloatArray) -> bool:
        """Add the best letter on each piece of the violation; return whether there is a violation.

        Letters lie in the union of the boxes.
        """
        pieces = ray_value(vector, self._variance)
        lows, highs = np.maximum(pieces.lefts, union[:, :1]), np.minimum(pieces.rights, union[:, 1:])
        with np.errstate(divide="ignore", invalid="ignore"):
            tops = np.broadcast_to(-pieces.linear / (2 * pieces.square), lows.shape)
            # A top outside its piece is a local maximum only at an end of the union.
            peaks = ((tops > lows) | (lows == union[:, :1])) & ((tops < highs) | (highs == union[:, 1:])) & (lows <= highs)
            tops = np.clip(tops, lows, highs)
            values = pieces.constant + tops * (pieces.linear + tops * pieces.square)
        letters = tops[peaks & np.isfinite(tops) & (values > 1e-9 * self._scale)]
        return len(letters) > 0 and self._add(letters, vector)

    def _add(self, letters: FloatArray, vector: DualVectors) -> bool:
        """Add the best rays of letters that violate a dual vector; return False if none do."""
        inputs = self._variance.inputs
        duals = DualValues(vector.normalisation[0], vector.unbiasedness[0], weights_of(vector, self._variance)[0])
        rays = self._best_rays(duals, inputs, letters, self._variance.constraint.log_ratio)
        offsets = letters[:, None] - inputs
        squares = offsets**2
        violations = (rays * (duals.normalisation + offsets * duals.unbiasedness - squares * duals.input_weights)).sum(axis=1)
        wanted = violations > 1e-9 * self._scale
        letters, rays, offsets, squares = letters[wanted], rays[wanted], offsets[wanted], squares[wanted]
        blocks = [rays, rays * offsets / self._reach]
        if self._variance.input_weights is None:
            # The unit of these rows is the scale times the number of inputs.
            blocks.append(rays * squares / (-self._scale * len(inputs)))
            costs = np.zeros(len(letters))
        else:
            costs = (rays * squares) @ self._variance.input_weights / self._scale
        columns = np.concatenate(blocks, axis=1)
        sizes = np.abs(columns).max(axis=1, initial=0.0)
        columns, costs = columns / sizes[:, None], costs / sizes
        self._letters = np.concatenate([self._letters, letters])
        self._columns, self._costs = np.concatenate([self._columns, columns]), np.concatenate([self._costs, costs])
        self._masses = np.concatenate([self._masses, rays.sum(axis=1) / sizes])
        self._add_columns(costs, columns)
        return len(letters) > 0

    def _set_upper_bounds(self, allowed: NDArray[np.bool_]) -> None:
        count = len(self._letters)
        if count:
            indices = np.arange(self._first_ray, self._first_ray + count, dtype=np.int32)
            self._highs.changeColsBounds(count, indices, np.zeros(count), np.where(allowed, highspy.kHighsInf, 0.0))

    def _rebuild(self) -> None:
        """Start the program anew with the recent columns."""
        count = len(self._variance.inputs)
        recent = slice(max(0, len(self._letters) - COLUMNS_PER_INPUT * count), None)
        self._letters, self._columns, self._costs = self._letters[recent], self._columns[recent], self._costs[recent]
        self._masses = self._masses[recent]
        self._highs.clearModel()
        for right_hand_side in [*np.ones(count), *np.zeros(count)]:
            self._highs.addRow(right_hand_side, right_hand_side, 0, np.empty(0, dtype=np.int32), np.empty(0))
        rows = self._columns.shape[1]
        for _ in range(rows - 2 * count):
            self._highs.addRow(0.0, highspy.kHighsInf, 0, np.empty(0, dtype=np.int32), np.empty(0))
        identity = np.eye(2 * count, rows)
        self._add_columns(np.full(4 * count, self._artificial_cost), np.concatenate([identity, -identity]))
        if rows > 2 * count:
            self._add_columns(np.full(1, float(count)), np.repeat([[0.0, 1.0]], [2 * count, count], axis=1))
        self._add_columns(self._costs, self._columns)

    def _add_columns(self, costs: FloatArray, columns: FloatArray) -> None:
        rows = columns.shape[1]
        self._highs.addCols(
            len(costs),
            costs,
            np.zeros(len(costs)),
            np.full(len(costs), highspy.kHighsInf),
            columns.size,
            (np.arange(len(costs)) * rows).astype(np.int32),
            np.tile(np.arange(rows, dtype=np.int32), len(costs)),
            columns.ravel(),
        )


def _union(boxes: Boxes) -> FloatArray:
    """Return the union of sorted boxes as disjoint intervals, shape (intervals, 2)."""
    new = np.append(True, boxes.lows[1:] > boxes.highs[:-1])
    last = np.append(np.flatnonzero(new)[1:] - 1, len(new) - 1)
    return np.stack([boxes.lows[new], boxes.highs[last]], axis=1)


def _inside(letters: FloatArray, union: FloatArray) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = np.any((letters[:, None] >= union[:, 0]) & (letters[:, None] <= union[:, 1]), axis=1)
    return inside


def _means(boxes: Boxes, bound: _NodeBound) -> FloatArray:
    """Return the mean letter of each box, or its middle if no letter lies in it."""
    inside = _weights(boxes, bound)
    masses = inside.sum(axis=0)
    hull = np.array([bound.letters.min(), bound.letters.max()]) if len(bound.letters) else np.array([0.0, 1.0])
    middles = (np.clip(boxes.lows, *hull) + np.clip(boxes.highs, *hull)) / 2
    return np.sort(np.where(masses > 0, bound.letters @ inside / np.where(masses > 0, masses, 1.0), middles))


def _weights(boxes: Boxes, bound: _NodeBound) -> FloatArray:
    """Return the masses of letters (rows) in the boxes (columns)."""
    letters = bound.letters[:, None]
    return np.where((letters >= boxes.lows) & (letters <= boxes.highs), bound.masses[:, None], 0.0)


def _split(boxes: Boxes, bound: _NodeBound, far: float) -> tuple[int, float]:
    """Return the box in which the letters scatter most, and the mean of its letters.

    Among boxes that scatter alike, the result is the middle box. If the letters scatter in no box, the result is the widest box within
    `far` of 0, and its middle.
    """
    weights = _weights(boxes, bound)
    means = bound.letters @ weights / np.maximum(weights.sum(axis=0), 1e-300)
    scatter = (weights * (bound.letters[:, None] - means) ** 2).sum(axis=0)
    most = np.flatnonzero(scatter >= scatter.max() * (1 - 1e-9))
    letter = int(most[len(most) // 2])
    if scatter[letter] <= 0:
        return bisection(boxes, far)
    low, high, point = boxes.lows[letter], boxes.highs[letter], float(means[letter])
    if np.isfinite(high - low):
        point = float(np.clip(point, low + LEAST_SHARE * (high - low), high - LEAST_SHARE * (high - low)))
    return letter, point
