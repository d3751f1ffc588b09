"""FEMNIST as LEAF writes it (Caldas et al. 2018, *LEAF: a benchmark for federated settings*): a client for each writer."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import IntegerArray
from ...errors import DataError
from .divided_data import divided_data
from .federated_data import Examples, FederatedData
from .splits import writer_split
from .stored_files import read_whole

PIXELS, SIDE, CLASSES, WHITE = 784, 28, 62, 255
# A file of a hundred writers has about 1.5e8 bytes.
MOST_FILE_BYTES = 2**31
SOURCE = "https://github.com/TalwalkarLab/leaf, folder data/femnist: ./preprocess.sh -s niid --sf 1.0 -k 0 -t sample"


def femnist_data(folder: Path) -> FederatedData:
    """Read FEMNIST: the folder has ``train`` and ``test`` with LEAF's JSON files, and a client is a writer of the training files.

    Clients are in the order of the files' names and of the users in them. Pixels are from 0 to 1, 1 being white, and are kept to 1/255,
    which is how they were made.
    """
    train, test = (_read_folder(folder / part) for part in ("train", "test"))
    held = Examples(test[1] / WHITE, test[2])
    return divided_data(train[1], train[2], held, writer_split(train[0]), CLASSES, (SIDE, SIDE, 1), unit=WHITE)


Read = tuple[list[str], NDArray[np.uint8], IntegerArray]


def _read_folder(folder: Path) -> Read:
    """Return the writer of each example, its pixels and its label."""
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise DataError(f"{folder}: there are no json files; make them with {SOURCE}")
    writers: list[str] = []
    images, labels = [], []
    for path in paths:
        for user, inputs, classes in _read_file(path):
            writers += [user] * len(classes)
            images.append(inputs)
            labels.append(classes)
    if not writers:
        raise DataError(f"{folder}: the files have no examples")
    return writers, np.concatenate(images), np.concatenate(labels)


def _read_file(path: Path) -> list[tuple[str, NDArray[np.uint8], IntegerArray]]:
    try:
        content = json.loads(read_whole(path, MOST_FILE_BYTES))
        users, counts, data = content["users"], content["num_samples"], content["user_data"]
        found = [(user, *_read_user(path, user, count, data[user])) for user, count in zip(users, counts, strict=True)]
    except DataError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not a file of LEAF, {type(error).__name__}: {error}") from error
    return found


def _read_user(path: Path, user: str, count: int, data: dict[str, Any]) -> tuple[NDArray[np.uint8], IntegerArray]:
    """Return pixels and labels; sizes are compared before anything is made from them."""
    if len(data["x"]) != count or len(data["y"]) != count:
        raise DataError(f"{path}: {user!r} should have {count} examples, it has {len(data['x'])} images and {len(data['y'])} labels")
    pixels = np.asarray(data["x"], dtype=float).reshape(count, -1)
    labels = np.asarray(data["y"])
    if count and pixels.shape[1] != PIXELS:
        raise DataError(f"{path}: images must have {PIXELS} pixels, those of {user!r} have {pixels.shape[1]}")
    if not np.all((pixels >= 0) & (pixels <= 1)):
        raise DataError(f"{path}: pixels must be from 0 to 1, those of {user!r} are from {pixels.min():g} to {pixels.max():g}")
    if count and (labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= CLASSES):
        raise DataError(f"{path}: labels must be whole numbers from 0 to {CLASSES - 1}, those of {user!r} are not")
    return np.rint(pixels.reshape(count, PIXELS) * WHITE).astype(np.uint8), labels.astype(np.int64)
