"""Two steps between data sets: from adding or removing a client to replacing it.

Replacing a client removes it and adds another. P has the client, R neither, and Q the other client: accounts for add-or-remove-one
adjacency bound P against R, and R against Q. `docs/proofs/composition.md` has the proofs.
"""

import math
from collections.abc import Callable

import numpy as np

from ..numerics.rounding import UNIT
from .composed_losses import LossPair, losses_of_masses
from .renyi_curve import DEFAULT_ORDERS, RenyiCurve

# Exponents p of Hölder's inequality, of which the best is chosen at each order.
EXPONENTS = 1 + np.geomspace(0.05, 20, 60)
# Masses are sums of up to some ten thousand terms.
MASS_ERROR = 1e-11
# Largest epsilon whose exponential is a float.
LARGEST_EPSILON = 700.0
# Each try lowers the failure probability of a step to what the last epsilon allows, and by this share more.
MOST_TRIES, CLOSE = 40, 0.01


def doubled_curve(curve: RenyiCurve) -> RenyiCurve:
    """Return bounds on the Rényi divergences between P and Q, from those of a single step.

    For every p > 1, r(a) is at most (p a - 1) / (p (a - 1)) r1(p a) + r1((p a - 1) / (p - 1)), with r1 the divergences of a step (Mironov
    2017, *Rényi differential privacy*, proposition 11). The result is infinite at orders that need a divergence beyond the curve's.

    Examples
    --------
    >>> gaussian = RenyiCurve(np.array(DEFAULT_ORDERS[:-1]), np.array(DEFAULT_ORDERS[:-1]) / 8)
    >>> doubled = doubled_curve(gaussian)
    >>> at_four = float(doubled.divergences[doubled.orders == 4.0][0])
    >>> 2.0 <= at_four < 2.4
    True
    """
    orders = np.array(DEFAULT_ORDERS[:-1])
    products = EXPONENTS[:, None] * orders
    first, second = (curve.at(asked.ravel()).reshape(asked.shape) for asked in (products, (products - 1) / (EXPONENTS[:, None] - 1)))
    bounds = (products - 1) / (EXPONENTS[:, None] * (orders - 1)) * first + second
    pure = 2 * float(curve.at([math.inf])[0])
    divergences = np.minimum(bounds.min(axis=0) * (1 + 16 * UNIT), pure)
    return RenyiCurve(np.array(DEFAULT_ORDERS), np.append(divergences, pure))


def doubled_losses(steps: LossPair) -> LossPair:
    """Return losses that dominate P against Q, for either order of the two clients.

    Trade-off functions of steps compose (Dong, Roth, Su 2022, *Gaussian differential privacy*, theorem 2.14). Outputs in the order of their
    losses divide the mass of R, once by the losses of P against R and once by those of R against Q. A part of that mass with losses l1 and
    l2 has the loss l1 + l2.

    Examples
    --------
    >>> from quietbits.solvers.accounting.composed_losses import gaussian_losses, pair_epsilon
    >>> doubled = doubled_losses(LossPair(gaussian_losses(2.0, 1e-6)))
    >>> round(pair_epsilon(doubled, 1e-6) / gaussian_losses(1.0, 1e-6).epsilon(1e-6), 5)
    1.0
    """
    removed, added = steps.directions
    first, second = np.argsort(-removed.losses), np.argsort(-added.losses)
    # Too large a loss for a float of R's mass counts as certain.
    of_client, of_neither = removed.masses[first], np.exp(removed.log_masses[first] - removed.losses[first])
    shared = of_neither > 0
    certain = removed.certain + float(of_client[~shared].sum())
    first_losses, second_losses = removed.losses[first][shared], added.losses[second]
    first_ends, second_ends = np.cumsum(of_neither[shared]), added.certain + np.cumsum(added.masses[second])
    reached, masses_up_to = np.concatenate([[0.0], first_ends]), np.concatenate([[0.0], np.cumsum(of_client[shared])])
    ends = np.union1d(first_ends, second_ends)
    ends = ends[(ends > added.certain) & (ends <= min(reached[-1], second_ends.max(initial=added.certain)))]
    up_to = np.interp(np.concatenate([[added.certain], ends]), reached, masses_up_to)
    # Mass of R that Q cannot have is certain. So is the rest that rounding leaves at the other end.
    certain += float(up_to[0] + masses_up_to[-1] - up_to[-1])
    places = np.searchsorted(first_ends, ends), np.searchsorted(second_ends, ends)
    losses = first_losses[places[0]] + second_losses[places[1]]
    # Errors of cumulative masses are relative, and divergences are sums of cumulative masses with positive weights.
    return LossPair(losses_of_masses(losses, np.diff(up_to) * (1 + MASS_ERROR), min(1.0, certain * (1 + MASS_ERROR))))


def doubled_epsilon(epsilon: Callable[[float], float], delta: float) -> float:
    """Return epsilon between P and Q at a failure probability, from that of a single step as a function of delta.

    Steps that are (e, d)-private are (2 e, (1 + exp(e)) d)-private together. The result is infinite if no d suffices.

    Examples
    --------
    >>> doubled_epsilon(lambda delta: 0.5, 1e-6)
    1.0
    """
    least = epsilon(0.0)
    if delta == 0 or least == 0:
        return 2 * least

    of_step = delta / 2
    for _ in range(MOST_TRIES):
        step = epsilon(of_step)
        if step > LARGEST_EPSILON:
            break
        allowed = delta / (1 + math.exp(step)) * (1 - MASS_ERROR)
        if of_step <= allowed:
            return 2 * min(least, step)
        of_step = allowed * (1 - CLOSE)
    return 2 * least
