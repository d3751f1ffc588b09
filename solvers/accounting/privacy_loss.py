"""Privacy loss distributions, by dp-accounting: each dominates every pair of inputs of its mechanism, with losses rounded upward."""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_real
from .renyi_divergence import check_weights, largest_step, renyi_matrix

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

# Privacy losses that a table's distribution is computed at, on either side of zero: at most, at least, and as many as this number
# of multiplications allows.
MOST_LOSSES, LEAST_LOSSES = 500, 40
MULTIPLICATIONS = 4e8
# Numbers held in memory at a time.
CHUNK = 2**22


def dominating_privacy_loss(weights: ArrayLike, distance: float = 1.0) -> "PrivacyLossDistribution":
    """Return a privacy loss distribution that dominates every two rows of a table which are not too far apart.

    The largest hockey-stick divergence of any pair, as a function of epsilon, belongs to some pair of distributions, which dominates
    them all (Zhu, Dong, Wang 2022, *Optimal accounting of differential privacy via characteristic function*, proposition 10), also
    under composition. Where one pair of rows is the worst at every epsilon, that is this pair. Between the losses where it is computed,
    the divergence is taken to be linear in e^epsilon, which errs upward (Doroshenko et al. 2022, *Connect the dots*).

    The grid of losses is the distribution's own, not dp-accounting's usual one.

    Parameters
    ----------
    weights : array_like of shape (inputs, letters)
        The table; rows have the same sum.
    distance : float
        Largest distance of two inputs, on the table's unit scale; above 0.

    Raises
    ------
    ValueError
        If the weights are no table, or two of its rows can be told apart with certainty.

    Examples
    --------
    >>> loss = dominating_privacy_loss([[3, 1], [1, 3]])
    >>> round(float(loss.get_delta_for_epsilon(0.0)), 6), round(float(loss.get_epsilon_for_delta(0.0)), 6)
    (0.5, 1.098612)
    """
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots_fixed_gap

    table = check_weights(weights)
    inputs, letters = table.shape
    distance = check_real("distance", distance, low=1e-9, high=1e6)
    reach = largest_step(inputs, distance)
    rows, others = (index.ravel() for index in np.indices((inputs, inputs)))
    near = np.abs(rows - others) <= reach
    epsilon = float(renyi_matrix(table, math.inf).ravel()[near].max())
    if math.isinf(epsilon):
        raise ValueError("weights must give no letter that one input sends and another one never does, within the distance")
    if epsilon == 0:
        return pld.from_two_probability_mass_functions({0: 0.0}, {0: 0.0})
    rows, others = rows[near], others[near]
    losses = int(np.clip(MULTIPLICATIONS / (2 * len(rows) * letters), LEAST_LOSSES, MOST_LOSSES))
    interval = epsilon / losses * (1 + 1e-9)
    factors = np.exp(interval * np.arange(-losses, losses + 1))
    probabilities = table / float(table[0].sum())
    deltas = np.zeros(len(factors))
    pairs = max(1, CHUNK // (letters * len(factors)))
    for start in range(0, len(rows), pairs):
        own, other = probabilities[rows[start : start + pairs]], probabilities[others[start : start + pairs]]
        differences = own[:, None, :] - factors[:, None] * other[:, None, :]
        np.maximum(deltas, np.maximum(differences, 0.0).sum(axis=2).max(axis=0), out=deltas)
    # Beyond the largest log-ratio there is nothing; what rounding leaves there would count as certain failure.
    deltas[-1] = 0.0
    return pld.PrivacyLossDistribution(
        create_pmf_pessimistic_connect_dots_fixed_gap(interval, -losses, losses, np.minimum(np.minimum.accumulate(deltas), 1.0))
    )
