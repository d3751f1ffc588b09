"""Commands and groups whose help shows flags as flags, and whose usage errors take one line."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from ..arguments import suggestion
from ..shown import printable

# Base class of typer's own usage errors, also in releases that bundle click.
UsageError: Any = typer.BadParameter.__bases__[0]


class Command(TyperCommand):
    """A command of `quietbits`."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters; flags show no kind of value, because they take none."""
        parameters = super().get_params(ctx)
        annotations = getattr(self.callback, "__annotations__", {})
        for parameter in parameters:
            # click 8.5 empties the help of typer's arguments, which typer before 0.21 has set first.
            if parameter.param_type_name == "argument" and not parameter.help and parameter.name in annotations:
                parameter.help = annotations[parameter.name].__metadata__[0].help
        return _plain_flags(parameters)


class Group(TyperGroup):
    """A group of commands of `quietbits`."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, as `Command.get_params` does."""
        return _plain_flags(super().get_params(ctx))

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Read the arguments; a usage error ends in one line and exit code 2."""
        with one_line_usage():
            return super().make_context(*args, **kwargs)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the subcommand that was typed.

        For an unknown name, a ValueError names the closest subcommands and the group's options.
        """
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            options = [flag for parameter in self.get_params(ctx) for flag in parameter.opts]
            listed = [*self.list_commands(ctx), *options]
            # Some users type an option, such as version, as a command.
            name = f"--{name}" if f"--{name}" in options else name
            likely = f": did you mean {name}?" if name in options else suggestion(name, listed)
            raise ValueError(f"command must be a name that {ctx.command_path} --help lists, got {args[0]!r}{likely}")
        return super().resolve_command(ctx, args)


@contextmanager
def one_line_usage() -> Iterator[None]:
    """Print a usage error in one line, with the help to ask for, and exit with code 2."""
    try:
        yield
    except UsageError as error:
        # This error has already printed the help, and has no message.
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        command = error.ctx.command_path if error.ctx is not None else "quietbits"
        more = f"; {command} --example prints one" if _lacks_a_file_with_an_example(error) else ""
        complain(f"{error.format_message().rstrip('.')}{more}; {command} --help lists the options")
        raise typer.Exit(2) from None


def _lacks_a_file_with_an_example(error: Any) -> bool:
    """Return whether a command lacks its file and can print an example of one."""
    if type(error).__name__ != "MissingParameter" or error.ctx is None:
        return False
    return error.param.param_type_name == "argument" and any("--example" in parameter.opts for parameter in error.ctx.command.params)


def complain(message: str) -> None:
    """Print an error to stderr, in one line."""
    echo(f"quietbits: {' '.join(message.split())}", err=True)


def echo(text: str, *, err: bool = False) -> None:
    """Print a line to stdout or stderr, without control characters."""
    typer.echo(on_screen(text, sys.stderr if err else sys.stdout), err=err)


def on_screen(text: str, stream: TextIO) -> str:
    """Return text as a stream shows it.

    Escapes replace control characters, and characters that the stream cannot encode.
    """
    return printable(text, stream.encoding or "utf-8")


def _plain_flags(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters
