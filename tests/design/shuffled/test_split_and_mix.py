"""Secure sums of mixed shares.

Points under test: shares and their sum; privacy from that of the sum; calibration by the registry.
"""

import math
from typing import Any

import numpy as np
import pytest

import quietbits
from quietbits.analysis.catalogue.accounts import account
from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.attack.exact_accounts import mixed_shares
from quietbits.design.contracts.accounts import pure_privacy
from quietbits.design.contracts.gaussian import gaussian_privacy
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.secure_sum.delegated_sum import NumberSum
from quietbits.design.secure_sum.distributed_discrete_laplace import DistributedDiscreteLaplaceMechanism
from quietbits.design.shuffled.split_and_mix import SplitAndMix, mixed_privacy, mixing_delta
from quietbits.errors import InfeasibleError
from quietbits.solvers.divergences.shuffled_shares import shuffled_shares_distance

CLIENTS, DELTA = 1000, 1e-6
INNER = DistributedDiscreteLaplaceMechanism(NormBall(2, 1.0), CLIENTS, bits=20, steps=100, scale=200.0, survivors=CLIENTS)
SPLIT = SplitAndMix(INNER, 8, DELTA)
VECTORS = np.tile([0.6, -0.4], (CLIENTS, 1))


def built(domain: Any, options: dict[str, Any] | None = None, **task: Any) -> Any:
    arguments: dict[str, Any] = {"clients": 10_000, "epsilon": 1.0, "delta": DELTA, "adjacency": "replace-one", **task}
    return build_mechanism("split-and-mix", quietbits.Task(domain, **arguments), options or {})


def test_shares_add_up_to_the_secure_sum_in_any_order() -> None:
    shares = SPLIT.encode(VECTORS, np.random.default_rng(0))
    sums = np.random.default_rng(1).permutation(shares, axis=0)
    sums = np.random.default_rng(2).permutation(sums, axis=2)
    np.testing.assert_array_equal(SPLIT.aggregate(sums), SPLIT.aggregate(shares))
    words = np.random.default_rng(0)
    np.testing.assert_array_equal(SPLIT.aggregate(shares), INNER.aggregate(INNER.encode(VECTORS, words)))
    assert shares.shape == (CLIENTS, 2, 8)
    assert SPLIT.bits_per_client == 8 * 2 * 20


@pytest.mark.parametrize("missing", range(8))
def test_any_shares_but_all_of_a_client_are_uniform(missing: int) -> None:
    mechanism = SplitAndMix(DistributedDiscreteLaplaceMechanism(NormBall(1, 1.0), 1, 2, 1, 0.5, 1), 8, DELTA)
    shares = mechanism.encode(np.ones((40_000, 1)), np.random.default_rng(missing))[:, 0]
    left = np.delete(shares, missing, axis=1)
    for values in (left.sum(axis=1) % 4, left[:, 0] + 4 * left[:, -1]):
        counts = np.bincount(values)
        expected = 40_000 / len(counts)
        # Chi-square of 3 or 15 degrees of freedom; the chance of more is below 1e-6.
        assert ((counts - expected) ** 2 / expected).sum() < 60


def test_a_lost_message_destroys_the_sum() -> None:
    shares = SPLIT.encode(VECTORS, np.random.default_rng(0))
    assert np.abs(SPLIT.decode(SPLIT.aggregate(shares), CLIENTS) - [0.6, -0.4]).max() < 0.1
    lost = (SPLIT.aggregate(shares) - shares[7, :, 3]) % np.uint64(SPLIT.modulus)
    assert np.abs(SPLIT.decode(lost, CLIENTS) - [0.6, -0.4]).min() > 1


def test_a_message_of_one_share_is_the_secure_sums() -> None:
    single = SplitAndMix(INNER, 1, DELTA)
    shares = single.encode(VECTORS, np.random.default_rng(0))
    np.testing.assert_array_equal(shares[:, :, 0], INNER.encode(VECTORS, np.random.default_rng(0)))
    assert single.guarantee.epsilon == math.inf


def test_the_distance_adds_up_over_coordinates() -> None:
    assert SPLIT.mixing_distance == 2 * shuffled_shares_distance(CLIENTS, 8, 2**20)
    assert SPLIT.facts()["mixing_distance"] == SPLIT.mixing_distance


def test_fewer_clients_have_less_noise_and_mix_less() -> None:
    fewer = SPLIT.for_clients(900)
    assert fewer.clients == 900
    assert fewer.mixing_distance > SPLIT.mixing_distance
    assert SPLIT.guarantee.epsilon < fewer.guarantee.epsilon == pytest.approx(INNER.for_clients(900).guarantee.epsilon, rel=1e-4)


@pytest.mark.parametrize("rounds", [1, 5])
def test_a_pure_sum_pays_with_delta_alone(rounds: int) -> None:
    distance = 1e-9
    mixed = mixed_privacy(pure_privacy(1.0, "secure-sum"), distance).account("pure")
    needed = (1 + math.exp(rounds)) * rounds * distance
    assert mixed.bound(needed * (1 + 1e-9), rounds, None).epsilon == rounds
    with pytest.raises(InfeasibleError, match="delta must be larger, or messages more"):
        mixed.bound(needed * (1 - 1e-9), rounds, None)
    assert not mixed.at_delta_zero
    assert mixed.bound(0.0, rounds, None).epsilon == math.inf


@pytest.mark.parametrize("rounds", [1, 30])
def test_other_accounts_pay_for_mixing_at_their_own_epsilon(rounds: int) -> None:
    inner, distance, delta = gaussian_privacy(5.0, "replace-one", "central"), 1e-10, 1e-5
    mixed = mixed_privacy(inner, distance)
    for stated in mixed.accounts:
        epsilon = stated.bound(delta, rounds, None).epsilon
        sums = inner.account(stated.name)
        left = delta - mixing_delta(epsilon, distance, rounds)
        # A thousandth more of epsilon is allowed for the cost of mixing.
        assert sums.bound(left, rounds, None).epsilon <= epsilon * (1 + 1e-12)
        assert epsilon <= sums.bound(delta - mixing_delta(epsilon * 1.01, distance, rounds), rounds, None).epsilon
        assert stated.curve is stated.near_gaussian is stated.losses is None


def test_an_infinite_epsilon_stays_infinite() -> None:
    assert mixed_privacy(pure_privacy(math.inf, "secure-sum"), 1e-9).epsilon(0.5) == math.inf
    assert mixed_privacy(pure_privacy(800.0, "secure-sum"), 1e-300).epsilon(0.5) == math.inf
    assert mixed_privacy(pure_privacy(800.0, "secure-sum"), 0.0).account("pure").bound(0.5, 1, None).epsilon == 800.0


@pytest.mark.parametrize(
    "case",
    [
        {"clients": 2, "messages": 14, "width": 2, "steps": 1, "scale": 0.3, "others": 0},
        {"clients": 3, "messages": 12, "width": 2, "steps": 1, "scale": 0.5, "others": 1},
        {"clients": 2, "messages": 30, "width": 1, "steps": 1, "scale": 0.4, "others": 1},
        {"clients": 1, "messages": 3, "width": 2, "steps": 1, "scale": 0.5, "others": 0},
    ],
)
def test_the_view_of_small_cases_is_as_private_as_stated(case: dict[str, Any]) -> None:
    pair, parameters = mixed_shares(**case)
    finite = []
    for delta in (1e-3, 1e-2, 0.1, 0.4):
        try:
            epsilon = account("split-and-mix", delta=delta, adjacency="replace-one", **parameters).epsilon
        except InfeasibleError:
            continue
        finite.append(epsilon)
        assert pair.delta(epsilon) <= delta * (1 + 1e-9)
    assert finite


def test_shares_that_are_too_few_reveal_more_than_their_sum() -> None:
    pair, parameters = mixed_shares(clients=4, messages=2, width=2, steps=1, scale=4.0, others=0)
    sums = DistributedDiscreteLaplaceMechanism(NormBall(1, 1.0), 4, 2, 1, 4.0, 4)
    assert pair.delta(sums.guarantee.epsilon) > 1e-3
    with pytest.raises(InfeasibleError, match="delta must be larger, or messages more"):
        account("split-and-mix", delta=1e-3, adjacency="replace-one", **parameters)


def test_numbers_have_a_fortieth_of_the_error_of_shuffled_letters() -> None:
    numbers = built(quietbits.Interval())
    letters = build_mechanism(
        "shuffled-mvu",
        quietbits.Task(quietbits.Interval(), 10_000, 1.0, DELTA, "replace-one"),
        {"bits_in": 4, "bits_out": 5},
    )
    assert letters.error().of_mean(10_000) / numbers.error().of_mean(10_000) > 40
    assert isinstance(numbers, NumberSum)
    assert numbers.bias_bound == 0
    assert numbers.bits_per_client == numbers.vector_mechanism.messages * 22


@pytest.mark.parametrize(("norm", "noise"), [(1.0, "pure"), (2.0, "near-gaussian")])
def test_vectors_have_the_error_of_a_secure_sum(norm: float, noise: str) -> None:
    ball = NormBall(16, norm)
    split = built(ball)
    name, delta, bits = ("laplace", 0.0, None) if norm == 1 else ("gaussian", DELTA, 32)
    secure = build_mechanism(
        f"distributed-discrete-{name}", quietbits.Task(ball, 10_000, 1.0, delta, "replace-one"), {} if bits is None else {"bits": bits}
    )
    assert split.error().of_mean(10_000) <= 1.02 * secure.error().of_mean(10_000)
    assert 0.999 < split.privacy().epsilon(DELTA) <= 1
    assert noise in {account.name for account in split.privacy().accounts}


def test_the_number_of_messages_is_the_least_that_keeps_the_budget() -> None:
    for domain, share in ((quietbits.Interval(), 1.0), (quietbits.Categories(100), 1.0), (NormBall(8, 2.0), 0.01)):
        split = built(domain).vector_mechanism
        fewer = SplitAndMix(split.inner, split.messages - 1, DELTA)
        assert split.privacy().epsilon(DELTA) <= 1
        assert mixing_delta(1.0, split.mixing_distance, 1) <= share * DELTA < mixing_delta(1.0, fewer.mixing_distance, 1)


def test_numbers_take_gaussian_noise_over_many_rounds() -> None:
    laplace, gaussian = (built(quietbits.Interval(), {"noise": noise}, rounds=30) for noise in ("laplace", "gaussian"))
    assert gaussian.error().of_mean(10_000) < laplace.error().of_mean(10_000)
    assert gaussian.bias_bound == 0


@pytest.mark.parametrize(
    ("domain", "options", "task", "message"),
    [
        (quietbits.Interval(), {}, {"delta": 0.0}, "delta must be above 0 for split-and-mix, got 0.0"),
        (quietbits.Interval(), {}, {"epsilon": 1000.0}, "epsilon must be at most 700 for split-and-mix, got 1000"),
        (quietbits.Interval(), {"bits": 10}, {}, "bits must be at least 90 in all messages of a coordinate, got 10"),
        (NormBall(3, 1.0), {"noise": "gaussian"}, {}, "noise must be laplace for NormBall"),
        (NormBall(3, 2.0), {"noise": "laplace"}, {}, "noise must be gaussian for NormBall"),
        (quietbits.Categories(5), {"noise": "gaussian"}, {}, "noise must be laplace for Categories"),
        (quietbits.Interval(), {}, {"adjacency": "add-or-remove-one"}, "adjacency must be replace-one for split-and-mix"),
        (NormBall(3, 2.0), {}, {"bits": 20}, "bits must be at least "),
    ],
)
def test_what_cannot_be_built_says_why(domain: Any, options: dict[str, Any], task: dict[str, Any], message: str) -> None:
    with pytest.raises(InfeasibleError, match=message):
        built(domain, options, **task)


def test_as_many_bits_as_the_message_says_suffice() -> None:
    assert built(quietbits.Interval(), {"bits": 90}).bits_per_client == 90
    # Padding of the rotation takes its share.
    assert built(NormBall(3, 2.0), bits=300.0).bits_per_client <= 900


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"norm": "inf"}, "norm must be 1 or 2 for split-and-mix, got inf"),
        ({"scale": None}, "scale must be given for split-and-mix with norm 1, got none"),
        ({"bits": 41}, "bits must be a multiple of messages, at most 62 for each of 8, got 41"),
    ],
)
def test_parameters_of_the_account_are_checked(changes: dict[str, Any], message: str) -> None:
    given = {"dimension": 1, "norm": "1", "clients": 10, "bits": 160, "messages": 8, "steps": 5, "scale": 9.0, **changes}
    with pytest.raises(ValueError, match=message):
        account("split-and-mix", delta=0.1, **{name: value for name, value in given.items() if value is not None})


def test_wrong_fields_and_messages_are_refused() -> None:
    with pytest.raises(ValueError, match="messages must be a whole number from 1 to 256, got 0"):
        SplitAndMix(INNER, 0, DELTA)
    with pytest.raises(ValueError, match="inner must be a secure sum of vectors"):
        SplitAndMix(NumberSum(built(quietbits.Interval()).inner, (0.0, 1.0)), 8, DELTA)
    with pytest.raises(ValueError, match=r"messages must have the shape \(clients, 2, 8\), got \(4, 2\)"):
        SPLIT.aggregate(np.zeros((4, 2), dtype=np.uint32))
