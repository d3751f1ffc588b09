"""References of DP-REC's account.

Points under test: dp-accounting for Gaussian noise, and enumeration of its coding.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from quietbits.design.contracts.task import Budget
from quietbits.design.relative_entropy.dp_rec import dp_rec_account
from quietbits.figures.dp_rec import references as dp_rec_references
from quietbits.figures.dp_rec.communication import FEDERATIONS
from quietbits.figures.dp_rec.references import (
    ACCOUNTS,
    GAUSSIAN_ACCOUNTS,
    PUBLISHED_SETTINGS,
    TRAINING_ACCOUNTS,
    PublishedSetting,
    ReferencePoint,
    calibrated_clip_ratio,
    gaussian_reference_epsilon,
)
from quietbits.solvers.divergences.candidate_coding_privacy import minimal_random_coding_epsilon

SMALL = PublishedSetting("small", 50, 10, 10, 1.0, 1.0)


def training_epsilon(clip_ratio: float, bits: int, account: str) -> float:
    return dp_rec_account(clip_ratio, SMALL.population, SMALL.clients_per_round, SMALL.rounds, bits, SMALL.delta).epsilon_by(account)


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
    frame = pd.DataFrame([row for account in ACCOUNTS for row in ReferencePoint(seed=0, published=SMALL, account=account).run()])
    rows = frame.set_index("account")
    names = ["DP-REC, conservative", "DP-REC, published", "Gaussian, classic", "Gaussian, optimal", "Gaussian, pld"]
    assert sorted(rows.index) == sorted([*names, "DP-REC, any-bits"])
    # Each account in this order proves a smaller epsilon for the same noise than the account before, so the noise for a given epsilon
    # falls.
    assert rows.loc[names, "epsilon"].is_monotonic_decreasing
    assert rows.loc[names, "target_noise_multiplier"].is_monotonic_decreasing
    assert set(rows["adjacency"]) == {"add-or-remove-one"}
    assert set(rows["trust_model"]) == {"central"}
    assert set(rows["sum_noise_multiplier"]) == {math.sqrt(10)}
    for account in GAUSSIAN_ACCOUNTS:
        epsilon = gaussian_reference_epsilon(rows.loc[f"Gaussian, {account}", "target_noise_multiplier"], SMALL, account)
        assert 0 <= SMALL.epsilon - epsilon <= 1e-3 * SMALL.epsilon
    for account in TRAINING_ACCOUNTS:
        row = rows.loc[f"DP-REC, {account}"]
        assert row["epsilon"] == training_epsilon(1.0, 42, account)
        assert row["epsilon_at_minimum_bits"] == training_epsilon(1.0, int(row["minimum_bits"]), account)
        ratio = math.sqrt(10) / row["target_noise_multiplier"]
        assert 0 <= SMALL.epsilon - training_epsilon(ratio, 42, account) <= 1e-6


# The paper reports two or three digits.
@pytest.mark.parametrize("setting", PUBLISHED_SETTINGS, ids=str)
def test_the_papers_noise_is_that_of_the_older_conversion_over_its_own_rounds(setting: PublishedSetting) -> None:
    of_noise = replace(setting, rounds=setting.gaussian_rounds)
    assert setting.noise_multiplier is not None
    epsilon = gaussian_reference_epsilon(setting.noise_multiplier, of_noise, "classic")
    assert epsilon == pytest.approx(setting.epsilon, rel=0.04)
    if setting.dataset == "FEMNIST":
        assert (setting.gaussian_rounds, setting.rounds) == (1500, 4000)
        assert gaussian_reference_epsilon(setting.noise_multiplier, setting, "classic") > 1.5 * setting.epsilon


def test_bits_are_seven_for_each_group() -> None:
    assert {setting.dataset: setting.index_bits for setting in PUBLISHED_SETTINGS} == {
        federation.dataset: 7 * federation.groups for federation in FEDERATIONS[::-1]
    }


def test_gaussian_noise_has_the_rounds_of_its_own_training(monkeypatch: pytest.MonkeyPatch) -> None:
    # The stand-in account is quick, and can be inverted by hand.
    monkeypatch.setattr(dp_rec_references, "gaussian_reference_epsilon", lambda noise, setting, _: setting.rounds / noise)
    setting = replace(SMALL, rounds=9, noise_rounds=4, noise_multiplier=2.0)
    (row,) = ReferencePoint(seed=0, published=setting, account="Gaussian, classic").run()
    assert (row["rounds"], row["noise_rounds"], row["paper_noise_multiplier"]) == (9, 4, 2.0)
    assert row["epsilon"] == pytest.approx(9 / math.sqrt(10))
    assert row["paper_noise_epsilon"] == 2.0
    assert 4 <= row["target_noise_multiplier"] <= 4.01
    assert 9 <= row["same_rounds_noise_multiplier"] <= 9.02


@pytest.mark.parametrize("account", TRAINING_ACCOUNTS)
def test_the_largest_clip_ratio_keeps_the_target_and_is_the_largest(account: str) -> None:
    ratio = calibrated_clip_ratio(Budget(2.0, SMALL.delta, "add-or-remove-one", SMALL.rounds, method=account), SMALL.training)
    assert training_epsilon(ratio, 42, account) <= 2.0 < training_epsilon(ratio * 1.001, 42, account)


@pytest.mark.parametrize(
    ("call", "message"),
    [
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


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("candidates", [1, 2, 3, 4])
def test_minimal_random_coding_by_enumeration(epsilon: float, candidates: int) -> None:
    # The law is randomised response over 4 values; the test enumerates all lists of public candidates, all pairs of inputs, and all
    # indices.
    densities = np.where(np.eye(4) == 1, math.exp(epsilon), 1.0)
    worst = 0.0
    for drawn in itertools.product(range(4), repeat=candidates):
        chances = densities[:, drawn] / densities[:, drawn].sum(axis=1, keepdims=True)
        worst = max(worst, np.log(chances[:, None] / chances[None, :]).max())
    assert worst == pytest.approx(minimal_random_coding_epsilon(epsilon, candidates), abs=1e-12)


def test_minimal_random_coding_costs_twice_in_the_limit() -> None:
    result = [minimal_random_coding_epsilon(3.0, 2**bits) for bits in range(0, 63, 3)]
    assert result == sorted(result)
    assert 5.999999 < result[-1] <= 6.0
