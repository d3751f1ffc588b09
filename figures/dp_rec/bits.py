"""What few bits cost DP-REC (Triastcyn, Reisser, Louizos 2021) at a fixed clip ratio: bias and error by bits. Beyond the paper."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MultipleLocator, NullFormatter

from ...analysis.catalogue.registry import entry_named
from ...analysis.comparisons.dp_rec_bias import BiasPoint, with_fitted_slopes
from ..drawing.marks import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, Mark
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding, ratios

CLIP_RATIOS, DIMENSIONS, BITS = (0.5, 1.0, 1.5, 2.0), (1, 16), range(17)
# Bits at which shared samples are drawn as well, and how many lists of them.
MEASURED_BITS, SEEDS, QUICK_SEEDS = (2, 5, 8), 1000, 200
# In the order of the clip ratios.
MARKS: tuple[Mark, ...] = (BLUE, GREEN, PURPLE, VERMILION, SKY, ORANGE)
FLOOR_LINE = (0, (1, 1))
LEMMA_LOOK: Mapping[str, Any] = MappingProxyType({"marker": "o", "markersize": 9, "fillstyle": "none", "linestyle": ""})


def draw_bias(frame: pd.DataFrame) -> Figure:
    """Draw the bias by bits (left), and the squared error of one message, for each dimension."""
    dimensions = frame["dimension"].unique()
    figure = Figure(figsize=(WIDTH, 5.0), layout="constrained")
    panels = figure.subplots(1, 1 + len(dimensions))
    marks = dict(zip(frame["clip_ratio"].unique(), MARKS, strict=False))
    for clip_ratio, mark in marks.items():
        own = frame[frame["clip_ratio"] == clip_ratio]
        _draw_bias(panels[0], own, mark)
        for axes, dimension in zip(panels[1:], dimensions, strict=True):
            _draw_error(axes, own[own["dimension"] == dimension], mark)
    panels[0].set(yscale="log", ylabel="bias / norm of the update", title="bias of one message")
    for axes, dimension in zip(panels[1:], dimensions, strict=True):
        axes.set_yscale("log")
        axes.set_title(f"its error, {dimension} coordinate{'s' if dimension > 1 else ''}")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
    panels[1].set_ylabel("squared error / squared norm of the update")
    for axes in panels:
        axes.set_xlabel("bits of the group")
        axes.xaxis.set_major_locator(MultipleLocator(4))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(visible=True)
    handles = [Line2D([], [], label=f"clip ratio {ratio:g}", **mark.look) for ratio, mark in marks.items()]
    handles.append(Line2D([], [], color=GREY, linestyle=FLOOR_LINE, label="leading term; floor"))
    handles.append(Line2D([], [], color=GREY, label=f"lemma 2, {frame['lost'].iloc[0]:g}", **LEMMA_LOOK))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, handlelength=3.5)
    add_caption(figure, _caption(frame))
    return figure


def _draw_bias(axes: Axes, frame: pd.DataFrame, mark: Mark) -> None:
    exact = frame.drop_duplicates("group_bits")
    axes.plot(exact["group_bits"], exact["relative_bias"], color=mark.colour, linestyle=mark.line)
    leading = exact[exact["leading_bias"] <= 1]
    axes.plot(leading["group_bits"], leading["leading_bias"], color=mark.colour, linestyle=FLOOR_LINE, linewidth=0.8)
    bits = exact["lemma_bits"].iloc[0]
    axes.plot(bits, 2 ** np.interp(bits, exact["group_bits"], np.log2(exact["relative_bias"])), color=mark.colour, **LEMMA_LOOK)
    # Of all dimensions: they have the same bias.
    measured = frame[frame["seeds"] > 0]
    _draw_measured(axes, measured["group_bits"], measured["measured_relative_bias"], measured["measured_relative_bias_error"], mark)


def _draw_error(axes: Axes, frame: pd.DataFrame, mark: Mark) -> None:
    axes.plot(frame["group_bits"], frame["relative_error"], color=mark.colour, linestyle=mark.line)
    axes.axhline(frame["floor"].iloc[0], color=mark.colour, linestyle=FLOOR_LINE, linewidth=0.8)
    measured = frame[frame["seeds"] > 0]
    scale = measured["clip_ratio"] ** -2
    _draw_measured(
        axes, measured["group_bits"], scale * measured["measured_squared_error"], scale * measured["measured_squared_error_error"], mark
    )


def _draw_measured(axes: Axes, bits: "pd.Series[int]", values: "pd.Series[float]", errors: "pd.Series[float]", mark: Mark) -> None:
    axes.errorbar(bits, values, yerr=errors, color=mark.colour, marker=mark.marker, linestyle="", capsize=2)


def _caption(frame: pd.DataFrame) -> str:
    first = frame.iloc[0]
    slopes = ", ".join(f"{slope:.3f}" for slope in frame.drop_duplicates("clip_ratio")["fitted_slope"])
    seeds = frame["seeds"].max()
    return (
        f"Clip ratio c: norm of the update over the samples' deviation. Lines: exact; points: {seeds:,} lists of samples with standard "
        f"errors. Slopes of log2 of small biases: {slopes}. Circles: enough bits by lemma 2. Guarantee: ε by c and sampling, "
        f"{first['adjacency']} adjacency, {first['trust_model']} trust model."
    )


def bias_tasks(seed: int, quick: bool) -> list[BiasPoint]:
    """Return one task for each clip ratio, dimension and number of bits."""
    seeds = QUICK_SEEDS if quick else SEEDS
    return [
        BiasPoint(seed=seed, clip_ratio=clip_ratio, dimension=dimension, group_bits=bits, seeds=seeds if bits in MEASURED_BITS else 0)
        for clip_ratio in CLIP_RATIOS
        for dimension in DIMENSIONS
        for bits in BITS
    ]


def _bias_by_bit(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return the exact bias with each number of bits over that with a bit less, at the same clip ratio."""
    exact = frame.drop_duplicates(["clip_ratio", "group_bits"])
    fewer = exact.assign(group_bits=exact["group_bits"] + 1)
    return ratios(exact, fewer, ("clip_ratio", "group_bits"), "relative_bias")


FIGURE = FigureEntry(
    name="dprec-bits",
    paper=f"{entry_named('dp-rec').paper}; beyond the paper",
    experiment="bias of DP-REC by bits",
    tasks=bias_tasks,
    table=with_fitted_slopes,
    draw=draw_bias,
    findings=(Finding("Bias over that at the previous number of bits", _bias_by_bit),),
)
