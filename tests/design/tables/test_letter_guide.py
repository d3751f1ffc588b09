"""Letters of words: the first cumulative weight above the word's upper bits, by whole numbers, for every shape of a guide."""

from bisect import bisect_right
from itertools import accumulate

import numpy as np
import pytest

from quietbits.design.tables import letter_guide as module
from quietbits.design.tables.letter_guide import letter_guide


def rows_of(kind: str, inputs: int, letters: int, total_bits: int) -> np.ndarray:
    rng = np.random.default_rng(letters)
    sizes = {"alike": np.ones(letters), "spread": rng.random(letters) ** 20, "dust": np.eye(letters)[letters // 2]}[kind]
    rows = []
    for _ in range(inputs):
        row = [int(size / sizes.sum() * (2**total_bits - letters)) + (kind != "dust") for size in rng.permutation(sizes)]
        row[int(np.argmax(row))] += 2**total_bits - sum(row)
        rows.append(row)
    return np.array(rows, dtype=np.int64)


@pytest.mark.parametrize("kind", ["alike", "spread", "dust"])
@pytest.mark.parametrize(("inputs", "letters", "total_bits"), [(2, 2, 1), (4, 2, 62), (3, 16, 5), (8, 16, 40), (2, 512, 62), (512, 4, 20)])
@pytest.mark.parametrize("part", [7, 10**6])
def test_letters_are_those_of_a_search(
    monkeypatch: pytest.MonkeyPatch, kind: str, inputs: int, letters: int, total_bits: int, part: int
) -> None:
    if kind != "dust" and 2**total_bits < letters:
        pytest.skip("too few units for all letters")
    # Words are looked up in parts.
    monkeypatch.setattr(module, "PART", part)
    weights = rows_of(kind, inputs, letters, total_bits)
    rng = np.random.default_rng(3)
    rows = rng.integers(inputs, size=600)
    words = rng.integers(2**64, size=600, dtype=np.uint64)
    cumulative = [list(accumulate(row)) for row in weights.tolist()]
    # Half of the words are at the first and the last draw of a letter, with any bits below.
    for place in range(0, 600, 2):
        edge = cumulative[rows[place]][int(rng.integers(letters))] - int(rng.integers(2))
        low = int(rng.integers(2 ** (64 - total_bits)))
        words[place] = (min(max(edge, 0), 2**total_bits - 1) << (64 - total_bits)) + low
    expected = [bisect_right(cumulative[row], word >> (64 - total_bits)) for row, word in zip(rows.tolist(), words.tolist(), strict=True)]
    assert letter_guide(weights, 2**total_bits).letters_of(rows, words).tolist() == expected


def test_a_letter_that_always_comes_is_found_for_every_word() -> None:
    # No cell is crowded, and letters of no weight stand before and after it.
    for weights in ([[0, 4], [0, 4]], [[4, 0], [4, 0]], [[0, 0, 4, 0], [0, 0, 4, 0]]):
        letter = weights[0].index(4)
        words = np.arange(8, dtype=np.uint64) << np.uint64(61)
        assert letter_guide(np.array(weights), 4).letters_of(np.ones(8, dtype=np.int64), words).tolist() == [letter] * 8


def test_letters_of_no_weight_in_every_cell_are_never_drawn() -> None:
    # Two letters end in each of the two cells.
    words = np.array([0, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)
    assert letter_guide(np.array([[1, 0, 1, 0]] * 2), 2).letters_of(np.ones(4, dtype=np.int64), words).tolist() == [0, 0, 2, 2]
