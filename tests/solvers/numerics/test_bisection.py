"""Tests of the search for the number at which a condition changes.

Points under test: every whole number up to a few hundred, and brackets of adjacent numbers.
"""

import functools
import math

import numpy as np
import pytest

from quietbits.progress import reporting
from quietbits.solvers.numerics.bisection import bisect, bisect_each, first_true


@pytest.mark.parametrize("growth", [2, 4, 10])
@pytest.mark.parametrize("low", [-3, 0, 7])
@pytest.mark.parametrize("start", [None, -10, 0, 9, 50])
def test_the_first_number_of_all(start: int | None, low: int, growth: int) -> None:
    for high in range(low, low + 30):
        for threshold in range(low - 2, high + 3):
            tried: list[int] = []

            def holds(number: int, threshold: int = threshold, tried: list[int] = tried) -> bool:
                tried.append(number)
                return number >= threshold

            assert first_true(low, high, holds, growth=growth, start=start) == min(max(threshold, low), high)
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
    assert first_true(10, 9, lambda number: pytest.fail(f"{number} was tried"), start=12) == 10


@pytest.mark.parametrize("threshold", [9_900_000, 10_000_000, 10_200_000])
def test_a_good_guess_saves_half_of_the_trials(threshold: int) -> None:
    tried: dict[int | None, list[int]] = {None: [], 10**7: []}

    def holds(start: int | None, number: int) -> bool:
        tried[start].append(number)
        return number >= threshold

    for start in tried:
        assert first_true(1, 10**15, functools.partial(holds, start), start=start) == threshold
    assert len(tried[10**7]) < len(tried[None]) / 2 + 1


def test_neighbouring_numbers() -> None:
    result = bisect(lambda number: number**3 <= 5, 1.0, 2.0, 200)
    assert result.holds**3 <= 5 < result.fails**3
    assert result.fails == math.nextafter(result.holds, 2.0)
    falling = bisect(lambda number: number**3 > 5, 2.0, 1.0, 200)
    assert (falling.holds, falling.fails) == (result.fails, result.holds)


def test_ratios_are_halved() -> None:
    result = bisect(lambda number: number <= 3e-60, 1e-100, 1e100, 12, geometric=True)
    assert result.holds <= 3e-60 < result.fails
    assert math.log(result.fails / result.holds) == pytest.approx(math.log(1e100) * 2 / 2**12, rel=1e-9)
    same = bisect(lambda number: pytest.fail(f"{number} was tried"), 0.3, 0.3, 5, geometric=True)
    assert (same.holds, same.fails) == (0.3, 0.3)


def test_each_entry_has_its_bracket() -> None:
    targets = np.array([[2.0, 3.0], [5.0, 7.5]])
    brackets = bisect_each(lambda points: points**2 <= targets, np.zeros((2, 2)), np.full((2, 2), 4.0), 40)
    assert np.all((brackets.holds**2 <= targets) & (targets < brackets.fails**2))
    np.testing.assert_allclose(brackets.fails - brackets.holds, 4.0 * 2.0**-40)


@pytest.mark.parametrize("start", [None, 0, 9, 50])
@pytest.mark.parametrize("growth", [2, 4])
def test_searches_state_the_largest_number_of_evaluations(growth: int, start: int | None) -> None:
    for high in (1, 2, 30, 400):
        for threshold in range(high + 1):
            heard: list[tuple[int, int]] = []
            with reporting(lambda done, total, _, heard=heard: heard.append((done, total))):
                first_true(0, high, lambda number, threshold=threshold: number >= threshold, growth=growth, start=start)
            totals = [total for _, total in heard]
            assert totals == sorted(totals, reverse=True)
            assert all(done <= total for done, total in heard)
    with reporting(lambda done, total, _: heard.append((done, total))):
        heard.clear()
        bisect(lambda number: number <= 0.3, 0.0, 1.0, 5)
    assert heard == [(done, 5) for done in range(1, 6)]
