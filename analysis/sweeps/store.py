"""What a sweep leaves on disk: one parquet file for each finished task, and the tidy table of them all."""

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...design.contracts.privacy import Scalar
from ...design.tables.lookup_table import record_provenance
from ...files import write_atomically
from .protocol import SweepTask

# To be raised when what rows mean changes: tasks of another format are done again.
RESULT_FORMAT = "quietbits-sweep/2"
RESULTS_NAME = "results.parquet"
# Where a task's file says whose rows it holds.
TASK_KEY = b"quietbits-task"


@cache
def software_versions() -> dict[str, str]:
    """Return the versions that a result depends on, as columns ``version_<name>``."""
    return {f"version_{name}": version for name, version in record_provenance("sweep", 0, 0.0).versions}


def task_rows(task: SweepTask, rows: Sequence[dict[str, Scalar]]) -> pa.Table:
    """Return a task's rows as a table, with its seed and the versions of the software.

    No time and no date: the same task and the same versions give the same table.
    """
    columns = {name: None for row in rows for name in row}
    provenance = {"seed": task.seed, **software_versions()}
    table = pa.Table.from_pylist([columns | row | provenance for row in rows])
    return table.replace_schema_metadata({TASK_KEY: _identity(task)})


class SweepStore:
    """The folder of one sweep: ``tasks/<hash>.parquet`` for every finished task, ``results.parquet`` at the end.

    A file is written under a temporary name and renamed; one that a killed run has left half-written is removed when a store is opened,
    so that a folder must be used by one sweep at a time. The folder is made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tasks = folder / "tasks"
        self._tasks.mkdir(parents=True, exist_ok=True)
        for place in (folder, self._tasks):
            for leftover in place.glob(".*.parquet.*.part"):
                leftover.unlink()
        self._versions = [RESULT_FORMAT, *software_versions().values()]

    @property
    def results_path(self) -> Path:
        """File of the whole table."""
        return self.folder / RESULTS_NAME

    def path(self, task: SweepTask) -> Path:
        """Return the file of a task, named by a hash of the task, its seed, and the versions of the software and of the format.

        What other software has computed is not taken for its result.
        """
        key = json.dumps([task.name, task.seed, *self._versions])
        return self._tasks / f"{hashlib.sha256(key.encode()).hexdigest()}.parquet"

    def read(self, task: SweepTask) -> pa.Table | None:
        """Return a finished task's rows; None if the task is not finished, or its file does not hold its rows."""
        try:
            content = self.path(task).read_bytes()
        except FileNotFoundError:
            return None
        try:
            rows = pq.ParquetFile(pa.BufferReader(content)).read()
        except (pa.ArrowException, OSError):
            return None
        return rows if (rows.schema.metadata or {}).get(TASK_KEY) == _identity(task) else None

    def write(self, task: SweepTask, rows: pa.Table) -> None:
        """Keep a finished task's rows."""
        write_atomically(self.path(task), _parquet(rows))

    def write_results(self, parts: Sequence[pa.Table]) -> pa.Table:
        """Write the rows of all tasks to ``results.parquet``, and return them.

        Columns are those of all tasks, in the order in which they come up; one that is missing throughout has no type.
        """
        table = pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})
        # In one piece, as the pieces would show in the file.
        table = table.replace_schema_metadata(None).combine_chunks()
        write_atomically(self.results_path, _parquet(table))
        return table


def _identity(task: SweepTask) -> bytes:
    return json.dumps([task.name, task.seed]).encode()


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())
