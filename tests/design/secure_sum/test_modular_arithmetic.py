"""Messages modulo M are reduced if they may reach M, and sums have the right shape."""

import numpy as np
import pytest

from quietbits.design.secure_sum import modular_arithmetic
from quietbits.design.secure_sum.modular_arithmetic import aggregate_residues, messages_in_parts, messages_modulo


@pytest.mark.parametrize("modulus", [8, 256, 2**40])
def test_messages_are_reduced_unless_they_are_below_the_modulus(monkeypatch: pytest.MonkeyPatch, modulus: int) -> None:
    # A batch has three clients.
    monkeypatch.setattr(modular_arithmetic, "MADE_TOGETHER", 6)
    inputs = np.arange(20.0).reshape(10, 2)

    def write(rows: np.ndarray, messages: np.ndarray) -> None:
        messages[...] = (rows * modulus).astype(np.int64) - 3

    messages = messages_in_parts(inputs, 2, modulus, write)
    assert messages.tolist() == [[modulus - 3] * 2] * 10
    below = messages_in_parts(inputs, 2, 7, lambda rows, places: np.copyto(places, rows % 7, casting="unsafe"), below=True)
    assert below.tolist() == (inputs % 7).astype(int).tolist()


@pytest.mark.parametrize(
    ("modulus", "word"), [(255, np.uint8), (256, np.uint8), (257, np.uint16), (2**16, np.uint16), (2**16 + 1, np.uint32)]
)
def test_words_are_the_narrowest_that_hold_the_largest_residue(modulus: int, word: type) -> None:
    messages = messages_modulo([-1, modulus, modulus + 1], modulus)
    assert messages.dtype == word
    assert messages.tolist() == [modulus - 1, 0, 1]


def test_aggregates_of_another_shape_are_refused() -> None:
    for aggregate in ([8, 10, 1], [[8, 10]], 8):
        with pytest.raises(ValueError, match=r"aggregate must have the shape \(2,\), got"):
            aggregate_residues(aggregate, 2, 5)
