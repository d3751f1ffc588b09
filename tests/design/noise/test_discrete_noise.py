"""Draws against exact probabilities.

Points under test: chi-square tests with false alarms at 1e-6, variances, bad arguments.
"""

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.stats

from quietbits.arrays import FloatArray, IntegerArray
from quietbits.design.noise import binomial_noise, skellam_noise
from quietbits.design.noise.binomial_noise import add_binomial, binomial_variance, sample_binomial
from quietbits.design.noise.discrete_gaussian import add_discrete_gaussian, discrete_gaussian_variance, sample_discrete_gaussian
from quietbits.design.noise.discrete_laplace import discrete_laplace_variance, sample_discrete_laplace
from quietbits.design.noise.random_words import WordSource, secure_words, seeded_words
from quietbits.design.noise.skellam_noise import add_skellam, sample_poisson, sample_skellam

DRAWS = 10**6
FALSE_ALARM = 1e-6


def words(seed: int = 0) -> WordSource:
    return seeded_words(np.random.default_rng(seed))


def check_distribution(draws: IntegerArray, low: int, probabilities: FloatArray) -> None:
    """Check draws by chi-square, with neighbouring points merged until 20 draws are expected."""
    expected = len(draws) * probabilities / probabilities.sum()
    counts = np.bincount(np.clip(draws - low, 0, len(expected) - 1), minlength=len(expected))
    cells = np.floor(np.cumsum(expected) / 20).astype(int)
    cells = np.minimum(cells, cells[-1] - 1)
    merged, observed = np.bincount(cells, weights=expected), np.bincount(cells, weights=counts)
    filled = merged > 0
    assert scipy.stats.chisquare(observed[filled], merged[filled], sum_check=False).pvalue > FALSE_ALARM


@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0, 10.0, 64.0, 100.0, 1e3, 1e4])
def test_discrete_gaussian(sigma: float) -> None:
    bound = int(8 * sigma) + 3
    points = np.arange(-bound, bound + 1)
    check_distribution(sample_discrete_gaussian(sigma, DRAWS, words()), -bound, np.exp(-(points**2) / (2 * sigma**2)))


@pytest.mark.parametrize("scale", [0.2, 1.0, 7.5, 40.0, 1e4])
def test_discrete_laplace(scale: float) -> None:
    bound = int(25 * scale) + 3
    points = np.arange(-bound, bound + 1)
    check_distribution(sample_discrete_laplace(scale, DRAWS, words()), -bound, np.exp(-np.abs(points) / scale))


@pytest.mark.parametrize("rate", [0.01, 1.0, 2.5, 30.0, 1e4, 1e6])
def test_poisson(rate: float) -> None:
    low, high = max(0, int(rate - 8 * rate**0.5)), int(rate + 9 * rate**0.5) + 10
    check_distribution(sample_poisson(rate, DRAWS, words()), low, scipy.stats.poisson.pmf(np.arange(low, high), rate))


@pytest.mark.parametrize("variance", [0.1, 3.0, 1e4])
def test_skellam(variance: float) -> None:
    rate = variance / 2
    width = int(9 * variance**0.5) + 20
    low = max(0, int(rate) - width)
    part = scipy.stats.poisson.pmf(np.arange(low, int(rate) + width), rate)
    check_distribution(sample_skellam(variance, DRAWS, words()), -(len(part) - 1), np.convolve(part, part[::-1]))


@pytest.mark.parametrize(
    ("trials", "probability"), [(1, 0.5), (2, 0.9), (64, 0.5), (65, 0.5), (100, 0.5), (128, 0.5), (129, 0.5), (50, 0.01), (10**6, 1 / 3)]
)
def test_binomial(trials: int, probability: float) -> None:
    deviation = binomial_variance(trials, probability) ** 0.5
    low = max(0, int(trials * probability - 9 * deviation))
    points = np.arange(low, min(trials, int(trials * probability + 9 * deviation) + 10) + 1)
    check_distribution(sample_binomial(trials, probability, DRAWS, words()), low, scipy.stats.binom.pmf(points, trials, probability))


def test_a_wrong_distribution_is_noticed() -> None:
    # A sigma that is wrong by 1 % adds 200 to a chi-square of about 80.
    points = np.arange(-80, 81)
    with pytest.raises(AssertionError):
        check_distribution(sample_discrete_gaussian(10.0, DRAWS, words()), -80, np.exp(-(points**2) / (2 * 10.1**2)))


def test_fair_trials_are_counted_bit_by_bit() -> None:
    drawn = words(5)(3)
    expected = [int(word & np.uint64(0b111)).bit_count() for word in drawn >> np.uint64(61)]
    assert sample_binomial(3, 0.5, 3, words(5)).tolist() == expected


@pytest.mark.parametrize(
    "sample",
    [
        lambda kind: sample_discrete_gaussian(500.0, DRAWS, words(6), kind),
        lambda kind: sample_skellam(300.0, DRAWS, words(6), kind),
        lambda kind: sample_binomial(1000, 0.5, DRAWS, words(6), kind),
        lambda kind: sample_binomial(100, 0.5, DRAWS, words(6), kind),
        lambda kind: sample_binomial(300, 1.0, DRAWS, words(6), kind),
    ],
)
def test_short_words_hold_the_same_noise_modulo_their_range(sample: Callable[[type], np.ndarray]) -> None:
    np.testing.assert_array_equal(sample(np.uint8), sample(np.int64) % 256)


@pytest.mark.parametrize(
    "add",
    [
        lambda total: add_discrete_gaussian(total, 5.0, words()),
        lambda total: add_skellam(total, 5.0, words()),
        lambda total: add_binomial(total, 100, 0.5, words()),
    ],
)
def test_noise_is_refused_where_it_would_be_lost(add: Callable[[np.ndarray], None]) -> None:
    with pytest.raises(ValueError, match="total must be stored row by row"):
        add(np.zeros((2, 3), dtype=np.int64).T)


def test_large_rates_and_variances_are_split_into_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skellam_noise, "LARGEST_PART", 7)
    monkeypatch.setattr(binomial_noise, "LARGEST_PART", 7)
    # The caches keep no samplers of larger parts.
    monkeypatch.setattr(skellam_noise, "_sampler", skellam_noise._sampler.__wrapped__)
    monkeypatch.setattr(binomial_noise, "_parts", binomial_noise._parts.__wrapped__)
    check_distribution(sample_poisson(30, DRAWS, words()), 0, scipy.stats.poisson.pmf(np.arange(100), 30))
    check_distribution(sample_skellam(30, DRAWS, words()), -60, scipy.stats.skellam.pmf(np.arange(-60, 61), 15, 15))
    # 150 trials of probability 1/3 have the variance 100/3, like five parts of 30 trials; with 151 trials, one part has 31 trials.
    check_distribution(sample_binomial(151, Fraction(1, 3), DRAWS, words()), 0, scipy.stats.binom.pmf(np.arange(152), 151, 1 / 3))


@pytest.mark.parametrize(
    ("sample", "deviation"),
    [
        (lambda: sample_discrete_gaussian(1e12, DRAWS, words()), 1e12),
        (lambda: sample_discrete_laplace(1e12, DRAWS, words()), 2**0.5 * 1e12),
        (lambda: sample_skellam(2.0**26, DRAWS, words()), 2.0**13),
    ],
)
def test_the_largest_have_the_right_moments(sample: Callable[[], IntegerArray], deviation: float) -> None:
    # The margin is 5 sigma: the fourth moment is at most 6 times the squared variance.
    scaled = sample() / deviation
    assert abs(scaled.mean()) < 5 / DRAWS**0.5
    assert abs((scaled**2).mean() - 1) < 5 * (5 / DRAWS) ** 0.5


@pytest.mark.parametrize("sigma", [0.05, 0.2, 0.5, 1.0, 1.5, 1.99, 2.0, 3.0, 1e5, Fraction(1, 3)])
def test_variance_of_the_discrete_gaussian(sigma: float | Fraction) -> None:
    with mpmath.workdps(60):
        exact = mpmath.mpf(Fraction(sigma).numerator) / Fraction(sigma).denominator
        if exact < 4:
            terms = [(point, mpmath.exp(-(mpmath.mpf(point) ** 2) / (2 * exact**2))) for point in range(-60, 61)]
            variance = mpmath.fsum(point**2 * term for point, term in terms) / mpmath.fsum(term for _, term in terms)
        else:
            variance = exact**2
        assert abs(discrete_gaussian_variance(sigma) / variance - 1) <= mpmath.mpf(2) ** -53
    assert discrete_gaussian_variance(sigma) <= sigma**2


def test_variance_that_no_float_can_hold() -> None:
    # The variance 2 exp(-1 / (2 sigma**2)) is about 1e-322, and then below the smallest float.
    assert discrete_gaussian_variance(0.026) == float(2 * mpmath.exp(-1 / (2 * mpmath.mpf(0.026) ** 2))) > 0
    assert discrete_gaussian_variance(0.0258) == discrete_gaussian_variance(0.02) == discrete_gaussian_variance(1e-6) == 0.0


@pytest.mark.parametrize("scale", [1e-6, 0.01, 0.7, 1.0, 30.0, 1e12])
def test_variance_of_the_discrete_laplace(scale: float) -> None:
    with mpmath.workdps(60):
        decay = mpmath.exp(-1 / mpmath.mpf(scale))
        variance = float(2 * decay / (1 - decay) ** 2)
    # The relative error of exp() is the absolute error of its rounded exponent.
    assert discrete_laplace_variance(scale) == pytest.approx(variance, rel=1e-13)


def test_variance_of_a_binomial_number() -> None:
    assert binomial_variance(9, Fraction(1, 3)) == 2.0


def test_certain_and_missing_trials() -> None:
    assert sample_binomial(7, 0.0, 3, words()).tolist() == [0, 0, 0]
    assert sample_binomial(7, 1, (1, 2), words()).tolist() == [[7, 7]]
    assert sample_binomial(0, 0.5, 2, words()).tolist() == sample_binomial(0, 0.3, 2, words()).tolist() == [0, 0]


@pytest.mark.parametrize(
    "sample",
    [
        lambda size, source: sample_discrete_gaussian(np.float32(3.5), size, source),
        lambda size, source: sample_discrete_laplace(np.int64(3), size, source),
        lambda size, source: sample_poisson(Fraction(22, 7), size, source),
        lambda size, source: sample_skellam(np.float64(50.5), size, source),
        lambda size, source: sample_binomial(np.int64(1000), Fraction(1, 7), size, source),
        lambda size, source: sample_binomial(70, 0.5, size, source),
    ],
)
def test_shapes_seeds_and_releases(sample: Callable[[object, WordSource], IntegerArray]) -> None:
    table = sample((300, 200), words(3))
    assert table.shape == (300, 200)
    assert table.dtype == np.int64
    np.testing.assert_array_equal(sample(60_000, words(3)), table.ravel())
    assert (sample(60_000, words(4)) != table.ravel()).any()
    assert sample(0, words()).shape == (0,)
    # The words come from the operating system: two samples are equal with probability far below 1e-300.
    assert (sample(5000, secure_words) != sample(5000, secure_words)).any()


def test_secure_words_are_fresh() -> None:
    first, second = secure_words(8), secure_words(8)
    assert first.dtype == np.uint64
    assert first.shape == (8,)
    assert (first != second).all()


@pytest.mark.parametrize("bad", [0.0, -1.0, 1e13, float("nan"), float("inf"), True, "1", Fraction(-1, 3), 10**400])
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("sigma", lambda value: sample_discrete_gaussian(value, 1, words())),
        ("sigma", discrete_gaussian_variance),
        ("scale", lambda value: sample_discrete_laplace(value, 1, words())),
        ("scale", discrete_laplace_variance),
        ("rate", lambda value: sample_poisson(value, 1, words())),
        ("variance", lambda value: sample_skellam(value, 1, words())),
    ],
)
def test_bad_parameters_are_refused(name: str, call: Callable[[object], object], bad: object) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a number from .* to .*, got "):
        call(bad)


def test_other_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match=r"probability must be a number from 0 to 1, got 1\.5"):
        sample_binomial(3, 1.5, 1, words())
    with pytest.raises(ValueError, match=r"probability must be a number from 0 to 1, got -0\.1"):
        binomial_variance(3, -0.1)
    for trials in (-1, 2.5, 2**41):
        with pytest.raises(ValueError, match="trials must be a whole number from 0 to 1099511627776, got"):
            sample_binomial(trials, 0.5, 1, words())
    for size in (-1, 2.5, (3, -1), None):
        with pytest.raises(ValueError, match="size must be a whole number from 0 to 281474976710656, got"):
            sample_discrete_gaussian(1.0, size, words())
    with pytest.raises(ValueError, match=r"rng must be a numpy\.random\.Generator, such as"):
        seeded_words(np.random.RandomState(0))
