"""Accuracy of trainings for pairs of bits and compression rate.

Pairs have the same epsilon, or the same noise on the paper's data. The paper is Chen, Choquette-Choo, Kairouz, Suresh 2022, *The
fundamental price of secure aggregation in differentially private federated learning*, whose authors chose pairs of rate and bits by hand.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from scipy.special import ndtr

from ...analysis.training.task import TrainingTask
from ...arguments import check_integer, check_real
from ..drawing.marks import PAPER_VALUE, VERMILION
from ..drawing.style import WIDTH, add_caption, field_colours
from .grids import CROSS, accuracy_errors, bars_in_words, reported_handle
from .price_settings import (
    EPSILON,
    MOST_NOISE,
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

LARGEST_RATE = 1e9
MOST_BITS = 62
# Half of the modulus, in standard deviations of the sum, in the paper's trainings.
DEVIATIONS = 4.0
QUICK_BITS, FULL_BITS = [8, 10, 12, 14, 16], [8, 10, 12, 14, 16, 18]
QUICK_RATES, FULL_RATES = (4, 10, 50), (2, 4, 10, 20, 50)
# Settings of the paper's text and of Figures 3, 5 and 6, with the noise multipliers of `PAPER.reported`.
PAPER_BITS, PAPER_RATES = PAPER.value("map_bits"), (4, 10, 20, 50, 60)
PANEL_HEIGHT = 2.6
# Largest distance from the best accuracy, in percentage points, that counts as near the best.
SLACK = 4.0


@dataclass(frozen=True)
class CompressionSetting:
    """A training's setting in Chen, Choquette-Choo, Kairouz, Suresh 2022.

    Attributes
    ----------
    source : str
        Table or figure of the paper.
    task : str
        Learning task.
    rate : float
        Compression rate r, the number of parameters over the coordinates of a sketch.
    bits : int
        Number b of bits of a coordinate of the secure sum.
    noise_multiplier : float or None
        Standard deviation of the noise over the clip norm; None if the text does not state it.
    accuracy : float or None
        Reported accuracy, in per cent.
    """

    source: str
    task: str
    rate: float
    bits: int
    noise_multiplier: float | None = None
    accuracy: float | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_real("rate", self.rate, low=1.0, high=LARGEST_RATE)
        check_integer("bits", self.bits, low=1, high=MOST_BITS)

    @property
    def bits_per_parameter(self) -> float:
        """Number of bits of the secure sum per parameter of the model."""
        return self.bits / self.rate


NEXT_WORD, FEMNIST = "StackOverflow, next word", "F-EMNIST"
SETTINGS = (
    CompressionSetting("Table 1", NEXT_WORD, 1, 10, 0.3, 21.90),
    CompressionSetting("Table 1", NEXT_WORD, 5, 12, 0.3, 21.68),
    CompressionSetting("Table 1", NEXT_WORD, 1, 10, 0.5, 21.21),
    CompressionSetting("Table 1", NEXT_WORD, 5, 12, 0.5, 21.11),
    CompressionSetting("Table 1", NEXT_WORD, 10, 12, 0.5, 20.74),
    CompressionSetting("Figure 3", FEMNIST, 50, 12, 0.5),
    # Section 7 states 0.27 bits for the best rate at 16 bits; this rate gives that number.
    CompressionSetting("Section 7", FEMNIST, 60, 16, 0.5),
    CompressionSetting("Figure 5a", FEMNIST, 10, 12, 0.1),
    CompressionSetting("Figure 5b", FEMNIST, 20, 14, 0.3),
)


def modular_clip_probability(deviations: float = DEVIATIONS) -> float:
    """Return 2 (1 - Phi(k)), the probability that a Gaussian coordinate leaves the modulus.

    The modulus extends k standard deviations in both directions.

    Examples
    --------
    >>> f"{modular_clip_probability():.3g}"
    '6.33e-05'
    """
    return 2 * float(ndtr(-check_real("deviations", deviations, low=0.0, high=100.0)))


def compression_settings() -> pd.DataFrame:
    """Return the paper's settings as a tidy table, with two derived columns.

    The columns are ``bits_per_parameter`` and ``modular_clip_probability``.

    Examples
    --------
    >>> compression_settings()["bits_per_parameter"].round(2).tolist()
    [10.0, 2.4, 10.0, 2.4, 1.2, 0.24, 0.27, 1.2, 0.7]
    """
    own = {"modular_clip_probability": modular_clip_probability()}
    return pd.DataFrame([asdict(setting) | {"bits_per_parameter": setting.bits_per_parameter} | own for setting in SETTINGS])


def arrange_pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each pair, with its bits per parameter, and the cheapest pair marked.

    The cheapest pair is among those within the slack. With the paper's noise no pair is marked, as pairs with fewer bits, which round more,
    are less private.
    """
    frame = arrange_rates(rows)
    private = frame["mechanism"] != "none"
    frame["bits_a_parameter"] = (frame["bits_per_client"] / frame["dimension"]).where(private)
    best = frame.loc[private, "accuracy"].max()
    within = frame[private & frame["target_epsilon"].notna() & (100 * frame["accuracy"] >= 100 * best - SLACK)]
    return frame.assign(cheapest=frame.index.isin([within["bits_a_parameter"].idxmin()] if len(within) else []))


def draw_map(frame: pd.DataFrame) -> Figure:
    """Draw a map of accuracies for each noise or budget.

    A frame marks the cheapest pair within the slack, crosses mark infeasible pairs.
    """
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
        for setting in paper_pairs(frame["data"].iloc[0], noise):
            _draw_paper_pair(axes, pairs, setting)
    grid[-1].set_xlabel("bits of a coordinate")
    figure.colorbar(image, ax=list(grid), label="accuracy (%)")
    framed = pairs[pairs["cheapest"].eq(True)]
    handles: list[Patch | Line2D] = []
    if len(framed):
        label = f"fewest bits a parameter, {framed['bits_a_parameter'].iloc[0]:.2g}, within {SLACK:g} points of the best"
        handles.append(Patch(fill=False, edgecolor=VERMILION.colour, linewidth=2.2, label=label))
    if infeasible.any():
        handles.append(Line2D([], [], linestyle="", label="\N{MULTIPLICATION SIGN}: infeasible"))
    noise_in_words = "same z" if len(levels) > 1 else f"z = {MOST_NOISE:g}"
    handles.append(reported_handle(f"the paper's fewest, F-EMNIST, {noise_in_words}"))
    handles.append(Line2D([], [], linestyle="", label=f"± {bars_in_words(pairs[~infeasible])}"))
    figure.legend(handles=handles, loc="outside upper center", ncols=2)
    free = frame[frame["mechanism"] == "none"]
    add_caption(figure, f"{setting_in_words(frame)} Without privacy {_percent(free.sort_values('accuracy').iloc[-1], ' ')} %.")
    return figure


def paper_pairs(data: str, noise: float | None) -> list[CompressionSetting]:
    """Return the paper's cheapest pairs on FEMNIST at a noise multiplier, or at its largest one beside a map of a budget."""
    wanted = MOST_NOISE if noise is None or data != PAPER.data else noise
    return [setting for setting in SETTINGS if setting.source.startswith("Figure") and setting.noise_multiplier == wanted]


def _draw_paper_pair(axes: Axes, pairs: pd.DataFrame, setting: CompressionSetting) -> None:
    """Draw the paper's cross in the corner of the pair with the paper's bits and the nearest rate."""
    bits = sorted(pairs["bits"].astype(int).unique())
    if setting.bits in bits:
        rates = pairs["dimension"].iloc[0] / np.array(_sizes(pairs))
        row = int(np.argmin(np.abs(np.log(rates / setting.rate))))
        axes.plot(bits.index(setting.bits) + 0.4, row + 0.3, **PAPER_VALUE.points, **CROSS)


def _sizes(pairs: pd.DataFrame) -> list[int]:
    """Return the sizes of messages in the rows of a map, from below.

    Rates of whole rows differ a little from the requested rates, which are the same for all numbers of bits.
    """
    return sorted(pairs["sketch_dimension"].fillna(pairs["dimension"]).astype(int).unique(), reverse=True)


def _percent(run: "pd.Series[Any]", between: str = "\n") -> str:
    """Return an accuracy in per cent with its standard error."""
    error = accuracy_errors(run.to_frame().T.infer_objects()).iloc[0]
    return f"{100 * run['accuracy']:.1f}{between}± {100 * error:.1f}"


def _draw_pairs(axes: Axes, pairs: pd.DataFrame, least: float, most: float) -> AxesImage:
    """Draw a map, whose colours span the accuracies of all maps."""
    sizes = _sizes(pairs)
    bits = sorted(pairs["bits"].astype(int).unique())
    place = {size: number for number, size in enumerate(sizes)}
    rows = pairs["sketch_dimension"].fillna(pairs["dimension"]).astype(int).map(place)
    columns = pairs["bits"].astype(int).map({width: number for number, width in enumerate(bits)})
    accuracy = 100 * pairs["accuracy"]
    table = pd.DataFrame({"row": rows, "column": columns, "value": accuracy}).pivot_table(
        index="row", columns="column", values="value", dropna=False
    )
    table = table.reindex(index=range(len(sizes)), columns=range(len(bits)))
    image = axes.imshow(table, cmap=field_colours(), aspect="auto", origin="lower", vmin=least, vmax=most)
    for row, column, (_, run) in zip(rows, columns, pairs.iterrows(), strict=True):
        text = "\N{MULTIPLICATION SIGN}" if pd.isna(run["accuracy"]) else _percent(run)
        axes.text(column, row, text, ha="center", va="center", linespacing=1.1)
    for number in pairs.index[pairs["cheapest"].eq(True)]:
        corner = (columns[number] - 0.5, rows[number] - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=VERMILION.colour, linewidth=2.2))
    axes.set_xticks(range(len(bits)), [str(width) for width in bits])
    dimension = pairs["dimension"].iloc[0]
    axes.set_yticks(range(len(sizes)), [f"{dimension / size:.2g}" for size in sizes])
    return image


def pair_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return runs for each pair."""
    model = "mlp-32" if quick else "mlp-60-60-60"
    common = digits_common(quick=quick, model=model, clients_per_round=100)
    bits, rates = (QUICK_BITS, QUICK_RATES) if quick else (FULL_BITS, FULL_RATES)
    return sketch_tasks(seed, common, row_sizes(digits_dimension(model), rates), 2 if quick else 3, {"epsilon": EPSILON}, bits=bits)


def paper_pair_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return runs on FEMNIST in the paper's setting, for each noise multiplier and seed."""
    common = femnist_common(folder, quick=quick, model=PAPER.value("model"), clients_per_round=min(PAPER.value("cohort")))
    noise = papers_noise(*sorted(result.noise_multiplier for result in PAPER.reported if result.noise_multiplier))
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
