"""Figure 1 of Agarwal, Suresh, Yu, Kumar, McMahan 2018 (cpSGD): error against epsilon, for Gaussian and binomial noise."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter

from ...analysis.catalogue.registry import entry_named
from ...analysis.comparisons.cpsgd import NoisePoint
from ..drawing.marks import BLUE, GREEN, PURPLE, VERMILION, Mark
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding, ratios

DELTA = 1e-6
EPSILONS = (0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
QUICK_EPSILONS = (0.2, 0.5, 1.0, 2.0, 5.0)
THEOREM_SCALES = (1.0, 0.1, 0.01, 0.001)
# At the smallest of them binomial noise is as good as Gaussian noise; a smaller one would only take longer.
EXACT_SCALES = (1.0, 0.1, 0.01)
MARKS: Mapping[float, Mark] = MappingProxyType({1.0: VERMILION, 0.1: PURPLE, 0.01: GREEN, 0.001: BLUE})
ANALYTIC_LOOK: Mapping[str, Any] = MappingProxyType({"color": "black", "linestyle": "-", "linewidth": 0.9, "marker": ""})
CLASSIC_LOOK: Mapping[str, Any] = MappingProxyType({"color": "black", "linestyle": (0, (4, 2)), "linewidth": 0.9, "marker": ""})
BOUND_LOOK: Mapping[str, Any] = MappingProxyType({"color": GREY, "linestyle": (0, (1, 1)), "linewidth": 1.2, "marker": ""})
TITLES = {"theorem": "accounted for by Theorem 1", "exact": "accounted for exactly"}
SHOWN_EPSILONS = (0.1, 0.2, 0.5, 1, 2, 5)


def draw_noise(frame: pd.DataFrame) -> Figure:
    """Draw the least noise against epsilon: binomial noise by Theorem 1 (left) and exactly (right), Gaussian noise in both."""
    figure = Figure(figsize=(WIDTH, 5.0), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, accounting in zip(panels, TITLES, strict=True):
        _draw_panel(axes, frame, accounting)
    panels[0].set_ylabel("variance of the noise (squared sensitivities)")
    scales = sorted(frame["scale"].dropna().unique(), reverse=True)
    handles = [Line2D([], [], label=f"binomial, s = {scale:g}", **MARKS[scale].look) for scale in scales]
    handles.append(Line2D([], [], label="Gaussian, analytic", **ANALYTIC_LOOK))
    handles.append(Line2D([], [], label="Gaussian, classic rule", **CLASSIC_LOOK))
    handles.append(Line2D([], [], label="certified lower bound", **BOUND_LOOK))
    figure.legend(handles=handles, loc="outside upper center", ncols=4, handlelength=3.0, columnspacing=1.5)
    first = frame.iloc[0]
    add_caption(
        figure,
        f"The least noise for a number that neighbours change by at most 1, at δ = {first['delta']:g}. Hollow: fewer trials are refused "
        "at any ε. Certified lower bound: for unbiased estimates, on average over neighbours. Guarantee: ε as stated, "
        f"{first['adjacency']} adjacency, secure-sum trust model for binomial, central trust model for Gaussian noise.",
    )
    return figure


def _draw_panel(axes: Axes, frame: pd.DataFrame, accounting: str) -> None:
    gaussian = frame[frame["mechanism"] == "Gaussian"]
    analytic, classic = (gaussian[gaussian["accounting"] == name] for name in ("analytic", "classic"))
    kept = classic[classic["realised_epsilon"] <= classic["epsilon"]]
    axes.plot(analytic["epsilon"], analytic["noise_squared_error"], zorder=3, **ANALYTIC_LOOK)
    axes.plot(kept["epsilon"], kept["noise_squared_error"], zorder=3, **CLASSIC_LOOK)
    axes.plot(analytic["epsilon"], analytic["certified_error"], **BOUND_LOOK)
    for scale, series in frame[frame["accounting"] == accounting].groupby("scale", sort=False):
        look = MARKS[float(str(scale))].look
        axes.plot(series["epsilon"], series["noise_squared_error"], **look | {"marker": ""})
        for binds, points in series.groupby("condition_binds"):
            face = "white" if binds else look["color"]
            axes.plot(points["epsilon"], points["noise_squared_error"], **look | {"linestyle": "", "markerfacecolor": face})
    axes.set(xscale="log", yscale="log", xlabel="ε", title=TITLES[accounting])
    axes.xaxis.set_major_locator(FixedLocator(SHOWN_EPSILONS))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True)


def noise_tasks(seed: int, quick: bool) -> list[NoisePoint]:
    """Return one task for each epsilon and kind of noise."""
    kinds: list[tuple[str, float | None]] = [("analytic", None), ("classic", None)]
    kinds += [("theorem", scale) for scale in THEOREM_SCALES] + [("exact", scale) for scale in EXACT_SCALES]
    return [
        NoisePoint(seed=seed, accounting=accounting, epsilon=epsilon, delta=DELTA, scale=scale)
        for epsilon in (QUICK_EPSILONS if quick else EPSILONS)
        for accounting, scale in kinds
    ]


def _excess(frame: pd.DataFrame, accounting: str) -> "pd.Series[float]":
    """Return variances of the finest binomial noise by an account, over the analytic Gaussian's at the same epsilon."""
    finest = frame.loc[frame["accounting"] == "exact", "scale"].min()
    binomial = frame[(frame["accounting"] == accounting) & (frame["scale"] == finest)]
    return ratios(binomial, frame[frame["accounting"] == "analytic"], ("epsilon",), "noise_squared_error")


FIGURE = FigureEntry(
    name="cpsgd-fig1",
    paper=f"{entry_named('cpsgd').paper}, figure 1",
    experiment="noise of cpSGD",
    tasks=noise_tasks,
    draw=draw_noise,
    findings=(
        Finding("Finest binomial variance over the Gaussian's, exact account", lambda frame: _excess(frame, "exact")),
        Finding("by the theorem", lambda frame: _excess(frame, "theorem")),
    ),
)
