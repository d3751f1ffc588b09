"""Deployed clients of secure sums: rotate, round under a bound on the norm, and add noise, modulo a power of two."""

from .kinds import LARGEST_WORD, Cells, Count, Fields, Flag, Number, Numbers, Source, Word, Words, new_cells
from .tables import norm_of, round_once


def noisy_residues(
    vector: Numbers,
    words: Source,
    fields: Fields,
    *,
    dimension: Count,
    padded: Count,
    clip_norm: Number,
    scale: Number,
    granularity: Number,
    largest: Word,
    mask: Word,
    points: Count,
    signs: Words,
    upper: Words,
    lower: Words,
) -> None:
    """Write each coordinate of the rotated, rounded vector with noise, modulo mask + 1.

    The vector is clipped, multiplied by public signs and by the scale, and transformed. It is rounded at random until the sum of squares is
    at most `largest`, and the noise's magnitudes are the places of random words of 127 bits in a table.
    """
    rotated = new_cells(padded)
    length = norm_of(vector, dimension, 2)
    shrinkage = clip_norm / length if length > clip_norm else 1.0
    for place in range(dimension):
        sign = signs[place // 64] >> (place % 64) & 1
        moved = vector[place] * shrinkage * scale
        rotated[place] = -moved if sign == 1 else moved
    transform(rotated, 0, padded)
    reached = norm_of(rotated, padded, 2)
    step = granularity * (reached / clip_norm if reached > clip_norm else 1.0)
    for place in range(padded):
        rotated[place] = rotated[place] / step
    wholes = new_cells(padded)
    square = round_once(rotated, wholes, words, padded, 2)
    while square > largest:
        square = round_once(rotated, wholes, words, padded, 2)
    for place in range(padded):
        noise = draw_noise(words, points, upper, lower)
        size = wholes[place] if wholes[place] > 0.0 else -wholes[place]
        residue = Word(Count(size)) & mask
        if wholes[place] < 0.0:
            residue = (mask - residue + 1) & mask
        fields[place] = (residue + (noise & mask)) & mask


def transform(cells: Cells, start: Count, padded: Count) -> None:
    """Apply the Walsh-Hadamard transform to some cells in place: sums and differences of places 1, 2, 4, ... apart."""
    distance = 1
    while distance < padded:
        for half in range(padded // 2):
            first = start + half // distance * distance * 2 + half % distance
            left = cells[first]
            right = cells[first + distance]
            cells[first] = left + right
            cells[first + distance] = left - right
        distance = distance * 2


def draw_noise(words: Source, points: Count, upper: Words, lower: Words) -> Word:
    """Return noise modulo 2**64: its magnitude is the number of thresholds that a word of 127 bits reaches, its sign the last bit.

    A threshold is upper * 2**63 + lower. The number of steps of the search does not depend on the words.
    """
    high = words.next()
    low = words.next()
    start = 0
    length = points
    while length > 1:
        half = length // 2
        if reaches(high, low >> 1, upper[start + half - 1], lower[start + half - 1]):
            start = start + half
        length = length - half
    magnitude = Word(start) + Word(reaches(high, low >> 1, upper[start], lower[start]))
    return LARGEST_WORD - magnitude + 1 if magnitude > 0 and low & 1 == 1 else magnitude


def reaches(high: Word, low: Word, upper: Word, lower: Word) -> Flag:
    """Return whether high * 2**63 + low is at least upper * 2**63 + lower."""
    return upper < high or (upper == high and lower <= low)
