"""Objectives and CPU seconds of tables against a record: 200 small tables, or tables at large epsilon and with 4 bits out.

The benchmark has no growing size: the record has many small tables. The physical limit is the time of the linear programs that HiGHS
solves. ``--record`` writes the file of the record; ``--every K`` takes one setting in K; ``--large`` takes the second grid, whose record is
``design_grid_large.csv``.
"""

import argparse
import csv
import itertools
from functools import partial
from pathlib import Path

from shared.physical_limit import beside_limit, with_linear_programs

from quietbits.design.tables.mvu import design_mvu

RECORDS = {large: Path(__file__).with_name(f"design_grid{'_large' if large else ''}.csv") for large in (False, True)}
# The exact tables' weights have this relative rounding.
ROUNDING = 1e-7
COLUMNS = ("bits_in", "bits_out", "metric", "objective", "epsilon", "value", "seconds")


def settings(*, large: bool) -> list[tuple[int, int, str, str, float]]:
    """Return bits in and out, metric, objective and epsilon of every setting; `large` means large epsilon and 4 bits out."""
    if large:
        return [(*bits, "local", "mean", epsilon) for bits in ((3, 3), (4, 3), (4, 4), (5, 4)) for epsilon in (6.0, 7.0, 8.0, 10.0)]
    small = itertools.product((1, 2, 3), (1, 2, 3), ("local", "l1", "l2"), ("mean",), (0.25, 0.5, 1.0, 2.0, 4.0, 8.0))
    worst = itertools.product((2, 3), (2, 3), ("local",), ("worst",), (0.5, 1.0, 2.0, 4.0, 8.0))
    finer = (
        (*bits, metric, "mean", epsilon) for bits in ((4, 2), (4, 3), (5, 3)) for metric in ("local", "l1") for epsilon in (0.5, 1.0, 4.0)
    )
    return [*small, *worst, *finer]


def main() -> None:
    """Design the tables, and compare or record them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the record")
    parser.add_argument("--every", type=int, default=1, help="take one setting of this many")
    parser.add_argument("--large", action="store_true", help="take the grid of large epsilon and 4 bits out")
    arguments = parser.parse_args()
    path = RECORDS[arguments.large]
    design_mvu(1.0, 2, 2)
    rows, solving = [], 0.0
    for bits_in, bits_out, metric, objective, epsilon in settings(large=arguments.large)[:: arguments.every]:
        chosen = None if metric == "local" else metric
        table, taken, programs = with_linear_programs(partial(design_mvu, epsilon, bits_in, bits_out, chosen, objective))
        solving += programs
        variance = table.certificate.worst_variance if objective == "worst" else table.certificate.mean_variance
        rows.append((bits_in, bits_out, metric, objective, epsilon, variance, round(taken, 4)))
    if arguments.record:
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    with path.open(newline="") as file:
        record = {tuple(row[:5]): (float(row[5]), float(row[6])) for row in itertools.islice(csv.reader(file), 1, None)}
    worse, better, before, after = 0, 0, 0.0, 0.0
    for *setting, variance, taken in rows:
        recorded, seconds = record[tuple(map(str, setting))]
        before, after = before + seconds, after + taken
        better += variance < recorded * (1 - ROUNDING)
        if variance > recorded * (1 + ROUNDING):
            worse += 1
            print(f"worse by {variance / recorded - 1:.2g}: {setting}")
    ratios = f"{after / before:.2f} x those on record, {beside_limit(after, solving)}"
    print(f"{len(rows)} settings: {worse} worse, {better} better; {after:.1f} CPU seconds, {ratios}")


if __name__ == "__main__":
    main()
