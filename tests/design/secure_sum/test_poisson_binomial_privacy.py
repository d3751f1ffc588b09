"""Privacy of sums of coin tosses.

Points under test: the proven bound against every configuration of the other clients.
"""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

from quietbits.design.secure_sum import poisson_binomial_mechanism
from quietbits.design.secure_sum.poisson_binomial_mechanism import hiding_clients, poisson_binomial_privacy
from quietbits.solvers.accounting.renyi_curve import RenyiCurve
from quietbits.solvers.accounting.sampling import FixedSizeSampling
from quietbits.solvers.divergences.extreme_tosses import affordable_cells
from quietbits.solvers.divergences.poisson_binomial_divergence import (
    SMALLEST_WINDOW,
    poisson_binomial_pairs,
    poisson_binomial_renyi,
    windows,
)

ORDERS = np.array([1.1, 2.0, 4.0, 8.0, 16.0, 32.0, 63.0])


def divergence(own: np.ndarray, other: np.ndarray, order: float) -> float:
    return float(logsumexp(order * np.log(own) + (1 - order) * np.log(other))) / (order - 1)


@pytest.mark.parametrize(("clients", "trials", "theta"), [(71, 2, 0.25), (300, 1, 0.1), (40, 5, 0.4)])
def test_half_of_the_others_prove_a_bound(clients: int, trials: int, theta: float) -> None:
    # The test computes every configuration of the other clients separately.
    orders = [1.1, 2.0, 16.0]
    bound = poisson_binomial_renyi(hiding_clients(clients, trials, theta), trials, theta, orders)
    others = (clients - 1) * trials
    high, low = (binom.pmf(range(trials + 1), trials, 0.5 + sign * theta) for sign in (1, -1))
    for number in range(0, others + 1, 7):
        noise = np.convolve(
            binom.pmf(range(number + 1), number, 0.5 + theta), binom.pmf(range(others - number + 1), others - number, 0.5 - theta)
        )
        first, second = np.convolve(high, noise), np.convolve(low, noise)
        assert np.all([divergence(first, second, order) for order in orders] <= bound * (1 + 1e-9))
    assert hiding_clients(5, 2, 0.25) == 5
    # The number counts the client itself and half of the other 999 or 1000 clients, rounded up, as one extreme has at least as many
    # clients.
    assert [hiding_clients(many, 4, 0.1) for many in (1000, 1001)] == [500, 501]


def test_half_of_the_others_have_about_twice_a_small_divergence() -> None:
    orders = [1.1, 2.0, 16.0]
    ratio = poisson_binomial_renyi(hiding_clients(1000, 4, 0.1), 4, 0.1, orders) / poisson_binomial_renyi(1000, 4, 0.1, orders)
    np.testing.assert_allclose(ratio, 2.0, rtol=0.02)


def test_coordinates_and_rounds_add_up() -> None:
    many = poisson_binomial_privacy(500, 2, 0.2, dimension=8).report(1e-6, rounds=3)
    once = RenyiCurve(ORDERS, 24 * poisson_binomial_renyi(500, 2, 0.2, ORDERS)).epsilon(1e-6).epsilon
    assert once * 0.97 < many.epsilon_by("rdp-extremes") <= once
    assert many.epsilon_by("pure") == pytest.approx(24 * 2 * math.log(0.7 / 0.3))
    assert many.epsilon_by("pld") == math.inf
    report = poisson_binomial_privacy(60, 2, 0.2).report(1e-6)
    assert report.epsilon == report.epsilon_by("pld") < report.epsilon_by("rdp")


@pytest.mark.parametrize(
    ("dimension", "delta", "rounds", "sampling"),
    [(32, 1e-6, 1, None), (1, 1e-60, 1, None), (32, 1e-6, 4, FixedSizeSampling(130_000, 2000))],
)
def test_a_narrow_window_gives_the_epsilon_of_the_widest_one(
    monkeypatch: pytest.MonkeyPatch, dimension: int, delta: float, rounds: int, sampling: FixedSizeSampling | None
) -> None:
    clients, trials, theta = 130_000, 4, 0.2
    assert len(windows(hiding_clients(clients, trials, theta), trials, theta)) == 3
    narrow = poisson_binomial_privacy(clients, trials, theta, dimension).report(delta, rounds=rounds, sampling=sampling)
    monkeypatch.setattr(poisson_binomial_mechanism, "windows", lambda *_: (SMALLEST_WINDOW,))
    widest = poisson_binomial_privacy(clients, trials, theta, dimension).report(delta, rounds=rounds, sampling=sampling)
    for name in ("rdp", "rdp-extremes"):
        assert narrow.epsilon_by(name) == pytest.approx(widest.epsilon_by(name), rel=1e-9)


def test_orders_that_no_window_is_wide_enough_for_have_a_bound_all_the_same() -> None:
    clients, trials, theta = 50, 100, 0.499
    account, orders = poisson_binomial_privacy(clients, trials, theta).account("rdp"), np.array(poisson_binomial_mechanism.ORDERS)
    pairs = poisson_binomial_pairs(hiding_clients(clients, trials, theta), trials, theta, SMALLEST_WINDOW)
    assert not pairs.tight(orders).all()
    expected = RenyiCurve(orders, pairs.renyi_divergences(orders))
    assert account.curve is not None
    assert account.curve(None).epsilon(1e-5).epsilon == account.bound(1e-5, 1, None).epsilon == expected.epsilon(1e-5).epsilon
    # Epsilon is at most one percent below the largest loss.
    assert 0.99 * trials * math.log(0.999 / 0.001) < expected.epsilon(1e-5).epsilon < trials * math.log(0.999 / 0.001)


@pytest.mark.parametrize(
    ("clients", "trials", "theta", "dimension"), [(65, 2, 0.2, 8), (1000, 4, 0.1, 16), (10**6, 1, 0.25, 16), (100, 256, 0.2, 2)]
)
def test_no_epsilon_is_above_that_of_half_of_the_others(clients: int, trials: int, theta: float, dimension: int) -> None:
    halves = hiding_clients(clients, trials, theta)
    curve = RenyiCurve(
        np.array(poisson_binomial_mechanism.ORDERS),
        dimension * poisson_binomial_renyi(halves, trials, theta, poisson_binomial_mechanism.ORDERS),
    )
    privacy = poisson_binomial_privacy(clients, trials, theta, dimension)
    epsilons = [privacy.report(1e-6, rounds=rounds) for rounds in (1, 2, 10, 1000)]
    for rounds, report in zip((1, 2, 10, 1000), epsilons, strict=True):
        assert report.epsilon_by("rdp") <= curve.composed(rounds).epsilon(1e-6).epsilon * (1 + 1e-9)
    assert all(fewer.epsilon < more.epsilon for fewer, more in pairwise(epsilons))


def test_one_client_more_does_not_raise_epsilon() -> None:
    # All configurations of 64 clients are computed; the bound for 65 clients holds by cells.
    epsilons = [poisson_binomial_privacy(clients, 2, 0.2, dimension=8).epsilon(1e-5) for clients in range(60, 72)]
    assert all(more <= fewer * 1.001 for fewer, more in pairwise(epsilons))
    assert epsilons[5] == pytest.approx(1.936, abs=1e-3)


def test_too_many_coins_for_cells_have_the_bound_by_half_of_the_others() -> None:
    clients, trials, theta = 10**7, 1, 0.3
    assert not affordable_cells(clients, trials, theta)
    report = poisson_binomial_privacy(clients, trials, theta).report(1e-6)
    assert 1.4 < report.epsilon_by("rdp") / report.epsilon_by("rdp-extremes") < 1.5
