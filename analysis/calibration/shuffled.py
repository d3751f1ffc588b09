"""Local epsilons with which shuffled letters keep a target, and the tables of these epsilons."""

from collections.abc import Callable
from functools import cache

from ...design.contracts.privacy import Privacy
from ...design.contracts.registry import Target
from ...design.shuffled.shuffled_items import shuffled_response_privacy
from ...design.shuffled.shuffled_table import shuffled_table_privacy
from ...design.tables.lookup_table import LookupTable
from ...errors import InfeasibleError
from ...solvers.bounds.privacy_constraint import EPSILON_LOW
from ...solvers.numerics.safe_root import safe_root

# How far below its target epsilon may end, as a share of it: where a step is a closed formula, and where it is the design of a table.
TOLERANCE, DESIGN_TOLERANCE = 1e-4, 2e-3
# What rounding a table to whole numbers may make of a closed formula's epsilon is less.
BACKED_OFF, MOST_RETREATS = 1e-6, 20
# Beyond this a letter says nearly all there is to say.
LARGEST_LOCAL_EPSILON = 15.0


def local_epsilon(
    privacy: Callable[[float], Privacy], target: Target, *, tolerance: float = TOLERANCE, start: float | None = None
) -> float:
    """Return the largest local epsilon up to 15 whose shuffled letters keep a target; errs toward more privacy.

    Parameters
    ----------
    privacy : callable
        What the letters of a local epsilon reveal when they are shuffled.
    target : Target
        What epsilon is to be; without delta, rounds add up.
    tolerance : float
        How far below the target epsilon may end, as a share of it.
    start : float or None
        Where to begin.

    Raises
    ------
    InfeasibleError
        If the local epsilon would have to be below 0.001.
    """
    if target.delta == 0:
        of_one_round = target.epsilon / target.rounds
        if of_one_round < EPSILON_LOW:
            raise InfeasibleError(
                f"epsilon must be at least {target.rounds * EPSILON_LOW:g} for {target.rounds} rounds, got {target.epsilon:g}"
            )
        return min(of_one_round, LARGEST_LOCAL_EPSILON)

    def epsilon_of(local: float) -> float:
        return privacy(local).epsilon(target.delta, target.adjacency, target.rounds, target.sampling, account=target.method)

    # No shuffled letter reveals more than by itself.
    first = start or min(LARGEST_LOCAL_EPSILON, max(1.5, target.epsilon / target.rounds))
    reached = epsilon_of(LARGEST_LOCAL_EPSILON) if first > LARGEST_LOCAL_EPSILON / 2 else target.epsilon + 1
    if reached <= target.epsilon:
        return LARGEST_LOCAL_EPSILON
    return safe_root(
        epsilon_of,
        target.epsilon,
        start=first,
        low=EPSILON_LOW,
        high=LARGEST_LOCAL_EPSILON,
        tolerance=tolerance * target.epsilon,
        jump=1e-4 if tolerance > TOLERANCE else 1e-7,
        name="the local epsilon",
    )


def shuffled_response_table(design: Callable[[float], LookupTable], categories: int, clients: int, target: Target) -> LookupTable:
    """Return randomised response as a table for a target: the epsilon is found by the closed formula, and kept by the table."""
    local = local_epsilon(lambda epsilon: shuffled_response_privacy(epsilon, categories, clients), target)
    for _ in range(MOST_RETREATS):
        table = design(local)
        report = shuffled_table_privacy(table, clients).report(target.delta, target.adjacency, target.rounds, target.sampling)
        if report.epsilon_by(target.method) <= target.epsilon:
            return table
        local *= 1 - BACKED_OFF
    raise InfeasibleError(f"epsilon must be larger than {target.epsilon:g} for a table of whole numbers to keep it")


def shuffled_designed_table(design: Callable[[float], LookupTable], clients: int, target: Target) -> LookupTable:
    """Return the table whose shuffled letters keep a target, from a design for each local epsilon."""
    designed = cache(design)
    # Of tables with this local epsilon randomised response is among those that reveal the most, and quick.
    start = local_epsilon(lambda epsilon: shuffled_response_privacy(epsilon, 2, clients), target)
    if target.delta == 0:
        return designed(start)
    found = local_epsilon(
        lambda epsilon: shuffled_table_privacy(designed(epsilon), clients), target, tolerance=DESIGN_TOLERANCE, start=start
    )
    return designed(found)
