"""Tests of the mechanism: messages have the stated length, and estimates the stated errors."""

import inspect
import itertools
import math

import mpmath
import numpy as np
import pytest

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.noise.random_words import secure_words
from quietbits.design.relative_entropy.coding import decode_groups, index_distribution
from quietbits.design.relative_entropy.dp_rec import DpRecMechanism, DpRecMessage, message_bytes
from quietbits.design.relative_entropy.group_layout import GroupLayout, uniform_layout
from quietbits.solvers.accounting.renyi_curve import RenyiCurve

LAYOUT = GroupLayout(sizes=(3, 1, 2), group_bits=(7, 1, 4))


def small_mechanism(clip_ratio: float = 1.0, clip_norm: float = 2.0) -> DpRecMechanism:
    return DpRecMechanism(NormBall(dimension=6, norm=2.0, clip_norm=clip_norm), clip_ratio, LAYOUT)


def test_every_message_survives_packing() -> None:
    layout = GroupLayout(sizes=(1, 1, 1), group_bits=(2, 1, 3))
    for indices in itertools.product(range(4), range(2), range(8)):
        for seed in (0, 1, 2**63, 2**64 - 1):
            packed = DpRecMessage(seed, indices).to_bytes(layout)
            assert len(packed) == message_bytes(layout) == 9
            assert DpRecMessage.from_bytes(packed, layout) == DpRecMessage(seed, indices)
    assert DpRecMessage(2**64 - 1, (3, 0, 1)).to_bytes(layout) == b"\xff" * 8 + bytes([0b11000100])


@pytest.mark.parametrize(("groups", "bits", "length"), [(8, 1, 9), (9, 1, 10), (10, 7, 17), (4, 20, 18), (1000, 7, 883)])
def test_messages_have_the_length_that_is_reported(groups: int, bits: int, length: int) -> None:
    layout = uniform_layout(groups, groups, bits)
    mechanism = DpRecMechanism(NormBall(dimension=groups, norm=2.0), 0.5, layout)
    highest = DpRecMessage(2**64 - 1, ((1 << bits) - 1,) * groups)
    assert len(highest.to_bytes(layout)) == message_bytes(layout) == length == mechanism.bits_per_client / 8
    assert DpRecMessage.from_bytes(highest.to_bytes(layout), layout) == highest


def test_messages_that_cannot_be_one_are_refused() -> None:
    packed = DpRecMessage(5, (100, 1, 9)).to_bytes(LAYOUT)
    for damaged in (packed[:-1], packed + b"\0", b""):
        with pytest.raises(ValueError, match=f"data must have 10 bytes for this layout, got {len(damaged)}"):
            DpRecMessage.from_bytes(damaged, LAYOUT)
    with pytest.raises(ValueError, match="data must end in 4 zero bits for this layout, got 0100"):
        DpRecMessage.from_bytes(packed[:-1] + bytes([packed[-1] | 4]), LAYOUT)
    mechanism = small_mechanism()
    with pytest.raises(ValueError, match="data must have 10 bytes"):
        mechanism.aggregate(np.zeros((1, 9), dtype=np.uint8))
    for indices in ((128, 0, 0), (0, 0)):
        with pytest.raises(ValueError, match="indices must"):
            DpRecMessage(0, indices).to_bytes(LAYOUT)
    with pytest.raises(ValueError, match="seed must be a whole number from 0 to 18446744073709551615, got -1"):
        DpRecMessage(-1, ())


def test_server_decodes_what_the_message_says() -> None:
    mechanism = small_mechanism(clip_ratio=0.5)
    vectors = np.random.default_rng(0).standard_normal((4, 6))
    messages = mechanism.encode(vectors, np.random.default_rng(1))
    assert messages.shape == (4, 10)
    assert messages.dtype == np.uint8
    unpacked = [DpRecMessage.from_bytes(row.tobytes(), LAYOUT) for row in messages]
    decoded = np.array([decode_groups(message.indices, LAYOUT, message.seed, sigma=4.0) for message in unpacked])
    np.testing.assert_allclose(mechanism.decode(mechanism.aggregate(messages), 4), decoded.mean(axis=0), atol=1e-13)


def test_clients_draw_their_seeds_and_nobody_else_can() -> None:
    mechanism = small_mechanism()
    assert not {"seed", "seeds"} & inspect.signature(mechanism.encode).parameters.keys()
    same = np.tile([0.5, 0.1, 0.0, 0.0, 0.2, 0.3], (20, 1))
    for words in (np.random.default_rng(0), secure_words):
        messages = mechanism.encode(same, words)
        assert len({row[:8].tobytes() for row in messages}) == 20
    np.testing.assert_array_equal(mechanism.encode(same, np.random.default_rng(3)), mechanism.encode(same, np.random.default_rng(3)))


def test_a_seed_that_the_server_chose_would_tell_on_the_client() -> None:
    # One bit shows the sign of half a sigma; the check is the total variation between the two distributions of the index.
    def variation(seed: int) -> float:
        return float(np.abs(index_distribution([0.5], 1, seed) - index_distribution([-0.5], 1, seed)).sum() / 2)

    variations = [variation(seed) for seed in range(1000)]
    assert np.mean(variations) < 0.3
    assert max(variations) > 0.75


@pytest.mark.parametrize("clip_ratio", [0.5, 2.0])
def test_errors_and_bias_are_as_computed(clip_ratio: float) -> None:
    mechanism, clients = small_mechanism(clip_ratio), 500
    vector = np.array([1.5, -0.2, 0.1, 0.9, 0.0, 0.7])
    vectors = np.tile(vector, (clients, 1))
    messages = mechanism.encode(vectors, np.random.default_rng(5))
    decoded = np.array([mechanism.aggregate(row[None]) for row in messages])
    # Each of seven numbers is within 5 standard errors, except with a chance below 1e-6.
    errors = ((decoded - vector) ** 2).sum(axis=1)
    assert abs(errors.mean() - mechanism.variance(vectors[:1])[0]) < 5 * errors.std() / math.sqrt(clients)
    spread = decoded.std(axis=0) / math.sqrt(clients)
    assert (np.abs(decoded.mean(axis=0) - mechanism.expected(vectors[:1])[0]) < 5 * spread).all()


def test_one_message_has_a_local_guarantee() -> None:
    mechanism = small_mechanism(clip_ratio=0.5)
    guarantee = mechanism.guarantee
    # mpmath minimises the bound over a fine grid of orders, with Canonne, Kamath, Steinke's conversion.
    with mpmath.workdps(30):
        orders = [mpmath.mpf(2) + mpmath.mpf(k) / 100 for k in range(2000)]
        least = min(
            (5 * a**2 - 6 * a + 2) / (8 * (a - 1)) + mpmath.log(1 - 1 / a) - mpmath.log(mpmath.mpf("1e-5") * a) / (a - 1) for a in orders
        )
    assert float(least) <= guarantee.epsilon <= float(least) * 1.001
    # Another delta changes the stated guarantee, but no message.
    other = DpRecMechanism(small_mechanism().ball, 0.5, LAYOUT, delta=1e-3)
    assert other.guarantee.epsilon < guarantee.epsilon
    np.testing.assert_array_equal(
        other.encode(np.ones((2, 6)), np.random.default_rng(0)), mechanism.encode(np.ones((2, 6)), np.random.default_rng(0))
    )
    # Infinitely many samples would be Gaussian noise on vectors two clip norms apart.
    orders_tried = np.arange(2.0, 64.0)
    gaussian = RenyiCurve(orders_tried, 2 * orders_tried * 0.25).epsilon(1e-5).epsilon
    assert gaussian < guarantee.epsilon < 1.25 * gaussian


@pytest.mark.parametrize("clip_ratio", [0.001, 0.5, 1.5, 3.0])
@pytest.mark.parametrize("bits", [1, 2, 7])
def test_no_vector_varies_by_more_than_the_worst(clip_ratio: float, bits: int) -> None:
    mechanism = DpRecMechanism(NormBall(dimension=6, norm=2.0, clip_norm=2.0), clip_ratio, uniform_layout(6, 3, bits))
    vectors = np.concatenate([np.zeros((1, 6)), 2 * np.eye(6)[:1], np.ones((1, 6)), np.random.default_rng(0).standard_normal((3, 6))])
    assert (mechanism.variance(vectors) <= mechanism.variance_bound * (1 + 1e-12)).all()
    assert mechanism.variance_bound == pytest.approx(6 * mechanism.sigma**2 + 4)


def test_more_bits_leave_less_bias() -> None:
    vector = np.array([[0.6, 0.8]])
    shares = []
    for bits in (2, 7, 12, 20):
        mechanism = DpRecMechanism(NormBall(dimension=2, norm=2.0), 1.0, GroupLayout(sizes=(2,), group_bits=(bits,)))
        shares.append(float((mechanism.expected(vector) / vector).mean()))
    assert shares == sorted(shares)
    assert 1 - shares[2] == pytest.approx(math.e / 2**12, rel=0.02)
    assert shares[3] == pytest.approx(1, abs=3e-6)


def test_long_vectors_are_clipped_and_a_zero_vector_is_coded() -> None:
    mechanism = small_mechanism()
    vector = np.array([[3.0, 0.0, 0.0, 4.0, 0.0, 0.0]])
    messages, clipped = (mechanism.encode(row, np.random.default_rng(0)) for row in (vector, vector * 0.4))
    np.testing.assert_array_equal(messages, clipped)
    np.testing.assert_allclose(mechanism.variance(vector), mechanism.variance(vector * 0.4))
    assert mechanism.variance(np.zeros((1, 6)))[0] == pytest.approx(6 * mechanism.sigma**2)
    np.testing.assert_array_equal(mechanism.expected(np.zeros((1, 6))), np.zeros((1, 6)))
    assert mechanism.aggregate(mechanism.encode(np.zeros((1, 6)), np.random.default_rng(0))).shape == (6,)


def test_bad_mechanisms_are_refused() -> None:
    ball = NormBall(dimension=6, norm=2.0)
    with pytest.raises(ValueError, match="ball must be of norm 2 for DP-REC, got norm 1"):
        DpRecMechanism(NormBall(dimension=6, norm=1.0), 1.0, LAYOUT)
    for clip_ratio in (0.0, 3.1, math.nan):
        with pytest.raises(ValueError, match=r"clip_ratio must be a number from 0\.001 to 3, got"):
            DpRecMechanism(ball, clip_ratio, LAYOUT)
    with pytest.raises(ValueError, match=r"delta must be a number above 0 and below 1, got 1\.0"):
        DpRecMechanism(ball, 1.0, LAYOUT, delta=1.0)
    with pytest.raises(ValueError, match="layout must have the ball's dimension, 6, got 5"):
        DpRecMechanism(ball, 1.0, uniform_layout(5, 1, 7))
