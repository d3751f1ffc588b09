"""Sparse recovery: error against sparsity, by decoder, and where sending nothing is better than any of them."""

import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from ...analysis.catalogue.registry import entry_named
from ...analysis.comparisons.linear_compression.sparse_recovery import (
    RecoveryPoint,
    arrange_recovery,
    map_zero_wins,
    recovery_tasks,
)
from ..drawing.marks import BLUE, GREEN, ORANGE, VERMILION, Mark
from ..drawing.style import WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding, ratios
from .error_panels import ZERO_LOOK, add_legend

MARKS: dict[str, Mark] = {"ordinary": ORANGE, "lasso": GREEN, "lasso-refit": BLUE, "oracle": VERMILION}
LABELS = {"ordinary": "ordinary decoder", "lasso": "Lasso", "lasso-refit": "Lasso, refitted", "oracle": "oracle, knows the places"}
LEAST_RATIO = 1e-4


def draw_sparse(frame: pd.DataFrame) -> Figure:
    """Draw errors at the middle level of noise (left), and a map of the best decoder's error over that of zero (right)."""
    figure = Figure(figsize=(WIDTH, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    levels = sorted(frame["noise_deviation"].unique())
    noise = levels[len(levels) // 2]
    panel = frame[frame["noise_deviation"] == noise]
    for decoder, mark in MARKS.items():
        series = panel[panel["decoder"] == decoder]
        left.errorbar(series["sparsity"], series["mean_squared_error"], yerr=series["standard_error"], capsize=2, **mark.look)
    left.axhline(1.0, **ZERO_LOOK)
    left.set(xscale="log", yscale="log", xlabel="sparsity s", ylabel="squared L2 error (‖x‖²)", title=f"noise of a measurement: {noise:g}")
    left.grid(visible=True)
    found = frame[frame["decoder"].isin(["lasso", "lasso-refit", "ordinary"])]
    table = found.groupby(["noise_deviation", "sparsity"])["mean_squared_error"].min().unstack("sparsity")
    image = right.imshow(table.clip(lower=LEAST_RATIO), cmap="Blues_r", norm=LogNorm(LEAST_RATIO, 1.0), aspect="auto", origin="lower")
    right.set_xticks(range(len(table.columns)), [f"{sparsity}" for sparsity in table.columns], rotation=90)
    right.set_yticks(range(len(table.index)), [f"{level:g}" for level in table.index])
    right.set(xlabel="sparsity s", ylabel="noise of a measurement", title="\N{MULTIPLICATION SIGN}: zero is as good as any")
    for _, point in map_zero_wins(frame).iterrows():
        place = (list(table.columns).index(point["sparsity"]), list(table.index).index(point["noise_deviation"]))
        if point["zero_wins"]:
            right.text(*place, "\N{MULTIPLICATION SIGN}", ha="center", va="center", color="black")
        if point["zero_beats_oracle"]:
            right.plot(*place, marker="o", markersize=8, markerfacecolor="none", markeredgecolor="black", markeredgewidth=0.8)
    figure.colorbar(image, ax=right, label="least squared error of the decoders (‖x‖²)", extend="both")
    add_legend(figure, {LABELS[name]: mark for name, mark in MARKS.items()}, columns=3)
    first = frame.iloc[0]
    add_caption(
        figure,
        f"A vector of norm 1 with s equal entries, d = {first['dimension']:,}, from {first['measurements']:,} noisy measurements; "
        f"{first['repetitions']:.0f} repetitions, standard errors. Refitted: least squares on the entries found. Right: crossed where "
        "the answer zero beats all decoders but the oracle, circled where the oracle too. Nothing here is private.",
    )
    return figure


def sparse_tasks(seed: int, quick: bool) -> list[RecoveryPoint]:
    """Return a task for each sparsity, level of noise and repetition."""
    if not quick:
        return recovery_tasks(seed)
    noises = tuple(2.0**power for power in (-4, -2, 0, 2, 4))
    return recovery_tasks(seed, sparsities=(1, 4, 16, 64, 256), noise_deviations=noises, dimension=2**12, measurements=2**9, repetitions=2)


def refitted_over_oracle(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return errors of the refitted Lasso over the oracle's, at the same sparsity and noise."""
    refitted, oracle = (frame[frame["decoder"] == name] for name in ("lasso-refit", "oracle"))
    return ratios(refitted, oracle, ("noise_deviation", "sparsity"), "mean_squared_error")


FIGURE = FigureEntry(
    name="price-sparse",
    paper=f"{entry_named('sparse-discrete-gaussian').paper}, Algorithm 3; beyond the paper",
    experiment="sparse recovery",
    tasks=sparse_tasks,
    table=arrange_recovery,
    draw=draw_sparse,
    findings=(Finding("Squared error of the refitted Lasso over the oracle's", refitted_over_oracle),),
)
