"""Accounts: against dp-accounting asked directly, against enumeration of whole vectors, and what is refused."""

import itertools
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SampledWithoutReplacementDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.privacy_loss_distribution import from_laplace_mechanism
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant

from quietbits.analysis.accounting.mechanism_accounting import (
    MOST_COMPOSITIONS,
    gaussian_accounting,
    laplace_accounting,
    protocol_accounting,
    pure_accounting,
    skellam_accounting,
    table_accounting,
)
from quietbits.analysis.accounting.privacy_account import AccountedMechanism
from quietbits.analysis.accounting.subsampling import (
    SAMPLED_ORDERS,
    FixedSizeSampling,
    PoissonSampling,
    amplified_pure_epsilon,
    sampled_loss,
)
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.vector_gaussian import VectorGaussianMechanism
from quietbits.design.tables.lookup_table import LookupTable
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.solvers.accounting.privacy_loss import dominating_privacy_loss
from quietbits.solvers.accounting.pure_composition import composed_pure_epsilon
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve

REPLACE = NeighboringRelation.REPLACE_ONE


@pytest.fixture(scope="module")
def table() -> LookupTable:
    return generalised_randomised_response(1.0, 2)


# Composition


def test_gaussian_noise_agrees_with_both_accountants() -> None:
    account = gaussian_accounting(3.0).account(rounds=20, delta=1e-6)
    assert account.epsilon_rdp == pytest.approx(RdpAccountant(DEFAULT_ORDERS[:-1]).compose(GaussianDpEvent(3.0), 20).get_epsilon(1e-6))
    # dp-accounting rounds losses up, by about 1e-8 here; ours is exact.
    by_grid = PLDAccountant().compose(GaussianDpEvent(3.0), 20).get_epsilon(1e-6)
    assert 0 <= by_grid - account.epsilon_pld < 1e-5
    assert (account.epsilon, account.method) == (account.epsilon_pld, "pld")
    assert account.epsilon_rdp > account.epsilon_pld
    assert account.pure_epsilon is None


def test_replace_one_means_different_things_to_the_two_accountants_and_one_thing_here() -> None:
    # The trap: with REPLACE_ONE, dp-accounting's PLD accountant doubles the sensitivity, its RDP accountant does not.
    by_pld = PLDAccountant(REPLACE).compose(GaussianDpEvent(2.0)).get_epsilon(1e-5)
    assert by_pld == pytest.approx(PLDAccountant().compose(GaussianDpEvent(1.0)).get_epsilon(1e-5), abs=1e-4)
    orders = DEFAULT_ORDERS[:-1]
    by_rdp = RdpAccountant(orders, REPLACE).compose(GaussianDpEvent(2.0)).get_epsilon(1e-5)
    assert by_rdp == pytest.approx(RdpAccountant(orders).compose(GaussianDpEvent(2.0)).get_epsilon(1e-5))
    assert by_rdp < 0.6 * by_pld
    # Here the noise multiplier is relative to the sensitivity for the adjacency that is stated.
    replaced, added = (gaussian_accounting(2.0, adjacency=name).account(1, 1e-5) for name in ("replace-one", "add-or-remove-one"))
    assert (replaced.epsilon, replaced.epsilon_rdp) == (added.epsilon, added.epsilon_rdp)
    assert (replaced.adjacency, added.adjacency) == ("replace-one", "add-or-remove-one")
    assert replaced.epsilon_pld == pytest.approx(PLDAccountant().compose(GaussianDpEvent(2.0)).get_epsilon(1e-5), abs=1e-5)


def test_pure_mechanisms_compose_to_at_most_their_sum() -> None:
    account = pure_accounting("cldp", 0.5).account(rounds=8, delta=1e-9)
    assert account.pure_epsilon == 4.0
    assert account.epsilon_pld <= account.epsilon_rdp <= 4.0
    assert (account.adjacency, account.trust_model, account.sampling) == ("replace-one", "local", None)
    # Where the pure guarantee is the better one, its order is infinite, which JSON has no number for.
    assert account.order == math.inf
    assert account.document()["order"] is None


def test_beyond_what_is_affordable_renyi_divergences_are_left() -> None:
    account = pure_accounting("cldp", 1e-4).account(rounds=10**8, delta=1e-6)
    assert account.epsilon_pld is None
    assert (account.epsilon, account.method) == (account.epsilon_rdp, "rdp")
    assert laplace_accounting(0.01).account(rounds=MOST_COMPOSITIONS + 1, delta=1e-6).epsilon_pld is None
    assert gaussian_accounting(1.0).account(rounds=10**7, delta=1e-6).epsilon_pld is None
    assert gaussian_accounting(1.0, sampling=PoissonSampling(0.5)).account(rounds=10**6, delta=1e-6).epsilon_pld is None


@pytest.mark.parametrize(("epsilon", "rounds"), [(0.01, 300), (0.1, 300)])
def test_the_rounding_of_composed_losses_is_counted(epsilon: float, rounds: int) -> None:
    table = generalised_randomised_response(epsilon, 1)
    exact = partial(composed_pure_epsilon, table.certificate.realised_epsilon, rounds)
    mechanism = table_accounting(table)
    for delta in (1e-6, 1e-8, 1e-10, 1e-11, 1e-12):
        by_loss = mechanism.account(rounds, delta).epsilon_pld
        assert by_loss is None or by_loss >= exact(delta) * (1 - 1e-12)
    assert mechanism.account(rounds, 1e-6).epsilon_pld == pytest.approx(exact(1e-6), rel=1e-4)
    # The reason: dp-accounting takes its Fourier transforms to be exact, and is off either way, as it comes with the machine.
    theirs = dominating_privacy_loss(table.weights).self_compose(rounds)
    assert abs(theirs.get_epsilon_for_delta(1e-10) / exact(1e-10) - 1) > 1e-8
    # Where delta is as small as that rounding, no epsilon is made of it.
    assert mechanism.account(rounds, 1e-16).epsilon_pld is None


def test_laplace_noise_loses_less_than_pure_privacy_allows() -> None:
    laplace, pure = (mechanism.account(30, 1e-6) for mechanism in (laplace_accounting(0.3), pure_accounting("any", 0.3)))
    assert laplace.epsilon_rdp < pure.epsilon_rdp
    assert laplace.epsilon_pld < pure.epsilon_pld
    assert laplace.pure_epsilon == pure.pure_epsilon == pytest.approx(9.0)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.9, 0.1), (0.25, 0.25, 0.5)])
def test_a_shift_of_one_coordinate_dominates_for_laplace_noise(shares: tuple[float, ...]) -> None:
    sensitivity = 2.0
    whole = from_laplace_mechanism(1.0, sensitivity=sensitivity)
    parts = [from_laplace_mechanism(1.0, sensitivity=share * sensitivity) for share in shares]
    shared = parts[0]
    for part in parts[1:]:
        shared = shared.compose(part)
    epsilons = np.linspace(0, sensitivity, 21)
    # Both are rounded up, to a grid of 1e-4: by much less than this.
    assert np.all(np.array(shared.get_delta_for_epsilon(epsilons)) <= np.array(whole.get_delta_for_epsilon(epsilons)) + 1e-7)
    assert shared.get_delta_for_epsilon(1.0) < whole.get_delta_for_epsilon(1.0) - 1e-3


@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
def test_a_table_covers_every_pair_of_vectors(table: LookupTable, norm: float) -> None:
    rounds, delta, dimension, radius = 2, 1e-2, 2, 2 / 3
    account = table_accounting(table, dimension=dimension, norm=norm, radius=radius).account(rounds, delta)
    rows = table.weights / table.total
    grid = np.arange(len(rows))
    worst = 0.0
    for vector, other in itertools.product(itertools.product(grid, repeat=dimension), repeat=2):
        if np.linalg.norm(np.subtract(vector, other) / 3, ord=norm) > radius + 1e-9:
            continue
        # All messages of all rounds, enumerated.
        own, others = np.ones(1), np.ones(1)
        for index, changed in list(zip(vector, other, strict=True)) * rounds:
            own, others = np.outer(own, rows[index]).ravel(), np.outer(others, rows[changed]).ravel()
        worst = max(worst, float(np.maximum(own - math.exp(account.epsilon) * others, 0).sum()))
    assert worst <= delta
    assert (account.epsilon_pld is not None) == (norm == math.inf)
    if norm == math.inf:
        # The bound is met: a little less epsilon would be too little.
        assert worst > delta * 0.99
    assert (account.adjacency, account.trust_model) == ("replace-one", "local")


def test_one_coordinate_has_a_dominating_pair(table: LookupTable) -> None:
    account = table_accounting(table).account(rounds=10, delta=1e-3)
    # Randomised response between many letters leaks less than between two.
    assert account.epsilon_pld < pure_accounting("any", table.certificate.realised_epsilon).account(10, 1e-3).epsilon_pld
    assert account.epsilon_pld < account.epsilon_rdp


def test_a_protocol_is_accounted_for_by_what_it_says_itself() -> None:
    protocol = VectorGaussianMechanism(1.0, 1e-6, NormBall(8, 2.0))
    account = protocol_accounting("gaussian", protocol).account(1, 1e-6)
    assert account.epsilon == pytest.approx(1.0, abs=1e-3)
    assert (account.mechanism, account.adjacency, account.trust_model) == ("gaussian", "replace-one", "local")


def test_skellam_noise_is_a_little_worse_than_gaussian_noise() -> None:
    skellam = skellam_accounting(1e6, 100.0, 50.0).account(4, 1e-6)
    gaussian = gaussian_accounting(1e3 / 50).account(4, 1e-6)
    assert gaussian.epsilon_rdp < skellam.epsilon < 1.01 * gaussian.epsilon_rdp
    assert skellam.epsilon_pld is None


# Sampling


def test_poisson_sampling_agrees_with_both_accountants() -> None:
    account = gaussian_accounting(2.0, sampling=PoissonSampling(0.05)).account(50, 1e-6)
    event = PoissonSampledDpEvent(0.05, GaussianDpEvent(2.0))
    assert account.epsilon_pld == pytest.approx(PLDAccountant().compose(event, 50).get_epsilon(1e-6), rel=1e-4)
    # Between whole orders ours is a chord, above their series: by little.
    theirs = RdpAccountant(SAMPLED_ORDERS).compose(event, 50).get_epsilon(1e-6)
    assert theirs * (1 - 1e-12) <= account.epsilon_rdp < theirs * 1.01
    assert (account.adjacency, account.trust_model) == ("add-or-remove-one", "central")
    assert account.sampling == "Poisson sampling with probability 0.05"
    assert account.epsilon < gaussian_accounting(2.0).account(50, 1e-6).epsilon / 4


def test_a_large_sampling_probability_does_not_fail_to_converge(caplog: pytest.LogCaptureFixture) -> None:
    # dp-accounting's series for orders that are not whole does, says so in the log, and leaves those orders out.
    RdpAccountant([1.25]).compose(PoissonSampledDpEvent(0.3, GaussianDpEvent(1.0)))
    assert "failed to converge" in caplog.text
    caplog.clear()
    curve = gaussian_accounting(1.0, sampling=PoissonSampling(0.3)).curve
    assert caplog.text == ""
    assert np.all(np.isfinite(curve.divergences))
    assert np.all(np.diff(curve.divergences) >= -1e-12)
    assert np.all(curve.divergences <= curve.orders / 2 * (1 + 1e-12) + 0.5)


def test_small_losses_are_not_lost_in_rounding() -> None:
    event = PoissonSampledDpEvent(0.01, GaussianDpEvent(100.0))
    ours = gaussian_accounting(100.0, sampling=PoissonSampling(0.01)).account(1, 1e-6).epsilon_pld
    finest = PLDAccountant(value_discretization_interval=1e-8).compose(event).get_epsilon(1e-6)
    assert finest <= ours < finest * 1.001
    assert PLDAccountant().compose(event).get_epsilon(1e-6) > finest * 1.01


def test_sampling_without_replacement_agrees_with_the_rdp_accountant() -> None:
    account = gaussian_accounting(2.0, sampling=FixedSizeSampling(1000, 50)).account(50, 1e-6)
    event = SampledWithoutReplacementDpEvent(1000, 50, GaussianDpEvent(2.0))
    assert account.epsilon == pytest.approx(RdpAccountant(SAMPLED_ORDERS, REPLACE).compose(event, 50).get_epsilon(1e-6))
    assert (account.adjacency, account.trust_model, account.epsilon_pld) == ("replace-one", "central", None)
    assert account.sampling == "50 of 1000 clients sampled without replacement"


def test_sampling_everyone_is_no_sampling() -> None:
    everyone = gaussian_accounting(2.0, sampling=PoissonSampling(1.0)).account(10, 1e-6)
    assert everyone.epsilon == pytest.approx(gaussian_accounting(2.0).account(10, 1e-6).epsilon, abs=1e-5)
    laplace = laplace_accounting(0.5, PoissonSampling(1.0)).account(10, 1e-6)
    assert laplace.epsilon_pld == laplace_accounting(0.5).account(10, 1e-6).epsilon_pld
    assert amplified_pure_epsilon(0.5, 1.0) == pytest.approx(0.5)
    assert amplified_pure_epsilon(700.0, 0.5) == pytest.approx(700 - math.log(2))


def test_sampled_laplace_noise() -> None:
    account = laplace_accounting(1.0, PoissonSampling(0.1)).account(20, 1e-6)
    assert account.pure_epsilon == pytest.approx(20 * math.log1p(0.1 * math.expm1(1.0)))
    assert account.epsilon == account.epsilon_pld < account.pure_epsilon
    assert (account.adjacency, account.trust_model) == ("add-or-remove-one", "central")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: pure_accounting("SQKR", 1.0, PoissonSampling(0.1)),
            "left out for SQKR.*the server sees who reports",
        ),
        (lambda: table_accounting(generalised_randomised_response(1.0, 1), sampling=FixedSizeSampling(9, 3)), "left out for a table"),
        (
            lambda: laplace_accounting(1.0, FixedSizeSampling(9, 3)),
            r"dp-accounting does not support this event \(LaplaceDpEvent\)",
        ),
        (
            lambda: gaussian_accounting(1.0, adjacency="replace-one", sampling=PoissonSampling(0.1)),
            r"probability 0.1 with replace-one adjacency: dp-accounting does not support this event \(GaussianDpEvent\)",
        ),
        (
            lambda: gaussian_accounting(1.0, adjacency="add-or-remove-one", sampling=FixedSizeSampling(9, 3)),
            "without replacement with add-or-remove-one adjacency: dp-accounting does not support",
        ),
        (lambda: gaussian_accounting(1.0, trust_model="local", sampling=PoissonSampling(0.1)), "left out for the local trust model"),
        (lambda: sampled_loss(GaussianDpEvent(1.0), PoissonSampling(0.1), "replace-one"), "by privacy loss distributions"),
        (lambda: PoissonSampling(0.0), "sampling_probability must be a number from 1e-09 to 1, got 0.0"),
        (lambda: FixedSizeSampling(9, 10), "sample_size must be a whole number from 1 to 9, got 10"),
        (lambda: FixedSizeSampling(0, 1), "population must be a whole number from 1"),
    ],
)
def test_sampling_that_proves_nothing_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


# The account itself


def test_without_delta_only_the_pure_guarantee_is_there() -> None:
    account = pure_accounting("cldp", 0.5).account(rounds=3)
    assert (account.epsilon, account.order, account.epsilon_rdp, account.epsilon_pld, account.method) == (None,) * 5
    assert account.pure_epsilon == 1.5
    assert str(account.guarantee) == "epsilon = 1.5, replace-one adjacency, local trust model"
    assert gaussian_accounting(1.0).account().guarantee.epsilon == math.inf


def test_the_guarantee_and_the_document() -> None:
    account = gaussian_accounting(4.0, trust_model="secure-sum").account(2, 1e-6)
    assert (account.guarantee.epsilon, account.guarantee.delta) == (account.epsilon, 1e-6)
    assert account.guarantee.trust_model == "secure-sum"
    keys = {"mechanism", "rounds", "delta", "epsilon", "epsilon_rdp", "order", "order_at_edge", "epsilon_pld", "pure_epsilon"}
    assert account.document().keys() == keys | {"adjacency", "trust_model", "sampling", "method"}


def test_the_edge_of_the_orders_is_said() -> None:
    assert gaussian_accounting(0.02).account(1, 0.5).order_at_edge
    assert not gaussian_accounting(2.0).account(1, 1e-6).order_at_edge
    curve = RenyiCurve(np.array([2.0, 3.0]), np.array([0.1, 0.15]))
    assert AccountedMechanism("few orders", curve, "replace-one", "local").account(1, 1e-6).order_at_edge


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gaussian_accounting(1.0).account(0, 0.1), "rounds must be a whole number from 1"),
        (lambda: gaussian_accounting(1.0).account(1, 0.0), "delta must be a number above 0 and below 1, got 0.0"),
        (lambda: gaussian_accounting(1.0).account(1, 1.0), "delta must be a number above 0 and below 1, got 1.0"),
        (lambda: gaussian_accounting(1.0).account(1, math.nan), "delta must be a number above 0 and below 1, got nan"),
        (lambda: gaussian_accounting(0.0), "noise_multiplier must be a number from 0.001"),
        (lambda: gaussian_accounting(1.0, adjacency="swap"), "adjacency must be one of replace-one, add-or-remove-one, got 'swap'"),
        (lambda: gaussian_accounting(1.0, trust_model="none"), "trust_model must be one of local, secure-sum, central, got 'none'"),
        (lambda: skellam_accounting(1e4, 1.0, 1.0, trust_model="none"), "trust_model must be one of"),
        (lambda: skellam_accounting(1e4, 1.0, 2.0), "l1_sensitivity must be at least l2_sensitivity, 2.0, as L1 norms are, got 1.0"),
        (lambda: pure_accounting("x", 0.0), "epsilon must be a number from 1e-06 to 100, got 0.0"),
        (lambda: laplace_accounting(101.0), "epsilon must be a number from 1e-06 to 100, got 101.0"),
        (lambda: table_accounting(generalised_randomised_response(1.0, 1), radius=0.0), "radius must be a number from 1e-09"),
        (lambda: table_accounting(generalised_randomised_response(1.0, 1), dimension=0), "dimension must be a whole number from 1"),
        (lambda: table_accounting(generalised_randomised_response(1.0, 1), norm=0.5), "norm must be a number from 1"),
    ],
)
def test_bad_arguments(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
