import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deployments import NAMES, WITH_INDEX, deployment_of_name, inputs_of, messages_of

from quietbits.design.deployment import decoder as module
from quietbits.design.deployment.decoder import FOREIGN, LENGTH, REPEATED, ROUND, UNNAMED, Decoder
from quietbits.design.deployment.deployment import Deployment
from quietbits.design.deployment.message_files import METADATA, decode_file, read_sum, records_of, write_messages, write_sum
from quietbits.design.deployment.wire_format import Header
from quietbits.errors import DataError


def files_of(deployment: Deployment, folder: Path, clients: int = 300) -> tuple[Decoder, list[Path]]:
    """Return a decoder with all messages, and files of every kind that hold the messages."""
    messages, indices = messages_of(deployment, inputs_of(deployment, clients))
    half = clients // 3
    parts = [(messages[cut], None if indices is None else indices[cut]) for cut in (slice(0, half), slice(half, None))]
    paths = [folder / "records.qbm", folder / "table.parquet"]
    for path in paths:
        assert write_messages(deployment, path, parts) == clients
    rows = [bytes(row) for row in messages]
    header = Header(deployment.hash_start, 0).to_bytes()
    columns: dict[str, Any] = {"message": pa.array(rows, pa.binary())}
    if indices is not None:
        columns["index"] = pa.array(indices.astype(np.int64))
    table = pa.table(columns).replace_schema_metadata({METADATA: header})
    pq.write_table(table, folder / "plain.parquet", row_group_size=77)
    for suffix, batch in (("arrow", 50), ("feather", 1000)):
        with pa.ipc.new_file(folder / f"plain.{suffix}", table.schema) as writer:
            writer.write_table(table, max_chunksize=batch)
        paths.append(folder / f"plain.{suffix}")
    size, content = deployment.record_bytes, records_of(deployment, messages, indices)
    alone = [header + content[place : place + size] for place in range(0, len(content), size)]
    pq.write_table(pa.table({"message": alone}), folder / "alone.parquet")
    pq.write_table(pa.table({"message": pa.array(alone, pa.large_binary())}), folder / "large.parquet")
    paths += [folder / "plain.parquet", folder / "alone.parquet", folder / "large.parquet"]
    return deployment.decoder().add(messages, indices), paths


@pytest.mark.parametrize("name", NAMES)
def test_all_kinds_of_files_give_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = deployment_of_name(name)
    whole, paths = files_of(deployment, tmp_path)
    expected = whole.estimate()
    monkeypatch.setattr(module, "MESSAGES_AT_A_TIME", 64)
    steps: list[tuple[float, float]] = []
    for path in paths:
        estimate = decode_file(deployment.decoder(), path, on_step=lambda done, total, _: steps.append((done, total))).estimate()
        assert np.array_equal(estimate.mean, expected.mean)
        assert np.array_equal(estimate.standard_error, expected.standard_error)
        assert (estimate.accepted, estimate.refused) == (300, {})
        assert steps[-1][0] == 300
    # A file that is read twice counts once where clients are named.
    decoder = decode_file(decode_file(deployment.decoder(), paths[0]), paths[1])
    assert decoder.refused == ({REPEATED: 300} if name == WITH_INDEX else {})


def test_a_file_of_records_is_a_header_and_records(tmp_path: Path) -> None:
    deployment = deployment_of_name(WITH_INDEX)
    messages = np.array([[0x40], [0xC0]], dtype=np.uint8)
    write_messages(deployment, tmp_path / "m.qbm", [(messages, np.array([1, 2**63], dtype=np.uint64))])
    expected = b"QBM\x01" + deployment.hash_start + bytes(4) + bytes(7) + b"\x01\x40" + b"\x80" + bytes(7) + b"\xc0"
    assert (tmp_path / "m.qbm").read_bytes() == expected


def test_a_record_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    for name in ("subsets", WITH_INDEX):
        deployment = deployment_of_name(name, epsilon=0.5)
        _, paths = files_of(deployment, tmp_path)
        content = paths[0].read_bytes()
        for cut in range(1, deployment.record_bytes):
            paths[0].write_bytes(content[:-cut])
            decoder = decode_file(deployment.decoder(), paths[0])
            assert (decoder.accepted, decoder.refused) == (299, {LENGTH: 1})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content[:15], "messages must begin with a header of 16 bytes, got 15 bytes"),
        (lambda content: b"PAR1" + content[4:], "this is no file of messages"),
        (
            lambda content: content[:4] + bytes(8) + content[12:],
            r"messages must be of the deployment [0-9a-f]{16}, got some of 0000000000000000",
        ),
        (lambda content: content[:12] + b"\0\0\0\1" + content[16:], "messages must be of round 0, got round 1"),
    ],
)
def test_files_that_are_foreign_as_a_whole(change: Callable[[bytes], bytes], message: str, tmp_path: Path) -> None:
    deployment = deployment_of_name("table")
    _, paths = files_of(deployment, tmp_path)
    changed = change(paths[0].read_bytes())
    paths[0].write_bytes(changed)
    table = pq.read_table(paths[1]).replace_schema_metadata({METADATA: changed[:16]})
    pq.write_table(table, paths[1])
    for path in paths[:2]:
        with pytest.raises(DataError, match=message):
            decode_file(deployment.decoder(), path)


def test_rows_of_tables_are_refused_by_reason(tmp_path: Path) -> None:
    deployment = deployment_of_name(WITH_INDEX, rounds=2)
    header = Header(deployment.hash_start, 0).to_bytes()
    rows = [b"\x40", None, b"", b"\x40\0", b"\xc0", b"\x40", b"\x40"]
    index = pa.array([5, 6, 7, 8, 5, None, -1], pa.int64())
    pq.write_table(pa.table({"message": rows, "index": index}).replace_schema_metadata({METADATA: header}), tmp_path / "m.parquet")
    decoder = decode_file(deployment.decoder(), tmp_path / "m.parquet")
    assert (decoder.accepted, decoder.refused) == (1, {LENGTH: 3, UNNAMED: 2, REPEATED: 1})
    alone = [
        header + bytes(8) + b"\x40",
        header,
        b"x" + header[1:] + bytes(9),
        Header(deployment.hash_start, 1).to_bytes() + bytes(9),
        None,
    ]
    pq.write_table(pa.table({"message": alone}), tmp_path / "a.parquet")
    decoder = decode_file(deployment.decoder(), tmp_path / "a.parquet")
    assert (decoder.accepted, decoder.refused) == (1, {LENGTH: 2, FOREIGN: 1, ROUND: 1})


def test_identifiers_of_a_column_count_once(tmp_path: Path) -> None:
    deployment = deployment_of_name("table")
    header = Header(deployment.hash_start, 0).to_bytes()
    table = pa.table({"message": [b"\x20", b"\x40", b"\xff", b"\x60", b"\x60"], "device": ["a", "a", "b", "b", None]})
    pq.write_table(table.replace_schema_metadata({METADATA: header}), tmp_path / "m.parquet")
    decoder = decode_file(deployment.decoder(), tmp_path / "m.parquet", "device")
    expected = deployment.decoder().add(np.array([[0x20], [0x60]], dtype=np.uint8)).estimate()
    assert decoder.estimate().mean == expected.mean
    assert sum(decoder.refused.values()) == 3


@pytest.mark.parametrize(
    ("table", "id_column", "message"),
    [
        (pa.table({"x": [b"\0"]}), None, "the file must have a column 'message', got x"),
        (pa.table({"message": ["a"]}), None, "the column 'message' must hold bytes, got string"),
        (pa.table({"message": [b"\0"]}), "device", "the file must have a column 'device', got message"),
    ],
)
def test_tables_without_the_columns(table: Any, id_column: str | None, message: str, tmp_path: Path) -> None:
    pq.write_table(table, tmp_path / "m.parquet")
    with pytest.raises(DataError, match=message):
        decode_file(deployment_of_name("table").decoder(), tmp_path / "m.parquet", id_column)


def test_an_index_must_be_a_whole_number(tmp_path: Path) -> None:
    deployment = deployment_of_name(WITH_INDEX)
    header = Header(deployment.hash_start, 0).to_bytes()
    for column in (["1"], [1.0]):
        pq.write_table(pa.table({"message": [b"\0"], "index": column}).replace_schema_metadata({METADATA: header}), tmp_path / "m.parquet")
        with pytest.raises(DataError, match="the column 'index' must hold integers"):
            decode_file(deployment.decoder(), tmp_path / "m.parquet")


def test_records_have_no_columns(tmp_path: Path) -> None:
    _, paths = files_of(deployment_of_name("table"), tmp_path)
    with pytest.raises(ValueError, match="id_column must be left out for files of records"):
        decode_file(deployment_of_name("table").decoder(), paths[0], "device")
    with pytest.raises(FileNotFoundError):
        decode_file(deployment_of_name("table").decoder(), tmp_path / "none.parquet")


def test_an_empty_file_has_no_estimate(tmp_path: Path) -> None:
    deployment = deployment_of_name("table")
    for name in ("m.qbm", "m.parquet"):
        assert write_messages(deployment, tmp_path / name, []) == 0
        decoder = decode_file(deployment.decoder(), tmp_path / name)
        with pytest.raises(DataError, match="got none of 0"):
            decoder.estimate()


def test_a_modular_sum_survives_and_others_are_refused(tmp_path: Path) -> None:
    residues = np.array([0, 5, 2**32 - 1], dtype=np.uint64)
    write_sum(tmp_path / "s.npy", residues)
    assert (read_sum(tmp_path / "s.npy") == residues).all()
    for array in (np.zeros((2, 2), dtype=np.int64), np.array([math.nan]), np.array(["a"])):
        np.save(tmp_path / "s.npy", array)
        with pytest.raises(DataError, match="the file must hold one array of whole numbers"):
            read_sum(tmp_path / "s.npy")
    (tmp_path / "s.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(DataError, match="not an npy array"):
        read_sum(tmp_path / "s.npy")
