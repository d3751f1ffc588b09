"""A sweep of instant tasks, and its results without faults."""

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..analysis.sweeps.run import run_sweep
from ..analysis.sweeps.store import STORE_NAME
from ..design.contracts.privacy import Scalar

TASKS = 40


@dataclass(frozen=True)
class Square:
    """A task of two rows."""

    number: int
    seed: int = 0
    design = None

    @property
    def name(self) -> str:
        """Name of everything that the rows depend on."""
        return f"the square of {self.number}"

    @property
    def setting(self) -> str:
        """The task in words."""
        return self.name

    def prepare(self, _: Path | None) -> None:
        """Prepare nothing."""

    def run(self, _: None) -> list[dict[str, Scalar]]:
        """Return the rows."""
        return [{"number": self.number, "part": part, "square": self.number**2, "root": self.number**0.5} for part in range(2)]


def squares(count: int = TASKS) -> list[Square]:
    """Return the tasks."""
    return [Square(number) for number in range(count)]


@dataclass(frozen=True)
class Whole:
    """A sweep's results: the file of tasks, and the table."""

    store: bytes
    results: bytes


@cache
def whole(count: int = TASKS) -> Whole:
    """Return the sweep's results without faults."""
    with tempfile.TemporaryDirectory() as folder:
        results = run_sweep(squares(count), Path(folder)).read_bytes()
        return Whole((Path(folder) / STORE_NAME).read_bytes(), results)
