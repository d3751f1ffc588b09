"""A store of designed tables on disk, each under the hash of its specification."""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import TableError
from ...files import check_folder
from .file import FORMAT, read_table, write_table
from .lookup_table import LookupTable
from .provenance import record_provenance

# Version of the cache; increase it when the same specification comes to mean another table.
CACHE_FORMAT = 1

log = logging.getLogger(__name__)


def default_folder() -> Path:
    """Return the default folder of tables.

    Returns
    -------
    Path
        Folder ``quietbits/tables`` in ``$XDG_CACHE_HOME``, or in ``~/.cache`` if that variable is not set.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quietbits" / "tables"


def check_cache(folder: Path) -> None:
    """Raise ``OSError``, with a remedy, if the folder cannot keep tables."""
    with _naming_the_option(folder):
        check_folder(folder)


@contextmanager
def _naming_the_option(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = f"designed tables cannot be kept here ({error.strerror}): name another folder with --cache"
        raise OSError(error.errno, reason, str(folder)) from error


@dataclass(frozen=True)
class TableCache:
    """A folder of tables, each in a file that is named by its specification.

    Any number of processes may use a folder. A file is written under a temporary name and renamed, so that it is complete or absent. Two
    processes that design the same table write the same file twice.

    Attributes
    ----------
    folder : Path
        Path of the folder, which is made when the first table is written.
    """

    folder: Path = field(default_factory=default_folder)

    def path(self, specification: Mapping[str, str | int | float | None]) -> Path:
        """Return the file of a specification's table.

        Parameters
        ----------
        specification : mapping
            Everything that the table depends on, by name; numbers are finite.

        Returns
        -------
        Path
            File named by the SHA-256 of the specification in canonical JSON, with the formats of tables and of the cache, and the versions
            of quietbits, Python and the numerical libraries. So no other code's tables are used, and dependent results are the same from an
            empty cache.

        Raises
        ------
        ValueError
            If a value is not finite, which JSON cannot express.
        """
        whole = {
            "specification": dict(specification),
            "table_format": FORMAT,
            "cache_format": CACHE_FORMAT,
            "versions": dict(record_provenance("", 0, 0.0).versions),
        }
        text = json.dumps(whole, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()}.json"

    def fetch(
        self,
        specification: Mapping[str, str | int | float | None],
        design: Callable[[], LookupTable],
        accept: Callable[[LookupTable], bool] = lambda _: True,
    ) -> LookupTable:
        """Return the table of a specification from its file, or design and keep it.

        Parameters
        ----------
        specification : mapping
            Everything that the table depends on, as in `path`.
        design : callable
            Function that designs the table.
        accept : callable
            Function that returns whether a table from a file meets the specification. A table that does not verify or is not accepted is
            designed anew and its file replaced, with a warning to the log.

        Returns
        -------
        LookupTable
            The table.

        Raises
        ------
        ValueError
            If a value of the specification is not finite.
        OSError
            If the folder or the file cannot be read or written; before the table is designed.

        Notes
        -----
        Exceptions of `design` propagate, and no table is kept then.
        """
        path = self.path(specification)
        with _naming_the_option(self.folder):
            there = path.exists()
        if there:
            try:
                table = read_table(path)
            except TableError as error:
                log.warning("%s: refused: %s: %s; the table is designed again", path, error.check, error.detail)
            else:
                if accept(table):
                    return table
                log.warning("%s: it is not the table that was asked for; it is designed again", path)
        check_cache(self.folder)
        table = design()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(table, path)
        return table
