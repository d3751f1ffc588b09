"""The predicted error of thresholded, projected frequencies, against simulation."""

import numpy as np
import pytest

from quietbits.solvers.decoders.simplex_projection import project_onto_simplex
from quietbits.solvers.decoders.thresholded_frequencies import thresholded_error

ITEMS = 2000
ZIPF = 1 / np.arange(1, ITEMS + 1) / np.sum(1 / np.arange(1, ITEMS + 1))
FEW = np.repeat([1 / 50, 0.0], [50, ITEMS - 50])


def simulated(frequencies: np.ndarray, deviation: float, most: int, threshold: float) -> tuple[float, float]:
    """Return the mean squared errors of kept and of missed items over twenty draws of the noise."""
    rng, errors = np.random.default_rng(0), []
    for _ in range(20):
        noisy = frequencies + deviation * rng.normal(size=ITEMS)
        kept = np.argsort(-noisy)[:most]
        kept = kept[noisy[kept] > threshold]
        estimate = np.zeros(ITEMS)
        estimate[kept] = noisy[kept]
        estimate = project_onto_simplex(estimate) if estimate.sum() > 1 else estimate
        squares = (estimate - frequencies) ** 2
        held_out = np.ones(ITEMS, dtype=bool)
        held_out[kept] = False
        errors.append((squares[~held_out].sum(), squares[held_out].sum()))
    kept_error, missed_error = np.mean(errors, axis=0)
    return float(kept_error), float(missed_error)


@pytest.mark.parametrize(
    ("frequencies", "deviation", "most", "threshold"),
    [
        (ZIPF, 1e-3, ITEMS, 0.0),
        (ZIPF, 1e-2, ITEMS, 0.0),
        (ZIPF, 1e-3, 100, 0.0),
        (ZIPF, 1e-3, 500, 2.5e-3),
        (FEW, 2e-3, 50, 5e-3),
        (FEW, 2e-3, 400, 0.0),
        (FEW, 1e-2, 50, 0.0),
    ],
    ids=["all", "mostly noise", "the largest", "threshold", "few stand out", "more than are held", "few hidden"],
)
def test_the_prediction_is_the_simulated_error(frequencies: np.ndarray, deviation: float, most: int, threshold: float) -> None:
    predicted = thresholded_error(frequencies, deviation, most, threshold)
    kept, missed = simulated(frequencies, deviation, most, threshold)
    assert predicted.squared == pytest.approx(kept + missed, rel=0.04)
    # A kept value that the projection lowers to 0 is missed in the prediction.
    assert predicted.missed >= missed * 0.96


def test_items_out_of_the_reach_of_noise_have_its_variance() -> None:
    predicted = thresholded_error(np.full(10, 0.1), 1e-4, 10)
    assert predicted.kept == pytest.approx(10 * 1e-8, rel=1e-3)
    assert predicted.missed == 0


@pytest.mark.parametrize(("deviation", "most", "threshold"), [(0.0, 1, 0.0), (0.1, 0, 0.0), (0.1, 1, -1.0)])
def test_bad_arguments_are_refused(deviation: float, most: int, threshold: float) -> None:
    with pytest.raises(ValueError, match=" must be "):
        thresholded_error(ZIPF, deviation, most, threshold)
