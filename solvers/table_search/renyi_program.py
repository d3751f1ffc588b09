"""The best table for given letters whose rows' Rényi divergences, at one order, are bounded by their distance: a convex program."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...arrays import FloatArray, IndexArray
from ...errors import InfeasibleError
from ..numerics.smooth_interior_point import Curved, minimise_convex

# Newton steps for the rows of exponential tilts that the method starts from.
TILTING_STEPS = 50
# The table's entries at the start are at least this.
SMALLEST_ENTRY = 1e-8


@dataclass(frozen=True, eq=False)
class RenyiProgramSolution:
    """The best table for given letters.

    Attributes
    ----------
    probabilities : ndarray of shape (inputs, letters)
        The table; rows sum to one and are unbiased, and divergences are within their limits, all up to the solver's tolerance.
    value : float
        Largest average variance of a vector's coordinates, in squared grid steps.
    reach_gradient : ndarray of shape (letters / 2,)
        Derivative of `value` in each reach of the letters (envelope theorem).
    limit_gradient : ndarray of shape (inputs,)
        Derivative in the divergence that is allowed at each distance.
    """

    probabilities: FloatArray
    value: float
    reach_gradient: FloatArray
    limit_gradient: FloatArray


@dataclass(frozen=True, eq=False)
class RenyiProgram:
    """Tables that are their own mirror image, of least variance for the worst vector under bounds on their rows' divergences.

    Rows are at x_i = i steps, letters at ``middle - r`` and ``middle + r`` steps for each reach r, and P[i, j] = P[B-1-i, M-1-j]. With V_i
    the variance of row i, the objective is the largest average of V over coordinates whose average price is at most a budget: by linear
    duality the least ``m + budget * q`` with ``V_i <= m + price_i q``. For order a, with phi(r) = (r**a - a r + a - 1)/(a - 1), the
    divergence of row i from row k is at most D if and only if

        sum_j P[k, j] phi(P[i, j] / P[k, j])  <=  (exp((a - 1) D) - 1)/(a - 1)

    whose left-hand side is jointly convex in the two rows (an f-divergence). As the problem is convex and mirrored, mirrored tables are as
    good as others for mirrored letters and prices.

    Attributes
    ----------
    inputs, letters : int
        B and M, even.
    order : float
        a, above 1 and finite.
    furthest : int
        Largest number of steps between two rows whose divergence is bounded, at least 1.
    prices : ndarray of shape (inputs / 2,)
        What the lower half of the rows cost a vector.
    budget : float
        What its coordinates can spend on average.
    """

    inputs: int
    letters: int
    order: float
    furthest: int
    prices: FloatArray
    budget: float

    def solve(self, reaches: FloatArray, limits: FloatArray, *, tolerance: float = 1e-8) -> RenyiProgramSolution:
        """Return the best table for letters with these reaches, in any order.

        Parameters
        ----------
        reaches : ndarray of shape (letters / 2,)
            Distances of the letters from the middle of the grid, in steps, on either side; positive.
        limits : ndarray of shape (inputs,)
            Largest divergence of rows 0, 1, ... steps apart, in nats.
        tolerance : float
            Relative error of the value; divergences are within their limits to 100 times that share.

        Raises
        ------
        InfeasibleError
            If no letter reaches beyond the grid.
        ConvergenceError
            If the solver fails: letters may reach out too little for the limits.
        """
        half, count, middle = self.inputs // 2, self.inputs * self.letters // 2, (self.inputs - 1) / 2
        outermost = float(reaches.max())
        if not outermost > middle:
            raise InfeasibleError(f"reaches must exceed half the grid, {middle:g} steps, for unbiased tables, got {outermost:g} at most")
        outward = np.concatenate([-reaches, reaches[::-1]])
        offsets = middle + outward - np.arange(half)[:, None]
        scale = outermost**2
        equations = np.zeros((2 * half, count + 2))
        np.put_along_axis(equations[:half], self._cells[:half], 1.0, axis=1)
        np.put_along_axis(equations[half:], self._cells[:half], offsets / outermost, axis=1)
        right = np.concatenate([np.ones(half), np.zeros(half)])
        rows = np.zeros((half, count + 2))
        np.put_along_axis(rows, self._cells[:half], offsets**2 / scale, axis=1)
        rows[:, count], rows[:, count + 1] = -1.0, -self.prices
        cost = np.zeros(count + 2)
        cost[count], cost[count + 1] = 1.0, self.budget
        bounds = np.expm1((self.order - 1) * limits[self._distances]) / (self.order - 1)
        start = np.concatenate([np.maximum(_tilted(outward, np.arange(half, dtype=float) - middle), SMALLEST_ENTRY).ravel(), [1.0, 0.1]])
        start[count] = 1.1 * float((rows[:, :count] @ start[:count]).max())
        found = minimise_convex(cost, equations, right, rows, lambda point: self._divergences(point, bounds), start, tolerance=tolerance)
        table = found.point[:count].reshape(half, self.letters)
        by_letter = (found.row_duals[:, None] * 2 * offsets * table).sum(axis=0)
        by_letter += scale / outermost * (found.equation_duals[half:, None] * table).sum(axis=0)
        growths = np.exp((self.order - 1) * limits[self._distances]) / bounds
        by_limit = -scale * np.bincount(self._distances, found.curved_duals * growths, minlength=self.inputs)
        return RenyiProgramSolution(
            np.concatenate([table, table[::-1, ::-1]]),
            scale * float(cost @ found.point),
            np.asarray(by_letter[::-1][: len(reaches)] - by_letter[: len(reaches)], dtype=float),
            np.asarray(by_limit, dtype=float),
        )

    @cached_property
    def _cells(self) -> IndexArray:
        """Which variable each entry of the whole table is, shape (inputs, letters)."""
        own = np.arange(self.inputs * self.letters // 2).reshape(-1, self.letters)
        return np.concatenate([own, own[::-1, ::-1]])

    @cached_property
    def _pairs(self) -> IndexArray:
        """Ordered pairs of rows that are near enough, one of each mirrored two; shape (2, pairs)."""
        own, other = np.indices((self.inputs // 2, self.inputs)).reshape(2, -1)
        distances = np.abs(own - other)
        return np.stack([own, other])[:, (distances > 0) & (distances <= self.furthest)]

    @cached_property
    def _distances(self) -> IndexArray:
        return np.asarray(np.abs(self._pairs[0] - self._pairs[1]))

    def _divergences(self, point: FloatArray, bounds: FloatArray) -> Curved:
        """Return the divergences over their bounds, less one."""
        size = len(point)
        cells, other_cells = self._cells[self._pairs[0]], self._cells[self._pairs[1]]
        own, other = point[cells], point[other_cells]
        log_ratio = np.log(own / other)
        ratio = own / other
        power = np.expm1((self.order - 1) * log_ratio) / (self.order - 1)
        values = (other * (ratio * power - (ratio - 1))).sum(axis=1) / bounds - 1
        jacobian = np.zeros((len(bounds), size))
        pairs = np.arange(len(bounds))[:, None]
        # Mirrored rows share variables: they are added one after the other.
        jacobian[pairs, cells] += self.order * power / bounds[:, None]
        jacobian[pairs, other_cells] -= np.expm1(self.order * log_ratio) / bounds[:, None]
        curvature = self.order * np.exp((self.order - 2) * log_ratio) / other / bounds[:, None]

        def hessian(weights: FloatArray) -> FloatArray:
            weighted = weights[:, None] * curvature
            crossed = np.bincount((cells * size + other_cells).ravel(), (-weighted * ratio).ravel(), minlength=size**2)
            straight = np.bincount(cells.ravel(), weighted.ravel(), minlength=size)
            straight += np.bincount(other_cells.ravel(), (weighted * ratio**2).ravel(), minlength=size)
            mixed = crossed.reshape(size, size)
            return np.asarray(mixed + mixed.T + np.diag(straight))

        return Curved(values, jacobian, hessian)


def _tilted(letters: FloatArray, means: FloatArray) -> FloatArray:
    """Return rows with P[i, j] proportional to exp(b_i a_j) and the given means: positive and unbiased."""
    tilts, widest = np.zeros((len(means), 1)), 1 / float(np.abs(letters).max())
    for _ in range(TILTING_STEPS):
        exponents = tilts * letters
        rows = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        rows /= rows.sum(axis=1, keepdims=True)
        excess = rows @ letters - means
        spread = rows @ letters**2 - (rows @ letters) ** 2
        tilts -= np.clip(excess / np.maximum(spread, 1e-300), -widest, widest)[:, None]
    return np.asarray(rows)
