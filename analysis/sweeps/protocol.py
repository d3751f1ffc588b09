"""Tasks as the engine of sweeps sees them: named objects that make rows of a table."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any, Protocol

from ...design.contracts.privacy import Scalar


class SweepTask(Protocol):
    """A task: a frozen dataclass that can be pickled.

    A task's rows depend only on the name, the seed and the versions of the software. All draws come from streams named after them
    (`named_stream`).
    """

    @property
    def seed(self) -> int:
        """Root seed."""

    @property
    def name(self) -> str:
        """Canonical text of everything that the rows depend on, except for the seed."""

    @property
    def setting(self) -> str:
        """The task in words, for messages, which is the same for its repetitions."""

    @property
    def design(self) -> Hashable | None:
        """Key of tasks that share a `prepare`; None if each task prepares for itself."""

    def prepare(self, cache: Path | None) -> Any:
        """Return inputs of `run` that take long to compute and can be pickled.

        `cache` is a folder for designed tables.
        """

    def run(self, prepared: Any) -> list[dict[str, Scalar]]:
        """Return the task's rows of the result table, in their order; None is a missing value."""
