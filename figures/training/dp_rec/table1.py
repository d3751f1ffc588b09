"""Federated averaging by DP-REC and what it is compared with: accuracy against bytes, at equal epsilon."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from ....analysis.training.task import TrainingTask
from ...drawing.style import add_caption
from ..grids import add_legend, grid_tasks, logarithmic, panels
from ..training_figure import training_figure
from .settings import (
    DDG,
    METHODS,
    PAPER,
    Ground,
    best_steps,
    digits_ground,
    femnist_ground,
    guarantees_in_words,
    reported_accuracy,
    setting_in_words,
)

EPSILONS = (3.0, 6.0)


def arrange_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the best step of each method and budget, with its saving in bytes up, and what the paper reports on its own data."""
    frame = best_steps(rows)
    # All that send floats send as many bytes.
    uncompressed = frame.loc[frame["mechanism"] == "none", "megabytes_up"].iloc[0]
    paper = pd.Series([None] * len(frame), index=frame.index, dtype=float)
    for method in METHODS:
        own = method.of(frame)
        paper[own.index] = [reported_accuracy(method, epsilon) for epsilon in own["target_epsilon"]]
    return frame.assign(times_fewer_bytes_up=uncompressed / frame["megabytes_up"], paper_femnist_percent=paper)


def short_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that people read."""
    names = ["label", "adjacency", "trust_model", "target_epsilon", "accuracy", "megabytes_up", "megabytes_down", "times_fewer_bytes_up"]
    return table[[*names, "paper_femnist_percent"]]


def draw_bytes(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against bytes, a point for each method, in a panel for each budget."""
    budgets = sorted(frame["target_epsilon"].dropna().unique())
    figure, grid = panels(len(budgets), 4.0)
    for axes, epsilon in zip(grid, budgets, strict=True):
        for method in METHODS:
            own = method.of(frame)
            own = own[(own["target_epsilon"] == epsilon) | own["target_epsilon"].isna()]
            axes.errorbar(
                own["megabytes_up"],
                100 * own["accuracy"],
                yerr=100 * own["standard_error"].fillna(0.0),
                color=method.mark.colour,
                marker=method.mark.marker,
                markersize=7,
                linestyle="",
                label=method.label,
            )
        axes.set(xlabel="megabytes up, all clients and rounds", title=f"ε = {epsilon:g}")
        logarithmic(axes)
    add_legend(figure, grid[0], 3)
    ours = PAPER.reported[-1]
    add_caption(
        figure,
        f"{setting_in_words(frame)}; {guarantees_in_words(frame)}. Paper, FEMNIST, ε = {ours.epsilon:g}: "
        + ", ".join(f"{name} {value:g}" for name, value in ours.accuracy.items())
        + f"; not private: {PAPER.value('no_privacy_accuracy')['fedavg']:g} (4000 rounds), "
        f"8 bits {PAPER.value('scalar_quantiser_accuracy')} %.",
    )
    return figure


def table_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return a run for each method, budget and step of the server."""
    # Accounts of sums that secret sampling amplifies take long.
    return _tasks(seed, digits_ground(quick=quick), list(EPSILONS[-1:] if quick else EPSILONS), 1 if quick else 3)


def paper_table_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return the paper's runs on FEMNIST."""
    found = [one.epsilon for one in PAPER.reported if one.epsilon]
    return _tasks(seed, femnist_ground(folder, quick=quick), found[-1:] if quick else found)


def _tasks(seed: int, ground: Ground, epsilons: list[float], repetitions: int = 1) -> list[TrainingTask]:
    budget: dict[str, Any] = {**ground.sums, "epsilon": epsilons}
    blocks = [
        {"name": "none"},
        {"name": "quantised"},
        {"name": "dp-fedavg", **budget},
        {"name": DDG, "bits": [16, 12], **budget},
        *ground.dp_rec(epsilons, "any-clients"),
        *ground.dp_rec(epsilons, "published"),
    ]
    return grid_tasks(seed, ground.common, blocks, repetitions)


FIGURE = training_figure(
    name="dprec-table1",
    paper=PAPER.source,
    experiment="federated averaging at equal epsilon",
    tasks=table_tasks,
    table=arrange_table,
    summary=short_table,
    draw=draw_bytes,
    on_data=paper_table_tasks,
)
