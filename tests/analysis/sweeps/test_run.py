"""Sweeps: the same table to the last bit whatever the workers, and whatever was killed; nothing lost, nothing done twice."""

import hashlib
import logging
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from distributed import LocalCluster
from typer.testing import CliRunner

from quietbits.analysis.calibration.table_cache import TableCache
from quietbits.analysis.catalogue import vector_mechanisms
from quietbits.analysis.sweeps import run as sweep_module
from quietbits.analysis.sweeps import store as sweep_store
from quietbits.analysis.sweeps.run import IncompleteSweepError, run_sweep
from quietbits.analysis.sweeps.spec import load_sweep, parse_sweep
from quietbits.analysis.sweeps.store import METRICS, SweepStore
from quietbits.analysis.sweeps.summary import summarise_sweep
from quietbits.analysis.sweeps.task import SweepTask, build_design, run_task
from quietbits.cli.console import OneLineErrors
from quietbits.cli.sweep import sweep_command
from quietbits.design.contracts.gaussian import central_gaussian_error
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.errors import InfeasibleError

# Two populations, two budgets, two mechanisms, 25 repetitions: 200 tasks.
TOML = """
seed = 11
repetitions = 25
population = ["sphere", "uniform-l1"]
clients = 50
dimension = 4
norm = 2
epsilon = [1, 3]
delta = 1e-5
mechanism = [{ name = "cldp" }, { name = "gaussian" }]
"""
FEW = {
    "population": "sphere",
    "clients": 50,
    "dimension": 4,
    "norm": 2,
    "epsilon": [1, 3],
    "delta": 1e-5,
    "repetitions": 3,
    "mechanism": [{"name": "laplace"}, {"name": "gaussian"}],
}


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("spec") / "sweep.toml"
    path.write_text(TOML)
    return path


@pytest.fixture(scope="module")
def whole(spec: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the 200 tasks, done by one worker in one go."""
    folder = tmp_path_factory.mktemp("whole")
    run_sweep(load_sweep(spec).tasks(), folder)
    return folder


def digests(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def task_files(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (folder / "tasks").glob("*.parquet")}


def few(**changes: object) -> list[SweepTask]:
    return parse_sweep(FEW | changes).tasks()


def test_what_a_finished_sweep_leaves(whole: Path, spec: Path) -> None:
    files = digests(whole)
    assert len(files) == 201
    assert {name for name in files if not name.startswith("tasks/")} == {"results.parquet"}
    results = pd.read_parquet(whole / "results.parquet")
    tasks = load_sweep(spec).tasks()
    assert len(results) == 200 * len(METRICS)
    assert results["metric"].tolist() == 200 * list(METRICS)
    for column, values in (
        ("epsilon", [task.design.epsilon for task in tasks]),
        ("mechanism", [task.design.mechanism.name for task in tasks]),
        ("population", [task.population for task in tasks]),
        ("repetition", [task.repetition for task in tasks]),
    ):
        assert results[column].tolist() == np.repeat(values, len(METRICS)).tolist()
    assert results["seed"].unique() == [11]
    assert set(results["adjacency"]) == {"replace-one"}
    assert set(results["trust_model"]) == {"local"}
    assert (results["realised_epsilon"] <= results["epsilon"]).all()
    assert results["value"].notna().all()
    assert {name for name in results.columns if name.startswith("version_")} >= {"version_quietbits", "version_python", "version_numpy"}


def test_every_task_has_randomness_of_its_own(whole: Path) -> None:
    # The error of Gaussian noise over its expectation depends on nothing but the random numbers.
    results = pd.read_parquet(whole / "results.parquet").query("mechanism == 'gaussian'")
    errors, expected = (results[results["metric"] == metric]["value"].to_numpy() for metric in ("squared_error", "predicted_squared_error"))
    assert len(set((errors / expected).round(6))) == 100


def test_two_workers_give_the_same_bits(whole: Path, spec: Path, tmp_path: Path) -> None:
    run_sweep(load_sweep(spec).tasks(), tmp_path, workers=2)
    assert digests(tmp_path) == digests(whole)


SCRIPT = """
import sys
from pathlib import Path
from quietbits.analysis.sweeps.run import run_sweep
from quietbits.analysis.sweeps.spec import load_sweep

if __name__ == "__main__":
    run_sweep(load_sweep(sys.argv[1]).tasks(), Path(sys.argv[2]), workers=2)
"""


def test_a_sweep_that_was_killed_goes_on(whole: Path, spec: Path, tmp_path: Path) -> None:
    script, output = tmp_path / "run.py", tmp_path / "output"
    script.write_text(SCRIPT)
    # Killed with SIGKILL, workers and all, some time after a number of tasks that is drawn here: in the middle of whatever it is doing.
    rng = np.random.default_rng(4)
    enough, delay = int(rng.integers(1, 80)), float(rng.uniform(0, 0.05))
    # Found where this process finds it, quietbits is of the same version there.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(script), str(spec), str(output)]
    process = subprocess.Popen(command, start_new_session=True, env=environment)
    try:
        while not (output / "tasks").is_dir() or len(task_files(output)) < enough:
            assert process.poll() is None
            time.sleep(0.002)
        time.sleep(delay)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    finished = task_files(output)
    assert enough <= len(finished) < 200
    assert not (output / "results.parquet").exists()

    steps: list[tuple[int, int, str]] = []
    run_sweep(load_sweep(spec).tasks(), output, on_step=lambda *step: steps.append(step))
    assert digests(output) == digests(whole)
    assert {name: changed for name, changed in task_files(output).items() if name in finished} == finished
    assert steps[0][0] == len(finished)
    assert sum(text.startswith("ran ") for _, _, text in steps) == 200 - len(finished)
    assert steps[-1][:2] == (steps[0][1],) * 2


def test_a_finished_sweep_is_read_and_not_run(whole: Path, spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("nothing was to be run")

    before = digests(whole)
    monkeypatch.setattr(sweep_module, "run_task", never)
    monkeypatch.setattr(sweep_module, "build_design", never)
    results = run_sweep(load_sweep(spec).tasks(), whole)
    assert digests(whole) == before
    pd.testing.assert_frame_equal(results, pd.read_parquet(whole / "results.parquet"))


def test_rows_are_what_a_task_gives_by_itself(tmp_path: Path) -> None:
    tasks = few()
    results = run_sweep(tasks, tmp_path)
    for task in (tasks[0], tasks[-1]):
        mechanism = build_design(task.design, None)
        result = run_task(task, mechanism)
        wanted = [task.design.mechanism.name, task.design.epsilon, task.repetition]
        chosen = results[(results[["mechanism", "epsilon", "repetition"]] == wanted).all(axis=1)].set_index("metric")
        assert chosen["value"].to_dict() == {metric: getattr(result, metric) for metric in METRICS}
        assert set(chosen["bits_per_coordinate"]) == {mechanism.bits_per_client / 4}
        assert set(chosen["realised_delta"]) == {mechanism.guarantee.delta}


def test_more_repetitions_and_mechanisms_leave_the_others_as_they_were(tmp_path: Path) -> None:
    before = run_sweep(few(), tmp_path)
    files = task_files(tmp_path)
    after = run_sweep(few(repetitions=4, mechanism=[{"name": "cldp"}, *FEW["mechanism"]]), tmp_path)
    assert files.items() <= task_files(tmp_path).items()
    same = after[(after["mechanism"] != "cldp") & (after["repetition"] < 3)].reset_index(drop=True)
    pd.testing.assert_frame_equal(same, before)


def test_other_seeds_and_other_software_are_other_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = few(repetitions=1, epsilon=1)
    store = SweepStore(tmp_path)
    paths = {store.path(tasks[0]), store.path(replace(tasks[0], seed=1))}
    monkeypatch.setattr(sweep_store, "RESULT_FORMAT", "another")
    paths.add(SweepStore(tmp_path).path(tasks[0]))
    assert len(paths) == 3
    first, second = (run_sweep(few(repetitions=1, seed=seed), tmp_path) for seed in (0, 1))
    measured = first["metric"] == "squared_error"
    assert (first[measured]["value"] != second[measured]["value"]).all()


def test_what_a_killed_run_leaves_half_written_is_removed_and_what_is_damaged_is_done_again(tmp_path: Path) -> None:
    tasks = few()
    run_sweep(tasks, tmp_path)
    whole = digests(tmp_path)
    store = SweepStore(tmp_path)
    cut, empty, other, old = (store.path(task) for task in tasks[:4])
    untouched = task_files(tmp_path).keys() - {path.name for path in (cut, empty, other, old)}
    times = {name: task_files(tmp_path)[name] for name in untouched}
    (tmp_path / "tasks" / f".{cut.name}.0123abcd.part").write_bytes(cut.read_bytes()[:100])
    (tmp_path / ".results.parquet.0123abcd.part").write_bytes(b"PAR1")
    cut.write_bytes(cut.read_bytes()[:-20])
    empty.write_bytes(b"")
    other.write_bytes(store.path(tasks[5]).read_bytes())
    pd.DataFrame({"value": [1.0]}).to_parquet(old)
    run_sweep(tasks, tmp_path)
    assert digests(tmp_path) == whole
    assert {name: task_files(tmp_path)[name] for name in untouched} == times


def test_tasks_that_cannot_be_done_are_named_and_the_others_are_saved(tmp_path: Path) -> None:
    tasks = few(mechanism=[{"name": "laplace"}, {"name": "skellam", "bits": [2, 16]}], epsilon=1)
    with pytest.raises(IncompleteSweepError) as caught:
        run_sweep(tasks, tmp_path / "output")
    with pytest.raises(InfeasibleError) as fault:
        vector_mechanisms.build_mechanism(tasks[3].design.mechanism, NormBall(4, 2.0), 1.0, 1e-5)
    error = caught.value
    setting = "skellam (bits 2), epsilon 1, delta 1e-05, 50 clients from sphere, dimension 4, L2 ball of radius 1"
    assert str(error) == f"3 of 9 tasks failed, the others are saved: {setting} (3 repetitions): {fault.value}"
    assert [(failure.task, failure.message) for failure in error.failures] == [(task, str(fault.value)) for task in tasks[3:6]]
    results = pd.read_parquet(tmp_path / "output" / "results.parquet")
    pd.testing.assert_frame_equal(results, error.results)
    assert len(task_files(tmp_path / "output")) == 6
    # What is there is what a sweep without the mechanism gives.
    feasible = [task for task in tasks if task.design.mechanism.bits != 2]
    pd.testing.assert_frame_equal(results, run_sweep(feasible, tmp_path / "feasible"))


def test_faults_at_work_are_collected_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sometimes(task: SweepTask, mechanism: object) -> object:
        return "the well is dry" if task.repetition < 6 else run_task(task, mechanism)

    monkeypatch.setattr(sweep_module, "run_task", sometimes)
    steps: list[tuple[int, int, str]] = []
    with pytest.raises(IncompleteSweepError) as caught:
        run_sweep(few(repetitions=7, epsilon=[1, 2, 3]), tmp_path, on_step=lambda *step: steps.append(step))
    assert len(caught.value.failures) == 36
    assert len(caught.value.results) == 6 * len(METRICS)
    assert str(caught.value).startswith("36 of 42 tasks failed, the others are saved: laplace, epsilon 1, ")
    assert str(caught.value).count("(6 repetitions): the well is dry") == 5
    assert str(caught.value).endswith("; and 1 more setting")
    assert steps[-1][:2] == (48, 48)
    # The next run does what is left.
    monkeypatch.undo()
    assert len(run_sweep(few(repetitions=7, epsilon=[1, 2, 3]), tmp_path)) == 42 * len(METRICS)


def test_a_sweep_of_which_nothing_can_be_done(tmp_path: Path) -> None:
    with pytest.raises(IncompleteSweepError, match="3 of 3 tasks failed") as caught:
        run_sweep(few(mechanism=[{"name": "skellam", "bits": 2}], epsilon=1), tmp_path)
    assert len(caught.value.results) == 0
    with pytest.raises(ValueError, match="results must have rows, got none"):
        summarise_sweep(caught.value.results)
    assert list(digests(tmp_path)) == ["results.parquet"]


def test_what_nobody_expected_is_raised_and_what_is_done_stays_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(task: SweepTask, mechanism: object) -> object:
        if task.repetition == 2:
            raise TypeError("a mistake in the program")
        return run_task(task, mechanism)

    monkeypatch.setattr(sweep_module, "run_task", breaks)
    with pytest.raises(TypeError, match="a mistake in the program"):
        run_sweep(few(), tmp_path)
    files = task_files(tmp_path)
    assert len(files) == 2
    assert not (tmp_path / "results.parquet").exists()
    monkeypatch.undo()
    run_sweep(few(), tmp_path)
    assert files.items() <= task_files(tmp_path).items()


def test_a_table_is_designed_once_for_all_tasks_and_sweeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    designed = []
    calibrate = vector_mechanisms.calibrate_vector_table

    def counting(*arguments: object, **options: object) -> object:
        designed.append(arguments)
        return calibrate(*arguments, **options)

    monkeypatch.setattr(vector_mechanisms, "calibrate_vector_table", counting)
    mechanism = {"name": "mvu", "bits_in": 3, "bits_out": 1, "metric": "l1"}
    tasks = few(mechanism=[mechanism], epsilon=4, repetitions=2, population=["sphere", "sparse"])
    cache = TableCache(tmp_path / "tables")
    first = run_sweep(tasks, tmp_path / "first", cache=cache)
    second = run_sweep(tasks, tmp_path / "second", cache=cache)
    assert designed == [(4.0, 1e-5, NormBall(4, 2.0), 3, 1, "l1")]
    pd.testing.assert_frame_equal(first, second)
    assert first["realised_epsilon"].between(4 - 1e-6, 4).all()
    assert set(first["table_metric"]) == {"l1"}
    # A table in the wrong place, here one that is less private, is not believed.
    (path,) = cache.folder.iterdir()
    less_private = calibrate(5.0, 1e-5, NormBall(4, 2.0), 3, 1, "l1").table
    cache.fetch({"other": 1}, lambda: less_private)
    (other,) = (found for found in cache.folder.iterdir() if found != path)
    path.write_bytes(other.read_bytes())
    with caplog.at_level(logging.WARNING):
        third = run_sweep(tasks, tmp_path / "third", cache=cache)
    assert len(designed) == 2
    assert "it is not the table that was asked for" in caplog.text
    pd.testing.assert_frame_equal(first, third)


def test_dask_workers_give_the_same_bits(tmp_path: Path) -> None:
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        run_sweep(few(), tmp_path / "dask", dask=cluster.scheduler_address)
    run_sweep(few(), tmp_path / "here")
    assert digests(tmp_path / "dask") == digests(tmp_path / "here")


def test_bad_arguments_are_refused_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = few()
    output = tmp_path / "output"
    with pytest.raises(ValueError, match="tasks must all be different, got 1 twice"):
        run_sweep([*tasks, tasks[0]], output)
    with pytest.raises(ValueError, match="workers must be a whole number from 1 to 1024, got 0"):
        run_sweep(tasks, output, workers=0)
    monkeypatch.setattr(sweep_module, "find_spec", lambda _: None)
    with pytest.raises(
        ValueError, match=r"dask needs the package distributed, which is not installed: install quietbits\[dask\]; got 'tcp://x'"
    ):
        run_sweep(tasks, output, dask="tcp://x")
    assert not output.exists()


def test_the_summary(tmp_path: Path) -> None:
    results = run_sweep(few(clip_norm=0.5, scale=1.5, population=["sphere", "uniform-l1"]), tmp_path)
    summary = summarise_sweep(results)
    assert summary["label"].tolist() == ["laplace", "gaussian"] * 4
    assert summary["epsilon"].tolist() == [1, 1, 3, 3] * 2
    assert summary["repetitions"].tolist() == [3] * 8
    # All clipped on the sphere of radius 0.75; of the others, whose L1 norm is 0.75, those with an L2 norm above 0.5.
    assert summary["clipped_share"].tolist()[:4] == [1.0] * 4
    assert 0 <= summary["clipped_share"].iloc[4] < 1
    for row in summary.to_dict("records"):
        chosen = results[
            (results[["mechanism", "epsilon", "population"]] == [row["mechanism"], row["epsilon"], row["population"]]).all(axis=1)
        ]
        errors = chosen[chosen["metric"] == "squared_error"]["value"]
        assert row["mean_squared_error"] == pytest.approx(errors.mean(), rel=1e-13)
        assert row["standard_error"] == pytest.approx(errors.std(ddof=1) / np.sqrt(3), rel=1e-13)
        central = central_gaussian_error(NormBall(4, 2.0, 0.5), 50, row["epsilon"], 1e-5, "replace-one")
        assert row["ratio_to_central"] == pytest.approx(errors.mean() / central, rel=1e-13)
    single = summarise_sweep(run_sweep(few(repetitions=1, delta=0, mechanism=[{"name": "cldp"}]), tmp_path))
    assert single[["standard_error", "central_error", "ratio_to_central"]].isna().all(axis=None)
    skellam = summarise_sweep(run_sweep(few(mechanism=[{"name": "skellam"}]), tmp_path))
    assert skellam["label"].tolist() == ["skellam (bits 16)"] * 2


app = typer.Typer(cls=OneLineErrors)
app.command("sweep")(sweep_command)
app.command("other")(lambda: None)


def invoke(*arguments: object) -> object:
    return CliRunner().invoke(app, ["sweep", *map(str, arguments)])


def test_the_command(tmp_path: Path, spec: Path, whole: Path) -> None:
    output = tmp_path / "new" / "output"
    run = invoke(spec, "--output", output, "--cache", tmp_path / "tables", "--workers", 1)
    assert run.exit_code == 0, run.output
    assert digests(output) == digests(whole)
    assert f"Results: {output / 'results.parquet'}" in run.stdout
    assert "Guarantees: replace-one adjacency, local trust model, one message." in run.stdout
    for heading in ("mechanism", "population", "bits per", "epsilon", "MSE", "s.e.", "central"):
        assert heading in run.stdout
    rows = [line for line in run.stdout.splitlines() if "cldp" in line or "gaussian" in line]
    assert len(rows) == 8
    small = tmp_path / "small.toml"
    small.write_text(TOML.replace("repetitions = 25", "repetitions = 1"))
    other = invoke(small, "--output", output, "--seed", 12)
    assert other.exit_code == 0
    assert pd.read_parquet(output / "results.parquet")["seed"].unique() == [12]


@pytest.mark.parametrize(("scale", "share"), [(1, None), (2, "100 %")])
def test_the_command_says_how_many_vectors_were_clipped(scale: int, share: str | None, tmp_path: Path) -> None:
    spec = tmp_path / "sweep.toml"
    spec.write_text(f"scale = {scale}" + TOML.replace("repetitions = 25", "repetitions = 1").replace(', "uniform-l1"', ""))
    run = invoke(spec, "--output", tmp_path / "output")
    assert run.exit_code == 0
    assert ("Clipped:" in run.stdout) == (share is not None)
    if share is not None:
        assert f"Clipped: up to {share} of a setting's vectors lay outside the ball" in run.stdout


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ("epsilons = 1", [], "quietbits: {spec}: epsilons is no key of a sweep: there are mechanism, population"),
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
    spec.write_text(TOML.replace("repetitions = 25", "repetitions = 2").replace('name = "cldp"', 'name = "skellam", bits = 2'))
    run = invoke(spec, "--output", tmp_path / "output")
    assert run.exit_code == 2
    assert run.stdout.count("gaussian") >= 4
    assert f"Results: {tmp_path / 'output' / 'results.parquet'}" in run.stdout
    assert run.stderr.startswith("quietbits: 8 of 16 tasks failed, the others are saved: skellam (bits 2), epsilon 1, ")
    assert run.stderr.count("\n") == 1
