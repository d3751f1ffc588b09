"""Packages that only some uses need, and the extras of quietbits that install them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from types import MappingProxyType

from .errors import MissingExtraError

EXTRAS: Mapping[str, str] = MappingProxyType(
    {
        "distributed": "dask",
        "flwr": "flower",
        "h5py": "hdf5",
        "pyarrow": "experiments",
        "pytest": "conformance",
        "sklearn": "experiments",
        "torch": "torch",
    }
)
"""Extra that installs each optional package; packages have the names that are imported."""
# Packages that modules of public names import; the others are imported when they are used.
IMPORTED = ("flwr", "pyarrow")


@contextmanager
def optional(package: str, use: str = "this") -> Iterator[None]:
    """Import an optional package in a ``with`` block.

    If the package is missing, a `MissingExtraError` names the extra that installs it. Other failed imports pass unchanged.

    Parameters
    ----------
    package : str
        A key of `EXTRAS`.
    use : str
        What needs the package, as a noun, for the message.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise missing_extra(package, use) from error


def require(package: str, use: str = "this") -> None:
    """Raise `MissingExtraError` if an optional package is missing, without importing it."""
    if not installed(package):
        raise missing_extra(package, use)


def installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    return find_spec(package) is not None


def loadable(names: Iterable[str], load: Callable[[str], object]) -> list[str]:
    """Return the names that can be loaded; names are loaded only if a package is missing."""
    if all(map(installed, IMPORTED)):
        return list(names)
    return [name for name in names if _loads(name, load)]


def _loads(name: str, load: Callable[[str], object]) -> bool:
    try:
        load(name)
    except MissingExtraError:
        return False
    return True


def missing_extra(package: str, use: str) -> MissingExtraError:
    """Return the error that names the extra of a missing package."""
    return MissingExtraError(f"{package} must be installed for {use}, got none: pip install 'quietbits[{EXTRAS[package]}]'", name=package)
