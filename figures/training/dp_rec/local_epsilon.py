"""Accuracy against the epsilon of one message: DP-REC, and Gaussian noise on each update."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from ....analysis.training.summary import summarise_training
from ....analysis.training.task import TrainingTask
from ...drawing.directed_rounding import rounded_up
from ...drawing.marks import BLUE, VERMILION
from ...drawing.style import add_caption
from ..grids import accuracy_panels, add_legend, best_of, draw_accuracies, draw_no_privacy, grid_tasks
from ..training_figure import training_figure
from .settings import PAPER, Ground, digits_ground, femnist_ground, setting_in_words

LINES = (("gaussian", "Gaussian noise", BLUE), ("dp-rec", "DP-REC", VERMILION))
QUICK_EPSILONS, FULL_EPSILONS = [4.0, 8.0, 16.0], [2.0, 4.0, 8.0, 16.0]


def arrange_messages(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the best step of each method and epsilon of a message."""
    return best_of(summarise_training(rows), ["label", "round_epsilon"]).reset_index(drop=True)


def draw_messages(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against the epsilon of one message."""
    figure, (axes,) = accuracy_panels(1, 3.8)
    for name, label, mark in LINES:
        own = frame[frame["mechanism"] == name]
        if own.empty:
            continue
        length = own["bits_per_client"].iloc[0] / 8
        draw_accuracies(axes, own, "round_epsilon", mark, f"{label}, {length:,.0f} bytes a message")
    draw_no_privacy(axes, frame)
    ticks = sorted(frame["round_epsilon"].dropna().unique())
    axes.set(xscale="log", xlabel="ε of one message")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    add_legend(figure, axes, 3)
    pairs = " and ".join(f"{first:g} against {second:g}" for first, second in PAPER.value("equal_local_accuracy"))
    delta = rounded_up(frame["delta"].max(), 2)
    add_caption(
        figure,
        f"{setting_in_words(frame)}; δ = {delta}, {frame['adjacency'].iloc[0]} adjacency, local trust model. Paper, "
        f"FEMNIST, equal local ε, which is not stated, {PAPER.value('fedavg_rounds')} rounds: {pairs} %.",
    )
    return figure


def message_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return a run for each method and epsilon of a message."""
    ground = digits_ground(quick=quick)
    changed = {"clients_per_round": 100} if quick else {}
    return _tasks(seed, ground, QUICK_EPSILONS if quick else FULL_EPSILONS, 1 if quick else 3, **changed)


def paper_message_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return runs on FEMNIST, in the paper's setting."""
    return _tasks(seed, femnist_ground(folder, quick=quick), QUICK_EPSILONS[-1:] if quick else FULL_EPSILONS, adjacency="replace-one")


def _tasks(seed: int, ground: Ground, epsilons: list[float], repetitions: int = 1, **changed: Any) -> list[TrainingTask]:
    budget = {"round_epsilon": epsilons, "server_rate": ground.history.get("server_rate", ground.common.get("server_rate", 1.0))}
    blocks = [
        {"name": "none"},
        {"name": "gaussian", **budget},
        {"name": "dp-rec", "download": "history", "groups": PAPER.value("groups"), "group_bits": PAPER.value("bits_per_group"), **budget},
    ]
    return grid_tasks(seed, {**ground.common, **changed}, blocks, repetitions)


FIGURE = training_figure(
    name="dprec-local-epsilon",
    paper=f"{PAPER.source}: the comparison at equal local epsilon",
    experiment="accuracy against the epsilon of a message",
    tasks=message_tasks,
    table=arrange_messages,
    draw=draw_messages,
    on_data=paper_message_tasks,
)
