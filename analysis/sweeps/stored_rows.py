"""The tables of a sweep's SQLite file, and the checksums that tell whether what is read from them is what was written."""

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing

DIGEST_BYTES = 16
# Their columns, by name.
COLUMNS: Mapping[str, tuple[str, ...]] = {"results": ("key", "layout", "payload", "checksum"), "layouts": ("name", "layout")}


def creation(schema: str) -> list[str]:
    """Return the statements that make the tables where they are not there."""
    return [
        f"CREATE TABLE IF NOT EXISTS {schema}.{table} ({first} BLOB PRIMARY KEY, {', '.join(f'{other} BLOB' for other in others)})"
        for table, (first, *others) in COLUMNS.items()
    ]


def has_sound_schema(database: sqlite3.Connection, schema: str) -> bool:
    """Return whether a file has these tables and nothing else: a trigger or a view could take rows away as they are saved."""
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
    """Return whether a row (key, layout, payload, checksum) is as it was written, and has a layout among those known."""
    key, layout, payload, checksum = row
    if not (isinstance(key, bytes) and isinstance(layout, bytes) and isinstance(payload, bytes)):
        return False
    return layout in layouts and checksum == digest(key, layout, payload)
