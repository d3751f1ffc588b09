"""Common accounts of mechanisms.

Points under test: pure privacy, Rényi divergences and losses, over rounds and with secret sampling.
"""

import math

import numpy as np
import pytest

from quietbits.design.contracts.accounts import (
    MOST_COMPOSITIONS,
    NEEDS_DELTA,
    amplified_rounds,
    composed_loss,
    composed_rounds,
    loss_account,
    needing_delta,
    pure_account,
    pure_privacy,
    renyi_account,
    secretly_sampled_curve,
)
from quietbits.design.contracts.privacy import Account, EpsilonBound
from quietbits.solvers.accounting.privacy_loss import dominating_privacy_loss
from quietbits.solvers.accounting.pure_composition import composed_pure_epsilon
from quietbits.solvers.accounting.renyi_curve import LazyRenyiCurve, RenyiCurve
from quietbits.solvers.accounting.sampling import (
    FixedSizeSampling,
    PoissonSampling,
    amplified_epsilon,
    fixed_size_sampled_curve,
    poisson_sampled_curve,
)

CURVE = RenyiCurve(np.array([2.0, 4.0, 8.0, 16.0]), np.array([0.1, 0.2, 0.4, 0.8]))
FIXED = FixedSizeSampling(50, 5)


def epsilon(account: Account, delta: float, rounds: int = 1, sampling: PoissonSampling | FixedSizeSampling | None = None) -> float:
    return account.bound(delta, rounds, sampling).epsilon


# Tests of pure privacy


def test_pure_privacy_adds_up_and_needs_no_delta() -> None:
    report = pure_privacy(0.5).report(0.0, rounds=3)
    assert report.epsilon == 1.5
    assert {account.name: account.bound.reason for account in report.accounts} == {"pure": None, "rdp": NEEDS_DELTA, "pld": NEEDS_DELTA}
    assert str(report.guarantee) == "epsilon = 1.5, replace-one adjacency, local trust model"


def test_pure_mechanisms_compose_to_at_most_their_sum() -> None:
    report = pure_privacy(0.5).report(1e-9, rounds=8)
    assert report.epsilon_by("pure") == 4.0
    assert report.epsilon_by("pld") <= report.epsilon_by("rdp") <= 4.0
    assert report.epsilon == report.epsilon_by("pld") == composed_pure_epsilon(0.5, 8, 1e-9)
    # The pure guarantee is smaller; its order is infinite, which JSON cannot express.
    assert report.account("rdp").bound.order == math.inf
    assert report.account("rdp").document()["order"] is None


def test_beyond_what_is_affordable_renyi_divergences_are_left() -> None:
    report = pure_privacy(1e-4).report(1e-6, rounds=10**8)
    assert report.account("pld").bound.reason == "too expensive to compute, or not known, for these rounds, this sampling and this delta"
    assert report.best is not None
    assert report.best.name == "rdp"


def test_without_a_pure_guarantee_there_is_one_account_that_says_so() -> None:
    (account,) = pure_privacy(math.inf).accounts
    assert account.bound(1e-5, 2, None).reason == "there is no pure guarantee: an output that one input can give is impossible for another"


def test_sampling_amplifies_pure_privacy() -> None:
    account = pure_account(1.0)
    assert epsilon(account, 0.0, 3, FIXED) == pytest.approx(3 * math.log1p(0.1 * math.expm1(1.0)), rel=1e-12)
    # The account holds at delta = 0 for any requested delta, so all rounds count.
    assert epsilon(account, 0.5, 1000, FIXED) == pytest.approx(1000 * math.log1p(0.1 * math.expm1(1.0)), rel=1e-12)
    assert account.at_delta_zero
    assert epsilon(pure_account(1.0, "add-or-remove-one"), 0.0, 1, PoissonSampling(1.0)) == pytest.approx(1.0, rel=1e-12)
    assert amplified_epsilon(700.0, 0.5) == pytest.approx(700 - math.log(2))
    with pytest.raises(ValueError, match=r"sampling must be for replace-one adjacency, got Poisson sampling .*, which is for add"):
        account.bound(0.0, 1, PoissonSampling(0.1))
    with pytest.raises(
        ValueError, match=r"sampling must be for add-or-remove-one adjacency, got 5 of 50 clients .*, which is for replace-one"
    ):
        pure_account(1.0, "add-or-remove-one").bound(0.0, 1, FIXED)


# Tests of Rényi divergences


def test_rounds_add_up_and_the_order_is_said() -> None:
    account = renyi_account(lambda: CURVE, "replace-one")
    expected = CURVE.composed(5).epsilon(1e-3)
    bound = account.bound(1e-3, 5, None)
    assert (bound.epsilon, bound.order, bound.order_at_edge, bound.reason) == (expected.epsilon, expected.order, expected.at_edge, None)
    assert account.bound(0.0, 5, None) == EpsilonBound.nothing(NEEDS_DELTA)
    assert account.is_guarantee
    assert not renyi_account(lambda: CURVE, "replace-one", assumes="something").is_guarantee


def test_the_edge_of_the_orders_is_said() -> None:
    assert renyi_account(lambda: CURVE, "replace-one").bound(1e-9, 1, None).order_at_edge
    assert not renyi_account(lambda: CURVE, "replace-one").bound(1e-3, 20, None).order_at_edge


def test_divergences_are_computed_once_and_when_they_are_asked_for() -> None:
    computed: list[int] = []

    def curve() -> RenyiCurve:
        computed.append(1)
        return CURVE

    account = renyi_account(curve, "replace-one")
    assert computed == []
    for delta in (1e-3, 1e-6):
        for sampling in (None, FIXED):
            epsilon(account, delta, 3, sampling)
    assert computed == [1]


def test_without_a_finite_divergence_nothing_is_said() -> None:
    infinite = RenyiCurve(CURVE.orders, np.full(4, math.inf))
    assert renyi_account(lambda: infinite, "replace-one").bound(0.1, 1, None) == EpsilonBound(
        math.inf, "no Rényi divergence is finite", math.inf, False
    )


def test_sampled_divergences_are_those_of_every_mechanism_unless_better_ones_are_known() -> None:
    for sampling, sampled in ((PoissonSampling(0.1), poisson_sampled_curve), (FIXED, fixed_size_sampled_curve)):
        account = renyi_account(lambda: CURVE, sampling.adjacency)
        expected = sampled(CURVE, 0.1).composed(7).epsilon(1e-4).epsilon
        assert epsilon(account, 1e-4, 7, sampling) == expected < epsilon(account, 1e-4, 7)
        lazy = renyi_account(lambda: LazyRenyiCurve(lambda orders: orders / 20, CURVE.orders), sampling.adjacency)
        assert epsilon(lazy, 1e-4, 7, sampling) == expected
        with pytest.raises(ValueError, match=f"sampling must be for {'replace-one' if sampling is not FIXED else 'add-or-remove-one'}"):
            renyi_account(lambda: CURVE, "replace-one" if sampling is not FIXED else "add-or-remove-one").bound(1e-4, 1, sampling)
    better = renyi_account(lambda: CURVE, "replace-one", sampled=lambda *_: RenyiCurve(np.array([2.0]), np.array([0.0])))
    assert epsilon(better, 1e-4, 7, FIXED) == 0.0
    everyone = FixedSizeSampling(5, 5)
    assert secretly_sampled_curve("replace-one")(CURVE, everyone) is CURVE


# Tests of privacy losses


def test_one_round_is_amplified_and_several_are_those_of_everyone() -> None:
    account = loss_account("pld", lambda rounds, delta: rounds * 2.0 - delta, "replace-one")
    assert epsilon(account, 1e-3, 4) == pytest.approx(8 - 1e-3)
    # The sampled account uses ten times the delta.
    assert epsilon(account, 1e-3, 1, FIXED) == pytest.approx(math.log1p(0.1 * math.expm1(2 - 1e-2)), rel=1e-9)
    assert epsilon(account, 1e-3, 2, FIXED) == epsilon(account, 1e-3, 2)
    unknown = loss_account("pld", lambda rounds, _: None if rounds > 1 else 1.0, "replace-one").bound(1e-3, 2, FIXED)
    assert unknown.reason == "too expensive to compute, or not known, for these rounds, this sampling and this delta"
    nothing = loss_account("pld", lambda *_: None, "replace-one").bound(1e-3, 1, FIXED)
    assert (nothing.epsilon, nothing.reason) == (math.inf, unknown.reason)
    # A sample of all clients is no sampling.
    everyone = loss_account("pld", lambda rounds, delta: None if delta < 9e-4 else rounds * 2.0, "replace-one")
    assert everyone.bound(1e-3, 4, FixedSizeSampling(7, 7)).epsilon == 8.0
    assert epsilon(account, 1e-3, 4, FixedSizeSampling(7, 7)) == pytest.approx(8 - 1e-3)
    assert account.bound(0.0, 1, None) == EpsilonBound.nothing(NEEDS_DELTA)
    better = loss_account("pld", lambda *_: 1.0, "replace-one", sampled=lambda rounds, *_: 0.1 * rounds)
    assert epsilon(better, 1e-3, 3, FIXED) == pytest.approx(0.3)


def test_what_is_unknown_or_infinite_says_nothing() -> None:
    for value in (None, math.inf):
        bound = loss_account("pld", lambda *_, value=value: value, "replace-one").bound(1e-3, 1, None)
        assert math.isinf(bound.epsilon)
        assert bound.reason is not None


def test_losses_are_composed_within_what_they_cost_and_what_rounding_spares() -> None:
    loss = dominating_privacy_loss([[3, 1], [1, 3]])
    epsilon = math.log(3)
    assert composed_loss(loss, 1, 1e-3) == pytest.approx(composed_pure_epsilon(epsilon, 1, 1e-3), rel=1e-6)
    for times in (2, 20):
        result = composed_loss(loss, times, 1e-3)
        assert result is not None
        assert composed_pure_epsilon(epsilon, times, 1e-3) <= result < 1.001 * composed_pure_epsilon(epsilon, times, 1e-3)
    assert composed_loss(loss, MOST_COMPOSITIONS + 1, 1e-3) is None
    # Each of twenty rounds may drop 2e-15 of delta.
    assert composed_loss(loss, 20, 5e-14) is None
    assert composed_loss(loss, 20, 1e-13) is not None
    assert composed_loss(loss, 20, 1e-13, composed_before=10) is None


def test_losses_whose_ratios_overflow_warn_of_nothing_and_err_upward() -> None:
    loss = dominating_privacy_loss([[30, 1], [1, 30]])
    result = [composed_loss(loss, times, 1e-3) for times in (209, 212, 245)]
    assert result[1] is None
    for times, bound in zip((209, 245), (result[0], result[2]), strict=True):
        assert bound is not None
        assert bound >= composed_pure_epsilon(math.log(30), times, 1e-3) * (1 - 1e-9)


# Tests of rounds as (epsilon, delta)


def test_a_bound_that_needs_delta_says_so() -> None:
    bound = needing_delta(lambda delta, rounds, _: EpsilonBound(delta * rounds))
    assert bound(0.0, 3, None) == EpsilonBound.nothing(NEEDS_DELTA)
    assert bound(0.1, 3, None).epsilon == pytest.approx(0.3)


def test_sampled_rounds_of_any_mechanism_compose_as_randomised_response() -> None:
    asked: list[float] = []

    def single(delta: float) -> EpsilonBound:
        asked.append(delta)
        return EpsilonBound(0.5, details={"kept": 1})

    single_round = amplified_rounds(single, 1e-4, 1, FIXED, "replace-one")
    assert single_round.epsilon == pytest.approx(math.log1p(0.1 * math.expm1(0.5)), rel=1e-12)
    many = amplified_rounds(single, 1e-4, 20, FIXED, "replace-one")
    assert many.epsilon == composed_pure_epsilon(single_round.epsilon, 20, 5e-5)
    assert many.details == {"kept": 1}
    # The rounds use half of delta, and a round in which the client takes part has ten times its share. The least share is for a single
    # round.
    assert asked == pytest.approx([1e-3, 1e-3, 1e-4 / 40 * 10])
    tiny = amplified_rounds(lambda _: EpsilonBound(1e-5), 0.5, 2, FIXED, "replace-one")
    assert composed_rounds(1e-6, 2, 0.25) == 0 < tiny.epsilon == pytest.approx(1e-6, rel=1e-4)
    nothing = amplified_rounds(lambda _: EpsilonBound.nothing("no"), 1e-4, 20, FIXED, "replace-one")
    assert nothing == EpsilonBound.nothing("no")


def test_rounds_that_cannot_be_composed_are_added_up() -> None:
    assert composed_rounds(0.1, 100, 1e-5) == composed_pure_epsilon(0.1, 100, 1e-5) < 10
    assert composed_rounds(2e6, 3, 1e-5) == 6e6
    assert composed_rounds(1e-6, 10**9, 1e-5) == pytest.approx(1e3)
