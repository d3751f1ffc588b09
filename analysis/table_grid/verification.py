"""Verification of every table of a folder, and of the index."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...design.tables.file import read_table_and_format
from ...design.tables.lookup_table import LookupTable
from ...errors import DataError, TableError
from ...extras import optional
from ...files import shown_path
from ...progress import OnStep, notebook_progress
from ..sweeps.folder_owner import OWNER_NAME
from .run import INDEX_NAME
from .task import index_columns


@dataclass(frozen=True)
class FileFault:
    """A refused file of a folder.

    Attributes
    ----------
    path : Path
        The file.
    check : str
        Name of the failed check: a check of `read_table`; ``"index"`` for a wrong index; or ``"file"`` for an unreadable file.
    detail : str
        Description of the fault.
    """

    path: Path
    check: str
    detail: str

    def __str__(self) -> str:
        """Return the fault in one line."""
        return f"{shown_path(self.path)}: refused: {self.check}: {self.detail}"


@dataclass(frozen=True)
class FolderVerification:
    """Result of a folder's verification: the number of its tables, and the refused files."""

    tables: int
    faults: tuple[FileFault, ...]

    @property
    def verified(self) -> bool:
        """Whether no file was refused."""
        return not self.faults


def verify_folder(folder: Path, *, on_step: OnStep = notebook_progress) -> FolderVerification:
    """Verify all tables of a folder from their files alone, in exact arithmetic.

    Every ``.json`` file of the folder must be a table that `read_table` accepts. If there is an index, its tables must exist with the
    values that it states. `on_step` is called as ``on_step(done, total, name)`` before
    each table and after the last.

    Raises
    ------
    DataError
        If the folder has neither tables nor an index.
    """
    return _verified(folder, _drop, on_step)


def verified_tables(folder: Path, *, on_step: OnStep = notebook_progress) -> dict[Path, LookupTable]:
    """Return all tables of a folder by the paths of their files, verified as `verify_folder` does.

    `on_step` is called as in `verify_folder`.

    Raises
    ------
    DataError
        If a file is refused, or if the folder has neither tables nor an index.
    """
    tables: dict[Path, LookupTable] = {}
    faults = _verified(folder, tables.__setitem__, on_step).faults
    if faults:
        others = f"; and {len(faults) - 1} more, which quietbits verify lists" if len(faults) > 1 else ""
        raise DataError(f"{faults[0]}{others}")
    return tables


def _verified(folder: Path, keep: Callable[[Path, LookupTable], None], on_step: OnStep) -> FolderVerification:
    paths = sorted(path for path in folder.glob("*.json") if path.name != OWNER_NAME and not path.name.startswith("."))
    index = folder / INDEX_NAME
    faults: list[FileFault] = []
    listed = _listed(index, faults) if index.exists() else {}
    if not paths and not listed and not faults:
        raise DataError(f"{shown_path(folder)}: it has no tables: there must be .json files, or an {INDEX_NAME} of some")
    missing = sorted(listed.keys() - {path.name for path in paths})
    faults += [FileFault(folder / name, "index", f"{INDEX_NAME} lists it, and it is not there") for name in missing]
    for done, path in enumerate(paths):
        on_step(done, len(paths), f"verifying {shown_path(path.name)}")
        try:
            table, table_format = read_table_and_format(path)
        except TableError as error:
            faults.append(FileFault(path, error.check, error.detail))
        except OSError as error:
            faults.append(FileFault(path, "file", error.strerror or str(error)))
        else:
            keep(path, table)
            if path.name in listed:
                faults += _faults_of_row(table, table_format, path, listed[path.name])
    on_step(len(paths), len(paths), "verified")
    return FolderVerification(len(paths), tuple(faults))


def _drop(_: Path, __: LookupTable) -> None:
    """Keep no table."""


def _listed(index: Path, faults: list[FileFault]) -> dict[str, dict[str, Any]]:
    """Return the index's statements on each table, by the table's name."""
    with optional("pyarrow", f"the index {shown_path(index)}"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    try:
        rows = pq.read_table(index).to_pylist()
        return {Path(row["file"]).name: row for row in rows}
    except (pa.ArrowException, OSError, LookupError, TypeError, ValueError) as error:
        faults.append(FileFault(index, "file", f"it is not an index: {' '.join(str(error).split())}"))
        return {}


def _faults_of_row(table: LookupTable, table_format: str, path: Path, row: Mapping[str, Any]) -> list[FileFault]:
    """Return the faults in a table's row of the index."""
    expected = index_columns(table, path.stat().st_size, table_format)
    wrong = [f"{name} {value}, {INDEX_NAME} states {row.get(name)}" for name, value in expected.items() if row.get(name) != value]
    return [FileFault(path, "index", f"the table has {'; '.join(wrong)}")] if wrong else []
