"""`quietbits design grid` and `explore`: many tables at once, their verification, and a page over them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..files import shown_path
from .commands import complain
from .console import check_outputs, check_there, grid, progress_bar, run_resumable, say, warn, working
from .options import Dask, FileSeed, Workers, example_option

if TYPE_CHECKING:
    from ..analysis.sweeps.run import TaskFailure


def design_grid_command(
    spec: Annotated[Path, typer.Argument(help="The grid, as TOML; --example prints one.")],
    output: Annotated[Path, typer.Option(help="Folder for the tables; made if it is not there. An interrupted run resumes there.")],
    workers: Workers = 1,
    dask: Dask = None,
    seed: FileSeed = None,
    example: Annotated[bool, example_option("table_grid", "a commented grid that works")] = False,  # noqa: ARG001 - read before the others
) -> None:
    """Design, certify and export all tables of a grid (`load_grid`, `design_tables`).

    The folder also gets an index. An interrupted run resumes.
    """
    check_there(spec)
    from dataclasses import replace

    from ..analysis.table_grid.run import design_tables
    from ..analysis.table_grid.spec import load_grid
    from ..figures.report.table_index import write_table_index

    tables = load_grid(spec)
    if seed is not None:
        tables = replace(tables, seed=seed)

    def show(index: Path, failures: "tuple[TaskFailure, ...]") -> None:
        with working(f"drawing the page of {shown_path(index)}"):
            write_table_index(index, failures)
        _print_index(index)

    run_resumable(
        output,
        lambda on_step: design_tables(tables, output, workers=workers, dask=dask, on_step=on_step),
        show,
        beside=("index.parquet", "index.html"),
    )


def _print_index(index: Path) -> None:
    from ..analysis.sweeps.budgets import budget_warnings, guarantee_sentence
    from ..figures.report.table_index import PAGE_NAME, index_rows, metric_sentence
    from ..shown import gap_up

    tables = index_rows(index)
    gaps = {
        words: tables[column].dropna() if len(tables) else ()
        for words, column in (("any size", "optimality_gap"), ("same bits", "letters_gap"))
    }
    rows = (
        ("tables", f"{len(tables):,}, each as JSON, in {index.parent}"),
        *((f"largest gap, {words}", gap_up(max(shares)) if len(shares) else "none") for words, shares in gaps.items()),
        ("index", f"{index}, {index.with_name(PAGE_NAME)}"),
    )
    grid("Tables designed and certified", rows)
    if len(tables):
        say(guarantee_sentence(tables))
        for sentence in filter(None, (*budget_warnings(tables, ("epsilon", "metric")), metric_sentence(tables))):
            warn(f"WARNING: {sentence}")


def explore_command(
    folder: Annotated[Path, typer.Argument(help="Folder of lookup tables, such as that of `quietbits design grid`.")],
    output: Annotated[Path, typer.Option(help="Write the page here, as HTML; - is standard output.")],
) -> None:
    """Write a page with sliders and pictures over all tables of a folder (`write_explorer`).

    Every table is verified first. The page is one file that works offline.
    """
    check_there(folder)
    check_outputs(output, inputs=[folder, *(file for kind in ("*.json", "*.parquet") for file in folder.glob(kind))])
    from ..figures.explorer.explorer_page import write_explorer
    from ..shown import counted

    with progress_bar(f"listing the tables of {shown_path(folder)}") as on_step:
        tables = write_explorer(folder, output, on_step=on_step)
    say(f"Explorer of {counted(tables, 'table')}: {shown_path(output)}")


def verify_tables(folder: Path, json: bool) -> None:
    """Verify a folder of tables and print refused files (`verify_folder`).

    The exit code is 1 if any file is refused.
    """
    from json import dumps

    from ..analysis.table_grid.verification import verify_folder

    with progress_bar(f"listing the tables of {shown_path(folder)}") as on_step:
        checked = verify_folder(folder, on_step=on_step)
    if json:
        faults = [{"file": str(fault.path), "check": fault.check, "detail": fault.detail} for fault in checked.faults]
        say(dumps({"folder": str(folder), "tables": checked.tables, "verified": checked.verified, "faults": faults}))
    else:
        for fault in checked.faults:
            complain(str(fault))
        refused = f"{len(checked.faults)} file{'s' * (len(checked.faults) > 1)} refused"
        say(f"{folder}: {checked.tables} tables, {'all verified' if checked.verified else refused}")
    if not checked.verified:
        raise typer.Exit(1)
