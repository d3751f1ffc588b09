"""Resumable runs of grids, which design tables in parallel and write an index."""

from collections.abc import Mapping
from pathlib import Path

from ...design.contracts.privacy import Scalar
from ...files import write_atomically
from ...progress import OnStep, notebook_progress
from ..sweeps.run import run_stored
from .spec import TableGrid
from .task import CONTENTS

INDEX_NAME = "index.parquet"


def design_tables(grid: TableGrid, output: Path, *, workers: int = 1, dask: str | None = None, on_step: OnStep = notebook_progress) -> Path:
    """Design, certify and write the tables of a grid that are not finished yet.

    Each finished table is written as ``<name>.json``, and recorded in ``tasks.sqlite`` in the same folder. A killed run
    resumes from the saved tables, and writes removed or changed files again. The files depend only on the grid and the versions of the
    software.

    Parameters
    ----------
    grid : TableGrid
        The tables' grid; `load_grid` reads a grid from a file.
    output : Path
        Folder of the tables, which is made if missing. A single run may use it at a time.
    workers, dask, on_step
        Workers, scheduler and callback, as in `run_tasks`. Workers of a cluster need no access to the folder.

    Returns
    -------
    Path
        ``output/index.parquet``: a row for each table, in the order of the grid, with its files, its setting, the contents of its
        certificate (variances on the unit interval's scale), its size in bytes, its checksum, and the versions of the software.

    Raises
    ------
    ValueError
        If `run_tasks` raises it for its arguments; no table is designed then.
    IncompleteSweepError
        If some tables could not be designed; the other tables are written.
    OSError
        If a file cannot be written, or the scheduler cannot be reached.
    """
    return run_stored(
        grid.tasks(),
        output,
        workers=workers,
        dask=dask,
        on_step=on_step,
        table=INDEX_NAME,
        write_row=lambda row: _write_missing(output, row),
        leave_out=CONTENTS,
    )


def _write_missing(folder: Path, row: Mapping[str, Scalar]) -> None:
    """Write a table's files, except for those already present and correct."""
    for contents, name in CONTENTS.items():
        path, wanted = folder / str(row[name]), str(row[contents]).encode("ascii")
        if not path.is_file() or path.read_bytes() != wanted:
            write_atomically(path, wanted)
