"""Figure 1 of Chaudhuri, Guo, Rabbat 2022: optimised tables and letters by epsilon.

The tables have 3 bits in and out.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...analysis.catalogue.registry import entry_named
from ...shown import gap_up
from ..drawing.directed_rounding import rounded_down, rounded_up
from ..drawing.marks import mechanism_mark
from ..drawing.style import WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from .table_entries import PROBABILITY_TICKS, DesignPoint, certificates, draw_probability_map, sent_letters

EPSILONS = (1.0, 3.0, 5.0, 10.0)
BITS = 3
MVU = mechanism_mark("mvu")
# Gaps to the best table of as many bits at which the search for a proof stops; they take seconds.
TOLERANCES = {1.0: 1.5e-3, 3.0: 3.5e-3, 5.0: 1e-4, 10.0: 1e-4}


def draw_tables(entries: pd.DataFrame) -> Figure:
    """Draw a panel for each epsilon: the table, its letters with their rates, its certificate."""
    tables = [sent_letters(table) for _, table in entries.groupby("epsilon")]
    figure = Figure(figsize=(WIDTH, 4.9), layout="constrained")
    grid = figure.subplots(3, len(tables), squeeze=False, gridspec_kw={"height_ratios": (1.0, 0.62, 0.5)})
    maps, letters, notes = grid
    for axes, table in zip(maps, tables, strict=True):
        image = draw_probability_map(axes, table)
        _label_map(axes, table, first=axes is maps[0])
    for axes, table in zip(letters, tables, strict=True):
        _draw_letters(axes, table, first=axes is letters[0])
    low, high = np.floor(entries["letter"].min()), np.ceil(entries["letter"].max())
    top = max(axes.get_ylim()[1] for axes in letters)
    for axes in letters:
        axes.set(xlim=(low - 0.25, high + 0.25), xticks=np.arange(low, high + 1), ylim=(0.0, top))
    for axes, table in zip(notes, tables, strict=True):
        _write_certificate(axes, table.iloc[0])
    figure.colorbar(image, ax=maps, ticks=PROBABILITY_TICKS, format="{x:g}", label="probability", pad=0.01, aspect=14)
    first = entries.iloc[0]
    add_caption(
        figure,
        f"MVU tables, {first['bits_in']} bits in, {first['bits_out']} bits out. Bottom: mean variance (interval length²), its certified "
        "lower bound for tables of any size, and the shares by which tables of any size, and of as many bits, can be better at most. "
        f"Guarantee: ε as above each panel, {first['adjacency']} adjacency, {first['trust_model']} trust model.",
    )
    return figure


def _label_map(axes: Axes, table: pd.DataFrame, *, first: bool) -> None:
    steps, letters = table["input_index"].max(), table["letter_index"].nunique()
    axes.set_title(f"ε = {table['epsilon'].iloc[0]:g}")
    axes.set_xticks(range(letters), [str(letter + 1) for letter in range(letters)])
    axes.set_xlabel("letter")
    axes.set_yticks(range(steps + 1), [_fraction(index, steps) if first else "" for index in range(steps + 1)])
    if first:
        axes.set_ylabel("input")


def _fraction(numerator: int, denominator: int) -> str:
    return f"{numerator // denominator}" if numerator % denominator == 0 else f"{numerator}/{denominator}"


def _draw_letters(axes: Axes, table: pd.DataFrame, *, first: bool) -> None:
    letters = table.groupby("letter_index").agg(value=("letter", "first"), probability=("probability", "mean"))
    axes.axvspan(0.0, 1.0, color="#eeeeee", linewidth=0)
    axes.vlines(letters["value"], 0.0, letters["probability"], color=MVU.colour, linewidth=1.0)
    axes.plot(letters["value"], letters["probability"], markersize=3, **MVU.points)
    axes.margins(y=0.2)
    axes.tick_params(labelleft=first)
    axes.set_xlabel("value of letter")
    if first:
        axes.set_ylabel("mean\nprobability")


def _write_certificate(axes: Axes, table: pd.Series) -> None:
    axes.set_axis_off()
    lines = (
        ("variance", rounded_up(table["mean_variance"], 5)),
        ("bound", rounded_down(table["lower_bound"], 5)),
        ("gap, any size", gap_up(table["optimality_gap"])),
        (f"gap, {table['bits_out']} bits", gap_up(table["letters_gap"])),
        # Slack below the declared epsilon. The realised epsilon errs upward, so the slack errs downward.
        ("realised", f"ε \N{MINUS SIGN} {rounded_down(table['epsilon'] - table['realised_epsilon'], 2)}"),
    )
    for row, (name, value) in enumerate(lines):
        height = 0.97 - 0.22 * row
        axes.text(0.0, height, name, transform=axes.transAxes, verticalalignment="top")
        axes.text(1.0, height, value, transform=axes.transAxes, verticalalignment="top", horizontalalignment="right")


def design_tasks(seed: int, _: bool) -> list[DesignPoint]:
    """Return the designs, all of which are quick."""
    return [DesignPoint(seed=seed, epsilon=epsilon, bits_in=BITS, bits_out=BITS, tolerance=TOLERANCES[epsilon]) for epsilon in EPSILONS]


FIGURE = FigureEntry(
    name="mvu-fig1",
    paper=f"{entry_named('mvu').paper}, figure 1",
    experiment="MVU tables",
    tasks=design_tasks,
    draw=draw_tables,
    summary=certificates,
    findings=(
        Finding("Gap with unlimited letters (%)", lambda entries: 100 * entries["optimality_gap"]),
        Finding("as many letters (%)", lambda entries: 100 * entries["letters_gap"]),
    ),
)
