"""Mechanisms of other packages and scripts, their providers and transfer to workers."""

import hashlib
import logging
import pickle
import re
import sys
from collections.abc import Collection, ItemsView, Iterator, Mapping, MutableMapping, ValuesView
from dataclasses import dataclass, fields
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from ...design.contracts.described_entry import LISTED
from ...design.contracts.privacy import Scalar
from ...design.contracts.registry import Entry
from ...errors import DataError, PlugInError
from ...shown import html_table

GROUP = "quietbits.mechanisms"
"""Group of the entry points by which a package registers mechanisms: the name is the mechanism's, the object its `Entry`."""
DIGEST_CHARACTERS = 16
OWN_PACKAGE = __name__.partition(".")[0]


class InstalledPlugIns(Mapping[str, Entry]):
    """Entries of installed packages by name; access to an entry imports its package.

    Parameters
    ----------
    reserved : collection of str
        Names that no plug-in may have.

    Raises
    ------
    PlugInError
        `__getitem__` raises it if the name is reserved or offered twice, or the package yields no entry of that name.
    """

    def __init__(self, reserved: Collection[str] = ()) -> None:
        self._reserved = reserved
        self._points: dict[str, list[EntryPoint]] | None = None
        self._entries: dict[str, Entry] = {}

    def __getitem__(self, name: str) -> Entry:
        """Return the entry of a name, with its package imported."""
        if name not in self._entries:
            self._entries[name] = self._load(name, self._offered()[name])
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names in alphabetical order, without an import."""
        return iter(self._offered())

    def __contains__(self, name: object) -> bool:
        """Return whether a package offers a mechanism of that name, without an import."""
        return name in self._offered()

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self._offered())

    def provider(self, name: str) -> str:
        """Return the distribution that offers a name, with its version."""
        return " and ".join(map(_distribution, self._offered()[name]))

    def loaded(self, name: str) -> Entry | None:
        """Return the entry of a name if it has been loaded."""
        return self._entries.get(name)

    def _offered(self) -> dict[str, list[EntryPoint]]:
        """Return the entry points by name, after a single look-up of installed packages."""
        if self._points is None:
            self._points = {}
            for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, _distribution(point))):
                self._points.setdefault(point.name, []).append(point)
        return self._points

    def _load(self, name: str, points: list[EntryPoint]) -> Entry:
        provider = self.provider(name)
        if len(points) > 1:
            raise PlugInError(f"mechanism must be offered by one package only, got {name!r} by {provider}: uninstall one of them")
        if name in self._reserved:
            raise PlugInError(f"mechanism must not have a name of quietbits itself, got {name!r} by {provider}: rename it, or uninstall it")
        repair = "repair or uninstall that package"
        try:
            entry = points[0].load()
        except Exception as error:
            raise PlugInError(
                f"mechanism must be importable, got {name!r} by {provider}, which raised {type(error).__name__}: {error}: {repair}"
            ) from error
        if not isinstance(entry, Entry):
            held = f"an object of type {type(entry).__name__}"
            raise PlugInError(f"mechanism must be a quietbits.Entry, got {held} for {name!r} by {provider}: {repair}")
        if entry.name != name:
            raise PlugInError(
                f"mechanism must have the name of its entry point, {name!r}, got an Entry named {entry.name!r} by {provider}: {repair}"
            )
        return entry


def _distribution(point: EntryPoint) -> str:
    assert point.dist is not None  # noqa: S101 - `entry_points` reads distributions
    return f"{point.dist.name} {point.dist.version}"


@dataclass(frozen=True, eq=False)
class Registered:
    """An entry registered by a script, with the script's name."""

    entry: Entry
    provider: str


class Registry(MutableMapping[str, Entry]):
    """Entries by name: built into quietbits, from installed packages, and registered by scripts.

    ``REGISTRY[name] = entry`` registers an entry; it hides an older entry of the same name. The registry loads an entry at its first use.

    Parameters
    ----------
    built_in : mapping of str to Entry
        Entries of quietbits.
    reserved : collection of str
        Further names that no plug-in may have.
    """

    def __init__(self, built_in: Mapping[str, Entry], reserved: Collection[str] = ()) -> None:
        self._built_in = built_in
        self._reserved = reserved
        self._installed = InstalledPlugIns({*built_in, *reserved})
        self._registered: dict[str, Registered] = {}
        self._adopted = b""
        self._warned = set[str]()

    def __getitem__(self, name: str) -> Entry:
        """Return an entry; raise PlugInError if an installed package offers a faulty entry."""
        if name in self._registered:
            return self._registered[name].entry
        return self._installed[name] if name in self._installed else self._built_in[name]

    def __setitem__(self, name: str, entry: Entry) -> None:
        """Register an entry under its name."""
        if not isinstance(entry, Entry):
            raise ValueError(f"a mechanism must be registered as a quietbits.Entry, got {entry!r}")
        if not name.strip() or not name.isprintable() or name.startswith("-"):
            raise ValueError(
                f"a mechanism's name must have printable characters and no hyphen in front, got {name!r}: name the entry otherwise"
            )
        if name != entry.name or name in self._reserved:
            raise ValueError(f"a mechanism must be registered by the name of its entry, {entry.name!r}, not a reserved one, got {name!r}")
        if entry is self._installed.loaded(name) or (name in self._built_in and entry is self._built_in[name]):
            self._registered.pop(name, None)
        else:
            self._registered[name] = Registered(entry, script_of(entry))

    def __delitem__(self, name: str) -> None:
        """Remove a registered entry; entries of quietbits and of installed packages stay."""
        del self._registered[name]

    def __iter__(self) -> Iterator[str]:
        """Yield all names without loading entries: quietbits, installed packages, registered."""
        return iter(dict.fromkeys([*self._built_in, *self._installed, *self._registered]))

    def values(self) -> ValuesView[Entry]:
        """Return the entries, without those of faulty packages (`usable`)."""
        return self.usable().values()

    def items(self) -> ItemsView[str, Entry]:
        """Return names and entries, without those of faulty packages (`usable`)."""
        return self.usable().items()

    def usable(self) -> dict[str, Entry]:
        """Return the entries that can be loaded, by name.

        A warning names each package whose entry cannot be loaded, once.
        """
        entries = dict[str, Entry]()
        for name in self:
            try:
                entries[name] = self[name]
            except PlugInError as error:
                if name not in self._warned:
                    self._warned.add(name)
                    logging.getLogger(__name__).warning("%s; until then it is left out", error)
        return entries

    def is_installed(self, name: str) -> bool:
        """Return whether an installed package offers the registry's mechanism of this name."""
        return name in self._installed and name not in self._registered

    def __contains__(self, name: object) -> bool:
        """Return whether an entry of that name exists, without loading it."""
        return name in self._registered or name in self._built_in or name in self._installed

    def __len__(self) -> int:
        """Return the number of names."""
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        """Return the names in one line."""
        return f"<Registry: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        return html_table(f"{len(self)} mechanisms", [entry.listed() for entry in self.values()], LISTED)

    def provider(self, name: str) -> str | None:
        """Return a mechanism's distribution or script with its version; None for quietbits itself."""
        if name in self._registered:
            return self._registered[name].provider
        return self._installed.provider(name) if name in self._installed else None

    def provided(self, name: str, provider: str | None) -> Entry:
        """Return an entry of a stated provider; raise DataError for another provider."""
        held = self.provider(name) if name in self else "none"
        if held != provider:
            raise DataError(
                f"mechanism {name} must be that of {provider or 'quietbits'} wherever the work is done, got {held or 'that of quietbits'}: "
                "install the same packages on all machines"
            )
        return self[name]

    def packed(self) -> bytes:
        """Return the script-registered entries of this process for `adopt`, or empty bytes."""
        if not self._registered:
            return b""
        cloudpickle = _cloudpickle()
        for registered in self._registered.values():
            for module in _modules(registered.entry):
                # Another process or machine may be unable to import the script.
                if module in sys.modules and module.partition(".")[0] != OWN_PACKAGE and module != "__main__":
                    cloudpickle.register_pickle_by_value(sys.modules[module])
        packed: bytes = cloudpickle.dumps(self._registered)
        return packed

    def adopt(self, packed: bytes) -> None:
        """Register the entries that another process `packed`, in place of earlier adopted entries.

        Raises
        ------
        DataError
            If the entries need a module that this process cannot import.
        """
        if packed == self._adopted:
            return
        try:
            self._registered = pickle.loads(packed) if packed else {}  # noqa: S301 - the bytes are those of the process that gives the work
        except ImportError as error:
            raise DataError(
                f"registered mechanisms must be importable by workers, got {error}: install that module on all machines"
            ) from error
        self._adopted = packed


def _cloudpickle() -> Any:
    """Return joblib's cloudpickle, so that classes returned by workers are the script's classes."""
    from joblib.externals.loky import cloudpickle_wrapper

    return import_module(cloudpickle_wrapper.dumps.__module__)


def script_of(entry: Entry) -> str:
    """Return the module of an entry's `build`, with a digest of its file if it has one."""
    module = _modules(entry)[0]
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or not Path(file).is_file():
        return module
    name = Path(file).stem if module == "__main__" else module
    return f"{name} (sha256 {hashlib.sha256(Path(file).read_bytes()).hexdigest()[:DIGEST_CHARACTERS]})"


def _modules(entry: Entry) -> list[str]:
    """Return the modules of an entry's functions and classes, that of `build` first."""
    values = [entry.build, *(getattr(entry, field.name) for field in fields(entry))]
    if entry.noise is not None:
        values += [getattr(entry.noise, field.name) for field in fields(entry.noise)]
    return list(dict.fromkeys(_module(value) for value in values if callable(value)))


def _module(value: Any) -> str:
    while isinstance(value, partial):
        value = value.func
    module: str = value.__module__
    return module


def provided_name(task: str, provider: str | None) -> str:
    """Return a task's name with the provider of its mechanism, if it is a plug-in."""
    return task if provider is None else f"{task}, with the mechanism of {provider}"


def option_columns(options: Mapping[str, Scalar], taken: Collection[str]) -> dict[str, Scalar]:
    """Return options as table columns; a plug-in's option with a `taken` name gets a prefix."""
    return {f"option_{name}" if name in taken else name: value for name, value in options.items()}


def provider_columns(provider: str | None) -> dict[str, Scalar]:
    """Return the column with the provider of the row's mechanism; none for quietbits."""
    return {} if provider is None else {"version_mechanism": provider}


def provider_folder(folder: Path | None, provider: str | None) -> Path | None:
    """Return the folder of a mechanism's designed tables, separate by provider and version."""
    if folder is None or provider is None:
        return folder
    return folder / re.sub(r"[^\w.]+", "-", provider).strip("-")
