"""Exact sampling of log-concave integer distributions: rectangle-wedge-tail rejection whose comparison is refined until it is certain."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...arrays import IntegerArray
from .brick_cover import ALLOWANCE, BRICK_BITS, BrickCover, UnimodalCurve, cover_with_bricks
from .random_words import WordSource
from .redraws import Redraws

WORD_BITS = 64
# Points looked up at a time, with their words in the processor's cache; and those after which what is left open is decided together.
PART, CHUNK = 2**14, 2**18
# Words by which one uniform number is extended.
MOST_EXTENSIONS = 64


@dataclass(frozen=True)
class ExactSampler:
    """Draws from the distribution proportional to a curve f: exactly, if the words are independent and uniform.

    The area under f, times a whole number of layers, is covered by bricks of equal size. A draw takes a brick by the first bits of a
    word and a point of it by the last bits, and keeps the point if (layer + U) < layers * f(point), with U uniform on [0, 1): every
    point is kept with a probability proportional to f. Floating point decides unless it is too close to call; then U is drawn to as
    many bits as it takes to decide by whole numbers.

    Attributes
    ----------
    curve : UnimodalCurve
        The function f.
    brick_bits : int
        Logarithm of the number of bricks.

    Notes
    -----
    How long it takes depends on what is drawn: whoever can time single draws learns something about them.
    """

    curve: UnimodalCurve
    brick_bits: int = BRICK_BITS

    @cached_property
    def cover(self) -> BrickCover:
        """The bricks."""
        return cover_with_bricks(self.curve, self.brick_bits)

    def draw(self, count: int, words: WordSource, kind: DTypeLike = np.int64) -> NDArray[Any]:
        """Draw independent points, shape (count,), from little more than one word each, modulo 2**w if `kind` has w bits only."""
        points = np.empty(count, dtype=kind)
        for start in range(0, count, CHUNK):
            chunk = points[start : start + CHUNK]
            open_places = self._propose(chunk, words)
            redraws = Redraws()
            while open_places.size:
                redraws.another()
                fresh = np.empty(open_places.size, dtype=kind)
                rejected = self._propose(fresh, words)
                chunk[open_places] = fresh
                open_places = open_places[rejected]
        return points

    def draw_sums(self, terms: int, shape: tuple[int, ...], words: WordSource, kind: DTypeLike = np.int64) -> NDArray[Any]:
        """Draw sums of the given number of independent points, modulo 2**w as `draw`."""
        total = self.draw(math.prod(shape), words, kind)
        for _ in range(terms - 1):
            total += self.draw(len(total), words, kind)
        return total.reshape(shape)

    def _propose(self, points: NDArray[Any], words: WordSource) -> NDArray[np.intp]:
        """Fill an array with points, and return the places of those that were not kept."""
        cover = self.cover
        starts, within = self._starts(points.dtype), np.uint64(2**cover.block_bits - 1)
        places, drawn = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.uint64)]
        for start in range(0, len(points), PART):
            found = points[start : start + PART]
            part = words(len(found))
            bricks = (part >> np.uint64(WORD_BITS - self.brick_bits)).view(np.int64)
            np.take(starts, bricks, out=found, mode="clip")
            uncertain = np.flatnonzero(bricks >= cover.rectangles)
            places.append(start + uncertain)
            drawn.append(part[uncertain])
            if cover.block_bits:
                part &= within
                found += part.astype(found.dtype, copy=False)
        doubtful, taken = np.concatenate(places), np.concatenate(drawn)
        kinds = (taken >> np.uint64(WORD_BITS - self.brick_bits)).view(np.int64)
        kept = np.zeros(len(doubtful), dtype=bool)
        wedges = np.flatnonzero(kinds < cover.wedges)
        cut = kinds[wedges]
        whole = cover.starts[cut] + (taken[wedges] & within).view(np.int64)
        kept[wedges] = self._under_curve(whole, cover.wedge_layers[cut - cover.rectangles], Fraction(cover.layers), words)
        for place in np.flatnonzero((kinds >= cover.wedges) & (kinds < cover.tails)):
            point, scale = self._tail_point(words)
            points[doubtful[place]] = np.int64(point).astype(points.dtype)
            kept[place] = self._under_curve(np.array([point]), np.array([0]), scale, words)[0]
        return doubtful[~kept]

    def _starts(self, kind: np.dtype[Any]) -> NDArray[Any]:
        """Return the lowest points of the bricks modulo 2**w: of few bits they stay in a processor's cache."""
        if kind.str not in self._narrow_starts:
            self._narrow_starts[kind.str] = self.cover.starts.astype(kind)
        return self._narrow_starts[kind.str]

    @cached_property
    def _narrow_starts(self) -> dict[str, NDArray[Any]]:
        return {}

    def _tail_point(self, words: WordSource) -> tuple[int, Fraction]:
        """Return a random point of the tails, and how many times f fits into the height of its shell."""
        cover = self.cover
        side, shell = words(2).tolist()
        zeros = WORD_BITS - shell.bit_length()
        redraws = Redraws()
        while not shell:
            redraws.another()
            shell = int(words(1)[0])
            zeros += WORD_BITS - shell.bit_length()
        distance = (zeros << cover.shell_bits) + (side & (2**cover.shell_bits - 1))
        point = cover.left - distance if side >> (WORD_BITS - 1) else cover.right + distance
        tail_layers = cover.tails - cover.wedges
        return point, Fraction(cover.layers << (cover.shell_bits + zeros + 2), tail_layers << cover.block_bits)

    def _under_curve(self, points: IntegerArray, layers: IntegerArray, scale: Fraction, words: WordSource) -> NDArray[np.bool_]:
        """Return whether layer + U < scale * f(point), with a fresh U for each point."""
        drawn = words(len(points))
        factor = float(scale)
        excess = factor * self.curve.approximate(points) - layers - drawn * 2.0**-WORD_BITS
        kept = excess > factor * ALLOWANCE
        for place in np.flatnonzero(np.abs(excess) <= factor * ALLOWANCE):
            kept[place] = self._decide(int(points[place]), int(layers[place]), scale, int(drawn[place]), words)
        return kept

    def _decide(self, point: int, layer: int, scale: Fraction, uniform: int, words: WordSource) -> bool:
        """Return whether layer + U < scale * f(point), by whole numbers; U begins with the bits of `uniform` and is extended as needed."""
        bits, redraws = WORD_BITS, Redraws(MOST_EXTENSIONS)
        while True:
            redraws.another()
            low, high = self.curve.bounds(point, bits)
            lowest = (layer << bits) + uniform
            if lowest + 1 <= scale * low:
                return True
            if lowest >= scale * high:
                return False
            uniform = (uniform << WORD_BITS) + int(words(1)[0])
            bits += WORD_BITS
