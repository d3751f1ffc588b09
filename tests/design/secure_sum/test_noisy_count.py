"""A count under a secure sum, and its joint account with other sums."""

import math

import numpy as np
import pytest

from quietbits import FixedSizeSampling, NormBall, PoissonSampling
from quietbits.design.federated.adaptive_clipping import combined_noise_multiplier
from quietbits.design.federated.joint_privacy import joint_privacy
from quietbits.design.secure_sum.aggregation import SecureSum
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism, discrete_gaussian_privacy
from quietbits.design.secure_sum.noisy_count import NoisyCount
from quietbits.design.secure_sum.noisy_sum import NoisySum, noisy_sum_privacy
from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon
from quietbits.solvers.divergences.discrete_gaussian_divergence import summed_discrete_gaussian_losses

VECTOR = NoisySum(sigma=200.0, l2_sensitivity=1000.0, dimension=1024)


def test_the_fraction_is_unbiased_with_the_stated_deviation() -> None:
    count = NoisyCount.of_deviation(50, 4.0)
    answers = np.arange(50) < 20
    rng = np.random.default_rng(0)
    result = np.array([count.fraction(count.encode(answers, rng).sum(keepdims=True)) for _ in range(1000)])
    # The margins are four standard errors: 0.08 / sqrt(1000) of the mean, and 2.2 % of the deviation.
    assert result.mean() == pytest.approx(0.4, abs=4 * 0.08 / math.sqrt(1000))
    assert result.std() * 50 == pytest.approx(count.deviation, rel=4 * 0.022)


def test_it_goes_through_masks() -> None:
    count = NoisyCount.of_deviation(30, 1.5)
    messages = count.encode(np.arange(30) % 3 == 0, np.random.default_rng(0))
    masked = SecureSum(30, 1, 1 << count.bits).total([messages[:, None]], np.random.default_rng(1))
    assert count.fraction(masked) == count.fraction(messages.sum(keepdims=True, dtype=np.int64))


@pytest.mark.parametrize("clients", [1, 100, 1000, 10**6])
def test_bits_are_those_of_the_number_of_clients_and_a_few_more(clients: int) -> None:
    count = NoisyCount.of_deviation(clients, max(clients / 20, 1.0))
    assert math.log2(2 * clients + 1) < count.bits <= math.log2(clients) + 7
    # The sum stays in range even if all clients answer yes and the noise is at its bound.
    most = clients * count.steps + math.sqrt(2 * clients * math.log(2e9)) * count.local_sigma
    assert most < 2 ** (count.bits - 1)


@pytest.mark.parametrize(("sigma", "steps", "bits"), [(10.0, 32735, 18), (10.05, 32735, 19), (10.0, 32736, 19)])
def test_one_bit_fewer_could_wrap(sigma: float, steps: int, bits: int) -> None:
    # Four clients' answers and their noise at its bound, 130.89 or 131.55 steps, must be at most 2**(bits - 1) - 1 = 131071 for 18 bits.
    count = NoisyCount(4, sigma, steps)
    assert count.bits == bits
    room = math.sqrt(2 * 4 * math.log(2e9)) * sigma
    assert (4 * steps + room <= 2**17 - 1) == (bits == 18)


def test_a_mechanism_has_the_privacy_of_its_sum() -> None:
    alone = discrete_gaussian_privacy(1000, 1024, 1.0, 0.2, 0.001)
    mechanism = DistributedDiscreteGaussianMechanism(NormBall(1024, 2.0), 1000, 20, 0.001, 0.2, 1e-5)
    for sampling in (None, PoissonSampling(0.1)):
        for name in ("rdp", "near-gaussian"):
            own, other = (privacy.report(1e-5, rounds=3, sampling=sampling).epsilon_by(name) for privacy in (alone, mechanism.privacy()))
            assert own == other


@pytest.mark.parametrize("adjacency", ["add-or-remove-one", "replace-one"])
def test_vector_and_count_are_nearly_one_gaussian(adjacency: str) -> None:
    factor = 2 if adjacency == "replace-one" else 1
    vector = NoisySum(200.0, 1000.0 * factor, 1024)
    count = NoisyCount.of_deviation(1000, 8.0)
    joint = joint_privacy([noisy_sum_privacy(1000, vector, adjacency), count.privacy(adjacency)], adjacency)
    report = joint.report(1e-5, adjacency, 10)
    multiplier = combined_noise_multiplier(math.sqrt(1000) * 0.2 / factor, 8.0, adjacency)
    gaussian = gaussian_epsilon(multiplier / math.sqrt(10), 1e-5)
    # The account uses a little of the noise for rounding, so epsilon is slightly above the Gaussian value.
    assert gaussian < report.epsilon < 1.01 * gaussian
    assert report.epsilon < report.epsilon_by("rdp") < 1.15 * gaussian


def test_joint_accounts_are_above_exact_convolution() -> None:
    # Two numbers both move by 1, in separate sums with independent noise.
    clients, sigmas, delta = 5, (0.8, 1.5), 1e-6
    exact = [summed_discrete_gaussian_losses(clients, sigma, 1) for sigma in sigmas]
    masses = np.multiply.outer(*(np.exp(item.log_masses) for item in exact))
    losses = np.add.outer(*(item.losses for item in exact))
    sums = [noisy_sum_privacy(clients, NoisySum(sigma, 1.0, 1)) for sigma in sigmas]
    report = joint_privacy(sums, "add-or-remove-one").report(delta)
    for name in ("rdp", "near-gaussian"):
        epsilon = report.epsilon_by(name)
        assert float(np.sum(masses * np.maximum(0.0, -np.expm1(epsilon - losses)))) <= delta
    # The epsilon is close to the exact value.
    assert float(np.sum(masses * np.maximum(0.0, -np.expm1(0.9 * report.epsilon - losses)))) > delta


def test_sampled_rounds_are_accounted_for() -> None:
    count = NoisyCount.of_deviation(1000, 50.0)
    privacy = joint_privacy([noisy_sum_privacy(1000, VECTOR), count.privacy()], "add-or-remove-one")
    everyone = privacy.epsilon(1e-5, rounds=10)
    sampled = privacy.report(1e-5, rounds=10, sampling=PoissonSampling(0.05))
    assert sampled.epsilon < everyone / 5
    alone = noisy_sum_privacy(1000, VECTOR).report(1e-5, rounds=10, sampling=PoissonSampling(0.05))
    assert alone.epsilon < sampled.epsilon < 1.01 * alone.epsilon


def test_the_steps_are_fine_enough_for_many_rounds() -> None:
    # With one step per client and noise of 0.506 steps, 1500 rounds would have an epsilon of thousands.
    report = NoisyCount.of_deviation(1000, 8.0).privacy().report(1e-5, rounds=1500)
    assert report.epsilon == pytest.approx(gaussian_epsilon(16 / math.sqrt(1500), 1e-5), rel=1e-3)
    assert NoisyCount(1000, 16 / math.sqrt(1000)).privacy().report(1e-5, rounds=1500).epsilon > 1000


def test_a_message_is_a_single_step_unless_more_are_given() -> None:
    count = NoisyCount(1000, 3.0)
    assert count.steps == 1
    assert count.deviation == pytest.approx(math.sqrt(1000) * 3.0 / 2, rel=1e-9)


def test_what_is_refused() -> None:
    count = NoisyCount(10, 1.0)
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"answers must be truth values, shape \(clients,\), of at least one client, got bool and \(0,\)"):
        count.encode(np.zeros(0, dtype=bool), rng)
    with pytest.raises(ValueError, match="answers must be truth values"):
        count.encode([0.5], rng)
    with pytest.raises(ValueError, match=r"answers must be truth values, shape \(clients,\), .* got bool and \(2, 2\)"):
        count.encode(np.ones((2, 2), dtype=bool), rng)
    with pytest.raises(ValueError, match="clients must be a whole number from 1"):
        NoisyCount(0, 1.0)
    with pytest.raises(ValueError, match=r"local_sigma must be a number from 0\.001"):
        NoisyCount(10, 0.0)
    with pytest.raises(ValueError, match=r"aggregate must have the shape \(1,\)"):
        count.fraction([1, 2])
    with pytest.raises(ValueError, match="l2_sensitivity must be a number from"):
        NoisySum(1.0, 0.0, 1)


def test_too_little_noise_for_sampling_to_be_accounted_for_is_as_private_as_without() -> None:
    privacy = noisy_sum_privacy(10, NoisySum(0.3, 1.0, 1), "replace-one")
    assert privacy.epsilon(1e-5, sampling=FixedSizeSampling(100, 10)) == privacy.epsilon(1e-5) < math.inf


@pytest.mark.parametrize("deviation", [0.5, 2.0, 7.3, 11.0, 40.0, 1e4])
def test_steps_are_as_short_as_smooth_noise_takes_and_no_shorter(deviation: float) -> None:
    count = NoisyCount.of_deviation(50, deviation)
    assert count.local_sigma >= 3.0
    assert count.steps == 1 or count.local_sigma * (count.steps - 1) / count.steps < 3.0


def test_noise_far_below_the_sensitivity_is_sampled_as_rounds_of_their_own() -> None:
    privacy, sampling = noisy_sum_privacy(10, NoisySum(1000.0, 1e12, 1)), PoissonSampling(0.1)
    bound = privacy.account("near-gaussian").bound(1e-5, 1, sampling)
    assert bound.epsilon == math.inf
    assert bound.reason == "local_sigma must be larger for the noise to be nearly Gaussian"


@pytest.mark.parametrize(("adjacency", "sensitivity"), [("add-or-remove-one", 4.0), ("replace-one", 8.0)])
def test_a_count_is_a_sum_of_one_coordinate_that_a_client_moves_by_its_steps(adjacency: str, sensitivity: float) -> None:
    own, other = NoisyCount(10, 3.5, 4).privacy(adjacency), noisy_sum_privacy(10, NoisySum(3.5, sensitivity, 1), adjacency)
    assert own.epsilon(1e-5, adjacency) == other.epsilon(1e-5, adjacency)
