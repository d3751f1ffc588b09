"""Clients that claim constant time have no step that depends on a secret; the analysis sees every kind of such steps."""

from collections.abc import Callable

import pytest
from deployed_clients import deployments

from quietbits.design.deployment.client_program import ClientProgram
from quietbits.design.deployment.clients.kinds import Count, Fields, Number, Source, Word, Words, new_fields, select
from quietbits.design.deployment.translation.client_description import ClientDescription
from quietbits.design.deployment.translation.secret_flow import Leak, leaks_of
from quietbits.design.deployment.translation.typed_program import TranslationError, typed_program

CLAIMING = {name: deployment.program.constant_time for name, deployment in deployments().items() if deployment.program.constant_time}


@pytest.mark.parametrize("name", CLAIMING)
def test_clients_that_claim_constant_time_have_no_leak(name: str) -> None:
    program = CLAIMING[name]
    assert program is not None
    assert leaks_of(typed_program(program.client)) == ()


@pytest.mark.parametrize("name", deployments())
def test_the_other_clients_have_leaks(name: str) -> None:
    assert leaks_of(typed_program(deployments()[name].program.client))


def branching(item: Word, words: Source, fields: Fields, *, high: Word) -> None:
    if item == high:
        fields[0] = words.next()


def choosing(item: Word, words: Source, fields: Fields, *, high: Word) -> None:
    drawn = words.next() < high
    fields[0] = 1 if drawn and item == high else Word(0)


def repeating(item: Word, words: Source, fields: Fields, *, high: Word) -> None:
    kept = new_fields(1)
    word = Word(0)
    for _ in range(3):
        # The loop's end is secret from its second round on, by way of a sequence.
        while word < high:
            word = word + 1
        kept[0] = item
        word = kept[0]
    fields[0] = words.next()


def counting(item: Word, words: Source, fields: Fields, *, high: Word) -> None:
    for place in range(Count(item)):
        fields[0] = Word(place) + words.next() + high


def looking_up(item: Word, words: Source, fields: Fields, *, table: Words) -> None:
    fields[0] = table[Count(item)] + words.next()


def writing_to(item: Word, words: Source, fields: Fields, *, high: Word) -> None:
    fields[Count(words.next() & 1)] = item + high


def dividing(item: Word, words: Source, fields: Fields, *, high: Word) -> None:
    fields[0] = high // (item + 1) + remainder(words.next(), high)


def remainder(word: Word, high: Word) -> Word:
    """Return a remainder, whose time may depend on the word."""
    return word % high


def shifting(item: Word, words: Source, fields: Fields, *, high: Word) -> None:
    fields[0] = high << Count(item & 7) ^ words.next()


def safe(item: Word, words: Source, public_words: Source, fields: Fields, *, high: Word, table: Words) -> None:
    """Branch, divide and look up by public words and constants alone."""
    public_word = public_words.next()
    place = Count(public_word % high)
    total = table[place] if public_word > 3 else Word(place)
    while total > high:
        total = total // 2
    held = Word(item == total)
    fields[0] = held & words.next() | Word(select(item > high, 1.0, 0.0))


@pytest.mark.parametrize(
    ("client", "leaks"),
    [
        (branching, [("branch", "item == high")]),
        (choosing, [("branch", "drawn"), ("branch", "drawn and item == high")]),
        (repeating, [("loop", "word < high")]),
        (counting, [("loop", "Count(item)")]),
        (looking_up, [("index", "table[Count(item)]")]),
        (writing_to, [("index", "fields[Count(words.next() & 1)]")]),
        (dividing, [("division", "high // (item + 1)"), ("division", "word % high")]),
        (shifting, [("shift", "high << Count(item & 7)")]),
        (safe, []),
    ],
)
def test_every_kind_of_leak_is_seen(client: Callable[..., None], leaks: list[tuple[str, str]]) -> None:
    seen = leaks_of(typed_program(client))
    assert {(leak.kind, leak.text) for leak in seen} == set(leaks)
    assert {leak.function for leak in seen} <= {client.__name__, "remainder"}


def constant_number(value: Number, words: Source, fields: Fields, *, low: Number) -> None:
    fields[0] = words.next() if value > low else 0


def test_a_claim_that_does_not_hold_is_not_translated() -> None:
    program = ClientProgram(constant_number, {"low": 0.0}, 8, constant_time=ClientProgram(constant_number, {"low": 0.0}, 8))
    description = ClientDescription("toy", "toy", "toy", "none", "toy", "00" * 32, "1", "number", None, None, program)
    with pytest.raises(TranslationError, match="constant_number must take the same steps for all inputs and words"):
        description.functions_in_constant_time()
    assert leaks_of(typed_program(constant_number)) == (Leak("constant_number", "branch", "value > low"),)
