"""The cost of few bits for DP-REC.

Requirements: exact bias and error against enumeration, quadrature and the coder.
"""

import math

import numpy as np
import pandas as pd
import pytest

from quietbits.design.noise.random_words import seeded_words
from quietbits.design.relative_entropy.coding import decode_relative_entropy, encode_relative_entropy
from quietbits.figures.dp_rec.bits import BiasPoint, measure_message, with_fitted_slopes
from quietbits.solvers.divergences.dp_rec_privacy import lost_delta


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    points = [
        BiasPoint(seed=2, clip_ratio=clip_ratio, dimension=dimension, group_bits=bits, seeds=400 if bits in (1, 6) else 0)
        for clip_ratio in (0.5, 1.5)
        for dimension in (1, 3)
        for bits in range(17)
    ]
    return with_fitted_slopes(pd.DataFrame([row for point in points for row in point.run()]))


def test_no_bits_and_one_bit_by_hand(frame: pd.DataFrame) -> None:
    for (clip_ratio, dimension), own in frame.groupby(["clip_ratio", "dimension"]):
        none, single = own.iloc[0], own.iloc[1]
        # With no bits, the coder sends its only sample for every update.
        assert none["relative_bias"] == pytest.approx(1.0)
        assert none["squared_error"] == pytest.approx(dimension + clip_ratio**2)
        # The mean of two samples is half their difference D times tanh(c D / 2), with D from N(0, 2). Both samples have the same prior
        # probability.
        points, step = np.linspace(-20, 20, 20_001, retstep=True)
        density = np.exp(-(points**2) / 4) / math.sqrt(4 * math.pi)
        mean = float(points / 2 * np.tanh(clip_ratio * points / 2) @ density) * step
        assert single["relative_bias"] == pytest.approx(1 - mean / clip_ratio, abs=1e-6)
        assert single["squared_error"] == pytest.approx(dimension + clip_ratio**2 - 2 * clip_ratio * mean, abs=1e-6)


def test_the_bias_vanishes_as_one_over_the_number_of_samples(frame: pd.DataFrame) -> None:
    many = frame[frame["group_bits"] == 16]
    assert many["relative_bias"].to_numpy() == pytest.approx(many["leading_bias"].to_numpy(), rel=5e-3)
    assert (many["squared_error"] / many["dimension"]).to_numpy() == pytest.approx(1.0, abs=1e-3)
    assert many["relative_error"].to_numpy() == pytest.approx(many["floor"].to_numpy(), rel=1e-3)
    assert frame["fitted_slope"].between(-1.001, -0.95).all()
    assert frame["relative_bias"].between(0, 1 + 1e-9).all()
    # At the lemma's bits, coding loses at most its part of delta.
    for _, row in many.iterrows():
        assert lost_delta(row["clip_ratio"], 1, math.ceil(row["lemma_bits"])) <= row["lost"]
        assert lost_delta(row["clip_ratio"], 1, math.ceil(row["lemma_bits"]) - 1) > row["lost"]


def test_measured_messages_are_as_computed(frame: pd.DataFrame) -> None:
    measured = frame[frame["seeds"] > 0]
    assert len(measured) == 8
    assert frame.loc[frame["seeds"] == 0, "measured_relative_bias"].isna().all()
    # Each of 16 numbers is within 5 standard errors, estimated from 400 seeds.
    for name in ("relative_bias", "squared_error"):
        gaps = (measured[f"measured_{name}"] - measured[name]) / measured[f"measured_{name}_error"]
        assert gaps.abs().max() < 5
    # The test has power: it detects the bias of one bit.
    one_bit = measured[measured["group_bits"] == 1]
    assert (one_bit["measured_relative_bias"] > 5 * one_bit["measured_relative_bias_error"]).all()


def test_indices_drawn_by_the_coder_have_the_averages_over_the_index() -> None:
    result = measure_message(1.2, dimension=2, group_bits=3, seeds=750, rng=np.random.default_rng(1))
    update = np.array([1.2, 0.0])
    words = seeded_words(np.random.default_rng(2))
    decoded = np.stack([decode_relative_entropy(encode_relative_entropy(update, 3, seed, words), 2, seed) for seed in range(1500)])
    squares = np.sum((decoded - update) ** 2, axis=1)
    along = 1 - decoded[:, 0] / 1.2
    for value, draws, error in (
        (result.relative_bias, along, result.relative_bias_error),
        (result.squared_error, squares, result.squared_error_error),
    ):
        assert abs(draws.mean() - value) < 5 * math.hypot(draws.std() / math.sqrt(1500), error)


def test_too_few_small_biases_have_no_slope() -> None:
    rows = [row for bits in range(3) for row in BiasPoint(seed=0, clip_ratio=1.0, dimension=1, group_bits=bits).run()]
    few = with_fitted_slopes(pd.DataFrame(rows))
    assert few["fitted_slope"].isna().all()
    assert (few["seeds"] == 0).all()


def test_faults() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"clip_ratio must be .*, got 4"):
        measure_message(4.0, dimension=2, group_bits=3, seeds=10, rng=rng)
    with pytest.raises(ValueError, match=r"seeds must be .*, got 1"):
        measure_message(1.0, dimension=2, group_bits=3, seeds=1, rng=rng)
