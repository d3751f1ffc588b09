"""Grids of tables, designed in parallel and written with C headers and an index; resumable."""

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

    Each table is written, as ``<name>.json`` and ``<name>.h``, when it is finished. ``tasks.sqlite`` in the same folder remembers it: a
    run that was killed goes on where it was, and a file that was changed or removed since is written again. The files depend on the grid
    and the versions of the software only.

    Parameters
    ----------
    grid : TableGrid
        The tables; `load_grid` reads one from a file.
    output : Path
        Folder of the tables; made if it is not there. One run may use it at a time.
    workers, dask, on_step
        As in `run_tasks`. Workers of a cluster need not see the folder.

    Returns
    -------
    Path
        ``output/index.parquet``: a row for each table, in the order of the grid, with its files, what was asked for, what its certificate
        says (variances on the unit interval's scale), its size in bytes, its checksum, and the versions of the software.

    Raises
    ------
    ValueError
        As `run_tasks`; nothing is done then.
    IncompleteSweepError
        If tables could not be designed; the others are written.
    OSError
        If a file cannot be written, or the scheduler not reached.
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
