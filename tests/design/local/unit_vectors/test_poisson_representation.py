"""Tests of Poisson private representation.

Points under test: its process, the law of messages, privacy by enumeration, and length.
"""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.unit_vectors.poisson_representation import PoissonRepresentationMechanism, TailPoints, poisson
from quietbits.design.local.unit_vectors.privunit import PrivUnitMechanism
from quietbits.design.noise.random_words import seeded_words


@pytest.mark.parametrize("mean", [0.5, 9.0, 11.0, 300.0])
def test_poisson_numbers(mean: float) -> None:
    words = seeded_words(np.random.default_rng(0))
    draws = np.array([poisson(mean, words) for _ in range(5_000)])
    edges = np.unique(stats.poisson(mean).ppf(np.linspace(0.02, 0.98, 25)))
    bounds = np.concatenate([[-1], edges, [np.inf]])
    expected = np.diff(stats.poisson(mean).cdf(bounds))
    counts = np.histogram(draws, bounds + 0.5)[0]
    # The test gives a false alarm in a million seeds.
    assert stats.chisquare(counts, expected / expected.sum() * len(draws)).pvalue > 1e-6


@pytest.mark.parametrize("alpha", [1.5, 2.0, 3.0])
def test_points_beyond_the_horizon(alpha: float) -> None:
    points = TailPoints(20.0, 14.0, alpha)
    with mpmath.workdps(15):

        def expected(last: float) -> float:
            return float(mpmath.quad(lambda time: 1 - mpmath.exp(-((14 / time) ** alpha)), [20, min(40, last), last]))

        # The counted and the drawn points between two times make up the whole process of rate 1.
        assert points._others(20.0, 50.0) + expected(50.0) == pytest.approx(30.0, rel=1e-10)
        beyond = expected(mpmath.inf)
    words, rng = seeded_words(np.random.default_rng(1)), np.random.default_rng(2)
    drawn = [list(points.draw(words)) for _ in range(500)]
    counts = np.array([len(draw) for draw in drawn])
    assert abs(counts.mean() - beyond) < 5 * math.sqrt(beyond / len(counts))
    assert abs(counts.var() - beyond) < 5 * math.sqrt((2 * beyond**2 + beyond) / len(counts))
    # Brute force draws all points up to a time.
    brute = []
    for _ in range(500):
        times = 20 + np.sort(rng.uniform(0, 60, rng.poisson(60)))
        races = times * rng.exponential(size=len(times)) ** (1 / alpha)
        brute += [(place, race) for place, race in enumerate(races) if race <= 14]
    early = [(point.before, point.race) for draw in drawn for point in draw if point.before < 30]
    wanted = [point for point in brute if point[0] < 30]
    for column in (0, 1):
        assert stats.ks_2samp([point[column] for point in early], [point[column] for point in wanted]).pvalue > 1e-6


@pytest.mark.parametrize(("epsilon", "alpha"), [(4.0, 2.0), (9.0, 1.5), (12.0, 3.0)])
def test_what_is_sent_has_exactly_privunits_law(epsilon: float, alpha: float) -> None:
    mechanism = PoissonRepresentationMechanism(epsilon, NormBall(10, 2.0), alpha)
    vectors = np.random.default_rng(3).normal(size=(1000, 10))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    messages = mechanism.encode(vectors, np.random.default_rng(4))
    points = np.array([mechanism.aggregate(messages[row : row + 1]) for row in range(len(messages))])
    along = np.einsum("ij,ij->i", points, vectors)
    uniform, cap = stats.beta(4.5, 4.5, loc=-1, scale=2), mechanism.cap
    edge, keep = uniform.cdf(cap.mean), cap.keep_probability

    def distribution(x: np.ndarray) -> np.ndarray:
        below = uniform.cdf(x)
        return np.where(x < cap.mean, below * (1 - keep) / edge, 1 - keep + (below - edge) * keep / (1 - edge))

    assert stats.kstest(along, distribution).pvalue > 1e-6
    twin = PrivUnitMechanism(mechanism.coded_epsilon, mechanism.ball)
    np.testing.assert_allclose(mechanism.variance(vectors[:3]), twin.variance(vectors[:3]), rtol=1e-9)
    # The stated length bounds the mean length closely.
    lengths, logs = mechanism.bits_of_messages(messages), np.log2(messages[:, 1].astype(float) + 1)
    assert logs.mean() - 5 * logs.std() / math.sqrt(len(logs)) <= mechanism.mean_log_number <= logs.mean() + 0.6
    assert lengths.mean() <= mechanism.bits_per_client <= lengths.mean() + 1.6
    # The lengths are those of a prefix code: the partial sum obeys Kraft's inequality.
    numbers = np.column_stack([np.zeros(200_000), np.arange(200_000)]).astype(np.uint64)
    assert np.exp2(-mechanism.bits_of_messages(numbers)).sum() <= 1


def test_weights_of_two_vectors_differ_by_epsilon_at_most_for_any_points_and_times() -> None:
    # The largest ratio is nearly attained if only one point is in the first vector's cap, and all others are in the second's.
    epsilon, alpha = 3.0, 2.0
    mechanism = PoissonRepresentationMechanism(epsilon, NormBall(3, 2.0), alpha)
    high, low = mechanism.cap.density, mechanism.cap.density * math.exp(-mechanism.coded_epsilon)
    rng, largest = np.random.default_rng(5), 0.0
    for _ in range(200):
        times = np.cumsum(rng.exponential(size=2000))
        first, second = rng.choice([high, low], size=(2, 2000))
        shares = [(density / times) ** alpha / np.sum((density / times) ** alpha) for density in (first, second)]
        largest = max(largest, float(np.abs(np.log(shares[0] / shares[1])).max()))
    times = np.cumsum(rng.exponential(size=2000))
    alone = np.where(np.arange(2000) == 1999, high, low), np.where(np.arange(2000) == 1999, low, high)
    first, second = ((density / times) ** alpha / np.sum((density / times) ** alpha) for density in alone)
    assert largest <= mechanism.epsilon == epsilon
    assert math.log(first[-1] / second[-1]) == pytest.approx(epsilon, rel=1e-3)


def test_bad_arguments_say_what_is_needed() -> None:
    ball = NormBall(3, 2.0)
    with pytest.raises(ValueError, match=r"epsilon must be a number from 0\.001 to 40, got 41"):
        PoissonRepresentationMechanism(41.0, ball)
    with pytest.raises(ValueError, match=r"alpha must be a number from 1.25 to 8, got 1.0"):
        PoissonRepresentationMechanism(1.0, ball, 1.0)
    with pytest.raises(ValueError, match="ball must be of norm 2 for Poisson private representation, got norm 1"):
        PoissonRepresentationMechanism(1.0, NormBall(3, 1.0))
    with pytest.raises(ValueError, match=r"messages must have the shape \(clients, 2\), got \(2, 3\)"):
        PoissonRepresentationMechanism(1.0, ball).aggregate(np.zeros((2, 3), dtype=np.uint64))
