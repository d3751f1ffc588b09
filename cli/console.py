"""Console of all subcommands: tables, a progress bar, and errors in one line."""

import io
import logging
import os
import shlex
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import ConvergenceError
from ..files import STANDARD_OUTPUT, check_output, is_stream, shown_path
from .commands import Group, complain, echo, on_screen, one_line_usage

if TYPE_CHECKING:
    from rich.text import Text

    from ..analysis.sweeps.run import TaskFailure
    from ..progress import OnStep, Steps
    from .plain_console import PlainConsole

# Width of tables in a file or a pipe, which have no terminal to fit.
PLAIN_WIDTH = 132
BAR_WIDTH = 20
# Exit code of a command that Ctrl-C ends, the same as in shells.
INTERRUPTED = 130
# Seconds until a command without a terminal first reports that it is working, and between two reports.
FIRST_LINE, NEXT_LINE = 2.0, 10.0
# Whether a file goes to standard output, so that text for people goes to standard error.
_TAKEN: ContextVar[bool] = ContextVar("standard output is a file", default=False)


class OneLineErrors(Group):
    """Command group whose errors end in one line on stderr and exit code 2."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command.

        The streams escape characters that they cannot encode, and warnings of the package take one line, like errors.
        """
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        logger = logging.getLogger(__name__.partition(".")[0])
        if _LOG not in logger.handlers:
            logger.addHandler(_LOG)
        return super().main(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed; faults of arguments, files and solvers end in exit code 2."""
        token = _TAKEN.set(False)
        try:
            with one_line_usage():
                return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except KeyboardInterrupt:
            complain("stopped: nothing that was not complete has been written")
            raise typer.Exit(INTERRUPTED) from None
        except MemoryError as error:
            complain(f"there is not enough memory for inputs of this size: {str(error) or 'it is used up'}")
        except OSError as error:
            complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except (ValueError, ConvergenceError) as error:
            complain(str(error))
        finally:
            _TAKEN.reset(token)
        raise typer.Exit(2)


class _LogLines(logging.Handler):
    """Handler that prints the package's log records, each in one line on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(record.getMessage())


_LOG = _LogLines(logging.WARNING)


def console() -> "PlainConsole":
    """Return the console of tables: stdout, or stderr if a file goes to stdout.

    Without a terminal, tables are `PLAIN_WIDTH` columns wide.
    """
    from .plain_console import PlainConsole

    screen = PlainConsole(stderr=_TAKEN.get())
    return screen if screen.is_terminal else PlainConsole(width=PLAIN_WIDTH, stderr=_TAKEN.get())


def say(text: str) -> None:
    """Print a line on the console of tables."""
    echo(text, err=_TAKEN.get())


def in_lines(text: str) -> "Text":
    """Return a heading of several lines."""
    from rich.text import Text

    return Text(text)


def _terminal() -> bool:
    """Return whether stderr is, or counts as, a terminal, without importing rich."""
    return sys.stderr.isatty() or bool(os.environ.get("FORCE_COLOR"))


@contextmanager
def progress_bar(text: str = "starting") -> "Iterator[OnStep]":
    """Yield ``on_step(done, total, text)``, which shows progress on stderr, with the time left.

    `text` names the work until the first step. A terminal shows a bar; other streams get lines.
    """
    from ..progress import Steps

    steps = Steps(text)
    if not _terminal():
        with _plain_lines(steps):
            yield steps.report
        return
    from rich.progress import BarColumn, Progress, TextColumn

    from .plain_console import PlainConsole, StepColumn

    # The time left changes between steps, so each refresh of the bar computes the texts.
    texts = (TextColumn(f"{{task.fields[steps].{name}}}", markup=False) for name in ("count", "times"))
    with Progress(BarColumn(BAR_WIDTH), *texts, StepColumn(), console=PlainConsole(stderr=True), transient=True) as progress:
        task = progress.add_task(on_screen(text, sys.stderr), total=None, steps=steps)

        def on_step(done: int, total: int, step: str) -> None:
            steps.report(done, total, step)
            progress.update(task, completed=done, total=total, description=on_screen(step, sys.stderr))

        yield on_step


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show on stderr that a computation without steps is running, and for how long.

    A terminal shows a spinner; other streams get lines.
    """
    from ..progress import Steps

    steps = Steps(text)
    if not _terminal():
        with _plain_lines(steps):
            yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn

    from .plain_console import PlainConsole, StepColumn

    times = TextColumn("{task.fields[steps].times}", markup=False)
    with Progress(SpinnerColumn(), times, StepColumn(), console=PlainConsole(stderr=True), transient=True) as progress:
        progress.add_task(on_screen(text, sys.stderr), total=None, steps=steps)
        yield


@contextmanager
def _plain_lines(steps: "Steps") -> Iterator[None]:
    """Print a line at intervals, from another thread, as a single step may take long."""
    ended = threading.Event()

    def report() -> None:
        wait = FIRST_LINE
        while not ended.wait(wait):
            complain(": ".join(filter(None, (steps.times, steps.count, steps.text))))
            wait = NEXT_LINE

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """State where partial results are kept if Ctrl-C ends a command that can resume."""
    try:
        yield
    except KeyboardInterrupt:
        complain(f"stopped: what is finished is kept in {folder}; run the same command again to resume")
        raise typer.Exit(INTERRUPTED) from None


def run_resumable(
    output: Path,
    run: "Callable[[OnStep], Path]",
    show: "Callable[[Path, tuple[TaskFailure, ...]], None]",
    *,
    beside: Iterable[str] = (),
) -> None:
    """Run tasks with a progress bar; show the file of results and the failed tasks.

    Failures are raised after that. Before any task runs, an ``OSError`` refuses a folder in which a file of `beside` cannot be written.
    """
    from ..analysis.sweeps.run import IncompleteSweepError

    if output.is_dir():
        check_outputs(*(output / name for name in beside))
    try:
        with resumable(output), progress_bar(f"reading {shown_path(output)}") as on_step:
            path = run(on_step)
    except IncompleteSweepError as error:
        show(error.results_path, error.failures)
        raise
    show(path, ())


def typed_command() -> str:
    """Return the typed command; escapes replace bytes of file names that are not UTF-8."""
    return shown_path(shlex.join(["quietbits", *sys.argv[1:]]))


def check_there(file: Path) -> None:
    """Raise ``OSError`` if a file is missing, before slow imports."""
    file.stat()


def check_outputs(*outputs: Path | None, inputs: Iterable[Path | None] = ()) -> None:
    """Raise before a long computation if an output cannot be written or would replace an input.

    The check skips None.

    Raises
    ------
    OSError
        If no file can be written to an output.
    ValueError
        If an output is an input, or another output.
    """
    taken = {os.path.realpath(file): f"{file}, which it would overwrite" for file in inputs if file is not None}
    for file in outputs:
        if file is None:
            continue
        check_output(file)
        if not is_stream(file) or file == STANDARD_OUTPUT:
            place = os.path.realpath(file)
            if place in taken:
                raise ValueError(f"output {file} must be another file than {taken[place]}")
            taken[place] = f"the other output {file}"
    if STANDARD_OUTPUT in outputs:
        _TAKEN.set(True)


def show_document(document: dict[str, Any], json: bool, output: Path | None) -> None:
    """Print a JSON object, write it to a file, or both.

    Infinite numbers become null.
    """
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
    console().print(table)


def or_none(value: float | None, digits: int) -> str:
    """Write a number in the given digits, or ``none`` for None."""
    return "none" if value is None else f"{value:.{digits}g}"


def warn(text: str) -> None:
    """Print a warning below a table."""
    console().print(text, style="yellow")
