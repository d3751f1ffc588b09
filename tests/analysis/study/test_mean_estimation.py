"""Estimates of a mean are unbiased, with right predicted errors.

Results do not depend on chunks or on other mechanisms.
"""

import math

import numpy as np
import pytest

from quietbits.analysis.random_streams import named_stream
from quietbits.analysis.study import mean_estimation
from quietbits.analysis.study.column_data import grid_prior
from quietbits.analysis.study.mean_estimation import estimate_mean
from quietbits.analysis.study.variance_bound import VarianceBound, certified_bound
from quietbits.design.contracts.guarantee import Guarantee
from quietbits.design.contracts.mechanism import ScalarMechanism
from quietbits.design.local.cldp import CLDPMechanism
from quietbits.design.local.laplace import LaplaceMechanism
from quietbits.design.noise.random_words import WordsLike
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.table_mean import TableMeanMechanism

INTERVAL = (0.0, 10.0)
VALUES = np.random.default_rng(5).uniform(-1, 11, 5000)
PROTOCOLS: dict[str, ScalarMechanism] = {
    "table": TableMeanMechanism(generalised_randomised_response(2.0, 3, interval=INTERVAL)),
    "cldp": CLDPMechanism(2.0, INTERVAL),
    "laplace": LaplaceMechanism(2.0, INTERVAL),
}

# First draws of the stream of seed 0 and the name "MVU, 3 bits".
STREAM = [3876892506, 3338916967, 3052295561]


def test_true_means_and_clipping_are_reported() -> None:
    comparison = estimate_mean(np.array([-5.0, 2.0, 4.0, 30.0]), INTERVAL, {"cldp": PROTOCOLS["cldp"]})
    assert (comparison.true_mean, comparison.clipped_mean, comparison.clipping_bias) == (7.75, 4.0, -3.75)
    assert (comparison.clients, comparison.clipped) == (4, 2)
    row = comparison.estimates[0]
    assert row.error == row.estimate - 7.75
    assert comparison.clipping_warning == (
        "2 of 4 values lie outside [0, 10] and were clipped, which moves the mean by -3.75, from 7.75 to 4. "
        "Estimates are of the clipped values' mean."
    )
    inside = estimate_mean(np.array([0.0, 2.0, 10.0]), INTERVAL, {"cldp": PROTOCOLS["cldp"]})
    assert (inside.clipping_bias, inside.clipping_warning) == (0.0, None)


def test_the_mean_of_the_largest_numbers_is_finite() -> None:
    comparison = estimate_mean(np.array([1.5e308, 1.5e308, 1e308, 0.0]), INTERVAL, {"cldp": PROTOCOLS["cldp"]})
    assert comparison.true_mean == 1e308
    assert comparison.clipped_mean == 7.5


def test_errors_are_unbiased_and_of_the_predicted_size() -> None:
    # Over 400 seeds, the mean score is within 5 standard errors of 0, and the chi-square of the scores within 5 sigma of 400. Each check
    # fails by chance with probability below 1e-6.
    scores = np.array(
        [
            [(row.estimate - run.clipped_mean) / row.standard_error for row in run.estimates]
            for run in (estimate_mean(VALUES[:300], INTERVAL, PROTOCOLS, seed=seed) for seed in range(400))
        ]
    )
    assert np.all(np.abs(scores.mean(axis=0)) < 5 / math.sqrt(400))
    assert np.all(np.abs((scores**2).mean(axis=0) - 1) < 5 * math.sqrt(2 / 400))


def test_standard_errors_come_from_the_exact_variances() -> None:
    comparison = estimate_mean(VALUES, INTERVAL, PROTOCOLS)
    for row, protocol in zip(comparison.estimates, PROTOCOLS.values(), strict=True):
        assert row.standard_error == pytest.approx(math.sqrt(protocol.variance(VALUES).sum()) / len(VALUES))
        assert row.worst_standard_error == pytest.approx(math.sqrt(protocol.variance_bound / len(VALUES)))
        assert row.standard_error <= row.worst_standard_error * (1 + 1e-12)
        low, high = row.confidence_interval
        assert (high - low) / 2 == pytest.approx(1.96 * row.worst_standard_error)
        assert row.guarantee == protocol.guarantee
        assert row.bits_per_client == protocol.bits_per_client


def test_a_mechanisms_result_depends_neither_on_the_others_nor_on_their_order() -> None:
    together = estimate_mean(VALUES, INTERVAL, PROTOCOLS, seed=3)
    backwards = estimate_mean(VALUES, INTERVAL, dict(reversed(PROTOCOLS.items())), seed=3)
    assert together.estimates == tuple(reversed(backwards.estimates))
    assert together.estimates[1:2] == estimate_mean(VALUES, INTERVAL, {"cldp": PROTOCOLS["cldp"]}, seed=3).estimates
    other_seed = estimate_mean(VALUES, INTERVAL, PROTOCOLS, seed=4)
    assert all(first.estimate != second.estimate for first, second in zip(together.estimates, other_seed.estimates, strict=True))


def test_clients_are_streamed_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mean_estimation, "CHUNK", 700)
    sizes: list[int] = []

    class Watched(LaplaceMechanism):
        def encode(self, values: np.ndarray, random_words: WordsLike) -> np.ndarray:
            sizes.append(len(values))
            return super().encode(values, random_words)

    watched = estimate_mean(VALUES, INTERVAL, {"laplace": Watched(2.0, INTERVAL)})
    assert max(sizes) == 700
    assert sum(sizes) == len(VALUES)
    monkeypatch.undo()
    whole = estimate_mean(VALUES, INTERVAL, {"laplace": PROTOCOLS["laplace"]})
    assert watched.estimates[0].estimate == pytest.approx(whole.estimates[0].estimate, rel=1e-12)
    assert watched.estimates[0].standard_error == pytest.approx(whole.estimates[0].standard_error, rel=1e-12)


def test_progress_names_each_mechanism_in_turn() -> None:
    names: list[str] = []
    estimate_mean(VALUES, INTERVAL, PROTOCOLS, on_start=names.append)
    assert names == list(PROTOCOLS)


@pytest.mark.parametrize(
    ("values", "interval", "message"),
    [
        ([], INTERVAL, "values must hold at least one number"),
        ([1.0, math.nan], INTERVAL, "values must hold finite numbers only"),
        ([1.0], (0.0, 5.0), "interval must be that of every protocol"),
        ([1.0], (5.0, 0.0), "interval must be two finite numbers"),
    ],
)
def test_bad_input_is_refused(values: list[float], interval: tuple[float, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimate_mean(np.array(values), interval, PROTOCOLS)


def test_the_bound_is_compared_with_the_same_figure_of_each_mechanism() -> None:
    guarantee = Guarantee(2.0, adjacency="replace-one", trust_model="local")
    prior = (0.5, 0.0, 0.0, 0.5)
    grid = np.linspace(0, 10, 4)
    for objective, figure in (("mean", np.mean), ("worst", np.max), ("prior", lambda variances: variances @ np.array(prior))):
        bound = VarianceBound(1.0, objective, guarantee, INTERVAL, 2, prior if objective == "prior" else None)
        row = estimate_mean(VALUES, INTERVAL, {"cldp": PROTOCOLS["cldp"]}, bound=bound).estimates[0]
        assert row.objective == pytest.approx(figure(PROTOCOLS["cldp"].variance(grid)))
        assert row.ratio_to_bound == row.objective
    assert estimate_mean(VALUES, INTERVAL, PROTOCOLS).estimates[0].ratio_to_bound is None


@pytest.mark.parametrize(
    ("bound_metric", "epsilon", "metric", "delta", "holds"),
    [
        (None, 1.0, None, 0.0, True),
        (None, 0.5, None, 0.0, True),
        (None, 1.5, None, 0.0, False),
        (None, 1.0, "l1", 0.0, True),
        ("l1", 1.0, "l1", 0.0, True),
        ("l1", 1.0, None, 0.0, False),
        ("l1", 1.0, "l2", 0.0, False),
        (None, 1.0, None, 1e-6, False),
    ],
)
def test_a_bound_holds_for_guarantees_at_least_as_strong(
    bound_metric: str | None, epsilon: float, metric: str | None, delta: float, holds: bool
) -> None:
    own = Guarantee(1.0, adjacency="replace-one", trust_model="local", metric=bound_metric)
    bound = VarianceBound(1.0, "mean", own, INTERVAL, 3)
    assert bound.holds_for(Guarantee(epsilon, delta=delta, metric=metric, adjacency="replace-one", trust_model="local")) is holds
    assert not bound.holds_for(Guarantee(epsilon, metric=metric, adjacency="add-or-remove-one", trust_model="local"))


def test_a_table_without_a_proof_gives_no_bound() -> None:
    assert certified_bound(generalised_randomised_response(1.0, 2)) is None


def test_the_prior_of_a_column_is_its_average_dithering() -> None:
    values = np.array([-1.0, 0.0, 0.4, 1.0, 2.5, 3.0, 9.0])
    expected = np.array([1 + 1 + 0.6, 0.4 + 1, 0.5, 0.5 + 1 + 1]) / 7
    np.testing.assert_allclose(grid_prior(values, (0.0, 3.0), 2), expected, rtol=1e-14)
    assert grid_prior(VALUES, INTERVAL, 9).sum() == pytest.approx(1.0, abs=1e-14)


def test_a_prior_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="values must hold at least one number"):
        grid_prior(np.array([]), INTERVAL, 3)
    with pytest.raises(ValueError, match="bits_in must be a whole number from 1 to 9"):
        grid_prior(VALUES, INTERVAL, 0)


def test_streams_are_pinned_to_seed_and_name() -> None:
    # Every published result uses these draws, so they must stay the same in all runs and versions.
    assert named_stream(0, "MVU, 3 bits").integers(2**32, size=3).tolist() == STREAM
    assert named_stream(1, "MVU, 3 bits").integers(2**32, size=3).tolist() != STREAM
    assert named_stream(0, "MVU, 2 bits").integers(2**32, size=3).tolist() != STREAM
    with pytest.raises(ValueError, match="seed must be a whole number"):
        named_stream(-1, "a")
