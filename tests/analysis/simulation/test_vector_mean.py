"""One simulated mean of vectors: what is added up, what it is compared with, and that memory does not grow with the clients."""

import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from quietbits.analysis.catalogue.vector_mechanisms import MechanismSpec, build_mechanism
from quietbits.analysis.simulation.vector_mean import simulate_vector_mean
from quietbits.analysis.simulation.vector_populations import population_chunks
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.noise.random_words import WordsLike


@dataclass(frozen=True)
class Offset:
    """Sends the clipped vector and a constant: no privacy, so that every number can be worked out by hand."""

    ball: NormBall
    offset: float

    worst_variance = 7.0

    def encode(self, vectors: np.ndarray, words: WordsLike) -> np.ndarray:  # noqa: ARG002 - nothing is drawn
        return self.ball.clip(vectors) + self.offset

    def aggregate(self, messages: np.ndarray) -> np.ndarray:
        return messages.sum(axis=0)

    def decode(self, aggregate: np.ndarray, clients: int) -> np.ndarray:
        return aggregate / clients

    def variance(self, vectors: np.ndarray) -> np.ndarray:
        return self.ball.norms(self.ball.clip(vectors))


def test_every_number_by_hand() -> None:
    ball = NormBall(2, 2.0, 1.0)
    chunks = [np.array([[3.0, 4.0], [0.0, 0.5]]), np.array([[0.0, -1.0]])]
    result = simulate_vector_mean(Offset(ball, 0.25), chunks, np.random.default_rng(1))
    assert (result.clients, result.clipped) == (3, 1)
    # Clipped, the first vector is (0.6, 0.8); the estimate is off by the offset in both coordinates.
    assert result.squared_error == pytest.approx(2 * 0.25**2, rel=1e-14)
    assert result.unclipped_squared_error == pytest.approx((0.25 - 2.4 / 3) ** 2 + (0.25 - 3.2 / 3) ** 2, rel=1e-14)
    assert result.predicted_squared_error == pytest.approx((1 + 0.5 + 1) / 9, rel=1e-14)
    assert result.worst_squared_error == pytest.approx(7 / 3, rel=1e-14)


def test_how_clients_are_divided_into_chunks_does_not_matter() -> None:
    mechanism = Offset(NormBall(5, 1.0, 0.5), 0.0)
    vectors = np.random.default_rng(2).normal(size=(40, 5))
    whole = simulate_vector_mean(mechanism, [vectors], np.random.default_rng(1))
    parts = simulate_vector_mean(mechanism, np.array_split(vectors, 7), np.random.default_rng(1))
    assert (parts.clients, parts.clipped) == (whole.clients, whole.clipped) == (40, 40)
    assert parts.predicted_squared_error == pytest.approx(whole.predicted_squared_error, rel=1e-13)
    assert parts.unclipped_squared_error == pytest.approx(whole.unclipped_squared_error, rel=1e-12)


@pytest.mark.parametrize("chunks", [[], [np.zeros((0, 3))]])
def test_no_clients_are_an_error(chunks: list[np.ndarray]) -> None:
    with pytest.raises(ValueError, match="chunks must hold at least one client, got none"):
        simulate_vector_mean(Offset(NormBall(3, 2.0), 0.0), chunks, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("chunk", "message"), [(np.zeros((2, 4)), r"vectors must have the shape \(clients, 3\)"), (np.full((1, 3), np.nan), "vectors must")]
)
def test_bad_vectors_are_errors(chunk: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate_vector_mean(Offset(NormBall(3, 2.0), 0.0), [chunk], np.random.default_rng(1))


# Each mechanism with a ball that it is for.
TABLE = MechanismSpec("mvu", bits_in=3, bits_out=2, metric="l1")
MECHANISMS = [
    (TABLE, 2.0),
    (MechanismSpec("cldp"), 1.0),
    (MechanismSpec("cldp"), 2.0),
    (MechanismSpec("cldp"), np.inf),
    (MechanismSpec("laplace"), 2.0),
    (MechanismSpec("gaussian"), 2.0),
    (MechanismSpec("privunit"), 2.0),
    (MechanismSpec("sqkr"), 2.0),
    (MechanismSpec("sqkr", bits=1), 2.0),
    (MechanismSpec("skellam"), 2.0),
]


@pytest.mark.parametrize(("spec", "norm"), MECHANISMS, ids=str)
def test_errors_are_what_variances_predict(spec: MechanismSpec, norm: float) -> None:
    ball = NormBall(8, norm, 2.0)
    mechanism = build_mechanism(spec, ball, 3.0, 1e-5)
    guarantee = mechanism.guarantee
    assert (guarantee.adjacency, guarantee.trust_model) == ("replace-one", "local")
    assert guarantee.epsilon <= 3.0
    assert guarantee.delta <= 1e-5

    def errors(repetition: int) -> tuple[float, float, float]:
        chunks = population_chunks("sphere", 500, 8, np.random.default_rng([1, repetition]), scale=1.5)
        result = simulate_vector_mean(mechanism, chunks, np.random.default_rng([2, repetition]))
        return result.squared_error, result.predicted_squared_error, result.worst_squared_error

    measured, predicted, worst = np.array([errors(repetition) for repetition in range(100)]).T
    # 5 standard errors of the mean of 100 runs; the mean of a chi-square-like quantity with 8 degrees of freedom is close to normal.
    assert abs((measured - predicted).mean()) < 5 * (measured - predicted).std(ddof=1) / 10
    assert (predicted <= worst * (1 + 1e-9)).all()


def peak_memory(clients: int) -> int:
    mechanism = build_mechanism(MechanismSpec("laplace"), NormBall(2**13, 2.0), 1.0, 0.0)
    rng = np.random.default_rng(1)

    def chunks() -> Iterator[np.ndarray]:
        yield from population_chunks("sphere", clients, 2**13, rng)

    tracemalloc.start()
    simulate_vector_mean(mechanism, chunks(), rng)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_memory_does_not_grow_with_the_clients() -> None:
    # A chunk has 32 clients: 2 MiB. All 640 would take 40 MiB.
    few, many = peak_memory(64), peak_memory(640)
    assert many < 1.05 * few
    assert many < 2**25
