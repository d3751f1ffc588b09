"""DP-REC's account: the paper's settings, calibration on the safe side, and what it is compared with."""

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

import quietbits
from quietbits.analysis.accounting.dp_rec import dp_rec_account
from quietbits.analysis.comparisons.dp_rec_references import (
    GAUSSIAN_ACCOUNTS,
    PUBLISHED_SETTINGS,
    PublishedSetting,
    dp_rec_references,
    gaussian_reference_epsilon,
    minimal_random_coding_epsilon,
)
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.relative_entropy.dp_rec import DpRecMechanism
from quietbits.design.relative_entropy.group_layout import uniform_layout
from quietbits.errors import InfeasibleError

MNIST = (100, 10, 1000, 42, 100**-1.1)
SMALL = PublishedSetting("small", 50, 10, 10, 1.0, 1.0)


def of_paper(setting: PublishedSetting) -> str:
    return f"{setting.dataset}-{setting.epsilon:g}"


def budget(setting: PublishedSetting, bits: int) -> tuple[int, int, int, int, float]:
    return setting.population, setting.clients_per_round, setting.rounds, bits, setting.delta


@pytest.mark.parametrize("setting", PUBLISHED_SETTINGS[:-1], ids=of_paper)
def test_the_papers_epsilon_within_a_percent(setting: PublishedSetting) -> None:
    account = dp_rec_account(setting.clip_ratio, *budget(setting, setting.bits))
    assert account.epsilon == pytest.approx(setting.epsilon, rel=0.01)
    assert account.delta == pytest.approx(setting.population**-1.1)
    unlimited = dp_rec_account(setting.clip_ratio, *budget(setting, 200))
    assert unlimited.epsilon <= account.epsilon <= 1.012 * unlimited.epsilon


def test_stackoverflow_has_one_bit_too_few() -> None:
    setting = PUBLISHED_SETTINGS[-1]
    with pytest.raises(InfeasibleError, match=r"^bits must be at least 43 for clip ratio 1\.227 and 90000 draws at delta = .*, got 42: "):
        dp_rec_account(setting.clip_ratio, *budget(setting, setting.bits))
    # With a bit more, and far from the edge: the paper says 1.
    assert dp_rec_account(setting.clip_ratio, *budget(setting, 43)).epsilon == pytest.approx(1.0101, abs=1e-4)
    assert dp_rec_account(setting.clip_ratio, *budget(setting, 49)).epsilon == pytest.approx(0.9353, abs=1e-4)


@pytest.mark.parametrize("setting", PUBLISHED_SETTINGS, ids=of_paper)
def test_the_conservative_variant_costs_a_third_to_twice(setting: PublishedSetting) -> None:
    published, conservative = (
        dp_rec_account(setting.clip_ratio, *budget(setting, 49), variant).epsilon for variant in ("published", "conservative")
    )
    assert 1.3 < conservative / published < 2


def test_an_account_says_what_it_rests_on() -> None:
    account = dp_rec_account(0.545, *MNIST, "conservative")
    guarantee = account.guarantee
    assert (guarantee.epsilon, guarantee.delta) == (account.epsilon, 100**-1.1)
    assert (guarantee.adjacency, guarantee.trust_model) == ("add-or-remove-one", "central")
    assert account.sampling == "10 of 100 clients drawn with replacement"
    assert account.assumption == "the other clients' messages count as samples of the prior, and all groups as one list of 2**bits samples"
    assert account.lost_delta == pytest.approx(12 * 10_000 * math.exp(0.545**2) / 2**42)
    assert account.minimum_bits == 25
    for bits in (25, 24):
        lost = 12 * 10_000 * math.exp(0.545**2) / 2**bits
        assert (lost < account.delta) == (bits == 25)


@pytest.mark.parametrize("setting", PUBLISHED_SETTINGS, ids=of_paper)
def test_any_bits_and_groups_need_nothing_of_delta(setting: PublishedSetting) -> None:
    few, many = (dp_rec_account(setting.clip_ratio, *budget(setting, bits), "any-bits") for bits in (1, 42))
    assert few.epsilon == many.epsilon
    assert (few.minimum_bits, few.lost_delta, few.order) == (1, 0.0, many.order)
    assert few.assumption == "the other clients' messages count as samples of the prior"


@pytest.mark.parametrize("variant", DP_REC_VARIANTS)
@pytest.mark.parametrize("setting", PUBLISHED_SETTINGS, ids=of_paper)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
def test_calibration_ends_on_the_safe_side(setting: PublishedSetting, epsilon: float, variant: str) -> None:
    found = calibrate_dp_rec(epsilon, *budget(setting, 60), variant)
    assert 0 <= epsilon - found.account.epsilon <= 1e-6 * min(1.0, epsilon)
    assert found.account == dp_rec_account(found.clip_ratio, *budget(setting, 60), variant)
    assert dp_rec_account(found.clip_ratio * (1 + 1e-5), *budget(setting, 60), variant).epsilon > epsilon


def test_calibration_stops_where_the_bits_do() -> None:
    found = calibrate_dp_rec(1000.0, 10**6, 1, 1, 30, 1e-5)
    account = found.account
    assert account.epsilon < 1000.0
    assert account.minimum_bits == 30
    with pytest.raises(InfeasibleError, match="bits must be at least 31"):
        dp_rec_account(found.clip_ratio * (1 + 1e-9), 10**6, 1, 1, 30, 1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibrate_dp_rec(1.0, 100, 10, 1000, 20, 1e-5), "bits must be at least 34 for clip ratio 1e-06 and 10000 draws"),
        (lambda: calibrate_dp_rec(1e-5, *MNIST), "clip ratio would have to be below 1e-06"),
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
        (lambda: dp_rec_account(1.0, 10, 10, 0, 40, 0.1), "rounds must be a whole number from 1 to 1000000000, got 0"),
        (lambda: dp_rec_account(1.0, 10, 10, 10, 0, 0.1), "bits must be a whole number from 1 to 1000000, got 0"),
        (lambda: dp_rec_account(1.0, 10, 10, 10, 40, 0.0), "delta must be a number above 0 and below 1, got 0.0"),
        (lambda: dp_rec_account(1.0, 10, 10, 10, 40, 0.1, "best"), "variant must be one of published, conservative, any-bits, got 'best'"),
        (lambda: calibrate_dp_rec(0.0, *MNIST), "epsilon must be a number from 1e-05 to 10000, got 0.0"),
        (lambda: gaussian_reference_epsilon(0.0, SMALL, "pld"), "noise_multiplier must be a number from 0.001 to 1e+06, got 0.0"),
        (lambda: gaussian_reference_epsilon(1.0, SMALL, "best"), "account must be one of classic, optimal, pld, got 'best'"),
        (lambda: minimal_random_coding_epsilon(0.0, 2), "epsilon must be a number from 1e-06 to 100, got 0.0"),
        (lambda: minimal_random_coding_epsilon(1.0, 0), "candidates must be a whole number from 1 to 4611686018427387904, got 0"),
    ],
)
def test_a_bad_argument_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match="must be") as raised:
        call()
    assert str(raised.value) == message


def test_gaussian_references_agree_with_dp_accounting() -> None:
    event = SelfComposedDpEvent(PoissonSampledDpEvent(0.2, GaussianDpEvent(2.0)), 10)
    orders = np.arange(2, 200)
    divergences = RdpAccountant(orders).compose(event)
    losses = PLDAccountant(value_discretization_interval=1e-4).compose(event)
    expected = {
        "classic": (divergences.rdp - math.log(SMALL.delta) / (orders - 1)).min(),
        "optimal": divergences.get_epsilon(SMALL.delta),
        "pld": losses.get_epsilon(SMALL.delta),
    }
    for account in GAUSSIAN_ACCOUNTS:
        assert gaussian_reference_epsilon(2.0, SMALL, account) == pytest.approx(expected[account], rel=1e-9)


def test_references_put_all_accounts_beside_each_other() -> None:
    steps: list[tuple[int, int]] = []
    frame = dp_rec_references((SMALL,), lambda done, total, _: steps.append((done, total)))
    assert steps == [(1, 1)]
    rows = frame.set_index("account")
    names = ["DP-REC, conservative", "DP-REC, published", "Gaussian, classic", "Gaussian, optimal", "Gaussian, pld"]
    assert sorted(rows.index) == sorted([*names, "DP-REC, any-bits"])
    # The same noise on the sum is less private by the first account than by the next, and so on; for the same epsilon more is needed.
    assert rows.loc[names, "epsilon"].is_monotonic_decreasing
    assert rows.loc[names, "target_noise_multiplier"].is_monotonic_decreasing
    assert set(rows["adjacency"]) == {"add-or-remove-one"}
    assert set(rows["trust_model"]) == {"central"}
    assert set(rows["sum_noise_multiplier"]) == {math.sqrt(10)}
    for account in GAUSSIAN_ACCOUNTS:
        epsilon = gaussian_reference_epsilon(rows.loc[f"Gaussian, {account}", "target_noise_multiplier"], SMALL, account)
        assert 0 <= SMALL.epsilon - epsilon <= 1e-3 * SMALL.epsilon
    for variant in DP_REC_VARIANTS:
        row = rows.loc[f"DP-REC, {variant}"]
        assert row["epsilon"] == dp_rec_account(1.0, *budget(SMALL, 42), variant).epsilon
        assert row["epsilon_at_minimum_bits"] == dp_rec_account(1.0, *budget(SMALL, int(row["minimum_bits"])), variant).epsilon
        ratio = math.sqrt(10) / row["target_noise_multiplier"]
        assert 0 <= SMALL.epsilon - dp_rec_account(ratio, *budget(SMALL, 42), variant).epsilon <= 1e-6


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("candidates", [1, 2, 3, 4])
def test_minimal_random_coding_by_enumeration(epsilon: float, candidates: int) -> None:
    # Randomised response over 4 values; every list of public candidates, every pair of inputs, every index.
    densities = np.where(np.eye(4) == 1, math.exp(epsilon), 1.0)
    worst = 0.0
    for drawn in itertools.product(range(4), repeat=candidates):
        chances = densities[:, drawn] / densities[:, drawn].sum(axis=1, keepdims=True)
        worst = max(worst, np.log(chances[:, None] / chances[None, :]).max())
    assert worst == pytest.approx(minimal_random_coding_epsilon(epsilon, candidates), abs=1e-12)


def test_minimal_random_coding_costs_twice_in_the_limit() -> None:
    found = [minimal_random_coding_epsilon(3.0, 2**bits) for bits in range(0, 63, 3)]
    assert found == sorted(found)
    assert 5.999999 < found[-1] <= 6.0


def test_the_table_of_local_guarantees_is_what_messages_have() -> None:
    text = (Path(quietbits.__file__).parent / "docs" / "dp-rec-accounting.md").read_text(encoding="utf-8")
    ratios, stated = (
        [float(cell) for cell in next(line for line in text.splitlines() if line.startswith(f"| {name} |")).split("|")[2:-1]]
        for name in ("c", "local ε of one message")
    )
    assert ratios == [setting.clip_ratio for setting in PUBLISHED_SETTINGS]
    for setting, epsilon in zip(PUBLISHED_SETTINGS, stated, strict=True):
        layout = uniform_layout(60, groups=6, bits=7)
        mechanism = DpRecMechanism(NormBall(60, 2.0), setting.clip_ratio, layout, delta=setting.delta)
        assert 0 <= epsilon - mechanism.guarantee.epsilon <= 0.01


@pytest.mark.parametrize(("setting", "stated"), list(zip(PUBLISHED_SETTINGS[:2], (1.26, 2.74), strict=True)), ids=("3", "6"))
def test_infinitely_many_samples_cost_less_than_every_account(setting: PublishedSetting, stated: float) -> None:
    mechanism = gaussian_accounting(1 / setting.clip_ratio, sampling=PoissonSampling(1 / setting.population))
    assert mechanism.epsilon_by_loss is not None
    exact = mechanism.epsilon_by_loss(setting.clients_per_round * setting.rounds, setting.delta)
    assert exact is not None
    assert 0 <= stated - exact <= 0.01
    for variant in DP_REC_VARIANTS:
        assert dp_rec_account(setting.clip_ratio, *budget(setting, 60), variant).epsilon > exact
