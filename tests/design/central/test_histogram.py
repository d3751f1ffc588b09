import numpy as np
import pytest

from quietbits.design.central.histogram import discrete_laplace_histogram_error, gaussian_histogram_error
from quietbits.design.noise.discrete_laplace import sample_discrete_laplace
from quietbits.solvers.accounting.gaussian_privacy import gaussian_noise_multiplier


@pytest.mark.parametrize(("adjacency", "sensitivity"), [("replace-one", 2), ("add-or-remove-one", 1)])
def test_discrete_laplace_noise_has_the_stated_error_and_no_more_privacy_loss(adjacency: str, sensitivity: int) -> None:
    epsilon, categories, clients = 0.8, 50, 1000
    noise = sample_discrete_laplace(sensitivity / epsilon, (4000, categories), np.random.default_rng(0))
    errors = np.square(noise / clients).sum(axis=1)
    stated = discrete_laplace_histogram_error(categories, clients, epsilon, adjacency)
    assert errors.mean() == pytest.approx(stated, abs=5 * errors.std() / np.sqrt(4000))
    # The log-probability of a count changes by epsilon / sensitivity for each step, and the counts by that many steps in all.
    points = np.arange(-200, 201)
    probabilities = np.exp(-np.abs(points) * epsilon / sensitivity)
    variance = (probabilities * points**2).sum() / probabilities.sum()
    assert stated == pytest.approx(categories * variance / clients**2, rel=1e-9)


def test_gaussian_noise_is_that_of_neighbouring_histograms() -> None:
    multiplier = gaussian_noise_multiplier(1.0, 1e-5)
    for adjacency, neighbour in (("replace-one", [1, -1, 0]), ("add-or-remove-one", [1, 0, 0])):
        deviation = multiplier * np.linalg.norm(neighbour)
        assert gaussian_histogram_error(3, 100, 1.0, 1e-5, adjacency) == pytest.approx(3 * deviation**2 / 100**2, rel=1e-6)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="adjacency must be one of"):
        discrete_laplace_histogram_error(3, 100, 1.0, "swap")
    with pytest.raises(ValueError, match="categories must be "):
        discrete_laplace_histogram_error(0, 100, 1.0, "replace-one")
    with pytest.raises(ValueError, match="clients must be "):
        discrete_laplace_histogram_error(3, 0, 1.0, "replace-one")
    with pytest.raises(ValueError, match="adjacency must be one of"):
        gaussian_histogram_error(3, 100, 1.0, 1e-5, "swap")
