"""Binomial and Skellam noise accounted as Gaussian noise.

Points under test: ratios in fifty digits, full sums, and exact epsilons.
"""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy.special import bdtr, bdtrc, ive

from quietbits.solvers.accounting.exact_privacy_loss import ExactPrivacyLoss, composed_exact_epsilon
from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon
from quietbits.solvers.divergences import near_gaussian_noise
from quietbits.solvers.divergences.binomial_divergence import shifted_binomial_epsilon, shifted_binomial_losses
from quietbits.solvers.divergences.discrete_gaussian_divergence import SmoothedSum, rounded_gaussian_epsilon, smoothed_sums
from quietbits.solvers.divergences.near_gaussian_noise import (
    EXPONENTS,
    NoiseRatio,
    binomial_near_gaussian_epsilon,
    binomial_noise_ratio,
    ratio_log_moments,
    skellam_near_gaussian_epsilon,
    skellam_noise_ratio,
)


def log_gaussian(offset: float, variance: float) -> mpmath.mpf:
    return -(mpmath.mpf(offset) ** 2) / (2 * mpmath.mpf(variance)) - mpmath.log(2 * mpmath.pi * mpmath.mpf(variance)) / 2


@pytest.mark.parametrize("variance", [1000.0, 3456.7])
def test_the_ratio_of_skellam_noise_in_fifty_digits(variance: float) -> None:
    ratio = skellam_noise_ratio(variance, 9.0)
    for index in range(0, len(ratio.offsets), len(ratio.offsets) // 7):
        offset = float(ratio.offsets[index])
        with mpmath.workdps(50):
            exact = mpmath.log(mpmath.besseli(abs(offset), mpmath.mpf(variance))) - mpmath.mpf(variance)
            expected = float(exact - log_gaussian(offset, variance))
        assert float(ratio.log_ratios[index]) == pytest.approx(expected, abs=1e-14, rel=1e-12)


@pytest.mark.parametrize("variance", [1000.7, 6400.0])
def test_the_widest_window_is_as_exact_as_it_says(variance: float) -> None:
    ratio = skellam_noise_ratio(variance, 0.499 * math.sqrt(variance))
    for index in range(0, len(ratio.offsets), len(ratio.offsets) // 5):
        offset = float(ratio.offsets[index])
        with mpmath.workdps(50):
            exact = mpmath.log(mpmath.besseli(abs(offset), mpmath.mpf(variance))) - mpmath.mpf(variance) - log_gaussian(offset, variance)
            assert abs(exact - mpmath.mpf(float(ratio.log_ratios[index]))) <= ratio.rounding < 1e-12


@pytest.mark.parametrize(("trials", "probability"), [(4000, 0.5), (10**5, 0.03), (10**7, 0.8)])
def test_the_ratio_of_binomial_noise_in_fifty_digits(trials: int, probability: float) -> None:
    ratio = binomial_noise_ratio(trials, probability, 9.0)
    variance = trials * probability * (1 - probability)
    for index in range(0, len(ratio.offsets), len(ratio.offsets) // 7):
        offset = float(ratio.offsets[index])
        with mpmath.workdps(50):
            rate = mpmath.mpf(probability)
            value = trials * rate + mpmath.mpf(offset)
            exact = mpmath.loggamma(trials + 1) - mpmath.loggamma(value + 1) - mpmath.loggamma(trials - value + 1)
            exact += value * mpmath.log(rate) + (trials - value) * mpmath.log(1 - rate)
            expected = float(exact - log_gaussian(value - trials * rate, variance))
            error = abs(exact - log_gaussian(value - trials * rate, variance) - mpmath.mpf(float(ratio.log_ratios[index])))
        assert float(ratio.log_ratios[index]) == pytest.approx(expected, abs=1e-14, rel=1e-9)
        assert error <= ratio.rounding


def test_the_tail_is_above_the_truth() -> None:
    skellam = skellam_noise_ratio(1000.0, 6.0)
    beyond = np.arange(math.floor(skellam.offsets[-1]) + 1, 2000)
    assert 2 * float(ive(beyond, 1000.0).sum()) < math.exp(skellam.log_tail) < 1e-6
    binomial = binomial_noise_ratio(10**5, 0.03, 6.0)
    masses = shifted_binomial_losses(10**5, 0.03, 1).forth
    assert float(masses.masses.sum()) > 0.999
    lower = 3000 + math.ceil(binomial.offsets[0])
    upper = 3000 + math.floor(binomial.offsets[-1])
    outside = bdtr(lower - 1, 10**5, 0.03) + bdtrc(upper, 10**5, 0.03)
    assert outside < math.exp(binomial.log_tail) < 1e-6


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_over_every_nth_number_are_those_over_all(sign: int) -> None:
    # The account uses ten times fewer points than these five thousand values.
    variance = 1e5
    ratio = skellam_noise_ratio(variance, 8.0)
    assert ratio.offsets[1] - ratio.offsets[0] == pytest.approx(8 * math.sqrt(variance) / 256)
    value = np.arange(math.ceil(ratio.offsets[0]), math.floor(ratio.offsets[-1]) + 1, dtype=float)
    log_masses = np.log(ive(np.abs(value), variance))
    gaussian = -(value**2) / (2 * variance) - math.log(2 * math.pi * variance) / 2
    exponents = EXPONENTS + 1 if sign > 0 else -EXPONENTS
    for index in (0, 8, 16, 24):
        full = float(np.sum(np.exp(gaussian) * np.expm1(exponents[index] * (log_masses - gaussian))))
        # scipy's Bessel function has relative errors of about 1e-13, which the exponent multiplies; and both ends are added.
        result = math.expm1(float(ratio_log_moments(ratio, sign)[index]))
        assert result == pytest.approx(full, rel=1e-3, abs=abs(exponents[index]) * 3e-13)


@pytest.mark.parametrize("trials", [4000, 40_000, 10**6])
@pytest.mark.parametrize("delta", [1e-3, 1e-10])
def test_one_shift_of_binomial_noise(trials: int, delta: float) -> None:
    for multiplier in (0.5, 2.0, 10.0):
        shift = max(1, round(math.sqrt(trials) / 2 / multiplier))
        epsilon = binomial_near_gaussian_epsilon(trials, 0.5, float(shift), 1, delta)
        exact = shifted_binomial_epsilon(trials, 0.5, shift, delta)
        assert epsilon is not None
        # The quality depends on the noise; the smallest variance is the least that this account supports.
        assert exact <= epsilon <= exact * {4000: 1.3, 40_000: 1.03, 10**6: 1.002}[trials] + 1e-3


@pytest.mark.parametrize("probability", [0.3, 0.5])
def test_several_coordinates_of_binomial_noise(probability: float) -> None:
    trials, shift, coordinates, delta = 40_000, 9, 16, 1e-6
    epsilon = binomial_near_gaussian_epsilon(trials, probability, shift * math.sqrt(coordinates), coordinates, delta)
    losses = shifted_binomial_losses(trials, probability, shift)
    exact = composed_exact_epsilon(losses.forth, None if probability == 0.5 else losses.back, coordinates, delta)
    assert epsilon is not None
    assert exact is not None
    # Skewed noise is farther from a Gaussian.
    assert exact <= epsilon <= exact * (1.02 if probability == 0.5 else 1.6)
    # Sixteen rounds of one coordinate give the same epsilon.
    assert binomial_near_gaussian_epsilon(trials, probability, float(shift), 1, delta, rounds=coordinates) == pytest.approx(
        epsilon, rel=1e-9
    )


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_one_shift_of_skellam_noise(delta: float) -> None:
    variance = 20_000.0
    value = np.arange(-3000, 3001)
    log_masses = np.log(ive(np.abs(value), variance))
    for shift in (15, 60, 200):
        loss = ExactPrivacyLoss(log_masses[shift:], log_masses[shift:] - log_masses[:-shift], 0.0, 0.0)
        exact = loss.epsilon(delta)
        result = skellam_near_gaussian_epsilon(variance, float(shift), 1, delta)
        assert result is not None
        assert exact <= result <= exact * 1.02 + 1e-3


def test_more_noise_is_nearer_to_gaussian_noise() -> None:
    gaussian = gaussian_epsilon(3.73, 1e-5)
    before = math.inf
    for variance in (1e4, 1e6, 1e8, 1e12):
        epsilon = skellam_near_gaussian_epsilon(variance, math.sqrt(variance) / 3.73, 65_536, 1e-5)
        assert epsilon is not None
        assert gaussian < epsilon < before
        before = epsilon
    assert before < gaussian * (1 + 1e-4)


def test_where_this_way_of_accounting_says_nothing() -> None:
    assert skellam_near_gaussian_epsilon(999.0, 1.0, 1, 1e-5) is None
    assert binomial_near_gaussian_epsilon(3999, 0.5, 1.0, 1, 1e-5) is None
    # A delta this small needs a wider window than the series permit.
    assert skellam_near_gaussian_epsilon(1000.0, 1.0, 1, 1e-80) is None
    assert binomial_near_gaussian_epsilon(1_100_000, 0.001, 1.0, 1, 1e-60) is None
    assert skellam_near_gaussian_epsilon(1e4, 0.0, 1, 1e-5) == 0.0


def test_a_ratio_knows_how_far_its_window_reaches() -> None:
    ratio = binomial_noise_ratio(4001, 0.5, 5.0)
    assert isinstance(ratio, NoiseRatio)
    assert ratio.offsets[0] == pytest.approx(2000.5 - round(2000.5) - 157.0 + (2 * round(2000.5) - 4001), abs=1.0)
    assert 4.9 < ratio.deviations <= 5.0
    assert ratio.deviations == min(-ratio.offsets[0], ratio.offsets[-1]) / math.sqrt(4001 / 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: skellam_noise_ratio(10.0, 5.0), r"variance must be a number from 1000 to 1e\+30, got 10\.0"),
        (lambda: skellam_noise_ratio(1000.0, 30.0), r"deviations must be a number from 1 to 15\.8"),
        (lambda: binomial_noise_ratio(100, 0.5, 5.0), r"trials \* probability \* \(1 - probability\) must be a number from 1000"),
        (lambda: skellam_near_gaussian_epsilon(-1.0, 1.0, 1, 1e-5), "variance must be a number from 1e-06"),
        (lambda: skellam_near_gaussian_epsilon(1e4, -1.0, 1, 1e-5), "l2_sensitivity must be a number from 0"),
        (lambda: skellam_near_gaussian_epsilon(1e4, 1.0, 0, 1e-5), "dimension must be a whole number from 1"),
        (lambda: skellam_near_gaussian_epsilon(1e4, 1.0, 1, 1e-5, 0), "rounds must be a whole number from 1"),
        (lambda: skellam_near_gaussian_epsilon(1e4, 1.0, 1, 0.0), "delta must be a number above 0 and below 1"),
        (lambda: binomial_near_gaussian_epsilon(0, 0.5, 1.0, 1, 1e-5), "trials must be a whole number from 1"),
        (lambda: binomial_near_gaussian_epsilon(10, 0.0, 1.0, 1, 1e-5), "probability must be a number from 1e-09"),
    ],
)
def test_bad_arguments(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


def test_delta_near_one() -> None:
    assert 0 <= skellam_near_gaussian_epsilon(1e6, 270.0, 4, 0.9995) <= skellam_near_gaussian_epsilon(1e6, 270.0, 4, 0.99)
    assert 0 <= binomial_near_gaussian_epsilon(10**6, 0.5, 100.0, 4, 0.9995) <= binomial_near_gaussian_epsilon(10**6, 0.5, 100.0, 4, 0.99)


def captured(monkeypatch: pytest.MonkeyPatch, name: str) -> list[NoiseRatio]:
    """Record the ratios that an account makes, in its chosen window."""
    ratios: list[NoiseRatio] = []
    make = getattr(near_gaussian_noise, name)
    monkeypatch.setattr(near_gaussian_noise, name, lambda *arguments: ratios.append(make(*arguments)) or ratios[-1])
    return ratios


def markov_excess(offsets: np.ndarray, log_ratios: np.ndarray, variance: float, coordinates: int, log_spared: float) -> tuple[float, float]:
    """Return x of the module's inequality in both directions, from sums over the window."""
    log_gaussian_masses = -(offsets**2) / (2 * variance) - math.log(2 * math.pi * variance) / 2
    excesses = []
    for sign in (1, -1):
        bounds = []
        for exponent in EXPONENTS:
            power = exponent + 1 if sign > 0 else -exponent
            if (power * log_ratios).max() > 600:
                continue
            # The logarithm is that of a sum near 1.
            terms = np.exp(log_gaussian_masses) * np.expm1(power * log_ratios)
            bounds.append((coordinates * math.log1p(math.fsum(terms)) + math.log(2) - log_spared) / exponent)
        excesses.append(max(0.0, min(bounds)))
    return excesses[0], excesses[1]


@pytest.mark.parametrize(("coordinates", "rounds"), [(1, 1), (4, 1), (2, 3)])
@pytest.mark.parametrize(("variance", "shift"), [(1000.0, 1.0), (1000.0, 20.0), (20_000.0, 40.0)])
def test_every_term_of_the_proof_is_in_epsilon(
    monkeypatch: pytest.MonkeyPatch, variance: float, shift: float, coordinates: int, rounds: int
) -> None:
    # The test repeats the proof step by step: x in one direction, the Gaussian epsilon for the remaining delta, and x' in the other
    # direction.
    delta, share = 1e-5, 1e-4
    ratios = captured(monkeypatch, "skellam_noise_ratio")
    computed = skellam_near_gaussian_epsilon(variance, shift, coordinates, delta, rounds)
    (ratio,) = ratios
    assert computed is not None
    reach = math.floor(ratio.offsets[-1])
    values = np.arange(-reach, reach + 1.0)
    log_gaussian_masses = -(values**2) / (2 * variance) - math.log(2 * math.pi * variance) / 2
    log_ratios = np.log(ive(np.abs(values), variance)) - log_gaussian_masses
    together = coordinates * rounds
    first, _ = markov_excess(values, log_ratios, variance, together, math.log(share * delta))
    allowed = delta * (1 - 2 * share) * math.exp(-first)
    least = min(
        rounded_gaussian_epsilon(choice.sigma / (shift * math.sqrt(rounds)), together * choice.log_ratio, allowed)
        for choice in smoothed_sums(1, math.sqrt(variance))
    )
    _, second = markov_excess(values, log_ratios, variance, together, math.log(share * delta) - least - first)
    assert first > 5e-3
    assert second > 1e-5
    # The account takes fewer points, and adds both ends of the window.
    assert least + first + second - 1e-9 <= computed <= least + 1.1 * first + 1.1 * second
    # The sacrificed parts add up to delta, and the window's complement is at most half of delta.
    given_up = share * delta * (1 + math.exp(first + least) * math.exp(-least - first)) + math.exp(first) * allowed
    assert given_up == pytest.approx(delta, rel=1e-12)
    assert math.log(together) + ratio.log_tail <= math.log(share * delta / 2) - least - first


@pytest.mark.parametrize("rounds", [1, 5])
@pytest.mark.parametrize("noise", ["skellam", "binomial"])
def test_sampled_rounds_are_those_of_gaussian_noise_with_what_is_left_of_delta(noise: str, rounds: int) -> None:
    variance, shift, coordinates, delta = 4e4, 30.0, 3, 1e-6
    asked: list[tuple[float, float]] = []

    def account(sampled: object = None) -> float | None:
        if noise == "skellam":
            return skellam_near_gaussian_epsilon(variance, shift, coordinates, delta, rounds, sampled)  # type: ignore[arg-type]
        return binomial_near_gaussian_epsilon(160_000, 0.5, shift, coordinates, delta, rounds, sampled)  # type: ignore[arg-type]

    def of_gaussian(constant: float) -> object:
        return lambda multiplier, left: asked.append((multiplier, left)) or constant

    small, large = account(of_gaussian(0.5)), account(of_gaussian(1.5))
    assert small is not None
    assert large is not None
    (multiplier, left), again = asked
    assert again == (multiplier, left)
    # A grid of whole numbers has almost no cost in this case, as x follows from the part missing from delta, and occurs twice, with x'.
    first = math.log(delta * (1 - 2e-4) / left)
    assert multiplier == pytest.approx(math.sqrt(variance) / shift, rel=1e-4)
    assert multiplier < math.sqrt(variance) / shift
    assert min(first, small - 0.5 - first) > 5e-6
    assert max(first, small - 0.5 - first) > 1e-3
    # A larger epsilon leaves less of delta for the other direction, so x' grows.
    assert large - 1.5 > small - 0.5
    everyone = account()
    assert everyone is not None
    same = account(lambda multiplier, left: gaussian_epsilon(multiplier / math.sqrt(rounds), left))
    assert same == pytest.approx(everyone, rel=1e-4)
    assert account(lambda *_: None) is None


def test_a_window_must_leave_out_less_than_half_of_what_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    delta, coordinates, changes = 1e-5, 4, {}
    make = skellam_noise_ratio
    monkeypatch.setattr(near_gaussian_noise, "skellam_noise_ratio", lambda *arguments: replace(make(*arguments), **changes))

    def account() -> float | None:
        return skellam_near_gaussian_epsilon(1000.0, 20.0, coordinates, delta, 1)

    computed = account()
    assert computed is not None
    # The other direction has e^-epsilon of the mass.
    allowed = math.log(1e-4 * delta / 2 / coordinates)
    for beyond, expected in ((-0.01, None), (-computed - 0.01, computed), (-computed + 0.05, None)):
        changes["log_tail"] = allowed + beyond
        assert account() == expected
    # The logarithms' rounding error is added per coordinate and direction.
    changes.update({"log_tail": -1e3, "rounding": 0.0})
    exact = account()
    changes["rounding"] = 1e-4
    rounded = account()
    assert exact is not None
    assert rounded is not None
    assert 2 * coordinates * 1e-4 <= rounded - exact <= 2.5 * coordinates * 1e-4


@pytest.mark.parametrize("distance", [0.25, 3.0])
def test_both_ends_of_the_window_are_added_to_the_sums(distance: float) -> None:
    # Each end adds a whole number's mass, for any distance of the points.
    variance, log_ratios = 1000.0, np.array([2e-4, -1e-4, 3e-4])
    offsets = distance * np.array([-1.0, 0.0, 1.0])
    ratio = NoiseRatio(variance, 1.0, offsets, log_ratios, -50.0, 0.0)
    for sign, powers in ((1, EXPONENTS + 1), (-1, -EXPONENTS)):
        computed = ratio_log_moments(ratio, sign)
        for index in (0, 10, 20):
            with mpmath.workdps(40):
                terms = [
                    mpmath.exp(log_gaussian(offset, variance)) * distance * mpmath.expm1(mpmath.mpf(power) * mpmath.mpf(log_ratio))
                    for offset, log_ratio in zip(offsets.tolist(), log_ratios.tolist(), strict=True)
                    for power in [float(powers[index])]
                ]
                ends = (abs(terms[0]) + abs(terms[2])) * max(1, 1 / mpmath.mpf(distance))
                expected = mpmath.log1p(sum(terms) + ends)
            assert computed[index] == pytest.approx(float(expected), rel=1e-10)
        # Overflowing exponents give no bound.
        assert math.isinf(computed[-1])


def test_the_grid_costs_sampled_rounds_its_ratio_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    coordinates, delta = 3, 1e-6
    choices = [SmoothedSum(190.0, 1e-7), SmoothedSum(180.0, 2.5e-9)]
    asked: list[tuple[float, float]] = []
    monkeypatch.setattr(near_gaussian_noise, "smoothed_sums", lambda *_: choices)

    def account() -> float:
        computed = skellam_near_gaussian_epsilon(4e4, 30.0, coordinates, delta, 1, lambda *at: asked.append(at) or 0.5)
        assert computed is not None
        return computed

    with_ratio = account()
    choices[1] = SmoothedSum(180.0, 0.0)
    without = account()
    # The first choice is too coarse, as its ratio is not negligible.
    assert [multiplier for multiplier, _ in asked] == [6.0, 6.0]
    assert with_ratio - without == pytest.approx(2 * coordinates * 2.5e-9, rel=1e-3)
    assert asked[0][1] / asked[1][1] - 1 == pytest.approx(-coordinates * 2.5e-9, rel=1e-3)
    choices[1] = SmoothedSum(180.0, 1.01e-8 / coordinates)
    assert skellam_near_gaussian_epsilon(4e4, 30.0, coordinates, delta, 1, lambda *_: 0.5) is None


@pytest.mark.parametrize("probability", [0.03, 0.97])
def test_a_window_stays_within_half_of_the_rarer_outcome(probability: float) -> None:
    # The rarer outcome has 3000 trials, and a standard deviation of 53.9.
    assert binomial_noise_ratio(10**5, probability, 27.0) is not None
    with pytest.raises(ValueError, match="deviations must be"):
        binomial_noise_ratio(10**5, probability, 28.5)


@pytest.mark.parametrize("probability", [0.03, 0.5, 0.97])
@pytest.mark.parametrize("deviations", [6.0, 15.0, 26.0])
def test_the_tail_of_binomial_noise_is_above_the_truth_in_windows_of_any_width(probability: float, deviations: float) -> None:
    # The longer tail of skewed noise is much likelier than that of Gaussian noise, the shorter tail much less likely.
    trials = 10**5
    ratio = binomial_noise_ratio(trials, probability, deviations)
    lower, upper = (trials * probability + float(ratio.offsets[end]) for end in (0, -1))
    outside = bdtr(math.ceil(lower) - 1, trials, probability) + bdtrc(math.floor(upper), trials, probability)
    assert outside > 0
    assert math.log(outside) < ratio.log_tail < math.log(outside) + 8


@pytest.mark.parametrize(("variance", "deviations"), [(1000.0, 5.0), (1000.0, 15.0), (6400.0, 5.0), (6400.0, 39.0)])
def test_the_tail_of_skellam_noise_is_above_the_truth_in_windows_of_any_width(variance: float, deviations: float) -> None:
    # In its far tail, Skellam noise is much likelier than Gaussian noise, by a factor of e^11 at 39 deviations of 80 steps.
    ratio = skellam_noise_ratio(variance, deviations)
    first = math.floor(ratio.offsets[-1]) + 1
    with mpmath.workdps(40):
        mean, total, value = mpmath.mpf(variance), mpmath.mpf(0), first
        while True:
            mass = mpmath.besseli(value, mean) * mpmath.exp(-mean)
            total += mass
            # From this point on masses fall at least geometrically, so a geometric series bounds the rest.
            if mass < total * mpmath.mpf(10) ** -4:
                break
            value += 1
        assert mpmath.log(2 * total) < ratio.log_tail < mpmath.log(2 * total) + 6


@pytest.mark.parametrize("variance", [1000.0, 1500.0])
def test_every_term_of_the_bessel_expansion_is_in_the_ratio(variance: float) -> None:
    # The smallest term of the expansion is 5e-15 at the ends of the widest window, below the stated margin.
    ratio = skellam_noise_ratio(variance, 0.499 * math.sqrt(variance))
    for index in (0, 20, -20, -1):
        offset = float(ratio.offsets[index])
        with mpmath.workdps(50):
            exact = mpmath.log(mpmath.besseli(abs(offset), mpmath.mpf(variance))) - mpmath.mpf(variance) - log_gaussian(offset, variance)
            assert abs(exact - mpmath.mpf(float(ratio.log_ratios[index]))) <= 2e-15


@pytest.mark.parametrize(("variance", "deviations"), [(1000.0, 5.0), (6400.0, 39.0)])
def test_the_tail_of_skellam_noise_is_the_chernoff_bound_of_both_ends(variance: float, deviations: float) -> None:
    with mpmath.workdps(40):
        mean = mpmath.mpf(variance)
        slope = deviations / mpmath.sqrt(mean)
        bound = mpmath.log(2) + mean * (mpmath.sqrt(1 + slope**2) - 1 - slope * mpmath.asinh(slope))
    assert skellam_noise_ratio(variance, deviations).log_tail == pytest.approx(float(bound), rel=1e-12)


@pytest.mark.parametrize(("trials", "probability"), [(10**5, 0.03), (10**5, 0.97), (4000, 0.5)])
def test_the_tail_of_binomial_noise_is_twice_the_larger_chernoff_bound(trials: int, probability: float) -> None:
    ratio = binomial_noise_ratio(trials, probability, 8.0)
    # The account's tail is never below that of Gaussian noise, exp(-8^2 / 2).
    bounds = [mpmath.mpf(-32)]
    for end in (0, -1):
        with mpmath.workdps(40):
            rate = mpmath.mpf(probability)
            share = rate + mpmath.mpf(float(ratio.offsets[end])) / trials
            bounds.append(-trials * (share * mpmath.log(share / rate) + (1 - share) * mpmath.log((1 - share) / (1 - rate))))
    assert ratio.log_tail == pytest.approx(math.log(2) + float(max(bounds)), rel=1e-9)


def test_the_window_of_common_successes_is_that_of_rare_ones() -> None:
    # Probability 0.999 behaves like 0.001, and no window within half of the rarer outcome reaches far enough.
    assert binomial_near_gaussian_epsilon(1_100_000, 0.999, 1.0, 1, 1e-60) is None
