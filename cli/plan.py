"""`quietbits plan`: each trust model's recommended mechanism, and the ranking behind it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InfeasibleError
from ..extras import require
from ..files import STANDARD_OUTPUT, shown_path
from ..shown import in_figures
from .console import check_outputs, check_there, console, grid, in_lines, progress_bar, run_resumable, say, warn, working
from .options import Dask, Json, Seed, Workers, complete_adjacency, example_option
from .task import Categories, Clip, Delta, Dimension, Dropout, Interval, Norm, Rounds, domain_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from ..analysis.planner.record import Plan, PlannedMechanism

KINDS = (".csv", ".parquet", ".html", ".json")
# Arguments that a file of tasks leaves to the command line.
FOR_A_FILE = ("spec", "workers", "seed", "output", "dask")
# Headings take two lines, to leave room for mechanisms in a narrow terminal.
HEADINGS = (
    "bits per\nclient",
    "relative\nerror",
    "error per\ncoordinate",
    "squared\nerror",
    "over\nbound",
    "over\ncentral",
    "client\ntime",
)


def plan_command(
    context: typer.Context,
    spec: Annotated[
        Path | None, typer.Argument(help="Many tasks to plan, as TOML, instead of the options of one; --example prints such a file.")
    ] = None,
    clients: Annotated[int | None, typer.Option(help="Number of clients; must be given without a file.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy parameter of all rounds together; must be given without a file.")] = None,
    adjacency: Annotated[
        str | None,
        typer.Option(help="replace-one or add-or-remove-one: which data sets are neighbours.", autocompletion=complete_adjacency),
    ] = None,
    delta: Delta = 0.0,
    dimension: Dimension = None,
    norm: Norm = None,
    clip: Clip = None,
    categories: Categories = None,
    interval: Interval = None,
    bits: Annotated[
        float | None,
        typer.Option(help="Largest number of bits for each coordinate of a vector, for each item of the list, or for a number."),
    ] = None,
    message_bits: Annotated[float | None, typer.Option(help="Largest number of bits of a whole message, instead of --bits.")] = None,
    trust: Annotated[str | None, typer.Option(help="local, shuffled, secure-sum or central: that trust model alone.")] = None,
    rounds: Rounds = 1,
    dropout: Dropout = 0.0,
    tolerance: Annotated[
        float, typer.Option(help="Excess over the least squared error that a recommended mechanism may have for a shorter message.")
    ] = 0.02,
    population: Annotated[
        str | None,
        typer.Option(
            help="Inputs that errors are predicted for, as in simulate; by default positive-sphere, rising (numbers) or zipf (items)."
        ),
    ] = None,
    nonzero: Annotated[
        int | None,
        typer.Option(help="Coordinates of a sparse or sparse-mean vector that are not zero; --option sparsity or one in 16 by default."),
    ] = None,
    option: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Design choice of the mechanisms that have it.")] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Simulate the recommended mechanisms and the first three, and flag errors that are off by over 10 %."),
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Show dominated mechanisms, references and refusals, too.")] = False,
    workers: Workers = 1,
    seed: Seed = 0,
    json: Json = False,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write the plan here: .csv, .parquet, .json, or .html for a page with a picture; - is standard output, as JSON. The "
            "plans of a file go into a folder, where an interrupted run resumes."
        ),
    ] = None,
    dask: Dask = None,
    example: Annotated[bool, example_option("plan_grid", "a commented file of tasks that works")] = False,  # noqa: ARG001 - read before the others
) -> None:
    """Recommend a mechanism for each trust model, and rank all mechanisms (`plan_task`, `advise`, `check_plan`).

    The recommended mechanism has the shortest message within the tolerance of the least squared error; its guarantee holds for the
    program that runs, not on real numbers only. The exit code is 2 if no mechanism can serve the task. A file of tasks is planned into one
    table (`load_plan_grid`, `plan_grid`).
    """
    if spec is not None:
        typed = [name for name in context.params if getattr(context.get_parameter_source(name), "name", None) == "COMMANDLINE"]
        for name in typed:
            if name not in FOR_A_FILE:
                raise ValueError(f"{name} must be left out beside a file of tasks, got {context.params[name]}: write it in the file")
        _plan_grid(spec, output, workers, dask, seed if "seed" in typed else None)
        return
    if dask is not None:
        raise ValueError(f"dask must be left out without a file of tasks, got {dask!r}")
    if clients is None or epsilon is None or adjacency is None:
        required = {"clients": clients, "epsilon": epsilon, "adjacency": adjacency}
        missing = next(name for name, value in required.items() if value is None)
        raise ValueError(f"{missing} must be given, got none: state --{missing}, or a file of tasks; quietbits plan --help shows both")
    from ..analysis.catalogue.registry import REGISTRY
    from ..analysis.catalogue.shared_options import typed_options
    from ..analysis.planner.advice import advise
    from ..analysis.planner.check import check_plan
    from ..analysis.planner.plan import plan_task
    from ..analysis.planner.words import no_mechanism_in_words
    from ..design.contracts.task import Task

    check_outputs(output)
    if output not in (None, STANDARD_OUTPUT) and output.suffix not in KINDS:
        raise ValueError(f"output must end in {', '.join(KINDS[:-1])} or {KINDS[-1]}, got {output.name!r}")
    if output is not None and output.suffix == ".parquet":
        require("pyarrow", "the format parquet")
    held = {"dimension": dimension, "norm": norm, "clip": clip, "categories": categories, "interval": interval}
    task = Task(domain_of(held), clients, epsilon, delta, adjacency, rounds=rounds, bits=bits, message_bits=message_bits, dropout=dropout)
    registered = {choice.name: choice for entry in REGISTRY.values() for choice in entry.options}
    options = typed_options("the registry", tuple(registered.values()), option or [])
    with progress_bar("building the first mechanisms") as on_step:
        plan = plan_task(
            task,
            population=population,
            nonzero=nonzero,
            trust=trust,
            options=options,
            tolerance=tolerance,
            seed=seed,
            workers=workers,
            on_step=on_step,
        )
        plan = advise(plan, workers=workers, on_step=on_step)
        if check:
            plan = check_plan(plan, seed=seed, on_step=on_step)
    if output is not None:
        _write(plan, output)
    if json:
        from json import dumps

        say(dumps(plan.document(), allow_nan=False))
    else:
        _print(plan, every=every)
        if output is not None:
            say(f"Plan: {output}")
    if not plan.feasible:
        raise InfeasibleError(no_mechanism_in_words(plan))


def _plan_grid(spec: Path, output: Path | None, workers: int, dask: str | None, seed: int | None) -> None:
    check_there(spec)
    if output is None:
        raise ValueError("output must be a folder for the plans of a file, got none: state --output FOLDER")
    from dataclasses import replace

    from ..analysis.plan_grid.run import plan_grid
    from ..analysis.plan_grid.spec import load_plan_grid

    tasks = load_plan_grid(spec)
    if seed is not None:
        tasks = replace(tasks, seed=seed)
    run_resumable(
        output,
        lambda on_step: plan_grid(tasks, output, workers=workers, dask=dask, on_step=on_step),
        lambda path, _: _print_grid(path),
        beside=("results.parquet", "results.csv", "report.html"),
    )


def _print_grid(path: Path) -> None:
    import datetime as dt

    import pandas as pd

    from ..analysis.plan_grid.leaderboard import board_rows
    from ..figures.planner.leaderboard_page import write_leaderboard_page
    from ..figures.report.results_page import PAGE_NAME

    rows = pd.read_parquet(path)
    page = path.with_name(PAGE_NAME)
    page.unlink(missing_ok=True)
    if rows["mechanism"].notna().any():
        with working(f"drawing the page of {shown_path(path)}"):
            write_leaderboard_page(board_rows(rows, dt.datetime.now(dt.UTC).date()), page)
    none = int(rows["mechanism"].isna().sum())
    chosen = rows.loc[rows["recommended"].eq(True), "mechanism"].value_counts()
    grid(
        "Plans",
        (
            ("mechanisms that serve a task", f"{len(rows) - none:,}"),
            ("tasks that no mechanism serves", f"{none:,}"),
            ("recommended", ", ".join(f"{name} ({count})" for name, count in chosen.items()) or "none"),
            *([("page", str(page))] if page.exists() else []),
            ("table", f"{path}, {path.with_suffix('.csv')}"),
        ),
    )


def _write(plan: "Plan", output: Path) -> None:
    from json import dumps

    from ..files import write_atomically

    if output.suffix == ".html":
        from ..figures.planner.plan_page import write_plan_page

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


def _print(plan: "Plan", *, every: bool) -> None:
    from rich.padding import Padding

    from ..analysis.planner.words import population_in_words, task_in_words
    from ..design.contracts.registry import REAL_NUMBERS

    screen = console()
    screen.print(task_in_words(plan.task))
    screen.print(population_in_words(plan))
    for advice in plan.advice:
        screen.print()
        title = in_lines(f"{advice.trust_model}: {advice.mechanism or 'no recommendation'}")
        title.stylize("bold")
        screen.print(title)
        for sentence in advice.sentences:
            screen.print(Padding(sentence, (0, 0, 0, 2)))
        for command in advice.commands:
            screen.print(f"  $ {command}", soft_wrap=True)
    for model in plan.trust_models:
        shown = plan.of(model) if every else plan.frontier(model)
        screen.print()
        screen.print(_ranking(plan, model, shown))
        for note in _notes(plan, model, shown):
            screen.print(Padding(note, (0, 0, 0, 2)))
    screen.print()
    screen.print(_references(plan))
    if references := [mechanism.name for mechanism in plan.feasible if mechanism.on_real_numbers]:
        screen.print(f"{', '.join(references)}: {REAL_NUMBERS}.")
    if plan.infeasible and (every or not plan.feasible):
        screen.print(_refusals(plan))
    elif plan.infeasible:
        screen.print(f"{len(plan.infeasible)} mechanisms cannot serve; --all shows why.")
    for mechanism in plan.feasible:
        if mechanism.check is not None and mechanism.check.off:
            warn(f"{mechanism.name}: the measured error is {100 * mechanism.check.excess:+.0f} % off its prediction")


def _ranking(plan: "Plan", model: str, shown: "Sequence[PlannedMechanism]") -> "Table":
    """Return some mechanisms of a trust model as a table."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=f"Trust model: {model}", box=SIMPLE_HEAD, title_justify="left")
    table.add_column("mechanism", no_wrap=True)
    several = plan.task.rounds > 1
    checked = any(planned.check for planned in shown)
    headings = (*HEADINGS, *(("average\nof all\nrounds",) if several else ()), *(("off by",) if checked else ()))
    for heading in headings:
        # The column must not cut numbers: a number wider than its column would lose its end.
        table.add_column(in_lines(heading), justify="right", no_wrap=True)
    for planned in shown:
        cells = [*_cells(planned), *([in_figures(planned.predicted_error_of_rounds)] if several else [])]
        if checked:
            cells.append("" if planned.check is None else f"{100 * planned.check.excess:+.1f} %{' !' if planned.check.off else ''}")
        mark = " *" if planned.recommended else " +" if planned.on_frontier else ""
        table.add_row(f"{planned.name}{mark}", *cells)
    return table


def _notes(plan: "Plan", model: str, shown: "Sequence[PlannedMechanism]") -> "Iterator[str]":
    """Yield the notes below a trust model's table.

    Notes state the guarantees, the mechanisms that the table leaves out, and the reasons of bounds.
    """
    from ..analysis.planner.words import bound_reasons_in_words, drop_outs_in_words, guarantees_in_words

    recommended = ["* Recommended."] if any(row.recommended for row in shown) else []
    others = any(row.on_frontier and not row.recommended for row in shown)
    frontier = ["+ No other releasable mechanism has a message and an error as small."] if others else []
    yield " ".join([*recommended, *frontier, guarantees_in_words(plan, model)])
    if (left := drop_outs_in_words(plan, shown)) is not None:
        yield left
    folded = [planned for planned in plan.of(model) if planned not in shown]
    for kind, on_real_numbers in (("No shorter and no better than another mechanism", False), ("References on real numbers", True)):
        if names := [planned.name for planned in folded if planned.on_real_numbers is on_real_numbers]:
            yield f"{kind} (--all shows them): {', '.join(names)}."
    yield from bound_reasons_in_words(shown)


def _cells(planned: "PlannedMechanism") -> tuple[str, ...]:
    from ..analysis.planner.words import percentage, seconds_in_words

    return (
        f"{planned.bits_per_client:,.6g}",
        percentage(planned.relative_error or 0.0),
        in_figures(planned.error_per_coordinate),
        in_figures(planned.predicted_error),
        "none" if planned.ratio_to_bound is None else in_figures(planned.ratio_to_bound),
        in_figures(planned.ratio_to_central),
        "" if planned.client_seconds is None else seconds_in_words(planned.client_seconds),
    )


def _references(plan: "Plan") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from ..analysis.planner.words import percentage

    table = Table(title="References", box=SIMPLE_HEAD, title_justify="left")
    table.add_column("reference")
    several = plan.task.rounds > 1
    for heading in ("relative error", "squared error", *(["of the average of all rounds"] if several else [])):
        table.add_column(heading, justify="right")
    for reference in plan.references:
        relative = "" if reference.relative_error is None else percentage(reference.relative_error)
        average = [in_figures(reference.predicted_error_of_rounds)] if several else []
        title = reference.title if reference.reason is None else f"{reference.title}: {reference.reason}"
        table.add_row(title, relative, in_figures(reference.predicted_error), *average)
    return table


def _refusals(plan: "Plan") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title="Cannot serve", box=SIMPLE_HEAD, title_justify="left", show_header=False)
    for refusal in plan.refusals:
        table.add_row(refusal.reason, ", ".join(refusal.mechanisms))
    return table
