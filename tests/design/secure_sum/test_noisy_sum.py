"""Sums of discrete Gaussians, accounted for as Gaussian noise, against exact sums."""

import math

import numpy as np
import pytest

from quietbits.design.secure_sum import noisy_sum
from quietbits.design.secure_sum.noisy_sum import NoisySum, noisy_sum_privacy
from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon
from quietbits.solvers.accounting.renyi_curve import RenyiCurve
from quietbits.solvers.accounting.sampled_noise import sampled_gaussian_curve
from quietbits.solvers.accounting.sampling import PoissonSampling
from quietbits.solvers.divergences.discrete_gaussian_divergence import smoothed_sums, summed_discrete_gaussian_losses


def near_gaussian(clients: int, sigma: float, shift: float, delta: float, rounds: int = 1) -> float:
    """Return one coordinate's near-Gaussian epsilon; infinite with too little noise."""
    privacy = noisy_sum_privacy(clients, NoisySum(sigma, shift, 1))
    return privacy.account("near-gaussian").bound(delta, rounds, None).epsilon


@pytest.mark.parametrize("clients", [1, 2, 7, 60])
@pytest.mark.parametrize("sigma", [0.7, 1.0, 3.0])
@pytest.mark.parametrize("shift", [1, 6])
def test_the_account_is_above_the_truth_and_near_it(clients: int, sigma: float, shift: int) -> None:
    truth = summed_discrete_gaussian_losses(clients, sigma, shift)
    for delta in (1e-2, 1e-5, 1e-9):
        result = near_gaussian(clients, sigma, shift, delta)
        assert result >= truth.epsilon(delta)
        if clients * sigma**2 > 50:
            # The margin is for the noise of a few whole numbers that the account uses for rounding.
            assert result <= truth.epsilon(delta) * 1.06 + 1e-9


def test_two_rounds_by_enumeration() -> None:
    sigma, delta = 2.0, 1e-3
    value = np.arange(-40, 41)
    density = np.exp(-(value**2) / (2 * sigma**2))
    density /= density.sum()
    own, other = np.convolve(density, density), np.roll(np.convolve(density, density), 1)
    epsilon = near_gaussian(2, sigma, 1.0, delta, rounds=2)
    assert epsilon < 10
    first, second = np.outer(own, own), np.outer(other, other)
    assert 0 < np.maximum(first - math.exp(epsilon) * second, 0).sum() <= delta


def test_the_sum_must_have_noise() -> None:
    assert math.isinf(near_gaussian(10, 0.2, 1.0, 1e-5))
    # Sensitivities must be positive; this sensitivity is practically zero.
    assert near_gaussian(100, 2.0, 1e-100, 1e-5) < 1e-9


@pytest.mark.parametrize("sigma", [0.2, 0.3, 0.5])
def test_little_noise_of_each_of_many_clients_has_its_price(sigma: float) -> None:
    truth = summed_discrete_gaussian_losses(50, sigma, 1)
    result = near_gaussian(50, sigma, 1.0, 1e-5)
    assert truth.epsilon(1e-5) * 1.5 <= result < math.inf
    # The account uses the noise of the best number of clients, since sums of more clients are further from Gaussian noise.
    assert result == min(near_gaussian(some, sigma, 1.0, 1e-5) for some in range(1, 51))
    assert result < 2 * smoothed_sums(50, sigma)[-1].log_ratio


@pytest.mark.parametrize("rounds", [1, 20])
@pytest.mark.parametrize("noisy", [NoisySum(30.0, 200.0, 64), NoisySum(5.0, 40.0, 3)])
def test_a_sum_is_gaussian_noise_of_its_multiplier(noisy: NoisySum, rounds: int) -> None:
    clients, delta = 400, 1e-6
    multiplier = math.sqrt(clients) * noisy.sigma / noisy.l2_sensitivity
    privacy = noisy_sum_privacy(clients, noisy)
    computed = privacy.account("near-gaussian").bound(delta, rounds, None).epsilon
    exact = gaussian_epsilon(multiplier / math.sqrt(rounds), delta)
    assert exact <= computed <= exact * 1.01
    # The divergences are nearly those of a Gaussian, a / (2 z^2).
    orders = sampled_gaussian_curve(multiplier, PoissonSampling(0.5), "add-or-remove-one").orders
    assert privacy.account("rdp").bound(delta, rounds, None).epsilon == pytest.approx(
        RenyiCurve(orders, orders / (2 * multiplier**2)).composed(rounds).epsilon(delta).epsilon, rel=0.01
    )


@pytest.mark.parametrize("rounds", [1, 50])
def test_a_sampled_sum_is_sampled_gaussian_noise_of_its_multiplier(rounds: int) -> None:
    clients, delta, sampling, noisy = 400, 1e-6, PoissonSampling(0.05), NoisySum(30.0, 200.0, 64)
    multiplier = math.sqrt(clients) * noisy.sigma / noisy.l2_sensitivity
    computed = noisy_sum_privacy(clients, noisy).account("rdp").bound(delta, rounds, sampling).epsilon
    exact = sampled_gaussian_curve(multiplier, sampling, "add-or-remove-one").composed(rounds).epsilon(delta).epsilon
    assert exact <= computed <= exact * 1.01


@pytest.mark.parametrize("rounds", [1, 1000])
def test_a_ratio_counts_in_each_sampled_round(rounds: int) -> None:
    noise = noisy_sum_privacy(1, NoisySum(2.0, 3.0, 50)).account("near-gaussian").near_gaussian
    assert noise is not None
    asked: list[tuple[float, float]] = []
    epsilon = noise.epsilon(1e-6, rounds, lambda *at: asked.append(at) or 0.5)
    multiplier, left = asked[0]
    # The account chooses the variance that it uses for rounding; the largest remaining noise has a ratio below 1e-8 for all coordinates
    # together.
    smoothed = next(part for part in smoothed_sums(1, 2.0) if 50 * part.log_ratio <= 1e-8)
    ratio = 50 * smoothed.log_ratio
    assert multiplier == pytest.approx(smoothed.sigma / 3, rel=1e-12)
    assert ratio > 1e-10
    assert epsilon - 0.5 == pytest.approx(2 * rounds * ratio, rel=1e-4)
    assert 1 - left / 1e-6 == pytest.approx(rounds * ratio, rel=1e-4)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((0.0, 1.0, 1), "sigma must be a number from 0.001 to "),
        ((1.0, 0.0, 1), "l2_sensitivity must be a number from 1e-100 to 1e\\+100, got 0"),
        ((1.0, float("nan"), 1), "l2_sensitivity must be a number from "),
        ((1.0, 1.0, 0), "dimension must be a whole number from 1 to "),
    ],
)
def test_a_sum_out_of_range_is_refused(fields: tuple[float, float, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NoisySum(*fields)


@pytest.mark.parametrize(("clients", "sigma", "shift"), [(1, 0.9, 1), (3, 0.7, 1), (60, 1.0, 6)])
@pytest.mark.parametrize("rounds", [2, 7])
def test_rounds_of_a_number_are_one_round_of_as_many_coordinates(clients: int, sigma: float, shift: int, rounds: int) -> None:
    # Both calls describe the same release, so each coordinate's ratio to Gaussian noise counts once.
    together = noisy_sum_privacy(clients, NoisySum(sigma, shift * math.sqrt(rounds), rounds)).account("near-gaussian")
    for delta in (1e-2, 1e-5):
        one_by_one = near_gaussian(clients, sigma, shift, delta, rounds)
        assert math.isfinite(one_by_one)
        assert together.bound(delta, 1, None).epsilon == pytest.approx(one_by_one, rel=1e-9)


def test_a_ratio_counts_in_sampled_divergences_as_often_as_it_can_change_them(monkeypatch: pytest.MonkeyPatch) -> None:
    # If P and Q change by factors of at most e^r each, P^a Q^(1 - a) changes by at most e^(a r) e^((a - 1) r). The Gaussian curve is
    # replaced by zero, so that only this factor remains.
    orders, made = np.array([1.5, 2.0, 20.0]), list[RenyiCurve]()

    def curve(*fields: np.ndarray) -> RenyiCurve:
        made.append(RenyiCurve(*fields))
        return made[-1]

    monkeypatch.setattr(noisy_sum, "sampled_gaussian_curve", lambda *_: RenyiCurve(orders, np.zeros(3)))
    monkeypatch.setattr(noisy_sum, "RenyiCurve", curve)
    account = noisy_sum_privacy(1, NoisySum(2.0, 1.0, 50)).account("rdp")
    account.bound(1e-6, 3, PoissonSampling(0.05))
    (sampled,) = [item for item in made if len(item.orders) == 3]
    ratio = next(50 * part.log_ratio for part in smoothed_sums(1, 2.0) if 50 * part.log_ratio <= 1e-8)
    np.testing.assert_allclose(sampled.divergences * (orders - 1), ratio * (orders + (orders - 1)), rtol=1e-4)


def test_noise_that_is_far_from_gaussian_has_its_reason() -> None:
    bound = noisy_sum_privacy(1, NoisySum(0.001, 1e6, 1)).account("near-gaussian").bound(1e-5, 1, None)
    assert bound.epsilon == math.inf
    assert bound.reason == "local_sigma must be larger for the noise to be nearly Gaussian"
    sampled = noisy_sum_privacy(1, NoisySum(0.001, 1e6, 1)).account("near-gaussian").bound(1e-5, 1, PoissonSampling(0.5))
    assert sampled.epsilon == math.inf
    assert sampled.reason is not None
    assert sampled.reason.startswith("local_sigma must be larger for sampling to be accounted for: 1 clients with noise of 0.001 steps")
