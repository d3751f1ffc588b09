"""Exact sampling of log-concave integer distributions by rectangle-wedge-tail rejection.

The sampler refines each comparison until it is certain. Bricks of equal size cover the area under a unimodal curve on the whole numbers:
rectangles, wedges and tails. That is the geometry of Marsaglia's rectangle-wedge-tail method (Knuth, *The Art of Computer Programming*,
vol. 2, section 3.4.1). A `RatioCurve` is given by rational ratios of neighbouring probabilities, as those of Poisson and binomial
distributions are. Parameters are rational numbers, taken from whole numbers, fractions and floats without rounding. Rigorous bounds on
exp(-x) for rational x, in integers of any length (`exponential_bounds`), decide close comparisons.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Rational
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_integer, check_real
from ...arrays import FloatArray, IndexArray, IntegerArray, WordArray
from .random_words import WordSource
from .redraws import Redraws

MOST_SAMPLES = 2**48

# Number of the table's bits after the binary point. The table ends at the point at which the curve is below 2**-LEAST_BITS. Its errors at
# the end, at most one unit per step, are far below the allowance, as it has fewer than 2**20 steps.
TABLE_BITS = 96
LEAST_BITS = 48
# Number of bits of bounds beyond the requested bits, as rounding adds up over the steps from the mode.
GUARD_BITS = 40

BRICK_BITS = 16
# Number of blocks per spread, up to a factor of two; a block is at least one point wide.
BLOCKS_PER_SPREAD = 32
# Height of the curve at which the tails begin; the height only affects speed.
TAIL_HEIGHT = 2.0**-22
# Largest error of `UnimodalCurve.approximate`.
APPROXIMATION_ERROR = 2.0**-44
# Allowance for the approximation's error and for the rounding of a few operations, in units of the height of all layers.
ALLOWANCE = 2.0**-40

WORD_BITS = 64
# The sampler looks up PART points at a time, with their words in the processor's cache; after CHUNK points it decides all open cases
# together.
PART, CHUNK = 2**14, 2**18
# Largest number of words that extend a uniform number.
MOST_EXTENSIONS = 64


class UnimodalCurve(Protocol):
    """A log-concave function f on the whole numbers, 1 at its mode.

    The function is a distribution up to an unknown factor.
    """

    @property
    def mode(self) -> int:
        """Point where f has its largest value, 1."""

    @property
    def spread(self) -> float:
        """Approximate standard deviation, which only affects speed."""

    def approximate(self, points: IntegerArray) -> FloatArray:
        """Return f at whole numbers in floating point.

        The absolute error is at most 2**-44.
        """

    def bounds(self, point: int, bits: int) -> tuple[int, int]:
        """Return whole numbers (low, high) with low <= 2**bits f(point) <= high.

        The bounds are computed in whole numbers and are a few units apart, for any number of `bits` >= 1.
        """


@dataclass(frozen=True, eq=False)
class BrickCover:
    """Numbered bricks of equal size that cover a curve.

    Each brick is 2**block_bits points wide and one layer high, and `layers` of them reach from 0 to the top of the curve.

    Attributes
    ----------
    block_bits : int
        Logarithm of a brick's width.
    layers : int
        Height of the curve's top, f = 1, in bricks.
    starts : ndarray of int64, shape (bricks,)
        Lowest point of every brick; 0 for bricks that are neither rectangles nor wedges.
    rectangles : int
        Bricks below this number lie entirely under the curve.
    wedges : int
        Bricks from `rectangles` to below this number lie across the curve, or may do so as far as floating point can decide.
    tails : int
        Bricks from `wedges` to below this number are cut up for the tails; the remaining bricks are empty.
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


@dataclass(frozen=True)
class ExactSampler:
    """Draws from the distribution proportional to a curve f.

    Draws are exact if the words are independent and uniform.

    Bricks of equal size cover the area under f, times a whole number of layers. The first bits of a word choose a brick, and the last bits
    a point of the brick. The draw keeps the point if (layer + U) < layers * f(point), with U uniform on [0, 1): every point is kept with a
    probability proportional to f. Floating point decides unless the comparison is too close; then U is drawn to as many bits as the
    decision by whole numbers takes.

    Attributes
    ----------
    curve : UnimodalCurve
        The function f.
    brick_bits : int
        Logarithm of the number of bricks.

    Notes
    -----
    The time depends on the samples: an observer who can time single draws learns something about them.
    """

    curve: UnimodalCurve
    brick_bits: int = BRICK_BITS

    @cached_property
    def cover(self) -> BrickCover:
        """Bricks that cover the curve."""
        return cover_with_bricks(self.curve, self.brick_bits)

    def draw(self, count: int, random_words: WordSource) -> IntegerArray:
        """Draw independent points, shape (count,), from little more than a word each."""
        points = np.zeros(count, dtype=np.int64)
        self.add(points, random_words)
        return points

    def add(self, total: NDArray[Any], random_words: WordSource) -> None:
        """Add an independent point to each whole number of an array, shape (count,), modulo 2**w for numbers of w bits."""
        for start in range(0, len(total), CHUNK):
            chunk = total[start : start + CHUNK]
            open_places, words = self._add_certain(chunk, random_words)
            redraws = Redraws()
            while open_places.size:
                points, kept = self._propose(words, random_words)
                # Additions of zeros are faster than choices at random places.
                points *= kept
                chunk[open_places] += points.astype(total.dtype)
                open_places = open_places[~kept]
                if open_places.size:
                    redraws.another()
                    words = random_words(open_places.size)

    def _add_certain(self, total: NDArray[Any], random_words: WordSource) -> tuple[IndexArray, WordArray]:
        """Add points of rectangles, drawn with a word each; return the other numbers' places and words."""
        cover, kind = self.cover, total.dtype
        starts, shift, within = self._rectangle_starts(kind), self._brick_shift, self._within.astype(kind)
        # The same memory serves all parts, which then stay in the processor's cache.
        size = min(len(total), PART)
        shifted, lowest = np.empty(size, dtype=np.uint64), np.empty(size, dtype=kind)
        places: list[IndexArray] = []
        drawn: list[WordArray] = []
        for start in range(0, len(total), PART):
            part = total[start : start + PART]
            words = random_words(len(part))
            bricks = np.right_shift(words, shift, out=shifted[: len(part)]).view(np.int64)
            part += starts.take(bricks, out=lowest[: len(part)], mode="clip")
            uncertain = (bricks >= cover.rectangles).nonzero()[0]
            places.append(uncertain + start)
            drawn.append(words[uncertain])
            if cover.block_bits:
                words[uncertain] = 0
                low = words.astype(kind)
                low &= within
                part += low
        return np.concatenate(places), np.concatenate(drawn)

    def _propose(self, words: WordArray, random_words: WordSource) -> tuple[IntegerArray, NDArray[np.bool_]]:
        """Return the point that each word proposes, and whether the sampler keeps it."""
        cover = self.cover
        bricks = (words >> self._brick_shift).view(np.int64)
        points = cover.starts[bricks] + (words & self._within).view(np.int64)
        kept = bricks < cover.wedges
        wedges = (kept & (bricks >= cover.rectangles)).nonzero()[0]
        if wedges.size:
            layers = cover.wedge_layers[bricks[wedges] - cover.rectangles]
            kept[wedges] = self._under_curve(points[wedges], layers, Fraction(cover.layers), random_words)
        for place in ((bricks >= cover.wedges) & (bricks < cover.tails)).nonzero()[0]:
            point, scale = self._tail_point(random_words)
            points[place] = point
            kept[place] = self._under_curve(np.array([point]), np.array([0]), scale, random_words)[0]
        return points, kept

    @cached_property
    def _brick_shift(self) -> np.uint64:
        """Number of bits of a word that do not choose the brick."""
        return np.uint64(WORD_BITS - self.brick_bits)

    @cached_property
    def _within(self) -> np.uint64:
        """Mask of the bits of a word that choose the point of a brick."""
        return np.uint64(2**self.cover.block_bits - 1)

    def _rectangle_starts(self, kind: np.dtype[Any]) -> NDArray[Any]:
        """Return the lowest points of rectangles modulo 2**w, in few bytes to fit into caches; 0 for other bricks."""
        if kind.char not in self._narrow_starts:
            starts = self.cover.starts.astype(kind)
            starts[self.cover.rectangles :] = 0
            self._narrow_starts[kind.char] = starts
        return self._narrow_starts[kind.char]

    @cached_property
    def _narrow_starts(self) -> dict[str, NDArray[Any]]:
        return {}

    def _tail_point(self, random_words: WordSource) -> tuple[int, Fraction]:
        """Return a random point of the tails, and the ratio of its shell's height to f."""
        cover = self.cover
        side, shell = random_words(2).tolist()
        zeros = WORD_BITS - shell.bit_length()
        redraws = Redraws()
        while not shell:
            redraws.another()
            shell = int(random_words(1)[0])
            zeros += WORD_BITS - shell.bit_length()
        distance = (zeros << cover.shell_bits) + (side & (2**cover.shell_bits - 1))
        point = cover.left - distance if side >> (WORD_BITS - 1) else cover.right + distance
        tail_layers = cover.tails - cover.wedges
        return point, Fraction(cover.layers << (cover.shell_bits + zeros + 2), tail_layers << cover.block_bits)

    def _under_curve(self, points: IntegerArray, layers: IntegerArray, scale: Fraction, random_words: WordSource) -> NDArray[np.bool_]:
        """Return whether layer + U < scale * f(point), with a fresh U for each point."""
        drawn = random_words(len(points))
        factor = float(scale)
        excess = factor * self.curve.approximate(points) - layers - drawn * 2.0**-WORD_BITS
        kept = excess > factor * ALLOWANCE
        for place in (np.abs(excess) <= factor * ALLOWANCE).nonzero()[0]:
            kept[place] = self._decide(int(points[place]), int(layers[place]), scale, int(drawn[place]), random_words)
        return kept

    def _decide(self, point: int, layer: int, scale: Fraction, uniform: int, random_words: WordSource) -> bool:
        """Return whether layer + U < scale * f(point), by whole numbers.

        U begins with the bits of `uniform` and is extended as needed.
        """
        bits, redraws = WORD_BITS, Redraws(MOST_EXTENSIONS)
        while True:
            redraws.another()
            low, high = self.curve.bounds(point, bits)
            lowest = (layer << bits) + uniform
            if lowest + 1 <= scale * low:
                return True
            if lowest >= scale * high:
                return False
            uniform = (uniform << WORD_BITS) + int(random_words(1)[0])
            bits += WORD_BITS


@dataclass(frozen=True, eq=False)
class _Side:
    """The blocks on one side of the mode.

    A side has the blocks' lowest points, the curve's largest and least value on each block, and the start of the tail.
    """

    starts: IntegerArray
    tops: FloatArray
    bottoms: FloatArray
    tail: int
    tail_height: float


def cover_with_bricks(curve: UnimodalCurve, brick_bits: int = BRICK_BITS) -> BrickCover:
    """Cover a curve with 2**brick_bits bricks, several for each block.

    Bricks are added if floating point cannot decide.
    """
    block_bits = max(0, math.floor(math.log2(curve.spread / BLOCKS_PER_SPREAD)))
    shell_bits = max(0, math.ceil(math.log2(curve.spread)))
    right = _side(curve, curve.mode, 1, block_bits, shell_bits)
    left = _side(curve, curve.mode - 1, -1, block_bits, shell_bits)
    starts, tops, bottoms = (np.concatenate([getattr(right, name), getattr(left, name)]) for name in ("starts", "tops", "bottoms"))
    bricks, area = 2**brick_bits, float(tops.sum())
    # The first shells must be as high as the curve at the start of the tails; the height halves from shell to shell.
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
    """Return the blocks from `origin` away from the mode, up to the start of the tail."""
    width, count = 2**block_bits, 64
    while True:
        distances = width * np.arange(count, dtype=np.int64)
        tops = np.asarray(curve.approximate(origin + direction * distances))
        # From a point at distance d from the mode where f is at most 2**-(d / w), f halves at least every w points: log f is concave.
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


@dataclass(frozen=True, eq=False)
class RatioCurve:
    """A log-concave function f of whole numbers that is given by ratios of its neighbours.

    The function has f(mode) = 1 and f(x + 1) / f(x) = numerator / denominator.

    Attributes
    ----------
    mode : int
        Point where f is largest.
    spread : float
        Approximate standard deviation; up to 2**14.
    ratio : callable
        Function from x to the numerator and the denominator, non-negative whole numbers; the ratio falls with x. A numerator 0 means that
        the support ends at x, a denominator 0 that it begins at x + 1.
    """

    mode: int
    spread: float
    ratio: Callable[[int], tuple[int, int]]

    def approximate(self, points: IntegerArray) -> FloatArray:
        """Return f at whole numbers; 0.0 from where f is below 2**-48."""
        first, values = self._table
        return np.asarray(values[np.clip(points - first, 0, len(values) - 1)])

    def bounds(self, point: int, bits: int) -> tuple[int, int]:
        """Return bounds at most 3 apart, up to 2**38 steps from the mode.

        The function walks from the mode.
        """
        low = high = 1 << (bits + GUARD_BITS)
        for numerator, denominator in self._steps(point - self.mode):
            low, high = low * numerator // denominator, -(-high * numerator // denominator)
            # From this point on the bounds prove that f is below one unit.
            if high <= 1:
                break
        return low >> GUARD_BITS, -(-high >> GUARD_BITS)

    def _steps(self, distance: int) -> Iterator[tuple[int, int]]:
        """Yield the ratios of successive values from the mode to a signed distance."""
        if distance >= 0:
            yield from (self.ratio(point) for point in range(self.mode, self.mode + distance))
        else:
            yield from (self.ratio(point)[::-1] for point in range(self.mode - 1, self.mode + distance - 1, -1))

    @cached_property
    def _table(self) -> tuple[int, FloatArray]:
        """First point of the table, and its values with a zero for all points beyond either end."""
        right, left = self._side(1), self._side(-1)
        values = [*reversed(left), 1 << TABLE_BITS, *right]
        return self.mode - len(left), np.array([value / (1 << TABLE_BITS) for value in values])

    def _side(self, direction: int) -> list[int]:
        """Return the values on one side of the mode, outward, ending with a zero."""
        values, value = [], 1 << TABLE_BITS
        for numerator, denominator in self._steps(direction * 2**62):
            value = value * numerator // denominator
            if not value >> (TABLE_BITS - LEAST_BITS):
                break
            values.append(value)
        return [*values, 0]


def rational_parameter(name: str, value: float | Fraction, *, low: float, high: float) -> Fraction:
    """Return the exact rational number of an argument from `low` to `high`.

    A float counts as the binary fraction that it is.

    Examples
    --------
    >>> rational_parameter("sigma", 0.1, low=0.0, high=1.0)
    Fraction(3602879701896397, 36028797018963968)
    """
    if isinstance(value, Rational) and not isinstance(value, bool):
        # Python's own whole numbers replace those of numpy, which would overflow later.
        exact = Fraction(int(value.numerator), int(value.denominator))
        if not low <= exact <= high:
            raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}")
        return exact
    return Fraction(check_real(name, value, low=low, high=high))


def sample_shape(size: int | tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of samples from a number of samples or a shape.

    Examples
    --------
    >>> sample_shape(5), sample_shape((2, 3))
    ((5,), (2, 3))
    """
    lengths = size if isinstance(size, tuple) else (size,)
    return tuple(check_integer("size", length, low=0, high=MOST_SAMPLES) for length in lengths)


def exponential_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Return whole numbers (low, high) with low <= 2**bits exp(-exponent) <= high.

    The bounds are at most 2 apart, for an exponent of at least 0. The exponent is halved until it is below 1/16, the alternating Taylor
    series is summed in whole numbers, and the result is squared as often as the exponent was halved; every step is rounded outward.

    Examples
    --------
    >>> low, high = exponential_bounds(Fraction(1, 2), 64)
    >>> high - low <= 2, round(low / 2**64, 12)
    (True, 0.606530659713)
    """
    if exponent >= bits:
        return 0, 1
    halvings = int(exponent).bit_length() + 4
    # Each squaring at most doubles the absolute error; 16 bits more leave it below half a unit of the result.
    precision = bits + halvings + 16
    reduced = (exponent.numerator << precision) // (exponent.denominator << halvings)
    term = total = 1 << precision
    terms = 0
    while term:
        terms += 1
        term = (term * reduced >> precision) // terms
        total += -term if terms % 2 else term
    # Truncating `reduced` costs 1 unit; each term is at most 2 units below its exact value, and the omitted terms sum to less than 3.
    slack = 2 * terms + 4
    low, high = total - slack, min(total + slack, 1 << precision)
    for _ in range(halvings):
        low, high = low * low >> precision, -(-high * high >> precision)
    surplus = precision - bits
    return low >> surplus, -(-high >> surplus)
