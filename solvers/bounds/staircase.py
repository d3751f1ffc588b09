"""The globally optimal table over all alphabets, with a certificate, by column generation.

Pricing is exact. With unlimited letters the best table is a linear program over pairs (privacy ray v_k, letter a_k) with masses theta_k:
minimise sum_k theta_k sum_i weight_i v_ki (x_i - a_k)**2 subject to sum_k theta_k v_k = 1 and sum_k theta_k (a_k - x) v_k = 0. A master
program (`RestrictedMaster`) holds the pairs of all rounds so far; exact pricing adds the best pair of every piece, all at once, so that
letters converge as in a Remez exchange. Two devices make it fast for fine grids. Each grid starts from the dual values of the grid with
half the inputs. The dual values may move only inside a box that is recentred at the best bound so far (the box's sides are columns with a
price, which also keep the master feasible). `dual_space` gives the dual values fewer coordinates, by mirror symmetry, and by knots on fine
grids.
"""

from dataclasses import dataclass
from functools import lru_cache

import highspy
import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...errors import ConvergenceError
from ..numerics.highs_program import new_highs, run_highs
from .dual_bound import feasible_duals
from .privacy_constraint import RatioConstraint, typical_variance
from .ray_pricing import DualValues

# Fewest inputs of a grid with dipoles. Fewer inputs have no smooth density between the ends.
LEAST_INPUTS_OF_A_DIPOLE = 16

# Number of knots. With more inputs, the dual values of a bound are piecewise linear between the knots, which keeps the master program
# small. On grids of 128 and 256, for a uniform prior, this cost less than 1e-6 of the bound under metric privacy; under local privacy 5e-5
# at epsilon 1, 2e-4 at 4 and 1e-3 at 8.
KNOTS = 64

# Largest number of rounds of column generation on a grid, after and before the first master program that is free of the box. A table must
# converge; a bound holds wherever its search stops.
TABLE_ROUNDS, BOUND_ROUNDS = (500, 500), (60, 120)

# Largest relative gap of a coarse grid from which the next grid starts. If the whole grid spreads over less log ratio than SMALL_SPREAD,
# good tables differ in variance only by a share of the order of that log ratio's square, and the gap must be this share of it: a start with
# a wider gap holds nothing.
COARSE_TOLERANCE, SMALL_SPREAD = 1e-4, 0.5

# The box of dual values shrinks by this factor if the bound falls. For small spreads it shrinks by the second if the bound fell by more
# than three times the gain that the master program predicted, and by the third if it fell by less.
SHRINK, FAR_OFF, NEAR_BY = 0.7, 0.5, 0.9

# Most simplex steps of a solve of the master program, per row. Solves need 15 at most, unless primal simplex cycles: at epsilon 20 a solve
# for the largest variance once took 600,000 steps. Another method then solves the program from scratch.
STEPS_PER_ROW = 40

# If the whole grid spreads over less log ratio than this, local privacy, which metric privacy implies, bounds metric privacy: the bound is
# then lower by a relative error of about half the spread, and the metric's master programs would be too ill-conditioned to solve.
LEAST_SPREAD = 0.02


@dataclass(frozen=True, eq=False)
class StaircaseBound:
    """A lower bound on every table's objective, and the positions of good letters.

    Attributes
    ----------
    lower_bound : float
        Lower bound on the objective of every unbiased private table on this grid, with any number of letters.
    duals : DualValues
        Feasible dual values that prove the bound.
    letters : ndarray of shape (rays,)
        Increasing letters in the bound's master program.
    masses : ndarray of shape (rays,)
        Probability of each letter, summed over inputs.
    """

    lower_bound: float
    duals: DualValues
    letters: FloatArray
    masses: FloatArray


@dataclass(frozen=True, eq=False)
class StaircaseTable:
    """The best table with unlimited letters, and the proof of its optimality.

    Attributes
    ----------
    probabilities : ndarray of shape (inputs, letters)
        The table; every column is a sum of masses times privacy rays, so that it keeps the ratio constraint to the last bit but one.
    alphabet : ndarray of shape (letters,)
        The letters, increasing; at most twice as many as inputs for a weighted objective.
    value : float
        The table's objective.
    lower_bound : float
        Lower bound on the objective of every unbiased private table on this grid.
    duals : DualValues
        Feasible dual values that prove the bound.
    """

    probabilities: FloatArray
    alphabet: FloatArray
    value: float
    lower_bound: float
    duals: DualValues


@dataclass(frozen=True)
class DualSpace:
    """A linear space of dual values on a grid.

    Restricting the dual values keeps every lower bound rigorous: it only maximises over fewer proofs.

    Attributes
    ----------
    chosen : ndarray of shape (coordinates,)
        Inputs whose dual values determine all other dual values.
    weights : ndarray of shape (inputs, coordinates)
        Matrix from input weights at the chosen inputs to all input weights; non-negative.
    weight_units : ndarray of shape (coordinates,)
        Size of an input weight at each chosen input.
    even, odd : ndarray of shape (inputs, coordinates)
        Matrices from coordinates to prices: `even` for normalisation, `odd` for unbiasedness, which changes sign under the mirror x -> 1-x
        where symmetry is imposed. Transposed, they gather a table's constraints into the rows of the master program. The coordinates are
        the prices at the chosen inputs, except at the first two and the last two inputs of fine grids. There, one coordinate is an atom, a
        price on the outermost input, and the other a dipole, a price on the difference of the two. With symmetry and a small spread, all
        coordinates are larger, and the coordinates of `even` have the sum zero, except for the last, a price on every input.
    to_even, to_odd : ndarray of shape (coordinates, coordinates)
        Matrices from prices at the chosen inputs to coordinates.
    """

    chosen: NDArray[np.intp]
    weights: FloatArray
    weight_units: FloatArray
    even: FloatArray
    odd: FloatArray
    to_even: FloatArray
    to_odd: FloatArray

    def coordinates(self, duals: DualValues) -> tuple[FloatArray, FloatArray]:
        """Return the coordinates of this space's normalisation and unbiasedness prices that agree with given values.

        The agreement is at the chosen inputs.
        """
        return self.to_even @ duals.normalisation[self.chosen], self.to_odd @ duals.unbiasedness[self.chosen]

    def project(self, duals: DualValues) -> DualValues:
        """Return the dual values of this space that agree with given values.

        The agreement is at the chosen inputs; input weights stay as they are.
        """
        even, odd = self.coordinates(duals)
        return DualValues(self.even @ even, self.odd @ odd, duals.input_weights)


@dataclass(frozen=True, eq=False)
class _Level:
    """Column generation on a grid: its bound, and the masses of its last table.

    The masses are those of the last master program that was free of the box.
    """

    value: float
    bound: float
    duals: DualValues
    letters: FloatArray
    rays: FloatArray
    masses: FloatArray


def solve_staircase(
    bits_in: int, constraint: RatioConstraint, input_weights: FloatArray | None, *, tolerance: float = 1e-8
) -> StaircaseTable:
    """Return the globally optimal table with unlimited letters, and its lower bound.

    The bound certifies the table.

    Parameters
    ----------
    bits_in : int
        Number of bits of the input grid.
    constraint : RatioConstraint
        Local or metric privacy.
    input_weights : ndarray of shape (2**bits_in,) or None
        Weights of the rows' variances, non-negative with sum one; None minimises the largest variance.
    tolerance : float
        Largest relative gap between value and bound.

    Raises
    ------
    ConvergenceError
        If the gap stays open: above all for metric privacy with a tiny ratio over the whole grid.
    """
    symmetric = _is_symmetric(input_weights)
    level = _refine(bits_in, constraint, input_weights, symmetric, knots=None, tolerance=tolerance, rounds=TABLE_ROUNDS)
    if level.value == np.inf or level.value - level.bound > tolerance * level.value:
        raise ConvergenceError(
            f"column generation reached a table of {level.value:.9g} and a bound of {level.bound:.9g} on {2**bits_in} inputs, "
            f"which is farther apart than the relative tolerance {tolerance:g}"
        )
    probabilities, alphabet = _table(level, symmetric)
    return StaircaseTable(probabilities, alphabet, level.value, level.bound, level.duals)


def staircase_bound(
    bits_in: int, constraint: RatioConstraint, input_weights: FloatArray | None, *, tolerance: float = 1e-6
) -> StaircaseBound:
    """Return a lower bound on every table's objective, with any number of letters.

    The bound takes less time than the table that attains it. Parameters are those of `solve_staircase`, except for the tolerance: the
    relative distance from the best bound at which to stop. The bound is valid wherever the search stops.

    Raises
    ------
    ConvergenceError
        If no master program can be solved.
    """
    # One grid, constraint and objective serve the design of a table, its certificate and its comparison with the bound.
    return _bound(bits_in, constraint, None if input_weights is None else np.asarray(input_weights, dtype=float).tobytes(), tolerance)


@lru_cache(maxsize=256)
def _bound(bits_in: int, constraint: RatioConstraint, weight_bytes: bytes | None, tolerance: float) -> StaircaseBound:
    input_weights = None if weight_bytes is None else np.frombuffer(weight_bytes)
    bound = _solved_bound(bits_in, constraint, input_weights, tolerance)
    for kept in (bound.letters, bound.masses, bound.duals.normalisation, bound.duals.unbiasedness, bound.duals.input_weights):
        kept.flags.writeable = False
    return bound


def _solved_bound(bits_in: int, constraint: RatioConstraint, input_weights: FloatArray | None, tolerance: float) -> StaircaseBound:
    if constraint.neighbours_only and constraint.log_ratio * (2**bits_in - 1) < LEAST_SPREAD:
        relaxed = RatioConstraint(constraint.log_ratio * (2**bits_in - 1), neighbours_only=False)
        bound = staircase_bound(bits_in, relaxed, input_weights, tolerance=tolerance)
        feasible = feasible_duals(bound.duals, np.linspace(0.0, 1.0, 2**bits_in), constraint)
        return StaircaseBound(feasible.bound, feasible.duals, bound.letters, bound.masses)
    symmetric = _is_symmetric(input_weights)
    level = _refine(bits_in, constraint, input_weights, symmetric, knots=KNOTS, tolerance=tolerance, rounds=BOUND_ROUNDS)
    probabilities, letters = _table(level, symmetric)
    return StaircaseBound(level.bound, level.duals, letters, probabilities.sum(axis=0))


def _is_symmetric(input_weights: FloatArray | None) -> bool:
    return input_weights is None or bool(np.allclose(input_weights, input_weights[::-1], rtol=1e-12, atol=0))


def _refine(
    bits_in: int,
    constraint: RatioConstraint,
    input_weights: FloatArray | None,
    symmetric: bool,
    *,
    knots: int | None,
    tolerance: float,
    rounds: tuple[int, int],
) -> _Level:
    """Solve on grids of 2, 4, 8, ... inputs, each from the solution of the previous grid."""
    neighbours_only = constraint.neighbours_only
    spread = constraint.log_ratio * (2**bits_in - 1 if neighbours_only else 1)
    unit = spread if symmetric and spread < SMALL_SPREAD else 1.0
    level: _Level | None = None
    for bits in range(1, bits_in + 1):
        count = 2**bits
        grid = RatioConstraint(spread / (count - 1), True) if neighbours_only else constraint
        weights = None if input_weights is None else input_weights.reshape(count, -1).sum(axis=1)
        space = dual_space(count, symmetric, knots, unit)
        # Only the last grid must be solved to the end.
        sought = tolerance if bits == bits_in else max(tolerance, COARSE_TOLERANCE * unit**2)
        level = _solve_level(grid, weights, space, level, sought, rounds, unit)
    assert level is not None  # noqa: S101 - bits_in is at least one
    return level


def _solve_level(
    constraint: RatioConstraint,
    input_weights: FloatArray | None,
    space: DualSpace,
    coarse: _Level | None,
    tolerance: float,
    rounds: tuple[int, int],
    spread: float,
) -> _Level:
    """Solve on a grid, from the dual values and the rays of the grid with half the inputs; `spread` as in `dual_space`."""
    count = len(space.even)
    inputs = np.linspace(0.0, 1.0, count)
    typical = coarse.bound if coarse is not None and coarse.bound > 0 else typical_variance(constraint, count)
    master = RestrictedMaster(inputs, input_weights, space, typical / count, np.sqrt(typical))
    starts = _starting_duals(inputs, constraint, input_weights, coarse)
    first = best = max((feasible_duals(space.project(start), inputs, constraint) for start in starts), key=lambda feasible: feasible.bound)
    master.add(first.priced.letters, first.priced.rays)
    if coarse is not None:
        master.add(coarse.letters, _refined_rays(coarse.rays, constraint))
    width = 0.5
    value, masses = np.inf, np.zeros(0)
    rounds_once_free, rounds_before = rounds
    for number in range(max(rounds)):
        if number >= (rounds_once_free if value < np.inf else rounds_before):
            break
        try:
            optimum = master.solve(best.duals, width)
        except ConvergenceError:
            # The best bound so far holds. `solve_staircase` raises an error if it is too far from the table's value.
            if coarse is None:
                raise
            break
        bounded = feasible_duals(optimum.duals, inputs, constraint)
        if optimum.sides_touched == 0 or not masses.any():
            masses = optimum.masses
        if optimum.sides_touched == 0:
            value = optimum.value
        predicted, gained = optimum.value - best.bound, bounded.bound - best.bound
        if gained > 0:
            best = bounded
            width *= 2 if optimum.sides_touched else 1
        else:
            width *= SHRINK if spread == 1 else FAR_OFF if gained < -3 * predicted else NEAR_BY
        if value < np.inf and value - best.bound <= tolerance * value:
            break
        if optimum.sides_touched and optimum.value - best.bound <= tolerance * abs(optimum.value):
            width *= 4
        wanted = bounded.priced.violations > 0
        master.add(bounded.priced.letters[wanted], bounded.priced.rays[wanted])
    if coarse is not None and not masses.any():
        masses = np.concatenate([np.zeros(len(first.priced.letters)), coarse.masses])
    used = np.flatnonzero(masses > 1e-12 * masses.max(initial=0.0))
    return _Level(value, best.bound, best.duals, master.letters[used], master.rays[used], masses[used])


def _starting_duals(
    inputs: FloatArray, constraint: RatioConstraint, input_weights: FloatArray | None, coarse: _Level | None
) -> list[DualValues]:
    """Return the dual values to start from, if their bound is the best of the candidates."""
    count = len(inputs)
    equal = np.full(count, 1 / count)
    flat = DualValues(typical_variance(constraint, count) * equal, np.zeros(count), equal if input_weights is None else input_weights)
    if coarse is None:
        return [flat]
    normalisation, unbiasedness = _refined(coarse.duals.normalisation), _refined(coarse.duals.unbiasedness)
    if input_weights is not None:
        return [DualValues(normalisation, unbiasedness, input_weights)]
    # Optimal weights have an atom at each end of fine grids, or none if there can be letters near every input: try both kinds.
    smooth = np.interp(inputs, np.linspace(0.0, 1.0, count // 2), coarse.duals.input_weights)
    refined = [weights / weights.sum() for weights in (np.maximum(_refined(coarse.duals.input_weights), 0.0), smooth)]
    return [flat, *(DualValues(normalisation, unbiasedness, weights) for weights in refined)]


def _refined(prices: FloatArray) -> FloatArray:
    """Carry prices to a grid twice as fine.

    The prices are a density between the ends, an atom and a dipole (a price on the slope) at each end.
    """
    coarse, fine = len(prices), 2 * len(prices)
    if coarse < 8:
        return np.interp(np.linspace(0, 1, fine), np.linspace(0, 1, coarse), prices) / 2
    density = prices.copy()
    density[:2], density[-2:] = prices[2], prices[-3]
    refined = np.interp(np.linspace(0, 1, fine), np.linspace(0, 1, coarse), density) / 2
    stretch = (fine - 1) / (coarse - 1)
    for outer, inner in ((0, 1), (-1, -2)):
        atom = prices[outer] + prices[inner] - density[outer] - density[inner]
        slope = stretch * (prices[inner] - density[inner])
        refined[inner] += slope
        refined[outer] += atom - slope
    return refined


def _refined_rays(rays: FloatArray, constraint: RatioConstraint) -> FloatArray:
    """Carry extreme rays to a grid twice as fine, where they stay extreme rays."""
    coarse, fine = rays.shape[1], 2 * rays.shape[1]
    if not constraint.neighbours_only:
        return rays[:, np.arange(fine) // 2]
    rises = np.sign(np.diff(rays, axis=1))[:, np.arange(fine - 1) * (coarse - 1) // (fine - 1)]
    heights = np.concatenate([np.zeros((len(rays), 1)), np.cumsum(rises, axis=1)], axis=1)
    refined: FloatArray = np.exp(constraint.log_ratio * (heights - heights.max(axis=1, keepdims=True)))
    return refined


def _table(level: _Level, symmetric: bool) -> tuple[FloatArray, FloatArray]:
    """Gather masses and rays into columns with increasing letters.

    Rays with the same letter share a column.
    """
    letters, columns = level.letters, level.masses[:, None] * level.rays
    if symmetric:
        letters = np.concatenate([letters, 1 - letters])
        columns = np.concatenate([columns, columns[:, ::-1]]) / 2
    order = np.argsort(letters)
    letters, columns = letters[order], columns[order]
    starts = np.flatnonzero(np.diff(letters, prepend=-np.inf) > 1e-12 * np.abs(letters).max())
    return np.add.reduceat(columns, starts, axis=0).T, letters[starts]


@dataclass(frozen=True)
class MasterSolution:
    """An optimum of the master program.

    Attributes
    ----------
    masses : ndarray of shape (rays,)
        Mass theta of each ray in the pool.
    duals : DualValues
        Dual values of the master program, inside the box.
    value : float
        Value of the master program, which includes the prices of the box's sides.
    sides_touched : int
        Number of sides of the box that the dual values lie on; zero means that the masses form a table.
    """

    masses: FloatArray
    duals: DualValues
    value: float
    sides_touched: int


class RestrictedMaster:
    """The pool of rays and the linear program over their masses.

    Parameters
    ----------
    inputs : ndarray of shape (inputs,)
        The input grid.
    input_weights : ndarray of shape (inputs,) or None
        Weights of the rows' variances; None for the largest variance.
    space : DualSpace
        Space of the dual values; its transpose gathers the table's constraints.
    scale : float
        Size of a row's variance over the number of inputs: the unit of the dual values.
    reach : float
        Size of a letter's distance from an input: the unit of the bias rows.
    """

    def __init__(self, inputs: FloatArray, input_weights: FloatArray | None, space: DualSpace, scale: float, reach: float) -> None:
        self.inputs, self.input_weights, self.space, self.scale, self.reach = inputs, input_weights, space, scale, reach
        self.letters = np.empty(0)
        self.rays = np.empty((0, len(inputs)))
        self._column_scales = np.empty(0)
        self._highs = new_highs()
        # The last optimum stays feasible with more columns: from there, dual simplex, HiGHS's own choice, may take ten times as long as
        # primal simplex.
        self._highs.setOptionValue("simplex_strategy", highspy.simplex_constants.SimplexStrategy.kSimplexStrategyPrimal)
        coordinates = space.even.shape[1]
        self._prices = 2 * coordinates
        self._rows = self._prices if input_weights is not None else 3 * coordinates
        for right_hand_side in [*space.even.sum(axis=0), *np.zeros(coordinates)]:
            self._highs.addRow(right_hand_side, right_hand_side, 0, np.empty(0, dtype=np.int32), np.empty(0))
        for _ in range(self._rows - self._prices):
            self._highs.addRow(0.0, highspy.kHighsInf, 0, np.empty(0, dtype=np.int32), np.empty(0))
        self._highs.setOptionValue("simplex_iteration_limit", STEPS_PER_ROW * self._rows)
        identity = np.eye(self._rows)
        self._add_columns(np.zeros(2 * self._rows), np.concatenate([identity, -identity]))
        self._first_ray = 2 * self._rows
        if input_weights is None:
            self._add_columns(np.ones(1), np.concatenate([np.zeros(self._prices), space.weights.sum(axis=0)])[None, :])
            self._first_ray += 1

    def add(self, letters: FloatArray, rays: FloatArray) -> None:
        """Add rays and their letters to the pool."""
        offsets = letters[:, None] - self.inputs
        variances = rays * offsets**2 / self.scale
        blocks = [rays @ self.space.even, (rays * offsets / self.reach) @ self.space.odd]
        if self.input_weights is None:
            blocks.append(-variances @ self.space.weights)
            costs = np.zeros(len(letters))
        else:
            costs = variances @ self.input_weights
        columns = np.concatenate(blocks, axis=1)
        # Letters far out have entries of any size; each column is scaled so that no entry exceeds 1.
        scales = np.abs(columns).max(axis=1)
        self._add_columns(costs / scales, columns / scales[:, None])
        self._column_scales = np.concatenate([self._column_scales, scales])
        self.letters = np.concatenate([self.letters, letters])
        self.rays = np.concatenate([self.rays, rays])

    def solve(self, centre: DualValues, width: float) -> MasterSolution:
        """Solve for the masses, with dual values at most `width` units (of `scale`) from `centre`."""
        space = self.space
        even, odd = space.coordinates(centre)
        middle = np.concatenate([even, odd * self.reach]) / self.scale
        widths = np.full(self._prices, width)
        if self.input_weights is None:
            middle = np.concatenate([middle, centre.input_weights[space.chosen]])
            widths = np.concatenate([widths, width * space.weight_units])
        prices = np.concatenate([widths + middle, widths - middle])
        self._highs.changeColsCost(len(prices), np.arange(len(prices), dtype=np.int32), prices)
        optimum = run_highs(self._highs, "the master program over privacy rays")
        variables, row_duals = optimum.variables, optimum.row_duals
        half = self._prices // 2
        duals = DualValues(
            space.even @ row_duals[:half] * self.scale,
            space.odd @ row_duals[half : self._prices] * (self.scale / self.reach),
            self.input_weights if self.input_weights is not None else self._weights(row_duals[self._prices :], centre),
        )
        touched = int(np.count_nonzero(variables[: 2 * self._rows] > 1e-11))
        masses = np.maximum(variables[self._first_ray :], 0.0) / self._column_scales
        return MasterSolution(masses, duals, optimum.value * self.scale, touched)

    def _weights(self, row_duals: FloatArray, centre: DualValues) -> FloatArray:
        """Return the input weights, scaled to sum 1, or the centre's if all are zero."""
        weights = self.space.weights @ np.maximum(row_duals, 0.0)
        return weights / weights.sum() if weights.any() else centre.input_weights

    def _add_columns(self, costs: FloatArray, columns: FloatArray) -> None:
        """Add variables >= 0 with given costs; row k of `columns` is a column of the program."""
        starts = np.arange(len(costs)) * columns.shape[1]
        self._highs.addCols(
            len(costs),
            costs,
            np.zeros(len(costs)),
            np.full(len(costs), highspy.kHighsInf),
            columns.size,
            starts.astype(np.int32),
            np.tile(np.arange(columns.shape[1], dtype=np.int32), len(costs)),
            columns.ravel(),
        )


def dual_space(inputs: int, symmetric: bool, knots: int | None, spread: float = 1.0) -> DualSpace:
    """Return the dual values on a grid that are symmetric, piecewise linear, both or neither.

    Parameters
    ----------
    inputs : int
        Number of inputs, even.
    symmetric : bool
        Whether the objective is the same under x -> 1-x; an optimal dual solution is then symmetric, so the restriction loses nothing.
    knots : int or None
        Largest number of knots of the piecewise linear functions; None for a knot per input. The two inputs next to each end are always
        knots: optimal duals have an atom and a dipole there, and are smooth between.
    spread : float
        Largest log ratio over the grid, if it is small and there is symmetry. Columns of a table differ little between inputs then, and all
        prices other than a price on every input are of the order of 1 over the spread. 1 otherwise.
    """
    half = inputs // 2
    lower = np.arange(half)
    if knots is not None and knots < inputs:
        lower = np.unique(np.concatenate([[0, 1], np.linspace(2, half - 1, knots // 2 - 2).round().astype(int)]))
    chosen = np.concatenate([lower, inputs - 1 - lower[::-1]])
    hats = np.stack([np.interp(np.arange(inputs), chosen, unit) for unit in np.eye(len(chosen))], axis=1)
    odd = hats
    if symmetric:
        own, mirrored = hats[:, : len(lower)], hats[:, ::-1][:, : len(lower)]
        chosen, hats, odd = lower, own + mirrored, own - mirrored
    prices, weight_units = np.eye(len(chosen)), np.full(len(chosen), 1 / inputs)
    if inputs >= LEAST_INPUTS_OF_A_DIPOLE:
        # Relative to a density of prices of order 1, an atom is of the order of the number of inputs, and a dipole, a price on the slope,
        # of its square: with such units, dual values are about as far from those of the coarser grid in every coordinate. The weights of
        # the largest variance have atoms, too.
        for outer, inner in ((0, 1),) if symmetric else ((0, 1), (-1, -2)):
            prices[outer, outer] = inputs
            prices[inner, inner] = inputs**2
            prices[outer, inner] = -(inputs**2)
            weight_units[outer] = 1.0
    even_prices = odd_prices = prices
    if spread < 1:
        # Rows of the master program whose prices have the sum zero see differences between a ray's entries alone: the rows of the entries
        # themselves would be parallel but for a share of the order of the spread.
        means = (hats @ prices).sum(axis=0) / inputs
        even_prices, odd_prices = (prices - means) / spread, prices / spread
        even_prices[:, -1] = 1.0
    return DualSpace(chosen, hats, weight_units, hats @ even_prices, odd @ odd_prices, _inverse(even_prices), _inverse(odd_prices))


def _inverse(matrix: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.inv(matrix), dtype=float)
