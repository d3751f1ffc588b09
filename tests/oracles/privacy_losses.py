"""Privacy loss distributions by dp-accounting, for comparison."""

import math

from dp_accounting.pld import privacy_loss_distribution as pld


def pure_privacy_loss(epsilon: float) -> pld.PrivacyLossDistribution:
    """Return the loss of binary randomised response, the worst epsilon-private loss."""
    flipped = 1 / (math.exp(epsilon) + 1)
    kept, flipped = math.log1p(-flipped), math.log(flipped)
    return pld.from_two_probability_mass_functions({0: kept, 1: flipped}, {0: flipped, 1: kept})


def gaussian_privacy_loss(noise_multiplier: float) -> pld.PrivacyLossDistribution:
    """Return the loss of Gaussian noise, given its standard deviation over the sensitivity."""
    return pld.from_gaussian_mechanism(noise_multiplier)
