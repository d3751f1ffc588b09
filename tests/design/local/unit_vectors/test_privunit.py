"""PrivUnit with its best cap.

Points under test: no other cap is better; the law of messages, published figures, and the attained bound.
"""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.unit_vectors.privunit import BestCap, PrivUnitMechanism
from quietbits.design.local.unit_vectors.privunit_g import PrivUnitGMechanism
from quietbits.solvers.limits.mean_privacy import unbiased_local_bound

# Squared errors of one unit vector in 200 dimensions, of the best cap and of PrivUnitG.
REFERENCES = {1.0: (1262.35, 1266.0), 4.0: (86.35, 87.06), 6.0: (42.03, 42.63)}
CASES = [(1, 1.0), (2, 0.5), (3, 4.0), (200, 6.0), (1000, 20.0)]


@pytest.mark.parametrize("epsilon", REFERENCES)
def test_published_figures(epsilon: float) -> None:
    ball, unit = NormBall(200, 2.0), np.eye(1, 200)
    result = [kind(epsilon, ball).variance(unit)[0] for kind in (PrivUnitMechanism, PrivUnitGMechanism)]
    # The results agree to the published digits.
    assert result == pytest.approx(REFERENCES[epsilon], abs=0.05 if epsilon == 1 else 0.006)


@pytest.mark.parametrize(("dimension", "epsilon"), CASES)
def test_the_mean_is_that_of_the_cap_and_no_other_cap_has_a_longer_one(dimension: int, epsilon: float) -> None:
    cap = BestCap(dimension, epsilon)
    if dimension == 1:
        assert cap.mean == pytest.approx(math.tanh(epsilon / 2), rel=1e-9)
        return
    with mpmath.workdps(40):
        half, gain = mpmath.mpf(dimension - 1) / 2, mpmath.expm1(epsilon)

        def mean(threshold: mpmath.mpf) -> mpmath.mpf:
            rest = 1 - threshold**2
            beyond = rest**half / (2 * half * mpmath.beta(half, 0.5))
            tail = mpmath.betainc(half, 0.5, 0, rest, regularized=True) / 2
            return gain * beyond / (1 + gain * tail)

        own = mpmath.mpf(cap.mean)
        assert cap.mean == pytest.approx(float(mean(own)), rel=3e-9)
        assert cap.probability == pytest.approx(float(mpmath.betainc(half, 0.5, 0, 1 - own**2, regularized=True) / 2), rel=1e-9)
        for other in [mpmath.mpf(step) / 20 for step in range(20)] + [own * (1 - mpmath.mpf(10) ** -3), own * (1 + (1 - own) / 1000)]:
            assert mean(other) <= mean(own) * (1 + mpmath.mpf(10) ** -15)
    # The densities inside and outside the cap have the ratio e^epsilon.
    inside, outside = cap.keep_probability / cap.probability, (1 - cap.keep_probability) / (1 - cap.probability)
    assert math.log(inside / outside) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize(("dimension", "epsilon"), [*CASES, (2**20, 1.0), (2**20, 10.0)])
def test_it_attains_the_bound_for_unbiased_mechanisms(dimension: int, epsilon: float) -> None:
    bound = unbiased_local_bound(dimension, 1, epsilon)
    variance = BestCap(dimension, epsilon).excess
    assert bound <= variance <= bound * (1 + 1e-8)


@pytest.mark.parametrize(("dimension", "epsilon"), [(2, 0.5), (3, 4.0), (40, 6.0)])
def test_messages_have_the_stated_law(dimension: int, epsilon: float) -> None:
    mechanism = PrivUnitMechanism(epsilon, NormBall(dimension, 2.0))
    vector = np.random.default_rng(0).normal(size=dimension)
    vector /= np.linalg.norm(vector)
    messages = mechanism.encode(np.tile(vector, (20_000, 1)), np.random.default_rng(1))
    np.testing.assert_allclose(np.linalg.norm(messages, axis=1), 1, rtol=1e-12)
    along = messages @ vector
    half = (dimension - 1) / 2
    uniform = stats.beta(half, half, loc=-1, scale=2)
    cap = mechanism.cap
    edge, keep = uniform.cdf(cap.mean), cap.keep_probability

    def distribution(x: np.ndarray) -> np.ndarray:
        below = uniform.cdf(x)
        return np.where(x < cap.mean, below * (1 - keep) / edge, 1 - keep + (below - edge) * keep / (1 - edge))

    # The Kolmogorov-Smirnov test gives a false alarm in a million seeds.
    assert stats.kstest(along, distribution).pvalue > 1e-6
    across = messages - along[:, None] * vector
    other = np.roll(vector, 1) - (np.roll(vector, 1) @ vector) * vector
    turned = across @ other / np.linalg.norm(other) / np.linalg.norm(across, axis=1)
    expected = stats.beta((dimension - 2) / 2, (dimension - 2) / 2, loc=-1, scale=2).cdf if dimension > 2 else None
    if expected is None:
        assert stats.binomtest(int(np.count_nonzero(turned > 0)), len(turned)).pvalue > 1e-6
    else:
        assert stats.kstest(turned, expected).pvalue > 1e-6


def test_many_coordinates_are_drawn_without_a_loss_of_accuracy() -> None:
    mechanism = PrivUnitMechanism(6.0, NormBall(100_000, 2.0))
    vectors = np.zeros((40, 100_000))
    vectors[:, 7] = 1.0
    messages = mechanism.encode(vectors, np.random.default_rng(2))
    np.testing.assert_allclose(np.linalg.norm(messages, axis=1), 1, rtol=1e-12)
    spread = messages[:, 7].std() / math.sqrt(40)
    assert abs(messages[:, 7].mean() - mechanism.cap.mean) < 5 * spread


def test_other_norms_are_refused() -> None:
    with pytest.raises(ValueError, match="ball must be of norm 2 for PrivUnit, got norm 1"):
        PrivUnitMechanism(1.0, NormBall(3, 1.0))
