"""CIFAR-10 from the pickled batches in which it is published (Krizhevsky 2009), which are read without running them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import IntegerArray
from ...errors import DataError
from ...files import shown_path
from .divided_data import divided_data, first_images
from .federated_data import Examples, FederatedData
from .pickled_arrays import read_pickled_dictionary
from .splits import chosen_split
from .stored_files import found_file, read_whole

SIDE, CHANNELS, CLASSES, WHITE = 32, 3, 10, 255
TRAINING_BATCHES, TEST_BATCH = tuple(f"data_batch_{number}" for number in range(1, 6)), "test_batch"
SOURCE = "https://www.cs.toronto.edu/~kriz/cifar.html, CIFAR-10 python version, unpacked,"
# A batch has 3.1e7 bytes.
MOST_FILE_BYTES = 2**28


def cifar10_data(
    folder: Path, clients: int, seed: int, *, images: int | None = None, split: str = "iid", alpha: float = 1.0
) -> FederatedData:
    """Divide CIFAR-10 among clients, as `digits_data` does its digits; the folder has the six batches under their published names.

    Pixels are from 0 to 1; an image's numbers are by row, column and colour. Of the training's, the first `images` count.
    """
    *training, test = _read_batches(folder, (*TRAINING_BATCHES, TEST_BATCH))
    whole, classes = (np.concatenate(part) for part in zip(*training, strict=True))
    pixels, labels = first_images(whole, classes, images)
    dealt = chosen_split(labels, clients, split, alpha, seed)
    held = Examples(test[0] / WHITE, test[1])
    return divided_data(pixels, labels, held, dealt, CLASSES, (SIDE, SIDE, CHANNELS), unit=WHITE)


def cifar10_images(folder: Path) -> int:
    """Return the number of CIFAR-10's training images in a folder."""
    return sum(len(labels) for _, labels in _read_batches(folder, TRAINING_BATCHES))


def _read_batches(folder: Path, names: Sequence[str]) -> list[tuple[NDArray[np.uint8], IntegerArray]]:
    return [_read_batch(path) for path in [found_file(folder, (name,), SOURCE) for name in names]]


def _read_batch(path: Path) -> tuple[NDArray[np.uint8], IntegerArray]:
    batch = read_pickled_dictionary(read_whole(path, MOST_FILE_BYTES), shown_path(path))
    images, labels = (_value(path, batch, key) for key in ("data", "labels"))
    if not isinstance(images, np.ndarray) or images.ndim != 2 or images.shape[1] != CHANNELS * SIDE**2 or not len(images):
        found = images.shape if isinstance(images, np.ndarray) else type(images).__name__
        raise DataError(f"{shown_path(path)}: data must be an array of images of {CHANNELS * SIDE**2} bytes, it is {found}")
    if not isinstance(labels, list) or len(labels) != len(images) or not all(type(one) is int and 0 <= one < CLASSES for one in labels):
        raise DataError(f"{shown_path(path)}: labels must be {len(images)} whole numbers from 0 to {CLASSES - 1}, they are not")
    names = batch.get(b"filenames", batch.get("filenames", labels))
    if not isinstance(names, list) or len(names) != len(images):
        raise DataError(f"{shown_path(path)}: filenames must be as many as the images, {len(images)}, they are not")
    upright = images.reshape(-1, CHANNELS, SIDE, SIDE).transpose(0, 2, 3, 1).reshape(len(images), -1)
    return upright, np.array(labels, dtype=np.int64)


def _value(path: Path, batch: dict[Any, Any], key: str) -> Any:
    """Return what stands under a key, as Python 2 or 3 has written it."""
    for name in (key.encode(), key):
        if name in batch:
            return batch[name]
    raise DataError(f"{shown_path(path)}: there is no {key!r} among {sorted(map(str, batch))}")
