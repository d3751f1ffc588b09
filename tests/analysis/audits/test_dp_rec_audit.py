"""Audits of DP-REC's coder.

Exact sums, quadrature and Monte Carlo agree, and audits refute only false claims.
"""

import math
from functools import cache

import numpy as np
import pytest

from quietbits.analysis.audits.dp_rec_audit import (
    DivergenceAudit,
    audit_divergences,
    estimate_delta,
    published_delta,
    quadrature_delta,
    sampled_divergences,
)
from quietbits.solvers.divergences.dp_rec_privacy import draw_log_moment, index_log_moment
from quietbits.solvers.divergences.importance_resampling import (
    proven_divergences,
    resampling_mixture_divergences,
    resampling_renyi_divergences,
)

ORDERS = [2, 3, 16]


@cache
def audit(clip_ratio: float, samples: int) -> DivergenceAudit:
    return audit_divergences(clip_ratio, samples, ORDERS)


CASES = [(clip_ratio, samples) for clip_ratio in (0.545, 0.87, 1.41) for samples in (2, 16, 128) if (clip_ratio, samples) != (1.41, 16)]


@pytest.mark.parametrize(("clip_ratio", "samples"), CASES)
def test_published_charge_covers_the_true_divergences(clip_ratio: float, samples: int) -> None:
    result = audit(clip_ratio, samples)
    assert (result.added < result.gaussian).all()
    assert (result.removed < result.published).all()
    assert (result.added < result.proven_added).all()
    assert (result.removed < result.proven_removed + 1e-9).all()
    assert (result.proven_added <= result.published).all()
    assert (result.proven_removed <= result.published).all()
    # Under replace-one adjacency the two vectors are 2 c apart.
    assert (result.opposite < 4 * result.gaussian).all()


def test_half_the_charge_would_not_cover_removal() -> None:
    # The audit exceeds the divergence of the two Gaussians at high orders, by more with fewer samples.
    for clip_ratio, samples in ((0.545, 16), (0.545, 128), (0.87, 2), (1.41, 128)):
        result = audit(clip_ratio, samples)
        assert result.removed[-1] > result.gaussian[-1]
    # With two samples, the divergence at high orders is nearly the whole published charge (a - 1) c^2 - ln 2.
    result = audit(1.41, 2)
    assert result.removed[-1] == pytest.approx(15 * 1.41**2 - math.log(2), rel=1e-3)


def test_bound_on_removal_is_met_at_order_two() -> None:
    # Jensen's inequality is an equality at the first order, so the proven divergence is R itself.
    for clip_ratio, samples in CASES:
        assert audit(clip_ratio, samples).removed[0] == pytest.approx(audit(clip_ratio, samples).proven_removed[0], abs=1e-8)


def test_more_samples_give_more_away_until_it_is_the_gaussian() -> None:
    added = np.array([resampling_renyi_divergences(0.5, 0.0, 2**bits, [2, 4]) for bits in (0, 1, 2, 4, 7, 12, 20)])
    np.testing.assert_allclose(added[0], 0, atol=1e-12)
    assert (np.diff(added, axis=0) > 0).all()
    np.testing.assert_allclose(added[-1], [0.25, 0.5], rtol=1e-4)


def test_more_than_one_dimension_adds_nothing_on_a_line() -> None:
    # The estimate in five dimensions agrees with the exact value in one dimension within its interval, of error probability 1e-6.
    rng = np.random.default_rng(0)
    direction = np.array([0.5, -0.1, 0.3, 0.2, -0.7])
    direction /= np.linalg.norm(direction)
    for target, reference in ((0.9, 0.0), (0.0, 0.9), (0.9, -0.9)):
        for samples in (2, 3):
            exact = quadrature_delta(target, reference, samples, epsilon=0.3)
            estimate = estimate_delta(target * direction, reference * direction, samples, 0.3, 60_000, rng)
            assert estimate.low < exact < estimate.high
            assert estimate.high - estimate.low < 0.02


def test_opposite_updates_are_the_furthest_apart() -> None:
    # The adjacency is replace-one, in two dimensions. The intervals are disjoint: their order is a coincidence with probability below 1e-5.
    rng = np.random.default_rng(1)
    angles = (math.pi / 3, 2 * math.pi / 3, math.pi)
    result = [estimate_delta([1.0, 0.0], [math.cos(a), math.sin(a)], 8, 0.5, 40_000, rng) for a in angles]
    assert result[0].high < result[1].low
    assert result[1].high < result[2].low


@pytest.mark.parametrize("clip_ratio", [0.3, 0.545, 0.87])
@pytest.mark.parametrize("bits", [7, 8])
def test_published_delta_is_never_below_the_true_one(clip_ratio: float, bits: int) -> None:
    rng, update = np.random.default_rng(bits), [clip_ratio]
    for epsilon in (0.5, 1.0, 2.0):
        claimed = published_delta(clip_ratio, bits, epsilon)
        for target, reference in ((update, [0.0]), ([0.0], update)):
            assert estimate_delta(target, reference, 1 << bits, epsilon, 700, rng).high <= claimed


def test_published_delta_by_hand() -> None:
    # The exponent c^2 (m + 1) m - m epsilon is least near m = (epsilon / c^2 - 1) / 2.
    assert published_delta(0.5, 60, 2.25) == pytest.approx(math.exp(0.25 * 5 * 4 - 4 * 2.25), rel=1e-9)
    assert published_delta(1.0, 20, 1000.0) == pytest.approx(12 * math.e / 2**20, rel=1e-9)


@pytest.mark.parametrize("samples", [2, 128])
@pytest.mark.parametrize("population", [2, 100])
def test_sampled_clients_give_away_less_than_the_accountants_take(samples: int, population: int) -> None:
    exact = sampled_divergences(0.87, samples, population, ORDERS)
    gaussian = np.array([draw_log_moment(0.87, population, order) / (order - 1) for order in ORDERS])
    assert (exact.added < gaussian).all()
    assert (exact.removed < 2 * gaussian).all()
    any_bits = [index_log_moment(0.87, population, order) / (order - 1) for order in ORDERS]
    assert (exact.added < any_bits).all()
    assert (exact.removed < any_bits).all()


def test_sampled_divergences_by_simulation() -> None:
    # A hundred thousand draws of the samples, averaged over the index, agree within 5 standard errors; each check fails with probability
    # below 1e-6.
    rng = np.random.default_rng(2)
    for samples, population in ((2, 3), (8, 10)):
        ratios = np.exp(rng.standard_normal((100_000, samples)))
        mixture = 1 - 1 / population + ratios / ratios.mean(axis=1, keepdims=True) / population
        exact = sampled_divergences(1.0, samples, population, [2, 5])
        for place, order in enumerate((2, 5)):
            for divergence, power in ((exact.added[place], order), (exact.removed[place], 1 - order)):
                moments = (mixture**power).mean(axis=1)
                assert abs(moments.mean() - math.exp((order - 1) * divergence)) < 5 * moments.std() / math.sqrt(len(moments))


def test_a_client_that_is_nearly_always_drawn() -> None:
    nearly = resampling_mixture_divergences(0.87, 16, 0.999, [2, 3])
    np.testing.assert_allclose(nearly, audit(0.87, 16).removed[:2], rtol=0.01)
    assert (nearly < audit(0.87, 16).removed[:2]).all()
    np.testing.assert_allclose(resampling_mixture_divergences(0.87, 16, 0.0, ORDERS), 0, atol=1e-10)
    with pytest.raises(ValueError, match=r"share must be a number from 0 to 0\.999, got 1\.0"):
        resampling_mixture_divergences(1.0, 2, 1.0, [2])


def test_a_chosen_sample_has_no_more_than_all_the_weight() -> None:
    # One bit is exact: with K = 2, K w is below 2, and delta is 0 for every epsilon from ln 2.
    assert quadrature_delta(3.0, 0.0, 2, math.log(2)) == 0
    assert quadrature_delta(3.0, 0.0, 2, math.log(2) - 0.01) > 0
    # With three bits and epsilon = 0, delta is the total variation distance, which is symmetric.
    assert quadrature_delta(1.0, 0.2, 3, 0.0) == pytest.approx(quadrature_delta(0.2, 1.0, 3, 0.0), abs=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": [1.0, 2.0]}, r"target and reference must be vectors of the same length, got shapes \(2,\) and \(1,\)"),
        ({"target": 1.0, "reference": 0.0}, r"same length, got shapes \(\) and \(\)"),
        ({"target": [], "reference": []}, r"same length, got shapes \(0,\) and \(0,\)"),
        ({"target": [math.inf]}, "target must hold finite numbers only"),
        ({"samples": 0}, "samples must be a whole number from 1 to 1048576, got 0"),
        ({"epsilon": -1.0}, "epsilon must be a number from 0 to 1000, got -1.0"),
        ({"trials": 1}, "trials must be a whole number from 2"),
        ({"failure": 0.0}, "failure must be a number from 1e-12 to 0.5, got 0.0"),
    ],
)
def test_bad_arguments_of_the_estimate(change: dict[str, object], message: str) -> None:
    good = {"target": [1.0], "reference": [0.0], "samples": 2, "epsilon": 0.5, "trials": 10, "rng": np.random.default_rng(0)}
    with pytest.raises(ValueError, match=message):
        estimate_delta(**good | change)


def test_other_bad_arguments() -> None:
    with pytest.raises(ValueError, match="samples must be a whole number from 2 to 3, got 4"):
        quadrature_delta(1.0, 0.0, 4, 0.5)
    with pytest.raises(ValueError, match=r"target must be a number from -3 to 3, got 3\.5"):
        quadrature_delta(3.5, 0.0, 2, 0.5)
    with pytest.raises(ValueError, match=r"clip_ratio must be a number from 0\.001 to 3, got 0"):
        audit_divergences(0.0, 2, [2])
    with pytest.raises(ValueError, match="orders must be a whole number from 2"):
        proven_divergences(1.0, 2, [1])
    with pytest.raises(ValueError, match="bits must be a whole number from 1 to 60, got 61"):
        published_delta(1.0, 61, 1.0)
    with pytest.raises(ValueError, match="population must be a whole number from 2"):
        sampled_divergences(1.0, 2, 1, [2])
    with pytest.raises(ValueError, match="orders must be a whole number from 2 to 16, got 17"):
        sampled_divergences(1.0, 2, 10, [17])
