"""Tests of plans.

Points under test: feasible and infeasible mechanisms, their order, errors, bits, guarantees and bounds.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import quietbits
from quietbits.analysis.catalogue.central_reference import central_squared_error
from quietbits.analysis.catalogue.lower_bounds import local_lower_bound
from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.analysis.planner.bound import proven_bound
from quietbits.analysis.planner.plan import plan_task
from quietbits.analysis.planner.record import Plan
from quietbits.analysis.planner.words import population_in_words
from quietbits.design.contracts.domains import Categories, Interval
from quietbits.design.contracts.guarantee import TRUST_MODELS
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task
from quietbits.errors import InfeasibleError
from quietbits.solvers.limits.mean_privacy import central_bound

VECTORS = Task(NormBall(64, 2.0), clients=500, epsilon=2.0, delta=1e-5, adjacency="replace-one")
ITEMS = Task(Categories(50), clients=50, epsilon=1.0, delta=1e-5, adjacency="replace-one")
NUMBERS = Task(Interval(-1.0, 3.0), clients=1000, epsilon=2.0, delta=0.0, adjacency="replace-one", bits=1)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_task(VECTORS)


@pytest.fixture(scope="module", params=[ITEMS, NUMBERS], ids=["items", "numbers"])
def other(request: pytest.FixtureRequest) -> Plan:
    return plan_task(request.param, timed=False)


def test_every_entry_is_there_once(plan: Plan, other: Plan) -> None:
    for item in (plan, other):
        assert sorted(mechanism.name for mechanism in item.mechanisms) == sorted(REGISTRY)


def test_mechanisms_are_ranked_within_their_trust_model(plan: Plan, other: Plan) -> None:
    for item in (plan, other):
        models = [mechanism.trust_model for mechanism in item.feasible]
        assert models == sorted(models, key=TRUST_MODELS.index)
        for model in item.trust_models:
            within = item.of(model)
            assert [mechanism.rank for mechanism in within] == list(range(1, len(within) + 1))
            errors = [mechanism.predicted_error for mechanism in within]
            assert errors == sorted(errors)
        assert item.mechanisms == (*item.feasible, *item.infeasible)
    assert {"privunit-g", "mvu", "distributed-discrete-gaussian", "central-sketch"} <= {mechanism.name for mechanism in plan.feasible}


def test_those_that_can_serve_keep_the_budget(plan: Plan, other: Plan) -> None:
    for item in (plan, other):
        for mechanism in item.feasible:
            assert mechanism.epsilon <= item.task.epsilon * (1 + 1e-9)
            assert mechanism.delta <= item.task.delta
            assert mechanism.adjacency == item.task.adjacency
            assert mechanism.bits_per_coordinate == pytest.approx(mechanism.bits_per_client / item.task.dimension)


def test_those_that_cannot_say_what_is_needed(plan: Plan, other: Plan) -> None:
    for item in (plan, other):
        for mechanism in item.infeasible:
            assert mechanism.reason
            assert any(word in mechanism.reason for word in (" must ", " is missing", " needs "))
            assert (mechanism.predicted_error, mechanism.command, mechanism.rank) == (None, None, None)


def test_no_error_is_below_a_proven_bound(plan: Plan, other: Plan) -> None:
    for item in (plan, other):
        for mechanism in item.feasible:
            assert (mechanism.ratio_to_bound is None) != (mechanism.bound_reason is None)
            assert mechanism.ratio_to_bound is None or mechanism.ratio_to_bound >= 1
            assert mechanism.worst_error >= mechanism.predicted_error * (1 - 1e-9)


def test_bounds_are_for_mechanisms_that_meet_their_hypotheses(plan: Plan) -> None:
    bounds = {mechanism.name: mechanism for mechanism in plan.mechanisms}
    # The plan compares purely private mechanisms with the bound for pure privacy, which is larger than that for the task's delta.
    pure = REGISTRY["privunit-g"].lower_bound(replace(VECTORS, delta=0.0))
    assert bounds["privunit-g"].lower_bound == pytest.approx(pure, rel=1e-6)
    assert bounds["mvu"].lower_bound == REGISTRY["mvu"].lower_bound(VECTORS) < pure
    # Rejection biases the estimate, so the plan compares it with the bound for biased mechanisms.
    rejecting = REGISTRY["mvu"].mechanism_for(replace(VECTORS, epsilon=20.0), {"bits_in": 4, "bits_out": 1, "dithering": "rejection"})
    assert rejecting.bias_bound > 0
    assert proven_bound(REGISTRY["mvu"], VECTORS, rejecting, None).value == local_lower_bound(VECTORS) < bounds["mvu"].lower_bound
    biased = proven_bound(REGISTRY["dp-rec"], VECTORS, REGISTRY["dp-rec"].mechanism_for(VECTORS), None)
    assert biased.reason == "no proven bound: those that are known are for unbiased mechanisms"


def test_the_references_are_answering_zero_and_trusted_servers(plan: Plan) -> None:
    zero, central, pure = plan.references
    assert (zero.name, central.name, pure.name) == ("answer-zero", "central-gaussian", "central-laplace")
    assert (pure.predicted_error, pure.reason) == (None, "norm must be 1 for central-laplace, got 2")
    assert central.bits_per_client == REGISTRY["central-gaussian"].mechanism_for(VECTORS).bits_per_client
    # A coordinate of the positive sphere has the mean Gamma(d/2) / (sqrt(pi) Gamma((d + 1)/2)).
    dimension = VECTORS.dimension
    coordinate = math.exp(math.lgamma(dimension / 2) - math.lgamma((dimension + 1) / 2)) / math.sqrt(math.pi)
    square = dimension * coordinate**2
    assert zero.predicted_error == pytest.approx(square + (1 - square) / VECTORS.clients, rel=1e-2)
    assert zero.relative_error == pytest.approx(math.sqrt(zero.predicted_error))
    assert zero.worst_error == 1
    guarantee = quietbits.Guarantee(2.0, "replace-one", "central", delta=1e-5)
    assert central.predicted_error == central_squared_error(VECTORS.domain, VECTORS.clients, guarantee)
    for mechanism in plan.feasible:
        assert mechanism.ratio_to_central == pytest.approx(mechanism.predicted_error / central.predicted_error)


def test_rounds_share_the_budget_and_zero_does_not_gain(plan_only: Callable[..., None]) -> None:
    plan_only("distributed-discrete-gaussian", "distributed-skellam")
    several = plan_task(replace(VECTORS, rounds=10), trust="secure-sum", timed=False)
    zero, central, _ = several.references
    assert zero.predicted_error_of_rounds == zero.predicted_error
    assert central.predicted_error_of_rounds == pytest.approx(central.predicted_error / 10)
    best = several.feasible[0]
    assert best.predicted_error_of_rounds == pytest.approx(best.predicted_error / 10)
    assert "--rounds 10" in best.command


def test_a_trust_model_is_all_that_is_planned(plan_only: Callable[..., None]) -> None:
    plan_only("gaussian", "central-sketch", "distributed-discrete-gaussian", "sketched-skellam-frequencies")
    summed = plan_task(VECTORS, trust="secure-sum", timed=False)
    assert [mechanism.name for mechanism in summed.feasible] == ["distributed-discrete-gaussian"]
    assert [mechanism.name for mechanism in summed.infeasible] == ["sketched-skellam-frequencies"]


def test_messages_of_one_index_are_as_long_as_the_limit_allows(plan_only: Callable[..., None]) -> None:
    plan_only("sqkr", "rotating-simplex", "minimal-random-coding")
    task = replace(VECTORS, domain=NormBall(200, 2.0), epsilon=8.0)
    for bits in (1, 3, 5):
        result = plan_task(replace(task, message_bits=bits), timed=False)
        assert all(mechanism.bits_per_client <= bits for mechanism in result.feasible)
        assert {"sqkr", "rotating-simplex"} <= {mechanism.name for mechanism in result.feasible if mechanism.bits_per_client == bits}
    # The shortest message that the plan tries would suffice.
    refused = {mechanism.name: mechanism.reason for mechanism in plan_task(replace(task, message_bits=0.5), timed=False).infeasible}
    for name, fewest in (("sqkr", 1), ("rotating-simplex", 1), ("minimal-random-coding", 2)):
        assert refused[name] == f"message_bits must be at least {fewest} for {name}, got 0.5"


def test_a_budget_of_bits_is_kept_by_every_message() -> None:
    short = plan_task(replace(VECTORS, domain=NormBall(200, 2.0), bits=4), timed=False)
    assert short.feasible
    for mechanism in short.feasible:
        assert mechanism.bits_per_coordinate <= 4
    refused = {mechanism.name: mechanism.reason for mechanism in short.infeasible}
    assert refused["gaussian"].startswith("bits must be at least 64 a coordinate for gaussian, got 4")
    # The command contains the options that the plan chose.
    sketched = next(mechanism for mechanism in short.feasible if mechanism.name == "sketched-discrete-gaussian")
    assert {"--bits", "--sketch-dimension"} <= set(sketched.command.split())


def test_options_that_are_asked_for_are_kept(plan_only: Callable[..., None]) -> None:
    plan_only("sparse-discrete-gaussian", "sketched-discrete-gaussian")
    task = replace(VECTORS, domain=NormBall(300, 2.0))
    with_sparsity = plan_task(task, trust="secure-sum", population="sparse-mean", options={"sparsity": 4}, timed=False)
    sparse = next(mechanism for mechanism in with_sparsity.mechanisms if mechanism.name == "sparse-discrete-gaussian")
    assert sparse.feasible
    assert dict(sparse.options)["sparsity"] == 4
    assert (with_sparsity.nonzero, sparse.command.split()[-2:]) == (4, ["--nonzero", "4"])
    without = plan_task(task, trust="secure-sum", population="sparse-mean", timed=False)
    sparse = next(mechanism for mechanism in without.mechanisms if mechanism.name == "sparse-discrete-gaussian")
    # One nonzero coordinate in 16 is too many for a decoder with fewer measurements than coordinates.
    assert without.nonzero == 18
    assert "sparsity must be smaller for 411 measurements to be fewer than 300 coordinates, got 18" in sparse.reason
    assert population_in_words(without).startswith("Population: sparse-mean (18 of 300 coordinates are not zero); its mean is 100 % of ")
    with pytest.raises(ValueError, match="nonzero must be at most the sparsity that errors are stated for, 4, got 5"):
        plan_task(task, population="sparse-mean", nonzero=5, options={"sparsity": 4}, timed=False)
    with pytest.raises(ValueError, match="nonzero must be left out for the population positive-sphere"):
        plan_task(task, nonzero=5, timed=False)


def test_a_mechanism_without_privacy_is_never_feasible(plan_only: Callable[..., None]) -> None:
    """A new entry appears in plans, and is infeasible if its guarantee exceeds the budget."""
    leaky = replace(REGISTRY["laplace"], name="leaky", build=lambda task, _: REGISTRY["laplace"].mechanism_for(replace(task, epsilon=50.0)))
    plan_only(leaky, "laplace")
    result = plan_task(VECTORS, timed=False)
    assert [mechanism.name for mechanism in result.feasible] == ["laplace"]
    assert result.infeasible[0].reason.startswith("guarantee must be within epsilon = 2 and delta = 1e-05, got epsilon = 50")


def test_errors_are_stated_in_three_units(plan: Plan, other: Plan) -> None:
    for item, scale in ((plan, 1.0), (other, 1.0 if isinstance(other.task.domain, Categories) else 2.0)):
        for mechanism in item.feasible:
            assert mechanism.relative_error == pytest.approx(math.sqrt(mechanism.predicted_error) / scale)
            assert mechanism.error_per_coordinate == pytest.approx(math.sqrt(mechanism.predicted_error / item.task.dimension))


def test_the_frame_begins_with_the_results(plan: Plan) -> None:
    names = ["name", "recommended", "on_frontier", "rank", "relative_error", "error_per_coordinate", "predicted_error"]
    assert list(plan.to_frame())[:7] == names


def test_durations_are_measured_where_they_can_be(plan: Plan, other: Plan) -> None:
    for mechanism in plan.feasible:
        assert 0 < mechanism.client_seconds < 10, mechanism.name
        assert mechanism.server_seconds > 0, mechanism.name
    assert {mechanism.client_seconds for mechanism in other.feasible} == {None}


def test_shuffled_letters_are_timed_too() -> None:
    both = plan_task(ITEMS, trust="shuffled").feasible
    assert {mechanism.name for mechanism in both} == {"shuffled-frequency-randomised-response", "split-and-mix"}
    for items in both:
        assert 0 < items.client_seconds < 10
        assert items.server_seconds > 0


def test_numbers_in_a_secure_sum_are_bounded_by_what_two_ends_of_the_interval_reveal() -> None:
    result = plan_task(replace(NUMBERS, delta=1e-5, bits=20), trust="secure-sum", timed=False)
    with_delta = {"distributed-discrete-gaussian", "distributed-skellam", "cpsgd", "poisson-binomial"}
    assert {item.name for item in result.feasible} == {"distributed-discrete-laplace", *with_delta}
    gaussian = result.named("distributed-discrete-gaussian")
    assert gaussian.lower_bound == pytest.approx(central_bound(1, 1000, 2.0, 1e-5, radius=2.0))
    # Noise without a delta is the best, as near to a trusted server's as its steps permit.
    best = result.feasible[0]
    assert best.name == "distributed-discrete-laplace"
    assert best.lower_bound == pytest.approx(central_bound(1, 1000, 2.0, 0.0, radius=2.0))
    assert best.ratio_to_bound > 1
    assert 1 < best.ratio_to_central < 1.2
    assert gaussian.ratio_to_central > 5


def test_an_error_that_is_stated_for_an_option_is_not_ranked_without_it(plan_only: Callable[..., None]) -> None:
    name = "sparse-discrete-gaussian-frequencies"
    plan_only(name, "sketched-discrete-gaussian-frequencies")
    plans = [plan_task(ITEMS, trust="secure-sum", timed=False, options=options) for options in ({}, {"distinct_items": 5})]
    refused, served = (next(mechanism for mechanism in plan.mechanisms if mechanism.name == name) for plan in plans)
    assert not refused.feasible
    assert refused.reason.startswith(
        f"distinct_items is missing: the error of {name} is stated for it; for example --option distinct_items="
    )
    assert served.feasible


def test_the_frame_is_tidy_and_can_be_written(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> None:
    frame = plan.to_frame()
    assert len(frame) == len(REGISTRY)
    assert set(frame["clients"]) == {500}
    assert frame["central_error"].nunique() == 1
    file = tmp_path_factory.mktemp("plan") / "plan.parquet"
    frame.to_parquet(file)


def test_the_public_function_returns_the_frame() -> None:
    public, frame = quietbits.plan(NUMBERS), plan_task(NUMBERS, timed=False).to_frame()
    np.testing.assert_array_equal(public["name"], frame["name"])
    np.testing.assert_allclose(public["predicted_error"], frame["predicted_error"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a number from 1e-05 to 10000, got 0.0"),
        ({"delta": 1.0}, "delta must be a number from 0 to below 1, got 1.0"),
        ({"bits": 0}, "bits must be a number from 1e-09 to 1e+06, got 0"),
        ({"clients": 0}, "clients must be a whole number from 1 to"),
        ({"adjacency": "neighbours"}, "adjacency must be one of replace-one, add-or-remove-one, got 'neighbours'"),
    ],
)
def test_bad_tasks_say_what_is_needed(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=" must ") as refused:
        replace(VECTORS, **change)
    assert str(refused.value).startswith(message)


def test_a_ball_of_another_norm_is_refused_by_mechanisms_of_the_l2_ball(plan_only: Callable[..., None]) -> None:
    plan_only("privunit-g", "cldp", "laplace")
    result = plan_task(replace(VECTORS, domain=NormBall(8, 1.0), bits=1), trust="local", timed=False)
    refused = {mechanism.name: mechanism.reason for mechanism in result.infeasible}
    assert refused["privunit-g"] == "norm must be 2 for privunit-g, got 1"


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="population must be one of"):
        plan_task(VECTORS, population="zipf")
    with pytest.raises(ValueError, match="trust must be one of local, shuffled, secure-sum, central, got 'nobody'"):
        plan_task(VECTORS, trust="nobody")
    with pytest.raises(ValueError, match="option must be one of"):
        plan_task(VECTORS, options={"bitz": 3})


def test_processes_change_nothing() -> None:
    task = replace(ITEMS, delta=0.0)
    assert plan_task(task, timed=False, workers=2) == plan_task(task, timed=False)


def test_build_fills_bits_in_and_refuses_longer_messages() -> None:
    entry = REGISTRY["distributed-discrete-gaussian"]
    # 100 coordinates are padded to 128: 20 bits per coordinate of the vector are 15 per coordinate of the message.
    task = replace(VECTORS, domain=NormBall(100, 2.0), bits=20)
    built = entry.design_for(task)
    assert built.values["bits"] == 15
    assert built.mechanism.bits_per_client == 15 * 128 <= 20 * 100
    with pytest.raises(InfeasibleError, match=r"bits must be at least 25.6 a coordinate for distributed-discrete-gaussian, got 20"):
        entry.mechanism_for(task, {"bits": 20})
    assert math.isclose(entry.mechanism_for(replace(task, bits=None), {"bits": 20}).bits_per_client, 2560)


def test_a_bound_far_below_the_central_gaussian_is_not_given() -> None:
    entry = REGISTRY["distributed-discrete-gaussian"]
    mechanism = entry.mechanism_for(VECTORS)
    bound = entry.lower_bound(VECTORS)
    assert bound is not None
    assert proven_bound(entry, VECTORS, mechanism, 9 * bound).value == bound
    weak = proven_bound(entry, VECTORS, mechanism, 11 * bound)
    assert weak.value is None
    assert weak.reason is not None
    assert weak.reason.startswith("no proven bound to judge by: the known one is weak")
