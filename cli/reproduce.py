"""`quietbits reproduce`: the papers' figures, drawn again, with a page that compares them with the papers."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .commands import Command, complain
from .console import console, progress_bar, resumable, say
from .options import Cache, Dask, Seed, Workers, completed_by

if TYPE_CHECKING:
    from ..figures.work import ExpectedWork


def _figure_names() -> list[str]:
    from ..figures.listing import LISTING

    return list(LISTING)


class ReproduceCommand(Command):
    """Command whose help ends with the list of figures."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the options, then every figure with its title and recorded processor times."""
        from rich.table import Table

        from ..figures.listing import LISTING
        from ..progress import about

        super().format_help(ctx, formatter)
        table = Table("figure", "what it shows", "processor time", "with --quick", title="Figures")
        for name, figure in LISTING.items():
            table.add_row(name, figure.title, about(figure.seconds), about(figure.quick_seconds))
        whole, quick = (sum(times) for times in zip(*((figure.seconds, figure.quick_seconds) for figure in LISTING.values()), strict=True))
        table.add_section()
        table.add_row("--all", "all of them", about(whole), about(quick))
        console().print(table)


def reproduce_command(
    output: Annotated[Path, typer.Option(help="Folder for the figures; made if it is not there. An interrupted run resumes there.")],
    figures: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIGURE]...", help="Names of figures, or --all.", autocompletion=completed_by(_figure_names)),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Make all figures; with --data, all that can run on what there is.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Make smaller figures, in the times listed below.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Run the tasks of a figure's grid with this value, such as epsilon=4; repeatable."),
    ] = None,
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

    The command writes each figure as SVG, PDF and PNG, and its table as CSV and Markdown. The page index.html states what each paper
    claims, what came out, and whether they agree.
    """
    from ..figures.registry import reproduce

    if every == bool(figures):
        raise ValueError(
            f"figures must be names or --all, got {'both' if every else 'neither'}: quietbits reproduce --help lists the names"
        )

    with resumable(output), ExitStack() as bars:
        steps = [bars.enter_context(progress_bar("listing tasks and data"))]

        def say_work(work: "ExpectedWork") -> None:
            # A line between two bars, which a terminal keeps.
            bars.close()
            complain(str(work))
            steps[0] = bars.enter_context(progress_bar())

        files = reproduce(
            None if every else figures,
            output,
            seed=seed,
            quick=quick,
            data=data,
            only=only or (),
            workers=workers,
            dask=dask,
            cache=cache,
            on_work=say_work,
            on_step=lambda done, total, text: steps[0](done, total, text),
        )
    for path in files:
        say(str(path))
