"""Sums of discrete Gaussians as Gaussian noise that was rounded at random: the ratios by quadrature.

What follows for epsilon is compared with exact sums in `tests/design/secure_sum/test_joint_discrete_gaussian.py`.
"""

import math

import numpy as np

from quietbits.solvers.divergences.discrete_gaussian_smoothing import SMOOTHING_VARIANCES, smoothed_sums


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
