"""Exact secure histograms: how often the histogram is recovered against the number of measurements, by code and decoder."""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...analysis.catalogue.registry import entry_named
from ...analysis.comparisons.frequencies.exact_recovery import ExactRecoveryPoint, arrange_exact_recovery, exact_recovery_tasks
from ..drawing.marks import BLUE, GREEN, ORANGE, VERMILION, Mark
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding

MARKS: dict[str, Mark] = {"bernoulli": BLUE, "relaxation": GREEN, "rademacher": VERMILION, "identity": ORANGE}
LABELS = {
    "bernoulli": "Bernoulli code, integer program",
    "relaxation": "its linear relaxation",
    "rademacher": "signs, basis pursuit",
    "identity": "identity code",
}
PRIORS = {"uniform": "uniform items", "zipf": "Zipf's law", "geometric": "geometric, ratio 0.8"}
# Bounds on the number of measurements, and how they are drawn: all are grey, and differ by their dashes.
BOUNDS: dict[str, tuple[str, dict[str, Any]]] = {
    "reference_measurements": ("n ln d / ln n", {"color": GREY, "linewidth": 1.0, "linestyle": (0, (1, 1.5))}),
    "histogram_measurements": ("enough for this histogram", {"color": GREY, "linewidth": 1.0, "linestyle": (0, (5, 2))}),
    "rigorous_measurements": ("enough for all histograms", {"color": GREY, "linewidth": 1.0, "linestyle": "-"}),
}
CLIENTS, DIMENSION = 10, 100
# Of one decoding, in seconds: far beyond what any takes, so that the figure does not depend on the machine.
TIME_LIMIT = 3600.0


def recovery_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return shares of success; durations are left out, as they differ from run to run."""
    return arrange_exact_recovery(rows).drop(columns=["seconds", "most_seconds", "time_limit"])


def draw_codes(frame: pd.DataFrame) -> Figure:
    """Draw a panel for each distribution of items: the share recovered by each code, with 95% intervals, and the bounds."""
    figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
    panels = figure.subplots(1, len(PRIORS), sharex=True, sharey=True)
    for axes, (prior, title) in zip(panels, PRIORS.items(), strict=True):
        _draw_panel(axes, frame[frame["prior"] == prior])
        axes.set(xlabel="measurements m", title=title)
    panels[0].set(ylabel="histograms recovered (%)", ylim=(-3, 103))
    handles = [Line2D([], [], label=LABELS[code], **one.look) for code, one in MARKS.items()]
    handles += [Line2D([], [], label=label, **look) for label, look in BOUNDS.values()]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, handlelength=3.0, columnspacing=1.5)
    first = frame.iloc[0]
    add_caption(
        figure,
        f"{first['clients']} clients with one item each of {first['dimension']}, in a secure sum modulo n + 1 (signs: 2 n + 1); "
        f"{first['repetitions']} repetitions, Wilson's 95% intervals. Grey: order of magnitude of the paper's theorem 4.2, and numbers "
        "proven to be enough with probability 0.99, for this histogram and for all. Nothing here is private beyond the secure sum.",
    )
    return figure


def _draw_panel(axes: Axes, panel: pd.DataFrame) -> None:
    for code, mark in MARKS.items():
        series = panel[panel["code"] == code].sort_values("measurements")
        share = 100 * series["success"]
        axes.plot(series["measurements"], share, clip_on=False, **mark.look)
        axes.fill_between(series["measurements"], 100 * series["low"], 100 * series["high"], color=mark.colour, alpha=0.12, linewidth=0)
    for column, (_, look) in BOUNDS.items():
        axes.axvline(panel[column].mean(), **look)
    axes.grid(visible=True)


def code_tasks(seed: int, quick: bool) -> list[ExactRecoveryPoint]:
    """Return a task for each distribution, code, number of measurements and repetition."""
    sizes = tuple(range(8, 57, 8)) if quick else tuple(range(4, 61, 4))
    repetitions = 4 if quick else 25
    return exact_recovery_tasks(seed, sizes=((CLIENTS, DIMENSION),), measurements=sizes, repetitions=repetitions, time_limit=TIME_LIMIT)


def _measurements(frame: pd.DataFrame, code: str) -> list[float]:
    """Return the numbers of measurements from which on a decoder recovered every histogram, by distribution; infinite if none is drawn."""
    enough = []
    for _, series in frame[frame["code"] == code].groupby("prior"):
        failed = series.loc[series["success"] < 1, "measurements"].max()
        later = series.loc[~(series["measurements"] <= failed), "measurements"]
        enough.append(float(later.min()) if len(later) else math.inf)
    return enough


FIGURE = FigureEntry(
    name="freq-codes",
    paper=f"{entry_named('exact-histogram').paper}, theorem 4.2; beyond the paper",
    experiment="exact secure histograms",
    tasks=code_tasks,
    table=recovery_table,
    draw=draw_codes,
    findings=(
        Finding("Measurements for a full share, integer program", lambda frame: _measurements(frame, "bernoulli")),
        Finding("its relaxation", lambda frame: _measurements(frame, "relaxation")),
    ),
)
