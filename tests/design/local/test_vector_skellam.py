"""Skellam noise: its bounds against exact sums, and the mechanism.

Each test has a chance of a false alarm below 1e-6 (5 sigma).
"""

import functools
import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from quietbits.design.contracts.gaussian import gaussian_privacy
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.vector_skellam import SkellamMechanism, skellam_mechanism, skellam_privacy
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from quietbits.solvers.divergences.skellam_divergence import skellam_renyi_divergences, skellam_tail, skellam_variance

BALL = NormBall(dimension=20, norm=2.0, clip_norm=3.0)


@functools.cache
def skellam_probabilities(variance: float) -> list[mpmath.mpf]:
    """Return the probabilities of 0, 1, 2, ..., up to a cutoff."""
    with mpmath.workdps(30):
        return [mpmath.besseli(k, variance) * mpmath.exp(-variance) for k in range(int(12 * math.sqrt(variance)) + 90)]


def exact_divergence(variance: float, shift: int, order: int) -> float:
    """Return the Rényi divergence of one shifted Skellam number, summed in 30 digits."""
    # The summand has its centre near -(order - 1) * shift, and falls beyond it as fast as the probabilities.
    reach = int(order * shift + 12 * math.sqrt(variance) + 40)
    scaled = skellam_probabilities(variance)
    with mpmath.workdps(30):
        total = sum(scaled[abs(k)] ** order * scaled[abs(k - shift)] ** (1 - order) for k in range(-reach, reach + 1))
        return float(mpmath.log(total) / (order - 1))


@pytest.mark.parametrize(("variance", "slack"), [(0.3, 20.0), (4.0, 3.5), (20.0, 1.5), (100.0, 1.05), (400.0, 1.015)])
def test_the_divergence_bound_is_above_the_exact_divergence_and_close_for_large_variances(variance: float, slack: float) -> None:
    for shift in (1, 2, 5):
        for order in (2, 3, 8):
            exact = exact_divergence(variance, shift, order)
            bound = float(skellam_renyi_divergences(variance, shift, shift, [order])[0])
            assert exact <= bound <= slack * exact


def test_the_divergence_bound_holds_for_vectors() -> None:
    shifts = np.array([3, 0, -1, 1, 2])
    l1, l2 = float(np.abs(shifts).sum()), float(np.linalg.norm(shifts))
    for order in (2, 4):
        exact = sum(exact_divergence(50.0, abs(shift), order) for shift in shifts.tolist() if shift)
        assert exact <= float(skellam_renyi_divergences(50.0, l1, l2, [order])[0]) <= 1.05 * exact


def test_the_divergence_bound_is_the_smaller_of_the_published_two() -> None:
    # By hand, the bound is a l2**2 / (2 mu) + min{ ((2 a - 1) l2**2 + 6 l1) / (4 mu**2), 3 l1 / (2 mu) }.
    assert skellam_renyi_divergences(1.0, 1.0, 1.0, [8.0])[0] == pytest.approx(4 + min(21 / 4, 3 / 2), rel=1e-14)
    assert skellam_renyi_divergences(10.0, 3.0, 2.0, [5.0])[0] == pytest.approx(1 + min(54 / 400, 9 / 20), rel=1e-14)


def test_other_orders_get_the_bound_of_the_next_whole_one() -> None:
    divergences = skellam_renyi_divergences(10.0, 2.0, 2.0, [1.01, 2.0, 6.5, 7.0, math.inf])
    assert divergences[0] == divergences[1]
    assert divergences[2] == divergences[3]
    assert math.isinf(divergences[4])
    np.testing.assert_array_equal(skellam_renyi_divergences(10.0, 0.0, 0.0, [2.0, math.inf]), [0.0, 0.0])


@given(epsilon=st.floats(0.01, 50), log_delta=st.floats(-30, -0.5), l2=st.floats(1.0, 1e5), ratio=st.floats(1e-3, 1.0))
def test_the_variance_proves_epsilon_and_a_little_less_would_not(epsilon: float, log_delta: float, l2: float, ratio: float) -> None:
    delta, l1 = math.exp(log_delta), l2 ** (1 + ratio)
    variance = skellam_variance(epsilon, delta, l1, l2)

    def proved(mu: float) -> float:
        return RenyiCurve(np.array(DEFAULT_ORDERS), skellam_renyi_divergences(mu, l1, l2, DEFAULT_ORDERS)).epsilon(delta).epsilon

    assert proved(variance) <= epsilon
    assert proved(variance * (1 - 1e-9)) > epsilon


def test_the_tail_bound_is_above_the_tail() -> None:
    for variance in (0.5, 10.0, 1000.0):
        for deviations in (0.0, 1.0, 3.0, 6.0):
            threshold = math.ceil(deviations * math.sqrt(variance))
            exact = float(stats.skellam.sf(threshold - 1, variance / 2, variance / 2))
            assert exact <= skellam_tail(variance, threshold) <= max(1.0, 60 * exact)


@pytest.mark.parametrize("bits", [9, 12, 16, 24])
def test_the_mechanism_keeps_its_budget_with_the_finest_granularity(bits: int) -> None:
    mechanism = skellam_mechanism(1.5, 1e-6, BALL, bits=bits, deviations=5.0)
    assert 1.5 * (1 - 1e-9) <= mechanism.guarantee.epsilon <= 1.5
    divergences = skellam_renyi_divergences(
        mechanism.noise_variance, mechanism.l1_sensitivity, mechanism.l2_sensitivity, DEFAULT_ORDERS[:-1]
    )
    assert RenyiCurve(DEFAULT_ORDERS[:-1], divergences).epsilon(1e-6).epsilon == mechanism.guarantee.epsilon
    room = 2 ** (bits - 1) - math.floor(mechanism.norm_bound) - 5.0 * math.sqrt(mechanism.noise_variance)
    assert room >= 0
    # A slightly finer grid would not fit, or need more noise than the sampler supports.
    finer = SkellamMechanism(BALL, bits, mechanism.granularity * (1 - 1e-6), mechanism.noise_variance, 1e-6)
    noise = skellam_variance(1.5, 1e-6, finer.l1_sensitivity, finer.l2_sensitivity)
    if bits < 20:
        assert math.floor(finer.norm_bound) + 5.0 * math.sqrt(noise) > 2 ** (bits - 1)
    else:
        assert mechanism.noise_variance <= 2e10 < noise


def test_more_bits_approach_what_the_same_noise_costs_unrounded() -> None:
    variances = [skellam_mechanism(1.0, 1e-5, BALL, bits).variance_bound for bits in (10, 12, 14, 16, 20)]
    assert all(more <= fewer for fewer, more in itertools.pairwise(variances))
    # Gaussian noise of sensitivity 2 * clip_norm has r(a) = a / 2 sigma**2 at the same orders.
    orders = np.ceil(DEFAULT_ORDERS[:-1])
    budget = (
        1.0
        - np.log1p(-1 / np.array(DEFAULT_ORDERS[:-1]))
        + np.log(1e-5 * np.array(DEFAULT_ORDERS[:-1])) / (np.array(DEFAULT_ORDERS[:-1]) - 1)
    )
    gaussian = 20 * (2 * BALL.clip_norm) ** 2 / 2 * float((orders / np.maximum(budget, 1e-12)).min())
    assert gaussian < variances[-1] < 1.001 * gaussian


@pytest.mark.parametrize(
    "mechanism",
    # The second mechanism has so little noise that half of its variance is rounding.
    [skellam_mechanism(4.0, 1e-3, BALL, bits=9), SkellamMechanism(BALL, 9, granularity=0.7, noise_variance=0.2, delta=1e-3)],
    ids=["calibrated", "coarse"],
)
def test_messages_are_unbiased_and_vary_as_stated(mechanism: SkellamMechanism) -> None:
    clients = 40_000
    vector = np.linspace(-0.4, 0.9, 20)
    messages = mechanism.encode(np.tile(vector, (clients, 1)), np.random.default_rng(1))
    assert messages.dtype == np.int16
    assert -256 <= messages.min() <= messages.max() <= 255
    errors = mechanism.granularity * messages - vector
    deviations = errors.mean(axis=0) / errors.std(axis=0) * math.sqrt(clients)
    assert np.abs(deviations).max() < 5.6
    squares = np.sum(errors**2, axis=1)
    variance = float(mechanism.variance(vector[None, :])[0])
    assert abs(squares.mean() - variance) < 5 * squares.std() / math.sqrt(clients)
    assert variance <= mechanism.variance_bound


def test_noise_has_the_skellam_distribution() -> None:
    mechanism = SkellamMechanism(NormBall(dimension=1, norm=2.0), bits=16, granularity=1.0, noise_variance=6.0, delta=1e-3)
    drawn = mechanism.encode(np.zeros((200_000, 1)), np.random.default_rng(2)).ravel()
    support = np.arange(-9, 10)
    expected = stats.skellam.pmf(support, 3.0, 3.0) * len(drawn)
    counted = np.array([np.count_nonzero(drawn == value) for value in support])
    # Chi-square with 19 degrees of freedom (points outside are not counted): 5 sigma is 80.
    assert np.sum((counted - expected) ** 2 / expected) < 80


def test_wrapping_brings_a_coordinate_back_at_the_other_end_and_its_bounds_hold() -> None:
    ball = NormBall(dimension=1, norm=2.0, clip_norm=20.0)
    mechanism = SkellamMechanism(ball, bits=6, granularity=1.0, noise_variance=64.0, delta=1e-3)
    clients = 400_000
    messages = mechanism.encode(np.full((clients, 1), 20.0), np.random.default_rng(3)).ravel().astype(int)
    assert messages.dtype.kind == "i"
    assert -32 <= messages.min() <= messages.max() <= 31
    # The probability that 20 + S is in [-32, 31] is exact, with S Skellam.
    support = np.arange(-400, 401)
    pmf = stats.skellam.pmf(support, 32.0, 32.0)
    sums = 20 + support
    folded = (sums + 32) % 64 - 32
    wrapped, bias = float(pmf[folded != sums].sum()), abs(float(pmf @ (folded - sums)))
    assert 0 < wrapped <= mechanism.wrap_probability
    assert 0 < bias <= mechanism.bias_bound
    variance = float(pmf @ (folded - pmf @ folded) ** 2)
    assert abs(messages.mean() - 20 + bias) < 5 * math.sqrt(variance / clients)
    # The bias exceeds the sampling error by far, so the assertion above would fail without the bias term.
    assert bias > 10 * math.sqrt(variance / clients)


def test_wrapping_is_negligible_by_default() -> None:
    for epsilon in (0.5, 4.0):
        mechanism = skellam_mechanism(epsilon, 1e-5, NormBall(dimension=128, norm=2.0))
        assert mechanism.wrap_probability < 1e-5
        # The squared bias is below the variance of the mean of a hundred million clients by a factor of a thousand.
        assert mechanism.bias_bound**2 < 1e-3 * mechanism.variance_bound / 1e8
    certain = SkellamMechanism(BALL, bits=4, granularity=3.0, noise_variance=2e10, delta=1e-5)
    assert certain.wrap_probability == 1.0
    assert certain.bias_bound == pytest.approx(math.sqrt(20) * 3.0 * (8 + math.floor(certain.norm_bound)))


def test_rounded_vectors_keep_the_sensitivities() -> None:
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(3000, 20)) * rng.exponential(size=(3000, 20)) ** 3
    mechanism = SkellamMechanism(BALL, bits=16, granularity=0.41, noise_variance=2e-6, delta=1e-5)
    # With so little noise, all but about two in a million coordinates of a message equal the rounded vector.
    rounded = mechanism.encode(vectors, rng).astype(float)
    differences = rounded[:1500] - rounded[1500:]
    assert np.quantile(np.linalg.norm(rounded, axis=1), 0.99) <= mechanism.norm_bound
    assert np.quantile(np.linalg.norm(differences, axis=1), 0.99) <= mechanism.l2_sensitivity
    assert np.quantile(np.abs(differences).sum(axis=1), 0.99) <= mechanism.l1_sensitivity
    assert mechanism.l1_sensitivity == pytest.approx(min(math.sqrt(20) * mechanism.l2_sensitivity, mechanism.l2_sensitivity**2))


@pytest.mark.parametrize(("bits", "kind"), [(8, np.int8), (9, np.int16), (17, np.int32)])
def test_messages_take_the_smallest_type(bits: int, kind: type[np.signedinteger]) -> None:
    mechanism = skellam_mechanism(8.0, 1e-3, BALL, bits=bits)
    assert mechanism.encode(np.zeros((2, 20)), np.random.default_rng(0)).dtype == kind


def test_too_few_bits_are_refused_and_the_number_named_will_do() -> None:
    with pytest.raises(InfeasibleError, match=r"bits must be at least 8 .* 20 dimensions and room for 6 standard deviations, got 4"):
        skellam_mechanism(1.0, 1e-5, BALL, bits=4)
    assert skellam_mechanism(1.0, 1e-5, BALL, bits=8).bits == 8
    with pytest.raises(InfeasibleError, match="bits must be at least 8"):
        skellam_mechanism(1.0, 1e-5, BALL, bits=7)


def test_more_noise_than_is_sampled_is_refused() -> None:
    with pytest.raises(InfeasibleError, match=r"epsilon must be larger than 0.001, or delta than 1e-12.* in 1000000 dimensions: .* 2e\+10"):
        skellam_mechanism(1e-3, 1e-12, NormBall(dimension=10**6, norm=2.0), bits=32)


def test_a_budget_beyond_all_orders_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="epsilon must be larger, or delta, for Skellam noise: no Rényi order up to 65536"):
        skellam_variance(1e-3, 1e-300, 1.0, 1.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ball": NormBall(3, 1.0)}, "ball must be of norm 2 for Skellam noise, got norm 1"),
        ({"bits": 1}, "bits must be a whole number from 2 to 32, got 1"),
        ({"bits": 33}, "bits must be a whole number from 2 to 32, got 33"),
        ({"bits": 3}, "bits must be at least 4 to hold coordinates up to 7, got 3"),
        ({"granularity": 0.0}, "granularity must be a number from"),
        ({"granularity": 1e-9}, "granularity must be a number from"),
        ({"noise_variance": 1e-6}, "noise_variance must be a number from 2e-06 to 2e\\+10, got 1e-06"),
        ({"noise_variance": 3e10}, "noise_variance must be a number from 2e-06 to 2e\\+10, got 30000000000.0"),
        ({"noise_variance": math.nan}, "noise_variance must be a number from"),
        ({"delta": 0.0}, "delta must be a number above 0 and below 1"),
    ],
)
def test_bad_fields_are_refused(changes: dict[str, object], message: str) -> None:
    fields = {"ball": BALL, "bits": 10, "granularity": 0.5, "noise_variance": 100.0, "delta": 1e-5}
    with pytest.raises(ValueError, match=message):
        SkellamMechanism(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ball": NormBall(3, math.inf)}, "ball must be of norm 2"),
        ({"bits": 2.5}, "bits must be a whole number"),
        ({"deviations": 0.0}, "deviations must be a number from 1 to 40"),
        ({"epsilon": 0.0}, "epsilon must be a number from 0.001 to 1000"),
        ({"delta": 1.0}, "delta must be a number above 0 and below 1"),
    ],
)
def test_bad_requests_are_refused(changes: dict[str, object], message: str) -> None:
    arguments = {"epsilon": 1.0, "delta": 1e-5, "ball": BALL}
    with pytest.raises(ValueError, match=message):
        skellam_mechanism(**{**arguments, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 1.0, 1.0, [2.0]), "variance must be"),
        ((1.0, -1.0, 1.0, [2.0]), "l1_sensitivity must be"),
        ((1.0, 1.0, math.nan, [2.0]), "l2_sensitivity must be"),
        ((1.0, 1.0, 1.0, [1.0]), "orders must be above 1"),
    ],
)
def test_bad_divergence_arguments_are_refused(arguments: tuple[float, float, float, list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        skellam_renyi_divergences(*arguments)


def test_bad_messages_and_thresholds_are_refused() -> None:
    mechanism = skellam_mechanism(1.0, 1e-5, BALL)
    for messages, message in (
        (np.zeros((2, 19), dtype=np.int16), r"messages must have the shape \(clients, 20\), got \(2, 19\)"),
        (np.full((1, 20), 32768), "messages must be whole numbers from -32768 to 32767, got 32768 to 32768"),
        (np.full((1, 20), math.nan), "messages must be whole numbers from -32768 to 32767, got nan to nan"),
    ):
        with pytest.raises(ValueError, match=message):
            mechanism.aggregate(messages)
    with pytest.raises(ValueError, match="threshold must be a number"):
        skellam_tail(1.0, -1.0)
    with pytest.raises(ValueError, match="l2_sensitivity must be a number"):
        skellam_variance(1.0, 1e-5, 1.0, 0.0)


def test_skellam_noise_is_a_little_worse_than_gaussian_noise() -> None:
    skellam = skellam_privacy(1e6, 100.0, 50.0).report(1e-6, rounds=4)
    gaussian = gaussian_privacy(1e3 / 50).report(1e-6, rounds=4)
    assert gaussian.epsilon_by("rdp") < skellam.epsilon < 1.01 * gaussian.epsilon_by("rdp")
    assert [account.name for account in skellam.accounts] == ["rdp"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1e4, 1.0, 1.0, "none"), "trust_model must be one of"),
        ((1e4, 1.0, 2.0), "l1_sensitivity must be at least l2_sensitivity, 2.0, as L1 norms are, got 1.0"),
    ],
)
def test_bad_arguments_of_the_account_are_refused(arguments: tuple[float, float, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        skellam_privacy(*arguments)
