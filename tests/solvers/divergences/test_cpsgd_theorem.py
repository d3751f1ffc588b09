"""Tests of binomial noise.

Points under test: Theorem 1 of cpSGD as printed, and the exact privacy loss against enumeration and fifty digits.
"""

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.exact_privacy_loss import ExactPrivacyLoss, composed_exact_epsilon
from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon
from quietbits.solvers.divergences import cpsgd_theorem
from quietbits.solvers.divergences.binomial_divergence import (
    binomial_window,
    shifted_binomial_delta,
    shifted_binomial_epsilon,
    shifted_binomial_losses,
    shifted_binomial_renyi,
)
from quietbits.solvers.divergences.cpsgd_theorem import binomial_squared_error, binomial_theorem_epsilon, is_theorem_doubtful


def masses(trials: int, probability: Fraction) -> list[Fraction]:
    """Return the exact distribution of a binomial number."""
    return [Fraction(math.comb(trials, x)) * probability**x * (1 - probability) ** (trials - x) for x in range(trials + 1)]


def exact_delta(trials: int, probability: Fraction, shifts: tuple[int, ...], epsilon: float) -> float:
    """Return the hockey-stick divergence of shifted coordinates by enumeration of all outputs."""
    own = masses(trials, probability)
    factor, total = mpmath.exp(epsilon), mpmath.mpf(0)
    with mpmath.workdps(50):
        for output in product(*(range(-abs(shift), trials + abs(shift) + 1) for shift in shifts)):
            first = math.prod((own[x] if 0 <= x <= trials else Fraction(0)) for x in output)
            second = math.prod(
                (own[x - shift] if 0 <= x - shift <= trials else Fraction(0)) for x, shift in zip(output, shifts, strict=True)
            )
            total += max(mpmath.mpf(0), mpmath.mpf(first.numerator) / first.denominator - factor * second.numerator / second.denominator)
    return float(total)


# Tests of Theorem 1


@pytest.mark.parametrize(("probability", "dimension", "delta"), [(0.5, 1, 1e-6), (0.5, 1000, 1e-9), (0.25, 10, 1e-3), (0.01, 3, 1e-5)])
def test_theorem_in_fifty_digits(probability: float, dimension: int, delta: float) -> None:
    trials, scale, l1, l2, linf = 10**6, 0.5, 8.0, 5.0, 4.0
    with mpmath.workdps(50):
        p, log = mpmath.mpf(probability), mpmath.log
        v = trials * p * (1 - p)
        b = mpmath.mpf(2) / 3 * (p**2 + (1 - p) ** 2) + 1 - 2 * p
        c = mpmath.sqrt(2) * (3 * p**3 + 3 * (1 - p) ** 3 + 2 * p**2 + 2 * (1 - p) ** 2)
        d = mpmath.mpf(4) / 3 * (p**2 + (1 - p) ** 2)
        expected = l2 * mpmath.sqrt(2 * log(1.25 / mpmath.mpf(delta))) / (scale * mpmath.sqrt(v))
        expected += (l2 * c * mpmath.sqrt(log(10 / mpmath.mpf(delta))) + l1 * b) / (scale * v * (1 - mpmath.mpf(delta) / 10))
        expected += mpmath.mpf(2) / 3 * linf * log(1.25 / mpmath.mpf(delta)) / (scale * v)
        expected += linf * d * log(20 * dimension / mpmath.mpf(delta)) * log(10 / mpmath.mpf(delta)) / (scale * v)
    epsilon = binomial_theorem_epsilon(trials, probability, scale, dimension, l1, l2, linf, delta)
    assert epsilon == pytest.approx(float(expected), rel=1e-13)


def test_theorem_for_fair_coins_has_the_mended_constants() -> None:
    # The constants b = 1/3, c = 7 sqrt(2) / 4, d = 2/3 are tested with one sensitivity at a time.
    trials, delta = 10**5, 1e-4
    v = trials / 4
    by_l1 = binomial_theorem_epsilon(trials, 0.5, 1.0, 1, 1.0, 0.0, 0.0, delta)
    by_l2 = binomial_theorem_epsilon(trials, 0.5, 1.0, 1, 0.0, 1.0, 0.0, delta)
    by_linf = binomial_theorem_epsilon(trials, 0.5, 1.0, 1, 0.0, 0.0, 1.0, delta)
    assert by_l1 == pytest.approx(1 / 3 / (v * (1 - delta / 10)))
    gaussian = math.sqrt(2 * math.log(1.25 / delta) / v)
    assert by_l2 - gaussian == pytest.approx(7 * math.sqrt(2) / 4 * math.sqrt(math.log(10 / delta)) / (v * (1 - delta / 10)))
    assert by_linf == pytest.approx(2 / 3 * (math.log(1.25 / delta) + math.log(20 / delta) * math.log(10 / delta)) / v)


def test_successes_and_failures_are_alike() -> None:
    arguments = (1.0, 4, 3.0, 2.0, 1.0, 1e-5)
    assert binomial_theorem_epsilon(10**5, 0.8, *arguments) == pytest.approx(binomial_theorem_epsilon(10**5, 0.2, *arguments), rel=1e-12)


@pytest.mark.parametrize("probability", [0.5, 0.2, 0.8, 0.05])
@pytest.mark.parametrize("shift", [1, 7, 40])
@pytest.mark.parametrize("delta", [1e-2, 1e-12])
def test_theorem_is_never_below_the_truth(probability: float, shift: int, delta: float) -> None:
    for trials in (20_000, 10**6):
        theorem = binomial_theorem_epsilon(trials, probability, 1.0, 1, shift, shift, shift, delta)
        assert shifted_binomial_epsilon(trials, probability, shift, delta) < theorem


def test_the_condition_of_the_theorem_says_what_would_do() -> None:
    with pytest.raises(InfeasibleError, match=r"trials must be at least 1483 for Theorem 1 .*, got 1482$"):
        binomial_theorem_epsilon(1482, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6)
    assert binomial_theorem_epsilon(1483, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6) > 0
    with pytest.raises(InfeasibleError, match=r"trials must be at least 8000 .*, got 4000; or scale at least 0\.002$"):
        binomial_theorem_epsilon(4000, 0.5, 0.001, 1, 1.0, 1.0, 1.0, 1e-6)
    assert binomial_theorem_epsilon(4000, 0.5, 0.002, 1, 1.0, 1.0, 1.0, 1e-6) > 0
    assert binomial_theorem_epsilon(8000, 0.5, 0.001, 1, 1.0, 1.0, 1.0, 1e-6) > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trials": 0}, "trials must be a whole number from 1 to"),
        ({"probability": 1.0}, "probability must be a number from 1e-09 to 1, got 1.0"),
        ({"scale": 0.0}, "scale must be a number from 1e-12 to 1e"),
        ({"dimension": 0}, "dimension must be a whole number from 1"),
        ({"l1_sensitivity": -1.0}, "l1_sensitivity must be a number from 0"),
        ({"l2_sensitivity": math.nan}, "l2_sensitivity must be a number from 0"),
        ({"linf_sensitivity": math.inf}, "linf_sensitivity must be a number from 0"),
        ({"delta": 0.0}, "delta must be a number above 0 and below 1, got 0.0"),
    ],
)
def test_bad_arguments_of_the_theorem(changes: dict[str, float], message: str) -> None:
    arguments = {"trials": 10**5, "probability": 0.5, "scale": 1.0, "dimension": 1} | {
        f"{norm}_sensitivity": 1.0 for norm in ("l1", "l2", "linf")
    }
    with pytest.raises(ValueError, match=message.replace("+", r"\+")):
        binomial_theorem_epsilon(**(arguments | {"delta": 1e-5} | changes))


def test_the_noise_s_squared_error() -> None:
    variance = sum(float(mass) * (x - 6.0) ** 2 for x, mass in enumerate(masses(20, Fraction(3, 10))))
    assert binomial_squared_error(20, 0.3, 0.1, 5) == pytest.approx(5 * 0.01 * variance)


# Tests of the exact privacy loss


@pytest.mark.parametrize(("trials", "probability"), [(1, 0.5), (7, 0.2), (1000, 0.5), (1000, 1e-3), (10**6, 0.3), (10**9, 0.5)])
def test_probabilities(trials: int, probability: float) -> None:
    window = binomial_window(trials, probability)
    logarithms = window.logarithms
    assert float(np.exp(logarithms).sum()) == pytest.approx(1.0, abs=1e-12)
    mode = min(int((trials + 1) * probability), trials)
    expected = float(binom.pmf(mode, trials, probability))
    assert float(np.exp(logarithms.max())) == pytest.approx(expected, rel=1e-9)
    assert logarithms[mode - window.first] == logarithms.max()
    assert window.log_remainder == (-math.inf if len(logarithms) == trials + 1 else pytest.approx(-690, abs=50))


def test_probabilities_in_fifty_digits() -> None:
    logarithms = binomial_window(10**6, 0.5).logarithms
    with mpmath.workdps(50):
        centre = len(logarithms) // 2
        for off in (0, 100, 1000, 5000, 15_000):
            expected = mpmath.log(mpmath.binomial(10**6, 500_000 + off)) - 10**6 * mpmath.log(2)
            assert float(logarithms[centre + off]) == pytest.approx(float(expected), abs=1e-11)


@pytest.mark.parametrize(("trials", "probability", "shift"), [(4, "1/2", 1), (6, "1/3", 2), (9, "3/4", 3), (30, "1/10", 1), (5, "1/2", 6)])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
def test_delta_by_enumeration(trials: int, probability: str, shift: int, epsilon: float) -> None:
    share = Fraction(probability)
    expected = [exact_delta(trials, share, (sign * shift,), epsilon) for sign in (1, -1)]
    losses = shifted_binomial_losses(trials, float(share), shift)
    forth, back = losses.forth, losses.back
    assert [forth.delta(epsilon), back.delta(epsilon)] == pytest.approx(expected, rel=1e-12)
    assert shifted_binomial_delta(trials, float(share), shift, epsilon) == pytest.approx(max(expected), rel=1e-12)


@pytest.mark.parametrize(("trials", "probability", "shift", "delta"), [(100, 0.5, 1, 1e-6), (10**6, 0.5, 3, 1e-9), (500, 0.2, 4, 1e-3)])
def test_epsilon_is_just_enough(trials: int, probability: float, shift: int, delta: float) -> None:
    epsilon = shifted_binomial_epsilon(trials, probability, shift, delta)
    assert shifted_binomial_delta(trials, probability, shift, epsilon) <= delta
    assert shifted_binomial_delta(trials, probability, shift, epsilon * (1 - 1e-8)) > delta


def test_epsilon_of_a_million_trials_in_fifty_digits() -> None:
    trials, shift, epsilon = 10**6, 2, 0.01
    with mpmath.workdps(50):
        total, factor = mpmath.mpf(0), mpmath.exp(epsilon)
        # The loss exceeds 0.01 below 498750; further than 12 deviations from the mean the mass is below 1e-32.
        mass = mpmath.binomial(trials, 494_000) / mpmath.mpf(2) ** trials
        second = mpmath.binomial(trials, 493_998) / mpmath.mpf(2) ** trials
        for x in range(494_000, 499_000):
            total += max(mpmath.mpf(0), mass - factor * second)
            mass *= mpmath.mpf(trials - x) / (x + 1)
            second *= mpmath.mpf(trials - x + shift) / (x + 1 - shift)
    assert shifted_binomial_delta(trials, 0.5, shift, epsilon) == pytest.approx(float(total), rel=1e-10)


def test_many_trials_are_gaussian_noise() -> None:
    for delta in (1e-3, 1e-9):
        assert shifted_binomial_epsilon(10**8, 0.5, 100, delta) == pytest.approx(gaussian_epsilon(50.0, delta), rel=1e-4)


def test_edges_of_the_support_are_counted() -> None:
    # For a delta below 2^-10, the probability of no success in 10 trials, no epsilon suffices.
    assert shifted_binomial_epsilon(10, 0.5, 1, 2.0**-10 * 0.999) == math.inf
    assert math.isfinite(shifted_binomial_epsilon(10, 0.5, 1, 2.0**-10 * 1.001))
    assert shifted_binomial_delta(10, 0.5, 11, 100.0) == 1.0
    assert shifted_binomial_epsilon(10, 0.5, 11, 0.5) == math.inf


# Tests of Rényi divergences


@pytest.mark.parametrize(("trials", "probability", "shift"), [(6, "1/2", 1), (12, "1/3", 2), (40, "9/10", 3), (5, "4/5", 3)])
@pytest.mark.parametrize("order", [1.1, 2.0, 7.5, 300.0, 3000.0])
def test_divergences_over_what_both_can_be(trials: int, probability: str, shift: int, order: float) -> None:
    share = Fraction(probability)
    own = masses(trials, share)
    losses = shifted_binomial_losses(trials, float(share), shift)
    forth, back = losses.forth, losses.back
    for sign, loss in ((1, forth), (-1, back)):
        with mpmath.workdps(50):
            total = mpmath.fsum(
                (mpmath.mpf(p.numerator) / p.denominator) ** order * (mpmath.mpf(q.numerator) / q.denominator) ** (1 - order)
                for p, q in ((own[x], own[x - sign * shift]) for x in range(trials + 1) if 0 <= x - sign * shift <= trials)
            )
            expected = float(mpmath.log(total) / (order - 1))
        assert loss.renyi_divergences([order])[0] == pytest.approx(expected, rel=1e-10, abs=1e-13)


def test_infinite_order_is_the_largest_loss() -> None:
    losses = shifted_binomial_losses(5, 0.5, 1)
    forth, back = losses.forth, losses.back
    assert forth.renyi_divergences([math.inf])[0] == pytest.approx(math.log(5))
    assert back.renyi_divergences([math.inf])[0] == pytest.approx(math.log(5))


@pytest.mark.parametrize("neglected", [0.0, 1e-9, 1e-3])
def test_divergences_with_their_failures_bound_delta(neglected: float) -> None:
    trials, probability, shift = 60, 0.3, 2
    orders = [1.5, 2.0, 4.0, 16.0]
    result = shifted_binomial_renyi(trials, probability, shift, orders, neglected)
    for epsilon in (0.5, 1.0, 3.0):
        truth = shifted_binomial_delta(trials, probability, shift, epsilon)
        for order, divergence in zip(orders, result.divergences.tolist(), strict=True):
            # The bound is that of Canonne, Kamath, Steinke 2020, proposition 12.
            bound = math.exp((order - 1) * (divergence - epsilon)) / order * (1 - 1 / order) ** (order - 1)
            assert truth <= result.failure + bound
    smallest = shifted_binomial_losses(trials, probability, shift)
    assert result.failure <= max(smallest.forth.certain, smallest.back.certain) + neglected


def test_a_shift_beyond_the_support_has_no_divergence() -> None:
    result = shifted_binomial_renyi(5, 0.5, 6, [2.0], 0.0)
    assert (result.divergences.tolist(), result.failure) == ([math.inf], 1.0)


def test_rare_values_become_failures() -> None:
    loss = ExactPrivacyLoss(np.log([0.5, 0.3, 0.1, 0.05]), np.array([0.0, 1.0, 2.0, 3.0]), 0.05, 0.1)
    rest = loss.without_rare_values(0.16)
    assert rest.losses.tolist() == [0.0, 1.0]
    assert rest.certain == pytest.approx(0.2)
    assert rest.unseen == pytest.approx(0.1 + 0.1 * math.exp(-2) + 0.05 * math.exp(-3))


# Tests of composition


@pytest.mark.parametrize("uses", [2, 3])
@pytest.mark.parametrize(("trials", "probability"), [(12, "1/2"), (14, "1/3")])
def test_composition_by_enumeration(uses: int, trials: int, probability: str) -> None:
    share = Fraction(probability)
    losses = shifted_binomial_losses(trials, float(share), 1)
    forth, back = losses.forth, losses.back
    delta = 0.05
    epsilon = composed_exact_epsilon(forth, None if share == Fraction(1, 2) else back, uses, delta)
    assert epsilon is not None
    patterns = [(1,) * plus + (-1,) * (uses - plus) for plus in range(uses + 1)]
    if uses == 3:
        patterns = patterns[::3]
    deltas = [float_delta(trials, float(share), pattern, epsilon) for pattern in patterns]
    assert max(deltas) <= delta
    looser = [float_delta(trials, float(share), pattern, epsilon * (1 - 1e-4)) for pattern in patterns]
    assert max(looser) > delta


def float_delta(trials: int, probability: float, shifts: tuple[int, ...], epsilon: float) -> float:
    """Return the hockey-stick divergence of shifted coordinates by enumeration."""
    first, second = np.ones(1), np.ones(1)
    value = np.arange(-1, trials + 2)
    for shift in shifts:
        first = np.outer(first, binom.pmf(value, trials, probability)).ravel()
        second = np.outer(second, binom.pmf(value - shift, trials, probability)).ravel()
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


def test_many_uses_are_gaussian_noise() -> None:
    losses = shifted_binomial_losses(10**6, 0.5, 1)
    forth = losses.forth
    for uses in (1, 2, 1000):
        epsilon = composed_exact_epsilon(forth, None, uses, 1e-6)
        assert epsilon == pytest.approx(gaussian_epsilon(500 / math.sqrt(uses), 1e-6), rel=2e-5)


def test_composition_says_where_it_ends() -> None:
    losses = shifted_binomial_losses(1000, 0.5, 1)
    forth, back = losses.forth, losses.back
    assert composed_exact_epsilon(forth, None, 2, 1e-12) is None
    edge = shifted_binomial_losses(10, 0.5, 1).forth
    assert composed_exact_epsilon(edge, None, 2, 2.0**-10) == math.inf
    assert composed_exact_epsilon(forth, None, 2, 0.5) == 0.0
    with pytest.raises(ValueError, match="uses must be a whole number from 1"):
        composed_exact_epsilon(forth, back, 0, 0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shifted_binomial_losses(0, 0.5, 1), "trials must be a whole number from 1 to 10000000000, got 0"),
        (lambda: shifted_binomial_losses(10, 0.0, 1), "probability must be a number from 1e-09"),
        (lambda: shifted_binomial_losses(10, 0.5, 0), "shift must be a whole number from 1"),
        (lambda: shifted_binomial_delta(10, 0.5, 1, -1.0), "epsilon must be a number from 0"),
        (lambda: shifted_binomial_epsilon(10, 0.5, 1, 1.0), "delta must be a number above 0 and below 1"),
        (lambda: shifted_binomial_renyi(10, 0.5, 1, [1.0], 0.0), "orders must be above 1"),
        (lambda: shifted_binomial_renyi(10, 0.5, 1, [2.0], 0.6), "neglected must be a number from 0 to 0.5"),
        (lambda: shifted_binomial_losses(10, 0.5, 1).forth.on_grid(0.0, 10), "interval must be a number from"),
        (lambda: shifted_binomial_losses(10, 0.5, 1).forth.on_grid(0.1, 0), "steps must be a whole number from 1"),
        (lambda: shifted_binomial_losses(10, 0.5, 1).forth.without_rare_values(2.0), "mass must be a number from 0 to 1"),
    ],
)
def test_bad_arguments(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


@pytest.mark.parametrize("linf", [1.0, 3.0, 8.0])
def test_the_theorem_does_not_depend_on_the_unit_of_length(linf: float) -> None:
    computed = [binomial_theorem_epsilon(10**6, 0.3, scale, 20, 40.0 * scale, 9.0 * scale, linf * scale, 1e-6) for scale in (1.0, 2.0, 0.1)]
    assert computed[1:] == pytest.approx([computed[0]] * 2, rel=1e-12)
    # The epsilon depends on the largest coordinate.
    assert computed[0] < binomial_theorem_epsilon(10**6, 0.3, 1.0, 20, 40.0, 9.0, linf * 1.1, 1e-6)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_the_theorem_needs_a_variance_of_twice_the_largest_coordinate(scale: float) -> None:
    # 10**4 fair trials have the variance 2500; the dimension requires less.
    assert math.isfinite(binomial_theorem_epsilon(10**4, 0.5, scale, 1, 1.0, 1.0, 1250 * scale, 1e-6))
    with pytest.raises(InfeasibleError, match="trials must be at least 10008 "):
        binomial_theorem_epsilon(10**4, 0.5, scale, 1, 1.0, 1.0, 1251 * scale, 1e-6)
    assert math.isfinite(binomial_theorem_epsilon(10_008, 0.5, scale, 1, 1.0, 1.0, 1251 * scale, 1e-6))
    with pytest.raises(InfeasibleError, match="trials must be at least 10008 "):
        binomial_theorem_epsilon(10_007, 0.5, scale, 1, 1.0, 1.0, 1251 * scale, 1e-6)


def test_doubt_begins_at_the_epsilon_of_gaussian_noise() -> None:
    trials, probability, l2, delta = 10**5, 0.3, 60.0, 1e-5
    gaussian = gaussian_epsilon(math.sqrt(trials * 0.3 * 0.7) / l2, delta)
    for scale in (1.0, 0.25, 8.0):
        assert is_theorem_doubtful(gaussian * (1 - 1e-6), trials, probability, scale, scale * l2, delta)
        assert not is_theorem_doubtful(gaussian * (1 + 1e-6), trials, probability, scale, scale * l2, delta)


def test_the_fewest_trials_are_the_first_whose_variance_is_enough_as_it_is_computed() -> None:
    rng = np.random.default_rng(4)
    for per_trial in rng.uniform(0.01, 0.25, 300).tolist():
        whole = int(rng.integers(1, 1000))
        for variance in (whole * per_trial, math.nextafter(whole * per_trial, math.inf), (whole + 0.5) * per_trial, per_trial / 3):
            trials = cpsgd_theorem._fewest_trials(variance, per_trial)
            assert trials * per_trial >= variance
            assert trials == 1 or (trials - 1) * per_trial < variance


def test_the_theorem_s_condition_on_the_variance_counts_all_coordinates() -> None:
    # The variance, a quarter of the trials, must be at least 23 ln(10 d / delta).
    fewest = math.ceil(4 * 23 * math.log(10 * 1000 / 1e-6))
    assert binomial_theorem_epsilon(fewest, 0.5, 1.0, 1000, 1.0, 1.0, 1.0, 1e-6) > 0
    with pytest.raises(InfeasibleError, match=f"trials must be at least {fewest} for"):
        binomial_theorem_epsilon(fewest - 1, 0.5, 1.0, 1000, 1.0, 1.0, 1.0, 1e-6)


def test_doubts_without_sensitivity_and_without_noise() -> None:
    assert not is_theorem_doubtful(1.0, 100, 0.5, 1.0, 0.0, 1e-6)
    # Noise of a millionth of the sensitivity hides nothing, whatever the theorem says.
    assert is_theorem_doubtful(1.0, 4, 0.5, 1e-6, 1.0, 1e-6)
