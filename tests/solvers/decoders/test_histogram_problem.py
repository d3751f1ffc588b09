"""The linear relaxation of a histogram.

Points under test: it meets the sums, equals a unique histogram, and refuses impossible sums.
"""

import numpy as np
import pytest

from quietbits.errors import InfeasibleError
from quietbits.solvers.decoders.histogram_problem import pose_histogram_problem, relaxed_histogram


@pytest.mark.parametrize("measurements", [3, 30])
def test_it_has_the_sums_and_is_the_histogram_where_they_are_many(measurements: int) -> None:
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 2, (measurements, 40))
    counts = np.bincount(rng.integers(0, 40, 6), minlength=40)
    histogram = relaxed_histogram(pose_histogram_problem(matrix, matrix @ counts, 6))
    np.testing.assert_allclose(matrix @ histogram, matrix @ counts, atol=1e-6)
    assert histogram.sum() == pytest.approx(6)
    assert (histogram >= 0).all()
    assert np.allclose(histogram, counts, atol=1e-6) == (measurements == 30)


def test_sums_of_nothing_are_refused() -> None:
    with pytest.raises(InfeasibleError, match="no vector without negative entries has these 2 sums and the sum 3"):
        relaxed_histogram(pose_histogram_problem([[1, 1], [1, 1]], [3, 2], 3))
