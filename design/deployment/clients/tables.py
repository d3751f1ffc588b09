"""Deployed clients of lookup tables: a letter for a number, or for each coordinate of a vector."""

from .draws import uniform
from .kinds import Cells, Count, Fields, Number, Numbers, Source, Word, Words, floor, new_cells, new_fields, select, sqrt


def letter_of_number(
    value: Number,
    words: Source,
    fields: Fields,
    *,
    low: Number,
    high: Number,
    width: Number,
    steps: Number,
    letters: Count,
    shift: Count,
    cumulative: Words,
) -> None:
    """Dither a value to a row of the table, and draw a letter of the row.

    Values outside the interval count as its nearer end, and NaN as its lower end.
    """
    dither_word = words.next()
    draw = words.next() >> shift
    inside = value
    if not inside > low:
        inside = low
    if inside > high:
        inside = high
    position = (inside - low) / width * steps
    row = Count(position)
    if uniform(dither_word) < position - Number(row):
        row = row + 1
    fields[0] = Word(letter_of_row(row, draw, letters, cumulative))


def letter_of_row(row: Count, draw: Word, letters: Count, cumulative: Words) -> Count:
    """Return the number of the row's cumulative weights that a draw reaches."""
    start = row * letters
    letter = 0
    half = letters // 2
    while half > 0:
        if cumulative[start + letter + half - 1] <= draw:
            letter = letter + half
        half = half // 2
    return letter


def letter_of_number_in_constant_time(
    value: Number,
    words: Source,
    fields: Fields,
    *,
    low: Number,
    high: Number,
    width: Number,
    steps: Number,
    rows: Count,
    letters: Count,
    shift: Count,
    cumulative: Words,
) -> None:
    """Draw the same letter as `letter_of_number`, from the same words.

    All rows and weights are read, and nothing branches on the value or the words.
    """
    dither_word = words.next()
    draw = words.next() >> shift
    inside = select(value > low, value, low)
    inside = select(inside > high, high, inside)
    position = (inside - low) / width * steps
    chosen = Word(Count(position))
    chosen = chosen + Word(uniform(dither_word) < position - Number(Count(position)))
    letter = Word(0)
    for row in range(rows):
        for column in range(letters):
            letter = letter + (Word(Word(row) == chosen) & Word(cumulative[row * letters + column] <= draw))
    fields[0] = letter


def letters_of_cube(
    vector: Numbers,
    words: Source,
    fields: Fields,
    *,
    dimension: Count,
    clip_norm: Number,
    steps: Number,
    letters: Count,
    shift: Count,
    cumulative: Words,
) -> None:
    """Dither each coordinate of a vector of the cube by itself, and draw a letter of its row."""
    for place in range(dimension):
        dither_word = words.next()
        draw = words.next() >> shift
        inside = vector[place]
        if not inside > -clip_norm:
            inside = -clip_norm
        if inside > clip_norm:
            inside = clip_norm
        position = (inside / clip_norm + 1.0) / 2.0 * steps
        row = Count(position)
        if uniform(dither_word) < position - Number(row):
            row = row + 1
        fields[place] = Word(letter_of_row(row, draw, letters, cumulative))


def letters_of_ball(
    vector: Numbers,
    words: Source,
    fields: Fields,
    *,
    dimension: Count,
    order: Count,
    clip_norm: Number,
    radius: Count,
    largest: Word,
    letters: Count,
    shift: Count,
    cumulative: Words,
) -> None:
    """Round a vector of the L1 or L2 ball systematically, and draw a letter of each coordinate's row.

    The order is 1 or 2. Coordinates are looked at in the order of falling whole steps; one goes up where the running sum of the fractional
    parts, from a uniform start, passes a whole number. Privacy rests on the whole numbers: their sum, or the sum of their squares, is at
    most `largest`, or else no coordinate goes up.
    """
    length = norm_of(vector, dimension, order)
    clipped = length if length > clip_norm else clip_norm
    wholes = new_fields(dimension)
    fractions = new_cells(dimension)
    for place in range(dimension):
        size = vector[place] if vector[place] > 0.0 else -vector[place]
        share = size / clipped
        position = (share if share < 1.0 else 1.0) * Number(radius)
        wholes[place] = Word(Count(position))
        fractions[place] = position - Number(Count(position))
    ups = new_fields(dimension)
    running = uniform(words.next())
    total = Word(0)
    for step in range(radius + 1):
        whole = Word(radius - step)
        for place in range(dimension):
            if wholes[place] == whole:
                before = floor(running)
                running = running + fractions[place]
                ups[place] = Word(floor(running) > before)
                moved = whole + ups[place]
                total = total + (moved if order == 1 else moved * moved)
    keeps = total <= largest
    for place in range(dimension):
        moved = wholes[place] + (ups[place] if keeps else Word(0))
        row = radius - Count(moved) if vector[place] < 0.0 else radius + Count(moved)
        fields[place] = Word(letter_of_row(row, words.next() >> shift, letters, cumulative))


def letters_of_ball_by_rejection(
    vector: Numbers,
    words: Source,
    fields: Fields,
    *,
    dimension: Count,
    order: Count,
    clip_norm: Number,
    scale: Number,
    radius: Count,
    largest: Word,
    letters: Count,
    shift: Count,
    cumulative: Words,
) -> None:
    """Round each coordinate of a vector of the L1 or L2 ball by itself until the vector is in the ball, and draw a letter of each row.

    The order is 1 or 2. Privacy rests on the whole numbers: their sum, or the sum of their squares, is at most `largest`. The number of
    words depends on the vector.
    """
    length = norm_of(vector, dimension, order)
    clipped = length if length > clip_norm else clip_norm
    positions = new_cells(dimension)
    for place in range(dimension):
        positions[place] = vector[place] / clipped * scale
    wholes = new_cells(dimension)
    power = round_once(positions, wholes, words, dimension, order)
    while power > largest:
        power = round_once(positions, wholes, words, dimension, order)
    for place in range(dimension):
        size = Count(wholes[place] if wholes[place] > 0.0 else -wholes[place])
        row = radius - size if wholes[place] < 0.0 else radius + size
        fields[place] = Word(letter_of_row(row, words.next() >> shift, letters, cumulative))


def round_once(positions: Numbers, wholes: Cells, words: Source, dimension: Count, order: Count) -> Word:
    """Round each position to a neighbour at random, without bias, and return the sum of sizes or of squares."""
    power = Word(0)
    for place in range(dimension):
        below = floor(positions[place])
        whole = below + 1.0 if uniform(words.next()) < positions[place] - below else below
        wholes[place] = whole
        size = Word(Count(whole if whole > 0.0 else -whole))
        power = power + (size if order == 1 else size * size)
    return power


def norm_of(vector: Numbers, dimension: Count, order: Count) -> Number:
    """Return the L1 or L2 norm of a vector, with sums in the order of the coordinates."""
    total = 0.0
    for place in range(dimension):
        size = vector[place] if vector[place] > 0.0 else -vector[place]
        total = total + (size if order == 1 else size * size)
    return total if order == 1 else sqrt(total)
