"""The bound on what DP-REC's indices reveal: against quadrature over few samples and groups, and its orders against all others."""

import functools
import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from quietbits.arrays import FloatArray
from quietbits.solvers.divergences.dp_rec_index_privacy import ORDERS, index_epsilon, index_log_moment, message_divergences
from quietbits.solvers.divergences.dp_rec_privacy import draw_log_moment
from quietbits.solvers.divergences.importance_resampling import resampling_renyi_divergences


@functools.cache
def samples_by_quadrature(samples: int, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Return lists of samples of shape (samples, lists) and their probabilities, by Gauss-Hermite quadrature."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    lists = np.stack(np.meshgrid(*[points] * samples, indexing="ij")).reshape(samples, -1)
    masses = np.prod(np.meshgrid(*[weights / weights.sum()] * samples, indexing="ij"), axis=0).ravel()
    return lists, masses


def relative_weights(length: float, samples: int, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Return the weights over their mean at each index of each list, flat, and their probabilities with all indices as likely."""
    lists, masses = samples_by_quadrature(samples, nodes)
    weights = np.exp(length * lists)
    return (weights / weights.mean(axis=0)).ravel(), np.tile(masses / samples, samples)


def moments(weights: FloatArray, masses: FloatArray, population: int, order: int) -> tuple[float, float]:
    """Return ln E[(P/Q)^order] both ways, where Q has all indices as likely and P the weights with probability 1 / population."""
    ratios = 1 - 1 / population + weights / population
    return math.log(masses @ ratios**order), math.log(masses @ ratios ** (1 - order))


@pytest.mark.parametrize(("clip_ratio", "population"), [(0.1, 10**4), (0.545, 100), (1.2, 10), (0.5, 2), (0.3, 1), (1.0, 1)])
@pytest.mark.parametrize(("samples", "nodes"), [(2, 40), (3, 24), (4, 14)])
@pytest.mark.parametrize("order", [2, 3, 6])
def test_the_indices_reveal_no_more_than_the_bound(clip_ratio: float, population: int, samples: int, nodes: int, order: int) -> None:
    found = moments(*relative_weights(clip_ratio, samples, nodes), population, order)
    assert max(found) <= index_log_moment(clip_ratio, population, order)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5])
@pytest.mark.parametrize(("clip_ratio", "population"), [(0.545, 100), (1.2, 10), (0.3, 1)])
@pytest.mark.parametrize("order", [2, 5])
def test_nor_do_those_of_two_groups(share: float, clip_ratio: float, population: int, order: int) -> None:
    # A share of the squared norm is in the first group, with two samples; the rest in the second, with three.
    first, first_masses = relative_weights(clip_ratio * math.sqrt(share), 2, 12)
    second, second_masses = relative_weights(clip_ratio * math.sqrt(1 - share), 3, 8)
    found = moments(np.outer(first, second).ravel(), np.outer(first_masses, second_masses).ravel(), population, order)
    assert max(found) <= index_log_moment(clip_ratio, population, order)


@pytest.mark.parametrize("length", [0.3, 1.0])
@pytest.mark.parametrize("samples", [2, 3])
@pytest.mark.parametrize("power", [2, 4])
def test_moments_of_weights_over_their_mean(length: float, samples: int, power: int) -> None:
    weights, masses = relative_weights(length, samples, 60)
    assert masses @ weights == pytest.approx(1.0, rel=1e-10)
    assert masses @ weights**power <= math.exp(power**2 * length**2 * (1 - 1 / samples) / 2)
    assert masses @ weights**-power <= 1 / samples + (1 - 1 / samples) * math.exp(power**2 * length**2)


@pytest.mark.parametrize(
    ("clip_ratio", "population", "order"), [(0.545, 100, 4), (1e-6, 10**12, 100), (1.7, 3500, 9), (30.0, 2, 5), (2.0, 1, 7)]
)
def test_it_is_the_formula_and_errs_upward(clip_ratio: float, population: int, order: int) -> None:
    with mpmath.workdps(60):
        share, square, less = mpmath.mpf(1) / population, mpmath.mpf(clip_ratio) ** 2, order - 1
        powers = [0, 0, *(j * j * square / 2 for j in range(2, order + 1))]
        terms = (mpmath.binomial(order, j) * share**j * (1 - share) ** (order - j) * mpmath.exp(powers[j]) for j in range(order + 1))
        back = share * mpmath.expm1(less**2 * square)
        if population > 1:
            back = min(back, mpmath.mpf(less * order) / 2 * share**2 * (1 - share) ** (-less - 2) * mpmath.expm1(2 * square))
        exact = max(mpmath.log(mpmath.fsum(terms)), mpmath.log(1 + back))
        assert 0 <= (mpmath.mpf(index_log_moment(clip_ratio, population, order)) - exact) / exact <= 1e-11


def test_it_is_larger_than_the_moment_of_infinitely_many_samples() -> None:
    for order in (2, 5, 20):
        assert index_log_moment(0.545, 100, order) > draw_log_moment(0.545, 100, order)


@pytest.mark.parametrize(("clip_ratio", "population", "draws"), [(0.545, 100, 10_000), (1.227, 342_477, 90_000), (0.1, 10, 1)])
def test_epsilon_is_the_least_over_whole_orders(clip_ratio: float, population: int, draws: int) -> None:
    delta = 1e-6
    tried = {
        order: draws * index_log_moment(clip_ratio, population, order) / (order - 1)
        + math.log1p(-1 / order)
        - math.log(delta * order) / (order - 1)
        for order in range(2, 600)
    }
    best = min(tried.values())
    found = index_epsilon(clip_ratio, population, draws, delta)
    assert best <= found.epsilon * (1 + 1e-12)
    # Beyond 64 not every order is tried.
    assert found.epsilon <= best * 1.01
    assert found.epsilon == pytest.approx(tried[int(found.order)], rel=1e-12) if found.order < 600 else found.order < ORDERS[-1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: index_log_moment(0.0, 10, 2), "clip_ratio must be a number from 1e-06 to 100, got 0.0"),
        (lambda: index_log_moment(1.0, 0, 2), "population must be a whole number from 1 to 1000000000000, got 0"),
        (lambda: index_log_moment(1.0, 10, 1), f"order must be a whole number from 2 to {ORDERS[-1]}, got 1"),
        (lambda: index_epsilon(1.0, 10, 0, 0.1), "draws must be a whole number from 1 to 1000000000000000, got 0"),
        (lambda: index_epsilon(1.0, 10, 10, 0.0), "delta must be a number above 0 and below 1, got 0.0"),
    ],
)
def test_a_bad_argument_is_named(call: Callable[[], float], message: str) -> None:
    with pytest.raises(ValueError, match="must be") as raised:
        call()
    assert str(raised.value) == message


@pytest.mark.parametrize("samples", [2, 4, 64])
@pytest.mark.parametrize("length", [0.1, 0.8, 2.0])
def test_messages_of_opposite_updates_reveal_no_more_than_the_bound(samples: int, length: float) -> None:
    orders = [2, 3, 8]
    found = resampling_renyi_divergences(length, -length, samples, orders)
    assert (found <= message_divergences(length, orders)).all()
    # 2 a c^2 of (5 a^2 - 6 a + 2) / (2 a - 2) c^2, less what few samples hide.
    if (samples, length) == (64, 0.1):
        assert (found > 0.75 * message_divergences(length, orders)).all()


@pytest.mark.parametrize("angle", [0.0, 0.5, 1.6, 2.5, math.pi])
@pytest.mark.parametrize(("length", "other"), [(1.0, 1.0), (1.5, 0.4), (0.0, 0.6), (0.7, 0.0)])
def test_nor_do_those_of_any_two_updates_in_two_groups(angle: float, length: float, other: float) -> None:
    # Two samples in each of two groups: weights depend on differences of samples, of variance 2, along either update's plane.
    points, weights = np.polynomial.hermite_e.hermegauss(40)
    first, second = np.meshgrid(math.sqrt(2) * points, math.sqrt(2) * points)
    masses = np.outer(weights, weights) / weights.sum() ** 2
    order, total = 3, 0.0
    for share in (0.3, 0.7):
        target = math.sqrt(share) * length * first
        reference = math.sqrt(share) * other * (math.cos(angle) * first + math.sin(angle) * second)
        ratios = (2 / (1 + np.exp(-target))) ** order * (2 / (1 + np.exp(-reference))) ** (1 - order)
        total += math.log((masses * ratios).sum())
    assert total / (order - 1) <= message_divergences(max(length, other), [order])[0]


def test_divergences_of_messages_at_all_orders() -> None:
    found = message_divergences(0.3, [1.01, 1.9, 2.0, 2.5, 100.0, math.inf])
    assert found[0] == found[1] == found[2] == pytest.approx(5 * 0.09, rel=1e-13)
    assert found[3] == pytest.approx((5 * 2.5**2 - 6 * 2.5 + 2) / 3 * 0.09, rel=1e-13)
    assert (np.diff(found[2:]) > 0).all()
    assert found[-1] == math.inf
    with pytest.raises(ValueError, match="orders must be above 1, got 1"):
        message_divergences(0.3, [1.0])
    with pytest.raises(ValueError, match="clip_ratio must be a number from 1e-06 to 100, got 0"):
        message_divergences(0.0, [2.0])


@pytest.mark.parametrize(("ratio", "order"), [(0.5, 10), (3.0, 2), (3.0, 5), (10.0, 3), (10.0, 12)])
def test_a_single_client_is_as_private_as_its_own_weights(ratio: float, order: int) -> None:
    # E[y^a] is at most exp(a^2 c^2 / 2), and E[y^(1 - a)] at most exp((a - 1)^2 c^2).
    expected = max(order**2 * ratio**2 / 2, (order - 1) ** 2 * ratio**2)
    assert index_log_moment(ratio, 1, order) == pytest.approx(expected, rel=1e-9)
    assert index_log_moment(ratio, 1, order) >= expected
