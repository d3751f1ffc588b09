"""Deployed clients that send the sign of one number about their input (CLDP)."""

from .draws import below, parity, uniform
from .kinds import Count, Fields, Number, Numbers, Source, Word
from .tables import norm_of


def sign_of_number(value: Number, words: Source, fields: Fields, *, low: Number, high: Number, width: Number, flip: Word) -> None:
    """Round a value to one end of the interval without bias, and tell the other end with probability flip / 2**64."""
    dither_word = words.next()
    flips = words.next() < flip
    inside = value
    if not inside > low:
        inside = low
    if inside > high:
        inside = high
    up = uniform(dither_word) < (inside - low) / width
    fields[0] = Word(up != flips)


def sign_of_coordinate(vector: Numbers, words: Source, fields: Fields, *, dimension: Count, clip_norm: Number, flip: Word) -> None:
    """Send a random coordinate of a vector of the cube, and its sign."""
    place = below(words, Word(dimension))
    write_sign(place, vector[Count(place)] / clip_norm, words, fields, flip)


def sign_of_direction(vector: Numbers, words: Source, fields: Fields, *, dimension: Count, clip_norm: Number, flip: Word) -> None:
    """Send a random coordinate of a vector of the L2 ball, and its sign."""
    place = below(words, Word(dimension))
    length = norm_of(vector, dimension, 2)
    radius = length if length > clip_norm else clip_norm
    write_sign(place, vector[Count(place)] / radius, words, fields, flip)


def sign_of_transform(
    vector: Numbers, words: Source, fields: Fields, *, dimension: Count, clip_norm: Number, indices: Word, flip: Word
) -> None:
    """Send a random entry of the Walsh-Hadamard transform of a vector of the L1 ball, and its sign."""
    place = below(words, indices)
    length = 0.0
    entry = 0.0
    for other in range(dimension):
        size = vector[other] if vector[other] > 0.0 else -vector[other]
        length = length + size
        entry = entry - vector[other] if parity(place & Word(other)) == 1 else entry + vector[other]
    radius = length if length > clip_norm else clip_norm
    write_sign(place, entry / radius, words, fields, flip)


def write_sign(place: Word, number: Number, words: Source, fields: Fields, flip: Word) -> None:
    """Write twice the place, plus 1 for a number from -1 to 1 that is rounded up; the sign is wrong with probability flip / 2**64.

    Numbers outside count as the nearer end, and NaN as -1.
    """
    up = uniform(words.next()) < (number + 1.0) / 2.0
    flips = words.next() < flip
    fields[0] = place * 2 + Word(up != flips)
