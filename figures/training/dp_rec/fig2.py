"""Federated averaging by DP-REC: accuracy against bits of a group's index."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ....analysis.training.task import TrainingTask
from ...drawing.style import add_caption
from ..grids import accuracy_panels, add_legend, draw_accuracies, draw_level, draw_no_privacy, grid_tasks
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
    setting_in_words,
)

EPSILON = 3.0
QUICK_BITS, FULL_BITS = [4, 5, 7], [4, 5, 6, 7]


def draw_bits(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against bits, a line for each account."""
    figure, (axes,) = accuracy_panels(1, 4.0)
    for method in (PUBLISHED, PROVEN):
        draw_accuracies(axes, method.of(frame), "group_bits", method.look, method.label)
    draw_level(axes, DP_FEDAVG.of(frame), DP_FEDAVG.mark, "no compression: DP-FedAvg")
    if len(own := PAPERS_NOISE.of(frame)):
        draw_level(axes, own, PAPERS_NOISE.mark, PAPERS_NOISE.label)
    draw_no_privacy(axes, frame)
    axes.set(xlabel="bits of a group's index", xticks=sorted(frame["group_bits"].dropna().unique()), title=f"ε = {EPSILON:g}")
    axes.xaxis.set_major_formatter("{x:g}")
    add_legend(figure, axes, frame)
    add_caption(
        figure,
        f"{setting_in_words(frame)}; {guarantees_in_words(frame)}. The paper prints no numbers.",
    )
    return figure


def bit_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return a run for each number of bits and account."""
    return _tasks(seed, digits_ground(quick=quick), QUICK_BITS if quick else FULL_BITS, 2 if quick else 3)


def paper_bit_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return the paper's runs on FEMNIST, with as many rounds as DP-FedAvg."""
    ground = femnist_ground(folder, quick=quick)
    return _tasks(seed, ground, QUICK_BITS[-1:] if quick else FULL_BITS, rounds=ground.common["rounds"])


def _tasks(seed: int, ground: Ground, bits: list[int], repetitions: int = 1, **changed: int) -> list[TrainingTask]:
    blocks = [
        {"name": "none"},
        {"name": "dp-fedavg", **ground.sums, "epsilon": EPSILON},
        *ground.papers_noise([EPSILON]),
        *ground.dp_rec([EPSILON], "any-clients", group_bits=bits, **changed),
        *ground.dp_rec([EPSILON], "published", group_bits=bits, **changed),
    ]
    return grid_tasks(seed, ground.common, blocks, repetitions)


FIGURE = training_figure(
    name="dprec-fig2",
    paper=f"{PAPER.source}: figure 2",
    experiment="accuracy against bits of a group",
    tasks=bit_tasks,
    table=best_steps,
    draw=draw_bits,
    on_data=paper_bit_tasks,
)
