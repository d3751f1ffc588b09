"""`quietbits account` and `quietbits calibrate` for shared Skellam noise as they are typed: fixed keys, and faults in one line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from quietbits.analysis.accounting.distributed_skellam import calibrate_distributed_skellam, distributed_skellam_accounting
from quietbits.cli.main import app

ACCOUNT_KEYS = {
    *("mechanism", "rounds", "delta", "epsilon", "epsilon_rdp", "order", "order_at_edge", "epsilon_pld", "pure_epsilon"),
    *("adjacency", "trust_model", "sampling", "method"),
}
DETAIL_KEYS = {"clients", "dimension", "clip_norm", "local_variance", "granularity", "rounded_norm", "squared_error"}
COMMON = ["--clients", "1000", "--dimension", "1024", "--clip", "1", "--delta", "1e-5"]
ACCOUNT = ["account", "distributed-skellam", *COMMON, "--local-variance", "0.04", "--granularity", "0.001"]
CALIBRATION = ["calibrate", "distributed-skellam", *COMMON, "--bits", "16", "--epsilon", "1"]


def run(*arguments: object) -> Result:
    """Run `quietbits` in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def answer(*arguments: object) -> dict[str, object]:
    """Return the one JSON object that a command prints."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    assert result.stdout.count("\n") == 1
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_account() -> None:
    found = answer(*ACCOUNT, "--rounds", 3, "--adjacency", "replace-one")
    assert found.keys() == ACCOUNT_KEYS | DETAIL_KEYS
    expected = distributed_skellam_accounting(1000, 1024, 1.0, 0.04, 0.001, adjacency="replace-one").account(3, 1e-5)
    assert {key: found[key] for key in ACCOUNT_KEYS} == expected.document()
    assert (found["adjacency"], found["trust_model"]) == ("replace-one", "secure-sum")


def test_calibration() -> None:
    found = answer(*CALIBRATION)
    assert found.keys() == ACCOUNT_KEYS | DETAIL_KEYS | {"target_epsilon", "bits", "deviations"}
    parameters = dict(calibrate_distributed_skellam(1000, 1024, 1.0, 16, 1.0, 1e-5).parameters)
    assert {name: found[name] for name in parameters} == parameters
    assert (found["bits"], found["deviations"], found["target_epsilon"]) == (16, 4.0, 1.0)
    assert found["adjacency"] == "add-or-remove-one"


def test_what_was_calibrated_is_what_is_accounted() -> None:
    found = answer(*CALIBRATION, "--rounds", 2, "--deviations", 5)
    options = ["--local-variance", found["local_variance"], "--granularity", found["granularity"], "--rounds", 2]
    account = answer("account", "distributed-skellam", *COMMON, *options)
    assert account["epsilon"] == found["epsilon"]
    assert {name: account[name] for name in DETAIL_KEYS} == {name: found[name] for name in DETAIL_KEYS}


@pytest.mark.parametrize("command", [ACCOUNT, CALIBRATION], ids=["account", "calibrate"])
def test_tables_for_people_and_a_file(folder: Path, command: list[str]) -> None:
    result = run(*command, "--output", "account.json")
    assert result.exit_code == 0, result.stderr
    for row in ("epsilon", "local variance", "squared error", "adjacency", "secure-sum"):
        assert row in result.stdout
    assert json.loads((folder / "account.json").read_text()) == answer(*command)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*ACCOUNT, "--delta", "0"], "delta must be a number above 0 and below 1, got 0.0"),
        ([*ACCOUNT, "--local-variance", "0"], "local_variance must be a number from"),
        ([*ACCOUNT, "--adjacency", "both"], "adjacency must be one of replace-one, add-or-remove-one, got 'both'"),
        ([*ACCOUNT, "--output", "no/o.json"], "no: there is no such folder"),
        ([*CALIBRATION, "--bits", "5"], "bits must be at least"),
        ([*CALIBRATION, "--clip", "0"], "clip_norm must be a number from"),
        ([*CALIBRATION, "--output", "no/o.json"], "no: there is no such folder"),
    ],
)
def test_faults_are_one_line(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"quietbits: {message}")
    assert result.stderr.count("\n") == 1
