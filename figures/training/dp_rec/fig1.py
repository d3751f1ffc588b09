"""Federated averaging by DP-REC: accuracy against bytes in both directions."""

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ....analysis.training.summary import summarise_training
from ....analysis.training.task import TrainingTask
from ...drawing.directed_rounding import rounded_up
from ...drawing.style import add_caption
from ..grids import accuracy_panels, add_legend, best_of, draw_accuracies, draw_reported, grid_tasks
from ..training_figure import training_figure
from .settings import (
    DDG,
    DP_REC,
    METHODS,
    PAPER,
    Ground,
    digits_ground,
    femnist_ground,
    guarantees_in_words,
    readable_columns,
    reported_accuracy,
    reported_source,
    setting_in_words,
    stated_epsilon,
)

EPSILON = 6.0
# Number of measurements of the accuracy during a run.
POINTS = 10
PANELS = (("megabytes_up", "megabytes up, all clients so far"), ("megabytes", "megabytes up and down, all clients so far"))
SETTING = ("label", "target_epsilon", "server_rate")


def arrange_rounds(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each method and measured round, with the megabytes sent so far.

    A method with several steps of the server keeps the step of highest final accuracy.
    """
    best = best_of(summarise_training(rows), SETTING[:-1])[list(SETTING)]
    kept = rows.merge(best, on=list(SETTING))
    parts = []
    for number in sorted(kept.loc[kept["accuracy"].notna(), "round"].unique()):
        until = kept[kept["round"] <= number]
        # Runs that ended in an earlier round already have a row.
        until = until[until.groupby("run")["round"].transform("max") == number]
        parts.append(summarise_training(until).assign(round=number))
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(megabytes=frame["megabytes_up"] + frame["megabytes_down"], stated_epsilon=stated_epsilon(frame))


def last_rounds(table: pd.DataFrame) -> pd.DataFrame:
    """Return the last row of each method."""
    last = table.groupby("label", sort=False).tail(1)
    return readable_columns(last, ["accuracy", "megabytes_up", "megabytes_down", "megabytes"])


def draw_rounds(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against megabytes, a line for each method.

    A panel counts the messages of clients, and a panel counts both directions.
    """
    figure, grid = accuracy_panels(len(PANELS), 4.2, shared=False)
    for axes, (column, label) in zip(grid, PANELS, strict=True):
        for method in METHODS:
            own, mark = method.of(frame).sort_values("round"), method.mark
            if own.empty:
                continue
            draw_accuracies(axes, own, column, method.look, f"{method.label}{both_accounts(own)}")
            reported = reported_accuracy(method, EPSILON, own["data"].iloc[0])
            if reported is not None:
                draw_reported(axes, own[column].iloc[[-1]], [reported], mark)
        axes.set(xlabel=label)
        axes.set_xscale("log")
    add_legend(figure, grid[0], frame, 2, [reported_source(PAPER.data)])
    add_caption(
        figure,
        f"{setting_in_words(frame)}; ε = {EPSILON:g} at the end, {guarantees_in_words(frame)}. Down: the model, or what a DP-REC client "
        "has missed.",
    )
    return figure


def both_accounts(runs: pd.DataFrame) -> str:
    """Return DP-REC's epsilon after the last round by the account that was not calibrated, in words; nothing for other methods.

    The published account is for add-or-remove-one adjacency, the proven one for replace-one adjacency.
    """
    last = runs.iloc[-1]
    if last["mechanism"] != DP_REC:
        return ""
    name, column = ("proven", "epsilon_any_clients") if last["account"] == "published" else ("published", "epsilon_published")
    epsilon = float(last[column])
    return f" ({name}: {'infinite' if math.isinf(epsilon) else rounded_up(epsilon, 3)})"


def round_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return trainings of every method on the digits; quick runs have two repetitions."""
    return _tasks(seed, digits_ground(quick=quick), 2 if quick else 3)


def paper_round_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return the paper's runs on FEMNIST."""
    return _tasks(seed, femnist_ground(folder, quick=quick))


def _tasks(seed: int, ground: Ground, repetitions: int = 1) -> list[TrainingTask]:
    budget = {**ground.sums, "epsilon": EPSILON}
    blocks = [
        {"name": "none"},
        {"name": "quantised"},
        {"name": "dp-fedavg", **budget},
        {"name": DDG, "bits": [16, 12], **budget},
        *ground.dp_rec([EPSILON], "any-clients"),
        *ground.published([EPSILON]),
        *ground.papers_noise([EPSILON]),
    ]
    common = {**ground.common, "evaluate_every": ground.common["rounds"] // POINTS}
    return grid_tasks(seed, common, blocks, repetitions)


FIGURE = training_figure(
    name="dprec-fig1",
    paper=f"{PAPER.source}: figure 1",
    experiment="accuracy against communication",
    tasks=round_tasks,
    table=arrange_rounds,
    summary=last_rounds,
    draw=draw_rounds,
    on_data=paper_round_tasks,
)
