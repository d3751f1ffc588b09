"""Numbers of docs/accounting.md."""

from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent, SampledWithoutReplacementDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

import quietbits
from quietbits import FixedSizeSampling, NormBall, PoissonSampling
from quietbits.design.local.vector_table import VectorGrid, dithered_distance
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS
from quietbits.solvers.accounting.sampled_noise import sampled_gaussian_curve

REPLACE_ONE = NeighboringRelation.REPLACE_ONE


def gaussian(multiplier: float, delta: float, rounds: int = 1, probability: float | None = None, account: str | None = None) -> float:
    """Return epsilon of Gaussian noise, with Poisson sampling if a probability is given."""
    sampling = None if probability is None else PoissonSampling(probability)
    report = quietbits.account("gaussian", noise_multiplier=multiplier, delta=delta, rounds=rounds, sampling=sampling)
    return report.epsilon if account is None else report.epsilon_by(account)


def samples(multiplier: float, population: int, size: int, delta: float, rounds: int = 1) -> float:
    """Return epsilon of Gaussian noise with samples of a fixed size."""
    sampling = FixedSizeSampling(population, size)
    asked = {"noise_multiplier": multiplier, "delta": delta, "rounds": rounds}
    return quietbits.account("gaussian", sampling=sampling, adjacency="replace-one", **asked).epsilon


def default_grid(rounds: int) -> float:
    """Return epsilon of sampled Gaussian noise of multiplier 100 on dp-accounting's grid."""
    rounds_of_noise = SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(100.0)), rounds)
    return PLDAccountant().compose(rounds_of_noise).get_epsilon(1e-6)


def amplified(multiplier: float, rounds: int) -> float:
    """Return epsilon of samples of 1000 of 342 477 clients, amplified in every round."""
    curve = sampled_gaussian_curve(multiplier, FixedSizeSampling(342_477, 1000), "replace-one")
    return curve.composed(rounds).epsilon(1 / 342_477).epsilon


def by_differences() -> float:
    """Return dp-accounting's epsilon of a sample of 300 of 1000 clients, noise multiplier 10."""
    event = SampledWithoutReplacementDpEvent(1000, 300, GaussianDpEvent(10.0))
    return RdpAccountant(neighboring_relation=REPLACE_ONE).compose(event).get_epsilon(1e-6)


def replace_one(accountant: type[PLDAccountant] | type[RdpAccountant]) -> float:
    """Return dp-accounting's replace-one epsilon of Gaussian noise of multiplier 2."""
    return accountant(neighboring_relation=REPLACE_ONE).compose(GaussianDpEvent(2.0)).get_epsilon(1e-5)


def dithered() -> float:
    """Return the largest distance of two dithered vectors of the unit L2 ball in 128 dimensions."""
    return dithered_distance(VectorGrid(NormBall(128, 2.0), 5), rejecting=False)


def orders() -> int:
    """Return the default number of Rényi orders."""
    return len(DEFAULT_ORDERS)
