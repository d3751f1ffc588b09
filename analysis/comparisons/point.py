"""One point of a comparison, as a task of a sweep that needs nothing prepared."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Point:
    """A task whose fields are its name: a subclass adds fields, and `run`, which returns rows of a table.

    Attributes
    ----------
    seed : int
        Root seed.
    """

    seed: int

    @property
    def name(self) -> str:
        """What tells the task from all others, seed left out, in canonical JSON."""
        return json.dumps([type(self).__name__, self._fields()], sort_keys=True, separators=(",", ":"))

    @property
    def setting(self) -> str:
        """The task in words."""
        parts = [str(value) if isinstance(value, str) else f"{name} {value}" for name, value in self._fields().items() if value is not None]
        return ", ".join(parts)

    @property
    def design(self) -> None:
        """There is nothing that several tasks share."""

    def prepare(self, cache: Path | None) -> None:
        """Prepare nothing."""

    def run(self, prepared: Any) -> list[dict[str, Any]]:
        """Return the rows of the point."""
        raise NotImplementedError

    def _fields(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "seed"}
