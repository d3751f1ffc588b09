"""A page for each command, from the command line itself: arguments, options, defaults and help."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from quietbits.cli.main import app

from . import markup

PROGRAM = "quietbits"
# An option that at least this share of a group's subcommands has, with the same help and default, is listed once for all.
COMMON = 0.9


@dataclass(frozen=True)
class Parameter:
    """An argument or option as its help shows it: spelling, help and default."""

    spelling: str
    help: str
    default: str


@dataclass(frozen=True)
class CommandHelp:
    """A command with its help, parameters and subcommands."""

    name: str
    help: str
    parameters: tuple[Parameter, ...]
    subcommands: tuple["CommandHelp", ...] = ()

    @property
    def usage(self) -> str:
        """The line that a user types."""
        arguments = [parameter.spelling for parameter in self.parameters if not parameter.spelling.startswith("-")]
        called = ["COMMAND"] if self.subcommands else []
        return " ".join([self.name, *called, *arguments, "[OPTIONS]"])


def commands() -> tuple[CommandHelp, ...]:
    """Return the commands that `quietbits --help` lists, with all their subcommands."""
    root = typer.main.get_command(app)
    return _described(root, _context(root, PROGRAM, None), PROGRAM).subcommands


def write(folder: Path) -> None:
    """Write a page for each command, and the list of commands."""
    every_command = commands()
    pages = {_page_name(command): _page(command) for command in every_command}
    rows = [(f":doc:`{command.name} <{_page_name(command)}>`", markup.text(_first_line(command.help))) for command in every_command]
    index = "\n".join(
        [
            markup.heading("Commands"),
            "Every command has a page with its options and their defaults, from the same source as ``--help``.\n",
            markup.table(("command", "purpose"), rows, "30 70"),
            markup.toctree(_page_name(command) for command in every_command),
        ]
    )
    markup.write_pages(folder, {**pages, "index": index})


def _context(command: Any, name: str, parent: Any) -> Any:
    return command.context_class(command, info_name=name, parent=parent)


def _described(command: Any, context: Any, name: str) -> CommandHelp:
    parameters = (
        [
            _parameter(parameter, context)
            for parameter in command.get_params(context)
            if "--help" not in parameter.opts and not parameter.hidden
        ]
        if not hasattr(command, "list_commands")
        else []
    )
    children = list[CommandHelp]()
    if hasattr(command, "list_commands"):
        for child in command.list_commands(context):
            subcommand = command.get_command(context, child)
            children.append(_described(subcommand, _context(subcommand, child, context), f"{name} {child}"))
    return CommandHelp(name, command.help or "", tuple(parameters), tuple(sorted(children, key=_place) if name == PROGRAM else children))


def _place(command: CommandHelp) -> int:
    """Return the place of a command in the order of work, in which commands are registered or else come last."""
    order = ["design", "verify", "export", "mechanisms", "plan", "account", "calibrate", "simulate", "audit", "sweep", "train"]
    name = command.name.removeprefix(f"{PROGRAM} ")
    return order.index(name) if name in order else len(order)


def _parameter(parameter: Any, context: Any) -> Parameter:
    default = "required" if parameter.required else _default(parameter)
    metavar = parameter.make_metavar(context)
    if parameter.param_type_name == "argument":
        return Parameter(metavar, parameter.help or "", default)
    spelling = " / ".join([*parameter.opts, *parameter.secondary_opts])
    return Parameter(f"{spelling} {metavar}".strip(), parameter.help or "", default)


def _default(parameter: Any) -> str:
    value = parameter.default
    if value is None or parameter.is_eager:
        return ""
    if isinstance(value, bool):
        if parameter.secondary_opts:
            return (parameter.opts if value else parameter.secondary_opts)[0]
        return "yes" if value else ""
    return str(value)


def _page_name(command: CommandHelp) -> str:
    return command.name.removeprefix(f"{PROGRAM} ").replace(" ", "-")


def _first_line(help_text: str) -> str:
    return help_text.strip().split("\n\n")[0].replace("\n", " ")


def _help(help_text: str) -> str:
    paragraphs = [" ".join(paragraph.split()) for paragraph in help_text.split("\n\n")]
    return "\n\n".join(markup.text(paragraph) for paragraph in paragraphs) + "\n"


def _options(parameters: tuple[Parameter, ...]) -> str:
    if not parameters:
        return "It has no options of its own.\n"
    rows = [(f"``{each.spelling}``", markup.text(each.help), f"``{each.default}``" if each.default else "") for each in parameters]
    return markup.table(("option", "meaning", "default"), rows, "32 53 15", "options")


def _page(command: CommandHelp) -> str:
    parts = [markup.heading(command.name), _help(command.help)]
    if not command.subcommands:
        return "\n".join([*parts, markup.literal(command.usage, "sh"), _options(command.parameters)])
    common = _common(command)
    parts.append(markup.literal(command.usage.replace("COMMAND", "NAME"), "sh"))
    if common:
        parts += [
            markup.heading("Options of every name", "-"),
            "Each name below takes these options. A name that differs in one lists its own version.\n",
            _options(common),
        ]
    for child in command.subcommands:
        own = tuple(parameter for parameter in child.parameters if parameter not in common)
        parts += [markup.heading(child.name, "-"), _help(_without_accounts(child.help)), markup.literal(child.usage, "sh"), _options(own)]
    return "\n".join(parts)


def _without_accounts(help_text: str) -> str:
    """Return a help without its paragraph on accounts, which the mechanism's own page has in full."""
    return "\n\n".join(paragraph for paragraph in help_text.split("\n\n") if not paragraph.startswith("There are "))


def _common(command: CommandHelp) -> tuple[Parameter, ...]:
    """Return the options that nearly every subcommand has, in the order of the first one; none for few subcommands."""
    if len(command.subcommands) < 4:
        return ()
    counted = Counter(parameter for child in command.subcommands for parameter in child.parameters)
    enough = COMMON * len(command.subcommands)
    return tuple(parameter for parameter, count in counted.items() if count >= enough)
