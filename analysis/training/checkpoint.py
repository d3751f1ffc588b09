"""Checkpoints of a run on disk, which are complete or absent, and checked when read."""

import hashlib
import io
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...files import write_atomically

DIGEST_BYTES = 32
Arrays = dict[str, NDArray[Any]]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checkpoint:
    """A file with arrays.

    Attributes
    ----------
    path : Path
        Path of the file, whose folder is made if it is missing.
    every : int
        Number of rounds between two checkpoints.
    key : bytes
        Hash of the run and the software, so that files of another run or version are not read.
    """

    path: Path
    every: int
    key: bytes

    def save(self, arrays: Arrays) -> None:
        """Save the arrays; a process that is killed meanwhile leaves the old file."""
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]  # numpy's stub takes a flag by name
        content = buffer.getvalue()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, self._digest(content) + content)

    def load(self) -> Arrays | None:
        """Return the arrays, or None.

        None stands for a missing file, a file of another run, or a damaged file, which is logged.
        """
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        content = data[DIGEST_BYTES:]
        if data[:DIGEST_BYTES] != self._digest(content):
            _log.warning("%s is damaged, or of other software: the run begins again", self.path)
            return None
        with np.load(io.BytesIO(content)) as arrays:
            return dict(arrays)

    def _digest(self, content: bytes) -> bytes:
        return hashlib.sha256(self.key + content).digest()
