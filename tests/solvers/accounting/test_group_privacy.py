"""From adding or removing a client to replacing it.

Points under test: Gaussian and Laplace noise, whose shifts add up; enumeration of three discrete laws; bounds that cover every pair.
"""

import math

import numpy as np
import pytest

from quietbits.solvers.accounting.composed_losses import LossPair, gaussian_losses, losses_of_masses, pair_epsilon, pure_losses
from quietbits.solvers.accounting.exact_privacy_loss import ExactPrivacyLoss
from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon
from quietbits.solvers.accounting.group_privacy import doubled_curve, doubled_epsilon, doubled_losses
from quietbits.solvers.accounting.pure_privacy import pure_renyi_divergences
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from quietbits.solvers.numerics.log_sum_exp import log_sum_exp

FINITE = np.array(DEFAULT_ORDERS[:-1])


def loss_of(first: np.ndarray, second: np.ndarray) -> ExactPrivacyLoss:
    both = (first > 0) & (second > 0)
    certain = float(first[second == 0].sum())
    return losses_of_masses(np.log(first[both] / second[both]), first[both], certain)


def divergence(first: np.ndarray, second: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(0, first - math.exp(epsilon) * second).sum())


def renyi(first: np.ndarray, second: np.ndarray, orders: np.ndarray) -> np.ndarray:
    exponents = orders[:, None] * np.log(first) + (1 - orders[:, None]) * np.log(second)
    return np.asarray(np.maximum(log_sum_exp(exponents, axis=1) / (orders - 1), 0.0))


@pytest.mark.parametrize("multiplier", [0.5, 2.0, 20.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-8])
def test_two_gaussian_steps_are_one_of_twice_the_length(multiplier: float, delta: float) -> None:
    exact = gaussian_epsilon(multiplier / 2, delta)
    epsilon = pair_epsilon(doubled_losses(LossPair(gaussian_losses(multiplier, delta / 100))), delta)
    assert exact <= epsilon <= exact * (1 + 1e-5)
    assert exact <= doubled_epsilon(lambda delta: gaussian_epsilon(multiplier, delta) if delta > 0 else math.inf, delta)
    curve = doubled_curve(RenyiCurve(FINITE, FINITE / (2 * multiplier**2)))
    real = RenyiCurve(FINITE, 4 * FINITE / (2 * multiplier**2))
    assert real.epsilon(delta).epsilon <= curve.epsilon(delta).epsilon <= real.epsilon(delta).epsilon * 1.01


def test_two_pure_steps_have_twice_the_epsilon() -> None:
    doubled = doubled_losses(LossPair(pure_losses(1.0, 1)))
    assert 2 - 1e-6 <= pair_epsilon(doubled, 1e-12) <= 2 + 1e-12
    # Two steps of randomised response meet at a middle law: delta at epsilon 0 is that of the trade-off function twice.
    kept = 1 / (1 + math.exp(-1))
    assert doubled.forth.delta(0.0) >= kept - (1 - kept)
    curve = doubled_curve(RenyiCurve(np.array(DEFAULT_ORDERS), pure_renyi_divergences(1.0, DEFAULT_ORDERS)))
    assert curve.epsilon(1e-300).epsilon == pytest.approx(2.0, rel=1e-12)
    assert doubled_epsilon(lambda _: 0.5, 0.0) == doubled_epsilon(lambda _: 0.5, 1e-3) == 1.0


def test_enumerated_laws_are_never_farther_apart_than_the_bounds() -> None:
    rng = np.random.default_rng(2)
    orders = np.array([1.5, 2.0, 3.0, 8.0, 30.0])
    for _ in range(300):
        size = int(rng.integers(2, 6))
        client, neither, other = rng.dirichlet(np.ones(size) * rng.choice([0.5, 3.0]), 3)
        # The steps' bounds are those of these two laws alone, the tightest there are.
        pair = LossPair(loss_of(client, neither), loss_of(neither, other))
        doubled = doubled_losses(pair).forth
        for epsilon in (0.0, 0.1, 0.5, 1.0, 3.0):
            assert divergence(client, other, epsilon) <= doubled.delta(epsilon) * (1 + 1e-9) + 1e-15
        of_steps = np.maximum(renyi(client, neither, FINITE), renyi(neither, other, FINITE))
        bounds = doubled_curve(RenyiCurve(FINITE, of_steps)).at(orders)
        assert np.all(renyi(client, other, orders) <= bounds * (1 + 1e-9) + 1e-12)


def test_the_bound_of_two_steps_is_reached() -> None:
    # Laws in the order of their ratios reach the trade-off function of both steps: here a shift of geometric noise by 1 and by 2.
    law = 0.5 ** np.abs(np.arange(-60, 61))
    law /= law.sum()
    shifted = [np.roll(law, shift) for shift in (0, 1, 2)]
    doubled = doubled_losses(LossPair(loss_of(shifted[0], shifted[1]))).forth
    for epsilon in (0.0, 0.3, 1.0, 1.3):
        assert divergence(shifted[0], shifted[2], epsilon) <= doubled.delta(epsilon) * (1 + 1e-9)
        assert doubled.delta(epsilon) <= divergence(shifted[0], shifted[2], epsilon) * 1.35 + 1e-9


def test_certain_failures_of_either_step_count() -> None:
    client, neither, other = np.array([0.5, 0.5, 0.0]), np.array([0.4, 0.5, 0.1]), np.array([0.0, 0.9, 0.1])
    doubled = doubled_losses(LossPair(loss_of(client, neither), loss_of(neither, other))).forth
    assert doubled.delta(50.0) >= divergence(client, other, 50.0) == 0.5


def test_epsilon_of_two_steps_without_a_bound_is_infinite() -> None:
    assert doubled_epsilon(lambda _: math.inf, 1e-3) == math.inf
    assert doubled_epsilon(lambda delta: 800.0 if delta > 0 else math.inf, 1e-3) == math.inf
    # Some failure probabilities do not settle; the bound is then twice the pure epsilon.
    assert doubled_epsilon(lambda delta: 5.0 if delta == 0 else 6.0, 1e-3) == 10.0


def test_orders_beyond_a_curve_have_no_bound() -> None:
    curve = doubled_curve(RenyiCurve(np.array([2.0, 4.0]), np.array([0.1, 0.2])))
    assert math.isinf(curve.at([5.0])[0])
    assert math.isfinite(curve.at([1.9])[0])


def largest_masses(loss: ExactPrivacyLoss, masses: np.ndarray) -> np.ndarray:
    """Return the largest mass under the first law of events with given masses under the second law."""
    order = np.argsort(-loss.losses)
    other = np.concatenate([[0.0], np.cumsum(np.exp(loss.log_masses - loss.losses)[order])])
    own = loss.certain + np.concatenate([[0.0], np.cumsum(loss.masses[order])])
    return np.asarray(np.interp(masses, other, own))


def test_losses_are_those_of_both_trade_off_functions() -> None:
    rng = np.random.default_rng(4)
    masses = np.linspace(0, 1, 4001)
    for _ in range(100):
        laws = rng.dirichlet(np.ones(int(rng.integers(2, 6))), 3)
        # Some values are impossible under one of the laws.
        laws[rng.random(laws.shape) < 0.25] = 0.0
        if np.any(laws.sum(axis=1) == 0):
            continue
        client, neither, other = laws / laws.sum(axis=1)[:, None]
        removed, added = loss_of(client, neither), loss_of(neither, other)
        doubled, apart = doubled_losses(LossPair(removed)).forth, doubled_losses(LossPair(removed, added)).forth
        both, mixed = (largest_masses(removed, largest_masses(step, masses)) for step in (removed, added))
        for epsilon in (0.0, 0.5, 1.0, 2.0, 5.0):
            for bound, reached in ((doubled, both), (apart, mixed)):
                exact = float((reached - math.exp(epsilon) * masses).max())
                assert exact * (1 - 1e-9) - 1e-12 <= bound.delta(epsilon) <= exact + math.exp(epsilon) / 2000 + 1e-9
            assert divergence(client, other, epsilon) <= apart.delta(epsilon) * (1 + 1e-9) + 1e-15


def test_mass_that_a_step_cannot_have_is_certain() -> None:
    client, neither, other = np.array([0.3, 0.5, 0.2]), np.array([0.0, 0.8, 0.2]), np.array([0.1, 0.7, 0.2])
    doubled = doubled_losses(LossPair(loss_of(client, neither), loss_of(neither, other))).forth
    assert doubled.delta(50.0) == pytest.approx(0.3, rel=1e-9)
    # A loss above 745 leaves no float of the other law's mass.
    large = losses_of_masses(np.array([800.0, 0.0]), np.array([0.3, 0.7]))
    assert doubled_losses(LossPair(large)).forth.delta(100.0) >= 0.3


def test_steps_beyond_exponentials_have_twice_the_pure_epsilon() -> None:
    assert doubled_epsilon(lambda delta: 5.0 if delta == 0 else 800.0, 1e-3) == 10.0
