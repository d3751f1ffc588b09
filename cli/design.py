"""`quietbits design`, `verify` and `export`: lookup tables."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import TableError
from ..files import is_stream, shown_path
from .commands import Command, Group, complain
from .console import check_outputs, check_there, grid, progress_bar, say, warn, working
from .deploy import verify_deployed
from .options import Megabytes, Seed, bytes_of, complete_column
from .table_grid import design_grid_command, verify_tables

if TYPE_CHECKING:
    from ..arrays import FloatArray
    from ..design.tables.lookup_table import LookupTable

Epsilon = Annotated[float, typer.Option(help="Privacy parameter, 0.001 to 20; more with a metric l<p>, p > 1.")]
BitsIn = Annotated[int, typer.Option(help="Bits of the grid that values are dithered to, 1 to 9.")]
BitsOut = Annotated[int, typer.Option(help="Bits of a client's message, 1 to 9.")]
Metric = Annotated[str | None, typer.Option(help="l1, l2 or l<p>: metric privacy with |y - y'|^p; none, or nothing: local privacy.")]


class Solver(StrEnum):
    """Ways to design an MVU table."""

    staircase = "staircase"
    trust_region = "trust-region"
    alternating = "alternating"


class DesignObjective(StrEnum):
    """Objectives of a designed table."""

    mean = "mean"
    worst = "worst"
    prior = "prior"


class ExportFormat(StrEnum):
    """Formats of exported tables."""

    npz = "npz"
    csv = "csv"
    parquet = "parquet"


design_app = typer.Typer(cls=Group, help="Design a mechanism and export it as a certified lookup table.", no_args_is_help=True)


@design_app.callback()
def _design_group() -> None:
    """Design a mechanism and export it as a certified lookup table."""


@design_app.command("mvu", cls=Command)
def design_mvu_command(
    epsilon: Epsilon,
    bits_in: BitsIn,
    bits_out: BitsOut,
    metric: Metric = None,
    solver: Annotated[Solver, typer.Option(help="How to design it.")] = Solver.staircase,
    objective: Annotated[DesignObjective, typer.Option(help="Variance to minimise.")] = DesignObjective.mean,
    prior_data: Annotated[Path | None, typer.Option(help="Public csv, parquet or npy file whose values are the prior.")] = None,
    prior_column: Annotated[str | None, typer.Option(help="Column of the prior's file.", autocompletion=complete_column)] = None,
    symmetric: Annotated[bool, typer.Option("--symmetric", help="Ask for a table that is its own mirror image.")] = False,
    interval: Annotated[tuple[float, float], typer.Option(metavar="LOW HIGH", help="Interval of the values.")] = (0.0, 1.0),
    seed: Seed = 0,
    certify_seconds: Annotated[
        float | None, typer.Option(help="Search so long for a proof among tables of as many bits, and for a better table.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write the table here, as JSON; - is standard output.")] = None,
) -> None:
    """Design and certify the unbiased private table of smallest variance (`design_mvu`)."""
    from ..design.tables.file import write_table
    from ..design.tables.letter_certification import certify_letters, check_search
    from ..design.tables.mvu import design_mvu

    check_outputs(output, inputs=[prior_data])
    if certify_seconds is not None:
        check_search(seconds=certify_seconds)
    if (objective is DesignObjective.prior) != (prior_data is not None):
        raise ValueError("prior_data must be given with the objective prior, and only with it: --objective prior --prior-data FILE")
    wanted = str(objective) if prior_data is None else _prior(prior_data, prior_column, interval, bits_in)
    with progress_bar(f"designing a table of {bits_in} bits in, {bits_out} bits out") as on_step:
        table = design_mvu(
            epsilon,
            bits_in,
            bits_out,
            metric=metric,
            objective=wanted,
            solver=str(solver),
            symmetric=symmetric,
            interval=interval,
            seed=seed,
            on_step=on_step,
        )
    if certify_seconds is not None:
        with progress_bar("proving a bound among tables of as many bits") as on_step:
            table = certify_letters(table, seconds=certify_seconds, on_step=on_step).best
    if output is not None:
        write_table(table, output)
    _print_certificate(table, f"written to {shown_path(output)}" if output is not None else "not written: name a file with --output")


design_app.command("grid", cls=Command)(design_grid_command)


def _prior(data: Path, column: str | None, interval: tuple[float, float], bits_in: int) -> "FloatArray":
    from ..analysis.study.column_data import DataColumn, grid_prior, read_column

    values = read_column(data, column)
    outside = DataColumn(data.name, data.name, values, interval).clipped_count
    if outside:
        low, high = interval
        complain(f"WARNING: {outside} of {len(values)} values of the prior lie outside [{low:g}, {high:g}] and count as its nearer end")
    return grid_prior(values, interval, bits_in)


def verify_command(
    file: Annotated[Path, typer.Argument(help="Lookup table, as JSON, or a folder of tables.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    most_megabytes: Megabytes = None,
) -> None:
    """Recompute a table's certificate from its file, without a solver (`read_table`).

    The exit code is 1 if anything differs. For a folder of a deployment, the command recomputes the mechanism, its guarantee, its clients'
    code and known answers (`verify_deployment`). For a folder of tables, the command verifies all tables, and the index if there is one
    (`verify_folder`).
    """
    if (file / "deployment.json").is_file():
        verify_deployed(file, json)
        return
    if file.is_dir():
        verify_tables(file, json)
        return
    from json import dumps

    from ..design.tables.file import table_document

    try:
        table = _read(file, most_megabytes)
    except TableError as error:
        if json:
            say(dumps({"file": shown_path(file), "verified": False, "check": error.check, "detail": error.detail}))
        else:
            complain(str(error))
        raise typer.Exit(1) from error
    if json:
        say(dumps({"file": shown_path(file), "verified": True, "certificate": table_document(table)["certificate"]}))
    else:
        _print_certificate(table, f"{shown_path(file)}: verified")


def certify_command(
    file: Annotated[Path, typer.Argument(help="Lookup table, as JSON.")],
    seconds: Annotated[float, typer.Option(help="Time after which the search stops.")] = 60.0,
    tolerance: Annotated[float, typer.Option(help="Gap at which the search stops, as a share of the objective.")] = 1e-3,
    output: Annotated[
        Path | None, typer.Option(help="Write the certified table here; by default over FILE. Its weights are the same.")
    ] = None,
    better: Annotated[
        Path | None,
        typer.Option(help="Write a better table here if the search finds one; by default beside the output, as STEM-better.json."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    most_megabytes: Megabytes = None,
) -> None:
    """Prove how much better a table with as many letters can be (`certify_letters`).

    The proof becomes part of the table's certificate. `verify` checks it without a solver.
    """
    check_there(file)
    from json import dumps

    from ..design.tables.file import write_table
    from ..design.tables.letter_certification import certify_letters, check_search

    check_search(seconds=seconds, tolerance=tolerance)
    output = file if output is None else output
    beside = file if is_stream(output) else output
    better = beside.with_name(f"{beside.stem}-better.json") if better is None else better
    check_outputs(output, better, inputs=[] if output == file else [file])
    before = _read(file, most_megabytes)
    with progress_bar("proving a bound among tables of as many bits") as on_step:
        result = certify_letters(before, tolerance=tolerance, seconds=seconds, on_step=on_step)
    write_table(result.table, output)
    if result.better is not None:
        write_table(result.better, better)
    if json:
        searched = {"file": shown_path(output), **_gaps(result.table), "nodes": result.nodes, "seconds": result.seconds}
        better_table = None if result.better is None else {"file": shown_path(better), **_gaps(result.better)}
        say(dumps({**searched, "better": better_table}))
        return
    _print_certificate(result.table, f"written to {shown_path(output)}, after {result.nodes:,} nodes in {result.seconds:.1f} s")
    after = result.table.certificate
    gained = (after.letters_lower_bound or 0.0) > (before.certificate.letters_lower_bound or 0.0)
    if (after.letters_gap or 0.0) > tolerance and not gained:
        warn("The search proved nothing beyond the bound that the file had: more --seconds may.")
    if result.better is not None:
        _print_certificate(result.better, f"a better table: written to {shown_path(better)}")


def _gaps(table: "LookupTable") -> dict[str, float | None]:
    certificate = table.certificate
    return {
        "lower_bound": certificate.lower_bound,
        "gap": certificate.optimality_gap,
        "letters_lower_bound": certificate.letters_lower_bound,
        "letters_gap": certificate.letters_gap,
    }


def export_command(
    file: Annotated[Path, typer.Argument(help="Lookup table, as JSON.")],
    file_format: Annotated[ExportFormat, typer.Option("--format", help="What to write.")],
    output: Annotated[Path, typer.Option(help="Where to write it; - is standard output.")],
    most_megabytes: Megabytes = None,
) -> None:
    """Verify a table and write it in another format (`export_table`).

    `quietbits deploy` writes the table's clients as source code.
    """
    from ..design.tables.export import export_table

    check_outputs(output, inputs=[file])
    export_table(_read(file, most_megabytes), output, str(file_format))


def _read(file: Path, most_megabytes: int | None) -> "LookupTable":
    from ..design.tables.file import MOST_BYTES, read_table

    with working(f"verifying {shown_path(file)}"):
        return read_table(file, bytes_of(most_megabytes, MOST_BYTES))


def _print_certificate(table: "LookupTable", title: str) -> None:
    certificate, duration = table.certificate, table.provenance.duration
    low, high = table.interval
    rows = (
        ("mechanism", f"{table.mechanism}, {table.bits_in} bits in, {table.bits_out} bits out, values from {low:g} to {high:g}"),
        ("guarantee", str(table.guarantee)),
        ("realised epsilon", repr(certificate.realised_epsilon)),
        ("largest bias", f"{certificate.max_bias:g}"),
        ("mean variance", _both_scales(certificate.mean_variance, high - low)),
        ("worst variance", _both_scales(certificate.worst_variance, high - low)),
        ("objective", certificate.objective),
        ("lower bound, any size", "none" if certificate.lower_bound is None else _both_scales(certificate.lower_bound, high - low)),
        *_letters_bound_row(table),
        ("gaps", table.gaps),
        ("solver", f"{table.provenance.solver}, seed {table.provenance.seed}" + ("" if duration is None else f", {duration:.2f} s")),
    )
    grid(title, rows)


def _letters_bound_row(table: "LookupTable") -> tuple[tuple[str, str], ...]:
    certificate = table.certificate
    bound = certificate.letters_lower_bound
    if bound is None or bound == certificate.lower_bound:
        return ()
    low, high = table.interval
    return ((f"lower bound, {table.bits_out} bit{'s' if table.bits_out > 1 else ''}", _both_scales(bound, high - low)),)


def _both_scales(variance: float, length: float) -> str:
    """Return a variance on [0, 1], as in certificates, and in squared units of the values."""
    return f"{variance:.9g} on [0, 1]" + ("" if length == 1 else f"; {variance * length**2:.9g} in squared units of the values")
