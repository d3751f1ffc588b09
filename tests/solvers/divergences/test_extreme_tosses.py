"""Bounds over all configurations of the other clients.

Requirements: bounds are exact for few clients, and above every exact value for many clients.
"""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from quietbits.solvers.divergences import extreme_tosses as module
from quietbits.solvers.divergences.extreme_tosses import extreme_tosses
from quietbits.solvers.divergences.poisson_binomial_divergence import poisson_binomial_pairs

ORDERS = np.array([1.1, 2.0, 5.0, 20.0, 100.0, np.inf])


@pytest.mark.parametrize(("clients", "trials", "theta"), [(1, 3, 0.3), (2, 1, 0.499), (5, 4, 0.2), (31, 4, 0.05), (64, 2, 0.4)])
def test_few_clients_have_the_exact_worst_case(clients: int, trials: int, theta: float) -> None:
    tosses = extreme_tosses(clients, trials, theta)
    assert tosses.exact
    # The search covers all numbers of trials at either extreme, among them whole clients at one extreme, which are the worst.
    np.testing.assert_allclose(
        tosses.renyi_divergences(ORDERS), poisson_binomial_pairs(clients, trials, theta).renyi_divergences(ORDERS), rtol=1e-6
    )


@pytest.mark.parametrize(("clients", "trials", "theta"), [(100, 1, 0.3), (161, 2, 0.1), (150, 1, 0.49)])
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
    ("others", "trials", "theta"), [(65, 1, 0.3), (99, 3, 0.1), (1000, 1, 0.49), (10**7 - 1, 16, 0.25), (10**6, 4096, 1e-3)]
)
def test_every_number_of_others_up_to_half_is_in_one_cell(others: int, trials: int, theta: float) -> None:
    # A number in no cell would be missed; a number in two cells would make a cell wider, and the bound larger, than necessary.
    cells = module._lower_cells(others, trials, theta)
    assert cells[0][0] == 0
    assert cells[-1][1] == others // 2
    assert all(low <= high for low, high in cells)
    assert all(following[0] == cell[1] + 1 for cell, following in pairwise(cells))


def test_fewer_cells_give_more_away(monkeypatch: pytest.MonkeyPatch) -> None:
    many = extreme_tosses(3000, 1, 0.2).renyi_divergences([2.0])[0]
    extremes = poisson_binomial_pairs(3000, 1, 0.2).renyi_divergences([2.0])[0]
    assert extremes <= many <= 1.02 * extremes
    monkeypatch.setattr(module, "MOST_PRODUCTS", 1)
    few = extreme_tosses(3000, 1, 0.2).renyi_divergences([2.0])[0]
    assert 1.9 * extremes < few < 2.1 * extremes


def test_what_is_left_out_counts() -> None:
    # An order this high depends on values of negligible probability, so only the pure epsilon remains.
    tosses = extreme_tosses(10_000, 1, 0.3)
    assert tosses.renyi_divergences([1e4])[0] == pytest.approx(tosses.largest_loss, rel=0.02)
    assert tosses.renyi_divergences([np.inf])[0] == tosses.largest_loss == pytest.approx(np.log(4))


@pytest.mark.parametrize(
    ("arguments", "message"), [((0, 1, 0.1), "clients must be"), ((2, 0, 0.1), "trials must"), ((2, 1, 0.5), "theta must")]
)
def test_bad_arguments_are_refused(arguments: tuple[int, int, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        extreme_tosses(*arguments)


@pytest.mark.parametrize(("upper", "lower", "trials", "theta"), [(0, 0, 120, 0.499), (0, 0, 150, 0.499)])
def test_what_is_left_out_is_at_most_what_is_stated(upper: int, lower: int, trials: int, theta: float) -> None:
    largest_loss = trials * (math.log1p(2 * theta) - math.log1p(-2 * theta))
    first, second, log_left_out = module._pair(upper, lower, trials, theta, largest_loss)
    with mpmath.workdps(330):
        high, low = mpmath.mpf(0.5) + mpmath.mpf(theta), mpmath.mpf(0.5) - mpmath.mpf(theta)

        def law(count: int, chance: mpmath.mpf) -> list[mpmath.mpf]:
            return [mpmath.binomial(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(count + 1)]

        def convolved(left: list[mpmath.mpf], right: list[mpmath.mpf]) -> list[mpmath.mpf]:
            total = [mpmath.mpf(0)] * (len(left) + len(right) - 1)
            for index, value in enumerate(left):
                for place, other in enumerate(right):
                    total[index + place] += value * other
            return total

        others = [mpmath.mpf(1)]
        for count, chance in ((upper, high), (lower, low)):
            others = convolved(others, law(count * trials, chance)) if count else others
        for own, chance in ((first, high), (second, low)):
            exact = convolved(others, law(trials, chance))
            # The kept values are contiguous, and their place follows from the values.
            place = next(k for k, value in enumerate(exact) if abs(value / mpmath.mpf(own[0]) - 1) < 1e-6 and _fits(exact, own, k))
            left_out = mpmath.fsum([*exact[:place], *exact[place + len(own) :]])
            assert left_out == 0 or mpmath.log(left_out) <= log_left_out
            if len(own) == len(exact):
                assert log_left_out == -math.inf


def _fits(exact: list[mpmath.mpf], own: np.ndarray, place: int) -> bool:
    return place + len(own) <= len(exact) and abs(exact[place + len(own) - 1] / mpmath.mpf(own[-1]) - 1) < 1e-6


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
    losses = extreme_tosses(clients, trials, theta).losses
    assert len(losses) == 6
    for upper in range(3):
        others = np.ones(1)
        for number in range(clients - 1):
            others = np.convolve(others, upper_one if number < upper else lower_one)
        first, second = np.convolve(others, upper_one), np.convolve(others, lower_one)
        for loss, (own, other) in zip(losses[2 * upper : 2 * upper + 2], ((first, second), (second, first)), strict=True):
            expected = [math.log(math.fsum(own**order * other ** (1 - order))) / (order - 1) for order in orders]
            np.testing.assert_allclose(loss.renyi_divergences(orders), expected, rtol=1e-11)


@pytest.mark.parametrize(("trials", "theta"), [(120, 0.499), (200, 0.49)])
def test_as_many_values_are_left_out_as_there_are_at_most(trials: int, theta: float) -> None:
    largest = trials * (math.log1p(2 * theta) - math.log1p(-2 * theta))
    first, _, log_left_out = module._pair(0, 0, trials, theta, largest)
    assert len(first) < trials + 1
    assert log_left_out == pytest.approx(module.SMALLEST_KEPT + largest + math.log(trials + 1), rel=1e-12)


def test_a_single_cell_is_never_called_exact() -> None:
    assert extreme_tosses(10, 1, 0.25).exact
    assert not extreme_tosses(10, 1, 0.25, first_cell=True).exact
