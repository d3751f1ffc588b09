"""Tests of the Poisson-binomial mechanism.

Points under test: its worst case by search over all other clients, and its divergences by enumeration.
"""

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import mpmath
import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from quietbits.design.secure_sum.poisson_binomial_mechanism import poisson_binomial_privacy
from quietbits.solvers.divergences import poisson_binomial_divergence
from quietbits.solvers.divergences.poisson_binomial_divergence import (
    SMALLEST_WINDOW,
    PoissonBinomialPairs,
    SumTails,
    poisson_binomial_pairs,
    poisson_binomial_renyi,
)


def binomial(trials: int, probability: Fraction) -> list[Fraction]:
    return [math.comb(trials, x) * probability**x * (1 - probability) ** (trials - x) for x in range(trials + 1)]


def convolved(rows: list[list[Fraction]]) -> list[Fraction]:
    total = [Fraction(1)]
    for row in rows:
        total = [
            sum((total[x - j] * row[j] for j in range(len(row)) if 0 <= x - j < len(total)), Fraction(0))
            for x in range(len(total) + len(row) - 1)
        ]
    return total


def exact_divergence(own: list[Fraction], other: list[Fraction], order: float) -> float:
    with mpmath.workdps(40):
        total = mpmath.fsum(
            (mpmath.mpf(p.numerator) / p.denominator) ** order * (mpmath.mpf(q.numerator) / q.denominator) ** (1 - order)
            for p, q in zip(own, other, strict=True)
        )
        return float(mpmath.log(total) / (order - 1))


def divergence(own: np.ndarray, other: np.ndarray, order: float) -> np.ndarray:
    return np.asarray(logsumexp(order * np.log(own) + (1 - order) * np.log(other), axis=-1)) / (order - 1)


@pytest.mark.parametrize(("clients", "trials"), [(2, 1), (3, 2), (4, 1), (4, 3)])
@pytest.mark.parametrize("theta", [0.05, 0.25])
def test_no_assignment_of_all_clients_is_worse(clients: int, trials: int, theta: float) -> None:
    orders = [1.1, 2.0, 8.0, 64.0]
    bounds = poisson_binomial_renyi(clients, trials, theta, orders)
    grid = np.linspace(0.5 - theta, 0.5 + theta, 5)
    rows = [np.array([math.comb(trials, x) * p**x * (1 - p) ** (trials - x) for x in range(trials + 1)]) for p in grid]
    reached = np.zeros(len(orders))
    for others in combinations_with_replacement(rows, clients - 1):
        noise = np.ones(1)
        for row in others:
            noise = np.convolve(noise, row)
        sums = np.array([np.convolve(row, noise) for row in rows])
        # The divergences are those of every row from every other row.
        result = np.array([divergence(sums[:, None], sums, order).max() for order in orders])
        assert np.all(result <= bounds * (1 + 1e-9))
        np.maximum(reached, result, out=reached)
    # The worst case is one of these assignments.
    np.testing.assert_allclose(reached, bounds, rtol=1e-9)


@pytest.mark.parametrize(("clients", "trials", "theta"), [(5, 2, "1/4"), (3, 4, "1/10"), (12, 1, "2/5"), (1, 3, "1/4")])
@pytest.mark.parametrize("order", [1.1, 2.0, 16.0, 64.0])
def test_all_others_at_one_extreme_are_the_worst(clients: int, trials: int, theta: str, order: float) -> None:
    share = Fraction(theta)
    high, low = binomial(trials, Fraction(1, 2) + share), binomial(trials, Fraction(1, 2) - share)
    first, second = (convolved([own, *[high] * (clients - 1)]) for own in (high, low))
    expected = max(exact_divergence(first, second, order), exact_divergence(second, first, order))
    assert poisson_binomial_pairs(clients, trials, float(share)).proven
    assert poisson_binomial_renyi(clients, trials, float(share), [order])[0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("clients", "trials"), [(7, 3), (20, 2), (40, 1)])
@pytest.mark.parametrize("theta", [0.02, 0.25, 0.4])
def test_no_mixture_of_extremes_is_worse(clients: int, trials: int, theta: float) -> None:
    pairs = poisson_binomial_pairs(clients, trials, theta)
    assert len(pairs.losses) == (clients - 1) * trials + 1
    rows = np.array([loss.renyi_divergences([1.1, 2.0, 8.0, 64.0]) for loss in pairs.losses])
    np.testing.assert_allclose(np.maximum(rows[0], rows[-1]), rows.max(axis=0), rtol=1e-10)


def test_a_mixture_of_extremes_can_be_worse_for_epsilon() -> None:
    # In this case a mixture is worse than the two extremes, so the account never uses the extremes alone for a privacy loss distribution.
    pairs = poisson_binomial_pairs(40, 1, 0.4)
    epsilons = [loss.epsilon(1e-2) for loss in pairs.losses]
    assert pairs.epsilon(1e-2) == max(epsilons) > 1.05 * max(epsilons[0], epsilons[-1])
    assert poisson_binomial_pairs(200, 1, 0.4).epsilon(1e-2) is None


def test_all_others_at_one_half_would_count_too_little() -> None:
    clients, trials, theta = 10, 2, 0.25
    high, low = (np.array([float(x) for x in binomial(trials, Fraction(1, 2) + sign * Fraction(1, 4))]) for sign in (1, -1))
    noise = np.array([float(x) for x in binomial(trials * (clients - 1), Fraction(1, 2))])
    middle = divergence(np.convolve(high, noise), np.convolve(low, noise), 2.0)
    assert middle < 0.85 * poisson_binomial_renyi(clients, trials, theta, [2.0])[0]


@pytest.mark.parametrize(("clients", "trials", "theta"), [(70, 2, 0.25), (30, 6, 0.1), (400, 1, 0.02)])
def test_beyond_the_search_the_divergences_go_on(clients: int, trials: int, theta: float) -> None:
    share = Fraction(theta).limit_denominator(100)
    pairs = poisson_binomial_pairs(clients, trials, theta)
    assert not pairs.proven
    high, low = binomial(trials, Fraction(1, 2) + share), binomial(trials, Fraction(1, 2) - share)
    noise = binomial(trials * (clients - 1), Fraction(1, 2) + share)
    first, second = convolved([noise, high]), convolved([noise, low])
    for order in (1.1, 2.0, 64.0, 500.0):
        expected = max(exact_divergence(first, second, order), exact_divergence(second, first, order))
        assert pairs.renyi_divergences([order])[0] == pytest.approx(expected, rel=1e-9)


def test_small_theta_follows_the_law_of_variances() -> None:
    # The divergence is about a (2 theta L)^2 / (2 n L / 4) = 8 a theta^2 L / n.
    clients, trials, theta = 10**5, 4, 0.01
    divergences = poisson_binomial_renyi(clients, trials, theta, [2.0, 8.0])
    np.testing.assert_allclose(divergences, 8 * np.array([2.0, 8.0]) * theta**2 * trials / clients, rtol=1e-2)


def test_a_large_sum_at_high_orders() -> None:
    # Very improbable sums matter at high orders, and the bound on the dropped mass must not.
    divergences = poisson_binomial_renyi(10**6, 16, 0.25, [2.0, 64.0, 256.0])
    np.testing.assert_allclose(divergences, np.array([2.0, 64.0, 256.0]) * divergences[0] / 2, rtol=2e-3)


def logarithms(trials: int, probability: float) -> np.ndarray:
    number = np.arange(trials + 1.0)
    coefficients = gammaln(trials + 1) - gammaln(number + 1) - gammaln(trials - number + 1)
    return coefficients + number * math.log(probability) + (trials - number) * math.log1p(-probability)


@pytest.mark.parametrize(
    ("clients", "trials", "theta"),
    [(2, 800, 0.499), (3, 300, 0.499), (20, 100, 0.499), (2, 1050, 0.49), (10, 1000, 0.45), (20, 512, 0.49)],
)
def test_probabilities_too_small_for_floating_point(clients: int, trials: int, theta: float) -> None:
    # Very improbable sums determine this divergence, so no mass may be lost.
    orders = [1.01, 1.5, 2.0, 8.0, 1000.0]
    noise = logarithms((clients - 1) * trials, 0.5 + theta)
    rows = []
    for sign in (1, -1):
        own = logarithms(trials, 0.5 + sign * theta)
        # The sums are relative to their largest terms.
        largest, sums = np.full(clients * trials + 1, -math.inf), np.zeros(clients * trials + 1)
        for start, logarithm in enumerate(own):
            part = largest[start : start + len(noise)]
            np.maximum(part, noise + logarithm, out=part)
        for start, logarithm in enumerate(own):
            sums[start : start + len(noise)] += np.exp(noise + logarithm - largest[start : start + len(noise)])
        rows.append(largest + np.log(sums))
    expected = [
        max(float(logsumexp(order * own + (1 - order) * other)) / (order - 1) for own, other in (rows, rows[::-1])) for order in orders
    ]
    np.testing.assert_allclose(poisson_binomial_renyi(clients, trials, theta, orders), expected, rtol=1e-8)


def test_the_infinite_order_is_the_pure_epsilon() -> None:
    assert poisson_binomial_renyi(10, 3, 0.25, [math.inf])[0] == pytest.approx(3 * math.log(3))
    pairs = poisson_binomial_pairs(10, 3, 0.25)
    assert pairs.losses[0].losses.max() == pytest.approx(3 * math.log(3))


@pytest.mark.parametrize("delta", [1e-1, 1e-3, 1e-8])
@pytest.mark.parametrize("trials", [1, 2])
def test_epsilon_of_one_coordinate_by_enumeration(trials: int, delta: float) -> None:
    clients, theta = 6, 0.25
    epsilon = poisson_binomial_pairs(clients, trials, theta).epsilon(delta)
    high, low = (np.array([float(x) for x in binomial(trials, Fraction(1, 2) + sign * Fraction(1, 4))]) for sign in (1, -1))

    def worst(value: float) -> float:
        deltas = []
        for number in range(clients):
            noise = np.ones(1)
            for client in range(clients - 1):
                noise = np.convolve(noise, high if client < number else low)
            first, second = np.convolve(high, noise), np.convolve(low, noise)
            deltas += [np.maximum(p - math.exp(value) * q, 0).sum() for p, q in ((first, second), (second, first))]
        return float(max(deltas))

    assert worst(epsilon) <= delta
    if trials == 1:
        assert epsilon == pytest.approx(math.log(3), rel=1e-9) or worst(epsilon * (1 - 1e-7)) > delta


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: poisson_binomial_renyi(0, 1, 0.1, [2.0]), "clients must be a whole number from 1"),
        (lambda: poisson_binomial_renyi(2, 0, 0.1, [2.0]), "trials must be a whole number from 1"),
        (lambda: poisson_binomial_renyi(2, 1, 0.5, [2.0]), "theta must be a number from 1e-06 to 0.499, got 0.5"),
        (lambda: poisson_binomial_renyi(2, 1, 0.1, [0.5]), "orders must be above 1"),
        (lambda: poisson_binomial_pairs(20, 4096, 0.499), "theta must be smaller, or trials fewer than 4096"),
        (lambda: poisson_binomial_pairs(10**7, 4096, 0.25), "clients and trials must be fewer: 10000000 clients of 4096 trials"),
        (lambda: poisson_binomial_pairs(1000, 1, 0.1, -1.0), "window must be a number from -[0-9]+ to -20, got -1.0"),
        (lambda: poisson_binomial_privacy(10**7, 4096, 0.001), "clients and trials must be fewer: 10000000 clients of 4096 trials"),
        (lambda: poisson_binomial_pairs(2, 1, 0.1).epsilon(0.0), "delta must be a number above 0 and below 1"),
    ],
)
def test_bad_arguments(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


@pytest.mark.parametrize(("clients", "trials", "theta"), [(500, 1, 0.25), (300, 8, 0.05), (60, 40, 0.4), (3000, 3, 0.45)])
@pytest.mark.parametrize("window", [-40.0, -160.0, -600.0])
def test_stretches_bound_what_a_window_leaves_out(clients: int, trials: int, theta: float, window: float) -> None:
    narrow, whole = (poisson_binomial_pairs(clients, trials, theta, smallest) for smallest in (window, SMALLEST_WINDOW))
    assert narrow.tails is not None
    assert len(narrow.losses[0].losses) < len(whole.losses[0].losses)
    orders = np.array([1.05, 2.0, 5.0, 20.0, 64.0, 300.0])
    exact = whole.renyi_divergences(orders)
    assert np.all(narrow.renyi_divergences(orders) >= exact * (1 - 1e-10))
    np.testing.assert_allclose(narrow.renyi_divergences(orders)[narrow.tight(orders)], exact[narrow.tight(orders)], rtol=1e-10)
    assert narrow.tight([1.05]).all() or window == -40.0
    # The values outside the window give both tails.
    for number, (loss, all_of_it) in enumerate(zip(narrow.losses, whole.losses, strict=True)):
        start = int(np.argmin(np.abs(all_of_it.losses - loss.losses[0])))
        outside = np.ones(len(all_of_it.losses), dtype=bool)
        outside[start : start + len(loss.losses)] = False
        for order in orders:
            exponent = order - 1 if number == 0 else -order
            terms = all_of_it.log_masses[outside] + (order - 1) * all_of_it.losses[outside]
            bound = narrow.tails.log_sums(np.array([exponent]))[0]
            assert logsumexp(terms) <= bound


def test_blocks_of_sums_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = poisson_binomial_pairs(400, 5, 0.3)
    monkeypatch.setattr(poisson_binomial_divergence, "BLOCK", 97)
    for block, loss in zip(poisson_binomial_pairs(400, 5, 0.3).losses, whole.losses, strict=True):
        np.testing.assert_allclose(block.losses, loss.losses, rtol=1e-14, atol=1e-15)
        np.testing.assert_allclose(block.log_masses, loss.log_masses, rtol=1e-14)


@pytest.mark.parametrize("stretches", [1, 2, 9])
@pytest.mark.parametrize("sign", [1, -1])
def test_all_stretches_outside_a_window_count(stretches: int, sign: int) -> None:
    # Equal terms add up to their number times a term.
    rng = np.random.default_rng(stretches)
    for spread in (0.0, 3.0):
        logs = [-5.0 - spread * rng.random(stretches) for _ in range(2)]
        losses = [2.0 + spread * rng.random(stretches) for _ in range(2)]
        tails = SumTails(logs[0], logs[1], losses[0], losses[1], lowest=-2.0, highest=2.0)
        exponents = sign * np.array([0.5, 3.0])
        bounds = tails.log_sums(exponents)
        for exponent, bound in zip(exponents.tolist(), bounds.tolist(), strict=True):
            # Losses are positive above the window and negative below; on the hiding side they are taken at the window's end.
            above = exponent * (losses[1] if sign > 0 else np.full(stretches, 2.0)) + logs[1]
            below = exponent * (-losses[0] if sign < 0 else np.full(stretches, -2.0)) + logs[0]
            exact = float(np.logaddexp.reduce([*above, *below]))
            assert exact <= bound <= exact + math.log(2 * stretches) + 1e-6


@pytest.mark.parametrize("theta", [0.001, 0.25, 0.49, 0.499])
@pytest.mark.parametrize(("clients", "trials"), [(1, 1), (10, 8), (1, 110), (110, 1), (40, 5), (150, 2), (400, 1), (10**6, 1)])
def test_all_configurations_are_few_and_have_no_vanishing_probability(clients: int, trials: int, theta: float) -> None:
    module = poisson_binomial_divergence
    few = clients * trials <= module.MOST_SEARCHED_TRIALS
    with mpmath.workdps(30):
        rarest = (mpmath.mpf(0.5) - mpmath.mpf(theta)) ** (clients * trials)
        visible = bool(rarest >= mpmath.exp(module.SMALLEST_LOGARITHM))
    assert module.all_configurations(clients, trials, theta) == (few and visible)


@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize("order", [1.05, 2.0, 5.0])
def test_left_out_values_count_as_much_as_they_do_in_either_direction(above: bool, order: float) -> None:
    # All dropped values have the same loss on one side of the window, so the bound is attained.
    log_mass, loss = -4.0, 2.0 if above else -2.0
    tail, empty = (np.array([log_mass]), np.array([2.0])), (np.array([]), np.array([]))
    (logs_below, losses_below), (logs_above, losses_above) = (empty, tail) if above else (tail, empty)
    tails = SumTails(logs_below, logs_above, losses_below, losses_above, lowest=-2.0, highest=2.0)
    # The largest loss is so large that assigning it to the whole mass is no better bound.
    pairs = PoissonBinomialPairs((), -20.0, False, 1000.0, tails)
    with mpmath.workdps(30):
        own, other = mpmath.exp(log_mass), mpmath.exp(log_mass - loss)
        for number, (first, second) in enumerate([(own, other), (other, own)]):
            exact = float(first**order * second ** (1 - order) + mpmath.exp(-20))
            added = math.exp(pairs._added(number, np.array([order]))[0])
            assert exact <= added
            assert added == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize(("clients", "trials", "theta"), [(500, 1, 0.4), (300, 8, 0.05), (200, 40, 0.3), (3000, 3, 0.45), (60, 100, 0.48)])
def test_losses_of_stretches_are_above_the_sum_of_the_slopes_at_every_value(clients: int, trials: int, theta: float) -> None:
    module = poisson_binomial_divergence
    total, mean = clients * trials, clients * trials * (0.5 + theta)
    sums = module._windowed_sums((clients - 1) * trials, trials, theta, -40.0)
    tails = module._tails(sums, clients, trials, theta)
    assert tails is not None
    largest, share = module.largest_toss_loss(trials, theta), ((0.5 - theta) / (0.5 + theta)) ** 2

    def slope(value: int) -> float:
        """Return the bound on the difference of the losses of a value and the next value."""
        failures = total - value
        lost = 1 - (1 - share) * trials / failures
        return min(-math.log(lost) if lost > 0 else math.inf, math.log1p((1 / share - 1) * trials / (value + 1)))

    losses = sums.losses[0].losses
    for end, loss, bounds, goal in (
        (sums.last, float(losses[-1]), tails.losses_above, total),
        (sums.first, -float(losses[0]), tails.losses_below, 0),
    ):
        edges, exact, previous = module._stretches(mean, end, goal), loss, end
        assert len(bounds) == len(edges) - 1
        for edge, bound in zip(edges[1:], bounds, strict=True):
            # The values are whole: a stretch that ends between two values has the last inner value.
            value = math.floor(edge) if goal else math.ceil(edge)
            exact += math.fsum(slope(x) for x in range(min(previous, value), max(previous, value)))
            previous = value
            assert min(exact, largest) <= bound * (1 + 1e-12) <= largest * (1 + 1e-9)


@pytest.mark.parametrize("window", [-40.0, -160.0])
def test_a_window_knows_its_first_and_last_value(window: float) -> None:
    clients, theta = 2000, 0.3
    sums = poisson_binomial_divergence._windowed_sums(clients - 1, 1, theta, window)
    losses = sums.losses[0].losses
    assert sums.last - sums.first == len(losses) - 1
    for value, loss in ((sums.first, losses[0]), (sums.last, losses[-1])):
        # The likelihood is that of one coin's side, given x successes among n coins at the upper extreme.
        with mpmath.workdps(40):
            own, odds = mpmath.mpf(0.5) + mpmath.mpf(theta), (mpmath.mpf(0.5) + mpmath.mpf(theta)) / (mpmath.mpf(0.5) - mpmath.mpf(theta))
            # P(S = x) with success of probability p is p B(x - 1) + (1 - p) B(x), and B(x - 1) / B(x) = x / ((n - x) odds).
            before = mpmath.mpf(value) / ((clients - value) * odds)
            exact = mpmath.log((own * before + 1 - own) / ((1 - own) * before + own))
        assert loss == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize(
    ("others", "trials", "theta", "cut"),
    [(12, 2, "1/4", (0, 0)), (15, 3, "1/4", (1, 0)), (17, 1, "1/4", (1, 0)), (70, 3, "1/4", (30, 1)), (30, 2, "1/100", (1, 1))],
)
def test_a_window_leaves_out_sums_of_which_a_part_is_missing_and_rare_ones_alone(
    others: int, trials: int, theta: str, cut: tuple[int, int]
) -> None:
    share, smallest = Fraction(theta), -20.0
    window = poisson_binomial_divergence.binomial_window(others, 0.5 + float(share), smallest)
    # The window misses some numbers of the other clients' successes, at either end.
    assert (window.first, others + 1 - window.first - len(window.logarithms)) == cut
    noise = binomial(others, Fraction(1, 2) + share)
    exact = [convolved([noise, binomial(trials, Fraction(1, 2) + sign * share)]) for sign in (1, -1)]
    complete = range(cut[0] + trials if cut[0] else 0, others + trials + 1 - (cut[1] + trials if cut[1] else 0))
    kept = [value for value in complete if min(exact[0][value], exact[1][value]) > math.exp(smallest)]
    sums = poisson_binomial_divergence._windowed_sums(others, trials, float(share), smallest)
    assert (sums.first, sums.last) == (kept[0], kept[-1])
    for loss, (own, other) in zip(sums.losses, (exact, exact[::-1]), strict=True):
        np.testing.assert_allclose(np.exp(loss.log_masses), [float(own[value]) for value in kept], rtol=1e-12)
        np.testing.assert_allclose(loss.losses, [math.log(own[value] / other[value]) for value in kept], rtol=1e-10, atol=1e-13)
        assert 1 - sum(own[value] for value in kept) <= math.exp(sums.log_left_out)


@pytest.mark.parametrize(("clients", "trials", "theta"), [(300, 8, 0.05), (60, 40, 0.4), (500, 3, 0.25)])
def test_losses_in_a_window_are_those_of_whole_sums(clients: int, trials: int, theta: float) -> None:
    # The ends of a window lack some values of the other clients, and so a part of a sum.
    narrow, whole = (poisson_binomial_pairs(clients, trials, theta, smallest) for smallest in (-40.0, SMALLEST_WINDOW))
    for loss, all_of_it in zip(narrow.losses, whole.losses, strict=True):
        start = int(np.argmin(np.abs(all_of_it.losses - loss.losses[len(loss.losses) // 2]))) - len(loss.losses) // 2
        inside = slice(start, start + len(loss.losses))
        np.testing.assert_allclose(loss.losses, all_of_it.losses[inside], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(loss.log_masses, all_of_it.log_masses[inside], rtol=1e-9)


@pytest.mark.parametrize("below", [-6.0, -106.0])
def test_tails_are_bounded_by_the_end_of_each_stretch_where_the_exponential_is_largest(below: float) -> None:
    # Losses above the window lie between its highest loss and their stretch's loss; losses below the window lie between their stretch's
    # loss and the lowest loss.
    logs_below, logs_above = np.array([below, below - 2]), np.array([-5.0, -9.0])
    tails = SumTails(logs_below, logs_above, np.array([2.5, 3.5]), np.array([2.0, 3.0]), lowest=-2.0, highest=1.0)
    for exponent in (0.5, 2.0, -0.5, -2.0):
        ends_below, ends_above = (np.array([-2.0, -2.0]), np.array([2.0, 3.0])) if exponent > 0 else (np.array([-2.5, -3.5]), np.ones(2))
        expected = max(*(logs_below + exponent * ends_below), *(logs_above + exponent * ends_above)) + math.log(4)
        assert expected <= float(tails.log_sums(np.array([exponent]))[0]) <= expected + 2e-6


def test_nothing_is_left_out_of_sums_with_logarithms() -> None:
    # Two clients have 1700 tosses, of probability 0.999 or 0.001. A sum of 2550 or more, nearly certain under one extreme, needs 850 rare
    # tosses under the other; a sum of 1750 or less needs 1650. At this order the divergence of P from Q is at least -ln Q of an event
    # certain under P.
    pairs = poisson_binomial_pairs(2, 1700, 0.499, SMALLEST_WINDOW)
    assert pairs.tails is None
    order, least = [1 + 1e-5], (850 * math.log(1000) - 1700 * math.log(2), 1650 * math.log(1000) - 3400 * math.log(2))
    for loss, bound in zip(pairs.losses, least, strict=True):
        assert (loss.certain, loss.unseen) == (0.0, 0.0)
        assert loss.renyi_divergences(order)[0] > bound
