"""Bytes of DP-REC's published federations (Triastcyn, Reisser, Louizos 2021), beside the paper's totals and other schemes."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from matplotlib.transforms import blended_transform_factory

from ...analysis.catalogue.registry import entry_named
from ...analysis.comparisons.dp_rec_communication import COUNTED, FEDERATIONS, PACKAGES, SCHEMES, CommunicationPoint
from ...arrays import FloatArray
from ..drawing.directed_rounding import rounded_down
from ..drawing.marks import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION, Mark
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding

MARKS: Mapping[str, Mark] = MappingProxyType(dict(zip(SCHEMES, (BLACK, ORANGE, PURPLE, BLUE, GREEN, VERMILION), strict=True)))
PAPER_LOOK: Mapping[str, Any] = MappingProxyType(
    {"color": GREY, "marker": "o", "markersize": 10, "fillstyle": "none", "linestyle": "", "markeredgewidth": 0.8}
)
# Height of a scheme, and the space between two trainings.
STEP, SPACE = 0.3, 0.32


def draw_bytes(frame: pd.DataFrame) -> Figure:
    """Draw the bytes of every training by every scheme, with the paper's, and how many times fewer they are than without compression."""
    trainings = [training for _, training in frame.groupby("federation", sort=False)]
    figure = Figure(figsize=(WIDTH, 2.9 + 0.9 * STEP * len(frame) + 0.3 * len(trainings)), layout="constrained")
    axes = figure.subplots()
    axes.set_xscale("log")
    # Room for the numbers to the left of the leftmost mark.
    axes.set_xlim(frame["total_gib"].min() / 300, 3 * frame["total_gib"].max())
    top, middles = 0.0, []
    for training in trainings:
        heights = np.asarray(top + STEP * np.arange(len(training)), dtype=float)
        _draw_training(axes, heights, training)
        middles.append(heights.mean())
        top = heights[-1] + STEP + SPACE
        across = blended_transform_factory(axes.transAxes, axes.transData)
        axes.plot([0, 1], [top - (STEP + SPACE) / 2] * 2, color="#dddddd", linewidth=0.5, transform=across)
    names = [
        f"{one['federation'].iloc[0]}\n{one['model'].iloc[0]}\n{one['parameters'].iloc[0] / 1e6:.2f} million parameters"
        for one in trainings
    ]
    axes.set_yticks(middles, names)
    axes.set_ylim(top - (STEP + SPACE) / 2, -(STEP + SPACE) / 2)
    axes.xaxis.set_major_locator(LogLocator())
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("GiB of all clients and rounds, up and down")
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="x")
    handles = [Line2D([], [], color=mark.colour, marker=mark.marker, linestyle="", label=scheme) for scheme, mark in MARKS.items()]
    handles.append(Line2D([], [], label="the paper (in brackets)", **PAPER_LOOK))
    figure.legend(handles=handles, loc="outside upper center", ncols=2)
    add_caption(figure, _caption(frame))
    return figure


def _draw_training(axes: Axes, heights: FloatArray, training: pd.DataFrame) -> None:
    """Draw a mark for each scheme, a ring around the paper's total, and the numbers beside it."""
    for height, (_, one) in zip(heights, training.iterrows(), strict=True):
        mark = MARKS[one["scheme"]]
        axes.plot(one["total_gib"], height, color=mark.colour, marker=mark.marker, linestyle="")
        axes.plot(one["paper_gib"], height, **PAPER_LOOK)
        words = f"{one['total_gib']:.4g}"
        if one["scheme"] in (COUNTED, *PACKAGES):
            words = f"\N{DIVISION SIGN} {_factor(one['compression'])}: {words}"
        if not np.isnan(one["paper_gib"]):
            words += f" ({one['paper_gib']:g})"
        axes.annotate(
            words,
            (one["total_gib"], height),
            xytext=(-9, 0),
            textcoords="offset points",
            color=mark.colour,
            horizontalalignment="right",
            verticalalignment="center",
        )


def _factor(value: float) -> str:
    """Return a factor of compression, rounded down: with one decimal if it is small."""
    return rounded_down(value, 2) if value < 10 else _thousands(int(value))


def _thousands(number: int) -> str:
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _caption(frame: pd.DataFrame) -> str:
    first = frame.iloc[0]
    return (
        "Bytes of a whole training, both directions. As the paper counts: without headers; the other two: packages made here. Rings: "
        "the paper's totals. Numbers: GiB; how many times fewer, rounded down. Bytes do not depend on ε; DP-REC's promise is for "
        f"{first['adjacency']} adjacency, {first['trust_model']} trust model."
    )


def communication_tasks(seed: int, _: bool) -> list[CommunicationPoint]:
    """Return a task for each training and scheme, which are quick anyway."""
    return [CommunicationPoint(seed=seed, federation=one, scheme=scheme) for one in FEDERATIONS for scheme in one.schemes]


def _savings(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return how many times fewer bytes the packages take than no compression."""
    return frame.loc[frame["scheme"].isin(list(PACKAGES)), "compression"]


FIGURE = FigureEntry(
    name="dprec-communication",
    paper=entry_named("dp-rec").paper,
    experiment="DP-REC in both directions",
    tasks=communication_tasks,
    draw=draw_bytes,
    findings=(Finding("Bytes without compression over those of DP-REC's messages", _savings),),
)
