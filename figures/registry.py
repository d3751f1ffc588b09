"""Which figures there are, and what makes their files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from ..analysis.provenance_columns import with_provenance
from ..analysis.sweeps.protocol import SweepTask
from ..analysis.sweeps.run import run_tasks
from ..arguments import check_choice
from ..progress import OnStep, silent
from .beyond import secure_sum_bits
from .cpsgd import binomial_slack
from .cpsgd import fig1 as cpsgd_fig1
from .dp_rec import accounting as dprec_accounting
from .dp_rec import bits as dprec_bits
from .dp_rec import communication as dprec_communication
from .dp_rec import mean as dprec_mean
from .drawing.markdown import markdown_document
from .drawing.save import save_figure
from .drawing.style import print_style
from .entry import FigureEntry
from .frequencies import fig2 as freq_fig2
from .frequencies import fig3 as freq_fig3
from .frequencies import fig4 as freq_fig4
from .frequencies import fig5 as freq_fig5
from .frequencies import freq_codes
from .frequencies import needed_bits as freq_limits
from .frequencies import regimes as freq_regimes
from .linear_compression import bits as price_bits
from .linear_compression import cohort as price_cohort
from .linear_compression import dimension as price_dimension
from .linear_compression import layers as price_layers
from .linear_compression import needed_bits as price_needed_bits
from .linear_compression import rate as price_rate
from .linear_compression import rounds as price_rounds
from .linear_compression import rows as price_rows
from .linear_compression import sparse as price_sparse
from .mvu import fig1 as mvu_fig1
from .mvu import fig2 as mvu_fig2
from .mvu import fig3 as mvu_fig3
from .mvu import fig5 as mvu_fig5
from .planner import pareto as plan_pareto
from .training import cpsgd_fig2, mvu_fig4, mvu_fig6, price_heat_map, price_model, price_training
from .training import price_cohort as price_training_cohort
from .training.dp_rec import fig1 as dprec_fig1
from .training.dp_rec import fig2 as dprec_fig2
from .training.dp_rec import fig3 as dprec_fig3
from .training.dp_rec import local_epsilon as dprec_local
from .training.dp_rec import table1 as dprec_table1
from .training.dp_rec import table3 as dprec_table3

FIGURES: Mapping[str, FigureEntry] = MappingProxyType(
    {
        module.FIGURE.name: module.FIGURE
        for module in (
            mvu_fig1,
            mvu_fig2,
            mvu_fig3,
            mvu_fig5,
            cpsgd_fig1,
            binomial_slack,
            secure_sum_bits,
            plan_pareto,
            dprec_accounting,
            dprec_mean,
            dprec_communication,
            dprec_bits,
            price_rate,
            price_bits,
            price_cohort,
            price_dimension,
            price_rounds,
            price_layers,
            price_rows,
            price_needed_bits,
            price_sparse,
            freq_fig2,
            freq_fig3,
            freq_fig4,
            freq_fig5,
            freq_limits,
            freq_regimes,
            freq_codes,
            mvu_fig4,
            mvu_fig6,
            cpsgd_fig2,
            dprec_table1,
            dprec_table3,
            dprec_fig1,
            dprec_fig2,
            dprec_fig3,
            dprec_local,
            price_training,
            price_heat_map,
            price_training_cohort,
            price_model,
        )
    }
)
"""Entries by name."""
# Where the tasks of a figure are kept, beside the figures.
RESULTS = "results"


def reproduce(
    names: Sequence[str],
    output: Path,
    *,
    seed: int = 0,
    quick: bool = False,
    data: Path | None = None,
    workers: int = 1,
    dask: str | None = None,
    cache: Path | None = None,
    on_step: OnStep = silent,
) -> list[Path]:
    """Make figures, one after the other: SVG, PDF and PNG, the table behind them as CSV, and what people read of it as Markdown.

    The tasks behind a figure are a sweep, kept in the folder ``results/<name>``: a run that was cut off goes on where it was. The same seed
    and the same versions of the software give the same files, whatever the number of workers.

    Parameters
    ----------
    names : sequence of str
        Names of figures (`FIGURES`); none for all of them, or all that take `data` if there is some.
    output : Path
        Folder of the files; made if it is not there.
    seed : int
        Root seed.
    quick : bool
        Whether to make each figure smaller, in less than a minute on two cores.
    data : Path or None
        Folder with the data of the papers, as `named_data` reads them: trainings are then those of the papers. Not for figures without
        `FigureEntry.on_data`.
    workers, dask, cache
        As in `run_tasks`.
    on_step : callable
        Called as ``on_step(done, total, text)``, for all figures together.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    ValueError
        If there is no figure of a name, an argument is out of range, or data are given to a figure that needs none; nothing is done then.
    DataError
        If a file of the data is missing or damaged; nothing is done then.
    IncompleteSweepError
        If tasks failed; the others are done and saved.
    """
    usual = [name for name, entry in FIGURES.items() if data is None or entry.on_data is not None]
    entries = [FIGURES[check_choice("figure", name, FIGURES)] for name in dict.fromkeys(names or usual)]
    tasks = [_tasks(entry, seed, data, quick=quick) for entry in entries]
    total = sum(len(own) for own in tasks)
    files, before = [], 0
    for entry, own in zip(entries, tasks, strict=True):
        progress = _part_of(on_step, before, len(own), total, entry.name)
        rows = run_tasks(own, output / RESULTS / entry.name, workers=workers, dask=dask, cache=cache, on_step=progress)
        files += _write(entry, entry.table(_without_provenance(rows)), output, seed)
        before += len(own)
    return files


def _tasks(entry: FigureEntry, seed: int, data: Path | None, *, quick: bool) -> Sequence[SweepTask]:
    if data is None:
        return entry.tasks(seed, quick)
    if entry.on_data is None:
        able = ", ".join(name for name, one in FIGURES.items() if one.on_data is not None)
        raise ValueError(f"data must be left out for {entry.name}: it is for {able}; got {data}")
    return entry.on_data(seed, quick, data.absolute())


def _part_of(on_step: OnStep, before: int, own: int, total: int, name: str) -> OnStep:
    """Return what tells how far all figures are from how far one of them is."""
    return lambda done, steps, text: on_step(before + done * own // steps, total, f"{name}: {text}")


def _without_provenance(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.drop(columns=[name for name in rows if name == "seed" or str(name).startswith("version_")])


def _write(entry: FigureEntry, table: pd.DataFrame, output: Path, seed: int) -> list[Path]:
    frame = with_provenance(table, entry.experiment, seed)
    with print_style():
        return save_figure(entry.draw(frame), frame, output, entry.name, markdown_document(entry.title, entry.summary(table)))
