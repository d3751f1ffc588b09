"""Sums of discrete Gaussians as Gaussian noise that was rounded at random: against exact sums, and the ratios by quadrature."""

import math

import numpy as np
import pytest

from quietbits.solvers.divergences.discrete_gaussian_divergence import summed_discrete_gaussian_losses
from quietbits.solvers.divergences.discrete_gaussian_smoothing import SMOOTHING_VARIANCES, smoothed_gaussian_epsilon, smoothed_sums


@pytest.mark.parametrize("clients", [1, 2, 7, 100])
@pytest.mark.parametrize("sigma", [0.7, 1.0, 3.0])
@pytest.mark.parametrize("shift", [1, 6])
def test_smoothing_is_above_the_truth_and_near_it(clients: int, sigma: float, shift: int) -> None:
    truth = summed_discrete_gaussian_losses(clients, sigma, shift)
    for delta in (1e-2, 1e-5, 1e-9):
        found = smoothed_gaussian_epsilon(clients, sigma, float(shift), 1, delta)
        assert found is None or found >= truth.epsilon(delta)
        if clients * sigma**2 > 50:
            # A few whole numbers' worth of noise is lost, of this much.
            assert found is not None
            assert found <= truth.epsilon(delta) * 1.06 + 1e-9


def test_two_rounds_by_enumeration() -> None:
    sigma, delta = 2.0, 1e-3
    value = np.arange(-40, 41)
    one = np.exp(-(value**2) / (2 * sigma**2))
    one /= one.sum()
    own, other = np.convolve(one, one), np.roll(np.convolve(one, one), 1)
    epsilon = smoothed_gaussian_epsilon(2, sigma, 1.0, 1, delta, rounds=2)
    assert epsilon is not None
    first, second = np.outer(own, own), np.outer(other, other)
    assert 0 < np.maximum(first - math.exp(epsilon) * second, 0).sum() <= delta


def test_ratios_of_probabilities_are_as_stated() -> None:
    # The sum against the discrete Gaussian of its variance, and that against a Gaussian rounded at random, by quadrature.
    clients, sigma = 3, 0.6
    value = np.arange(-30, 31)
    one = np.exp(-(value**2) / (2 * sigma**2))
    one /= one.sum()
    total = np.convolve(np.convolve(one, one), one)[60:121]
    variance = clients * sigma**2
    nearest = np.exp(-(value**2) / (2 * variance))
    nearest /= nearest.sum()
    largest = float(np.abs(np.log(total / nearest))[20:41].max())
    log_ratio = smoothed_sums(clients, sigma)[0].log_ratio
    square = SMOOTHING_VARIANCES[0]
    point = np.linspace(-12, 12, 240_001)
    around = np.exp(-((value[:, None] - point) ** 2) / (2 * square))
    around /= around.sum(axis=0)
    rounded = around @ np.exp(-(point**2) / (2 * (variance - square)))
    rounded /= rounded.sum()
    second = float(np.abs(np.log(nearest / rounded))[25:36].max())
    # Averaging over the rounded Gaussian makes the second ratio far smaller than the bound takes it to be.
    assert 1e-8 < second < 4 * math.exp(-2 * math.pi**2 * square)
    assert 1e-3 < largest < log_ratio
    assert float(np.abs(np.log(total / rounded))[25:36].max()) <= log_ratio


def test_the_sum_must_have_noise() -> None:
    assert smoothed_sums(10, 0.2) == []
    assert smoothed_gaussian_epsilon(10, 0.2, 1.0, 1, 1e-5) is None
    assert smoothed_gaussian_epsilon(100, 2.0, 0.0, 1, 1e-5) == 0.0


@pytest.mark.parametrize("sigma", [0.2, 0.3, 0.5])
def test_little_noise_of_each_of_many_clients_has_its_price(sigma: float) -> None:
    truth = summed_discrete_gaussian_losses(50, sigma, 1)
    found = smoothed_gaussian_epsilon(50, sigma, 1.0, 1, 1e-5)
    assert found is not None
    assert truth.epsilon(1e-5) <= found
    assert found >= 2 * smoothed_sums(50, sigma)[-1].log_ratio > 0.1
