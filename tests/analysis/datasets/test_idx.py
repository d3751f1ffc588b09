"""MNIST and EMNIST from tiny files of the original format.

Damaged files are refused before any array is built.
"""

import gzip
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from quietbits.analysis.datasets.idx import emnist_data, mnist_data, read_idx
from quietbits.analysis.datasets.stored_files import read_whole
from quietbits.errors import DataError

RNG = np.random.default_rng(0)
IMAGES, LABELS = RNG.integers(0, 256, (20, 28, 28), dtype=np.uint8), np.arange(20, dtype=np.uint8) % 10


def idx(values: np.ndarray) -> bytes:
    return bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def write(folder: Path, names: tuple[str, str, str, str], images: np.ndarray, labels: np.ndarray, *, compressed: bool = False) -> Path:
    parts = (images[:15], labels[:15], images[15:], labels[15:])
    for name, part in zip(names, parts, strict=True):
        if compressed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(idx(part)))
        else:
            (folder / name).write_bytes(idx(part))
    return folder


MNIST = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
LETTERS = tuple(f"emnist-letters-{part}-{kind}" for part in ("train", "test") for kind in ("images-idx3-ubyte", "labels-idx1-ubyte"))


@pytest.mark.parametrize("compressed", [False, True])
def test_mnist_is_dealt_out(tmp_path: Path, compressed: bool) -> None:
    data = mnist_data(write(tmp_path, MNIST, IMAGES, LABELS, compressed=compressed), clients=4, seed=0)
    assert (data.clients, data.features, data.classes, data.image_shape) == (4, 784, 10, (28, 28, 1))
    assert (data.test.inputs == IMAGES[15:].reshape(5, 784) / 255).all()
    assert (data.test.labels == LABELS[15:]).all()
    every = data.cohort(range(4))
    assert every.sizes.tolist() == [4, 4, 4, 3]
    order = [int(np.flatnonzero((IMAGES[:15].reshape(15, -1) / 255 == row).all(axis=1))[0]) for row in every.examples.inputs]
    assert sorted(order) == list(range(15))
    assert (every.examples.labels == LABELS[order]).all()
    assert (data.client_examples(1).inputs == every.examples.inputs[4:8]).all()
    first = mnist_data(tmp_path, clients=4, seed=0, images=6).cohort(range(4))
    assert sorted(first.examples.labels) == sorted(LABELS[:6])
    for images in (0, 16):
        with pytest.raises(ValueError, match=f"images must be a whole number from 1 to 15, got {images}"):
            mnist_data(tmp_path, clients=4, seed=0, images=images)


def test_letters_are_turned_upright_and_counted_from_zero(tmp_path: Path) -> None:
    data = emnist_data(write(tmp_path, LETTERS, IMAGES, LABELS + 1), clients=3, seed=0, part="letters", split="dirichlet")
    assert data.classes == 26
    assert (data.test.inputs.reshape(5, 28, 28) == IMAGES[15:].transpose(0, 2, 1) / 255).all()
    assert (data.test.labels == LABELS[15:]).all()
    assert len(data.cohort(range(3)).examples) == 15


def test_images_without_end_are_deformed_ones_of_their_classes(tmp_path: Path) -> None:
    """Each deformed image has its bar at the place of its class."""
    bars = np.zeros((20, 28, 28), dtype=np.uint8)
    for number in range(20):
        bars[number, 4:24, 4 + 2 * (number % 10)] = 255
    data = mnist_data(write(tmp_path, MNIST, bars, LABELS), 25_000_000, 0, samples=2)
    assert (data.clients, data.features, data.image_shape) == (25_000_000, 784, (28, 28, 1))
    assert (data.test.inputs == bars[15:].reshape(5, -1) / 255).all()
    result = data.cohort(np.arange(24_999_600, 25_000_000))
    assert (result.sizes == 2).all()
    assert len(np.unique(result.examples.inputs, axis=0)) == 800
    assert (data.client_examples(24_999_999).inputs == result.examples.inputs[-2:]).all()
    across = result.examples.inputs.reshape(-1, 28, 28).sum(axis=1)
    places = (across @ np.arange(28)) / across.sum(axis=1)
    # Shifts, bends, turns and scalings move a bar by at most these pixels, and hardly at all on average.
    away = places - (4 + 2 * result.examples.labels)
    assert np.abs(away).max() < 2.1 + 2.8 + 0.1 * 10 + 3
    assert abs(away.mean()) < 0.2
    assert away.std() > 1


def test_nobody_has_an_endless_image_of_a_class_that_is_not_there(tmp_path: Path) -> None:
    data = mnist_data(write(tmp_path, MNIST, IMAGES, LABELS % 3 * 4), 1000, 0, samples=3, split="dirichlet", alpha=0.1)
    result = data.cohort(np.arange(200)).examples
    assert set(result.labels) == {0, 4, 8}
    assert (result.inputs.max(axis=1) > 0.5).all()


GOOD = idx(IMAGES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not an IDX file: it begins with nothing"),
        (b"\x1f\x8b\x08\x00", "is not an IDX file: it begins with 1f8b0800"),
        (b"\0\0\x0d\x03" + GOOD[4:], "must hold unsigned bytes, type 8, it has type 13"),
        (GOOD[:10], "ends in its header, which has 16 bytes; there are 10"),
        (GOOD[:-1], "its header says 20 x 28 x 28 bytes, there are 15679"),
        (GOOD + b"\0", "its header says 20 x 28 x 28 bytes, there are 15681"),
        (GOOD[:4] + struct.pack(">3I", 2**31, 28, 28) + GOOD[16:], "its header says 2147483648 x 28 x 28 bytes, there are 15680"),
        (b"\0\0\x08\xff" + b"\xff" * 1020, "its header says " + " x ".join(["4294967295"] * 255) + " bytes, there are 0"),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_a_damaged_file_is_refused_without_memory_for_what_it_says(tmp_path: Path, content: bytes, message: str, compressed: bool) -> None:
    path = tmp_path / ("file.gz" if compressed else "file")
    path.write_bytes(gzip.compress(content) if compressed else content)
    tracemalloc.start()
    with pytest.raises(DataError) as raised:
        read_idx(path)
    assert tracemalloc.get_traced_memory()[1] < 10 * 2**20
    tracemalloc.stop()
    assert str(raised.value) == f"{path}: {message}"


def damaged(change: Callable[[bytes], bytes]) -> bytes:
    return change(gzip.compress(GOOD))


@pytest.mark.parametrize(
    "content",
    [b"not compressed", damaged(lambda whole: whole[:-20]), damaged(lambda whole: whole[:100] + b"\xff" * 50 + whole[150:])],
)
def test_a_damaged_compression_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"file\.gz: cannot be read: "):
        read_idx(path)


def test_a_small_file_that_swells_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(bytes(2**22)))
    with pytest.raises(DataError, match="has more than the 1048576 bytes that are allowed"):
        read_whole(path, 2**20)
    assert read_whole(path, 2**22) == bytes(2**22)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (IMAGES[:, :27], LABELS, r"train-images-idx3-ubyte: must hold images of 28 x 28, its shape is \(15, 27, 28\)"),
        (IMAGES, LABELS + 1, r"train-labels-idx1-ubyte: labels must be from 0 to 9, they are from 1 to 10"),
        (
            IMAGES,
            np.stack([LABELS] * 2, axis=1),
            r"train-labels-idx1-ubyte: must hold a label for each of 15 images, its shape is \(15, 2\)",
        ),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path: Path, images: np.ndarray, labels: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        mnist_data(write(tmp_path, MNIST, images, labels), 4, 0)


def test_absent_files_are_named_with_their_source(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no file train-images-idx3-ubyte or train-images-idx3-ubyte\.gz; download it from https://"):
        mnist_data(tmp_path, 4, 0)
    with pytest.raises(DataError, match=r"no file emnist-byclass-train-images-idx3-ubyte or .*nist\.gov"):
        emnist_data(tmp_path, 4, 0)
    with pytest.raises(ValueError, match="part must be one of byclass, bymerge, balanced, digits, mnist, letters, got 'all'"):
        emnist_data(tmp_path, 4, 0, part="all")
