"""FEMNIST and Shakespeare in LEAF's format (Caldas et al. 2018): a client for each user."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_integer
from ...arrays import IntegerArray
from ...errors import DataError
from ...files import shown_path
from .federated_data import Examples, FederatedData, divided_data
from .splits import Split, ordered_split
from .stored_files import read_whole

PIXELS, SIDE, CLASSES, WHITE = 784, 28, 62, 255
# Largest size of a file; a file of a hundred writers has about 1.5e8 bytes.
MOST_FILE_BYTES = 2**31
# Number of first bytes of a file that must contain the first input.
BEGINNING_BYTES = 2**20
SOURCE = "https://github.com/TalwalkarLab/leaf, folder data/{0}: ./preprocess.sh -s niid --sf 1.0 -k 0 -t sample"
# Characters of Shakespeare, in the order of TensorFlow Federated's tutorials. Numbers for padding, other characters, beginning and end
# bring the total to 90, as in Reddi et al. 2021, *Adaptive federated optimization*; padding is 0, and of the numbers for other characters,
# beginning and end this reader uses only the first.
CHARACTERS = "dhlptx@DHLPTX $(,048cgkoswCGKOSW[_#'/37;?bfjnrvzBFJNRVZ\"&*.26:\naeimquyAEIMQUY]!%)-159\r"
READ_CHARACTERS, OTHER, CHARACTER_NUMBERS = 80, len(CHARACTERS) + 1, len(CHARACTERS) + 4
MOST_TEST_EXAMPLES = 10**7

User = tuple[NDArray[np.uint8], IntegerArray]
ReadUser = Callable[[Path, str, int, dict[str, Any]], User]


def femnist_data(folder: Path) -> FederatedData:
    """Read FEMNIST from LEAF's JSON files; each writer of the training files is a client.

    The folder has the subfolders ``train`` and ``test``. Clients are in the order of the files' names and of the users in each file. Pixels
    are from 0 to 1, 1 being white, and are kept in multiples of 1/255, their original resolution.
    """
    train, test = (_read_folder(folder / part, "femnist", _images) for part in ("train", "test"))
    held = Examples(test.inputs / WHITE, test.labels)
    return divided_data(train.inputs, train.labels, held, train.split, CLASSES, (SIDE, SIDE, 1), unit=WHITE)


def shakespeare_data(folder: Path, *, test_examples: int = 10_000) -> FederatedData:
    """Read Shakespeare's plays from LEAF's JSON files; each role is a client.

    The folders are as in `femnist_data`. Inputs are 80 characters and the label is the next character, as numbers from 0 to 89. The data
    keep at most `test_examples` test examples, from 1 to 10**7, at equal distances.
    """
    most = check_integer("test_examples", test_examples, low=1, high=MOST_TEST_EXAMPLES)
    train, test = (_read_folder(folder / part, "shakespeare", _lines) for part in ("train", "test"))
    kept = np.linspace(0, len(test.labels) - 1, min(most, len(test.labels))).astype(np.int64)
    held = Examples(test.inputs[kept].astype(float), test.labels[kept])
    return divided_data(train.inputs, train.labels, held, train.split, CHARACTER_NUMBERS)


def leaf_inputs(folder: Path) -> str | None:
    """Return the kind of LEAF's first training inputs: ``"images"``, ``"texts"`` or None."""
    path = min((file for file in (folder / "train").glob("*.json") if file.is_file()), default=None)
    if path is None:
        return None
    with path.open("rb") as file:
        match = _FIRST_INPUT.search(file.read(BEGINNING_BYTES))
    try:
        first = None if match is None else json.loads(match[1])
    except ValueError:
        return None
    if isinstance(first, list):
        return "images" if len(first) == PIXELS and not any(isinstance(pixel, str) for pixel in first) else None
    return "texts" if isinstance(first, str) and len(first) == READ_CHARACTERS else None


@dataclass(frozen=True, eq=False)
class _Users:
    """The users of a folder: their numbers of examples, and all inputs and labels."""

    counts: IntegerArray
    inputs: NDArray[np.uint8]
    labels: IntegerArray

    @property
    def split(self) -> Split:
        """The split with a client for each user; some users may have no examples."""
        return ordered_split(self.counts)


def _read_folder(folder: Path, name: str, read: ReadUser) -> _Users:
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise DataError(f"{shown_path(folder)}: there are no json files; make them with {SOURCE.format(name)}")
    files: dict[str, Path] = {}
    inputs, labels = [], []
    for path in paths:
        for user, own, classes in _read_file(path, read):
            if user in files:
                raise DataError(f"{shown_path(path)}: the user {user!r} is in {files[user].name} too: one user is one client")
            files[user] = path
            inputs.append(own)
            labels.append(classes)
    counts = np.array([len(classes) for classes in labels], dtype=np.int64)
    if not counts.sum():
        raise DataError(f"{shown_path(folder)}: the files have no examples")
    return _Users(counts, np.concatenate(inputs), np.concatenate(labels))


def _read_file(path: Path, read: ReadUser) -> list[tuple[str, NDArray[np.uint8], IntegerArray]]:
    where = shown_path(path)
    try:
        content = json.loads(read_whole(path, MOST_FILE_BYTES), object_pairs_hook=_without_duplicates)
        users, counts, data = content["users"], content["num_samples"], content["user_data"]
        if not all(isinstance(user, str) for user in users) or len(set(users)) < len(users):
            raise DataError(f"{where}: users must be different texts, some are not")
        if len(counts) == len(users) == len(data) and set(data) != set(users):
            raise DataError(f"{where}: the data are not those of its users: {min(set(users) - set(data))!r} has none")
        if not len(counts) == len(users) == len(data):
            raise DataError(f"{where}: has {len(users)} users, {len(counts)} numbers of samples and data of {len(data)} users")
        users_read = [(user, *read(path, user, count, data[user])) for user, count in zip(users, counts, strict=True)]
    except DataError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DataError(f"{where}: is not a file of LEAF, {type(error).__name__}: {error}") from error
    return users_read


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        raise ValueError(f"{len(pairs) - len(unique)} keys of an object occur twice")
    return unique


def _check_counts(path: Path, user: str, count: int, data: dict[str, Any], inputs: str) -> None:
    """Compare sizes before any array is made."""
    if len(data["x"]) != count or len(data["y"]) != count:
        raise DataError(
            f"{shown_path(path)}: {user!r} should have {count} examples, it has {len(data['x'])} {inputs} and {len(data['y'])} labels"
        )


def _images(path: Path, user: str, count: int, data: dict[str, Any]) -> User:
    """Return a user's pixels and labels."""
    _check_counts(path, user, count, data, "images")
    if not count:
        return np.empty((0, PIXELS), dtype=np.uint8), np.empty(0, dtype=np.int64)
    pixels = np.asarray(data["x"], dtype=float).reshape(count, -1)
    labels = np.asarray(data["y"])
    if pixels.shape[1] != PIXELS:
        raise DataError(f"{shown_path(path)}: images must have {PIXELS} pixels, those of {user!r} have {pixels.shape[1]}")
    if not np.all((pixels >= 0) & (pixels <= 1)):
        raise DataError(f"{shown_path(path)}: pixels must be from 0 to 1, those of {user!r} are from {pixels.min():g} to {pixels.max():g}")
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= CLASSES:
        raise DataError(f"{shown_path(path)}: labels must be whole numbers from 0 to {CLASSES - 1}, those of {user!r} are not")
    return np.rint(pixels * WHITE).astype(np.uint8), labels.astype(np.int64)


def _lines(path: Path, user: str, count: int, data: dict[str, Any]) -> User:
    """Return the numbers of a user's characters, and the numbers of the next characters."""
    _check_counts(path, user, count, data, "lines")
    for texts, length in ((data["x"], READ_CHARACTERS), (data["y"], 1)):
        other = next((text for text in texts if not isinstance(text, str) or len(text) != length), None)
        if other is not None:
            raise DataError(f"{shown_path(path)}: {user!r} must have texts of {length} characters, one is {other!r:.100}")
    return _numbers("".join(data["x"])).reshape(count, READ_CHARACTERS), _numbers("".join(data["y"])).astype(np.int64)


def _numbers(text: str) -> NDArray[np.uint8]:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    return np.asarray(_TABLE[np.minimum(codes, len(_TABLE) - 1)])


# The table holds the number of each code below 128, and the common number of all other codes.
_TABLE = np.full(129, OTHER, dtype=np.uint8)
_TABLE[[ord(character) for character in CHARACTERS]] = np.arange(1, len(CHARACTERS) + 1)
# A user's first input is an image or a text. Users may have no inputs.
_FIRST_INPUT = re.compile(rb'"x"\s*:\s*\[\s*(\[[^\[\]]*\]|"(?:[^"\\]|\\.)*")')
