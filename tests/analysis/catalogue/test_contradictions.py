"""No account counts noise of clients that do not exist.

Points under test: every account refuses contradictory numbers of clients.
"""

import pytest

from quietbits.analysis.catalogue.accounts import account, account_options, calibrate, calibration_options
from quietbits.analysis.catalogue.registry import accounted_names
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.options import Option, check_pairs
from quietbits.design.contracts.task import Task
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling

SAMPLING = FixedSizeSampling(100, 10)


def test_every_number_of_clients_is_bounded_by_the_population() -> None:
    result = {name: [*account_options(name), *calibration_options(name)] for name in accounted_names()}
    assert [
        name for name, options in result.items() for option in options if option.name == "clients" and option.at_most != "population"
    ] == []


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("distributed-discrete-gaussian", {"local_sigma": 0.05, "granularity": 0.01}),
        ("distributed-skellam", {"local_variance": 0.01, "granularity": 0.01}),
        ("cpsgd", {"levels": 4, "trials": 400, "rotated": False}),
    ],
)
def test_more_clients_than_there_are_are_refused(name: str, parameters: dict[str, float]) -> None:
    # The noise of 1000 clients in a population of 100 would give epsilon = 3.612 instead of 22.38.
    shared = {"dimension": 1, "clip": 1.0, **parameters}
    with pytest.raises(ValueError, match="clients must be at most the population, 100, got 1000"):
        account(name, delta=1e-5, sampling=SAMPLING, clients=1000, **shared)
    as_many = account(name, delta=1e-5, sampling=SAMPLING, clients=100, **shared)
    assert as_many.epsilon > 0
    with pytest.raises(ValueError, match="clients must be at most the population, 100, got 101"):
        calibrate(name, epsilon=1.0, delta=1e-5, sampling=SAMPLING, clients=101, dimension=1)


def test_a_task_of_more_clients_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="clients must be at most the population, 100, got 101"):
        Task(NormBall(2, 2.0), 101, 1.0, 1e-5, "replace-one", sampling=SAMPLING)
    assert Task(NormBall(2, 2.0), 101, 1.0, 1e-5, "add-or-remove-one", sampling=PoissonSampling(0.1)).clients == 101


def test_pairs_are_compared_where_both_are_given() -> None:
    options = (Option("few", int, "Some.", at_most="many"), Option("many", int, "More."))
    for values in ({"few": 3}, {"few": None, "many": 2}, {"few": 2, "many": 2}):
        check_pairs(options, values)
    with pytest.raises(ValueError, match="few must be at most the many, 2, got 3"):
        check_pairs(options, {"few": 3, "many": 2})
