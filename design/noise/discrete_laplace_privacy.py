"""Discrete Laplace noise on whole numbers: its privacy, whole or with missing shares."""

import numpy as np

from ...arguments import check_choice
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from ...solvers.divergences.discrete_laplace_divergence import discrete_laplace_divergences, discrete_laplace_loss
from ...solvers.divergences.polya_divergence import polya_epsilon
from ..contracts.accounts import composed_loss, loss_account, pure_account, pure_privacy, renyi_account
from ..contracts.guarantee import ADJACENCIES, TRUST_MODELS
from ..contracts.privacy import Privacy

# Vectors of a ball of the L1 norm are at most this many radii apart, for each adjacency.
RADII = {"replace-one": 2, "add-or-remove-one": 1}
# The exponential of a larger loss is no float.
LARGEST_LOSS = 700.0


def discrete_laplace_privacy(
    steps: int, scale: float, adjacency: str = "replace-one", trust_model: str = "central", *, dimension: int = 1, shape: float = 1.0
) -> Privacy:
    """Return the privacy of discrete Laplace noise on every coordinate of whole numbers.

    Below shape 1 some of the shares of the noise are missing: `polya_epsilon` is the pure epsilon then, and composition is that of any
    purely private mechanism. From shape 1 on the noise is complete, and the accounts ``"rdp"`` and ``"pld"`` are those of one shift by the
    whole sensitivity, which dominates every other shift.

    Parameters
    ----------
    steps : int
        L1 radius of the whole numbers' ball; their sensitivity is twice that for ``"replace-one"`` adjacency.
    scale : float
        Scale of the noise, in steps.
    adjacency, trust_model : str
        Adjacency and trust model of the guarantee.
    dimension : int
        Number of coordinates.
    shape : float
        Share of the noise that is there, 1 for all of it.

    Examples
    --------
    Two counts of a histogram differ by 1 each. A fifth of the shares is missing:

    >>> whole, rest = (discrete_laplace_privacy(1, 2.0, dimension=100, shape=shape) for shape in (1.0, 0.8))
    >>> round(whole.epsilon(0.0), 6), round(rest.epsilon(0.0), 3)
    (1.0, 1.376)
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    check_choice("trust_model", trust_model, TRUST_MODELS)
    sensitivity = RADII[adjacency] * steps
    epsilon = polya_epsilon(shape, scale, sensitivity, dimension)
    if shape < 1:
        return pure_privacy(epsilon, trust_model, adjacency)

    def curve() -> RenyiCurve:
        return RenyiCurve(np.array(DEFAULT_ORDERS), discrete_laplace_divergences(epsilon, sensitivity, DEFAULT_ORDERS))

    def by_loss(rounds: int, delta: float) -> float:
        if epsilon > LARGEST_LOSS:
            return rounds * epsilon
        loss = discrete_laplace_loss(epsilon, sensitivity)
        composed = loss.get_epsilon_for_delta(delta) if rounds == 1 else composed_loss(loss, rounds, delta)
        # Compositions on a grid may be too expensive, or end beyond the floats.
        return rounds * epsilon if composed is None else min(composed, rounds * epsilon)

    accounts = (pure_account(epsilon, adjacency), renyi_account(curve, adjacency), loss_account("pld", by_loss, adjacency))
    return Privacy(trust_model, accounts)
