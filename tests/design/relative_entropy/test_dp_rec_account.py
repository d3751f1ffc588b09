"""Tests of DP-REC's account.

Points under test: the paper's settings, calibration on the safe side, and reference accounts.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom, norm

import quietbits
from quietbits.analysis.catalogue.accounts import Calibration, calibrate
from quietbits.design.contracts.gaussian import gaussian_privacy
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.privacy import AccountedEpsilon
from quietbits.design.relative_entropy.dp_rec import ANY_BITS, DpRecMechanism, DpRecTraining, dp_rec_account, message_account
from quietbits.design.relative_entropy.group_layout import uniform_layout
from quietbits.errors import InfeasibleError
from quietbits.figures.dp_rec.references import PUBLISHED_SETTINGS, PublishedSetting
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling
from quietbits.solvers.divergences.dp_rec_privacy import VARIANTS

TRAINING_ACCOUNTS = (*VARIANTS, ANY_BITS)
MNIST = (100, 10, 1000, 42, 100**-1.1)


def of_paper(setting: PublishedSetting) -> str:
    return f"{setting.dataset}-{setting.epsilon:g}"


def budget(setting: PublishedSetting, bits: int) -> tuple[int, int, int, int, float]:
    return setting.population, setting.clients_per_round, setting.rounds, bits, setting.delta


def answer(setting: PublishedSetting, bits: int, account: str = "published") -> AccountedEpsilon:
    return dp_rec_account(setting.clip_ratio, *budget(setting, bits)).privacy.account(account)


def calibrated(
    epsilon: float, population: int, clients_per_round: int, rounds: int, bits: int, delta: float, method: str | None = None
) -> Calibration:
    given = {"population": population, "clients_per_round": clients_per_round, "index_bits": bits}
    return calibrate("dp-rec", epsilon=epsilon, delta=delta, rounds=rounds, method=method, **given)


@pytest.mark.parametrize("setting", PUBLISHED_SETTINGS[:-1], ids=of_paper)
def test_the_papers_epsilon_within_a_percent(setting: PublishedSetting) -> None:
    result = answer(setting, setting.index_bits)
    assert result.bound.epsilon == pytest.approx(setting.epsilon, rel=0.01)
    assert setting.delta == pytest.approx(setting.population**-1.1)
    unlimited = answer(setting, 200).bound.epsilon
    assert unlimited <= result.bound.epsilon <= 1.012 * unlimited


def test_stackoverflow_has_one_bit_too_few() -> None:
    setting = PUBLISHED_SETTINGS[-1]
    result = answer(setting, setting.index_bits).bound
    assert math.isinf(result.epsilon)
    assert result.reason is not None
    assert result.reason.startswith("index_bits must be at least 43 for clip ratio 1.227 and 90000 draws at delta = ")
    assert ", got 42: " in result.reason
    # With one more bit and far from the edge, epsilon is near the paper's 1.
    assert answer(setting, 43).bound.epsilon == pytest.approx(1.0101, abs=1e-4)
    assert answer(setting, 49).bound.epsilon == pytest.approx(0.9353, abs=1e-4)


@pytest.mark.parametrize("setting", PUBLISHED_SETTINGS, ids=of_paper)
def test_the_conservative_variant_costs_a_third_to_twice(setting: PublishedSetting) -> None:
    published, conservative = (answer(setting, 49, account).bound.epsilon for account in ("published", "conservative"))
    assert 1.3 < conservative / published < 2


@pytest.mark.parametrize("setting", PUBLISHED_SETTINGS, ids=of_paper)
def test_no_guarantee_is_stated_for_adding_or_removing_a_client(setting: PublishedSetting) -> None:
    # These accounts treat other clients' messages as samples of the prior; the published claim is unproven even under this assumption.
    report = dp_rec_account(setting.clip_ratio, *budget(setting, 60), adjacency="add-or-remove-one")
    assert (report.privacy.adjacency, report.privacy.trust_model) == ("add-or-remove-one", "central")
    assert math.isinf(report.epsilon)
    assert report.privacy.best is None
    assert math.isinf(report.privacy.guarantee.epsilon)
    assert report.document()["epsilon"] is report.document()["method"] is None
    assert {account.name: account.proven for account in report.privacy.accounts} == {
        "published": False,
        "conservative": True,
        "any-bits": True,
        "any-clients": True,
        "message": True,
    }
    assert [account.name for account in report.privacy.accounts if account.assumes is None] == ["any-clients", "message"]
    assert [account.name for account in report.privacy.accounts if account.adjacency == "replace-one"] == ["any-clients", "message"]


# Epsilon of the paper's settings for any messages of the other clients, rounded up in the documentation.
ANY_CLIENTS_EPSILONS = (12.507, 91.322, 4.962, 1360.7, 2398.7, 387.41, 6.066)


@pytest.mark.parametrize(("setting", "stated"), list(zip(PUBLISHED_SETTINGS, ANY_CLIENTS_EPSILONS, strict=True)), ids=str)
def test_what_is_proven_whatever_the_others_hold(setting: PublishedSetting, stated: float) -> None:
    report = dp_rec_account(setting.clip_ratio, *budget(setting, setting.index_bits))
    assert report.privacy.best is not None
    assert (report.privacy.adjacency, report.privacy.best.name) == ("replace-one", "any-clients")
    assert stated * (1 - 1e-3) < report.epsilon <= stated
    assert report.epsilon < report.epsilon_by("message") / 20
    assert report.epsilon > report.epsilon_by("any-bits")


def test_the_divergences_of_a_round_are_those_of_all_its_draws() -> None:
    training = DpRecTraining(clip_ratio=0.1, population=1000, clients_per_round=7, index_bits=12)
    curve = training.privacy().account("message").curve
    assert curve is not None
    # Without amplification the account has the same divergences: a client may be drawn each time.
    own = message_account(0.1).bound(1e-5, 7 * 3, None)
    assert curve(None).composed(3).epsilon(1e-5).epsilon == pytest.approx(own.epsilon, rel=1e-12)
    with pytest.raises(ValueError, match="sampling must be left out for dp-rec"):
        curve(PoissonSampling(0.1))


def test_a_clients_own_messages_are_one_for_every_draw() -> None:
    setting = PUBLISHED_SETTINGS[0]
    report = dp_rec_account(setting.clip_ratio, *budget(setting, setting.index_bits))
    mechanism = DpRecMechanism(NormBall(60, 2.0), setting.clip_ratio, uniform_layout(60, groups=6, group_bits=7), delta=setting.delta)
    draws = setting.clients_per_round * setting.rounds
    assert report.epsilon_by("message") == mechanism.privacy().epsilon(setting.delta, rounds=draws)


def test_a_large_clip_ratio_reveals_no_more_than_the_draws_of_one_client() -> None:
    # Among 2000 draws of 100 clients, more than 40 are a client's with probability 1.5e-5; amplification round by round would count all
    # draws.
    training = DpRecTraining(20.0, 100, 20, 42)
    bound = training.privacy().account("any-clients").bound(1e-4, 100, None)
    own = message_account(20.0).bound(5e-5, int(bound.details["participations"]), None)
    assert bound.epsilon == own.epsilon < training.privacy().account("message").bound(1e-4, 100, None).epsilon / 20
    assert binom.sf(bound.details["participations"], 2000, 0.01) <= 5e-5


def test_a_second_sampling_is_refused() -> None:
    # DP-REC samples clients itself; counting a second sampling would give 4.4 instead of 14.3.
    with pytest.raises(ValueError, match="sampling must be left out for dp-rec, whose clients are drawn with replacement, got '10 of 100"):
        quietbits.account(
            "dp-rec", delta=1e-3, clip_ratio=0.5, population=100, clients_per_round=10, index_bits=42, sampling=FixedSizeSampling(100, 10)
        )


def test_with_one_client_the_choice_hides_nothing() -> None:
    report = dp_rec_account(0.5, 1, 1, 1, 7, 1e-5)
    assert report.epsilon_by("any-clients") == pytest.approx(report.epsilon_by("message"), rel=1e-9)
    many = [dp_rec_account(0.5, population, 1, 1, 7, 1e-5).epsilon for population in (1, 10, 1000, 10**6)]
    assert many == sorted(many, reverse=True)
    assert many[-1] < 0.1 * many[0]


def two_normals(clip_ratio: float, population: int, epsilon: float) -> float:
    """Return delta of one draw if the samples of other clients are at -c.

    The client's sample is at c, or is a sample of the prior.
    """
    points, step = np.linspace(-14, 14, 400_001, retstep=True)
    others, own, none = (norm.pdf(points - mean) for mean in (-clip_ratio, clip_ratio, 0.0))
    excess = (1 - 1 / population) * others * -math.expm1(epsilon) + (own - math.exp(epsilon) * none) / population
    return float(np.maximum(excess, 0.0).sum() * step)


# All other clients are at -c, with one draw, so the accounts for prior samples claim less than the realised delta.
@pytest.mark.parametrize(
    ("account", "clip_ratio", "population", "bits", "delta", "claimed", "realised"),
    [("published", 0.545, 10, 60, 1e-5, 0.968, 1.367), ("conservative", 1.41, 1000, 80, 1e-8, 5.526, 6.406)],
)
def test_others_on_the_other_side_of_the_prior_refute_the_theorem(
    account: str, clip_ratio: float, population: int, bits: int, delta: float, claimed: float, realised: float
) -> None:
    report = dp_rec_account(clip_ratio, population, 1, 1, bits, delta)
    assert report.epsilon_by(account) == pytest.approx(claimed, abs=1e-3)
    assert two_normals(clip_ratio, population, realised - 1e-3) > delta > two_normals(clip_ratio, population, realised + 1e-3)
    # This case does not refute `report.epsilon`, the account without assumptions.
    assert two_normals(clip_ratio, population, report.epsilon) < 0.1 * delta


def test_others_on_the_other_side_of_the_prior_refute_any_bits() -> None:
    clip_ratio, population, samples, delta = 0.545, 10, 64, 1e-3
    report = dp_rec_account(clip_ratio, population, 1, 1, 6, delta)
    assert report.epsilon_by("any-bits") == pytest.approx(0.3714, abs=1e-4)
    weights = np.exp(clip_ratio * np.random.default_rng(0).standard_normal((60_000, samples)))
    own, others = (item / item.mean(axis=1, keepdims=True) for item in (weights, 1 / weights))

    def deltas(epsilon: float) -> tuple[float, float]:
        """Return delta and five of its standard errors."""
        excess = (1 - 1 / population) * others * -math.expm1(epsilon) + (own - math.exp(epsilon)) / population
        of_round = np.maximum(excess, 0.0).mean(axis=1)
        return float(of_round.mean()), float(5 * of_round.std() / math.sqrt(len(of_round)))

    result, error = deltas(report.epsilon_by("any-bits"))
    assert result - error > 1.5 * delta
    result, error = deltas(0.455)
    assert result == pytest.approx(delta, abs=error + 0.02 * delta)
    result, error = deltas(report.epsilon)
    assert result + error < 0.1 * delta


def test_an_account_says_what_it_rests_on() -> None:
    report = dp_rec_account(0.545, *MNIST)
    account = report.privacy.account("conservative")
    assert account.adjacency == "add-or-remove-one"
    assert report.subject.details["drawn"] == "10 of 100 clients drawn with replacement"
    assert account.assumes is not None
    assert account.assumes.startswith(
        "the other clients' messages count as samples of the prior, all groups as one list of 2**bits samples"
    )
    assert account.bound.details["lost_delta"] == pytest.approx(12 * 10_000 * math.exp(0.545**2) / 2**42)
    assert account.bound.details["minimum_bits"] == 25
    for bits in (25, 24):
        lost = 12 * 10_000 * math.exp(0.545**2) / 2**bits
        assert (lost < report.privacy.delta) == (bits == 25)


@pytest.mark.parametrize("setting", PUBLISHED_SETTINGS, ids=of_paper)
def test_any_bits_and_groups_need_nothing_of_delta(setting: PublishedSetting) -> None:
    few, many = (answer(setting, bits, "any-bits") for bits in (1, 42))
    assert few.bound == many.bound
    assert dict(few.bound.details) == {"minimum_bits": 1, "lost_delta": 0.0}
    assert few.assumes == "the other clients' messages count as samples of the prior"


@pytest.mark.parametrize("account", TRAINING_ACCOUNTS)
@pytest.mark.parametrize("setting", PUBLISHED_SETTINGS[::4], ids=of_paper)
@pytest.mark.parametrize("epsilon", [0.05, 3.0])
def test_calibration_ends_on_the_safe_side(setting: PublishedSetting, epsilon: float, account: str) -> None:
    result = calibrated(epsilon, *budget(setting, 60), account)
    assert 0 <= epsilon - result.report.epsilon_by(account) <= 1e-6 * min(1.0, epsilon)
    population, clients_per_round, rounds, bits, delta = budget(setting, 60)

    def epsilon_of(clip_ratio: float) -> float:
        # The account's option skips the other accounts.
        return DpRecTraining(clip_ratio, population, clients_per_round, bits).privacy().epsilon(delta, rounds=rounds, account=account)

    assert epsilon_of(result["clip_ratio"]) == result.report.epsilon_by(account)
    assert epsilon_of(result["clip_ratio"] * (1 + 1e-5)) > epsilon


def test_calibration_keeps_what_is_proven_unless_an_account_is_asked_for() -> None:
    setting = PUBLISHED_SETTINGS[0]
    by_method = {method: calibrated(3.0, *budget(setting, 42), method) for method in (None, "any-clients", "published", "any-bits")}
    assert by_method[None]["clip_ratio"] == by_method["any-clients"]["clip_ratio"] < by_method["published"]["clip_ratio"]
    assert (by_method[None].report.privacy.adjacency, round(by_method[None].epsilon, 5)) == ("replace-one", 3.0)
    # Another account keeps its own budget for its own adjacency, but is no guarantee.
    assert (by_method["any-bits"].report.privacy.adjacency, by_method["any-bits"].epsilon) == ("add-or-remove-one", math.inf)


def test_calibration_stops_where_the_bits_do() -> None:
    result = calibrated(1000.0, 10**6, 1, 1, 30, 1e-5, "published")
    published = result.report.privacy.account("published").bound
    assert published.epsilon < 1000.0
    assert published.details["minimum_bits"] == 30
    beyond = dp_rec_account(result["clip_ratio"] * (1 + 1e-9), 10**6, 1, 1, 30, 1e-5).privacy.account("published").bound
    assert beyond.reason is not None
    assert beyond.reason.startswith("index_bits must be at least 31")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: calibrated(1.0, 100, 10, 1000, 20, 1e-5, "published"),
            "index_bits must be at least 34 for clip ratio 1e-06 and 10000 draws",
        ),
        (lambda: calibrated(1e-5, *MNIST, "published"), "clip ratio would have to be below 1e-06"),
        (
            lambda: calibrate(
                "dp-rec", epsilon=1.0, delta=1e-5, adjacency="add-or-remove-one", population=9, clients_per_round=1, index_bits=9
            ),
            "method must name an account for add-or-remove-one adjacency, published, conservative, any-bits, got None",
        ),
    ],
)
def test_a_budget_that_nothing_meets(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InfeasibleError) as raised:
        call()
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dp_rec_account(0.0, *MNIST), "clip_ratio must be a number from 1e-06 to 100, got 0.0"),
        (lambda: dp_rec_account(1.0, 0, 10, 10, 40, 0.1), "population must be a whole number from 1 to 1000000000000, got 0"),
        (lambda: dp_rec_account(1.0, 10, 0, 10, 40, 0.1), "clients_per_round must be a whole number from 1 to 1000000, got 0"),
        (lambda: dp_rec_account(1.0, 10, 10, 0, 40, 0.1), "rounds must be a whole number from 1 to 1000000000000, got 0"),
        (
            # The error quotes the typed value, not the number of draws that follows from it.
            lambda: dp_rec_account(1e-6, 10**6, 10**6, 10**7, 40, 2e-100),
            "rounds must be at most 1000000 for dp-rec with 1000000 clients a round, got 10000000: accounts are for 1e+12 messages at most",
        ),
        (lambda: dp_rec_account(1.0, 10, 10, 10, 0, 0.1), "index_bits must be a whole number from 1 to 1000000, got 0"),
        (lambda: dp_rec_account(1.0, 10, 10, 10, 40, 1.0), "delta must be a number from 0 to 1, got 1.0"),
        (lambda: dp_rec_account(1.0, 10, 10, 10, 40, 0.1, "both"), "adjacency must be one of replace-one, add-or-remove-one, got 'both'"),
        (
            lambda: calibrated(1.0, *MNIST, "best"),
            "method must be one of published, conservative, any-bits, any-clients, message, got 'best'",
        ),
        (lambda: calibrated(0.0, *MNIST), "epsilon must be a number from 1e-05 to 10000, got 0.0"),
        (lambda: calibrated(1.0, 100, 10, 1000, 42, 0.0), "delta must be a number above 0 and below 1, got 0.0"),
    ],
)
def test_a_bad_argument_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match="must be") as raised:
        call()
    assert str(raised.value) == message


def test_without_delta_nothing_is_said() -> None:
    report = dp_rec_account(0.545, 100, 10, 1000, 42, 0.0)
    assert {account.bound.reason for account in report.privacy.accounts} == {"delta must be above 0 for this account"}


@pytest.mark.parametrize(("setting", "stated"), list(zip(PUBLISHED_SETTINGS[:2], (1.26, 2.74), strict=True)), ids=("3", "6"))
def test_infinitely_many_samples_cost_less_than_every_account(setting: PublishedSetting, stated: float) -> None:
    noise = gaussian_privacy(1 / setting.clip_ratio, "add-or-remove-one", "central").account("pld")
    draws = setting.clients_per_round * setting.rounds
    exact = noise.bound(setting.delta, draws, PoissonSampling(1 / setting.population)).epsilon
    assert 0 <= stated - exact <= 0.01
    for account in TRAINING_ACCOUNTS:
        assert answer(setting, 60, account).bound.epsilon > exact
