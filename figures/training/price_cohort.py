"""Accuracy of sketched trainings against clients of a round, by compression rate.

The sketches go through a secure sum, and all trainings have the same epsilon.
"""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.training.task import TrainingTask
from ..drawing.marks import BLUE, GREEN, VERMILION
from ..drawing.style import add_caption
from .grids import NO_PRIVACY_LOOK, accuracy_panels, add_legend, draw_accuracies
from .price_settings import (
    EPSILON,
    EPSILON_ON_DATA,
    PAPER,
    arrange_rates,
    digits_common,
    digits_dimension,
    femnist_common,
    row_sizes,
    setting_in_words,
    sketch_tasks,
)
from .training_figure import training_figure

MARKS = (BLUE, VERMILION, GREEN)
RATES = (4, 40)
QUICK_COHORTS, FULL_COHORTS = [25, 50, 100, 200, 400], [50, 100, 200, 500, 1000]


def draw_cohorts(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against the number of clients of a round, a line for each rate."""
    figure, (axes,) = accuracy_panels(1, 3.8)
    private = frame[frame["mechanism"] != "none"]
    for (rate, own), mark in zip(private.groupby("rate"), MARKS, strict=False):
        draw_accuracies(axes, own, "clients_per_round", mark, "no compression" if rate == 1 else f"compression rate {rate:.3g}")
    free = frame[frame["mechanism"] == "none"].sort_values("clients_per_round")
    axes.plot(free["clients_per_round"], 100 * free["accuracy"], **NO_PRIVACY_LOOK, label="no privacy")
    ticks = sorted(frame["clients_per_round"].unique())
    axes.set(xscale="log", xlabel="clients of a round")
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    add_legend(figure, axes)
    stated = "; ".join(
        f"z = {result.noise_multiplier:g}: {result.accuracy['cohort-100']:g} with 100 clients, "
        f"{result.accuracy['cohort-1000']:g} with 1000 at rate {result.rate:g}"
        for result in PAPER.reported[1:]
    )
    add_caption(figure, f"{setting_in_words(frame)} {PAPER.value('bits')} bits. Paper, F-EMNIST, {stated} %.")
    return figure


def cohort_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return runs for each cohort and rate."""
    model, cohorts = ("mlp-32", QUICK_COHORTS) if quick else ("mlp-60-60-60", FULL_COHORTS)
    common = digits_common(quick=quick, model=model, clients_per_round=cohorts)
    return sketch_tasks(seed, common, row_sizes(digits_dimension(model), RATES), 2 if quick else 3, {"epsilon": EPSILON})


def paper_cohort_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return runs on FEMNIST in the paper's setting."""
    cohorts = FULL_COHORTS[:1] if quick else [cohort for cohort in FULL_COHORTS if cohort >= min(PAPER.value("cohort"))]
    common = femnist_common(folder, quick=quick, model=PAPER.value("model"), clients_per_round=cohorts)
    return sketch_tasks(seed, common, row_sizes(PAPER.value("parameters"), RATES), 1, {"epsilon": EPSILON_ON_DATA})


FIGURE = training_figure(
    name="price-training-cohort",
    paper=f"{PAPER.source}: cohorts at one epsilon",
    experiment="trainings by sketches, cohorts",
    tasks=cohort_tasks,
    table=arrange_rates,
    draw=draw_cohorts,
    on_data=paper_cohort_tasks,
)
