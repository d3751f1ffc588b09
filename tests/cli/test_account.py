"""`quietbits account` and `quietbits calibrate` as they are typed: what comes back, and that a fault is one line and leaves no file."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from quietbits.analysis.accounting.mechanism_accounting import gaussian_accounting, pure_accounting, table_accounting
from quietbits.analysis.accounting.subsampling import PoissonSampling
from quietbits.cli.main import app
from quietbits.design.tables.file import read_table, write_table
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.solvers.divergences.vector_composition import vector_bounds

VECTOR = ["account", "vector", "table.json", "--dimension", "8", "--norm", "2", "--radius", "1"]
GAUSSIAN = ["account", "gaussian", "--noise-multiplier", "2", "--delta", "1e-6"]
TABLE = [
    "calibrate",
    "vector",
    "--epsilon",
    "2",
    "--delta",
    "1e-6",
    "--dimension",
    "4",
    "--bits-in",
    "2",
    "--bits-out",
    "1",
    "--metric",
    "l1",
]
ACCOUNT_KEYS = {
    *("mechanism", "rounds", "delta", "epsilon", "epsilon_rdp", "order", "order_at_edge", "epsilon_pld", "pure_epsilon"),
    *("adjacency", "trust_model", "sampling", "method"),
}
TABLE_KEYS = {"rdp_order", "rdp_lp", "rdp_greedy", "rdp_integer", "dimension", "norm", "radius"}


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
    write_table(generalised_randomised_response(1.0, 2), tmp_path / "table.json")
    return tmp_path


# account vector, account table


def test_a_vector_at_an_order() -> None:
    found = answer(*VECTOR, "--order", 8)
    assert found.keys() == ACCOUNT_KEYS | TABLE_KEYS
    bounds = vector_bounds(generalised_randomised_response(1.0, 2).weights, 8.0, 8, 2.0, 1.0)
    assert (found["rdp_lp"], found["rdp_greedy"], found["rdp_integer"]) == (bounds.linear_program, bounds.greedy, bounds.integer)
    assert (found["rdp_order"], found["dimension"], found["norm"], found["radius"]) == (8.0, 8, 2.0, 1.0)
    assert (found["epsilon"], found["order"], found["delta"]) == (None, None, None)
    assert found["rdp_greedy"] >= found["rdp_lp"] >= found["rdp_integer"] > 0


def test_a_vector_at_a_delta() -> None:
    found = answer(*VECTOR, "--delta", "1e-5", "--rounds", 3)
    assert found.keys() == ACCOUNT_KEYS | TABLE_KEYS
    account = table_accounting(read_table("table.json"), dimension=8, norm=2.0, radius=1.0).account(3, 1e-5)
    assert {key: found[key] for key in ACCOUNT_KEYS} == account.document()
    assert (found["rdp_lp"], found["rdp_greedy"], found["rdp_integer"], found["rdp_order"]) == (None,) * 4
    assert (found["adjacency"], found["trust_model"], found["rounds"]) == ("replace-one", "local", 3)


@pytest.mark.parametrize(("typed", "norm"), [("1", 1.0), ("inf", "inf"), ("2.5", 2.5)])
def test_norms(typed: str, norm: float | str) -> None:
    found = answer(*VECTOR, "--norm", typed, "--order", 2)
    assert found["norm"] == norm
    # The dynamic programme counts whole units of the budget.
    assert (found["rdp_integer"] is None) == (typed == "2.5")


def test_the_infinite_order_is_the_pure_epsilon() -> None:
    found = answer(*VECTOR, "--norm", "1", "--order", "inf")
    assert found["rdp_order"] is None
    assert found["rdp_integer"] == pytest.approx(found["pure_epsilon"])


def test_a_table_is_a_vector_of_one_coordinate() -> None:
    scalar = answer("account", "table", "table.json", "--delta", "1e-3", "--rounds", 5, "--order", 3)
    vector = answer(*VECTOR, "--delta", "1e-3", "--rounds", 5, "--order", 3, "--dimension", 1, "--norm", 1)
    assert scalar == vector
    assert scalar["epsilon"] == scalar["epsilon_pld"] < scalar["epsilon_rdp"]


def test_a_human_table() -> None:
    shown = run(*VECTOR, "--delta", "1e-5", "--rounds", 3, "--order", 4).stdout
    found = answer(*VECTOR, "--delta", "1e-5", "--rounds", 3)
    for part in ("replace-one", "local", "all 3 rounds together", "linear relaxation", "greedy bound", "pure epsilon", "not computed"):
        assert part in shown
    assert f"order {found['order']:g}" in shown
    assert "WARNING" not in shown


def test_an_order_at_the_edge_is_said() -> None:
    result = run("account", "gaussian", "--noise-multiplier", 0.02, "--delta", 0.5)
    assert "WARNING: order 1.05 is at the edge of the orders tried" in result.stdout
    assert answer("account", "gaussian", "--noise-multiplier", 0.02, "--delta", 0.5)["order_at_edge"] is True


# account, the other mechanisms


@pytest.mark.parametrize(("name", "label"), [("cldp", "CLDP"), ("sqkr", "SQKR"), ("privunit", "PrivUnit")])
def test_pure_mechanisms(name: str, label: str) -> None:
    found = answer("account", name, "--epsilon", 0.5, "--delta", 1e-6, "--rounds", 20)
    assert found == pure_accounting(label, 0.5).account(20, 1e-6).document()
    assert answer("account", name, "--epsilon", 0.5, "--rounds", 20)["pure_epsilon"] == 10.0


def test_laplace_and_skellam() -> None:
    laplace = answer("account", "laplace", "--epsilon", 0.5, "--delta", 1e-6, "--rounds", 20)
    assert laplace["epsilon"] < answer("account", "cldp", "--epsilon", 0.5, "--delta", 1e-6, "--rounds", 20)["epsilon"]
    skellam = answer("account", "skellam", "--variance", 1e5, "--l1", 30, "--l2", 10, "--delta", 1e-6)
    assert skellam["method"] == "rdp"
    assert skellam.keys() == laplace.keys() == ACCOUNT_KEYS


def test_gaussian_noise_with_samples() -> None:
    poisson = answer(*GAUSSIAN, "--rounds", 10, "--sampling-probability", 0.1)
    assert poisson == gaussian_accounting(2.0, sampling=PoissonSampling(0.1)).account(10, 1e-6).document()
    fixed = answer(*GAUSSIAN, "--rounds", 10, "--population", 50, "--sample-size", 5)
    assert (fixed["adjacency"], fixed["trust_model"]) == ("replace-one", "central")
    added = answer(*GAUSSIAN, "--adjacency", "add-or-remove-one", "--trust-model", "secure-sum")
    assert (added["adjacency"], added["trust_model"]) == ("add-or-remove-one", "secure-sum")


# Files


@pytest.mark.parametrize(("suffix", "beginning"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("PNG", b"\x89PNG")])
def test_plots(folder: Path, suffix: str, beginning: bytes) -> None:
    result = run(*VECTOR, "--norm", "inf", "--delta", "1e-5", "--rounds", 4, "--plot", f"plot.{suffix}")
    assert result.exit_code == 0, result.stderr
    assert (folder / f"plot.{suffix}").read_bytes().startswith(beginning)


def test_plots_of_the_others(folder: Path) -> None:
    assert run(*GAUSSIAN, "--plot", "gaussian.svg").exit_code == 0
    assert run("account", "cldp", "--epsilon", 1, "--delta", 1e-6, "--plot", "cldp.svg").exit_code == 0
    assert {path.name for path in folder.iterdir()} == {"table.json", "gaussian.svg", "cldp.svg"}


def test_output_is_what_json_prints(folder: Path) -> None:
    found = answer(*GAUSSIAN, "--output", "account.json")
    assert json.loads((folder / "account.json").read_text()) == found
    found = answer("calibrate", "gaussian", "--epsilon", 1, "--delta", 1e-6, "--output", "calibration.json")
    assert json.loads((folder / "calibration.json").read_text()) == found


# calibrate


@pytest.mark.parametrize(
    ("arguments", "parameters"),
    [
        (("gaussian", "--rounds", 10), {"noise_multiplier"}),
        (("gaussian", "--rounds", 10, "--sampling-probability", 0.1), {"noise_multiplier"}),
        (("cldp", "--rounds", 10), {"epsilon_per_round"}),
        (("sqkr",), {"epsilon_per_round"}),
        (("privunit",), {"epsilon_per_round"}),
        (("laplace", "--rounds", 10), {"epsilon_per_round"}),
        (("skellam", "--dimension", 16, "--bits", 12, "--clip", 2, "--rounds", 3), {"granularity", "variance"}),
        (("vector", "--dimension", 4, "--norm", 1, "--bits-in", 2, "--bits-out", 1, "--metric", "l1"), {"table_epsilon"}),
    ],
    ids=lambda value: " ".join(map(str, value if isinstance(value, tuple) else sorted(value))),
)
def test_calibration(arguments: tuple[object, ...], parameters: set[str]) -> None:
    found = answer("calibrate", *arguments, "--epsilon", 2, "--delta", 1e-6)
    assert found.keys() == ACCOUNT_KEYS | {"target_epsilon"} | parameters
    assert 0 <= 2.0 - found["epsilon"] <= 1e-6
    assert found["target_epsilon"] == 2.0


def test_the_account_of_what_was_calibrated_agrees() -> None:
    found = answer("calibrate", "gaussian", "--epsilon", 1, "--delta", 1e-6, "--rounds", 7)
    again = answer("account", "gaussian", "--noise-multiplier", found["noise_multiplier"], "--delta", 1e-6, "--rounds", 7)
    assert again["epsilon"] == found["epsilon"]


def test_a_calibrated_table_is_written_and_accounted_for(folder: Path) -> None:
    result = run(*TABLE, "--norm", 1, "--output", "designed.json")
    assert result.exit_code == 0, result.stderr
    assert "table epsilon" in result.stdout
    assert "target epsilon" in result.stdout
    assert read_table(folder / "designed.json").bits_in == 2


# Faults


def fault(result: Result) -> str:
    """Return the one line that a fault printed."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("quietbits: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("quietbits: ").rstrip("\n")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([], "order or delta must be given"),
        (["--delta", "0"], "delta must be a number above 0 and below 1, got 0.0"),
        (["--delta", "1.5"], "delta must be a number above 0 and below 1, got 1.5"),
        (["--delta", "nan"], "delta must be a number above 0 and below 1, got nan"),
        (["--order", "1"], "order must be a number above 1, got 1.0"),
        (["--order", "nan"], "order must be a number above 1, got nan"),
        (["--order", "2", "--rounds", "0"], "rounds must be a whole number from 1"),
        (["--order", "2", "--radius", "0"], "radius must be a number from 1e-09 to 1e+06, got 0.0"),
        (["--order", "2", "--radius", "nan"], "radius must be a number from 1e-09 to 1e+06, got nan"),
        (["--order", "2", "--norm", "cosine"], "norm must be a number of at least 1, or inf, got 'cosine'"),
        (["--order", "2", "--norm", "0.5"], "norm must be a number from 1 to 64, got 0.5"),
        (["--order", "2", "--norm", "nan"], "norm must be a number from 1 to 64, got nan"),
        (["--order", "2", "--dimension", "0"], "dimension must be a whole number from 1"),
        (["--delta", "0.1", "--plot", "plot.jpeg"], "plot must be a file that ends in .svg, .pdf, .png, got 'plot.jpeg'"),
        (["--delta", "0.1", "--plot", "no/plot.svg"], "no: there is no such folder"),
        (["--delta", "0.1", "--output", "no/account.json"], "no: there is no such folder"),
        # Before anything is computed, which would find fault with the rounds.
        (["--delta", "0.1", "--rounds", "0", "--output", "no/account.json"], "no: there is no such folder"),
        (["--order", "2", "--plot", "plot.svg"], "delta must be given for a plot of epsilon"),
    ],
)
def test_a_bad_account_is_one_line(folder: Path, changes: list[str], message: str) -> None:
    assert fault(run(*VECTOR, "--output", "account.json", *changes)).startswith(message)
    assert [path.name for path in folder.iterdir()] == ["table.json"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*TABLE, "--norm", "l0"], "norm must be a number from 1 to 64, got 0.0"),
        (GAUSSIAN[:4], "delta must be given for a mechanism that has no pure guarantee"),
        ([*GAUSSIAN, "--noise-multiplier", "0"], "noise_multiplier must be a number from 0.001"),
        ([*GAUSSIAN, "--sampling-probability", "2"], "sampling_probability must be a number from 1e-09 to 1, got 2.0"),
        ([*GAUSSIAN, "--sampling-probability", "0.1", "--sample-size", "2"], "sampling_probability must stand without"),
        ([*GAUSSIAN, "--sample-size", "2"], "population and sample_size must be given together"),
        ([*GAUSSIAN, "--adjacency", "replace-one", "--sampling-probability", "0.1"], "sampling must be Poisson with add-or-remove-one"),
        (["account", "sqkr", "--epsilon", "1", "--sampling-probability", "0.1"], "sampling must be left out for SQKR"),
        ([*GAUSSIAN, "--rounds", "0", "--plot", "no/plot.svg"], "no: there is no such folder"),
        (["account", "cldp", "--epsilon", "-1"], "epsilon must be a number from 1e-06 to 100, got -1.0"),
        (["account", "table", "absent.json", "--order", "2"], "absent.json: No such file or directory"),
        (["calibrate", "gaussian", "--epsilon", "0", "--delta", "1e-6"], "epsilon must be a number from 1e-05 to 10000, got 0.0"),
        (["calibrate", "gaussian", "--epsilon", "1", "--delta", "2", "--output", "o.json"], "delta must be a number above 0 and below 1"),
        (["calibrate", "cldp", "--epsilon", "1", "--delta", "0.1", "--output", "no/o.json"], "no: there is no such folder"),
        (["calibrate", "skellam", "--epsilon", "1", "--delta", "1e-6", "--dimension", "9", "--bits", "3"], "bits must be at least"),
    ],
)
def test_other_faults_are_one_line(folder: Path, arguments: list[str], message: str) -> None:
    assert fault(run(*arguments)).startswith(message)
    assert [path.name for path in folder.iterdir()] == ["table.json"]


def test_a_changed_table_is_refused(folder: Path) -> None:
    path = folder / "table.json"
    path.write_text(path.read_text().replace('"epsilon": 1.0', '"epsilon": 0.5'))
    assert fault(run(*VECTOR, "--order", 2)).startswith("checksum: the file was changed")


def test_an_infinite_order_is_null_in_json() -> None:
    found = answer("account", "cldp", "--epsilon", 1, "--delta", 1e-6)
    assert found["order"] is None
    assert found["epsilon_rdp"] == found["pure_epsilon"] == 1.0
