"""Relative entropy coding without privacy: accuracy against bytes, by group size.

The comparison has floats, a group for each tensor, and groups of 64 coordinates.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ....analysis.training.summary import summarise_training
from ....analysis.training.task import TrainingTask
from ...drawing.marks import GREY, mechanism_mark
from ...drawing.style import add_caption
from ..grids import accuracy_errors, accuracy_panels, add_legend, best_of, draw_reported, grid_tasks
from ..training_figure import training_figure
from .settings import DP_REC, PAPER, Ground, digits_ground, femnist_ground, reported_source, setting_in_words

COORDINATES = 64
# Clip norms over the standard deviation of samples, which no guarantee limits without privacy; the largest has the least noise.
QUICK_RATIOS, FULL_RATIOS = [3.0], [1.0, 2.0, 3.0]
ROWS = (
    ("floats", "fedavg", "FedAvg, floats", GREY),
    ("tensors", "dp-rec", "a group for each tensor", mechanism_mark("dp-rec")),
    ("groups", "dp-rec-groups-of-64", f"groups of {COORDINATES} coordinates", replace(mechanism_mark("dp-rec"), marker="D")),
)


def arrange_compression(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the best clip ratio and step of each coding, with the paper's accuracy."""
    frame = summarise_training(rows)
    coded = frame["mechanism"] == DP_REC
    frame = best_of(
        frame.assign(sent=coded.map({False: "floats", True: "tensors"}).mask(frame["group_size"] == COORDINATES, "groups")), ["sent"]
    )
    uncompressed = frame.loc[frame["sent"] == "floats", "megabytes_up"].iloc[0]
    reported = {sent: float(PAPER.value("no_privacy_accuracy")[key]) for sent, key, *_ in ROWS}
    columns = {"times_fewer_bytes_up": uncompressed / frame["megabytes_up"], "paper_femnist_percent": frame["sent"].map(reported)}
    return frame.assign(**columns).reset_index(drop=True)


def short_compression(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of the table that readers see."""
    names = ["label", "sent", "clip_ratio", "accuracy", "standard_error", "megabytes_up", "megabytes_down", "times_fewer_bytes_up"]
    return table[[*names, "paper_femnist_percent"]]


def draw_compression(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against bytes up, a point for each way to send an update."""
    figure, (axes,) = accuracy_panels(1, 3.6)
    for sent, _, label, mark in ROWS:
        own = frame[frame["sent"] == sent]
        axes.errorbar(
            own["megabytes_up"],
            100 * own["accuracy"],
            yerr=100 * accuracy_errors(own),
            **mark.points,
            markersize=7,
            capsize=2,
            label=label,
        )
        draw_reported(axes, own["megabytes_up"], own["paper_femnist_percent"], mark)
    axes.set(xlabel="megabytes up, all clients and rounds")
    axes.set_xscale("log")
    axes.margins(x=0.1)
    add_legend(figure, axes, frame, 3, [reported_source(PAPER.data)])
    add_caption(
        figure,
        f"{setting_in_words(frame)}. {PAPER.value('bits_per_group')} bits a group, nothing is private; clip norm over deviation up to "
        f"{frame['clip_ratio'].max():g}. The paper has {PAPER.value('rounds')} rounds.",
    )
    return figure


def compression_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return runs for each way to send an update."""
    return _tasks(seed, digits_ground(quick=quick), QUICK_RATIOS if quick else FULL_RATIOS, 2 if quick else 3)


def paper_compression_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return the paper's runs on FEMNIST."""
    return _tasks(seed, femnist_ground(folder, quick=quick), QUICK_RATIOS if quick else FULL_RATIOS)


def _tasks(seed: int, ground: Ground, ratios: list[float], repetitions: int = 1) -> list[TrainingTask]:
    tensors = {name: value for name, value in ground.history.items() if name != "group_size"} | {"name": DP_REC, "clip_ratio": ratios}
    rounds = {"rounds": ground.history.get("rounds", ground.common["rounds"])}
    blocks = [{"name": "none", **rounds}, tensors, {**tensors, "group_size": COORDINATES}]
    return grid_tasks(seed, ground.common, blocks, repetitions)


FIGURE = training_figure(
    name="dprec-table3",
    paper=f"{PAPER.source}: table 3",
    experiment="compression without privacy",
    tasks=compression_tasks,
    table=arrange_compression,
    summary=short_compression,
    draw=draw_compression,
    on_data=paper_compression_tasks,
)
