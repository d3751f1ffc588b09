import numpy as np
import pytest

from quietbits.design.central.histogram import gaussian_histogram_error
from quietbits.solvers.accounting.gaussian_privacy import gaussian_noise_multiplier


def test_gaussian_noise_is_that_of_neighbouring_histograms() -> None:
    multiplier = gaussian_noise_multiplier(1.0, 1e-5)
    for adjacency, neighbour in (("replace-one", [1, -1, 0]), ("add-or-remove-one", [1, 0, 0])):
        deviation = multiplier * np.linalg.norm(neighbour)
        assert gaussian_histogram_error(3, 100, 1.0, 1e-5, adjacency) == pytest.approx(3 * deviation**2 / 100**2, rel=1e-6)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="adjacency must be one of"):
        gaussian_histogram_error(3, 100, 1.0, 1e-5, "swap")
    with pytest.raises(ValueError, match="size must be a whole number from 1"):
        gaussian_histogram_error(0, 100, 1.0, 1e-5, "replace-one")
    with pytest.raises(ValueError, match="clients must be "):
        gaussian_histogram_error(3, 0, 1.0, 1e-5, "replace-one")
