"""The master program of column generation: the best masses for the rays found so far, with dual values kept inside a box."""

from dataclasses import dataclass

import highspy
import numpy as np

from ...arrays import FloatArray
from ..numerics.highs_program import new_highs, run_highs
from .dual_space import DualSpace
from .ray_pricing import DualValues


@dataclass(frozen=True)
class MasterSolution:
    """An optimum of the master program.

    Attributes
    ----------
    masses : ndarray of shape (rays,)
        theta of each ray in the pool.
    duals : DualValues
        Its dual values, inside the box.
    value : float
        Its value, the prices of the box's sides included.
    sides_touched : int
        How many sides of the box the dual values lie on; zero means that the masses form a table.
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
        Where the dual values live; its transpose gathers the table's constraints.
    scale : float
        The size of a row's variance over the number of inputs: the unit of the dual values.
    reach : float
        The size of a letter's distance from an input: the unit of the bias rows.
    """

    def __init__(self, inputs: FloatArray, input_weights: FloatArray | None, space: DualSpace, scale: float, reach: float) -> None:
        self.inputs, self.input_weights, self.space, self.scale, self.reach = inputs, input_weights, space, scale, reach
        self.letters = np.empty(0)
        self.rays = np.empty((0, len(inputs)))
        self._column_scales = np.empty(0)
        self._highs = new_highs()
        # With more columns the last optimum is still feasible: from there dual simplex, HiGHS's own choice, may take ten times as long.
        self._highs.setOptionValue("simplex_strategy", highspy.simplex_constants.SimplexStrategy.kSimplexStrategyPrimal)
        coordinates = space.even.shape[1]
        self._prices = 2 * coordinates
        self._rows = self._prices if input_weights is not None else 3 * coordinates
        for right_hand_side in [*space.even.sum(axis=0), *np.zeros(coordinates)]:
            self._highs.addRow(right_hand_side, right_hand_side, 0, np.empty(0, dtype=np.int32), np.empty(0))
        for _ in range(self._rows - self._prices):
            self._highs.addRow(0.0, highspy.kHighsInf, 0, np.empty(0, dtype=np.int32), np.empty(0))
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
        # Letters far out have entries of any size; a column is scaled so that none exceeds one.
        scales = np.abs(columns).max(axis=1)
        self._add_columns(costs / scales, columns / scales[:, None])
        self._column_scales = np.concatenate([self._column_scales, scales])
        self.letters = np.concatenate([self.letters, letters])
        self.rays = np.concatenate([self.rays, rays])

    def solve(self, centre: DualValues, width: float) -> MasterSolution:
        """Solve for the masses, with dual values no farther than `width` units (of `scale`) from `centre`."""
        space = self.space
        middle = np.concatenate([space.coordinates(centre.normalisation), space.coordinates(centre.unbiasedness) * self.reach]) / self.scale
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
        """Return the input weights, scaled to sum one; the centre's while the master has no use for any."""
        weights = self.space.weights @ np.maximum(row_duals, 0.0)
        return weights / weights.sum() if weights.any() else centre.input_weights

    def _add_columns(self, costs: FloatArray, columns: FloatArray) -> None:
        """Add variables >= 0 with these costs; `columns` holds one column of the program per row."""
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
