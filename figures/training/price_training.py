"""Cost of compression for a model: accuracy by rate, budget and clients.

The trainings send sketches through a secure sum.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.datasets.found_data import found_data
from ...analysis.training.task import TrainingTask
from ..drawing.marks import PAPER_VALUE, series_marks
from ..drawing.style import add_caption
from ..training_settings import ReportedResult, TrainingSettings
from .grids import (
    add_legend,
    by_data,
    draw_accuracies,
    draw_no_privacy,
    draw_reported,
    grid_tasks,
    panel_rows,
    panel_title,
    reported_handle,
    set_rates,
)
from .price_settings import (
    DENSE,
    EPSILON_ON_DATA,
    FEW,
    LARGEST_NOISE,
    LARGEST_NOISE_SOURCE,
    MANY,
    ON_DATA,
    PAPER,
    ROTATION,
    ROWS,
    SKETCHED,
    arrange_rates,
    digits_common,
    digits_dimension,
    paper_common,
    papers_noise,
    row_sizes,
    settings_in_words,
    sketch_tasks,
)
from .training_figure import training_figure

# Small noise multiplier in place of no noise, which a secure sum cannot have; the paper has no noise in its figure 2, of words.
LITTLE_NOISE = {"femnist": [], "stackoverflow-words": [0.01]}
RATES_ON_DATA = {"femnist": (5, 10, 20, 40, 50), "stackoverflow-words": (4, 5, 10, 20)}


def draw_training(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against the rate, a line for each budget and a panel for each cohort.

    Each data set has a row of panels.
    """
    frame = frame.assign(series=pd.Series([_series(row) for row in frame.to_dict("records")], index=frame.index, dtype=object))
    numbers = frame.get("paper_noise_multiplier", frame["target_epsilon"]).fillna(frame["target_epsilon"])
    ordered = frame.assign(number=numbers.astype(float)).dropna(subset=["series"]).sort_values("number")["series"].unique()
    marks = dict(zip(ordered, series_marks(len(ordered)), strict=True))
    sets = by_data(frame)
    cohorts = {data: sorted(own["clients_per_round"].unique()) for data, own in sets.items()}
    figure, grid = panel_rows({data: len(own) for data, own in cohorts.items()}, 3.8)
    for data, row in grid.items():
        for axes, cohort in zip(row, cohorts[data], strict=True):
            own = sets[data][sets[data]["clients_per_round"] == cohort]
            for name, mark in marks.items():
                if len(series := own[own["series"] == name]):
                    draw_accuracies(axes, series, "rate", mark.look, name)
                    draw_reported(axes, series["rate"], series.get("paper_percent", pd.Series(math.nan, index=series.index)), mark)
            draw_no_privacy(axes, own)
            set_rates(axes, sets[data]["rate"])
            axes.set_title(panel_title(grid, data, f"{cohort:,} clients a round"))
    if "digits" in grid:
        # The paper's results beside the digits have other data, noise and clients.
        for axes, rate, cohort in ((grid["digits"][0], 1.0, FEW), (grid["digits"][-1], LARGEST_NOISE.rate, MANY)):
            draw_reported(axes, [rate or math.nan], [LARGEST_NOISE.accuracy[f"cohort-{cohort}"]], PAPER_VALUE)
    source = reported_handle(f"{LARGEST_NOISE_SOURCE}, {FEW} or {MANY:,} clients" if "digits" in grid else "the paper, same noise and data")
    add_legend(figure, [axes for row in grid.values() for axes in row], frame, 3, [source])
    bits = " or ".join(str(bits) for bits in dict.fromkeys(ON_DATA.get(data, PAPER).value("bits") for data in sets))
    add_caption(figure, f"{settings_in_words(frame)} {bits} bits.")
    return figure


def _series(row: Mapping[Any, Any]) -> str | None:
    """Return the budget or noise of a run, and its bits if they are unusual."""
    if row["mechanism"] == "none":
        return None
    noise, usual = row.get("paper_noise_multiplier"), ON_DATA.get(row["data"], PAPER).value("bits")
    name = f"ε = {row['target_epsilon']:g}" if noise is None or pd.isna(noise) else f"z = {noise:g}"
    return name if row["bits"] == usual else f"{name}, table 1's bits"


def rate_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return a run for each cohort, budget and rate."""
    model, cohorts = ("mlp-32", [50, 200]) if quick else ("mlp-60-60-60", PAPER.value("cohort"))
    epsilons, rates = ([3.0, 10.0], (4, 10, 40)) if quick else ([1.0, 3.0, 10.0], (2, 4, 10, 20, 50))
    common = digits_common(quick=quick, model=model, clients_per_round=cohorts)
    return sketch_tasks(seed, common, row_sizes(digits_dimension(model), rates), 2 if quick else 3, {"epsilon": epsilons})


def paper_rate_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return runs in the paper's setting on its available data sets.

    The runs have the paper's noise, or a budget.
    """
    tasks: list[TrainingTask] = []
    for data in found_data(folder, tuple(ON_DATA)):
        paper, rates = ON_DATA[data.name], RATES_ON_DATA[data.name]
        common = paper_common(data, quick=quick, clients_per_round=paper.value("cohort"))
        noise = sorted({*LITTLE_NOISE[data.name], *(result.noise_multiplier for result in paper.reported if result.noise_multiplier)})
        noise, rates = (noise[-1:], rates[1:2]) if quick else (noise, rates)
        sizes, seeds = row_sizes(paper.value("parameters"), rates), 1 if quick else paper.value("seeds")
        tasks += sketch_tasks(seed, common, sizes, seeds, papers_noise(*noise), {"epsilon": EPSILON_ON_DATA})
        # The runs of table 1 have fewer bits; a quick run has only the runs of the largest noise.
        table = [
            _reported_run(paper, result) for result in paper.reported if result.bits and (not quick or result.noise_multiplier == noise[-1])
        ]
        if table:
            tasks += grid_tasks(seed, common | {"clients_per_round": max(common["clients_per_round"])}, table, seeds)
    return tasks


def _reported_run(paper: TrainingSettings, reported: ReportedResult) -> Mapping[str, Any]:
    """Return the block of a run of the paper's table, with its bits, noise and rate."""
    assert reported.noise_multiplier is not None  # noqa: S101 - all results of the table have one
    assert reported.rate is not None  # noqa: S101 - likewise
    shared = {"bits": reported.bits, **papers_noise(reported.noise_multiplier)}
    if reported.rate == 1:
        return {"name": DENSE, "rotation": ROTATION, **shared}
    (size,) = row_sizes(paper.value("parameters"), [reported.rate])
    return {"name": SKETCHED, "sketch_dimension": size, "rows": ROWS, **shared}


FIGURE = training_figure(
    name="price-training",
    paper=f"{PAPER.source}: accuracy against compression rate",
    experiment="trainings by sketches",
    tasks=rate_tasks,
    table=arrange_rates,
    draw=draw_training,
    on_data=paper_rate_tasks,
)
