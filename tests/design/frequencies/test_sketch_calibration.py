"""Calibrated sketches of items: within the budget, as short and as exact as they state."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from quietbits.design.contracts.task import Budget
from quietbits.design.frequencies.item_sketch import ItemSketch
from quietbits.design.frequencies.sketch_calibration import (
    ItemSketchChoice,
    calibrate_discrete_gaussian_frequencies,
    calibrate_skellam_frequencies,
    calibrate_sketched_tosses,
    predicted_error,
)
from quietbits.design.frequencies.sketched_frequencies import SketchedFrequencies
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon

BUDGET = Budget(2.0, 1e-4, "replace-one")
KINDS = (calibrate_discrete_gaussian_frequencies, calibrate_skellam_frequencies, calibrate_sketched_tosses)
Calibrate = Callable[[int, int, Budget, ItemSketchChoice], SketchedFrequencies]


@pytest.mark.parametrize("calibrate", KINDS)
@pytest.mark.parametrize(
    "choice", [ItemSketchChoice(rows=3, width=32), ItemSketchChoice(rows=3, width=32, signed=True), ItemSketchChoice()]
)
def test_the_target_is_met_from_below(calibrate: Calibrate, choice: ItemSketchChoice) -> None:
    calibrated = calibrate(500, 2000, BUDGET, choice)
    assert 0 <= 2.0 - calibrated.guarantee.epsilon <= 1e-6
    assert calibrated.sketch.direct == (choice.rows is None)
    assert calibrated.sketch.signed == choice.signed
    # The noise is at least a trusted server's for the worst pair of items, and hardly more.
    distance = 2 * (calibrated.sketch.rows + calibrated.row_excess)
    deviation = math.sqrt(calibrated.clients * calibrated.item_variance / calibrated.sketch.noise_share)
    epsilon = gaussian_epsilon(deviation / math.sqrt(distance), 1e-4)
    if calibrate is not calibrate_sketched_tosses:
        # Little Skellam noise hides slightly better than as much Gaussian noise.
        assert 1.75 < epsilon <= (2.1 if calibrate is calibrate_skellam_frequencies else 2.0 + 1e-6)


@pytest.mark.parametrize("calibrate", KINDS)
def test_the_length_that_is_asked_for_is_kept(calibrate: Calibrate) -> None:
    errors = []
    for bits in (1000.0, 4000.0, 20_000.0):
        calibrated = calibrate(1000, 2000, BUDGET, ItemSketchChoice(message_bits=bits, concentration=0.1))
        assert bits / 3 < calibrated.bits_per_client <= bits or calibrated.sketch.direct
        errors.append(predicted_error(calibrated.sketch, calibrated.item_variance / 2000, 0.1, 0.05).squared)
    assert errors == sorted(errors, reverse=True)
    with pytest.raises(InfeasibleError, match=r"message_bits must be at least \d+ for a sketch of 1000 items of 2000 clients, got 10"):
        calibrate(1000, 2000, BUDGET, ItemSketchChoice(message_bits=10.0))


@pytest.mark.parametrize("calibrate", KINDS[:2])
def test_a_histogram_that_fits_is_not_refused_for_a_shorter_sketch(calibrate: Calibrate) -> None:
    budget = Budget(1.22, 1e-3, "replace-one", 4)
    whole = calibrate(9, 427, budget, ItemSketchChoice(width=9))
    calibrated = calibrate(9, 427, budget, ItemSketchChoice(message_bits=105.3))
    assert calibrated.sketch.direct
    assert calibrated.bits_per_client <= 105.3
    if whole.bits_per_client <= 105.3:
        assert (calibrated.bits_per_client, calibrated.variance_bound / 427) == (
            pytest.approx(104.27, abs=0.01),
            pytest.approx(0.00188, abs=1e-5),
        )
    else:
        # Rounding to as many steps as fit increases the noise slightly.
        assert whole.variance_bound < calibrated.variance_bound < 1.3 * whole.variance_bound
    # The sketch's own length suffices, and a smaller length is refused.
    assert calibrate(9, 427, budget, ItemSketchChoice(width=9, message_bits=calibrated.bits_per_client)) == calibrated
    with pytest.raises(InfeasibleError, match=r"message_bits must be at least \d+ for that sketch and noise, got 60"):
        calibrate(9, 427, budget, ItemSketchChoice(width=9, message_bits=60.0))


def test_tosses_are_as_many_as_the_message_allows() -> None:
    choice = {"rows": 1, "width": 16}
    many = calibrate_sketched_tosses(9, 427, Budget(1.22, 1e-3, "replace-one", 4), ItemSketchChoice(**choice))
    few = calibrate_sketched_tosses(
        9, 427, Budget(1.22, 1e-3, "replace-one", 4), ItemSketchChoice(**choice, message_bits=many.bits_per_client - 1)
    )
    assert few.trials < many.trials
    assert few.bits_per_client < many.bits_per_client


def test_the_slack_decides_what_is_short_enough() -> None:
    sizes, errors = [], []
    for slack in (1.0, 2.0, 10.0, 1000.0):
        calibrated = calibrate_skellam_frequencies(2000, 1000, BUDGET, ItemSketchChoice(slack=slack, concentration=0.001))
        sizes.append(calibrated.bits_per_client)
        errors.append(predicted_error(calibrated.sketch, calibrated.item_variance / 1000, 0.001, 0.05).squared)
        assert errors[-1] <= slack * errors[0] * 1.02
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0] / 20


def test_an_item_or_none_takes_less_noise() -> None:
    choice = ItemSketchChoice(rows=4, width=64)
    variances = [
        calibrate_discrete_gaussian_frequencies(1000, 500, Budget(1.0, 1e-5, adjacency), choice).item_variance
        for adjacency in ("replace-one", "add-or-remove-one")
    ]
    assert variances[0] == pytest.approx(2 * variances[1], rel=1e-3)


def test_the_number_of_tosses_hardly_matters_among_many() -> None:
    choice = ItemSketchChoice(rows=10, width=128)
    result = [calibrate_sketched_tosses(1000, 5000, BUDGET, choice, trials) for trials in (None, 1, 4)]
    assert result[0] == result[1]
    assert result[2].trials == 4
    assert result[2].item_variance == pytest.approx(result[1].item_variance, rel=0.01)


def test_theta_ends_at_its_limit_where_all_tosses_together_are_private_enough() -> None:
    calibrated = calibrate_sketched_tosses(10, 5000, Budget(50.0, 1e-2, "replace-one"), ItemSketchChoice(rows=1, width=2), trials=1)
    assert calibrated.theta == 0.499
    assert calibrated.guarantee.epsilon < 50


def test_predictions_are_what_is_found() -> None:
    choice = ItemSketchChoice(rows=3, width=64, seed=5)
    calibrated = calibrate_skellam_frequencies(3000, 10_000, BUDGET, choice)
    frequencies = 1 / np.arange(1, 3001)
    frequencies /= frequencies.sum()
    counts = np.random.default_rng(0).multinomial(10_000, frequencies)
    concentration = float(np.sum((counts / 10_000) ** 2))
    squares, largest = [], []
    for seed in range(60):
        renewed = calibrated.renewed(seed)
        sums = np.mod(renewed.simulated_sum(counts, np.random.default_rng(seed)), renewed.modulus).astype(np.uint64)
        errors = renewed.decode(sums, 10_000) - counts / 10_000
        squares.append(float(np.sum(errors**2)))
        largest.append(float(np.abs(errors).max()))
    predicted = predicted_error(calibrated.sketch, calibrated.item_variance / 10_000, concentration, 0.05)
    assert np.mean(squares) == pytest.approx(predicted.squared, rel=5 * np.std(squares) / np.mean(squares) / math.sqrt(60))
    # Each bound fails with probability at most 0.05: seven or more failures of 60 are less likely than one in twenty.
    assert sum(item > predicted.largest for item in largest) < 7
    assert predicted.largest < 4 * np.mean(largest)


def test_more_rows_lower_the_largest_error() -> None:
    errors = [predicted_error(ItemSketch(10_000, rows, 960 // rows), 1e-8, 0.1, 0.05) for rows in (1, 5, 15)]
    assert [error.squared for error in errors] == pytest.approx([errors[0].squared] * 3)
    assert errors[0].largest > errors[1].largest > errors[2].largest


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rows": 0}, "rows must be a whole number from 1"),
        ({"width": 1}, "width must be a whole number from 2"),
        ({"message_bits": 0.5}, "message_bits must be a number from 1"),
        ({"slack": 0.9}, "slack must be a number from 1"),
        ({"concentration": 0.0}, "concentration must be a number"),
        ({"failure": 1.0}, "failure must be a number above 0 and below 1"),
    ],
)
def test_bad_choices_are_refused(fields: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ItemSketchChoice(**fields)  # type: ignore[arg-type]
