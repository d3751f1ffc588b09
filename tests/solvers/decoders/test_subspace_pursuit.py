"""Tests of subspace pursuit.

Requirements: results are exact without noise, are least squares on their support, and never have more entries than requested.
"""

import numpy as np
import pytest
from scipy.sparse import csc_array

from quietbits.solvers.decoders.subspace_pursuit import PursuedSupport, pursue_support

ROWS, PLACES = 120, 1000
MATRIX = (np.random.default_rng(0).random((ROWS, PLACES)) < 0.05).astype(float)


def pursued(observations: np.ndarray, sparsity: int, threshold: float = 0.0) -> PursuedSupport:
    lengths = np.maximum(MATRIX.sum(axis=0), 1)
    centred = MATRIX - MATRIX.mean(axis=0)
    return pursue_support(
        lambda places: csc_array(MATRIX[:, places]), lambda rest: centred.T @ rest / lengths, observations, sparsity, threshold
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_sparse_vector_is_found_exactly_and_refitted_under_noise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    support = np.sort(rng.choice(PLACES, 6, replace=False))
    values = rng.uniform(1, 3, 6)
    exact = pursued(MATRIX[:, support] @ values, 6)
    assert exact.support.tolist() == support.tolist()
    np.testing.assert_allclose(exact.values, values, rtol=1e-6)
    assert exact.residual_norm < 1e-6
    noisy = MATRIX[:, support] @ values + 0.05 * rng.normal(size=ROWS)
    result = pursued(noisy, 6)
    assert result.support.tolist() == support.tolist()
    np.testing.assert_allclose(result.values, np.linalg.lstsq(MATRIX[:, support], noisy)[0], rtol=1e-6)


def test_small_and_negative_entries_are_left_out() -> None:
    observations = 2 * MATRIX[:, 3] + 0.2 * MATRIX[:, 5] - 1 * MATRIX[:, 7]
    assert 5 not in pursued(observations, 3, threshold=0.5).support
    assert (pursued(observations, 3).values > 0).all()
    assert len(pursued(np.zeros(ROWS), 3).support) == 0
    assert len(pursued(np.random.default_rng(1).normal(size=ROWS), 60).support) <= 60


@pytest.mark.parametrize(
    ("sparsity", "threshold", "message"), [(0, 0.0, "sparsity must"), (ROWS, 0.0, "sparsity must"), (1, -1.0, "threshold")]
)
def test_bad_arguments(sparsity: int, threshold: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pursued(np.ones(ROWS), sparsity, threshold)
