"""Dithering of vectors: unbiased rounding to grid points, with a bound on the norm.

Positions are signed, in grid steps, and zero is a grid point. Privacy rests on the norm of the rounded vectors. Rounded vectors are whole
numbers, and their norm is checked after rounding, so that no floating-point error can harm privacy.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray, IndexArray, IntegerArray
from ..noise.redraws import Redraws

# A source is a function that returns the requested number of values, uniform in [0, 1).
UniformSource = Callable[[int], FloatArray]

# Relative slack for the rounding errors of a sum of p-th powers. A term is a quotient to a power of at most 64, 68 units (see
# `quietbits.solvers.numerics.rounding`), and a pairwise sum of up to 2^31 terms adds 160. Together, these errors are a quarter of the
# slack. An accepted vector is longer than the bound by less than a tenth of SLACK, which the budgets of `vector_divergences` and the
# sensitivities of Skellam noise allow for.
ROUNDING = 1e-13
MOST_REJECTIONS = 100_000
# Number of coordinates processed at a time, a quarter of a megabyte.
BLOCK = 2**15
# Number of coordinates, each with one word, for which words are drawn at a time: an eighth of a megabyte.
PIECE = 2**14
# Largest share of coordinates with a floor above zero at which sorting these alone is faster than sorting all.
MOST_LARGE = 1 / 8


def systematic_rounding(positions: FloatArray, uniforms: FloatArray) -> IntegerArray:
    """Round each coordinate to a neighbour, without bias, so that the norm hardly grows.

    With the coordinates in the order of falling floor(|x|), and c the running sums of their fractional parts, coordinate l is rounded away
    from zero if a whole number lies in (c_(l-1) + u, c_l + u]: systematic sampling (Madow 1949, *On the theory of systematic sampling,
    II*). Each coordinate goes up with probability equal to its fractional part, and the running number of coordinates that went up differs
    from c by less than one. `quietbits.solvers.divergences.dithered_norm.rounded_norm_bound` bounds the resulting norm.

    Coordinates are not independent of each other; their marginal distributions are those of independent dithering.

    Parameters
    ----------
    positions : ndarray of shape (clients, dimension)
        Signed positions in steps, below 2**31 in absolute value; a coordinate on the grid stays where it is.
    uniforms : ndarray of shape (clients,)
        One number per client, uniform in [0, 1).

    Examples
    --------
    >>> systematic_rounding(np.array([[0.5, -0.5, 0.5, -2.5]]), np.array([0.75])).tolist()
    [[0, -1, 0, -3]]
    """
    rounded = np.empty(positions.shape, dtype=np.int64)
    for part in row_blocks(*positions.shape):
        rounded[part] = _rounded_block(positions[part], uniforms[part])
    return rounded


def _rounded_block(positions: FloatArray, uniforms: FloatArray) -> NDArray[np.int32]:
    # In order of rows, flat views below share their memory.
    fractions = np.abs(positions, order="C")
    floors = fractions.astype(np.int32)
    fractions -= floors
    large = np.flatnonzero(floors > 0)
    if large.size > MOST_LARGE * floors.size:
        _go_up_in_sorted_order(floors, fractions, uniforms)
    else:
        _go_up_after_large(floors, fractions, uniforms, large)
    # A product takes a tenth of the time of a negation at some places.
    floors *= 1 - 2 * (positions < 0).astype(np.int32)
    return floors


def _go_up_in_sorted_order(floors: NDArray[np.int32], fractions: FloatArray, uniforms: FloatArray) -> None:
    """Add the steps of systematic sampling to the floors, in place."""
    # Sixteen-bit keys are sorted by counting, which is several times as fast.
    keys = (-floors).astype(np.int16) if floors.size and floors.max() < 2**15 else -floors
    order = np.argsort(keys, axis=1, kind="stable")
    reached = _whole(np.take_along_axis(fractions, order, axis=1).cumsum(axis=1), uniforms)
    steps = np.empty_like(floors)
    np.put_along_axis(steps, order, _steps(reached, np.zeros_like(reached[:, :1])), axis=1)
    floors += steps


def _go_up_after_large(floors: NDArray[np.int32], fractions: FloatArray, uniforms: FloatArray, large: IndexArray) -> None:
    """Add the same steps to the floors, and change the fractions, where few coordinates have a floor above zero.

    Only these coordinates are sorted. Their flat places are `large`. All others follow in their own order; a zero in place of a large
    coordinate changes no running sum.
    """
    clients, dimension = floors.shape
    flat_floors, flat_fractions = floors.reshape(-1), fractions.reshape(-1)
    rows = large // dimension
    order = np.lexsort((-flat_floors[large], rows))
    large, rows = large[order], rows[order]
    counts = np.bincount(rows, minlength=clients)
    places = np.arange(large.size) - (np.cumsum(counts) - counts)[rows]
    sums = np.zeros((clients, counts.max(initial=0) + 1))
    sums[rows, places + 1] = flat_fractions[large]
    np.cumsum(sums, axis=1, out=sums)
    flat_fractions[large] = 0.0
    fractions[:, 0] += sums[:, -1]
    reached = _whole(np.cumsum(fractions, axis=1, out=fractions), uniforms)
    first = _whole(sums, uniforms)
    flat_floors[large] += _steps(first[:, 1:], first[:, :1])[rows, places]
    floors += _steps(reached, first[:, -1:])


def _whole(sums: FloatArray, uniforms: FloatArray) -> NDArray[np.int32]:
    """Return the whole parts of shifted running sums, which are changed in place."""
    sums += uniforms[:, None]
    return np.floor(sums, out=sums).astype(np.int32)


def _steps(reached: NDArray[np.int32], before: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return whether each running sum passes a whole number."""
    # A coordinate goes up by at most one step, although rounding errors of the running sums could pass two whole numbers.
    steps = np.empty_like(reached)
    np.subtract(reached[:, :1], before, out=steps[:, :1])
    np.subtract(reached[:, 1:], reached[:, :-1], out=steps[:, 1:])
    return np.minimum(steps, 1, out=steps)


def independent_rounding(positions: FloatArray, uniforms: FloatArray) -> IntegerArray:
    """Round each coordinate to a neighbour, without bias and independently of the others.

    The numbers in `uniforms`, one per coordinate, are uniform in [0, 1).
    """
    rounded = positions.copy()
    round_independently(rounded, uniforms)
    return rounded.astype(np.int64)


def round_independently(positions: FloatArray, uniforms: FloatArray, room: FloatArray | None = None) -> None:
    """Round as `independent_rounding`, in place; `room` is memory of the positions' shape for an intermediate result."""
    lower = np.floor(positions, out=room)
    # Rounding keeps the signs of both differences, so a coordinate goes up exactly if the uniform number is below the fractional part.
    positions -= lower
    positions -= uniforms
    np.ceil(positions, out=positions)
    positions += lower


def row_blocks(rows: int, columns: int, numbers: int = BLOCK) -> Iterator[slice]:
    """Yield slices of rows with at most `numbers` coordinates together, but at least one row.

    By default a processor's cache holds the rows with the numbers computed from them.
    """
    step = max(1, numbers // columns)
    for start in range(0, rows, step):
        yield slice(start, start + step)


def inside(rounded: IntegerArray, norm: float, bound: float) -> NDArray[np.bool_]:
    """Return indicators of whole-number vectors with an L_p norm of at most the bound.

    The order p is finite; the p-th power of the norm may exceed that of the bound by a relative 1e-13.
    """
    if norm == 1:
        return np.asarray(np.abs(rounded).sum(axis=1) <= bound * (1 + ROUNDING))
    if norm == 2:
        return np.asarray(np.einsum("ij,ij->i", rounded, rounded) <= bound**2 * (1 + ROUNDING))
    return np.asarray(((np.abs(rounded) / bound) ** norm).sum(axis=1) <= 1 + ROUNDING)


def bounded_rounding(positions: FloatArray, uniforms: FloatArray, norm: float, bound: float) -> IntegerArray:
    """Round systematically, and toward zero where floating-point errors break the bound.

    The bound holds without such errors. Rounding toward zero is biased, and lengthens no vector. Its probability is below 1e-13 for 128
    coordinates, the error of their running sums.

    Parameters
    ----------
    positions : ndarray of shape (clients, dimension)
        Signed positions in steps, of an L_p norm below the bound or, up to floating-point error, equal to it.
    uniforms : ndarray of shape (clients,)
        One number per client, uniform in [0, 1).
    norm : float
        Order p of the L_p norm, finite.
    bound : float
        Bound of `quietbits.solvers.divergences.dithered_norm.rounded_norm_bound` for the positions' ball, in steps.
    """
    rounded = systematic_rounding(positions, uniforms)
    outside = ~inside(rounded, norm, bound)
    if outside.any():
        rounded[outside] = np.trunc(positions[outside]).astype(np.int64)
    return rounded


def rejection_rounding(positions: FloatArray, norm: float, bound: float, uniforms: UniformSource) -> IntegerArray:
    """Round independently, again and again until the norm is at most the bound.

    The method is that of section 4.1 of Chaudhuri, Guo, Rabbat 2022. Accepted vectors have a small bias toward shorter vectors. The number
    of rounds depends on the vector, so an observer of the time learns something about the vector. Rounded vectors must lie in the ball with
    a probability well above 0, since the function raises an error after 10**5 rejections in a row.
    """
    rounded = np.empty(positions.shape, dtype=np.int64)
    waiting = np.arange(len(positions))
    redraws = Redraws(MOST_REJECTIONS)
    while waiting.size:
        redraws.another()
        candidates = independent_rounding(positions[waiting], uniforms(positions[waiting].size).reshape(-1, positions.shape[1]))
        accepted = inside(candidates, norm, bound)
        rounded[waiting[accepted]] = candidates[accepted]
        waiting = waiting[~accepted]
    return rounded


def rejection_bias_bound(rejection_probability: float) -> float:
    """Return a bound on the bias of accepted vectors in the L2 norm, in steps.

    The bias is the distance of the mean of accepted vectors from the position, and at most ``sqrt(q / (1 - q)) / 2``; q bounds the
    probability of rejection. With A the event of acceptance and a any unit vector, ``E[a.(v - x) | A] = Cov(a.v, 1_A) / P(A)``, which by
    the Cauchy-Schwarz inequality is at most the standard deviation of a.v, no more than 1/2 as coordinates are independent, times sqrt((1 -
    P(A)) / P(A)).
    """
    return 0.5 * float(np.sqrt(rejection_probability / (1 - rejection_probability)))
