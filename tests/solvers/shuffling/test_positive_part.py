"""The expected positive part of a sum: above exact sums, and close to them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from quietbits.solvers.shuffling.positive_part import positive_part_bound


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 5), st.sampled_from([1e-4, 1e-2, 0.5]))
@settings(max_examples=60, deadline=None)
def test_sums_of_a_few_variables(seed: int, values: int, count: int, accuracy: float) -> None:
    rng = np.random.default_rng(seed)
    numbers, probabilities = rng.normal(size=values) * 10 ** rng.uniform(-3, 3), rng.dirichlet(np.ones(values + 1))
    every, weights = np.append(numbers, 0.0), probabilities
    exact = sum(
        math.prod(weights[list(chosen)]) * max(0.0, every[list(chosen)].sum())
        for chosen in itertools.product(range(values + 1), repeat=count)
    )
    bound = positive_part_bound(numbers, probabilities[:-1], probabilities[-1], count, accuracy)
    assert exact / count * (1 - 1e-12) <= bound
    assert bound <= exact / count * (1 + 3 * accuracy) + 1e-12 * np.abs(numbers).max()


@pytest.mark.parametrize("count", [10, 1000, 10**5])
@pytest.mark.parametrize("up", [0.5, 0.45, 0.01])
def test_biased_tosses(count: int, up: float) -> None:
    # Shifted so that the mean is negative by up to five standard deviations of the sum.
    for deviations in (0.0, 2.0, 5.0):
        shift = up + deviations * math.sqrt(up * (1 - up) / count)
        heads = np.arange(count + 1)
        exact = float(binom.pmf(heads, count, up) @ np.maximum(heads - count * shift, 0.0)) / count
        bound = positive_part_bound(np.array([1 - shift, -shift]), np.array([up, 1 - up]), 0.0, count, 1e-2)
        assert (bound == 0) if exact == 0 else (1 - 1e-10 <= bound / exact < 1.02)


def test_many_variables_are_normal() -> None:
    count, mean = 10**6, -0.004
    deviation = 1e3
    exact = deviation * norm.pdf(mean * 1e3) + count * mean * norm.cdf(mean * 1e3)
    bound = positive_part_bound(np.array([1.0, -1.0]), np.array([0.5 + mean / 2, 0.5 - mean / 2]), 0.0, count, 1e-2)
    assert bound * count / exact == pytest.approx(1, abs=0.02)


def test_nothing_positive_is_zero() -> None:
    assert positive_part_bound(np.array([-1.0, -2.0]), np.array([0.5, 0.5]), 0.0, 10, 1e-2) == 0.0


def test_a_larger_measure_has_a_larger_bound() -> None:
    values, probabilities = np.array([1.0, -1.5]), np.array([0.3, 0.3])
    whole = positive_part_bound(values, probabilities, 0.4, 50, 1e-3)
    assert positive_part_bound(values, probabilities * 1.001, 0.4, 50, 1e-3) > whole


def test_large_rare_values_do_not_overflow() -> None:
    # Randomised response among 62 letters at epsilon 16.2, for two clients: the lattice alone says 1e304.
    value, up = 1.09093509e7, 9.16639613e-8
    bound = positive_part_bound(np.array([-value, value]), np.array([up, up]), 1 - 2 * up, 2, 1e-2)
    exact = (2 * value * up**2 + value * 2 * up * (1 - 2 * up)) / 2
    assert exact <= bound <= value * up * (1 + 1e-9)
    assert exact >= value * up * (1 - 1e-6)
