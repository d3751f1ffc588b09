"""Tests of sweeps.

Requirements: tables are identical for any workers and after any kill; no task is lost or done twice.
"""

import hashlib
import logging
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import quietbits
from quietbits.analysis.catalogue import tables
from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.analysis.sweeps import store as sweep_store
from quietbits.analysis.sweeps.run import IncompleteSweepError, run_tasks
from quietbits.analysis.sweeps.spec import load_sweep, parse_sweep
from quietbits.analysis.sweeps.store import RESULTS_NAME, STORE_NAME, task_key
from quietbits.analysis.sweeps.task import METRICS, MeanTask
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.tables.table_cache import TableCache
from quietbits.errors import InfeasibleError

# Two populations, two budgets, two mechanisms and 25 repetitions make 200 tasks.
TOML = """
seed = 11
repetitions = 25
population = ["sphere", "uniform-l1"]
clients = 50
dimension = 4
norm = 2
epsilon = [1, 3]
delta = 1e-5
adjacency = "replace-one"
mechanism = [{ name = "cldp" }, { name = "gaussian" }]
"""
# Metrics of mechanisms without a modular sum.
LOCAL_METRICS = METRICS[:-1]
FEW = {
    "population": "sphere",
    "clients": 50,
    "dimension": 4,
    "norm": 2,
    "epsilon": [1, 3],
    "delta": 1e-5,
    "adjacency": "replace-one",
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
    """Folder of the 200 tasks, done by one worker without interruption."""
    folder = tmp_path_factory.mktemp("whole")
    run_tasks(load_sweep(spec).tasks(), folder)
    return folder


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / RESULTS_NAME).read_bytes()).hexdigest()


def finished(folder: Path) -> dict[str, int]:
    """Return the row ids of finished tasks, by key; a repeated task gets a new row."""
    with closing(sqlite3.connect(folder / STORE_NAME)) as database:
        return {key.hex(): number for key, number in database.execute("SELECT key, rowid FROM results")}


def few(**changes: object) -> list[MeanTask]:
    return parse_sweep(FEW | changes).tasks()


def test_what_a_finished_sweep_leaves(whole: Path, spec: Path) -> None:
    assert {path.name for path in whole.iterdir()} == {RESULTS_NAME, STORE_NAME}
    assert len(finished(whole)) == 200
    results = pd.read_parquet(whole / "results.parquet")
    tasks = load_sweep(spec).tasks()
    assert len(results) == 200 * len(LOCAL_METRICS)
    assert results["metric"].tolist() == 200 * list(LOCAL_METRICS)
    for column, values in (
        ("epsilon", [task.task.epsilon for task in tasks]),
        ("mechanism", [task.mechanism.name for task in tasks]),
        ("population", [task.population for task in tasks]),
        ("repetition", [task.repetition for task in tasks]),
    ):
        assert results[column].tolist() == np.repeat(values, len(LOCAL_METRICS)).tolist()
    assert results["seed"].unique() == [11]
    assert set(results["adjacency"]) == {"replace-one"}
    assert set(results["trust_model"]) == {"local"}
    assert (results["realised_epsilon"] <= results["epsilon"]).all()
    assert results["value"].notna().all()
    assert {name for name in results.columns if name.startswith("version_")} >= {"version_quietbits", "version_python", "version_numpy"}


def test_every_task_has_randomness_of_its_own(whole: Path) -> None:
    # The ratio of the error of Gaussian noise to its expectation depends on the random numbers only.
    results = pd.read_parquet(whole / "results.parquet").query("mechanism == 'gaussian'")
    errors, expected = (results[results["metric"] == metric]["value"].to_numpy() for metric in ("squared_error", "predicted_squared_error"))
    assert len(set((errors / expected).round(6))) == 100


def test_two_workers_give_the_same_bits(whole: Path, spec: Path, tmp_path: Path) -> None:
    run_tasks(load_sweep(spec).tasks(), tmp_path, workers=2)
    assert digest(tmp_path) == digest(whole)


SCRIPT = """
import sys, time
from pathlib import Path
from quietbits.analysis.sweeps.run import run_tasks
from quietbits.analysis.sweeps.spec import load_sweep

def on_step(done, *_):
    print(done, flush=True)
    # The pause lets the parent process read the number before the next task ends, even on a busy machine.
    time.sleep(0.01)

if __name__ == "__main__":
    run_tasks(load_sweep(sys.argv[1]).tasks(), Path(sys.argv[2]), workers=2, on_step=on_step)
"""


def test_a_sweep_that_was_killed_goes_on(whole: Path, spec: Path, tmp_path: Path) -> None:
    script, output = tmp_path / "run.py", tmp_path / "output"
    script.write_text(SCRIPT)
    # SIGKILL ends the process with its workers at a random time after a random number of tasks, in the middle of their work.
    rng = np.random.default_rng(4)
    enough, delay = int(rng.integers(1, 80)), float(rng.uniform(0, 0.05))
    # The subprocess imports quietbits from this process's path, so both have the same version.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(script), str(spec), str(output)]
    with subprocess.Popen(command, start_new_session=True, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while int(process.stdout.readline()) < enough:
            pass
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGKILL)
    before = finished(output)
    assert 0 < len(before) < 200
    assert not (output / RESULTS_NAME).exists()

    steps: list[tuple[int, int, str]] = []
    run_tasks(load_sweep(spec).tasks(), output, on_step=lambda *step: steps.append(step))
    assert digest(output) == digest(whole)
    assert before.items() <= finished(output).items()
    assert steps[0][0] == len(before)
    assert steps[-1][:2] == (steps[0][1],) * 2


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_process_that_started_them_and_in_silence(sign: signal.Signals, spec: Path, tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(script), str(spec), str(tmp_path / "output")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, start_new_session=True, text=True, **pipes) as process:
        assert process.stdout is not None
        while int(process.stdout.readline()) < 2:
            pass
        process.send_signal(sign)
        try:
            # The pipe closes after the last process has ended, including workers and the process that removes their semaphores.
            _, complaint = process.communicate(timeout=60)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert complaint == ""


def test_a_finished_sweep_is_read_and_not_run(whole: Path, spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("nothing was to be run")

    before = digest(whole)
    monkeypatch.setattr(MeanTask, "run", never)
    monkeypatch.setattr(MeanTask, "prepare", never)
    results = run_tasks(load_sweep(spec).tasks(), whole)
    assert digest(whole) == before
    pd.testing.assert_frame_equal(results, pd.read_parquet(whole / "results.parquet"))


def test_rows_are_what_a_task_gives_by_itself(tmp_path: Path) -> None:
    tasks = few()
    results = run_tasks(tasks, tmp_path)
    for task in (tasks[0], tasks[-1]):
        prepared = task.prepare(None)
        wanted = [task.mechanism.name, task.task.epsilon, task.repetition]
        chosen = results[(results[["mechanism", "epsilon", "repetition"]] == wanted).all(axis=1)]
        assert chosen["metric"].tolist() == list(LOCAL_METRICS)
        for row, expected in zip(chosen.to_dict("records"), task.run(prepared), strict=True):
            assert {name: row[name] for name in expected if not pd.isna(row[name])} == {
                name: value for name, value in expected.items() if value is not None
            }
        assert set(chosen["bits_per_coordinate"]) == {prepared.mechanism.bits_per_client / 4}
        assert set(chosen["realised_delta"]) == {prepared.stated["realised_delta"]}


def test_more_repetitions_and_mechanisms_leave_the_others_as_they_were(tmp_path: Path) -> None:
    before = run_tasks(few(), tmp_path)
    done = finished(tmp_path)
    after = run_tasks(few(repetitions=4, mechanism=[{"name": "cldp"}, *FEW["mechanism"]]), tmp_path)
    assert done.items() <= finished(tmp_path).items()
    same = after[(after["mechanism"] != "cldp") & (after["repetition"] < 3)].reset_index(drop=True)
    # Columns without values have no type.
    pd.testing.assert_frame_equal(*(frame.dropna(axis="columns", how="all") for frame in (same, before)))
    # A column that a mechanism fills with numbers is no longer empty for the other mechanisms.
    other = run_tasks(few(mechanism=[{"name": "skellam"}, *FEW["mechanism"]]), tmp_path)
    same = other[other["mechanism"] != "skellam"].reset_index(drop=True)
    assert same.columns.tolist() == before.columns.tolist()
    pd.testing.assert_frame_equal(same.dropna(axis=1, how="all"), before.dropna(axis=1, how="all"))


def test_other_seeds_and_other_software_are_other_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = few(repetitions=1, epsilon=1)
    keys = {task_key(tasks[0]), task_key(replace(tasks[0], seed=1))}
    monkeypatch.setattr(sweep_store, "RESULT_FORMAT", "another")
    keys.add(task_key(tasks[0]))
    assert len(keys) == 3
    first, second = (run_tasks(few(repetitions=1, seed=seed), tmp_path) for seed in (0, 1))
    measured = first["metric"] == "squared_error"
    assert (first[measured]["value"] != second[measured]["value"]).all()


def test_tasks_that_cannot_be_done_are_named_and_the_others_are_saved(tmp_path: Path) -> None:
    tasks = few(mechanism=[{"name": "laplace"}, {"name": "skellam", "bits": [2, 16]}], epsilon=1)
    with pytest.raises(IncompleteSweepError) as caught:
        run_tasks(tasks, tmp_path / "output")
    with pytest.raises(InfeasibleError) as fault:
        build_mechanism("skellam", tasks[3].task, {"bits": 2})
    error = caught.value
    setting = "skellam (bits 2), epsilon 1, delta 1e-05, 50 clients from sphere, dimension 4, L2 ball of radius 1"
    assert str(error) == f"3 of 9 tasks failed, the others are saved: {setting} (3 repetitions): {fault.value}"
    assert [(failure.task, failure.message) for failure in error.failures] == [(task, str(fault.value)) for task in tasks[3:6]]
    assert {type(failure.error) for failure in error.failures} == {InfeasibleError}
    results = pd.read_parquet(tmp_path / "output" / "results.parquet")
    pd.testing.assert_frame_equal(results, error.results)
    assert len(finished(tmp_path / "output")) == 6
    # The kept rows equal those of a sweep without the failing mechanism.
    feasible = [*tasks[:3], *tasks[6:]]
    pd.testing.assert_frame_equal(results, run_tasks(feasible, tmp_path / "feasible"))


def test_a_sweep_of_which_nothing_can_be_done(tmp_path: Path) -> None:
    with pytest.raises(IncompleteSweepError, match="3 of 3 tasks failed") as caught:
        run_tasks(few(mechanism=[{"name": "skellam", "bits": 2}], epsilon=1), tmp_path)
    assert len(caught.value.results) == len(pd.read_parquet(tmp_path / "results.parquet")) == 0
    assert {path.name for path in tmp_path.iterdir()} == {RESULTS_NAME, STORE_NAME}
    assert finished(tmp_path) == {}


def test_a_table_is_designed_once_for_all_tasks_and_sweeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    designed = []
    calibrate = tables.calibrate_vector_table

    def counting(*arguments: object, **options: object) -> object:
        designed.append(arguments)
        return calibrate(*arguments, **options)

    monkeypatch.setattr(tables, "calibrate_vector_table", counting)
    mechanism = {"name": "mvu", "bits_in": 2, "bits_out": 1, "metric": "l1"}
    tasks = few(mechanism=[mechanism], epsilon=4, repetitions=2, population=["sphere", "sparse"], clients=[50, 60])
    cache = TableCache(tmp_path / "tables")
    first = run_tasks(tasks, tmp_path / "first", cache=cache.folder)
    second = run_tasks(tasks, tmp_path / "second", cache=cache.folder)
    assert designed == [(4.0, 1e-5, NormBall(4, 2.0), 2, 1, "l1")]
    pd.testing.assert_frame_equal(first, second)
    assert first["realised_epsilon"].between(4 - 1e-6, 4).all()
    assert set(first["table_metric"]) == {"l1"}
    # The sweep rejects a less private table in place of the cached table.
    (path,) = cache.folder.iterdir()
    less_private = calibrate(5.0, 1e-5, NormBall(4, 2.0), 2, 1, "l1").table
    cache.fetch({"other": 1}, lambda: less_private)
    (other,) = (result for result in cache.folder.iterdir() if result != path)
    path.write_bytes(other.read_bytes())
    with caplog.at_level(logging.WARNING):
        third = run_tasks(tasks, tmp_path / "third", cache=cache.folder)
    assert len(designed) == 2
    assert "it is not the table that was asked for" in caplog.text
    pd.testing.assert_frame_equal(first, third)


def test_bad_arguments_are_refused_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = few()
    output = tmp_path / "output"
    with pytest.raises(ValueError, match="tasks must all be different, got 1 twice"):
        run_tasks([*tasks, tasks[0]], output)
    with pytest.raises(ValueError, match="workers must be a whole number from 1 to 1024, got 0"):
        run_tasks(tasks, output, workers=0)
    for address in ("2", "nonsense", "tcp://x"):
        with pytest.raises(ValueError, match=f"dask must be the address of a scheduler with its port, .* got '{address}'"):
            run_tasks(tasks, output, dask=address)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"distributed must be installed for dask 'tcp://x:1', got none: "):
        run_tasks(tasks, output, dask="tcp://x:1")
    assert not output.exists()


def test_the_documentation_names_every_column_and_its_examples_run(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = Path(quietbits.__file__).parent / "docs"
    text = "".join((docs / page).read_text(encoding="utf-8") for page in ("how-to/sweeps.md", "reference/sweep-files.md"))
    named = set(re.findall(r"`\W*([\w-]+)", text))
    columns = pd.read_parquet(whole / "results.parquet").columns
    assert [name for name in columns if name not in named and not name.startswith("version_")] == []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    Path("sweep.toml").write_text(TOML.replace("repetitions = 25", "repetitions = 1"))
    examples = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert "run_tasks" in examples[0]
    assert "def prepare" in examples[1]
    # Workers import this process's main module, which is not a script in a test.
    exec("".join(examples).replace("workers=2", "workers=1"), {})  # noqa: S102 - the examples are the project's own
    assert len(pd.read_parquet("results/results.parquet")) == 8 * len(LOCAL_METRICS)
    assert pd.read_parquet("tosses/results.parquet")["count"].tolist() == [10, 1000]
