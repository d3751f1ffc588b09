"""Typed programs: types of expressions, and refusals of Python that other languages would read differently.

The functions that are refused stand in this module, because a program is read from its source.
"""

# ruff: noqa: ARG001, F842
# mypy: ignore-errors

from collections.abc import Callable

import pytest

from quietbits.design.deployment.clients.draws import below, uniform
from quietbits.design.deployment.clients.items import subset_rank
from quietbits.design.deployment.clients.kinds import Count, Fields, Flag, Number, Numbers, Source, Word, Words, new_fields
from quietbits.design.deployment.clients.tables import letters_of_ball
from quietbits.design.deployment.translation.typed_program import TranslationError, typed_program


def drawn_sum(item: Word, words: Source, fields: Fields) -> None:
    fields[0] = words.next() - words.next()


def drawn_argument(item: Word, words: Source, fields: Fields) -> None:
    fields[0] = below(words, words.next())


def drawn_place(item: Word, words: Source, fields: Fields) -> None:
    fields[Count(below(words, 3))] = words.next()


def write_both(first: Fields, second: Fields) -> Word:
    first[0] = second[0]
    return first[0]


def written_sum(item: Word, words: Source, fields: Fields) -> None:
    other = new_fields(3)
    fields[0] = write_both(fields, other) + write_both(other, fields)


def drawn_condition(item: Word, words: Source, fields: Fields) -> None:
    if words.next() < item and words.next() > item:
        fields[0] = item


def divided_words(item: Word, words: Source, fields: Fields) -> None:
    fields[0] = item / 3


def whole_quotient_of_numbers(value: Number, words: Source, fields: Fields) -> None:
    fields[0] = Word(value // 3.0)


def remainder_of_numbers(value: Number, words: Source, fields: Fields) -> None:
    fields[0] = Word(value % 3.0)


def power(item: Word, words: Source, fields: Fields) -> None:
    fields[0] = item**2


def added_flags(item: Word, words: Source, fields: Fields) -> None:
    flag = item == 3
    fields[0] = Word(flag + flag)


def mixed_types(item: Word, words: Source, fields: Fields, *, number: Count) -> None:
    fields[0] = item + number


def changed_type(item: Word, words: Source, fields: Fields) -> None:
    place = 0
    place = item
    fields[0] = place


def chained_comparison(item: Word, words: Source, fields: Fields) -> None:
    fields[0] = Word(1 < item < 3)


def comparison_of_identity(item: Word, words: Source, fields: Fields) -> None:
    fields[0] = Word(item is words)


def negative_word(item: Word, words: Source, fields: Fields) -> None:
    fields[0] = -item


def added_in_place(item: Word, words: Source, fields: Fields) -> None:
    fields[0] += item


def several_targets(item: Word, words: Source, fields: Fields) -> None:
    first = second = item
    fields[0] = first + second


def pair(item: Word, words: Source, fields: Fields) -> None:
    first, second = item, item
    fields[0] = first + second


def list_of_words(item: Word, words: Source, fields: Fields) -> None:
    fields[0] = [item, item][0]


def loop_over_words(item: Word, words: Source, fields: Fields, *, table: Words) -> None:
    for word in table:
        fields[0] = word


def loop_in_steps(item: Word, words: Source, fields: Fields) -> None:
    for place in range(0, 9, 2):
        fields[place] = item


def loop_with_an_else(item: Word, words: Source, fields: Fields) -> None:
    for place in range(9):
        fields[place] = item
    else:
        fields[0] = 1


def loop_that_moves_its_end(item: Word, words: Source, fields: Fields, *, first: Count) -> None:
    end = first
    for place in range(end):
        end = end - 1
        fields[place] = item


def loop_that_moves_itself(item: Word, words: Source, fields: Fields) -> None:
    for place in range(9):
        place = place + 1
        fields[place] = item


def loop_that_ends_early(item: Word, words: Source, fields: Fields) -> None:
    for place in range(9):
        fields[place] = item
        break


def keyword_argument(item: Word, words: Source, fields: Fields) -> None:
    fields[0] = below(words, high=item)


def too_few_arguments(item: Word, words: Source, fields: Fields) -> None:
    fields[0] = below(words)


def conversion_of_two(item: Word, words: Source, fields: Fields) -> None:
    fields[0] = Word("1", 2)


def default_argument(item: Word, words: Source, fields: Fields, high: Word = 3) -> None:
    fields[0] = below(words, high)


def call_of_a_client(item: Word, words: Source, fields: Fields) -> None:
    mixed_constants(item, words, fields)


def mixed_constants(item: Word, words: Source, fields: Fields, *, high: Word) -> None:
    fields[0] = below(words, high)


def unknown_function(value: Number, words: Source, fields: Fields) -> None:
    fields[0] = Word(abs(value))


def unknown_name(item: Word, words: Source, fields: Fields) -> None:
    fields[0] = missing  # noqa: F821


def unknown_method(item: Word, words: Source, fields: Fields) -> None:
    fields[0] = item.bit_length()


def written_constant(item: Word, words: Source, fields: Fields, *, table: Words) -> None:
    table[0] = item


def words_for_numbers(item: Word, words: Source, fields: Fields, *, numbers: Numbers) -> None:
    fields[0] = write_both(fields, numbers)


def written_words(item: Word, words: Source, fields: Fields, *, table: Words) -> None:
    fields[0] = write_both(table, fields)


def number_as_condition(value: Number, words: Source, fields: Fields) -> None:
    if value:
        fields[0] = 1


def number_as_place(value: Number, words: Source, fields: Fields) -> None:
    fields[value] = 1


def raised(item: Word, words: Source, fields: Fields) -> None:
    raise ValueError(item)


def type_of_several(item: int | None, words: Source, fields: Fields) -> None:
    fields[0] = item


REFUSED = {
    drawn_sum: "draw and write in one call",
    drawn_argument: "draw and write in one call",
    drawn_place: "draw and write in one call",
    written_sum: "draw and write in one call",
    drawn_condition: "draw and write in one call",
    divided_words: "has no translation for a Word",
    whole_quotient_of_numbers: "has no translation for a Number",
    remainder_of_numbers: "has no translation for a Number",
    power: "has no translation for a Word",
    added_flags: "has no translation for a Flag",
    mixed_types: "differ in type",
    changed_type: "must be a Count",
    chained_comparison: "has no translation",
    comparison_of_identity: "has no translation",
    negative_word: "must be a Number",
    added_in_place: "AugAssign",
    several_targets: "one name at a time",
    pair: "names and elements",
    list_of_words: "has no translation",
    loop_over_words: "loop over a range",
    loop_in_steps: "steps of 1",
    loop_with_an_else: "else",
    loop_that_moves_its_end: "must not assign to end",
    loop_that_moves_itself: "must not assign to place",
    loop_that_ends_early: "Break",
    keyword_argument: "by place",
    too_few_arguments: "with 2 arguments, got 1",
    conversion_of_two: "with 1 arguments, got 2",
    default_argument: "without defaults",
    call_of_a_client: "without constants",
    unknown_function: "calls abs",
    unknown_name: "uses missing",
    unknown_method: "has no translation",
    written_constant: "must not write into table",
    words_for_numbers: "must be a Fields",
    written_words: "must be a Fields",
    number_as_condition: "must be a Flag",
    number_as_place: "must be a Count",
    raised: "Raise",
    type_of_several: "a type must be a name",
}


@pytest.mark.parametrize(("client", "reason"), REFUSED.items(), ids=lambda item: getattr(item, "__name__", ""))
def test_python_without_the_same_meaning_in_all_languages_is_refused(client: Callable[..., None], reason: str) -> None:
    with pytest.raises(TranslationError, match=reason):
        typed_program(client)


def test_functions_come_after_those_that_they_call() -> None:
    names = [function.name for function in typed_program(subset_rank)]
    assert names == ["below", "add_digits", "scale_digits", "subset_rank"]


def rebinding(value: Number, words: Source, fields: Fields) -> None:
    once = uniform(words.next())
    twice = value
    for place in range(3):
        fresh = value * 2.0
        if fresh > once:
            here = Word(place)
            fields[place] = here
        else:
            here = Word(1)
            fields[place] = here
        twice = twice + fresh
    fields[0] = Word(twice)


def test_only_variables_that_change_in_their_scope_are_rebound() -> None:
    assert typed_program(rebinding)[-1].rebound == {"twice"}
    assert typed_program(letters_of_ball)[-1].rebound == {"running", "total"}


def literals(value: Number, words: Source, fields: Fields) -> None:
    flag: Flag
    low = 0 if value > 1 else 2
    fields[low] = 1 + 2


def test_a_declaration_without_a_value_is_refused() -> None:
    with pytest.raises(TranslationError, match="AnnAssign"):
        typed_program(literals)
