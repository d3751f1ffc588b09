"""Design of 3-bit tables: the staircase solver against the paper's two.

Each line names its baseline, which runs in the same run on the same machine. The physical limit of a design, and of a bound, is the time of
HiGHS for its linear programs.
"""

from functools import partial

import numpy as np
from shared.growth import slope
from shared.physical_limit import beside_limit, with_linear_programs
from shared.processor_time import seconds

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.vector_calibration import calibrate_vector_table
from quietbits.design.tables.mvu import design_mvu
from quietbits.solvers.bounds.privacy_constraint import ratio_constraint
from quietbits.solvers.bounds.staircase import staircase_bound
from quietbits.solvers.table_search.alternating import solve_alternating
from quietbits.solvers.table_search.trust_region import solve_trust_region

# BITS are the bits of inputs for exponents of growth; no other design uses this EPSILON.
BITS, EPSILON = (3, 4, 5), 1.2


def main() -> None:
    """Print times and ratios."""
    inputs, weights = np.linspace(0.0, 1.0, 8), np.full(8, 1 / 8)
    design_mvu(1.0, 2, 2)
    for epsilon in (0.5, 1.0, 3.0, 5.0, 10.0):
        constraint = ratio_constraint(epsilon, 3, None)
        _, staircase, programs = with_linear_programs(partial(design_mvu, epsilon, 3, 3))
        rivals = [
            seconds(partial(solve, inputs, 8, constraint, weights, starts=15, rng=np.random.default_rng(0)), 1)
            for solve in (solve_trust_region, solve_alternating)
        ]
        print(
            f"3/3 bits, epsilon {epsilon:g}: exact table {staircase:.2f} s; {staircase / rivals[0]:.2f} x 15 starts of trust-region, "
            f"{staircase / rivals[1]:.2f} x of alternating; {beside_limit(staircase, programs)}"
        )
    for metric in (None, "l1"):
        times = [seconds(partial(design_mvu, EPSILON, bits, 3, metric), 1) for bits in BITS]
        sizes = [1 << bits for bits in BITS]
        print(f"3 bits out, {metric or 'local'}: time grows with the {slope(sizes, times):.2f}th power of the number of inputs")
    small = seconds(partial(design_mvu, 1.0, 3, 4), 1)
    for bits_in, bits_out, metric in ((5, 6, None), (5, 6, "l1"), (6, 7, None)):
        _, taken, programs = with_linear_programs(partial(design_mvu, 1.0, bits_in, bits_out, metric))
        print(
            f"certified optimum {bits_in}/{bits_out} bits, {metric or 'local'}: {taken:.2f} s, {taken / small:.1f} x 3/4 bits; "
            f"{beside_limit(taken, programs)}"
        )
    for epsilon in (1.0, 6.0, 8.0, 9.0):
        _, taken, programs = with_linear_programs(partial(design_mvu, epsilon, 5, 4))
        print(f"5/4 bits, epsilon {epsilon:g}: {taken:.2f} s, {taken / small:.1f} x 3/4 bits; {beside_limit(taken, programs)}")
    local = 0.0
    # The bound's epsilons differ from the designs': bounds are cached, and the designs below must compute theirs.
    for metric, epsilon in ((None, 1.1), ("l1", 1.1), ("l1", 0.03), ("l1", 19.0), ("l2", 1.1), ("l2", 20.0)):
        sizes, times = [], []
        for bits in (5, 7, 9):
            bound = partial(staircase_bound, bits, ratio_constraint(epsilon, bits, metric), np.full(1 << bits, 1 / (1 << bits)))
            _, taken, programs = with_linear_programs(bound)
            sizes.append(1 << bits)
            times.append(taken)
        local = local or taken
        print(
            f"lower bound for 9 input bits, {metric or 'local'}, epsilon {epsilon:g}: {taken:.2f} s, {taken / local:.1f} x the local "
            f"bound, {taken / small:.1f} x 3/4 bits; "
            f"{beside_limit(taken, programs, slope(sizes, times))} of the number of inputs"
        )
    for bits_in, bits_out, dimension in ((9, 3, 1), (5, 3, 128), (9, 4, 128)):
        alone = seconds(partial(design_mvu, 1.0, bits_in, bits_out, "l1"), 1)
        ball = NormBall(dimension=dimension, norm=1.0)
        _, taken, programs = with_linear_programs(partial(calibrate_vector_table, 1.0, 1e-5, ball, bits_in, bits_out, "l1"))
        print(
            f"{bits_in}/{bits_out} bits, l1: {alone:.2f} s, {alone / small:.1f} x 3/4 bits; calibrated for vectors of dimension "
            f"{dimension}: {taken:.2f} s, {taken / alone:.1f} x that; {beside_limit(taken, programs)}"
        )


if __name__ == "__main__":
    main()
