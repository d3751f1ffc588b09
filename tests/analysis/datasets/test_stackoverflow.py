"""StackOverflow from tiny files of TensorFlow Federated's formats."""

import json
import sqlite3
import struct
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quietbits.analysis.datasets.stackoverflow import read_example, stackoverflow_tags, stackoverflow_words
from quietbits.errors import DataError, MissingExtraError

# The posts are those of TensorFlow Federated's synthetic data, with a post without known words.
POSTS = {
    "00000002": [
        ("css3 does finally define the", "creating rounded corners using css", "css|cross-browser|rounded-corners|css3"),
        ("edit :", "creating rounded corners using css", "css"),
    ],
    "00000001": [("thanks .", "writing to / system / framework in emulator", "android|android-emulator|monkey")],
}
TEST = [("the css", "using the using", "monkey|css"), ("", "", "")]
WORDS, TAGS = ["the", "css", "using", "edit"], {"css": 9, "monkey": 7, "git": 8}


def field(number: int, content: bytes) -> bytes:
    length, digits = len(content), []
    while length > 127:
        digits.append(length & 127 | 128)
        length >>= 7
    return bytes([number << 3 | 2, *digits, length]) + content


def example(post: tuple[str, str, str]) -> bytes:
    texts = dict(zip(("tokens", "title", "tags", "type"), (*post, "question"), strict=True))
    entries = [field(1, name.encode()) + field(2, field(1, field(1, text.encode()))) for name, text in texts.items()]
    score = field(1, b"score") + field(2, field(3, field(1, b"\xff" * 9 + b"\x01")))
    return field(1, b"".join(field(1, entry) for entry in (*entries, score)))


def write_counts(folder: Path) -> Path:
    (folder / "stackoverflow.word_count").write_text("".join(f"{word}\t{9 - place}\n" for place, word in enumerate(WORDS)))
    (folder / "stackoverflow.tag_count").write_text(json.dumps(TAGS))
    return folder


def write_sqlite(folder: Path, *, changed: bytes | str | None = None) -> Path:
    with closing(sqlite3.connect(write_counts(folder) / "stackoverflow.sqlite")) as connection, connection:
        connection.execute(
            "CREATE TABLE examples (split_name TEXT NOT NULL, client_id TEXT NOT NULL, serialized_example_proto BLOB NOT NULL)"
        )
        connection.execute(
            "CREATE TABLE client_metadata (client_id TEXT NOT NULL, split_name TEXT NOT NULL, num_examples INTEGER NOT NULL)"
        )
        for user, posts in POSTS.items():
            connection.execute("INSERT INTO client_metadata VALUES (?, 'train', ?)", (user, len(posts)))
            rows = [("train", user, example(post) if changed is None else changed) for post in posts]
            connection.executemany("INSERT INTO examples VALUES (?, ?, ?)", rows)
        connection.execute("INSERT INTO client_metadata VALUES ('00000001', 'test', 2)")
        connection.executemany("INSERT INTO examples VALUES ('test', '00000001', ?)", [(example(post),) for post in TEST])
    return folder


def write_h5(folder: Path) -> Path:
    h5py = pytest.importorskip("h5py")
    for name, users in (("train", POSTS), ("test", {"00000001": TEST})):
        with h5py.File(write_counts(folder) / f"stackoverflow_{name}.h5", "w") as file:
            for user, posts in users.items():
                group = file.create_group(f"examples/{user}")
                for place, key in enumerate(("tokens", "title", "tags")):
                    group[key] = [post[place].encode() for post in posts]
    return folder


@pytest.mark.parametrize("write", [write_sqlite, write_h5])
def test_sentences_become_shares_of_words_and_tags(tmp_path: Path, write: Any) -> None:
    data = stackoverflow_tags(write(tmp_path), words=3, tags=2, most_examples=5, test_examples=9)
    assert (data.clients, data.features, data.classes) == (2, 3, 2)
    first, second = (data.client_examples(client) for client in range(2))
    assert (first.inputs.tolist(), first.labels.tolist()) == ([[0.0, 0.0, 0.0]], [[0, 0]])
    assert (second.inputs * [[10], [7]]).tolist() == pytest.approx(np.array([[1, 1, 1], [0, 1, 1]]))
    assert second.labels.tolist() == [[1, 0], [1, 0]]
    assert (data.test.inputs * 5).tolist() == pytest.approx(np.array([[2, 1, 2], [0, 0, 0]]))
    assert data.test.labels.tolist() == [[1, 0], [0, 0]]
    assert data.cohort([1, 0]).sizes.tolist() == [2, 1]
    short = stackoverflow_tags(tmp_path, words=3, tags=2, most_examples=1, test_examples=1)
    assert len(short.client_examples(1)) == len(short.test) == 1


@pytest.mark.parametrize("write", [write_sqlite, write_h5])
def test_sentences_become_numbers_of_words_and_of_those_that_follow(tmp_path: Path, write: Any) -> None:
    data = stackoverflow_words(write(tmp_path), words=3, positions=4)
    assert (data.clients, data.features, data.classes) == (2, 4, 7)
    # Tokens 1 to 3 are "the", "css" and "using"; 4 is any other word, 5 the beginning and 6 the end.
    first, second = (data.client_examples(client) for client in range(2))
    assert (first.inputs.tolist(), first.labels.tolist()) == ([[5, 4, 4, 6]], [[4, 4, 6, -1]])
    # Only four of the five words fit, without the end token.
    assert second.inputs.tolist() == [[5, 4, 4, 4], [5, 4, 4, 6]]
    assert second.labels.tolist() == [[4, 4, 4, 4], [4, 4, 6, -1]]
    # The test set does not score end tokens and unknown words.
    assert data.test.inputs.tolist() == [[5, 1, 2, 6], [5, 6, 0, 0]]
    assert data.test.labels.tolist() == [[1, 2, -1, -1], [-1, -1, -1, -1]]


def test_next_words_need_no_tags_and_are_of_the_papers_size(tmp_path: Path) -> None:
    write_sqlite(tmp_path)
    (tmp_path / "stackoverflow.tag_count").unlink()
    (tmp_path / "stackoverflow.word_count").write_text("".join(f"word{place} 1\n" for place in range(10_000)))
    data = stackoverflow_words(tmp_path)
    assert (data.features, data.classes) == (20, 10_004)
    with pytest.raises(ValueError, match="positions must be"):
        stackoverflow_words(tmp_path, positions=0)


def test_tags_are_ordered_by_their_counts(tmp_path: Path) -> None:
    assert stackoverflow_tags(write_sqlite(tmp_path), words=3, tags=3).test.labels.tolist() == [[1, 0, 1], [0, 0, 0]]


def test_a_message_of_tensorflow_is_read() -> None:
    # TensorFlow's tutorial on TFRecord prints this message.
    message = (
        b"\nR\n\x14\n\x08feature2\x12\x08\n\x06\n\x04goat\n\x14\n\x08feature3\x12\x08\x12\x06\n\x04[\xd3|?"
        b"\n\x11\n\x08feature0\x12\x05\x1a\x03\n\x01\x00\n\x11\n\x08feature1\x12\x05\x1a\x03\n\x01\x04"
    )
    content = read_example(message)
    (number,) = content.pop("feature3")
    assert number == struct.unpack("<f", struct.pack("<f", 0.9876))[0]
    assert content == {"feature0": [0], "feature1": [4], "feature2": [b"goat"]}
    for length in range(1, len(message)):
        with pytest.raises(DataError, match="is not an Example message of TensorFlow"):
            read_example(message[:length])


def test_negative_and_single_numbers_are_read() -> None:
    def feature(content: bytes) -> dict[str, Any]:
        return read_example(field(1, field(1, field(1, b"n") + field(2, content))))

    assert feature(field(3, b"\x08" + b"\xff" * 9 + b"\x01")) == {"n": [-1]}
    assert feature(field(3, field(1, b"\xff" * 9 + b"\x01\x05"))) == {"n": [-1, 5]}
    assert feature(field(2, b"\x0d" + struct.pack("<f", 0.5))) == {"n": [0.5]}
    assert feature(b"") == {"n": []}


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (b"\x0a\xff\xff\xff\xff\x0f", "a field of 4294967295 bytes begins 0 bytes before the end"),
        (b"\x0a" + b"\xff" * 11, "a number is longer than 10 bytes"),
        (b"\x0b", "a field has the wire type 3"),
        (field(1, field(1, field(1, b"n"))), "not enough values"),
        (field(1, field(1, field(1, b"\xff") + field(2, b""))), "invalid start byte"),
    ],
)
def test_a_damaged_message_is_refused(message: bytes, fault: str) -> None:
    with pytest.raises(DataError, match=f"is not an Example message of TensorFlow: .*{fault}"):
        read_example(message)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ("text", "sqlite: an example is not an Example message of TensorFlow: it is no blob"),
        (b"\x0b", "sqlite: an example is not an Example message of TensorFlow"),
        (b"", "sqlite: an example has no 'tokens'"),
        (field(1, field(1, field(1, b"tokens") + field(2, b""))), r"must have one text in every feature, one has \[\]"),
    ],
)
def test_damaged_examples_are_refused(tmp_path: Path, changed: bytes | str, message: str) -> None:
    data = stackoverflow_tags(write_sqlite(tmp_path, changed=changed), words=3, tags=2)
    with pytest.raises(DataError, match=message):
        data.client_examples(0)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path) / "stackoverflow.sqlite"
    whole = path.read_bytes()
    for content in (b"", b"no database", b"no database at all, but long enough for a header of a database: " * 2):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"stackoverflow\.sqlite: cannot be read as TensorFlow Federated's database: it does not begin"):
            stackoverflow_tags(tmp_path, words=3, tags=2)
    # sqlite reads the first of these truncated files without an error, and finds fewer users.
    for length in (len(whole) - 1, 2 * 4096, 4096, 2000, 100):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=rf"sqlite: is cut off: it has {length} bytes, of {len(whole)} by its header"):
            stackoverflow_tags(tmp_path, words=3, tags=2)
    # sqlite's message contains a name that is no valid text.
    assert b"CREATE TABLE" in whole
    path.write_bytes(whole.replace(b"CREATE TABLE", b"CREATE \xf9ABLE"))
    with pytest.raises(DataError, match=r"stackoverflow\.sqlite: cannot be read as TensorFlow Federated's database: 'utf-8' codec"):
        stackoverflow_tags(tmp_path, words=3, tags=2)
    # sqlite before version 3.7 leaves the header's page count zero.
    path.write_bytes(whole[:92] + bytes(4) + whole[96:-1])
    with pytest.raises(DataError, match=rf"is cut off: it has {len(whole) - 1} bytes, of {len(whole)} by"):
        stackoverflow_tags(tmp_path, words=3, tags=2)
    path.write_bytes(whole)
    with pytest.raises(DataError, match="word_count: has 4 different words in its first 5 lines: ask for fewer words"):
        stackoverflow_tags(tmp_path, words=5, tags=2)
    with pytest.raises(DataError, match="tag_count: has 3 tags: ask for fewer"):
        stackoverflow_tags(tmp_path, words=3, tags=4)
    (tmp_path / "stackoverflow.tag_count").write_text('{"css": null}')
    with pytest.raises(DataError, match="tag_count: must be a JSON object of tags and their counts"):
        stackoverflow_tags(tmp_path, words=3, tags=1)
    (tmp_path / "stackoverflow.word_count").write_bytes(b"the 1\n\n\xff")
    with pytest.raises(DataError, match="word_count: must have a word and its count in every line"):
        stackoverflow_tags(tmp_path, words=3, tags=1)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("INSERT INTO client_metadata SELECT * FROM client_metadata", "its table of users must have different texts"),
        ("UPDATE client_metadata SET client_id = x'00' WHERE rowid = 1", "its table of users must have different texts"),
        ("UPDATE client_metadata SET num_examples = 'many'", "its table of users must have different texts"),
        (
            "UPDATE client_metadata SET num_examples = num_examples + 1",
            "user '00000002' has 3 posts by the table of users, 2 were read",
        ),
        ("DELETE FROM examples WHERE rowid = 1", "user '00000002' has 2 posts by the table of users, 1 were read"),
    ],
)
def test_posts_are_as_many_as_the_table_of_users_says(tmp_path: Path, statement: str, message: str) -> None:
    write_sqlite(tmp_path)
    with closing(sqlite3.connect(tmp_path / "stackoverflow.sqlite")) as connection, connection:
        connection.execute(statement)
    with pytest.raises(DataError, match=message):
        stackoverflow_tags(tmp_path, words=3, tags=2).client_examples(1)


def test_a_user_of_hdf5_with_columns_of_different_lengths_is_refused(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(write_h5(tmp_path) / "stackoverflow_train.h5", "a") as file:
        group = file["examples/00000001"]
        tokens = [*group["tokens"][:], b"one more"]
        del group["tokens"]
        group["tokens"] = tokens
    # All columns have a value only for the first post.
    with pytest.raises(DataError, match="a user has 2, 1, 1 tokens, titles and tags"):
        stackoverflow_tags(tmp_path, words=3, tags=2, most_examples=1).client_examples(0)


def test_a_byte_order_mark_is_no_part_of_the_most_frequent_word(tmp_path: Path) -> None:
    write_sqlite(tmp_path)
    expected = stackoverflow_tags(tmp_path, words=3, tags=2).client_examples(0).inputs
    path = tmp_path / "stackoverflow.word_count"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert (stackoverflow_tags(tmp_path, words=3, tags=2).client_examples(0).inputs == expected).all()


def test_a_database_is_not_written(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path) / "stackoverflow.sqlite"
    path.chmod(0o444)
    before = path.read_bytes()
    stackoverflow_tags(tmp_path, words=3, tags=2).client_examples(1)
    assert path.read_bytes() == before
    assert sorted(item.name for item in tmp_path.iterdir()) == [
        "stackoverflow.sqlite",
        "stackoverflow.tag_count",
        "stackoverflow.word_count",
    ]


def test_absent_files_and_libraries_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"no file stackoverflow\.word_count; download it from https://.*word_count\.tar\.bz2"):
        stackoverflow_tags(tmp_path)
    write_counts(tmp_path)
    with pytest.raises(DataError, match=r"no file stackoverflow_train\.h5 or stackoverflow\.sqlite; download .*sqlite\.lzma"):
        stackoverflow_tags(tmp_path, words=3, tags=2)
    for name in ("train", "test"):
        (tmp_path / f"stackoverflow_{name}.h5").write_bytes(b"no HDF5")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "h5py", None)
        with pytest.raises(MissingExtraError, match=r"h5py must be installed for .*train\.h5, but not for stackoverflow\.sqlite, "):
            stackoverflow_tags(tmp_path, words=3, tags=2)


def test_damaged_h5_files_are_refused(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = write_h5(tmp_path) / "stackoverflow_train.h5"
    whole = path.read_bytes()
    for content in (b"no HDF5", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"train\.h5: cannot be read as TensorFlow Federated's HDF5"):
            stackoverflow_tags(tmp_path, words=3, tags=2)
    path.write_bytes(whole)
    with h5py.File(path, "a") as file:
        del file["examples/00000001/tags"]
        for name in ("tokens", "title", "tags"):
            del file[f"examples/00000002/{name}"]
            # The file claims a size without having the data.
            file.create_dataset(f"examples/00000002/{name}", shape=(2**31,), dtype="S5", chunks=(16,))
    data = stackoverflow_tags(tmp_path, words=3, tags=2, most_examples=4)
    with pytest.raises(DataError, match=r"train\.h5: cannot be read as TensorFlow Federated's HDF5: .*tags"):
        data.client_examples(0)
    assert len(data.client_examples(1)) == 4
