"""Bits and compression rate together: accuracy of trainings for each pair, at one epsilon, or with one noise on the paper's data."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

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
# Where the paper has numbers for pairs: its table 1. Its map, of FEMNIST, is a picture.
PAIRS_ON = "stackoverflow-words"
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
    """Draw a map of accuracies; the cheapest pair within the slack is framed, infeasible ones are crossed."""
    pairs = frame[frame["mechanism"] != "none"]
    infeasible = pairs["accuracy"].isna()
    # Rates of whole rows differ a little from those asked for, which are the same for all numbers of bits.
    sizes = sorted(pairs["sketch_dimension"].fillna(pairs["dimension"]).astype(int).unique(), reverse=True)
    bits = sorted(pairs["bits"].astype(int).unique())
    place = {size: number for number, size in enumerate(sizes)}
    rows = pairs["sketch_dimension"].fillna(pairs["dimension"]).astype(int).map(place)
    columns = pairs["bits"].astype(int).map({one: number for number, one in enumerate(bits)})
    accuracy = 100 * pairs["accuracy"]
    table = pd.DataFrame({"row": rows, "column": columns, "value": accuracy}).pivot_table(
        index="row", columns="column", values="value", dropna=False
    )
    table = table.reindex(index=range(len(sizes)), columns=range(len(bits)))
    figure = Figure(figsize=(WIDTH, 4.0), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(table, cmap=PROBABILITY_COLOURS, aspect="auto", origin="lower", vmin=accuracy.min(), vmax=accuracy.max())
    middle = (accuracy.min() + accuracy.max()) / 2
    for row, column, value in zip(rows, columns, accuracy, strict=True):
        text = "\N{MULTIPLICATION SIGN}" if pd.isna(value) else f"{value:.1f}"
        axes.text(column, row, text, ha="center", va="center", color="white" if value > middle else "black")
    framed = pairs[pairs["cheapest"].eq(True)]
    for number in framed.index:
        corner = (columns[number] - 0.5, rows[number] - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=VERMILION.colour, linewidth=2.2))
    axes.set_xticks(range(len(bits)), [str(one) for one in bits])
    dimension = pairs["dimension"].iloc[0]
    axes.set_yticks(range(len(sizes)), [f"{dimension / size:.2g}" for size in sizes])
    axes.set(xlabel="bits of a coordinate", ylabel="compression rate d/m")
    figure.colorbar(image, ax=axes, label="accuracy (%)")
    fewest = (
        f" Framed: the fewest bits a parameter, {framed['bits_a_parameter'].iloc[0]:.2g}, within {SLACK:g} points of the best."
        if len(framed)
        else ""
    )
    crossed = " Crossed: infeasible." if infeasible.any() else ""
    add_caption(
        figure,
        f"{setting_in_words(frame)} Without privacy {100 * frame.loc[frame['mechanism'] == 'none', 'accuracy'].max():.1f} %."
        f"{fewest}{crossed} {reported_pairs()}",
    )
    return figure


def reported_pairs() -> str:
    """Return the pairs of rates and bits that the paper reports in numbers, at the largest of its noise multipliers."""
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
    """Return runs on FEMNIST in the paper's setting, with the largest of its noise multipliers."""
    common = femnist_common(folder, quick=quick, model=PAPER.value("model"), clients_per_round=min(PAPER.value("cohort")))
    bits, rates = (QUICK_BITS[-1:], QUICK_RATES[:1]) if quick else (FULL_BITS, FULL_RATES)
    return sketch_tasks(seed, common, row_sizes(PAPER.value("parameters"), rates), 1, papers_noise(MOST_NOISE), bits=bits)


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
