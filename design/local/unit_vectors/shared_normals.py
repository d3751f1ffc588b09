"""Normal numbers that Python and clients in all languages derive from the same words, by whole numbers alone.

The table of quantiles is computed with + - * / only, whose results IEEE 754 fixes on every machine. `clients.simplex.normal_number` states
the order of operations.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ....arrays import FloatArray
from ...deployment.clients.simplex import CELL_BITS, CELLS, QUANTILE_UNIT
from ...relative_entropy.shared_randomness import upper_quantile

OCTAVES = 31
# Size of a batch of numbers, small enough for caches.
NUMBERS_PER_CHUNK = 2**14
# Layout of a float of 64 bits. The sign, the exponent and the first bits of the mantissa are the number of a cell between two quantiles.
MANTISSA_BITS, EXPONENT_OF_ONE, SIGN = 52, 1023, 2048
CELL_SHIFT = np.uint64(MANTISSA_BITS - CELL_BITS)


@cache
def normal_quantiles() -> tuple[int, ...]:
    """Return the table of upper normal quantiles, in units of 2**-32.

    The tails are the quotients of 1 + i/256 and 2**(32 - octave), for i from 0 to 255 and octaves from 0 to 30, and at the end 1/2.
    Between two quantiles the table is linear: numbers differ from exact normal numbers, coupled by their quantiles, by less than 2e-6.
    """
    octaves = 2.0 ** np.arange(OCTAVES)[:, None]
    tails = np.append((octaves * (1 + np.arange(CELLS) / CELLS)).ravel(), 2.0**OCTAVES) / 2.0 ** (OCTAVES + 1)
    return tuple(np.rint(upper_quantile(tails) / QUANTILE_UNIT).astype(np.int64).tolist())


@dataclass(frozen=True, eq=False)
class _Cells:
    """First tail, slope of the quantile, and upper quantile of each cell, as whole multiples of a power of two."""

    starts: FloatArray
    slopes: FloatArray
    quantiles: FloatArray


@cache
def _cells() -> _Cells:
    octaves, quantiles = 2.0 ** np.arange(OCTAVES)[:, None], np.array(normal_quantiles(), dtype=float)
    upper, differences = quantiles[:-1], quantiles[:-1] - quantiles[1:]
    starts = (octaves * (1 + np.arange(CELLS) / CELLS)).ravel()
    slopes = differences * (CELLS / octaves * np.ones(CELLS)).ravel()

    def table(values: FloatArray, sign: float) -> FloatArray:
        numbers = np.zeros((SIGN + EXPONENT_OF_ONE + OCTAVES) * CELLS)
        for first, factor in ((EXPONENT_OF_ONE, 1.0), (SIGN + EXPONENT_OF_ONE, sign)):
            numbers[first * CELLS : (first + OCTAVES) * CELLS] = factor * values
        return numbers

    return _Cells(table(starts, -1.0), table(slopes, 1.0), table(upper, -1.0))


def normal_numbers(halves: NDArray[np.uint32]) -> FloatArray:
    """Return the normal number of each half of a word, of 32 bits: `clients.simplex.normal_number`.

    No operation rounds: all numbers on the way have at most 53 bits.

    Examples
    --------
    >>> normal_numbers(np.array([0, 0x7FFFFFFF, 0xC0000000], dtype=np.uint32)).round(4).tolist()
    [6.2303, 0.0, -0.6745]
    """
    flat = np.ascontiguousarray(halves).ravel().view(np.int32)
    numbers = np.empty(flat.size)
    for start in range(0, flat.size, NUMBERS_PER_CHUNK):
        part = slice(start, start + NUMBERS_PER_CHUNK)
        _write_normals(flat[part], numbers[part])
    return numbers.reshape(halves.shape)


def _write_normals(halves: NDArray[np.int32], numbers: FloatArray) -> None:
    cells, signs = _cells(), halves >> 31
    # Tails are odd, and negative if the first bit is 1.
    np.copyto(numbers, ((halves & 0x7FFFFFFF | 1) ^ signs) - signs)
    places = (numbers.view(np.uint64) >> CELL_SHIFT).view(np.int64)
    numbers -= cells.starts.take(places)
    numbers *= cells.slopes.take(places)
    np.trunc(numbers, out=numbers)
    np.subtract(cells.quantiles.take(places), numbers, out=numbers)
    numbers *= QUANTILE_UNIT
