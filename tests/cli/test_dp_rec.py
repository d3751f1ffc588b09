"""`quietbits account dp-rec` and `quietbits calibrate dp-rec` as they are typed: fixed keys, and faults in one line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from quietbits.analysis.accounting.dp_rec import calibrate_dp_rec, dp_rec_account
from quietbits.cli.main import app

KEYS = {
    *("mechanism", "clip_ratio", "population", "clients_per_round", "rounds", "bits", "delta", "variant", "epsilon", "order"),
    *("order_at_edge", "minimum_bits", "lost_delta", "adjacency", "trust_model", "sampling", "assumption"),
}
TRAINING = ["--population", "100", "--clients-per-round", "10", "--rounds", "1000", "--bits", "42", "--delta", "0.006"]
ACCOUNT = ["account", "dp-rec", "--clip-ratio", "0.545", *TRAINING]
CALIBRATION = ["calibrate", "dp-rec", "--epsilon", "3", *TRAINING]


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


@pytest.mark.parametrize("variant", ["published", "conservative", "any-bits"])
def test_account(variant: str) -> None:
    found = answer(*ACCOUNT, "--variant", variant)
    assert found.keys() == KEYS
    assert found == dp_rec_account(0.545, 100, 10, 1000, 42, 0.006, variant).document()


def test_published_is_the_variant_by_default() -> None:
    assert answer(*ACCOUNT)["variant"] == answer(*CALIBRATION)["variant"] == "published"


@pytest.mark.parametrize("variant", ["published", "conservative", "any-bits"])
def test_calibration_and_the_account_of_what_it_found(variant: str) -> None:
    found = answer(*CALIBRATION, "--variant", variant)
    assert found.keys() == KEYS | {"target_epsilon"}
    assert found == calibrate_dp_rec(3.0, 100, 10, 1000, 42, 0.006, variant).document()
    assert 0 <= 3 - float(str(found.pop("epsilon"))) <= 1e-6
    account = answer("account", "dp-rec", "--clip-ratio", found["clip_ratio"], *TRAINING, "--variant", variant)
    assert account.items() >= {name: found[name] for name in found.keys() & KEYS}.items()


@pytest.mark.parametrize("command", [ACCOUNT, CALIBRATION])
def test_tables_for_people_and_a_file(folder: Path, command: list[str]) -> None:
    result = run(*command, "--output", "account.json")
    assert result.exit_code == 0, result.stderr
    for text in ("epsilon", "adjacency", "add-or-remove-one", "central", "finite from 25 on", "samples of the prior"):
        assert text in result.stdout
    assert json.loads((folder / "account.json").read_text()) == answer(*command)


def test_a_table_warns_of_an_order_at_the_edge() -> None:
    result = run("account", "dp-rec", "--clip-ratio", "1e-5", *TRAINING)
    assert result.exit_code == 0, result.stderr
    assert "WARNING: order 16384 is at the edge of the orders tried" in result.stdout
    assert "WARNING" not in run(*ACCOUNT).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*ACCOUNT, "--bits", "24"], "bits must be at least 25 for clip ratio 0.545 and 10000 draws at delta = 0.006, got 24"),
        ([*ACCOUNT, "--clip-ratio", "-1"], "clip_ratio must be a number from 1e-06 to 100, got -1.0"),
        ([*ACCOUNT, "--delta", "0"], "delta must be a number above 0 and below 1, got 0.0"),
        ([*ACCOUNT, "--population", "0"], "population must be a whole number from 1 to 1000000000000, got 0"),
        ([*ACCOUNT, "--variant", "best"], "variant must be one of published, conservative, any-bits, got 'best'"),
        ([*ACCOUNT, "--output", "no/o.json"], "no: there is no such folder"),
        ([*CALIBRATION, "--bits", "20"], "bits must be at least 25 for clip ratio 1e-06"),
        ([*CALIBRATION, "--epsilon", "0"], "epsilon must be a number from 1e-05"),
        ([*CALIBRATION, "--epsilon", "1e-4"], "clip ratio would have to be below 1e-06"),
        ([*CALIBRATION, "--output", "no/o.json"], "no: there is no such folder"),
    ],
)
def test_a_fault_is_one_line_and_leaves_no_file(folder: Path, arguments: list[str], message: str) -> None:
    result = run(*arguments, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"quietbits: {message}")
    assert result.stderr.count("\n") == 1
    assert list(folder.iterdir()) == []
