"""StackOverflow's questions, words and tags from TensorFlow Federated's files.

Inputs and labels follow Reddi et al. 2021 (*Adaptive Federated Optimization*). For tags, which DP-REC trains too, an example is a sentence
with its question's title: the inputs are the shares of the most frequent words among all words, and the labels indicate which of the most
frequent tags the question has. For next words, as in linear compression, the inputs are a sentence's words, and the labels the words that
follow.

The module reads TensorFlow's Example messages without TensorFlow. Their format is that of protocol buffers: ``Example {Features features =
1}``, ``Features {map<string, Feature> feature = 1}``, and a Feature is one of ``BytesList = 1``, ``FloatList = 2``, ``Int64List = 3``,
whose values are field 1.
"""

import json
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ...arguments import check_integer
from ...errors import DataError
from ...extras import optional
from ...files import decode_text, shown_path
from .federated_data import Examples, FederatedData
from .stored_files import found_file, read_whole

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
FIXED = {FIXED64: 8, FIXED32: 4}
BYTES, FLOATS, INTEGERS = 1, 2, 3
LONGEST_VARINT = 10

Values = list[bytes] | list[float] | list[int]
SITE = "https://storage.googleapis.com/tff-datasets-public/"
SOURCE = f"{SITE}: stackoverflow.{{0}} and decompress it"
SQLITE, TRAINING_H5, TEST_H5 = "stackoverflow.sqlite", "stackoverflow_train.h5", "stackoverflow_test.h5"
WORDS, TAGS = 10_000, 500
MOST_WORDS, MOST_EXAMPLES = 10**6, 10**7
# Default number of a sentence's words that count, number of special numbers (padding, other words, beginning and end), and largest number
# of words.
POSITIONS, SPECIAL_NUMBERS, MOST_POSITIONS = 20, 4, 10**4
WORD_COUNTS, TAG_COUNTS = "stackoverflow.word_count", "stackoverflow.tag_count"
COUNTS_BYTES = 2**28
# The header of an SQLite database holds the magic bytes, the page size, the change counter, the number of pages, and the change at which
# they were counted.
SQLITE_MAGIC, SQLITE_HEADER, LARGEST_PAGE = b"SQLite format 3\0", struct.Struct(">16sH6xII60xI"), 2**16


def read_example(message: bytes) -> dict[str, Values]:
    """Return the features of a serialised Example by name, or raise `DataError` for damage.

    Examples
    --------
    >>> read_example(bytes.fromhex("0a100a0e0a047461677312060a040a026373"))
    {'tags': [b'cs']}
    """
    try:
        features_by_name: dict[str, Values] = {}
        for features in _parts(message, 1):
            for entry in _parts(features, 1):
                (name,), (feature,) = _parts(entry, 1), _parts(entry, 2)
                features_by_name[name.decode()] = _values(feature)
    except (ValueError, IndexError, struct.error) as error:
        raise DataError(f"is not an Example message of TensorFlow: {error}") from error
    return features_by_name


def _values(feature: bytes) -> Values:
    for kind, content in _fields(feature):
        if not isinstance(content, bytes):
            raise ValueError("a list of values has no length")
        if kind == BYTES:
            return _parts(content, 1)
        if kind == FLOATS:
            return [value for part in _parts(content, 1) for value in struct.unpack(f"<{len(part) // 4}f", part)]
        if kind == INTEGERS:
            return [_signed(value) for _, part in _fields(content) for value in ([part] if isinstance(part, int) else _varints(part))]
    return []


def _parts(message: bytes, number: int) -> list[bytes]:
    """Return the byte contents of all fields with a number."""
    return [content for field, content in _fields(message) if field == number and isinstance(content, bytes)]


def _fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield the number and the content of each field."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        if kind == VARINT:
            content, place = _varint(message, place)
            yield key >> 3, content
            continue
        if kind == LENGTH:
            length, place = _varint(message, place)
        elif kind in FIXED:
            length = FIXED[kind]
        else:
            raise ValueError(f"a field has the wire type {kind}")
        if length > len(message) - place:
            raise ValueError(f"a field of {length} bytes begins {len(message) - place} bytes before the end")
        yield key >> 3, message[place : place + length]
        place += length


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """Return a number of variable length and the place of its end."""
    number = 0
    for count in range(LONGEST_VARINT):
        byte = message[place + count]
        number |= (byte & 127) << (7 * count)
        if byte < 128:
            return number, place + count + 1
    raise ValueError(f"a number is longer than {LONGEST_VARINT} bytes")


def _varints(message: bytes) -> Iterator[int]:
    place = 0
    while place < len(message):
        number, place = _varint(message, place)
        yield number


def _signed(number: int) -> int:
    """Return the signed number of a 64-bit two's complement."""
    number &= 2**64 - 1
    return number - 2**64 if number >= 2**63 else number


@dataclass(frozen=True)
class Post:
    """A sentence of a question or an answer.

    Attributes
    ----------
    tokens : str
        Words of the sentence, with spaces between them.
    title : str
        Title of the question.
    tags : str
        Tags of the question, with ``|`` between them.
    """

    tokens: str
    title: str
    tags: str


@dataclass(frozen=True, eq=False)
class Posts:
    """The posts of two files, or of two parts of a file.

    Attributes
    ----------
    users : tuple of str
        Authors of the training posts, in the order of their names.
    of_user : callable
        Function of a user and a number that returns at most that many of the user's first training posts.
    test : callable
        Function of a number that returns at most that many of the first test posts.
    """

    users: tuple[str, ...]
    of_user: Callable[[str, int], list[Post]]
    test: Callable[[int], list[Post]]


def stackoverflow_tags(
    folder: Path, *, words: int = WORDS, tags: int = TAGS, most_examples: int = 1000, test_examples: int = 10_000
) -> FederatedData:
    """Read tag prediction on StackOverflow; labels have the shape (n, tags).

    Parameters
    ----------
    folder : Path
        Folder with ``stackoverflow.word_count`` and ``stackoverflow.tag_count``, and either ``stackoverflow.sqlite`` or, if h5py is
        installed, ``stackoverflow_train.h5`` and ``stackoverflow_test.h5``. A client's posts are read on demand.
    words, tags : int
        Numbers of the most frequent words and tags that count, from 1 to 10**6.
    most_examples : int
        Largest number of posts per user, from 1 to 10**7; later posts are dropped, because some users have a hundred thousand.
    test_examples : int
        Number of test posts that are read, from 1 to 10**7.
    """
    words = check_integer("words", words, low=1, high=MOST_WORDS)
    tags = check_integer("tags", tags, low=1, high=MOST_WORDS)
    word_places, tag_places = _frequent_words(folder, words), _frequent_tags(folder, tags)

    def examples(posts: list[Post], _: bool) -> Examples:
        return _examples(posts, word_places, tag_places)

    return _of_posts(folder, examples, words, tags, most_examples, test_examples)


def stackoverflow_words(
    folder: Path, *, words: int = WORDS, positions: int = POSITIONS, most_examples: int = 1000, test_examples: int = 10_000
) -> FederatedData:
    """Read next-word prediction on StackOverflow: numbers of words and of the next words.

    Number 0 is padding. The next numbers stand for the words, most frequent word first, then for all other words, the beginning and the
    end. Labels have the shape (n, positions), with -1 at positions without a label. These are the positions after the end, and in the test
    also the end and other words, which do not count in the accuracy that papers report.

    Parameters
    ----------
    folder, most_examples, test_examples
        Folder and numbers of examples, as in `stackoverflow_tags`; the folder needs no file of tags.
    words : int
        Number of the most frequent words with their own numbers, from 1 to 10**6.
    positions : int
        Largest number of words of a sentence, from 1 to 10**4; later words are dropped.
    """
    words = check_integer("words", words, low=1, high=MOST_WORDS)
    positions = check_integer("positions", positions, low=1, high=MOST_POSITIONS)
    places = _frequent_words(folder, words)

    def examples(posts: list[Post], test: bool) -> Examples:
        return _sentences(posts, places, positions, test=test)

    return _of_posts(folder, examples, positions, words + SPECIAL_NUMBERS, most_examples, test_examples)


def stackoverflow_users(folder: Path) -> int:
    """Return the number of users of StackOverflow's training posts in a folder."""
    return len(_posts(folder).users)


def _posts(folder: Path) -> Posts:
    posts = _sqlite_posts(folder / SQLITE) if (folder / SQLITE).is_file() else _h5_posts(folder)
    if not posts.users:
        raise DataError(f"{shown_path(folder)}: the files have no users")
    return posts


def _of_posts(
    folder: Path, examples: Callable[[list[Post], bool], Examples], features: int, classes: int, most_examples: int, test_examples: int
) -> FederatedData:
    """Return data whose examples are made from posts, with a flag for the test's posts."""
    most = check_integer("most_examples", most_examples, low=1, high=MOST_EXAMPLES)
    test_examples = check_integer("test_examples", test_examples, low=1, high=MOST_EXAMPLES)
    posts = _posts(folder)

    def client(number: int) -> Examples:
        user = posts.users[check_integer("client", number, low=0, high=len(posts.users) - 1)]
        return examples(posts.of_user(user, most), False)

    return FederatedData(len(posts.users), features, classes, examples(posts.test(test_examples), True), client)


def _sentences(posts: list[Post], places: dict[str, int], positions: int, *, test: bool) -> Examples:
    other = len(places) + 1
    first, last = other + 1, other + 2
    numbers = np.zeros((len(posts), positions + 1), dtype=np.int64)
    for row, post in enumerate(posts):
        said = [first, *(places.get(word, other - 1) + 1 for word in post.tokens.split()), last][: positions + 1]
        numbers[row, : len(said)] = said
    following = numbers[:, 1:]
    asked = (following > 0) & ~(test & ((following == other) | (following == last)))
    return Examples(numbers[:, :-1].astype(float), np.where(asked, following, -1))


def _examples(posts: list[Post], words: dict[str, int], tags: dict[str, int]) -> Examples:
    inputs, labels = np.zeros((len(posts), len(words))), np.zeros((len(posts), len(tags)), dtype=np.int64)
    for row, post in enumerate(posts):
        said = f"{post.tokens} {post.title}".split()
        for word in said:
            if word in words:
                inputs[row, words[word]] += 1
        # Rare words count in the total, too.
        inputs[row] /= max(len(said), 1)
        labels[row, [tags[tag] for tag in post.tags.split("|") if tag in tags]] = 1
    return Examples(inputs, labels)


def _frequent_words(folder: Path, count: int) -> dict[str, int]:
    """Return the ranks of the first words of a file of words and their counts.

    The file has a word and its count in every line, the most frequent word first.
    """
    path = found_file(folder, (WORD_COUNTS,), SOURCE.format("word_count.tar.bz2"))
    try:
        lines = decode_text(read_whole(path, COUNTS_BYTES)).removesuffix("\n").split("\n")[:count]
        ranks = {line.split()[0]: place for place, line in enumerate(lines)}
    except (ValueError, IndexError) as error:
        raise DataError(f"{shown_path(path)}: must have a word and its count in every line: {error}") from error
    if len(ranks) < count:
        raise DataError(f"{shown_path(path)}: has {len(ranks)} different words in its first {count} lines: ask for fewer words")
    return ranks


def _frequent_tags(folder: Path, count: int) -> dict[str, int]:
    path = found_file(folder, (TAG_COUNTS,), SOURCE.format("tag_count.tar.bz2"))
    try:
        counts = json.loads(read_whole(path, COUNTS_BYTES))
        ordered = sorted(counts, key=lambda tag: -int(counts[tag]))
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{shown_path(path)}: must be a JSON object of tags and their counts: {error}") from error
    if len(ordered) < count:
        raise DataError(f"{shown_path(path)}: has {len(ordered)} tags: ask for fewer")
    return {tag: place for place, tag in enumerate(ordered[:count])}


def _sqlite_posts(path: Path) -> Posts:
    """Return the posts of a database, which is opened only for reading.

    The database has the tables ``examples`` and ``client_metadata``.
    """
    _check_whole(path)

    def query(statement: str, *values: str | int) -> list[Any]:
        try:
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
                return connection.execute(statement, values).fetchall()
        # SQLite's message may contain a damaged name that is no text.
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise DataError(f"{shown_path(path)}: cannot be read as TensorFlow Federated's database: {error}") from error

    def read(rows: list[Any]) -> list[Post]:
        return [_post(path, serialised) for (serialised,) in rows]

    where = "SELECT serialized_example_proto FROM examples WHERE split_name ="
    users = query("SELECT client_id, num_examples FROM client_metadata WHERE split_name = 'train' ORDER BY client_id")
    counts = _counts_of_users(path, users)

    def of_user(user: str, most: int) -> list[Post]:
        posts = read(query(f"{where} 'train' AND client_id = ? ORDER BY rowid LIMIT ?", user, most))
        if len(posts) != min(counts[user], most):
            raise DataError(f"{shown_path(path)}: the user {user!r} has {counts[user]} posts by the table of users, {len(posts)} were read")
        return posts

    return Posts(tuple(counts), of_user, lambda most: read(query(f"{where} 'test' LIMIT ?", most)))


def _counts_of_users(path: Path, users: list[Any]) -> dict[str, int]:
    """Return the number of posts of each user, after a check that users are distinct texts."""
    counts = {user: count for user, count in users if isinstance(user, str) and isinstance(count, int) and count >= 0}
    if len(counts) < len(users):
        raise DataError(f"{shown_path(path)}: its table of users must have different texts with a number of posts each, some are not")
    return counts


def _check_whole(path: Path) -> None:
    """Refuse a database shorter than its header states, which SQLite would read in part."""
    with path.open("rb") as file:
        header = file.read(SQLITE_HEADER.size)
    if len(header) < SQLITE_HEADER.size or not header.startswith(SQLITE_MAGIC):
        raise DataError(f"{shown_path(path)}: cannot be read as TensorFlow Federated's database: it does not begin as those of sqlite do")
    _, page, changes, pages, counted_at = SQLITE_HEADER.unpack(header)
    page = LARGEST_PAGE if page == 1 else page
    # Old versions of SQLite do not count pages.
    size, stated = path.stat().st_size, page * pages if changes == counted_at else 0
    if size < stated or (page and size % page):
        raise DataError(f"{shown_path(path)}: is cut off: it has {size} bytes, of {max(stated, -(-size // page) * page)} by its header")


def _post(path: Path, serialised: object) -> Post:
    try:
        if not isinstance(serialised, bytes):
            raise DataError("is not an Example message of TensorFlow: it is no blob")
        features = read_example(serialised)
        return Post(*(_text(features[name]) for name in ("tokens", "title", "tags")))
    except KeyError as error:
        raise DataError(f"{shown_path(path)}: an example has no {error}") from error
    except DataError as error:
        raise DataError(f"{shown_path(path)}: an example {error}") from error


def _text(values: list[Any]) -> str:
    if len(values) != 1 or not isinstance(values[0], bytes):
        raise DataError(f"must have one text in every feature, one has {values!r:.50}")
    return values[0].decode(errors="replace")


def _h5_posts(folder: Path) -> Posts:
    """Return the posts of two HDF5 files, with a group for each user in the group ``examples``."""
    source = SOURCE.format("sqlite.lzma")
    train, test = (found_file(folder, (name, SQLITE), source) for name in (TRAINING_H5, TEST_H5))

    def test_posts(most: int) -> list[Post]:
        with _h5_users(test) as users:
            every = (post for user in users for post in _h5_user(test, users[user], most))
            return list(islice(every, most))

    def user_posts(user: str, most: int) -> list[Post]:
        with _h5_users(train) as users:
            return list(_h5_user(train, users[user], most))

    with _h5_users(train) as users:
        names = tuple(sorted(users))
    return Posts(names, user_posts, test_posts)


@contextmanager
def _h5_users(path: Path) -> Iterator[Any]:
    with optional("h5py", f"{shown_path(path)}, but not for {SQLITE}"):
        import h5py
    try:
        with h5py.File(path, "r") as file:
            yield file["examples"]
    except DataError:
        raise
    except (KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise DataError(f"{shown_path(path)}: cannot be read as TensorFlow Federated's HDF5: {error}") from error


def _h5_user(path: Path, group: Any, most: int) -> Iterator[Post]:
    stored = [group[name] for name in ("tokens", "title", "tags")]
    if len({len(column) for column in stored}) != 1:
        raise DataError(f"{shown_path(path)}: a user has {', '.join(str(len(column)) for column in stored)} tokens, titles and tags")
    # Slices end at the end of the file's data, as a size stated in a file is not trusted.
    columns = [column[:most] for column in stored]
    for texts in zip(*columns, strict=True):
        yield Post(*(_text([text]) for text in texts))
