"""A mapping whose values stand in modules that are loaded when one of them is asked for: a command on one mechanism loads no other's."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TypeVar

Value = TypeVar("Value")


class LoadedByName(MutableMapping[str, Value]):
    """Values by name, in the order of the files.

    Parameters
    ----------
    files : mapping of str to tuple of str
        Names of the values that each file has.
    load : callable
        Returns the values of a file, in the order of their names.
    """

    def __init__(self, files: Mapping[str, tuple[str, ...]], load: Callable[[str], tuple[Value, ...]]) -> None:
        self._files = files
        self._load = load
        self._values: dict[str, Value | None] = {name: None for names in files.values() for name in names}

    def __getitem__(self, name: str) -> Value:
        """Return a value, with its file loaded."""
        value = self._values[name]
        if value is None:
            (file,) = (file for file, names in self._files.items() if name in names)
            for other, loaded in zip(self._files[file], self._load(file), strict=True):
                # What has been set by hand stays.
                if self._values.get(other, loaded) is None:
                    self._values[other] = loaded
            value = self._values[name]
        assert value is not None  # noqa: S101 - its file has it
        return value

    def __setitem__(self, name: str, value: Value) -> None:
        """Add a value, or put another in its place."""
        self._values[name] = value

    def __delitem__(self, name: str) -> None:
        """Take a value away."""
        del self._values[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names, and load nothing."""
        return iter(self._values)

    def __contains__(self, name: object) -> bool:
        """Say whether there is a value of that name, and load nothing."""
        return name in self._values

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._values)
