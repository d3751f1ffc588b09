"""Tables with a given vector guarantee.

Requirements: tables are on the safe side, close to the target, and equal for equivalent metrics.
"""

import math
from functools import cache

import numpy as np
import pytest

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.vector_calibration import calibrate_vector_table, improve_vector_table
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.design.tables.mvu import design_mvu
from quietbits.design.tables.verification import verify_table
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from quietbits.solvers.accounting.renyi_divergence import renyi_matrix
from quietbits.solvers.divergences.vector_composition import vector_divergences
from quietbits.solvers.limits.coordinate_variance import least_coordinate_variance

BALL = NormBall(64, 2.0)


@cache
def calibrated(epsilon: float, delta: float, ball: NormBall, metric: str | None, bits_in: int) -> VectorTableMechanism:
    return calibrate_vector_table(epsilon, delta, ball, bits_in, 2, metric)


BUDGETS = [
    (4.0, 1e-5, BALL, "l2", 2),
    (0.3, 1e-6, NormBall(16, 1.0), "l1", 3),
    (2.0, 0.0, NormBall(16, 1.0), "l1", 3),
    (2.0, 0.0, NormBall(16, math.inf), None, 3),
]


@pytest.mark.parametrize(
    ("epsilon", "delta", "ball", "metric", "bits_in"),
    [
        *BUDGETS,
        (4.0, 1e-5, BALL, "l1", 3),
        (1.0, 0.0, NormBall(16, 2.0), "l2", 3),
        (2.0, 1e-5, NormBall(8, math.inf), None, 2),
    ],
)
def test_the_guarantee_ends_below_the_target_and_close_to_it(
    epsilon: float, delta: float, ball: NormBall, metric: str | None, bits_in: int
) -> None:
    mechanism = calibrated(epsilon, delta, ball, metric, bits_in)
    assert epsilon - 1e-6 <= mechanism.guarantee.epsilon <= epsilon
    assert mechanism.guarantee.delta == delta
    assert (mechanism.guarantee.adjacency, mechanism.guarantee.trust_model) == ("replace-one", "local")


@pytest.mark.parametrize(("epsilon", "delta", "ball", "metric", "bits_in"), BUDGETS)
def test_the_table_is_as_good_as_one_that_is_designed_for_its_epsilon(
    epsilon: float, delta: float, ball: NormBall, metric: str | None, bits_in: int
) -> None:
    table = calibrated(epsilon, delta, ball, metric, bits_in).table
    designed = design_mvu(table.epsilon, bits_in, 2, metric)
    assert table.certificate.mean_variance <= designed.certificate.mean_variance * (1 + 1e-5)
    assert table.certificate.lower_bound == pytest.approx(designed.certificate.lower_bound, rel=1e-6)


def test_rounds_share_the_budget() -> None:
    once = calibrated(4.0, 1e-5, BALL, "l1", 3)
    often = calibrate_vector_table(4.0, 1e-5, BALL, 3, 2, "l1", rounds=50)
    assert often.table.epsilon < once.table.epsilon / 5
    divergences = vector_divergences(often.table.weights, DEFAULT_ORDERS, BALL.dimension, BALL.norm, often.input_distance)
    curve = RenyiCurve(DEFAULT_ORDERS, divergences).composed(50)
    assert 4.0 - 1e-6 <= curve.epsilon(1e-5).epsilon <= 4.0
    assert often.privacy().epsilon(1e-5, rounds=50) == curve.epsilon(1e-5).epsilon


def test_l1_and_l2_metric_tables_are_the_same_tables() -> None:
    # The design constrains only neighbours, by epsilon / (B - 1)^p. So the same table has an epsilon for each of two metrics, and both
    # metrics give the same result for a target.
    first, second = (calibrate_vector_table(1.5, 0.0, NormBall(4, 2.0), 2, 2, metric) for metric in ("l1", "l2"))
    assert second.table.epsilon == pytest.approx(3 * first.table.epsilon, rel=1e-5)
    np.testing.assert_allclose(second.table.probabilities, first.table.probabilities, atol=1e-4)


def test_without_a_metric_letters_are_searched_for_where_a_pure_budget_ends() -> None:
    # Neighbouring rows differ by less than the table's epsilon, depending on the letters; letters for another epsilon can have 16 times the
    # variance within the same budget.
    ball = NormBall(16, 1.0)
    other = VectorTableMechanism(design_mvu(0.4, 4, 2), ball, delta=0.0)
    assert other.guarantee.epsilon <= 1.0
    assert calibrate_vector_table(1.0, 0.0, ball, 4, 2).variance_bound <= other.variance_bound


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


@pytest.fixture(scope="module")
def by_metric() -> VectorTableMechanism:
    return calibrated(4.0, 1e-5, BALL, "l1", 3)


@pytest.fixture(scope="module")
def by_divergence(by_metric: VectorTableMechanism) -> VectorTableMechanism:
    return improve_vector_table(by_metric, 4.0)


def test_tables_by_renyi_divergence_keep_the_target_and_have_less_variance(
    by_metric: VectorTableMechanism, by_divergence: VectorTableMechanism
) -> None:
    assert 4.0 - 1e-6 <= by_divergence.guarantee.epsilon <= 4.0
    assert by_divergence.table.certificate.max_bias == 0
    assert by_divergence.variance_bound < 0.95 * by_metric.variance_bound
    assert verify_table(by_divergence.table).realised_epsilon == by_divergence.table.epsilon
    assert by_divergence.table.provenance.solver.startswith("renyi, order ")


def test_whole_numbers_are_below_the_line_of_the_order_that_proves_the_guarantee(by_divergence: VectorTableMechanism) -> None:
    order = by_divergence.privacy().report(1e-5).account("rdp").bound.order
    divergences = renyi_matrix(by_divergence.table.weights, order)
    rows = np.arange(8)
    distances = np.abs(np.subtract.outer(rows, rows))
    budget = by_divergence.renyi_budget(4.0)
    share = budget.share(np.array([divergences[distances == step].max() for step in range(8)]))
    reached = (distances > 0) & (distances <= budget.reach)
    assert np.all(divergences[reached] <= budget.limits(order, share)[distances[reached]] * (1 + 1e-9))


def test_their_variance_is_above_the_cramer_rao_limit(by_metric: VectorTableMechanism, by_divergence: VectorTableMechanism) -> None:
    for mechanism in (by_metric, by_divergence):
        bound = least_coordinate_variance(mechanism.renyi_budget(4.0)) / 7**2
        assert 0.4 * mechanism.table.certificate.mean_variance < bound < min(float(v) for v in mechanism.table.moments.variances)


def test_messages_are_decoded_without_bias(by_divergence: VectorTableMechanism) -> None:
    vector = np.zeros(64)
    vector[:2] = 0.8, -0.4
    clients = 10_000
    messages = by_divergence.encode(np.tile(vector, (clients, 1)), np.random.default_rng(0))
    error = by_divergence.decode(by_divergence.aggregate(messages), clients) - vector
    # The sum has 64 squares of nearly normal errors: 6 sigma are 1.06 of its mean.
    assert np.sum(error**2) <= 2.06 * by_divergence.variance_bound / clients


def test_rounds_and_rejection_by_renyi_divergence() -> None:
    often = calibrate_vector_table(4.0, 1e-5, NormBall(16, 2.0), 2, 2, "l1", objective="renyi", rounds=20)
    assert 4.0 - 1e-6 <= often.privacy().epsilon(1e-5, rounds=20) <= 4.0
    best = calibrate_vector_table(4.0, 1e-5, NormBall(32, 2.0), 3, 2, "l1", dithering="rejection")
    rejecting = improve_vector_table(best, 4.0)
    assert rejecting.dithering == "rejection"
    assert 4.0 - 1e-6 <= rejecting.guarantee.epsilon <= 4.0
    assert rejecting.variance_bound < best.variance_bound


def test_one_bit_has_the_least_reach_that_the_account_allows() -> None:
    ball = NormBall(32, 2.0)
    mechanism = calibrate_vector_table(2.0, 1e-5, ball, 3, 1, "l1", objective="renyi")
    assert mechanism.table.provenance.solver == "renyi, which is the metric table for one bit"

    def epsilon(reach: float) -> float:
        upper = (np.linspace(0, 1, 8) + reach) / (1 + 2 * reach)
        divergences = vector_divergences(np.stack([1 - upper, upper], axis=1), DEFAULT_ORDERS, 32, 2.0, mechanism.input_distance)
        return RenyiCurve(DEFAULT_ORDERS, divergences).epsilon(1e-5).epsilon

    # The epsilon falls with the letters' reach, and the search attains the least reach up to a relative error of 1e-5.
    outermost = float(mechanism.table.alphabet[1])
    assert epsilon(outermost * (1 + 1e-5) - 1) < 2.0 < epsilon(outermost * (1 - 1e-5) - 1)


def test_where_the_guarantee_is_nearly_pure_the_metric_table_stays() -> None:
    ball = NormBall(2, 2.0)
    metric = calibrate_vector_table(1.0, 1e-5, ball, 2, 2, "l1")
    ended = improve_vector_table(metric, 1.0)
    np.testing.assert_array_equal(ended.table.weights, metric.table.weights)
    assert ended.table.provenance.solver == "renyi, ended with the metric table, whose guarantee is nearly pure"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"objective": "pure"}, "objective must be one of"),
        ({"delta": 0.0}, r"delta must be above 0 for the objective 'renyi', got 0\.0"),
        ({"ball": NormBall(4, math.inf)}, "norm must be finite for the objective 'renyi', got inf"),
        ({"bits_in": 6, "bits_out": 3}, "bits_in and bits_out must be 8 together at most for the objective 'renyi', got 6 and 3"),
        ({"method": "pure"}, "method must be left out, or 'rdp', for the objective 'renyi', got 'pure'"),
    ],
)
def test_what_is_not_designed_by_renyi_divergence_is_refused(changed: dict[str, object], message: str) -> None:
    arguments = {"epsilon": 1.0, "delta": 1e-5, "ball": NormBall(4, 2.0), "bits_in": 2, "bits_out": 2, "metric": "l1", "objective": "renyi"}
    with pytest.raises(ValueError, match=message):
        calibrate_vector_table(**arguments | changed)
