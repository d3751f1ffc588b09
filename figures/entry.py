"""What a figure is to the registry: tasks of a sweep, the table of their rows, and the picture of that table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from matplotlib.figure import Figure

from ..analysis.sweeps.protocol import SweepTask
from ..analysis.sweeps.run import run_tasks
from .findings import Finding
from .listing import LISTING

if TYPE_CHECKING:
    from ..analysis.training.task import TrainingTask


def unchanged(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table as it is."""
    return table


@dataclass(frozen=True, kw_only=True)
class FigureEntry:
    """A figure that can be reproduced.

    Attributes
    ----------
    name : str
        On the command line, of the files, and in `LISTING`, which has its title and how long it takes.
    paper : str
        Where it comes from, or which paper it goes beyond.
    experiment : str
        What the column ``experiment`` of its table says.
    tasks : callable
        Returns the tasks from a root seed, and whether fewer and smaller ones are wanted, which take half a minute, trainings a minute.
    draw : callable
        Draws the table; called inside `print_style`.
    table : callable
        Returns the tidy table from the rows of all tasks, seed and versions left out.
    summary : callable
        Returns what people read of the table, where it is long.
    on_data : callable or None
        Returns the tasks of the paper's own setting, from a root seed, whether fewer are wanted, and the folder of the data, which is read.
        None where the paper's figure needs no data.
    run : callable
        Runs the tasks, with the arguments of `run_tasks`.
    findings : sequence of Finding
        Quantities whose ranges in the table follow the title.
    """

    name: str
    paper: str
    experiment: str
    tasks: Callable[[int, bool], Sequence[SweepTask]]
    draw: Callable[[pd.DataFrame], Figure]
    table: Callable[[pd.DataFrame], pd.DataFrame] = unchanged
    summary: Callable[[pd.DataFrame], pd.DataFrame] = unchanged
    on_data: Callable[[int, bool, Path], Sequence["TrainingTask"]] | None = None
    run: Callable[..., pd.DataFrame] = run_tasks
    findings: Sequence[Finding] = ()

    @property
    def title(self) -> str:
        """The comparison that the figure shows, as it is listed."""
        return LISTING[self.name].title

    def heading(self, table: pd.DataFrame) -> str:
        """Return what is written above the picture of a table: the title, and the ranges of the findings in that table."""
        texts = [finding.text(table) for finding in self.findings]
        return f"{self.title}. {'; '.join(texts)}" if texts else self.title
