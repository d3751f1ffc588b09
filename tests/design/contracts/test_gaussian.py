"""Privacy of Gaussian noise, with and without sampled clients, against dp-accounting."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SampledWithoutReplacementDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant
from scipy.special import ndtr

from quietbits.design.contracts.accounts import amplified_rounds
from quietbits.design.contracts.gaussian import (
    central_gaussian_error,
    central_gaussian_reference,
    gaussian_privacy,
    l2_radius,
    near_gaussian_account,
)
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.privacy import EpsilonBound, NearGaussianNoise, PrivacyReport
from quietbits.design.local.vector_gaussian import VectorGaussianMechanism
from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS
from quietbits.solvers.accounting.sampled_noise import SAMPLED_ORDERS, sampled_gaussian_curve, sampled_gaussian_loss
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling, Sampling

REPLACE = NeighboringRelation.REPLACE_ONE


def sampled(multiplier: float, sampling: Sampling, rounds: int, delta: float) -> PrivacyReport:
    return gaussian_privacy(multiplier, sampling.adjacency, "central").report(delta, rounds=rounds, sampling=sampling)


def test_both_accountants_agree() -> None:
    report = gaussian_privacy(3.0).report(1e-6, rounds=20)
    by_divergences, by_loss = report.epsilon_by("rdp"), report.epsilon_by("pld")
    assert by_divergences == pytest.approx(RdpAccountant(DEFAULT_ORDERS[:-1]).compose(GaussianDpEvent(3.0), 20).get_epsilon(1e-6))
    # dp-accounting rounds losses up, by about 1e-8 in this case; the account of quietbits is exact.
    by_grid = PLDAccountant().compose(GaussianDpEvent(3.0), 20).get_epsilon(1e-6)
    assert 0 <= by_grid - by_loss < 1e-5
    assert report.epsilon == by_loss < by_divergences
    assert report.best is not None
    assert report.best.name == "pld"


def test_replace_one_means_different_things_to_the_two_accountants_and_one_thing_here() -> None:
    # With REPLACE_ONE, dp-accounting's PLD accountant doubles the sensitivity, while its RDP accountant does not.
    by_pld = PLDAccountant(REPLACE).compose(GaussianDpEvent(2.0)).get_epsilon(1e-5)
    assert by_pld == pytest.approx(PLDAccountant().compose(GaussianDpEvent(1.0)).get_epsilon(1e-5), abs=1e-4)
    orders = DEFAULT_ORDERS[:-1]
    by_rdp = RdpAccountant(orders, REPLACE).compose(GaussianDpEvent(2.0)).get_epsilon(1e-5)
    assert by_rdp == pytest.approx(RdpAccountant(orders).compose(GaussianDpEvent(2.0)).get_epsilon(1e-5))
    assert by_rdp < 0.6 * by_pld
    # In quietbits the noise multiplier is relative to the sensitivity of the stated adjacency.
    replaced, added = (gaussian_privacy(2.0, name).report(1e-5) for name in ("replace-one", "add-or-remove-one"))
    assert [replaced.epsilon_by(name) for name in ("pld", "rdp")] == [added.epsilon_by(name) for name in ("pld", "rdp")]
    assert (replaced.adjacency, added.adjacency) == ("replace-one", "add-or-remove-one")
    assert replaced.epsilon == pytest.approx(PLDAccountant().compose(GaussianDpEvent(2.0)).get_epsilon(1e-5), abs=1e-5)


def test_beyond_what_is_affordable_renyi_divergences_are_left() -> None:
    assert math.isinf(gaussian_privacy(1.0).report(1e-6, rounds=10**7).epsilon_by("pld"))
    many = sampled(1.0, PoissonSampling(0.5), 10**6, 1e-6)
    own = gaussian_privacy(1.0, "add-or-remove-one", "central").report(5e-7, rounds=many.account("pld").bound.details["participations"])
    assert many.epsilon == many.epsilon_by("rdp") < many.epsilon_by("pld") == own.epsilon_by("pld")


def test_the_edge_of_the_orders_is_said() -> None:
    assert gaussian_privacy(0.02).report(0.5).account("rdp").bound.order_at_edge
    assert not gaussian_privacy(2.0).report(1e-6).account("rdp").bound.order_at_edge


def test_deltas_and_noise_too_small_for_the_exact_account_leave_the_others() -> None:
    for report in (gaussian_privacy(1.0).report(1e-301), gaussian_privacy(1.0).report(1e-5, rounds=1_000_001)):
        assert math.isinf(report.epsilon_by("pld"))
        assert report.account("pld").bound.reason is not None
        assert report.epsilon == report.epsilon_by("rdp") < math.inf
    assert gaussian_privacy(1.0).report(1e-5, rounds=10**6).epsilon_by("pld") == gaussian_epsilon(1e-3, 1e-5)


def test_its_noise_is_exactly_gaussian() -> None:
    noise = gaussian_privacy(2.0).account("pld").near_gaussian
    assert noise is not None
    assert not noise.of_a_pair
    assert noise.epsilon(1e-5, 9, None) == gaussian_epsilon(2 / 3, 1e-5)
    assert noise.epsilon(1e-5, 9, lambda multiplier, delta: multiplier + delta) == 2.0 + 1e-5


def test_without_delta_nothing_is_proven() -> None:
    report = gaussian_privacy(1.0).report(0.0)
    assert math.isinf(report.guarantee.epsilon)
    assert {account.bound.reason for account in report.accounts} == {"delta must be above 0 for this account"}


# Tests of sampling


def test_poisson_sampling_agrees_with_both_accountants() -> None:
    report = sampled(2.0, PoissonSampling(0.05), 50, 1e-6)
    event = PoissonSampledDpEvent(0.05, GaussianDpEvent(2.0))
    assert report.epsilon_by("pld") == pytest.approx(PLDAccountant().compose(event, 50).get_epsilon(1e-6), rel=1e-4)
    # Between whole orders, quietbits takes the smaller of a chord and dp-accounting's series, and is never below dp-accounting by more than
    # rounding.
    theirs = RdpAccountant(SAMPLED_ORDERS).compose(event, 50).get_epsilon(1e-6)
    assert theirs * (1 - 1e-12) <= report.epsilon_by("rdp") < theirs * 1.01
    assert (report.adjacency, report.trust_model) == ("add-or-remove-one", "central")
    assert report.document()["sampling"] == "Poisson sampling with probability 0.05"
    assert report.epsilon < gaussian_privacy(2.0).report(1e-6, rounds=50).epsilon / 4


def test_the_older_conversion_is_an_account_of_its_own() -> None:
    privacy = gaussian_privacy(2.0, "add-or-remove-one", "central")
    sampling = PoissonSampling(0.05)
    for chosen in (None, sampling):
        report = privacy.report(1e-6, rounds=50, sampling=chosen)
        optimal, classic = (report.account(name) for name in ("rdp", "rdp-classic"))
        assert classic.bound.epsilon > optimal.bound.epsilon + 0.1
        assert classic.proven
    curve = sampled_gaussian_curve(2.0, sampling, "add-or-remove-one").composed(50)
    candidates = curve.divergences - np.log(1e-6) / (curve.orders - 1)
    assert report.epsilon_by("rdp-classic") == pytest.approx(candidates.min(), rel=1e-12)


def test_a_large_sampling_probability_does_not_fail_to_converge(caplog: pytest.LogCaptureFixture) -> None:
    # dp-accounting's series does not converge for fractional orders, which it logs and omits.
    RdpAccountant([1.25]).compose(PoissonSampledDpEvent(0.3, GaussianDpEvent(1.0)))
    assert "failed to converge" in caplog.text
    caplog.clear()
    curve = sampled_gaussian_curve(1.0, PoissonSampling(0.3), "add-or-remove-one")
    assert caplog.text == ""
    assert np.all(np.isfinite(curve.divergences))
    assert np.all(np.diff(curve.divergences) >= -1e-12)
    assert np.all(curve.divergences <= curve.orders / 2 * (1 + 1e-12) + 0.5)


def test_small_losses_are_not_lost_in_rounding() -> None:
    event = PoissonSampledDpEvent(0.01, GaussianDpEvent(100.0))
    ours = sampled(100.0, PoissonSampling(0.01), 1, 1e-6).epsilon_by("pld")
    finest = PLDAccountant(value_discretization_interval=1e-7).compose(event).get_epsilon(1e-6)
    assert finest <= ours < finest * 1.001
    assert PLDAccountant().compose(event).get_epsilon(1e-6) > finest * 1.01


def test_sampling_without_replacement_agrees_with_the_rdp_accountant() -> None:
    report = sampled(2.0, FixedSizeSampling(1000, 50), 50, 1e-6)
    event = SampledWithoutReplacementDpEvent(1000, 50, GaussianDpEvent(2.0))
    assert report.epsilon == pytest.approx(RdpAccountant(SAMPLED_ORDERS, REPLACE).compose(event, 50).get_epsilon(1e-6))
    assert (report.adjacency, report.trust_model) == ("replace-one", "central")
    # Only the losses of rounds in which the client takes part are known.
    few = report.account("pld").bound.details["participations"]
    assert few < 20
    assert report.epsilon_by("pld") == gaussian_privacy(2.0, "replace-one", "central").report(5e-7, rounds=few).epsilon_by("pld")
    assert report.document()["sampling"] == "50 of 1000 clients sampled without replacement"


def test_sampling_everyone_is_no_sampling() -> None:
    everyone = sampled(2.0, PoissonSampling(1.0), 10, 1e-6)
    assert everyone.epsilon == pytest.approx(gaussian_privacy(2.0).report(1e-6, rounds=10).epsilon, abs=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: gaussian_privacy(1.0, "replace-one", "central").report(0.1, sampling=PoissonSampling(0.1)),
            r"probability 0.1 with replace-one adjacency: it is not accounted for by",
        ),
        (
            lambda: gaussian_privacy(1.0, "add-or-remove-one", "central").report(0.1, sampling=FixedSizeSampling(9, 3)),
            "without replacement with add-or-remove-one adjacency: it is not accounted for",
        ),
        (lambda: gaussian_privacy(1.0).report(0.1, sampling=PoissonSampling(0.1)), "left out in the local trust model"),
        (lambda: sampled_gaussian_loss(1.0, PoissonSampling(0.1), "replace-one"), "by privacy loss distributions"),
        (lambda: PoissonSampling(0.0), "sampling_probability must be a number from 1e-09 to 1, got 0.0"),
        (lambda: FixedSizeSampling(9, 10), "sample_size must be a whole number from 1 to 9, got 10"),
        (lambda: FixedSizeSampling(0, 1), "population must be a whole number from 1"),
        (lambda: gaussian_privacy(0.0), "noise_multiplier must be a number from 0.001"),
        (lambda: gaussian_privacy(1.0, adjacency="swap"), "adjacency must be one of replace-one, add-or-remove-one, got 'swap'"),
        (lambda: gaussian_privacy(1.0, trust_model="none"), "trust_model must be one of local, shuffled, secure-sum, central, got 'none'"),
    ],
)
def test_what_is_not_accounted_for_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


# Tests of the reference error


def test_a_mechanism_is_accounted_for_by_the_same() -> None:
    mechanism = VectorGaussianMechanism.of_epsilon(1.0, 1e-6, NormBall(8, 2.0))
    assert mechanism.guarantee.epsilon == gaussian_privacy(mechanism.noise_multiplier).epsilon(1e-6) == pytest.approx(1.0, abs=1e-8)


def test_out_of_range_there_is_no_reference() -> None:
    ball = NormBall(8, 2.0)
    assert central_gaussian_reference(ball, 10, 1.0, 1e-6, "replace-one") == central_gaussian_error(ball, 10, 1.0, 1e-6, "replace-one")
    for epsilon, delta in ((math.inf, 1e-6), (1e-4, 1e-6), (101.0, 1e-6), (1.0, 0.0)):
        assert central_gaussian_reference(ball, 10, epsilon, delta, "replace-one") is None


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 4.0, math.inf])
@pytest.mark.parametrize("clip_norm", [0.25, 3.0])
def test_the_radius_is_that_of_the_furthest_corner(norm: float, clip_norm: float) -> None:
    # The furthest point of a ball has a single nonzero coordinate, or equal coordinates.
    single, equal = np.eye(7)[0], np.ones(7)
    corners = [clip_norm * corner / np.linalg.norm(corner, norm) for corner in (single, equal)]
    radius = max(float(np.linalg.norm(corner)) for corner in corners)
    assert l2_radius(NormBall(7, norm, clip_norm)) == pytest.approx(radius, rel=1e-12)


def test_the_central_error_grows_with_the_square_of_what_the_sum_may_move_by() -> None:
    # With four coordinates of at most 3, the sum moves by 6, and by 12 under replace-one adjacency.
    ball, clients = NormBall(4, math.inf, 3.0), 10
    for adjacency, moved in (("add-or-remove-one", 6.0), ("replace-one", 12.0)):
        error = central_gaussian_error(ball, clients, 1.0, 1e-5, adjacency)
        multiplier = math.sqrt(error / 4) * clients / moved
        # At this multiplier, delta of Gaussian noise is the requested delta (Balle and Wang 2018, theorem 8).
        exact = ndtr(0.5 / multiplier - multiplier) - math.e * ndtr(-0.5 / multiplier - multiplier)
        assert exact == pytest.approx(1e-5, rel=1e-6)
        assert exact <= 1e-5


@pytest.mark.parametrize("rounds", [1, 30])
@pytest.mark.parametrize("sampling", [PoissonSampling(0.05), FixedSizeSampling(100, 5), FixedSizeSampling(100, 100)])
@pytest.mark.parametrize("of_a_pair", [False, True])
def test_noise_that_hides_one_clients_vectors_is_amplified_round_by_round_in_samples_of_fixed_size(
    of_a_pair: bool, sampling: Sampling, rounds: int
) -> None:
    delta, adjacency, asked = 1e-5, sampling.adjacency, list[bool]()

    # The account treats the noise as exactly Gaussian, of multiplier 2.
    def epsilon(delta: float, rounds: int, sampled: Callable[[float, float], float | None] | None) -> float | None:
        asked.append(sampled is not None)
        return gaussian_epsilon(2 / math.sqrt(rounds), delta) if sampled is None else sampled(2.0, delta)

    account = near_gaussian_account(NearGaussianNoise(epsilon, of_a_pair), adjacency, "too little")
    everyone = gaussian_epsilon(2 / math.sqrt(rounds), delta)
    assert account.bound(delta, rounds, None).epsilon == everyone
    together = sampling.share < 1 and not (of_a_pair and isinstance(sampling, FixedSizeSampling))
    answer = account.bound(delta, rounds, sampling)
    assert any(asked) == together
    of_rounds = amplified_rounds(lambda delta: EpsilonBound(gaussian_epsilon(2.0, delta)), delta, rounds, sampling, adjacency).epsilon
    of_gaussian = sampled(2.0, sampling, rounds, delta).epsilon if together else math.inf
    # A client may take part in fewer rounds.
    of_few = answer.epsilon if "participations" in answer.details else math.inf
    assert answer.epsilon == min(of_rounds, of_gaussian, of_few, everyone)
