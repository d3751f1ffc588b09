"""Numbers of docs/secure-sum-accounting.md."""

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import binom

import quietbits
from quietbits import FixedSizeSampling, PoissonSampling
from quietbits.figures.cpsgd.binomial_slack import SlackPoint
from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon
from quietbits.solvers.divergences.discrete_gaussian_divergence import (
    discrete_gaussian_renyi,
    discrete_gaussian_tau,
    summed_discrete_gaussian_losses,
)
from quietbits.solvers.divergences.poisson_binomial_divergence import poisson_binomial_pairs
from quietbits.solvers.divergences.poisson_binomial_divergence import poisson_binomial_renyi as poisson_binomial_renyi

BINOMIAL = {"trials": 2_560_000, "probability": 0.5, "scale": 1.0, "dimension": 1, "l1": 20.0, "l2": 20.0, "linf": 20.0}
SKELLAM = {"clients": 1000, "dimension": 64, "clip": 1.0, "local_variance": 0.25, "granularity": 0.001}
CPSGD = {"clients": 1000, "dimension": 64, "clip": 1.0, "levels": 128, "trials": 4000}


def sampled_rows() -> Iterator[list[str]]:
    """Return epsilon of 100 rounds of secure sums, for all clients and for secret samples."""
    poisson, fixed = (PoissonSampling(0.5), PoissonSampling(0.01)), (FixedSizeSampling(2000, 1000), FixedSizeSampling(100_000, 1000))
    for title, name, options, adjacency, samplings in (
        ("binomial, N = 2 560 000, p = 1/2, shift 20", "binomial", BINOMIAL, "add-or-remove-one", poisson),
        (
            "Skellam, 1000 clients, d = 64, c = 1, local variance 0.25, g = 0.001",
            "distributed-skellam",
            SKELLAM,
            "add-or-remove-one",
            poisson,
        ),
        ("cpSGD, 1000 clients, d = 64, D = 1, k = 128, m = 4000", "cpsgd", CPSGD, "add-or-remove-one", poisson),
        ("Skellam as above, samples of a fixed size", "distributed-skellam", SKELLAM, "replace-one", fixed),
    ):
        epsilons = [
            quietbits.account(name, delta=1e-5, rounds=100, sampling=sampling, adjacency=adjacency, **options).epsilon
            for sampling in (None, *samplings)
        ]
        digits = (3, 3, 4 if adjacency == "add-or-remove-one" else 3)
        yield [title, adjacency, *(f"{epsilon:.{places}f}" for epsilon, places in zip(epsilons, digits, strict=True))]


def binomial_noise(account: str) -> float:
    """Return epsilon of 10 000 fair trials for a shift by 1000."""
    noise = {"trials": 10**4, "probability": 0.5, "scale": 1.0, "dimension": 1, "l1": 1000.0, "l2": 1000.0, "linf": 1000.0}
    return quietbits.account("binomial", delta=1e-6, **noise).epsilon_by(account)


def slack_rows() -> Iterator[list[str]]:
    """Return the slack of Theorem 1."""
    for trials, scale, theorem, exact in (
        ("10⁴", "1", 4, 4),
        ("10⁶", "1", 4, 5),
        ("10⁴", "0.1", 3, 4),
        ("10⁶", "0.1", 4, 4),
        ("10⁴", "0.01", 2, 2),
        ("10⁶", "0.01", 3, 3),
    ):
        row = SlackPoint(seed=0, trials={"10⁴": 10**4, "10⁶": 10**6}[trials], scale=float(scale), delta=1e-6).run()[0]
        yield [trials, scale, f"{row['epsilon']:.{theorem}f}", f"{row['epsilon_exact']:.{exact}f}", f"{row['ratio']:.2f}"]


def tosses(clients: int, trials: int, theta: float, dimension: int, account: str = "rdp") -> float:
    """Return epsilon of a Poisson-binomial sum; the dimension is that of the vectors, half of D."""
    report = quietbits.account("poisson-binomial", clients=clients, trials=trials, theta=theta, dimension=dimension, delta=1e-5)
    return report.epsilon_by(account)


@cache
def over_gaussian(account: str) -> float:
    """Return a calibrated discrete Gaussian sum's error over a trusted server's."""
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
    """Return the order-2 divergence of 50 discrete Gaussians: exact, Gaussian, and with tau."""
    for sigma, digits, note in ((0.5, 3, " (noise of 9 counted)"), (0.7, 5, ""), (1.0, 5, "")):
        bound = float(discrete_gaussian_renyi(50, sigma, 1.0, 1, [2.0])[0])
        yield ["50", f"{sigma:g}", f"{exact_renyi(50, sigma, 2.0):.5f}", f"{1 / (50 * sigma**2):.5f}", f"{bound:.{digits}f}{note}"]


@cache
def fair_noise(dimension: int, account: str) -> float:
    """Return epsilon of fair binomial noise with a variance of 100 000, for an L2 shift by 85."""
    noise = {"trials": 400_000, "probability": 0.5, "scale": 1.0, "dimension": dimension, "l1": 85.0**2, "l2": 85.0, "linf": 85.0}
    return quietbits.account("binomial", delta=1e-5, **noise).epsilon_by(account)


def near_gaussian_cost() -> float:
    """Return the excess of epsilon of 65 536 coordinates over that of Gaussian noise."""
    return fair_noise(65_536, "near-gaussian") - gaussian_epsilon(math.sqrt(1e5) / 85, 1e-5)


def renyi_cost() -> float:
    """Return the excess of epsilon by Rényi divergences over Gaussian noise, in percent."""
    return 100 * (fair_noise(65_536, "rdp") / gaussian_epsilon(math.sqrt(1e5) / 85, 1e-5) - 1)


def discrete_renyi_cost() -> float:
    """Return the excess of epsilon by Rényi divergences in the page's command, in percent."""
    asked = {"clients": 1000, "dimension": 65_536, "clip": 1.0, "local_sigma": 0.13, "granularity": 7e-4, "delta": 1e-5}
    report = quietbits.account("distributed-discrete-gaussian", **asked)
    return 100 * (report.epsilon_by("rdp") / report.epsilon_by("near-gaussian") - 1)


@cache
def extremes_are_worst() -> tuple[int, int]:
    """Return the number of settings in which one common extreme is worst, and their total."""
    largest = []
    for clients, trials in ((7, 3), (20, 2), (40, 1), (4, 30)):
        for theta in (0.001, 0.02, 0.1, 0.25, 0.45):
            pairs = poisson_binomial_pairs(clients, trials, theta)
            assert pairs.proven
            rows = np.array([loss.renyi_divergences([1.01, 1.1, 2.0, 8.0, 64.0, 1e4]) for loss in pairs.losses])
            extreme = np.maximum(rows[0], rows[-1])
            largest.append(bool(np.all(extreme >= rows.max(axis=0) * (1 - 1e-9))))
    return sum(largest), len(largest)


def middle_renyi() -> float:
    """Return the order-2 divergence of 10 clients, two trials, theta = 1/4, others at 1/2."""
    noise = binom.pmf(np.arange(19), 18, 0.5)
    upper, lower = (np.convolve(binom.pmf(np.arange(3), 2, 0.5 + sign / 4), noise) for sign in (1, -1))
    return math.log(float(np.sum(upper**2 / lower)))


def mixture_epsilon(*, extremes: bool) -> float:
    """Return epsilon of 40 clients' tosses, for one extreme or all configurations."""
    epsilons = [loss.epsilon(0.01) for loss in poisson_binomial_pairs(40, 1, 0.4).losses]
    return max(epsilons[0], epsilons[-1]) if extremes else max(epsilons)


@cache
def tau_ratios() -> list[float]:
    """Return the paper's tau over ours where the paper's is proven."""
    return [
        10 * sum(math.exp(-2 * math.pi**2 * sigma**2 * k / (k + 1)) for k in range(1, clients)) / discrete_gaussian_tau(clients, sigma)
        for sigma in (0.5, 0.7, 1.0, 3.0)
        for clients in (2, 10, 1000)
    ]
