"""One column of items: one item per client, numbered by a list that is public, hashed into public buckets, or taken from the data."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from ...arguments import check_integer
from ...arrays import IntegerArray
from ...errors import DataError
from ...files import check_size
from .column_data import MOST_BYTES, chosen_column

FORMATS = (".csv", ".parquet", ".txt")
MOST_BUCKETS = 2**30
# How items may be numbered.
LISTED, HASHED, TAKEN = "public list", "hashed", "taken from the data"


@dataclass(frozen=True, eq=False)
class ItemColumn:
    """Items, one per client, as numbers.

    Attributes
    ----------
    name, source : str
        What the items are, and where they come from.
    items : ndarray of int64, shape (clients,)
        From 0 to `categories` - 1.
    categories : int
        Number of items, or of buckets.
    names : mapping of int to str
        What the numbers stand for; of buckets, only for those that an item of the data, or of the list, falls into.
    numbering : str
        ``"public list"``, ``"hashed"``, or ``"taken from the data"``, which reveals what items there are: no guarantee covers that.
    """

    name: str
    source: str
    items: IntegerArray
    categories: int
    names: dict[int, str]
    numbering: str

    @property
    def is_public(self) -> bool:
        """Whether the numbering does not depend on the data."""
        return self.numbering != TAKEN


def load_items(
    path: Path, column: str | None, domain: Path | None = None, buckets: int | None = None, *, most_bytes: int = MOST_BYTES
) -> ItemColumn:
    """Read a column of items, and number them.

    Parameters
    ----------
    path : Path
        A csv file with a header, a parquet file, or a text file with an item on each line.
    column : str or None
        Name of the column; None for a text file.
    domain : Path or None
        A text file with an item on each line: the public list. An item of the data that is not on it is an error.
    buckets : int or None
        Hash items into this many public buckets. Without list and buckets the list is taken from the data.
    most_bytes : int
        Largest file that is read.

    Raises
    ------
    DataError
        If a file cannot be read, has no such column, is empty, or holds an empty item or one that is not on the list.
    """
    texts = read_items(path, column, most_bytes)
    name, where = column or path.stem, f"{path}" if column is None else f"{path}: column {column!r}"
    listed = None if domain is None else read_items(domain, None, most_bytes)
    if listed is not None and len(set(listed)) < len(listed):
        raise DataError(f"{domain}: the list has {len(listed) - len(set(listed))} items twice")
    if buckets is not None:
        return hashed_items(texts, buckets, name, path.name)
    index = pd.Index(np.unique(texts) if listed is None else listed)
    items = index.get_indexer(pd.Index(texts))
    if (items < 0).any():
        row = int(np.argmax(items < 0))
        raise DataError(f"{where}: row {row + 1} holds {texts[row]!r}, which is not on the list of {len(index)} items")
    return ItemColumn(
        name, path.name, items.astype(np.int64), len(index), dict(enumerate(index.tolist())), TAKEN if listed is None else LISTED
    )


def hashed_items(texts: NDArray[Any], buckets: int, name: str, source: str) -> ItemColumn:
    """Return a column whose texts are hashed into public buckets, each named for all texts that fall into it."""
    count = check_integer("buckets", buckets, low=2, high=MOST_BUCKETS)
    kinds, codes = np.unique(texts, return_inverse=True)
    places = np.array([bucket_of(kind, count) for kind in kinds.tolist()])
    names: dict[int, str] = {}
    for place, kind in zip(places.tolist(), kinds.tolist(), strict=True):
        names[place] = f"{names[place]} / {kind}" if place in names else kind
    return ItemColumn(name, source, places[codes], count, names, HASHED)


def read_items(path: Path, column: str | None, most_bytes: int = MOST_BYTES) -> NDArray[Any]:
    """Return the texts of a column, stripped of white space around them; nothing is skipped or filled."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise DataError(f"{path}: the file's name must end in one of {', '.join(FORMATS)}")
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    check_size(path, most_bytes)
    try:
        texts = _texts(path, suffix, column)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: the file cannot be read: {str(error).splitlines()[0]}") from error
    where = f"{path}" if column is None else f"{path}: column {column!r}"
    if not texts:
        raise DataError(f"{where}: there are no rows")
    stripped = [None if text is None else text.strip() for text in texts]
    empty = [row for row, text in enumerate(stripped, 1) if not text]
    if empty:
        raise DataError(f"{where}: {len(empty)} rows have no item, the first of them row {empty[0]}")
    return np.array(stripped, dtype=object)


def bucket_of(item: str, buckets: int) -> int:
    """Return the public bucket of an item, by SHA-256.

    Examples
    --------
    >>> bucket_of("apple", 1024)
    199
    """
    return int.from_bytes(hashlib.sha256(item.encode()).digest()[:16], "big") % buckets


def _texts(path: Path, suffix: str, column: str | None) -> list[str | None]:
    if suffix == ".txt":
        if column is not None:
            raise DataError(f"{path}: a text file has no columns, got the column {column!r}")
        return list(path.read_text(encoding="utf-8").splitlines())
    if suffix == ".csv":
        with pyarrow.csv.open_csv(path) as reader:
            name = chosen_column(path, column, reader.schema.names)
        kept = pyarrow.csv.ConvertOptions(include_columns=[name], column_types={name: pa.string()}, strings_can_be_null=False)
        lines = pyarrow.csv.ParseOptions(ignore_empty_lines=False, newlines_in_values=True)
        table = pyarrow.csv.read_csv(path, parse_options=lines, convert_options=kept)
    else:
        name = chosen_column(path, column, pyarrow.parquet.read_schema(path).names)
        table = pyarrow.parquet.read_table(path, columns=[name])
    return [None if value is None else str(value) for value in table.column(0).to_pylist()]
