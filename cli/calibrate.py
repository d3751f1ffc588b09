"""`quietbits calibrate`: the parameters with which all rounds of a mechanism together stay within (epsilon, delta)."""

from pathlib import Path
from typing import Annotated, Any

import typer

from .account import help_of, print_report
from .console import check_outputs, show_document, working
from .options import (
    REQUIRED,
    SAMPLING,
    Adjacency,
    Epsilon,
    Json,
    Rounds,
    adjacency_of,
    given,
    parse_sampling,
    registry_group,
    with_options,
)

Output = Annotated[Path | None, typer.Option(help="Write the designed table, or the JSON object, here; - is standard output.")]
TargetDelta = Annotated[float, typer.Option(help="Failure probability of all rounds together, above 0 and below 1.")]
PureDelta = Annotated[float, typer.Option(help="Failure probability of all rounds together, from 0 to below 1.")]
Method = Annotated[
    str | None, typer.Option(help="Name of the account that is to keep the target; by default the least of the proven ones.")
]


def _names() -> list[str]:
    from ..analysis.catalogue.accounts import calibrates
    from ..analysis.catalogue.registry import accounted_names

    return [name for name in accounted_names() if calibrates(name)]


def _has(name: str) -> bool:
    from ..analysis.catalogue.accounts import calibrates
    from ..analysis.catalogue.registry import accounted_names

    return name in accounted_names() and calibrates(name)


def _subcommand(name: str) -> Any:
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
    fixed |= {"json": (Json, False), "output": (Output, None)}
    return with_options(run, options, fixed, help_of(name, "calibrate"))


calibrate_app = typer.Typer(
    cls=registry_group(_names, _subcommand, _has),
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
