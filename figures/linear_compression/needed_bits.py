"""The price: necessary and sufficient bits against clients times epsilon, with every mechanism of the registry as a point."""

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...analysis.catalogue.registry import entry_named
from ...analysis.comparisons.linear_compression.needed_bits import SLACK, PricePoint, price_points
from ..drawing.marks import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, Mark
from ..drawing.style import WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from .error_panels import ZERO_LOOK

# Colours by trust model; a marker for each mechanism of one.
COLOURS = {"local": VERMILION.colour, "shuffled": ORANGE.colour, "secure-sum": BLUE.colour, "central": PURPLE.colour}
COLOUR_NAMES = {"local": "red", "shuffled": "orange", "secure-sum": "blue", "central": "purple"}
# Powers of ten that points of one number of clients are spread by, either way: many have the same bits.
SPREAD = 0.2
MARKERS = "os^Dv<>PX*hdp8H1234+x"


def draw_needed_bits(frame: pd.DataFrame) -> Figure:
    """Draw the bounds as lines, and mechanisms as points at a few numbers of clients: filled where their error is within the slack."""
    figure = Figure(figsize=(WIDTH, 5.6), layout="constrained")
    axes = figure.subplots()
    bounds = frame[frame["mechanism"] == "bounds"].sort_values("budget")
    lines: tuple[tuple[str, str, Mark], ...] = (
        ("necessary_bits_any", "necessary for any estimate", BLACK),
        ("necessary_bits_unbiased", "necessary for an unbiased one", GREEN),
        ("sufficient_bits", "sufficient: sketch, discrete Gaussian", SKY),
    )
    handles = []
    for column, label, mark in lines:
        (line,) = axes.plot(bounds["budget"], bounds[column].replace(0, math.nan), color=mark.colour, linestyle=mark.line, label=label)
        handles.append(line)
    free = bounds[bounds["zero_squared_error"] <= SLACK * bounds["central_squared_error"]]
    if not free.empty:
        handles.append(axes.axvline(free["budget"].max(), label="zero is as good, to the left", **ZERO_LOOK))
    offers = frame[(frame["mechanism"] != "bounds") & frame["bits_per_client"].notna()]
    unused = {trust_model: iter(MARKERS) for trust_model in COLOURS}
    sideways = iter(10.0 ** np.linspace(-SPREAD, SPREAD, offers["mechanism"].nunique()))
    for name, series in offers.groupby("mechanism", sort=False):
        place = next(sideways)
        trust_model = series["trust_model"].iloc[0]
        colour, marker = COLOURS[trust_model], next(unused[trust_model])
        for filled, part in series.groupby("within_slack"):
            face = colour if filled else "white"
            axes.plot(
                part["budget"] * place,
                part["bits_per_client"],
                linestyle="",
                marker=marker,
                color=colour,
                markerfacecolor=face,
                markersize=5,
            )
        handles.append(Line2D([], [], linestyle="", marker=marker, color=colour, label=str(name)))
    axes.set(xscale="log", yscale="log", xlabel="clients \N{MULTIPLICATION SIGN} ε", ylabel="bits of a client's message")
    axes.grid(visible=True)
    figure.legend(handles=handles, loc="outside right upper", handlelength=2.2)
    first = frame.iloc[0]
    add_caption(
        figure,
        f"Mean of n vectors of dimension {first['dimension']:,.0f}, norm at most 1, at ε = {first['epsilon']:g}, δ = "
        f"{first['delta']:g}, {first['adjacency']} adjacency. Lines: bits for a worst error of at most {SLACK:g} times that of a "
        f"trusted server. Points: mechanisms, filled where within that factor. Colours: {colours_in_words(offers['trust_model'])}.",
    )
    return figure


def colours_in_words(trust_models: "pd.Series[str]") -> str:
    """Return the colours of the trust models that are drawn."""
    drawn = set(trust_models)
    return ", ".join(f"{model} trust model {colour}" for model, colour in COLOUR_NAMES.items() if model in drawn)


def needed_tasks(seed: int, quick: bool) -> list[PricePoint]:
    """Return a task for the bounds and each mechanism, at each number of clients."""
    dimension, points, offered = (2**6, 5, (100, 1000)) if quick else (2**12, 17, (100, 1000, 10_000))
    clients = [round(10 ** (1 + 4 * step / (points - 1))) for step in range(points)]
    return price_points(seed, clients, offered, dimension, 1.0)


def sufficient_over_necessary(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return sufficient bits over those that any estimate needs, where it needs some."""
    bounds = frame[(frame["mechanism"] == "bounds") & (frame["necessary_bits_any"] > 0)]
    ratio: pd.Series[float] = bounds["sufficient_bits"] / bounds["necessary_bits_any"]
    return ratio


FIGURE = FigureEntry(
    name="price-needed-bits",
    paper=f"{entry_named('sketched-discrete-gaussian').paper}; bounds with constants are beyond the paper",
    experiment="necessary and sufficient bits",
    tasks=needed_tasks,
    draw=draw_needed_bits,
    findings=(Finding("Sufficient bits of a sketch over necessary bits", sufficient_over_necessary),),
)
