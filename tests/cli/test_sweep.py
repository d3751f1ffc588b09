"""`quietbits sweep` on the command line.

Points under test: files equal the call's byte for byte, the table shows averages, and errors have one line.
"""

import hashlib
from pathlib import Path

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from quietbits.analysis.sweeps.run import run_tasks
from quietbits.analysis.sweeps.spec import load_sweep
from quietbits.cli.console import OneLineErrors
from quietbits.cli.sweep import sweep_command

# Two populations, two budgets, two mechanisms and 5 repetitions make 40 tasks.
TOML = """
seed = 11
repetitions = 5
population = ["sphere", "uniform-l1"]
clients = 50
dimension = 4
norm = 2
epsilon = [1, 3]
delta = 1e-5
adjacency = "replace-one"
mechanism = [{ name = "cldp" }, { name = "gaussian" }]
"""


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("spec") / "sweep.toml"
    path.write_text(TOML)
    return path


@pytest.fixture(scope="module")
def whole(spec: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    run_tasks(load_sweep(spec).tasks(), folder)
    return folder


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / "results.parquet").read_bytes()).hexdigest()


app = typer.Typer(cls=OneLineErrors)
app.command("sweep")(sweep_command)
app.command("other")(lambda: None)


def invoke(*arguments: object) -> object:
    return CliRunner().invoke(app, ["sweep", *map(str, arguments)])


def test_the_command(tmp_path: Path, spec: Path, whole: Path) -> None:
    output = tmp_path / "new" / "output"
    run = invoke(spec, "--output", output, "--cache", tmp_path / "tables", "--workers", 1)
    assert run.exit_code == 0, run.output
    assert digest(output) == digest(whole)
    assert f"Results: {output / 'results.parquet'}" in run.stdout
    assert f"Report: {output / 'report.html'}" in run.stdout
    assert {path.name for path in output.iterdir()} == {"report.html", "results.parquet", "summary.csv", "tasks.sqlite"}
    assert "Guarantees: replace-one adjacency, local trust model, epsilon 1 and 3, delta 1e-05." in run.stdout
    # The purely private mechanism is flagged.
    assert "WARNING: Flag δ: these rows keep a smaller delta than the budget's, a stronger promise (cldp)." in run.stdout
    assert run.stdout.count("δ = 0") == 4
    for heading in ("mechanism", "population", "bits per", "epsilon", "MSE", "s.e.", "central"):
        assert heading in run.stdout
    rows = [line for line in run.stdout.splitlines() if line.startswith("│ ") and ("cldp" in line or "gaussian" in line)]
    assert len(rows) == 8
    small = tmp_path / "small.toml"
    small.write_text(TOML.replace("repetitions = 5", "repetitions = 1"))
    other = invoke(small, "--output", output, "--seed", 12)
    assert other.exit_code == 0
    assert pd.read_parquet(output / "results.parquet")["seed"].unique() == [12]


@pytest.mark.parametrize(("scale", "share"), [(1, None), (2, "100 %")])
def test_the_command_says_how_many_vectors_were_clipped(scale: int, share: str | None, tmp_path: Path) -> None:
    spec = tmp_path / "sweep.toml"
    spec.write_text(f"scale = {scale}" + TOML.replace("repetitions = 5", "repetitions = 1").replace(', "uniform-l1"', ""))
    run = invoke(spec, "--output", tmp_path / "output")
    assert run.exit_code == 0
    assert ("were clipped" in run.stdout) == (share is not None)
    if share is not None:
        assert f"Up to {share} of a row's inputs were clipped; errors are from the clipped ones." in run.stdout


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ("epsilons = 1", [], "quietbits: {spec}: epsilons is not a key of a sweep: it has mechanism, population"),
        ("", ["--workers", "0"], "quietbits: workers must be a whole number from 1 to 1024, got 0"),
        ("", ["--seed", "-1"], "quietbits: seed must be a whole number from 0 to"),
    ],
)
def test_faults_of_the_command_take_one_line(change: str, options: list[str], message: str, tmp_path: Path) -> None:
    spec = tmp_path / "sweep.toml"
    spec.write_text(change + TOML)
    run = invoke(spec, "--output", tmp_path / "output", *options)
    assert run.exit_code == 2
    assert run.stderr.count("\n") == 1
    assert run.stderr.startswith(message.format(spec=spec))
    assert not (tmp_path / "output").exists()


def test_a_missing_file_and_a_file_for_a_folder_take_one_line(tmp_path: Path, spec: Path) -> None:
    run = invoke(tmp_path / "none.toml", "--output", tmp_path / "output")
    assert (run.exit_code, run.stderr) == (2, f"quietbits: {tmp_path / 'none.toml'}: No such file or directory\n")
    (tmp_path / "file").touch()
    run = invoke(spec, "--output", tmp_path / "file")
    assert run.exit_code == 2
    assert run.stderr.count("\n") == 1


def test_the_command_shows_what_there_is_and_says_what_is_missing(tmp_path: Path) -> None:
    spec = tmp_path / "sweep.toml"
    spec.write_text(TOML.replace("repetitions = 5", "repetitions = 2").replace('name = "cldp"', 'name = "skellam", bits = 2'))
    run = invoke(spec, "--output", tmp_path / "output")
    assert run.exit_code == 2
    assert run.stdout.count("gaussian") >= 4
    assert f"Results: {tmp_path / 'output' / 'results.parquet'}" in run.stdout
    assert run.stderr.startswith("quietbits: 8 of 16 tasks failed, the others are saved: skellam (bits 2), epsilon 1, ")
    assert run.stderr.count("\n") == 1


def test_a_page_that_cannot_be_written_is_named_before_any_task_runs(tmp_path: Path, spec: Path) -> None:
    output = tmp_path / "output"
    for name in ("results.parquet", "report.html", "summary.csv"):
        (output / name).mkdir(parents=True)
        run = invoke(spec, "--output", output)
        assert run.exit_code == 2
        assert run.stderr == f"quietbits: {output / name}: this is a folder: name a file\n"
        assert [path.name for path in output.iterdir()] == [name]
        (output / name).rmdir()


def test_a_sweep_without_a_result_leaves_no_page(tmp_path: Path, spec: Path) -> None:
    output = tmp_path / "output"
    assert invoke(spec, "--output", output).exit_code == 0
    failing = tmp_path / "failing.toml"
    failing.write_text(TOML.replace('{ name = "cldp" }, { name = "gaussian" }', '{ name = "skellam", bits = 2 }'))
    run = invoke(failing, "--output", output)
    assert run.exit_code == 2
    assert f"Results: {output / 'results.parquet'}" in run.stdout
    assert {path.name for path in output.iterdir()} == {"results.parquet", "tasks.sqlite"}
