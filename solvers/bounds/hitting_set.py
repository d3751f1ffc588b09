"""The replay of a bound for a number of letters: no set of M letters hits all clauses.

Every table with a variance below a target has a letter in each clause. A search over boxes, one for each letter in increasing order, shows
that no M letters hit all clauses, so that no M-letter table has a variance below the target. The search needs no linear program: it narrows
boxes to the intervals of the clauses, and splits boxes where the search that found the bound has split them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray, IndexArray
from .dual_bound import LARGEST_PRICE
from .letter_clauses import Clauses, DualVectors, TableVariance, check_weights, clauses_of

# Limits of a replay: more dual vectors, or more of them times letters or squared inputs, are refused: the time of a clause grows with the
# square. A search ends without a proof after this many nodes, or after it has compared clauses with boxes this many times.
MOST_CLAUSES, MOST_CLAUSES_TIMES_LETTERS, MOST_CLAUSES_TIMES_SQUARES = 20_000, 320_000, 10**7
MOST_NODES, MOST_CHECKS = 50_000, 4 * 10**7
# No table has a variance below the least target.
LEAST_TARGET = 1e-60

# Share of the box by which narrowing must move an end to be repeated.
LEAST_PROGRESS = 1e-2
# Most repetitions.
MOST_ROUNDS = 100


@dataclass(frozen=True, eq=False)
class Boxes:
    """An interval for each letter, in increasing order.

    Attributes
    ----------
    lows, highs : ndarray of shape (letters,)
        Ends of the intervals, non-decreasing; they may be infinite.
    """

    lows: FloatArray
    highs: FloatArray


@dataclass(frozen=True, eq=False)
class Narrowed:
    """Boxes after narrowing, and the clauses that some letters in them may miss.

    Attributes
    ----------
    boxes : Boxes
        The narrowed boxes.
    open_clauses : ndarray of int
        Numbers of the clauses without an interval that contains a whole box.
    """

    boxes: Boxes
    open_clauses: IndexArray


@dataclass(frozen=True, eq=False)
class Splits:
    """Splits of boxes that steer a replay: a binary tree, whose root is the first split.

    Any splits are allowed: they change the duration of a replay, and never its correctness.

    Attributes
    ----------
    boxes : ndarray of shape (splits,)
        Number of the box that is split.
    points : ndarray of shape (splits,)
        Letter at which it is split.
    below, above : ndarray of shape (splits,)
        Number of the next split of the part below the point, and of the part above; -1 without a next split.
    """

    boxes: IndexArray
    points: FloatArray
    below: IndexArray
    above: IndexArray

    def __len__(self) -> int:
        """Return the number of splits."""
        return len(self.points)


NO_SPLITS = Splits(np.empty(0, dtype=np.intp), np.empty(0), np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))


@dataclass(frozen=True)
class Replay:
    """Result of a replay.

    Attributes
    ----------
    proven : bool
        Whether no set of letters hits all clauses.
    nodes : int
        Number of nodes of the search.
    """

    proven: bool
    nodes: int


def root_boxes(variance: TableVariance, letters: int) -> Boxes:
    """Return boxes that hold the sorted letters of every unbiased private table.

    The lowest letter is at most minus the least reach, the highest at least 1 plus the least reach. Both limits are widened by more than
    their rounding error.
    """
    lows, highs = np.full(letters, -np.inf), np.full(letters, np.inf)
    margin = 1e-14 * variance.unit
    highs[0], lows[-1] = margin - (variance.unit - 1), variance.unit - margin
    return Boxes(lows, highs)


@dataclass(frozen=True, eq=False)
class Meeting:
    """Clauses, a row each, and the boxes that they meet.

    Attributes
    ----------
    hit : ndarray of bool, shape (clauses,)
        Whether an interval of the clause contains a whole box.
    met : ndarray of bool, shape (clauses,)
        Whether the clause meets a box.
    first, last : ndarray of int, shape (clauses,)
        Numbers of the first and the last box that the clause meets; the last and the first box if it meets none.
    tops, bottoms : ndarray of shape (clauses,)
        Largest and least letter of the clause in the boxes.
    """

    hit: NDArray[np.bool_]
    met: NDArray[np.bool_]
    first: IndexArray
    last: IndexArray
    tops: FloatArray
    bottoms: FloatArray

    def take(self, rows: NDArray[np.bool_]) -> "Meeting":
        """Return some of the clauses."""
        return Meeting(self.hit[rows], self.met[rows], self.first[rows], self.last[rows], self.tops[rows], self.bottoms[rows])

    def gains(self, boxes: Boxes, far: float) -> FloatArray:
        """Return the share by which each clause narrows a box, within `far` of 0."""
        lows, highs = np.clip(boxes.lows, -far, far), np.clip(boxes.highs, -far, far)
        widths = np.maximum(highs - lows, 1e-300)
        first, last = self.first, self.last
        gains: FloatArray = np.maximum((highs[first] - self.tops) / widths[first], (self.bottoms - lows[last]) / widths[last])
        return gains


def meeting(boxes: Boxes, clauses: Clauses, rows: IndexArray) -> Meeting:
    """Return which boxes some clauses meet, and where.

    Boxes are in increasing order and not empty. So an interval meets all boxes from the first that ends after its start to the last that
    starts before its end.
    """
    starts, ends = clauses.starts[rows], clauses.ends[rows]
    first, last = boxes.highs.searchsorted(starts), boxes.lows.searchsorted(ends, side="right") - 1
    meets = (first <= last) & (starts <= ends)
    contains = boxes.lows.searchsorted(starts) < boxes.highs.searchsorted(ends, side="right")
    final = len(boxes.lows) - 1
    return Meeting(
        np.any(meets & contains, axis=1),
        np.any(meets, axis=1),
        np.where(meets, first, final).min(axis=1, initial=final),
        np.where(meets, last, 0).max(axis=1, initial=0),
        np.where(meets, np.minimum(ends, boxes.highs[last]), -np.inf).max(axis=1, initial=-np.inf),
        np.where(meets, np.maximum(starts, boxes.lows[np.minimum(first, final)]), np.inf).min(axis=1, initial=np.inf),
    )


def narrowed(boxes: Boxes, clauses: Clauses, open_clauses: IndexArray, *, mirrored: bool) -> Narrowed | None:
    """Return the smallest boxes with all sorted letters that hit the clauses.

    The letters lie in the given boxes. The result is None if no letters hit all clauses. Let some letter hit a clause, and consider the
    first and the last box that meet the clause. The first letter is at most, and the last letter at least, an end of the clause's part in
    the boxes. If `mirrored` is set, the lowest and the highest letter have a sum of at least 1.
    """
    return narrowed_with_checks(boxes, clauses, open_clauses, mirrored=mirrored)[0]


def narrowed_with_checks(boxes: Boxes, clauses: Clauses, open_clauses: IndexArray, *, mirrored: bool) -> tuple[Narrowed | None, int]:
    """Return what `narrowed` returns, and how many times a clause was compared with a box: repetitions count."""
    lows, highs = boxes.lows.copy(), boxes.highs.copy()
    checks = 0
    for _ in range(MOST_ROUNDS):
        if not _ordered(lows, highs, mirrored=mirrored):
            return None, checks
        checks += len(open_clauses) * len(lows)
        meets = meeting(Boxes(lows, highs), clauses, open_clauses)
        if meets.hit.any():
            keep = ~meets.hit
            open_clauses, meets = open_clauses[keep], meets.take(keep)
        if not len(open_clauses):
            break
        if not np.all(meets.met):
            return None, checks
        new_lows, new_highs = lows.copy(), highs.copy()
        np.minimum.at(new_highs, meets.first, meets.tops)
        np.maximum.at(new_lows, meets.last, meets.bottoms)
        with np.errstate(invalid="ignore"):
            # The move of an infinite end to a finite one is infinite; an infinite end that stays gives NaN, which is no progress.
            moved = np.fmax(new_lows - lows, highs - new_highs) > LEAST_PROGRESS * np.minimum(highs - lows, 1e300)
        lows, highs = new_lows, new_highs
        if not moved.any():
            break
    return (Narrowed(Boxes(lows, highs), open_clauses) if _ordered(lows, highs, mirrored=mirrored) else None), checks


def _ordered(lows: FloatArray, highs: FloatArray, *, mirrored: bool) -> bool:
    """Apply the letters' order to the boxes, in place; return False if a box is empty."""
    if mirrored:
        # Rounding errors of 1 - a are below a unit in the last place, by which the result is widened.
        lows[-1] = max(lows[-1], np.nextafter(1 - highs[0], -np.inf))
        lows[0] = max(lows[0], np.nextafter(1 - highs[-1], -np.inf))
    np.maximum.accumulate(lows, out=lows)
    highs[:] = np.minimum.accumulate(highs[::-1])[::-1]
    return bool(np.all(lows <= highs))


def split_boxes(boxes: Boxes, letter: int, point: float) -> tuple[Boxes, Boxes]:
    """Return the boxes in which a letter is at most, and at least, a given point.

    The order of the letters then narrows the boxes before and after that letter.
    """
    highs, lows = boxes.highs.copy(), boxes.lows.copy()
    highs[: letter + 1] = np.minimum(highs[: letter + 1], point)
    lows[letter:] = np.maximum(lows[letter:], point)
    return Boxes(boxes.lows, highs), Boxes(lows, boxes.highs)


def replay(
    vectors: DualVectors, splits: Splits, variance: TableVariance, letters: int, target: float, *, most_nodes: int = MOST_NODES
) -> Replay:
    """Check that the clauses of dual vectors prove a lower bound for a number of letters.

    For symmetric weights the mirror images of the dual vectors count as well. If the splits end before the proof does, the widest box is
    bisected, until the limit of nodes or until some letters hit all clauses.

    Parameters
    ----------
    vectors : DualVectors
        The certificate; any dual vectors are allowed.
    splits : Splits
        Splits that steer the search; `NO_SPLITS` if there are none.
    variance : TableVariance
        Objective, grid and privacy.
    letters : int
        Number of letters, at least 2.
    target : float
        Lower bound to check.
    most_nodes : int
        Limit of the number of nodes.

    Raises
    ------
    ValueError
        If there are too many dual vectors or splits, or some are out of range.
    """
    _check(vectors, splits, variance, letters, target)
    mirrored = variance.symmetric
    clauses = clauses_of(vectors.with_mirrors() if mirrored else vectors, variance, target)
    far = far_letter(clauses, variance)
    root = root_boxes(variance, letters)
    stack = [(root, np.arange(len(clauses)), 0 if len(splits) else -1)]
    nodes, checks = 0, 0
    while stack:
        if nodes >= most_nodes or checks >= MOST_CHECKS:
            return Replay(proven=False, nodes=nodes)
        boxes, open_clauses, split = stack.pop()
        nodes += 1
        node, more = narrowed_with_checks(boxes, clauses, open_clauses, mirrored=mirrored)
        checks += more
        if node is None:
            continue
        if not len(node.open_clauses):
            return Replay(proven=False, nodes=nodes)
        if split >= 0:
            parts = split_boxes(node.boxes, int(splits.boxes[split]), float(splits.points[split]))
            following = int(splits.below[split]), int(splits.above[split])
        else:
            parts, following = split_boxes(node.boxes, *bisection(node.boxes, far)), (-1, -1)
        stack += [(part, node.open_clauses, after) for part, after in zip(parts, following, strict=True)]
    return Replay(proven=True, nodes=nodes)


def _check(vectors: DualVectors, splits: Splits, variance: TableVariance, letters: int, target: float) -> None:
    if not 2 <= letters <= MOST_CLAUSES_TIMES_LETTERS:
        raise ValueError(f"letters must be from 2 to {MOST_CLAUSES_TIMES_LETTERS}, got {letters}")
    if not LEAST_TARGET <= target <= LARGEST_PRICE:
        raise ValueError(f"target must be from {LEAST_TARGET:g} to {LARGEST_PRICE:g}, got {target!r}")
    _check_vectors(vectors, variance, letters)
    _check_splits(splits, letters)


def _check_vectors(vectors: DualVectors, variance: TableVariance, letters: int) -> None:
    shape = vectors.normalisation.shape
    if len(shape) != 2 or shape[1] != len(variance.inputs) or vectors.unbiasedness.shape != shape:
        count, shapes = len(variance.inputs), f"{shape} and {vectors.unbiasedness.shape}"
        raise ValueError(f"vectors must have a price of each kind per input ({count}), got shapes {shapes}")
    most = most_vectors(letters, shape[1])
    if len(vectors) > most:
        raise ValueError(f"vectors must have at most {most} rows for {letters} letters and {shape[1]} inputs, got {len(vectors)}")
    for prices in (vectors.normalisation, vectors.unbiasedness):
        largest = float(np.abs(prices).max(initial=0.0))
        if not largest <= LARGEST_PRICE:
            raise ValueError(f"vectors must hold numbers from {-LARGEST_PRICE:g} to {LARGEST_PRICE:g}, got {largest:g}")
    if (vectors.input_weights is None) != (variance.input_weights is not None):
        raise ValueError("vectors must have input_weights for the largest variance, and for no other objective")
    if vectors.input_weights is not None:
        check_weights(vectors.input_weights, shape)


def most_vectors(letters: int, inputs: int) -> int:
    """Return the largest number of dual vectors that a replay accepts."""
    return min(MOST_CLAUSES, MOST_CLAUSES_TIMES_LETTERS // letters, MOST_CLAUSES_TIMES_SQUARES // inputs**2)


def _check_splits(splits: Splits, letters: int) -> None:
    shape = splits.points.shape
    if len(shape) != 1 or {array.shape for array in (splits.boxes, splits.below, splits.above)} != {shape}:
        raise ValueError("splits must have a box, a point and two following splits each, got arrays of other shapes")
    if len(splits) > MOST_NODES:
        raise ValueError(f"splits must be at most {MOST_NODES}, got {len(splits)}")
    if not np.all((splits.boxes >= 0) & (splits.boxes < letters) & (np.abs(splits.points) <= LARGEST_PRICE)):
        raise ValueError(f"splits must divide boxes 0 to {letters - 1} at finite points, got others: compute the bound again")
    following = np.concatenate([splits.below, splits.above])
    if not np.all((following >= -1) & (following < len(splits))):
        raise ValueError(f"splits must be followed by splits -1 to {len(splits) - 1}, got others: compute the bound again")


def far_letter(clauses: Clauses, variance: TableVariance) -> float:
    """Return a letter beyond all ends of the clauses' intervals."""
    finite = [ends[np.isfinite(ends)] for ends in (clauses.starts, clauses.ends)]
    return float(max(variance.unit, *(np.abs(ends).max(initial=0.0) for ends in finite)))


def bisection(boxes: Boxes, far: float) -> tuple[int, float]:
    """Return the number of the widest box within `far` of 0, and its middle.

    Among boxes of the same width, the result is the middle box.
    """
    lows, highs = np.clip(boxes.lows, -far, far), np.clip(boxes.highs, -far, far)
    widest = np.flatnonzero(highs - lows >= (highs - lows).max() * (1 - 1e-9))
    letter = int(widest[len(widest) // 2])
    return letter, float(lows[letter] + highs[letter]) / 2
