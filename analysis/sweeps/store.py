"""A sweep's files on disk: an SQLite file of finished tasks' rows, and the final table.

Checksums detect changed rows. If the file and not the machine is at fault, the sound rows of a damaged file are saved to a new file.
"""

import errno
import hashlib
import json
import logging
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ...design.contracts.privacy import Scalar
from ...design.tables.provenance import record_provenance
from ...errors import DataError
from ...files import check_folder
from .folder_owner import FolderInUseError, FolderOwner
from .protocol import SweepTask
from .rows import EncodedRows, combined_columns, write_rows

DIGEST_BYTES = 16
# Columns of the tables, by table name.
COLUMNS: Mapping[str, tuple[str, ...]] = {"results": ("key", "layout", "payload", "checksum"), "layouts": ("name", "layout")}
# Version of the format; raise it when the meaning of rows changes, so that tasks of another format are run again.
RESULT_FORMAT = "quietbits-sweep/3"
RESULTS_NAME = "results.parquet"
STORE_NAME = "tasks.sqlite"
# Size of the plan's cache in memory; keys come in no order, and on disk each key would cost a read and a write.
PLAN_KIBIBYTES = 2**15
# Waiting time in milliseconds for a program that reads the file.
READER_PATIENCE = 10_000

_log = logging.getLogger(__name__)
Method = TypeVar("Method", bound=Callable[..., Any])
# Errors of SQLite on a damaged file. Messages and descriptions contain names of tables and columns, which may no longer be text.
UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
IN_USE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
# Codes of faults of the machine, such as a full or broken disk, or a file without permission.
OF_THE_MACHINE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM)
# Suffix of the file that replaces a damaged file, while it is incomplete.
REPAIRED = ".repaired"


def creation(schema: str) -> list[str]:
    """Return the statements that create missing tables."""
    return [
        f"CREATE TABLE IF NOT EXISTS {schema}.{table} ({first} BLOB PRIMARY KEY, {', '.join(f'{other} BLOB' for other in others)})"
        for table, (first, *others) in COLUMNS.items()
    ]


def has_sound_schema(database: sqlite3.Connection, schema: str) -> bool:
    """Return whether a file has exactly these tables.

    A trigger or a view could remove rows as they are saved.
    """
    with closing(sqlite3.connect(":memory:")) as empty:
        for statement in creation("main"):
            empty.execute(statement)
        return _schema(empty, "main") == _schema(database, schema)


def _schema(database: sqlite3.Connection, schema: str) -> set[tuple[object, ...]]:
    return set(database.execute(f"SELECT type, name, tbl_name, sql FROM {schema}.sqlite_master"))  # noqa: S608 - our own names


def digest(*parts: bytes) -> bytes:
    """Return the first half of the SHA-256 of bytes."""
    return hashlib.sha256(b"".join(parts)).digest()[:DIGEST_BYTES]


def sound_layouts(rows: Iterable[tuple[object, ...]]) -> dict[bytes, str]:
    """Return the layouts of rows (name, layout) whose names are their digests."""
    pairs = ((name, layout) for name, layout in rows if isinstance(name, bytes) and isinstance(layout, bytes))
    return {name: layout.decode() for name, layout in pairs if name == digest(layout)}


def is_sound(row: tuple[object, ...], layouts: Mapping[bytes, str]) -> bool:
    """Return whether a row (key, layout, payload, checksum) is unchanged, with a sound layout."""
    key, layout, payload, checksum = row
    if not (isinstance(key, bytes) and isinstance(layout, bytes) and isinstance(payload, bytes)):
        return False
    return layout in layouts and checksum == digest(key, layout, payload)


@cache
def software_versions() -> dict[str, str]:
    """Return the versions that a result depends on, as columns ``version_<name>``."""
    return {f"version_{name}": version for name, version in record_provenance("sweep", 0, 0.0).versions}


def task_key(task: SweepTask) -> bytes:
    """Return the SHA-256 of a task's name and seed, and of the software's and format's versions.

    Results of other software do not count as the task's result.
    """
    return hashlib.sha256(json.dumps([task.name, task.seed, RESULT_FORMAT, *software_versions().values()]).encode()).digest()


def _naming_the_file(method: Method) -> Method:
    """Make a method turn SQLite's failures into an ``OSError`` with the file's name."""

    @wraps(method)
    def named(self: "SweepStore", *arguments: Any, **keywords: Any) -> Any:
        try:
            return method(self, *arguments, **keywords)
        except sqlite3.Error as error:
            raise named_fault(error, self.path) from error

    return cast("Method", named)


class SweepStore:
    """A sweep's folder: ``tasks.sqlite`` of finished tasks' rows, and ``results.parquet``.

    A single process at a time uses the store in a ``with`` statement. Memory grows by 16 bytes for each task. The store drops rows with a
    wrong checksum, and unreadable parts of a damaged file, with a warning; their tasks count as unfinished.

    Parameters
    ----------
    folder : Path
        The folder, which is made if missing.
    tasks : sequence of SweepTask
        The tasks, in the order of their rows.

    Raises
    ------
    ValueError
        If a task occurs twice, in which case no file is made, or another process uses the folder.
    OSError
        If the folder cannot be made, or the file cannot be opened, read or written, as on a full disk; saved rows stay. Methods also raise
        this error.
    """

    def __init__(self, folder: Path, tasks: Sequence[SweepTask]) -> None:
        self._folder = folder
        self._written_layouts: set[bytes] = set()
        # SQLite deletes its private database with the connection, and keeps it on disk if it is large.
        self._database = sqlite3.connect("", isolation_level=None, timeout=0)
        self._owner: FolderOwner | None = None
        try:
            check_folder(folder)
            self._plan(tasks)
            folder.mkdir(parents=True, exist_ok=True)
            self._owner = FolderOwner(folder)
            self._open(self._owner)
        except BaseException:
            self._leave()
            raise

    def __enter__(self) -> "SweepStore":
        """Open the store."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Save the added rows, and release the folder."""
        try:
            self.commit()
        finally:
            self._leave()

    def _leave(self) -> None:
        self._database.close()
        if self._owner is not None:
            self._owner.leave()

    @property
    def path(self) -> Path:
        """File with the rows of the finished tasks."""
        return self._folder / STORE_NAME

    @_naming_the_file
    def pending(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions of unfinished tasks, and a hash of each task's design, 0 for none.

        Tasks of a design follow each other, in the order of each design's first task.
        """
        rows = self._database.execute(
            "SELECT position, design FROM wanted LEFT JOIN store.results USING (key) WHERE results.key IS NULL"
            " ORDER BY min(position) OVER (PARTITION BY coalesce(design, -position)), position"
        )
        columns = np.fromiter((number for row in rows for number in (row[0], row[1] or 0)), dtype=np.int64).reshape(-1, 2)
        return columns[:, 0], columns[:, 1]

    @_naming_the_file
    def check_complete(self, failures: int) -> None:
        """Raise ``DataError`` if rows are missing beyond the given number of failed tasks."""
        ((count,),) = self._database.execute("SELECT count(*) FROM wanted LEFT JOIN store.results USING (key) WHERE results.key IS NULL")
        if count != failures:
            raise DataError(f"{self.path}: the rows of {count - failures} tasks were saved and are not there: run the same command again")

    @_naming_the_file
    def add(self, position: int, rows: EncodedRows) -> None:
        """Take a finished task's rows; they are saved by the next `commit`."""
        if not self._database.in_transaction:
            self._database.execute("BEGIN")
        ((key,),) = self._database.execute("SELECT key FROM wanted WHERE position = ?", (position,))
        layout, values = rows.layout.encode(), rows.values.encode()
        name = digest(layout)
        if name not in self._written_layouts:
            self._database.execute("INSERT OR REPLACE INTO store.layouts VALUES (?, ?)", (name, layout))
            self._written_layouts.add(name)
        row = (key, name, values, digest(key, name, values))
        self._database.execute("INSERT OR REPLACE INTO store.results VALUES (?, ?, ?, ?)", row)

    @_naming_the_file
    def commit(self) -> None:
        """Save the added rows, which then survive a crash of the machine."""
        if self._database.in_transaction:
            self._database.execute("COMMIT")

    def finished(self) -> Iterator[EncodedRows]:
        """Yield the rows of each finished task, in the tasks' order."""
        try:
            layouts = self._layouts()
            rows = self._database.execute("SELECT layout, payload FROM wanted JOIN store.results USING (key) ORDER BY position")
            for layout, payload in rows:
                yield EncodedRows(layouts[layout], payload.decode())
        except sqlite3.Error as error:
            raise named_fault(error, self.path) from error

    @_naming_the_file
    def write_results(self, name: str = RESULTS_NAME, leave_out: Collection[str] = ()) -> Path:
        """Write the rows of all finished tasks to a parquet file in the folder, and return its path.

        Rows follow the order of the tasks. Columns are those of all tasks, in order of appearance, then the seed, if rows lack it, and the
        versions; a column without values has no type. The file has no time and no date, so that the same tasks and versions give the same
        bytes.
        """
        layouts = self._layouts()
        used = self._database.execute("SELECT layout FROM wanted JOIN store.results USING (key) GROUP BY layout ORDER BY min(position)")
        columns = combined_columns(layouts[layout] for (layout,) in used)
        for column in leave_out:
            columns.pop(column, None)
        if columns:
            columns = columns | {"seed": "int"} | dict.fromkeys(software_versions(), "text")
        rows = self._database.execute("SELECT seed, layout, payload FROM wanted JOIN store.results USING (key) ORDER BY position")
        parts = ((layouts[layout], payload, _provenance(seed)) for seed, layout, payload in rows)
        path = self._folder / name
        write_rows(path, columns, parts)
        return path

    def _plan(self, tasks: Sequence[SweepTask]) -> None:
        execute = self._database.execute
        execute("PRAGMA main.synchronous = OFF")
        execute(f"PRAGMA main.cache_size = -{PLAN_KIBIBYTES}")
        execute("CREATE TABLE wanted (position INTEGER PRIMARY KEY, key BLOB UNIQUE, seed INTEGER, design INTEGER)")
        execute("BEGIN")
        self._database.executemany(
            "INSERT OR IGNORE INTO wanted VALUES (?, ?, ?, ?)",
            ((position, task_key(task), task.seed, _design(task)) for position, task in enumerate(tasks)),
        )
        execute("COMMIT")
        ((count,),) = execute("SELECT count(*) FROM wanted")
        if count < len(tasks):
            raise ValueError(f"tasks must all be different, got {len(tasks) - count} twice")

    @_naming_the_file
    def _open(self, owner: FolderOwner) -> None:
        finish_repair(self.path)
        if not self._attach_if_sound(owner):
            repaired = repair(self.path)
            self._attach()
            _log.warning(
                "%s is damaged: it is now called %s; %d results could be read, others are computed again",
                *(self.path, repaired.damaged.name, repaired.kept),
            )

    def _attach_if_sound(self, owner: FolderOwner) -> bool:
        """Open or create the file unless it is damaged; drop rows with a wrong checksum."""
        try:
            self._attach_beside_readers(owner)
            whole = self._database.execute("PRAGMA store.integrity_check(1)").fetchone() == ("ok",)
            if whole and has_sound_schema(self._database, "store"):
                self._drop_damaged_rows()
                return True
        except UNREADABLE as error:
            if is_in_use(error):
                user = "another program that writes to its tasks.sqlite" if owner.alone else owner.name()
                raise FolderInUseError(self._folder, user) from error
            if is_of_the_machine(error, self.path):
                raise
        self._detach()
        return False

    def _attach_beside_readers(self, owner: FolderOwner) -> None:
        try:
            self._attach()
        except sqlite3.Error as error:
            # No other sweep has the file, so a program that reads it may continue.
            if not (owner.alone and is_in_use(error)):
                raise
            self._detach()
            self._database.execute(f"PRAGMA busy_timeout = {READER_PATIENCE}")
            self._attach("NORMAL")

    def _attach(self, locking: str = "EXCLUSIVE") -> None:
        execute = self._database.execute
        execute("ATTACH ? AS store", (str(self.path),))
        # The lock is exclusive from the first access on, unless a program reads the file, because the journal then works on network file
        # systems, too.
        execute(f"PRAGMA store.locking_mode = {locking}")
        execute("PRAGMA store.journal_mode = WAL")
        execute("PRAGMA store.synchronous = FULL")
        execute("BEGIN IMMEDIATE")
        for statement in creation("store"):
            execute(statement)
        execute("COMMIT")

    def _detach(self) -> None:
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")
        if any(row[1] == "store" for row in self._database.execute("PRAGMA database_list")):
            self._database.execute("DETACH store")

    def _layouts(self) -> dict[bytes, str]:
        return sound_layouts(self._database.execute("SELECT name, layout FROM store.layouts"))

    def _drop_damaged_rows(self) -> None:
        layouts = self._layouts()
        rows = self._database.execute("SELECT rowid, key, layout, payload, checksum FROM store.results")
        damaged = [(row[0],) for row in rows if not is_sound(row[1:], layouts)]
        if damaged:
            self._database.execute("BEGIN")
            self._database.executemany("DELETE FROM store.results WHERE rowid = ?", damaged)
            self.commit()
            _log.warning("%s has %d damaged results: they are computed again", self.path, len(damaged))


def _design(task: SweepTask) -> int | None:
    return None if task.design is None else hash(task.design)


def _provenance(seed: int) -> dict[str, Scalar]:
    return {"seed": seed, **software_versions()}


@dataclass(frozen=True)
class Repair:
    """Outcome of a repair of a damaged file.

    Attributes
    ----------
    damaged : Path
        New place of the damaged file.
    kept : int
        Number of the damaged file's results in the new file.
    """

    damaged: Path
    kept: int


def is_in_use(error: Exception) -> bool:
    """Return whether another process has the file."""
    return _code(error) in IN_USE


def is_of_the_machine(error: Exception, path: Path) -> bool:
    """Return whether a failure to open, read or write a file is the machine's fault."""
    # A damaged header may also mark the file as read-only.
    read_only = _code(error) == sqlite3.SQLITE_READONLY and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
    return read_only or _code(error) in OF_THE_MACHINE


def named_fault(error: sqlite3.Error, path: Path) -> OSError:
    """Return SQLite's message as an error that names the file."""
    return OSError(errno.ENOSPC if _code(error) == sqlite3.SQLITE_FULL else errno.EIO, str(error).removesuffix(f": {path}"), str(path))


def _code(error: Exception) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    # The last byte of an extended code is its primary code.
    return None if code is None else code & 0xFF


def repair(path: Path) -> Repair:
    """Copy the sound rows of a damaged file to a new file in its place; rename the damaged file.

    A process that is killed at any moment leaves the damaged file in place, or a whole new file, which `finish_repair` puts in place.
    """
    repaired = path.with_name(path.name + REPAIRED)
    repaired.unlink(missing_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as source, closing(sqlite3.connect(repaired, isolation_level=None)) as target:
        target.execute("BEGIN")
        for statement in creation("main"):
            target.execute(statement)
        layouts = sound_layouts(row for order in ("ASC", "DESC") for row in _readable(source, "layouts", order))
        target.executemany("INSERT OR IGNORE INTO layouts VALUES (?, ?)", ((name, text.encode()) for name, text in layouts.items()))
        kept = 0
        # Rows are read from either end up to the unreadable part.
        for order in ("ASC", "DESC"):
            for row in _readable(source, "results", order):
                if is_sound(row, layouts):
                    kept += target.execute("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?)", row).rowcount
        target.execute("COMMIT")
    damaged = _set_aside(path)
    repaired.rename(path)
    return Repair(damaged, kept)


def finish_repair(path: Path) -> None:
    """Put a repaired file in place, if its process was killed after moving the damaged file."""
    repaired = path.with_name(path.name + REPAIRED)
    if repaired.exists() and not path.exists():
        repaired.rename(path)


def _readable(source: sqlite3.Connection, table: str, order: str) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a table of a damaged file, up to the first unreadable row."""
    try:
        yield from source.execute(f"SELECT {', '.join(COLUMNS[table])} FROM {table} ORDER BY rowid {order}")  # noqa: S608 - our own names
    except UNREADABLE as error:
        if isinstance(error, sqlite3.Error) and _code(error) in OF_THE_MACHINE:
            raise


def _set_aside(path: Path) -> Path:
    """Rename a damaged file and its journal, and return the file's new name."""
    number = 1
    while (target := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    for suffix in ("-wal", "-shm"):
        journal = path.with_name(path.name + suffix)
        if journal.exists():
            journal.rename(target.with_name(target.name + suffix))
    return path.rename(target)
