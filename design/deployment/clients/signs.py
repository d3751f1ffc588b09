"""Deployed clients that send the sign of one number about their input (CLDP)."""

from .draws import below, parity, uniform
from .kinds import Count, Fields, Number, Numbers, Source, Word, Words, new_cells
from .simplex import normal_number, write_direction
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


def signs_of_point(
    vector: Numbers,
    words: Source,
    fields: Fields,
    *,
    dimension: Count,
    clip_norm: Number,
    draws: Count,
    root: Number,
    flip: Word,
    quantiles: Words,
) -> None:
    """Draw a random point on the side of the vector's direction, or opposite with probability flip / 2**64, and send some of its signs.

    A sign's coordinate is drawn in proportion to its size, and the sign is wrong with a probability that makes its mean the point. A point
    and its opposite are equally likely, and all sums change their sign alone: the flip is all that depends on the vector.
    """
    direction = new_cells(dimension)
    write_direction(vector, direction, words, dimension, clip_norm)
    point = new_cells(dimension)
    word = Word(0)
    product = 0.0
    total = 0.0
    for place in range(dimension):
        half = Word(0)
        if place % 2 == 0:
            word = words.next()
            half = word & 4294967295
        else:
            half = word >> 32
        point[place] = normal_number(half, quantiles)
        product = product + point[place] * direction[place]
        total = total + (point[place] if point[place] > 0.0 else -point[place])
    turns = (product < 0.0) != (words.next() < flip)
    kept = 0.5 + total / (2.0 * norm_of(point, dimension, 2) * root)
    for draw in range(draws):
        wanted = uniform(words.next()) * total
        lies = uniform(words.next()) >= kept
        running = 0.0
        chosen = 0
        for place in range(dimension - 1):
            running = running + (point[place] if point[place] > 0.0 else -point[place])
            if running <= wanted:
                chosen = place + 1
        up = (point[chosen] > 0.0) != turns
        fields[draw] = Word(chosen) * 2 + Word(up != lies)


def write_sign(place: Word, number: Number, words: Source, fields: Fields, flip: Word) -> None:
    """Write twice the place, plus 1 for a number from -1 to 1 that is rounded up; the sign is wrong with probability flip / 2**64.

    Numbers outside count as the nearer end, and NaN as -1.
    """
    up = uniform(words.next()) < (number + 1.0) / 2.0
    flips = words.next() < flip
    fields[0] = place * 2 + Word(up != flips)
