"""The registry's record of a figure, with the tasks, the table and the picture."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from matplotlib.figure import Figure

from ..analysis.sweeps.protocol import SweepTask
from .findings import Finding
from .listing import LISTING

if TYPE_CHECKING:
    from ..analysis.training.task import TrainingTask


def unchanged(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table unchanged."""
    return table


def run_as_sweep(tasks: Sequence[SweepTask], output: Path, **settings: Any) -> pd.DataFrame:
    """Run a figure's tasks by `run_tasks`.

    The import is local because a figure that is only drawn does not need the packages.
    """
    from ..analysis.sweeps.run import run_tasks

    return run_tasks(tasks, output, **settings)


@dataclass(frozen=True, kw_only=True)
class FigureEntry:
    """A figure that can be reproduced.

    Attributes
    ----------
    name : str
        Name on the command line, of the files, and in `LISTING`, which holds the title and the processor time.
    paper : str
        Paper that the figure reproduces or extends.
    experiment : str
        Value of the column ``experiment`` in the table.
    tasks : callable
        Function that returns the tasks from a root seed and a flag for fewer and smaller tasks.
    draw : callable
        Function that draws the table, called inside `print_style`.
    table : callable
        Function that returns the tidy table from the rows of all tasks, without seed and versions.
    summary : callable
        Function that returns a short table for readers, if the table is long.
    on_data : callable or None
        Function that returns the tasks of the paper's own setting, from a root seed, a flag for fewer tasks, and the folder of the data;
        None if the paper's figure needs no data.
    run : callable
        Function that runs the tasks, with the arguments of `run_tasks`.
    findings : sequence of Finding
        Quantities whose ranges in the table are printed after the title.
    """

    name: str
    paper: str
    experiment: str
    tasks: Callable[[int, bool], Sequence[SweepTask]]
    draw: Callable[[pd.DataFrame], Figure]
    table: Callable[[pd.DataFrame], pd.DataFrame] = unchanged
    summary: Callable[[pd.DataFrame], pd.DataFrame] = unchanged
    on_data: Callable[[int, bool, Path], Sequence["TrainingTask"]] | None = None
    run: Callable[..., pd.DataFrame] = run_as_sweep
    findings: Sequence[Finding] = ()

    @property
    def title(self) -> str:
        """Title of the figure in the listing, which names the comparison."""
        return LISTING[self.name].title

    def heading(self, table: pd.DataFrame) -> str:
        """Return the title above a table's picture, with the ranges of the findings in that table."""
        texts = [finding.text(table) for finding in self.findings]
        return f"{self.title}. {'; '.join(texts)}" if texts else self.title
