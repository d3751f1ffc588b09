"""Numbers of docs/how-to/account-and-calibrate.md."""

from quietbits import NormBall
from quietbits.design.local.vector_table import VectorGrid, dithered_distance
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS


def dithered() -> float:
    """Return the largest distance of two dithered vectors, with 5 bits of input.

    The vectors are from the unit L2 ball of 128 coordinates.
    """
    return dithered_distance(VectorGrid(NormBall(128, 2.0), 5), rejecting=False)


def orders() -> int:
    """Return the number of Rényi orders that accounts try."""
    return len(DEFAULT_ORDERS)
