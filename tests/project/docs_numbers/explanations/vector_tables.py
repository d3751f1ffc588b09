"""Numbers of docs/explanations/vector-tables.md."""

from quietbits.solvers.divergences.dithered_norm import rounded_norm_bound, shrinkage


def rounded_norm() -> float:
    """Return the bound on the L2 norm of vectors that are rounded systematically.

    The ball has 128 dimensions and a radius of 15 steps.
    """
    return rounded_norm_bound(128, 2.0, 15.0)


def gamma(norm: int, bits: int) -> float:
    """Return the factor by which rejection shrinks vectors of 128 dimensions."""
    return shrinkage(128, float(norm), 2.0 ** (bits - 1) - 1, 0.05)
