"""`quietbits account` and `quietbits calibrate`: privacy after all rounds, and its inverse."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..files import shown_path
from .commands import Command
from .console import check_outputs, check_there, console, grid, progress_bar, show_document, warn, working
from .options import (
    REQUIRED,
    SAMPLING,
    Adjacency,
    Delta,
    Epsilon,
    Json,
    Output,
    Plot,
    Rounds,
    adjacency_of,
    example_option,
    given,
    parse_sampling,
    registry_group,
    with_options,
)

if TYPE_CHECKING:
    from ..analysis.composition.account import CompositionReport
    from ..design.contracts.privacy import AccountedEpsilon
    from ..design.contracts.registry import AccountReport, Option


Rows = Iterable[tuple[str, str]]
Fixed = dict[str, tuple[Any, Any]]
"""Options beside those of the registry: name -> (annotated type, default)."""
# Explanations of details whose names do not explain themselves.
SAID: Mapping[str, str] = MappingProxyType(
    {
        "tau": ", by which the sum's log-ratio to one discrete Gaussian varies at most",
        "rounded_norm": ", the largest L2 norm after rounding",
        "input_distance": ", the largest distance of two vectors after dithering, on the table's scale of 1",
    }
)
DesignOutput = Annotated[Path | None, typer.Option(help="Write the designed table, or the JSON object, here; - is standard output.")]
Dropout = Annotated[
    float, typer.Option(help="Share of the clients that may drop out: the target is kept with the noise of the others alone.")
]
TargetDelta = Annotated[float, typer.Option(help="Failure probability of all rounds together, above 0 and below 1.")]
PureDelta = Annotated[float, typer.Option(help="Failure probability of all rounds together, from 0 to below 1.")]
Method = Annotated[
    str | None, typer.Option(help="Name of the account that is to keep the target; by default the least of the proven ones.")
]


def _names() -> list[str]:
    from ..analysis.catalogue.registry import accounted_names

    return list(accounted_names())


def _subcommand(name: str) -> Any:
    from ..analysis.catalogue.accounts import account_options

    budget: Fixed = {"delta": (Delta, None), "rounds": (Rounds, 1)}
    outputs: Fixed = {"json": (Json, False), "plot": (Plot, None), "output": (Output, None)}
    return _command(name, account_options(name), _account, budget, outputs, help_of(name, "account"))


def _command(name: str, options: "tuple[Option, ...]", function: Callable[..., None], budget: Fixed, outputs: Fixed, help_text: str) -> Any:
    """Return a name's command with its own options and those of budget, sampling and outputs."""
    from ..analysis.catalogue.registry import REGISTRY

    adjacency = adjacency_of(REGISTRY[name].account_adjacencies) if name in REGISTRY else Adjacency
    sampled = all(option.name != "population" for option in options)
    sampling: Fixed = {key: (kind, None) for key, kind in SAMPLING.items()} if sampled else {}

    def run(**values: Any) -> None:
        function(name, given(options, values), values)

    return with_options(run, options, {**budget, "adjacency": (adjacency, None), **sampling, **outputs}, help_text)


def title_of(name: str) -> str:
    """Return the title of a name's noise or mechanism."""
    from ..analysis.catalogue.registry import NOISE, REGISTRY

    return (NOISE[name] if name in NOISE else REGISTRY[name]).title


def help_of(name: str, call: str) -> str:
    """Return the help of a command for one name, with a note if there are several accounts."""
    from ..analysis.catalogue.registry import REGISTRY

    text = f"{title_of(name)} (`quietbits.{call}`)."
    names = REGISTRY[name].accounts if name in REGISTRY else ()
    if len(names) < 2:
        return text
    return (
        f"{text}\n\nThere are {len(names)} accounts: {', '.join(names)}. They are different upper bounds on the privacy "
        "loss of a client's messages: epsilon is the least of the accounts that are proven, without an assumption, for the requested "
        "adjacency."
    )


account_app = typer.Typer(
    cls=registry_group(_names, _subcommand, title_of),
    help="Compute the total privacy loss of all rounds, with the assumptions behind it (`quietbits.account`).",
    no_args_is_help=True,
)


@account_app.callback()
def _account_group() -> None:
    """Compute the total privacy loss of all rounds, with the assumptions behind it."""


def _account(name: str, parameters: dict[str, Any], values: dict[str, Any]) -> None:
    from ..analysis.catalogue.accounts import account

    json, plot, output = values["json"], values["plot"], values["output"]
    check_outputs(plot, output, inputs=[values.get("table")])
    _check_plotted(plot, values["delta"])
    sampling = None if "population" in parameters else parse_sampling(**{key: values[key] for key in SAMPLING})
    with progress_bar(f"accounting for {name}") as on_step:
        report = account(
            name,
            delta=values["delta"],
            rounds=values["rounds"],
            adjacency=values["adjacency"],
            sampling=sampling,
            on_step=on_step,
            **parameters,
        )
    if plot is not None:
        from ..figures.account_plots import write_account_plot

        with working(f"drawing {shown_path(plot)}"):
            write_account_plot(report.subject, values["delta"], values["rounds"], sampling, plot)
    show_document(report.document(), json, output)
    if not json:
        print_report(report)


@account_app.command("compose", cls=Command)
def compose_command(
    tasks: Annotated[Path, typer.Argument(metavar="FILE", help="The parts, as TOML; --example prints one.")],
    delta: Annotated[float | None, typer.Option(help="Failure probability of all parts together, above 0 and below 1.")] = None,
    adjacency: Adjacency = None,
    json: Json = False,
    plot: Annotated[Path | None, typer.Option(help="Draw epsilon after each part here: .svg, .pdf or .png.")] = None,
    output: Output = None,
    example: Annotated[bool, example_option("composition", "a commented file that works")] = False,  # noqa: ARG001 - read before the others
) -> None:
    """Different mechanisms one after the other, from a file (`load_composition`, `account_composition`)."""
    check_there(tasks)
    check_outputs(plot, output, inputs=[tasks])
    _check_plotted(plot, delta)
    from ..analysis.composition.account import account_composition
    from ..analysis.composition.spec import load_composition

    composition = load_composition(tasks)
    with progress_bar(f"accounting for {shown_path(tasks)}") as on_step:
        report = account_composition(composition, delta=delta, adjacency=adjacency, on_step=on_step)
    if plot is not None and delta is not None:
        from ..figures.account_plots import write_composition_plot

        with working(f"drawing {shown_path(plot)}"):
            write_composition_plot(composition, delta, adjacency, plot)
    show_document(report.document(), json, output)
    if not json:
        _print_parts(report)
        print_report(report.account)


def _print_parts(report: "CompositionReport") -> None:
    """Print each part by itself, and what its guarantee assumes."""
    from rich.table import Table

    table = Table(title="Each part by itself")
    for heading in ("part", "rounds", "epsilon", "adjacency", "trust model"):
        table.add_column(heading, justify="right" if heading in ("rounds", "epsilon") else "left")
    for number, part in enumerate(report.parts, 1):
        privacy = part.privacy
        epsilon = "nothing" if privacy.best is None else f"{_upward(privacy.epsilon)} by {privacy.best.name}"
        table.add_row(f"{number} {part.part.name}", f"{privacy.rounds:,}", epsilon, privacy.adjacency, privacy.trust_model)
    console().print(table)
    for number, part in enumerate(report.parts, 1):
        sampled = () if part.part.sampling is None else (str(part.part.sampling),)
        console().print(f"{number} {part.part.name}: {'; '.join((*sampled, *part.assumptions))}.")


def _check_plotted(plot: Path | None, delta: float | None) -> None:
    """Raise ValueError, before any computation, if a picture of epsilon cannot be drawn."""
    if plot is None:
        return
    if delta is None:
        raise ValueError("delta must be given for a plot of epsilon: a number above 0 and below 1")
    _check_plot(plot)


def _check_plot(plot: Path) -> None:
    from ..figures.account_plots import check_plot_file

    check_plot_file(plot)


def print_report(report: "AccountReport", first: Rows = (), beside: Rows = ()) -> None:
    """Print an account as a table, with extra rows above and below its details.

    A warning follows if the best Rényi order is at an edge.
    """
    from ..design.contracts.registry import REAL_NUMBERS

    privacy = report.privacy
    together = "one round" if privacy.rounds == 1 else f"all {privacy.rounds} rounds together"
    best = privacy.best
    epsilon = "nothing is proven" if best is None else f"{_upward(privacy.epsilon)} at delta {privacy.delta:g}, {together}, by {best.name}"
    details = [
        (name.replace("_", " "), (f"{value:.9g}" if isinstance(value, float) else str(value)) + SAID.get(name, ""))
        for name, value in report.document().items()
        if name in {*report.subject.details, "squared_error_gaussian", "bits_per_client"} - {"on_real_numbers"} and value is not None
    ]
    answers = [(f"by {account.name}", _answer(account, privacy.adjacency)) for account in privacy.accounts]
    lines = [*first, *details, *beside, ("epsilon", epsilon), *answers]
    # Mechanisms that sample clients themselves describe the sampling in their details.
    if "drawn" not in report.subject.details:
        lines.append(("sampling", "every client takes part in every round" if privacy.sampling is None else str(privacy.sampling)))
    lines += [("adjacency", privacy.adjacency), ("trust model", privacy.trust_model)]
    if "on_real_numbers" in report.subject.details:
        lines.append(("note", REAL_NUMBERS))
    grid(report.subject.mechanism, lines)
    if sum(account.proven and account.assumes is None and account.adjacency == privacy.adjacency for account in privacy.accounts) > 1:
        console().print("Each account that is not marked otherwise is a proof by itself: epsilon is the least of them.")
    for account in privacy.accounts:
        if account.bound.order_at_edge:
            warn(f"WARNING: order {account.bound.order:g} of {account.name} is at the edge of the orders tried; others might prove less.")


def _answer(account: "AccountedEpsilon", adjacency: str) -> str:
    from math import isinf

    if isinf(account.bound.epsilon):
        return f"nothing: {account.bound.reason}"
    text = _upward(account.bound.epsilon)
    if account.bound.order is not None:
        text += ", the pure guarantee" if isinf(account.bound.order) else f", order {account.bound.order:g}"
    if (participations := account.bound.details.get("participations")) is not None:
        text += f", of at most {participations} rounds that include a client, except with probability delta / 2"
    if not account.proven:
        text += "; not proven"
    if account.assumes is not None:
        text += f"; assumes that {account.assumes}"
    if account.adjacency != adjacency:
        text += f"; for {account.adjacency} adjacency"
    if account.bound.details.get("trust_model") == "local":
        text += "; against the server, too"
    doubtful = account.bound.details.get("doubtful")
    return f"{text}; exact accounts contradict it here" if doubtful else text


def _upward(value: float) -> str:
    from ..figures.drawing.directed_rounding import rounded_up

    return rounded_up(value, 6)


def _calibrated_names() -> list[str]:
    from ..analysis.catalogue.accounts import calibrates

    return [name for name in _names() if calibrates(name)]


def _has(name: str) -> bool:
    from ..analysis.catalogue.accounts import calibrates
    from ..analysis.catalogue.registry import accounted_names

    return name in accounted_names() and calibrates(name)


def _calibrate_subcommand(name: str) -> Any:
    from ..analysis.catalogue.accounts import calibration_options, keeps_pure_budgets, plans_dropouts

    delta = (PureDelta, 0.0) if keeps_pure_budgets(name) else (TargetDelta, REQUIRED)
    budget: Fixed = {"epsilon": (Epsilon, REQUIRED), "delta": delta, "rounds": (Rounds, 1), "method": (Method, None)}
    if plans_dropouts(name):
        budget["dropout"] = (Dropout, 0.0)
    outputs: Fixed = {"json": (Json, False), "output": (DesignOutput, None)}
    return _command(name, calibration_options(name), _calibrate, budget, outputs, help_of(name, "calibrate"))


calibrate_app = typer.Typer(
    cls=registry_group(_calibrated_names, _calibrate_subcommand, title_of, _has),
    help="Find the parameters with which all rounds together stay within (epsilon, delta) (`quietbits.calibrate`).",
    no_args_is_help=True,
)


@calibrate_app.callback()
def _calibrate_group() -> None:
    """Find the parameters with which all rounds together stay within (epsilon, delta)."""


def _calibrate(name: str, parameters: dict[str, Any], values: dict[str, Any]) -> None:
    from ..analysis.catalogue.accounts import calibrate

    json, output = values["json"], values["output"]
    check_outputs(output)
    sampling = None if "population" in parameters else parse_sampling(**{key: values[key] for key in SAMPLING})
    with progress_bar(f"calibrating {name}") as on_step:
        calibration = calibrate(
            name,
            epsilon=values["epsilon"],
            delta=values["delta"],
            rounds=values["rounds"],
            adjacency=values["adjacency"],
            sampling=sampling,
            method=values["method"],
            dropout=values.get("dropout", 0.0),
            on_step=on_step,
            **parameters,
        )
    table = calibration.report.subject.table
    if table is not None and output is not None:
        from ..design.tables.file import write_table

        write_table(table, output)
        output = None
    show_document(calibration.document(), json, output)
    if not json:
        target = f"{values['epsilon']:g}" + (f", by {values['method']}" if values["method"] else "")
        beside = (("worst of answering zero", calibration.zero_squared_error), ("proven least worst error", calibration.lower_bound))
        print_report(
            calibration.report, [("target epsilon", target)], [(text, f"{value:.9g}") for text, value in beside if value is not None]
        )
