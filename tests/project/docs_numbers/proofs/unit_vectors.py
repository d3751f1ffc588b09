"""Numbers of docs/proofs/unit-vectors.md."""

from quietbits.solvers.numerics.projected_norm import hadamard_bias


def hadamard(projected: int) -> float:
    """Return the bound on the bias of FastProjUnit, as a share of the norm, in 2**20 dimensions."""
    return hadamard_bias(2**20, projected)
