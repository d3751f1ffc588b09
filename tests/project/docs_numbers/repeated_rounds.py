"""Numbers of docs/repeated-rounds.md."""

import math
from collections.abc import Iterator
from functools import cache

import pandas as pd

import quietbits
from quietbits.analysis.comparisons.linear_compression.training_privacy import training_privacy
from quietbits.design.contracts.gaussian import gaussian_privacy
from quietbits.design.federated.adaptive_clipping import sum_noise_multiplier
from quietbits.design.secure_sum.noisy_count import NoisyCount
from quietbits.solvers.accounting.sampling import PoissonSampling


@cache
def epsilon(steps: int, adjacency: str = "add-or-remove-one") -> float:
    """Return epsilon of 1500 counts of 1000 clients, each sent as so many steps."""
    sigma = 2 * 8.0 / math.sqrt(1000)
    return NoisyCount(1000, steps * sigma, steps).privacy(adjacency).epsilon(1e-5, adjacency, rounds=1500)


def count_bits(clients: int) -> int:
    """Return the bits of a count's message."""
    return NoisyCount.of_deviation(clients, clients / 20).bits


def count_cost_rows() -> Iterator[list[str]]:
    """Return by how much the sum's noise must be larger for the count, for cohorts and total noise multipliers."""
    for clients, digits in ((100, (3, 3, 2, 1)), (1000, (4, 4, 3, 3))):
        costs = [100 * (sum_noise_multiplier(total, clients / 20) / total - 1) for total in (0.3, 0.5, 1.0, 2.0)]
        yield [str(clients), *(f"{cost:.{places}f} %" for cost, places in zip(costs, digits, strict=True))]


@cache
def published() -> pd.DataFrame:
    """Return what the published training reveals, by account."""
    return training_privacy()


def published_epsilon(multiplier: float, sampling: str, sensitivity: float, account: str) -> float:
    """Return epsilon of the published training by an account."""
    table = published()
    of_kind = table.adjacency == {"Poisson": "add-or-remove-one", "fixed size": "replace-one"}[sampling]
    row = (table.noise_multiplier == multiplier) & of_kind & (table.sensitivity_in_clip_norms == sensitivity) & (table.account == account)
    return float(table[row].epsilon.item())


def published_rows() -> Iterator[list[str]]:
    """Return the accounts of the published training beside what the paper says."""
    for sampling, adjacency, sensitivity in (
        ("Poisson", "add-or-remove-one", 1),
        ("fixed size", "replace-one", 1),
        ("fixed size", "replace-one", 2),
    ):
        for multiplier, paper in ((0.5, "about 10"), (0.6, "about 5")):
            epsilons = [published_epsilon(multiplier, sampling, sensitivity, name) for name in ("rdp", "rdp-classic", "pld")]
            numbers = [f"{value:.2f}" if value < 50 else f"{value:.1f}" if value < 100 else f"{value:.0f}" for value in epsilons]
            words = "1 clip norm" if (sampling, multiplier) == ("Poisson", 0.5) else str(sensitivity)
            yield [str(multiplier), f"{sampling}, {adjacency}", words, *numbers, paper if sampling == "fixed size" else ""]


def joint(separately: bool) -> float:
    """Return epsilon of two Gaussian releases about one sampled client: their amplified epsilons added, or that of both together."""
    first, second = (gaussian_privacy(multiplier, "add-or-remove-one", "central") for multiplier in (1.0, 1.2))
    sampling = PoissonSampling(0.01)
    if separately:
        return first.epsilon(5e-6, sampling=sampling) + second.epsilon(5e-6, sampling=sampling)
    return quietbits.joint_privacy([first, second], "add-or-remove-one").epsilon(1e-5, sampling=sampling)
