"""Commands whose options come from the registry."""

import inspect
from collections.abc import Callable, Iterable
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..arguments import check_listed
from ..files import MEGABYTE
from .commands import Command, Group

if TYPE_CHECKING:
    from ..design.contracts.registry import Option
    from ..solvers.accounting.sampling import Sampling


def completed_by(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a shell completion that offers names, which it computes on demand."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _all_adjacencies() -> tuple[str, ...]:
    from ..design.contracts.guarantee import ADJACENCIES

    return ADJACENCIES


def complete_column(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a column of the typed data file."""
    from ..analysis.study.column_file import column_names

    file = ctx.params.get("data") or ctx.params.get("prior_data")
    try:
        names = () if file is None else column_names(Path(file))
    except (OSError, ValueError):
        # Shell completion cannot show an error; the command itself will state it.
        return []
    return [name for name in names if name.startswith(incomplete)]


complete_adjacency = completed_by(_all_adjacencies)
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Output = Annotated[Path | None, typer.Option(help="Write the JSON object here; - is standard output.")]
Plot = Annotated[Path | None, typer.Option(help="Draw epsilon against rounds here: .svg, .pdf or .png.")]
Epsilon = Annotated[float, typer.Option(help="Privacy parameter of all rounds together.")]
Rounds = Annotated[int, typer.Option(help="Rounds in which the same client takes part, or may be drawn.")]
Delta = Annotated[float | None, typer.Option(help="Failure probability of all rounds together, above 0 and below 1.")]
Adjacency = Annotated[
    str | None,
    typer.Option(
        help="Which data sets are neighbours: replace-one or add-or-remove-one; the default is printed.", autocompletion=complete_adjacency
    ),
]
SamplingProbability = Annotated[
    float | None, typer.Option(help="Poisson sampling in secret: probability with which a client takes part in a round.")
]
Population = Annotated[int | None, typer.Option(help="Sampling in secret without replacement: number of clients there are.")]
SampleSize = Annotated[int | None, typer.Option(help="Sampling in secret without replacement: number of clients in a round.")]
Seed = Annotated[int, typer.Option(help="Root seed of everything random.")]
FileSeed = Annotated[int | None, typer.Option("--seed", help="Root seed, instead of the file's.")]
Workers = Annotated[int, typer.Option(help="Processes.")]
Dask = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler whose workers do the work instead.")]
Megabytes = Annotated[int | None, typer.Option("--most-megabytes", min=1, help="Largest file that is read; 64 for a table, 4000 for data.")]
Cache = Annotated[Path | None, typer.Option(help="Folder where designed tables are kept; the user's cache by default.")]

SAMPLING = {"sampling_probability": SamplingProbability, "population": Population, "sample_size": SampleSize}
REQUIRED = inspect.Parameter.empty


def example_option(folder: str, what: str) -> Any:
    """Return the option `--example`, which prints an example specification and exits.

    The specification is a file of the named folder of `analysis`.
    """

    def print_example(wanted: bool) -> None:
        if wanted:
            from ..analysis.sweeps.example import example_specification

            typer.echo(example_specification(folder), nl=False)
            raise typer.Exit

    return typer.Option("--example", help=f"Print {what}, and exit.", callback=print_example, is_eager=True)


def registry_group(
    names: Callable[[], list[str]],
    subcommand: Callable[[str], Callable[..., None]],
    title: Callable[[str], str],
    has: Callable[[str], bool] | None = None,
    *,
    several: bool = False,
) -> type[Group]:
    """Return a command group with a subcommand per name of the registry, made on demand.

    `names` returns the names, and `has` tests a name, if that is less work than listing all. `subcommand` returns the typer function of a
    name, or, with `several`, of names that are joined by commas. `title` returns a name's line in the help of the group.
    """

    class RegistryGroup(Group):
        """Group of subcommands from the registry."""

        def list_commands(self, ctx: Any) -> list[str]:
            """Return the names of the subcommands: the group's own ones, and the registry's."""
            return [*super().list_commands(ctx), *names()]

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            """Return a subcommand; ValueError names the closest ones for an unknown name."""
            if cmd_name in self.commands:
                return super().get_command(ctx, cmd_name)
            for part in cmd_name.split(",") if several else [cmd_name]:
                # Shell completion cannot show an error.
                if ctx.resilient_parsing and part not in names():
                    return None
                if has is None or not has(part):
                    check_listed("mechanism", part, self.list_commands(ctx), f"quietbits {self.name} --help")
            single = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
            single.command(cmd_name, cls=Command, short_help=title(cmd_name))(subcommand(cmd_name))
            return typer.main.get_command(single)

        def shell_complete(self, ctx: Any, incomplete: str) -> Any:
            """Complete the last of several names that are joined by commas."""
            before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
            items = super().shell_complete(ctx, last)
            for item in items:
                item.value = f"{before}{comma}{item.value}"
            return items

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            """Return the subcommand that was typed; a ValueError explains how to type several names."""
            resolved = super().resolve_command(ctx, args)
            if ctx.resilient_parsing:
                return resolved
            typed = list(takewhile(lambda word: not word.startswith("-"), args))
            if len(typed) > 1 and not any(parameter.param_type_name == "argument" for parameter in resolved[1].params):
                for part in typed[1:]:
                    check_listed("mechanism", part, names(), f"quietbits {self.name} --help")
                allowed = f"join them with commas: {','.join(typed)}" if several else f"quietbits {self.name} takes one at a time"
                raise ValueError(f"mechanism must be a single word, got {' '.join(typed)!r}: {allowed}")
            return resolved

    return RegistryGroup


def with_options(function: Callable[..., None], options: "tuple[Option, ...]", fixed: dict[str, tuple[Any, Any]], help_text: str) -> Any:
    """Return a command function with the registry's options and some fixed ones.

    Parameters
    ----------
    function : callable
        Called with the values of all options, by name.
    options : tuple of Option
        The registry's options; they come first.
    fixed : dict
        Other options: name -> (annotated type, default); `REQUIRED` for options without a default.
    help_text : str
        Help of the command.
    """
    parameters = [_parameter(option) for option in options if option.name not in fixed]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for name, (annotation, default) in fixed.items()
    ]

    def command(**values: Any) -> None:
        function(**values)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = help_text
    return command


def adjacency_of(adjacencies: tuple[str, ...], *, compared: bool = False) -> Any:
    """Return the option of adjacency for one mechanism, or for several that are compared.

    `adjacencies` may be empty when mechanisms have none in common.
    """
    which = " or ".join(adjacencies)
    if compared:
        which = f"{which or 'none that they have in common'}; must be given to compare mechanisms."
    elif len(adjacencies) == 1:
        which += " only."
    else:
        which += "; the default is printed."
    help_text = f"Which data sets are neighbours: {which}"
    return Annotated[str | None, typer.Option(help=help_text, autocompletion=completed_by(lambda: adjacencies))]


def given(options: "tuple[Option, ...]", values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the registry's options that were typed or have a default."""
    return {option.name: values[option.name] for option in options if option.name in values}


def _parameter(option: "Option") -> inspect.Parameter:
    kind: Any = option.kind if option.required or option.default is not None else option.kind | None
    name = f"--{option.name.replace('_', '-')}"
    choices = f" {', '.join(option.choices)}." if option.choices else ""
    unit = f" [{option.unit}]" if option.unit else ""
    if option.kind is Path and option.required:
        info = typer.Argument(metavar=option.name.upper(), help=option.help)
    else:
        completion = completed_by(lambda: option.choices) if option.choices else None
        info = typer.Option(option.flags or name, help=f"{option.help}{choices}{unit}", autocompletion=completion)
    default = REQUIRED if option.required else option.default
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, info], default=default)


def bytes_of(most_megabytes: int | None, usual: int) -> int:
    """Return the size limit of an input file in bytes: the typed `Megabytes` or the default."""
    return usual if most_megabytes is None else most_megabytes * MEGABYTE


def parse_sampling(sampling_probability: float | None, population: int | None, sample_size: int | None) -> "Sampling | None":
    """Return the sampling of clients from the typed options; None without such options.

    Raises
    ------
    ValueError
        If options of both kinds of sampling are given, or an option of a pair is missing, or a number is out of range.
    """
    if sampling_probability is None and population is None and sample_size is None:
        return None
    from ..solvers.accounting.sampling import stated_sampling

    return stated_sampling(sampling_probability, population, sample_size)
