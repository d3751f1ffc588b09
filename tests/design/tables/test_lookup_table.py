import math
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from quietbits.design.noise.random_words import secure_words
from quietbits.design.tables import lookup_table as module
from quietbits.design.tables.certificate import certified_table
from quietbits.design.tables.lookup_table import LookupTable, letter_guide
from quietbits.design.tables.mvu import design_mvu
from quietbits.design.tables.provenance import record_provenance
from quietbits.design.tables.randomised_response import bitwise_randomised_response, generalised_randomised_response
from quietbits.shown import percent_up


def table_of(weights: np.ndarray, alphabet: list[Fraction], interval: tuple[float, float] = (0.0, 1.0)) -> LookupTable:
    return certified_table(
        mechanism="mvu",
        epsilon=20.0,
        metric=None,
        alphabet=tuple(alphabet),
        total=int(weights[0].sum()),
        weights=weights,
        interval=interval,
        provenance=record_provenance("by hand", 0, 0.0),
    )


@st.composite
def random_tables(draw: st.DrawFn) -> LookupTable:
    """Return tables of random weights and letters, which need not be private or unbiased."""
    bits_in, bits_out, total_bits = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(4, 20))
    rows, letters = 2**bits_in, 2**bits_out
    cuts = st.lists(st.integers(0, 2**total_bits), min_size=letters - 1, max_size=letters - 1).map(sorted)
    weights = np.array([np.diff([0, *draw(cuts), 2**total_bits]) for _ in range(rows)])
    fractions = st.fractions(min_value=-5, max_value=5, max_denominator=1000)
    alphabet = sorted(draw(st.lists(fractions, min_size=letters, max_size=letters)))
    low = draw(st.floats(-10, 10))
    return table_of(weights, alphabet, (low, low + draw(st.floats(0.1, 10))))


def exact_moments(table: LookupTable, value: float) -> tuple[float, float]:
    """Return mean and variance of decode(encode(value)), by enumeration."""
    low, high = (Fraction(end) for end in table.interval)
    position = (Fraction(value) - low) / (high - low) * (len(table.weights) - 1)
    row = min(math.floor(position), len(table.weights) - 2)
    outcomes = [
        (share * Fraction(int(weight), table.total), low + (high - low) * letter)
        for index, share in ((row, 1 - (position - row)), (row + 1, position - row))
        for weight, letter in zip(table.weights[index], table.alphabet, strict=True)
    ]
    mean = sum(chance * number for chance, number in outcomes)
    return float(mean), float(sum(chance * (number - mean) ** 2 for chance, number in outcomes))


@settings(max_examples=30)
@given(random_tables(), st.floats(0, 1))
def test_variance_agrees_with_enumeration_on_and_off_the_grid(table: LookupTable, share: float) -> None:
    low, high = table.interval
    grid = np.clip(low + (high - low) * np.arange(len(table.weights)) / (len(table.weights) - 1), low, high)
    values = np.append(grid, min(low + share * (high - low), high))
    expected = [exact_moments(table, float(value))[1] for value in values]
    assert table.variance(values) == pytest.approx(expected, rel=1e-9, abs=1e-9 * (high - low) ** 2)


@settings(max_examples=30)
@given(random_tables(), st.integers(0, 2**64 - 1), st.floats(-0.2, 1.2), st.integers(0, 2**64 - 1))
def test_letters_follow_from_the_words_as_documented(table: LookupTable, table_word: int, share: float, dither_word: int) -> None:
    low, high = table.interval
    value = low + share * (high - low)
    position = (min(max(value, low), high) - low) / (high - low) * (len(table.weights) - 1)
    row = math.floor(position) + ((dither_word >> 11) * 2.0**-53 < position - math.floor(position))
    draw = table_word >> (64 - (table.total.bit_length() - 1))
    letter = next(j for j, reached in enumerate(np.cumsum(table.weights[row])) if draw < reached)
    words = np.array([dither_word], np.uint64), np.array([table_word], np.uint64)
    assert table.letters_from_words([value], *words) == [letter]
    assert table.weights[row, letter] > 0


def test_every_draw_of_a_small_table_counts_once() -> None:
    # The total is 2**4, so the sixteen values of the upper four bits must give each letter exactly as often as its weight.
    weights = np.array([[0, 5, 10, 1], [4, 4, 4, 4]])
    table = table_of(weights, [Fraction(j) for j in range(4)])
    words = np.arange(16, dtype=np.uint64) << np.uint64(60)
    for row in (0, 1):
        letters = table.letters_from_words(np.full(16, float(row)), np.zeros(16, np.uint64), words)
        assert np.bincount(letters, minlength=4).tolist() == weights[row].tolist()


@pytest.mark.parametrize("total_bits", [7, 20, 62])
@pytest.mark.parametrize("crowded", [1.0, 0.01])
def test_letters_are_right_on_either_side_of_every_cumulative_weight(total_bits: int, crowded: float) -> None:
    # In crowded rows, the first 63 of the 64 letters share a hundredth of the row, and many of them one cell of the guide.
    rng = np.random.default_rng(9)
    ends = np.sort((rng.random((4, 63)) * crowded * 2**total_bits).astype(np.int64), axis=1)
    weights = np.diff(ends, axis=1, prepend=0, append=2**total_bits)
    table = table_of(weights, [Fraction(j) for j in range(64)])
    draws = np.unique(np.clip(np.concatenate([(ends + shift).ravel() for shift in (-1, 0, 1)]), 0, 2**total_bits - 1))
    words = draws.astype(np.uint64) << np.uint64(64 - total_bits)
    for row in range(4):
        letters = table.letters_of_rows(np.full(len(words), row), words)
        assert letters.tolist() == np.searchsorted(ends[row], draws, side="right").tolist()


@pytest.mark.parametrize("value", [-1.0, -0.3, 0.0, 0.123, 1.0])
@pytest.mark.parametrize("bits", [1, 3])
def test_draws_follow_the_exact_distribution(value: float, bits: int) -> None:
    table = bitwise_randomised_response(2.0, bits, interval=(-1.0, 1.0))
    position = (value + 1) / 2 * (2**bits - 1)
    row = min(int(position), 2**bits - 2)
    chances = (1 - (position - row)) * table.probabilities[row] + (position - row) * table.probabilities[row + 1]
    draws = 200_000
    counts = np.bincount(table.encode(np.full(draws, value), np.random.default_rng(1)), minlength=2**bits)
    statistic = ((counts - draws * chances) ** 2 / (draws * chances)).sum()
    # Over ten such tests, a fresh seed would make one fail in one run of a hundred.
    assert statistic < chi2.isf(1e-3, 2**bits - 1)


def test_secure_draws_follow_the_exact_distribution() -> None:
    table = generalised_randomised_response(1.0, 2)
    draws = 100_000
    letters = table.encode(np.full(draws, 1 / 3), secure_words)
    expected = draws * table.probabilities[1]
    counts = np.bincount(letters, minlength=4)
    # Secure words have no seed: the test fails by chance in one run of 10**9.
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-9, 3)
    assert letters.dtype == np.uint8


def test_two_secure_encodings_differ() -> None:
    table = generalised_randomised_response(0.5, 3)
    values = np.full(1000, 0.5)
    assert (table.encode(values, secure_words) != table.encode(values, secure_words)).any()


def test_encoding_is_repeatable_and_keeps_shapes() -> None:
    table = generalised_randomised_response(1.0, 3)
    values = np.linspace(0, 1, 70_000).reshape(2, -1, 7)
    letters = table.encode(values, np.random.default_rng(3))
    assert letters.shape == values.shape
    assert (letters == table.encode(values, np.random.default_rng(3))).all()
    assert (letters != table.encode(values, np.random.default_rng(4))).any()
    assert table.encode([], np.random.default_rng(3)).shape == (0,)
    assert table.decode([]).shape == (0,)
    assert table.encode(0.5, np.random.default_rng(3)).shape == ()


def test_decoded_averages_are_unbiased() -> None:
    table = generalised_randomised_response(3.0, 3, interval=(-2.0, 5.0))
    values = np.random.default_rng(0).uniform(-2.0, 5.0, 400_000)
    estimate = table.decode(table.encode(values, np.random.default_rng(5))).mean()
    deviation = math.sqrt(table.variance(values).sum()) / len(values)
    # The margin is six standard deviations: a fresh seed would fail in one run of 10**8.
    assert abs(estimate - values.mean()) < 6 * deviation


def test_values_outside_the_interval_count_as_its_ends() -> None:
    table = generalised_randomised_response(1.0, 3, interval=(0.0, 10.0))
    inside, outside = np.array([0.0, 10.0]), np.array([-1e308, 1e308])
    assert (table.variance(outside) == table.variance(inside)).all()
    words = np.array([5, 7], np.uint64) << np.uint64(50)
    assert (table.letters_from_words(outside, words, words) == table.letters_from_words(inside, words, words)).all()


def test_decoded_letters_are_the_exact_ones_rounded_once() -> None:
    table = generalised_randomised_response(1.0, 3, interval=(-1.0, 2.0))
    assert table.decode(np.arange(8)).tolist() == [float(-1 + 3 * letter) for letter in table.alphabet]


def test_letters_take_the_smallest_unsigned_type() -> None:
    assert generalised_randomised_response(1.0, 8).encode([0.5], np.random.default_rng(0)).dtype == np.uint8
    assert generalised_randomised_response(1.0, 9).encode([0.5], np.random.default_rng(0)).dtype == np.uint16


def test_another_interval_scales_the_variance_and_leaves_the_certificate() -> None:
    table = generalised_randomised_response(1.0, 3)
    wide = table.with_interval(10.0, 14.0)
    assert wide.variance(12.0) == pytest.approx(16 * table.variance(0.5))
    assert wide.certificate == table.certificate
    assert wide.bits_per_client == 3.0
    assert wide.guarantee.epsilon == 1.0


def test_weights_cannot_be_written_to() -> None:
    table = generalised_randomised_response(1.0, 1)
    with pytest.raises(ValueError, match="read-only"):
        table.weights[0, 0] = 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers_are_refused(bad: float) -> None:
    table = generalised_randomised_response(1.0, 3)
    message = "values must hold finite numbers only, got"
    with pytest.raises(ValueError, match=message):
        table.encode([0.5, bad], np.random.default_rng(0))
    with pytest.raises(ValueError, match=message):
        table.encode([bad], secure_words)
    with pytest.raises(ValueError, match=message):
        table.variance(bad)


@pytest.mark.parametrize("bad", [[-1], [8], [0.5]])
def test_indices_that_are_no_letters_are_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="indices must be"):
        generalised_randomised_response(1.0, 3).decode(bad)


def test_an_empty_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="interval must be two finite numbers"):
        generalised_randomised_response(1.0, 3).with_interval(1.0, 0.0)


def test_rows_are_whole_numbers() -> None:
    table = generalised_randomised_response(1.0, 1)
    with pytest.raises(ValueError, match="rows must be whole numbers, got an array of float64"):
        table.letters_of_rows([0.0, 1.0], np.random.default_rng(0))
    for row in (-1, len(table.weights)):
        with pytest.raises(ValueError, match=f"rows must be from 0 to {len(table.weights) - 1}, got 0 to {row}|got -1 to 0"):
            table.letters_of_rows([0, row], np.zeros(2, dtype=np.uint64))


def test_a_frame_has_one_row_for_each_input_and_letter() -> None:
    table = table_of(np.array([[3, 1], [2, 2], [1, 3], [0, 4]]), [Fraction(-1, 2), Fraction(2)], (-1.0, 5.0))
    frame = table.to_frame()
    assert frame["input"].tolist() == [-1.0, -1.0, 1.0, 1.0, 3.0, 3.0, 5.0, 5.0]
    assert frame["letter"].tolist() == [0, 1] * 4
    assert frame["decoded"].tolist() == [-4.0, 11.0] * 4
    assert frame["weight"].tolist() == [3, 1, 2, 2, 1, 3, 0, 4]
    assert frame["probability"].tolist() == [0.75, 0.25, 0.5, 0.5, 0.25, 0.75, 0.0, 1.0]


def test_the_variance_between_inputs_is_that_of_the_mixture_of_their_rows() -> None:
    table = table_of(np.array([[12, 4], [11, 5], [6, 10], [1, 15]]), [Fraction(-1, 2), Fraction(2)], (-1.0, 5.0))
    values = np.array([-1.0, -0.5, 0.75, 1.5, 2.9, 3.5, 4.75, 5.0])
    letters = np.array([-4.0, 11.0])
    for value, variance in zip(values, table.variance(values), strict=True):
        lower = min(int((value + 1) / 2), 2)
        share = (value + 1) / 2 - lower
        row = ((1 - share) * table.weights[lower] + share * table.weights[lower + 1]) / 16
        assert variance == pytest.approx(row @ letters**2 - (row @ letters) ** 2, rel=1e-12)


def test_no_rows_have_no_letters_and_the_certificate_says_whether_it_has_a_bound() -> None:
    table = table_of(np.array([[3, 1], [1, 3]]), [Fraction(-1, 2), Fraction(3, 2)])
    assert table.letters_of_rows([], np.zeros(0, dtype=np.uint64)).shape == (0,)
    # Two letters have a bound in closed form.
    assert table.certificate.summary.endswith("; no table of as many letters is more than 364,000,000 times better")
    biased = table_of(np.array([[3, 1], [1, 3]]), [Fraction(0), Fraction(1)])
    assert biased.certificate.summary.endswith("; no proven lower bound")
    bounded = design_mvu(1.0, 2, 1)
    gap = bounded.certificate.optimality_gap
    assert gap is not None
    assert bounded.gaps == f"no 1-bit table is more than 0.0001 % better; no table of any size more than {percent_up(gap)}"
    assert bounded.certificate.summary.endswith(f"no table of any size more than {percent_up(gap)}")
    assert not {"dual", "letters_proof"} & set(table.certificate.to_frame().columns)
    assert "dual" not in table.certificate.to_frame().columns
    assert table.certificate.to_frame()["mean_variance"].tolist() == [0.75]


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
    # The table looks up words in parts of this size.
    monkeypatch.setattr(module, "PART", part)
    weights = rows_of(kind, inputs, letters, total_bits)
    rng = np.random.default_rng(3)
    rows = rng.integers(inputs, size=600)
    words = rng.integers(2**64, size=600, dtype=np.uint64)
    cumulative = [list(accumulate(row)) for row in weights.tolist()]
    # Half of the words are the first and the last draw of a letter, with random lower bits.
    for place in range(0, 600, 2):
        edge = cumulative[rows[place]][int(rng.integers(letters))] - int(rng.integers(2))
        low = int(rng.integers(2 ** (64 - total_bits)))
        words[place] = (min(max(edge, 0), 2**total_bits - 1) << (64 - total_bits)) + low
    expected = [bisect_right(cumulative[row], word >> (64 - total_bits)) for row, word in zip(rows.tolist(), words.tolist(), strict=True)]
    assert letter_guide(weights, 2**total_bits).letters_of(rows, words).tolist() == expected


def test_a_letter_that_always_comes_is_found_for_every_word() -> None:
    # No cell is crowded, and letters of weight zero stand before and after the used letter.
    for weights in ([[0, 4], [0, 4]], [[4, 0], [4, 0]], [[0, 0, 4, 0], [0, 0, 4, 0]]):
        letter = weights[0].index(4)
        words = np.arange(8, dtype=np.uint64) << np.uint64(61)
        assert letter_guide(np.array(weights), 4).letters_of(np.ones(8, dtype=np.int64), words).tolist() == [letter] * 8


def test_letters_of_no_weight_in_every_cell_are_never_drawn() -> None:
    # Two letters end in each of the two cells.
    words = np.array([0, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)
    assert letter_guide(np.array([[1, 0, 1, 0]] * 2), 2).letters_of(np.ones(4, dtype=np.int64), words).tolist() == [0, 0, 2, 2]
