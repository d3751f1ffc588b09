"""`quietbits reproduce`: figures of the papers, drawn again."""

from pathlib import Path
from typing import Annotated

import typer

from .console import progress_bar
from .options import Seed


def reproduce_command(
    output: Annotated[Path, typer.Option(help="Folder for the figures; made if it is not there.")],
    figures: Annotated[list[str] | None, typer.Argument(metavar="[FIGURE]...", help="Names of figures; all of them by default.")] = None,
    seed: Seed = 0,
) -> None:
    """Draw figures of the papers again: SVG, PDF, PNG and the data behind them (`quietbits.figures.registry.FIGURES`)."""
    from ..figures.registry import FIGURES

    chosen = figures or list(FIGURES)
    for name in chosen:
        if name not in FIGURES:
            raise ValueError(f"figure must be one of {', '.join(FIGURES)}, got {name!r}")
    output.mkdir(parents=True, exist_ok=True)
    for name in chosen:
        with progress_bar() as on_step:
            FIGURES[name](output, seed, on_step)
        typer.echo(f"{name}: {output}")
