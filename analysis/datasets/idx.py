"""MNIST (LeCun et al.) and EMNIST (Cohen et al. 2017) from their published IDX files."""

import math
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_choice
from ...arrays import IntegerArray
from ...errors import DataError
from ...files import shown_path
from .deformation import Deformation
from .endless_images import EndlessImages
from .federated_data import Examples, FederatedData, divided_data, first_images
from .splits import chosen_split
from .stored_files import found_file, read_whole

SIDE, WHITE = 28, 255
UNSIGNED_BYTES = 8
MNIST_SOURCE = "https://ossci-datasets.s3.amazonaws.com/mnist/"
MNIST_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
EMNIST_SOURCE = "https://www.nist.gov/itl/products-and-services/emnist-dataset"
# Number of classes, and number of the first class, of each part of EMNIST.
EMNIST_PARTS = {"byclass": (62, 0), "bymerge": (47, 0), "balanced": (47, 0), "digits": (10, 0), "mnist": (10, 0), "letters": (26, 1)}


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an array of bytes from an IDX file, or raise `DataError` if the file is damaged."""
    content = read_whole(path)
    if len(content) < 4 or content[:2] != b"\0\0":
        raise DataError(f"{shown_path(path)}: is not an IDX file: it begins with {content[:4].hex() or 'nothing'}")
    kind, dimensions = content[2], content[3]
    if kind != UNSIGNED_BYTES:
        raise DataError(f"{shown_path(path)}: must hold unsigned bytes, type 8, it has type {kind}")
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise DataError(f"{shown_path(path)}: ends in its header, which has {start} bytes; there are {len(content)}")
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    # Python's whole numbers do not overflow, and the array is made only after its length has been checked.
    if math.prod(shape) != len(content) - start:
        raise DataError(f"{shown_path(path)}: its header says {' x '.join(map(str, shape))} bytes, there are {len(content) - start}")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def mnist_images(folder: Path) -> int:
    """Return the number of MNIST's training images in a folder."""
    name = MNIST_FILES[1]
    return len(read_idx(found_file(folder, (name, f"{name}.gz"), MNIST_SOURCE)))


def mnist_data(
    folder: Path,
    clients: int,
    seed: int,
    *,
    images: int | None = None,
    split: str = "iid",
    alpha: float = 1.0,
    samples: int | None = None,
) -> FederatedData:
    """Divide MNIST among clients; the folder has the four files under their published names.

    The split works as in `digits_data`. Pixels are from 0 to 1, and the published test images are the test. Only the first `images` of the
    training images count. With `samples`, each client has this number of newly deformed images (`Deformation.of_side`), and up to 10**9
    clients are possible.
    """
    train, test = _read_pairs(folder, MNIST_FILES, MNIST_SOURCE, classes=10, first=0)
    return _divided("mnist", first_images(*train, images), test, 10, clients, seed, split, alpha, samples)


def emnist_data(
    folder: Path,
    clients: int,
    seed: int,
    *,
    part: str = "byclass",
    images: int | None = None,
    split: str = "iid",
    alpha: float = 1.0,
    samples: int | None = None,
) -> FederatedData:
    """Divide a part of EMNIST among clients: digits or letters in 62, 47, 26 or 10 classes.

    The split works as in `mnist_data`. The files store columns as rows, which the function transposes. The files do not name the writers;
    `femnist_data` has clients that are writers.
    """
    classes, first = EMNIST_PARTS[check_choice("part", part, EMNIST_PARTS)]
    names = tuple(f"emnist-{part}-{half}-{kind}" for half in ("train", "test") for kind in ("images-idx3-ubyte", "labels-idx1-ubyte"))
    train, test = (
        (lying.reshape(-1, SIDE, SIDE).transpose(0, 2, 1).reshape(len(lying), -1), labels)
        for lying, labels in _read_pairs(folder, names, EMNIST_SOURCE, classes, first)
    )
    return _divided(f"emnist, {part}", first_images(*train, images), test, classes, clients, seed, split, alpha, samples)


Pair = tuple[NDArray[np.uint8], IntegerArray]


def _divided(
    name: str, train: Pair, test: Pair, classes: int, clients: int, seed: int, split: str, alpha: float, samples: int | None
) -> FederatedData:
    """Deal out the images, or give each client `samples` deformed images."""
    held = Examples(test[0] / WHITE, test[1])
    if samples is not None:
        endless = EndlessImages(name, *train, held, (SIDE, SIDE), classes, Deformation.of_side(SIDE), unit=WHITE)
        return endless.divided(clients, seed, split=split, alpha=alpha, samples=samples)
    return divided_data(*train, held, chosen_split(train[1], clients, split, alpha, seed), classes, (SIDE, SIDE, 1), unit=WHITE)


def _read_pairs(folder: Path, names: tuple[str, ...], source: str, classes: int, first: int) -> list[Pair]:
    """Return the images, one per row, and the labels from 0, of training and test."""
    paths = [found_file(folder, (name, f"{name}.gz"), source) for name in names]
    return [_read_pair(images, labels, classes, first) for images, labels in (paths[:2], paths[2:])]


def _read_pair(images_path: Path, labels_path: Path, classes: int, first: int) -> Pair:
    images, labels = read_idx(images_path), read_idx(labels_path)
    if images.ndim != 3 or images.shape[1:] != (SIDE, SIDE) or not len(images):
        raise DataError(f"{shown_path(images_path)}: must hold images of {SIDE} x {SIDE}, its shape is {images.shape}")
    if labels.shape != (len(images),):
        raise DataError(f"{shown_path(labels_path)}: must hold a label for each of {len(images)} images, its shape is {labels.shape}")
    low, high = int(labels.min()), int(labels.max())
    if low < first or high >= first + classes:
        raise DataError(f"{shown_path(labels_path)}: labels must be from {first} to {first + classes - 1}, they are from {low} to {high}")
    return images.reshape(len(images), -1), labels.astype(np.int64) - first
