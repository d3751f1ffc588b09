"""Privacy losses on a grid.

Requirements: compositions by direct convolution, divergences by their definition, Laplace losses above the exact ones and close to them.
"""

import math
from itertools import product

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_laplace_mechanism

from quietbits.solvers.accounting import loss_grid as module
from quietbits.solvers.accounting.loss_grid import LossGrid
from quietbits.solvers.divergences.laplace_divergence import laplace_loss_grid


@pytest.mark.parametrize(("first", "certain"), [(-2, 0.0), (0, 0.01), (3, 0.0), (-9, 0.1)])
@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_composition_is_the_direct_convolution(first: int, certain: float, times: int) -> None:
    masses = np.array([0.1, 0.0, 0.35, 0.2, 0.25, 0.1]) * (1 - certain)
    composed = LossGrid(0.3, first, masses, certain).self_compose(times)
    expected: dict[int, float] = {}
    # Every sequence of losses.
    for places in product(range(len(masses)), repeat=times):
        loss = sum(first + place for place in places)
        expected[loss] = expected.get(loss, 0.0) + math.prod(masses[place] for place in places)
    computed = {composed.first + place: mass for place, mass in enumerate(composed.masses.tolist())}
    assert all(computed.get(loss, 0.0) == pytest.approx(mass, abs=1e-15) for loss, mass in expected.items())
    assert composed.certain == pytest.approx(1 - (1 - certain) ** times, abs=2e-15)
    assert composed.certain >= -math.expm1(times * math.log1p(-certain))
    for epsilon in (0.0, 0.1, 0.9, 1.0, 3.05, 40.0):
        delta = composed.certain + sum(mass * max(0.0, 1 - math.exp(epsilon - 0.3 * loss)) for loss, mass in expected.items())
        assert composed.get_delta_for_epsilon(epsilon) == pytest.approx(delta, abs=1e-14)


def test_what_is_cut_off_is_certain() -> None:
    single = laplace_loss_grid(0.1, 50)
    composed = single.self_compose(5000)
    # The grid ends long before the largest sum of losses.
    assert composed.first + len(composed.masses) < 5000 * 50 / 2
    assert composed.certain == module.CUT_OFF
    assert composed.masses.sum() == pytest.approx(1, abs=1e-11)
    mean = float(single.masses @ (0.002 * np.arange(-50, 51)))
    assert composed.masses @ (0.002 * np.arange(composed.first, composed.first + len(composed.masses))) == pytest.approx(5000 * mean)


@pytest.mark.parametrize("delta", [1e-9, 1e-4, 0.03, 0.2])
@pytest.mark.parametrize("grid", [LossGrid(0.5, -3, np.array([0.2, 0.1, 0.3, 0.1, 0.1, 0.1, 0.05]), 0.0), laplace_loss_grid(2.0, 40)])
def test_epsilon_is_the_least_that_keeps_delta(grid: LossGrid, delta: float) -> None:
    epsilon = grid.get_epsilon_for_delta(delta)
    if epsilon > 0:
        assert grid.get_delta_for_epsilon(epsilon) == pytest.approx(delta, rel=1e-9)
        assert grid.get_delta_for_epsilon(epsilon - 1e-4) > delta
    else:
        assert grid.get_delta_for_epsilon(0.0) <= delta
    assert LossGrid(grid.interval, grid.first, grid.masses, 0.5).get_epsilon_for_delta(delta) == math.inf


@pytest.mark.parametrize("shift", [1e-3, 0.3, 2.0, 30.0])
@pytest.mark.parametrize("steps", [1, 7, 400])
def test_laplace_losses_are_above_the_exact_ones_and_meet_them_on_the_grid(shift: float, steps: int) -> None:
    grid = laplace_loss_grid(shift, steps)
    assert grid.masses.sum() == pytest.approx(1, rel=1e-12)
    losses = np.arange(-steps, steps + 1) * (shift / steps)
    # The second distribution has e^-loss times the mass.
    assert (grid.masses * np.exp(-losses)).sum() == pytest.approx(1, rel=1e-11)
    for epsilon in np.linspace(0, shift, 2 * steps + 1).tolist():
        exact = -math.expm1((epsilon - shift) / 2)
        assert grid.get_delta_for_epsilon(epsilon) >= exact * (1 - 1e-9) - 1e-15
    for epsilon in losses[losses >= 0].tolist():
        assert grid.get_delta_for_epsilon(epsilon) == pytest.approx(-math.expm1((epsilon - shift) / 2), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("shift", "rounds"), [(1.0, 10), (0.1, 300), (0.5, 64)])
def test_compositions_agree_with_dp_accounting(shift: float, rounds: int) -> None:
    expected = from_laplace_mechanism(1 / shift, value_discretization_interval=shift / 500).self_compose(rounds)
    composed = laplace_loss_grid(shift, 500).self_compose(rounds)
    for delta in (1e-9, 1e-5, 1e-2):
        assert composed.get_epsilon_for_delta(delta) == pytest.approx(expected.get_epsilon_for_delta(delta), rel=1e-5)


def test_two_rounds_of_laplace_noise_have_the_exact_delta() -> None:
    # The loss of a round is t - 2 min(max(x, 0), t) of a Laplace number x: a double integral by midpoints.
    points = (np.arange(4000) + 0.5) / 4000
    quantiles = np.where(points < 0.5, np.log(2 * points), -np.log(2 * (1 - points)))
    losses = 1.0 - 2 * np.clip(quantiles, 0.0, 1.0)
    sums = losses[:, None] + losses
    grid = laplace_loss_grid(1.0, 1000).self_compose(2)
    for epsilon in (0.0, 0.4, 1.0, 1.7):
        exact = float(np.mean(np.maximum(-np.expm1(epsilon - sums), 0.0)))
        assert grid.get_delta_for_epsilon(epsilon) == pytest.approx(exact, rel=2e-3)


def test_epsilon_rises_with_the_rounds() -> None:
    epsilons = [laplace_loss_grid(0.2, 200).self_compose(rounds).get_epsilon_for_delta(1e-6) for rounds in (1, 2, 3, 10, 50, 51, 1000)]
    assert epsilons == sorted(set(epsilons))


def test_sizes_of_transforms_are_large_enough() -> None:
    for least in (1, 2, 3, 5, 6, 9, 11, 1000, 1025, 562_000):
        size = module._transform_size(least)
        assert least <= size < 1.7 * least + 2
