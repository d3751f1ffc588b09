"""Tests of the rate-distortion function.

Points under test: closed forms, certificates, edges, and agreement of two methods.

The tests also cover the Newton equations of the interior point method.
"""

import math

import numpy as np
import pytest

from quietbits.arrays import FloatArray
from quietbits.errors import ConvergenceError, InfeasibleError
from quietbits.solvers.limits.blahut_arimoto import ReducedProblem
from quietbits.solvers.limits.rate_distortion import METHODS, RateDistortion, _NewtonSystem, _Point, rate_distortion

TOLERANCES = {"interior-point": 1e-8, "blahut-arimoto": 1e-4}


def solved(source: FloatArray, distortion: FloatArray, target: float, method: str) -> RateDistortion:
    result = rate_distortion(source, distortion, target, tolerance=TOLERANCES[method], method=method)
    assert 0 <= result.gap <= TOLERANCES[method]
    return result


def entropy(*probabilities: float) -> float:
    return -sum(p * math.log2(p) for p in probabilities if p > 0)


def mutual_information(source: FloatArray, channel: FloatArray) -> float:
    """Return H(Y) - H(Y | X) in bits."""
    output = source @ channel
    return entropy(*output) - sum(p * entropy(*row) for p, row in zip(source, channel, strict=True))


def hard_problem(seed: int) -> tuple[FloatArray, FloatArray, float]:
    """Return a random source, distortions with forbidden pairs, and a target on the curve."""
    rng = np.random.default_rng(seed)
    rows, columns = (int(size) for size in rng.integers(2, 40, 2))
    points, letters = rng.normal(size=rows), rng.normal(size=columns)
    distortion = [
        rng.random((rows, columns)),
        rng.random((rows, columns)) ** 8,
        np.where(rng.random((rows, columns)) < 0.3, np.inf, rng.random((rows, columns))),
        rng.integers(0, 3, (rows, columns)).astype(float),
        10 ** rng.uniform(-6, 3, (rows, columns)),
        np.abs(points[:, None] - letters),
        (points[:, None] - letters) ** 2,
        np.tile(rng.random((rows, columns)), (1, 2)),
    ][seed % 8]
    distortion[np.isinf(distortion).all(axis=1), 0] = 1.0
    source = np.maximum(rng.dirichlet(np.full(rows, rng.choice([0.1, 1.0, 5.0]))), 1e-30)
    source /= source.sum()
    least = float(source @ distortion.min(axis=1))
    most = float(np.min(source @ np.where(np.isinf(distortion), 1.0, distortion)))
    return source, distortion, least + rng.choice([1e-3, 0.1, 0.4, 0.9]) * (most - least)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ones", [0.5, 0.3, 0.01])
@pytest.mark.parametrize("share", [1e-9, 0.01, 0.5, 0.9])
def test_bernoulli_source_with_hamming_distortion(method: str, ones: float, share: float) -> None:
    target = ones * share
    result = solved(np.array([1 - ones, ones]), 1 - np.eye(2), target, method)
    exact = entropy(ones, 1 - ones) - entropy(target, 1 - target)
    assert result.lower_bound <= exact <= result.rate


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("target", [0.001, 0.3, 0.9])
def test_uniform_source_with_hamming_distortion(method: str, target: float) -> None:
    result = solved(np.full(17, 1 / 17), 1 - np.eye(17), target, method)
    assert result.lower_bound <= math.log2(17) - entropy(target, 1 - target) - target * math.log2(16) <= result.rate
    assert result.slope == pytest.approx(math.log2(16 * (1 - target) / target), rel=0.01)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("target", [0.0, 0.1, 0.25, 0.5, 0.999])
def test_erasures_with_forbidden_errors_have_a_straight_curve(method: str, target: float) -> None:
    distortion = np.array([[0, np.inf, 1], [np.inf, 0, 1]])
    result = solved(np.array([0.5, 0.5]), distortion, target, method)
    assert result.lower_bound <= 1 - target <= result.rate
    assert result.channel[0, 1] == result.channel[1, 0] == 0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("target", [0.01, 0.25])
def test_discretised_gaussian_source(method: str, target: float) -> None:
    points = np.linspace(-6, 6, 241)
    source = np.exp(-(points**2) / 2)
    result = solved(source / source.sum(), (points[:, None] - points) ** 2, target, method)
    assert result.rate == pytest.approx(0.5 * math.log2(1 / target), abs=2e-3)


@pytest.mark.parametrize("seed", range(8))
def test_certificates_hold_when_computed_again(seed: int) -> None:
    source, distortion, target = hard_problem(seed)
    result = [solved(source, distortion, target, method) for method in METHODS]
    for point in result:
        np.testing.assert_allclose(point.channel.sum(axis=1), 1, atol=1e-12)
        spent = np.where(point.channel > 0, distortion, 0) * point.channel
        assert float(source @ spent.sum(axis=1)) <= target * (1 + 1e-13)
        assert mutual_information(source, point.channel) == pytest.approx(point.rate, abs=1e-11)
    assert max(point.lower_bound for point in result) <= min(point.rate for point in result)


@pytest.mark.parametrize("method", METHODS)
def test_the_least_distortion_without_ties_takes_the_entropy(method: str) -> None:
    source = np.random.default_rng(0).dirichlet(np.ones(30))
    result = solved(source, 1 - np.eye(30), 0.0, method)
    assert result.distortion == 0
    assert result.lower_bound <= entropy(*source) <= result.rate


def test_ties_at_the_least_distortion_save_bits() -> None:
    distortion = np.array([[0, 0, 1.0], [1.0, 0, 1.0], [1.0, 1.0, 0]])
    result = rate_distortion([0.25, 0.25, 0.5], distortion, 0.0)
    assert result.rate == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_from_the_largest_useful_distortion_on_nothing_is_sent(method: str) -> None:
    source, distortion = np.array([0.7, 0.3]), np.array([[0.0, 1.0, 0.4], [1.0, 0.0, 0.4]])
    assert rate_distortion(source, distortion, 0.3, method=method).rate == 0
    above = solved(source, distortion, 0.3 - 1e-7, method)
    assert 0 < above.rate < 1e-4
    nothing = rate_distortion(source, distortion, 5.0, method=method)
    assert (nothing.rate, nothing.lower_bound, nothing.distortion) == (0, 0, 0.3)


@pytest.mark.parametrize("method", METHODS)
def test_moving_a_row_moves_the_target(method: str) -> None:
    rng = np.random.default_rng(3)
    source, distortion, moved = rng.dirichlet(np.ones(8)), rng.random((8, 12)), rng.normal(size=8)
    plain = solved(source, distortion, 0.2, method)
    shifted = solved(source, distortion + moved[:, None], 0.2 + float(source @ moved), method)
    assert shifted.rate == pytest.approx(plain.rate, abs=TOLERANCES[method])
    assert shifted.distortion <= 0.2 + float(source @ moved) + 1e-14


@pytest.mark.parametrize("method", METHODS)
def test_impossible_symbols_and_duplicates_change_nothing(method: str) -> None:
    rng = np.random.default_rng(4)
    source, distortion = rng.dirichlet(np.ones(6)), rng.random((6, 7))
    plain = solved(source, distortion, 0.25, method)
    padded = np.vstack([distortion[:, [*range(7), 0, 1, 1]], np.full((1, 10), np.inf)])
    same = solved(np.append(source, 0.0), padded, 0.25, method)
    assert same.rate == pytest.approx(plain.rate, abs=TOLERANCES[method])
    split = solved(np.append(source / 2, source / 2), np.vstack([distortion, distortion]), 0.25, method)
    assert split.rate == pytest.approx(plain.rate, abs=TOLERANCES[method])


def test_many_symbols_with_few_letters_and_the_reverse() -> None:
    rng = np.random.default_rng(5)
    for shape, target in (((800, 12), 0.35), ((12, 800), 0.05)):
        source = rng.dirichlet(np.ones(shape[0]))
        distortion = rng.random(shape)
        both = [solved(source, distortion, target, method) for method in METHODS]
        assert both[0].rate == pytest.approx(both[1].rate, abs=1e-4)


def test_scales_do_not_matter() -> None:
    rng = np.random.default_rng(6)
    source, distortion = rng.dirichlet(np.ones(9)), rng.random((9, 9))
    rates = [rate_distortion(source, scale * distortion, scale * 0.2).rate for scale in (1e-80, 1.0, 1e80)]
    np.testing.assert_allclose(rates, rates[1], atol=2e-6)


def test_single_symbols_and_letters() -> None:
    assert rate_distortion([1.0], [[0.3, 0.2]], 0.2).rate == 0
    assert rate_distortion([0.5, 0.5], [[0.3], [0.2]], 0.25).rate == 0
    with pytest.raises(InfeasibleError, match="target must be at least the least mean distortion"):
        rate_distortion([1.0], [[0.3, 0.2]], 0.1)


@pytest.mark.parametrize(
    ("source", "distortion", "message"),
    [
        ([0.5, 0.4], np.eye(2), "source must add up to 1"),
        ([1.5, -0.5], np.eye(2), "source must be a list of probabilities"),
        ([], np.eye(2), "source must be a list"),
        ([0.5, 0.5], np.eye(3), "distortion must have 2 rows"),
        ([0.5, 0.5], [[0, np.nan], [1, 0]], "distortion must have numbers"),
        ([0.5, 0.5], [[0, -np.inf], [1, 0]], "distortion must have numbers"),
        ([0.5, 0.5], [[0, 1], [np.inf, np.inf]], "every reproduction of symbol 1"),
    ],
)
def test_bad_arguments_are_named(source: list[float], distortion: FloatArray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rate_distortion(source, distortion, 0.1)


def test_nothing_half_solved_is_returned() -> None:
    rng = np.random.default_rng(7)
    for method in METHODS:
        with pytest.raises(ConvergenceError, match="bits, not 1e-09"):
            rate_distortion(np.full(40, 1 / 40), rng.random((40, 40)), 0.1, tolerance=1e-9, method=method, max_iterations=3)
    with pytest.raises(ValueError, match="method must be one of interior-point, blahut-arimoto"):
        rate_distortion([1.0], [[0.0]], 0.0, method="newton")


@pytest.mark.parametrize("shape", [(6, 9), (9, 6)])
def test_a_direction_removes_the_residuals_to_first_order(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    distortion = rng.random(shape)
    distortion[0, 1] = np.inf
    problem = ReducedProblem(rng.dirichlet(np.ones(shape[0])), distortion, 0.3, 0.0)
    log_weights, output = rng.normal(size=shape[0]) * 0.1 - 0.5, rng.random(shape[1])
    point = _Point(problem, log_weights, 1.2, output, 0.05)
    goal = np.full(len(point.products), 0.01)
    direction = _NewtonSystem(point).solve(goal)

    def after(step: float) -> _Point:
        return _Point(
            problem,
            log_weights + step * direction.log_weights,
            1.2 + step * direction.slope,
            output + step * direction.output,
            0.05 + step * direction.unspent,
        )

    step = 1e-5
    ahead, behind = after(step), after(-step)
    np.testing.assert_allclose((ahead.residual - behind.residual) / (2 * step), -point.residual, atol=1e-7)
    assert (ahead.slope_residual - behind.slope_residual) / (2 * step) == pytest.approx(-point.slope_residual, abs=1e-7)
    np.testing.assert_allclose((ahead.products - behind.products) / (2 * step), goal - point.products, atol=1e-7)
    np.testing.assert_allclose((ahead.slacks - behind.slacks) / (2 * step), direction.slacks, atol=1e-7)
