"""The rank modulo a prime against the rational one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from quietbits.solvers.numerics.modular_rank import PRIME, modular_rank


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 5), st.integers(0, 2**32))
def test_products_have_the_rank_of_their_factors(rows: int, columns: int, rank: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-9, 10, (rows, rank)) @ rng.integers(-9, 10, (rank, columns))
    assert modular_rank(matrix) == np.linalg.matrix_rank(matrix.astype(float))


def test_it_is_never_above_the_rational_rank() -> None:
    assert modular_rank(np.array([[PRIME, 0], [0, 1]])) == 1
    assert modular_rank(np.array([[1, 2], [2, 4]])) == 1
