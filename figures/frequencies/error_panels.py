"""Errors of geometric and Zipf's frequencies against clients and epsilon: four figures.

Each figure shows the largest and the Euclidean error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from ...analysis.catalogue.frequency_sums import PAPER
from ..drawing.marks import ANSWER_ZERO, LOWER_BOUND, SOLID, TRUSTED_SERVER, Mark, mechanism_mark
from ..drawing.style import WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from .simulated_errors import CENTRAL, SERIES, FrequencyPoint, arrange_frequencies, frequency_points

# Marks of the mechanisms; histograms have the colours of the sketches, and other markers.
HISTOGRAMS: Mapping[str, str] = MappingProxyType({"Poisson-binomial, best": "s", "discrete Gaussian histogram": "o"})
MARKS: Mapping[str, Mark] = MappingProxyType(
    {name: mechanism_mark(series.mechanism) for name, series in SERIES.items() if name not in HISTOGRAMS}
    | {name: replace(mechanism_mark(SERIES[name].mechanism), marker=marker, line=SOLID) for name, marker in HISTOGRAMS.items()}
    | {CENTRAL: TRUSTED_SERVER}
)
# Errors, with the column of those of equal frequencies for all items, and their names.
ERRORS = {
    "largest_error": ("zero_largest_error", "largest error of a frequency"),
    "error": ("zero_error", "L2 error of all frequencies"),
}
POPULATIONS = {"geometric": "a truncated geometric law of ratio 0.8", "zipf": "Zipf's law of exponent 1"}
SHORTENED = {"clients": "n", "epsilon": "ε"}
CATEGORIES, QUICK_CATEGORIES = 100_000, 2000
# Numbers of the paper's figures with the same comparison, by law and horizontal axis. The package gives figures other names. The paper's
# Figure 2 states no law.
SHOWN_IN = {
    ("geometric", False): "Figures 2 and 3",
    ("zipf", False): "Figure 4",
    ("geometric", True): "Figure 5",
    ("zipf", True): "Figure 5",
}


def draw_errors(frame: pd.DataFrame, across: str, panel_by: str) -> Figure:
    """Draw both errors against a column, in a row of panels each.

    Each row has a panel for each value of another column.
    """
    panels = list(frame.groupby(panel_by))
    figure = Figure(figsize=(WIDTH, 6.6), layout="constrained")
    grid = figure.subplots(len(ERRORS), len(panels), sharex=True, sharey="row", squeeze=False)
    for row, (column, (_, label)) in zip(grid, ERRORS.items(), strict=True):
        for axes, (value, panel) in zip(row, panels, strict=True):
            _draw_panel(axes, panel, across, column)
            axes.set_title(f"{SHORTENED[panel_by]} = {value:,g}" if column == "largest_error" else "")
        row[0].set_ylabel(label)
    ticks = sorted(frame[across].unique())
    for axes in grid[-1]:
        axes.set_xlabel("clients n (thousands)" if across == "clients" else "privacy parameter ε")
        axes.set_xticks(ticks, [f"{value / 1000:g}" if across == "clients" else f"{value:g}" for value in ticks])
    handles = [Line2D([], [], label=name, **mark.look) for name, mark in MARKS.items() if name in set(frame["series"])]
    handles.append(Line2D([], [], label="answer zero: equal frequencies", **ANSWER_ZERO.rule))
    handles.append(Line2D([], [], label="lower bound, worst data", **LOWER_BOUND.rule))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, handlelength=3.0, columnspacing=1.5)
    add_caption(figure, _caption(frame))
    return figure


def _draw_panel(axes: Axes, panel: pd.DataFrame, across: str, column: str) -> None:
    for name, mark in MARKS.items():
        series = panel[panel["series"] == name].sort_values(across)
        axes.errorbar(
            series[across],
            series[column],
            yerr=series[f"{column}_standard_error"].fillna(0.0),
            **mark.look,
            capsize=2,
        )
    central = panel[panel["series"] == CENTRAL].sort_values(across)
    axes.plot(central[across], central[ERRORS[column][0]], **ANSWER_ZERO.rule)
    axes.plot(central[across], central[f"{column}_bound"], **LOWER_BOUND.rule)
    axes.set_yscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(visible=True)


def _caption(frame: pd.DataFrame) -> str:
    first = frame.iloc[0]
    return (
        f"Frequencies of {first['categories']:,.0f} items, drawn from {POPULATIONS[first['population']]}; means of "
        f"{first['repetitions']:.0f} rounds with standard errors. Lower bound: for the worst data. ε is for replace-one adjacency: "
        f"secure-sum trust model at δ = {frame['delta'].max():g} for sketches and histograms, local trust model at δ = 0 for responses, "
        "central for the trusted server."
    )


def _over_local(frame: pd.DataFrame, *, sketched: bool) -> "pd.Series[float]":
    """Return least errors in a secure sum over those of local messages, by clients and epsilon."""
    sums = frame[(frame["trust_model"] == "secure-sum") & (frame["series"].str.contains("sketch") == sketched)]
    local = frame[frame["trust_model"] == "local"]
    of_sums, of_local = (part.groupby(["clients", "epsilon"])["error"].min() for part in (sums, local))
    return of_sums / of_local


def errors_figure(number: int, population: str, *, by_epsilon: bool) -> FigureEntry:
    """Return the figure of a law's errors against epsilon or against clients."""
    across, panel_by = ("epsilon", "clients") if by_epsilon else ("clients", "epsilon")

    def tasks(seed: int, quick: bool) -> Sequence[FrequencyPoint]:
        clients: Sequence[int]
        epsilons: Sequence[float]
        if by_epsilon:
            clients, epsilons = ((1000, 4000), (1.0, 4.0, 10.0)) if quick else ((20_000, 50_000), (1.0, 2.0, 5.0, 10.0, 15.0))
        else:
            clients, epsilons = ((1000, 2000, 4000), (1.0, 10.0)) if quick else (range(10_000, 50_001, 10_000), (1.0, 5.0, 10.0))
        return frequency_points(seed, population, QUICK_CATEGORIES if quick else CATEGORIES, clients, epsilons, 2 if quick else 3)

    return FigureEntry(
        name=f"freq-fig{number}",
        paper=f"{PAPER}, {SHOWN_IN[population, by_epsilon]}",
        experiment=f"errors of frequencies, {population}, against {across}",
        tasks=tasks,
        table=arrange_frequencies,
        draw=lambda frame: draw_errors(frame, across, panel_by),
        findings=(
            Finding("Least Euclidean error over that of local messages, sketches", lambda frame: _over_local(frame, sketched=True)),
            Finding("histograms", lambda frame: _over_local(frame, sketched=False)),
        ),
    )


FIGURES = (
    errors_figure(2, "geometric", by_epsilon=False),
    errors_figure(3, "zipf", by_epsilon=False),
    errors_figure(4, "geometric", by_epsilon=True),
    errors_figure(5, "zipf", by_epsilon=True),
)
