"""Tiny folders of the papers' data in their original formats."""

import json
import pickle
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quietbits.analysis.datasets.found_data import FoundData, found_data

RNG = np.random.default_rng(0)
NAMES = ("mnist", "cifar10", "femnist", "shakespeare", "stackoverflow-tags")
# The folder of the tags also contains these files.
WORDS = "stackoverflow-words"


def write_mnist(folder: Path) -> None:
    for part, count in (("train", 120), ("t10k", 10)):
        labels = bytes(number % 10 for number in range(count))
        (folder / f"{part}-images-idx3-ubyte").write_bytes(bytes([0, 0, 8, 3]) + struct.pack(">3I", count, 28, 28) + RNG.bytes(count * 784))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1]) + struct.pack(">I", count) + labels)


def write_cifar10(folder: Path) -> None:
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        batch = {b"data": RNG.integers(0, 256, (4, 3072), dtype=np.uint8), b"labels": [0, 3, 5, 9]}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=3))


def write_leaf(folder: Path, users: dict[str, Any]) -> None:
    content = {"users": list(users), "num_samples": [len(user["y"]) for user in users.values()], "user_data": users}
    for part in ("train", "test"):
        (folder / part).mkdir()
        (folder / part / "all_data_niid_0_keep_0.json").write_text(json.dumps(content))


def write_femnist(folder: Path) -> None:
    # LEAF's users without examples are also clients.
    users = {f"f{number}": {"x": (RNG.integers(0, 256, (number, 784)) / 255).tolist(), "y": [7] * number} for number in range(4)}
    write_leaf(folder, users)


def write_shakespeare(folder: Path) -> None:
    line = 'He cried: "x": [[1]], and no more was heard of it in all that night, nor ever af'
    assert len(line) == 80
    write_leaf(folder, {"NOBODY": {"x": [], "y": []}, "A": {"x": [line], "y": ["t"]}, "B": {"x": [line, line[::-1]], "y": ["t", "!"]}})


def field(number: int, content: bytes) -> bytes:
    length, digits = len(content), []
    while length > 127:
        digits.append(length & 127 | 128)
        length >>= 7
    return bytes([number << 3 | 2, *digits, length]) + content


def write_tags(folder: Path) -> None:
    (folder / "stackoverflow.word_count").write_text("".join(f"word{place} {20_000 - place}\n" for place in range(10_000)))
    (folder / "stackoverflow.tag_count").write_text(json.dumps({f"tag{place}": 1000 - place for place in range(500)}))
    texts = {"tokens": "word1 word9999 nothing", "title": "word1", "tags": "tag0|tag499"}
    entries = [field(1, name.encode()) + field(2, field(1, field(1, text.encode()))) for name, text in texts.items()]
    post = field(1, b"".join(field(1, entry) for entry in entries))
    with closing(sqlite3.connect(folder / "stackoverflow.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE examples (split_name TEXT, client_id TEXT, serialized_example_proto BLOB)")
        connection.execute("CREATE TABLE client_metadata (client_id TEXT, split_name TEXT, num_examples INTEGER)")
        connection.executemany("INSERT INTO client_metadata VALUES (?, 'train', 1)", [("1",), ("2",), ("3",)])
        connection.executemany("INSERT INTO examples VALUES (?, ?, ?)", [("train", user, post) for user in "123"] + [("test", "1", post)])


WRITERS: dict[str, Callable[[Path], None]] = dict(
    zip(NAMES, (write_mnist, write_cifar10, write_femnist, write_shakespeare, write_tags), strict=True)
)
CLIENTS = dict(zip(NAMES, (120, 20, 4, 3, 3), strict=True))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of data folders, with names other than the data's."""
    folder = tmp_path_factory.mktemp("data")
    for place, (name, write) in enumerate(WRITERS.items()):
        own = folder / f"part{9 - place}"
        own.mkdir()
        write(own)
        assert found_data(own, NAMES) == (FoundData(name, own),)
    return folder
