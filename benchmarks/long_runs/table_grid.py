"""Tables in bulk: seconds a table on two processes, beside a loop that designs the same tables on one and writes none of them.

Prints what a table costs apart from its design, on tables of one bit, and then the speed for 3 bits in and out.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from quietbits.analysis.table_grid.run import design_tables
from quietbits.analysis.table_grid.spec import TableGrid
from quietbits.analysis.table_grid.verification import verify_folder
from quietbits.design.tables.mvu import design_mvu

WORKERS = 2
# As many tables tell the speed of a plain loop.
LOOP = 10


def budgets(count: int) -> tuple[float, ...]:
    """Return as many different epsilons, from 0.5 to 5."""
    return tuple(np.geomspace(0.5, 5.0, count).round(6).tolist())


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of those that it has waited for."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def compare(bits: int, count: int, workers: int) -> None:
    """Print what a grid of tables takes, beside a loop."""
    grid = TableGrid(epsilon=budgets(count), bits_in=(bits,), bits_out=(bits,))
    chosen = grid.epsilon[:: -(-count // LOOP)]
    design_mvu(1.0, bits, bits)
    start = time.process_time()
    for epsilon in chosen:
        design_mvu(epsilon, bits, bits)
    alone = (time.process_time() - start) / len(chosen)
    with tempfile.TemporaryDirectory() as folder:
        start, used = time.perf_counter(), cpu_seconds()
        design_tables(grid, Path(folder), workers=workers)
        seconds, used = time.perf_counter() - start, cpu_seconds() - used
        start = time.perf_counter()
        design_tables(grid, Path(folder), workers=workers)
        again = time.perf_counter() - start
        start = time.perf_counter()
        verified = verify_folder(Path(folder)).verified
        checked = time.perf_counter() - start
    processes = "process" if workers == 1 else "processes"
    print(f"{count} tables of {bits}/{bits} bits, {workers} {processes}, {'all' if verified else 'NOT'} verified")
    print(f"  {seconds:.1f} s, {1e3 * seconds / count:.1f} ms a table, {alone * count / seconds:.2f} x the speed of a loop of designs")
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
