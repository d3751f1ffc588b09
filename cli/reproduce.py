"""`quietbits reproduce`: the papers' figures, drawn again."""

from pathlib import Path
from typing import Annotated, Any

import typer

from .commands import Command
from .console import console, progress_bar, resumable, say
from .options import Cache, Dask, Seed, Workers, completed_by


def _figure_names() -> list[str]:
    from ..figures.listing import LISTING

    return list(LISTING)


class ReproduceCommand(Command):
    """Command whose help ends with the list of figures."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the options, then every figure with its title and running time."""
        from rich.table import Table

        from ..figures.listing import LISTING

        super().format_help(ctx, formatter)
        table = Table("figure", "what it shows", "takes, in full size", title="Figures")
        for name, figure in LISTING.items():
            table.add_row(name, figure.title, figure.duration)
        console().print(table)


def reproduce_command(
    output: Annotated[Path, typer.Option(help="Folder for the figures; made if it is not there. An interrupted run resumes there.")],
    figures: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIGURE]...", help="Names of figures; all of them by default.", autocompletion=completed_by(_figure_names)),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Make smaller figures, each in half a minute, trainings in one to three.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with the papers' data, or a folder for each: trainings are then the papers' own, on what there is."),
    ] = None,
    workers: Workers = 1,
    dask: Dask = None,
    cache: Cache = None,
    seed: Seed = 0,
) -> None:
    """Draw the papers' figures again, with tables (`quietbits.figures.registry.FIGURES`).

    The command writes each figure as SVG, PDF and PNG, and its table as CSV and Markdown.
    """
    from ..figures.registry import reproduce

    with resumable(output), progress_bar("listing tasks and data") as on_step:
        files = reproduce(
            figures or (), output, seed=seed, quick=quick, data=data, workers=workers, dask=dask, cache=cache, on_step=on_step
        )
    for path in files:
        say(str(path))
