"""`quietbits train`: the trainings of a TOML file, run, saved and shown."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..files import shown_path
from .console import check_there, console, in_lines, run_resumable, say, working
from .options import Cache, Dask, FileSeed, Workers, example_option

if TYPE_CHECKING:
    import pandas as pd


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
        lambda path, _: _show(path),
    )


def _show(path: Path) -> None:
    import pandas as pd

    from ..analysis.training.summary import summarise_training
    from ..figures.training.page import write_training_page

    results = pd.read_parquet(path)
    if len(results):
        page = path.parent / "report.html"
        with working(f"drawing {shown_path(page)}"):
            write_training_page(results, page, command=shown_path(shlex.join(["quietbits", *sys.argv[1:]])))
        _print_summary(summarise_training(results))
        say(f"Report: {page}")
    say(f"Results: {path}")


def _print_summary(summary: "pd.DataFrame") -> None:
    from rich.table import Table

    from ..analysis.training.summary import VARIED, short_value

    varied = [name for name in VARIED if summary[name].nunique(dropna=False) > 1]
    table = Table(title="Accuracy after the last round")
    table.add_column("mechanism")
    amplified, unamplified = (summary[f"epsilon_{name}"].notna().any() for name in ("amplified", "unamplified"))
    numbers = {"accuracy": "accuracy", "s.e.": "standard_error", "epsilon": "epsilon"}
    numbers |= {"epsilon,\namplified": "epsilon_amplified"} if amplified else {}
    numbers |= {"epsilon,\nunamplified": "epsilon_unamplified"} if unamplified else {}
    numbers |= {"MB up": "megabytes_up", "MB down": "megabytes_down"}
    for heading in (*varied, *numbers):
        table.add_column(in_lines(heading.replace("_", " ")), justify="right")
    for row in summary.to_dict("records"):
        table.add_row(row["label"], *(short_value(row[name]) for name in (*varied, *numbers.values())))
    screen = console()
    screen.print(table)
    for promise in summary[["label", "delta", "adjacency", "trust_model"]].drop_duplicates().to_dict("records"):
        screen.print(f"{promise['label']}: delta {promise['delta']:g}, {promise['adjacency']}, {promise['trust_model']}.")
    if amplified:
        screen.print("Amplified: of local mechanisms, against those who see all messages and not who sent them.")
    if unamplified:
        screen.print("Unamplified: of sums and trusted servers, where it is no secret who takes part.")
