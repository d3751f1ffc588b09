"""`quietbits plan FILE`: many tasks on the command line."""

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from quietbits.analysis.sweeps.example import example_specification
from quietbits.cli.main import app

GRID = 'trust = "local"\n[grid]\nclients = 100\nepsilon = [1, 2]\ndelta = 0\nadjacency = "replace-one"\ncategories = [10, 20]\n'


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


def test_a_file_of_tasks_becomes_a_table(spec: Path, tmp_path: Path) -> None:
    run = invoke("plan", spec, "--output", tmp_path / "plans", "--seed", 3)
    assert run.exit_code == 0, run.stderr
    rows = pd.read_parquet(tmp_path / "plans" / "results.parquet")
    assert set(rows["seed"]) == {3}
    assert len(rows.groupby(["task_epsilon", "categories"])) == 4
    page = tmp_path / "plans" / "report.html"
    assert "tasks that no mechanism serves │ 0" in run.stdout
    assert f"page                           │ {str(page)[:10]}" in run.stdout
    assert "4 tasks, " in page.read_text(encoding="utf-8")
    assert f"recommended                    │ {rows[rows['recommended']]['mechanism'].iloc[0]}" in run.stdout


def test_tasks_that_no_mechanism_serves_have_no_page(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "plans").mkdir()
    page = tmp_path / "plans" / "report.html"
    page.write_text("an earlier one")
    spec.write_text(GRID + "message_bits = 0.01\n")
    run = invoke("plan", spec, "--output", tmp_path / "plans")
    assert run.exit_code == 0, run.stderr
    assert "tasks that no mechanism serves │ 4" in run.stdout
    assert not page.exists()


def test_the_example_is_printed() -> None:
    assert invoke("plan", "--example").stdout == example_specification("plan_grid")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "plans", "--epsilon", 2], "epsilon must be left out beside a file of tasks, got 2.0: write it in the file"),
        (["--output", "plans", "--json"], "json must be left out beside a file of tasks, got True: write it in the file"),
        ([], "output must be a folder for the plans of a file, got none: state --output FOLDER"),
    ],
)
def test_options_of_one_task_do_not_belong_to_a_file(spec: Path, arguments: list[object], message: str) -> None:
    run = invoke("plan", spec, *arguments)
    assert (run.exit_code, run.stderr) == (2, f"quietbits: {message}\n")


def test_one_task_needs_its_budget(tmp_path: Path) -> None:
    run = invoke("plan", "--clients", 10, "--epsilon", 1)
    assert run.exit_code == 2
    assert run.stderr.startswith("quietbits: adjacency must be given, got none: state --adjacency, or a file of tasks")
    run = invoke("plan", "--clients", 10, "--epsilon", 1, "--adjacency", "replace-one", "--dask", "tcp://127.0.0.1:1")
    assert run.stderr == "quietbits: dask must be left out without a file of tasks, got 'tcp://127.0.0.1:1'\n"
    (tmp_path / "grid.toml").write_text(GRID + "epsilons = 3\n")
    run = invoke("plan", tmp_path / "grid.toml", "--output", tmp_path / "plans")
    assert run.exit_code == 2
    assert "grid.toml: epsilons is not a key of [grid]" in run.stderr
