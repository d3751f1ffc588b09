"""Accuracy of sketched trainings against clients of a round, by compression rate.

The sketches go through a secure sum, and all trainings have the same epsilon.
"""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.training.task import TrainingTask
from ..drawing.marks import series_marks
from ..drawing.style import add_caption
from .grids import NO_PRIVACY, accuracy_panels, add_legend, draw_accuracies, draw_reported, reported_handle
from .price_settings import (
    EPSILON,
    EPSILON_ON_DATA,
    FEW,
    LARGEST_NOISE,
    LARGEST_NOISE_SOURCE,
    MANY,
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

RATES = (4, 40)
QUICK_COHORTS, FULL_COHORTS = [25, 50, 100, 200, 400], [50, 100, 200, 500, 1000]


def draw_cohorts(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against the number of clients of a round, a line for each rate."""
    figure, (axes,) = accuracy_panels(1, 3.8)
    private = frame[frame["mechanism"] != "none"]
    rates = list(private.groupby("rate"))
    marks = series_marks(len(rates))
    for (rate, own), mark in zip(rates, marks, strict=True):
        draw_accuracies(axes, own, "clients_per_round", mark.look, "no compression" if rate == 1 else f"compression rate {rate:.3g}")
    draw_accuracies(axes, frame[frame["mechanism"] == "none"], "clients_per_round", NO_PRIVACY.look, "no privacy")
    for cohort, mark in ((FEW, marks[0]), (MANY, marks[-1])):
        draw_reported(axes, [cohort], [LARGEST_NOISE.accuracy[f"cohort-{cohort}"]], mark)
    axes.set_xlabel("clients of a round")
    axes.set_xscale("log")
    add_legend(figure, axes, frame, 3, [reported_handle(LARGEST_NOISE_SOURCE)])
    add_caption(
        figure,
        f"{setting_in_words(frame)} {PAPER.value('bits')} bits. The paper: no compression with {FEW} clients, rate "
        f"{LARGEST_NOISE.rate:g} with {MANY:,}.",
    )
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
