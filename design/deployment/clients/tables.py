"""Deployed clients of lookup tables: a letter for a number, or for each coordinate of a vector."""

from .draws import uniform
from .kinds import Count, Fields, Number, Source, Word, Words, select


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
