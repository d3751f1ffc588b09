"""`quietbits estimate` and `quietbits demo`: mechanisms on a statistic of real data."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..files import STANDARD_OUTPUT, check_folder, shown_path
from .commands import Command, Group, complain
from .console import check_outputs, console, or_none, progress_bar, say, show_document, typed_command, working
from .design import BitsIn, BitsOut, Epsilon, Metric
from .options import Adjacency, Json, Megabytes, Output, Seed, bytes_of, complete_column, completed_by

if TYPE_CHECKING:
    from ..analysis.study.column_data import DataColumn
    from ..analysis.study.frequency_study import FrequencyStudy
    from ..analysis.study.mean_study import MeanStudy

Interval = Annotated[tuple[float, float] | None, typer.Option(metavar="LOW HIGH", help="Public interval; values outside are clipped.")]


def _names_for_items() -> list[str]:
    from ..analysis.catalogue.registry import REGISTRY

    return [name for name, entry in REGISTRY.items() if any(domain.__name__ == "Categories" for domain in entry.domains)]


class Objective(StrEnum):
    """Objectives of the compared tables."""

    mean = "mean"
    worst = "worst"


estimate_app = typer.Typer(
    cls=Group,
    help="Try private mechanisms on a population's statistic: an experiment, not a private release.",
    no_args_is_help=True,
)


@estimate_app.callback()
def _estimate_group() -> None:
    """Try private mechanisms on a population's statistic: an experiment, not a private release."""


@estimate_app.command("mean", cls=Command)
def estimate_mean_command(
    data: Annotated[Path, typer.Option(help="csv, parquet or npy file with one value per client.")],
    epsilon: Epsilon,
    column: Annotated[
        str | None, typer.Option(help="The column; not needed for an npy array with one dimension.", autocompletion=complete_column)
    ] = None,
    interval: Interval = None,
    bits_in: BitsIn = 5,
    bits_out: BitsOut = 3,
    metric: Metric = None,
    objective: Annotated[Objective, typer.Option(help="Variance that the MVU tables minimise.")] = Objective.mean,
    seed: Seed = 0,
    most_megabytes: Megabytes = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report here.")] = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Compare MVU with baselines on the mean of a column (`study_mean`).

    This is an experiment, not a private release. All mechanisms run on the same values, the seed repeats their noise, and the true mean is
    shown.

    State the interval with --interval, from public knowledge. Without it, the command takes the smallest and the largest value, which is
    not private: a warning says so here, in the report and in the results. Another warning gives the number of values outside the interval,
    and the shift of the mean by clipping.
    """
    from ..analysis.study.column_data import load_column
    from ..analysis.study.column_file import MOST_BYTES

    check_outputs(report, output, inputs=[data])
    with working(f"reading {shown_path(data)}"):
        values = load_column(data, column, interval, most_bytes=bytes_of(most_megabytes, MOST_BYTES))
    study = _run_study(values, epsilon, bits_in, bits_out, metric, objective, seed)
    _write_study(study, report, output)
    if json:
        from json import dumps

        from ..analysis.study.results_file import results_document

        for warning in study.warnings:
            complain(f"WARNING: {warning}")
        if output != STANDARD_OUTPUT:
            say(dumps(results_document(study, command=typed_command()), allow_nan=False))
    else:
        _print_study(study)
        _say_files(Report=report, Results=output)


@estimate_app.command("frequencies", cls=Command)
def estimate_frequencies_command(
    data: Annotated[Path, typer.Option(help="csv, parquet or txt file with one item per client.")],
    mechanism: Annotated[str, typer.Option(help="A mechanism of the registry for items.", autocompletion=completed_by(_names_for_items))],
    column: Annotated[
        str | None, typer.Option(help="The column; not for a txt file, which has an item on each line.", autocompletion=complete_column)
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Privacy parameter; without effect on a mechanism that keeps no budget.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Failure probability; 0 for pure privacy.")] = 0.0,
    adjacency: Adjacency = None,
    domain: Annotated[Path | None, typer.Option(help="txt file with the public list of items, one on each line.")] = None,
    buckets: Annotated[int | None, typer.Option(help="Hash items into this many public buckets; no list is needed then.")] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A design choice of the mechanism; may be repeated.")
    ] = None,
    count_share: Annotated[
        float | None,
        typer.Option(
            help="Share of epsilon for a first round that counts different items, and so sizes the second: for "
            "sparse-discrete-gaussian-frequencies, by default without."
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="Items that are listed.")] = 20,
    seed: Seed = 0,
    most_megabytes: Megabytes = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report here.")] = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Run a mechanism on the frequencies of a column's items (`study_frequencies`).

    This is an experiment, not a private release. The seed repeats the noise, and true frequencies are shown.

    State the list of items with --domain, or hash them with --buckets. Without either, the command takes the list from the data, which is
    not private: a warning says so here, in the report and in the results.
    """
    from ..analysis.catalogue.registry import entry_named
    from ..analysis.catalogue.shared_options import typed_options
    from ..analysis.study.column_file import MOST_BYTES
    from ..analysis.study.frequency_study import study_frequencies
    from ..analysis.study.item_column import load_items

    check_outputs(report, output, inputs=[data, domain])
    entry = entry_named(mechanism)
    choices = typed_options(mechanism, entry.options, option or [])
    with working(f"reading {shown_path(data)}"):
        items = load_items(data, column, domain, buckets, most_bytes=bytes_of(most_megabytes, MOST_BYTES))
    with progress_bar(f"running {mechanism} on {len(items.items)} clients") as on_step:
        study = study_frequencies(
            items,
            mechanism,
            epsilon,
            delta,
            adjacency=adjacency,
            options=choices,
            count_share=count_share,
            top=top,
            seed=seed,
            on_step=on_step,
        )
    if report is not None:
        from ..figures.report.frequency_report import write_frequency_report

        with working(f"drawing {shown_path(report)}"):
            write_frequency_report(study, report, command=typed_command())
    show_document(study.document(), json, output)
    if not json:
        _print_frequencies(study)
        _say_files(Report=report)


def _print_frequencies(study: "FrequencyStudy") -> None:
    from rich.table import Table

    screen, column = console(), study.column
    screen.print(study.notice, style="bold")
    if not column.is_public:
        screen.print("WARNING: the list of items was taken from the data. This is not private: state one with --domain.", style="bold red")
    table = Table(title=f"Frequencies of {column.name}: {len(column.items)} clients, {column.categories} items ({column.numbering})")
    table.add_column("item")
    for heading in ("estimate", "standard error", "true"):
        table.add_column(heading, justify="right")
    for row in study.items:
        table.add_row(row.item, *(f"{number:.4g}" for number in (row.frequency, row.standard_error, row.true_frequency)))
    screen.print(table)
    screen.print(
        f"{sum(item.exceeds_noise for item in study.items)} of these items exceed the noise: where errors are normal, the probability that "
        "any item that nobody holds exceeds it is at most 0.05.",
    )
    screen.print(
        f"Squared error {study.squared_error:.4g}, predicted {study.predicted_squared_error:.4g}; all items equally frequent "
        f"{study.zero_squared_error:.4g}; trusted server's noise {or_none(study.central_squared_error, 4)}; proven least "
        f"{or_none(study.lower_bound, 4)}. {study.bits_per_client:g} bits per client.",
    )
    if study.count is not None:
        screen.print(
            f"A first round, with epsilon = {study.count.epsilon:.4g} and {study.count.bits_per_client:g} of these bits, counted "
            f"{study.count.distinct_items:.0f} different items, {study.count.upper} at most.",
        )
    screen.print(f"Guarantee of {study.mechanism}: {study.guarantee}.")


def demo_command(
    output: Annotated[Path, typer.Option(help="Folder for the report, the table and the results; made if it is not there.")],
    epsilon: Epsilon = 3.0,
    bits_in: BitsIn = 5,
    bits_out: BitsOut = 3,
    seed: Seed = 0,
) -> None:
    """Run a complete example on real data: the mean body mass index of 442 patients.

    The example calls `study_mean` and `write_report`.
    """
    from ..analysis.study.column_data import body_mass_index
    from ..design.tables.file import write_table

    check_folder(output)
    study = _run_study(body_mass_index(), epsilon, bits_in, bits_out, None, Objective.mean, seed)
    output.mkdir(parents=True, exist_ok=True)
    report, results, table = (output / name for name in ("report.html", "results.json", "table.json"))
    _write_study(study, report, results)
    write_table(study.table, table)
    _print_study(study)
    _say_files(Report=report, Results=results, Table=table)


def _run_study(
    data: "DataColumn", epsilon: float, bits_in: int, bits_out: int, metric: str | None, objective: Objective, seed: int
) -> "MeanStudy":
    from ..analysis.study.mean_study import study_mean

    with progress_bar("designing tables") as on_step:
        return study_mean(data, epsilon, bits_in, bits_out, metric=metric, objective=str(objective), seed=seed, on_step=on_step)


def _write_study(study: "MeanStudy", report: Path | None, results: Path | None) -> None:
    from ..analysis.study.results_file import write_results
    from ..figures.report.report import write_report

    if report is not None:
        with working(f"drawing {shown_path(report)}"):
            write_report(study, report, command=typed_command())
    if results is not None:
        write_results(study, results, command=typed_command())


def _say_files(**files: Path | None) -> None:
    for kind, path in files.items():
        if path is not None:
            say(f"{kind}: {shown_path(path)}")


def _print_study(study: "MeanStudy") -> None:
    from rich.table import Table

    from ..figures.report.report import headline

    screen = console()
    screen.print(study.notice, style="bold")
    for warning in study.warnings:
        screen.print(f"WARNING: {warning}", style="bold red")
    comparison = study.comparison
    table = Table(title=f"Mean of {study.data.name}: {comparison.clients} clients, true mean {comparison.true_mean:.6g}")
    table.add_column("mechanism")
    for heading in ("bits per client", "estimate", "error", "s.e., these values", "s.e., any values", "variance / bound"):
        table.add_column(heading, justify="right")
    for row in comparison.estimates:
        numbers = (row.estimate, row.error, row.standard_error, row.worst_standard_error)
        ratio = "" if row.ratio_to_bound is None else f"{row.ratio_to_bound:.3f}"
        table.add_row(row.mechanism, f"{row.bits_per_client:g}", *(f"{number:.4g}" for number in numbers), ratio)
    screen.print(table)
    # Epsilons are compared as printed: the realised epsilon of a table differs from the requested one in the last digits.
    for guarantee in dict.fromkeys(str(row.guarantee) for row in comparison.estimates):
        names = [row.mechanism for row in comparison.estimates if str(row.guarantee) == guarantee]
        whose = "every mechanism" if len(names) == len(comparison.estimates) else "; ".join(names)
        screen.print(f"Guarantee of {whose}: {guarantee}.")
    if not comparison.clipped:
        low, high = comparison.interval
        screen.print(f"All {comparison.clients} values lie inside [{low:g}, {high:g}].")
    for sentence in headline(study):
        screen.print(sentence)
