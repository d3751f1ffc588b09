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
from .decoder import LENGTH, UNNAMED, Decoder
from .deployment import Deployment
from .wire_format import HEADER_BYTES, Bytes, Header

# Key of the header in a parquet file's metadata.
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
        records = (os.fstat(file.fileno()).st_size - HEADER_BYTES) // size
        done = 0
        rest = 0
        while content := file.read(decoder.messages_at_a_time * size):
            whole, rest = divmod(len(content), size)
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

    done = 0
    try:
        schema, rows, batches = _opened(path, decoder.messages_at_a_time)
        metadata = (schema.metadata or {}).get(METADATA)
        if metadata is not None:
            _check_header(decoder, metadata, path)
        with_index = metadata is not None and decoder.deployment.carries_index
        _check_columns(schema, path, id_column, with_index)
        for batch in batches():
            _add_rows(decoder, batch, id_column, alone=metadata is None, with_index=with_index)
            done += len(batch)
            on_step(done, rows, f"decoding {path.name}")
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = (str(error).splitlines() or ["no reason is stated"])[0][:200]
        raise DataError(f"{shown_path(path)}: the file is no table of messages, or damaged: {reason}") from None
    return decoder


def _opened(path: Path, rows: int) -> tuple[Any, int, Callable[[], Iterator[Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix == ".parquet":
        file = pq.ParquetFile(path)
        return file.schema_arrow, file.metadata.num_rows, lambda: file.iter_batches(rows)
    table = pa.ipc.open_file(pa.memory_map(str(path)))
    return table.schema, 0, lambda: (table.get_batch(number) for number in range(table.num_record_batches))


def _check_columns(schema: Any, path: Path, id_column: str | None, with_index: bool) -> None:
    import pyarrow as pa

    for name in (MESSAGE_COLUMN, *([INDEX_COLUMN] if with_index else []), *([] if id_column is None else [id_column])):
        if schema.names.count(name) != 1:
            raise DataError(f"{shown_path(path)}: the file must have a column {name!r}, got {', '.join(schema.names)[:200]}")
    kind = schema.field(MESSAGE_COLUMN).type
    if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)):
        raise DataError(f"{shown_path(path)}: the column {MESSAGE_COLUMN!r} must hold bytes, got {kind}")
    if with_index and not pa.types.is_integer(schema.field(INDEX_COLUMN).type):
        raise DataError(f"{shown_path(path)}: the column {INDEX_COLUMN!r} must hold integers, got {schema.field(INDEX_COLUMN).type}")


def _add_rows(decoder: Decoder, batch: Any, id_column: str | None, *, alone: bool, with_index: bool) -> None:
    """Add rows of a table; rows of another length, or without an index, are refused."""
    import pyarrow as pa
    import pyarrow.compute as pc

    deployment, messages = decoder.deployment, batch.column(MESSAGE_COLUMN)
    size = HEADER_BYTES + deployment.record_bytes if alone else deployment.program.message_bytes
    fitting = pc.fill_null(pc.equal(pc.binary_length(messages), size), False)
    batch = _those(batch, fitting)
    decoder.refuse(LENGTH, len(messages) - len(batch))
    if with_index:
        before, indices = len(batch), batch.column(INDEX_COLUMN)
        batch = _those(batch, pc.fill_null(pc.greater_equal(indices, 0), False))
        decoder.refuse(UNNAMED, before - len(batch))
    fixed = batch.column(MESSAGE_COLUMN).cast(pa.binary(size))
    rows = np.frombuffer(fixed.buffers()[1] or b"", dtype=np.uint8)[fixed.offset * size :][: len(fixed) * size].reshape(-1, size)
    names = None if id_column is None else batch.column(id_column).to_pylist()
    if alone:
        decoder.add_headed(rows, names)
    else:
        clients = batch.column(INDEX_COLUMN).cast(pa.uint64()).to_numpy(zero_copy_only=False) if with_index else None
        decoder.add(rows, clients, names)


def _those(batch: Any, chosen: Any) -> Any:
    """Return the chosen rows of a batch, which is not copied if all are."""
    return batch if chosen.true_count == len(batch) else batch.filter(chosen)
