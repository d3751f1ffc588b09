"""Sums of discrete Gaussians as Gaussian noise that was rounded at random: the ratios by quadrature.

What follows for epsilon is compared with exact sums in `tests/design/secure_sum/test_noisy_sum.py`.
"""

import math

import mpmath
import numpy as np
import pytest

from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon
from quietbits.solvers.divergences.discrete_gaussian_divergence import discrete_gaussian_tau
from quietbits.solvers.divergences.discrete_gaussian_smoothing import SMOOTHING_VARIANCES, rounded_gaussian_epsilon, smoothed_sums


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
    point = np.linspace(-12, 12, 24_001)
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


@pytest.mark.parametrize(("clients", "sigma"), [(1, 2.5), (3, 0.6), (40, 1.1)])
def test_both_ratios_count_and_what_is_taken_for_rounding_is_gone(clients: int, sigma: float) -> None:
    variance = clients * sigma**2
    choices = smoothed_sums(clients, sigma)
    squares = [square for square in SMOOTHING_VARIANCES if square < variance]
    assert len(choices) == len(squares)
    for square, choice in zip(squares, choices, strict=True):
        with mpmath.workdps(50):
            # The largest and the smallest sum of the bell over whole numbers: Jacobi's theta function at 0 and 1/2.
            nome = mpmath.exp(-2 * mpmath.pi**2 * mpmath.mpf(square))
            theta = mpmath.log(mpmath.jtheta(3, 0, nome) / mpmath.jtheta(4, 0, nome))
            remaining = mpmath.sqrt(clients * mpmath.mpf(sigma) ** 2 - mpmath.mpf(square))
        together = float(theta) + discrete_gaussian_tau(clients, sigma)
        assert together <= choice.log_ratio <= together * (1 + 2e-9) + 2e-15
        assert remaining * (1 - mpmath.mpf(10) ** -13) < choice.sigma < remaining


@pytest.mark.parametrize("log_ratio", [0.0, 0.1, 2.0])
def test_a_ratio_costs_twice_itself_and_its_share_of_delta(log_ratio: float) -> None:
    multiplier, delta = 1.5, 1e-3
    computed = rounded_gaussian_epsilon(multiplier, log_ratio, delta)
    assert computed is not None
    exact = gaussian_epsilon(multiplier, delta * math.exp(-log_ratio)) + 2 * log_ratio
    assert exact <= computed * (1 + 1e-9) <= exact * (1 + 1e-6)
    # No epsilon above what is asked for is computed.
    assert rounded_gaussian_epsilon(multiplier, log_ratio, delta, computed * (1 + 1e-6)) == computed
    assert rounded_gaussian_epsilon(multiplier, log_ratio, delta, computed * (1 - 1e-6)) is None
