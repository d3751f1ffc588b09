"""`quietbits sweep`: run the experiments of a TOML file, and save, summarise and show them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..files import shown_path
from .console import check_there, console, in_lines, run_resumable, say, typed_command, warn, working
from .options import Cache, Dask, FileSeed, Workers, example_option

if TYPE_CHECKING:
    import pandas as pd

    from ..analysis.sweeps.run import TaskFailure

# Number of rows of a data frame that takes a gigabyte.
MOST_SUMMED_ROWS = 2_000_000


def sweep_command(
    spec: Annotated[Path, typer.Argument(help="The sweep, as TOML; --example prints one.")],
    output: Annotated[Path, typer.Option(help="Folder for the results; made if it is not there. An interrupted sweep resumes there.")],
    workers: Workers = 1,
    dask: Dask = None,
    cache: Cache = None,
    seed: FileSeed = None,
    example: Annotated[bool, example_option("sweeps", "a commented sweep that works")] = False,  # noqa: ARG001 - read before the others
) -> None:
    """Compare mechanisms of the registry in many settings (`load_sweep`, `run_tasks`).

    An interrupted sweep resumes. The folder also gets a page and a summary.
    """
    check_there(spec)
    from dataclasses import replace

    from ..analysis.sweeps.run import run_sweep
    from ..analysis.sweeps.spec import load_sweep

    sweep = load_sweep(spec)
    if seed is not None:
        sweep = replace(sweep, seed=seed)
    run_resumable(
        output,
        lambda on_step: run_sweep(sweep.tasks(), output, workers=workers, cache=cache, dask=dask, on_step=on_step),
        _show,
        beside=("results.parquet", "report.html", "summary.csv"),
    )


def _show(path: Path, failures: "tuple[TaskFailure, ...]") -> None:
    import pandas as pd
    from pyarrow.parquet import read_metadata

    from ..analysis.sweeps.summary import summarise_sweep
    from ..figures.report.results_page import remove_results_page
    from ..figures.report.sweep_page import write_sweep_page

    rows = read_metadata(path).num_rows
    if not 0 < rows <= MOST_SUMMED_ROWS:
        remove_results_page(path.parent)
        many = f"; they are too many to sum up here: {MOST_SUMMED_ROWS} rows at most" if rows else ""
        say(f"Results: {path}{many}")
        return
    results = pd.read_parquet(path)
    with working(f"drawing the page of {shown_path(path)}"):
        page = write_sweep_page(results, path.parent, failures, command=typed_command())
    _print_summary(summarise_sweep(results))
    say(f"Report: {page}")
    say(f"Results: {path}")


def _print_summary(summary: "pd.DataFrame") -> None:
    from rich.table import Table

    from ..analysis.sweeps.budgets import budget_warnings, guarantee_sentence
    from ..analysis.sweeps.summary import SETTINGS, usefulness_warnings
    from ..shown import in_figures

    shown = summary.assign(epsilon=summary["epsilon"].where(~summary["is_reference"], summary["realised_epsilon"]))
    varied = [name for name in ("trust_model", *SETTINGS) if name != "epsilon" and shown[name].nunique(dropna=False) > 1]
    flag = ["flag"] if shown["flag"].any() else []
    table = Table(title="Mean squared error of the estimate")
    table.add_column("mechanism")
    # Headings take two lines, to leave room for mechanisms in a narrow terminal.
    for heading in (*varied, "bits per\nclient", "epsilon", "MSE", "s.e.", "answer\nzero", "MSE /\ncentral", *flag):
        table.add_column(in_lines(heading.replace("_", " ")), justify="right")
    for row in shown.to_dict("records"):
        settings = (row[name] if isinstance(row[name], str) else in_figures(row[name]) for name in varied)
        digits = {"bits_per_client": 4, "epsilon": 4, "mean_squared_error": 4, "standard_error": 2, "zero_squared_error": 4}
        numbers = (in_figures(row[name], count) for name, count in (digits | {"ratio_to_central": 4}).items())
        table.add_row(row["label"], *settings, *numbers, *(row[name] for name in flag))
    screen = console()
    screen.print(table)
    screen.print(guarantee_sentence(summary))
    if summary["ratio_to_central"].notna().any():
        screen.print("Central: the least error of a trusted server's noise, for the same epsilon, delta and adjacency.")
    for sentence in (*budget_warnings(summary, SETTINGS), *usefulness_warnings(summary)):
        warn(f"WARNING: {sentence}")
