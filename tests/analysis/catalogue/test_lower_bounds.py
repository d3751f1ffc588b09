"""No mechanism of the registry states an error below the proven lower bounds."""

import math

import pytest

from quietbits import Interval, NormBall, PoissonSampling, Task
from quietbits.analysis.catalogue.lower_bounds import (
    central_lower_bound,
    inscribed_radius,
    local_lower_bound,
    unbiased_central_lower_bound,
    unbiased_local_lower_bound,
)
from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.solvers.limits.mean_privacy import central_bound, unbiased_local_bound

PURE = (
    *("cldp", "laplace", "sqkr", "privunit", "privunit-g", "projunit", "rotating-simplex"),
    *("minimal-random-coding", "poisson-private-representation"),
)
BIASED = ("fast-projunit", "minimal-random-coding-plain")
SUMS = ("distributed-discrete-gaussian", "distributed-skellam", "cpsgd", "poisson-binomial")


@pytest.mark.parametrize("name", PURE)
@pytest.mark.parametrize("dimension", [1, 4, 64])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_pure_local_mechanisms(name: str, dimension: int, epsilon: float) -> None:
    entry = REGISTRY[name]
    task = Task(NormBall(dimension, 2.0, 3.0), clients=50, epsilon=epsilon, delta=0.0, adjacency="replace-one")
    bound = entry.lower_bound(task)
    assert bound is not None
    error = entry.mechanism_for(task).error()
    assert error.bias == 0
    assert bound <= error.of_mean(50)
    if name == "privunit-g" and dimension == 64:
        assert error.of_mean(50) <= 1.13 * bound
    if name == "privunit":
        # Vectors on the sphere attain the bound.
        assert error.of_mean(50) - 9.0 / 50 == pytest.approx(bound, rel=1e-8 * (1 + math.exp(epsilon)))


@pytest.mark.parametrize("name", BIASED)
@pytest.mark.parametrize("dimension", [1, 4, 64, 512])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_biased_local_mechanisms(name: str, dimension: int, epsilon: float) -> None:
    for clients in (1, 50, 10**6):
        task = Task(NormBall(dimension, 2.0, 3.0), clients=clients, epsilon=epsilon, delta=0.0, adjacency="replace-one")
        bound = REGISTRY[name].lower_bound(task)
        assert bound is not None
        assert bound == local_lower_bound(task)
        assert 0 < bound <= REGISTRY[name].mechanism_for(task).error().of_mean(clients)


@pytest.mark.parametrize("name", ["cldp", "laplace"])
@pytest.mark.parametrize("norm", [1.0, math.inf])
def test_balls_of_other_norms(name: str, norm: float) -> None:
    task = Task(NormBall(9, norm, 2.0), clients=5, epsilon=1.0, delta=0.0, adjacency="replace-one", rounds=4)
    bound = REGISTRY[name].lower_bound(task)
    assert bound == unbiased_local_bound(9, 5, 0.25, radius=2 / 3 if norm == 1 else 2.0)
    assert bound <= REGISTRY[name].mechanism_for(task).error().of_mean(5)


@pytest.mark.parametrize("name", ["gaussian", "skellam"])
@pytest.mark.parametrize("rounds", [1, 5])
def test_local_mechanisms_with_delta(name: str, rounds: int) -> None:
    for dimension, epsilon in ((1, 0.5), (128, 0.5), (128, 8.0)):
        task = Task(NormBall(dimension, 2.0), clients=300, epsilon=epsilon, delta=1e-5, adjacency="replace-one", rounds=rounds)
        bound = REGISTRY[name].lower_bound(task)
        assert bound is not None
        assert 0 < bound <= REGISTRY[name].mechanism_for(task).error().of_mean(300)


@pytest.mark.parametrize(("name", "adjacency"), [(name, adjacency) for name in SUMS for adjacency in REGISTRY[name].adjacencies])
@pytest.mark.parametrize(("dimension", "clients"), [(16, 2000), (256, 2000)])
def test_secure_sums(name: str, adjacency: str, dimension: int, clients: int) -> None:
    entry = REGISTRY[name]
    task = Task(NormBall(dimension, 2.0), clients=clients, epsilon=2.0, delta=1e-5, adjacency=adjacency)
    options = {"bits": 16 if name != "poisson-binomial" else 12}
    bound = entry.lower_bound(task)
    assert bound is not None
    assert 0 < bound <= entry.mechanism_for(task, options).error().of_mean(clients)


def test_a_ball_contains_an_l2_ball() -> None:
    assert inscribed_radius(NormBall(16, 2.0, 3.0)) == 3.0
    assert inscribed_radius(NormBall(16, 1.0, 3.0)) == 0.75
    assert inscribed_radius(NormBall(16, math.inf, 3.0)) == 3.0


def test_a_replacement_is_two_steps() -> None:
    ball = NormBall(20, 2.0)
    task = Task(ball, clients=100, epsilon=0.5, delta=1e-4, adjacency="add-or-remove-one", rounds=7)
    assert central_lower_bound(task) == central_bound(20, 100, 1.0, 1e-4 * (1 + math.exp(0.5)))
    # The lower bound of a task with several rounds is that of a single round.
    replaced = Task(ball, clients=100, epsilon=0.5, delta=1e-4, adjacency="replace-one")
    assert central_lower_bound(replaced) == central_bound(20, 100, 0.5, 1e-4)
    biased, unbiased = central_lower_bound(replaced), unbiased_central_lower_bound(replaced)
    assert biased is not None
    assert unbiased is not None
    assert biased < unbiased


def test_where_nothing_is_known() -> None:
    ball = NormBall(20, 2.0)
    bounds = (central_lower_bound, unbiased_central_lower_bound, local_lower_bound, unbiased_local_lower_bound)
    sampled = Task(ball, clients=100, epsilon=1.0, delta=1e-5, adjacency="replace-one", sampling=PoissonSampling(0.1))
    assert [bound(sampled) for bound in bounds] == [None] * 4
    # The central bounds treat numbers as vectors of one coordinate; the local bounds for vectors do not apply to numbers.
    number = Task(Interval(0.0, 1.0), clients=100, epsilon=1.0, delta=0.0, adjacency="replace-one")
    assert [bound(number) is None for bound in bounds] == [False, False, True, True]
    vague = Task(ball, clients=100, epsilon=30.0, delta=1e-5, adjacency="add-or-remove-one")
    assert central_lower_bound(vague) is None
