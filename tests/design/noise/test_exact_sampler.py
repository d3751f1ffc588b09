"""Exactness of the sampler.

Points under test: its bricks cover the curve, and every comparison agrees with 60-digit arithmetic.

Bounds on exp(-x) hold, and are tight, against mpmath at many more digits.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest

from quietbits.arrays import IntegerArray, WordArray
from quietbits.design.noise.binomial_noise import _sampler as binomial_sampler
from quietbits.design.noise.discrete_gaussian import GaussianCurve
from quietbits.design.noise.discrete_laplace import LaplaceCurve
from quietbits.design.noise.exact_sampler import APPROXIMATION_ERROR, ExactSampler, RatioCurve, cover_with_bricks, exponential_bounds
from quietbits.design.noise.skellam_noise import SkellamCurve
from quietbits.design.noise.skellam_noise import _poisson_sampler as poisson_sampler

Curve = GaussianCurve | LaplaceCurve | RatioCurve | SkellamCurve
Reference = Callable[[int], mpmath.mpf]
ROUNDING = mpmath.mpf(2) ** -180


def gaussian(sigma: Fraction) -> tuple[Curve, Reference]:
    scale = mpmath.mpf(sigma.numerator) / sigma.denominator
    return GaussianCurve(sigma), lambda point: mpmath.exp(-(mpmath.mpf(point) ** 2) / (2 * scale**2))


def laplace(scale: Fraction) -> tuple[Curve, Reference]:
    return LaplaceCurve(scale), lambda point: mpmath.exp(-abs(point) * mpmath.mpf(scale.denominator) / scale.numerator)


def poisson(rate: Fraction) -> tuple[Curve, Reference]:
    curve, mean = poisson_sampler(rate).curve, mpmath.mpf(rate.numerator) / rate.denominator
    assert isinstance(curve, RatioCurve)

    def reference(point: int) -> mpmath.mpf:
        if point < 0:
            return mpmath.mpf(0)
        return mean ** (point - curve.mode) * mpmath.factorial(curve.mode) / mpmath.factorial(point)

    return curve, reference


@cache
def bessel_ratios(variance: Fraction) -> list[mpmath.mpf]:
    """Return I_x / I_0 by Miller's recurrence, from a start that gives 60 digits."""
    last = 30 * (math.isqrt(int(variance)) + 3)
    mean, values = mpmath.mpf(variance.numerator) / variance.denominator, [mpmath.mpf(0), mpmath.mpf(1)]
    for point in range(last, 0, -1):
        values.append(values[-2] + 2 * point / mean * values[-1])
    return [value / values[-1] for value in reversed(values)]


def skellam(variance: Fraction) -> tuple[Curve, Reference]:
    ratios = bessel_ratios(variance)
    return SkellamCurve(variance), lambda point: ratios[abs(point)] if abs(point) < len(ratios) else mpmath.mpf(0)


def binomial(trials: int, probability: Fraction) -> tuple[Curve, Reference]:
    curve = binomial_sampler(trials, probability).curve
    assert isinstance(curve, RatioCurve)
    odds = mpmath.mpf(probability.numerator) / (probability.denominator - probability.numerator)

    def reference(point: int) -> mpmath.mpf:
        if not 0 <= point <= trials:
            return mpmath.mpf(0)
        return odds ** (point - curve.mode) * mpmath.binomial(trials, point) / mpmath.binomial(trials, curve.mode)

    return curve, reference


CURVES = {
    "gaussian, sigma 1/100": lambda: gaussian(Fraction(1, 100)),
    "gaussian, sigma 0.5": lambda: gaussian(Fraction(1, 2)),
    "gaussian, sigma 3.7": lambda: gaussian(Fraction(3.7)),
    "gaussian, sigma 63": lambda: gaussian(Fraction(63)),
    "gaussian, sigma 1e4": lambda: gaussian(Fraction(10**4)),
    "gaussian, sigma 1e12": lambda: gaussian(Fraction(10**12)),
    "laplace, scale 0.3": lambda: laplace(Fraction(3, 10)),
    "laplace, scale 20": lambda: laplace(Fraction(20)),
    "laplace, scale 1e5 / 3": lambda: laplace(Fraction(10**5, 3)),
    "poisson, rate 1e-6": lambda: poisson(Fraction(1e-6)),
    "poisson, rate 7.3": lambda: poisson(Fraction(7.3)),
    "poisson, rate 12345": lambda: poisson(Fraction(12345)),
    "skellam, variance 2e-6": lambda: skellam(Fraction(2e-6)),
    "skellam, variance 7.3": lambda: skellam(Fraction(7.3)),
    "skellam, variance 4100": lambda: skellam(Fraction(4100)),
    "binomial, 1 trial": lambda: binomial(1, Fraction(1, 3)),
    "binomial, 40 trials": lambda: binomial(40, Fraction(9, 10)),
    "binomial, 1e5 trials": lambda: binomial(10**5, Fraction(1, 3)),
}


@cache
def made(name: str) -> tuple[Curve, Reference]:
    curve, reference = CURVES[name]()
    return curve, cache(reference)


@cache
def sampler_of(curve: Curve) -> ExactSampler:
    return ExactSampler(curve)


@pytest.fixture(params=CURVES)
def curve_and_reference(request: pytest.FixtureRequest) -> tuple[Curve, Reference]:
    with mpmath.workdps(60):
        yield made(request.param)


class Script:
    """Source that returns given words, and then zeros, which select the mode's brick."""

    def __init__(self, *answers: list[int]) -> None:
        self.answers = [np.array(answer, dtype=np.uint64) for answer in answers]

    def __call__(self, count: int) -> WordArray:
        answer = self.answers.pop(0) if count and self.answers else np.zeros(count, dtype=np.uint64)
        assert len(answer) == count
        return answer


def some_points(curve: Curve, low: int, high: int) -> list[int]:
    rng = np.random.default_rng(1)
    near = range(curve.mode - 3, curve.mode + 4)
    return [*near, *rng.integers(low, high + 1, size=40).tolist()]


def test_the_curve_is_what_it_says(curve_and_reference: tuple[Curve, Reference]) -> None:
    curve, reference = curve_and_reference
    cover = sampler_of(curve).cover
    width = cover.right - cover.left
    for point in some_points(curve, cover.left - width, cover.right + width):
        exact = reference(point)
        assert abs(float(curve.approximate(np.array([point]))[0]) - exact) < APPROXIMATION_ERROR / 4
        for bits in (64, 192):
            low, high = curve.bounds(point, bits)
            scaled = exact * mpmath.mpf(2) ** bits
            # The reference of 60 digits has rounding errors as well.
            assert low <= scaled * (1 + ROUNDING)
            assert scaled * (1 - ROUNDING) <= high <= low + 3


def test_the_reference_for_skellam_noise_is_a_ratio_of_bessel_functions() -> None:
    with mpmath.workdps(60):
        for variance, point in ((Fraction(2e-6), 2), (Fraction(7.3), 9), (Fraction(4100), 1000)):
            mean = mpmath.mpf(variance.numerator) / variance.denominator
            exact = mpmath.besseli(point, mean) / mpmath.besseli(0, mean)
            assert abs(skellam(variance)[1](point) / exact - 1) < ROUNDING


@pytest.mark.parametrize("brick_bits", [12, 16])
def test_bricks_cover_the_curve(curve_and_reference: tuple[Curve, Reference], brick_bits: int) -> None:
    curve, reference = curve_and_reference
    cover = cover_with_bricks(curve, brick_bits)
    assert len(cover.starts) == 2**brick_bits
    width = 2**cover.block_bits
    starts, stacks = np.unique(cover.starts[: cover.wedges], return_counts=True)
    # The blocks lie side by side from one tail to the other.
    np.testing.assert_array_equal(starts, np.arange(cover.left + 1, cover.right, width))
    full, counts = np.unique(cover.starts[: cover.rectangles], return_counts=True)
    rectangles = dict(zip(full.tolist(), counts.tolist(), strict=True))
    layers: dict[int, list[int]] = {}
    for start, layer in zip(cover.starts[cover.rectangles : cover.wedges].tolist(), cover.wedge_layers.tolist(), strict=True):
        layers.setdefault(start, []).append(layer)
    for start, stack in zip(starts.tolist(), stacks.tolist(), strict=True):
        ends = [cover.layers * reference(point) for point in (start, start + width - 1)]
        assert rectangles.get(start, 0) <= min(ends) * (1 + ROUNDING)
        assert max(ends) * (1 - ROUNDING) <= stack
        assert layers[start] == list(range(rectangles.get(start, 0), stack))
    # The shells of the tails are at least as high as the curve at their inner ends.
    tail_bricks = cover.tails - cover.wedges
    assert tail_bricks >= 1
    assert cover.tails <= 2**brick_bits
    for shell in range(64):
        height = tail_bricks * mpmath.mpf(2) ** (cover.block_bits - cover.shell_bits - shell - 2)
        for point in (cover.right + (shell << cover.shell_bits), cover.left - (shell << cover.shell_bits)):
            assert cover.layers * reference(point) <= height


def test_tails_get_as_many_bricks_as_they_need() -> None:
    curve = LaplaceCurve(Fraction(60))
    cover = cover_with_bricks(curve, 22)
    tail_bricks = cover.tails - cover.wedges
    assert tail_bricks > 1
    for point in (cover.right, cover.left):
        low, high = curve.bounds(point, 64)
        assert 0 < cover.layers * high * 2 ** (cover.shell_bits + 2 - cover.block_bits) <= tail_bricks << 64
        # A single brick would not suffice.
        assert cover.layers * low * 2 ** (cover.shell_bits + 2 - cover.block_bits) > 1 << 64


def draw(sampler: ExactSampler, bricks: IntegerArray, offsets: list[int], *uniforms: list[int]) -> IntegerArray:
    first = [(brick << (64 - sampler.brick_bits)) + offset for brick, offset in zip(bricks.tolist(), offsets, strict=True)]
    return sampler.draw(len(first), Script(first, *uniforms))


def test_every_wedge_is_decided_as_in_60_digits(curve_and_reference: tuple[Curve, Reference]) -> None:
    curve, reference = curve_and_reference
    sampler = sampler_of(curve)
    cover = sampler.cover
    rng = np.random.default_rng(2)
    chosen = range(cover.rectangles, cover.wedges)
    if len(chosen) > 60:
        chosen = rng.choice(chosen, size=60, replace=False).tolist()
    bricks, offsets, uniforms, expected = [], [], [], []
    for brick in chosen:
        offset = int(rng.integers(0, 2**cover.block_bits))
        point = int(cover.starts[brick]) + offset
        threshold = (cover.layers * reference(point) - int(cover.wedge_layers[brick - cover.rectangles])) * mpmath.mpf(2) ** 64
        # Uniform numbers near the threshold need whole-number comparisons and a second word most often; the test adds random numbers.
        nearest = int(mpmath.floor(threshold))
        for uniform in (*range(nearest - 1, nearest + 3), nearest - 2**24, nearest + 2**24, *rng.integers(0, 2**63, size=2).tolist()):
            if 0 <= uniform < 2**64 and point != cover.starts[0]:
                bricks.append(brick)
                offsets.append(offset)
                uniforms.append(uniform)
                # Words after the script are zero, so U is exactly `uniform` / 2**64.
                expected.append(point if uniform < threshold else int(cover.starts[0]))
    drawn = draw(sampler, np.array(bricks, dtype=np.int64), offsets, uniforms)
    assert drawn.tolist() == expected
    if len(chosen) > 20:
        assert 0.2 < np.mean(drawn != cover.starts[0]) < 0.8


def test_more_words_decide_where_one_cannot() -> None:
    sampler = ExactSampler(GaussianCurve(Fraction(1)))
    cover = sampler.cover
    brick = next(number for number in range(cover.rectangles, cover.wedges) if cover.starts[number] == 1)
    with mpmath.workdps(80):
        threshold = cover.layers * mpmath.exp(-mpmath.mpf(1) / 2) - int(cover.wedge_layers[brick - cover.rectangles])
        digits = int(mpmath.floor(threshold * mpmath.mpf(2) ** 192))
    first, second, third = digits >> 128, (digits >> 64) % 2**64, digits % 2**64
    for last, expected in ((third - 2**20, 1), (third + 2**20, 0)):
        # Only the third word decides whether U is below the threshold.
        assert draw(sampler, np.array([brick]), [0], [first], [second], [last]).tolist() == [expected]


def test_the_tails_are_decided_as_in_60_digits(curve_and_reference: tuple[Curve, Reference]) -> None:
    for shell in (0, 1, 63, 64, 70):
        for left in (False, True):
            check_tail(*curve_and_reference, shell, left=left)


def check_tail(curve: Curve, reference: Reference, shell: int, *, left: bool) -> None:
    """Check the draws on one side of a curve, a number of shells away."""
    sampler = sampler_of(curve)
    cover = sampler.cover
    offset = int(np.random.default_rng(shell).integers(0, 2**cover.shell_bits))
    distance = (shell << cover.shell_bits) + offset
    point = cover.left - distance if left else cover.right + distance
    # The words have as many leading zeros as shells are skipped.
    zeros = [2**63 >> shell] if shell < 64 else [0]
    further = [] if shell < 64 else [[2**63 >> (shell - 64)]]
    height = (cover.tails - cover.wedges) * mpmath.mpf(2) ** (cover.block_bits - cover.shell_bits - shell - 2)
    threshold = cover.layers * reference(point) / height * mpmath.mpf(2) ** 64
    assert threshold <= mpmath.mpf(2) ** 64
    nearest = int(mpmath.floor(threshold))
    side = offset + (2**63 if left else 0)
    for uniform in (nearest - 1, nearest, nearest + 1, nearest // 2, 2**63):
        # Words after the script are zero, so U is exactly uniform / 2**64. U = 0 would need as many words as f has leading zeros.
        if 0 < uniform < 2**64:
            drawn = draw(sampler, np.array([cover.wedges]), [0], [side, *zeros], *further, [uniform])
            assert drawn.tolist() == [point if uniform < threshold else int(cover.starts[0])]


def test_an_empty_brick_is_drawn_again() -> None:
    sampler = ExactSampler(GaussianCurve(Fraction(100)))
    assert sampler.cover.tails < 2**16
    empty = (2**16 - 1) << 48
    assert sampler.draw(2, Script([empty, 0], [empty])).tolist() == [sampler.cover.starts[0]] * 2


@pytest.mark.parametrize(("sigma", "brick_bits"), [(Fraction(2), 8), (Fraction(5, 2), 7), (Fraction(70), 10), (Fraction(150), 11)])
def test_enumeration_of_all_words_of_few_bits_gives_the_distribution(sigma: Fraction, brick_bits: int) -> None:
    # A word determines its brick, the point within the brick, and 6 bits of U, so that points are kept in proportion to the curve's height.
    curve, reference = gaussian(sigma)
    sampler = ExactSampler(curve, brick_bits)
    cover = sampler.cover
    width = 2**cover.block_bits
    first = [(brick << (64 - brick_bits)) + offset for brick in range(cover.wedges) for offset in range(width)]
    counts: dict[int, int] = {}
    for uniform in range(64):
        drawn = sampler.draw(len(first), Script(first, [uniform << 58] * ((cover.wedges - cover.rectangles) * width)))
        for point, count in zip(*np.unique(drawn, return_counts=True), strict=True):
            counts[int(point)] = counts.get(int(point), 0) + int(count)
    del counts[int(cover.starts[0])]  # The following number counts rejected points.
    assert set(range(cover.left + 1, cover.right)) - counts.keys() <= {int(cover.starts[0])}
    with mpmath.workdps(60):
        for point, count in counts.items():
            assert count == int(mpmath.ceil(64 * cover.layers * reference(point)))


def exponents() -> list[Fraction]:
    rng = np.random.default_rng(0)
    magnitudes = 2.0 ** rng.uniform(-80, 9, size=400)
    rationals = [Fraction(int(top), int(bottom)) for top, bottom in rng.integers(1, 10**6, size=(400, 2))]
    return [Fraction(0), Fraction(1), Fraction(1, 16), Fraction(10**30 + 1, 10**30), *map(Fraction, magnitudes.tolist()), *rationals]


@pytest.mark.parametrize("bits", [1, 7, 64, 128, 1000])
def test_bounds_enclose_the_exponential(bits: int) -> None:
    with mpmath.workprec(bits + 200):
        for exponent in exponents():
            value = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator) * mpmath.mpf(2) ** bits
            low, high = exponential_bounds(exponent, bits)
            assert 0 <= low <= value <= high <= 2**bits
            assert high - low <= 2


@pytest.mark.parametrize("exponent", [Fraction(64), Fraction(10**9), Fraction(10**40, 3)])
def test_what_is_below_one_unit_is_between_zero_and_one(exponent: Fraction) -> None:
    assert exponential_bounds(exponent, 64) == (0, 1)
