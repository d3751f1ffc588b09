"""Bits that frequencies need against bits that are used: every scheme a point, in the plane of worst errors and messages."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...analysis.catalogue.frequency_sums import PAPER
from ...analysis.comparisons.frequencies.needed_bits import BERNOULLI, BOUNDS, IDENTITY, NeededPoint, needed_points
from ...analysis.comparisons.frequencies.simulated_errors import DELTA
from ..drawing.marks import BLACK, BLUE, GREEN, ORANGE, VERMILION
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding

COLOURS = {"local": VERMILION, "shuffled": ORANGE, "secure-sum": BLUE}
MARKERS = "os^Dv<>PX*hdp8H"
# Where exact codes stand on the logarithmic axis: this share of the least error that is drawn.
EXACT = 0.03


def draw_needed_bits(frame: pd.DataFrame) -> Figure:
    """Draw necessary bits as lines and schemes as points, a panel for each problem."""
    problems = list(frame.groupby(["clients", "categories"]))
    figure = Figure(figsize=(WIDTH, 5.9), layout="constrained")
    grid = figure.subplots(1, len(problems), sharey=True, squeeze=False)[0]
    names = list(dict.fromkeys(frame.loc[frame["mechanism"] != BOUNDS, "mechanism"]))
    markers = dict(zip(names, MARKERS, strict=False))
    for axes, ((clients, items), panel) in zip(grid, problems, strict=True):
        _draw_panel(axes, panel, markers)
        axes.set(title=f"n = {clients:,}, d = {items:,}", xlabel="worst expected squared L2 error")
    grid[0].set(ylabel="bits of a client's message", ylim=(0.5, 3 * frame["bits_per_client"].max()))
    trusts = frame.drop_duplicates("mechanism").set_index("mechanism")["trust_model"]
    handles = [Line2D([], [], linestyle="", marker=markers[name], color=_colour(name, trusts[name]), label=_label(name)) for name in names]
    handles += [
        Line2D([], [], color=BLUE.colour, label="necessary in a secure sum, private or not"),
        Line2D([], [], color=VERMILION.colour, linestyle=(0, (4, 1.5)), label="necessary where all messages are seen"),
        Line2D([], [], color=BLACK.colour, linestyle=(0, (6, 1.5, 1, 1.5)), label="exact histogram in a secure sum"),
        Line2D([], [], color=BLUE.colour, linestyle=(0, (1, 1)), label="least error, secure sum, (ε, δ)"),
        Line2D([], [], color=VERMILION.colour, linestyle=(0, (1, 1)), label="least error, local and unbiased"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=2, handlelength=2.6, columnspacing=1.5)
    first = frame.iloc[0]
    add_caption(
        figure,
        f"Lines: fewer bits are proven not to suffice; dotted: least worst error. Hollow: sketched. ε = {first['epsilon']:g}, "
        f"δ = {DELTA:g}, or 0 in the local trust model; {first['adjacency']} adjacency. Colours: {_colours_in_words(frame)}.",
    )
    return figure


def _draw_panel(axes: Axes, panel: pd.DataFrame, markers: dict[str, str]) -> None:
    bounds = panel[panel["mechanism"] == BOUNDS]
    for trust, curve in bounds.groupby("trust_model"):
        mark = COLOURS[str(trust)]
        drawn = curve[curve["necessary_bits"] > 0]
        axes.plot(drawn["worst_squared_error"], drawn["necessary_bits"], color=mark.colour, linestyle=mark.line)
    first = panel.iloc[0]
    axes.axhline(first["histogram_bits"], color=BLACK.colour, linestyle=(0, (6, 1.5, 1, 1.5)), linewidth=1.0)
    for trust, column in (("secure-sum", "secure_sum_error_bound"), ("local", "local_error_bound")):
        axes.axvline(first[column], color=COLOURS[trust].colour, linestyle=(0, (1, 1)), linewidth=1.2)
    left = bounds["worst_squared_error"].min() * EXACT
    for _, row in panel[panel["mechanism"] != BOUNDS].dropna(subset=["bits_per_client"]).iterrows():
        colour = _colour(row["mechanism"], row["trust_model"])
        axes.plot(
            max(row["worst_squared_error"], left),
            row["bits_per_client"],
            linestyle="",
            marker=markers[row["mechanism"]],
            color=colour,
            markerfacecolor="white" if row["compressed"] else colour,
            markersize=5.5,
        )
    axes.set(xscale="log", yscale="log")
    axes.axvspan(left / 5, left * 5, color=GREY, alpha=0.12, linewidth=0)
    axes.text(left, 0.02, "exact", horizontalalignment="center", transform=axes.get_xaxis_transform())
    axes.grid(visible=True)


def _colours_in_words(frame: pd.DataFrame) -> str:
    """Return the colours that are drawn, by trust model; exact codes, which are not private, have their own."""
    words = {"secure-sum": "secure-sum trust model blue", "local": "local trust model red", "shuffled": "shuffled trust model orange"}
    models = set(frame.loc[frame["bits_per_client"].notna() | (frame["mechanism"] == BOUNDS), "trust_model"])
    drawn = [text for model, text in words.items() if model in models]
    exact = ["not private green"] if frame["mechanism"].isin([IDENTITY, BERNOULLI]).any() else []
    return ", ".join(drawn + exact)


def _colour(name: str, trust: str) -> str:
    return GREEN.colour if name in (IDENTITY, BERNOULLI) else COLOURS[trust].colour


def _label(name: str) -> str:
    return name.removesuffix("-frequencies").removeprefix("frequency-")


def needed_tasks(seed: int, quick: bool) -> list[NeededPoint]:
    """Return a task for each scheme and problem."""
    return needed_points(seed, ((100, 1000), (3000, 1000)) if quick else ((1000, 100_000), (50_000, 100_000)), {})


def _useful_ratios(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return bits over necessary ones, of the private schemes whose error needs a message."""
    useful = frame[frame["necessary_bits"].gt(0) & frame["worst_squared_error"].gt(0) & frame["bits_per_client"].notna()]
    ratio: pd.Series[float] = useful["bits_per_client"] / useful["necessary_bits"]
    return ratio


def _exact_ratios(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return bits of the Bernoulli code over those that an exact histogram needs."""
    exact = frame[frame["mechanism"] == BERNOULLI]
    ratio: pd.Series[float] = exact["bits_per_client"] / exact["histogram_bits"]
    return ratio


FIGURE = FigureEntry(
    name="freq-limits",
    paper=f"{PAPER}, Theorem 5.1 and Corollary 5.1; constants are beyond the paper",
    experiment="necessary and used bits of frequencies",
    tasks=needed_tasks,
    draw=draw_needed_bits,
    findings=(
        Finding("Bits of useful private messages over needed bits", _useful_ratios),
        Finding("the exact code's over needed bits", _exact_ratios),
    ),
)
