"""Roots of smooth, stiff and jumping functions are on the safe side, with few evaluations."""

import math
from collections.abc import Callable

import pytest

from quietbits.errors import ConvergenceError, InfeasibleError
from quietbits.progress import reporting
from quietbits.solvers.numerics.safe_root import falling_root, safe_root


@pytest.mark.parametrize(
    ("function", "target"),
    [
        (lambda x: x**2, 2.0),
        (lambda x: x, 1e-3),
        (math.expm1, 3.0),
        (lambda x: x**0.1, 1.1),
        (lambda x: 1e-3 * x + x**5, 7.0),
        (lambda x: 1e-9 if x < 0.7 else x - 0.7 + 1e-9, 0.2),
    ],
)
@pytest.mark.parametrize("start", [1e-6, 0.3, 1e3])
def test_the_root_is_safe_and_close(function: Callable[[float], float], target: float, start: float) -> None:
    seen = []

    def watched(argument: float) -> float:
        seen.append(argument)
        return function(argument)

    root = safe_root(watched, target, start=min(start, 700.0), low=1e-7, high=700.0, tolerance=1e-6)
    assert root in seen
    assert 0 <= target - function(root) <= 1e-6


def test_a_smooth_function_takes_few_evaluations() -> None:
    seen: list[float] = []
    safe_root(lambda x: seen.append(x) or math.sqrt(x) * (1 + x), 3.0, start=1.0, low=0.05, high=20.0, tolerance=1e-6)
    assert len(seen) <= 8


def test_a_jump_is_approached_from_the_safe_side() -> None:
    root = safe_root(lambda x: x if x < 1 else x + 1, 1.5, start=0.3, low=1e-3, high=1e3, tolerance=1e-6)
    assert 1 - 2e-6 <= root < 1


def test_targets_out_of_reach_are_refused() -> None:
    with pytest.raises(InfeasibleError, match=r"scale would have to be above 20, where 20 is reached of the target 30"):
        safe_root(lambda x: x, 30.0, start=1.0, low=0.1, high=20.0, tolerance=1e-6, name="scale")
    with pytest.raises(InfeasibleError, match=r"scale would have to be below 0\.1, where 0\.1 exceeds the target 0\.01"):
        safe_root(lambda x: x, 0.01, start=1.0, low=0.1, high=20.0, tolerance=1e-6, name="scale")


def test_a_function_that_never_comes_near_is_given_up() -> None:
    with pytest.raises(ConvergenceError, match="argument: the target 1 was not met in 100 evaluations"):
        safe_root(lambda _: 0.5, 1.0, start=1.0, low=1e-300, high=1e300, tolerance=1e-6)


@pytest.mark.parametrize("start", [1e-4, 1.0, 50.0, 1e3])
def test_a_function_may_be_zero_and_infinite_at_its_ends(start: float) -> None:
    def function(argument: float) -> float:
        return 0.0 if argument < 1e-2 else math.inf if argument > 3.0 else argument**2

    root = safe_root(function, 2.0, start=start, low=1e-5, high=1e4, tolerance=1e-9)
    assert 0 <= 2.0 - root**2 <= 1e-9
    edge = safe_root(function, 100.0, start=start, low=1e-5, high=1e4, tolerance=1e-9)
    assert 3.0 * (1 - 1e-6) <= edge <= 3.0


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 2 - x**2,
        lambda x: 3 - x - 2 * (x > 1.7),
        lambda x: math.log(1e6) - x**2 / 2 - math.log1p(x),
        lambda x: 1.0 if x < 2.5 else -5.0,
        lambda x: 1 - 1e-9 * x**9,
        lambda x: math.inf if x < 1 else -math.inf,
    ],
)
def test_a_falling_root_is_on_the_safe_side_and_close(function: Callable[[float], float]) -> None:
    tried: list[float] = []

    def counted(argument: float) -> float:
        tried.append(argument)
        return function(argument)

    root = falling_root(counted, 0.0, 11.0, tolerance=1e-9, jump=1e-10)
    assert root in tried
    assert function(root) <= 0
    assert function(root) >= -1e-9 or function(root - 2e-9) > 0
    assert len(tried) < 60


def test_the_estimate_of_the_evaluations_falls_and_is_near() -> None:
    heard: list[tuple[int, int]] = []
    with reporting(lambda done, total, _: heard.append((done, total))):
        safe_root(lambda x: math.sqrt(x) * (1 + x), 3.0, start=1.0, low=0.05, high=20.0, tolerance=1e-6)
    assert heard[0][1] <= 12
    left = [total - done for done, total in heard[1::2]]
    assert left == sorted(left, reverse=True)
    assert heard[-1][0] <= 8
    heard.clear()
    with reporting(lambda done, total, _: heard.append((done, total))):
        falling_root(lambda x: 2 - x**2, 0.0, 3.0, tolerance=1e-9, jump=1e-12)
    assert heard[4][1] <= 12
