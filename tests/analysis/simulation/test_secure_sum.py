"""One simulated round of a secure sum: every number by hand, masks or none, and wrapping counted against what is predicted."""

import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quietbits
from quietbits.analysis.simulation.secure_sum import SimulatedSecureSum, repeat_secure_sum, simulate_secure_sum
from quietbits.analysis.simulation.vector_populations import population_chunks
from quietbits.design.contracts.gaussian import central_gaussian_error
from quietbits.design.contracts.guarantee import Guarantee
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.noise.random_words import WordsLike
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from quietbits.design.secure_sum.modular_arithmetic import centred_representatives, residues

MECHANISM = DistributedDiscreteGaussianMechanism(NormBall(5, 2.0, 10.0), clients=30, bits=12, granularity=0.5, local_sigma=2.0, delta=1e-5)


@dataclass(frozen=True)
class WholeNumbers:
    """Sends clipped vectors of whole numbers as they are: no privacy, so that every number can be worked out by hand."""

    ball: NormBall
    clients: int
    modulus: int
    guarantee: Guarantee

    worst_variance = 6.0
    bits_per_client = 40.0
    coordinate_wrap_probability = 0.25
    wrap_probability = 0.5

    @property
    def padded_dimension(self) -> int:
        return self.ball.dimension

    def noisy_steps(self, vectors: np.ndarray, words: WordsLike) -> np.ndarray:  # noqa: ARG002 - nothing is drawn
        return np.rint(self.ball.clip(vectors)).astype(np.int64)

    def recovered_steps(self, aggregate: np.ndarray) -> np.ndarray:
        return centred_representatives(residues(aggregate, self.modulus), self.modulus)

    def decode(self, aggregate: np.ndarray, clients: int) -> np.ndarray:
        return self.recovered_steps(aggregate) / clients

    def variance(self, vectors: np.ndarray) -> np.ndarray:
        return self.ball.norms(self.ball.clip(vectors))


def whole_numbers(**changes: Any) -> WholeNumbers:
    plain = WholeNumbers(NormBall(2, 2.0, 10.0), 3, 100, Guarantee(1.0, "replace-one", "secure-sum", delta=1e-5))
    return replace(plain, **changes)


CHUNKS = [np.array([[30.0, -40.0], [0.0, 5.0]]), np.array([[0.0, -8.0]])]


def test_every_number_by_hand() -> None:
    protocol = whole_numbers()
    result = simulate_secure_sum(protocol, CHUNKS, np.random.default_rng(1))
    assert result == SimulatedSecureSum(
        clients=3,
        dimension=2,
        padded_dimension=2,
        modulus=100,
        bits_per_coordinate=pytest.approx(np.log2(100), rel=1e-14),
        bits_per_client=40.0,
        clipped=1,
        squared_error=pytest.approx(0.0, abs=1e-28),
        predicted_squared_error=pytest.approx((10 + 5 + 8) / 9, rel=1e-14),
        worst_squared_error=2.0,
        central_gaussian_squared_error=central_gaussian_error(protocol.ball, 3, 1.0, 1e-5, "replace-one"),
        wrapped_coordinates=0,
        wrapped_coordinates_bound=0.5,
        coordinate_wrap_probability=0.25,
        wrap_probability=0.5,
        epsilon=1.0,
        delta=1e-5,
        adjacency="replace-one",
        trust_model="secure-sum",
    )


@pytest.mark.parametrize(("modulus", "wrapped"), [(23, 0), (22, 0), (21, 1), (13, 1), (12, 2), (3, 2), (2, 2)])
def test_a_sum_outside_the_range_is_counted_as_wrapped(modulus: int, wrapped: int) -> None:
    # The sum is (6, -11): modulo 22 the latter is the smallest representative, modulo 13 the former is the largest.
    result = simulate_secure_sum(whole_numbers(modulus=modulus), CHUNKS, np.random.default_rng(1))
    recovered = [centred_representatives(residues([total], modulus), modulus)[0] for total in (6, -11)]
    assert wrapped == sum(one != total for one, total in zip(recovered, (6, -11), strict=True)) == result.wrapped_coordinates
    assert result.squared_error == pytest.approx(sum((one - total) ** 2 for one, total in zip(recovered, (6, -11), strict=True)) / 9)


def test_the_reference_is_at_the_mechanisms_own_adjacency_and_none_without_delta() -> None:
    results = [
        simulate_secure_sum(whole_numbers(guarantee=guarantee), CHUNKS, np.random.default_rng(1))
        for guarantee in (
            Guarantee(1.0, "replace-one", "secure-sum", delta=1e-5),
            Guarantee(1.0, "add-or-remove-one", "secure-sum", delta=1e-5),
            Guarantee(1.0, "replace-one", "secure-sum"),
            Guarantee(101.0, "replace-one", "secure-sum", delta=1e-5),
            Guarantee(float("inf"), "replace-one", "secure-sum", delta=1e-5),
        )
    ]
    first, second = (result.central_gaussian_squared_error for result in results[:2])
    assert first is not None
    assert second is not None
    assert first == pytest.approx(4 * second, rel=1e-14)
    assert [(result.central_gaussian_squared_error, result.ratio_to_central) for result in results[2:]] == [(None, None)] * 3


@pytest.mark.parametrize("masked", [False, True])
def test_messages_are_those_of_encode(masked: bool) -> None:
    vectors = np.random.default_rng(2).normal(size=(30, 5))
    result = simulate_secure_sum(MECHANISM, [vectors], np.random.default_rng(3), masked=masked)
    messages = MECHANISM.encode(vectors, np.random.default_rng(3))
    estimate = MECHANISM.decode(MECHANISM.aggregate(messages), 30)
    assert result.squared_error == float(np.sum((estimate - vectors.sum(axis=0) / 30) ** 2))
    assert result.squared_error > 0


@pytest.mark.parametrize("clients", [2, 21, 22, 37])
def test_masks_change_nothing(clients: int) -> None:
    mechanism = replace(MECHANISM, clients=clients, bits=7)
    vectors = np.random.default_rng(4).normal(scale=9.0, size=(clients, 5))
    plain, masked = (
        simulate_secure_sum(mechanism, np.array_split(vectors, 2), np.random.default_rng(5), masked=choice) for choice in (False, True)
    )
    assert plain == masked


def test_how_clients_are_divided_into_chunks_does_not_matter() -> None:
    vectors = np.rint(np.random.default_rng(6).normal(scale=4.0, size=(40, 2)))
    protocol = whole_numbers(clients=40, modulus=2**20)
    whole = simulate_secure_sum(protocol, [vectors], np.random.default_rng(1))
    parts = simulate_secure_sum(protocol, np.array_split(vectors, 7), np.random.default_rng(1))
    assert (parts.clipped, parts.squared_error) == (whole.clipped, pytest.approx(whole.squared_error, rel=1e-9))
    assert parts.predicted_squared_error == pytest.approx(whole.predicted_squared_error, rel=1e-13)


@pytest.mark.parametrize("masked", [False, True])
def test_another_number_of_clients_is_refused(masked: bool) -> None:
    with pytest.raises(ValueError, match="chunks must hold the vectors of the mechanism's 3 clients, got 2"):
        simulate_secure_sum(whole_numbers(), CHUNKS[:1], np.random.default_rng(1), masked=masked)
    with pytest.raises(ValueError, match="chunks must hold the vectors of the mechanism's 3 clients, got at least 4"):
        simulate_secure_sum(whole_numbers(), [*CHUNKS[:1], *CHUNKS], np.random.default_rng(1), masked=masked)
    with pytest.raises(ValueError, match="chunks must hold the vectors of the mechanism's 3 clients, got 0"):
        simulate_secure_sum(whole_numbers(), [], np.random.default_rng(1), masked=masked)


def test_one_client_has_nobody_to_mask_with() -> None:
    with pytest.raises(ValueError, match="clients must be a whole number from 2 to"):
        simulate_secure_sum(whole_numbers(clients=1), [np.ones((1, 2))], np.random.default_rng(1), masked=True)


def test_vectors_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"vectors must have the shape \(clients, 2\), got \(3, 4\)"):
        simulate_secure_sum(whole_numbers(), [np.ones((3, 4))], np.random.default_rng(1))


def test_memory_does_not_grow_with_the_clients() -> None:
    def peak(clients: int) -> int:
        chunks: Iterator[np.ndarray] = (np.full((50, 2), 3.0) for _ in range(clients // 50))
        protocol = whole_numbers(clients=clients, modulus=2**40)
        tracemalloc.start()
        simulate_secure_sum(protocol, chunks, np.random.default_rng(1))
        _, found = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return found

    peak(50)
    assert peak(10_000) < 1.5 * peak(500)


def test_measured_errors_are_as_predicted() -> None:
    # Squared errors are nearly chi-square with 5 degrees: a relative standard deviation of sqrt(2/5) each, and 5 sigma of the mean.
    mechanism = replace(MECHANISM, bits=16, granularity=0.125)
    results = repeat_secure_sum(mechanism, "uniform-l1", 400, seed=7)
    assert abs(results["squared_error"].mean() / results["predicted_squared_error"].mean() - 1) < 5 * np.sqrt(2 / 5 / 400)
    assert (results["predicted_squared_error"] <= results["worst_squared_error"]).all()
    assert (results["wrapped_coordinates"] == 0).all()
    assert results["wrap_probability"].max() < 1e-12


def test_with_few_bits_coordinates_wrap_and_no_more_than_the_bound_says() -> None:
    # Wrapped coordinates of a round are at most 8, and rounds are independent: by Hoeffding, a mean above the bound's expectation by
    # 8 sqrt(ln(1/1e-6) / (2 * 600)) has probability 1e-6.
    rounds = 600
    few = DistributedDiscreteGaussianMechanism(NormBall(8, 2.0, 40.0), clients=10, bits=9, granularity=1.0, local_sigma=40.0, delta=1e-5)
    results = repeat_secure_sum(few, "sphere", rounds, seed=8)
    measured, bound = results["wrapped_coordinates"].mean(), results["wrapped_coordinates_bound"].iloc[0]
    assert 0 < measured < bound + 8 * np.sqrt(np.log(1e6) / (2 * rounds))
    assert bound < 8


def test_the_same_noise_with_more_bits_does_not_wrap() -> None:
    few = DistributedDiscreteGaussianMechanism(NormBall(8, 2.0, 40.0), clients=10, bits=9, granularity=1.0, local_sigma=40.0, delta=1e-5)
    wide = replace(few, bits=30)
    narrow_errors, wide_errors = (repeat_secure_sum(one, "sphere", 50, seed=9) for one in (few, wide))
    assert narrow_errors["wrapped_coordinates"].sum() > 0
    assert wide_errors["wrapped_coordinates"].sum() == 0
    same = narrow_errors["wrapped_coordinates"] == 0
    assert same.any()
    np.testing.assert_array_equal(narrow_errors.loc[same, "squared_error"], wide_errors.loc[same, "squared_error"])
    assert (narrow_errors.loc[~same, "squared_error"] != wide_errors.loc[~same, "squared_error"]).all()


def test_a_repetition_does_not_depend_on_how_many_there_are() -> None:
    few, many = (repeat_secure_sum(MECHANISM, "sphere", count, seed=3) for count in (2, 4))
    assert few.equals(many.iloc[:2])
    assert many["squared_error"].nunique() == 4
    assert not few.equals(repeat_secure_sum(MECHANISM, "sphere", 2, seed=4).assign(seed=3))


def test_repetitions_are_rounds_on_the_scaled_population() -> None:
    row = repeat_secure_sum(MECHANISM, "sparse", 1, nonzero=2).iloc[0]
    assert (row["repetition"], row["seed"], row["population"], row["clients"]) == (0, 0, "sparse", 30)
    assert row["clipped"] <= 30
    assert row["ratio_to_central"] == row["squared_error"] / row["central_gaussian_squared_error"]
    # Vectors of the cube, scaled by the clip norm, are longer than it.
    assert repeat_secure_sum(MECHANISM, "uniform-cube", 1).iloc[0]["clipped"] > 5


def test_what_is_not_there_is_missing_in_the_table() -> None:
    results = repeat_secure_sum(whole_numbers(guarantee=Guarantee(1.0, "replace-one", "secure-sum")), "sphere", 2)
    assert results[["central_gaussian_squared_error", "ratio_to_central"]].isna().all(axis=None)
    assert [results[name].dtype.name for name in ("central_gaussian_squared_error", "ratio_to_central")] == ["float64"] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"population": "cloud"}, "population must be one of uniform-l1, .*, got 'cloud'"),
        ({"nonzero": 3}, "nonzero must be left out for the population sphere"),
        ({"repetitions": 0}, "repetitions must be a whole number from 1 to 1000000, got 0"),
        ({"seed": -1}, "seed must be a whole number from 0 to"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"population": "sphere", "repetitions": 1} | options
    with pytest.raises(ValueError, match=message):
        repeat_secure_sum(MECHANISM, **arguments)


def test_the_population_is_drawn_in_chunks() -> None:
    chunks = population_chunks("sphere", 30, 5, np.random.default_rng(1), scale=10.0)
    assert simulate_secure_sum(MECHANISM, chunks, np.random.default_rng(2)).clients == 30


def test_the_example_of_the_documentation_runs() -> None:
    text = (Path(quietbits.__file__).parent / "docs" / "secure-sum.md").read_text(encoding="utf-8")
    example = text.split("## Simulating a round")[1].split("```python\n")[1].split("```")[0]
    assert "result.wrapped_coordinates == 0" in example
    exec(example, {})  # noqa: S102 - the example is the project's own
