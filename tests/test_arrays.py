"""What stands beside the names of arrays' types."""

import numpy as np
import pytest

from quietbits.arrays import distinct


@pytest.mark.parametrize("shape", [0, 1, 7, (30, 40)])
def test_distinct_numbers_are_those_of_numpy(shape: int | tuple[int, ...]) -> None:
    for high in (1, 5, 2**62):
        numbers = np.random.default_rng(0).integers(-high, high, shape)
        np.testing.assert_array_equal(distinct(numbers), np.unique(numbers))
