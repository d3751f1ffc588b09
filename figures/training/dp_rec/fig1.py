"""Federated averaging by DP-REC: accuracy against the bytes in both directions, round after round, at equal epsilon."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ....analysis.training.summary import summarise_training
from ....analysis.training.task import TrainingTask
from ...drawing.style import add_caption
from ..grids import add_legend, best_of, grid_tasks, panels
from ..training_figure import training_figure
from .settings import DDG, METHODS, PAPER, Ground, digits_ground, femnist_ground, guarantees_in_words, setting_in_words

EPSILON = 6.0
# How often accuracies are measured on the way.
POINTS = 10
SETTING = ("label", "target_epsilon", "server_rate")


def arrange_rounds(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each method and measured round, of the step that ends best, with the megabytes in both directions so far."""
    best = best_of(summarise_training(rows), SETTING[:-1])[list(SETTING)]
    kept = rows.merge(best, on=list(SETTING))
    parts = []
    for number in sorted(kept.loc[kept["accuracy"].notna(), "round"].unique()):
        until = kept[kept["round"] <= number]
        # Runs that have ended before have had their row.
        until = until[until.groupby("run")["round"].transform("max") == number]
        parts.append(summarise_training(until).assign(round=number))
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(megabytes=frame["megabytes_up"] + frame["megabytes_down"])


def last_rounds(table: pd.DataFrame) -> pd.DataFrame:
    """Return where each method ends."""
    names = ["label", "adjacency", "trust_model", "epsilon", "accuracy", "megabytes_up", "megabytes_down", "megabytes"]
    return table.groupby("label", sort=False).tail(1)[names]


def draw_rounds(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against megabytes, a line for each method."""
    figure, (axes,) = panels(1, 4.2)
    for method in METHODS:
        own = method.of(frame).sort_values("round")
        axes.plot(
            own["megabytes"],
            100 * own["accuracy"],
            color=method.mark.colour,
            linestyle=method.mark.line,
            marker=method.mark.marker,
            label=method.label,
        )
    axes.set(xscale="log", xlabel="megabytes up and down, all clients and rounds so far", title=f"ε = {EPSILON:g} at the end")
    axes.xaxis.set_major_formatter("{x:g}")
    add_legend(figure, axes, 3)
    total = PAPER.value("total_gib")
    add_caption(
        figure,
        f"{setting_in_words(frame)}, {guarantees_in_words(frame)}. DP-REC sends down what a client has missed where that is "
        f"shorter. Paper, FEMNIST, {PAPER.value('rounds')} rounds, both directions: {total['dp-rec']:g} GiB, and "
        f"{total['uncompressed']:g} without compression.",
    )
    return figure


def round_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return a run for each method."""
    return _tasks(seed, digits_ground(quick=quick), 1 if quick else 3)


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
        *ground.dp_rec([EPSILON], "any-clients", download="history"),
        *ground.dp_rec([EPSILON], "published", download="history"),
    ]
    common = {**ground.common, "evaluate_every": ground.common["rounds"] // POINTS}
    return grid_tasks(seed, common, blocks, repetitions)


FIGURE = training_figure(
    name="dprec-fig1",
    title="For its bytes no other private method comes as far as DP-REC, and with more bytes they all come farther",
    paper=f"{PAPER.source}: figure 1",
    duration="?",
    experiment="accuracy against communication",
    tasks=round_tasks,
    table=arrange_rounds,
    summary=last_rounds,
    draw=draw_rounds,
    on_data=paper_round_tasks,
)
