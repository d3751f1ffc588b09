"""Commands that run a specification from a TOML file: their options, the example that they print, and runs that resume."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import progress_bar, resumable

if TYPE_CHECKING:
    from ..analysis.sweeps.run import TaskFailure
    from ..progress import OnStep

FileSeed = Annotated[int | None, typer.Option("--seed", help="Root seed, instead of the file's.")]


def example_option(folder: str, what: str) -> Any:
    """Return the option `--example`, which prints the example specification of a folder of `analysis` and ends the command."""

    def print_example(wanted: bool) -> None:
        if wanted:
            from ..analysis.sweeps.example import example_specification

            typer.echo(example_specification(folder), nl=False)
            raise typer.Exit

    return typer.Option("--example", help=f"Print {what}, and exit.", callback=print_example, is_eager=True)


def run_resumable(output: Path, run: "Callable[[OnStep], Path]", show: "Callable[[Path, tuple[TaskFailure, ...]], None]") -> None:
    """Run tasks with a progress bar, and show the file of their results and the tasks that failed; failures are raised afterwards."""
    from ..analysis.sweeps.run import IncompleteSweepError

    try:
        with resumable(output), progress_bar() as on_step:
            path = run(on_step)
    except IncompleteSweepError as error:
        show(error.results_path, error.failures)
        raise
    show(path, ())
