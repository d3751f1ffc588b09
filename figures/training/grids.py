"""Shared parts of the trainings' figures: tasks of a grid, rows by setting, and panels."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from ...analysis.training.spec import parse_training
from ...analysis.training.task import TrainingTask
from ..drawing.marks import DASHED, PAPER_VALUE, TRUSTED_SERVER, VERMILION, Mark, mechanism_mark
from ..drawing.marks import GREY as GREY_MARK
from ..drawing.style import CAPTION_CHARACTERS, GREY, WIDTH

# A training without privacy is a reference, whose line has no markers.
NO_PRIVACY = Mark(GREY, "", DASHED)
LEVEL_WIDTH, BAND_ALPHA = 1.0, 0.15
# Width of a legend's handle with its spaces, in characters.
HANDLE_CHARACTERS = 10
CROSS: Mapping[str, Any] = MappingProxyType({"markersize": 8, "markeredgewidth": 1.6, "zorder": 5})
NO_MEASURES: Mapping[str, str] = MappingProxyType({})
# Heights of a row of panels among several, and of the legend and the caption around them, in inches.
ROW_HEIGHT, ROUND_ROWS = 2.1, 1.4
# Marks of the trainings' mechanisms that are not in the registry.
_BASELINES: Mapping[str, Mark] = MappingProxyType(
    {
        "none": GREY_MARK,
        "quantised": replace(GREY_MARK, marker="d"),
        "dp-fedavg": TRUSTED_SERVER,
        "sign-gaussian": VERMILION,
        "dp-rec-training": mechanism_mark("dp-rec"),
    }
)


def training_mark(mechanism: str) -> Mark:
    """Return the mark of a mechanism of a training, by its name in the registry or among the baselines."""
    return _BASELINES.get(mechanism) or mechanism_mark(mechanism)


# Titles of the data sets, by their names.
_TITLES = {
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "femnist": "FEMNIST",
    "shakespeare": "Shakespeare",
    "stackoverflow-tags": "StackOverflow tags",
    "stackoverflow-words": "StackOverflow words",
}


def data_title(data: str) -> str:
    """Return the title of a data set."""
    return _TITLES.get(data, data)


def by_data(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows on each data set, by its name, in the order of the frame."""
    return {str(data): own for data, own in frame.groupby("data", sort=False)}


def grid_tasks(seed: int, common: Mapping[str, Any], mechanisms: Sequence[Mapping[str, Any]], repetitions: int = 1) -> list[TrainingTask]:
    """Return the tasks of a grid that `parse_training` reads, measured at the end.

    `repetitions` is the number of seeds, from the root seed on. An infeasible setting has a row that states the reason.
    """
    seeds = [seed + number for number in range(repetitions)]
    end = common["rounds"] if isinstance(common["rounds"], int) else max(common["rounds"])
    spec = parse_training({"evaluate_every": end, **common, "seed": seeds, "mechanism": list(mechanisms)})
    return [replace(task, keeps_infeasible=True) for task in spec.tasks()]


def best_of(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return the row of highest accuracy for each combination of `by`, in the frame's order."""
    best = frame.groupby(list(by), sort=False, dropna=False)["accuracy"].idxmax()
    return frame.loc[sorted(best)]


def accuracy_panels(count: int, height: float, *, shared: bool = True) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels side by side that share the axis of accuracies.

    The figure has the page's width; accuracies are in per cent.
    """
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    grid = list(figure.subplots(1, count, sharex=shared, sharey=True, squeeze=False)[0])
    grid[0].set_ylabel("accuracy (%)")
    for axes in grid:
        axes.grid(visible=True)
    return figure, grid


def panel_rows(counts: Mapping[str, int], height: float, measures: Mapping[str, str] = NO_MEASURES) -> tuple[Figure, dict[str, list[Axes]]]:
    """Return a figure with a row of panels for each data set, and the rows by data set.

    The figure has the page's width, and its panels share their axes. `height` is the height of a single row. The vertical axis shows
    accuracy in per cent, unless `measures` names another measure. `panel_title` gives the titles.
    """
    figure = Figure(figsize=(WIDTH, height if len(counts) == 1 else ROW_HEIGHT * len(counts) + ROUND_ROWS), layout="constrained")
    columns = math.lcm(*counts.values())
    grid = figure.add_gridspec(len(counts), columns)
    rows: dict[str, list[Axes]] = {}
    for place, (data, count) in enumerate(counts.items()):
        row: list[Axes] = []
        for number in range(count):
            cells = slice(number * columns // count, (number + 1) * columns // count)
            first = row[0] if row else None
            row.append(figure.add_subplot(grid[place, cells], sharex=first, sharey=first))
            row[-1].grid(visible=True)
            row[-1].tick_params(labelleft=not number)
        row[0].set_ylabel(f"{measures.get(data, 'accuracy')} (%)")
        rows[data] = row
    return figure, rows


def panel_title(rows: Mapping[str, Sequence[Axes]], data: str, title: str) -> str:
    """Return the title of a panel, which names the data set if there are several."""
    return title if len(rows) == 1 else f"{data_title(data)}, {title}"


def accuracy_errors(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return the standard errors of accuracies: over seeds, or with one seed over the test examples.

    An accuracy p of n test examples has a standard error of at most sqrt(p (1 - p) / n).
    """
    sampled = (frame["accuracy"] * (1 - frame["accuracy"]) / frame["test_examples"]) ** 0.5
    errors: pd.Series[float] = frame["standard_error"].where(frame["standard_error"].notna(), sampled)
    return errors


def bars_in_words(frame: pd.DataFrame) -> str:
    """Return the meaning of the errors of `accuracy_errors`, in words."""
    seeds = sorted(frame["repetitions"].astype(int).unique())
    sizes = frame["test_examples"].astype(int).unique()
    alone = [f"{sizes[0]:,} test examples of one seed" if len(sizes) == 1 else "the test examples of one seed"] if seeds[0] == 1 else []
    several = [f"{count} seeds" for count in seeds if count > 1]
    return f"standard error: {' or '.join([*several, *alone])}"


def draw_accuracies(axes: Axes, series: pd.DataFrame, column: str, look: Mapping[str, Any], label: str) -> None:
    """Draw accuracies in per cent against a column, with their standard errors."""
    ordered = series.sort_values(column)
    axes.errorbar(ordered[column], 100 * ordered["accuracy"], yerr=100 * accuracy_errors(ordered), **look, capsize=2, label=label)


def draw_level(axes: Axes, runs: pd.DataFrame, mark: Mark, label: str) -> None:
    """Draw the accuracy of the best of several runs as a horizontal line, with a band of a standard error to either side."""
    best = runs.loc[[runs["accuracy"].idxmax()]]
    accuracy, error = 100 * best["accuracy"].iloc[0], 100 * accuracy_errors(best).iloc[0]
    axes.axhspan(accuracy - error, accuracy + error, color=mark.colour, alpha=BAND_ALPHA, linewidth=0)
    axes.axhline(accuracy, color=mark.colour, linestyle=mark.line, linewidth=LEVEL_WIDTH, label=label)


def draw_no_privacy(axes: Axes, frame: pd.DataFrame) -> None:
    """Draw the accuracy of the run without privacy as a horizontal line, with its band."""
    draw_level(axes, frame[frame["mechanism"] == "none"], NO_PRIVACY, "no privacy")


def draw_reported(axes: Axes, places: ArrayLike, percents: ArrayLike, mark: Mark) -> None:
    """Draw accuracies that a paper reports, in per cent: crosses in the colour of the series here."""
    axes.plot(places, percents, **replace(PAPER_VALUE, colour=mark.colour).points, **CROSS)


def reported_handle(source: str) -> Line2D:
    """Return the legend's entry of `draw_reported`."""
    return Line2D([], [], **PAPER_VALUE.points, **CROSS, label=source)


def set_rates(axes: Axes, rates: pd.Series) -> None:
    """Set the ticks of a logarithmic axis to the compression rates of a frame."""
    ticks = sorted({round(rate) for rate in rates})
    axes.set(xscale="log", xlabel="compression rate d/m")
    axes.set_xticks(ticks, [f"{rate}" for rate in ticks])
    axes.minorticks_off()


def add_legend(figure: Figure, axes: Axes | Iterable[Axes], frame: pd.DataFrame, columns: int = 3, more: Sequence[Line2D] = ()) -> None:
    """Put the legend of one or several panels, with the meaning of bars and bands and further entries, above a figure."""
    panels = [axes] if isinstance(axes, Axes) else axes
    handles: dict[Any, Any] = {name: handle for panel in panels for handle, name in zip(*panel.get_legend_handles_labels(), strict=True)}
    bar = Line2D([], [], color=GREY, linestyle="", marker="|", markersize=9, label=bars_in_words(frame))
    handles |= {line.get_label(): line for line in (*more, bar)}
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside upper center",
        ncols=_fitting_columns([str(name) for name in handles], columns),
        handlelength=3.0,
        columnspacing=1.5,
    )


def _fitting_columns(names: Sequence[str], most: int) -> int:
    """Return the largest number of columns of a legend that fits the page, at least 1."""
    for columns in range(min(most, len(names)), 1, -1):
        rows = math.ceil(len(names) / columns)
        longest = [max(map(len, names[start : start + rows])) for start in range(0, len(names), rows)]
        if sum(longest) + len(longest) * HANDLE_CHARACTERS <= CAPTION_CHARACTERS:
            return columns
    return 1
