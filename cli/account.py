"""`quietbits account` and `quietbits calibrate`: what mechanisms, tables and noise reveal after all rounds, and parameters for a budget."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import check_outputs, console, grid, show_document, warn, working
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
    given,
    parse_sampling,
    registry_group,
    with_options,
)

if TYPE_CHECKING:
    from ..design.contracts.privacy import AccountedEpsilon
    from ..design.contracts.registry import AccountReport


Rows = Iterable[tuple[str, str]]
# What names of details do not say themselves.
SAID: Mapping[str, str] = MappingProxyType(
    {
        "tau": ", by which the sum's log-ratio to one discrete Gaussian varies at most",
        "rounded_norm": ", the largest L2 norm after rounding",
        "input_distance": ", the largest distance of two vectors after dithering, on the table's scale of 1",
    }
)
DesignOutput = Annotated[Path | None, typer.Option(help="Write the designed table, or the JSON object, here; - is standard output.")]
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
    from ..analysis.catalogue.registry import REGISTRY

    options = account_options(name)
    adjacency = adjacency_of(REGISTRY[name].account_adjacencies) if name in REGISTRY else Adjacency

    def run(**values: Any) -> None:
        _account(name, given(options, values), values)

    own = [option.name for option in options]
    fixed: dict[str, tuple[Any, Any]] = {"delta": (Delta, None), "rounds": (Rounds, 1), "adjacency": (adjacency, None)}
    fixed |= {key: (kind, None) for key, kind in SAMPLING.items() if "population" not in own}
    fixed |= {"json": (Json, False), "plot": (Plot, None), "output": (Output, None)}
    return with_options(run, options, fixed, help_of(name, "account"))


def help_of(name: str, call: str) -> str:
    """Return the help of a command on the accounts of one name, with the reason why these differ where there are several."""
    from ..analysis.catalogue.registry import NOISE, REGISTRY

    text = f"{(NOISE[name] if name in NOISE else REGISTRY[name]).title} (`quietbits.{call}`)."
    names = REGISTRY[name].accounts if name in REGISTRY else ()
    if len(names) < 2:
        return text
    return (
        f"{text}\n\nThere are {len(names)} accounts: {', '.join(names)}. They are different bounds on what a client's messages "
        "reveal, of which some lose more than others: epsilon is the least of those that are proven, without an assumption, for the "
        "adjacency asked."
    )


account_app = typer.Typer(
    cls=registry_group(_names, _subcommand),
    help="Compute the privacy that is left after all rounds, with the assumptions it rests on.",
    no_args_is_help=True,
)


@account_app.callback()
def _account_group() -> None:
    """Compute the privacy that is left after all rounds, with the assumptions it rests on."""


def _account(name: str, parameters: dict[str, Any], values: dict[str, Any]) -> None:
    from ..analysis.catalogue.accounts import account

    json, plot, output = values["json"], values["plot"], values["output"]
    check_outputs(plot, output, inputs=[values.get("table")])
    if plot is not None:
        if values["delta"] is None:
            raise ValueError("delta must be given for a plot of epsilon: a number above 0 and below 1")
        _check_plot(plot)
    sampling = None if "population" in parameters else parse_sampling(**{key: values[key] for key in SAMPLING})
    with working(f"accounting for {name}"):
        report = account(
            name,
            delta=values["delta"],
            rounds=values["rounds"],
            adjacency=values["adjacency"],
            sampling=sampling,
            **parameters,
        )
    if plot is not None:
        from ..figures.account_plots import write_account_plot

        write_account_plot(report.subject, values["delta"], values["rounds"], sampling, plot)
    show_document(report.document(), json, output)
    if not json:
        print_report(report)


def _check_plot(plot: Path) -> None:
    from ..figures.account_plots import check_plot_file

    check_plot_file(plot)


def print_report(report: "AccountReport", first: Rows = (), beside: Rows = ()) -> None:
    """Print an account as a table, with other rows above and below its details; warn if the best Rényi order is at an edge."""
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
    answers = [(f"by {one.name}", _answer(one, privacy.adjacency)) for one in privacy.accounts]
    lines = [*first, *details, *beside, ("epsilon", epsilon), *answers]
    # Where drawing clients is part of the mechanism, its details say how.
    if "drawn" not in report.subject.details:
        lines.append(("sampling", "every client takes part in every round" if privacy.sampling is None else str(privacy.sampling)))
    lines += [("adjacency", privacy.adjacency), ("trust model", privacy.trust_model)]
    if "on_real_numbers" in report.subject.details:
        lines.append(("note", REAL_NUMBERS))
    grid(report.subject.mechanism, lines)
    if sum(one.proven and one.assumes is None and one.adjacency == privacy.adjacency for one in privacy.accounts) > 1:
        console().print("Each account that is not marked otherwise is a proof by itself: epsilon is the least of them.")
    for one in privacy.accounts:
        if one.bound.order_at_edge:
            warn(f"WARNING: order {one.bound.order:g} of {one.name} is at the edge of the orders tried; others might prove less.")


def _answer(one: "AccountedEpsilon", adjacency: str) -> str:
    from math import isinf

    if isinf(one.bound.epsilon):
        return f"nothing: {one.bound.reason}"
    text = _upward(one.bound.epsilon)
    if one.bound.order is not None:
        text += ", the pure guarantee" if isinf(one.bound.order) else f", order {one.bound.order:g}"
    if (participations := one.bound.details.get("participations")) is not None:
        text += f", of at most {participations} rounds that include a client, except with probability delta / 2"
    if not one.proven:
        text += "; not proven"
    if one.assumes is not None:
        text += f"; assumes that {one.assumes}"
    if one.adjacency != adjacency:
        text += f"; for {one.adjacency} adjacency"
    if one.bound.details.get("trust_model") == "local":
        text += "; against the server, too"
    doubtful = one.bound.details.get("doubtful")
    return f"{text}; exact accounts contradict it here" if doubtful else text


def _upward(value: float) -> str:
    from ..figures.drawing.directed_rounding import rounded_up

    return rounded_up(value, 6)


def _calibrated_names() -> list[str]:
    from ..analysis.catalogue.accounts import calibrates
    from ..analysis.catalogue.registry import accounted_names

    return [name for name in accounted_names() if calibrates(name)]


def _has(name: str) -> bool:
    from ..analysis.catalogue.accounts import calibrates
    from ..analysis.catalogue.registry import accounted_names

    return name in accounted_names() and calibrates(name)


def _calibrate_subcommand(name: str) -> Any:
    from ..analysis.catalogue.accounts import calibration_options, keeps_pure_budgets
    from ..analysis.catalogue.registry import REGISTRY

    options = calibration_options(name)
    adjacency = adjacency_of(REGISTRY[name].account_adjacencies) if name in REGISTRY else Adjacency

    def run(**values: Any) -> None:
        _calibrate(name, given(options, values), values)

    own = [option.name for option in options]
    delta = (PureDelta, 0.0) if keeps_pure_budgets(name) else (TargetDelta, REQUIRED)
    fixed: dict[str, tuple[Any, Any]] = {"epsilon": (Epsilon, REQUIRED), "delta": delta}
    fixed |= {"rounds": (Rounds, 1), "method": (Method, None), "adjacency": (adjacency, None)}
    fixed |= {key: (kind, None) for key, kind in SAMPLING.items() if "population" not in own}
    fixed |= {"json": (Json, False), "output": (DesignOutput, None)}
    return with_options(run, options, fixed, help_of(name, "calibrate"))


calibrate_app = typer.Typer(
    cls=registry_group(_calibrated_names, _calibrate_subcommand, _has),
    help="Find the parameters with which all rounds together stay within (epsilon, delta), on the safe side.",
    no_args_is_help=True,
)


@calibrate_app.callback()
def _calibrate_group() -> None:
    """Find the parameters with which all rounds together stay within (epsilon, delta), on the safe side."""


def _calibrate(name: str, known: dict[str, Any], values: dict[str, Any]) -> None:
    from ..analysis.catalogue.accounts import calibrate

    json, output = values["json"], values["output"]
    check_outputs(output)
    sampling = None if "population" in known else parse_sampling(**{key: values[key] for key in SAMPLING})
    with working(f"calibrating {name}"):
        found = calibrate(
            name,
            epsilon=values["epsilon"],
            delta=values["delta"],
            rounds=values["rounds"],
            adjacency=values["adjacency"],
            sampling=sampling,
            method=values["method"],
            **known,
        )
    table = found.report.subject.table
    if table is not None and output is not None:
        from ..design.tables.file import write_table

        write_table(table, output)
        output = None
    show_document(found.document(), json, output)
    if not json:
        target = f"{values['epsilon']:g}" + (f", by {values['method']}" if values["method"] else "")
        beside = (("worst of answering zero", found.zero_squared_error), ("proven least worst error", found.lower_bound))
        print_report(found.report, [("target epsilon", target)], [(text, f"{value:.9g}") for text, value in beside if value is not None])
