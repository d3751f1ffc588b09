"""`quietbits account` and `quietbits calibrate` for secure sums as they are typed: fixed keys, and faults in one line."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from quietbits.analysis.accounting.binomial import BinomialAccount, binomial_account
from quietbits.analysis.accounting.discrete_gaussian import calibrate_discrete_gaussian
from quietbits.analysis.accounting.poisson_binomial import poisson_binomial_accounting
from quietbits.cli.main import app
from quietbits.figures.accounts.binomial_account_plot import binomial_epsilon_by_rounds, draw_binomial_account
from quietbits.figures.drawing.directed_rounding import rounded_up
from quietbits.figures.drawing.style import print_style
from quietbits.solvers.divergences.poisson_binomial_divergence import poisson_binomial_renyi

ACCOUNT_KEYS = {
    *("mechanism", "rounds", "delta", "epsilon", "epsilon_rdp", "order", "order_at_edge", "epsilon_pld", "pure_epsilon"),
    *("adjacency", "trust_model", "sampling", "method"),
}
BINOMIAL_KEYS = {
    *("mechanism", "trials", "probability", "scale", "dimension", "l1", "l2", "linf", "rounds", "delta", "epsilon", "epsilon_reason"),
    "epsilon_doubtful",
    *("epsilon_exact", "epsilon_exact_reason", "epsilon_rdp", "order", "epsilon_gaussian"),
    *("worst_shift", "worst_coordinates", "squared_error"),
    *("adjacency", "trust_model", "sampling"),
}
GAUSSIAN_KEYS = {"clients", "dimension", "clip_norm", "local_sigma", "granularity", "tau", "rounded_norm", "squared_error"}
SENSITIVITIES = ["--probability", "0.5", "--scale", "1", "--dimension", "1", "--l1", "1", "--l2", "1", "--linf", "1", "--delta", "1e-6"]
BINOMIAL = ["account", "binomial", "--trials", "1000000", *SENSITIVITIES]
POISSON = ["account", "poisson-binomial", "--clients", "20", "--trials", "2", "--theta", "0.25"]
GAUSSIAN = ["--clients", "1000", "--dimension", "1024", "--clip", "1", "--delta", "1e-5"]
CALIBRATION = ["calibrate", "distributed-discrete-gaussian", *GAUSSIAN, "--bits", "16", "--epsilon", "1"]


def run(*arguments: object) -> Result:
    """Run `quietbits` in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def answer(*arguments: object) -> dict[str, object]:
    """Return the one JSON object that a command prints."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    assert result.stdout.count("\n") == 1

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    found = json.loads(result.stdout, parse_constant=refuse)
    assert isinstance(found, dict)
    return found


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_binomial() -> None:
    found = answer(*BINOMIAL)
    assert found == binomial_account(10**6, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6).document()
    assert found.keys() == BINOMIAL_KEYS
    assert 0 < found["epsilon_exact"] < found["epsilon"]


def test_binomial_without_a_worst_pair_is_null() -> None:
    found = answer(*BINOMIAL, "--dimension", 10, "--l1", 6, "--l2", 3.5, "--linf", 2)
    assert found.keys() == BINOMIAL_KEYS
    assert found["epsilon_exact"] is None
    assert found["epsilon"] > found["epsilon_rdp"] > found["epsilon_gaussian"] > 0


def test_fewest_trials() -> None:
    found = answer("calibrate", "binomial", "--epsilon", 1, *SENSITIVITIES)
    assert found.keys() == BINOMIAL_KEYS | {"target_epsilon", "method"}
    assert (found["trials"], found["method"]) == (80, "smallest")
    assert found["epsilon_exact"] <= 1.0


def test_poisson_binomial_at_an_order() -> None:
    found = answer(*POISSON, "--order", 8)
    assert found.keys() == ACCOUNT_KEYS | {"rdp", "rdp_proven", "rdp_order", "worst_case", "clients", "trials", "theta", "dimension"}
    assert found["rdp"] == poisson_binomial_renyi(20, 2, 0.25, [8.0])[0]
    assert found["epsilon"] is None
    assert (found["adjacency"], found["trust_model"]) == ("replace-one", "secure-sum")


def test_poisson_binomial_at_the_infinite_order() -> None:
    found = answer(*POISSON, "--order", "inf")
    assert found["rdp_order"] is None
    assert found["rdp"] == found["pure_epsilon"]


def test_poisson_binomial_at_a_delta() -> None:
    found = answer(*POISSON, "--delta", "1e-5", "--dimension", 4, "--rounds", 2)
    account = poisson_binomial_accounting(20, 2, 0.25, 4).account(2, 1e-5)
    assert {key: found[key] for key in ACCOUNT_KEYS} == account.document()
    assert found["rdp"] is None


def test_largest_theta() -> None:
    found = answer("calibrate", "poisson-binomial", "--clients", 1000, "--trials", 2, "--epsilon", 1, "--delta", "1e-5", "--dimension", 16)
    assert found.keys() == ACCOUNT_KEYS | {"theta", "target_epsilon"}
    assert 0 <= 1 - found["epsilon"] <= 1e-6


def test_discrete_gaussian_calibration() -> None:
    found = answer(*CALIBRATION)
    assert found.keys() == ACCOUNT_KEYS | GAUSSIAN_KEYS | {"target_epsilon", "bits", "deviations"}
    parameters = dict(calibrate_discrete_gaussian(1000, 1024, 1.0, 16, 1.0, 1e-5).parameters)
    assert {name: found[name] for name in parameters} == parameters
    assert 0 <= 1 - found["epsilon"] <= 1e-6
    assert found["adjacency"] == "add-or-remove-one"


def test_what_was_calibrated_is_what_is_accounted() -> None:
    found = answer(*CALIBRATION)
    options = ["--local-sigma", found["local_sigma"], "--granularity", found["granularity"]]
    account = answer("account", "distributed-discrete-gaussian", *GAUSSIAN, *options)
    assert account.keys() == ACCOUNT_KEYS | GAUSSIAN_KEYS
    assert account["epsilon"] == found["epsilon"]
    assert {name: account[name] for name in GAUSSIAN_KEYS} == {name: found[name] for name in GAUSSIAN_KEYS}


def test_a_table_says_whose_epsilon_it_is() -> None:
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in run(*BINOMIAL).stdout.splitlines() if line.startswith("│")]
    names = [row[0] for row in rows if "epsilon" in row[0]]
    assert names == ["epsilon by Theorem 1", "epsilon, exact", "epsilon by Rényi divergence", "epsilon by Gaussian noise"]


@pytest.mark.parametrize(
    "command", [BINOMIAL, [*POISSON, "--delta", "1e-5"], CALIBRATION, ["calibrate", "binomial", "--epsilon", "1", *SENSITIVITIES]]
)
def test_tables_for_people_and_a_file(folder: Path, command: list[str]) -> None:
    result = run(*command, "--output", "account.json")
    assert result.exit_code == 0, result.stderr
    for row in ("epsilon", "adjacency", "secure-sum"):
        assert row in result.stdout
    assert json.loads((folder / "account.json").read_text()) == answer(*command)


@pytest.mark.parametrize(
    "command",
    [
        ["account", "binomial", "--trials", "2000", *SENSITIVITIES, "--rounds", "3"],
        [*POISSON, "--delta", "1e-5", "--dimension", "2"],
        ["account", "distributed-discrete-gaussian", *GAUSSIAN, "--local-sigma", "0.13", "--granularity", "0.01"],
        ["account", "distributed-skellam", *GAUSSIAN, "--local-variance", "0.017", "--granularity", "0.01"],
    ],
)
def test_plots(folder: Path, command: list[str]) -> None:
    result = run(*command, "--plot", "plot.png")
    assert result.exit_code == 0, result.stderr
    assert (folder / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert answer(*command) == answer(*command, "--plot", "again.svg")


def test_every_account_of_binomial_noise_is_drawn_where_there_is_one() -> None:
    def account_of(rounds: int) -> BinomialAccount:
        return binomial_account(1500, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6, rounds)

    account = account_of(1)
    epsilons = binomial_epsilon_by_rounds(account_of, account)
    # The theorem's condition is for delta / (2 rounds): with 1500 trials it holds for one round alone.
    assert epsilons["epsilon"].notna().tolist() == [rounds == 1 for rounds in epsilons["rounds"]]
    assert epsilons["epsilon_exact"].tolist() == [account_of(rounds).epsilon_exact for rounds in epsilons["rounds"]]
    with print_style():
        figure = draw_binomial_account(epsilons, account)
    drawn = [np.asarray(line.get_ydata()).tolist() for line in figure.axes[0].lines]
    for column in ("epsilon", "epsilon_rdp", "epsilon_exact"):
        assert epsilons[column].dropna().tolist() in drawn
    caption = " ".join(figure.get_supxlabel().split())
    assert "replace-one adjacency, secure-sum trust model; every client takes part in every round" in caption
    assert f"{rounded_up(account.epsilon_exact, 4)} (exact)" in caption


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*BINOMIAL, "--plot", "plot.jpeg"], "plot must be a file that ends in .svg, .pdf, .png, got 'plot.jpeg'"),
        ([*BINOMIAL, "--plot", "no/plot.svg"], "no: there is no such folder"),
        ([*POISSON, "--order", "2", "--plot", "plot.svg"], "delta must be given for a plot of epsilon"),
        ([*BINOMIAL, "--trials", "10"], "trials must be at least 1483 for Theorem 1 of cpSGD to hold"),
        ([*BINOMIAL, "--probability", "1"], "probability must be a number from"),
        ([*BINOMIAL, "--delta", "0"], "delta must be a number above 0 and below 1, got 0.0"),
        ([*BINOMIAL, "--adjacency", "both"], "adjacency must be one of replace-one, add-or-remove-one, got 'both'"),
        ([*BINOMIAL, "--output", "no/o.json"], "no: there is no such folder"),
        (["calibrate", "binomial", "--epsilon", "-1", *SENSITIVITIES], "epsilon must be a number above 0, got -1.0"),
        (POISSON, "order or delta must be given"),
        ([*POISSON, "--order", "1"], "order must be a number above 1, got 1.0"),
        ([*POISSON, "--order", "2", "--theta", "0.5"], "theta must be a number from 1e-06 to 0.499, got 0.5"),
        ([*POISSON, "--order", "2", "--output", "no/o.json"], "no: there is no such folder"),
        ([*CALIBRATION, "--bits", "5"], "bits must be at least"),
        ([*CALIBRATION, "--clip", "0"], "clip_norm must be a number from"),
        ([*CALIBRATION, "--epsilon", "0"], "epsilon must be a number from 1e-05"),
        ([*CALIBRATION, "--adjacency", "both"], "adjacency must be one of replace-one, add-or-remove-one, got 'both'"),
        (
            ["account", "distributed-discrete-gaussian", *GAUSSIAN, "--local-sigma", "0", "--granularity", "1"],
            "local_sigma must be a number",
        ),
    ],
)
def test_a_fault_is_one_line_and_leaves_no_file(folder: Path, arguments: list[str], message: str) -> None:
    result = run(*arguments, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"quietbits: {message}")
    assert result.stderr.count("\n") == 1
    assert list(folder.iterdir()) == []
