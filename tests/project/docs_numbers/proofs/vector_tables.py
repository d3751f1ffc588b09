"""Numbers of docs/proofs/vector-tables.md."""

from quietbits.solvers.divergences.dithered_norm import rounded_norm_bound


def rounded_norm() -> float:
    """Return the bound on the L2 norm of vectors that are rounded systematically.

    The ball has 128 dimensions and a radius of 15 steps.
    """
    return rounded_norm_bound(128, 2.0, 15.0)
