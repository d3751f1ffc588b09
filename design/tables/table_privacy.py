"""The privacy of a table's messages, for numbers and for vectors."""

import math
from functools import cache

from ...arguments import LARGEST_DIMENSION, check_integer, check_norm, check_real
from ...solvers.accounting.composed_losses import LossPair
from ...solvers.accounting.privacy_loss import DominatingLoss, dominating_privacy_loss
from ...solvers.accounting.renyi_curve import LazyRenyiCurve
from ...solvers.accounting.sampling import Sampling
from ...solvers.divergences.vector_composition import LARGEST_NORM, vector_divergences
from ..contracts.accounts import composed_loss, composed_rounds, loss_account, pure_account, renyi_account, repeated_losses
from ..contracts.privacy import Account, Privacy
from .lookup_table import LookupTable
from .table_facts import realised_epsilon


def table_privacy(table: LookupTable, *, dimension: int = 1, norm: float = 1.0, radius: float = 1.0) -> Privacy:
    """Return the privacy of a vector's message whose coordinates go through the same table.

    Parameters
    ----------
    table : LookupTable
        The table.
    dimension : int
        Number of coordinates, at least 1.
    norm : float
        Order p of the L_p norm in which vectors are close, from 1 to 64, or infinity.
    radius : float
        Largest L_p distance of two vectors of grid points after dithering, on the table's unit scale; above 0.

    Returns
    -------
    Privacy
        Accounts of pure privacy and of Rényi divergences of the whole vector, all computed from the table's weights. For one coordinate,
        and for p = infinity, where the worst pair of rows is the worst in each coordinate, also the account of the privacy loss.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION)
    norm = check_norm(norm, high=LARGEST_NORM)
    radius = check_real("radius", radius, low=1e-9, high=1e6)
    if dimension == 1 and radius >= 1:
        # The exact comparison of any two rows has no slack, unlike the other upper bounds.
        pure = realised_epsilon(table.weights, None)
    else:
        pure = float(vector_divergences(table.weights, [math.inf], dimension, norm, radius)[0])

    def curve() -> LazyRenyiCurve:
        return LazyRenyiCurve(lambda orders: vector_divergences(table.weights, orders, dimension, norm, radius))

    @cache
    def loss() -> DominatingLoss:
        return dominating_privacy_loss(table.weights, radius)

    def by_loss(rounds: int, delta: float) -> float | None:
        by_table = composed_loss(loss(), rounds * dimension, delta)
        # Binary randomised response dominates every mechanism of its epsilon, and its losses need no grid, which rounds the table's up.
        return by_table if by_table is None or rounds == 1 else min(by_table, composed_rounds(pure, rounds, delta))

    def losses(delta: float, rounds: int, sampling: Sampling | None) -> LossPair | None:
        return repeated_losses(loss(), rounds * dimension, delta) if sampling is None else None

    accounts: tuple[Account, ...] = (pure_account(pure, table.adjacency), renyi_account(curve, table.adjacency))
    if (dimension == 1 or math.isinf(norm)) and math.isfinite(pure):
        accounts = (*accounts, loss_account("pld", by_loss, table.adjacency, losses=losses))
    return Privacy(table.trust_model, accounts)
