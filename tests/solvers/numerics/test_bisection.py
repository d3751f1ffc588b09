"""Where a condition changes: every whole number up to a few hundred, and brackets of two numbers that nothing lies between."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from quietbits.errors import ConvergenceError
from quietbits.solvers.numerics.bisection import bisect, bisect_each, brent_root, first_true


@pytest.mark.parametrize("growth", [2, 4, 10])
@pytest.mark.parametrize("low", [-3, 0, 1, 7])
def test_the_first_number_of_all(low: int, growth: int) -> None:
    for high in range(low, low + 30):
        for threshold in range(low - 2, high + 3):
            tried: list[int] = []

            def holds(number: int, threshold: int = threshold, tried: list[int] = tried) -> bool:
                tried.append(number)
                return number >= threshold

            assert first_true(low, high, holds, growth=growth) == min(max(threshold, low), high)
            assert all(low <= number < high for number in tried)
            assert len(tried) == len(set(tried))


def test_large_numbers_are_not_tried_for_a_small_answer() -> None:
    tried: list[int] = []

    def holds(number: int) -> bool:
        tried.append(number)
        return number >= 100

    assert first_true(1, 10**15, holds) == 100
    assert max(tried) == 128
    assert len(tried) <= 16


def test_neighbouring_numbers() -> None:
    found = bisect(lambda number: number**3 <= 5, 1.0, 2.0, 200)
    assert found.holds**3 <= 5 < found.fails**3
    assert found.fails == math.nextafter(found.holds, 2.0)
    falling = bisect(lambda number: number**3 > 5, 2.0, 1.0, 200)
    assert (falling.holds, falling.fails) == (found.fails, found.holds)


def test_ratios_are_halved() -> None:
    found = bisect(lambda number: number <= 3e-60, 1e-100, 1e100, 12, geometric=True)
    assert found.holds <= 3e-60 < found.fails
    assert math.log(found.fails / found.holds) == pytest.approx(math.log(1e100) * 2 / 2**12, rel=1e-9)
    same = bisect(lambda number: pytest.fail(f"{number} was tried"), 0.3, 0.3, 5, geometric=True)
    assert (same.holds, same.fails) == (0.3, 0.3)


def test_each_entry_has_its_bracket() -> None:
    targets = np.array([[2.0, 3.0], [5.0, 7.5]])
    found = bisect_each(lambda points: points**2 <= targets, np.zeros((2, 2)), np.full((2, 2), 4.0), 40)
    assert np.all((found.holds**2 <= targets) & (targets < found.fails**2))
    np.testing.assert_allclose(found.fails - found.holds, 4.0 * 2.0**-40)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-8, 1e-14])
def test_roots_are_found_in_as_many_steps_as_scipy_takes(tolerance: float) -> None:
    functions = [
        (lambda x: math.log(max(math.exp(-(x**2)), 1e-320) / 1e-6), 0.0, 40.0),
        (lambda x: x**9 - 0.3, 0.0, 7.0),
        (lambda x: -math.atan(50 * (x - 1.3)), -4.0, 5.0),
        (lambda x: 1.0 if x < 0.7 else -2.0, 0.0, 3.0),
        (lambda x: x - 2.0, 2.0, 3.0),
        (lambda x: x - 3.0, 2.0, 3.0),
    ]
    for function, low, high in functions:
        tried: list[float] = []
        found = brent_root(lambda x, function=function, tried=tried: tried.append(x) or function(x), low, high, tolerance)
        expected, report = brentq(function, low, high, xtol=tolerance, rtol=1e-12, full_output=True)
        assert found == pytest.approx(expected, rel=1e-15, abs=1e-15)
        assert len(tried) <= report.function_calls


def test_a_root_that_is_not_found_is_no_answer() -> None:
    with pytest.raises(ConvergenceError, match="not found to 1e-09 in 100 steps"):
        brent_root(lambda x: 1.0 if x < 1e30 else -1.0, 0.0, 1e300, 1e-9)
