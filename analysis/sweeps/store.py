"""What a sweep leaves on disk: one parquet file for each finished task, and the tidy table of them all."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...design.contracts.mechanism import VectorMechanism
from ...design.tables.lookup_table import record_provenance
from ...files import write_atomically
from ..simulation.vector_mean import SimulatedVectorMean
from .task import SweepTask

# To be raised when the columns, or what they mean, change: tasks of another format are done again.
RESULT_FORMAT = "quietbits-sweep/1"
RESULTS_NAME = "results.parquet"
# What one task measures, in the order of its rows.
METRICS = ("squared_error", "unclipped_squared_error", "predicted_squared_error", "worst_squared_error", "clipped")

TASK_COLUMNS = pa.schema(
    [
        ("mechanism", pa.string()),
        ("bits_in", pa.int64()),
        ("bits_out", pa.int64()),
        ("table_metric", pa.string()),
        ("dithering", pa.string()),
        ("bits", pa.int64()),
        ("epsilon", pa.float64()),
        ("delta", pa.float64()),
        ("population", pa.string()),
        ("nonzero", pa.int64()),
        ("scale", pa.float64()),
        ("clients", pa.int64()),
        ("dimension", pa.int64()),
        ("norm", pa.float64()),
        ("clip_norm", pa.float64()),
        ("repetition", pa.int64()),
        ("seed", pa.int64()),
    ]
)
GUARANTEE_COLUMNS = pa.schema(
    [
        ("realised_epsilon", pa.float64()),
        ("realised_delta", pa.float64()),
        ("adjacency", pa.string()),
        ("trust_model", pa.string()),
        ("bits_per_client", pa.float64()),
        ("bits_per_coordinate", pa.float64()),
    ]
)
MEASURE_COLUMNS = pa.schema([("metric", pa.string()), ("value", pa.float64())])


@cache
def software_versions() -> dict[str, str]:
    """Return the versions that a result depends on, as columns.

    Returns
    -------
    dict
        ``version_<name>`` and the version.
    """
    return {f"version_{name}": version for name, version in record_provenance("sweep", 0, 0.0).versions}


@cache
def result_schema() -> pa.Schema:
    """Return the columns of results.

    Returns
    -------
    pyarrow.Schema
        What was asked for, what was guaranteed, the versions of the software, and one measured quantity with its value.
    """
    versions = [(name, pa.string()) for name in software_versions()]
    return pa.schema([*TASK_COLUMNS, *GUARANTEE_COLUMNS, *(pa.field(*version) for version in versions), *MEASURE_COLUMNS])


def task_columns(task: SweepTask) -> dict[str, str | int | float | None]:
    """Return what a task asks for, as columns.

    Parameters
    ----------
    task : SweepTask
        The task.

    Returns
    -------
    dict
        One value per name of `TASK_COLUMNS`; None where a parameter does not apply.
    """
    mechanism = asdict(task.design.mechanism)
    ball = task.design.ball
    return {
        "mechanism": mechanism.pop("name"),
        "table_metric": mechanism.pop("metric"),
        **mechanism,
        "epsilon": task.design.epsilon,
        "delta": task.design.delta,
        "population": task.population,
        "nonzero": task.nonzero,
        "scale": task.scale,
        "clients": task.clients,
        "dimension": ball.dimension,
        "norm": ball.norm,
        "clip_norm": ball.clip_norm,
        "repetition": task.repetition,
        "seed": task.seed,
    }


def task_rows(task: SweepTask, mechanism: VectorMechanism, result: SimulatedVectorMean) -> pa.Table:
    """Return a task's result as tidy rows, one for each of `METRICS`.

    Parameters
    ----------
    task : SweepTask
        The task.
    mechanism : VectorMechanism
        What it ran.
    result : SimulatedVectorMean
        What came out.

    Returns
    -------
    pyarrow.Table
        The rows. No time and no date: the same seed and the same versions give the same rows.
    """
    guarantee = mechanism.guarantee
    common = {
        **task_columns(task),
        "realised_epsilon": guarantee.epsilon,
        "realised_delta": guarantee.delta,
        "adjacency": guarantee.adjacency,
        "trust_model": guarantee.trust_model,
        "bits_per_client": float(mechanism.bits_per_client),
        "bits_per_coordinate": mechanism.bits_per_client / task.design.ball.dimension,
        **software_versions(),
    }
    measured = asdict(result)
    return pa.Table.from_pylist([{**common, "metric": metric, "value": measured[metric]} for metric in METRICS], schema=result_schema())


class SweepStore:
    """The folder of one sweep: ``tasks/<hash>.parquet`` for every finished task, ``results.parquet`` at the end.

    A file is written under a temporary name and renamed; one that a killed run has left half-written is removed when a store is opened,
    so that a folder must be used by one sweep at a time.

    Parameters
    ----------
    folder : Path
        The folder; made if it is not there.

    Raises
    ------
    OSError
        If the folder cannot be made or read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tasks = folder / "tasks"
        self._tasks.mkdir(parents=True, exist_ok=True)
        for place in (folder, self._tasks):
            for leftover in place.glob(".*.parquet.*.part"):
                leftover.unlink()
        self._versions = [RESULT_FORMAT, *software_versions().values()]
        self._schema = result_schema()

    @property
    def results_path(self) -> Path:
        """File of the whole table."""
        return self.folder / RESULTS_NAME

    def path(self, task: SweepTask) -> Path:
        """Return the file of a task.

        Parameters
        ----------
        task : SweepTask
            The task.

        Returns
        -------
        Path
            Named by a hash of the task, its seed, and the versions of the software and of the format: what other software has computed
            is not taken for its result.
        """
        return self._tasks / f"{task.key(*self._versions)}.parquet"

    def read(self, task: SweepTask) -> pa.Table | None:
        """Return a finished task's rows.

        Parameters
        ----------
        task : SweepTask
            The task.

        Returns
        -------
        pyarrow.Table or None
            The rows; None if the task is not finished, or its file does not hold its rows.
        """
        try:
            content = self.path(task).read_bytes()
        except FileNotFoundError:
            return None
        try:
            rows = pq.ParquetFile(pa.BufferReader(content)).read()
        except (pa.ArrowException, OSError):
            return None
        if not rows.schema.equals(self._schema) or rows.column("metric").to_pylist() != list(METRICS):
            return None
        asked = task_columns(task)
        return rows if all(row == asked for row in rows.select(TASK_COLUMNS.names).to_pylist()) else None

    def write(self, task: SweepTask, rows: pa.Table) -> None:
        """Keep a finished task's rows.

        Parameters
        ----------
        task : SweepTask
            The task.
        rows : pyarrow.Table
            Its rows.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        write_atomically(self.path(task), _parquet(rows))

    def write_results(self, parts: Sequence[pa.Table]) -> pa.Table:
        """Write the rows of all tasks to ``results.parquet``.

        Parameters
        ----------
        parts : sequence of pyarrow.Table
            Rows of each task, in order.

        Returns
        -------
        pyarrow.Table
            The rows, put together.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        # In one piece, as the pieces would show in the file.
        table = pa.concat_tables([self._schema.empty_table(), *parts]).combine_chunks()
        write_atomically(self.results_path, _parquet(table))
        return table


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())
