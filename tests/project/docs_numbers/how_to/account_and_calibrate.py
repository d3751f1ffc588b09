"""Numbers of docs/how-to/account-and-calibrate.md."""

from quietbits import NormBall
from quietbits.design.local.vector_table import VectorGrid, dithered_distance
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS


def dithered() -> float:
    """Return how far apart two dithered vectors of the unit L2 ball of 128 coordinates can be, with 5 bits in."""
    return dithered_distance(VectorGrid(NormBall(128, 2.0), 5), rejecting=False)


def orders() -> int:
    """Return the number of Rényi orders that are tried."""
    return len(DEFAULT_ORDERS)
