"""Bounds over all configurations of the other clients.

Requirements: bounds are exact for few clients, and above every exact value for many clients.
"""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

from quietbits.solvers.divergences import extreme_tosses as module
from quietbits.solvers.divergences.binomial_divergence import binomial_window
from quietbits.solvers.divergences.extreme_tosses import extreme_tosses
from quietbits.solvers.divergences.poisson_binomial_divergence import log_binomial, poisson_binomial_pairs

ORDERS = np.array([1.1, 2.0, 5.0, 20.0, 100.0, np.inf])


@pytest.mark.parametrize(("clients", "trials", "theta"), [(1, 3, 0.3), (2, 1, 0.499), (5, 4, 0.2), (32, 4, 0.05), (64, 2, 0.4)])
def test_few_clients_have_the_exact_worst_case(clients: int, trials: int, theta: float) -> None:
    tosses = extreme_tosses(clients, trials, theta)
    assert tosses.exact
    # The search covers all numbers of trials at either extreme, among them whole clients at one extreme, which are the worst.
    np.testing.assert_allclose(
        tosses.renyi_divergences(ORDERS), poisson_binomial_pairs(clients, trials, theta).renyi_divergences(ORDERS), rtol=1e-6
    )


@pytest.mark.parametrize(("clients", "trials", "theta"), [(200, 1, 0.3), (161, 2, 0.1), (150, 1, 0.49)])
def test_cells_bound_every_configuration_of_many(monkeypatch: pytest.MonkeyPatch, clients: int, trials: int, theta: float) -> None:
    bound = extreme_tosses(clients, trials, theta)
    assert not bound.exact
    monkeypatch.setattr(module, "MOST_ALONE", 1000)
    exact = extreme_tosses(clients, trials, theta)
    assert exact.exact
    ratios = bound.renyi_divergences(ORDERS) / exact.renyi_divergences(ORDERS)
    assert (ratios >= 1).all()
    assert (ratios[:3] < 1.05).all()


@pytest.mark.parametrize(
    ("others", "trials", "theta"), [(65, 1, 0.3), (297, 3, 0.1), (1000, 1, 0.49), (10**7 - 1, 16, 0.25), (10**9, 4096, 1e-3)]
)
def test_every_number_of_others_up_to_half_is_in_one_cell(others: int, trials: int, theta: float) -> None:
    # A number in no cell would be missed; a number in two cells would make a cell wider, and the bound larger, than necessary.
    counted, cells = module._lower_cells(others, trials, theta)
    assert counted <= others
    assert cells[0][0] == 0
    assert cells[-1][1] == counted // 2
    assert all(low <= high for low, high in cells)
    assert all(following[0] == cell[1] + 1 for cell, following in pairwise(cells))


def test_more_coins_never_hide_less() -> None:
    # The program cannot convolve all coins of many clients. It counts fewer coins in more cells, whose noise is at
    # least that of fewer clients.
    def noise(others: int) -> int:
        counted, cells = module._lower_cells(others, 1, 0.2)
        return min(counted - high + low for low, high in cells)

    numbers = np.unique(np.geomspace(200, 10**8, 400).astype(int)).tolist()
    kept = [noise(others) for others in numbers]
    assert all(later >= earlier * 0.99 for earlier, later in pairwise(kept))
    assert all(left >= others * (1 - 1 / 64) for left, others in zip(kept, numbers, strict=True) if others < 5000)


def test_fewer_cells_give_more_away(monkeypatch: pytest.MonkeyPatch) -> None:
    many = extreme_tosses(3000, 1, 0.2).renyi_divergences([2.0])[0]
    extremes = poisson_binomial_pairs(3000, 1, 0.2).renyi_divergences([2.0])[0]
    assert extremes <= many <= 1.01 * extremes
    monkeypatch.setattr(module, "MOST_CELLS", 2)
    few = extreme_tosses(3000, 1, 0.2).renyi_divergences([2.0])[0]
    # Two cells of a quarter of the coins each give away a quarter of the noise.
    assert 1.3 * extremes < few < 1.36 * extremes


def test_what_is_left_out_counts() -> None:
    # An order this high depends on values of negligible probability, so only the pure epsilon remains.
    tosses = extreme_tosses(10_000, 1, 0.3)
    assert 0.5 * tosses.largest_loss < tosses.renyi_divergences([1e6])[0] <= tosses.largest_loss
    assert tosses.renyi_divergences([np.inf])[0] == tosses.largest_loss == pytest.approx(np.log(4))


@pytest.mark.parametrize(
    ("upper", "lower", "trials", "theta", "smallest"),
    [(0, 60, 2, 0.2, -20.0), (25, 40, 5, 0.4, -25.0), (30, 30, 1, 0.05, -12.0), (55, 8, 3, 0.3, -30.0), (0, 0, 150, 0.499, -650.0)],
)
def test_bounds_beyond_a_window_hold_value_by_value(
    monkeypatch: pytest.MonkeyPatch, upper: int, lower: int, trials: int, theta: float, smallest: float
) -> None:
    # The whole distributions, in high precision, against a window that leaves out most values.
    monkeypatch.setattr(module, "COMPLETE", 5.0)
    with mpmath.workdps(330):
        high, low = mpmath.mpf(0.5) + mpmath.mpf(theta), mpmath.mpf(0.5) - mpmath.mpf(theta)
        sums = [_sum_of_coins([(upper, high), (lower, low), (trials, chance)]) for chance in (high, low)]
        for forth, toss in enumerate(module._pair(upper, lower, trials, theta, smallest)):
            own, other = sums if forth == 0 else [law[::-1] for law in sums[::-1]]
            kept = len(toss.loss.losses)
            for order in (1.5, 2.0, 5.0, 30.0, 1000.0):
                a = mpmath.mpf(order)
                terms = [p**a * q ** (1 - a) for p, q in zip(own, other, strict=True)]
                place = _place(own, other, toss.loss.losses)
                left_out = mpmath.fsum([*terms[:place], *terms[place + kept :]])
                assert left_out == 0 or float(mpmath.log(left_out)) <= toss.log_left_out(np.array([order]))[0]
            assert kept < len(own)


def _sum_of_coins(coins: list[tuple[int, mpmath.mpf]]) -> list[mpmath.mpf]:
    law = [mpmath.mpf(1)]
    for count, chance in coins:
        for _ in range(count):
            law = [(1 - chance) * stay + chance * rise for stay, rise in zip([*law, 0], [0, *law], strict=True)]
    return law


def _place(own: list[mpmath.mpf], other: list[mpmath.mpf], losses: np.ndarray) -> int:
    """Return where a window of losses, which rise, begins."""
    if len(losses) == 0:
        return 0
    exact = np.array([float(mpmath.log(p / q)) for p, q in zip(own, other, strict=True)])
    return int(np.argmin(np.abs(exact - losses[0])))


@pytest.mark.parametrize(("upper", "lower", "chance"), [(0, 50, 0.7), (50, 0, 0.7), (20, 35, 0.51), (30, 30, 0.95), (1, 1, 0.6)])
def test_the_slope_of_a_distribution_is_at_most_its_bound(upper: int, lower: int, chance: float) -> None:
    law = _sum_of_coins([(upper, mpmath.mpf(chance)), (lower, 1 - mpmath.mpf(chance))])
    for value in range(1, upper + lower + 1):
        slope = float(mpmath.log(law[value - 1] / law[value]))
        bound = module._steepest(value, upper, lower, chance)
        # The bound is close, except near the ends.
        assert slope - 1e-12 <= bound
        if 5 < value < upper + lower - 5 and slope > 0:
            assert bound < slope + 0.25
    assert module._steepest(upper + lower + 1, upper, lower, chance) == math.inf


@pytest.mark.parametrize(
    ("arguments", "message"), [((0, 1, 0.1), "clients must be"), ((2, 0, 0.1), "trials must"), ((2, 1, 0.5), "theta must")]
)
def test_bad_arguments_are_refused(arguments: tuple[int, int, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        extreme_tosses(*arguments)


@pytest.mark.parametrize(("trials", "theta"), [(120, 0.499), (150, 0.499), (200, 0.49)])
def test_values_too_rare_to_keep_are_counted_at_the_largest_loss(trials: int, theta: float) -> None:
    # One client's successes reveal as much as its coins one by one, as divergences of a coin add up.
    orders = [1.01, 1.5, 2.0, 5.0, 50.0]
    with mpmath.workdps(60):
        high, low = mpmath.mpf(0.5) + mpmath.mpf(theta), mpmath.mpf(0.5) - mpmath.mpf(theta)
        coin = [mpmath.log(high**a * low ** (1 - a) + low**a * high ** (1 - a)) / (a - 1) for a in map(mpmath.mpf, orders)]
    for exact, computed in zip(coin, extreme_tosses(1, trials, theta).renyi_divergences(orders).tolist(), strict=True):
        assert float(trials * exact) * (1 - 1e-12) <= computed <= float(trials * exact) * 1.05


def test_every_number_of_others_at_the_upper_extreme_has_its_exact_loss() -> None:
    # Only the worst configuration decides, but each configuration must be right.
    clients, trials, theta, orders = 6, 2, 0.3, [1.5, 2.0, 9.0]
    upper_one, lower_one = (binom.pmf(np.arange(trials + 1), trials, 0.5 + sign * theta) for sign in (1, -1))
    losses = [toss.loss for toss in extreme_tosses(clients, trials, theta, whole_clients=True).losses]
    assert len(losses) == 6
    for upper in range(3):
        others = np.ones(1)
        for number in range(clients - 1):
            others = np.convolve(others, upper_one if number < upper else lower_one)
        first, second = np.convolve(others, upper_one), np.convolve(others, lower_one)
        for loss, (own, other) in zip(losses[2 * upper : 2 * upper + 2], ((first, second), (second, first)), strict=True):
            expected = [math.log(math.fsum(own**order * other ** (1 - order))) / (order - 1) for order in orders]
            np.testing.assert_allclose(loss.renyi_divergences(orders), expected, rtol=1e-11)


def test_a_single_cell_is_never_called_exact() -> None:
    assert extreme_tosses(10, 1, 0.25).exact
    assert not extreme_tosses(10, 1, 0.25, first_cell=True).exact


@pytest.mark.parametrize(("clients", "trials", "theta"), [(71, 2, 0.25), (200, 1, 0.1), (40, 5, 0.4)])
def test_cells_of_single_coins_bound_every_configuration(clients: int, trials: int, theta: float) -> None:
    # The test enumerates the numbers of the other clients' coins at either extreme, all of which are possible.
    orders, others = [1.1, 2.0, 16.0], (clients - 1) * trials
    bound = extreme_tosses(clients, trials, theta).renyi_divergences(orders)
    own, other = (binom.pmf(range(trials + 1), trials, 0.5 + sign * theta) for sign in (1, -1))
    largest = np.zeros(len(orders))
    for number in range(others + 1):
        noise = np.convolve(
            binom.pmf(range(number + 1), number, 0.5 + theta), binom.pmf(range(others - number + 1), others - number, 0.5 - theta)
        )
        p, q = np.convolve(own, noise), np.convolve(other, noise)
        exact = [logsumexp(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1) for order in orders]
        largest = np.maximum(largest, exact)
    assert (largest <= bound * (1 + 1e-9)).all()
    assert (bound <= largest * 1.05).all()


def test_the_bound_does_not_jump_where_cells_begin_to_merge() -> None:
    # 65 clients of two coins have 128 other coins, 66 have 130, of which cells of several coins cover half.
    for clients, least in ((65, 1.0), (66, 0.98)):
        before, after = (extreme_tosses(number, 2, 0.2).renyi_divergences([2.0, 8.0]) for number in (clients - 1, clients))
        assert (after <= before * 1.001).all()
        assert (after >= before * 0.98 * least).all()


@pytest.mark.parametrize("trials", [1, 7, 256])
@pytest.mark.parametrize("theta", [1e-6, 0.01, 0.3])
def test_losses_are_rounded_by_less_than_stated(trials: int, theta: float) -> None:
    # The same convolutions in extended precision, in which the losses of neighbours differ by more than rounding.
    clients = 30
    tosses = extreme_tosses(clients, trials, theta)
    count = (clients - 1) * trials
    law = binomial_window(count, 0.5 - theta, -2000.0)
    own, other = (np.convolve(np.exp(log_binomial(trials, 0.5 + sign * theta)), np.exp(law.logarithms)) for sign in (1, -1))
    exact = (np.log(own) - np.log(other)).astype(float)
    computed = tosses.losses[0].loss
    if tosses.exact:
        np.testing.assert_allclose(computed.losses, exact[: len(computed.losses)], rtol=0, atol=tosses.rounding)
    assert 0 < tosses.rounding * 4 / tosses.typical_loss < 1e-4
