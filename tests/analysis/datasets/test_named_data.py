"""Data sets by name: arguments, refusals and files."""

from pathlib import Path

import numpy as np
import pytest

from quietbits.analysis.datasets.named_data import DATA_NAMES, digits_data, named_data
from quietbits.errors import DataError


def test_digits_need_no_files() -> None:
    result, expected = named_data("digits", 10, 3, split="dirichlet", alpha=0.2), digits_data(10, 3, split="dirichlet", alpha=0.2)
    assert (result.client_examples(4).inputs == expected.client_examples(4).inputs).all()
    assert np.array_equal(result.test.labels, expected.test.labels)


@pytest.mark.parametrize("name", DATA_NAMES[1:])
def test_all_others_say_what_is_missing_from_a_folder(tmp_path: Path, name: str) -> None:
    written = name in ("femnist", "shakespeare", "stackoverflow-tags", "stackoverflow-words")
    with pytest.raises(DataError, match=r"there (is|are) no .*https://"):
        named_data(name, None if written else 10, 0, folder=tmp_path, split="writer" if written else "iid")
    with pytest.raises(ValueError, match=f"folder must be where the files of {name} are, got None"):
        named_data(name, 10, 0, split="writer" if written else "iid")
    if name not in ("mnist", "emnist"):
        with pytest.raises(ValueError, match=f"samples must be left out for {name}, got 3: only digits, mnist, emnist are made"):
            named_data(name, 10, 0, folder=tmp_path, samples=3)
    if name not in ("mnist", "emnist", "cifar10"):
        with pytest.raises(ValueError, match=f"images must be left out for {name}, got 3: only those of mnist, "):
            named_data(name, 10, 0, folder=tmp_path, images=3)


def test_images_that_are_too_few_are_refused_before_a_file_is_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"images must be a whole number from 1 to 1000000000, got 2\.5"):
        named_data("mnist", 10, 0, folder=tmp_path, images=2.5)
    with pytest.raises(ValueError, match="clients must be at most 9, the number of images that are dealt out, got 10"):
        named_data("mnist", 10, 0, folder=tmp_path, images=9)
    # Deformed images are unlimited, so a limit on images is refused.
    with pytest.raises(DataError, match=r"there is no .*https://"):
        named_data("mnist", 10, 0, folder=tmp_path, images=9, samples=3)


def test_digits_are_in_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="folder must be left out for digits, which need no files"):
        named_data("digits", 10, 0, folder=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cifar", 10, 0), f"data must be one of {', '.join(DATA_NAMES)}, got 'cifar': did you mean cifar10?"),
        (("digits", None, 0), "clients must be a whole number for digits, which is dealt out to them, got None"),
        (("digits", 10, 0, "writer"), "split must be one of iid, dirichlet, got 'writer'"),
        (("femnist", None, 0, "iid"), "split must be one of writer, got 'iid'"),
    ],
)
def test_a_bad_argument_is_named(tmp_path: Path, arguments: tuple, message: str) -> None:
    name, clients, seed, *split = arguments
    with pytest.raises(ValueError, match="must be") as raised:
        named_data(name, clients, seed, folder=None if name == "digits" else tmp_path, **({"split": split[0]} if split else {}))
    assert str(raised.value) == message
