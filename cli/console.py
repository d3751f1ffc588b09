"""What every subcommand of `quietbits` prints with: tables' width, a progress bar, and errors in one line."""

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from ..errors import ConvergenceError

if TYPE_CHECKING:
    from rich.console import Console

    from ..progress import OnStep

# Width of tables that go to a file or a pipe, where there is no terminal to fit.
PLAIN_WIDTH = 132


class OneLineErrors(TyperGroup):
    """A command group whose errors end in one line on stderr and exit code 2, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed; exit with code 2 if an argument, a file or a solver is at fault."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except OSError as error:
            complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except (ValueError, ConvergenceError) as error:
            complain(str(error))
        raise typer.Exit(2)


def complain(message: str) -> None:
    """Print an error to stderr, in one line."""
    typer.echo(f"quietbits: {' '.join(message.split())}", err=True)


def console() -> "Console":
    """Return where tables are printed: stdout, as wide as the terminal, or `PLAIN_WIDTH` columns where there is none."""
    from rich.console import Console

    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


@contextmanager
def progress_bar() -> "Iterator[OnStep]":
    """Yield ``on_step(done, total, text)``, which shows steps as a bar on stderr, if that is a terminal, until all is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        task = progress.add_task("starting", total=None)
        yield lambda done, total, text: progress.update(task, completed=done, total=total, description=text)


def check_folders(*files: Path | None) -> None:
    """Raise ``FileNotFoundError`` before a long computation whose result could not be written; None is passed over."""
    for file in files:
        if file is not None and not file.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(file.parent))


def show_document(document: dict[str, Any], json: bool, output: Path | None) -> None:
    """Print a JSON object if it is asked for, and write it to a file if there is one; numbers that are infinite become null."""
    import math
    from json import dumps

    from ..files import write_atomically

    document = {name: None if isinstance(value, float) and math.isinf(value) else value for name, value in document.items()}
    if output is not None:
        write_atomically(output, (dumps(document, indent=2, allow_nan=False) + "\n").encode())
    if json:
        typer.echo(dumps(document, allow_nan=False))


def grid(title: str, rows: Iterable[tuple[str, str]]) -> None:
    """Print names and values as a table without a header."""
    from rich.table import Table

    table = Table(title=title, show_header=False)
    for name, value in rows:
        table.add_row(name, value)
    console().print(table, markup=False)


def warn(text: str) -> None:
    """Print a warning below a table."""
    console().print(text, style="yellow")
