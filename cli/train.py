"""`quietbits train`: the trainings of a TOML file, run, saved and shown."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..files import shown_path
from .console import check_there, console, in_lines, run_resumable, say, typed_command, warn, working
from .options import Cache, Dask, FileSeed, Workers, example_option

if TYPE_CHECKING:
    import pandas as pd

    from ..analysis.sweeps.run import TaskFailure


def train_command(
    spec: Annotated[Path, typer.Argument(help="The trainings, as TOML; --example prints some.")],
    output: Annotated[Path, typer.Option(help="Folder for the results; made if it is not there. Interrupted trainings resume there.")],
    workers: Workers = 1,
    dask: Dask = None,
    cache: Cache = None,
    seed: FileSeed = None,
    example: Annotated[bool, example_option("training", "commented trainings that work")] = False,  # noqa: ARG001 - read before the others
) -> None:
    """Train models with mechanisms of the registry (`load_training`, `run_training`).

    The results show each mechanism's cost in accuracy and bytes.
    """
    check_there(spec)
    from dataclasses import replace

    from ..analysis.training.run import run_training
    from ..analysis.training.spec import load_training

    grid = load_training(spec)
    if seed is not None:
        grid = replace(grid, seeds=(seed,))
    run_resumable(
        output,
        lambda on_step: run_training(grid, output, workers=workers, cache=cache, dask=dask, on_step=on_step),
        _show,
        beside=("results.parquet", "report.html", "summary.csv"),
    )


def _show(path: Path, failures: "tuple[TaskFailure, ...]") -> None:
    import pandas as pd

    from ..figures.report.results_page import remove_results_page
    from ..figures.training.page import compared_trainings, write_training_page

    results = pd.read_parquet(path)
    if len(results):
        with working(f"drawing the page of {shown_path(path)}"):
            summary = compared_trainings(results)
            page = write_training_page(results, summary, path.parent, failures, command=typed_command())
        _print_summary(summary)
        say(f"Report: {page}")
    else:
        remove_results_page(path.parent)
    say(f"Results: {path}")


def _print_summary(summary: "pd.DataFrame") -> None:
    from rich.table import Table

    from ..analysis.sweeps.budgets import budget_warnings, guarantee_sentence
    from ..analysis.training.summary import OF_A_BUDGET, PROBLEM, VARIED, short_value

    varied = [name for name in VARIED if name not in OF_A_BUDGET and summary[name].nunique(dropna=False) > 1]
    table = Table(title="Accuracy after the last round")
    table.add_column("mechanism")
    amplified, unamplified = (summary[f"epsilon_{name}"].notna().any() for name in ("amplified", "unamplified"))
    columns = {"accuracy": "accuracy", "s.e.": "standard_error", "epsilon": "realised_epsilon"}
    columns |= {"epsilon,\namplified": "epsilon_amplified"} if amplified else {}
    columns |= {"epsilon,\nunamplified": "epsilon_unamplified"} if unamplified else {}
    columns |= {"MB up": "megabytes_up", "MB down": "megabytes_down"}
    columns |= {"flag": "flag"} if summary["flag"].any() else {}
    for heading in (*varied, *columns):
        table.add_column(in_lines(heading.replace("_", " ")), justify="right")
    for row in summary.to_dict("records"):
        table.add_row(row["label"], *(short_value(row[name]) for name in (*varied, *columns.values())))
    screen = console()
    screen.print(table)
    for promise in summary[["label", "delta", "adjacency", "trust_model", "is_reference"]].drop_duplicates().to_dict("records"):
        stated = f"delta {promise['delta']:g}, {promise['adjacency']}, {promise['trust_model']}"
        screen.print(f"{promise['label']}: {'not private, or not proven to be' if promise['is_reference'] else stated}.")
    if amplified:
        screen.print("Amplified: of local mechanisms, against an observer who sees all messages but not their senders.")
    if unamplified:
        screen.print("Unamplified: of sums and trusted servers, if everybody knew who takes part.")
    screen.print(guarantee_sentence(summary))
    for sentence in budget_warnings(summary, PROBLEM):
        warn(f"WARNING: {sentence}")
