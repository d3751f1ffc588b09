"""Bounds for a given number of letters: proven tolerance against time and nodes, and their growth.

Each line is a search down to a tolerance, from the letters of a designed table, and the replay of its proof. The replay's time is also a
share of the search's. Local privacy and the average variance come first; then the other kinds of objective and privacy.
"""

from functools import cache, partial

import numpy as np
from shared.growth import slope
from shared.processor_time import timed

from quietbits.solvers.bounds.hitting_set import replay
from quietbits.solvers.bounds.letter_clauses import TableVariance
from quietbits.solvers.bounds.letter_search_tree import LetterBound, bound_letters
from quietbits.solvers.bounds.privacy_constraint import ratio_constraint
from quietbits.solvers.bounds.staircase import staircase_bound
from quietbits.solvers.table_search.table_strategy import choose_design

# Bits in, bits out, epsilon and tolerance; in other kinds, also the objective and the metric.
CELLS = (
    *((3, 1, epsilon, 1e-6) for epsilon in (0.5, 1.0, 3.0)),
    *((3, 2, epsilon, 1e-3) for epsilon in (0.5, 1.0, 3.0)),
    (3, 2, 5.0, 1e-2),
    (3, 3, 0.5, 6e-4),
    (3, 3, 1.0, 1.5e-3),
    (3, 3, 3.0, 3.5e-3),
    (3, 3, 5.0, 1e-4),
    (4, 2, 1.0, 5e-3),
    (4, 3, 1.0, 2.5e-3),
)
KINDS = (("lower half", None), ("largest", None), ("average", "l1"), ("lower half", "l1"), ("largest", "l1"), ("average", "l2"))
OTHER_KINDS = tuple(
    (3, bits_out, epsilon, tolerance, objective, metric)
    for objective, metric in KINDS
    for bits_out, epsilon, tolerance in ((1, 1.0, 1e-6), (2, 1.0, 1e-3), (2, 3.0, 2e-3), (2, 5.0, 1e-2), (3, 1.0, 1.5e-3), (3, 3.0, 3.5e-3))
)
# Searches end after this time on the clock; the line then states what was proven.
SECONDS = 120.0


def weights_of(objective: str, inputs: int) -> np.ndarray | None:
    """Return equal weights ("average"), weights of 0 on the upper half of the grid ("lower half"), or None ("largest")."""
    if objective == "largest":
        return None
    return np.full(inputs, 1 / inputs) if objective == "average" else np.repeat([2 / inputs, 0.0], inputs // 2)


@cache
def problem(bits_in: int, bits_out: int, epsilon: float, objective: str, metric: str | None) -> tuple[TableVariance, np.ndarray]:
    """Return the objective, and the letters of the designed table."""
    count, constraint = 2**bits_in, ratio_constraint(epsilon, bits_in, metric)
    weights = weights_of(objective, count)
    design = choose_design(bits_in, bits_out, constraint, weights, False, 16, np.random.default_rng(0), 1)
    return TableVariance(np.arange(count) / (count - 1), weights, constraint), design.design(constraint).alphabet


def searched(
    bits_in: int, bits_out: int, epsilon: float, tolerance: float, objective: str = "average", metric: str | None = None
) -> tuple[LetterBound, float]:
    """Run a search, print its line, and return its result and its processor time."""
    variance, alphabet = problem(bits_in, bits_out, epsilon, objective, metric)
    bound, taken = timed(partial(bound_letters, variance, alphabet, tolerance=tolerance, seconds=SECONDS))
    checked, replayed = timed(partial(replay, bound.vectors, bound.splits, variance, len(alphabet), bound.lower_bound))
    unlimited = 1 - staircase_bound(bits_in, variance.constraint, variance.input_weights).lower_bound / bound.value
    kind = "" if (objective, metric) == ("average", None) else f" ({objective}, {metric or 'local'})"
    print(
        f"{bits_in}/{bits_out} bits{kind}, epsilon {epsilon:g}: tolerance {bound.gap:.2g} (sought {tolerance:g}; any number of letters "
        f"{unlimited:.2g}) in {taken:.1f} s, {bound.nodes} nodes, {len(bound.vectors)} dual vectors; replay "
        f"{'proves it' if checked.proven else 'FAILS'} in {replayed:.2f} s, {replayed / taken:.2f} x the search, {checked.nodes} nodes",
        flush=True,
    )
    return bound, taken


def main() -> None:
    """Print tolerances, times and nodes."""
    for cell in (*CELLS, *OTHER_KINDS):
        searched(*cell)
    for name, sizes, cells in (
        ("the inverse tolerance", (50, 100, 200, 400), [(3, 2, 1.0, 1 / inverse) for inverse in (50, 100, 200, 400)]),
        ("the number of inputs", (4, 8, 16), [(bits, 2, 1.0, 5e-3) for bits in (2, 3, 4)]),
        ("the number of letters", (2, 4, 8), [(3, bits, 1.0, 2e-3) for bits in (1, 2, 3)]),
    ):
        results = [searched(*cell) for cell in cells]
        print(
            f"time grows with the {slope(sizes, [taken for _, taken in results]):.2f}th power of {name}, "
            f"nodes with the {slope(sizes, [bound.nodes for bound, _ in results]):.2f}th"
        )


if __name__ == "__main__":
    main()
