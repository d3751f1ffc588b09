"""Deployed clients of the rotating simplex: the number of a corner, probably of one near the vector."""

from .draws import below, uniform
from .kinds import Cells, Count, Fields, Number, Numbers, Source, Word, Words, new_cells, sqrt
from .sums import transform
from .tables import norm_of

# Probabilities of a tail are read from numbers of 31 bits, whose octaves have this number of quantiles each; one unit of a quantile.
CELLS, CELL_BITS = 256, 8
QUANTILE_UNIT = 2.0**-32
# Norm, in clip norms, below which a vector counts as zero.
SHORTEST = 1e-100


def corner_number(
    vector: Numbers,
    words: Source,
    public_words: Source,
    fields: Fields,
    *,
    dimension: Count,
    clip_norm: Number,
    corners: Count,
    closest: Count,
    far: Word,
    quantiles: Words,
) -> None:
    """Draw one of the corners that are closest to the vector's direction, or with probability far / 2**64 one of the others.

    The direction is reversed with a probability that makes its mean the vector.
    """
    rest = new_cells(dimension)
    write_direction(vector, rest, words, dimension, clip_norm)
    projections = new_cells(corners)
    normals = new_cells(dimension)
    for step in range(corners - 1):
        projections[step + 1] = next_coordinate(rest, normals, public_words, step, dimension, quantiles)
    transform(projections, 0, corners)
    is_far = words.next() < far
    far_place = below(words, Word(corners - closest))
    near_place = below(words, Word(closest))
    wanted = far_place if is_far else near_place
    passed = Word(0)
    for corner in range(corners):
        rank = 0
        for other in range(corners):
            if projections[other] > projections[corner] or (projections[other] == projections[corner] and other < corner):
                rank = rank + 1
        if (rank < closest) != is_far:
            if passed == wanted:
                fields[0] = Word(corner)
            passed = passed + 1


def write_direction(vector: Numbers, direction: Cells, words: Source, dimension: Count, clip_norm: Number) -> None:
    """Write the direction of a vector or its opposite, or the first axis for the zero vector."""
    norm = norm_of(vector, dimension, 2)
    radius = norm / clip_norm if norm < clip_norm else 1.0
    keeps = uniform(words.next()) < (1.0 + radius) / 2.0
    for place in range(dimension):
        axis = 1.0 if place == 0 else 0.0
        share = vector[place] / norm if radius > SHORTEST else axis
        direction[place] = share if keeps else -share


def next_coordinate(rest: Cells, normals: Cells, public_words: Source, step: Count, dimension: Count, quantiles: Words) -> Number:
    """Reflect the rest of a vector so that a public normal vector falls on an axis, and return the coordinate on that axis."""
    square = 0.0
    word = Word(0)
    for place in range(dimension - step):
        half = Word(0)
        if place % 2 == 0:
            word = public_words.next()
            half = word & 4294967295
        else:
            half = word >> 32
        normals[place] = normal_number(half, quantiles)
        square = square + normals[place] * normals[place]
    if square == 0.0:
        normals[0] = 1.0
        square = 1.0
    length = sqrt(square)
    head = -length if normals[0] < 0.0 else length
    product = 0.0
    for place in range(dimension - step):
        product = product + rest[step + place] * normals[place]
    product = (product + head * rest[step]) / (head * (head + normals[0]))
    rest[step] = rest[step] - product * head
    for place in range(dimension - step):
        rest[step + place] = rest[step + place] - product * normals[place]
    return rest[step] if head < 0.0 else -rest[step]


def normal_number(half: Word, quantiles: Words) -> Number:
    """Return a normal number from 32 bits: the first is the sign, the others the tail's probability, between two quantiles of a table."""
    tail = (half & 2147483647) | 1
    octave = 0
    for bit in range(30):
        if tail >> (bit + 1) > 0:
            octave = bit + 1
    place = Word(octave * CELLS)
    fraction = Word(0)
    shift = 0
    if octave > CELL_BITS:
        shift = octave - CELL_BITS
        place = place + (tail >> shift & 255)
        fraction = tail & ((Word(1) << shift) - 1)
    else:
        place = place + (tail << (CELL_BITS - octave) & 255)
    upper = quantiles[Count(place)]
    lower = quantiles[Count(place) + 1]
    size = Number(upper - ((upper - lower) * fraction >> shift)) * QUANTILE_UNIT
    return -size if half > 2147483647 else size
