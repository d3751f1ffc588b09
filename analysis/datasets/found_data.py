"""Published data in a folder, recognised by characteristic files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from ...arguments import check_choice
from ...errors import DataError, DataNotFoundError
from ...files import shown_path
from .cifar import SOURCE as CIFAR10_SOURCE
from .cifar import TRAINING_BATCHES, cifar10_images
from .idx import MNIST_FILES, MNIST_SOURCE, mnist_images
from .leaf import SOURCE as LEAF_SOURCE
from .leaf import femnist_data, leaf_inputs, shakespeare_data
from .stackoverflow import SITE as STACKOVERFLOW_SOURCE
from .stackoverflow import TAG_COUNTS, WORD_COUNTS, stackoverflow_users


@dataclass(frozen=True)
class _Mark:
    """The mark of a data set: a file, its source, a test of folders, and a count of clients."""

    file: str
    source: str
    is_in: Callable[[Path], bool]
    clients: Callable[[Path], int]


def _file(*names: str) -> Callable[[Path], bool]:
    return lambda folder: any((folder / name).is_file() for name in names)


_MARKS: Mapping[str, _Mark] = MappingProxyType(
    {
        "mnist": _Mark(MNIST_FILES[1], MNIST_SOURCE, _file(MNIST_FILES[1], f"{MNIST_FILES[1]}.gz"), mnist_images),
        "cifar10": _Mark(TRAINING_BATCHES[0], CIFAR10_SOURCE, _file(TRAINING_BATCHES[0]), cifar10_images),
        "femnist": _Mark(
            "train/*.json with images",
            LEAF_SOURCE.format("femnist"),
            lambda folder: leaf_inputs(folder) == "images",
            lambda folder: femnist_data(folder).clients,
        ),
        "shakespeare": _Mark(
            "train/*.json with texts",
            LEAF_SOURCE.format("shakespeare"),
            lambda folder: leaf_inputs(folder) == "texts",
            lambda folder: shakespeare_data(folder, test_examples=1).clients,
        ),
        "stackoverflow-tags": _Mark(TAG_COUNTS, STACKOVERFLOW_SOURCE, _file(TAG_COUNTS), stackoverflow_users),
        "stackoverflow-words": _Mark(WORD_COUNTS, STACKOVERFLOW_SOURCE, _file(WORD_COUNTS), stackoverflow_users),
    }
)
PUBLISHED = tuple(_MARKS)
"""Names of the data that `found_data` looks for."""


@dataclass(frozen=True)
class FoundData:
    """Published data, by their name for `named_data`, with the folder of their files."""

    name: str
    folder: Path

    @cached_property
    def clients(self) -> int:
        """Number of writers, roles or users, or of training images in files without authors."""
        return _MARKS[self.name].clients(self.folder)


def found_data(folder: Path, names: Sequence[str]) -> tuple[FoundData, ...]:
    """Return the named data that a folder or its subfolders contain, in the order of the names.

    If several folders contain the same data, the given folder comes first, and then the folder with the data's name. Without either, a
    `DataError` lists the folders; without any data, a `DataNotFoundError` lists the missing files. Files are not checked.
    """
    inside = sorted(subfolder for subfolder in folder.iterdir() if subfolder.is_dir()) if folder.is_dir() else []
    data = []
    for name in names:
        mark = _MARKS[check_choice("names", name, _MARKS)]
        places = [place for place in (folder, *inside) if _has(mark, place)]
        called = [place for place in places if place == folder or place.name.lower() == name]
        if len(places) > 1 and not called:
            several = ", ".join(shown_path(place.name) for place in places)
            raise DataError(
                f"{shown_path(folder)}: several of its folders may be {name}: {several}; call the right one {name}, or give it alone"
            )
        data += [FoundData(name, place) for place in (called or places)[:1]]
    if not data:
        wanted = "; or ".join(f"{_MARKS[name].file}, of {name}, from {_MARKS[name].source}" for name in names)
        raise DataNotFoundError(f"{shown_path(folder)}: there is no file, in it or in a folder of it, {wanted}")
    return tuple(data)


def _has(mark: _Mark, folder: Path) -> bool:
    try:
        return mark.is_in(folder)
    except OSError:
        # An unreadable folder does not count as the data's folder.
        return False
