"""The page of a grid of tables: variances beside certified bounds, with links to the files."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ...analysis.sweeps.budgets import budget_warnings, guarantee_sentence, with_flags
from ...analysis.sweeps.run import TaskFailure
from ...shown import in_figures, listed
from .comparison_plot import ComparisonPlot, Ruler, chosen_axis, draw_comparison, varied_columns, words_of
from .pages import write_page
from .results_page import Column, ResultsPage, results_page_html, versions_of

PAGE_NAME = "index.html"
NAMES = {
    "epsilon": "ε",
    "bits_in": "bits in",
    "bits_out": "bits out",
    "metric": "metric",
    "objective": "objective",
    "low": "from",
    "high": "to",
    "promise": "promise",
}
SETTINGS = ("epsilon", "bits_in", "bits_out", "metric", "objective", "low", "high")
AXES = ("epsilon", "bits_out", "bits_in")
VARIANCES = {"mean": "mean_variance", "worst": "worst_variance"}
# A table whose gap is below this share is called near the optimum.
NEAR_OPTIMUM = 0.01
BOUND = Ruler("lower_bound", "proven lower bound, however many bits", (0, (4, 2)))


def write_table_index(index: Path, failures: Sequence[TaskFailure] = (), *, command: str | None = None) -> Path:
    """Write an index's page beside the index that `design_tables` has written; return its path.

    Failures are listed below the tables.
    """
    page = index.with_name(PAGE_NAME)
    write_page(page, table_index_html(index, failures, command=command))
    return page


def table_index_html(index: Path, failures: Sequence[TaskFailure] = (), *, command: str | None = None) -> str:
    """Return the page of an index as HTML, with at most `MOST_ROWS` tables and as many failures."""
    rows = index_rows(index)
    if rows.empty:
        return results_page_html(_page(rows, failures, command))
    varied = varied_columns(rows, SETTINGS)
    axis = chosen_axis(rows, AXES, "table")
    plot = ComparisonPlot(
        value="variance",
        words="variance of a decoded message",
        axis=axis,
        lines=tuple(name for name in varied_columns(rows, ("bits_out", "promise", "epsilon")) if name != axis),
        panels=tuple(name for name in ("objective", "bits_in") if name in varied and name != axis),
        rulers=(BOUND,),
        names=NAMES,
    )
    # Tables that differ in their interval only have the same variance on the unit interval.
    drawn = draw_comparison(rows.drop_duplicates(["epsilon", "bits_in", "bits_out", "metric", "objective"]), plot, "grid")
    hidden = f" Not drawn: {listed(list(drawn.left_out))}." if drawn.left_out else ""
    against = f"against {NAMES[axis]}" if axis in NAMES else "by table"
    return results_page_html(_page(rows, failures, command, varied, drawn.svg, f"Variance of a decoded message {against}.{hidden}"))


def index_rows(index: Path) -> pd.DataFrame:
    """Return an index with each table's `variance` of its objective, and `is_reference` and `flag` of its budget."""
    rows = pd.read_parquet(index)
    if rows.empty:
        return rows
    kinds = rows["objective"].map(VARIANCES)
    variances = [row[kind] for row, kind in zip(rows.to_dict("records"), kinds, strict=True)]
    stems = rows["file"].str.removesuffix(".json")
    rows = rows.assign(metric=rows["metric"].fillna("none"), variance=variances, table=stems, label=stems)
    # A certificate without an epsilon has one that is infinite.
    realised = rows["realised_epsilon"].astype(float).fillna(float("inf"))
    rows["promise"] = ["no metric" if metric == "none" else f"metric {metric}" for metric in rows["metric"]]
    return with_flags(rows.assign(realised_epsilon=realised, delta=0.0, realised_delta=0.0))


def metric_sentence(rows: pd.DataFrame) -> str | None:
    """Return what tables with a metric promise, where there are any beside others."""
    metrics = [metric for metric in dict.fromkeys(rows["metric"]) if metric != "none"]
    if not metrics or rows["metric"].nunique() == 1:
        return None
    return (
        f"Tables differ in the metric ({listed(metrics)} or none): with a metric, epsilon is multiplied by a power of the distance of two "
        "values on the unit interval. That promise is the stronger one: compare only tables with the same metric."
    )


def _page(
    rows: pd.DataFrame,
    failures: Sequence[TaskFailure],
    command: str | None,
    varied: Sequence[str] = (),
    figure: str = "",
    caption: str = "",
) -> ResultsPage:
    count, settings = len(rows), ("epsilon", "metric")
    interval = [Column("interval", "Interval")] if {"low", "high"} & set(varied) else []
    metric = metric_sentence(rows) if count else None
    failed = f"{len(failures)} table{'s' * (len(failures) > 1)} could not be designed: the reasons are below." if failures else None
    shown = rows
    setting: tuple[str, ...] = ()
    if count:
        limits = [f"{in_figures(low)} to {in_figures(high)}" for low, high in zip(rows["low"], rows["high"], strict=True)]
        shown = rows.assign(is_best=False, interval=limits, gap=100 * rows["optimality_gap"].astype(float))
        shared = [name for name in ("epsilon", "bits_in", "bits_out") if name not in varied]
        setting = (
            *words_of(rows.iloc[0], shared, NAMES),
            *(f"{name} {rows[name].iloc[0]}" for name in ("metric", "objective") if name not in varied),
            *([] if interval else [f"interval {limits[0]}"]),
        )
    return ResultsPage(
        title=f"{count:,} lookup table{'s' * (count != 1)}",
        statement=grid_statement(rows),
        setting=setting,
        guarantee=guarantee_sentence(rows) if count else "",
        warnings=tuple(filter(None, (*(budget_warnings(rows, settings) if count else ()), metric, failed))),
        figure=figure,
        caption=caption,
        columns=(
            Column("table", "Table"),
            *(Column(name, NAMES[name].capitalize()) for name in ("bits_in", "metric", "objective") if name in varied),
            *interval,
            Column("variance", "Variance", digits=4),
            Column("lower_bound", "Proven lower bound", digits=4),
            Column("gap", "Gap", digits=2, unit=" %", least=0.01),
            Column("bits_out", "Bits per client"),
            Column("epsilon", "ε"),
            Column("flag", "Flag"),
            Column("file", "Files", links=(("file", "JSON"), ("header", "C"))),
        )
        if count
        else (),
        rows=shown,
        notes=(
            "Variance: that of the objective, on average over the input grid (mean) or at its worst input (worst), on the unit interval's "
            "scale: on an interval from low to high it is (high - low)² times as large.",
            "Proven lower bound: no unbiased mechanism with the table's privacy has a smaller variance, however many bits it sends. Gap: "
            "the share of the variance that is above the bound.",
            "Each table is unbiased, has integer weights, and comes as JSON and as a C header with a sampler. `quietbits verify` with the "
            "name of this folder recomputes all numbers from the files.",
        ),
        failures=failures,
        data=(("index.parquet", "a row for each table, with all digits, its realised epsilon and its SHA-256"),),
        provenance=(
            ("Command", command or ""),
            ("Seed", listed([str(seed) for seed in rows["seed"].unique()]) if count else ""),
            ("Versions", versions_of(rows)),
        ),
    )


def grid_statement(rows: pd.DataFrame) -> str:
    """Return the sentence that states how far a grid's tables are from the optimum."""
    if rows.empty:
        return "No table could be designed."
    gaps = rows["optimality_gap"].astype(float).dropna()
    count = f"{len(rows):,} table{'s' * (len(rows) > 1)}"
    if gaps.empty:
        return f"{count}, none with a proven lower bound on its variance."
    near = int((gaps < NEAR_OPTIMUM).sum())
    high = rows.loc[gaps.idxmax()]
    bits = f"{high['bits_out']} bit{'s' if high['bits_out'] > 1 else ''} out"
    widest = f"the widest gap is {in_figures(100 * gaps.max(), 2)} %, with {bits} and ε = {in_figures(high['epsilon'])}"
    return f"{near:,} of {count} within {100 * NEAR_OPTIMUM:g} % of the least variance that any unbiased mechanism can have; {widest}."
