"""What compression costs a model: accuracy of trainings by sketches in a secure sum, against the compression rate, budget and clients."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.datasets.found_data import found_data
from ...analysis.training.task import TrainingTask
from ..drawing.marks import BLUE, GREEN, VERMILION
from ..drawing.style import add_caption, extend_caption
from ..training_settings import TrainingSettings
from .grids import add_legend, by_data, draw_accuracies, draw_no_privacy, panel_rows, panel_title
from .price_settings import (
    ON_DATA,
    PAPER,
    arrange_rates,
    digits_common,
    digits_dimension,
    paper_common,
    row_sizes,
    setting_in_words,
    sketch_tasks,
)
from .training_figure import training_figure

MARKS = (VERMILION, BLUE, GREEN)
EPSILONS_ON_DATA = [3.0, 10.0, 30.0]
RATES_ON_DATA = {"femnist": (5, 10, 20, 40, 50), "stackoverflow-words": (4, 5, 10, 20)}


def draw_training(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against the rate, a line for each budget, a panel for each size of the cohort, and a row of them for each data."""
    sets = by_data(frame)
    cohorts = {data: sorted(own["clients_per_round"].unique()) for data, own in sets.items()}
    figure, grid = panel_rows({data: len(own) for data, own in cohorts.items()}, 3.8)
    for data, row in grid.items():
        ticks = sorted(round(value) for value in sets[data]["rate"].unique())
        for axes, cohort in zip(row, cohorts[data], strict=True):
            own = sets[data][sets[data]["clients_per_round"] == cohort]
            for (epsilon, series), mark in zip(own.dropna(subset=["target_epsilon"]).groupby("target_epsilon"), MARKS, strict=False):
                draw_accuracies(axes, series, "rate", mark, f"ε = {epsilon:g}")
            draw_no_privacy(axes, own)
            axes.set(xscale="log", xlabel="compression rate d/m", title=panel_title(grid, data, f"{cohort:,} clients a round"))
            axes.set_xticks(ticks, [f"{rate}" for rate in ticks])
            axes.minorticks_off()
    add_legend(figure, [axes for row in grid.values() for axes in row])
    for number, (data, own) in enumerate(sets.items()):
        paper = ON_DATA.get(data, PAPER)
        (extend_caption if number else add_caption)(
            figure, f"{setting_in_words(own)} {paper.value('bits')} bits. Paper: {_reported(paper)}."
        )
    return figure


def _reported(paper: TrainingSettings) -> str:
    """Return what the paper reports at the largest noise and the highest rate: its cohorts, or its rates, beside each other."""
    last = paper.reported[-1]
    noise = f"z = {last.noise_multiplier:g}"
    if "cohort-100" in last.accuracy:
        of_few, of_many = last.accuracy["cohort-100"], last.accuracy["cohort-1000"]
        return f"F-EMNIST, {noise}: {of_few:g} % with 100 clients and rate 1, {of_many:g} % with 1000 and rate {last.rate:g}"
    same = [one for one in paper.reported if one.noise_multiplier == last.noise_multiplier]
    of_rates = [f"{one.accuracy['cohort-1000']:g} % at {one.rate:g}" for one in same]
    return f"{noise}, 1000 clients, {', '.join(of_rates)}"


def rate_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return a run for each cohort, budget and rate."""
    model, cohorts = ("mlp-32", [50, 200]) if quick else ("mlp-60-60-60", PAPER.value("cohort"))
    epsilons, rates = ([3.0, 10.0], (4, 10, 40)) if quick else ([1.0, 3.0, 10.0], (2, 4, 10, 20, 50))
    common = digits_common(quick=quick, model=model, clients_per_round=cohorts)
    return sketch_tasks(seed, common, row_sizes(digits_dimension(model), rates), 1 if quick else 3, epsilon=epsilons)


def paper_rate_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return runs in the paper's setting on those of its data that there are, for budgets instead of its noise multipliers."""
    tasks: list[TrainingTask] = []
    for found in found_data(folder, tuple(ON_DATA)):
        paper, rates = ON_DATA[found.name], RATES_ON_DATA[found.name]
        common = paper_common(found, quick=quick, clients_per_round=paper.value("cohort"))
        epsilons, rates = (EPSILONS_ON_DATA[-1:], rates[1:2]) if quick else (EPSILONS_ON_DATA, rates)
        sizes = row_sizes(paper.value("parameters"), rates)
        tasks += sketch_tasks(seed, common, sizes, 1 if quick else paper.value("seeds"), epsilon=epsilons)
    return tasks


FIGURE = training_figure(
    name="price-training",
    paper=f"{PAPER.source}: accuracy against compression rate",
    experiment="trainings by sketches",
    tasks=rate_tasks,
    table=arrange_rates,
    draw=draw_training,
    on_data=paper_rate_tasks,
)
