"""Deployed clients of SQKR: signs of a few coefficients of the vector in a public frame."""

from .draws import below, uniform
from .kinds import Cells, Count, Fields, Number, Numbers, Source, Word, Words, new_cells
from .sums import transform
from .tables import norm_of

# Largest number of steps toward the box, and largest extrapolation of a step.
MOST_STEPS = 200
FARTHEST = 4.0


def kashin_symbol(
    vector: Numbers,
    words: Source,
    public_words: Source,
    fields: Fields,
    *,
    dimension: Count,
    length: Count,
    bases: Count,
    size: Count,
    clip_norm: Number,
    scale: Number,
    level: Number,
    limit: Number,
    box: Number,
    message_bits: Count,
    symbols: Word,
    replacement: Word,
    rows: Words,
    signs: Words,
) -> None:
    """Round the coefficients at public coordinates to signs, and replace the symbol of all signs with probability replacement / 2**64.

    A coefficient within the level is up with a probability linear in it. A vector without coefficients within the level is scaled down.
    Shortest coefficients up to the limit, which is the level up to rounding, need no step.
    """
    norm = norm_of(vector, dimension, 2)
    shrinkage = clip_norm / norm if norm > clip_norm else 1.0
    clipped = new_cells(dimension)
    for place in range(dimension):
        clipped[place] = vector[place] * shrinkage
    coefficients = new_cells(size)
    analyse(clipped, coefficients, dimension, length, bases, scale, rows, signs)
    shortest = largest_size(coefficients, size)
    largest = shortest
    moves = new_cells(size)
    steps = 0
    while largest > level and shortest > limit and steps < MOST_STEPS:
        approach(coefficients, moves, clipped, dimension, length, bases, size, scale, box, rows, signs)
        largest = largest_size(coefficients, size)
        steps = steps + 1
    if largest > shortest:
        # The vector has no coefficients within the level, so its shortest coefficients are scaled down.
        for place in range(dimension):
            clipped[place] = vector[place] * shrinkage
        analyse(clipped, coefficients, dimension, length, bases, scale, rows, signs)
        largest = shortest
    reduction = level / largest if largest > level else 1.0
    symbol = Word(0)
    for bit in range(message_bits):
        coordinate = Count(public_words.next() % Word(size))
        share = 0.5 + coefficients[coordinate] * reduction / level / 2.0
        if uniform(words.next()) < share:
            symbol = symbol + (Word(1) << bit)
    replaces = words.next() < replacement
    anything = below(words, symbols)
    fields[0] = anything if replaces else symbol


def analyse(
    vector: Numbers, coefficients: Cells, dimension: Count, length: Count, bases: Count, scale: Number, rows: Words, signs: Words
) -> None:
    """Write the inner products of a vector with the frame's columns.

    In each basis they are the transform of the signed coordinates, at the rows of the frame.
    """
    for basis in range(bases):
        start = basis * length
        coordinate = 0
        for place in range(length):
            entry = 0.0
            if bit_of(rows, place) == 1:
                entry = vector[coordinate] * scale
                if bit_of(signs, basis * dimension + coordinate) == 1:
                    entry = -entry
                coordinate = coordinate + 1
            coefficients[start + place] = entry
        transform(coefficients, start, length)


def approach(
    coefficients: Cells,
    moves: Cells,
    room: Cells,
    dimension: Count,
    length: Count,
    bases: Count,
    size: Count,
    scale: Number,
    box: Number,
    rows: Words,
    signs: Words,
) -> None:
    """Move coefficients toward the box, along the plane of the coefficients of the same vector."""
    squares = 0.0
    for place in range(size):
        excess = excess_of(coefficients[place], box)
        moves[place] = excess
        squares = squares + excess * excess
    # The part of the excess across the plane: the frame's combination of the excess, and its coefficients.
    for place in range(dimension):
        room[place] = 0.0
    for basis in range(bases):
        start = basis * length
        transform(moves, start, length)
        coordinate = 0
        for place in range(length):
            if bit_of(rows, place) == 1:
                entry = moves[start + place] * scale
                if bit_of(signs, basis * dimension + coordinate) == 1:
                    entry = -entry
                room[coordinate] = room[coordinate] + entry
                coordinate = coordinate + 1
    analyse(room, moves, dimension, length, bases, scale, rows, signs)
    projected = 0.0
    for place in range(size):
        moves[place] = excess_of(coefficients[place], box) - moves[place]
        projected = projected + moves[place] * moves[place]
    least = squares / FARTHEST
    factor = squares / (projected if projected > least else least) if squares > 0.0 else 0.0
    for place in range(size):
        coefficients[place] = coefficients[place] - moves[place] * factor


def excess_of(number: Number, box: Number) -> Number:
    """Return the part of a number beyond the box from -box to box."""
    return number - box if number > box else number + box if number < -box else 0.0


def largest_size(numbers: Numbers, size: Count) -> Number:
    """Return the largest absolute value."""
    largest = 0.0
    for place in range(size):
        magnitude = numbers[place] if numbers[place] > 0.0 else -numbers[place]
        largest = magnitude if magnitude > largest else largest
    return largest


def bit_of(words: Words, place: Count) -> Word:
    """Return a bit of many words, counted from the least significant of the first."""
    return words[place // 64] >> (place % 64) & 1
