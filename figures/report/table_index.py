"""The page of a grid of tables, with variances, certified bounds and links to the files."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from ...analysis.sweeps.budgets import budget_warnings, guarantee_sentence, with_flags
from ...analysis.sweeps.run import TaskFailure
from ...shown import gap_up, in_figures, listed, percent_number_up
from .comparison_plot import ComparisonPlot, Ruler, chosen_axis, draw_comparison, not_drawn, varied_columns, words_of
from .pages import write_page
from .results_page import MOST_ROWS, Column, ResultsPage, results_page_html, versions_of

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
# Columns of the index that only the data show.
NOT_SHOWN = ("max_bias", "solver", "size", "checksum")
# Gap below which a table is called near the optimum.
NEAR_OPTIMUM = 0.01
SAME_BITS_NOTE = (
    "Gap, same bits: no table with messages of as many bits has a variance that is lower by a larger share. Tables of one bit have a "
    "closed form; for others a grid asks for a search with certify_seconds, and without it the two gaps are equal."
)
BOUND = Ruler("lower_bound", "proven lower bound, however many bits", (0, (4, 2)))


def write_table_index(index: Path, failures: Sequence[TaskFailure] = ()) -> Path:
    """Write the page of an index that `design_tables` has written, and return its path.

    Failures are listed below the tables.
    """
    page = index.with_name(PAGE_NAME)
    write_page(page, table_index_html(index, failures))
    return page


def table_index_html(index: Path, failures: Sequence[TaskFailure] = ()) -> str:
    """Return the page of an index as HTML, with at most `MOST_ROWS` tables and as many failures."""
    rows = index_rows(index)
    failed = f"{len(failures)} table{'s' * (len(failures) > 1)} could not be designed: the reasons are below."
    page = ResultsPage(
        title=f"{len(rows):,} lookup table{'s' * (len(rows) != 1)}",
        statement=grid_statement(rows),
        warnings=(failed,) if failures else (),
        failures=failures,
        data=(("index.parquet", "a row for each table, with all digits, its realised epsilon and its SHA-256"),),
        provenance=(("Versions", versions_of(rows)),),
    )
    return results_page_html(page if rows.empty else _with_tables(page, rows))


def index_rows(index: Path) -> pd.DataFrame:
    """Return an index of tables with the columns `variance`, `is_reference` and `flag`.

    `variance` is the variance of a table's objective; the other two columns compare budgets.
    """
    rows: pd.DataFrame = pq.read_table(index, columns=[name for name in pq.read_schema(index).names if name not in NOT_SHOWN]).to_pandas()
    if rows.empty:
        return rows
    metric = rows["metric"].astype(object).fillna("none")
    stems = rows["file"].str.removesuffix(".json")
    return with_flags(
        rows.assign(
            metric=metric,
            promise=("metric " + metric).where(metric != "none", "no metric"),
            variance=rows["mean_variance"].where(rows["objective"] == "mean", rows["worst_variance"]),
            table=stems,
            label=stems,
            # A certificate without an epsilon counts as infinite epsilon.
            realised_epsilon=rows["realised_epsilon"].astype(float).fillna(np.inf),
            delta=0.0,
            realised_delta=0.0,
        )
    )


def metric_sentence(rows: pd.DataFrame) -> str | None:
    """Return a sentence on the guarantees by metrics, if tables differ in them."""
    metrics = list(dict.fromkeys(rows["metric"]))
    if len(metrics) < 2:
        return None
    return (
        f"Tables differ in metric ({listed(metrics)}): with a metric, epsilon is multiplied by a power of the distance of two values on "
        "the unit interval, a stronger promise than without one. Compare only tables with the same metric."
    )


def _with_tables(page: ResultsPage, rows: pd.DataFrame) -> ResultsPage:
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
    # Tables that differ only in their interval have the same variance on the unit interval.
    drawn = draw_comparison(rows.drop_duplicates(["epsilon", "bits_in", "bits_out", "metric", "objective"]), plot, "grid")
    shown = rows.iloc[:MOST_ROWS]
    limits = [f"{in_figures(low)} to {in_figures(high)}" for low, high in zip(shown["low"], shown["high"], strict=True)]
    several_intervals = bool({"low", "high"} & set(varied))
    shared = [name for name in ("epsilon", "bits_in", "bits_out") if name not in varied]
    metric = metric_sentence(rows)
    same_size = _tighter(rows).any()
    return replace(
        page,
        setting=(
            *words_of(rows.iloc[0].to_dict(), shared, NAMES),
            *(f"{name} {rows[name].iloc[0]}" for name in ("metric", "objective") if name not in varied),
            *([] if several_intervals else [f"interval {limits[0]}"]),
        ),
        guarantee=guarantee_sentence(rows),
        warnings=(*budget_warnings(rows, ("epsilon", "metric")), *([] if metric is None else [metric]), *page.warnings),
        figure=drawn.svg,
        caption=f"Variance of a decoded message {'by table' if axis == 'table' else f'against {NAMES[axis]}'}.{not_drawn(drawn)}",
        columns=(
            Column("table", "Table"),
            *(Column(name, NAMES[name].capitalize()) for name in ("bits_in", "metric", "objective") if name in varied),
            *([Column("interval", "Interval")] if several_intervals else []),
            Column("variance", "Variance", digits=4),
            Column("lower_bound", "Proven lower bound", digits=4),
            *([Column("letters_gap_percent", "Gap, same bits", digits=2, unit=" %", least=0.01)] if same_size else []),
            Column("gap", "Gap, any size", digits=2, unit=" %", least=0.01),
            Column("bits_out", "Bits per client"),
            Column("epsilon", "ε"),
            Column("flag", "Flag"),
            Column("file", "File", links=(("file", "JSON"),)),
        ),
        rows=shown.assign(
            is_best=False,
            interval=limits,
            gap=shown["optimality_gap"].astype(float).map(percent_number_up),
            letters_gap_percent=shown["letters_gap"].astype(float).map(percent_number_up),
        ),
        total=len(rows),
        notes=(
            "Variance: that of the objective, on average over the input grid (mean) or at its worst input (worst), on the unit interval's "
            "scale: on an interval from low to high it is (high - low)² times as large.",
            "Proven lower bound: no unbiased mechanism with the table's privacy has a smaller variance, however many bits it sends. "
            "Gap, any size: the share of the variance that is above this bound, rounded up.",
            *([SAME_BITS_NOTE] if same_size else []),
            "Each table is unbiased, has integer weights, and comes as JSON; “quietbits deploy” with its name writes clients in several "
            "languages. “quietbits verify” with the name of this folder recomputes all numbers from the files.",
        ),
        provenance=(*page.provenance, ("Seed", listed([str(seed) for seed in rows["seed"].unique()]))),
    )


def _tighter(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Return for each table whether its bound among tables of as many letters is above the bound for any number."""
    tighter: pd.Series[bool] = rows["letters_lower_bound"].astype(float) > rows["lower_bound"].astype(float).fillna(0.0)
    return tighter


def grid_statement(rows: pd.DataFrame) -> str:
    """Return the sentence that states how far a grid's tables are from the optimum."""
    if rows.empty:
        return "No table could be designed."
    gaps = rows["optimality_gap"].astype(float).dropna()
    count = f"{len(rows):,} table{'s' * (len(rows) > 1)}"
    if gaps.empty:
        return f"{count}, none with a proven lower bound on its variance."
    near = int((gaps < NEAR_OPTIMUM).sum())
    high = rows.iloc[int(rows["optimality_gap"].astype(float).argmax())]
    bits = f"{high['bits_out']} bit{'s' if high['bits_out'] > 1 else ''} out"
    widest = f"the widest gap is {gap_up(gaps.max())}, with {bits} and ε = {in_figures(high['epsilon'])}"
    least = "the least variance that any unbiased mechanism of the same privacy can have"
    statement = f"{near:,} of {count}: the proven gap to {least} is below {100 * NEAR_OPTIMUM:g} %; {widest}."
    same_size = rows["letters_gap"].astype(float)
    if not _tighter(rows).any():
        return statement
    return f"{statement} Among tables of as many bits, the widest gap is {gap_up(same_size.max())}."
