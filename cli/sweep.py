"""`quietbits sweep`: the experiments of a TOML file, run, saved and summarised."""

from pathlib import Path
from typing import Annotated

import typer

from .console import check_there, console, in_lines, run_resumable, say, warn
from .options import Cache, Dask, FileSeed, Workers, example_option

# A data frame of this many rows takes a gigabyte.
MOST_SUMMED_ROWS = 2_000_000
# Columns that are shown only if they hold several values.
VARIED = ("trust_model", "population", "nonzero", "scale", "clients", "dimension", "norm", "clip_norm", "rounds", "delta")


def sweep_command(
    spec: Annotated[Path, typer.Argument(help="The sweep, as TOML; --example prints one.")],
    output: Annotated[Path, typer.Option(help="Folder for the results; made if it is not there. An interrupted sweep resumes there.")],
    workers: Workers = 1,
    dask: Dask = None,
    cache: Cache = None,
    seed: FileSeed = None,
    example: Annotated[bool, example_option("sweeps", "a commented sweep that works")] = False,  # noqa: ARG001 - read before the others
) -> None:
    """Compare mechanisms of the registry in many settings (`load_sweep`, `run_tasks`).

    An interrupted sweep resumes.
    """
    check_there(spec)
    from dataclasses import replace

    from ..analysis.sweeps.run import run_sweep
    from ..analysis.sweeps.spec import load_sweep

    sweep = load_sweep(spec)
    if seed is not None:
        sweep = replace(sweep, seed=seed)
    run_resumable(
        output,
        lambda on_step: run_sweep(sweep.tasks(), output, workers=workers, cache=cache, dask=dask, on_step=on_step),
        lambda path, _: _print_summary(path),
    )


def _print_summary(path: Path) -> None:
    from math import isnan

    import pandas as pd
    from pyarrow.parquet import read_metadata
    from rich.table import Table

    from ..analysis.sweeps.summary import summarise_sweep

    if read_metadata(path).num_rows > MOST_SUMMED_ROWS:
        say(f"Results: {path}; they are too many to sum up here: {MOST_SUMMED_ROWS} rows at most")
        return
    results = pd.read_parquet(path)
    if len(results):
        summary = summarise_sweep(results)
        varied = [name for name in VARIED if name in summary and summary[name].nunique(dropna=False) > 1]
        table = Table(title="Mean squared error of the estimated mean")
        table.add_column("mechanism")
        # Headings take two lines, to leave room for mechanisms in a narrow terminal.
        for heading in (*varied, "bits per\nclient", "epsilon", "MSE", "s.e.", "answer\nzero", "MSE /\ncentral"):
            table.add_column(in_lines(heading.replace("_", " ")), justify="right")
        for row in summary.to_dict("records"):
            settings = (f"{row[name]:g}" if isinstance(row[name], int | float) else str(row[name]) for name in varied)
            numbers = (f"{row['bits_per_client']:g}", f"{row['epsilon']:g}", f"{row['mean_squared_error']:.4g}")
            maybe = (("standard_error", ".2g"), ("zero_squared_error", ".4g"), ("ratio_to_central", ".4g"))
            table.add_row(
                row["label"], *settings, *numbers, *("" if isnan(row[name]) else format(row[name], style) for name, style in maybe)
            )
        screen = console()
        screen.print(table)
        for promise in summary[["adjacency", "trust_model"]].drop_duplicates().to_dict("records"):
            screen.print(f"Guarantees: {promise['adjacency']} adjacency, {promise['trust_model']} trust model.")
        clipped = summary["clipped_share"].max()
        if clipped > 0:
            screen.print(
                f"Clipped: up to {100 * clipped:.3g} % of a setting's vectors lay outside the ball; MSE is from the mean of clipped ones.",
            )
        if summary["ratio_to_central"].notna().any():
            screen.print("Central: Gaussian noise that a trusted server would add, for the same epsilon, delta and adjacency.")
        useless = summary[summary["mean_squared_error"] > summary["zero_squared_error"]]
        if len(useless):
            names = ", ".join(dict.fromkeys(useless["label"]))
            warn(f"WARNING: in {len(useless)} of {len(summary)} settings answering zero, or the middle, is closer: of {names}.")
    say(f"Results: {path}")
