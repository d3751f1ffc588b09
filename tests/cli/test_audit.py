"""`quietbits audit` on the command line.

Points under test: audits of every mechanism of the registry, and of tables, against their own guarantees.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_sketches import SKETCHES_OF_ONE, as_typed
from typer.testing import Result

import quietbits
from quietbits.analysis.audits.mechanism_audit import audit
from quietbits.analysis.catalogue import registry
from quietbits.analysis.planner.stated_error import stated_error
from quietbits.analysis.random_streams import named_stream
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from quietbits.design.tables.file import write_table
from quietbits.design.tables.randomised_response import generalised_randomised_response

Answer = Callable[..., dict[str, Any]]
Run = Callable[..., Result]

AUDIT = [
    *("audit", "distributed-discrete-gaussian", "--dimension", "1", "--bits", "12"),
    *("--epsilon", "2", "--delta", "1e-2", "--repetitions", "50000"),
]
KEYS = {
    *("mechanism", "clients", "dimension", "others", "seed", "claimed_epsilon", "refuted", "adjacency", "trust_model"),
    *("epsilon_lower_bound", "delta", "confidence", "event", "threshold", "likelier", "likely_count", "unlikely_count", "draws"),
    *("bits_per_client", "worst_squared_error", "central_squared_error", "lower_bound", "bound_reason"),
}
CHEAP = {
    "mvu": ["--bits-in", "2", "--bits-out", "1"],
    "cpsgd": ["--bits", "10"],
    "shuffled-mvu": ["--bits-in", "2", "--bits-out", "1"],
    "poisson-binomial": ["--bits", "4"],
    **as_typed(SKETCHES_OF_ONE),
}


def test_an_audit_is_one_call(answer: Answer) -> None:
    result = answer(*AUDIT, "--seed", 3)
    task = quietbits.Task(quietbits.NormBall(1, 2.0), 2, 2.0, 1e-2, "add-or-remove-one")
    mechanism = quietbits.build_mechanism("distributed-discrete-gaussian", task, {"bits": 12})
    audited = audit(mechanism, 50_000, named_stream(3, "audit"))
    stated = stated_error(registry.REGISTRY["distributed-discrete-gaussian"], task, mechanism)
    assert result.items() >= (audited.document() | stated.document()).items()
    assert (stated.bits_per_client, stated.worst_squared_error) == (12, mechanism.variance_bound / 2 + mechanism.bias_bound**2)
    assert result.keys() == KEYS | {"bits"}
    assert (result["claimed_epsilon"], result["refuted"]) == (mechanism.guarantee.epsilon, False)
    assert 1 < result["epsilon_lower_bound"] <= 2


@pytest.mark.parametrize("name", [name for name, entry in registry.REGISTRY.items() if entry.private])
def test_no_mechanism_is_refuted(answer: Answer, name: str) -> None:
    result = answer("audit", name, "--epsilon", 2, "--delta", 0.05, "--repetitions", 500, *CHEAP.get(name, []))
    assert result.keys() >= KEYS
    assert (result["mechanism"], result["refuted"]) == (name, False)
    assert result["worst_squared_error"] >= (result["lower_bound"] or 0)
    assert result["epsilon_lower_bound"] <= result["claimed_epsilon"] <= 2


def test_what_claims_nothing_cannot_be_refuted(answer: Answer) -> None:
    result = answer("audit", "exact-histogram", "--repetitions", 1000)
    assert (result["claimed_epsilon"], result["refuted"]) == (None, False)
    assert (result["worst_squared_error"], result["lower_bound"]) == (0, None)
    assert result["epsilon_lower_bound"] > 4


def test_a_table_is_audited(answer: Answer, folder: Path) -> None:
    write_table(generalised_randomised_response(1.0, 2), folder / "table.json")
    result = answer("audit", "table", "table.json", "--repetitions", 100_000)
    assert 0.9 < result["epsilon_lower_bound"] <= result["claimed_epsilon"] <= 1.0
    assert result["bits_per_client"] == 2
    assert 0.9 < result["lower_bound"] < result["worst_squared_error"] < 2


def test_the_table_for_people(run: Run, answer: Answer) -> None:
    shown, result = run(*AUDIT).stdout, answer(*AUDIT)
    for text in (
        f"{result['epsilon_lower_bound']:.4g}, with confidence 0.999",
        "no, but passing is not a proof",
        "in 25000 draws each",
        "trusted server, epsilon asked",
    ):
        assert text in shown


def test_a_claim_that_is_wrong_gives_exit_code_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Boastful(DistributedDiscreteGaussianMechanism):
        guarantee = quietbits.Guarantee(1.0, "add-or-remove-one", "secure-sum", delta=1e-2)

    def boast(*_: object) -> Boastful:
        return Boastful(quietbits.NormBall(1, 2.0), clients=2, bits=12, granularity=0.1, local_sigma=0.5, delta=1e-2)

    name = "distributed-discrete-gaussian"
    monkeypatch.setitem(registry.REGISTRY, name, replace(registry.REGISTRY[name], build=boast))
    result = run(*AUDIT, "--json")
    assert (result.exit_code, result.stderr) == (1, "")
    loaded = json.loads(result.stdout)
    assert loaded["refuted"] is True
    assert loaded["epsilon_lower_bound"] > loaded["claimed_epsilon"] == 1.0
    assert "yes" in run(*AUDIT).stdout


def test_results_are_written(run: Run, answer: Answer, folder: Path) -> None:
    assert run(*AUDIT, "--output", "found.json").exit_code == 0
    assert json.loads((folder / "found.json").read_text()) == answer(*AUDIT)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (
            ["audit", "privunit-2", "--epsilon", "1"],
            "mechanism must be a name that quietbits audit --help lists, got 'privunit-2'",
        ),
        ([*AUDIT, "--interval", "0", "9"], "interval must be left out where clients hold vectors, got 0 9"),
        (
            ["audit", "sqkr", "--epsilon", "1", "--categories", "3"],
            "categories must be left out for sqkr, whose clients hold vectors, got 3",
        ),
        ([*AUDIT, "--repetitions", "10"], "repetitions must be a whole number from 100 to 100000000, got 10"),
        ([*AUDIT, "--others", "none"], "others must be one of zero, same, got 'none'"),
        ([*AUDIT, "--confidence", "1"], "confidence must be a number from 0.5 to 1, got 1.0"),
        ([*AUDIT, "--output", "nowhere/x.json"], "nowhere: there is no such folder"),
    ],
)
def test_faults_are_one_line(fault: Callable[..., str], folder: Path, typed: list[str], message: str) -> None:
    assert fault(*typed).startswith(message)
    assert list(folder.iterdir()) == []
