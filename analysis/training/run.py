"""Grids of trainings, run as a sweep that can resume within each run."""

import json
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...progress import OnStep, notebook_progress
from ..sweeps.run import run_sweep, run_tasks
from .models.named_models import check_installed
from .spec import TrainingSpec
from .task import CHECKPOINTS, PROGRESS, TrainingTask

if TYPE_CHECKING:
    import pandas as pd

# Seconds between two checks of the progress of runs.
LOOK_SECONDS = 0.5


def run_training(
    spec: TrainingSpec,
    output: Path,
    *,
    workers: int = 1,
    cache: Path | None = None,
    dask: str | None = None,
    on_step: OnStep = notebook_progress,
) -> Path:
    """Run the unfinished trainings, from their checkpoints, and write the table of all runs.

    Parameters
    ----------
    spec : TrainingSpec
        The grid; `load_training` reads one.
    output : Path
        Folder of the results, which is made if missing. Final models, float arrays, are in ``output/models``.
    workers, cache, dask
        Workers, folder of tables and scheduler, as in `run_sweep`. Runs can resume only if workers of a cluster see the folder under the
        same name.
    on_step : callable
        Callback of `run_sweep`; also called from another thread for running trainings.

    Returns
    -------
    Path
        ``output/results.parquet``: a row for each run and round, in their order, with ``mechanism``, ``round``, ``accuracy`` (missing in
        rounds without a measurement), ``epsilon`` (proven, of all rounds so far), ``delta``, ``adjacency``, ``trust_model``, ``bytes_up``
        and ``bytes_down`` (of this round), the setting, and the versions of the software. The bytes are the same with any number of
        workers, killed or not.

    Raises
    ------
    ValueError, IncompleteSweepError, DataError, OSError
        As `run_sweep` raises them.
    """
    for _, setting in spec.runs:
        check_installed(setting.model)
    with _keeping_state(output.absolute(), on_step) as step:
        return run_sweep(spec.tasks(output.absolute()), output, workers=workers, cache=cache, dask=dask, on_step=step)


def run_training_tasks(
    tasks: Sequence[TrainingTask],
    output: Path,
    *,
    workers: int = 1,
    cache: Path | None = None,
    dask: str | None = None,
    on_step: OnStep = notebook_progress,
) -> "pd.DataFrame":
    """Run trainings as `run_tasks` does, interrupted trainings from their checkpoints.

    The function keeps no final models.
    """
    folder = output.absolute()
    with _keeping_state(folder, on_step) as step:
        own = [replace(task, folder=folder) for task in tasks]
        return run_tasks(own, output, workers=workers, cache=cache, dask=dask, on_step=step)


@contextmanager
def _keeping_state(folder: Path, on_step: OnStep) -> Iterator[OnStep]:
    """Report the notes of running trainings, and remove their state once all have ended well.

    The store then holds the rows.
    """
    with _looking(folder / PROGRESS, on_step) as step:
        yield step
    for name in (CHECKPOINTS, PROGRESS):
        shutil.rmtree(folder / name, ignore_errors=True)


@contextmanager
def _looking(folder: Path, on_step: OnStep) -> Iterator[OnStep]:
    """Wrap a step reporter, and report the notes of running trainings between steps."""
    shutil.rmtree(folder, ignore_errors=True)
    lock, ended, counts, said = threading.Lock(), threading.Event(), [0, 1], {""}

    def step(done: int, total: int, text: str) -> None:
        with lock:
            counts[:] = done, total
            on_step(done, total, text)

    def look() -> None:
        while not ended.wait(LOOK_SECONDS):
            notes = sorted(folder.glob("*.json"), key=_changed, reverse=True)
            text = note_in_words(notes[0]) if notes else ""
            if text not in said:
                said.add(text)
                with lock:
                    on_step(counts[0], counts[1], text)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield step
    finally:
        ended.set()
        thread.join()


def note_in_words(path: Path) -> str:
    """Return the note of a running training in words, or nothing while it is being written."""
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    if "text" in note:
        return f"{note['run']}: {note['text']}"
    measured = "" if note["accuracy"] is None else f"accuracy {note['accuracy']:.3f}, "
    sent = f"{_megabytes(note['bytes_up'])} up, {_megabytes(note['bytes_down'])} down"
    return f"{note['run']}: round {note['number']} of {note['rounds']}, {measured}epsilon {note['epsilon']:.4g}, {sent}"


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.3g} MB"
