"""Moments of a loss that is there with a small probability: the binomial sum in many digits."""

import math

import mpmath
import numpy as np
import pytest

from quietbits.solvers.accounting.sampled_moment import sampled_log_moment


@pytest.mark.parametrize("population", [1, 2, 10, 10**6])
@pytest.mark.parametrize("scale", [1e-9, 0.1, 3.0])
@pytest.mark.parametrize("order", [2, 3, 40, 200])
def test_it_is_the_binomial_sum_and_not_below(population: int, scale: float, order: int) -> None:
    chosen = np.arange(2, order + 1)
    # Moments of a lognormal number.
    exponents = scale * chosen * (chosen - 1) / 2
    computed = sampled_log_moment(exponents, population)
    with mpmath.workdps(60):
        share = mpmath.mpf(1) / population
        moments = [mpmath.mpf(1), mpmath.mpf(1), *(mpmath.exp(mpmath.mpf(value)) for value in exponents.tolist())]
        terms = [math.comb(order, j) * share**j * (1 - share) ** (order - j) * moment for j, moment in enumerate(moments)]
        exact = mpmath.log(mpmath.fsum(terms))
    assert exact <= computed <= exact * (1 + mpmath.mpf(10) ** -9)
