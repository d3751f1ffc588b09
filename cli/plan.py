"""`quietbits plan`: every mechanism for a task, ranked, with its cost and its command."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InfeasibleError
from ..files import STANDARD_OUTPUT
from .console import check_outputs, console, in_lines, progress_bar, say, warn
from .options import Epsilon, Json, Seed, Workers
from .task import Categories, Clients, Clip, Delta, Dimension, Interval, Norm, Rounds, domain_of

if TYPE_CHECKING:
    from rich.table import Table

    from ..analysis.planner.record import Plan, PlannedMechanism

KINDS = (".csv", ".parquet", ".html", ".json")
# Headings take two lines, to leave room for mechanisms in a narrow terminal.
HEADINGS = ("error", "worst", "bits per\nclient", "over\nbound", "over\ncentral", "epsilon\ndelta", "client\ntime", "server\ntime")
# Headings of columns whose cells may take several lines.
WORDY = ("over\nbound", "epsilon\ndelta")


def plan_command(
    clients: Clients,
    epsilon: Epsilon,
    adjacency: Annotated[str, typer.Option(help="replace-one or add-or-remove-one: which data sets are neighbours.")],
    delta: Delta = 0.0,
    dimension: Dimension = None,
    norm: Norm = None,
    clip: Clip = None,
    categories: Categories = None,
    interval: Interval = None,
    bits: Annotated[
        float | None,
        typer.Option(help="Most bits of a coordinate: of a vector's, of an item's, of a number; a message has so many times more."),
    ] = None,
    message_bits: Annotated[float | None, typer.Option(help="Most bits of a whole message, instead of those of a coordinate.")] = None,
    trust: Annotated[str | None, typer.Option(help="local, shuffled, secure-sum or central: that trust model alone.")] = None,
    rounds: Rounds = 1,
    population: Annotated[
        str | None, typer.Option(help="What errors are predicted for: sphere, uniform (numbers), zipf (items), or as in simulate.")
    ] = None,
    nonzero: Annotated[
        int | None,
        typer.Option(help="Coordinates of a sparse or sparse-mean vector that are not zero; --option sparsity or one in 16 by default."),
    ] = None,
    option: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Design choice of the mechanisms that have it.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Simulate the first three, and flag what is off by over 10 %.")] = False,
    workers: Workers = 1,
    seed: Seed = 0,
    json: Json = False,
    output: Annotated[
        Path | None,
        typer.Option(help="Write the plan here: .csv, .parquet, .json, or .html for a page with a picture; - is standard output, as JSON."),
    ] = None,
) -> None:
    """Rank every mechanism for a task, or say why it cannot serve (`plan_task`, `check_plan`).

    The exit code is 2 if no mechanism can serve the task.
    """
    from ..analysis.catalogue.registry import REGISTRY
    from ..analysis.catalogue.shared_options import typed_options
    from ..analysis.planner.check import check_plan
    from ..analysis.planner.plan import plan_task
    from ..design.contracts.task import Task

    check_outputs(output)
    if output not in (None, STANDARD_OUTPUT) and output.suffix not in KINDS:
        raise ValueError(f"output must end in {', '.join(KINDS[:-1])} or {KINDS[-1]}, got {output.name!r}")
    held = {"dimension": dimension, "norm": norm, "clip": clip, "categories": categories, "interval": interval}
    task = Task(domain_of(held), clients, epsilon, delta, adjacency, rounds=rounds, bits=bits, message_bits=message_bits)
    registered = {choice.name: choice for entry in REGISTRY.values() for choice in entry.options}
    options = typed_options("the registry", tuple(registered.values()), option or [])
    with progress_bar() as on_step:
        plan = plan_task(
            task, population=population, nonzero=nonzero, trust=trust, options=options, seed=seed, workers=workers, on_step=on_step
        )
        if check:
            plan = check_plan(plan, seed=seed, on_step=on_step)
    if output is not None:
        _write(plan, output)
    if json:
        from json import dumps

        say(dumps(plan.document(), allow_nan=False))
    else:
        _print(plan)
        if output is not None:
            say(f"Plan: {output}")
    if not plan.feasible:
        raise InfeasibleError(_none_serves(plan))


def _none_serves(plan: "Plan") -> str:
    """Return the reasons why mechanisms for the task's kind of input cannot serve it."""
    from ..analysis.catalogue.registry import REGISTRY

    held = {name for name, entry in REGISTRY.items() if isinstance(plan.task.domain, entry.domains)}
    reasons = [f"{refusal.reason} ({', '.join(refusal.mechanisms)})" for refusal in plan.refusals if held.intersection(refusal.mechanisms)]
    return f"no mechanism can serve the task: {'; '.join(reasons) or 'no mechanism of that trust model takes its kind of input'}"


def _write(plan: "Plan", output: Path) -> None:
    from json import dumps

    from ..files import write_atomically

    if output.suffix == ".html":
        from ..figures.planner.pareto import write_plan_page

        write_plan_page(plan, output)
    elif output.suffix == ".json" or output == STANDARD_OUTPUT:
        write_atomically(output, (dumps(plan.document(), indent=2, allow_nan=False) + "\n").encode())
    elif output.suffix == ".csv":
        write_atomically(output, plan.to_frame().to_csv(index=False, lineterminator="\n").encode())
    else:
        import io

        buffer = io.BytesIO()
        plan.to_frame().to_parquet(buffer, index=False)
        write_atomically(output, buffer.getvalue())


def _print(plan: "Plan") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from ..analysis.planner.record import population_in_words, task_in_words
    from ..design.contracts.registry import REAL_NUMBERS

    screen = console()
    screen.print(task_in_words(plan.task))
    population = population_in_words(plan.population, plan.task.domain, plan.nonzero)
    screen.print(f"Errors: squared L2 distance from the mean, one round, population {population}; worst: of all inputs.")
    for model in plan.trust_models:
        screen.print(_ranking(plan, model))
    references = Table(title="References: not mechanisms of the registry", box=SIMPLE_HEAD, title_justify="left")
    references.add_column("reference")
    for heading in ("error", "of the average of all rounds", "worst"):
        references.add_column(heading, justify="right")
    for reference in plan.references:
        numbers = (_short(reference.predicted_error), _short(reference.predicted_error_of_rounds), _short(reference.worst_error))
        references.add_row(reference.title if reference.reason is None else f"{reference.title}: {reference.reason}", *numbers)
    screen.print(references)
    if plan.feasible:
        screen.print("Commands:")
        for mechanism in plan.feasible:
            screen.print(f"  {mechanism.command or mechanism.name}", soft_wrap=True)
        if named := [mechanism.name for mechanism in plan.feasible if mechanism.on_real_numbers]:
            screen.print(f"{', '.join(named)}: {REAL_NUMBERS}.")
    if plan.infeasible:
        refused = Table(title="Cannot serve", box=SIMPLE_HEAD, title_justify="left", show_header=False)
        for refusal in plan.refusals:
            refused.add_row(refusal.reason, ", ".join(refusal.mechanisms))
        screen.print(refused)
    for mechanism in plan.feasible:
        if mechanism.check is not None and mechanism.check.off:
            warn(f"{mechanism.name}: the measured error is {100 * mechanism.check.excess:+.0f} % off its prediction")


def _ranking(plan: "Plan", model: str) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=f"Trust model: {model}", box=SIMPLE_HEAD, title_justify="left")
    table.add_column("mechanism", no_wrap=True)
    several = plan.task.rounds > 1
    checked = any(planned.check for planned in plan.of(model))
    headings = (*HEADINGS, *(("average\nof all\nrounds",) if several else ()), *(("off by",) if checked else ()))
    for heading in headings:
        # The column must not cut numbers: a number wider than its column would lose its end.
        table.add_column(in_lines(heading), justify="right", no_wrap=heading not in WORDY)
    for planned in plan.of(model):
        cells = [*_cells(planned), *([_short(planned.predicted_error_of_rounds)] if several else [])]
        if checked:
            cells.append("" if planned.check is None else f"{100 * planned.check.excess:+.1f} %{' !' if planned.check.off else ''}")
        table.add_row(planned.name, *cells)
    reasons = dict.fromkeys(planned.bound_reason for planned in plan.of(model) if planned.bound_reason)
    if reasons:
        table.caption = "; ".join(reasons)
    return table


def _cells(planned: "PlannedMechanism") -> tuple[str, ...]:
    bound = "none" if planned.ratio_to_bound is None else _short(planned.ratio_to_bound)
    return (
        _short(planned.predicted_error),
        _short(planned.worst_error),
        f"{planned.bits_per_client:,.6g}",
        bound,
        _short(planned.ratio_to_central),
        f"{planned.epsilon:.3g}, {planned.delta:g}",
        _seconds(planned.client_seconds),
        _seconds(planned.server_seconds),
    )


def _short(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if value == 0 or 1e-2 <= abs(value) < 1e5 else f"{value:.2e}"


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    unit, name = next((unit, name) for unit, name in ((1.0, "s"), (1e-3, "ms"), (0.0, "µs")) if value >= unit)
    return f"{value / (unit or 1e-6):.0f} {name}"
