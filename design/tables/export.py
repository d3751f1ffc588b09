"""Exports of lookup tables: weights as npz, csv and parquet."""

import io
import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...arguments import check_choice
from ...extras import optional
from ...files import write_atomically
from .file import table_document
from .lookup_table import LookupTable
from .verification import verify_table

if TYPE_CHECKING:
    import pandas as pd


def export_table(table: LookupTable, path: str | os.PathLike[str], file_format: str) -> None:
    """Verify a table, and write it in another format.

    Parameters
    ----------
    table : LookupTable
        The table.
    path : path
        Path of the file, which is replaced if it exists.
    file_format : str
        Format of the file: ``"npz"`` for arrays, ``"csv"`` or ``"parquet"`` for one row per input and letter. `deploy_table` writes the
        table's clients as source code.

    Raises
    ------
    TableError
        If the table does not verify; nothing is written then.
    """
    check_choice("file_format", file_format, EXPORTS)
    verify_table(table)
    write_atomically(path, EXPORTS[file_format](table))


def npz_archive(table: LookupTable) -> bytes:
    """Return a NumPy archive of the table.

    The archive's arrays are ``weights``, ``alphabet`` (exact, "p/q"), ``letters`` (floats on the interval's scale), ``interval``,
    ``total``, ``epsilon``, and ``document``: everything else as JSON.
    """
    buffer = io.BytesIO()
    document = table_document(table)
    np.savez_compressed(
        buffer,
        weights=table.weights,
        alphabet=np.array(document.pop("alphabet")),
        letters=table.letters,
        interval=np.array(table.interval),
        total=np.array(table.total),
        epsilon=np.array(table.epsilon),
        document=np.array(json.dumps({key: value for key, value in document.items() if key != "weights"})),
    )
    return buffer.getvalue()


def tidy_frame(table: LookupTable) -> "pd.DataFrame":
    """Return a table as a data frame with one row per input and letter.

    Columns are ``row``, ``input`` (on the interval's scale), ``letter``, ``alphabet`` (exact, on the unit interval's scale), ``decoded``
    (on the interval's scale), ``weight`` (out of ``total``), ``probability``.
    """
    import pandas as pd

    rows, letters = table.weights.shape
    low, high = table.interval
    return pd.DataFrame(
        {
            "row": np.repeat(np.arange(rows), letters),
            "input": np.repeat(low + (high - low) * np.arange(rows) / (rows - 1), letters),
            "letter": np.tile(np.arange(letters), rows),
            "alphabet": [f"{letter.numerator}/{letter.denominator}" for letter in table.alphabet] * rows,
            "decoded": np.tile(table.letters, rows),
            "weight": table.weights.ravel(),
            "total": np.full(rows * letters, table.total),
            "probability": table.probabilities.ravel(),
        }
    )


def csv_text(table: LookupTable) -> bytes:
    """Return the tidy frame as comma-separated values that are read back exactly."""
    return tidy_frame(table).to_csv(index=False, lineterminator="\n").encode("ascii")


def parquet_file(table: LookupTable) -> bytes:
    """Return the tidy frame as a parquet file with the table's document.

    The metadata key ``quietbits-table`` holds the document as JSON, without the weights.
    """
    with optional("pyarrow", "the format parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    document = {key: value for key, value in table_document(table).items() if key != "weights"}
    columns = pa.Table.from_pandas(tidy_frame(table), preserve_index=False)
    buffer = io.BytesIO()
    pq.write_table(columns.replace_schema_metadata({"quietbits-table": json.dumps(document)}), buffer)
    return buffer.getvalue()


EXPORTS: dict[str, Callable[[LookupTable], bytes]] = {"npz": npz_archive, "csv": csv_text, "parquet": parquet_file}
