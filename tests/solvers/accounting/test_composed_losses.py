"""Convolution of different privacy losses.

Points under test: closed forms of Gaussian noise and of randomised response, exact enumeration, directions, rounding upward.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from quietbits.solvers.accounting import composed_losses as composed_losses_module
from quietbits.solvers.accounting.composed_losses import (
    STEPS,
    LossPair,
    approximate_losses,
    composed_losses,
    composed_pair,
    gaussian_losses,
    losses_of_distribution,
    losses_of_masses,
    pair_epsilon,
    pure_losses,
)
from quietbits.solvers.accounting.exact_privacy_loss import ExactPrivacyLoss
from quietbits.solvers.accounting.gaussian_privacy import gaussian_delta, gaussian_epsilon
from quietbits.solvers.accounting.pure_composition import composed_pure_epsilon
from quietbits.solvers.accounting.sampled_noise import gaussian_loss_interval, sampled_gaussian_loss
from quietbits.solvers.accounting.sampling import PoissonSampling

# Relative excess that a grid of 4096 steps may add.
SLACK = 1e-5


def loss_of(first: list[float], second: list[float]) -> ExactPrivacyLoss:
    """Return the loss of two distributions on common values."""
    own, other = np.array(first), np.array(second)
    return losses_of_masses(np.log(own / other), own)


def exact_delta(pairs: list[tuple[list[float], list[float]]], epsilon: float) -> float:
    """Return the hockey-stick divergence of independent pairs, by enumeration of all outcomes."""
    terms = []
    for outcome in itertools.product(*(range(len(first)) for first, _ in pairs)):
        own = math.prod(first[value] for (first, _), value in zip(pairs, outcome, strict=True))
        other = math.prod(second[value] for (_, second), value in zip(pairs, outcome, strict=True))
        terms.append(max(0.0, own - math.exp(epsilon) * other))
    return math.fsum(terms)


@pytest.mark.parametrize("multiplier", [0.05, 0.5, 1.0, 3.7, 100.0, 1e5])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12, 1e-50])
def test_gaussian_losses_have_the_closed_form(multiplier: float, delta: float) -> None:
    exact = gaussian_epsilon(multiplier, delta)
    assert exact * (1 - 1e-8) <= gaussian_losses(multiplier, delta).epsilon(delta) <= exact * (1 + SLACK) + 1e-12


def test_gaussian_losses_dominate_at_every_epsilon() -> None:
    losses = gaussian_losses(1.0, 1e-6)
    for epsilon in np.linspace(0.0, 6.0, 61).tolist():
        exact = gaussian_delta(1.0, epsilon)
        assert exact * (1 - 1e-9) <= losses.delta(epsilon) <= exact * (1 + 1e-3) + 1e-12


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
def test_gaussian_parts_equal_one_gaussian(delta: float) -> None:
    multipliers = (1.0, 2.0, 0.7, 50.0)
    exact = gaussian_epsilon(1 / math.hypot(*(1 / multiplier for multiplier in multipliers)), delta)
    epsilon = composed_losses([gaussian_losses(multiplier, delta) for multiplier in multipliers], delta).epsilon(delta)
    assert exact * (1 - 1e-8) <= epsilon <= exact * (1 + SLACK)


def test_discrete_pairs_are_enumerated_exactly() -> None:
    rng = np.random.default_rng(1)
    for count in (2, 3, 4) * 4:
        pairs = [(rng.dirichlet(np.ones(4)).tolist(), rng.dirichlet(np.ones(4)).tolist()) for _ in range(count)]
        losses = [loss_of(*pair) for pair in pairs]
        for delta in (1e-4, 0.01, 0.1):
            epsilon = composed_losses(losses, delta).epsilon(delta)
            assert exact_delta(pairs, epsilon) <= delta
            if epsilon > 0:
                assert exact_delta(pairs, epsilon * (1 - 1e-6)) > delta


def test_discrete_losses_on_a_grid_exceed_the_exact_ones_by_a_step_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composed_losses_module, "FEW_SUMS", 0)
    rng = np.random.default_rng(1)
    for count in (2, 3, 4) * 4:
        pairs = [(rng.dirichlet(np.ones(4)).tolist(), rng.dirichlet(np.ones(4)).tolist()) for _ in range(count)]
        losses = [loss_of(*pair) for pair in pairs]
        step = math.hypot(*(float(np.abs(loss.losses).max()) for loss in losses)) / STEPS
        for delta in (1e-4, 0.01, 0.1):
            epsilon = composed_losses(losses, delta).epsilon(delta)
            assert exact_delta(pairs, epsilon) <= delta
            if epsilon > count * step:
                assert exact_delta(pairs, epsilon - count * step) > delta


@pytest.mark.parametrize("uses", [1, 2, 7, 100])
def test_pure_losses_are_those_of_randomised_response(uses: int) -> None:
    for epsilon in (0.01, 0.5, 3.0):
        for delta in (1e-9, 1e-5, 0.1):
            exact = composed_pure_epsilon(epsilon, uses, delta)
            assert exact * (1 - 1e-9) <= pure_losses(epsilon, uses).epsilon(delta) <= exact * (1 + 1e-6) + 1e-9


def test_approximate_losses_are_at_most_their_epsilon_and_delta() -> None:
    losses = approximate_losses(1.0, 1e-5)
    assert losses.delta(1.0) == pytest.approx(1e-5, rel=1e-12)
    assert losses.delta(0.0) == pytest.approx(1e-5 + (1 - 1e-5) * math.tanh(0.5), rel=1e-12)
    assert losses.epsilon(0.9e-5) == math.inf


def test_certain_failures_add_up() -> None:
    losses = composed_losses([approximate_losses(1.0, 1e-5), approximate_losses(0.5, 2e-5)], 1e-4)
    assert losses.delta(2.0) == pytest.approx(3e-5, rel=1e-4)
    assert losses.delta(2.0) >= 3e-5 - 2e-10


def test_both_directions_are_composed_apart() -> None:
    forth, back = loss_of([0.9, 0.1], [0.5, 0.5]), loss_of([0.5, 0.5], [0.9, 0.1])
    pair = composed_pair([LossPair(forth, back)] * 3, 1e-3)
    assert pair.back is not None
    forth_alone, back_alone = (composed_losses([loss] * 3, 1e-3).epsilon(1e-3) for loss in (forth, back))
    assert pair_epsilon(pair, 1e-3) == max(forth_alone, back_alone)
    assert forth_alone != pytest.approx(back_alone, rel=0.1)
    # A part with one distribution for both directions counts in both.
    mixed = composed_pair([LossPair(forth, back), LossPair(pure_losses(0.1, 1))], 1e-3)
    assert mixed.back is not None
    assert pair_epsilon(mixed, 1e-3) == max(composed_losses([loss, pure_losses(0.1, 1)], 1e-3).epsilon(1e-3) for loss in (forth, back))
    assert composed_pair([LossPair(forth)] * 2, 1e-3).back is None


def test_a_single_part_is_not_put_on_a_grid() -> None:
    loss = loss_of([0.9, 0.1], [0.5, 0.5])
    assert composed_losses([loss], 1e-3) is loss


def test_dp_accountings_masses_are_read_with_their_rounding() -> None:
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    interval = gaussian_loss_interval(1.0, 0.1)
    distribution = from_gaussian_mechanism(1.0, value_discretization_interval=interval, sampling_prob=0.1)
    pair = losses_of_distribution(distribution, 1e-9)
    assert pair.back is not None
    # Both directions of the package's own losses are the same.
    own = losses_of_distribution(sampled_gaussian_loss(1.0, PoissonSampling(0.1), "add-or-remove-one"), 1e-9)
    for first, second in zip(own.directions, pair.directions, strict=True):
        assert first.delta(0.5) == second.delta(0.5)
    assert max(loss.delta(0.5) for loss in pair.directions) == pytest.approx(distribution.get_delta_for_epsilon(0.5) + 1e-9, rel=1e-9)
    assert losses_of_distribution(from_gaussian_mechanism(1.0), 0.0).back is None


def test_order_and_number_of_parts_do_not_matter() -> None:
    losses = [pure_losses(0.3, 5), gaussian_losses(2.0, 1e-6), gaussian_losses(9.0, 1e-6)]
    epsilons = [composed_losses(list(order), 1e-6).epsilon(1e-6) for order in itertools.permutations(losses)]
    assert max(epsilons) <= min(epsilons) * (1 + 1e-12)


def test_many_parts_stay_close_to_the_exact_epsilon() -> None:
    losses = [gaussian_losses(30.0, 1e-6)] * 60
    exact = gaussian_epsilon(30.0 / math.sqrt(60), 1e-6)
    assert exact <= composed_losses(losses, 1e-6).epsilon(1e-6) <= exact * (1 + 1e-3)


def test_binomial_losses_of_unequal_uses() -> None:
    # Two binomials on randomised responses: the joint law has 6 * 4 losses.
    epsilon, delta = composed_losses([pure_losses(0.5, 5), pure_losses(1.0, 3)], 0.01).epsilon(0.01), 0.01
    small, large = (1 / (1 + math.exp(-value)) for value in (0.5, 1.0))
    terms = [
        stats.binom.pmf(first, 5, small) * stats.binom.pmf(second, 3, large) * max(0.0, -math.expm1(epsilon - loss))
        for first, second in itertools.product(range(6), range(4))
        if (loss := (2 * first - 5) * 0.5 + (2 * second - 3) * 1.0) > epsilon
    ]
    assert delta * (1 - 1e-2) <= math.fsum(terms) <= delta


def test_certain_failures_add_up_on_a_grid() -> None:
    losses = [gaussian_losses(2.0, 1e-3), gaussian_losses(1.0, 1e-3), approximate_losses(1.0, 1e-5), approximate_losses(9.0, 2e-5)]
    assert composed_losses(losses, 1e-3).delta(90.0) == pytest.approx(3e-5, rel=1e-4)


def test_the_infinite_loss_of_a_distribution_is_certain() -> None:
    from dp_accounting.pld.pld_pmf import SparsePLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    pair = losses_of_distribution(PrivacyLossDistribution(SparsePLDPmf({-1: 0.4, 1: 0.5}, 0.1, 0.1, pessimistic_estimate=True)), 0.01)
    assert pair.forth.certain == pytest.approx(0.11, rel=1e-12)
    assert pair.forth.losses.tolist() == [-0.1, 0.1]
    np.testing.assert_allclose(pair.forth.masses, [0.4, 0.5], rtol=1e-12)
