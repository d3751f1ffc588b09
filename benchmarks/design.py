"""Design of tables: the staircase solver beside the paper's two, on 3-bit tables; and what certified optima and bounds take.

Each line names what it is compared with, in the same run on the same machine. The physical limit of the letter search is the simplex
method's own time: about 0.1 ms for a warm step of a program with 8 by 8 entries.
"""

import time
from collections.abc import Callable

import numpy as np

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.vector_calibration import calibrate_vector_table
from quietbits.design.tables.mvu import design_mvu
from quietbits.solvers.bounds.privacy_constraint import ratio_constraint
from quietbits.solvers.bounds.staircase import staircase_bound
from quietbits.solvers.table_search.alternating import solve_alternating
from quietbits.solvers.table_search.trust_region import solve_trust_region


def seconds(work: Callable[[], object]) -> float:
    """Return how long one call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    """Print the timings."""
    inputs, weights = np.linspace(0.0, 1.0, 8), np.full(8, 1 / 8)
    design_mvu(1.0, 2, 2)
    for epsilon in (0.5, 1.0, 3.0, 5.0, 10.0):
        constraint = ratio_constraint(epsilon, 3, None)
        staircase = seconds(lambda epsilon=epsilon: design_mvu(epsilon, 3, 3))
        rivals = []
        for solve in (solve_trust_region, solve_alternating):
            began = time.perf_counter()
            solve(inputs, 8, constraint, weights, starts=15, rng=np.random.default_rng(0))
            rivals.append(time.perf_counter() - began)
        print(
            f"3/3 bits, epsilon {epsilon:g}: exact table {staircase:.2f} s; over 15 starts of trust-region "
            f"{staircase / rivals[0]:.2f}, of alternating {staircase / rivals[1]:.2f}"
        )
    small = seconds(lambda: design_mvu(1.0, 3, 4))
    for bits_in, bits_out, metric in ((5, 6, None), (5, 6, "l1"), (6, 7, None)):
        taken = seconds(lambda sizes=(bits_in, bits_out, metric): design_mvu(1.0, *sizes))
        print(f"certified optimum {bits_in}/{bits_out} bits, {metric or 'local'}: {taken:.2f} s, {taken / small:.1f} times 3/4 bits")
    for bits_in, metric in ((6, None), (9, None), (9, "l1")):
        size = 2**bits_in
        # Of an epsilon of their own: bounds are kept, and the designs below compute theirs.
        taken = seconds(lambda n=bits_in, m=metric, b=size: staircase_bound(n, ratio_constraint(1.1, n, m), np.full(b, 1 / b)))
        print(f"lower bound for {bits_in} input bits, {metric or 'local'}: {taken:.2f} s, {taken / small:.1f} times 3/4 bits")
    for bits_in, bits_out, dimension in ((9, 3, 1), (5, 3, 128)):
        alone = seconds(lambda b=bits_in, m=bits_out: design_mvu(1.0, b, m, "l1"))
        ball = NormBall(dimension=dimension, norm=1.0)
        taken = seconds(lambda b=bits_in, m=bits_out, ball=ball: calibrate_vector_table(1.0, 1e-5, ball, b, m, "l1"))
        print(
            f"{bits_in}/{bits_out} bits, l1: {alone:.2f} s, {alone / small:.1f} times 3/4 bits; "
            f"calibrated for vectors of dimension {dimension}: {taken:.2f} s, {taken / alone:.1f} times that"
        )


if __name__ == "__main__":
    main()
