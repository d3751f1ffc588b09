"""What every subcommand of `quietbits` prints with: tables' width, a progress bar, and errors in one line."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from ..errors import ConvergenceError
from ..files import STANDARD_OUTPUT, check_output

if TYPE_CHECKING:
    from rich.console import Console

    from ..progress import OnStep

# Width of tables that go to a file or a pipe, where there is no terminal to fit.
PLAIN_WIDTH = 132
# Whether a file goes to standard output, so that what people read goes to standard error.
_TAKEN: ContextVar[bool] = ContextVar("standard output is a file", default=False)


class OneLineErrors(TyperGroup):
    """A command group whose errors end in one line on stderr and exit code 2, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed; exit with code 2 if an argument, a file or a solver is at fault."""
        token = _TAKEN.set(False)
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except MemoryError as error:
            complain(f"there is not enough memory for inputs of this size: {str(error) or 'it is used up'}")
        except OSError as error:
            complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except (ValueError, ConvergenceError) as error:
            complain(str(error))
        finally:
            _TAKEN.reset(token)
        raise typer.Exit(2)


def complain(message: str) -> None:
    """Print an error to stderr, in one line."""
    typer.echo(f"quietbits: {' '.join(message.split())}", err=True)


def console() -> "Console":
    """Return where tables are printed: stdout, or stderr if a file goes to stdout; `PLAIN_WIDTH` columns where there is no terminal."""
    from rich.console import Console

    found = Console(highlight=False, stderr=_TAKEN.get())
    return found if found.is_terminal else Console(highlight=False, width=PLAIN_WIDTH, stderr=_TAKEN.get())


def say(text: str) -> None:
    """Print a line where tables are printed."""
    typer.echo(text, err=_TAKEN.get())


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
    """Raise ``OSError`` before a long computation whose result could not be written; None is passed over."""
    for file in files:
        if file is not None:
            check_output(file)
    if STANDARD_OUTPUT in files:
        _TAKEN.set(True)


def show_document(document: dict[str, Any], json: bool, output: Path | None) -> None:
    """Print a JSON object if it is asked for, and write it to a file if there is one; numbers that are infinite become null."""
    import math
    from json import dumps

    from ..files import write_atomically

    document = {name: None if isinstance(value, float) and math.isinf(value) else value for name, value in document.items()}
    if output is not None:
        write_atomically(output, (dumps(document, indent=2, allow_nan=False) + "\n").encode())
    if json and output != STANDARD_OUTPUT:
        say(dumps(document, allow_nan=False))


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
