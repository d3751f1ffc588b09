"""Records of figures that were drawn: what of, at which size, and the files, in ``results/<name>/figure.json``."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from ..analysis.sweeps.calls import code_version
from ..analysis.sweeps.protocol import SweepTask
from ..analysis.sweeps.store import task_key
from ..files import write_atomically
from ..version import __version__
from .listing import LISTING

# Folder of the figures' tasks, beside the figures.
RESULTS = "results"
RECORD_NAME = "figure.json"
FORMAT = "quietbits-figure/1"


@dataclass(frozen=True, kw_only=True)
class GridRun:
    """The tasks that a figure is drawn of.

    Attributes
    ----------
    name : str
        Name of the figure.
    seed : int
        Root seed.
    quick : bool
        Whether the figure has its smaller size.
    data : str or None
        Folder of the papers' data; None for the figure's own.
    part : str
        Selection of tasks in words; empty for all tasks.
    tasks, of : int
        Number of tasks that were run, and of all.
    source : str
        Digest of the tasks, the selection and the code.
    """

    name: str
    seed: int
    quick: bool
    data: str | None
    part: str
    tasks: int
    of: int
    source: str

    @property
    def partial(self) -> str:
        """Sentence in titles that states a part of the grid; empty for all tasks."""
        return f". Part of the grid: {self.part} ({self.tasks} of {self.of} tasks)" if self.part else ""


@dataclass(frozen=True, kw_only=True)
class FinishedFigure(GridRun):
    """A figure whose files are complete.

    Attributes
    ----------
    heading : str
        Title with the findings.
    version : str
        Version of quietbits.
    files : tuple of (str, str)
        Names of the files, with their SHA-256.
    """

    heading: str
    version: str
    files: tuple[tuple[str, str], ...]

    def table(self, output: Path) -> pd.DataFrame:
        """Read the drawn table."""
        return pd.read_csv(output / f"{self.name}.csv")


def source_digest(tasks: Sequence[SweepTask], part: str) -> str:
    """Return the digest of everything that a figure's files depend on."""
    return hashlib.sha256(b"".join([code_version().encode(), part.encode(), *map(task_key, tasks)])).hexdigest()


def record_finished(output: Path, grid: GridRun, heading: str, files: Iterable[Path]) -> FinishedFigure:
    """Write the record of a figure whose files were written, and return it."""
    digests = tuple((file.name, _digest(file)) for file in files)
    finished = FinishedFigure(**asdict(grid), heading=heading, version=__version__, files=digests)
    document = {"format": FORMAT, **asdict(finished)}
    write_atomically(_record(output, grid.name), (json.dumps(document, indent=2) + "\n").encode())
    return finished


def read_finished(output: Path, name: str) -> FinishedFigure | None:
    """Return the record of a figure, or None if it was not drawn, its record is damaged, or a file has changed since."""
    try:
        document = json.loads(_record(output, name).read_text(encoding="utf-8"))
        if document.pop("format") != FORMAT:
            return None
        files = tuple((str(file), str(digest)) for file, digest in document.pop("files"))
        finished = FinishedFigure(**document, files=files)
    except (FileNotFoundError, AttributeError, KeyError, TypeError, ValueError):
        # A figure whose record is damaged is drawn again from its results.
        return None
    unchanged = all((output / file).is_file() and _digest(output / file) == digest for file, digest in finished.files)
    return finished if unchanged else None


def all_finished(output: Path) -> dict[str, FinishedFigure]:
    """Return the records of a folder's figures by name, in the order of the listing."""
    records = {name: read_finished(output, name) for name in LISTING}
    return {name: record for name, record in records.items() if record is not None}


def _record(output: Path, name: str) -> Path:
    return output / RESULTS / name / RECORD_NAME


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
