"""What a task is to the engine that runs sweeps: anything with a name that makes rows of a table."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any, Protocol

from ...design.contracts.privacy import Scalar


class SweepTask(Protocol):
    """One task: a frozen dataclass that can be pickled.

    Rows depend on the name, the seed and the versions of the software only; whatever is drawn comes from streams that are named after
    them (`named_stream`).
    """

    @property
    def seed(self) -> int:
        """Root seed."""

    @property
    def name(self) -> str:
        """Everything that the rows depend on, except for the seed, in one canonical text."""

    @property
    def setting(self) -> str:
        """The task in words, for messages: the same for its repetitions."""

    @property
    def design(self) -> Hashable | None:
        """What `prepare` depends on: tasks of one sweep that share it share what `prepare` makes. None: each prepares for itself."""

    def prepare(self, cache: Path | None) -> Any:
        """Return what `run` needs and takes long to make; it must be possible to pickle. `cache` is a folder for designed tables."""

    def run(self, prepared: Any) -> list[dict[str, Scalar]]:
        """Return the task's rows of the result table, in their order; None is a missing value."""
