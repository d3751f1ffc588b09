"""The `quietbits` command: every subcommand parses, makes one documented call, and prints.

Imports of numpy and all that stands on it are inside the commands, so that help and completion answer at once.
"""

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import TableError
from .account import account_app
from .calibrate import calibrate_app
from .console import OneLineErrors, check_folders, complain, console, progress_bar
from .cpsgd import add_cpsgd_commands
from .dp_rec import add_dp_rec_commands
from .secure_sum import add_secure_sum_commands
from .simulate import audit_command, simulate_command
from .skellam import add_skellam_commands
from .sweep import sweep_command

if TYPE_CHECKING:
    from ..analysis.study.column_data import DataColumn
    from ..analysis.study.mean_study import MeanStudy
    from ..arrays import FloatArray
    from ..design.tables.lookup_table import LookupTable


class Solver(StrEnum):
    """Ways to design an MVU table."""

    staircase = "staircase"
    trust_region = "trust-region"
    alternating = "alternating"


class Objective(StrEnum):
    """What a comparison's tables minimise."""

    mean = "mean"
    worst = "worst"


class DesignObjective(StrEnum):
    """What a designed table minimises."""

    mean = "mean"
    worst = "worst"
    prior = "prior"


class ExportFormat(StrEnum):
    """Formats of exported tables."""

    c = "c"
    npz = "npz"
    csv = "csv"
    parquet = "parquet"


app = typer.Typer(
    cls=OneLineErrors,
    help="Design, certify and compare mechanisms that make a client's message both private and small.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
design_app = typer.Typer(help="Design a mechanism and export it as a certified lookup table.", no_args_is_help=True)
estimate_app = typer.Typer(help="Estimate a population's statistic privately, and compare mechanisms on it.", no_args_is_help=True)
app.add_typer(design_app, name="design")
app.add_typer(estimate_app, name="estimate")
add_secure_sum_commands(account_app, calibrate_app)
add_cpsgd_commands(account_app, calibrate_app)
add_skellam_commands(account_app, calibrate_app)
add_dp_rec_commands(account_app, calibrate_app)
app.add_typer(account_app, name="account")
app.add_typer(calibrate_app, name="calibrate")
app.command("sweep")(sweep_command)
app.command("simulate")(simulate_command)
app.command("audit")(audit_command)

Epsilon = Annotated[float, typer.Option(help="Privacy parameter, 0.001 to 20; more with a metric l<p>, p > 1.")]
BitsIn = Annotated[int, typer.Option(help="Bits of the grid that values are dithered to, 1 to 9.")]
BitsOut = Annotated[int, typer.Option(help="Bits of a client's message, 1 to 9.")]
Metric = Annotated[str | None, typer.Option(help="l1, l2 or l<p>: metric privacy with |y - y'|^p instead of local privacy.")]
Seed = Annotated[int, typer.Option(help="Root seed of everything random.")]
Interval = Annotated[tuple[float, float] | None, typer.Option(metavar="LOW HIGH", help="Public interval; values outside are clipped.")]


def main() -> None:
    """Run the `quietbits` command with the arguments of this process, and exit."""
    app(prog_name="quietbits")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"quietbits {version('quietbits')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)] = False,
) -> None:
    """Hold the options that belong to no subcommand; `version` ends the program when it is read."""


@design_app.command("mvu")
def design_mvu_command(
    epsilon: Epsilon,
    bits_in: BitsIn,
    bits_out: BitsOut,
    metric: Metric = None,
    solver: Annotated[Solver, typer.Option(help="How to design it.")] = Solver.staircase,
    objective: Annotated[DesignObjective, typer.Option(help="Variance to minimise.")] = DesignObjective.mean,
    prior_data: Annotated[Path | None, typer.Option(help="Public csv, parquet or npy file whose values are the prior.")] = None,
    prior_column: Annotated[str | None, typer.Option(help="Column of the prior's file.")] = None,
    symmetric: Annotated[bool, typer.Option("--symmetric", help="Ask for a table that is its own mirror image.")] = False,
    interval: Annotated[tuple[float, float], typer.Option(metavar="LOW HIGH", help="Interval of the values.")] = (0.0, 1.0),
    seed: Seed = 0,
    output: Annotated[Path | None, typer.Option(help="Write the table here, as JSON.")] = None,
) -> None:
    """Design the unbiased private table with the smallest variance, and certify it (`design_mvu`)."""
    from ..design.tables.file import write_table
    from ..design.tables.mvu import design_mvu

    check_folders(output)
    if (objective is DesignObjective.prior) != (prior_data is not None):
        raise ValueError("prior_data must be given with the objective prior, and only with it: --objective prior --prior-data FILE")
    table = design_mvu(
        epsilon,
        bits_in,
        bits_out,
        metric=metric,
        objective=str(objective) if prior_data is None else _prior(prior_data, prior_column, interval, bits_in),
        solver=str(solver),
        symmetric=symmetric,
        interval=interval,
        seed=seed,
    )
    if output is not None:
        write_table(table, output)
    _print_certificate(table, f"written to {output}" if output is not None else "not written: name a file with --output")


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="Lookup table, as JSON.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Recompute a table's certificate from the file alone, in exact arithmetic; exit code 1 if anything differs (`read_table`)."""
    from json import dumps

    from ..design.tables.file import read_table, table_document

    try:
        table = read_table(file)
    except TableError as error:
        if json:
            typer.echo(dumps({"file": str(file), "verified": False, "check": error.check, "detail": error.detail}))
        else:
            complain(f"{file}: refused: {error}")
        raise typer.Exit(1) from error
    if json:
        typer.echo(dumps({"file": str(file), "verified": True, "certificate": table_document(table)["certificate"]}))
    else:
        _print_certificate(table, f"{file}: verified")


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="Lookup table, as JSON.")],
    file_format: Annotated[ExportFormat, typer.Option("--format", help="What to write: c is a C99 header with a sampler.")],
    output: Annotated[Path, typer.Option(help="Where to write it.")],
) -> None:
    """Verify a table and write it in another format (`export_table`)."""
    from ..design.tables.export import export_table
    from ..design.tables.file import read_table

    check_folders(output)
    export_table(read_table(file), output, str(file_format))


@estimate_app.command("mean")
def estimate_mean_command(
    data: Annotated[Path, typer.Option(help="csv, parquet or npy file with one value per client.")],
    epsilon: Epsilon,
    column: Annotated[str | None, typer.Option(help="The column; not needed for an npy array with one dimension.")] = None,
    interval: Interval = None,
    bits_in: BitsIn = 5,
    bits_out: BitsOut = 3,
    metric: Metric = None,
    objective: Annotated[Objective, typer.Option(help="Variance that the MVU tables minimise.")] = Objective.mean,
    seed: Seed = 0,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report here.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the results here, as JSON.")] = None,
) -> None:
    """Estimate the mean of a column with MVU, and compare it with its rivals (`study_mean`).

    State the interval with --interval, from what is known without the data. Without it the smallest and the largest value are taken,
    which is not private: a warning says so here, in the report and in the results.
    """
    from ..analysis.study.column_data import load_column

    check_folders(report, output)
    study = _run_study(load_column(data, column, interval), epsilon, bits_in, bits_out, metric, objective, seed)
    _print_study(study)
    _write_study(study, report, output)


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Folder for the report, the table and the results; made if it is not there.")],
    epsilon: Epsilon = 3.0,
    bits_in: BitsIn = 5,
    bits_out: BitsOut = 3,
    seed: Seed = 0,
) -> None:
    """Do the main job on real data: the mean body mass index of 442 patients (`study_mean`, `write_report`)."""
    from ..analysis.study.demo_data import body_mass_index
    from ..design.tables.file import write_table

    study = _run_study(body_mass_index(), epsilon, bits_in, bits_out, None, Objective.mean, seed)
    _print_study(study)
    output.mkdir(parents=True, exist_ok=True)
    _write_study(study, output / "report.html", output / "results.json")
    write_table(study.table, output / "table.json")
    typer.echo(f"Table: {output / 'table.json'}")


@app.command()
def reproduce(
    output: Annotated[Path, typer.Option(help="Folder for the figures; made if it is not there.")],
    figures: Annotated[list[str] | None, typer.Argument(metavar="[FIGURE]...", help="Names of figures; all of them by default.")] = None,
    seed: Seed = 0,
) -> None:
    """Draw figures of the papers again: SVG, PDF, PNG and the data behind them (`quietbits.figures.registry.FIGURES`)."""
    from ..figures.registry import FIGURES

    chosen = figures or list(FIGURES)
    for name in chosen:
        if name not in FIGURES:
            raise ValueError(f"figure must be one of {', '.join(FIGURES)}, got {name!r}")
    output.mkdir(parents=True, exist_ok=True)
    for name in chosen:
        with progress_bar() as on_step:
            FIGURES[name](output, seed, on_step)
        typer.echo(f"{name}: {output}")


def _prior(data: Path, column: str | None, interval: tuple[float, float], bits_in: int) -> "FloatArray":
    from ..analysis.study.column_data import read_column
    from ..analysis.study.grid_prior import grid_prior

    return grid_prior(read_column(data, column), interval, bits_in)


def _run_study(
    data: "DataColumn", epsilon: float, bits_in: int, bits_out: int, metric: str | None, objective: Objective, seed: int
) -> "MeanStudy":
    from ..analysis.study.mean_study import study_mean

    with progress_bar() as on_step:
        return study_mean(data, epsilon, bits_in, bits_out, metric=metric, objective=str(objective), seed=seed, on_step=on_step)


def _write_study(study: "MeanStudy", report: Path | None, results: Path | None) -> None:
    command = shlex.join(["quietbits", *sys.argv[1:]])
    if report is not None:
        from ..figures.report.report import write_report

        write_report(study, report, command=command)
        typer.echo(f"Report: {report}")
    if results is not None:
        from ..analysis.study.results_file import write_results

        write_results(study, results, command=command)
        typer.echo(f"Results: {results}")


def _print_study(study: "MeanStudy") -> None:
    from rich.table import Table

    from ..figures.report.report import headline

    screen = console()
    if not study.data.interval_is_public:
        screen.print("WARNING: the interval was taken from the data. This is not private: state one with --interval.", style="bold red")
    comparison = study.comparison
    table = Table(title=f"Mean of {study.data.name}: {comparison.clients} clients, true mean {comparison.true_mean:.6g}")
    table.add_column("mechanism")
    for heading in ("bits per client", "estimate", "error", "s.e., these values", "s.e., any values", "variance / bound"):
        table.add_column(heading, justify="right")
    for row in comparison.estimates:
        numbers = (row.estimate, row.error, row.standard_error, row.worst_standard_error)
        ratio = "" if row.ratio_to_bound is None else f"{row.ratio_to_bound:.3f}"
        table.add_row(row.mechanism, f"{row.bits_per_client:g}", *(f"{number:.4g}" for number in numbers), ratio)
    screen.print(table, markup=False)
    for guarantee in dict.fromkeys(row.guarantee for row in comparison.estimates):
        names = [row.mechanism for row in comparison.estimates if row.guarantee == guarantee]
        whose = "every mechanism" if len(names) == len(comparison.estimates) else "; ".join(names)
        screen.print(f"Guarantee of {whose}: {guarantee}.", markup=False)
    low, high = comparison.interval
    screen.print(f"{comparison.clipped} of {comparison.clients} values lie outside [{low:g}, {high:g}] and were clipped.", markup=False)
    for sentence in headline(study):
        screen.print(sentence, markup=False)


def _print_certificate(table: "LookupTable", title: str) -> None:
    from rich.table import Table

    certificate = table.certificate
    grid = Table(title=title, show_header=False)
    low, high = table.interval
    for name, value in (
        ("mechanism", f"{table.mechanism}, {table.bits_in} bits in, {table.bits_out} bits out, values from {low:g} to {high:g}"),
        ("guarantee", str(table.guarantee)),
        ("realised epsilon", repr(certificate.realised_epsilon)),
        ("largest bias", f"{certificate.max_bias:g}"),
        ("mean variance", f"{certificate.mean_variance:.9g}"),
        ("worst variance", f"{certificate.worst_variance:.9g}"),
        ("objective", certificate.objective),
        ("lower bound", "none" if certificate.lower_bound is None else f"{certificate.lower_bound:.9g}"),
        ("optimality gap", "none" if certificate.optimality_gap is None else f"{certificate.optimality_gap:.3g}"),
        ("solver", f"{table.provenance.solver}, seed {table.provenance.seed}, {table.provenance.duration:.2f} s"),
    ):
        grid.add_row(name, value)
    console().print(grid, markup=False)
