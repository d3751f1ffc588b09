"""Tests of CIFAR-10's pickled batches.

Points under test: the reader reads the published format and never executes a pickle.
"""

import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quietbits.analysis.datasets.cifar import TEST_BATCH, TRAINING_BATCHES, cifar10_data, read_pickled_dictionary
from quietbits.errors import DataError

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (18, 3072), dtype=np.uint8)
LABELS = [int(item) for item in RNG.integers(0, 10, 18)]
MINUS_ONE = b"J\xff\xff\xff\xff"


def batch(images: np.ndarray, labels: list[int]) -> bytes:
    """Return a batch as Python 2 wrote the published batches, with protocol 2."""
    pieces = [b"\x80\x02}q\x01(U\x0bbatch_labelq\x02U\x15training batch 1 of 5q\x03U\x06labelsq\x04]q\x05("]
    pieces += [b"K" + bytes([label]) for label in labels]
    pieces += [b"eU\x04dataq\x06cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85U\x01b\x87Rq\x09"]
    pieces += [
        b"(K\x01",
        *(b"M" + struct.pack("<H", side) for side in images.shape),
        b"\x86cnumpy\ndtype\nq\x0aU\x02u1K\x00K\x01\x87Rq\x0b",
    ]
    pieces += [b"(K\x03U\x01|NNN" + 2 * MINUS_ONE + b"K\x00tb\x89T", struct.pack("<I", images.size), images.tobytes(), b"tb"]
    pieces += [b"U\x09filenamesq\x0c]q\x0d(", *(b"U\x05a.png" for _ in labels), b"eu."]
    return b"".join(pieces)


GOOD = batch(IMAGES[:3], LABELS[:3])


def write(folder: Path, **changed: bytes) -> Path:
    for place, name in enumerate((*TRAINING_BATCHES, TEST_BATCH)):
        part = slice(3 * place, 3 * place + 3)
        (folder / name).write_bytes(changed.get(name, batch(IMAGES[part], LABELS[part])))
    return folder


def test_a_batch_is_read_as_python_reads_it() -> None:
    # The test wrote these bytes itself, so unpickling them is safe.
    expected = pickle.loads(GOOD, encoding="bytes")  # noqa: S301
    content = read_pickled_dictionary(GOOD, "here")
    assert list(content) == list(expected)
    assert (content.pop(b"data") == expected.pop(b"data")).all()
    assert content == expected


@pytest.mark.parametrize("protocol", [3, 4])
@pytest.mark.parametrize("order", ["C", "F"])
def test_later_versions_of_the_format_are_read_too(protocol: int, order: Any) -> None:
    values = {
        "data": np.asarray(IMAGES[:3], order=order),
        "labels": LABELS,
        "more": (None, True, False, -7, 2**40, [[], {}, ()], b"x", "é"),
    }
    content = read_pickled_dictionary(pickle.dumps(values, protocol=protocol), "here")
    assert (content.pop("data") == values.pop("data")).all()
    assert content == values


def test_images_are_dealt_out_by_row_column_and_colour(tmp_path: Path) -> None:
    data = cifar10_data(write(tmp_path), clients=3, seed=0)
    assert (data.clients, data.features, data.classes, data.image_shape) == (3, 3072, 10, (32, 32, 3))
    upright = IMAGES.reshape(18, 3, 32, 32).transpose(0, 2, 3, 1).reshape(18, -1) / 255
    assert (data.test.inputs == upright[15:]).all()
    assert data.test.labels.tolist() == LABELS[15:]
    every = data.cohort(range(3)).examples
    order = [int(np.flatnonzero((upright == row).all(axis=1))[0]) for row in every.inputs]
    assert sorted(order) == list(range(15))
    assert every.labels.tolist() == [LABELS[item] for item in order]


class Shell:
    """Object of a malicious pickle, which runs a shell command when unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_is_run(tmp_path: Path, protocol: int) -> None:
    proof = tmp_path / "ran"
    content = pickle.dumps({"data": Shell(f"touch {proof}")}, protocol=protocol)
    with pytest.raises(DataError, match=r"here: the pickle names \w+\.system, which data do not need: it is not called"):
        read_pickled_dictionary(content, "here")
    assert not proof.exists()
    # pickle itself executes the command, so the pickle is malicious.
    pickle.loads(content)  # noqa: S301
    assert proof.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is a damaged pickle, "),
        (b"\x80\x02K\x01.", "must hold a dictionary, it holds int"),
        (b"\x80\x02}K\x01.", "is a damaged pickle, ValueError: too many values"),
        (b"\x80\x02u.", "is a damaged pickle, "),
        (b"\x80\x02}(K\x01u.", "is a damaged pickle, "),
        (b"\x80\x02K\x01K\x02a.", "is a damaged pickle, TypeError: expected list, found int"),
        (b"\x80\x02h\x07.", "is a damaged pickle, KeyError"),
        (b"\x80\x02}(K\x01NK\x01Nu.", "the pickle has a key of a dictionary twice"),
        (b"\x80\x02}K\x01NsK\x01Ns.", "the pickle has a key of a dictionary twice"),
        (b"\x80\x02}]K\x01s.", "is a damaged pickle, TypeError"),
        (b"\x80\x02(i__main__\nShell\n.", "the pickle has the instruction INST, which data do not need"),
        (b"\x80\x02cnumpy\nndarray\n)\x81.", "the pickle has the instruction NEWOBJ, which data do not need"),
        (b"\x80\x02cnumpy\nndarray\n)R.", "the pickle calls numpy.ndarray, which data do not need"),
        (b"\x80\x02cnumpy\nload\n.", "the pickle names numpy.load, which data do not need"),
        (b"\x80\x02Papersistent\n.", "the pickle has the instruction PERSID, which data do not need"),
        (GOOD.replace(b"U\x02u1", b"U\x02O8"), "the pickle's arrays must be of unsigned bytes, u1"),
        (
            GOOD.replace(b"M\x03\x00M\x00\x0c", b"J\x00\x00\x00\x40M\x00\x0c"),
            r"the pickle has an array of shape \(1073741824, ",
        ),
        (GOOD.replace(b"T" + struct.pack("<I", 9216), b"T" + struct.pack("<I", 2**31 - 1)), "is a damaged pickle, ValueError"),
    ],
)
def test_a_damaged_pickle_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=f"^here: {message}"):
        read_pickled_dictionary(content, "here")


def test_every_truncation_is_refused() -> None:
    for length in (*range(250), *range(250, len(GOOD), 97), len(GOOD) - 1):
        with pytest.raises(DataError, match=r"^here: is a damaged pickle, "):
            read_pickled_dictionary(GOOD[:length], "here")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (batch(IMAGES[:3], LABELS[:2]), "labels must be 3 whole numbers from 0 to 9, they are not"),
        (batch(IMAGES[:3], [1, 2, 10]), "labels must be 3 whole numbers from 0 to 9, they are not"),
        (GOOD.replace(b"U\x05a.png", b"", 1), "filenames must be as many as the images, 3, they are not"),
        (batch(IMAGES[:3, :3071], LABELS[:3]), r"data must be an array of images of 3072 bytes, it is \(3, 3071\)"),
        (GOOD.replace(b"U\x06labels", b"U\x06lobels"), r"there is no 'labels' among \["),
    ],
)
def test_batches_that_do_not_fit_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=f"data_batch_2: {message}"):
        cifar10_data(write(tmp_path, data_batch_2=content), 3, 0)


def test_absent_files_are_named_with_their_source(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no file data_batch_1; download it from https://www\.cs\.toronto\.edu/~kriz/cifar\.html"):
        cifar10_data(tmp_path, 3, 0)
