"""Sweeps over tasks of any kind.

Points under test: results, collected errors, and kept results of finished tasks.
"""

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import cloudpickle
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from quietbits.analysis.sweeps import calls
from quietbits.analysis.sweeps.run import IncompleteSweepError, TaskFailure, run_tasks
from quietbits.analysis.sweeps.store import STORE_NAME
from quietbits.errors import ConvergenceError, TableError


def finished(folder: Path) -> dict[str, int]:
    """Return the row ids of finished tasks, by key; a repeated task gets a new row."""
    with closing(sqlite3.connect(folder / STORE_NAME)) as database:
        return {key.hex(): number for key, number in database.execute("SELECT key, rowid FROM results")}


@dataclass(frozen=True)
class Toss:
    """Task that returns its number, or fails on request.

    Two workers run it, so errors cross processes.
    """

    number: int
    fault: Exception | None = None
    seed: int = 0
    design: str | None = None

    @property
    def name(self) -> str:
        return f"toss {self.number}"

    @property
    def setting(self) -> str:
        return f"toss {self.number % 2}"

    def prepare(self, cache: Path | None) -> str:
        if self.design == "unlucky":
            raise ArithmeticError("the coin is lost")
        return f"{self.design}, {cache}"

    def run(self, prepared: str) -> list[dict[str, object]]:
        if self.fault is not None:
            raise self.fault
        return [{"number": self.number, "prepared": prepared}, {"number": self.number, "extra": 0.5}]


@pytest.fixture
def tasks_that_travel() -> Iterator[None]:
    """Send the task classes of this module to workers by value.

    Workers cannot import the module.
    """
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


@pytest.mark.usefixtures("tasks_that_travel")
@pytest.mark.parametrize("workers", [1, 2])
def test_tasks_of_any_kind_run(workers: int, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    tasks = [Toss(0), Toss(1, design="lucky"), Toss(2, design="lucky"), Toss(3, seed=5)]
    results = run_tasks(tasks, tmp_path / "output", workers=workers, cache=cache)
    assert results["number"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert results["prepared"].iloc[::2].tolist() == [f"{design}, {cache}" for design in (None, "lucky", "lucky", None)]
    assert results["extra"].iloc[1::2].tolist() == [0.5] * 4
    assert results["seed"].iloc[::2].tolist() == [0, 0, 0, 5]
    assert results["extra"].iloc[::2].isna().all()


@pytest.mark.usefixtures("tasks_that_travel")
@pytest.mark.parametrize("workers", [1, 2])
def test_faults_of_any_kind_are_collected(workers: int, tmp_path: Path) -> None:
    faults = [ValueError("dry"), TableError("checksum", "another"), ConvergenceError("stuck"), ZeroDivisionError("nothing")]
    tasks = [
        *(Toss(number, fault) for number, fault in enumerate(faults)),
        *(Toss(number, design="unlucky") for number in (6, 8)),
        *(Toss(number) for number in (10, 12)),
    ]
    steps: list[tuple[int, int, str]] = []
    with pytest.raises(IncompleteSweepError) as caught:
        run_tasks(tasks, tmp_path, workers=workers, on_step=lambda *step: steps.append(step))
    error = caught.value
    assert [(type(failure.error), failure.message) for failure in error.failures] == [
        *((type(fault), str(fault)) for fault in faults),
        *((ArithmeticError, "the coin is lost"),) * 2,
    ]
    assert "toss 1: checksum: another; toss 0: stuck; " in str(error)
    assert str(error).endswith("toss 0 (2 repetitions): the coin is lost")
    assert error.results["number"].tolist() == [10, 10, 12, 12]
    assert steps[-1][:2] == (9, 9)
    # The next run computes only the missing tasks.
    mended = [Toss(number) for number in (0, 1, 2, 3, 6, 8, 10, 12)]
    before = finished(tmp_path)
    assert len(run_tasks(mended, tmp_path)) == 16
    assert before.items() <= finished(tmp_path).items()


def test_a_message_names_five_faults(tmp_path: Path) -> None:
    tasks = [Toss(number, ValueError(f"fault {number // 2}")) for number in range(14)]
    with pytest.raises(IncompleteSweepError, match=r"14 of 14 .*; toss 0: fault 2; and 9 more settings$") as caught:
        run_tasks(tasks, tmp_path)
    assert str(caught.value).count(": fault ") == 5
    assert len(caught.value.failures) == 14


def test_what_nobody_expected_is_raised_and_what_is_done_stays_done(tmp_path: Path) -> None:
    tasks = [Toss(0), Toss(1), Toss(2, TypeError("a mistake in the program"))]
    with pytest.raises(TypeError, match="a mistake in the program"):
        run_tasks(tasks, tmp_path)
    before = finished(tmp_path)
    assert len(before) == 2
    assert not (tmp_path / "results.parquet").exists()
    run_tasks([*tasks[:2], Toss(2)], tmp_path)
    assert before.items() <= finished(tmp_path).items()


@dataclass(frozen=True)
class Fatal(Toss):
    """Task that ends its process, as the system does when memory is short."""

    def run(self, _: str) -> list[dict[str, object]]:
        os._exit(1)


@dataclass(frozen=True)
class FatalDesign(Toss):
    """Task whose preparation ends its process."""

    def prepare(self, _: Path | None) -> str:
        os._exit(1)


@pytest.mark.usefixtures("tasks_that_travel")
def test_a_worker_that_is_killed_costs_one_task(tmp_path: Path) -> None:
    tasks = [*(Toss(number) for number in range(6)), Fatal(6), *(FatalDesign(number, design="fatal") for number in (7, 8)), Toss(9)]
    with pytest.raises(IncompleteSweepError) as caught:
        run_tasks(tasks, tmp_path, workers=2)
    assert [failure.task.number for failure in caught.value.failures] == [6, 7, 8]
    assert "toss 0 (2 repetitions): its process was killed, or ran out of memory" in str(caught.value)
    assert caught.value.results["number"].unique().tolist() == [0, 1, 2, 3, 4, 5, 9]


@pytest.mark.usefixtures("tasks_that_travel")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_without_memory_fails_by_itself(workers: int, tmp_path: Path) -> None:
    with pytest.raises(IncompleteSweepError, match=r"1 of 3 tasks failed, the others are saved: .*: too large"):
        run_tasks([Toss(0), Toss(1, MemoryError("too large")), Toss(2)], tmp_path, workers=workers)
    assert len(finished(tmp_path)) == 2


def test_a_fault_without_words_is_named_by_its_kind() -> None:
    assert TaskFailure(Toss(0), MemoryError()).message == "not enough memory"
    assert TaskFailure(Toss(0), ZeroDivisionError()).message == "ZeroDivisionError"


def test_libraries_are_held_to_one_thread_until_the_last_call_ends() -> None:
    """Two threads of one process make overlapping calls, and the first call ends first."""
    first, second = calls.ONE_THREAD.held(), calls.ONE_THREAD.held()
    before = [library["num_threads"] for library in threadpool_info()]
    with threadpool_limits(2):
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert {library["num_threads"] for library in threadpool_info()} == {1}
        second.__exit__(None, None, None)
        assert 2 in {library["num_threads"] for library in threadpool_info()}
    assert [library["num_threads"] for library in threadpool_info()] == before
