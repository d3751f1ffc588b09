"""Accounts of binomial noise.

Points under test: the worst pair of vectors by enumeration of all pairs, rounds, and the fewest trials.
"""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from quietbits.analysis.catalogue.accounts import Calibration, calibrate
from quietbits.design.contracts.registry import AccountReport
from quietbits.design.secure_sum import binomial_account as account_module
from quietbits.design.secure_sum.binomial_account import ORDERS, BinomialNoise, WorstShift, binomial_account, whole_steps, worst_shift
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.exact_privacy_loss import ExactPrivacyLoss, composed_exact_epsilon
from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon
from quietbits.solvers.accounting.pure_composition import composed_pure_epsilon
from quietbits.solvers.accounting.renyi_curve import RenyiCurve
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling, likely_participations
from quietbits.solvers.divergences.binomial_divergence import (
    shifted_binomial_delta,
    shifted_binomial_epsilon,
    shifted_binomial_losses,
    shifted_binomial_renyi,
)
from quietbits.solvers.divergences.cpsgd_theorem import binomial_theorem_epsilon
from quietbits.solvers.divergences.near_gaussian_noise import binomial_near_gaussian_epsilon
from quietbits.solvers.divergences.poisson_binomial_divergence import log_binomial

ACCOUNTS = ("theorem-1", "exact", "rdp", "near-gaussian")


def epsilons(report: AccountReport) -> tuple[float, ...]:
    """Return the epsilons of theorem 1, the exact account, and Rényi divergences."""
    return tuple(report.epsilon_by(name) for name in ACCOUNTS[:3])


def reason(report: AccountReport, name: str) -> str:
    result = report.privacy.account(name).bound
    assert math.isinf(result.epsilon)
    assert result.reason is not None
    return result.reason


def fewest(
    epsilon: float, delta: float, probability: float, scale: float, dimension: int, l1: float, l2: float, linf: float, **how: Any
) -> Calibration:
    shape = {"probability": probability, "scale": scale, "dimension": dimension, "l1": l1, "l2": l2, "linf": linf}
    return calibrate("binomial", epsilon=epsilon, delta=delta, **shape, **how)


def deltas(trials: int, probability: float, vector: tuple[int, ...], epsilons: np.ndarray) -> np.ndarray:
    """Return the hockey-stick divergence of shifted binomial noise, by enumeration."""
    first, second = np.ones(1), np.ones(1)
    for shift in vector:
        value = np.arange(min(shift, 0), trials + max(shift, 0) + 1)
        first = np.outer(first, binom.pmf(value, trials, probability)).ravel()
        second = np.outer(second, binom.pmf(value - shift, trials, probability)).ravel()
    return np.maximum(first - np.exp(epsilons)[:, None] * second, 0).sum(axis=1)


# Each shape has trials, probability, dimension, and sensitivities in steps of the scale.
SHAPES = [
    (8, 0.5, 3, (3.0, 3.0, 3.0)),
    (8, 0.5, 3, (2.0, 2.0, 2.0)),
    (8, 0.5, 2, (9.0, 9.0, 2.0)),
    (8, 0.3, 2, (4.0, 3.0, 2.0)),
    (6, 0.3, 4, (2.0, 1.8, 1.0)),
    (6, 0.5, 4, (3.0, 1.5, 1.0)),
    (6, 0.5, 4, (3.5, 9.0, 1.0)),
    (10, 0.2, 1, (4.0, 3.2, 5.0)),
]


@pytest.mark.parametrize(("trials", "probability", "dimension", "sensitivities"), SHAPES)
def test_no_vector_is_worse(trials: int, probability: float, dimension: int, sensitivities: tuple[float, float, float]) -> None:
    l1, l2, linf = sensitivities
    scale = 0.25
    worst = worst_shift(probability, scale, dimension, l1 * scale, l2 * scale, linf * scale)
    assert worst.shift is not None
    assert worst.coordinates is not None
    epsilons = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0])
    signs = product((1, -1), repeat=worst.coordinates)
    bound = np.max([deltas(trials, probability, tuple(worst.shift * sign for sign in pattern), epsilons) for pattern in signs], axis=0)
    reach = range(-int(linf), int(linf) + 1)
    for vector in product(reach, repeat=dimension):
        size = np.abs(vector)
        # The order of the coordinates does not change the divergence.
        if tuple(sorted(vector)) == vector and size.sum() <= l1 and (size**2).sum() <= l2**2:
            assert np.all(deltas(trials, probability, vector, epsilons) <= bound * (1 + 1e-9) + 1e-15)
    # The worst shift is itself within the sensitivities.
    assert worst.shift <= linf
    assert worst.shift * worst.coordinates <= l1
    assert worst.shift**2 * worst.coordinates <= l2**2
    assert worst.coordinates <= dimension


def test_shapes_that_do_not_tell_the_worst() -> None:
    unknown = "l1, l2 and linf do not tell which vectors are the worst"
    assert worst_shift(0.5, 1.0, 10, 6.0, math.sqrt(12), 2.0) == WorstShift(None, None, unknown)
    assert worst_shift(0.5, 1.0, 10, 30.0, 6.0, 6.0) == WorstShift(None, None, unknown)
    # For a biased coin and two coordinates that move in opposite directions, neither direction of a single shift is the worst.
    assert worst_shift(0.3, 1.0, 10, 2.0, 2.0, 2.0) == WorstShift(None, None, unknown)
    assert worst_shift(0.5, 0.4, 1, 1.0, 1.0, 1.0).reason == (
        "linf must be a whole multiple of scale for the exact account, got 2.5 times the scale"
    )


def test_sensitivities_that_are_nearly_whole() -> None:
    assert worst_shift(0.5, 0.1, 1, 0.3, 0.3, 0.3) == WorstShift(3, 1, None)
    assert worst_shift(0.5, 0.1, 7, 0.7, 0.1 * math.sqrt(7), 0.1) == WorstShift(1, 7, None)
    assert worst_shift(0.5, 1.0, 7, 0.0, 0.0, 0.0) == WorstShift(0, 0, None)


def test_trade_off_functions_of_shifts_add_up() -> None:
    # Group privacy rests on f_t(1 - f_s) = f_(s+t) for shifts of one fair binomial number, also between the thresholds.
    trials = 12
    level = np.linspace(0, 1, 401)

    def trade_off(shift: int, alpha: np.ndarray) -> np.ndarray:
        threshold = np.arange(trials + shift + 2)
        own, other = binom.sf(threshold - 1, trials, 0.5), binom.cdf(threshold - shift - 1, trials, 0.5)
        return np.interp(alpha, own[::-1], other[::-1])

    for first, second in ((1, 1), (2, 3), (4, 1)):
        np.testing.assert_allclose(trade_off(second, 1 - trade_off(first, level)), trade_off(first + second, level), atol=1e-12)


def test_one_coordinate() -> None:
    account = binomial_account(10**5, 0.3, 0.5, 1, 2.0, 2.0, 2.0, 1e-6)
    theorem, exact, by_divergences = epsilons(account)
    assert theorem == binomial_theorem_epsilon(10**5, 0.3, 0.5, 1, 2.0, 2.0, 2.0, 1e-6)
    assert exact == shifted_binomial_epsilon(10**5, 0.3, 4, 1e-6)
    assert exact < by_divergences < theorem
    assert account.epsilon == exact
    details = account.subject.details
    assert (details["worst_shift"], details["worst_coordinates"], account.privacy.trust_model) == (4, 1, "secure-sum")
    assert details["noise_squared_error"] == pytest.approx(0.25 * 10**5 * 0.21)


def test_many_coordinates_and_rounds_are_gaussian_noise() -> None:
    account = binomial_account(10**6, 0.5, 1.0, 50, 50.0, math.sqrt(50), 1.0, 1e-6, rounds=20)
    theorem, exact, by_divergences = epsilons(account)
    assert exact == pytest.approx(gaussian_epsilon(500 / math.sqrt(1000), 1e-6), rel=2e-5)
    assert exact < by_divergences < theorem
    single = binomial_theorem_epsilon(10**6, 0.5, 1.0, 50, 50.0, math.sqrt(50), 1.0, 1e-6 / 40)
    assert theorem == composed_pure_epsilon(single, 20, 5e-7)


def test_renyi_divergences_serve_every_shape() -> None:
    # A large number of trials is close to the Gaussian of the same variance, which has a closed form.
    account = binomial_account(10**6, 0.5, 1.0, 100, 30.0, 10.0, 4.0, 1e-6)
    assert math.isinf(account.epsilon_by("exact"))
    assert gaussian_epsilon(50.0, 1e-6) < account.epsilon_by("rdp") < 1.2 * gaussian_epsilon(50.0, 1e-6)


@pytest.mark.parametrize(
    ("shape", "vectors"), [((4.0, 3.0, 2.0), ((2, 2, 0), (2, 1, 1), (2, -2, 0))), ((6.0, 3.2, 3.0), ((3, 1, 0), (2, 2, 1)))]
)
def test_renyi_divergences_bound_every_vector(shape: tuple[float, float, float], vectors: tuple[tuple[int, ...], ...]) -> None:
    epsilon = binomial_account(40, 0.4, 1.0, 3, *shape, 0.02).epsilon_by("rdp")
    assert math.isfinite(epsilon)
    for vector in vectors:
        assert deltas(40, 0.4, vector, np.array([epsilon]))[0] <= 0.02


def adaptive_delta(trials: int, probability: float, shift: int, rounds: int, epsilon: float) -> float:
    """Return the exact delta if each round's direction is the worst one given the losses so far, by enumeration of all outputs."""
    masses = [binom.pmf(np.arange(trials + 1), trials, probability)]
    masses.append(masses[0][::-1])
    pairs = []
    for noise in masses:
        own, other = np.concatenate([noise, np.zeros(shift)]), np.concatenate([np.zeros(shift), noise])
        with np.errstate(divide="ignore"):
            pairs.append((own[own > 0], np.log(own[own > 0]) - np.log(other[own > 0])))

    def worst(loss: float, left: int) -> float:
        if left == 0 or loss == math.inf:
            return max(0.0, -math.expm1(epsilon - loss))
        return max(
            sum(mass * worst(loss + step, left - 1) for mass, step in zip(*map(np.ndarray.tolist, pair), strict=True)) for pair in pairs
        )

    return worst(0.0, rounds)


@pytest.mark.parametrize(
    ("trials", "probability", "rounds", "delta"), [(40, 0.3, 2, 0.03), (12, 0.2, 3, 0.3), (60, 0.85, 2, 1e-3), (9, 0.4, 3, 0.2)]
)
def test_rounds_that_choose_their_direction_have_their_exact_delta(trials: int, probability: float, rounds: int, delta: float) -> None:
    epsilon = binomial_account(trials, probability, 1.0, 1, 1.0, 1.0, 1.0, delta, rounds=rounds).epsilon_by("exact")
    assert adaptive_delta(trials, probability, 1, rounds, epsilon) <= delta
    # With so little noise, the dominating pair is a few percent worse than the worst choice.
    assert adaptive_delta(trials, probability, 1, rounds, 0.95 * epsilon) > delta


@pytest.mark.parametrize(("trials", "probability", "shift"), [(10**6, 0.1, 1), (10**6, 0.01, 10), (10**5, 0.3, 50)])
def test_uneven_noise_over_rounds_has_nearly_the_epsilon_of_one_direction(trials: int, probability: float, shift: int) -> None:
    losses = shifted_binomial_losses(trials, probability, shift)
    before = 0.0
    for rounds in (1, 2, 10, 100, 1000):
        size = float(shift)
        account = binomial_account(trials, probability, 1.0, 1, size, size, size, 1e-6, rounds=rounds)
        one_way = [composed_exact_epsilon(loss, None, rounds, 1e-6) for loss in (losses.forth, losses.back)]
        assert None not in one_way
        largest = max(float(epsilon) for epsilon in one_way if epsilon is not None)
        assert largest * (1 - 1e-6) <= account.epsilon_by("exact") <= largest * 1.005
        assert account.epsilon == account.epsilon_by("exact") < account.epsilon_by("rdp")
        assert account.epsilon > before
        before = account.epsilon
    # Skewness makes the comparison with Gaussian noise many times too large for a step of such noise.
    if shift == 1:
        assert binomial_account(trials, probability, 1.0, 1, 1.0, 1.0, 1.0, 1e-6, rounds=10).epsilon_by("near-gaussian") > 12 * 0.0357


def test_what_is_missing_says_why() -> None:
    few = binomial_account(200, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6)
    assert reason(few, "theorem-1").startswith("trials must be at least 1483 for Theorem 1 of cpSGD")
    assert math.isfinite(few.epsilon_by("exact"))
    tiny = binomial_account(10**6, 0.5, 1.0, 2, 2.0, 2.0, 1.0, 1e-13)
    assert reason(tiny, "exact") == "delta must be at least 1e-11 for the exact account of more than one shift"
    many = binomial_account(10**6, 0.5, 1.0, 10**5, 1e5, 1e3, 1.0, 1e-6)
    assert reason(many, "exact") == "the worst case of 100000 shifts is too expensive to compose"
    huge = binomial_account(10**11, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6)
    assert reason(huge, "exact") == "trials must be at most 10000000000 for the exact account"
    assert reason(huge, "rdp") == "too many trials and shifts for the account by Rényi divergences"
    edge = r"trials must be at least 1483 .*; the exact epsilon is infinite: the ends of the noise's support"
    with pytest.raises(InfeasibleError, match=edge):
        binomial_account(10, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6)


def test_no_difference_no_loss() -> None:
    account = binomial_account(10**4, 0.5, 1.0, 3, 0.0, 0.0, 0.0, 1e-6)
    assert (account.epsilon, *epsilons(account)) == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("method", ["theorem-1", "exact", "rdp", "near-gaussian", None])
def test_fewest_trials(method: str | None) -> None:
    result = fewest(0.5, 1e-6, 0.5, 1.0, 4, 4.0, 2.0, 1.0, method=method)

    def reached(trials: int) -> float:
        return binomial_account(trials, 0.5, 1.0, 4, 4.0, 2.0, 1.0, 1e-6).epsilon_by(method)

    assert reached(result["trials"]) <= 0.5 < reached(result["trials"] - 1)
    assert result.report.epsilon_by(method) == reached(result["trials"])


@pytest.mark.parametrize("delta", [5e-324, 1e-320, 1e-300, 0.9995, 1 - 1e-15])
def test_every_delta_is_accounted_for(delta: float) -> None:
    result = binomial_account(10**6, 0.5, 1.0, 2, 3.0, 2.0, 1.0, delta)
    accounts = result.document()["accounts"]
    assert list(accounts) == list(ACCOUNTS)
    assert all(account["epsilon"] is None or math.isfinite(account["epsilon"]) for account in accounts.values())
    assert math.isfinite(result.epsilon_by("theorem-1"))


def test_rounds_are_as_many_coordinates_by_enumeration() -> None:
    epsilon = binomial_account(40, 0.5, 0.5, 1, 0.5, 0.5, 0.5, 1e-4, rounds=3).epsilon_by("exact")
    assert deltas(40, 0.5, (1, 1, 1), np.array([epsilon]))[0] == pytest.approx(1e-4, rel=1e-3)


@pytest.mark.parametrize("number", [1, 10**3, 10**8])
def test_whole_steps_forgive_rounding_alone(number: int) -> None:
    assert whole_steps(math.nextafter(number, 0)) == whole_steps(math.nextafter(number, math.inf)) == number


def test_the_euclidean_sensitivity_is_in_steps() -> None:
    assert BinomialNoise(1000, 0.5, 0.25, 4, 6.0, 3.0, 3.0).l2_steps == pytest.approx(12.0, rel=1e-12)


def test_rounds_of_a_large_epsilon_add_up() -> None:
    arguments = (10**12, 0.5, 1.0, 1, 1e11, 1e11, 1e11)
    three, single = binomial_account(*arguments, 1e-6, 3), binomial_account(*arguments, 1e-6 / 6)
    assert three.epsilon_by("theorem-1") == 3 * single.epsilon_by("theorem-1")


def test_no_number_of_trials() -> None:
    with pytest.raises(InfeasibleError, match="epsilon must be larger: no number of trials up to 1000000000000000 gives 1e-05"):
        fewest(1e-5, 1e-6, 0.5, 1.0, 1, 1e4, 1e4, 1e4, method="theorem-1")
    with pytest.raises(InfeasibleError, match="epsilon must be larger: no number of trials up to 1000000000000000 gives 1e-05"):
        fewest(1e-5, 1e-9, 0.3, 1.0, 1, 1e4, 1e4, 1e4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: binomial_account(10, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6, 0), "rounds must be a whole number from 1"),
        (lambda: binomial_account(10, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6, 1, "both"), "adjacency must be one of replace-one"),
        (lambda: binomial_account(10, 0.5, 1.0, 0, 1.0, 1.0, 1.0, 1e-6), "dimension must be a whole number from 1"),
        (lambda: binomial_account(10, 0.5, 1.0, 1, -1.0, 1.0, 1.0, 1e-6), "l1_sensitivity must be a number from 0"),
        (lambda: binomial_account(10, 2.0, 1.0, 1, 1.0, 1.0, 1.0, 1e-6), "probability must be a number from"),
        (lambda: fewest(0.0, 1e-6, 0.5, 1.0, 1, 1.0, 1.0, 1.0), "epsilon must be a number from 1e-05 to 10000, got 0.0"),
        (lambda: fewest(1.0, 1e-6, 0.5, 1.0, 1, 1.0, 1.0, 1.0, method="best"), "method must be one of theorem-1, exact, rdp"),
        (lambda: fewest(1.0, 2.0, 0.5, 1.0, 1, 1.0, 1.0, 1.0), "delta must be a number from 0 to 1, got 2.0"),
        (lambda: fewest(1.0, 0.0, 0.5, 1.0, 1, 1.0, 1.0, 1.0), "delta must be a number above 0 and below 1"),
    ],
)
def test_bad_arguments(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


def test_by_gaussian_noise_for_every_shape_of_the_sensitivities() -> None:
    account = binomial_account(10**6, 0.5, 0.5, 100, 40.0, 10.0, 3.0, 1e-6, 20)
    # The sensitivity is 20 in steps of the scale.
    near = account.epsilon_by("near-gaussian")
    assert near == binomial_near_gaussian_epsilon(10**6, 0.5, 20.0, 100, 1e-6, 20)
    assert math.isinf(account.epsilon_by("exact"))
    assert account.epsilon == near < account.epsilon_by("rdp") < account.epsilon_by("theorem-1")
    trials = fewest(1.0, 1e-6, 0.5, 0.5, 100, 40.0, 10.0, 3.0, method="near-gaussian")["trials"]
    enough, less = (binomial_account(item, 0.5, 0.5, 100, 40.0, 10.0, 3.0, 1e-6) for item in (trials, trials - 1))
    assert enough.epsilon_by("near-gaussian") <= 1.0 < less.epsilon_by("near-gaussian")


def test_where_exact_accounts_contradict_the_theorem_it_is_doubtful_and_never_the_guarantee() -> None:
    arguments = (10**4, 0.5, 1.0, 1, 1000.0, 1000.0, 1000.0, 1e-6)
    account = binomial_account(*arguments)
    theorem = account.privacy.account("theorem-1")
    # The account states the theorem as published. Exact losses contradict it: its own epsilon has a delta of 0.76.
    assert theorem.bound.epsilon == binomial_theorem_epsilon(*arguments) == pytest.approx(186.1, abs=0.05)
    assert theorem.bound.details["doubtful"]
    assert not theorem.proven
    assert shifted_binomial_delta(10**4, 0.5, 1000, theorem.bound.epsilon) > 0.7
    # The account must not state this epsilon as the guarantee, as no proof covers it.
    assert account.epsilon >= 297.3
    assert account.epsilon == account.epsilon_by("exact") == shifted_binomial_epsilon(10**4, 0.5, 1000, 1e-6)
    assert account.privacy.guarantee.epsilon == account.epsilon
    assert account.privacy.best is not None
    assert account.privacy.best.name == "exact"
    certain = binomial_account(10**4, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6).privacy.account("theorem-1")
    assert not certain.bound.details["doubtful"]
    assert not certain.proven
    needed = fewest(200.0, 1e-6, 0.5, 1.0, 1, 1000.0, 1000.0, 1000.0)
    assert needed.report.epsilon_by("theorem-1") < needed.epsilon <= 200.0
    assert fewest(200.0, 1e-6, 0.5, 1.0, 1, 1000.0, 1000.0, 1000.0, method="theorem-1")["trials"] < needed["trials"]


# Tests of sampled rounds


def test_a_sampled_round_by_enumeration() -> None:
    trials, shift, rate, delta = 30, 2, 0.2, 1e-3
    noise = np.array([math.comb(trials, k) for k in range(trials + 1)]) / 2**trials
    without, with_it = np.append(noise, np.zeros(shift)), np.append(np.zeros(shift), noise)
    mixed = (1 - rate) * without + rate * with_it
    account = binomial_account(trials, 0.5, 1.0, 1, 2.0, 2.0, 2.0, delta, sampling=PoissonSampling(rate))
    assert math.isinf(account.epsilon_by("theorem-1"))
    exact = account.epsilon_by("exact")
    assert (account.privacy.adjacency, str(account.privacy.sampling)) == ("add-or-remove-one", "Poisson sampling with probability 0.2")

    def largest(epsilon: float) -> float:
        return max(float(np.maximum(own - math.exp(epsilon) * other, 0).sum()) for own, other in [(mixed, without), (without, mixed)])

    # The account is exact, so the claim holds, and a slightly smaller epsilon would not.
    assert largest(exact) <= delta < largest(exact * (1 - 1e-6))
    assert account.epsilon == exact < account.epsilon_by("rdp")


def test_two_sampled_rounds_by_enumeration() -> None:
    trials, shift, rate, delta = 30, 2, 0.2, 1e-3
    noise = binom.pmf(np.arange(trials + 1), trials, 0.5)
    without, with_it = np.append(noise, np.zeros(shift)), np.append(np.zeros(shift), noise)
    mixed = (1 - rate) * without + rate * with_it
    account = binomial_account(trials, 0.5, 1.0, 1, 2.0, 2.0, 2.0, delta, 2, sampling=PoissonSampling(rate))
    for name in ("exact", "rdp"):
        epsilon = account.epsilon_by(name)
        for own, other in ((mixed, without), (without, mixed)):
            assert np.maximum(np.outer(own, own) - math.exp(epsilon) * np.outer(other, other), 0).sum() <= delta


def test_sampled_rounds_by_the_theorem() -> None:
    arguments = (10**6, 0.5, 1.0, 1, 1.0, 1.0, 1.0)
    sampling = FixedSizeSampling(1000, 10)
    account = binomial_account(*arguments, 1e-6, 100, sampling=sampling)
    single = binomial_account(*arguments, 1e-6 / 200 * 100).epsilon_by("theorem-1")
    composed = composed_pure_epsilon(math.log1p(0.01 * math.expm1(single)), 100, 5e-7)
    assert account.epsilon_by("theorem-1") == pytest.approx(composed, rel=1e-9)
    # Only rounds in which the client takes part count for these accounts; there are more than 8 with probability 2e-7.
    own = binomial_account(*arguments, 5e-7, likely_participations(0.01, 100, 5e-7))
    for name in ("exact", "rdp"):
        assert account.epsilon_by(name) == own.epsilon_by(name)
    assert account.epsilon == account.epsilon_by("near-gaussian") < account.epsilon_by("theorem-1")
    little = (30, 0.5, 1.0, 1, 1.0, 1.0, 1.0)
    own = binomial_account(*little, 5e-7, likely_participations(0.01, 100, 5e-7))
    assert binomial_account(*little, 1e-6, 100, sampling=sampling).epsilon == own.epsilon_by("exact")
    needed, everyone = (fewest(0.1, 1e-6, 0.5, 1.0, 1, 1.0, 1.0, 1.0, sampling=how)["trials"] for how in (sampling, None))
    assert needed < everyone / 100
    with pytest.raises(ValueError, match="sampling must be for replace-one adjacency, got Poisson sampling"):
        binomial_account(*arguments, 1e-6, adjacency="replace-one", sampling=PoissonSampling(0.1))


@pytest.mark.parametrize(("share", "rounds"), [(0.1, 1), (0.1, 4), (0.5, 4)])
def test_sampled_noise_is_nearly_sampled_gaussian_noise(share: float, rounds: int) -> None:
    # The exact losses are composed in either direction between an absent vector and a vector, shifted by 20, that is present with
    # probability q.
    trials, shift, delta = 6000, 20, 1e-5
    masses = shifted_binomial_pmf(trials)
    without = np.concatenate([masses, np.zeros(shift)])
    sampled = (1 - share) * without + share * np.concatenate([np.zeros(shift), masses])
    exact = []
    for first, other in ((sampled, without), (without, sampled)):
        both = (first > 0) & (other > 0)
        logs = np.log(first[both])
        loss = ExactPrivacyLoss(logs, logs - np.log(other[both]), float(first[~both].sum()), float(other[~both].sum()))
        composed = composed_exact_epsilon(loss, None, rounds, delta)
        assert composed is not None
        exact.append(composed)
    noise = BinomialNoise(trials, 0.5, 1.0, 1, float(shift), float(shift), float(shift), "add-or-remove-one")
    result = noise.privacy().account("near-gaussian").bound(delta, rounds, PoissonSampling(share)).epsilon
    # A variance of 1500 is near the smallest that this account supports.
    assert max(exact) <= result <= 1.12 * max(exact)


def shifted_binomial_pmf(trials: int) -> np.ndarray:
    logs = log_binomial(trials, 0.5).astype(float)
    return np.exp(logs[logs > -500])


@pytest.mark.parametrize(
    ("epsilon", "delta", "exact", "of_many"),
    [
        (0.1, 1e-5, 0.0594, 0.0187),
        (0.5, 1e-5, 0.3476, 0.1111),
        (1, 1e-5, 0.7619, 0.2373),
        (1, 1e-9, 0.8698, 0.2834),
        (2, 1e-5, 1.9496, 0.5101),
    ],
)
def test_eight_logarithms_of_trials_suffice_for_one_number(epsilon: float, delta: float, exact: float, of_many: float) -> None:
    # The numbers are those of docs/explanations/cpsgd.md for cpSGD's corollary, beside the constant 64 of Dwork et al. 2006.
    for constant, expected in ((8, exact), (64, of_many)):
        trials = math.ceil(constant * math.log(2 / delta) / epsilon**2)
        result = binomial_account(trials, 0.5, 1, 1, 1, 1, 1, delta).epsilon_by("exact")
        assert result == pytest.approx(expected, abs=6e-5)
        assert result <= epsilon


@pytest.mark.parametrize(
    ("trials", "probability", "shift", "delta"), [(10**6, 0.5, 1, 1e-6), (10**5, 0.1, 40, 1e-9), (10**4, 0.5, 4000, 1e-6)]
)
def test_a_distribution_as_wide_as_delta_needs_gives_the_same_epsilon(trials: int, probability: float, shift: int, delta: float) -> None:
    whole, narrow = (shifted_binomial_losses(trials, probability, shift, rare) for rare in (0.0, 1e-9 * delta))
    # A shift of many deviations needs the whole distribution.
    assert (len(narrow.forth.losses) < len(whole.forth.losses)) == (shift < 1000)
    for first, other in ((narrow.forth, whole.forth), (narrow.back, whole.back)):
        assert first.epsilon(delta) == pytest.approx(other.epsilon(delta), rel=1e-12)


@pytest.mark.parametrize("probability", [0.3, 0.7])
@pytest.mark.parametrize("delta", [1e-3, 0.1])
def test_an_uneven_coin_is_exact_for_coordinates_that_move_either_way(probability: float, delta: float) -> None:
    trials = 60
    exact = binomial_account(trials, probability, 1.0, 4, 2.0, 1.8, 1.0, delta).epsilon_by("exact")
    signs = list(product((1, -1), repeat=2))
    assert max(deltas(trials, probability, pattern, np.array([exact]))[0] for pattern in signs) <= delta
    assert max(deltas(trials, probability, pattern, np.array([exact * (1 - 1e-4)]))[0] for pattern in signs) > delta


def test_shapes_without_a_worst_vector_say_so() -> None:
    account = binomial_account(10**6, 0.5, 0.4, 1, 1.0, 1.0, 1.0, 1e-6)
    assert reason(account, "exact") == "linf must be a whole multiple of scale for the exact account, got 2.5 times the scale"


def expected_by_divergences(
    noise: BinomialNoise, delta: float, rounds: int, shifts: list[int], coordinates: int
) -> tuple[np.ndarray, float]:
    """Return the documented bound on the divergences, and the delta of its conversion.

    Divergences and failures of all coordinates and rounds add up.
    """
    steps = np.array(shifts, dtype=float)[:, None]
    neglected = 1e-9 * delta / (coordinates * rounds)
    renyi = [shifted_binomial_renyi(noise.trials, noise.probability, shift, ORDERS, neglected) for shift in shifts]
    divergences = np.array([each.divergences for each in renyi])
    l1, l2 = noise.l1 / noise.scale, noise.l2 / noise.scale
    bounds = (l2**2 * divergences / steps**2, l1 * divergences / steps, noise.dimension * divergences)
    vector = np.minimum.reduce([bound.max(axis=0) for bound in bounds])
    return vector, delta - rounds * coordinates * max(each.failure for each in renyi)


@pytest.mark.parametrize("rounds", [1, 5])
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_divergences_and_failures_of_all_coordinates_and_rounds_add_up(monkeypatch: pytest.MonkeyPatch, scale: float, rounds: int) -> None:
    curves = []

    def recorded(orders: np.ndarray, divergences: np.ndarray) -> RenyiCurve:
        curves.append(RenyiCurve(orders, divergences))
        return curves[-1]

    monkeypatch.setattr(account_module, "RenyiCurve", recorded)
    # Either the worst vector moves two coordinates by a step, or it is not determined, and every shift counts.
    for probability, dimension, (l1, l2, linf), shifts, coordinates in (
        (0.5, 2, (2, math.sqrt(2), 1), [1], 2),
        (0.4, 6, (6, 4, 3), [1, 2, 3], 6),
        (0.1, 100, (12, 6, 5), [1, 2, 3, 4, 5], 12),
    ):
        noise = BinomialNoise(2000, probability, scale, dimension, l1 * scale, l2 * scale, linf * scale)
        for delta in (1e-6, 1e-12):
            result = noise.privacy().account("rdp").bound(delta, rounds, None).epsilon
            vector, spared = expected_by_divergences(noise, delta, rounds, shifts, coordinates)
            # At high orders, smaller shifts may reveal more for their size.
            np.testing.assert_allclose(curves[-1].divergences, vector, rtol=1e-9)
            assert result == pytest.approx(RenyiCurve(np.array(ORDERS), vector).composed(rounds).epsilon(spared).epsilon, rel=1e-12)
