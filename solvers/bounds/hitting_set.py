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
from .letter_clauses import Clauses, DualVectors, LocalVariance, clauses_of

# Largest number of clauses of a replay's list, and of nodes of its search.
MOST_CLAUSES, MOST_NODES = 20_000, 200_000

# Share of the box by which narrowing must move an end to be repeated.
LEAST_PROGRESS = 1e-2


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


def root_boxes(variance: LocalVariance, letters: int) -> Boxes:
    """Return boxes that hold the sorted letters of every unbiased private table.

    The lowest letter is at most -1 / (exp(epsilon) - 1), the highest at least 1 + 1 / (exp(epsilon) - 1), both widened by more than their
    rounding error.
    """
    lows, highs = np.full(letters, -np.inf), np.full(letters, np.inf)
    margin = 1e-14 * variance.unit
    highs[0], lows[-1] = margin - (variance.unit - 1), variance.unit - margin
    return Boxes(lows, highs)


def narrowed(boxes: Boxes, clauses: Clauses, open_clauses: IndexArray, *, mirrored: bool) -> Narrowed | None:
    """Return the smallest boxes with all sorted letters that hit the clauses.

    The letters lie in the given boxes. The result is None if no letters hit all clauses. Let some letter hit a clause, and consider the
    first and the last box that meet the clause. The first letter is at most, and the last letter at least, an end of the clause's part in
    the boxes. If `mirrored` is set, the lowest and the highest letter have a sum of at least 1.
    """
    lows, highs = boxes.lows.copy(), boxes.highs.copy()
    while True:
        if not _ordered(lows, highs, mirrored=mirrored):
            return None
        starts, ends = clauses.starts[open_clauses, :, None], clauses.ends[open_clauses, :, None]
        part_lows, part_highs = np.maximum(starts, lows), np.minimum(ends, highs)
        meets = part_lows <= part_highs
        hit = np.any(meets & (starts <= lows) & (ends >= highs), axis=(1, 2))
        if hit.any():
            keep = ~hit
            open_clauses, meets, part_lows, part_highs = open_clauses[keep], meets[keep], part_lows[keep], part_highs[keep]
        if not len(open_clauses):
            return Narrowed(Boxes(lows, highs), open_clauses)
        boxes_met: NDArray[np.bool_] = np.any(meets, axis=1)
        if not np.all(boxes_met.any(axis=1)):
            return None
        first, last = boxes_met.argmax(axis=1), len(lows) - 1 - boxes_met[:, ::-1].argmax(axis=1)
        new_lows, new_highs = lows.copy(), highs.copy()
        np.minimum.at(new_highs, first, np.where(meets, part_highs, -np.inf).max(axis=(1, 2)))
        np.maximum.at(new_lows, last, np.where(meets, part_lows, np.inf).min(axis=(1, 2)))
        with np.errstate(invalid="ignore"):
            # The move of an infinite end to a finite one is infinite; an infinite end that stays gives NaN, which is no progress.
            moved = np.fmax(new_lows - lows, highs - new_highs) > LEAST_PROGRESS * np.minimum(highs - lows, 1e300)
        lows, highs = new_lows, new_highs
        if not moved.any():
            return Narrowed(Boxes(lows, highs), open_clauses) if _ordered(lows, highs, mirrored=mirrored) else None


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
    vectors: DualVectors, splits: Splits, variance: LocalVariance, letters: int, target: float, *, most_nodes: int = MOST_NODES
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
    variance : LocalVariance
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
    _check(vectors, splits, variance, letters)
    mirrored = variance.symmetric
    clauses = clauses_of(vectors.with_mirrors() if mirrored else vectors, variance, target)
    finite = [ends[np.isfinite(ends)] for ends in (clauses.starts, clauses.ends)]
    far = max(variance.unit, *(np.abs(ends).max(initial=0.0) for ends in finite))
    root = root_boxes(variance, letters)
    stack = [(root, np.arange(len(clauses)), 0 if len(splits) else -1)]
    nodes = 0
    while stack:
        if nodes >= most_nodes:
            return Replay(proven=False, nodes=nodes)
        boxes, open_clauses, split = stack.pop()
        nodes += 1
        node = narrowed(boxes, clauses, open_clauses, mirrored=mirrored)
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


def _check(vectors: DualVectors, splits: Splits, variance: LocalVariance, letters: int) -> None:
    count = len(variance.inputs)
    if letters < 2:
        raise ValueError(f"letters must be at least 2, got {letters}")
    if {vectors.normalisation.shape, vectors.unbiasedness.shape} != {(len(vectors), count)}:
        raise ValueError(
            f"vectors must have a price of each kind per input ({count}), got shapes {vectors.normalisation.shape} and "
            f"{vectors.unbiasedness.shape}"
        )
    if len(vectors) > MOST_CLAUSES:
        raise ValueError(f"vectors must have at most {MOST_CLAUSES} rows, got {len(vectors)}")
    largest = float(np.abs([vectors.normalisation, vectors.unbiasedness]).max(initial=0.0))
    if not largest <= LARGEST_PRICE:
        raise ValueError(f"vectors must hold numbers from {-LARGEST_PRICE:g} to {LARGEST_PRICE:g}, got {largest:g}")
    if len(splits) > MOST_NODES:
        raise ValueError(f"splits must be at most {MOST_NODES}, got {len(splits)}")
    if not np.all((splits.boxes >= 0) & (splits.boxes < letters) & np.isfinite(splits.points)):
        raise ValueError(f"splits must divide boxes 0 to {letters - 1} at finite points, got others: compute the bound again")
    following = np.concatenate([splits.below, splits.above])
    if not np.all((following >= -1) & (following < len(splits))):
        raise ValueError(f"splits must be followed by splits -1 to {len(splits) - 1}, got others: compute the bound again")


def bisection(boxes: Boxes, far: float) -> tuple[int, float]:
    """Return the number of the widest box within `far` of 0, and its middle.

    Among boxes of the same width, the result is the middle box.
    """
    lows, highs = np.clip(boxes.lows, -far, far), np.clip(boxes.highs, -far, far)
    widest = np.flatnonzero(highs - lows >= (highs - lows).max() * (1 - 1e-9))
    letter = int(widest[len(widest) // 2])
    return letter, float(lows[letter] + highs[letter]) / 2
