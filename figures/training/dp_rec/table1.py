"""Federated averaging by DP-REC and by other methods: accuracy against bytes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ....analysis.datasets.found_data import found_data
from ....analysis.training.task import TrainingTask
from ....errors import InfeasibleError
from ...drawing.style import add_caption
from ...findings import Finding
from ..grids import (
    accuracy_errors,
    add_legend,
    by_data,
    draw_reported,
    grid_tasks,
    panel_rows,
    panel_title,
    reported_handle,
)
from ..training_figure import training_figure
from .settings import (
    CALIBRATED,
    DDG,
    METHODS,
    NO_PRIVACY,
    ON_DATA,
    PAPER,
    Ground,
    best_steps,
    compared_with,
    digits_ground,
    guarantees_in_words,
    paper_ground,
    readable_columns,
    reported_accuracy,
    reported_source,
    setting_in_words,
)

EPSILONS = (3.0, 6.0)
BYTES_IN_WORDS = "Marks: megabytes up; their lines end at those both ways"


def arrange_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the best step of each method and budget, with saved bytes and paper's accuracy."""
    frame = best_steps(rows)
    if frame["stated_epsilon"].isna().all():
        raise InfeasibleError("dprec-table1: no mechanism keeps a budget on any of the data")
    frame = frame.assign(megabytes=frame["megabytes_up"] + frame["megabytes_down"])
    floats = frame[frame["mechanism"] == "none"].set_index("data")
    fewer = {f"times_fewer_bytes{way}": frame["data"].map(floats[f"megabytes{way}"]) / frame[f"megabytes{way}"] for way in ("_up", "")}
    paper = pd.Series(np.nan, index=frame.index)
    for method in METHODS:
        own = method.of(frame)
        # The table shows the paper's accuracy beside methods that the package does not calibrate, and beside floats after as many rounds.
        rounds = own["data"].map(lambda data: compared_with(data).value("rounds"))
        same = own["rounds"] == rounds if method is NO_PRIVACY else method not in CALIBRATED
        own = own[~own["data"].isin(list(ON_DATA)) | same]
        reported = [reported_accuracy(method, epsilon, data) for data, epsilon in zip(own["data"], own["stated_epsilon"], strict=True)]
        paper[own.index] = np.array(reported, dtype=float)
    compared = frame["data"].map(lambda data: compared_with(data).data)
    return frame.assign(**fewer, paper_data=compared, paper_percent=paper)


def short_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of the table that readers see."""
    sent = ["megabytes_up", "megabytes_down", "times_fewer_bytes_up", "times_fewer_bytes"]
    return readable_columns(table, ["accuracy", *sent, "paper_data", "paper_percent"])


def draw_bytes(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against bytes up, with a line that ends at the bytes in both directions.

    Each data set has a row of panels, and each budget a panel.
    """
    # The text below the figure names the other data sets, without a mechanism that keeps a budget.
    sets = {data: own for data, own in by_data(frame).items() if own["stated_epsilon"].notna().any()}
    drawn = pd.concat(sets.values())
    budgets = {data: sorted(own["stated_epsilon"].dropna().unique()) for data, own in sets.items()}
    measures = {data: compared_with(data).values.get("measure", "accuracy") for data in sets}
    counts = {data: len(own) for data, own in budgets.items()}
    figure, grid = panel_rows(counts, 4.0, measures)
    for data, row in grid.items():
        for axes, epsilon in zip(row, budgets[data], strict=True):
            _draw_budget(axes, sets[data], epsilon)
            axes.set(xlabel="megabytes", title=panel_title(grid, data, f"ε = {epsilon:g}"))
    # Not all methods run on all data, so the legend begins with the panel of the most methods.
    every = [axes for row in grid.values() for axes in row]
    source = reported_source(next(iter(sets))) if len(sets) == 1 else reported_handle("the paper, on the same data")
    add_legend(figure, sorted(every, key=lambda axes: -len(axes.containers)), drawn, 3, [source])
    # The table has the settings of several data sets.
    setting = setting_in_words(drawn) if len(sets) == 1 else "One local epoch a round"
    add_caption(figure, f"{setting}; {guarantees_in_words(drawn)}. {BYTES_IN_WORDS}.")
    return figure


def _draw_budget(axes: Axes, frame: pd.DataFrame, epsilon: float) -> None:
    for method in METHODS:
        own = method.of(frame)
        own = own[(own["stated_epsilon"] == epsilon) | own["stated_epsilon"].isna()]
        if own.empty:
            continue
        axes.errorbar(
            own["megabytes_up"],
            100 * own["accuracy"],
            yerr=100 * accuracy_errors(own),
            **{**method.look, "linestyle": ""},
            markersize=7,
            capsize=2,
            label=method.label,
        )
        draw_reported(axes, own["megabytes_up"], own["paper_percent"], method.mark)
        for up, both, accuracy in own[["megabytes_up", "megabytes", "accuracy"]].to_numpy(dtype=float).tolist():
            look: dict[str, Any] = {"color": method.mark.colour, "marker": "|", "markevery": [1], "markersize": 7}
            axes.plot([up, both], [100 * accuracy] * 2, linewidth=0.8, alpha=0.8, **look)
    axes.set_xscale("log")


def table_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return a run for each method, budget and step of the server."""
    # A quick run has only one budget, because accounts of secretly sampled sums take long.
    return _tasks(seed, digits_ground(quick=quick), list(EPSILONS[-1:] if quick else EPSILONS), 2 if quick else 3)


def paper_table_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return the paper's runs on its data sets in the folder."""
    tasks = []
    for available in found_data(folder, tuple(ON_DATA)):
        paper = ON_DATA[available.name]
        epsilons = [result.epsilon for result in paper.reported if result.epsilon]
        # The paper reports no discrete Gaussian on MNIST and Shakespeare.
        sums = any("ddg16" in result.accuracy for result in paper.reported)
        tasks += _tasks(seed, paper_ground(available, quick=quick), epsilons[-1:] if quick else epsilons, sums=sums)
    return tasks


def _tasks(seed: int, ground: Ground, epsilons: list[float], repetitions: int = 1, *, sums: bool = True) -> list[TrainingTask]:
    budget: dict[str, Any] = {**ground.sums, "epsilon": epsilons}
    blocks = [
        {"name": "none"},
        {"name": "quantised"},
        {"name": "dp-fedavg", **budget},
        *([{"name": DDG, "bits": [16, 12], **budget}] if sums else []),
        *ground.dp_rec(epsilons, "any-clients"),
        *ground.published(epsilons),
        *ground.papers_noise(epsilons),
        *ground.levels(epsilons),
    ]
    return grid_tasks(seed, ground.common, blocks, repetitions)


def _fewer(frame: pd.DataFrame, way: str) -> "pd.Series[float]":
    """Return the ratio of the bytes of floats to the bytes of DP-REC's messages."""
    return frame.loc[frame["mechanism"].str.contains("dp-rec"), f"times_fewer_bytes{way}"]


FIGURE = training_figure(
    name="dprec-table1",
    paper=PAPER.source,
    experiment="federated averaging at equal epsilon",
    tasks=table_tasks,
    table=arrange_table,
    summary=short_table,
    draw=draw_bytes,
    on_data=paper_table_tasks,
    findings=(
        Finding("Bytes up of floats over those of DP-REC", lambda frame: _fewer(frame, "_up")),
        Finding("both ways", lambda frame: _fewer(frame, "")),
    ),
)
