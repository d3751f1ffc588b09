"""Records of tables' designs."""

import platform
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version

from ...version import __version__


@dataclass(frozen=True)
class Provenance:
    """The record of a table's design: software versions, method, seed, duration in seconds.

    The seed is the root seed of the method's random numbers. Files omit the duration, which is then None. Comparisons of records ignore it.
    """

    versions: tuple[tuple[str, str], ...]
    solver: str
    seed: int
    duration: float | None = field(compare=False)


def record_provenance(solver: str, seed: int, duration: float) -> Provenance:
    """Return a provenance record with the versions of the software that is running."""
    return Provenance(_versions(), solver, seed, duration)


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    others = tuple((name, version(name)) for name in ("numpy", "scipy", "highspy"))
    return (("quietbits", __version__), ("python", platform.python_version()), *others)
