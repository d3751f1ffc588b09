"""Privacy loss distributions, by dp-accounting: each dominates every pair of inputs of its mechanism, with losses rounded upward."""

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld

from ..arguments import check_real
from .pure_privacy import LARGEST_EPSILON


def pure_privacy_loss(epsilon: float) -> pld.PrivacyLossDistribution:
    """Return the privacy loss distribution that dominates those of all epsilon-private mechanisms.

    Parameters
    ----------
    epsilon : float
        Pure privacy parameter, at least 0.

    Returns
    -------
    PrivacyLossDistribution
        That of binary randomised response, losses rounded upward to dp-accounting's grid.

    Raises
    ------
    ValueError
        If epsilon is out of range.
    """
    epsilon = check_real("epsilon", epsilon, low=0.0, high=LARGEST_EPSILON)
    kept, flipped = -np.log1p(np.exp(-epsilon)), -epsilon - np.log1p(np.exp(-epsilon))
    return pld.from_two_probability_mass_functions({0: kept, 1: flipped}, {0: flipped, 1: kept})


def gaussian_privacy_loss(noise_multiplier: float) -> pld.PrivacyLossDistribution:
    """Return the privacy loss distribution of Gaussian noise.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation over the L2 sensitivity, for the adjacency that is meant; above 0.

    Returns
    -------
    PrivacyLossDistribution
        Losses rounded upward to dp-accounting's grid.

    Raises
    ------
    ValueError
        If the multiplier is out of range.
    """
    return pld.from_gaussian_mechanism(check_real("noise_multiplier", noise_multiplier, low=1e-3, high=1e9))
