"""Tests of one simulated round.

Points under test: numbers by hand, independence of chunks and masks, and errors that agree with variances.
"""

import math
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_sketches import SKETCHES

import quietbits
from quietbits.analysis.catalogue.registry import REGISTRY, build_mechanism
from quietbits.analysis.simulation import mean
from quietbits.analysis.simulation.dp_rec_mean import simulate_dp_rec_mean
from quietbits.analysis.simulation.mean import SimulatedMean, Wrapping, simulate_mean
from quietbits.analysis.simulation.populations import input_chunks
from quietbits.design.contracts.domains import Categories, Interval
from quietbits.design.contracts.mechanism import SecureSumMechanism, VectorMechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.privacy import Privacy
from quietbits.design.contracts.task import Task
from quietbits.design.frequencies.randomised_response import FrequencyRandomisedResponse
from quietbits.design.frequencies.unary_encoding import UnaryEncoding
from quietbits.design.local.unit_vectors.candidate_coding import PlainRandomCodingMechanism
from quietbits.design.noise.random_words import WordsLike, secure_words, seeded_words
from quietbits.design.relative_entropy.dp_rec import DpRecMechanism
from quietbits.design.relative_entropy.group_layout import uniform_layout
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from quietbits.design.secure_sum.modular_arithmetic import centred_representatives, messages_modulo, modular_sum, residues

MECHANISM = DistributedDiscreteGaussianMechanism(NormBall(5, 2.0, 10.0), clients=30, bits=12, granularity=0.5, local_sigma=2.0, delta=1e-5)


@dataclass(frozen=True)
class Offset(VectorMechanism):
    """Mechanism without privacy that sends the clipped vector plus a constant.

    Every error can be computed by hand.
    """

    ball: NormBall
    offset: float

    delta = 0.0
    variance_bound = 7.0
    bits_per_client = 64.0

    def encode(self, vectors: np.ndarray, random_words: WordsLike) -> np.ndarray:  # noqa: ARG002 - nothing is drawn
        return self.ball.clip(vectors) + self.offset

    def aggregate(self, messages: np.ndarray) -> np.ndarray:
        return messages.sum(axis=0)

    def decode(self, aggregate: np.ndarray, clients: int) -> np.ndarray:
        return aggregate / clients

    def variance(self, vectors: np.ndarray) -> np.ndarray:
        return self.ball.norms(self.ball.clip(vectors))

    def privacy(self) -> Privacy:
        return Privacy("local", ())


@dataclass(frozen=True)
class FastTogether(Offset):
    """Mechanism that encodes seven clients faster in one call than in several."""

    clients_per_call = 7


@dataclass(frozen=True)
class WholeNumbers(SecureSumMechanism, VectorMechanism):
    """Mechanism without privacy that sends clipped vectors of whole numbers.

    Every error can be computed by hand.
    """

    ball: NormBall
    clients: int
    modulus: int = 100

    delta = 0.0
    variance_bound = 6.0
    bits_per_client = 40.0
    coordinate_wrap_probability = 0.25
    wrap_probability = 0.5

    @property
    def padded_dimension(self) -> int:
        return self.ball.dimension

    def noisy_steps(self, vectors: np.ndarray, random_words: WordsLike) -> np.ndarray:  # noqa: ARG002 - nothing is drawn
        return np.rint(self.ball.clip(vectors)).astype(np.int64)

    def encode(self, vectors: np.ndarray, random_words: WordsLike) -> np.ndarray:
        return messages_modulo(self.noisy_steps(vectors, random_words), self.modulus)

    def aggregate(self, messages: np.ndarray) -> np.ndarray:
        return modular_sum(messages, self.modulus)

    def recovered_steps(self, aggregate: np.ndarray) -> np.ndarray:
        return centred_representatives(residues(aggregate, self.modulus), self.modulus)

    def decode(self, aggregate: np.ndarray, clients: int) -> np.ndarray:
        return self.recovered_steps(aggregate) / clients

    def variance(self, vectors: np.ndarray) -> np.ndarray:
        return self.ball.norms(self.ball.clip(vectors))

    def privacy(self) -> Privacy:
        return Privacy("secure-sum", ())


def rng(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def whole_numbers(**changes: Any) -> WholeNumbers:
    return replace(WholeNumbers(NormBall(2, 2.0, 10.0), 3), **changes)


def test_every_number_by_hand() -> None:
    ball = NormBall(2, 2.0, 1.0)
    chunks = [np.array([[3.0, 4.0], [0.0, 0.5]]), np.array([[0.0, -1.0]])]
    # The clipped first vector is (0.6, 0.8); the estimate is off by the offset in both coordinates.
    assert simulate_mean(Offset(ball, 0.25), chunks, rng(1)) == SimulatedMean(
        clients=3,
        clipped=1,
        squared_error=pytest.approx(2 * 0.25**2, rel=1e-14),
        unclipped_squared_error=pytest.approx((0.25 - 2.4 / 3) ** 2 + (0.25 - 3.2 / 3) ** 2, rel=1e-14),
        predicted_squared_error=pytest.approx((1 + 0.5 + 1) / 9, rel=1e-14),
        worst_squared_error=pytest.approx(7 / 3, rel=1e-14),
        zero_squared_error=pytest.approx(0.2**2 + 0.1**2, rel=1e-14),
    )


@pytest.mark.parametrize(("most", "sizes"), [(2**22, [8, 8, 3]), (10, [6, 6, 6, 1])])
def test_short_chunks_are_joined_for_mechanisms_that_are_faster_so(most: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = list[int]()

    def recorded(mechanism: Offset, vectors: np.ndarray, random_words: WordsLike) -> np.ndarray:
        lengths.append(len(vectors))
        return Offset.encode(mechanism, vectors, random_words)

    monkeypatch.setattr(FastTogether, "encode", recorded)
    monkeypatch.setattr(mean, "JOINED", most)
    chunks = [np.full((min(2, 19 - start), 2), start / 40) for start in range(0, 19, 2)]
    ball = NormBall(2, 2.0, 1.0)
    assert simulate_mean(FastTogether(ball, 0.25), chunks, rng(1)).squared_error == pytest.approx(2 * 0.25**2, rel=1e-12)
    assert lengths == sizes


CHUNKS = [np.array([[30.0, -40.0], [0.0, 5.0]]), np.array([[0.0, -8.0]])]


def test_every_number_of_a_secure_sum_by_hand() -> None:
    assert simulate_mean(whole_numbers(), CHUNKS, rng(1)) == SimulatedMean(
        clients=3,
        clipped=1,
        squared_error=pytest.approx(0.0, abs=1e-28),
        unclipped_squared_error=pytest.approx((24 / 3) ** 2 + (32 / 3) ** 2, rel=1e-14),
        predicted_squared_error=pytest.approx((10 + 5 + 8) / 9, rel=1e-14),
        worst_squared_error=2.0,
        zero_squared_error=pytest.approx((6 / 3) ** 2 + (11 / 3) ** 2, rel=1e-14),
        wrapping=Wrapping(
            modulus=100,
            padded_dimension=2,
            wrapped_coordinates=0,
            wrapped_coordinates_bound=0.5,
            coordinate_wrap_probability=0.25,
            wrap_probability=0.5,
        ),
    )


@pytest.mark.parametrize(("modulus", "wrapped"), [(23, 0), (22, 0), (21, 1), (13, 1), (12, 2), (3, 2), (2, 2)])
def test_a_sum_outside_the_range_is_counted_as_wrapped(modulus: int, wrapped: int) -> None:
    # The sum is (6, -11). Modulo 22, -11 is the smallest representative, and modulo 13, 6 is the largest.
    result = simulate_mean(whole_numbers(modulus=modulus), CHUNKS, rng(1))
    recovered = [centred_representatives(residues([total], modulus), modulus)[0] for total in (6, -11)]
    assert result.wrapping is not None
    assert wrapped == sum(item != total for item, total in zip(recovered, (6, -11), strict=True)) == result.wrapping.wrapped_coordinates
    assert result.squared_error == pytest.approx(sum((item - total) ** 2 for item, total in zip(recovered, (6, -11), strict=True)) / 9)


def test_numbers_of_an_interval_by_hand() -> None:
    mechanism = build_mechanism("laplace", Task(Interval(0.0, 2.0), 3, 1.0, 0.0, "replace-one"))
    result = simulate_mean(mechanism, [np.array([0.5, 3.0]), np.array([1.0])], rng(1))
    messages = mechanism.encode([0.5, 3.0, 1.0], rng(1))
    assert (result.clients, result.clipped) == (3, 1)
    assert result.squared_error == pytest.approx((messages.mean() - 3.5 / 3) ** 2, rel=1e-12)
    assert result.unclipped_squared_error == pytest.approx((messages.mean() - 4.5 / 3) ** 2, rel=1e-12)
    # Laplace noise of scale 2 has variance 8.
    assert result.predicted_squared_error == result.worst_squared_error == pytest.approx(8 / 3, rel=1e-12)
    # The mean of the clipped numbers is 3.5 / 3, compared with the middle of the interval.
    assert result.zero_squared_error == pytest.approx(0.5**2 / 9, rel=1e-12)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("source", [lambda seed: rng(seed), lambda seed: seeded_words(rng(seed))])
def test_messages_are_those_of_encode(masked: bool, source: Any) -> None:
    vectors = rng(2).normal(size=(30, 5))
    result = simulate_mean(MECHANISM, [vectors], source(3), masked=masked)
    messages = MECHANISM.encode(vectors, rng(3))
    estimate = MECHANISM.decode(MECHANISM.aggregate(messages), 30)
    assert result.squared_error == float(np.sum((estimate - vectors.sum(axis=0) / 30) ** 2))
    assert result.squared_error > 0


@pytest.mark.parametrize("clients", [2, 21, 22, 37])
def test_masks_change_nothing(clients: int) -> None:
    mechanism = replace(MECHANISM, clients=clients, bits=7)
    vectors = rng(4).normal(scale=9.0, size=(clients, 5))
    plain, masked = (simulate_mean(mechanism, np.array_split(vectors, 2), rng(5), masked=choice) for choice in (False, True))
    assert plain == masked


def test_masks_of_many_chunks_add_up_modulo_a_large_number() -> None:
    # Residues are below 2**62, and the modulus is no power of two, so four residues can exceed a 64-bit word.
    protocol = whole_numbers(clients=40, modulus=2**62 - 1)
    vectors = np.rint(rng(4).normal(scale=2.0, size=(40, 2)))
    assert simulate_mean(protocol, np.array_split(vectors, 40), rng(5), masked=True).squared_error < 1e-20


def test_a_shuffler_needs_no_masks() -> None:
    task = Task(Interval(), 20, 1.0, 1e-3, "replace-one")
    with pytest.raises(ValueError, match="masked must be False for a mechanism whose messages a shuffler mixes"):
        simulate_mean(build_mechanism("split-and-mix", task), [np.full(20, 0.5)], rng(1), masked=True)


def test_words_of_the_system_serve_too() -> None:
    result = simulate_mean(MECHANISM, [np.ones((30, 5))], secure_words, masked=True)
    assert 0 < result.squared_error < 25 * result.predicted_squared_error


def test_how_clients_are_divided_into_chunks_does_not_matter() -> None:
    vectors = rng(2).normal(size=(40, 5))
    steps = np.rint(rng(6).normal(scale=4.0, size=(40, 2)))
    for mechanism, inputs in ((Offset(NormBall(5, 1.0, 0.5), 0.0), vectors), (whole_numbers(clients=40, modulus=2**20), steps)):
        whole, parts = (simulate_mean(mechanism, chunks, rng(1)) for chunks in ([inputs], np.array_split(inputs, 7)))
        assert (parts.clients, parts.clipped, parts.wrapping) == (whole.clients, whole.clipped, whole.wrapping)
        assert parts.squared_error == pytest.approx(whole.squared_error, rel=1e-9, abs=1e-28)
        assert parts.predicted_squared_error == pytest.approx(whole.predicted_squared_error, rel=1e-13)
        assert parts.unclipped_squared_error == pytest.approx(whole.unclipped_squared_error, rel=1e-12)


@pytest.mark.parametrize("chunks", [[], [np.zeros((0, 3))]])
def test_no_clients_are_an_error(chunks: list[np.ndarray]) -> None:
    with pytest.raises(ValueError, match="chunks must hold at least one client, got none"):
        simulate_mean(Offset(NormBall(3, 2.0), 0.0), chunks, rng(1))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("chunks", "sent"), [(CHUNKS[:1], "2"), ([*CHUNKS[:1], *CHUNKS], "at least 4"), ([], "0")])
def test_another_number_of_clients_than_a_secure_sum_was_made_for_is_refused(chunks: list[np.ndarray], sent: str, masked: bool) -> None:
    with pytest.raises(ValueError, match=f"chunks must hold the vectors of the mechanism's 3 clients, got {sent}"):
        simulate_mean(whole_numbers(), chunks, rng(1), masked=masked)


def test_masks_need_a_secure_sum_and_two_clients() -> None:
    with pytest.raises(ValueError, match="clients must be a whole number from 2 to"):
        simulate_mean(whole_numbers(clients=1), [np.ones((1, 2))], rng(1), masked=True)
    with pytest.raises(ValueError, match="masked must be False for a mechanism whose messages are not added up modulo M, got True"):
        simulate_mean(Offset(NormBall(2, 2.0), 0.0), CHUNKS, rng(1), masked=True)


@pytest.mark.parametrize("mechanism", [Offset(NormBall(2, 2.0), 0.0), whole_numbers()])
@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        (np.zeros((3, 4)), r"vectors must have the shape \(clients, 2\), got \(3, 4\)"),
        (np.full((1, 2), np.nan), "vectors must hold finite"),
    ],
)
def test_bad_vectors_are_errors(mechanism: VectorMechanism, chunk: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate_mean(mechanism, [chunk], rng(1))


def test_the_mean_of_items_is_how_frequent_they_are() -> None:
    # At epsilon = 100 the response has no noise to 43 digits.
    result = simulate_mean(FrequencyRandomisedResponse(100.0, 4), [np.array([0, 0, 3]), np.array([0])], rng(1))
    assert (result.clients, result.clipped) == (4, 0)
    assert result.squared_error < 1e-30
    assert result.zero_squared_error == pytest.approx(0.5**2 + 2 * 0.25**2)


def test_long_messages_of_items_are_not_held_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    held = []

    class Counting(UnaryEncoding):
        def aggregate(self, messages: Any) -> Any:
            held.append(len(messages))
            return super().aggregate(messages)

    monkeypatch.setattr(mean, "MESSAGE_BITS", 700)
    result = simulate_mean(Counting(1.0, 100), [np.zeros(20, dtype=int)], rng(1))
    assert held == [7, 7, 6]
    assert result.clients == 20
    assert 0.3 < result.squared_error / result.predicted_squared_error < 3


# The simulation treats these mechanisms specially; conformance tests cover the errors of all mechanisms. The numbers of clients keep each
# case fast.
CASES = [
    *(("laplace", domain, 500) for domain in (Interval(-1.0, 3.0), NormBall(8, 2.0, 2.0))),
    *(("cldp", NormBall(8, norm, 2.0), 500) for norm in (1.0, 2.0, np.inf)),
    *((name, NormBall(8, 2.0, 2.0), 500) for name in ("sqkr", "distributed-discrete-gaussian", "sketched-discrete-gaussian")),
    *((name, NormBall(8, 2.0, 2.0), 20) for name in ("dp-rec", "minimal-random-coding-plain", "rotating-simplex")),
    *((name, Interval(-1.0, 3.0), 500) for name in ("cpsgd", "distributed-skellam")),
    ("shuffled-randomised-response", Interval(-1.0, 3.0), 100),
    *((name, Categories(6), 500) for name in ("unary-encoding", "hadamard-response", "sketched-discrete-gaussian-frequencies")),
]
OPTIONS: dict[str, dict[str, Any]] = {"cpsgd": {"bits": 10}, **SKETCHES}


@pytest.mark.parametrize(("name", "domain", "clients"), CASES, ids=str)
def test_errors_are_what_variances_predict(name: str, domain: Any, clients: int) -> None:
    mechanism = build_mechanism(name, Task(domain, clients, 3.0, 1e-3, "replace-one"), OPTIONS.get(name, {}))

    def result(repetition: int) -> SimulatedMean:
        population = "sphere" if isinstance(domain, NormBall) else "uniform"
        scale = {} if isinstance(domain, Categories) else {"scale": 1.5}
        chunks = input_chunks(population, domain, clients, rng(1, repetition), **scale)
        return simulate_mean(mechanism.renewed(repetition), chunks, rng(2, repetition))

    results = [result(repetition) for repetition in range(30)]
    measured, predicted, worst = np.array(
        [(item.squared_error, item.predicted_squared_error, item.worst_squared_error) for item in results]
    ).T
    # The margin is 5 standard errors of the mean of 30 runs, which is nearly normal. Predictions include the bias of random coding; for
    # secure sums only a bound on the bias is known.
    margin = 5 * (measured - predicted).std(ddof=1) / math.sqrt(30)
    unknown_bias = 0.0 if name in ("dp-rec", "minimal-random-coding-plain") else mechanism.bias_bound
    assert -margin <= (measured - predicted).mean() <= margin + unknown_bias**2
    assert (predicted <= worst * (1 + 1e-9) + mechanism.bias_bound**2).all()
    assert all((item.wrapping is not None) == (REGISTRY[name].trust_model == "secure-sum") for item in results)


def test_the_bias_of_plain_random_coding_is_predicted() -> None:
    mechanism = PlainRandomCodingMechanism(4.0, 1, NormBall(5, 2.0, 3.0))
    result = simulate_mean(mechanism, [np.tile([[3.0, 0.0, 0.0, 0.0, 0.0]], (2000, 1))], rng(1))
    noise = mechanism.variance_bound / 2000
    assert mechanism.bias_bound**2 > 100 * noise
    # The margin adds 5 standard errors of the noise along the bias.
    margin = noise + 10 * mechanism.bias_bound * np.sqrt(noise / 5)
    assert result.squared_error == pytest.approx(result.predicted_squared_error, abs=margin)


def test_a_bias_that_is_known_is_predicted() -> None:
    # One bit of coding loses much of a vector, and with many clients little noise remains.
    mechanism = DpRecMechanism(NormBall(2, 2.0), clip_ratio=3.0, layout=uniform_layout(2, 1, 1))
    vectors = np.tile([[1.0, 0.0]], (1000, 1))
    result = simulate_mean(mechanism, [vectors], rng(1))
    same = simulate_dp_rec_mean(mechanism, [vectors], rng(1), coded=True)
    assert result.predicted_squared_error == pytest.approx(same.predicted_squared_error, rel=1e-12)
    assert result.squared_error == pytest.approx(same.squared_error, rel=1e-12)
    assert 0.5 * result.predicted_squared_error < same.squared_bias < result.predicted_squared_error
    assert result.squared_error == pytest.approx(result.predicted_squared_error, rel=0.2)


def peak_memory(clients: int) -> int:
    mechanism = build_mechanism("laplace", Task(NormBall(2**13, 2.0), clients, 1.0, 0.0, "replace-one"))
    words = rng(1)

    def chunks() -> Iterator[np.ndarray]:
        yield from input_chunks("sphere", mechanism.domain, clients, words)

    tracemalloc.start()
    simulate_mean(mechanism, chunks(), words)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_memory_does_not_grow_with_the_clients() -> None:
    # A chunk has 32 clients and 2 MiB. All 640 clients would take 40 MiB.
    few, many = peak_memory(64), peak_memory(640)
    assert many < 1.05 * few
    assert many < 2**25


def test_memory_of_a_secure_sum_does_not_grow_with_the_clients() -> None:
    def peak(clients: int) -> int:
        chunks: Iterator[np.ndarray] = (np.full((50, 2), 3.0) for _ in range(clients // 50))
        protocol = whole_numbers(clients=clients, modulus=2**40)
        tracemalloc.start()
        simulate_mean(protocol, chunks, rng(1))
        _, results = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return results

    peak(50)
    assert peak(10_000) < 1.5 * peak(500)


def test_the_example_of_the_documentation_runs() -> None:
    text = (Path(quietbits.__file__).parent / "docs" / "how-to" / "simulate-a-secure-sum.md").read_text(encoding="utf-8")
    example = text.split("```python\n")[1].split("```")[0]
    assert "wrapped_coordinates == 0" in example
    exec(example, {})  # noqa: S102 - the example is the project's own
