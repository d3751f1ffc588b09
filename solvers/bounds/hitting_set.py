"""The replay of a bound for a number of letters: no set of M letters hits all clauses.

Every table with a variance below a target has a letter in each clause. A search over boxes, one for each letter in increasing order, shows
that no M letters hit all clauses, so that no M-letter table has a variance below the target. The search needs no linear program: it narrows
boxes to the intervals of the clauses, and branches on the clause that leaves the fewest places.
"""

from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray, IndexArray
from .letter_clauses import Clauses, DualVectors, LocalVariance, clauses_of

# Limits of a replay: a list of more clauses, or a search of more nodes, is refused.
MOST_CLAUSES, MOST_NODES = 20_000, 200_000

# Narrowing repeats while it moves an end by more than this share of the box.
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
        Clauses without an interval that contains a whole box.
    """

    boxes: Boxes
    open_clauses: IndexArray


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
    """Return the smallest boxes that hold all sorted letters in the given boxes that hit the clauses, or None if there are none.

    If some letter hits a clause, let a box be the first that meets it, and another the last: the first letter is at most, the last at
    least, an end of the clause's part in the boxes. `mirrored`: the lowest and the highest letter have a sum of at least 1.
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
        boxes_met = meets.any(axis=1)
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


def replay(vectors: DualVectors, variance: LocalVariance, letters: int, target: float, *, most_nodes: int = MOST_NODES) -> Replay:
    """Check that the clauses of dual vectors prove a target as a lower bound for a number of letters.

    For symmetric weights the mirror images of the dual vectors count as well. The search is complete: it fails only if some set of letters
    hits all clauses, or at its limit of nodes.

    Parameters
    ----------
    vectors : DualVectors
        The certificate; any dual vectors are allowed.
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
        If there are too many dual vectors, or some are not finite.
    """
    if len(vectors) > MOST_CLAUSES:
        raise ValueError(f"vectors must have at most {MOST_CLAUSES} rows, got {len(vectors)}")
    largest = max(np.abs(vectors.normalisation).max(initial=0.0), np.abs(vectors.unbiasedness).max(initial=0.0))
    if not largest <= 1e60:
        raise ValueError(f"vectors must hold numbers from -1e60 to 1e60, got {largest:g}")
    mirrored = variance.symmetric
    clauses = clauses_of(vectors.with_mirrors() if mirrored else vectors, variance, target)
    stack = [Narrowed(root_boxes(variance, letters), np.arange(len(clauses)))]
    nodes = 0
    while stack:
        if nodes >= most_nodes:
            return Replay(proven=False, nodes=nodes)
        node = stack.pop()
        nodes += 1
        node_narrowed = narrowed(node.boxes, clauses, node.open_clauses, mirrored=mirrored)
        if node_narrowed is None:
            continue
        if not len(node_narrowed.open_clauses):
            return Replay(proven=False, nodes=nodes)
        stack += _children(node_narrowed, clauses)
    return Replay(proven=True, nodes=nodes)


def _children(node: Narrowed, clauses: Clauses) -> list[Narrowed]:
    """Return the nodes in which the lowest letter that hits a clause, and its interval, are fixed.

    The letters before it then lie below the interval. The clause is the open clause with the fewest such places.
    """
    lows, highs = node.boxes.lows, node.boxes.highs
    starts, ends = clauses.starts[node.open_clauses], clauses.ends[node.open_clauses]
    meets = np.maximum(starts[:, :, None], lows) <= np.minimum(ends[:, :, None], highs)
    # A letter can be the first in an interval only if the letter before it can be below.
    before = np.concatenate([[-np.inf], lows[:-1]])
    meets &= before <= starts[:, :, None]
    meets[:, :, 0] |= np.maximum(starts, lows[0]) <= np.minimum(ends, highs[0])
    chosen = int(np.argmin(meets.sum(axis=(1, 2))))
    others = np.delete(node.open_clauses, chosen)
    children = []
    for interval, letter in np.argwhere(meets[chosen]):
        child_lows, child_highs = lows.copy(), highs.copy()
        start, end = starts[chosen, interval], ends[chosen, interval]
        child_lows[letter], child_highs[letter] = max(lows[letter], start), min(highs[letter], end)
        if letter:
            child_highs[letter - 1] = min(highs[letter - 1], start)
        children.append(Narrowed(Boxes(child_lows, child_highs), others))
    return children
