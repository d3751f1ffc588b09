"""Numbers of docs/explanations/binomial-noise.md."""

import math
from collections.abc import Iterator
from functools import cache

import quietbits
from quietbits.figures.cpsgd.binomial_slack import SlackPoint
from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon


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


@cache
def fair_noise(dimension: int, account: str) -> float:
    """Return epsilon of fair binomial noise for a shift by 85 in the L2 norm.

    The noise has a variance of 100 000.
    """
    noise = {"trials": 400_000, "probability": 0.5, "scale": 1.0, "dimension": dimension, "l1": 85.0**2, "l2": 85.0, "linf": 85.0}
    return quietbits.account("binomial", delta=1e-5, **noise).epsilon_by(account)


def near_gaussian_cost() -> float:
    """Return the excess of epsilon of 65 536 coordinates over that of Gaussian noise."""
    return fair_noise(65_536, "near-gaussian") - gaussian_epsilon(math.sqrt(1e5) / 85, 1e-5)


def renyi_cost() -> float:
    """Return the excess of epsilon by Rényi divergences over that of Gaussian noise, in percent."""
    return 100 * (fair_noise(65_536, "rdp") / gaussian_epsilon(math.sqrt(1e5) / 85, 1e-5) - 1)


@cache
def _uneven() -> quietbits.AccountReport:
    noise = {"trials": 10**6, "probability": 0.1, "scale": 1.0, "dimension": 1, "l1": 1.0, "l2": 1.0, "linf": 1.0}
    return quietbits.account("binomial", delta=1e-6, rounds=10, **noise)


def uneven(account: str) -> float:
    """Return epsilon of ten rounds of a million trials with the probability 0.1."""
    return _uneven().epsilon_by(account)
