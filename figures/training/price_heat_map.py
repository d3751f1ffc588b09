"""Bits and compression rate together: accuracy of trainings for each pair, at one epsilon, or with one noise on the paper's data."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from ...analysis.comparisons.linear_compression.settings import SETTINGS
from ...analysis.training.task import TrainingTask
from ..drawing.marks import VERMILION
from ..drawing.style import PROBABILITY_COLOURS, WIDTH, add_caption
from .grids import data_title
from .price_settings import (
    EPSILON,
    MOST_NOISE,
    ON_DATA,
    PAPER,
    arrange_rates,
    digits_common,
    digits_dimension,
    femnist_common,
    papers_noise,
    row_sizes,
    setting_in_words,
    sketch_tasks,
)
from .training_figure import training_figure

QUICK_BITS, FULL_BITS = [8, 10, 12, 14, 16], [8, 10, 12, 14, 16, 18]
QUICK_RATES, FULL_RATES = (4, 10, 40), (2, 4, 10, 20, 50)
# Those of its text and of Figures 3, 5 and 6: noise multipliers are those of `PAPER.reported`.
PAPER_BITS, PAPER_RATES = PAPER.value("map_bits"), (4, 10, 20, 50, 60)
# Where the paper has accuracies for pairs: its table 1. Of its maps, of FEMNIST, it names the cheapest pairs.
PAIRS_ON = "stackoverflow-words"
PANEL_HEIGHT = 2.6
# Points of accuracy below the best that count as little.
SLACK = 4.0


def arrange_pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each pair, with its bits a parameter, and which is the cheapest of those within the slack.

    With the paper's noise none is: pairs with fewer bits, which round more, are less private.
    """
    frame = arrange_rates(rows)
    private = frame["mechanism"] != "none"
    frame["bits_a_parameter"] = (frame["bits_per_client"] / frame["dimension"]).where(private)
    best = frame.loc[private, "accuracy"].max()
    within = frame[private & frame["target_epsilon"].notna() & (100 * frame["accuracy"] >= 100 * best - SLACK)]
    return frame.assign(cheapest=frame.index.isin([within["bits_a_parameter"].idxmin()] if len(within) else []))


def draw_map(frame: pd.DataFrame) -> Figure:
    """Draw a map of accuracies for each noise or budget; the cheapest pair within the slack is framed, infeasible ones are crossed."""
    pairs = frame[frame["mechanism"] != "none"]
    infeasible = pairs["accuracy"].isna()
    accuracy = 100 * pairs["accuracy"]
    given = pairs.get("paper_noise_multiplier", pd.Series(float("nan"), index=pairs.index)).astype(float)
    levels = (
        [(noise, given == noise) for noise in sorted(given.dropna().unique())] if given.notna().all() else [(None, accuracy.index >= 0)]
    )
    figure = Figure(figsize=(WIDTH, 4.0 if len(levels) == 1 else PANEL_HEIGHT * len(levels) + 1.0), layout="constrained")
    grid = figure.subplots(len(levels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (noise, kept) in zip(grid, levels, strict=True):
        image = _draw_pairs(axes, pairs[kept], accuracy.min(), accuracy.max())
        axes.set(ylabel="compression rate d/m", title="" if noise is None or len(levels) == 1 else f"z = {noise:g}")
    grid[-1].set_xlabel("bits of a coordinate")
    figure.colorbar(image, ax=list(grid), label="accuracy (%)")
    framed = pairs[pairs["cheapest"].eq(True)]
    fewest = (
        f" Framed: the fewest bits a parameter, {framed['bits_a_parameter'].iloc[0]:.2g}, within {SLACK:g} points of the best."
        if len(framed)
        else ""
    )
    crossed = " Crossed: infeasible." if infeasible.any() else ""
    add_caption(
        figure,
        f"{setting_in_words(frame)} Without privacy {100 * frame.loc[frame['mechanism'] == 'none', 'accuracy'].max():.1f} %."
        f"{fewest}{crossed} {reported_pairs(frame['data'].iloc[0])}",
    )
    return figure


def _draw_pairs(axes: Axes, pairs: pd.DataFrame, least: float, most: float) -> AxesImage:
    """Draw one map, with colours from the least to the most accuracy of all maps."""
    # Rates of whole rows differ a little from those asked for, which are the same for all numbers of bits.
    sizes = sorted(pairs["sketch_dimension"].fillna(pairs["dimension"]).astype(int).unique(), reverse=True)
    bits = sorted(pairs["bits"].astype(int).unique())
    place = {size: number for number, size in enumerate(sizes)}
    rows = pairs["sketch_dimension"].fillna(pairs["dimension"]).astype(int).map(place)
    columns = pairs["bits"].astype(int).map({width: number for number, width in enumerate(bits)})
    accuracy = 100 * pairs["accuracy"]
    table = pd.DataFrame({"row": rows, "column": columns, "value": accuracy}).pivot_table(
        index="row", columns="column", values="value", dropna=False
    )
    table = table.reindex(index=range(len(sizes)), columns=range(len(bits)))
    image = axes.imshow(table, cmap=PROBABILITY_COLOURS, aspect="auto", origin="lower", vmin=least, vmax=most)
    middle = (least + most) / 2
    for row, column, value in zip(rows, columns, accuracy, strict=True):
        text = "\N{MULTIPLICATION SIGN}" if pd.isna(value) else f"{value:.1f}"
        axes.text(column, row, text, ha="center", va="center", color="white" if value > middle else "black")
    for number in pairs.index[pairs["cheapest"].eq(True)]:
        corner = (columns[number] - 0.5, rows[number] - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=VERMILION.colour, linewidth=2.2))
    axes.set_xticks(range(len(bits)), [str(width) for width in bits])
    dimension = pairs["dimension"].iloc[0]
    axes.set_yticks(range(len(sizes)), [f"{dimension / size:.2g}" for size in sizes])
    return image


def reported_pairs(data: str) -> str:
    """Return what the paper reports of pairs: its cheapest ones on FEMNIST, and else the accuracies of its table 1 at the largest noise."""
    if data == PAPER.data:
        named = [one for one in SETTINGS if one.source.startswith("Figure")]
        cheapest = [f"{one.bits} bits with rate {one.rate:g} at z = {one.noise_multiplier:g}" for one in named]
        return f"Paper, the fewest bits a parameter: {', '.join(cheapest)}."
    paper = ON_DATA[PAIRS_ON]
    found = [
        f"{one.accuracy['cohort-1000']:.2f} % with rate {one.rate:g} and {one.bits} bits"
        for one in paper.reported
        if one.noise_multiplier == MOST_NOISE
    ]
    return f"Paper, {data_title(PAIRS_ON)}, z = {MOST_NOISE:g}, 1000 clients: {', '.join(found)}."


def pair_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return runs for each pair."""
    model = "mlp-32" if quick else "mlp-60-60-60"
    common = digits_common(quick=quick, model=model, clients_per_round=100)
    bits, rates = (QUICK_BITS, QUICK_RATES) if quick else (FULL_BITS, FULL_RATES)
    return sketch_tasks(seed, common, row_sizes(digits_dimension(model), rates), 3, {"epsilon": EPSILON}, bits=bits)


def paper_pair_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return runs on FEMNIST in the paper's setting, with each of its noise multipliers, and its seeds."""
    common = femnist_common(folder, quick=quick, model=PAPER.value("model"), clients_per_round=min(PAPER.value("cohort")))
    noise = papers_noise(*sorted(one.noise_multiplier for one in PAPER.reported if one.noise_multiplier))
    bits, rates, seeds = (QUICK_BITS[-1:], QUICK_RATES[:1], 1) if quick else (PAPER_BITS, PAPER_RATES, PAPER.value("map_seeds"))
    return sketch_tasks(seed, common, row_sizes(PAPER.value("parameters"), rates), seeds, noise, bits=bits)


FIGURE = training_figure(
    name="price-training-heat-map",
    paper=f"{PAPER.source}: bits and compression rate",
    experiment="trainings by sketches, bits and rates",
    tasks=pair_tasks,
    table=arrange_pairs,
    draw=draw_map,
    draws_infeasible=True,
    on_data=paper_pair_tasks,
)
