"""`quietbits simulate` and `quietbits audit` as they are typed: fixed keys, the same numbers as the calls, faults in one line."""

import json
from dataclasses import asdict, fields
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from quietbits.analysis.audits.secure_sum_audit import audit_secure_sum
from quietbits.analysis.catalogue import secure_sum_mechanisms
from quietbits.analysis.catalogue.secure_sum_mechanisms import SECURE_SUM_MECHANISMS, build_secure_sum_mechanism
from quietbits.analysis.random_streams import named_stream
from quietbits.analysis.simulation.secure_sum import repeat_secure_sum
from quietbits.analysis.simulation.secure_sum_summary import SecureSumSummary, summarise_secure_sum
from quietbits.cli.main import app
from quietbits.design.contracts.guarantee import Guarantee
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism

SIZES = ["--clients", "50", "--dimension", "12", "--clip", "2", "--bits", "16", "--epsilon", "2", "--delta", "1e-5"]
SIMULATION = ["simulate", "distributed-discrete-gaussian", *SIZES]
SUMMARY_KEYS = {
    *("mechanism", "population", "seed", "repetitions", "clients", "dimension", "padded_dimension", "modulus", "bits_per_coordinate"),
    *("bits_per_client", "clipped_share", "squared_error", "standard_error", "predicted_squared_error", "worst_squared_error"),
    *("central_gaussian_squared_error", "ratio_to_central", "wrapped_coordinates", "wrapped_coordinates_bound"),
    *("coordinate_wrap_probability", "wrap_probability", "epsilon", "delta", "adjacency", "trust_model"),
}
AUDIT = ["audit", "distributed-discrete-gaussian", "--bits", "12", "--epsilon", "2", "--delta", "1e-2", "--repetitions", "50000"]
AUDIT_KEYS = {
    *("mechanism", "clients", "dimension", "bits", "others", "seed", "claimed_epsilon", "refuted", "adjacency", "trust_model"),
    *("epsilon_lower_bound", "delta", "confidence", "event", "threshold", "likelier", "likely_count", "unlikely_count", "draws"),
}


def run(*arguments: object) -> Result:
    """Run `quietbits` in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def answer(*arguments: object, exit_code: int = 0) -> dict[str, object]:
    """Return the one JSON object that a command prints."""
    result = run(*arguments, "--json")
    assert result.exit_code == exit_code, result.stderr
    assert result.stderr == ""
    assert result.stdout.count("\n") == 1
    found = json.loads(result.stdout, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    assert isinstance(found, dict)
    return found


def test_a_simulation_is_one_call() -> None:
    found = answer(*SIMULATION, "--repetitions", 3, "--seed", 5, "--population", "sparse", "--rotation-seed", 7)
    mechanism = build_secure_sum_mechanism("distributed-discrete-gaussian", NormBall(12, 2.0, 2.0), 50, 16, 2.0, 1e-5, rotation_seed=7)
    summary = summarise_secure_sum(repeat_secure_sum(mechanism, "sparse", 3, seed=5))
    assert found == {"mechanism": "distributed-discrete-gaussian"} | summary.document()
    assert found.keys() == SUMMARY_KEYS == {"mechanism"} | {field.name for field in fields(SecureSumSummary)}
    assert found["squared_error"] > 0
    assert (found["bits_per_coordinate"], found["bits_per_client"], found["padded_dimension"]) == (16, 256, 16)


def test_one_round_has_no_standard_error_and_the_seed_counts() -> None:
    first, again, other = (answer(*SIMULATION, "--seed", seed) for seed in (1, 1, 2))
    assert first == again
    assert first["squared_error"] != other["squared_error"]
    assert first["standard_error"] is None
    assert first["ratio_to_central"] == first["squared_error"] / first["central_gaussian_squared_error"]


def test_masks_change_nothing() -> None:
    assert answer(*SIMULATION, "--masked") == answer(*SIMULATION)


def test_the_table_says_what_was_measured_and_promised() -> None:
    printed = run(*SIMULATION, "--repetitions", 4).stdout
    summary = answer(*SIMULATION, "--repetitions", 4)
    for text in (
        "50 clients, 12 coordinates, sphere, 4 rounds",
        f"{summary['squared_error']:.6g} (s.e. {summary['standard_error']:.2g})",
        f"{summary['predicted_squared_error']:.6g}",
        f"{summary['worst_squared_error']:.6g}",
        f"{summary['central_gaussian_squared_error']:.6g}",
        "0 of 16 a round",
        "delta = 1e-05, add-or-remove-one adjacency, secure-sum trust model",
    ):
        assert text in printed
    assert "one round" in run(*SIMULATION).stdout


def test_a_summary_is_of_one_mechanism() -> None:
    mechanisms = [
        build_secure_sum_mechanism("distributed-discrete-gaussian", NormBall(4, 2.0), 10, 16, epsilon, 1e-5) for epsilon in (1, 2)
    ]
    results = [repeat_secure_sum(mechanism, "sphere", 2) for mechanism in mechanisms]
    assert summarise_secure_sum(results[0]).repetitions == 2
    with pytest.raises(ValueError, match="results must be of one mechanism and population, got several values of epsilon"):
        summarise_secure_sum(pd.concat(results))
    with pytest.raises(ValueError, match="results must have rows, got none"):
        summarise_secure_sum(results[0].iloc[:0])


def test_an_audit_is_one_call() -> None:
    found = answer(*AUDIT, "--seed", 3)
    mechanism = build_secure_sum_mechanism("distributed-discrete-gaussian", NormBall(1, 2.0), 2, 12, 2.0, 1e-2)
    result = audit_secure_sum(mechanism, 50_000, named_stream(3, "audit"))
    assert {name: found[name] for name in asdict(result)} == asdict(result)
    assert found.keys() == AUDIT_KEYS
    assert (found["claimed_epsilon"], found["refuted"]) == (mechanism.guarantee.epsilon, False)
    assert 1 < found["epsilon_lower_bound"] <= 2


def test_the_audits_table() -> None:
    printed = run(*AUDIT).stdout
    found = answer(*AUDIT)
    for text in (f"{found['epsilon_lower_bound']:.4g}, with confidence 0.999", "refuted", "no", "in 25000 draws each"):
        assert text in printed


def test_a_claim_that_is_wrong_gives_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    class Boastful(DistributedDiscreteGaussianMechanism):
        guarantee = Guarantee(1.0, "add-or-remove-one", "secure-sum", delta=1e-2)

    def boast(*_: object, **__: object) -> Boastful:
        return Boastful(NormBall(1, 2.0), clients=2, bits=12, granularity=0.1, local_sigma=0.5, delta=1e-2)

    monkeypatch.setattr(secure_sum_mechanisms, "build_secure_sum_mechanism", boast)
    found = answer(*AUDIT, exit_code=1)
    assert found["refuted"] is True
    assert found["epsilon_lower_bound"] > found["claimed_epsilon"] == 1.0
    result = run(*AUDIT)
    assert (result.exit_code, result.stderr) == (1, "")
    assert "yes" in result.stdout


def test_results_are_written(tmp_path: Path) -> None:
    for command in (SIMULATION, AUDIT):
        file = tmp_path / f"{command[0]}.json"
        assert run(*command, "--output", file).exit_code == 0
        assert json.loads(file.read_text()) == answer(*command)


@pytest.mark.parametrize("command", ["simulate", "audit"])
def test_the_help_names_every_mechanism(command: str) -> None:
    printed = " ".join(run(command, "--help").stdout.replace("│", " ").split())
    assert all(name in printed for name in SECURE_SUM_MECHANISMS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "laplace", *SIZES], "mechanism must be one of distributed-discrete-gaussian"),
        ([*SIMULATION, "--population", "cloud"], "population must be one of uniform-l1"),
        ([*SIMULATION, "--repetitions", "0"], "repetitions must be a whole number from 1 to 1000000, got 0"),
        ([*SIMULATION, "--bits", "3"], "bits must be at least"),
        ([*SIMULATION, "--clip", "0"], "clip_norm must be a number from"),
        ([*SIMULATION, "--output", "nowhere/x.json"], "nowhere: there is no such folder"),
        ([*AUDIT, "--repetitions", "10"], "repetitions must be a whole number from 100 to 100000000, got 10"),
        ([*AUDIT, "--others", "none"], "others must be one of zero, same, got 'none'"),
        ([*AUDIT, "--confidence", "1"], "confidence must be a number from 0.5 to 1, got 1.0"),
        ([*AUDIT, "--output", "nowhere/x.json"], "nowhere: there is no such folder"),
    ],
)
def test_faults_are_one_line(arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"quietbits: {message}")
    assert result.stderr.count("\n") == 1
