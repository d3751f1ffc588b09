"""A task of a sweep of means.

Each mechanism of the registry is prepared once, sent to workers, and gives complete rows.
"""

import math
import pickle
from pathlib import Path
from typing import Any

import pytest
from tiny_sketches import SKETCHES

from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.analysis.random_streams import named_stream
from quietbits.analysis.simulation.mean import simulate_mean
from quietbits.analysis.simulation.populations import input_chunks
from quietbits.analysis.sweeps.task import METRICS, OPTION_COLUMNS, MeanTask, MechanismChoice, PreparedMean
from quietbits.design.contracts.domains import Categories, Domain, Interval
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task
from quietbits.solvers.accounting.sampling import PoissonSampling

OPTIONS: dict[str, dict[str, Any]] = {
    "mvu": {"bits_in": 2, "bits_out": 1},
    "cpsgd": {"bits": 10},
    "poisson-binomial": {"bits": 5},
    "sketched-poisson-binomial": {"trials": 1},
    **SKETCHES,
}


def task_of(name: str, domain: Domain, **changes: Any) -> MeanTask:
    problem = Task(**{"domain": domain, "clients": 20, "epsilon": 3.0, "delta": 1e-3, "adjacency": REGISTRY[name].adjacencies[0]} | changes)
    population = "sphere" if isinstance(domain, NormBall) else "uniform"
    return MeanTask(MechanismChoice.of(name, **OPTIONS.get(name, {})), problem, population, repetition=2, seed=5)


CASES = [
    (name, domain)
    for name, entry in REGISTRY.items()
    for domain in (Interval(0.0, 2.0), NormBall(3, 1.0), NormBall(3, 2.0), Categories(3))
    if type(domain) in entry.domains and not (isinstance(domain, NormBall) and domain.norm not in (entry.norms or (2.0,)))
]


@pytest.mark.parametrize(("name", "domain"), CASES, ids=str)
def test_every_mechanism_travels_to_workers_and_makes_rows(name: str, domain: Domain) -> None:
    task = pickle.loads(pickle.dumps(task_of(name, domain)))  # noqa: S301 - what was just pickled
    assert task == task_of(name, domain)
    at_home = task_of(name, domain).prepare(None)
    prepared = pickle.loads(pickle.dumps(at_home))  # noqa: S301
    rows = task.run(prepared)
    assert rows == task_of(name, domain).run(at_home)
    modular = REGISTRY[name].trust_model == "secure-sum" or name == "split-and-mix"
    assert [row["metric"] for row in rows] == list(METRICS if modular else METRICS[:-1])
    words = named_stream(5, f"messages: {task.name}")
    # The error averages over public randomness, so each repetition has its own.
    renewed = prepared.mechanism.renewed(int(named_stream(5, f"sketch: {task.name}").integers(2**63)))
    result = simulate_mean(renewed, input_chunks(task.population, domain, 20, named_stream(5, task.data_name)), words)
    assert rows[0]["value"] == result.squared_error
    row = rows[0]
    assert (row["mechanism"], row["trust_model"], row["adjacency"]) == (name, REGISTRY[name].trust_model, task.task.adjacency)
    assert row["realised_epsilon"] <= (3.0 if REGISTRY[name].private else math.inf)
    assert (row["modulus"] is None, row["wrap_probability"] is None) == (not modular, not modular)
    assert row["bits_per_coordinate"] == prepared.mechanism.bits_per_client / task.task.dimension
    assert {column for column in OPTION_COLUMNS if row[column] is not None} == {
        {"metric": "table_metric"}.get(name, name) for name, value in task.mechanism.options if value is not None
    }


def test_the_cache_is_for_mechanisms_that_keep_tables(tmp_path: Path) -> None:
    task = task_of("mvu", Interval(0.0, 2.0))
    task.prepare(tmp_path / "tables")
    assert len(list((tmp_path / "tables").iterdir())) == 1
    task_of("laplace", Interval(0.0, 2.0)).prepare(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(ValueError, match="cache is not a parameter of mvu"):
        MechanismChoice.of("mvu", cache="folder")


def test_guarantees_are_of_all_rounds_with_their_sampling() -> None:
    def prepared(**changes: Any) -> PreparedMean:
        return task_of("distributed-discrete-gaussian", NormBall(3, 2.0), adjacency="add-or-remove-one", **changes).prepare(None)

    whole, sampled = prepared(rounds=5), prepared(rounds=5, sampling=PoissonSampling(0.1))
    for result, sampling in ((whole, None), (sampled, PoissonSampling(0.1))):
        report = result.mechanism.privacy().report(1e-3, "add-or-remove-one", 5, sampling)
        assert result.stated["realised_epsilon"] == report.guarantee.epsilon
        assert 2.9 < report.guarantee.epsilon <= 3.0
    # With sampled clients, each round needs less noise.
    assert sampled.mechanism.variance_bound < whole.mechanism.variance_bound / 2


def test_references_are_those_of_the_budget_that_was_asked_for() -> None:
    # The purely private mechanism is compared with Gaussian noise at the delta that the task allows.
    assert task_of("cldp", NormBall(3, 2.0)).prepare(None).stated["central_error"] is not None
    assert task_of("cldp", NormBall(3, 2.0), delta=0.0).prepare(None).stated["central_error"] is None
    bounds = [task_of("cldp", Interval(0.0, 2.0), delta=delta).prepare(None).stated["lower_bound"] for delta in (0.0, 1e-3)]
    # The messages are purely private for any allowed delta.
    assert bounds[1] == bounds[0]
    assert bounds[0] is not None
    assert 0 < bounds[0] < math.inf
