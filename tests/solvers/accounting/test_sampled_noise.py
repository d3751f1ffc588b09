"""Privacy losses of sampled Gaussian noise: the numbers of dp-accounting, whatever the noise, and without its warnings."""

import math

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

from quietbits.solvers.accounting.sampled_gaussian_orders import fixed_size_cumulants, poisson_cumulants
from quietbits.solvers.accounting.sampled_gaussian_series import sampled_gaussian_cumulants
from quietbits.solvers.accounting.sampled_noise import (
    SAMPLED_ORDERS,
    WHOLE_ORDERS,
    gaussian_loss_interval,
    sampled_gaussian_curve,
    sampled_gaussian_loss,
    sampled_laplace_loss,
)
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
    for sampling, adjacency in (
        (PoissonSampling(0.1), "replace-one"),
        (FixedSizeSampling(10, 1), "replace-one"),
        (FixedSizeSampling(10, 1), "add-or-remove-one"),
    ):
        with pytest.raises(ValueError, match=r"sampling must be Poisson .*: it is not accounted for by privacy loss distributions"):
            sampled_gaussian_loss(1.0, sampling, adjacency)


@pytest.mark.parametrize(("multiplier", "probability"), [(0.6, 0.01), (1.0, 0.2), (4.0, 0.5)])
def test_between_whole_orders_the_lower_of_chord_and_series_is_above_the_integral(multiplier: float, probability: float) -> None:
    curve = sampled_gaussian_curve(multiplier, PoissonSampling(probability), "add-or-remove-one")
    assert curve.orders.tolist() == list(SAMPLED_ORDERS)
    whole = poisson_cumulants(multiplier, probability, np.array(WHOLE_ORDERS))
    step = multiplier / 40
    # No further than where e^(a x / z^2) overflows would matter: the integrand's peak is at x = a at most.
    points = np.arange(-14 * multiplier, 12 + 14 * multiplier, step)
    density = np.exp(-(points**2) / (2 * multiplier**2)) / math.sqrt(2 * math.pi) / multiplier * step
    ratios = 1 - probability + probability * np.exp((2 * points - 1) / (2 * multiplier**2))
    for order in (1.05, 1.5, 2.35, 3.0, 6.5, 9.9):
        position = SAMPLED_ORDERS.index(order) if order in SAMPLED_ORDERS else int(np.argmin(np.abs(curve.orders - order)))
        order = SAMPLED_ORDERS[position]
        cumulant = float(curve.divergences[position]) * (order - 1)
        exact = math.log1p(float(density @ (ratios**order - 1 - order * (ratios - 1))))
        chord = float(np.interp(order, [1, *WHOLE_ORDERS], [0.0, *whole]))
        lower = min(chord, float(sampled_gaussian_cumulants(multiplier, probability, np.array([order]))[0])) if order % 1 else chord
        assert exact * (1 - 1e-7) <= cumulant == pytest.approx(lower, rel=1e-12)


def test_laplace_noise_has_a_grid_of_a_thousandth_of_its_largest_loss() -> None:
    for scale in (0.5, 4.0):
        sampling = PoissonSampling(0.2)
        loss = sampled_laplace_loss(scale, sampling, "add-or-remove-one")
        largest = math.log1p(0.2 * math.expm1(1 / scale))
        assert loss._pmf_remove._discretization == pytest.approx(largest / 1000, rel=1e-12)
        assert largest <= loss.get_epsilon_for_delta(0.0) <= largest * 1.0011


def test_samples_of_a_fixed_size_have_their_share() -> None:
    curve = sampled_gaussian_curve(1.3, FixedSizeSampling(5000, 40), "replace-one")
    whole = fixed_size_cumulants(1.3, 40 / 5000, np.array(WHOLE_ORDERS))
    expected = np.interp(curve.orders, [1, *WHOLE_ORDERS], [0.0, *whole]) / (curve.orders - 1)
    np.testing.assert_allclose(curve.divergences, expected, rtol=1e-12)
    # Wang, Balle, Kasiviswanathan 2019 bound the second moment of the difference by 4 (e^(1/z^2) - 1).
    two = curve.orders.tolist().index(2.0)
    assert curve.divergences[two] == pytest.approx(math.log1p(4 * (40 / 5000) ** 2 * math.expm1(1 / 1.3**2)), rel=1e-6)
