"""Local epsilons with which shuffled letters keep a budget, and their tables."""

from collections.abc import Callable
from functools import cache

from ...errors import InfeasibleError
from ...solvers.bounds.privacy_constraint import EPSILON_LOW
from ...solvers.numerics.safe_root import safe_root
from ..contracts.privacy import Privacy
from ..contracts.task import Budget
from ..tables.lookup_table import LookupTable
from .shuffled_items import shuffled_response_privacy
from .shuffled_table import shuffled_table_privacy

# Largest relative distance of epsilon below its budget, for steps by a closed formula and for steps that design a table.
TOLERANCE, DESIGN_TOLERANCE = 1e-4, 2e-3
# Relative decrease of the local epsilon if rounding a table to whole numbers breaks the budget, and largest number of such decreases.
BACKED_OFF, MOST_RETREATS = 1e-6, 20
# Largest epsilon of a letter; beyond it, a letter reveals nearly everything.
LARGEST_LOCAL_EPSILON = 15.0


def local_epsilon(
    privacy: Callable[[float], Privacy], budget: Budget, *, tolerance: float = TOLERANCE, start: float | None = None
) -> float:
    """Return the largest local epsilon, up to 15, that keeps a budget, rounded down.

    Parameters
    ----------
    privacy : callable
        Function that returns the privacy of shuffled letters for a local epsilon.
    budget : Budget
        The target for epsilon; without delta, the epsilons of rounds add up.
    tolerance : float
        Largest relative distance of epsilon below the budget.
    start : float or None
        First local epsilon that the search tries.

    Raises
    ------
    InfeasibleError
        If the local epsilon would have to be below 0.001.
    """
    if budget.delta == 0:
        of_one_round = budget.epsilon / budget.rounds
        if of_one_round < EPSILON_LOW:
            raise InfeasibleError(
                f"epsilon must be at least {budget.rounds * EPSILON_LOW:g} for {budget.rounds} rounds, got {budget.epsilon:g}"
            )
        return min(of_one_round, LARGEST_LOCAL_EPSILON)

    def epsilon_of(local: float) -> float:
        return privacy(local).epsilon(budget.delta, budget.adjacency, budget.rounds, budget.sampling, account=budget.method)

    # Shuffling never weakens the privacy of a letter.
    first = start or min(LARGEST_LOCAL_EPSILON, max(1.5, budget.epsilon / budget.rounds))
    reached = epsilon_of(LARGEST_LOCAL_EPSILON) if first > LARGEST_LOCAL_EPSILON / 2 else budget.epsilon + 1
    if reached <= budget.epsilon:
        return LARGEST_LOCAL_EPSILON
    return safe_root(
        epsilon_of,
        budget.epsilon,
        start=first,
        low=EPSILON_LOW,
        high=LARGEST_LOCAL_EPSILON,
        tolerance=tolerance * budget.epsilon,
        jump=1e-4 if tolerance > TOLERANCE else 1e-7,
        name="the local epsilon",
    )


def shuffled_response_table(design: Callable[[float], LookupTable], categories: int, clients: int, budget: Budget) -> LookupTable:
    """Return randomised response as a table that keeps a budget when shuffled.

    A closed formula gives the epsilon.
    """
    hiding = budget.survivors(clients)
    local = local_epsilon(lambda epsilon: shuffled_response_privacy(epsilon, categories, hiding), budget)
    for _ in range(MOST_RETREATS):
        table = design(local)
        report = shuffled_table_privacy(table, hiding).report(budget.delta, budget.adjacency, budget.rounds, budget.sampling)
        if report.epsilon_by(budget.method) <= budget.epsilon:
            return table
        local *= 1 - BACKED_OFF
    raise InfeasibleError(f"epsilon must be larger than {budget.epsilon:g} for a table of whole numbers to keep it")


def shuffled_designed_table(design: Callable[[float], LookupTable], clients: int, budget: Budget) -> LookupTable:
    """Return the table whose shuffled letters keep a budget, from designs for local epsilons."""
    designed, hiding = cache(design), budget.survivors(clients)
    # The search starts from the local epsilon of randomised response, which has a quick formula; few tables of that epsilon reveal more.
    start = local_epsilon(lambda epsilon: shuffled_response_privacy(epsilon, 2, hiding), budget)
    if budget.delta == 0:
        return designed(start)
    local = local_epsilon(
        lambda epsilon: shuffled_table_privacy(designed(epsilon), hiding), budget, tolerance=DESIGN_TOLERANCE, start=start
    )
    return designed(local)
