"""Normal numbers that two machines derive from a seed with the same bits, in any order.

The words are those of the counter-based generator Philox (Salmon, Moraes, Dror, Shaw 2011, *Parallel Random Numbers: As Easy as 1, 2, 3*),
which is defined in whole numbers. A word becomes numbers by one rounding to float32, one product and one sum, whose results IEEE 754 fixes,
and a table that is computed from such operations too. The module uses no logarithm or cosine, whose last bits differ between machines.

The table has quantiles of the normal distribution, computed with + - * / only. IEEE 754 fixes the results of these four operations to the
last bit, but not those of a mathematics library's logarithm or exponential, on which machines differ.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arguments import LARGEST_DIMENSION, check_integer
from ...arrays import FloatArray, WordArray
from ...solvers.numerics.bisection import bisect_each

SMALLEST_TAIL = 2.0**-40
# 1 - Phi(7.5) is below 2**-40.
_LARGEST_QUANTILE = 7.5
# Point up to which the series for the centre applies, and from which the continued fraction for the tail applies.
_TAIL_BEGINS = 2.5
_SERIES_TERMS = 40
_FRACTION_TERMS = 60
_HALVINGS = 60
_ROOT_OF_TWO_PI = 2.5066282746310002

SampleArray = NDArray[np.float32]

SEED_BITS = 64
MOST_STREAMS = 2**32
# Largest binary logarithm of the number of seeds that the clients of a round share.
MOST_SEED_BITS = 48
# Stream of a round's public seed whose words are these seeds; stream 0 has vectors.
SEEDS = 1
MOST_SAMPLES = 2**32
# Philox makes four words of 64 bits at a time, which are eight numbers.
NUMBERS_PER_BLOCK = 8
# Size of a batch of numbers, small enough for caches.
NUMBERS_PER_CHUNK = 2**16

# A word of 32 bits, as a float32 f, is an odd whole number of either sign: |f| / 2**32 is the probability of the tail. Cells of the table
# are as fine as the first ten bits of the mantissa, in each of the 31 octaves.
_TAIL_BITS = 32
_CELL_BITS = 10
_CELL_SHIFT = 23 - _CELL_BITS
_SIGN_CELL = 1 << (31 - _CELL_SHIFT)
_FIRST_CELL = 127 << _CELL_BITS


@dataclass(frozen=True, eq=False)
class _QuantileTable:
    """Straight lines, intercept + slope * f, through the normal quantiles.

    A cell is the first 19 bits of f as a float32.
    """

    intercepts: SampleArray
    slopes: SampleArray


@cache
def _quantile_table() -> _QuantileTable:
    octaves = 2.0 ** np.arange(_TAIL_BITS - 1)[:, None]
    knots = np.append((octaves * (1 + np.arange(1 << _CELL_BITS) / (1 << _CELL_BITS))).ravel(), 2.0 ** (_TAIL_BITS - 1))
    quantiles = upper_quantile(knots / 2.0**_TAIL_BITS)
    slopes = (quantiles[1:] - quantiles[:-1]) / (knots[1:] - knots[:-1])
    intercepts = quantiles[:-1] - slopes * knots[:-1]
    table = _QuantileTable(np.zeros(2 * _SIGN_CELL, dtype=np.float32), np.zeros(2 * _SIGN_CELL, dtype=np.float32))
    # Words just below 2**31 round up to 2**31, the median, so the cell after the last cell keeps its zeros.
    for first, sign in ((_FIRST_CELL, 1), (_SIGN_CELL + _FIRST_CELL, -1)):
        table.intercepts[first : first + len(slopes)] = sign * intercepts
        table.slopes[first : first + len(slopes)] = slopes
    return table


def normals_from_words(words: WordArray) -> SampleArray:
    """Return two standard normal numbers per random word, with the same bits on every machine.

    The shape is (2 * count,). The low half of a word, then the high half, is read as a signed number of 32 bits, made odd, and rounded to a
    float32, f. The number is x(f) = sign(f) Q(|f| / 2**32), Q the upper quantile of the normal distribution, interpolated linearly between
    2**10 knots in each octave of f: a float32 product and a float32 sum. Uniform words give numbers that differ from exact normal numbers,
    coupled by their quantiles, by less than 6e-7. No number is beyond 6.231, which a normal number exceeds in absolute value with
    probability 5e-10. The distribution is symmetric, and its variance is 1 to within 1e-7.

    Examples
    --------
    >>> normals_from_words(np.array([0x7FFFFFFF_00000000, 0x80000000_C0000000], dtype=np.uint64)).astype(float).round(4).tolist()
    [6.2303, 0.0, -0.6745, 0.0]
    """
    # The view is little-endian, as on nearly every machine; other machines make a copy.
    halves = words.astype("<u8", copy=False).view("<i4")
    numbers = np.empty(len(halves), dtype=np.float32)
    for start in range(0, len(halves), NUMBERS_PER_CHUNK):
        _write_normals(halves[start : start + NUMBERS_PER_CHUNK], numbers[start : start + NUMBERS_PER_CHUNK])
    return numbers


def _write_normals(halves: NDArray[np.int32], numbers: SampleArray) -> None:
    table = _quantile_table()
    np.copyto(numbers, halves | np.int32(1), casting="same_kind")
    cells = (numbers.view(np.uint32) >> _CELL_SHIFT).astype(np.intp)
    numbers *= table.slopes.take(cells)
    numbers += table.intercepts.take(cells)


@dataclass(frozen=True)
class SharedNormals:
    """A long list of standard normal vectors z_0, z_1, ..., each made from the seed alone.

    Philox has the key (seed, stream). Vector z_k takes the ceil(dimension / 8) counters from k * ceil(dimension / 8) on, where the first
    counter is 1, and eight numbers from each; surplus numbers are dropped.

    Philox is not a cipher: vectors may be public, as in relative entropy coding, but must not be secret.

    Attributes
    ----------
    seed : int
        Seed, from 0 to 2**64 - 1.
    dimension : int
        Length of each vector, from 1 to 2**31.
    stream : int
        Number of this seed's independent list, from 0 to 2**32 - 1.

    Examples
    --------
    >>> normals = SharedNormals(seed=1, dimension=3)
    >>> normals.vector(5).round(4).tolist() == normals.vectors(0, 10)[5].round(4).tolist()
    True
    """

    seed: int
    dimension: int
    stream: int = 0

    def __post_init__(self) -> None:
        """Check the fields' ranges."""
        object.__setattr__(self, "seed", check_integer("seed", self.seed, low=0, high=2**SEED_BITS - 1))
        object.__setattr__(self, "dimension", check_integer("dimension", self.dimension, low=1, high=LARGEST_DIMENSION))
        object.__setattr__(self, "stream", check_integer("stream", self.stream, low=0, high=MOST_STREAMS - 1))

    @property
    def blocks(self) -> int:
        """Number of the generator's counters for one vector."""
        return -(-self.dimension // NUMBERS_PER_BLOCK)

    def vectors(self, first: int, count: int) -> SampleArray:
        """Return `count` consecutive vectors, shape (count, dimension).

        The last vector has a number of at most 2**32 - 1. `vectors_of_seeds` is faster for many seeds.
        """
        first = check_integer("first", first, low=0, high=MOST_SAMPLES - 1)
        count = check_integer("count", count, low=1, high=MOST_SAMPLES - first)
        numbers = normals_from_words(self._philox(first).random_raw(count * self.blocks * NUMBERS_PER_BLOCK // 2))
        return numbers.reshape(count, -1)[:, : self.dimension]

    def vector(self, index: int) -> SampleArray:
        """Return the vector with an index from 0 to 2**32 - 1."""
        index = check_integer("index", index, low=0, high=MOST_SAMPLES - 1)
        return np.concatenate(list(self.parts(index)))

    def parts(self, index: int) -> Iterator[SampleArray]:
        """Yield a vector in pieces of 2**16 coordinates, so that a long vector is never stored."""
        generator = self._philox(index)
        for start in range(0, self.dimension, NUMBERS_PER_CHUNK):
            length = min(NUMBERS_PER_CHUNK, self.dimension - start)
            words = generator.random_raw(-(-length // NUMBERS_PER_BLOCK) * NUMBERS_PER_BLOCK // 2)
            yield normals_from_words(words)[:length]

    def _philox(self, index: int) -> np.random.Philox:
        counter = np.array([index * self.blocks, 0, 0, 0], dtype=np.uint64)
        return np.random.Philox(key=np.array([self.seed, self.stream], dtype=np.uint64), counter=counter)


def vectors_of_seeds(
    seeds: Sequence[int], dimension: int, count: int = 1, first: Sequence[int] | None = None, stream: int = 0
) -> SampleArray:
    """Return `count` consecutive vectors of each seed, shape (seeds, count, dimension).

    The vectors equal those of `SharedNormals`. `first` has the number of each seed's first vector; 0 for all by default. The function does
    not check its arguments: seeds are whole numbers from 0 to 2**64 - 1, vectors' numbers from 0 to 2**32 - 1.
    """
    blocks = -(-dimension // NUMBERS_PER_BLOCK)
    counters = None if first is None else [number * blocks for number in first]
    numbers = normals_from_words(philox_words(seeds, count * blocks * NUMBERS_PER_BLOCK // 2, counters, stream).ravel())
    return numbers.reshape(len(seeds), count, -1)[:, :, :dimension]


def pieces_of_vectors(seed: int, dimension: int, numbers: range, start: int, length: int) -> SampleArray:
    """Return a seed's vectors of some consecutive numbers, from the coordinate `start` on, shape (vectors, length).

    `start` is a multiple of 8. The function does not check its arguments.
    """
    blocks, of_piece = -(-dimension // NUMBERS_PER_BLOCK), -(-length // NUMBERS_PER_BLOCK)
    counters = [number * blocks + start // NUMBERS_PER_BLOCK for number in numbers]
    # Words of whole vectors follow each other; those of pieces do not.
    runs = counters[:1] if of_piece == blocks else counters
    words = philox_words([seed] * len(runs), len(counters) // len(runs) * of_piece * NUMBERS_PER_BLOCK // 2, runs)
    return normals_from_words(words.ravel()).reshape(len(counters), -1)[:, :length]


def check_numbered(messages: NDArray[Any], numbers: int, name: str) -> None:
    """Raise ValueError unless each message is a seed and a whole number below `numbers`.

    The shape is (clients, 2); `name` says what the numbers count.
    """
    if messages.ndim != 2 or messages.shape[1] != 2:
        raise ValueError(f"messages must have the shape (clients, 2), got {messages.shape}")
    if messages.size and messages.dtype.kind not in "ui":
        # Floating-point numbers do not hold every seed.
        raise ValueError(f"messages must hold whole numbers, got {messages.dtype}")
    if messages.size and messages.min() < 0:
        raise ValueError(f"messages must hold no number below 0, got {messages.min()}")
    if messages.size and messages[:, 1].max() >= numbers:
        raise ValueError(f"messages must hold {name} from 0 to {numbers - 1}, got {messages[:, 1].max()}")


def philox_words(seeds: Sequence[int], count: int, counters: Sequence[int] | None = None, stream: int = 0) -> WordArray:
    """Return words of Philox with the key (seed, stream), shape (seeds, count).

    The words begin at the counter after the given counter. The function does not check its arguments.
    """
    # Replacing a generator's state takes a quarter of the time of a new generator, which would also ask the system for randomness.
    generator = np.random.Philox(key=0)
    state: Any = generator.state
    state["state"]["key"][1] = stream
    words = np.empty((len(seeds), count), dtype=np.uint64)
    for row, seed, counter in zip(words, seeds, itertools.repeat(0) if counters is None else counters, strict=counters is not None):
        state["state"]["key"][0] = seed
        state["state"]["counter"][0] = counter
        generator.state = state
        row[:] = generator.random_raw(count)
    return words


def seeds_of_round(public_seed: int, numbers: Sequence[int]) -> WordArray:
    """Return the seeds with the given numbers of those that clients of a round share: words of the round's public seed."""
    return philox_words([public_seed] * len(numbers), 1, numbers, SEEDS)[:, 0]


def _exponential(values: FloatArray) -> FloatArray:
    """Return exp(-values) for values from 0 to 32.

    The function is a Taylor polynomial of values / 1024, squared 10 times.
    """
    small = values / -1024
    result = np.ones_like(values)
    for term in range(9, 0, -1):
        result = 1 + small * result / term
    for _ in range(10):
        result = result * result
    return result


def upper_tail(points: FloatArray) -> FloatArray:
    """Return 1 - Phi(x) for x from 0 to 7.5, with the same bits on every machine.

    The relative error is below 1e-11, by Abramowitz, Stegun 1964, 26.2.11 for the centre and 26.2.14 for the tail.

    Examples
    --------
    >>> upper_tail(np.array([0.0, 1.0, 6.0])).tolist()  # doctest: +ELLIPSIS
    [0.5, 0.158655253931..., 9.86587645037...e-10]
    """
    density = _exponential(points * points / 2) / _ROOT_OF_TWO_PI
    centre = np.minimum(points, _TAIL_BEGINS)
    series = np.ones_like(points)
    for term in range(_SERIES_TERMS, 0, -1):
        series = 1 + centre * centre * series / (2 * term + 1)
    tail = np.maximum(points, _TAIL_BEGINS)
    fraction = tail.copy()
    for term in range(_FRACTION_TERMS, 0, -1):
        fraction = tail + term / fraction
    return np.where(points < _TAIL_BEGINS, 0.5 - density * points * series, density / fraction)


def upper_quantile(tails: FloatArray) -> FloatArray:
    """Return upper normal quantiles, with the same bits on every machine.

    A standard normal number exceeds the quantiles with the given probabilities. Probabilities are from 2**-40 to 1/2, and quantiles from 0
    to 7.1, with an absolute error below 1e-11.

    Examples
    --------
    >>> upper_quantile(np.array([0.5, 0.025, 2.0**-32])).round(9).tolist()
    [0.0, 1.959963985, 6.230260138]
    """
    if not ((tails >= SMALLEST_TAIL) & (tails <= 0.5)).all():
        raise ValueError(f"tails must be probabilities from 2**-40 to 0.5, got {tails.min()!r} to {tails.max()!r}")
    brackets = bisect_each(
        lambda points: upper_tail(points) > tails, np.zeros_like(tails), np.full_like(tails, _LARGEST_QUANTILE), _HALVINGS
    )
    # Zero is the quantile of 1/2, which bisection only approaches.
    return np.where(tails == 0.5, 0.0, (brackets.holds + brackets.fails) / 2)
