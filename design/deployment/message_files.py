"""Files of messages: ``.qbm`` with one header for all, and parquet or Arrow with a binary column."""

import io
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...arrays import WordArray
from ...errors import DataError
from ...extras import optional
from ...files import atomic_file, shown_path, write_atomically
from ...progress import OnStep, silent
from .decoder import LENGTH, Decoder
from .deployment import Deployment
from .wire_format import HEADER_BYTES, Bytes, Header

# Number of records read at a time, and key of the header in a parquet file's metadata.
RECORDS = 2**20
METADATA = b"quietbits-message"
MESSAGE_COLUMN, INDEX_COLUMN = "message", "index"
ARROW_SUFFIXES = (".parquet", ".arrow", ".feather")


def records_of(deployment: Deployment, messages: Bytes, clients: WordArray | None) -> bytes:
    """Return the records of messages: the index, if the deployment has public words, and the message."""
    if not deployment.carries_index:
        return messages.tobytes()
    assert clients is not None  # noqa: S101 - the deployment has public words
    indices = np.ascontiguousarray(clients, dtype=">u8").view(np.uint8).reshape(len(clients), 8)
    return np.hstack([indices, messages]).tobytes()


def write_messages(
    deployment: Deployment, path: str | os.PathLike[str], chunks: Iterable[tuple[Bytes, WordArray | None]], round_number: int = 0
) -> int:
    """Write a file of messages with a header, whole or not at all, and return their number.

    Parameters
    ----------
    deployment : Deployment
        The deployment.
    path : path
        The file; ``.parquet`` makes a parquet file, every other suffix records after a header.
    chunks : iterable of (messages, clients)
        Messages, and the clients' indices if the deployment has public words.
    round_number : int
        Number of the round.
    """
    header = Header(deployment.hash_start, round_number)
    with atomic_file(path) as temporary:
        if Path(path).suffix == ".parquet":
            return _write_parquet(deployment, temporary, chunks, header)
        count = 0
        with temporary.open("wb") as file:
            file.write(header.to_bytes())
            for messages, clients in chunks:
                file.write(records_of(deployment, messages, clients))
                count += len(messages)
        return count


def _write_parquet(deployment: Deployment, path: Path, chunks: Iterable[tuple[Bytes, WordArray | None]], header: Header) -> int:
    with optional("pyarrow", "files of messages in parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    size = deployment.program.message_bytes
    columns = [pa.field(MESSAGE_COLUMN, pa.binary(size))]
    if deployment.carries_index:
        columns.append(pa.field(INDEX_COLUMN, pa.uint64()))
    schema = pa.schema(columns, metadata={METADATA: header.to_bytes()})
    count = 0
    with pq.ParquetWriter(path, schema) as writer:
        for messages, clients in chunks:
            arrays = [pa.FixedSizeBinaryArray.from_buffers(pa.binary(size), len(messages), [None, pa.py_buffer(messages.tobytes())])]
            if clients is not None:
                arrays.append(pa.array(clients))
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            count += len(messages)
    return count


def write_sum(path: str | os.PathLike[str], residues: WordArray) -> None:
    """Write the modular sum of a secure sum as a npy file of unsigned numbers."""
    buffer = io.BytesIO()
    np.save(buffer, residues)
    write_atomically(path, buffer.getvalue())


def read_sum(path: Path) -> WordArray:
    """Return the modular sum of a npy file; DataError if it holds no whole numbers."""
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataError(f"{shown_path(path)}: the file is not an npy array of a modular sum: {str(error)[:200]}") from None
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "iu":
        raise DataError(f"{shown_path(path)}: the file must hold one array of whole numbers, the modular sum of each field")
    return array


def decode_file(decoder: Decoder, path: str | os.PathLike[str], id_column: str | None = None, on_step: OnStep = silent) -> Decoder:
    """Add the messages of a file to a decoder, in pieces.

    Parameters
    ----------
    decoder : Decoder
        The decoder.
    path : path
        A file of records, or with the suffix ``.parquet``, ``.arrow`` or ``.feather`` a file whose binary column ``message`` has a message
        in each row. Without a header in the file's metadata each message has its own.
    id_column : str or None
        Column whose value names a client, of which only the first message counts; only for tables.
    on_step : callable
        Progress, in records.

    Raises
    ------
    DataError
        If the file as a whole is foreign: no file of messages, or of another deployment or round.
    """
    path = Path(path)
    if path.suffix in ARROW_SUFFIXES:
        return _decode_arrow(decoder, path, id_column, on_step)
    if id_column is not None:
        raise ValueError(f"id_column must be left out for files of records, which have no columns, got {id_column!r}")
    size = decoder.deployment.record_bytes
    with path.open("rb") as file:
        _check_header(decoder, file.read(HEADER_BYTES), path)
        records, rest = divmod(os.fstat(file.fileno()).st_size - HEADER_BYTES, size)
        done = 0
        while content := file.read(RECORDS * size):
            whole = len(content) // size
            decoder.add_records(np.frombuffer(content, dtype=np.uint8, count=whole * size).reshape(whole, size))
            done += whole
            on_step(done, records, f"decoding {path.name}")
    decoder.refuse(LENGTH, int(rest > 0))
    return decoder


def _check_header(decoder: Decoder, content: bytes, path: Path) -> None:
    try:
        header = Header.from_bytes(content)
    except DataError as error:
        raise DataError(f"{shown_path(path)}: {error}") from None
    deployment = decoder.deployment
    if header.hash_start != deployment.hash_start:
        stated, own = header.hash_start.hex(), deployment.hash_start.hex()
        raise DataError(f"{shown_path(path)}: messages must be of the deployment {own}, got some of {stated}")
    if header.round_number != decoder.round_number:
        raise DataError(f"{shown_path(path)}: messages must be of round {decoder.round_number}, got round {header.round_number}")


def _decode_arrow(decoder: Decoder, path: Path, id_column: str | None, on_step: OnStep) -> Decoder:
    with optional("pyarrow", "files of messages in parquet"):
        import pyarrow as pa

    schema, rows, batches = _opened(path)
    deployment = decoder.deployment
    metadata = (schema.metadata or {}).get(METADATA)
    if metadata is not None:
        _check_header(decoder, metadata, path)
    with_index = metadata is not None and deployment.carries_index
    for name in (MESSAGE_COLUMN, *([INDEX_COLUMN] if with_index else []), *([] if id_column is None else [id_column])):
        if name not in schema.names:
            raise DataError(f"{shown_path(path)}: the file must have a column {name!r}, got {', '.join(schema.names)[:200]}")
    kind = schema.field(MESSAGE_COLUMN).type
    if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)):
        raise DataError(f"{shown_path(path)}: the column {MESSAGE_COLUMN!r} must hold bytes, got {kind}")
    done = 0
    for batch in batches():
        messages = batch.column(MESSAGE_COLUMN).to_pylist()
        names = None if id_column is None else batch.column(id_column).to_pylist()
        if metadata is None:
            decoder.add_alone(messages, names)
        else:
            _add_rows(decoder, messages, batch.column(INDEX_COLUMN) if with_index else None, names)
        done += len(messages)
        on_step(done, rows, f"decoding {path.name}")
    return decoder


def _opened(path: Path) -> tuple[Any, int, Callable[[], Iterator[Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.suffix == ".parquet":
            file = pq.ParquetFile(path)
            return file.schema_arrow, file.metadata.num_rows, lambda: file.iter_batches(RECORDS)
        table = pa.ipc.open_file(pa.memory_map(str(path)))
        return table.schema, 0, lambda: (table.get_batch(number) for number in range(table.num_record_batches))
    except pa.ArrowInvalid as error:
        raise DataError(f"{shown_path(path)}: the file is no table of messages: {str(error).splitlines()[0][:200]}") from None


def _add_rows(decoder: Decoder, messages: list[bytes | None], indices: Any, names: list[Any] | None) -> None:
    """Add rows of messages without headers; rows of another length, or without an index, are refused."""
    size = decoder.deployment.program.message_bytes
    clients = None if indices is None else indices.to_pylist()
    fitting = [
        place
        for place, message in enumerate(messages)
        if message is not None and len(message) == size and (clients is None or clients[place] is not None)
    ]
    decoder.refuse(LENGTH, len(messages) - len(fitting))
    if not fitting:
        return
    joined = np.frombuffer(b"".join(messages[place] or b"" for place in fitting), dtype=np.uint8).reshape(-1, size)
    own = None if clients is None else np.array([clients[place] for place in fitting], dtype=np.uint64)
    decoder.add(joined, own, None if names is None else [names[place] for place in fitting])
