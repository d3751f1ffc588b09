"""Every mechanism's predicted error agrees with simulations.

Each entry has one small task.
"""

from dataclasses import astuple

import pytest
from built_in_trials import OPTIONS

from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.analysis.conformance.mechanism_cases import DELTA, EPSILON
from quietbits.analysis.planner.population import draw_sample, usual_population
from quietbits.analysis.planner.prediction import predict_error, predict_parts
from quietbits.analysis.simulation.repeated_means import repeat_mean, summarise_means
from quietbits.design.contracts.domains import Categories, Interval
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task

CLIENTS, ROUNDS = 30, 150
# Mechanisms that take long for a message or an estimate, with their numbers of clients.
SLOW = {
    "dp-rec": 40,
    "minimal-random-coding": 40,
    "minimal-random-coding-plain": 60,
    "poisson-private-representation": 40,
    "sparse-discrete-gaussian": 60,
}
CHANGED = {
    "cpsgd": {"bits": 12},
    "poisson-binomial": {"bits": 7},
    "sketched-discrete-gaussian": {"rows": 2, "sketch_dimension": 8},
    "sketched-skellam": {"rows": 2, "sketch_dimension": 8},
    "central-sketch": {"rows": 2, "sketch_dimension": 8},
    "sparse-discrete-gaussian": {"sparsity": 1, "sketch_dimension": 10},
}
# Relative error that a sample of the population adds to the simulation's sampling error.
SAMPLED = 0.03


@pytest.mark.parametrize("name", REGISTRY)
def test_the_prediction_is_what_is_measured(name: str) -> None:
    entry = REGISTRY[name]
    norms = entry.norms or (2.0,)
    domain = next(
        item
        for item in (NormBall(16, 2.0 if 2.0 in norms else norms[0]), Categories(9), Interval(-1.0, 3.0))
        if isinstance(item, entry.domains)
    )
    population = (entry.populations or (usual_population(domain),))[0]
    nonzero = 1 if population == "sparse-mean" else None
    mechanism = entry.mechanism_for(
        Task(domain, CLIENTS, EPSILON, DELTA, entry.adjacencies[0]), {**OPTIONS.get(name, {}), **CHANGED.get(name, {})}
    )
    sample = draw_sample(population, domain, CLIENTS, 0, nonzero)
    predicted = predict_error(mechanism, sample).of_population
    parts = astuple(predict_parts(mechanism, sample))
    assert sum(parts) == pytest.approx(predicted, rel=1e-9, abs=1e-300)
    assert min(parts) >= 0
    rounds = repeat_mean(mechanism, population, SLOW.get(name, ROUNDS), clients=CLIENTS, nonzero=nonzero, seed=1)
    measured = summarise_means(rounds)
    allowed = 5 * (measured.standard_error or 0.0) + SAMPLED * predicted
    assert abs(measured.squared_error - predicted) <= allowed + 1e-15
    # The prediction uses the same formulas at each round's own inputs.
    assert abs(measured.squared_error - measured.predicted_squared_error) <= allowed + 1e-15
