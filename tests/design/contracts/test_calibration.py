"""Calibration ends within a millionth below the target, and refuses unreachable targets."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from quietbits.analysis.catalogue.accounts import Calibration, account, calibrate
from quietbits.design.contracts.accounts import pure_privacy
from quietbits.design.contracts.calibration import calibrate_parameter, over_rounds, per_round_epsilon
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.privacy import Privacy
from quietbits.design.contracts.task import Budget
from quietbits.design.local.vector_skellam import SkellamMechanism
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.gaussian_privacy import gaussian_noise_multiplier
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling, Sampling


def assert_safe_and_tight(name: str, result: Calibration, parameter: str, found_as: str, *, more_is_private: bool) -> None:
    """Check that epsilon is just below the target, and above it at slightly less noise."""
    budget, value = result.budget, result[found_as]

    def epsilon(value: float) -> float:
        how: dict[str, Any] = {"rounds": budget.rounds, "sampling": budget.sampling, parameter: value}
        return account(name, delta=budget.delta, **how).epsilon

    assert epsilon(value) == result.epsilon
    # One round of a pure mechanism states its guarantee at delta = 0, so its own epsilon is the budget's.
    slack = 2 * budget.delta if budget.rounds == 1 and found_as == "epsilon_per_round" else 0.0
    assert 0 <= budget.epsilon - result.epsilon <= max(slack, 1e-6 * min(1.0, budget.epsilon))
    assert epsilon(value * (1 - 1e-4) if more_is_private else value * (1 + 1e-4)) > budget.epsilon


def best(result: Calibration) -> str:
    assert result.report.privacy.best is not None
    return result.report.privacy.best.name


@pytest.mark.parametrize(
    ("epsilon", "delta", "rounds"),
    [(1.0, 1e-6, 1), (2.0, 1e-5, 100), (0.01, 1e-9, 3), (1e-4, 1e-6, 1), (50.0, 1e-6, 1000), (8.0, 1e-30, 10), (0.5, 0.3, 2)],
)
def test_gaussian_noise(epsilon: float, delta: float, rounds: int) -> None:
    calibrated = calibrate("gaussian", epsilon=epsilon, delta=delta, rounds=rounds)
    assert_safe_and_tight("gaussian", calibrated, "noise_multiplier", "noise_multiplier", more_is_private=True)
    assert best(calibrated) == "pld"
    if epsilon >= 1e-3:
        # All rounds together are one Gaussian release, which the analytic calibration covers.
        assert calibrated["noise_multiplier"] == pytest.approx(gaussian_noise_multiplier(epsilon, delta) * math.sqrt(rounds), rel=1e-4)


@pytest.mark.parametrize(
    ("epsilon", "rounds", "sampling", "by"),
    [
        (1.0, 100, PoissonSampling(0.05), "pld"),
        (0.05, 10, PoissonSampling(0.2), "pld"),
        (1.0, 20, FixedSizeSampling(100, 10), "rdp"),
    ],
)
def test_sampled_gaussian_noise(epsilon: float, rounds: int, sampling: Sampling, by: str) -> None:
    calibrated = calibrate("gaussian", epsilon=epsilon, delta=1e-6, rounds=rounds, sampling=sampling)
    assert_safe_and_tight("gaussian", calibrated, "noise_multiplier", "noise_multiplier", more_is_private=True)
    assert (best(calibrated), calibrated.report.privacy.trust_model) == (by, "central")
    everyone = calibrate("gaussian", epsilon=epsilon, delta=1e-6, rounds=rounds)
    assert calibrated["noise_multiplier"] < everyone["noise_multiplier"]


@pytest.mark.parametrize(
    ("epsilon", "delta", "rounds"), [(1.0, 1e-6, 1), (1.0, 1e-6, 50), (6.0, 1e-9, 3000), (0.01, 0.3, 3), (20.0, 1e-300, 4)]
)
def test_pure_mechanisms(epsilon: float, delta: float, rounds: int) -> None:
    calibrated = calibrate("cldp", epsilon=epsilon, delta=delta, rounds=rounds)
    assert_safe_and_tight("cldp", calibrated, "epsilon", "epsilon_per_round", more_is_private=False)
    # Each round has at least the epsilon of basic composition, up to the tolerance.
    assert calibrated["epsilon_per_round"] >= epsilon / rounds * (1 - 1e-6)


@pytest.mark.parametrize(("rounds", "sampling"), [(1, None), (30, None), (30, PoissonSampling(0.1))])
def test_laplace_noise(rounds: int, sampling: PoissonSampling | None) -> None:
    calibrated = calibrate("laplace", epsilon=1.0, delta=1e-6, rounds=rounds, sampling=sampling)
    assert_safe_and_tight("laplace", calibrated, "epsilon", "epsilon_per_round", more_is_private=False)
    assert calibrated["epsilon_per_round"] > 1.0 / rounds


@pytest.mark.parametrize("rounds", [1, 10])
def test_skellam_noise(rounds: int) -> None:
    calibrated = calibrate("skellam", epsilon=2.0, delta=1e-6, rounds=rounds, dimension=16, bits=12)
    mechanism = SkellamMechanism(NormBall(16, 2.0), calibrated["bits"], calibrated["granularity"], calibrated["variance"], 1e-6)
    assert mechanism.privacy().epsilon(1e-6, rounds=rounds) == calibrated.epsilon
    assert 0 <= 2.0 - calibrated.epsilon <= 1e-6
    assert best(calibrated) == "rdp"


def test_a_table_for_vectors() -> None:
    calibrated = calibrate("vector", epsilon=4.0, delta=1e-5, rounds=2, dimension=16, norm="2", bits_in=2, bits_out=1, metric="l1")
    assert calibrated.report.subject.table is not None
    assert calibrated["table_epsilon"] == calibrated.report.subject.table.epsilon
    assert 0 <= 4.0 - calibrated.epsilon <= 1e-6
    assert calibrated.document()["target_epsilon"] == 4.0


@pytest.mark.parametrize(("ball", "metric", "rounds"), [(NormBall(1, 2.0), "l1", 10), (NormBall(4, math.inf), None, 3)])
def test_a_table_meets_the_target_by_the_smaller_account(ball: NormBall, metric: str | None, rounds: int) -> None:
    shape: dict[str, Any] = {"dimension": ball.dimension, "norm": f"{ball.norm:g}", "bits_in": 2, "bits_out": 1, "metric": metric}
    calibrated = calibrate("vector", epsilon=3.0, delta=1e-3, rounds=rounds, **shape)
    assert best(calibrated) == "pld"
    assert calibrated.report.epsilon_by("rdp") > 3.0
    assert 0 <= 3.0 - calibrated.epsilon <= 1e-6
    assert calibrated.report.subject.table is not None
    mechanism = VectorTableMechanism(calibrated.report.subject.table, ball, delta=1e-3)
    assert mechanism.privacy().epsilon(1e-3, rounds=rounds) == calibrated.epsilon


@pytest.mark.parametrize("name", ["generalised-randomised-response", "bitwise-randomised-response"])
def test_randomised_response_uses_the_whole_budget_of_its_rounds(name: str) -> None:
    # With more than two letters, the mechanism reveals less than pure privacy allows, by which it was once calibrated.
    calibrated = calibrate(name, epsilon=4.0, delta=1e-3, rounds=7, bits=2)
    assert 0 <= 4.0 - calibrated.epsilon <= 1e-6
    assert calibrated["epsilon_per_round"] > 1.1 * calibrate("cldp", epsilon=4.0, delta=1e-3, rounds=7)["epsilon_per_round"]


def test_the_document_has_the_parameter_beside_the_account() -> None:
    calibrated = calibrate("cldp", epsilon=1.0, delta=1e-6, rounds=2)
    document = calibrated.document()
    own = {"target_epsilon": 1.0, "target_method": None, "lower_bound": None, "zero_squared_error": None}
    assert document == {**calibrated.report.document(), **own}
    assert document["epsilon_per_round"] == calibrated["epsilon_per_round"]


@pytest.mark.parametrize("method", ["pure", "rdp", "pld"])
def test_the_account_that_is_asked_for_keeps_the_target(method: str) -> None:
    calibrated = calibrate("cldp", epsilon=1.0, delta=1e-6, rounds=20, method=method)
    assert 0 <= 1.0 - calibrated.report.epsilon_by(method) <= 1e-6
    assert calibrated.epsilon <= calibrated.report.epsilon_by(method)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: calibrate("gaussian", epsilon=0.0, delta=1e-6), "epsilon must be a number from 1e-05 to 10000, got 0.0"),
        (lambda: calibrate("gaussian", epsilon=1.0, delta=1.0), "delta must be a number from 0 to below 1, got 1.0"),
        (lambda: calibrate("gaussian", epsilon=1.0, delta=0.0), "delta must be a number above 0 and below 1, got 0.0"),
        (lambda: calibrate("gaussian", epsilon=1.0, delta=1e-6, rounds=0), "rounds must be a whole number from 1"),
        (lambda: calibrate("gaussian", epsilon=1.0, delta=1e-6, adjacency="swap"), "adjacency must be one of"),
        (lambda: calibrate("gaussian", epsilon=1.0, delta=1e-6, method="best"), "account must be one of rdp, rdp-classic, pld, got 'best'"),
        (lambda: calibrate("cldp", epsilon=1.0, delta=1e-6, sampling=PoissonSampling(0.1)), "the server sees who reports"),
        (lambda: calibrate("laplace", epsilon=1.0, delta=1e-6, sampling=FixedSizeSampling(9, 3)), "adjacency|sampling"),
        (lambda: calibrate("skellam", epsilon=1.0, delta=1e-6, bits=12), "dimension is missing: skellam needs dimension"),
        (lambda: calibrate("table", epsilon=1.0, delta=1e-6), "mechanism must have parameters to calibrate, got 'table'"),
        (
            lambda: calibrate("best", epsilon=1.0, delta=1e-6),
            "mechanism must be a name that .* lists, got 'best'",
        ),
    ],
)
def test_bad_arguments(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: calibrate("cldp", epsilon=1e-5, delta=1e-6, rounds=1000), "epsilon per round would have to be below 1e-06"),
        (lambda: calibrate("cldp", epsilon=9000.0, delta=1e-6), "epsilon per round would have to be above 100"),
        (
            lambda: calibrate("gaussian", epsilon=1e-3, delta=1e-300, rounds=10**12),
            "one over the noise multiplier would have to be below 1e-06",
        ),
        (
            lambda: calibrate("skellam", epsilon=1.0, delta=1e-6, rounds=100, dimension=16, bits=3),
            r"bits must be at least \d+ .* epsilon = 0.1, .* in each of the 100 rounds that together have epsilon = 1$",
        ),
    ],
)
def test_what_cannot_be_reached_is_infeasible(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InfeasibleError, match=message):
        make()


@pytest.mark.parametrize("delta", [0.5, 0.9, 0.9995])
def test_a_small_epsilon_at_a_large_delta_is_met_too(delta: float) -> None:
    # At this point epsilon is a steep function of the noise, and no Rényi order proves a bound but zero.
    calibrated = calibrate("gaussian", epsilon=1e-5, delta=delta)
    assert 0 <= 1e-5 - calibrated.epsilon <= 1e-11


def test_a_jump_ends_before_it() -> None:
    # The epsilon jumps over the target, so the search stops early.
    calibrated = calibrate_parameter(lambda x: 1.0 if x < 3 else 2.0, Budget(1.5, 1e-6, "replace-one"), low=0.1, high=10.0, name="argument")
    assert calibrated == pytest.approx(3.0, rel=1e-12)
    assert calibrated < 3


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_whole_budget_of_one_round_is_its_pure_epsilon(delta: float) -> None:
    assert per_round_epsilon(Budget(0.9, delta, "replace-one")) == 0.9
    assert per_round_epsilon(Budget(0.9, delta, "replace-one", method="pure")) == 0.9


def test_pure_rounds_share_the_budget_evenly() -> None:
    assert per_round_epsilon(Budget(3.0, 0.0, "replace-one", rounds=6)) == 0.5
    pure = per_round_epsilon(Budget(3.0, 1e-6, "replace-one", rounds=6, method="pure"))
    assert 0.5 * (1 - 1e-6) <= pure <= 0.5


@pytest.mark.parametrize("delta", [0.01, 0.3])
def test_one_round_by_an_account_that_uses_delta_may_have_more(delta: float) -> None:
    # Binary randomised response has delta(epsilon) = (e^e0 - e^epsilon) / (1 + e^e0).
    budget = Budget(0.9, delta, "replace-one", method="pld")
    exact = math.log((math.exp(budget.epsilon) + delta) / (1 - delta))
    assert exact * (1 - 1e-5) <= per_round_epsilon(budget) <= exact


@dataclass(frozen=True)
class Scaled:
    """Mechanism whose true epsilon is a multiple of its parameter."""

    epsilon: float
    factor: float
    delta: float

    def privacy(self) -> Privacy:
        return pure_privacy(self.factor * self.epsilon)


def scaled(factor: float, delta: float = 1e-9) -> Callable[[float], Any]:
    return lambda epsilon: Scaled(epsilon, factor, delta)


@pytest.mark.parametrize("rounds", [1, 2, 4])
@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.5])
@pytest.mark.parametrize("factor", [0.5, 0.95, 1.0])
def test_a_mechanism_that_reveals_less_than_its_parameter_gets_a_larger_one(rounds: int, delta: float, factor: float) -> None:
    budget = Budget(1.0, delta, "replace-one", rounds=rounds)
    built = over_rounds(budget, scaled(factor))
    reached = built.privacy().epsilon(delta, rounds=rounds)
    assert 1 - 1e-6 <= reached <= 1


@pytest.mark.parametrize("rounds", [1, 2, 4])
@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.5])
@pytest.mark.parametrize("factor", [1.001, 1.5, 6.0])
def test_a_mechanism_that_reveals_more_than_its_parameter_stays_in_the_budget(rounds: int, delta: float, factor: float) -> None:
    built = over_rounds(Budget(1.0, delta, "replace-one", rounds=rounds), scaled(factor))
    assert built.privacy().epsilon(delta, rounds=rounds) <= 1


def test_pure_rounds_are_built_for_equal_shares() -> None:
    built = over_rounds(Budget(1.0, 0.0, "replace-one", rounds=4), scaled(1.0))
    assert built.privacy().epsilon(0.0, rounds=4) == 1


@pytest.mark.parametrize("method", [None, "pure"])
def test_one_round_of_a_pure_mechanism_has_the_budget_and_of_others_what_delta_allows(method: str | None) -> None:
    # The epsilon of binary randomised response is 0.0137 below its pure epsilon.
    budget = Budget(1.0, 0.01, "replace-one", method=method)
    assert over_rounds(budget, scaled(1.0, delta=0.0)).epsilon == 1.0
    by_loss = Budget(1.0, 0.01, "replace-one", method="pld")
    for built in (over_rounds(by_loss, scaled(1.0, delta=0.0)), over_rounds(by_loss, scaled(1.0))):
        assert built.epsilon > 1.01
        assert 1 - 1e-6 <= built.privacy().epsilon(0.01) <= 1


def test_rounds_have_an_epsilon_of_at_most_a_hundred() -> None:
    budget = Budget(2.0, 1e-9, "replace-one", rounds=2)
    assert 70 < over_rounds(budget, scaled(1 / 80)).epsilon < 100
    with pytest.raises(InfeasibleError, match="epsilon per round would have to be above 100"):
        over_rounds(budget, scaled(1 / 120))


@pytest.mark.parametrize("rounds", [1, 4])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_a_pure_mechanism_that_reveals_more_than_its_parameter_stays_in_the_budget(rounds: int, delta: float) -> None:
    built = over_rounds(Budget(1.0, delta, "replace-one", rounds=rounds), scaled(1.5, delta=0.0))
    assert 1 - 1e-6 <= built.privacy().epsilon(delta, rounds=rounds) <= 1
