"""Normal numbers of words: the same as those of deployed clients, and close to exact quantiles."""

from itertools import pairwise

import numpy as np
import scipy

from quietbits.design.deployment.clients.simplex import normal_number
from quietbits.design.local.unit_vectors.shared_normals import NUMBERS_PER_CHUNK, normal_numbers, normal_quantiles


def test_numbers_of_python_and_deployed_clients_are_equal() -> None:
    words = np.random.default_rng(9).integers(0, 2**64, size=2000, dtype=np.uint64)
    words[:6] = [0, 2**64 - 1, 2**31 - 1, 2**31, 0x80000001_00000001, 0x000001FF_00000100]
    halves = np.concatenate([words & np.uint64(2**32 - 1), words >> np.uint64(32)]).astype(np.uint32)
    assert normal_numbers(halves).tolist() == [normal_number(half, normal_quantiles()) for half in halves.tolist()]


def test_numbers_are_close_to_exact_quantiles() -> None:
    """Numbers at the middles and ends of the table's cells differ from normal quantiles by less than 2e-6."""
    tails = np.unique(np.concatenate([np.rint(2.0**octave * (1 + np.linspace(0, 1, 1025))) for octave in range(31)])).astype(np.int64)
    halves = (np.minimum(tails, 2**31 - 1) | 1).astype(np.uint32)
    assert np.abs(normal_numbers(halves) + scipy.special.ndtri(halves / 2.0**32)).max() < 2e-6
    assert all(first > second for first, second in pairwise(normal_quantiles()))


def test_batches_and_shapes_change_nothing() -> None:
    halves = np.random.default_rng(1).integers(0, 2**32, size=2 * NUMBERS_PER_CHUNK + 10, dtype=np.uint32)
    one_by_one = np.concatenate([normal_numbers(halves[start : start + 1000]) for start in range(0, len(halves), 1000)])
    np.testing.assert_array_equal(normal_numbers(halves), one_by_one)
    np.testing.assert_array_equal(normal_numbers(halves.reshape(2, -1).T), one_by_one.reshape(2, -1).T)
