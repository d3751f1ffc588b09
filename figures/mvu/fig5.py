"""Figure 5 of Chaudhuri, Guo, Rabbat 2022: tables of 5 bits in, by the number of bits out.

The figure shows the number of bits above which the variance hardly falls.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...analysis.catalogue.registry import entry_named
from ...shown import gap_up
from ..drawing.labels import DirectLabel, place_labels
from ..drawing.marks import DOTTED, Mark, series_marks
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from .table_entries import PROBABILITY_TICKS, DesignPoint, certificates, draw_probability_map, sent_letters

EPSILONS = (1.0, 3.0, 5.0)
MAPPED_EPSILON = 3.0
BITS_IN = 5
BITS_OUT = range(1, 7)
QUICK_BITS_IN, QUICK_BITS_OUT = 3, range(1, 5)
# Gaps to the best table of as many bits at which the search for a proof stops, for messages of two bits. Searches for three bits and more,
# with 32 inputs, prove nothing in minutes that the bound for any size does not say.
SEARCHED_BITS = 2
TOLERANCES = {1.0: 0.008, 3.0: 0.032, 5.0: 0.26}
# Gap below which more bits hardly help.
SMALL_GAP = 0.01


def draw_bits_out(entries: pd.DataFrame, mapped_epsilon: float = MAPPED_EPSILON) -> Figure:
    """Draw the tables of one epsilon, and the mean variance against the bits out.

    The variance has a curve for every epsilon.
    """
    mapped = [sent_letters(table) for _, table in entries[entries["epsilon"] == mapped_epsilon].groupby("bits_out")]
    panels = [panel for _, panel in entries.drop_duplicates(["epsilon", "bits_out"]).groupby("epsilon")]
    figure = Figure(figsize=(WIDTH, 5.5), layout="constrained")
    (upper,), (lower,) = figure.subfigures(2, 1, squeeze=False, height_ratios=(1.0, 1.3))
    maps = upper.subplots(1, len(mapped), squeeze=False)[0]
    for axes, table in zip(maps, mapped, strict=True):
        image = draw_probability_map(axes, table)
        _label_map(axes, table, first=axes is maps[0])
    upper.colorbar(image, ax=maps, ticks=PROBABILITY_TICKS, format="{x:g}", label="probability", pad=0.01, aspect=14)
    axes = lower.subplots()
    marks = series_marks(len(panels))
    labels = [label for panel, mark in zip(panels, marks, strict=True) for label in _draw_variances(axes, panel, mark)]
    axes.plot([], [], color=GREY, linestyle=DOTTED, label="certified lower bound, any size")
    axes.set_yscale("log")
    axes.margins(y=0.16)
    axes.set_xticks(sorted(entries["bits_out"].unique()))
    axes.set_xlim(entries["bits_out"].min() - 0.85, entries["bits_out"].max() + 0.45)
    axes.set_xlabel("bits out")
    axes.set_ylabel("mean variance (interval length²)")
    axes.grid(visible=True, axis="y")
    lower.legend(loc="outside upper center", ncols=len(panels) + 1, handlelength=3.0)
    first = entries.iloc[0]
    add_caption(
        figure,
        f"MVU tables, {first['bits_in']} bits in. Top: probabilities at ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{mapped_epsilon:g}. Bottom: "
        "mean variance and its certified lower bound; numbers: a table of as many bits | of any size is at most this much better, in bold "
        f"where the last is first below {100 * SMALL_GAP:g}\N{NO-BREAK SPACE}%. Guarantee: ε as stated, {first['adjacency']} adjacency, "
        f"{first['trust_model']} trust model.",
    )
    place_labels(figure, axes, labels)
    return figure


def _label_map(axes: Axes, table: pd.DataFrame, *, first: bool) -> None:
    inputs, letters = table["input_index"].nunique(), table["letter_index"].nunique()
    bits = table["bits_out"].iloc[0]
    axes.set_title(f"{bits} bit{'s' if bits > 1 else ''}")
    axes.set_xticks((0, letters - 1), ("1", str(letters)))
    axes.set_yticks((0, inputs - 1), ("0", "1") if first else ("", ""))
    axes.set_xlabel("letter")
    if first:
        axes.set_ylabel(f"input (ε = {table['epsilon'].iloc[0]:g})")


def _draw_variances(axes: Axes, panel: pd.DataFrame, mark: Mark) -> list[DirectLabel]:
    """Draw one epsilon; return the labels of its gaps."""
    series = panel.sort_values("bits_out")
    bits, variances, gaps = series["bits_out"], series["mean_variance"], series["optimality_gap"]
    axes.axhline(series["lower_bound"].max(), color=mark.colour, linestyle=DOTTED, linewidth=1.0, zorder=1.5)
    axes.plot(bits, variances, label=f"MVU, ε = {series['epsilon'].iloc[0]:g}", **mark.look)
    texts = [
        gap_up(gap) if same == gap else f"{gap_up(same)} | {gap_up(gap)}" for same, gap in zip(series["letters_gap"], gaps, strict=True)
    ]
    enough = bits[gaps < SMALL_GAP].min()
    return [DirectLabel(text, x, y, bold=x == enough) for x, y, text in zip(bits, variances, texts, strict=True)]


def design_tasks(seed: int, quick: bool) -> list[DesignPoint]:
    """Return the designs."""
    bits_in, numbers = (QUICK_BITS_IN, QUICK_BITS_OUT) if quick else (BITS_IN, BITS_OUT)

    def point(epsilon: float, bits_out: int) -> DesignPoint:
        tolerance = TOLERANCES[epsilon] if bits_out == SEARCHED_BITS else None
        return DesignPoint(seed=seed, epsilon=epsilon, bits_in=bits_in, bits_out=bits_out, tolerance=tolerance)

    return [point(epsilon, bits_out) for epsilon in EPSILONS for bits_out in numbers]


def _over_bound(entries: pd.DataFrame, end: str) -> "pd.Series[float]":
    """Return variances over the certified bound with the fewest or the most bits."""
    gaps: pd.Series[float] = entries.loc[entries["bits_out"] == entries["bits_out"].agg(end), "optimality_gap"]
    return 1 / (1 - gaps)


FIGURE = FigureEntry(
    name="mvu-fig5",
    paper=f"{entry_named('mvu').paper}, figure 5",
    experiment="MVU tables",
    tasks=design_tasks,
    draw=draw_bits_out,
    summary=certificates,
    findings=(
        Finding("Variance over the bound with the fewest bits", lambda entries: _over_bound(entries, "min")),
        Finding("with the most", lambda entries: _over_bound(entries, "max")),
    ),
)
