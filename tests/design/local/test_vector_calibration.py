"""Tables whose vector guarantee is solved for: on the safe side, close to the target, and the same for every way to write the metric."""

import math

import numpy as np
import pytest

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.vector_calibration import calibrate_vector_table
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from quietbits.solvers.divergences.vector_composition import vector_divergences


@pytest.mark.parametrize(
    ("epsilon", "delta", "norm", "metric"),
    [(1.0, 1e-5, 2.0, "l1"), (0.3, 1e-6, 1.0, "l1"), (2.0, 0.0, 1.0, "l1"), (1.0, 0.0, 2.0, "l2"), (2.0, 1e-5, math.inf, None)],
)
def test_the_guarantee_ends_below_the_target_and_close_to_it(epsilon: float, delta: float, norm: float, metric: str | None) -> None:
    mechanism = calibrate_vector_table(epsilon, delta, NormBall(16, norm), 3, 2, metric)
    assert epsilon - 1e-6 <= mechanism.guarantee.epsilon <= epsilon
    assert mechanism.guarantee.delta == delta
    assert (mechanism.guarantee.adjacency, mechanism.guarantee.trust_model) == ("replace-one", "local")


def test_rounds_share_the_budget() -> None:
    ball = NormBall(16, 2.0)
    once = calibrate_vector_table(2.0, 1e-5, ball, 3, 2, "l1")
    often = calibrate_vector_table(2.0, 1e-5, ball, 3, 2, "l1", rounds=50)
    assert often.table.epsilon < once.table.epsilon / 5
    divergences = vector_divergences(often.table.weights, DEFAULT_ORDERS, 16, 2.0, often.input_distance)
    curve = RenyiCurve(DEFAULT_ORDERS, divergences).composed(50)
    assert 2.0 - 1e-6 <= curve.epsilon(1e-5).epsilon <= 2.0
    assert often.privacy().epsilon(1e-5, rounds=50) == curve.epsilon(1e-5).epsilon


def test_l1_and_l2_metric_tables_are_the_same_tables() -> None:
    # Only neighbours are constrained, by epsilon / (B - 1)^p: the same table has two epsilons, and a target finds the same one.
    ball = NormBall(16, 2.0)
    first, second = (calibrate_vector_table(1.5, 1e-5, ball, 3, 3, metric) for metric in ("l1", "l2"))
    assert second.table.epsilon == pytest.approx(7 * first.table.epsilon, rel=1e-5)
    np.testing.assert_allclose(second.table.probabilities, first.table.probabilities, atol=1e-4)


def test_targets_out_of_reach_are_refused() -> None:
    with pytest.raises(InfeasibleError, match=r"the table's epsilon would have to be below 0\.001, where .* exceeds the target 0\.0001"):
        calibrate_vector_table(1e-4, 0.0, NormBall(4, math.inf), 2, 1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a number from 1e-06"),
        ({"delta": 1.0}, "delta must be a number above 0 and below 1, got 1.0"),
        ({"delta": math.nan}, "delta must be a number above 0 and below 1, got nan"),
        ({"rounds": 0}, "rounds must be a whole number from 1"),
        ({"metric": "l0.5"}, "metric must be"),
        ({"dithering": "none"}, "dithering must be one of"),
    ],
)
def test_arguments_out_of_range_are_refused(changed: dict[str, object], message: str) -> None:
    arguments = {"epsilon": 1.0, "delta": 1e-5, "ball": NormBall(4, 2.0), "bits_in": 2, "bits_out": 1, "metric": "l1"} | changed
    with pytest.raises(ValueError, match=message):
        calibrate_vector_table(**arguments)
