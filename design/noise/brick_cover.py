"""Bricks of equal size that cover the area under a unimodal curve on the whole numbers: rectangles, wedges and tails.

The geometry of Marsaglia's rectangle-wedge-tail method (Knuth, *The Art of Computer Programming*, vol. 2, section 3.4.1).
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...arrays import FloatArray, IntegerArray

BRICK_BITS = 16
# A block is one point wide, or this many times narrower than the spread, up to a factor of two.
BLOCKS_PER_SPREAD = 32
# The tails begin where the curve is this low; it only affects speed.
TAIL_HEIGHT = 2.0**-22
# Largest error of `UnimodalCurve.approximate`.
APPROXIMATION_ERROR = 2.0**-44
# In units of the whole stack: room for the approximation's error and for rounding a few operations on it.
ALLOWANCE = 2.0**-40


class UnimodalCurve(Protocol):
    """A log-concave function f on the whole numbers, 1 at its mode: a distribution up to a factor that need not be known."""

    @property
    def mode(self) -> int:
        """Where f is largest; it is 1 there."""

    @property
    def spread(self) -> float:
        """About the standard deviation; it only affects speed."""

    def approximate(self, points: IntegerArray) -> FloatArray:
        """Return f at whole numbers in floating point, with an absolute error of at most 2**-44."""

    def bounds(self, point: int, bits: int) -> tuple[int, int]:
        """Return whole numbers (low, high) with low <= 2**bits f(point) <= high, computed in whole numbers.

        They are a few units apart, however many `bits` >= 1 are asked for.
        """


@dataclass(frozen=True, eq=False)
class BrickCover:
    """Numbered bricks, each 2**block_bits points wide and one layer high, of which `layers` reach from 0 to the top of the curve.

    Attributes
    ----------
    block_bits : int
        Logarithm of a brick's width.
    layers : int
        Height of the curve's top, f = 1, in bricks.
    starts : ndarray of int64, shape (bricks,)
        Lowest point of every brick; 0 for those that are neither rectangles nor wedges.
    rectangles : int
        Bricks below this number lie under the curve entirely.
    wedges : int
        Bricks from `rectangles` to below this number are cut by the curve, or count as cut because floating point cannot tell.
    tails : int
        Bricks from `wedges` to below this number are cut up for the tails; the remaining ones are empty.
    wedge_layers : ndarray of int64, shape (wedges - rectangles,)
        Layer of every wedge, 0 at the bottom.
    right, left : int
        First points of the two tails.
    shell_bits : int
        Logarithm of the number of points of a tail's shells.

    Notes
    -----
    Shell j of either tail, j = 0, 1, ..., has 2**-(j + 2) of the area of the tails' bricks and is 2**shell_bits points wide; so it is
    (tails - wedges) * 2**(block_bits - shell_bits - j - 2) layers high. The curve lies below.
    """

    block_bits: int
    layers: int
    starts: IntegerArray
    rectangles: int
    wedges: int
    tails: int
    wedge_layers: IntegerArray
    right: int
    left: int
    shell_bits: int


@dataclass(frozen=True, eq=False)
class _Side:
    """The blocks on one side of the mode: their lowest points, the curve at their highest and lowest, and where the tail begins."""

    starts: IntegerArray
    tops: FloatArray
    bottoms: FloatArray
    tail: int
    tail_height: float


def cover_with_bricks(curve: UnimodalCurve, brick_bits: int = BRICK_BITS) -> BrickCover:
    """Cover a curve with 2**brick_bits bricks, several for each block; where floating point cannot tell, bricks are added."""
    block_bits = max(0, math.floor(math.log2(curve.spread / BLOCKS_PER_SPREAD)))
    shell_bits = max(0, math.ceil(math.log2(curve.spread)))
    right = _side(curve, curve.mode, 1, block_bits, shell_bits)
    left = _side(curve, curve.mode - 1, -1, block_bits, shell_bits)
    starts, tops, bottoms = (np.concatenate([getattr(right, name), getattr(left, name)]) for name in ("starts", "tops", "bottoms"))
    bricks, area = 2**brick_bits, float(tops.sum())
    # The first shells must be as high as the curve where the tails begin; their height halves from shell to shell.
    tail_bricks = math.ceil(bricks / area * (max(right.tail_height, left.tail_height) + ALLOWANCE) * 2.0 ** (shell_bits + 2 - block_bits))
    layers = math.floor((bricks - tail_bricks - len(starts)) / (area * (1 + len(starts) * ALLOWANCE)))
    heights = np.ceil(layers * (tops + ALLOWANCE)).astype(np.int64)
    rectangles = np.maximum(np.floor(layers * (bottoms - ALLOWANCE)), 0).astype(np.int64)
    cut = heights - rectangles
    first_cut = np.cumsum(cut) - cut
    wedge_layers = np.arange(cut.sum()) - np.repeat(first_cut - rectangles, cut)
    filled = np.concatenate([np.repeat(starts, rectangles), np.repeat(starts, cut)])
    return BrickCover(
        block_bits=block_bits,
        layers=layers,
        starts=np.concatenate([filled, np.zeros(bricks - len(filled), dtype=np.int64)]),
        rectangles=int(rectangles.sum()),
        wedges=len(filled),
        tails=len(filled) + tail_bricks,
        wedge_layers=wedge_layers,
        right=right.tail,
        left=left.tail,
        shell_bits=shell_bits,
    )


def _side(curve: UnimodalCurve, origin: int, direction: int, block_bits: int, shell_bits: int) -> _Side:
    """Return the blocks from `origin` away from the mode, up to where the tail begins."""
    width, count = 2**block_bits, 64
    while True:
        distances = width * np.arange(count, dtype=np.int64)
        tops = np.asarray(curve.approximate(origin + direction * distances))
        # From where f is at most 2**-(d / w), at a distance d from the mode, it halves at least every w points: log f is concave.
        falling = np.exp2(-np.ceil((distances + 1) / 2.0**shell_bits))
        low = np.flatnonzero((tops <= TAIL_HEIGHT) & (tops + APPROXIMATION_ERROR <= falling))
        if low.size:
            break
        count *= 2
    blocks = int(low[0])
    far = distances[:blocks] + (width - 1)
    return _Side(
        starts=origin + (distances[:blocks] if direction > 0 else -far),
        tops=tops[:blocks],
        bottoms=np.asarray(curve.approximate(origin + direction * far)),
        tail=origin + direction * int(distances[blocks]),
        tail_height=float(tops[blocks]),
    )
