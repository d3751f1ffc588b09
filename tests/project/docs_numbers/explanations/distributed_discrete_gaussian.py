"""Numbers of docs/explanations/distributed-discrete-gaussian.md."""

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

import quietbits
from quietbits.solvers.divergences.discrete_gaussian_divergence import (
    discrete_gaussian_renyi,
    discrete_gaussian_tau,
    summed_discrete_gaussian_losses,
)


@cache
def over_gaussian(account: str) -> float:
    """Return the error of a calibrated discrete Gaussian sum over a trusted server's error.

    The account calibrates the sum; the trusted server adds Gaussian noise.
    """
    asked = {"epsilon": 1.0, "delta": 1e-5, "clients": 1000, "dimension": 2**16, "clip": 1.0, "bits": 16}
    calibrated: dict[str, Any] = quietbits.calibrate("distributed-discrete-gaussian", method=account, **asked).document()
    ball = quietbits.NormBall(dimension=2**16, norm=2.0, clip_norm=1.0)
    return calibrated["worst_squared_error"] / quietbits.central_gaussian_error(ball, 1000, 1.0, 1e-5, "add-or-remove-one")


def exact_renyi(clients: int, sigma: float, order: float) -> float:
    """Return the exact Rényi divergence of a sum of discrete Gaussians for a shift by one."""
    loss = summed_discrete_gaussian_losses(clients, sigma, 1)
    return float(np.logaddexp.reduce(loss.log_masses + (order - 1) * loss.losses)) / (order - 1)


def papers_renyi(clients: int, sigma: float, order: float) -> float:
    """Return the paper's divergence of a shift by one, with its own tau."""
    tau = 10 * sum(math.exp(-2 * math.pi**2 * sigma**2 * k / (k + 1)) for k in range(1, clients))
    squared = 1 / (clients * sigma**2)
    return min(order * squared / 2 + tau, order / 2 * (math.sqrt(squared) + tau) ** 2)


def tau_rows() -> Iterator[list[str]]:
    """Return the divergence of order 2 of the sum of 50 discrete Gaussians.

    Columns have the exact divergence, the divergence of a Gaussian, and the bound with tau.
    """
    for sigma, digits, note in ((0.5, 3, " (noise of 9 counted)"), (0.7, 5, ""), (1.0, 5, "")):
        bound = float(discrete_gaussian_renyi(50, sigma, 1.0, 1, [2.0])[0])
        yield ["50", f"{sigma:g}", f"{exact_renyi(50, sigma, 2.0):.5f}", f"{1 / (50 * sigma**2):.5f}", f"{bound:.{digits}f}{note}"]


def discrete_renyi_cost() -> float:
    """Return the excess of epsilon by Rényi divergences over that by Gaussian noise, in percent.

    The mechanism is that of the page's command.
    """
    asked = {"clients": 1000, "dimension": 65_536, "clip": 1.0, "local_sigma": 0.13, "granularity": 7e-4, "delta": 1e-5}
    report = quietbits.account("distributed-discrete-gaussian", **asked)
    return 100 * (report.epsilon_by("rdp") / report.epsilon_by("near-gaussian") - 1)


@cache
def tau_ratios() -> list[float]:
    """Return the paper's tau over this package's tau, in the range of the paper's proof."""
    return [
        10 * sum(math.exp(-2 * math.pi**2 * sigma**2 * k / (k + 1)) for k in range(1, clients)) / discrete_gaussian_tau(clients, sigma)
        for sigma in (0.5, 0.7, 1.0, 3.0)
        for clients in (2, 10, 1000)
    ]
