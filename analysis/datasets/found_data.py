"""Which published data are in a folder, told by a file that each of them has."""

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
    """What tells data: the file that is looked for, in words, and its source; whether a folder has it; and how many clients there are."""

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
"""Names of the data that are looked for."""


@dataclass(frozen=True)
class FoundData:
    """Published data, by the name that `named_data` has for them, and the folder of their files."""

    name: str
    folder: Path

    @cached_property
    def clients(self) -> int:
        """How many writers, roles or users there are; or training images, where files do not say whose they are."""
        return _MARKS[self.name].clients(self.folder)


def found_data(folder: Path, names: Sequence[str]) -> tuple[FoundData, ...]:
    """Return which of the named data are in a folder, or in a folder of it, in the order of the names.

    Where several folders have files of the same names, the given one is taken, or else the one that is called as the data. A `DataError`
    names them where none is; if there is nothing, a `DataNotFoundError` says what was looked for. Files are not checked.
    """
    inside = sorted(one for one in folder.iterdir() if one.is_dir()) if folder.is_dir() else []
    found = []
    for name in names:
        mark = _MARKS[check_choice("names", name, _MARKS)]
        places = [one for one in (folder, *inside) if _has(mark, one)]
        called = [one for one in places if one == folder or one.name.lower() == name]
        if len(places) > 1 and not called:
            several = ", ".join(shown_path(one.name) for one in places)
            raise DataError(
                f"{shown_path(folder)}: several of its folders may be {name}: {several}; call the right one {name}, or give it alone"
            )
        found += [FoundData(name, one) for one in (called or places)[:1]]
    if not found:
        wanted = "; or ".join(f"{_MARKS[name].file}, of {name}, from {_MARKS[name].source}" for name in names)
        raise DataNotFoundError(f"{shown_path(folder)}: there is no file, in it or in a folder of it, {wanted}")
    return tuple(found)


def _has(mark: _Mark, folder: Path) -> bool:
    try:
        return mark.is_in(folder)
    except OSError:
        # What cannot be read is somebody else's.
        return False
