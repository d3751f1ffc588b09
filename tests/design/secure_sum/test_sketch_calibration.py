"""Calibrated sketches are the shortest within the slack.

Refusals state the necessary change.
"""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from quietbits.design.contracts.gaussian import gaussian_privacy
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.sketched_mechanism import CLIP_MARGIN
from quietbits.design.contracts.task import Budget
from quietbits.design.local.vector_gaussian import calibrate_noise_multiplier
from quietbits.design.secure_sum.sketch_calibration import (
    CalibratedSketch,
    SketchChoice,
    calibrate_central_sketch,
    calibrate_sketched_sum,
    calibrate_sparse_sum,
    cheapest_rate_and_bits,
    sketched_sum_of_noise,
)
from quietbits.design.transforms.count_sketch import CountMeanSketch
from quietbits.design.transforms.gaussian_sketch import GaussianSketch
from quietbits.design.transforms.hadamard_sketch import HadamardSketch
from quietbits.errors import InfeasibleError

BALL, BUDGET = NormBall(8000, 2.0, 3.0), Budget(1.0, 1e-5, "add-or-remove-one")


@cache
def summed(choice: SketchChoice, *, ball: NormBall = BALL, clients: int = 200, bits: int = 16, budget: Budget = BUDGET) -> Any:
    return calibrate_sketched_sum(ball, clients, bits, budget, choice)


@cache
def central(choice: SketchChoice, *, ball: NormBall = BALL, clients: int = 200, budget: Budget = BUDGET) -> Any:
    return calibrate_central_sketch(ball, clients, budget, choice)


def ratio(result: CalibratedSketch[Any]) -> float:
    return result.compressed_error / result.plain_error


def test_a_sketch_of_given_size_may_fit_bits_that_all_coordinates_do_not() -> None:
    settings: dict[str, Any] = {
        "ball": NormBall(2**20, 2.0),
        "clients": 1000,
        "bits": 10,
        "budget": Budget(20.0, 1e-6, "add-or-remove-one"),
    }
    with pytest.raises(InfeasibleError, match=r"bits must be at least 11 .* in 1048576 dimensions"):
        summed(SketchChoice(), **settings)
    result = summed(SketchChoice(sketch_dimension=1500), **settings)
    assert result.mechanism.sketch_dimension == 1500
    assert result.mechanism.guarantee.epsilon <= 20
    assert math.isinf(result.plain_error)
    assert math.isfinite(result.compressed_error)


SETTINGS = [
    (summed, SketchChoice(slack=2.0), {}),
    (summed, SketchChoice(slack=6.0, rows=1), {}),
    (summed, SketchChoice("hadamard", slack=1.5), {}),
    (summed, SketchChoice("hadamard", slack=2.0), {"budget": Budget(4.0, 1e-6, "replace-one", rounds=10)}),
    (summed, SketchChoice("gaussian", slack=2.0), {"ball": NormBall(3000, 2.0), "clients": 100}),
    # With 9 bits, noise jumps with the sketch's size, so the fixed point of size and noise is not the smallest size.
    (
        summed,
        SketchChoice("hadamard", slack=7.380607101825599),
        {"ball": NormBall(471, 2.0), "clients": 1204, "bits": 9, "budget": Budget(3.3825191276326727, 1e-5, "add-or-remove-one")},
    ),
    (central, SketchChoice(slack=2.0), {}),
    (central, SketchChoice("hadamard", slack=1.3), {"budget": Budget(0.5, 1e-6, "replace-one")}),
]


@pytest.mark.parametrize(("calibrate", "choice", "changes"), SETTINGS)
def test_the_sketch_is_the_shortest_within_the_slack(calibrate: Any, choice: SketchChoice, changes: dict[str, Any]) -> None:
    calibrated = calibrate(choice, **changes)
    mechanism = calibrated.mechanism
    size = mechanism.sketch_dimension
    assert ratio(calibrated) <= choice.slack
    assert choice.unit < size < mechanism.ball.dimension
    assert size % choice.unit == 0
    # A sketch that is one unit shorter exceeds the slack.
    shorter = calibrate(replace(choice, sketch_dimension=size - choice.unit), **changes)
    assert shorter.mechanism.sketch_dimension == size - choice.unit
    assert ratio(shorter) > choice.slack
    # The calibration keeps a given size, for example the calibrated size itself.
    assert calibrate(replace(choice, sketch_dimension=size), **changes) == calibrated


@pytest.mark.parametrize(("calibrate", "choice", "changes"), SETTINGS)
def test_the_budget_is_kept_and_errors_are_the_mechanisms_own(calibrate: Any, choice: SketchChoice, changes: dict[str, Any]) -> None:
    calibrated = calibrate(choice, **changes)
    mechanism, budget = calibrated.mechanism, changes.get("budget", BUDGET)
    assert 0.9 * budget.epsilon < mechanism.privacy().epsilon(budget.delta, mechanism.adjacency, budget.rounds) <= budget.epsilon
    assert mechanism.adjacency == budget.adjacency or budget.adjacency is None
    assert mechanism.sketch_clip == pytest.approx(1.1 * mechanism.ball.clip_norm, rel=1e-15)
    error = mechanism.error()
    assert calibrated.compressed_error == pytest.approx(error.variance / mechanism.clients + error.shared, rel=1e-12)
    assert error.shared == pytest.approx(mechanism.sketch.distortion * mechanism.ball.clip_norm**2, rel=1e-12)
    # The clip's margin costs a factor of 1.21 in variance; a short sketch has larger steps, which matter with few bits.
    noise = (calibrated.compressed_error - error.shared) / calibrated.plain_error
    assert 1.2 < noise < (1.24 if changes.get("bits") is None else 4.0)


def test_the_plain_mechanism_is_that_without_a_sketch() -> None:
    result = central(SketchChoice())
    # The plain error is that of Gaussian noise on the sum of the vectors.
    assert result.plain_error == pytest.approx(8000 * (result.mechanism.noise_multiplier * 3.0 / 200) ** 2, rel=1e-12)
    assert result.compressed_error == pytest.approx(result.mechanism.sketch.distortion * 9 + 1.21 * result.plain_error, rel=1e-12)
    # A secure sum also has rounding and a modulus, and hardly more error.
    assert 1.0 < summed(SketchChoice()).plain_error / result.plain_error < 1.02


@pytest.mark.parametrize("calibrate", [summed, central])
def test_a_larger_slack_has_a_shorter_sketch(calibrate: Any) -> None:
    sizes = [calibrate(SketchChoice(slack=slack)).mechanism.sketch_dimension for slack in (1.9, 2.0, 3.0, 10.0, 1000.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 5
    # The noise has the same error for every size, so the shortest sketch uses the slack for its compression error.
    assert sizes[-1] <= 0.01 * sizes[0]


@pytest.mark.parametrize("calibrate", [summed, central])
def test_stricter_privacy_has_a_shorter_sketch(calibrate: Any) -> None:
    sizes = [
        calibrate(SketchChoice(), budget=Budget(epsilon, 1e-5, "add-or-remove-one")).mechanism.sketch_dimension
        for epsilon in (1.0, 0.5, 0.1)
    ]
    assert sizes == sorted(set(sizes), reverse=True)
    # While the noise grows by a factor of about 100, the size falls by about the same factor.
    assert sizes[0] > 50 * sizes[-1]


@pytest.mark.parametrize("calibrate", [summed, central])
def test_a_hadamard_sketch_is_shorter(calibrate: Any) -> None:
    count, hadamard = (calibrate(SketchChoice(transform, slack=1.9)).mechanism for transform in ("count-mean", "hadamard"))
    assert hadamard.sketch_dimension < 0.8 * count.sketch_dimension
    assert isinstance(count.sketch, CountMeanSketch)
    assert count.sketch.rows == 15
    assert isinstance(hadamard.sketch, HadamardSketch)


@pytest.mark.parametrize(("calibrate", "without"), [(summed, "distributed-discrete-gaussian"), (central, "central Gaussian noise")])
def test_a_slack_that_no_sketch_keeps_is_refused_with_the_least_that_one_does(calibrate: Any, without: str) -> None:
    # With little noise, compression costs far more than the noise.
    for slack in (1.0, 1.2, 2.0):
        with pytest.raises(InfeasibleError, match="slack must be at least ") as refused:
            calibrate(SketchChoice(slack=slack), clients=2000)
        assert f"coordinates, got {slack:g}: compression costs more than noise, and {without} has none; or give a" in str(refused.value)
    least = float(str(refused.value).split("slack must be at least ")[1].split()[0])
    assert 2 < least < 1000
    # The least slack permits exactly the longest sketch.
    calibrated = calibrate(SketchChoice(slack=least), clients=2000)
    assert calibrated.mechanism.sketch_dimension == 7995
    with pytest.raises(InfeasibleError, match=f"slack must be at least {least:g} for a sketch of fewer than 8000 coordinates"):
        calibrate(SketchChoice(slack=least - 0.002), clients=2000)
    # A given size is never refused.
    assert ratio(calibrate(SketchChoice(slack=1.2, sketch_dimension=1500), clients=2000)) > least


@pytest.mark.parametrize("calibrate", [summed, central])
def test_where_noise_is_as_large_as_the_clip_a_hadamard_sketch_is_named(calibrate: Any) -> None:
    """A count-mean sketch's error is the squared norm; a long Hadamard sketch's error is small."""
    changes = {"ball": NormBall(2**13, 2.0), "clients": 350}
    with pytest.raises(InfeasibleError, match="or take the transform hadamard, or give a sketch_dimension"):
        calibrate(SketchChoice(), **changes)
    assert calibrate(SketchChoice("hadamard"), **changes).mechanism.sketch_dimension < 2**13
    # The clip's margin alone costs a factor of 1.21, so no transform is within the slack.
    with pytest.raises(InfeasibleError, match="has none; or give a sketch_dimension"):
        calibrate(SketchChoice(slack=1.2), **changes)


@pytest.mark.parametrize("calibrate", [summed, central])
@pytest.mark.parametrize(("dimension", "rows", "least"), [(1, None, 16), (15, None, 16), (3, 3, 4), (1, 1, 2)])
def test_vectors_that_are_too_short_for_a_sketch_are_refused(calibrate: Any, dimension: int, rows: int | None, least: int) -> None:
    with pytest.raises(InfeasibleError, match=f"dimension must be at least {least} for a shorter sketch, got {dimension}; or give rows"):
        calibrate(SketchChoice(rows=rows, slack=100.0), ball=NormBall(dimension, 2.0))


@pytest.mark.parametrize(("choice", "longest"), [(SketchChoice("hadamard"), 8009), (SketchChoice(), 7995), (SketchChoice(rows=10), 8000)])
def test_the_longest_sketch_is_shorter_than_the_vectors(choice: SketchChoice, longest: int) -> None:
    # 8010 is a multiple of 10 and of 15 rows.
    assert choice.longest(8010).sketch_dimension == longest


def test_too_few_bits_are_refused_with_the_fewest_that_are_enough() -> None:
    with pytest.raises(InfeasibleError, match="bits must be at least") as refused:
        summed(SketchChoice(), bits=5)
    enough = int(str(refused.value).split("bits must be at least ")[1].split()[0])
    assert summed(SketchChoice(), bits=enough).mechanism.guarantee.epsilon <= 1.0


def test_a_gaussian_ensemble_is_no_longer_than_can_be_stored() -> None:
    # 2**27 numbers are 2048 rows of 2**16.
    choice = SketchChoice("gaussian", slack=25.0)
    assert choice.longest(2**16).sketch_dimension == 2048
    result = summed(choice, ball=NormBall(2**16, 2.0), clients=100)
    assert result.mechanism.sketch_dimension < 2048
    assert isinstance(result.mechanism.sketch, GaussianSketch)
    with pytest.raises(InfeasibleError, match="slack must be at least"):
        summed(replace(choice, slack=1.3), ball=NormBall(2**16, 2.0), clients=100)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"transform": "fourier"}, "transform must be one of count-mean, hadamard, gaussian, got 'fourier'"),
        ({"rows": 0}, "rows must be a whole number from 1 to 1024, got 0"),
        ({"slack": 0.9}, "slack must be a number from 1 to 1e.06, got 0.9"),
        ({"sketch_dimension": 8001, "rows": 1}, "sketch_dimension must be a whole number from 1 to 8000, got 8001"),
        ({"sketch_dimension": 0}, "sketch_dimension must be a whole number from 1 to 8000, got 0"),
        ({"sketch_dimension": 100}, "sketch_dimension must be a multiple of rows, 15, such as 105, got 100"),
        ({"sketch_dimension": 8192, "transform": "hadamard"}, "sketch_dimension must be a whole number from 1 to 8000, got 8192"),
        ({"seed": -1}, "seed must be a whole number from 0 to"),
    ],
)
def test_bad_choices_are_refused(values: dict[str, Any], message: str) -> None:
    for calibrate in (summed, central):
        with pytest.raises(ValueError, match=message):
            calibrate(SketchChoice(**values))


def test_a_sketch_has_the_first_seed_unless_another_is_given() -> None:
    assert summed(SketchChoice()).mechanism.sketch.seed == 0


def test_a_sketch_of_few_coordinates_has_as_many_rows() -> None:
    result = summed(SketchChoice(sketch_dimension=7))
    assert (result.mechanism.sketch.rows, result.mechanism.sketch.width) == (7, 1)


def test_each_number_of_bits_has_the_shortest_sketch_within_the_slack_of_ample_bits() -> None:
    ball, clients, budget, slack = NormBall(1000, 2.0, 3.0), 50, BUDGET, 2.0
    choice = SketchChoice("hadamard", seed=3)
    pairs = cheapest_rate_and_bits(ball, clients, budget, slack, choice)
    assert [pair.bits_per_parameter for pair in pairs] == sorted(pair.bits_per_parameter for pair in pairs)
    # With ample bits, the error is that of Gaussian noise on the sum: modulus and rounding cost less than 2 %.
    central_error = 1000 * (calibrate_noise_multiplier(budget, "central") * 3.0 / clients) ** 2
    (reference,) = {pair.reference_error for pair in pairs}
    assert 1.0 < reference / central_error < 1.02
    shorter, whole = ({pair.bits: pair for pair in pairs if (pair.sketch_dimension == 1000) is plain} for plain in (False, True))
    # More bits leave less error: all numbers of bits from the fewest that serve serve too.
    assert sorted(whole) == list(range(min(whole), 25))
    assert sorted(shorter) == list(range(min(shorter), 25))
    errors = [whole[bits].compressed_error for bits in sorted(whole)]
    assert errors == sorted(errors, reverse=True)
    for bits, pair in whole.items():
        assert (pair.rate, pair.bits_per_parameter) == (1.0, float(bits))
        assert pair.compressed_error <= slack * reference
        assert pair.compressed_error == pytest.approx(summed(choice, ball=ball, clients=clients, bits=bits).plain_error, rel=1e-12)
    coarser = min(whole) - 1
    given = replace(choice, sketch_dimension=500)
    assert summed(given, ball=ball, clients=clients, bits=coarser).plain_error > slack * reference
    for bits, pair in shorter.items():
        size = pair.sketch_dimension
        assert pair.rate == 1000 / size
        result, less = (
            summed(replace(choice, sketch_dimension=length), ball=ball, clients=clients, bits=bits) for length in (size, size - 1)
        )
        assert pair.bits_per_parameter == result.mechanism.bits_per_client / 1000
        assert pair.compressed_error == pytest.approx(result.compressed_error, rel=1e-12)
        assert pair.compressed_error <= slack * reference < less.compressed_error


def test_a_slack_below_the_cost_of_sketches_leaves_whole_vectors_of_enough_bits() -> None:
    # The clip's margin alone costs a factor of 1.21.
    pairs = cheapest_rate_and_bits(NormBall(1000, 2.0), 50, BUDGET, 1.1)
    assert {pair.sketch_dimension for pair in pairs} == {1000}
    assert pairs[0].compressed_error <= 1.1 * pairs[0].reference_error


# Tests of sparse sums


def sparse(choice: SketchChoice, sparsity: int, **changes: Any) -> Any:
    given = {"ball": BALL, "clients": 200, "bits": 16, "budget": BUDGET} | changes
    return calibrate_sparse_sum(given["ball"], given["clients"], given["bits"], given["budget"], choice, sparsity)


@pytest.mark.parametrize("sparsity", [1, 10, 200])
def test_a_sparse_mean_has_four_measurements_for_each_coordinate_and_logarithm(sparsity: int) -> None:
    mechanism = sparse(SketchChoice("hadamard"), sparsity)
    assert mechanism.sketch_dimension == math.ceil(4 * sparsity * math.log(8000))
    assert (mechanism.sparsity, mechanism.refit, mechanism.clients) == (sparsity, True, 200)
    assert 0.9 < mechanism.guarantee.epsilon <= 1.0
    assert mechanism.sketch_clip == pytest.approx(3.3, rel=1e-15)
    # The error is that of `sparsity` coordinates of noise, whose level does not depend on their number.
    plain = summed(SketchChoice()).plain_error
    assert mechanism.variance_bound / 200 == pytest.approx(1.21 * plain * sparsity / 8000, rel=0.05)


def test_rows_of_a_count_mean_sketch_round_measurements_up() -> None:
    mechanism = sparse(SketchChoice(), 10)
    assert mechanism.sketch_dimension == 15 * math.ceil(math.ceil(40 * math.log(8000)) / 15)
    assert sparse(SketchChoice(sketch_dimension=300), 10).sketch_dimension == 300


def test_means_that_are_not_sparse_enough_are_refused() -> None:
    with pytest.raises(
        InfeasibleError, match="sparsity must be smaller for 8988 measurements to be fewer than 8000 coordinates, got 250: distributed-disc"
    ):
        sparse(SketchChoice("hadamard"), 250)
    for sparsity in (0, 8001):
        with pytest.raises(ValueError, match=f"sparsity must be a whole number from 1 to 8000, got {sparsity}"):
            sparse(SketchChoice("hadamard"), sparsity)
    with pytest.raises(ValueError, match="sparsity must be a whole number from 1 to 100, got 101"):
        sparse(SketchChoice("hadamard", sketch_dimension=100), 101)


def test_sketch_and_rotation_have_words_of_their_own() -> None:
    # A single seed serves sketch and rotation, which derive different words from it.
    mechanism = summed(SketchChoice(seed=5)).mechanism
    assert (mechanism.sketch.seed, mechanism.inner.rotation_seed) == (5, 5)
    assert mechanism.guarantee == summed(SketchChoice(seed=6)).mechanism.guarantee
    assert central(SketchChoice()).mechanism.guarantee.epsilon == pytest.approx(
        gaussian_privacy(central(SketchChoice()).mechanism.noise_multiplier, "add-or-remove-one", "central").epsilon(1e-5), rel=1e-12
    )


@pytest.mark.parametrize(("adjacency", "times"), [("replace-one", 2), ("add-or-remove-one", 1)])
def test_a_given_noise_is_that_of_sketches_of_the_clip_norm_and_its_margin(adjacency: str, times: int) -> None:
    ball, budget = NormBall(64, 2.0, 3.0), Budget(1.0, 1e-5, adjacency)
    mechanism = sketched_sum_of_noise(ball, 100, 20, budget, SketchChoice("hadamard", sketch_dimension=16), 2.0)
    assert mechanism.inner.ball == NormBall(16, 2.0, CLIP_MARGIN * 3.0)
    assert mechanism.inner.local_sigma * 10 == pytest.approx(2.0 * times * CLIP_MARGIN * 3.0, rel=1e-12)
    with pytest.raises(ValueError, match="sketch_dimension must be given with a noise_multiplier, got None"):
        sketched_sum_of_noise(ball, 100, 20, budget, SketchChoice(), 2.0)
