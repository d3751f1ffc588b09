"""Numbers of docs/explanations/sampling.md."""

from dp_accounting import GaussianDpEvent, NeighboringRelation, SampledWithoutReplacementDpEvent
from dp_accounting.rdp import RdpAccountant

import quietbits
from quietbits import FixedSizeSampling
from quietbits.solvers.accounting.sampled_noise import sampled_gaussian_curve

REPLACE_ONE = NeighboringRelation.REPLACE_ONE


def samples(multiplier: float, population: int, size: int, delta: float, rounds: int = 1) -> float:
    """Return epsilon of Gaussian noise with samples of a fixed size."""
    sampling = FixedSizeSampling(population, size)
    asked = {"noise_multiplier": multiplier, "delta": delta, "rounds": rounds}
    return quietbits.account("gaussian", sampling=sampling, adjacency="replace-one", **asked).epsilon


def amplified(multiplier: float, rounds: int) -> float:
    """Return epsilon at delta 1/342 477 if sampling amplifies every round.

    A round samples 1000 of 342 477 clients.
    """
    curve = sampled_gaussian_curve(multiplier, FixedSizeSampling(342_477, 1000), "replace-one")
    return curve.composed(rounds).epsilon(1 / 342_477).epsilon


def by_differences() -> float:
    """Return epsilon of one sampled round by dp-accounting's Rényi accountant.

    The round samples 300 of 1000 clients; the noise multiplier is 10, and delta 1e-6.
    """
    event = SampledWithoutReplacementDpEvent(1000, 300, GaussianDpEvent(10.0))
    return RdpAccountant(neighboring_relation=REPLACE_ONE).compose(event).get_epsilon(1e-6)
