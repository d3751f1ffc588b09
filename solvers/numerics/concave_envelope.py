"""The upper concave envelope of points in the plane."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import FloatArray


@dataclass(frozen=True, eq=False)
class ConcaveEnvelope:
    """A concave, non-decreasing, piecewise linear function, constant from its last vertex on.

    Attributes
    ----------
    costs : ndarray of shape (vertices,)
        Positions of the vertices, rising, the first at 0.
    values : ndarray of shape (vertices,)
        Values of the function at the vertices, rising, the first at least 0.
    """

    costs: FloatArray
    values: FloatArray

    def value(self, cost: ArrayLike) -> FloatArray:
        """Return the function at each cost; costs are at least 0."""
        return np.asarray(np.interp(np.asarray(cost, dtype=float), self.costs, self.values))


def concave_envelope(costs: ArrayLike, values: ArrayLike) -> ConcaveEnvelope:
    """Return the least concave, non-decreasing function that is at least as high as every point.

    Parameters
    ----------
    costs : array_like of shape (points,)
        Positions of the points: at least 0, with one of them at 0.
    values : array_like of shape (points,)
        Heights of the points: at least 0, finite.

    Examples
    --------
    >>> concave_envelope([0, 1, 2, 3], [0.0, 1.0, 1.0, 2.0]).value([0.5, 2.0, 7.0]).tolist()
    [0.5, 1.5, 2.0]
    """
    points_x, points_y = (np.asarray(array, dtype=float) for array in (costs, values))
    if points_x.ndim != 1 or points_x.shape != points_y.shape or not np.all(np.isfinite(points_y)) or np.any(points_y < 0):
        raise ValueError(f"values must be finite numbers of at least 0, one for each cost, got {values!r}")
    if not np.all(points_x >= 0) or not np.any(points_x == 0):
        raise ValueError(f"costs must be at least 0, with a cost of 0 among them, got {costs!r}")
    order = np.lexsort((-points_y, points_x))
    xs, ys = points_x[order].tolist(), points_y[order].tolist()
    vertex_x, vertex_y = [xs[0]], [ys[0]]
    for x, y in zip(xs, ys, strict=True):
        if y <= vertex_y[-1]:
            continue
        # Vertices on or below the line from the previous vertex to the new point are dropped.
        while len(vertex_x) > 1 and (vertex_y[-1] - vertex_y[-2]) * (x - vertex_x[-2]) <= (y - vertex_y[-2]) * (
            vertex_x[-1] - vertex_x[-2]
        ):
            vertex_x.pop()
            vertex_y.pop()
        vertex_x.append(x)
        vertex_y.append(y)
    return ConcaveEnvelope(np.array(vertex_x), np.array(vertex_y))
