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
    Output,
    Rounds,
    adjacency_of,
    given,
    parse_sampling,
    registry_group,
    with_options,
)

TableOutput = Annotated[Path | None, typer.Option(help="Write the designed table here, as JSON; - is standard output.")]
TargetDelta = Annotated[float, typer.Option(help="Failure probability of all rounds together, above 0 and below 1.")]
PureDelta = Annotated[float, typer.Option(help="Failure probability of all rounds together, from 0 to below 1.")]
Method = Annotated[
    str | None, typer.Option(help="Name of the account that is to keep the target; by default the least of the proven ones.")
]


def _names() -> list[str]:
    from ..analysis.catalogue.registry import accountables

    return [name for name, one in accountables().items() if one.solve is not None]


def _has(name: str) -> bool:
    from ..analysis.catalogue.registry import accountables

    known = accountables()
    return name in known and known[name].solve is not None


def _subcommand(name: str) -> Any:
    from ..analysis.catalogue.registry import REGISTRY, accountables

    one = accountables()[name]
    adjacency = adjacency_of(one.adjacencies or REGISTRY[name].adjacencies) if name in REGISTRY else Adjacency

    def run(**values: Any) -> None:
        _calibrate(name, given(one.given, values), values)

    own = [option.name for option in one.given]
    delta = (PureDelta, 0.0) if one.pure else (TargetDelta, REQUIRED)
    fixed: dict[str, tuple[Any, Any]] = {"epsilon": (Epsilon, REQUIRED), "delta": delta}
    fixed |= {"rounds": (Rounds, 1), "method": (Method, None), "adjacency": (adjacency, None)}
    fixed |= {key: (kind, None) for key, kind in SAMPLING.items() if "population" not in own}
    fixed |= {"json": (Json, False), "output": (TableOutput if one.designs else Output, None)}
    return with_options(run, one.given, fixed, help_of(name, "calibrate"))


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
