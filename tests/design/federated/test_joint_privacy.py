"""Releases of one round that share its clients.

Points under test: accounts are above the exact joint loss, and amplification is joint.
"""

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from quietbits import FixedSizeSampling, PoissonSampling, Privacy, gaussian_privacy, pure_privacy
from quietbits.attack.exact_accounts import Pair, cpsgd, discrete_gaussian, poisson_binomial, skellam
from quietbits.attack.trainings import composed_delta, round_masses
from quietbits.design.contracts.accounts import renyi_account
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.privacy import Account, EpsilonBound, NearGaussianNoise
from quietbits.design.federated.joint_privacy import _joint_noise, joint_privacy
from quietbits.design.frequencies.noisy_sketch import discrete_gaussian_items_privacy
from quietbits.design.secure_sum.cpsgd import CpsgdMechanism
from quietbits.design.secure_sum.distributed_discrete_gaussian import discrete_gaussian_privacy
from quietbits.design.secure_sum.distributed_skellam import distributed_skellam_privacy
from quietbits.design.secure_sum.noisy_count import NoisyCount
from quietbits.design.secure_sum.poisson_binomial_mechanism import poisson_binomial_privacy
from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon
from quietbits.solvers.accounting.renyi_curve import LazyRenyiCurve, RenyiCurve

ADDED = "add-or-remove-one"


@pytest.mark.parametrize("rounds", [1, 20])
def test_two_gaussian_releases_about_one_sample_reveal_what_quadrature_says(rounds: int) -> None:
    share, delta = 0.01, 1e-5
    vector, count = (gaussian_privacy(multiplier, ADDED, "central") for multiplier in (1.0, 1.2))
    sampling = PoissonSampling(share)
    epsilon = joint_privacy([vector, count], ADDED).epsilon(delta, ADDED, rounds, sampling)
    # A count moves by 1/2, so noise of 0.6 has the multiplier 1.2.
    masses = round_masses(ADDED, (1.0, 0.6), share)
    truth = [max(composed_delta(*pair, rounds, factor * epsilon) for pair in (masses, masses[::-1])) for factor in (1.005, 0.99)]
    assert truth[0] < delta < truth[1]
    # Amplifying the releases separately and adding the results would understate the privacy loss by far.
    added = sum(item.epsilon(delta / 2, ADDED, rounds, sampling) for item in (vector, count))
    assert max(composed_delta(*pair, rounds, added) for pair in (masses, masses[::-1])) > 2 * delta


def exact_releases(name: str) -> tuple[Pair, Privacy]:
    """Return the exact laws of a small secure sum for the two worst neighbours, and its privacy."""
    if name == "discrete-gaussian":
        return discrete_gaussian(3, 2.0, 1, "replace-one")[0], discrete_gaussian_privacy(3, 1, 1.0, 2.0, 1.0, "replace-one")
    if name == "skellam":
        return skellam(3, 4.0, 1, "replace-one")[0], distributed_skellam_privacy(3, 1, 1.0, 4.0, 1.0, "replace-one")
    if name == "cpsgd":
        mechanism = CpsgdMechanism(NormBall(1, 2.0), clients=3, levels=2, trials=400, delta=1e-5, rotated=False)
        return cpsgd(3, 400, 0.5, 2)[0], mechanism.privacy()
    return poisson_binomial(3, 2, 0.2, -1.0)[0], poisson_binomial_privacy(3, 2, 0.2, 2)


@pytest.mark.parametrize("name", ["discrete-gaussian", "skellam", "cpsgd", "poisson-binomial"])
@pytest.mark.parametrize("sampling", [None, FixedSizeSampling(10, 2)])
def test_every_account_is_above_the_exact_joint_loss(name: str, sampling: FixedSizeSampling | None) -> None:
    count = NoisyCount(3, 1.5)
    of_sum, privacy = exact_releases(name)
    of_count = discrete_gaussian(3, 1.5, 1, "replace-one")[0]
    joint = functools.reduce(Pair.product, [of_sum, of_count])
    if sampling is not None:
        joint = joint.sampled(sampling.share)
    for delta in (1e-2, 1e-4):
        report = joint_privacy([privacy, count.privacy("replace-one")], "replace-one").report(delta, "replace-one", 1, sampling)
        finite = [account for account in report.accounts if math.isfinite(account.bound.epsilon)]
        assert "basic" in [item.name for item in finite]
        for entry in finite:
            assert joint.delta(entry.bound.epsilon) <= delta * (1 + 1e-9)
        # The guarantee is close to the exact loss, except with sampling, where noise is far from Gaussian.
        assert sampling is not None or joint.delta(report.epsilon / 3) > delta


def test_releases_without_common_accounts_add_up_and_are_amplified_together() -> None:
    first, other = pure_privacy(0.5, "secure-sum"), discrete_gaussian_items_privacy(1000, 15, 30, 8, 50.0)
    joint = joint_privacy([first, other], "replace-one")
    assert [account.name for account in joint.accounts] == ["basic", "rdp"]
    everyone = first.epsilon(5e-6) + other.epsilon(5e-6)
    assert joint.report(1e-5).epsilon_by("basic") == pytest.approx(everyone, rel=1e-12)
    sampling = FixedSizeSampling(100, 10)
    joint_of_everyone = first.epsilon(5e-5) + other.epsilon(5e-5)
    amplified = joint.report(1e-5, "replace-one", 1, sampling).epsilon_by("basic")
    assert amplified == pytest.approx(math.log1p(0.1 * math.expm1(joint_of_everyone)), rel=1e-9)


def test_a_published_account_is_never_joined() -> None:
    mechanism = CpsgdMechanism(NormBall(16, 2.0), clients=100, levels=5, trials=400, delta=1e-5, adjacency="replace-one")
    joint = joint_privacy([mechanism.privacy(), NoisyCount.of_deviation(100, 5.0).privacy("replace-one")], "replace-one")
    assert "theorem-1" not in [account.name for account in joint.accounts]
    assert all(account.is_guarantee for account in joint.accounts)


def test_curves_and_noises_are_joined_of_guarantees_for_the_adjacency_alone() -> None:
    noise = NearGaussianNoise(lambda *_: 0.1)
    unusable: list[dict[str, Any]] = [{"proven": False}, {"assumes": "others are honest"}, {"adjacency": "replace-one"}]
    for fields in unusable:
        stated = {"name": "stated", "adjacency": ADDED, "bound": lambda *_: EpsilonBound(0.1), **fields}
        stated |= {"curve": lambda: RenyiCurve(np.array([2.0]), np.array([0.1])), "near_gaussian": noise}
        release = Privacy("central", (Account(**stated), Account("pure", ADDED, lambda *_: EpsilonBound(2.0))))
        joint = joint_privacy([release, gaussian_privacy(1.0, ADDED, "central")], ADDED)
        assert [account.name for account in joint.accounts] == ["basic"]
        assert joint.epsilon(1e-5) == pytest.approx(2.0 + gaussian_epsilon(1.0, 5e-6), rel=1e-9)


def test_noise_or_delta_too_small_for_gaussian_accounts_leaves_the_others() -> None:
    joint = joint_privacy([gaussian_privacy(1.0, ADDED, "central")] * 2, ADDED)
    for report in (joint.report(1e-301), joint.report(1e-5, rounds=500_001)):
        assert report.account("near-gaussian").bound.reason == "the noise of each release must be larger to be nearly Gaussian"
        assert report.epsilon == min(report.epsilon_by(name) for name in ("basic", "rdp")) < math.inf
    nothing = joint_privacy([pure_privacy(math.inf, "central"), pure_privacy(1.0, "central")], "replace-one").report(1e-5)
    assert nothing.account("basic").bound.reason == "a release has no finite epsilon"


def test_lazy_curves_are_joined_at_all_their_orders() -> None:
    lazy = renyi_account(lambda: LazyRenyiCurve(lambda orders: orders / 8, [2.0, 3.0, 5.0]), ADDED)
    whole = renyi_account(lambda: RenyiCurve(np.array([2.0, 5.0, 7.0]), np.array([0.1, 0.2, 0.3])), ADDED)
    curve = joint_privacy([Privacy("central", (lazy,)), Privacy("central", (whole,))], ADDED).account("rdp").curve
    assert curve is not None
    assert curve(None).orders.tolist() == [2.0, 5.0]
    np.testing.assert_allclose(curve(None).divergences, [0.35, 0.825], rtol=1e-14)


def test_what_is_no_joint_release_is_refused() -> None:
    gaussian = gaussian_privacy(1.0, ADDED, "central")
    with pytest.raises(ValueError, match="releases must be at least one, got none"):
        joint_privacy([], ADDED)
    with pytest.raises(ValueError, match="adjacency must be one of add-or-remove-one, got 'replace-one'"):
        joint_privacy([gaussian], "replace-one")
    with pytest.raises(ValueError, match="releases must be of one trust model, got central and secure-sum"):
        joint_privacy([gaussian, NoisyCount(10, 5.0).privacy()], ADDED)


def test_curves_are_added_at_their_common_orders() -> None:
    curve = joint_privacy([pure_privacy(0.1, "secure-sum"), NoisyCount(10, 5.0).privacy("replace-one")], "replace-one")
    account = curve.account("rdp")
    assert account.curve is not None
    added = account.curve(None)
    parts = [privacy.account("rdp").curve for privacy in (pure_privacy(0.1), NoisyCount(10, 5.0).privacy("replace-one"))]
    for part in parts:
        assert part is not None
    assert set(np.asarray(added.orders).tolist()) == set.intersection(*(set(part(None).orders.tolist()) for part in parts if part))


def test_sums_of_epsilons_and_divergences_are_never_rounded_down() -> None:
    rng = np.random.default_rng(1)
    for count in (1, 2, 3) * 10:
        releases = [pure_privacy(epsilon, "secure-sum") for epsilon in rng.uniform(0.01, 1.0, count).tolist()]
        joint = joint_privacy(releases, "replace-one")
        parts = [Fraction(release.epsilon(0.0)) for release in releases]
        assert sum(parts) <= Fraction(joint.report(0.0).epsilon_by("basic")) <= sum(parts) * (1 + Fraction(1, 10**15))
        curves = []
        for privacy in (joint, *releases):
            curve = privacy.account("rdp").curve
            assert curve is not None
            curves.append(
                [Fraction(divergence) for divergence in np.asarray(curve(None).divergences).tolist() if math.isfinite(divergence)]
            )
        added, *of_parts = curves
        for whole, *terms in zip(added, *of_parts, strict=True):
            assert sum(terms) <= whole <= sum(terms) * (1 + Fraction(1, 10**15))


def test_the_joint_multiplier_is_never_rounded_up() -> None:
    asked: list[float] = []

    def gaussian(multiplier: float, delta: float) -> float:
        asked.append(multiplier)
        return delta

    rng = np.random.default_rng(2)
    for count in (1, 2, 3, 5) * 300:
        multipliers = rng.uniform(0.5, 3.0, count).tolist()
        noises = [NearGaussianNoise(lambda delta, _, sampled, own=own: sampled(own, delta)) for own in multipliers]
        assert _joint_noise(noises).epsilon(1e-5, 1, gaussian) == 1e-5
        inverse_square = sum(1 / Fraction(multiplier) ** 2 for multiplier in multipliers)
        assert 1 - Fraction(1, 10**14) <= Fraction(asked[-1]) ** 2 * inverse_square <= 1
