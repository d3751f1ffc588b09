"""Tests of PrivUnitG.

Points under test: density and privacy by quadrature, moments, loss, sampler, and the gain over few bits.
"""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.cldp import vector_cldp_mechanism
from quietbits.design.local.unit_vectors.privunit_g import PrivUnitGMechanism
from quietbits.design.local.vector_gaussian import VectorGaussianMechanism
from quietbits.solvers.accounting.pure_composition import composed_pure_epsilon
from quietbits.solvers.accounting.pure_privacy import pure_renyi_divergences

CASES = [(0.01, 1), (1.0, 1), (1.0, 3), (5.0, 2), (5.0, 128), (20.0, 50), (100.0, 1000)]


def mechanism_of(epsilon: float, dimension: int, clip_norm: float = 1.0) -> PrivUnitGMechanism:
    return PrivUnitGMechanism(epsilon, NormBall(dimension, 2.0, clip_norm))


@pytest.mark.parametrize(("epsilon", "dimension"), CASES)
def test_densities_of_two_vectors_are_within_epsilon_and_reach_it(epsilon: float, dimension: int) -> None:
    mechanism = mechanism_of(epsilon, dimension)
    t, keep = mpmath.mpf(mechanism.threshold), mpmath.mpf(mechanism.keep_probability)
    # Relative to the normal density, a message has keep / P(above), or (1 - keep) / P(below); two vectors have no other ratios.
    ratio = (keep / mpmath.ncdf(-t)) / ((1 - keep) / mpmath.ncdf(t))
    assert float(mpmath.log(ratio)) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "dimension"), CASES)
def test_moments_agree_with_quadrature(epsilon: float, dimension: int) -> None:
    mechanism = mechanism_of(epsilon, dimension, clip_norm=2.0)
    with mpmath.workdps(15):
        t = mpmath.mpf(mechanism.threshold)
        edges = [t, t + 0.125, t + 0.5, t + 1, t + 4, t + 20]
        weight = mpmath.exp(epsilon)

        def moment(power: int) -> mpmath.mpf:
            above, below = (mpmath.quad(lambda u: u**power * mpmath.npdf(u), ends) for ends in (edges, [-40, -8, -2, t]))
            return weight * above + below

        constant, mean, square = moment(0), moment(1), moment(2)
    assert mechanism.projection_mean == pytest.approx(float(mean / constant), rel=1e-9)
    variance = 4 * float((square / constant + dimension - 1) / (mean / constant) ** 2)
    assert mechanism.variance_bound == pytest.approx(variance, rel=1e-9)
    assert mechanism.variance(np.full((1, dimension), 0.5 / math.sqrt(dimension)))[0] == pytest.approx(variance - 0.25, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "dimension"), CASES)
def test_no_other_threshold_gives_less_variance(epsilon: float, dimension: int) -> None:
    mechanism = mechanism_of(epsilon, dimension)
    t = np.array([*np.linspace(-15, 18, 2001), mechanism.threshold - 1e-3, mechanism.threshold + 1e-3])
    above, below = ndtr(-t), math.exp(-epsilon) * ndtr(t)
    mean = stats.norm.pdf(t) * -math.expm1(-epsilon) / (above + below)
    t, mean = t[mean > 1e-100], mean[mean > 1e-100]
    assert ((dimension + t * mean) / mean**2 >= mechanism.variance_bound * (1 - 1e-9)).all()


@pytest.mark.parametrize("epsilon", [0.5, 5.0, 30.0])
def test_projections_are_drawn_from_the_two_tails(epsilon: float) -> None:
    mechanism = mechanism_of(epsilon, 40)
    vector = np.random.default_rng(0).normal(size=40)
    vector /= np.linalg.norm(vector)
    messages = mechanism.encode(np.tile(vector, (20_000, 1)), np.random.default_rng(6))
    projections = messages @ vector
    threshold, keep = mechanism.threshold, mechanism.keep_probability

    def distribution(u: np.ndarray) -> np.ndarray:
        below = (1 - keep) * np.minimum(ndtr(u) / ndtr(threshold), 1.0)
        return below + keep * np.maximum(1 - ndtr(-u) / ndtr(-threshold), 0.0)

    # The Kolmogorov-Smirnov test gives a false alarm in a million seeds. Across the vector, coordinates are standard normal.
    assert stats.kstest(projections, distribution).pvalue > 1e-6
    across = messages - projections[:, None] * vector
    other = np.roll(vector, 1) - (np.roll(vector, 1) @ vector) * vector
    assert stats.kstest(across @ other / np.linalg.norm(other), "norm").pvalue > 1e-6
    assert stats.kstest(np.square(across).sum(axis=1), stats.chi2(39).cdf).pvalue > 1e-6


@pytest.mark.parametrize("vector", [np.zeros(4), np.full(4, 1e-300), np.array([0.0, 0.3, 0.0, 0.0])])
def test_short_vectors_are_served_without_bias(vector: np.ndarray) -> None:
    mechanism = mechanism_of(2.0, 4)
    clients = 100_000
    estimate = mechanism.decode(mechanism.aggregate(mechanism.encode(np.tile(vector, (clients, 1)), np.random.default_rng(2))), clients)
    assert (np.abs(estimate - vector) < 5 * math.sqrt(mechanism.variance_bound / clients)).all()


@pytest.mark.parametrize(("epsilon", "dimension"), [(0.5, 1), (2.0, 2), (5.0, 3)])
def test_opposite_vectors_reveal_what_is_stated_and_others_less(epsilon: float, dimension: int) -> None:
    mechanism = mechanism_of(epsilon, dimension)
    threshold = mechanism.threshold
    constant = math.exp(epsilon) * ndtr(-threshold) + ndtr(threshold)
    orders = np.array([1.5, 2.0, 10.0])
    stated = mechanism.renyi_divergences(orders)

    def divergences(only_first: float, only_second: float, rest: float) -> np.ndarray:
        """Return divergences of densities e^epsilon / Z and 1 / Z over regions of a normal law."""
        return np.log((only_first * np.exp(epsilon * orders) + only_second * np.exp(epsilon * (1 - orders))) / constant + rest) / (
            orders - 1
        )

    # Opposite caps overlap only for negative thresholds.
    only = float(ndtr(-threshold)) if threshold >= 0 else float(ndtr(threshold))
    np.testing.assert_allclose(divergences(only, only, 1 - (math.exp(epsilon) + 1) * only / constant), stated, rtol=1e-10)
    if dimension > 1:
        for cosine in (-0.9, 0.0, 0.9):
            both = float(stats.multivariate_normal([0, 0], [[1, cosine], [cosine, 1]]).cdf([-threshold, -threshold]))
            only = float(ndtr(-threshold)) - both
            assert (divergences(only, only, 1 - (math.exp(epsilon) + 1) * only / constant) <= stated * (1 + 1e-6)).all()


@pytest.mark.parametrize(("epsilon", "dimension"), CASES)
def test_divergences_rise_to_epsilon_below_those_of_pure_privacy(epsilon: float, dimension: int) -> None:
    mechanism = mechanism_of(epsilon, dimension)
    orders = np.array([1.001, 1.5, 2.0, 64.0, 1e5, math.inf])
    divergences = mechanism.renyi_divergences(orders)
    assert (np.diff(divergences) >= 0).all()
    assert (divergences <= pure_renyi_divergences(epsilon, orders) * (1 + 1e-12)).all()
    assert divergences[-1] == epsilon
    assert mechanism.privacy_loss().get_epsilon_for_delta(0.0) == pytest.approx(epsilon, rel=1e-11)


def test_the_loss_gives_the_hockey_stick_divergence_of_opposite_vectors() -> None:
    mechanism = mechanism_of(3.0, 20)
    threshold = mechanism.threshold
    constant = math.exp(3.0) * ndtr(-threshold) + ndtr(threshold)
    for epsilon in (0.0, 1.0, 2.5):
        # The first density is larger on its own cap.
        delta = ndtr(-threshold) * (math.exp(3.0) - math.exp(epsilon)) / constant
        assert mechanism.privacy_loss().get_delta_for_epsilon(epsilon) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_it_beats_one_bit_by_far_and_approximate_privacy_at_high_epsilon(epsilon: float) -> None:
    ball = NormBall(128, 2.0)
    variance = PrivUnitGMechanism(epsilon, ball).variance_bound
    assert vector_cldp_mechanism(epsilon, ball).variance_bound > 100 * variance
    assert VectorGaussianMechanism.of_epsilon(epsilon, 1e-5, ball).variance_bound > variance


def test_other_norms_are_refused() -> None:
    with pytest.raises(ValueError, match="ball must be of norm 2 for PrivUnitG, got norm 1"):
        PrivUnitGMechanism(1.0, NormBall(3, 1.0))


@pytest.mark.parametrize(("epsilon", "delta", "rounds"), [(0.0013, 1e-6, 100), (16.3, 1e-6, 7), (1.0, 1e-5, 10)])
def test_no_account_over_rounds_is_above_that_of_any_mechanism_with_its_epsilon(epsilon: float, delta: float, rounds: int) -> None:
    # Small losses were once rounded up by more than their size, so rounds calibrated by pure privacy exceeded their budget.
    privacy = mechanism_of(epsilon, 3).privacy()
    assert privacy.epsilon(delta, rounds=rounds) <= composed_pure_epsilon(epsilon, rounds, delta)
    assert privacy.epsilon(delta, rounds=rounds) <= privacy.report(delta, rounds=rounds).epsilon_by("rdp")
