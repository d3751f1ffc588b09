"""A mapping of values in modules that are loaded on first access to one of their values."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

Value = TypeVar("Value")


class LoadedByName(Mapping[str, Value]):
    """Values by name, in the order of the files.

    Parameters
    ----------
    files : mapping of str to tuple of str
        Names of the values in each file.
    load : callable
        Returns the values of a file, in the order of their names.
    """

    def __init__(self, files: Mapping[str, tuple[str, ...]], load: Callable[[str], tuple[Value, ...]]) -> None:
        self._files = files
        self._load = load
        self._file_of = {name: file for file, names in files.items() for name in names}
        self._values: dict[str, Value] = {}

    def __getitem__(self, name: str) -> Value:
        """Return a value; load its module first."""
        if name not in self._values:
            file = self._file_of[name]
            self._values |= dict(zip(self._files[file], self._load(file), strict=True))
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, without loading a module."""
        return iter(self._file_of)

    def __contains__(self, name: object) -> bool:
        """Return whether a name has a value, without loading a module."""
        return name in self._file_of

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._file_of)
