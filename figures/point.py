"""A point of a comparison: a sweep's task that needs no preparation."""

import json
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Point(ABC):
    """A task whose fields are its name.

    A subclass adds fields, and `run`, which returns rows of a table.

    Attributes
    ----------
    seed : int
        Root seed.
    """

    seed: int

    @property
    def name(self) -> str:
        """Unique name of the task: its fields without the seed, in canonical JSON."""
        values = {name: value for name, value in asdict(self).items() if name != "seed"}
        return json.dumps([type(self).__name__, values], sort_keys=True, separators=(",", ":"))

    @property
    def setting(self) -> str:
        """The task in words."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "seed"}
        return ", ".join(_words(name, value) for name, value in values.items() if value is not None)

    @property
    def design(self) -> Hashable | None:
        """The design that several tasks share; None unless a subclass defines one."""
        return None

    def prepare(self, _: Path | None) -> Any:
        """Return None; a subclass may return a prepared design."""
        return None

    @abstractmethod
    def run(self, prepared: Any) -> list[dict[str, Any]]:
        """Return the rows of the point."""


def _words(name: str, value: Any) -> str:
    if isinstance(value, int | float):
        return f"{name.replace('_', ' ')} {value:g}"
    return str(value)
