"""Numbers of docs/reference/account-keys.md."""

from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant

import quietbits
from quietbits import PoissonSampling


def gaussian(multiplier: float, delta: float, rounds: int, probability: float, account: str) -> float:
    """Return epsilon of Poisson-sampled Gaussian noise by an account."""
    sampling = PoissonSampling(probability)
    return quietbits.account("gaussian", noise_multiplier=multiplier, delta=delta, rounds=rounds, sampling=sampling).epsilon_by(account)


def default_grid(rounds: int) -> float:
    """Return epsilon of sampled Gaussian noise on dp-accounting's default grid.

    The noise multiplier is 100, and the sampling probability 0.01.
    """
    rounds_of_noise = SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(100.0)), rounds)
    return PLDAccountant().compose(rounds_of_noise).get_epsilon(1e-6)
