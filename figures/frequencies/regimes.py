"""Which mechanism for items wins where: a map of clients and items for each epsilon and number of bits."""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from ...analysis.comparisons.frequencies.regimes import (
    HISTOGRAM,
    LOCAL,
    PROBLEM,
    SHUFFLED,
    SKETCH,
    RegimePoint,
    regime_points,
    winners,
)
from ..drawing.style import WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding

# Light enough to be written on, and apart in grey as well.
COLOURS = {LOCAL: "#F5C98B", SHUFFLED: "#E7BBD6", SKETCH: "#9CCBEA", HISTOGRAM: "#E9F3DC"}
KINDS = {LOCAL: "local messages", SHUFFLED: "shuffled messages", SKETCH: "sketch in a secure sum", HISTOGRAM: "histogram in a secure sum"}
LETTERS = {
    "frequency-randomised-response": "RR",
    "hadamard-response": "HR",
    "recursive-hadamard-response": "RH",
    "projective-geometry-response": "PG",
    "unary-encoding": "UE",
    "subset-selection": "SS",
    "shuffled-frequency-randomised-response": "SR",
    "sketched-poisson-binomial": "PB",
    "sketched-discrete-gaussian-frequencies": "DG",
    "sketched-skellam-frequencies": "Sk",
}
CLIENTS, CATEGORIES = (10**3, 10**4, 10**5), (10**2, 10**3, 10**4, 10**5, 10**6)
EPSILONS, BUDGETS = (1.0, 10.0), (1e3, 1e5, 1e7)
# Kinds whose errors differ by less than this share are drawn as a tie.
TIE = 0.005
COLUMNS = [
    *PROBLEM,
    *("mechanism", "kind", "trust_model", "bits_per_client", "rows", "width", "predicted_squared_error"),
    *("central_squared_error", "lower_bound", "zero_squared_error", "next_kind_ratio", "useful"),
]


def draw_regimes(frame: pd.DataFrame) -> Figure:
    """Draw a map for each epsilon and number of bits: what wins, and its error over the trusted server's."""
    best = winners(frame)
    epsilons, budgets = sorted(frame["epsilon"].unique()), sorted(frame["budget"].unique())
    figure = Figure(figsize=(WIDTH, 1.6 + 2.4 * len(epsilons)), layout="constrained")
    grid = figure.subplots(len(epsilons), len(budgets), sharex=True, sharey=True, squeeze=False)
    for row, epsilon in zip(grid, epsilons, strict=True):
        for axes, budget in zip(row, budgets, strict=True):
            _draw_map(axes, best[(best["epsilon"] == epsilon) & (best["budget"] == budget)], frame)
            axes.set_title(f"ε = {epsilon:g}, {_size(budget)}")
        row[0].set_ylabel("items d")
    for axes in grid[-1]:
        axes.set_xlabel("clients n")
    handles: list[Patch | Line2D] = [Patch(facecolor=COLOURS[kind], edgecolor="black", label=label) for kind, label in KINDS.items()]
    handles.append(Patch(facecolor="white", edgecolor="#777777", hatch="////", label="equal frequencies have less error"))
    if best.apply(_is_tie, axis=1).any():
        handles.append(Line2D([], [], linestyle="", label=f"=: another kind is within {100 * TIE:g} %"))
    named = sorted((letters, name) for name, letters in LETTERS.items() if name in set(best["mechanism"]))
    handles += [Line2D([], [], linestyle="", label=f"{letters}: {name}") for letters, name in named]
    figure.legend(handles=handles, loc="outside upper center", ncols=2, columnspacing=1.2)
    first = frame.iloc[0]
    add_caption(
        figure,
        "The mechanism of least predicted squared L2 error over Zipf's frequencies, with messages of at most the given bits; under its "
        f"name: the error over a trusted server's. ε is for {first['adjacency']} adjacency: secure-sum trust model, and shuffled, at δ "
        f"= {frame['delta'].max():g}, local trust model at δ = 0; for the trusted server, central trust model.",
    )
    return figure


def _draw_map(axes: Axes, best: pd.DataFrame, frame: pd.DataFrame) -> None:
    clients, items = sorted(frame["clients"].unique()), sorted(frame["categories"].unique())
    for _, row in best.iterrows():
        x, y = clients.index(row["clients"]), items.index(row["categories"])
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=COLOURS[row["kind"]], edgecolor="white"))
        if not row["useful"]:
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor="#999999", hatch="////", linewidth=0))
        ratio = row["predicted_squared_error"] / row["central_squared_error"]
        box = {"facecolor": COLOURS[row["kind"]], "edgecolor": "none", "pad": 1.0}
        axes.text(
            x,
            y,
            f"{LETTERS.get(row['mechanism'], row['mechanism'])}{'=' * _is_tie(row)}\n{_ratio(ratio)}",
            horizontalalignment="center",
            verticalalignment="center",
            linespacing=1.0,
            bbox=box,
        )
    axes.set_xlim(-0.5, len(clients) - 0.5)
    axes.set_ylim(-0.5, len(items) - 0.5)
    axes.set_xticks(range(len(clients)), [_power(value) for value in clients])
    axes.set_yticks(range(len(items)), [_power(value) for value in items])
    axes.tick_params(length=0)


def _is_tie(row: "pd.Series[Any]") -> bool:
    """Return whether the next kind's error is about that of the winner."""
    return bool(row["next_kind_ratio"] < 1 + TIE)


def _power(value: float) -> str:
    return f"$10^{{{round(math.log10(value))}}}$"


def _size(bits: float) -> str:
    return f"{bits / 1e3:g} kbit" if bits < 1e6 else f"{bits / 1e6:g} Mbit"


def _ratio(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}" if ratio < 1000 else f"$10^{{{math.log10(ratio):.1f}}}$"


def regime_tasks(seed: int, quick: bool) -> list[RegimePoint]:
    """Return a task for each problem."""
    if quick:
        return regime_points(seed, (1000, 10_000), (100, 1000), EPSILONS, (1e3, 1e5))
    return regime_points(seed, CLIENTS, CATEGORIES, EPSILONS, BUDGETS)


def _over(best: pd.DataFrame, column: str) -> "pd.Series[float]":
    ratio: pd.Series[float] = best["predicted_squared_error"] / best[column]
    return ratio


FIGURE = FigureEntry(
    name="freq-regimes",
    paper="beyond the papers",
    experiment="which mechanism for items wins where",
    tasks=regime_tasks,
    draw=draw_regimes,
    summary=lambda rows: winners(rows)[COLUMNS],
    findings=(
        Finding("Error over a trusted server's", lambda frame: _over(winners(frame), "central_squared_error")),
        Finding("next kind's error over it", lambda frame: winners(frame)["next_kind_ratio"]),
    ),
)
