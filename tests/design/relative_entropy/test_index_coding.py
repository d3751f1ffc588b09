"""Adaptive coding of indices: nothing is lost, and lengths are those of the formula."""

import itertools
import math

import numpy as np
import pytest

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.noise.random_words import seeded_words
from quietbits.design.relative_entropy.coding import encode_relative_entropy, index_distribution
from quietbits.design.relative_entropy.dp_rec import DpRecMechanism
from quietbits.design.relative_entropy.group_layout import GroupLayout
from quietbits.design.relative_entropy.index_coding import adaptive_code_length, decode_indices, encode_indices
from quietbits.design.relative_entropy.message import DpRecMessage


def test_every_short_sequence_comes_back_and_no_two_share_a_code() -> None:
    for count in range(5):
        sequences = list(itertools.product(range(4), repeat=count))
        codes = [encode_indices(np.array(sequence, dtype=int), 2) for sequence in sequences]
        assert [tuple(decode_indices(code, count, 2).tolist()) for code in codes] == sequences
        assert len(set(codes)) == len(codes)


@pytest.mark.parametrize(("bits", "exponent"), [(1, 1.0), (7, 1.0), (7, 6.0), (12, 3.0)])
def test_codes_have_the_length_of_the_formula(bits: int, exponent: float) -> None:
    indices = (np.random.default_rng(bits).random(2000) ** exponent * 2**bits).astype(int)
    code = encode_indices(indices, bits)
    np.testing.assert_array_equal(decode_indices(code, 2000, bits), indices)
    length = adaptive_code_length(np.bincount(indices, minlength=1 << bits))
    assert length - 1 <= 8 * len(code) <= length + 2 * math.log2(2001) + 9
    # Never much above the bits as they are: the price of not knowing that all are alike.
    assert length <= 2000 * bits + math.log2(math.comb(2000 + 2**bits - 1, 2000))


def test_formula_is_laplaces_rule() -> None:
    product, counts = 1.0, [1, 1, 1]
    for place, index in enumerate([0, 2, 2, 0, 2]):
        product *= counts[index] / (3 + place)
        counts[index] += 1
    assert adaptive_code_length([2, 0, 3]) == pytest.approx(-math.log2(product))


def test_fresh_seeds_leave_nothing_to_gain() -> None:
    # As clients of DP-REC send them: indices are uniform whatever the vector, and learning that costs.
    mechanism = DpRecMechanism(NormBall(dimension=3, norm=2.0), 2.0, GroupLayout(sizes=(3,), bits=(4,)))
    messages = mechanism.encode(np.tile([0.6, 0.8, 0.0], (3000, 1)), np.random.default_rng(0))
    indices = [DpRecMessage.from_bytes(row.tobytes(), mechanism.layout).indices[0] for row in messages]
    counts = np.bincount(indices, minlength=16)
    # Chi-square of 15 degrees of freedom: above 60 with a chance of 2e-7.
    assert ((counts - 187.5) ** 2 / 187.5).sum() < 60
    assert 8 * len(encode_indices(indices, 4)) > 4 * 3000


def test_one_seed_for_clients_that_are_alike_leaves_much() -> None:
    words = seeded_words(np.random.default_rng(1))
    indices = [encode_relative_entropy([2.0, 0.5], 7, seed=3, words=words) for _ in range(1000)]
    assert 8 * len(encode_indices(indices, 7)) < 0.85 * 7 * 1000


@pytest.mark.parametrize(
    ("indices", "bits", "message"),
    [
        ([0, 4], 2, "indices must be whole numbers from 0 to 3, got 0 to 4"),
        ([-1], 2, "indices must be whole numbers from 0 to 3, got -1 to -1"),
        ([0.5], 2, "indices must be a list of whole numbers"),
        ([[1]], 2, "indices must be a list of whole numbers"),
        ([1], 0, "bits must be a whole number from 1 to 20, got 0"),
        (np.zeros(2**14 + 1, dtype=int), 2, "number of indices must be a whole number from 0 to 16384, got 16385"),
    ],
)
def test_bad_indices_are_refused(indices: object, bits: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode_indices(indices, bits)


def test_codes_of_other_numbers_of_indices_are_refused() -> None:
    code = encode_indices([1, 2, 3, 3, 0, 1], 2)
    assert decode_indices(code, 6, 2).tolist() == [1, 2, 3, 3, 0, 1]
    for damaged, count in ((code, 5), (code[:-1], 6), (b"", 6), (code + b"\1", 6)):
        with pytest.raises(ValueError, match=f"code must be that of {count} indices of 2 bits; {len(damaged)} bytes of it leave a rest"):
            decode_indices(damaged, count, 2)
    with pytest.raises(ValueError, match="count must be a whole number from 0 to 16384, got -1"):
        decode_indices(code, -1, 2)


@pytest.mark.parametrize("counts", [[], [[1, 2]], [1, -1], [math.nan]])
def test_bad_counts_are_refused(counts: object) -> None:
    with pytest.raises(ValueError, match="counts must be a list of whole numbers from 0"):
        adaptive_code_length(counts)


@pytest.mark.parametrize(("shift", "stated"), [(0.5, 7.0), (1.0, 6.5), (2.0, 4.9), (3.0, 3.5)])
def test_what_a_seed_for_all_clients_would_save_is_what_is_stated(shift: float, stated: float) -> None:
    rng = np.random.default_rng(1)
    lengths = [adaptive_code_length(rng.multinomial(1000, index_distribution([shift, 0.0, 0.0], 7, seed))) / 1000 for seed in range(200)]
    # Five standard errors, and rounding.
    assert abs(np.mean(lengths) - stated) < 5 * np.std(lengths) / math.sqrt(200) + 0.05
