"""Secure sums of sketches.

Points under test: the guarantee of the sum of clipped sketches, for every sketch; errors agree with predictions.

Seeds are fixed; means are within 5 standard errors of predictions, so that one seed in a million would fail.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from quietbits.analysis.audits.mechanism_audit import audit
from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.sketched_mechanism import SketchedMechanism
from quietbits.design.contracts.task import Task
from quietbits.design.secure_sum.aggregation import SecureSum
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from quietbits.design.secure_sum.distributed_skellam import DistributedSkellamMechanism
from quietbits.design.secure_sum.sketched_sum import MedianSum, SketchedSum
from quietbits.design.transforms.count_sketch import CountMeanSketch
from quietbits.design.transforms.gaussian_sketch import GaussianSketch
from quietbits.design.transforms.hadamard_sketch import HadamardSketch
from quietbits.design.transforms.layered_sketch import LayeredSketch
from quietbits.design.transforms.linear_sketch import IdentitySketch, LinearSketch
from quietbits.errors import InfeasibleError

DIMENSION, CLIENTS = 120, 8
# Parameters for two clients, with an epsilon that audits can measure well.
LOUD: dict[str, Any] = {"clip": 1.1, "sigma": 1.0, "granularity": 0.05, "bits": 16, "delta": 1e-2}


def summed(sketch: LinearSketch, clients: int = CLIENTS, *, clip: float = 2.0, sigma: float = 0.02, **changes: Any) -> SketchedSum:
    """Return a mechanism for the unit ball; `clip` and `sigma` are for full-length sketches."""
    factor = sketch.length_factor
    sums = DistributedDiscreteGaussianMechanism(
        NormBall(sketch.sketch_dimension, 2.0, clip * factor),
        clients,
        **{"bits": 30, "granularity": 1e-3 * factor, "local_sigma": sigma * factor, "delta": 1e-5, "rotation": "fourier"} | changes,
    )
    return SketchedSum(NormBall(sketch.dimension, 2.0), sketch, sums)


SKETCHES: dict[str, LinearSketch] = {
    "one row": CountMeanSketch(DIMENSION, 1, 30, seed=1),
    "several rows": CountMeanSketch(DIMENSION, 4, 15, seed=1),
    "several rows over their number": CountMeanSketch(DIMENSION, 4, 15, seed=1, scaling="mean"),
    "hadamard": HadamardSketch(DIMENSION, 50, seed=1),
    "gaussian": GaussianSketch(DIMENSION, 40, seed=1),
    "layers": LayeredSketch((CountMeanSketch(100, 1, 20, seed=1), HadamardSketch(20, 10, seed=2))),
    "none": IdentitySketch(DIMENSION, seed=1),
}


def population(clients: int, dimension: int = DIMENSION, seed: int = 1) -> np.ndarray:
    """Return vectors from the middle of the ball to beyond its edge, with a mean far from zero."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(clients, dimension)) + rng.normal(size=dimension)
    return np.asarray(vectors * (np.linspace(0.3, 1.2, clients) / np.linalg.norm(vectors, axis=1))[:, None])


def squared_errors(mechanism: SketchedSum, vectors: np.ndarray, rounds: int, seed: int) -> np.ndarray:
    """Return squared errors of rounds, each with a new sketch."""
    mean, rng, clients = mechanism.ball.clip(vectors).mean(axis=0), np.random.default_rng(seed), len(vectors)
    renewed = [mechanism.renewed(index) for index in range(1, rounds + 1)]
    return np.array([np.sum((item.decode(item.aggregate(item.encode(vectors, rng)), clients) - mean) ** 2) for item in renewed])


@pytest.mark.parametrize("name", SKETCHES)
def test_the_sum_of_messages_is_decoded_once(name: str) -> None:
    mechanism, vectors = summed(SKETCHES[name]), population(CLIENTS)
    messages = mechanism.encode(vectors, np.random.default_rng(2))
    steps = mechanism.noisy_steps(vectors, np.random.default_rng(2))
    masked = SecureSum(CLIENTS, mechanism.padded_dimension, mechanism.modulus)
    total = masked.total([messages[:3], messages[3:]], np.random.default_rng(3))
    estimate = mechanism.decode(total, CLIENTS)
    # The server sees only the sum, and decoding messages one by one gives the same estimate.
    alone = [mechanism.sketch.decode(CLIENTS * mechanism.inner.mean_of_steps(step)) for step in steps]
    np.testing.assert_allclose(estimate, np.mean(alone, axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(mechanism.recovered_steps(total), steps.sum(axis=0))
    # The exact value decodes the mean sketch of the clipped vectors, without noise.
    exact = mechanism.sketch.decode(mechanism.sketch.encode(mechanism.ball.clip(vectors)).mean(axis=0))
    assert np.sum((estimate - exact) ** 2) < 25 * mechanism.variance_bound / CLIENTS


@pytest.mark.parametrize("name", SKETCHES)
def test_the_measured_error_is_the_predicted_one(name: str) -> None:
    mechanism, vectors = summed(SKETCHES[name]), population(CLIENTS)
    squares = squared_errors(mechanism, vectors, 200, seed=4)
    error = mechanism.error(vectors)
    predicted = error.variance / CLIENTS + error.shared
    assert abs(squares.mean() - predicted) < 5 * squares.std() / math.sqrt(200)
    assert error.variance <= mechanism.variance_bound
    assert error.shared <= mechanism.worst_shared_variance == pytest.approx(SKETCHES[name].distortion, rel=1e-14)


@pytest.mark.parametrize(("dimension", "size", "rows", "clients"), [(200, 40, 4, 3), (400, 200, 5, 5), (400, 30, 15, 10)])
@pytest.mark.parametrize("sigma", [0.01, 0.5])
def test_the_error_is_predicted_for_any_size(dimension: int, size: int, rows: int, clients: int, sigma: float) -> None:
    # The dominant error is compression or noise, depending on the case.
    mechanism = summed(CountMeanSketch.of_size(dimension, size, rows), clients, sigma=sigma)
    vectors = population(clients, dimension)
    squares = squared_errors(mechanism, vectors, 100, seed=5)
    error = mechanism.error(vectors)
    assert abs(squares.mean() - (error.variance / clients + error.shared)) < 5 * squares.std() / math.sqrt(100)


def test_over_rounds_what_is_unbiased_averages_out() -> None:
    # There are 30 groups of 20 rounds, each round with a new sketch; no vector is clipped.
    mechanism, vectors = summed(CountMeanSketch(DIMENSION, 4, 15), sigma=0.2), population(CLIENTS)
    mean, rng = mechanism.ball.clip(vectors).mean(axis=0), np.random.default_rng(6)
    renewed = [mechanism.renewed(seed) for seed in range(1, 601)]
    estimates = np.array([item.decode(item.aggregate(item.encode(vectors, rng)), CLIENTS) for item in renewed])
    squares = np.sum((estimates.reshape(30, 20, -1).mean(axis=1) - mean) ** 2, axis=1)
    error = replace(mechanism.error(vectors), bias=0.0)
    assert abs(squares.mean() - error.of_mean(CLIENTS, rounds=20)) < 5 * squares.std() / math.sqrt(30)
    # A single sketch for all rounds does not average out the compression error.
    fixed = np.array([mechanism.decode(mechanism.aggregate(mechanism.encode(vectors, rng)), CLIENTS) for _ in range(100)])
    assert np.sum((fixed.mean(axis=0) - mean) ** 2) > 5 * error.of_mean(CLIENTS, rounds=100)


def test_scaled_rows_with_a_scaled_clip_are_the_same_mechanism() -> None:
    usual, scaled = (summed(SKETCHES[name], clip=1.2) for name in ("several rows", "several rows over their number"))
    assert scaled.sketch_clip == pytest.approx(usual.sketch_clip / 2, rel=1e-15)
    for name in ("variance_bound", "bias_bound", "clipping_probability", "worst_shared_variance", "wrap_probability"):
        assert getattr(scaled, name) == pytest.approx(getattr(usual, name), rel=1e-9)
    assert scaled.guarantee.epsilon == pytest.approx(usual.guarantee.epsilon, rel=1e-9)
    vectors = population(CLIENTS)
    np.testing.assert_allclose(scaled.variance(vectors), usual.variance(vectors), rtol=1e-9)
    result = [item.decode(item.aggregate(item.encode(vectors, np.random.default_rng(7))), CLIENTS) for item in (usual, scaled)]
    np.testing.assert_allclose(result[0], result[1], rtol=1e-9, atol=1e-12)
    # Clipping to the vectors' norm would need twice the noise for the same epsilon.
    too_wide = summed(SKETCHES["several rows over their number"], clip=2.4)
    assert too_wide.guarantee.epsilon > 1.5 * scaled.guarantee.epsilon


def test_the_guarantee_is_that_of_the_sum_of_sketches() -> None:
    sums = DistributedSkellamMechanism(NormBall(30, 2.0, 1.5), 5, bits=20, granularity=0.01, local_variance=0.5, delta=1e-6)
    mechanism = SketchedSum(NormBall(DIMENSION, 2.0, 1.0), SKETCHES["one row"], sums)
    assert mechanism.guarantee == sums.guarantee
    assert (mechanism.delta, mechanism.adjacency, mechanism.clients) == (1e-6, sums.adjacency, 5)
    # The guarantee depends neither on the sketch nor on the length of the vectors.
    for other in (replace(mechanism, sketch=HadamardSketch(DIMENSION, 30)), replace(mechanism, ball=NormBall(DIMENSION, 2.0, 100.0))):
        assert other.guarantee == mechanism.guarantee
    assert (mechanism.bits_per_client, mechanism.modulus, mechanism.padded_dimension) == (32 * 20, 2**20, 32)
    wider = replace(mechanism, inner=replace(sums, ball=NormBall(30, 2.0, 3.0)))
    assert wider.guarantee.epsilon > 1.5 * mechanism.guarantee.epsilon


def one_bucket(sketch: CountMeanSketch) -> np.ndarray:
    """Return a vector of length 1 whose coordinates all add up in one bucket of the first row."""
    places = sketch.encode(np.eye(sketch.dimension))[:, : sketch.width]
    fullest = np.abs(places).sum(axis=0).argmax()
    vector = np.sign(places[:, fullest])
    return np.asarray(vector / np.linalg.norm(vector))


@pytest.mark.parametrize("rows", [1, 3])
def test_vectors_that_all_fall_into_one_bucket_are_no_less_private(rows: int) -> None:
    sketch = CountMeanSketch(600, rows, 10, seed=3)
    vector = one_bucket(sketch)
    mechanism = summed(sketch, 2, **LOUD)
    adversarial = np.stack([vector, -vector])
    # One bucket has 60 coordinates, so the sketch is over 7 times as long as the vector, or over 4 times for one of three rows.
    assert np.linalg.norm(mechanism.sketched(adversarial), axis=1).min() > (6 if rows == 1 else 3) * mechanism.inner.norm_bound
    words = np.random.default_rng(8)
    rounded = [mechanism.inner.rounded_steps(mechanism.sketched(scale * adversarial), words) for scale in (0.2, 1.0, 1e6) * 10]
    longest = np.linalg.norm(np.concatenate(rounded), axis=1).max() * mechanism.inner.granularity
    assert 1.0 < longest <= mechanism.inner.norm_bound < 1.3
    # The audit compares the sums of two neighbours along the adversarial direction.
    result = audit(mechanism, 10_000, np.random.default_rng(9), direction=vector, confidence=1 - 1e-6)
    assert result.claim == mechanism.inner.guarantee
    assert not result.refuted
    assert result.measured.epsilon_lower_bound > 0.4 * result.claim.epsilon


def test_without_the_clip_after_the_sketch_an_audit_would_find_it_out() -> None:
    class Unclipped(SketchedSum):
        def noisy_steps(self, vectors: Any, words: Any) -> Any:
            wide = replace(self.inner, ball=NormBall(self.inner.ball.dimension, 2.0, 100.0))
            return wide.noisy_steps(self.sketched(vectors), words)

    sketch = CountMeanSketch(600, 1, 10, seed=3)
    mechanism = summed(sketch, 2, **LOUD)
    unclipped = Unclipped(mechanism.ball, sketch, mechanism.inner)
    assert audit(unclipped, 10_000, np.random.default_rng(9), direction=one_bucket(sketch), confidence=1 - 1e-6).refuted


def test_parts_that_do_not_fit_are_refused() -> None:
    mechanism = summed(SKETCHES["one row"])
    for changes, message in (
        ({"ball": NormBall(DIMENSION, 1.0)}, "ball must be of norm 2 for sketches, got norm 1"),
        ({"ball": NormBall(100, 2.0)}, "sketch must be of 100 coordinates, as the ball is, got 120"),
        ({"sketch": CountMeanSketch(DIMENSION, 1, 29)}, "inner must be for 29 coordinates of a sketch, got 30"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(mechanism, **changes)
    with pytest.raises(ValueError, match="clients must be a whole number from 1 to 1000000000, got 0"):
        summed(SKETCHES["one row"], 0)
    aggregate = mechanism.aggregate(mechanism.encode(population(CLIENTS), np.random.default_rng(0)))
    for clients in (0, CLIENTS - 1):
        with pytest.raises(ValueError, match=f"clients must be {CLIENTS}, for whose noise the guarantee is stated, got {clients}"):
            mechanism.decode(aggregate, clients)


def test_the_bias_of_clipped_sketches_and_that_of_the_sum_add_up() -> None:
    # The tight clip norm clips sketches, and with so little noise rounding has a bias.
    mechanism = summed(SKETCHES["several rows"], clip=1.2, sigma=0.02)
    clipped = mechanism.ball.clip_norm * math.sqrt((1 + mechanism.sketch.distortion) * mechanism.clipping_probability)
    aligned = mechanism.inner.bias_bound * math.sqrt(mechanism.sketch.squared_operator_norm_bound) / mechanism.sketch.length_factor
    assert min(clipped, aligned) > 0
    assert mechanism.bias_bound == pytest.approx(clipped + aligned, rel=1e-12)


@pytest.mark.parametrize("name", sorted(SKETCHES))
@pytest.mark.parametrize("sigma", [0.02, 2.0])
def test_no_vector_has_more_than_the_variance_bound(name: str, sigma: float) -> None:
    mechanism = summed(SKETCHES[name], sigma=sigma)
    variances = mechanism.variance(population(CLIENTS))
    assert (variances <= mechanism.variance_bound).all()
    # The variance depends on each vector's rounding; some vectors have less than the worst.
    assert variances.min() < mechanism.variance_bound * (1 - 1e-9) or sigma > 1


@pytest.mark.parametrize("name", sorted(SKETCHES))
def test_what_one_seed_biases_the_sum_by_is_decoded_with_it(name: str) -> None:
    # Decoding may lengthen the sum's bias as much as it lengthens any sketch.
    sketch = SKETCHES[name]
    mechanism = summed(sketch, bits=6)
    decoding = np.array([sketch.decode(item) for item in np.eye(sketch.sketch_dimension)])
    longest = float(np.linalg.norm(decoding, 2))
    assert mechanism.inner.seed_bias_bound > 0
    of_sketches = SketchedMechanism.seed_bias_bound.fget(mechanism)  # type: ignore[attr-defined]
    assert mechanism.seed_bias_bound - of_sketches >= mechanism.inner.seed_bias_bound * longest * (1 - 1e-9)


def test_the_unit_of_sketches_does_not_matter_to_what_one_seed_biases() -> None:
    usual, scaled = (summed(SKETCHES[name], bits=6) for name in ("several rows", "several rows over their number"))
    assert scaled.sketch.length_factor == 0.5 * usual.sketch.length_factor
    assert scaled.seed_bias_bound == pytest.approx(usual.seed_bias_bound, rel=1e-9)


@pytest.mark.parametrize(("rows", "width"), [(1, 30), (4, 15), (5, 12)])
@pytest.mark.parametrize("sigma", [0.02, 0.5])
def test_medians_err_as_drawn_and_less_than_their_bound(rows: int, width: int, sigma: float) -> None:
    plain = summed(CountMeanSketch(DIMENSION, rows, width, seed=1), sigma=sigma)
    mechanism = MedianSum(plain.ball, plain.sketch, plain.inner)
    vectors = population(CLIENTS)
    squares = squared_errors(mechanism, vectors, 400, 3)
    mean = mechanism.ball.clip(vectors).mean(axis=0)
    bound = mechanism.variance_bound / CLIENTS + mechanism.shared_variance(mean)
    assert squares.mean() < bound + 4 * squares.std() / math.sqrt(400)
    assert bound <= mechanism.error(vectors).of_mean(CLIENTS)
    assert math.sqrt(bound) < mechanism.bias_bound < mechanism.seed_bias_bound
    predicted = mechanism.predicted_error(mean, mechanism.variance_bound, draws=400).of_mean(CLIENTS)
    assert predicted == pytest.approx(squares.mean(), abs=7 * squares.std() / math.sqrt(400))
    # A single row has no other median than its mean.
    if rows == 1:
        message = mechanism.encode(vectors, np.random.default_rng(1))
        decoded = [item.decode(item.aggregate(message), CLIENTS) for item in (plain, mechanism)]
        assert decoded[0] == pytest.approx(decoded[1])
        assert mechanism.variance_bound == pytest.approx(plain.variance_bound)


def test_the_factor_of_medians_is_reached_by_rows_of_which_half_err() -> None:
    for rows in range(1, 9):
        errors = np.zeros(rows)
        errors[: -(-rows // 2)] = 1.0
        factor = rows / -(-rows // 2)
        assert np.median(errors) ** 2 <= factor * np.mean(errors**2) == pytest.approx(1.0)
        assert (np.median(errors) == 1.0) == (rows % 2 == 1)
        for drawn in np.random.default_rng(rows).normal(size=(2000, rows)):
            assert np.median(drawn) ** 2 <= factor * np.mean(drawn**2)


def test_medians_need_rows_and_keep_the_guarantee() -> None:
    plain = summed(SKETCHES["several rows"])
    mechanism = MedianSum(plain.ball, SKETCHES["several rows"], plain.inner)
    assert mechanism.guarantee == plain.guarantee
    other = summed(SKETCHES["hadamard"])
    with pytest.raises(ValueError, match="sketch must be a CountMeanSketch for a median over rows, got HadamardSketch"):
        MedianSum(other.ball, SKETCHES["hadamard"], other.inner)
    loud = summed(CountMeanSketch(DIMENSION, 4, 15, seed=1), 2, **LOUD)
    result = audit(MedianSum(loud.ball, loud.sketch, loud.inner), 4000, np.random.default_rng(1), delta=1e-2)
    assert not result.refuted
    assert result.measured.epsilon_lower_bound > 0.25 * result.claim.epsilon


@pytest.mark.parametrize("name", ["sketched-discrete-gaussian", "sketched-skellam"])
def test_both_noises_have_both_decoders(name: str) -> None:
    task = Task(NormBall(200, 2.0), 50, 2.0, 1e-5, "add-or-remove-one")
    options = {"bits": 14, "rows": 5, "sketch_dimension": 40}
    mean, median = (build_mechanism(name, task, {**options, "decoder": decoder}) for decoder in ("mean", "median"))
    assert isinstance(mean, SketchedSum)
    assert isinstance(median, MedianSum)
    assert mean.guarantee == median.guarantee
    assert mean.guarantee.epsilon == pytest.approx(2.0, abs=1e-5)
    kind = DistributedSkellamMechanism if name == "sketched-skellam" else DistributedDiscreteGaussianMechanism
    assert isinstance(mean.inner, kind)
    # Most of these vectors are so short that their sketches are not clipped.
    vectors = 0.4 * population(50, 200)
    squares, predicted = squared_errors(mean, vectors, 200, 4), mean.error(vectors)
    expected = predicted.variance / 50 + predicted.shared
    assert squares.mean() == pytest.approx(expected, abs=5 * squares.std() / math.sqrt(200))
    with pytest.raises(InfeasibleError, match="transform must be count-mean for the median over rows"):
        build_mechanism(name, task, {"bits": 14, "sketch_dimension": 40, "transform": "hadamard", "decoder": "median"})
