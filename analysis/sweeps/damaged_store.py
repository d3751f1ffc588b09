"""What is left of a sweep's SQLite file that was damaged, in a new one; and whether it is the file that is at fault, or the machine."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from .stored_rows import COLUMNS, creation, is_sound, sound_layouts

# What SQLite says of a damaged file: names of its tables and columns stand in messages and descriptions, and may be no text any more.
UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
IN_USE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
# The fault is not the file's: the disk is full or broken, or the file may not be opened.
OF_THE_MACHINE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM)
# Of the file that replaces a damaged one, until it is whole.
REPAIRED = ".repaired"


@dataclass(frozen=True)
class Repair:
    """What became of a damaged file.

    Attributes
    ----------
    damaged : Path
        Where it is now.
    kept : int
        Number of its results that are in the new file.
    """

    damaged: Path
    kept: int


def is_in_use(error: Exception) -> bool:
    """Return whether another process has the file."""
    return _code(error) in IN_USE


def is_of_the_machine(error: Exception, path: Path) -> bool:
    """Return whether a file could not be opened, read or written for a reason that is not its contents."""
    # A damaged header, too, may say that the file is for reading only.
    read_only = _code(error) == sqlite3.SQLITE_READONLY and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
    return read_only or _code(error) in OF_THE_MACHINE


def named_fault(error: sqlite3.Error, path: Path) -> OSError:
    """Return what SQLite says as an error that names the file."""
    return OSError(errno.ENOSPC if _code(error) == sqlite3.SQLITE_FULL else errno.EIO, str(error).removesuffix(f": {path}"), str(path))


def _code(error: Exception) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    # Extended codes have the primary one in their last byte.
    return None if code is None else code & 0xFF


def repair(path: Path) -> Repair:
    """Write what can be read of a damaged file, and has the right checksum, to a new one in its place, and rename the damaged one.

    A process that is killed at any moment leaves the damaged file where it was, or a whole new one, which `finish_repair` puts in place.
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
        # From either end up to what cannot be read.
        for order in ("ASC", "DESC"):
            for row in _readable(source, "results", order):
                if is_sound(row, layouts):
                    kept += target.execute("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?)", row).rowcount
        target.execute("COMMIT")
    damaged = _set_aside(path)
    repaired.rename(path)
    return Repair(damaged, kept)


def finish_repair(path: Path) -> None:
    """Put a repaired file in its place, if the process that wrote it was killed when it had set the damaged one aside."""
    repaired = path.with_name(path.name + REPAIRED)
    if repaired.exists() and not path.exists():
        repaired.rename(path)


def _readable(source: sqlite3.Connection, table: str, order: str) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a table of a damaged file, up to the first that cannot be read."""
    try:
        yield from source.execute(f"SELECT {', '.join(COLUMNS[table])} FROM {table} ORDER BY rowid {order}")  # noqa: S608 - our own names
    except UNREADABLE as error:
        if isinstance(error, sqlite3.Error) and _code(error) in OF_THE_MACHINE:
            raise


def _set_aside(path: Path) -> Path:
    """Rename a damaged file, with the journal beside it, and return its new name."""
    number = 1
    while (target := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    for suffix in ("-wal", "-shm"):
        journal = path.with_name(path.name + suffix)
        if journal.exists():
            journal.rename(target.with_name(target.name + suffix))
    return path.rename(target)
