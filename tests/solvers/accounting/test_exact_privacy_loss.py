"""Rényi divergences of two distributions agree with sums in many digits."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.special import logsumexp

from quietbits.solvers.accounting import exact_privacy_loss
from quietbits.solvers.accounting.exact_privacy_loss import ExactPrivacyLoss, composed_exact_epsilon

ORDERS = np.array([1 + 1e-9, 1.001, 1.05, 1.5, 2.0, 10.0, 64.0, 1000.0, 1e6, 1e100, 1e300])


def exact_divergence(loss: ExactPrivacyLoss, order: float) -> mpmath.mpf:
    above = mpmath.mpf(order) - 1
    terms = zip(loss.log_masses.tolist(), loss.losses.tolist(), strict=True)
    return mpmath.log(mpmath.fsum(mpmath.exp(mpmath.mpf(log_mass) + above * mpmath.mpf(value)) for log_mass, value in terms)) / above


# Sums of more than 1024 values use other algorithms.
@pytest.mark.parametrize(
    ("values", "scale"), [*itertools.product([1, 2, 3, 50, 1025], [0.0, 1e-160, 1e-6, 0.1, 30.0]), (1024, 0.1), (1024, 30.0)]
)
def test_they_have_all_digits_at_every_order(values: int, scale: float) -> None:
    rng = np.random.default_rng(values)
    other, losses = rng.dirichlet(np.ones(values)), rng.normal(size=values) * scale
    # Both distributions drop some mass.
    log_masses = np.log(other) + losses
    log_masses -= max(float(logsumexp(log_masses)), 0.0) + math.log(1.001)
    with mpmath.workdps(50):
        kept = [mpmath.exp(mpmath.mpf(log_mass)) for log_mass in log_masses.tolist()]
        kept_other = [mass * mpmath.exp(-mpmath.mpf(value)) for mass, value in zip(kept, losses.tolist(), strict=True)]
        loss = ExactPrivacyLoss(log_masses, losses, float(1 - mpmath.fsum(kept)), float(1 - mpmath.fsum(kept_other)))
        orders = ORDERS if values < 1000 else ORDERS[[1, 4, 6, 9]]
        for order, result in zip(orders.tolist(), loss.renyi_divergences(orders).tolist(), strict=True):
            expected = exact_divergence(loss, order)
            # The dropped mass has 53 bits, which matter at orders near 1.
            allowed = abs(expected) * 1e-11 + 4e-16 * (1 / (order - 1) + 1) * (abs(mpmath.log(1 - loss.certain)) + 1)
            assert abs(result - expected) <= allowed


def pair(values: int, scale: float, certain: float = 0.0) -> ExactPrivacyLoss:
    """Return two distributions on the same values, and the mass of the first distribution alone."""
    rng = np.random.default_rng(values)
    own = rng.dirichlet(np.ones(values))
    other = own * np.exp(scale * rng.normal(size=values))
    other /= other.sum()
    return ExactPrivacyLoss(np.log(own * (1 - certain)), np.log(own * (1 - certain)) - np.log(other), certain, 0.0)


def exact_delta(loss: ExactPrivacyLoss, epsilon: float) -> float:
    own, other = np.exp(loss.log_masses), np.exp(loss.log_masses - loss.losses)
    return loss.certain + math.fsum(np.maximum(0.0, own - math.exp(epsilon) * other).tolist())


@pytest.mark.parametrize("values", [2, 40, 20_000])
@pytest.mark.parametrize("scale", [1e-3, 0.5, 4.0])
@pytest.mark.parametrize("certain", [0.0, 1e-4])
def test_epsilon_is_where_delta_is_reached(values: int, scale: float, certain: float) -> None:
    loss = pair(values, scale, certain)
    for epsilon in (0.0, 0.1 * scale, scale):
        assert loss.delta(epsilon) == pytest.approx(exact_delta(loss, epsilon), rel=1e-9, abs=1e-15)
    largest = exact_delta(loss, 0.0)
    for share in (0.9, 0.3, 1e-3):
        delta = certain + (largest - certain) * share
        computed = loss.epsilon(delta)
        assert exact_delta(loss, computed) <= delta * (1 + 1e-11)
        assert exact_delta(loss, computed * (1 - 1e-6)) > delta * (1 - 1e-9)
    assert loss.epsilon(largest * (1 + 1e-9)) == 0.0
    assert certain == 0 or math.isinf(loss.epsilon(certain * 0.999))


@pytest.mark.parametrize("tangents", [0, 1, 3])
def test_halving_takes_over_where_tangents_are_too_few(monkeypatch: pytest.MonkeyPatch, tangents: int) -> None:
    loss = pair(40, 0.5, 1e-4)
    usual = [loss.epsilon(delta) for delta in (2e-4, 1e-2, 0.1)]
    monkeypatch.setattr(exact_privacy_loss, "MOST_TANGENTS", tangents)
    for delta, epsilon in zip((2e-4, 1e-2, 0.1), usual, strict=True):
        assert loss.epsilon(delta) == pytest.approx(epsilon, rel=1e-9)
        assert exact_delta(loss, loss.epsilon(delta)) <= delta * (1 + 1e-11)


@pytest.mark.parametrize("interval", [0.05, 0.4])
def test_a_grid_reveals_more_and_keeps_both_masses(interval: float) -> None:
    loss = pair(300, 0.7, 1e-3)
    grid = loss.on_grid(interval, 4)
    own = grid._probs
    positions = interval * np.arange(-4, 5)
    above = loss.losses > 4 * interval
    assert above.any()
    assert own.sum() + grid._infinity_mass == pytest.approx(1.0, rel=1e-12)
    assert grid._infinity_mass == pytest.approx(1e-3 + loss.masses[above].sum(), rel=1e-12)
    # Inside the grid, the second distribution also keeps its masses.
    inside = ~above
    clipped = np.maximum(loss.losses[inside], -4 * interval)
    assert (own * np.exp(-positions)).sum() == pytest.approx((loss.masses[inside] * np.exp(-clipped)).sum(), rel=1e-12)
    for epsilon in (0.0, 0.13, 0.5, 1.1):
        assert grid.get_delta_for_epsilon(epsilon) >= exact_delta(loss, epsilon) * (1 - 1e-12)


def test_rare_values_are_counted_among_the_others() -> None:
    loss = pair(50, 1.0, 1e-3)
    mass = float(np.sort(loss.masses)[:7].sum()) * (1 + 1e-12)
    fewer = loss.without_rare_values(mass)
    assert len(fewer.losses) == 43
    assert fewer.certain == pytest.approx(1e-3 + mass, rel=1e-9)
    assert fewer.masses.sum() + fewer.certain == pytest.approx(1.0, rel=1e-12)
    assert np.exp(fewer.log_masses - fewer.losses).sum() + fewer.unseen == pytest.approx(1.0, rel=1e-12)
    again = fewer.without_rare_values(float(np.sort(fewer.masses)[:5].sum()) * (1 + 1e-12))
    assert len(again.losses) == 38
    assert again.masses.sum() + again.certain == pytest.approx(1.0, rel=1e-12)
    assert np.exp(again.log_masses - again.losses).sum() + again.unseen == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("uses", [1, 2, 3])
def test_uses_together_are_above_all_sums_of_losses_and_near_them(uses: int) -> None:
    forth = pair(12, 0.4)
    back = ExactPrivacyLoss(forth.log_masses - forth.losses, -forth.losses, 0.0, 0.0)
    delta = 1e-2
    computed = composed_exact_epsilon(forth, back, uses, delta)
    assert computed is not None
    exact = 0.0
    for first in range(uses + 1):
        directions = [forth] * first + [back] * (uses - first)
        log_masses = np.sum(np.meshgrid(*(loss.log_masses for loss in directions), indexing="ij"), axis=0).ravel()
        losses = np.sum(np.meshgrid(*(loss.losses for loss in directions), indexing="ij"), axis=0).ravel()
        exact = max(exact, ExactPrivacyLoss(log_masses, losses, 0.0, 0.0).epsilon(delta))
    assert exact * (1 - 1e-9) <= computed <= exact * (1 + 1e-4)


def test_values_of_one_distribution_alone_add_up_over_uses() -> None:
    loss = pair(12, 0.4, 1e-3)
    delta = 2.5e-3
    assert [math.isinf(composed_exact_epsilon(loss, None, uses, delta)) for uses in (1, 2, 3)] == [False, False, True]


@pytest.mark.parametrize("order", [1.5, 8.0, 19.0])
def test_values_that_only_one_distribution_makes_likely_count(order: float) -> None:
    # Whole blocks of values are rare under the first distribution, and are likely under the second, or have losses that dominate high
    # orders.
    size = 2**13
    log_masses = np.concatenate(
        [np.full(size, -200 - math.log(size)), np.full(size, -200 - math.log(size)), np.full(1000, -math.log(1000))]
    )
    losses = np.concatenate([np.full(size, -200 - math.log(1e-6)), np.full(size, 10.0), np.full(1000, 1e-6)])
    loss = ExactPrivacyLoss(log_masses, losses, 0.0, 0.0)
    with mpmath.workdps(60):
        power = mpmath.mpf(order) - 1
        total = mpmath.exp(power * mpmath.mpf(1e-6)) + mpmath.exp(-200 + 10 * power)
        exact = float(mpmath.log(total) / power)
    assert loss.renyi_divergences([order])[0] == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("order", [310.0, 400.0])
def test_ratios_that_would_overflow_are_summed_from_logarithms(order: float) -> None:
    # One value has probability e^-600 and a likelihood ratio of e^1.5; all other values are equally likely under both.
    log_masses, losses = np.array([math.log(0.5), math.log(0.5), -600.0]), np.array([0.0, 0.0, 1.5])
    computed = ExactPrivacyLoss(log_masses, losses, 0.0, 0.0).renyi_divergences([order])[0]
    assert computed == pytest.approx(math.log1p(math.exp(-600 + 1.5 * (order - 1))) / (order - 1), rel=1e-9)


@pytest.mark.parametrize("share", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("order", [1 + 1e-7, 1.001, 2.0, 64.0])
def test_nothing_cancels_where_two_distributions_are_nearly_alike(share: float, order: float) -> None:
    # A fair coin and a slightly biased coin have a divergence of about a t^2 / 2, far below the rounding errors of a sum near 1.
    signs = np.array([1.0, -1.0])
    losses = np.log1p(share * signs)
    computed = ExactPrivacyLoss(losses - math.log(2), losses, 0.0, 0.0).renyi_divergences([order])[0]
    with mpmath.workdps(60):
        a, t = mpmath.mpf(order), mpmath.mpf(share)
        exact = mpmath.log(((1 + t) ** a + (1 - t) ** a) / 2) / (a - 1)
        assert abs(computed / exact - 1) < 1e-10


@pytest.mark.parametrize("order", [1.5, 8.0, 64.0])
@pytest.mark.parametrize("rare", [-3.0, 0.2])
def test_rare_values_of_large_losses_count_beside_many_of_small_ones(order: float, rare: float) -> None:
    # The sum of small losses uses their moments, which a large loss of either sign would spoil.
    losses = np.array([rare, 1e-6, -1e-6, 2e-6, -3e-6])
    log_masses = np.log([1e-9, 0.25, 0.25, 0.25, 0.25])
    with mpmath.workdps(50):
        kept = [mpmath.exp(mpmath.mpf(log_mass)) for log_mass in log_masses.tolist()]
        kept_other = [mass * mpmath.exp(-mpmath.mpf(value)) for mass, value in zip(kept, losses.tolist(), strict=True)]
        loss = ExactPrivacyLoss(log_masses, losses, float(1 - mpmath.fsum(kept)), float(1 - mpmath.fsum(kept_other)))
        exact = exact_divergence(loss, order)
    assert abs(loss.renyi_divergences([order])[0] - exact) <= 1e-15


@pytest.mark.parametrize("order", [12.0, 19.0])
def test_next_to_impossible_values_of_large_losses_decide_at_high_orders(order: float) -> None:
    # Half of the values, whole blocks of them, have a total probability of e^-200 and a privacy loss of 20; the other half are likely and
    # have a loss of 0.5.
    size = 2**13
    log_masses = np.concatenate([np.full(size, -math.log(size)), np.full(size, -200 - math.log(size))])
    losses = np.concatenate([np.full(size, 0.5), np.full(size, 20.0)])
    computed = ExactPrivacyLoss(log_masses, losses, 0.0, 0.0).renyi_divergences([order])[0]
    exact = float(np.logaddexp(0.5 * (order - 1), -200 + 20 * (order - 1))) / (order - 1)
    assert computed == pytest.approx(exact, rel=1e-12)


def test_nothing_in_common_leaves_nothing_to_sum() -> None:
    nothing = ExactPrivacyLoss(np.empty(0), np.empty(0), 1.0, 1.0)
    assert nothing.renyi_divergences([2.0, math.inf]).tolist() == [-math.inf, -math.inf]


def test_a_rare_value_whose_ratio_overflows_does_not_spoil_orders_that_are_near_one() -> None:
    # e^(100 * 10) exceeds floating point, but is negligible times a probability of e^-2010.
    losses = np.array([1e-4, -1e-4, 10.0])
    log_masses = np.array([math.log(0.5), math.log(0.5), -2000.0])
    others = np.exp(log_masses - losses)
    loss = ExactPrivacyLoss(log_masses, losses, 0.0, float(1 - others.sum()))
    with mpmath.workdps(50):
        expected = float(exact_divergence(loss, 100.0))
    assert loss.renyi_divergences([100.0])[0] == pytest.approx(expected, rel=1e-9)


def test_blocks_of_a_grid_hold_all_values_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = pair(40, 0.5)
    whole = loss.on_grid(1e-2, 300)
    monkeypatch.setattr(exact_privacy_loss, "GRID_BLOCK", 7)
    parts = loss.on_grid(1e-2, 300)
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        assert parts.get_delta_for_epsilon(epsilon) == pytest.approx(whole.get_delta_for_epsilon(epsilon), rel=1e-12)
        assert parts.get_delta_for_epsilon(epsilon) >= exact_delta(loss, epsilon)


@pytest.mark.parametrize("values", [3, 20_000])
def test_divergences_of_what_is_next_to_impossible(values: int) -> None:
    # The first distribution drops all of its mass but e^-400.
    losses = np.linspace(-1.0, 2.0, values)
    loss = ExactPrivacyLoss(np.full(values, -400.0), losses, 1.0, 1.0)
    expected = [float(logsumexp(-400.0 + (order - 1) * losses)) / (order - 1) for order in (2.0, 20.0)]
    np.testing.assert_allclose(loss.renyi_divergences([2.0, 20.0]), expected, rtol=1e-12)


@pytest.mark.parametrize("few", [0, 2])
def test_a_sum_far_below_one_between_orders_where_it_is_near_one_keeps_its_digits(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(exact_privacy_loss, "FEW_VALUES", few)
    # Nearly all of P has a small loss, and 5 % of its mass is certain to reveal it; at order 1000 a rare value with a larger loss
    # dominates.
    log_masses, losses = [math.log(0.95), -99.9], [math.log(0.95 / 0.999), 0.1]
    loss = ExactPrivacyLoss(np.array(log_masses), np.array(losses), 0.05, 0.001)
    orders = [2.0, 30.0, 500.0, 700.0, 1000.0]
    for order, result in zip(orders, loss.renyi_divergences(orders).tolist(), strict=True):
        with mpmath.workdps(60):
            total = mpmath.fsum(
                mpmath.exp(mpmath.mpf(mass) + (order - 1) * mpmath.mpf(own)) for mass, own in zip(log_masses, losses, strict=True)
            )
            assert result * (order - 1) == pytest.approx(float(mpmath.log(total)), rel=1e-11, abs=1e-12)
    assert -31 < 699 * float(loss.renyi_divergences([700.0, 1000.0])[0]) < -29


@pytest.mark.parametrize(("uses", "delta"), [(2, 0.3), (3, 0.6)])
def test_uses_in_both_directions_can_be_the_worst(uses: int, delta: float) -> None:
    own, other = np.array([0.56, 0.44]), np.array([0.1, 0.9])
    ratios = np.log(own) - np.log(other)
    forth, back = ExactPrivacyLoss(np.log(own), ratios, 0.0, 0.0), ExactPrivacyLoss(np.log(other), -ratios, 0.0, 0.0)
    epsilons = []
    for number in range(uses + 1):
        first = second = np.ones(1)
        for use in range(uses):
            there, here = (own, other) if use < number else (other, own)
            first, second = np.outer(first, there).ravel(), np.outer(second, here).ravel()
        whole = ExactPrivacyLoss(np.log(first), np.log(first) - np.log(second), 0.0, 0.0)
        epsilons.append(whole.epsilon(delta))
    assert max(epsilons) > 1.2 * max(epsilons[0], epsilons[-1])
    computed = composed_exact_epsilon(forth, back, uses, delta)
    assert computed is not None
    assert max(epsilons) <= computed <= max(epsilons) * (1 + 1e-3)


def test_uses_of_the_same_distribution_reveal_nothing() -> None:
    same = ExactPrivacyLoss(np.log([0.25, 0.75]), np.zeros(2), 0.0, 0.0)
    assert composed_exact_epsilon(same, None, 3, 1e-6) == pytest.approx(0.0, abs=1e-9)


def test_many_values_that_are_nearly_alike_at_every_order() -> None:
    # No mass is dropped, so sums at higher orders show that sums at low orders are near 1.
    loss = pair(3000, 0.01)
    orders = [1.5, 2.0, 8.0, 64.0]
    with mpmath.workdps(40):
        expected = [float(exact_divergence(loss, order)) for order in orders]
    np.testing.assert_allclose(loss.renyi_divergences(orders), expected, rtol=1e-9)


def test_one_use_has_the_exact_epsilon_at_every_delta() -> None:
    forth = pair(12, 0.4)
    back = ExactPrivacyLoss(forth.log_masses - forth.losses, -forth.losses, 0.0, 0.0)
    for delta in (1e-15, 1e-3):
        assert composed_exact_epsilon(forth, back, 1, delta) == max(forth.epsilon(delta), back.epsilon(delta))
    assert composed_exact_epsilon(forth, back, 2, 1e-15) is None


def test_blocks_in_any_order_have_the_sum_of_all_their_terms() -> None:
    # The first block has the higher estimate, but the smaller terms.
    blocks = [
        exact_privacy_loss._block(np.array(log_masses), np.array(losses))
        for log_masses, losses in (([-1.0, -12.0], [-10.0, 9.0]), ([-2.0, -3.0], [3.0, 4.0]))
    ]
    assert blocks[0].highest_exponent(2.0) > blocks[1].highest_exponent(2.0)
    expected = float(logsumexp([-11.0, -3.0, 1.0, 1.0]))
    assert exact_privacy_loss._log_sum(2.0, blocks) == pytest.approx(expected, rel=1e-14)


def test_values_that_are_near_zero_at_some_orders_only_are_summed_at_each() -> None:
    loss = pair(60, 0.25)
    orders = [1.2, 2.0, 3.0, 4.0, 5.0]
    with mpmath.workdps(40):
        expected = [float(exact_divergence(loss, order)) for order in orders]
    np.testing.assert_allclose(loss.renyi_divergences(orders), expected, rtol=1e-11)


@pytest.mark.parametrize("share", [1e-5, 1e-6, 1e-7])
def test_two_values_that_are_nearly_alike_keep_their_digits(share: float) -> None:
    own = np.array([0.5 + share, 0.5 - share])
    losses = np.log1p([2 * share, -2 * share])
    loss = ExactPrivacyLoss(np.log(own), losses, 0.0, 0.0)
    orders = [1.5, 2.0, 4.0]
    with mpmath.workdps(60):
        exact = mpmath.mpf(share)
        expected = [float(mpmath.log(((1 + 2 * exact) ** order + (1 - 2 * exact) ** order) / 2) / (order - 1)) for order in orders]
    np.testing.assert_allclose(loss.renyi_divergences(orders), expected, rtol=1e-9)


@pytest.mark.parametrize("shift", [1, 300])
def test_a_window_of_the_values_that_count_has_the_sum_of_all(monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    # Most values of a wide Gaussian are negligible at every order, and other values count at other orders.
    places = np.arange(-20_000, 20_000) / 200
    own, other = (-((places - mean) ** 2) / 2 for mean in (0.0, shift / 200))
    own, other = own - logsumexp(own), other - logsumexp(other)
    orders = [1.05, 1.5, 2.0, 9.0, 60.0]
    loss = ExactPrivacyLoss(own, own - other, 0.0, 0.0)
    expected = [logsumexp(order * own - (order - 1) * other) / (order - 1) for order in orders]
    for together in (2**15, 2**20):
        monkeypatch.setattr(exact_privacy_loss, "MOST_TOGETHER", together)
        assert loss.renyi_divergences(orders) == pytest.approx(expected, rel=1e-9)
        assert [loss.renyi_divergences([order])[0] for order in orders] == pytest.approx(expected, rel=1e-9)
