"""Wall time per table of a grid on two processes, against a loop that writes no table.

The benchmark prints a table's cost apart from its design, on tables of one bit, and then the time for 3 bits in and out. The physical limit
is the time of the linear programs that HiGHS solves in the loop, shared by the processes.
"""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))
from shared.growth import slope
from shared.physical_limit import beside_limit, with_linear_programs

from quietbits.analysis.table_grid.run import design_tables
from quietbits.analysis.table_grid.spec import TableGrid
from quietbits.analysis.table_grid.verification import verify_folder
from quietbits.design.tables.mvu import design_mvu

WORKERS = 2
# Number of tables that measure the speed of a plain loop.
LOOP = 10


def budgets(count: int) -> tuple[float, ...]:
    """Return a count of different epsilons, from 0.5 to 5."""
    return tuple(np.geomspace(0.5, 5.0, count).round(6).tolist())


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its finished children."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def wall_seconds(run: Callable[[], object]) -> float:
    """Return the wall time of a call that waits for several processes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def compare(bits: int, count: int, workers: int) -> None:
    """Print the time of a grid of tables against a loop."""
    chosen = budgets(count)[:: -(-count // LOOP)]
    design_mvu(1.0, bits, bits)
    _, alone, programs = with_linear_programs(lambda: [design_mvu(epsilon, bits, bits) for epsilon in chosen])
    alone, limit = alone / len(chosen), programs / len(chosen) / workers
    counts, times = (count // 4, count // 2, count), []
    for tables in counts:
        grid = TableGrid(epsilon=budgets(tables), bits_in=(bits,), bits_out=(bits,))
        with tempfile.TemporaryDirectory() as folder:
            run = partial(design_tables, grid, Path(folder), workers=workers)
            used = cpu_seconds()
            times.append(wall_seconds(run))
            used = cpu_seconds() - used
            again = wall_seconds(run)
            start = time.perf_counter()
            verified = verify_folder(Path(folder)).verified
            checked = time.perf_counter() - start
    taken = times[-1]
    processes = "process" if workers == 1 else "processes"
    print(f"{count} tables of {bits}/{bits} bits, {workers} {processes}, {'all' if verified else 'NOT'} verified")
    print(
        f"  {taken:.1f} s of wall time, {1e3 * taken / count:.1f} ms a table, {taken / count / alone:.2f} x a loop of designs, "
        f"{beside_limit(taken, limit * count, slope(counts, times))} of the number of tables"
    )
    if workers == 1:
        print(f"  beside its design a table takes {1e3 * (used / count - alone):.1f} CPU ms, the design {1e3 * alone:.1f}")
    print(f"  again, with nothing left to do: {again:.1f} s; verified in {1e3 * checked / count:.1f} ms a table")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=100, help="number of tables of 3 bits in and out")
    tables = parser.parse_args().tables
    compare(1, 500, workers=1)
    compare(3, tables, WORKERS)


if __name__ == "__main__":
    main()
