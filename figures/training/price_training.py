"""What compression costs a model: accuracy of trainings by sketches in a secure sum, against the compression rate, budget and clients."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.training.task import TrainingTask
from ..drawing.marks import BLUE, GREEN, VERMILION
from ..drawing.style import add_caption
from .grids import add_legend, draw_accuracies, draw_no_privacy, panels
from .price_settings import PAPER, arrange_rates, digits_common, digits_dimension, femnist_common, row_sizes, setting_in_words, sketch_tasks
from .training_figure import training_figure

MARKS = (VERMILION, BLUE, GREEN)
RATES_ON_DATA, EPSILONS_ON_DATA = (5, 10, 20, 40, 50), [3.0, 10.0, 30.0]


def draw_training(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against the rate, a line for each budget, and a panel for each size of the cohort."""
    cohorts = sorted(frame["clients_per_round"].unique())
    figure, grid = panels(len(cohorts), 3.8)
    for axes, cohort in zip(grid, cohorts, strict=True):
        own = frame[frame["clients_per_round"] == cohort]
        for (epsilon, series), mark in zip(own.dropna(subset=["target_epsilon"]).groupby("target_epsilon"), MARKS, strict=False):
            draw_accuracies(axes, series, "rate", mark, f"ε = {epsilon:g}")
        draw_no_privacy(axes, own)
        ticks = sorted(round(value) for value in frame["rate"].unique())
        axes.set(xscale="log", xlabel="compression rate d/m", title=f"{cohort:,} clients a round")
        axes.set_xticks(ticks, [f"{rate}" for rate in ticks])
        axes.minorticks_off()
    add_legend(figure, grid[0])
    reported = PAPER.reported[-1]
    add_caption(
        figure,
        f"{setting_in_words(frame)} {PAPER.value('bits')} bits. Paper: "
        f"F-EMNIST, z = {reported.noise_multiplier:g}: {reported.accuracy['cohort-100']:g} % with 100 clients and rate 1, "
        f"{reported.accuracy['cohort-1000']:g} % with 1000 and rate {reported.rate:g}.",
    )
    return figure


def rate_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return a run for each cohort, budget and rate."""
    model, cohorts = ("mlp-32", [50, 200]) if quick else ("mlp-60-60-60", PAPER.value("cohort"))
    epsilons, rates = ([3.0, 10.0], (4, 10, 40)) if quick else ([1.0, 3.0, 10.0], (2, 4, 10, 20, 50))
    common = digits_common(quick=quick, model=model, clients_per_round=cohorts)
    return sketch_tasks(seed, common, row_sizes(digits_dimension(model), rates), 1 if quick else 3, epsilon=epsilons)


def paper_rate_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return runs on FEMNIST in the paper's setting, for budgets instead of its noise multipliers."""
    common = femnist_common(folder, quick=quick, model=PAPER.value("model"), clients_per_round=PAPER.value("cohort"))
    epsilons, rates = (EPSILONS_ON_DATA[-1:], RATES_ON_DATA[1:2]) if quick else (EPSILONS_ON_DATA, RATES_ON_DATA)
    return sketch_tasks(seed, common, row_sizes(PAPER.value("parameters"), rates), 1 if quick else PAPER.value("seeds"), epsilon=epsilons)


FIGURE = training_figure(
    name="price-training",
    paper=f"{PAPER.source}: accuracy against compression rate",
    experiment="trainings by sketches",
    tasks=rate_tasks,
    table=arrange_rates,
    draw=draw_training,
    on_data=paper_rate_tasks,
)
