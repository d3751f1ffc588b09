"""The page of a sweep: errors beside proven bounds and references.

The plot shows errors against the setting that varies most.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ...analysis.planner.bound import WEAK
from ...analysis.sweeps.budgets import best_rows, budget_warnings, guarantee_sentence
from ...analysis.sweeps.run import TaskFailure
from ...analysis.sweeps.summary import SETTINGS, summarise_sweep, usefulness_warnings
from ...shown import in_figures, listed
from .comparison_plot import BITS, ComparisonPlot, Ruler, chosen_axis, draw_comparison, not_drawn, varied_columns, words_of
from .results_page import SUMMARY_NAME, Column, ResultsPage, results_page_html, versions_of, write_results_page

# The ends of an interval are a single setting on the page.
SHOWN_SETTINGS = (*(name for name in SETTINGS if name not in ("low", "high")), "interval")
NAMES = {name: name.replace("_", " ") for name in SHOWN_SETTINGS} | {
    "categories": "items",
    "delta": "δ",
    "epsilon": "ε",
    "nonzero": "non-zero coordinates",
    "norm": "norm p",
    "mechanism": "mechanism",
    "trust_model": "trust model",
    "adjacency": "adjacency",
    BITS: "bits per client",
    "label": "mechanism",
}
# Settings whose numbers may be the horizontal axis, in order of preference.
AXES = ("epsilon", "clients", "dimension", "categories", "rounds", "nonzero", "scale", "clip_norm", "delta")
RULERS = (Ruler("central_error", "trusted server, same ε and δ", (0, (5, 3))), Ruler("zero_squared_error", "answering zero", (0, (1, 1))))


def write_sweep_page(results: pd.DataFrame, folder: Path, failures: Sequence[TaskFailure] = (), *, command: str | None = None) -> Path:
    """Write the page and the summary of a sweep of means, and return the page's path.

    Both files go beside the results.

    Existing files are replaced.
    """
    return write_results_page(folder, sweep_page_html(results, failures, command=command), summarise_sweep(results))


def sweep_page_html(results: pd.DataFrame, failures: Sequence[TaskFailure] = (), *, command: str | None = None) -> str:
    """Return the page of a sweep's results as HTML."""
    summary = with_interval(summarise_sweep(results))
    worse = summary["mean_squared_error"] > summary["zero_squared_error"]
    flags = [", ".join(filter(None, (flag, "zero is closer" * is_worse))) for flag, is_worse in zip(summary["flag"], worse, strict=True)]
    rows = summary.assign(
        flag=flags,
        is_best=best_rows(summary, "mean_squared_error", SETTINGS),
        # A reference has no budget, so its realised epsilon replaces it.
        epsilon=summary["epsilon"].where(~summary["is_reference"], summary["realised_epsilon"]),
        ratio_to_bound=_ratio_to_bound(summary),
    )
    varied = varied_columns(summary, SHOWN_SETTINGS)
    models = varied_columns(summary, ("trust_model", "adjacency"))
    axis = chosen_axis(summary, AXES, "label")
    estimated = "frequencies" if summary["categories"].notna().all() else "mean"
    plot = ComparisonPlot(
        value="mean_squared_error",
        words=f"squared error of the {estimated}",
        error="standard_error",
        axis=axis,
        lines=("mechanism" if axis == BITS else "label", *models),
        panels=tuple(name for name in varied if name != axis),
        rulers=tuple(ruler for ruler in RULERS if summary[ruler.name].notna().any()),
        names=NAMES,
    )
    drawn = draw_comparison(summary, plot, "sweep")
    shared = [name for name in SHOWN_SETTINGS if name not in varied and summary[name].notna().all()]
    return results_page_html(
        ResultsPage(
            title=f"Sweep: squared error {_against(axis)}",
            statement=sweep_statement(summary),
            setting=tuple(words_of(summary.iloc[0].to_dict(), shared, NAMES)),
            guarantee=guarantee_sentence(summary),
            warnings=(*budget_warnings(summary, SETTINGS), *usefulness_warnings(summary)),
            figure=drawn.svg,
            caption=_caption(plot, not_drawn(drawn), repetitions=int(summary["repetitions"].max())),
            columns=(
                Column("label", "Mechanism"),
                *(Column(name, NAMES[name].capitalize()) for name in models),
                *(Column(name, NAMES[name].capitalize()) for name in varied if name not in ("epsilon", "delta")),
                Column("mean_squared_error", "Squared error", error="standard_error"),
                Column("ratio_to_central", "Over central"),
                Column("ratio_to_bound", "Worst over proven bound"),
                Column(BITS, "Bits per client", digits=4),
                Column("epsilon", "ε"),
                *([Column("delta", "δ")] if "delta" in varied else []),
                Column("flag", "Flag"),
            ),
            rows=rows,
            notes=_notes(rows, estimated),
            failures=failures,
            data=(
                (SUMMARY_NAME, "the rows above, with all digits and all columns"),
                ("results.parquet", "a row for each repetition and measured quantity"),
            ),
            provenance=(
                ("Command", command or ""),
                ("Seed", listed([str(seed) for seed in summary_seeds(results)])),
                ("Versions", versions_of(results)),
            ),
        )
    )


def _ratio_to_bound(summary: pd.DataFrame) -> pd.Series:
    """Return the worst error over the proven lower bound.

    The ratio is missing if the bound is too weak to judge a mechanism, as in plans.
    """
    bound = summary["lower_bound"].astype(float)
    weak = (summary["trust_model"] != "local") & summary["low"].isna() & (bound < WEAK * summary["central_error"])
    return summary["worst_squared_error"] / bound.where(~weak)


def with_interval(summary: pd.DataFrame) -> pd.DataFrame:
    """Return a summary whose numbers' interval is a text, without their dimension of 1."""
    if summary["low"].isna().all():
        return summary.assign(interval=None)
    limits = [f"{in_figures(low)} to {in_figures(high)}" for low, high in zip(summary["low"], summary["high"], strict=True)]
    return summary.assign(interval=limits, dimension=np.nan)


def sweep_statement(summary: pd.DataFrame) -> str:
    """Return the sentence that states the mechanism of least error in each trust model."""
    settings = summary.groupby(list(SETTINGS), sort=False, dropna=False).ngroups
    mechanisms = summary["label"].nunique()
    named = f"{mechanisms} mechanisms" if mechanisms > 1 else summary["label"].iloc[0]
    head = f"{named} in {settings} setting{'s' * (settings > 1)}"
    best = summary[best_rows(summary, "mean_squared_error", SETTINGS)]
    if best.empty:
        low, high = summary["mean_squared_error"].min(), summary["mean_squared_error"].max()
        error = in_figures(low) if low == high else f"from {in_figures(low)} to {in_figures(high)}"
        return f"{head}: squared error {error}."
    leaders = []
    for model, rows in best.groupby("trust_model", sort=False):
        counts = rows["label"].value_counts()
        share = "" if settings == 1 else f", in {counts.iloc[0]} of {len(rows)} settings"
        leaders.append(f"{counts.index[0]} ({model}{share})")
    return f"{head}; the least squared error among mechanisms of the same guarantee: {'; '.join(leaders)}."


def summary_seeds(results: pd.DataFrame) -> list[int]:
    """Return the root seeds of a sweep's rows."""
    return sorted(results["seed"].unique().tolist())


def _notes(rows: pd.DataFrame, estimated: str) -> tuple[str, ...]:
    notes = [f"Squared L2 distance of the estimate from the true {estimated} of the clipped inputs, on average, ± standard error."]
    if rows["is_best"].any():
        notes.append("Shaded: the least error among rows with the same settings and the same guarantee.")
    if rows["ratio_to_central"].notna().any():
        notes.append("Central: the least error of a trusted server's noise, for the same epsilon, delta and adjacency.")
    if rows["ratio_to_bound"].notna().any():
        notes.append("Worst over proven bound: the largest expected error over all inputs, over a lower bound that is proven for it.")
    return tuple(notes)


def _against(axis: str) -> str:
    return "by mechanism" if axis == "label" else f"against {NAMES[axis]}"


def _caption(plot: ComparisonPlot, hidden: str, *, repetitions: int) -> str:
    bars = f" Bars: 1.96 standard errors of {repetitions} repetitions, without lower arms that reach zero." if repetitions > 1 else ""
    return f"{plot.words.capitalize()} {_against(plot.axis)}.{bars}{hidden}"
