"""A sweep of trivial tasks on two processes, killed and resumed twice.

The last run has no task left.

The benchmark prints milliseconds per task: wall time, because several processes are waited for. A plain loop with one SQLite insertion per
task is the physical limit of any store. The benchmark also prints the exponent of growth with the number of tasks, and the largest memory
of all processes together.
"""

import argparse
import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

sys.path.append(str(Path(__file__).parents[1]))
from shared.growth import slope
from shared.peak_memory import peak_mebibytes
from shared.physical_limit import beside_limit

from quietbits.analysis.sweeps.run import run_sweep

WORKERS = 2
# The sweep is killed after these shares of the tasks.
KILLS = (0.3, 0.65)
SAMPLE_SECONDS = 0.5
# Smaller sweeps give the exponent of growth.
SMALLER = (100, 10)


@dataclass(frozen=True)
class Trivial:
    """A task that makes a row of two numbers."""

    number: int
    seed: int = 0
    design = None

    @property
    def name(self) -> str:
        """Name of the task."""
        return f"task {self.number}"

    setting = name

    def prepare(self, _: Path | None) -> None:
        """Prepare nothing."""

    def run(self, _: None) -> list[dict[str, float]]:
        """Return the row."""
        return [{"number": self.number, "half": self.number / 2}]


class Trivials(Sequence[Trivial]):
    """A sequence of tasks that are made on demand."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        """Return the number of tasks."""
        return self._count

    def __getitem__(self, place: int) -> Trivial:
        """Return the task at a place."""
        return Trivial(range(self._count)[place])


def sweep(folder: Path, count: int) -> None:
    """Run the sweep in this process and its workers, and print its progress."""
    said = [-1]

    def on_step(done: int, total: int, _: str) -> None:
        if done - said[0] > total // 200 or done == total or said[0] < 0:
            said[0] = done
            print(done, flush=True)

    run_sweep(Trivials(count), folder, workers=WORKERS, on_step=on_step)


@dataclass(frozen=True)
class Watched:
    """A sweep as watched from outside: seconds to the first task and in all, start, memory."""

    before: float
    seconds: float
    began: int
    mebibytes: float


def watch(folder: Path, count: int, until: float | None = None) -> Watched:
    """Run the sweep in a separate process, and kill that process at a share of the tasks."""
    start = time.perf_counter()
    command = [sys.executable, __file__, "--tasks", str(count), "--folder", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None  # noqa: S101 - Popen was called with a pipe
    peaks: dict[int, float] = {}
    sampled, before, began = 0.0, math.nan, -1
    for line in process.stdout:
        if began < 0:
            began, before = int(line), time.perf_counter() - start
        if time.perf_counter() - sampled > SAMPLE_SECONDS:
            sampled = time.perf_counter()
            peaks |= peak_memory(process.pid)
        if until is not None and int(line) >= until * count:
            os.killpg(process.pid, signal.SIGKILL)
            break
    peaks |= peak_memory(process.pid)
    process.stdout.close()
    if process.wait() != (0 if until is None else -signal.SIGKILL):
        raise RuntimeError(f"the sweep ended with {process.returncode}")
    return Watched(before, time.perf_counter() - start, began, sum(peaks.values()))


def peak_memory(session: int) -> dict[int, float]:
    """Return the largest memory so far, in MiB, of every process of a session (Linux only).

    Pages that several processes share count for each of them.
    """
    memory = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            if os.getsid(number := int(status.parent.name)) == session:
                memory[number] = peak_mebibytes(number)
        except OSError:
            # The process has ended.
            continue
    return memory


def plain_loop(count: int) -> float:
    """Return the seconds of a loop that puts each task's row into SQLite in one transaction."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, closing(sqlite3.connect(Path(folder) / "rows.sqlite")) as database:
        database.execute("CREATE TABLE results (name TEXT PRIMARY KEY, payload TEXT)")
        for task in Trivials(count):
            database.execute("INSERT INTO results VALUES (?, ?)", (task.name, json.dumps(task.run(None))))
        database.commit()
    return time.perf_counter() - start


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.folder is not None:
        sweep(given.folder, given.tasks)
        return
    count = given.tasks
    with tempfile.TemporaryDirectory() as parent:
        small = [watch(Path(parent) / f"part {part}", count // part) for part in SMALLER]
        folder = Path(parent) / "sweep"
        runs = [watch(folder, count, until) for until in (*KILLS, None)]
        again = watch(folder, count)
        rows = pq.read_table(folder / "results.parquet", columns=["number"])["number"].to_pylist()
        stored = (folder / "tasks.sqlite").stat().st_size
    once = "every row once" if rows == list(range(count)) else "ROWS ARE WRONG"
    total = sum(run.seconds for run in runs)
    alone = plain_loop(count)
    print(f"{count} tasks on {WORKERS} processes, killed at {' and '.join(str(run.began) for run in runs[1:])}: {once}")
    print(f"  {total:.0f} s of wall time in all, {1e3 * total / count:.3f} ms a task, {beside_limit(total, alone)}")
    times = [*(run.seconds - run.before for run in small), total - sum(run.before for run in runs)]
    print(f"  time grows with the {slope([*(count // part for part in SMALLER), count], times):.2f}th power of the number of tasks")
    print(f"  resuming takes {runs[-1].before:.1f} s, a run with nothing left to do {again.seconds:.1f} s")
    print(f"  {max(run.mebibytes for run in (*runs, again)):.0f} MiB in all processes, {stored / count:.0f} bytes a task on disk")


if __name__ == "__main__":
    main()
