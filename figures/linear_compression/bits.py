"""Errors of pairs of bits and compression rate, and the cheapest pair within a slack."""

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ...analysis.catalogue.registry import entry_named
from ..drawing.directed_rounding import rounded_up
from ..drawing.marks import VERMILION
from ..drawing.style import WIDTH, add_caption, field_colours
from ..entry import FigureEntry
from ..findings import Finding
from .sketched_sums import SketchPoint, arrange_sketches

# Noise multipliers of the paper, and 8: Figures 5a, 5b and 3 have one noise multiplier each, and Figure 6 has all.
BITS = (8, 10, 12, 14, 16, 18, 20, 22)
RATES = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
NOISE_MULTIPLIERS = (0.1, 0.3, 0.5)
SLACK = 1.5
# Largest factor of a pair's epsilon over the least epsilon of its noise; other pairs are omitted, as coarse noise hides less than its
# multiplier suggests.
MOST_EPSILON = 1.1
LARGEST_RATIO = 100.0


def draw_bits(frame: pd.DataFrame) -> Figure:
    """Draw a map of error ratios for each level of noise; frame the cheapest pair in the slack."""
    levels = sorted(frame["noise_multiplier"].unique())
    figure = Figure(figsize=(WIDTH, 2.5 * len(levels) + 1.2), layout="constrained")
    grid = figure.subplots(len(levels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, noise in zip(grid, levels, strict=True):
        panel = frame[frame["noise_multiplier"] == noise]
        table, errors = (panel.pivot_table(index="rate", columns="bits", values=name, dropna=False) for name in ("ratio", "ratio_error"))
        image = axes.imshow(table, cmap=field_colours(), norm=LogNorm(1.0, LARGEST_RATIO), aspect="auto", origin="lower")
        axes.set_xticks(range(len(table.columns)), [str(bits) for bits in table.columns])
        axes.set_yticks(range(len(table.index)), [f"{rate:g}" for rate in table.index])
        epsilon = rounded_up(panel.loc[panel["ratio"].notna(), "realised_epsilon"].max(), 3)
        # The denominator of each ratio is the least error of its level.
        zero = (panel["zero"] * panel["ratio"] / panel["squared_error"]).mean()
        title = f"z = {noise:g}, ε of at most {epsilon}; answer zero: {zero:.2g}"
        for (row, rate), (column, bits) in ((r, c) for r in enumerate(table.index) for c in enumerate(table.columns)):
            axes.text(column, row, _measured(table.loc[rate, bits], errors.loc[rate, bits]), ha="center", va="center", linespacing=1.0)
        best = panel[panel["cheapest"]]
        if not best.empty:
            place = (list(table.columns).index(best["bits"].iloc[0]) - 0.5, list(table.index).index(best["rate"].iloc[0]) - 0.5)
            axes.add_patch(_frame(place))
            title += f"; framed: {best['bits_per_coordinate'].iloc[0]:.2g} bits a parameter"
        axes.set(ylabel="compression rate d/m", title=title)
    grid[-1].set_xlabel("bits b of a coordinate")
    figure.colorbar(image, ax=list(grid), label="squared error over the least", extend="max")
    first = frame.iloc[0]
    add_caption(
        figure,
        f"{first['clients']:,.0f} vectors, d = {first['dimension']:,.0f}: squared error over the panel's least, ± standard error of "
        f"{first['repetitions']:.0f} rounds. Framed: fewest bits within a factor of {SLACK:g}. Crossed: too few bits, or over "
        f"{MOST_EPSILON:g} times the finest's ε. z: noise / clip norm. δ = {first['delta']:g} a round, {first['adjacency']} adjacency, "
        f"{first['trust_model']} trust model.",
    )
    return figure


def _measured(ratio: float, error: float) -> str:
    """Return a ratio with its standard error, or a cross for a missing ratio."""
    if np.isnan(ratio):
        return "\N{MULTIPLICATION SIGN}"
    return f"{ratio:.3g}\n± {f'{error:.1g}' if error < 1 else f'{error:.0f}'}"


def _frame(place: tuple[float, float]) -> Rectangle:
    return Rectangle(place, 1, 1, fill=False, edgecolor=VERMILION.colour, linewidth=2.2)


def arrange_bits(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the averages of `arrange_sketches`, relative errors, and the cheapest pairs.

    Errors are relative to the least error of their noise. The comparison excludes pairs whose epsilon is far above the least of their
    noise, since few bits look good without privacy.
    """
    frame = arrange_sketches(rows)
    noises = frame["noise_multiplier"]
    private = frame["realised_epsilon"] <= MOST_EPSILON * frame.groupby(noises)["realised_epsilon"].transform("min")
    errors = frame["squared_error"].where(private)
    least = errors.groupby(noises).transform("min")
    frame["ratio"], frame["ratio_error"] = errors / least, frame["standard_error"].where(private) / least
    within = frame[frame["ratio"] <= SLACK]
    frame["cheapest"] = frame.index.isin(within.groupby("noise_multiplier")["bits_per_coordinate"].idxmin())
    return frame


def bit_tasks(seed: int, quick: bool) -> list[SketchPoint]:
    """Return a task for each level of noise, number of bits, rate and repetition."""
    dimension, clients, repetitions = (2**12, 100, 2) if quick else (2**17, 300, 3)
    point = partial(SketchPoint, seed=seed, dimension=dimension, clients=clients, mean_norm=0.02)
    return [
        point(bits=bits, rate=rate, noise_multiplier=noise, repetition=repetition)
        for noise in NOISE_MULTIPLIERS
        for bits in BITS
        for rate in RATES
        for repetition in range(repetitions)
    ]


FIGURE = FigureEntry(
    name="price-bits",
    paper=f"{entry_named('sketched-discrete-gaussian').paper}, the mean estimation in Table 1 and Figures 3, 5 and 6",
    experiment="sketched sums against bits and rates",
    tasks=bit_tasks,
    table=arrange_bits,
    draw=draw_bits,
    findings=(Finding("Bits a parameter of the framed pairs", lambda frame: frame.loc[frame["cheapest"], "bits_per_coordinate"]),),
)
