"""`quietbits account cpsgd` and `quietbits calibrate cpsgd` as they are typed: fixed keys, and faults in one line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from quietbits.analysis.accounting.cpsgd import cpsgd_account
from quietbits.analysis.calibration.cpsgd import calibrate_cpsgd
from quietbits.cli.main import app
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.secure_sum.cpsgd_parameters import CpsgdParameters

KEYS = {
    *(
        "mechanism",
        "clients",
        "dimension",
        "padded_dimension",
        "clip_norm",
        "levels",
        "trials",
        "probability",
        "rotated",
        "rounds",
        "delta",
    ),
    *(
        "epsilon",
        "epsilon_reason",
        "epsilon_rdp",
        "order",
        "epsilon_gaussian",
        "adjacency",
        "trust_model",
        "bits_per_coordinate",
        "bits_before_aggregation",
    ),
    *("squared_error", "squared_error_bound", "bias_bound", "squared_error_gaussian", "sampling"),
}
VECTORS = ["--clients", "1000", "--dimension", "100", "--clip", "2", "--delta", "1e-5"]
ACCOUNT = ["account", "cpsgd", *VECTORS, "--levels", "33", "--trials", "2000"]
CALIBRATION = ["calibrate", "cpsgd", *VECTORS, "--epsilon", "1", "--bits", "18"]


def run(*arguments: object) -> Result:
    """Run `quietbits` in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def answer(*arguments: object) -> dict[str, object]:
    """Return the one JSON object that a command prints."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_account() -> None:
    parameters = CpsgdParameters(NormBall(100, 2.0, 2.0), clients=1000, levels=33, trials=2000, delta=1e-5, rotated=True)
    found = answer(*ACCOUNT)
    assert found == cpsgd_account(parameters).document()
    assert found.keys() == KEYS
    assert (found["adjacency"], found["trust_model"], found["padded_dimension"]) == ("replace-one", "secure-sum", 128)


def test_options_of_an_account() -> None:
    found = answer(*ACCOUNT, "--plain", "--probability", 0.25, "--rounds", 3, "--adjacency", "add-or-remove-one")
    assert found.keys() == KEYS
    assert (found["rotated"], found["probability"], found["rounds"]) == (False, 0.25, 3)
    assert (found["adjacency"], found["epsilon_rdp"], found["bias_bound"]) == ("add-or-remove-one", None, 0.0)


def test_an_account_without_the_theorem_has_null_and_the_reason() -> None:
    found = answer("account", "cpsgd", *VECTORS, "--levels", 3, "--trials", 1)
    assert found.keys() == KEYS
    assert found["epsilon"] is None
    assert str(found["epsilon_reason"]).startswith("trials must be at least ")


def test_calibration_is_what_is_accounted() -> None:
    found = answer(*CALIBRATION)
    assert found == calibrate_cpsgd(1000, 100, 2.0, 18, 1.0, 1e-5).document()
    assert found.keys() == KEYS | {"target_epsilon", "method", "bits"}
    account = answer("account", "cpsgd", *VECTORS, "--levels", found["levels"], "--trials", found["trials"])
    assert account == {name: found[name] for name in KEYS}


def test_calibration_by_the_theorem_without_a_number_of_bits() -> None:
    found = answer("calibrate", "cpsgd", *VECTORS, "--epsilon", 2, "--method", "theorem", "--plain")
    assert (found["method"], found["rotated"]) == ("theorem", False)
    assert 1.9 < float(str(found["epsilon"])) <= 2
    assert found["bits_per_coordinate"] <= found["bits"]  # type: ignore[operator]


@pytest.mark.parametrize("command", [ACCOUNT, CALIBRATION], ids=["account", "calibrate"])
def test_tables_for_people_and_a_file(folder: Path, command: list[str]) -> None:
    result = run(*command, "--output", "found.json")
    assert result.exit_code == 0, result.stderr
    found = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    for part in (str(found["mechanism"]), "100 coordinates, padded to 128", "replace-one adjacency, secure-sum trust model", "1 round"):
        assert part in result.stdout
    assert ("target epsilon" in result.stdout) == ("target_epsilon" in found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*ACCOUNT[:-3], "1", "--trials", "20"], "levels must be a whole number from 2 to 16777216, got 1"),
        ([*CALIBRATION[:-1], "3"], "bits must be at least 12 for 1000 clients to reach epsilon = 1"),
        ([*CALIBRATION, "--method", "exact"], "account must be one of smallest, theorem, rdp, gaussian, got 'exact'"),
        ([*ACCOUNT, "--output", "nowhere/found.json"], "nowhere: there is no such folder"),
    ],
    ids=["levels", "bits", "method", "folder"],
)
def test_a_fault_is_one_line_and_leaves_no_file(folder: Path, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(folder.iterdir()) == []
