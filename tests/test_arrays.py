"""Tests of distinct numbers of arrays, of flat views, and of refusals of masked values."""

import numpy as np
import pytest

from quietbits.arrays import check_unmasked, distinct, flat_view
from quietbits.design.local.message_checks import checked_messages
from quietbits.design.tables.randomised_response import generalised_randomised_response


@pytest.mark.parametrize("shape", [0, 1, 7, (30, 40)])
def test_distinct_numbers_are_those_of_numpy(shape: int | tuple[int, ...]) -> None:
    for high in (1, 5, 2**62):
        numbers = np.random.default_rng(0).integers(-high, high, shape)
        np.testing.assert_array_equal(distinct(numbers), np.unique(numbers))


def test_numbers_written_to_a_flat_view_are_never_lost() -> None:
    array = np.zeros((2, 3))
    flat_view("total", array)[4] = 1.0
    assert array.tolist() == [[0, 0, 0], [0, 1, 0]]
    for refused in (array.T, array[:, ::2]):
        with pytest.raises(ValueError, match=r"^total must be stored row by row, got strides \("):
            flat_view("total", refused)


def test_what_a_mask_withholds_is_never_taken_for_a_value() -> None:
    whole, part = np.ma.MaskedArray([1, 2, 3]), np.ma.MaskedArray([1, 2, 3], [False, True, False])
    for values in (whole, [whole, whole], [1, 2], 3.0, np.arange(3)):
        check_unmasked("values", values)
    for values, count in ((part, 1), ([whole, part, part], 2), ((part,), 1)):
        with pytest.raises(ValueError, match=f"values must be without masked values, got {count} of these"):
            check_unmasked("values", values)
    table = generalised_randomised_response(1.0, 2)
    for refused in (
        lambda: checked_messages(part, 0, 3),
        lambda: table.decode(part),
        lambda: table.letters_of_rows(part, np.zeros(3, dtype=np.uint64)),
        lambda: table.encode(part / 4, np.random.default_rng(0)),
    ):
        with pytest.raises(ValueError, match="must be without masked values, got 1 of these"):
            refused()
