"""Numbers of docs/accounting.md."""

import quietbits
from quietbits import FixedSizeSampling, PoissonSampling


def gaussian(multiplier: float, delta: float, rounds: int = 1, probability: float | None = None, account: str | None = None) -> float:
    """Return epsilon of Gaussian noise, with Poisson sampling where a probability is given."""
    sampling = None if probability is None else PoissonSampling(probability)
    report = quietbits.account("gaussian", noise_multiplier=multiplier, delta=delta, rounds=rounds, sampling=sampling)
    return report.epsilon if account is None else report.epsilon_by(account)


def samples(multiplier: float, population: int, size: int, delta: float, rounds: int = 1) -> float:
    """Return epsilon of Gaussian noise with samples of a fixed size."""
    sampling = FixedSizeSampling(population, size)
    asked = {"noise_multiplier": multiplier, "delta": delta, "rounds": rounds}
    return quietbits.account("gaussian", sampling=sampling, adjacency="replace-one", **asked).epsilon


def cldp(epsilon: float, delta: float, rounds: int) -> float:
    """Return epsilon of rounds of randomised response."""
    return quietbits.account("cldp", epsilon=epsilon, delta=delta, rounds=rounds).epsilon
