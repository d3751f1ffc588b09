"""Deployed clients that hold one of a public list of items.

Every client draws all its words, whether they decide or not, so that their number tells nothing about the item.
"""

from .draws import below, parity
from .kinds import LARGEST_WORD, Count, Fields, Source, Word, Words, new_fields


def randomised_item(item: Word, words: Source, fields: Fields, *, kept: Word, categories: Word) -> None:
    """Keep the item with probability kept / 2**64, and otherwise draw any item."""
    keeps = words.next() < kept
    drawn = below(words, categories)
    fields[0] = item if keeps else drawn


def unary_bits(item: Word, words: Source, fields: Fields, *, other: Word, categories: Count) -> None:
    """Toss a fair coin for the held item, and coins of probability other / 2**64 for all others."""
    for place in range(categories):
        word = words.next()
        fields[place] = word >> 63 if Word(place) == item else Word(word < other)


def hadamard_output(item: Word, words: Source, fields: Fields, *, lie: Word, block_items: Word, block_outputs: Word, outputs: Word) -> None:
    """Draw an output of the item's half of its block, or with probability lie / 2**64 any output."""
    lies = words.next() < lie
    anything = below(words, outputs)
    output = below(words, block_outputs)
    row = item % block_items + 1
    # Flipping the row's lowest bit maps the half where its entries are -1 to the other half.
    flipped = output ^ (row & (LARGEST_WORD - row + 1)) if parity(row & output) == 1 else output
    fields[0] = anything if lies else item // block_items * block_outputs + flipped


def recursive_hadamard_symbol(
    item: Word, words: Source, public_words: Source, fields: Fields, *, lie: Word, block_items: Word, rows: Word, symbols: Word
) -> None:
    """Send the block and the sign of a public row at the item's place, or with probability lie / 2**64 any symbol."""
    row = public_words.next() % rows
    lies = words.next() < lie
    anything = below(words, symbols)
    truth = item // block_items * 2 + parity(row & (item % block_items))
    fields[0] = anything if lies else truth


def projective_point(
    item: Word,
    words: Source,
    fields: Fields,
    *,
    lie: Word,
    block_items: Word,
    block_outputs: Word,
    outputs: Word,
    set_outputs: Word,
    prime: Word,
    digits: Count,
    starts: Words,
    powers: Words,
    inverses: Words,
) -> None:
    """Draw a point of the item's hyperplane, or with probability lie / 2**64 any point of any block."""
    lies = words.next() < lie
    anything = below(words, outputs)
    rank = below(words, set_outputs)
    normal = new_fields(digits)
    axis = write_point(item % block_items, normal, digits, prime, starts, powers)
    others = new_fields(digits)
    write_point(rank, others, digits - 1, prime, starts, powers)
    # The other digits of the point are those of the rank; they determine the digit at which the normal has its 1.
    vector = new_fields(digits)
    total = Word(0)
    for place in range(digits):
        if place != axis:
            vector[place] = others[place - 1 if place > axis else place]
            total = (total + normal[place] * vector[place]) % prime
    vector[axis] = (prime - total) % prime
    fields[0] = (
        anything if lies else item // block_items * block_outputs + number_of_vector(vector, digits, prime, starts, powers, inverses)
    )


def write_point(point: Word, vector: Fields, digits: Count, prime: Word, starts: Words, powers: Words) -> Count:
    """Write the digits of a point, and return the place of the last digit other than 0, which is 1."""
    last = 0
    while last + 1 < digits and starts[last + 1] <= point:
        last = last + 1
    code = point - starts[last] + powers[last]
    for place in range(digits):
        vector[place] = code // powers[place] % prime
    return last


def number_of_vector(vector: Words, digits: Count, prime: Word, starts: Words, powers: Words, inverses: Words) -> Word:
    """Return the point on which a vector other than 0 lies."""
    last = digits - 1
    while vector[last] == 0:
        last = last - 1
    scale = inverses[Count(vector[last])]
    code = Word(0)
    for place in range(digits):
        code = code + vector[place] * scale % prime * powers[place]
    return code - powers[last] + starts[last]


def subset_rank(
    item: Word,
    words: Source,
    fields: Fields,
    *,
    denial: Word,
    categories: Count,
    subset_size: Count,
    limbs: Count,
    rank_bits: Count,
    first_binomial: Words,
) -> None:
    """Draw a subset that lacks the item with probability denial / 2**64, and number it among all subsets of its size.

    The number of a subset c_1 < c_2 < ... is the sum of the binomial coefficients (c_t over t), with digits of 32 bits.
    """
    left_out = words.next() < denial
    remaining = subset_size if left_out else subset_size - 1
    # Items are looked at from the last to the first; `wanted` members lie at or below the present item.
    wanted = subset_size
    binomial = new_fields(limbs)
    rank = new_fields(limbs)
    for limb in range(limbs):
        binomial[limb] = first_binomial[limb]
    unseen = categories - 1
    for step in range(categories):
        place = categories - 1 - step
        taken = not left_out
        if Word(place) != item:
            taken = below(words, Word(unseen)) < Word(remaining)
            unseen = unseen - 1
            if taken:
                remaining = remaining - 1
        if taken:
            add_digits(rank, binomial, limbs)
        if place > 0:
            scale_digits(binomial, Word(wanted if taken else place - wanted if place > wanted else 0), Word(place), limbs)
        if taken:
            wanted = wanted - 1
    for bit in range(rank_bits):
        shift = rank_bits - 1 - bit
        fields[bit] = rank[shift // 32] >> (shift % 32) & 1


def add_digits(total: Fields, summand: Words, limbs: Count) -> None:
    """Add a number of several digits of 32 bits to another one."""
    carry = Word(0)
    for limb in range(limbs):
        carry = carry + total[limb] + summand[limb]
        total[limb] = carry & 4294967295
        carry = carry >> 32


def scale_digits(number: Fields, factor: Word, divisor: Word, limbs: Count) -> None:
    """Multiply a number of several digits of 32 bits, and divide it without remainder.

    The quotient must fit the digits; factor and divisor are below 2**31.
    """
    carry = Word(0)
    for limb in range(limbs):
        carry = carry + number[limb] * factor
        number[limb] = carry & 4294967295
        carry = carry >> 32
    rest = carry
    for step in range(limbs):
        limb = limbs - 1 - step
        rest = rest << 32 | number[limb]
        number[limb] = rest // divisor
        rest = rest % divisor
