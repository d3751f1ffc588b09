"""Drop-outs that a task plans for.

Points under test: every joint mechanism of the registry keeps the budget with any number of clients from the planned one on, at a variance
of about 1 / (1 - share) times, and its error with fewer clients is the predicted one.
"""

import itertools
import math
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from built_in_trials import OPTIONS

from quietbits import REGISTRY, Categories, InfeasibleError, Interval, Mechanism, NormBall, Task
from quietbits.analysis.simulation.repeated_means import repeat_mean, summarise_means
from quietbits.design.contracts.domains import Domain
from quietbits.design.contracts.guarantee import JOINT_MODELS
from quietbits.design.contracts.registry import Values

JOINT = [
    (name, domain) for name, entry in REGISTRY.items() if entry.trust_model in JOINT_MODELS and entry.private for domain in entry.domains
]
IDS = [f"{name} {domain.__name__}" for name, domain in JOINT]
# Probability of a wrong alarm of a simulated error: six standard errors.
DEVIATIONS = 6.0
# Mechanisms whose cheap options have too few bits for 200 clients.
SUMS_OF_FEW_BITS = ("cpsgd", "poisson-binomial", "distributed-discrete-laplace")


def domain_of(name: str, kind: type) -> Domain:
    if kind is Categories:
        return Categories(8)
    return Interval(-1.0, 3.0) if kind is Interval else NormBall(4, (REGISTRY[name].norms or (2.0,))[0], 2.0)


def built(
    name: str, kind: type, clients: int, dropout: float, options: Values = MappingProxyType({}), **changes: Any
) -> tuple[Task, Mechanism]:
    entry = REGISTRY[name]
    arguments = {"epsilon": 2.0, "delta": 1e-5, "adjacency": entry.adjacencies[0], **changes}
    task = Task(domain_of(name, kind), clients, dropout=dropout, **arguments)
    return task, entry.mechanism_for(task, {**OPTIONS.get(name, {}), **options})


def test_the_smallest_number_of_clients_is_exact() -> None:
    def survivors(clients: int, dropout: float) -> int:
        return Task(Categories(2), clients, 1.0, 0.0, "replace-one", dropout=dropout).survivors

    # In floating-point numbers (1 - 0.41) 100 exceeds 59.
    assert survivors(100, 0.41) == 59
    assert [survivors(10, share) for share in (0.0, 0.1, 0.2, 0.25, 0.999)] == [10, 9, 8, 8, 1]
    for share in (1.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="dropout must be"):
            survivors(10, share)


@pytest.mark.parametrize(("name", "kind"), JOINT, ids=IDS)
@pytest.mark.parametrize(("clients", "dropout", "rounds"), [(10, 0.2, 1), (9, 0.5, 1), (10, 0.2, 3)])
def test_the_budget_holds_for_every_planned_number_of_clients(name: str, kind: type, clients: int, dropout: float, rounds: int) -> None:
    task, mechanism = built(name, kind, clients, dropout, epsilon=4.0, delta=1e-3, rounds=rounds)
    assert mechanism.joint_clients == clients
    assert mechanism.fewest_clients == task.survivors
    stated = mechanism.privacy().epsilon(task.delta, task.adjacency, rounds)
    epsilons = [mechanism.privacy_of(left).epsilon(task.delta, task.adjacency, rounds) for left in range(task.survivors, clients + 1)]
    assert max(epsilons) <= task.epsilon * (1 + 1e-9)
    assert stated == epsilons[0]
    # Accounts of more clients are no larger, except for roots and grids.
    assert all(more <= fewer * (1 + 1e-5) for fewer, more in itertools.pairwise(epsilons)), epsilons


@pytest.mark.parametrize(("name", "kind"), JOINT, ids=IDS)
def test_a_fifth_costs_a_quarter_of_the_variance(name: str, kind: type) -> None:
    options = (
        {"bits": 16} if "bits" in {option.name for option in REGISTRY[name].options} and REGISTRY[name].trust_model != "shuffled" else {}
    )
    (task, planned), (_, whole) = (built(name, kind, 1000, share, options, epsilon=0.3) for share in (0.2, 0.0))
    # Too much for a guarantee of all clients: with less noise, or without a fifth of it, epsilon exceeds the budget.
    assert whole.privacy_of(task.survivors).epsilon(task.delta, task.adjacency) > task.epsilon
    # Rounding, whole numbers of trials and letters, and little noise of shuffled letters cost or spare some of it.
    # A simplex of four corners has the mean (E - 1) / (E + 3), E = e^local_epsilon, which rises more slowly than the privacy loss.
    least = 1.1 if name == "shuffled-rotating-simplex" else 1.15
    assert least < planned.error().variance / whole.error().variance < 1.3


@pytest.mark.parametrize(("name", "kind"), JOINT, ids=IDS)
def test_fewer_clients_have_the_predicted_error(name: str, kind: type) -> None:
    task, mechanism = built(name, kind, 200, 0.2, {"bits": 14} if name in SUMS_OF_FEW_BITS else {})
    if not mechanism.decodes_linearly:
        pytest.skip("the prediction for decoders that are not linear is for the mechanism's own number of clients")
    population = {Categories: "zipf", Interval: "uniform"}.get(kind, "sphere")
    summary = summarise_means(repeat_mean(mechanism, population, 120, clients=task.survivors, seed=3))
    assert summary.clients == 160
    assert summary.standard_error is not None
    excess = summary.squared_error - summary.predicted_squared_error
    assert abs(excess) <= DEVIATIONS * summary.standard_error + 1e-12


@pytest.mark.parametrize(("name", "kind"), JOINT, ids=IDS)
def test_the_server_decodes_planned_numbers_of_clients_only(name: str, kind: type) -> None:
    task, mechanism = built(name, kind, 10, 0.2, epsilon=4.0, delta=1e-3)
    if REGISTRY[name].trust_model == "shuffled":
        return
    # Every kind's inputs: items, numbers or vectors.
    inputs = {Categories: np.zeros(10, dtype=np.int64), Interval: np.ones(10)}.get(kind, np.zeros((10, 4)))
    aggregate = mechanism.aggregate(mechanism.encode(inputs[: task.survivors], np.random.default_rng(0)))
    assert np.all(np.isfinite(mechanism.decode(aggregate, task.survivors)))
    for clients in (task.survivors - 1, 11):
        with pytest.raises(ValueError, match=f"clients must be from 8 to 10, for whose noise the guarantee is stated, got {clients}"):
            mechanism.decode(aggregate, clients)


@pytest.mark.parametrize("name", [name for name, entry in REGISTRY.items() if entry.trust_model not in JOINT_MODELS])
def test_other_mechanisms_do_not_change(name: str) -> None:
    entry = REGISTRY[name]
    if entry.populations is not None or not entry.private:
        pytest.skip("the mechanism has no budget, or a population of its own")
    kind = entry.domains[0]
    try:
        (_, planned), (_, whole) = (built(name, kind, 50, share) for share in (0.2, 0.0))
    except InfeasibleError:
        pytest.skip("the mechanism needs another task")
    assert planned.fewest_clients == 1
    assert planned.privacy_of(3).epsilon(1e-5) == whole.privacy().epsilon(1e-5)
    assert planned.variance_bound == whole.variance_bound


def test_a_mechanism_that_ignores_dropouts_is_refused() -> None:
    entry = REGISTRY["distributed-discrete-laplace"]
    careless = replace(entry, build=lambda task, options: entry.build(replace(task, dropout=0.0), options))
    task = Task(Categories(5), 100, 1.0, 0.0, "replace-one", dropout=0.2)
    with pytest.raises(InfeasibleError, match="dropout must be 0 for distributed-discrete-laplace, whose guarantee needs 100 of 100"):
        careless.mechanism_for(task)
