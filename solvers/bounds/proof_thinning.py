"""Fewer dual vectors for the same bound: those whose clauses close the boxes of a replay.

A search proves several targets in turn, and collects a dual vector in almost every node. Most of their clauses close nothing at the last
target. Thinning replays the proof and keeps clauses only as they are needed: boxes that no kept clause closes get the clause that narrows
them most, and so on until they close.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import IndexArray
from .hitting_set import MOST_NODES, Boxes, Splits, bisection, far_letter, meeting, most_vectors, narrowed, replay, root_boxes, split_boxes
from .letter_clauses import DualVectors, TableVariance, clauses_of

# A clause is kept if it narrows a box by more than this share; if none does, the box is split.
LEAST_GAIN = 1e-2
# Most passes over the boxes: each adds dual vectors, until a replay proves the target with those that are kept.
MOST_PASSES = 4


@dataclass(frozen=True, eq=False)
class Proof:
    """Dual vectors, and splits that steer the replay of their proof."""

    vectors: DualVectors
    splits: Splits


def thinned(proof: Proof, variance: TableVariance, letters: int, target: float) -> Proof | None:
    """Return a proof of the same target with fewer dual vectors, for which `hitting_set.replay` proves it.

    The result is the proof itself if a few passes find no other, and None if a replay of the proof ends without success or is refused.

    Parameters
    ----------
    proof : Proof
        Dual vectors and splits.
    variance : TableVariance
        Objective, grid and privacy.
    letters : int
        Number of letters.
    target : float
        The lower bound.
    """
    choice = _Choice(proof, variance, letters, target)
    for _ in range(MOST_PASSES):
        fewer = choice.passed()
        if fewer is None:
            break
        if _replayed(fewer, variance, letters, target):
            return fewer
    return proof if _replayed(proof, variance, letters, target) else None


def _replayed(proof: Proof, variance: TableVariance, letters: int, target: float) -> bool:
    accepted = len(proof.vectors) <= most_vectors(letters, len(variance.inputs)) and len(proof.splits) <= MOST_NODES
    return accepted and replay(proof.vectors, proof.splits, variance, letters, target).proven


@dataclass(frozen=True, eq=False)
class _OpenNode:
    """Boxes, the clauses that they may miss, the split in the given proof (-1 for none), and the place among the new splits."""

    boxes: Boxes
    open_clauses: IndexArray
    split: int
    parent: int
    side: int


class _Choice:
    """A choice among the dual vectors of a proof."""

    def __init__(self, proof: Proof, variance: TableVariance, letters: int, target: float) -> None:
        self._proof, self._mirrored = proof, variance.symmetric
        self._clauses = clauses_of(proof.vectors.with_mirrors() if self._mirrored else proof.vectors, variance, target)
        self._root, self._far = root_boxes(variance, letters), far_letter(self._clauses, variance)
        self._kept: NDArray[np.bool_] = np.zeros(len(proof.vectors), dtype=bool)

    def passed(self) -> Proof | None:
        """Close all boxes, and return the kept dual vectors and the splits; None beyond the limit of a replay."""
        given, splits, following = self._proof.splits, list[tuple[int, float]](), list[list[int]]()
        stack = [_OpenNode(self._root, np.arange(len(self._clauses)), 0 if len(given) else -1, -1, 0)]
        for _ in range(MOST_NODES):
            if not stack:
                return Proof(self._proof.vectors.take(np.flatnonzero(self._kept)), splits_of(splits, following))
            node = stack.pop()
            boxes = self._narrowed(node.boxes, node.open_clauses)
            if boxes is None:
                continue
            open_clauses = node.open_clauses[~meeting(boxes, self._clauses, node.open_clauses).hit]
            if node.split < 0:
                boxes = self._closed(boxes, open_clauses)
                if boxes is None:
                    continue
                letter, point, after = *bisection(boxes, self._far), (-1, -1)
            else:
                letter, point = int(given.boxes[node.split]), float(given.points[node.split])
                after = int(given.below[node.split]), int(given.above[node.split])
            if node.parent >= 0:
                following[node.parent][node.side] = len(splits)
            parts = split_boxes(boxes, letter, point)
            stack += [_OpenNode(part, open_clauses, after[side], len(splits), side) for side, part in enumerate(parts)]
            splits.append((letter, point))
            following.append([-1, -1])
        return None

    def _narrowed(self, boxes: Boxes, open_clauses: IndexArray) -> Boxes | None:
        kept = open_clauses[self._kept[open_clauses % len(self._kept)]]
        node = narrowed(boxes, self._clauses, kept, mirrored=self._mirrored)
        return None if node is None else node.boxes

    def _closed(self, boxes: Boxes, open_clauses: IndexArray) -> Boxes | None:
        """Keep clauses that narrow boxes until they close; return what is left of the boxes if none narrows them much."""
        inside: Boxes | None = boxes
        while inside is not None:
            meets = meeting(inside, self._clauses, open_clauses)
            closing = ~meets.met
            gains = np.where(closing, np.inf, meets.gains(inside, self._far))
            gains[meets.hit] = 0.0
            if gains.max(initial=0.0) <= LEAST_GAIN:
                return inside
            self._kept[open_clauses[gains.argmax()] % len(self._kept)] = True
            inside = self._narrowed(inside, open_clauses)
        return None


def splits_of(splits: list[tuple[int, float]], following: list[list[int]]) -> Splits:
    """Return splits, and the numbers of their following splits, as arrays."""
    after = np.array(following, dtype=np.intp).reshape(-1, 2)
    return Splits(
        np.array([letter for letter, _ in splits], dtype=np.intp), np.array([point for _, point in splits]), after[:, 0], after[:, 1]
    )
