"""Tests of Pólya noise.

Points under test: exact laws, sums of shares, close calls, variances and words that are not random.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from quietbits.design.noise import polya_noise
from quietbits.design.noise.polya_noise import polya_variance, sample_polya
from quietbits.design.noise.random_words import WordSource

DRAWS = 200_000
# Each test would fail by chance for about one seed in a million.
LEAST = 1e-6


def p_value(drawn: np.ndarray, shape: float, scale: float) -> float:
    """Return the p-value of a chi-square test of draws in cells of equal counts."""
    part = stats.nbinom.pmf(np.arange(math.ceil(45 * scale) + 60), shape, -math.expm1(-1 / scale))
    law = np.convolve(part, part[::-1])
    cumulated, middle = np.cumsum(law), len(part) - 1
    edges = np.unique(np.quantile(drawn, np.linspace(0, 1, 41)[1:-1]).round())
    expected = np.diff([0.0, *(cumulated[middle + int(edge)] for edge in edges), 1.0]) * len(drawn)
    observed = np.bincount(np.searchsorted(edges, drawn), minlength=len(expected))
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


@pytest.mark.parametrize(
    ("shape", "scale"), [(Fraction(1, 3), Fraction(5, 2)), (Fraction(1, 40), 37.3), (1, 3.0), (2.5, 0.3), (Fraction(1, 7), 1000.0)]
)
def test_draws_have_the_exact_law(shape: float | Fraction, scale: float | Fraction) -> None:
    drawn = sample_polya(shape, scale, DRAWS, np.random.default_rng(5))
    assert p_value(drawn, float(shape), float(scale)) > LEAST


def test_shares_add_up_to_discrete_laplace_noise() -> None:
    shares = sample_polya(Fraction(1, 20), 6.0, (20, DRAWS // 4), np.random.default_rng(6))
    drawn = shares.sum(axis=0)
    ratio = math.exp(-1 / 6)
    points = np.arange(-30, 31)
    expected = (1 - ratio) / (1 + ratio) * ratio ** np.abs(points) * len(drawn)
    observed = np.array([np.count_nonzero(drawn == point) for point in points])
    rest = len(drawn) - observed.sum()
    assert stats.chisquare([*observed, rest], [*expected, len(drawn) - expected.sum()]).pvalue > LEAST


def test_the_exact_decision_agrees_with_floating_point(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without an allowance floating point decides alone, with a large one the whole numbers do.
    usual = sample_polya(Fraction(1, 2), 11.0, 3000, np.random.default_rng(7))
    monkeypatch.setattr(polya_noise, "ALLOWANCE", 0.05)
    careful = sample_polya(Fraction(1, 2), 11.0, 3000, np.random.default_rng(7))
    assert (usual == careful).mean() > 0.999


def test_short_types_hold_residues() -> None:
    wide = sample_polya(1, 500.0, 5000, np.random.default_rng(8))
    narrow = sample_polya(1, 500.0, 5000, np.random.default_rng(8), np.uint8)
    assert (narrow == wide.astype(np.uint8)).all()
    assert np.abs(wide).max() > 255


def test_tiny_shares_are_mostly_zero() -> None:
    drawn = sample_polya(Fraction(1, 10**9), 1e6, 1000, np.random.default_rng(9))
    assert not drawn.any()
    assert sample_polya(1, 2.0, (0, 4), np.random.default_rng(9)).shape == (0, 4)


def test_the_variance_is_that_of_the_negative_binomial_numbers() -> None:
    for shape, scale in ((0.2, 3.0), (1.0, 0.5), (4.0, 80.0)):
        success = -math.expm1(-1 / scale)
        assert polya_variance(shape, scale) == pytest.approx(2 * stats.nbinom.var(shape, success), rel=1e-12)


class Constant(WordSource):
    """Words that are all the same."""

    def __init__(self, word: int) -> None:
        self.word = word

    def __call__(self, count: int) -> np.ndarray:
        return np.full(count, self.word, dtype=np.uint64)


def test_runs_of_a_constant_source_end() -> None:
    with pytest.raises(ValueError, match="words must be random"):
        polya_noise._coin_runs(3, Constant(0))
    assert polya_noise._coin_runs(2, Constant(2**64 - 1)).tolist() == [0, 0]
    assert polya_noise._coin_runs(2, Constant(2**60)).tolist() == [3, 3]


def test_bad_arguments_are_refused() -> None:
    for arguments, reason in (((0, 1.0), "shape must be"), ((1, 0.0), "scale must be"), ((2e6, 1.0), "shape must be")):
        with pytest.raises(ValueError, match=reason):
            sample_polya(*arguments, 1, np.random.default_rng(0))
