"""A self-contained HTML page on a grid of trainings.

The page has curves, results, guarantees and provenance.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...analysis.sweeps.budgets import GUARANTEE, best_rows, budget_warnings, guarantee_sentence
from ...analysis.sweeps.run import TaskFailure
from ...analysis.training.summary import OF_A_BUDGET, PROBLEM, VARIED, short_value, summarise_training, with_budget_flags, with_totals
from ...shown import in_figures, listed
from ..drawing.marks import BLACK, GREEN, ORANGE, PURPLE, SKY, TEAL, VERMILION, Mark
from ..report.comparison_plot import page_figure, varied_columns
from ..report.report_figures import report_style
from ..report.results_page import SUMMARY_NAME, Column, ResultsPage, results_page_html, versions_of, write_results_page
from .grids import training_mark

# Marks whose markers and lines the further settings of a mechanism have.
FURTHER = (BLACK, VERMILION, GREEN, PURPLE, ORANGE, SKY, TEAL)
# Widest line of a legend with several columns, in characters.
WIDE = 44
AXES = (
    ("round", "round", False),
    ("epsilon", "proven ε of all rounds so far", True),
    ("megabytes_up", "megabytes up, all clients so far", True),
)
# Largest numbers of drawn settings, and of settings that a sentence names.
MOST_SERIES, MOST_NAMED = 8, 4
# Columns of epsilon with secret sampling, for mechanisms whose own epsilon is not amplified, and without secret sampling, for other
# mechanisms.
BOTH_WAYS = ("epsilon_amplified", "epsilon_unamplified")
WIDTH, HEIGHT, LINE_HEIGHT = 11.0, 4.2, 0.22


def labelled(results: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with `series`: the mechanism, and the settings that differ among its runs."""
    runs = results.groupby("run", sort=False).head(1)
    names = []
    for row in runs.to_dict("records"):
        same = runs[runs["label"] == row["label"]]
        differing = [name for name in (*VARIED, "adjacency") if name in runs and same[name].nunique(dropna=False) > 1]
        shown = [f"{name.replace('_', ' ')} {short_value(row[name])}" for name in differing]
        names.append(", ".join([row["label"], *shown]))
    return results.assign(series=results["run"].map(dict(zip(runs["run"], names, strict=True))))


def draw_curves(results: pd.DataFrame, width: float, height: float) -> Figure:
    """Draw accuracy against rounds, epsilon and bytes up, from rows of `labelled`.

    A horizontal line shows the last accuracy of a run without privacy, which has no epsilon.
    """
    frame = with_totals(results)
    frame = frame[frame["accuracy"].notna()]
    # The guarantees may differ in adjacency and trust model; the page's table names both.
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(1, len(AXES), sharey=True)
    for (_, series), mark in zip(frame.groupby("series", sort=False), _marks(frame), strict=True):
        by_round = series.groupby("round")
        accuracy = by_round["accuracy"].agg(["mean", "min", "max"])
        if "test_examples" in series and series["seed"].nunique() == 1:
            error = np.sqrt(accuracy["mean"] * (1 - accuracy["mean"]) / series["test_examples"].iloc[0])
            accuracy = accuracy.assign(min=accuracy["mean"] - error, max=accuracy["mean"] + error)
        for axes, (name, _, _) in zip(panels, AXES, strict=True):
            places = by_round[name].mean() if name != "round" else pd.Series(accuracy.index, index=accuracy.index)
            if not np.isfinite(places).all():
                axes.axhline(accuracy["mean"].iloc[-1], color=mark.colour, linestyle=mark.line, linewidth=1.0, alpha=0.7)
                continue
            every = max(1, math.ceil(len(accuracy) / 6))
            axes.plot(
                places,
                accuracy["mean"],
                **mark.look,
                markevery=every,
                label=series["series"].iloc[0],
            )
            axes.fill_between(places, accuracy["min"], accuracy["max"], color=mark.colour, alpha=0.15, linewidth=0)
    for axes, (name, words, logarithmic) in zip(panels, AXES, strict=True):
        _finish(axes, frame[name], words, logarithmic=logarithmic)
    panels[0].set_ylabel("accuracy")
    handles, names = panels[0].get_legend_handles_labels()
    columns = 1 if max(map(len, names), default=0) > WIDE else 2
    figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False)
    return figure


def _marks(frame: pd.DataFrame) -> list[Mark]:
    """Return the marks of the series: a mechanism's own, with other markers and lines for further settings of it."""
    names = frame.drop_duplicates("series")[["mechanism"]]
    marks = []
    for name, place in zip(names["mechanism"], names.groupby("mechanism").cumcount(), strict=True):
        mark, other = training_mark(str(name)), FURTHER[place % len(FURTHER)]
        marks.append(replace(mark, marker=other.marker, line=other.line) if place else mark)
    return marks


def _finish(axes: Axes, values: pd.Series, words: str, *, logarithmic: bool) -> None:
    finite = values[np.isfinite(values) & (values > 0)]
    if logarithmic and len(finite) and finite.max() > 5 * finite.min():
        axes.set_xscale("log")
    axes.set_xlabel(words)
    axes.grid(visible=True)


def series_rows(results: pd.DataFrame) -> int:
    """Return the number of lines of the curves."""
    return int(results["series"].nunique())


def write_training_page(
    results: pd.DataFrame, summary: pd.DataFrame, folder: Path, failures: Sequence[TaskFailure] = (), *, command: str | None = None
) -> Path:
    """Write the page and the summary (`compared_trainings`) of trainings, and return the page's path.

    Both files go beside the results of `run_training`.

    Existing files are replaced.
    """
    return write_results_page(folder, training_page_html(results, summary, failures, command=command), summary)


def training_page_html(
    results: pd.DataFrame, summary: pd.DataFrame, failures: Sequence[TaskFailure] = (), *, command: str | None = None
) -> str:
    """Return the page of trainings and of their summary (`compared_trainings`) as HTML."""
    drawn, left_out = _drawn_runs(results, summary)
    with report_style():
        figure = page_figure(draw_curves(drawn, WIDTH, HEIGHT + LINE_HEIGHT * series_rows(drawn)), "training")
    varied = varied_columns(summary, VARIED)
    shared = [name for name in VARIED if name not in varied and summary[name].notna().all()]
    guarantee = varied_columns(summary, ("trust_model", "adjacency", "delta"))
    assumed = [name for name in map(str, summary) if name.startswith("epsilon_") and name not in BOTH_WAYS]
    hidden = f" Not drawn: {left_out} settings of lower accuracy." if left_out else ""
    return results_page_html(
        ResultsPage(
            title="Trainings: accuracy against rounds, ε and bytes",
            statement=training_statement(summary),
            setting=tuple(f"{name.replace('_', ' ')} {short_value(summary[name].iloc[0])}" for name in shared),
            guarantee=guarantee_sentence(summary),
            warnings=budget_warnings(summary, PROBLEM),
            figure=figure,
            caption="Accuracy on test examples that no client has; lines are means over seeds, shades the smallest and the largest, "
            "or with one seed a standard error over the test examples. In the "
            f"panel of ε a line across is the last accuracy of a run without a finite ε.{hidden}",
            columns=(
                Column("label", "Mechanism"),
                *(Column(name, name.replace("_", " ").capitalize(), digits=4) for name in varied if name not in OF_A_BUDGET),
                Column("accuracy", "Accuracy", digits=4, error="standard_error"),
                Column("realised_epsilon", "ε", digits=4),
                *(Column(name, f"ε, {name.removeprefix('epsilon_')}", digits=4) for name in BOTH_WAYS),
                *(Column(name, f"ε, {name.removeprefix('epsilon_').replace('_', ' ')}", digits=4) for name in assumed),
                *(Column(name, "δ" if name == "delta" else name.replace("_", " ").capitalize()) for name in guarantee),
                Column("bits_per_client", "Bits per client", digits=4),
                Column("megabytes_up", "MB up", digits=4),
                Column("megabytes_down", "MB down", digits=4),
                Column("flag", "Flag"),
            ),
            rows=summary.assign(
                is_best=best_rows(summary, "accuracy", PROBLEM, largest=True),
                # Trust model and adjacency are empty for a reference, which has no guarantee.
                **{name: summary[name].where(~summary["is_reference"], "") for name in ("trust_model", "adjacency")},
            ),
            notes=_notes(summary, assumed),
            failures=failures,
            data=((SUMMARY_NAME, "the rows above, with all digits and all columns"), ("results.parquet", "a row for each run and round")),
            provenance=(
                ("Command", command or ""),
                ("Seeds", ", ".join(map(str, sorted(results["seed"].unique().tolist())))),
                ("Versions", versions_of(results)),
            ),
        )
    )


def compared_trainings(results: pd.DataFrame) -> pd.DataFrame:
    """Return the summary of trainings with its references and flags."""
    return with_budget_flags(summarise_training(results))


def training_statement(summary: pd.DataFrame) -> str:
    """Return the sentence that states each guarantee's best accuracy.

    A separate sentence states references, which have no finite epsilon.
    """
    private, references = summary[~summary["is_reference"]], summary[summary["is_reference"]]
    groups = private.groupby(list(GUARANTEE), sort=False, dropna=False)["accuracy"]
    best = private.loc[groups.idxmax().dropna()].sort_values("accuracy", ascending=False)
    stated = [name for name in GUARANTEE if name in ("epsilon", "trust_model") or private[name].nunique() > 1]
    words = [f"{row['label']} {in_figures(row['accuracy'])} ({_guarantee(row, stated)})" for row in best.to_dict("records")]
    apart = [f"{label} {in_figures(accuracy)}" for label, accuracy in references.groupby("label", sort=False)["accuracy"].max().items()]
    named = f"Best accuracy after the last round, for each guarantee: {listed(words, MOST_NAMED)}"
    head = named if words else "Accuracy after the last round"
    kind = "a reference" if words else "references only"
    return f"{head}; without a finite ε, as {kind}: {listed(apart, MOST_NAMED)}." if apart else f"{head}."


def _guarantee(row: dict[Hashable, Any], stated: Sequence[str]) -> str:
    signs = {"epsilon": "ε = ", "delta": "δ = "}
    return ", ".join(f"{signs[name]}{in_figures(row[name])}" if name in signs else str(row[name]) for name in stated)


def _drawn_runs(results: pd.DataFrame, summary: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return the runs to draw, as `labelled` names them, and the number of omitted settings.

    If there are many settings, the page draws the best of each reference and, of other settings, the best of each guarantee, the second of
    each, and so on.
    """
    frame = labelled(results)
    budget = results["target_epsilon"].astype(float).fillna(results["epsilon"])
    last = frame.assign(epsilon=budget).groupby("run", sort=False).tail(1)
    last = last.groupby("series", sort=False).agg({"accuracy": "mean"} | dict.fromkeys(("label", *GUARANTEE), "first"))
    is_reference = last["label"].isin(summary.loc[summary["is_reference"], "label"])
    groups = last["label"].where(is_reference, last[list(GUARANTEE)].astype(str).agg(" ".join, axis=1))
    ranks = last["accuracy"].groupby(groups).rank(ascending=False, method="first")
    order = last.assign(rank=ranks, place=~is_reference)[~is_reference | (ranks == 1)]
    order = order.sort_values(["place", "rank", "accuracy"], ascending=[True, True, False])
    kept = last.index if len(last) <= MOST_SERIES else order.index[:MOST_SERIES]
    return frame[frame["series"].isin(kept)], len(last) - len(kept)


def _notes(summary: pd.DataFrame, assumed: Sequence[str]) -> tuple[str, ...]:
    notes = ["ε is proven, of all rounds together, for what one client holds. Of local mechanisms it is that of a client in every round."]
    if summary["is_reference"].any():
        notes.append("Rows in italics have no finite ε: they are references, never the best.")
    if best_rows(summary, "accuracy", PROBLEM, largest=True).any():
        notes.append("Shaded: the best accuracy among rows of the same data and guarantee.")
    if summary["epsilon_amplified"].notna().any():
        notes.append("Amplified: of local mechanisms, against an observer who sees all messages but not their senders.")
    if summary["epsilon_unamplified"].notna().any():
        notes.append("Unamplified: of sums and trusted servers, if everybody knew who takes part.")
    if assumed:
        names = listed([name.removeprefix("epsilon_").replace("_", " ") for name in assumed])
        notes.append(f"{names}: accounts that are not proven, or assume something about other clients.")
    return tuple(notes)
