"""A column of items, numbered by a public list, public hash buckets, or the data."""

import hashlib
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...arguments import check_integer
from ...arrays import IntegerArray
from ...errors import DataError
from ...extras import optional
from ...files import shown_path
from .column_file import MISSING, MOST_BYTES, check_file, csv_batches, csv_column, parquet_batches, parquet_column, text_lines

with optional("pyarrow", "files of clients"):
    import pyarrow as pa

FORMATS = (".csv", ".parquet", ".txt")
MOST_BUCKETS = 2**30
# Allowed control characters of quoted fields, and the two joiners that some languages need. Other format characters, such as byte order
# marks at the seams of joined files, would make two items of names that look the same.
KEPT = "\t\n\r\u200c\u200d"
# Ways to number items.
LISTED, HASHED, TAKEN = "public list", "hashed", "taken from the data"


@dataclass(frozen=True, eq=False)
class ItemColumn:
    """Items of clients, as numbers.

    Attributes
    ----------
    name, source : str
        Description of the items, and their origin.
    items : ndarray of int64, shape (clients,)
        Numbers from 0 to `categories` - 1.
    categories : int
        Number of items, or of buckets.
    names : mapping of int to str
        Names of the numbers; buckets have a name only if an item of the data, or of the list, falls into them.
    numbering : str
        Origin of the numbers: ``"public list"``, ``"hashed"``, or ``"taken from the data"``, which reveals the existing items without any
        guarantee.
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
        Number of public buckets for hashed items. Without a list and buckets, the items of the data form the list.
    most_bytes : int
        Largest size of the file.

    Raises
    ------
    DataError
        If a file cannot be read, has no such column or is empty, or if the number of its rows differs from the count beforehand. Also if an
        item is empty, is not on the list, has white space around it, has control or other invisible characters, or marks a missing value,
        such as ``NA``, and is not on the list. Parquet must hold texts, whole numbers or dates.
    """
    listed = None if domain is None else _public_list(domain, most_bytes)
    coded = _read_items(path, column, most_bytes, () if listed is None else listed)
    name, where = column or shown_path(path.stem), _where(path, column)
    if buckets is not None:
        return _hashed(coded, buckets, name, shown_path(path.name))
    names = tuple(sorted(coded.kinds)) if listed is None else listed
    numbers = {item: number for number, item in enumerate(names)}
    items = np.array([numbers.get(kind, -1) for kind in coded.kinds], dtype=np.int64)[coded.codes]
    if (items < 0).any():
        row = int(np.argmax(items < 0))
        item = coded.kinds[coded.codes[row]]
        raise DataError(f"{where}: row {row + 1} holds {item!r}, which is not on the list of {len(names)} items")
    return ItemColumn(name, shown_path(path.name), items, len(names), dict(enumerate(names)), TAKEN if listed is None else LISTED)


def hashed_items(texts: Iterable[str], buckets: int, name: str, source: str) -> ItemColumn:
    """Return a column with the public hash buckets of its texts.

    A bucket's name states the texts that fall into it.
    """
    kinds: dict[str, int] = {}
    codes = np.array([kinds.setdefault(text, len(kinds)) for text in texts], dtype=np.int64)
    return _hashed(_CodedItems(tuple(kinds), codes), buckets, name, source)


def bucket_of(item: str, buckets: int) -> int:
    """Return the public bucket of an item, by SHA-256.

    Examples
    --------
    >>> bucket_of("apple", 1024)
    199
    """
    return int.from_bytes(hashlib.sha256(item.encode()).digest()[:16], "big") % buckets


@dataclass(frozen=True, eq=False)
class _CodedItems:
    """Different items, and the index of each client's item."""

    kinds: tuple[str, ...]
    codes: IntegerArray


def _hashed(coded: _CodedItems, buckets: int, name: str, source: str) -> ItemColumn:
    count = check_integer("buckets", buckets, low=2, high=MOST_BUCKETS)
    places = np.array([bucket_of(kind, count) for kind in coded.kinds], dtype=np.int64)
    names: dict[int, str] = {}
    for place, kind in sorted(zip(places.tolist(), coded.kinds, strict=True)):
        names[place] = f"{names[place]} / {kind}" if place in names else kind
    return ItemColumn(name, source, places[coded.codes], count, names, HASHED)


def _public_list(domain: Path, most_bytes: int) -> tuple[str, ...]:
    """Return the items of a public list, which may hold any text that is not empty."""
    listed = _read_items(domain, None, most_bytes, None)
    if len(listed.kinds) < len(listed.codes):
        raise DataError(f"{shown_path(domain)}: the list has {len(listed.codes) - len(listed.kinds)} items twice")
    return listed.kinds


def _read_items(path: Path, column: str | None, most_bytes: int, listed: Collection[str] | None) -> _CodedItems:
    """Return the items of a column, as they are written.

    The function refuses a mark of a missing value, such as ``NA``, unless it is `listed`; None lists every text.
    """
    batches = _batches(path, check_file(path, FORMATS, most_bytes), column, most_bytes)
    kinds: dict[str | None, int] = {}
    codes = np.concatenate([_codes(batch, kinds) for batch in batches])
    faults = {code: fault for kind, code in kinds.items() if (fault := _fault(kind, listed)) is not None}
    if faults:
        wrong = np.isin(codes, list(faults))
        row, count = int(np.argmax(wrong)), int(np.count_nonzero(wrong))
        more = "" if count == 1 else f" ({count} of {len(codes)} rows are refused)"
        raise DataError(f"{_where(path, column)}: row {row + 1} {faults[int(codes[row])]}{more}")
    return _CodedItems(tuple(kind for kind in kinds if kind is not None), codes)


def _fault(item: str | None, listed: Collection[str] | None) -> str | None:
    """Return the reason for refusing an item in words, or None."""
    if item is None or not item.strip():
        return "has no item"
    if item != item.strip():
        return f"holds {item!r}: remove the white space around it"
    if any(unicodedata.category(character) in ("Cc", "Cf") and character not in KEPT for character in item):
        return f"holds {item!r}, with characters that nobody sees: remove them"
    if listed is not None and item.lower() in MISSING and item not in listed:
        return f"holds {item!r}, a mark of a missing value: if it is an item, put it on a public list"
    return None


def _codes(batch: pa.Array, kinds: dict[str | None, int]) -> IntegerArray:
    """Return the index of each item among the different items so far, and add new items."""
    encoded = batch if pa.types.is_dictionary(batch.type) else batch.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    # A dictionary may hold texts that occur in no row. The last text stands for null.
    indices = np.asarray(encoded.indices.cast(pa.int64()).fill_null(len(texts)))
    used, places = np.unique(indices, return_inverse=True)
    codes = [kinds.setdefault(text, len(kinds)) for text in (texts[index] if index < len(texts) else None for index in used.tolist())]
    return np.array(codes, dtype=np.int64)[places]


def _batches(path: Path, suffix: str, column: str | None, most_bytes: int) -> Iterator[pa.Array]:
    if suffix == ".txt":
        if column is not None:
            raise DataError(f"{shown_path(path)}: a text file has no columns, got the column {column!r}")
        return text_lines(path, most_bytes)
    if suffix == ".csv":
        return csv_batches(csv_column(path, column, most_bytes))
    table_column = parquet_column(path, column, most_bytes)
    kind = table_column.kind.value_type if pa.types.is_dictionary(table_column.kind) else table_column.kind
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if not (is_text or pa.types.is_integer(kind) or pa.types.is_date32(kind)):
        raise DataError(f"{table_column.where} must hold texts, whole numbers or dates, which have one spelling; it holds {kind}")
    batches = parquet_batches(table_column, as_dictionary=is_text)
    return batches if is_text else (_spelled(batch) for batch in batches)


def _spelled(batch: pa.Array) -> pa.Array:
    """Return whole numbers or dates as texts."""
    return (batch.dictionary_decode() if pa.types.is_dictionary(batch.type) else batch).cast(pa.string())


def _where(path: Path, column: str | None) -> str:
    return shown_path(path) if column is None else f"{shown_path(path)}: column {column!r}"
