"""Federated averaging by DP-REC: accuracy against epsilon."""

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ....analysis.training.task import TrainingTask
from ...drawing.style import add_caption
from ..grids import accuracy_panels, add_legend, draw_accuracies, draw_no_privacy, draw_reported, grid_tasks
from ..training_figure import training_figure
from .settings import (
    DP_FEDAVG,
    PAPER,
    PAPERS_NOISE,
    PROVEN,
    PUBLISHED,
    Ground,
    best_steps,
    digits_ground,
    femnist_ground,
    guarantees_in_words,
    reported_source,
    setting_in_words,
)

QUICK_EPSILONS, FULL_EPSILONS = (1.0, 3.0, 6.0, 12.0), (0.5, 1.0, 3.0, 6.0, 12.0, 24.0)


def draw_budgets(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against epsilon, a line for each method."""
    figure, (axes,) = accuracy_panels(1, 4.0)
    for method in (DP_FEDAVG, PUBLISHED, PROVEN):
        draw_accuracies(axes, method.of(frame), "stated_epsilon", method.look, method.label)
    if len(own := PAPERS_NOISE.of(frame)):
        draw_accuracies(axes, own, "epsilon", PAPERS_NOISE.look, PAPERS_NOISE.label)
    draw_no_privacy(axes, frame)
    for method in (DP_FEDAVG, PROVEN):
        for result in PAPER.reported:
            draw_reported(axes, [result.epsilon or math.nan], [result.accuracy[method.reported]], method.mark)
    ticks = sorted(frame["stated_epsilon"].dropna().unique())
    axes.set(xscale="log", xlabel="ε of all rounds")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    add_legend(figure, axes, frame, 3, [reported_source(PAPER.data)])
    add_caption(figure, f"{setting_in_words(frame)}; {guarantees_in_words(frame)}.")
    return figure


def budget_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return a run for each method and budget."""
    return _tasks(seed, digits_ground(quick=quick), QUICK_EPSILONS if quick else FULL_EPSILONS, 2 if quick else 3)


def paper_budget_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return the paper's runs on FEMNIST."""
    epsilons = [result.epsilon for result in PAPER.reported if result.epsilon]
    return _tasks(seed, femnist_ground(folder, quick=quick), epsilons[-1:] if quick else epsilons)


def _tasks(seed: int, ground: Ground, epsilons: Sequence[float], repetitions: int = 1) -> list[TrainingTask]:
    blocks = [
        {"name": "none"},
        {"name": "dp-fedavg", **ground.sums, "epsilon": list(epsilons)},
        *ground.dp_rec(epsilons, "any-clients"),
        *ground.published(epsilons),
        *ground.papers_noise(epsilons),
    ]
    return grid_tasks(seed, ground.common, blocks, repetitions)


FIGURE = training_figure(
    name="dprec-fig3",
    paper=f"{PAPER.source}: figure 3",
    experiment="accuracy against epsilon",
    tasks=budget_tasks,
    table=best_steps,
    draw=draw_budgets,
    on_data=paper_budget_tasks,
)
