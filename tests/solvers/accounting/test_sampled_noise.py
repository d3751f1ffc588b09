"""Privacy losses of sampled Gaussian noise: the numbers of dp-accounting, whatever the noise, and without its warnings."""

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

from quietbits.solvers.accounting.sampled_noise import gaussian_loss_interval, sampled_gaussian_loss
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling


@pytest.mark.parametrize(("multiplier", "probability"), [(0.3, 0.9), (1.0, 0.01), (5.0, 1e-6), (80.0, 0.999)])
def test_losses_are_those_of_dp_accounting_to_the_last_bit(multiplier: float, probability: float) -> None:
    interval = gaussian_loss_interval(multiplier, probability)
    theirs = from_gaussian_mechanism(multiplier, sampling_prob=probability, value_discretization_interval=interval)
    ours = sampled_gaussian_loss(multiplier, PoissonSampling(probability), "add-or-remove-one")
    for own, other in ((ours._pmf_remove, theirs._pmf_remove), (ours._pmf_add, theirs._pmf_add)):
        assert (own._discretization, own._lower_loss, own._infinity_mass) == (interval, other._lower_loss, other._infinity_mass)
        np.testing.assert_array_equal(own._probs, other._probs)


@pytest.mark.parametrize("multiplier", [0.001, 0.03, 1e5])
def test_noise_of_any_size_has_losses(multiplier: float) -> None:
    loss = sampled_gaussian_loss(multiplier, PoissonSampling(0.5), "add-or-remove-one")
    largest = 0.5 / multiplier**2 + 10 / multiplier
    assert 0 <= loss.get_epsilon_for_delta(1e-5) <= largest


def test_what_is_not_accounted_for_is_refused() -> None:
    for sampling, adjacency in ((PoissonSampling(0.1), "replace-one"), (FixedSizeSampling(10, 1), "replace-one")):
        with pytest.raises(ValueError, match=r"sampling must be Poisson .*: it is not accounted for by privacy loss distributions"):
            sampled_gaussian_loss(1.0, sampling, adjacency)
