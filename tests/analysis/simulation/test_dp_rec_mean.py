"""Tests of DP-REC's mean.

Points under test: the law of a message against coded messages, and errors against enumeration and references.
"""

import math

import numpy as np
import pytest
from scipy import stats

from quietbits.analysis.simulation.dp_rec_law import draw_decoded, least_error_clip_ratio, worst_mean_error
from quietbits.analysis.simulation.dp_rec_mean import equal_coordinates, simulate_dp_rec_mean, two_level_chunks
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.relative_entropy.dp_rec import DpRecMechanism
from quietbits.design.relative_entropy.group_layout import GroupLayout, uniform_layout
from quietbits.solvers.divergences.importance_resampling import resampled_moments


def mechanism(clip_ratio: float, sizes: tuple[int, ...], bits: tuple[int, ...], clip_norm: float = 1.0) -> DpRecMechanism:
    return DpRecMechanism(NormBall(sum(sizes), 2.0, clip_norm), clip_ratio, GroupLayout(sizes, bits))


def vectors(clients: int, dimension: int, length: float, seed: int) -> np.ndarray:
    directions = np.random.default_rng(seed).standard_normal((clients, dimension))
    return length * directions / np.linalg.norm(directions, axis=1, keepdims=True)


# Tests of the law of a message


@pytest.mark.parametrize("clip_ratio", [0.3, 1.0, 3.0])
def test_the_law_agrees_with_the_mechanism_s_own_expectations(clip_ratio: float) -> None:
    coder = mechanism(clip_ratio, (3, 1, 2), (1, 4, 9), clip_norm=2.0)
    inputs = np.concatenate([vectors(3, 6, 1.3, 1), vectors(1, 6, 5.0, 2), np.zeros((1, 6)), [[0.0, 0.0, 0.0, 1.0, 0.0, 0.0]]])
    law = coder.law(inputs)
    assert law.bias == pytest.approx(coder.expected(inputs) - coder.ball.clip(inputs), abs=1e-6 * coder.sigma)
    assert law.variance == pytest.approx(coder.variance(inputs), rel=1e-6)


@pytest.mark.parametrize("bits", [1, 5])
def test_draws_from_the_law_are_distributed_as_messages_that_are_coded(bits: int) -> None:
    # Two Kolmogorov-Smirnov tests compare 1000 draws of each kind, one per projection; each fails by chance with probability 1e-4.
    coder = mechanism(1.6, (3, 2), (bits, bits))
    vector = np.array([0.6, -0.2, 0.1, 0.5, 0.4])
    inputs = np.tile(vector, (1000, 1))
    rng = np.random.default_rng(bits)
    coded = np.stack([coder.aggregate(message[None, :]) for message in coder.encode(inputs, rng)])
    drawn = draw_decoded(coder, inputs, rng)
    across = np.array([0.2, 0.6, 0.0, 0.0, 0.0])
    for direction in (vector, across, np.where(np.arange(5) < 3, vector, 0.0)):
        assert stats.ks_2samp(coded @ direction, drawn @ direction).pvalue > 1e-4
    # The test has power: uncoded samples fail it.
    assert stats.ks_2samp(coded @ vector, coder.sigma * rng.standard_normal((1000, 5)) @ vector).pvalue < 1e-4


def test_draws_have_the_predicted_mean_and_variance() -> None:
    coder = mechanism(2.0, (4, 4), (3, 6))
    inputs = np.tile(vectors(1, 8, 0.9, 3), (40_000, 1))
    law = coder.law(inputs[:1])
    drawn = draw_decoded(coder, inputs, np.random.default_rng(4))
    errors = drawn - inputs[0] - law.bias[0]
    # The eight coordinates and the variance are each within 5 standard errors: the test fails with probability 5e-6.
    assert np.abs(errors.mean(axis=0)).max() <= 5 * errors.std(axis=0).max() / 200
    squares = np.sum(errors**2, axis=1)
    assert abs(squares.mean() - law.variance[0]) <= 5 * squares.std() / 200
    # The test would detect a missing bias.
    assert np.abs(drawn.mean(axis=0) - inputs[0]).max() > 10 * errors.std(axis=0).max() / 200


def test_the_best_clip_ratio_is_the_best_on_a_grid() -> None:
    for groups, bits in ((1, 1), (1, 7), (6, 3), (2, 14)):
        best = least_error_clip_ratio(200, groups, bits, 10_000)
        least = worst_mean_error(best, 200, groups, bits, 10_000)
        assert all(worst_mean_error(ratio, 200, groups, bits, 10_000) >= least * (1 - 1e-6) for ratio in np.geomspace(0.01, 3.0, 60))


def test_the_worst_error_is_that_of_equal_vectors_with_equal_groups() -> None:
    coder = mechanism(1.2, (2, 2), (4, 4))
    inputs = np.tile([math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)], (50, 1))
    law = coder.law(inputs)
    error = np.sum(law.bias.mean(axis=0) ** 2) + law.variance.sum() / 50**2
    assert worst_mean_error(1.2, dimension=4, groups=2, bits=4, clients=50) == pytest.approx(error, rel=1e-9)


# Tests of vectors, and of the simulated mean


def test_vectors_of_half_of_the_clients_are_near_equal_coordinates() -> None:
    chunks = list(two_level_chunks(3001, 200, np.random.default_rng(5)))
    assert [len(chunk) for chunk in chunks] == [1310, 1310, 381]
    every = np.concatenate(chunks)
    assert np.linalg.norm(every, axis=1) == pytest.approx(1.0)
    prior = equal_coordinates(200)
    assert np.linalg.norm(prior) == pytest.approx(1.0)
    distances = np.sum((every - prior) ** 2, axis=1)
    assert distances[:1501].mean() == pytest.approx(0.01, abs=0.001)
    assert distances[1501:].mean() == pytest.approx(2 - math.sqrt(2), abs=0.01)
    assert distances[:1501].max() < 0.02 < 0.3 < distances[1501:].min()
    # The mean cosine is half way between those of the two kinds of vectors, 0.995 and 0.71 with equal coordinates.
    assert every.mean(axis=0) @ prior == pytest.approx((0.995 + math.sqrt(0.5)) / 2, abs=0.002)


def test_one_bit_gives_the_papers_errors_with_both_priors() -> None:
    # Section D.2 states 0.3 with the prior at zero, and 0.03 with the better prior, at the clip ratio that is best at zero.
    errors = {}
    for name, prior, norm in (("zero", None, 1.0), ("better", equal_coordinates(200), math.sqrt(2 - math.sqrt(2)))):
        coder = DpRecMechanism(NormBall(200, 2.0, norm), 0.7, uniform_layout(200, 1, 1))
        chunks = two_level_chunks(10_000, 200, np.random.default_rng(0))
        errors[name] = simulate_dp_rec_mean(coder, chunks, np.random.default_rng(1), prior_mean=prior).predicted_squared_error
    assert round(errors["zero"], 1) == 0.3
    assert round(errors["better"], 2) == 0.03


@pytest.mark.parametrize("coded", [False, True])
def test_measured_errors_are_those_predicted(coded: bool) -> None:
    coder = DpRecMechanism(NormBall(40, 2.0, 0.5), 0.8, uniform_layout(40, 2, 4))
    prior = equal_coordinates(40)
    copies = np.random.default_rng(6).multinomial(150, np.full(150, 1 / 150))
    runs = [
        simulate_dp_rec_mean(
            coder,
            two_level_chunks(150, 40, np.random.default_rng(7)),
            np.random.default_rng([8, run]),
            prior_mean=prior,
            copies=copies,
            coded=coded,
        )
        for run in range(6)
    ]
    # All runs have the same vectors and draws, so the prediction is a single number. The error is about chi-square with 6 * 40 degrees of
    # freedom: 5 sigma are 0.46.
    assert len({run.predicted_squared_error for run in runs}) == 1
    assert {run.messages for run in runs} == {150}
    predicted = runs[0].predicted_squared_error
    assert 0 < runs[0].squared_bias < predicted
    assert abs(np.mean([run.squared_error for run in runs]) / predicted - 1) < 0.46


def test_coding_with_one_bit_has_the_bias_of_two_samples() -> None:
    coder = DpRecMechanism(NormBall(3, 2.0), 0.7, uniform_layout(3, 1, 1))
    chunk = np.tile([0.6, 0.0, 0.8], (4000, 1))
    summary = simulate_dp_rec_mean(coder, [chunk], np.random.default_rng(9))
    missing = 1 - resampled_moments(0.7, 2).mean / 0.7
    assert summary.squared_bias == pytest.approx(missing**2, rel=1e-6)
    # The error is nearly all bias: its standard deviation is about 2 |bias| sigma / sqrt(4000), and 5 standard deviations are 0.14.
    assert abs(summary.squared_error - summary.predicted_squared_error) < 0.14
    assert summary.squared_bias > 0.3


def test_the_bias_counts_clipping_and_who_was_drawn() -> None:
    coder = DpRecMechanism(NormBall(4, 2.0, 0.5), 0.01, uniform_layout(4, 1, 20))
    chunk = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.25, 0.0, 0.0]])
    once = simulate_dp_rec_mean(coder, [chunk], np.random.default_rng(0))
    # With enough bits the coder's bias is negligible. Clipping halves the first vector, which shortens the mean by a quarter.
    assert once.clipped == 1
    assert once.squared_bias == pytest.approx(0.25**2, abs=1e-5)
    first = simulate_dp_rec_mean(coder, [chunk], np.random.default_rng(0), copies=np.array([2, 0]))
    assert (first.clients, first.messages, first.clipped) == (2, 2, 2)
    assert first.squared_bias == pytest.approx(0.125**2, abs=1e-5)


def test_faults_of_a_simulation() -> None:
    coder = DpRecMechanism(NormBall(4, 2.0), 1.0, uniform_layout(4, 1, 2))
    with pytest.raises(ValueError, match="chunks must hold at least one client that sends a message, got none"):
        simulate_dp_rec_mean(coder, [], np.random.default_rng(0))
    with pytest.raises(ValueError, match="copies must have a number for each client, got 1 for at least 3 clients"):
        simulate_dp_rec_mean(coder, [np.ones((3, 4))], np.random.default_rng(0), copies=np.array([1]))
    with pytest.raises(ValueError, match=r"dimension must be .*, got 0"):
        next(two_level_chunks(3, 0, np.random.default_rng(0)))
    with pytest.raises(ValueError, match=r"dimension must be .*, got 0"):
        equal_coordinates(0)
    with pytest.raises(ValueError, match=r"groups must be .*, got 5"):
        worst_mean_error(1.0, dimension=4, groups=5, bits=2, clients=10)
