"""Local epsilons with which shuffled letters keep a budget, and their tables."""

from collections.abc import Callable
from functools import cache

from numpy.typing import ArrayLike

from ...errors import InfeasibleError
from ...solvers.accounting.sampling import amplified_epsilon, delta_of_everyone, sampled_share
from ...solvers.bounds.privacy_constraint import EPSILON_LOW
from ...solvers.divergences.shuffled_letters import ShuffledLetters, depth
from ...solvers.numerics.safe_root import falling_root, safe_root
from ..contracts.privacy import Privacy
from ..contracts.task import Budget
from ..tables.lookup_table import LookupTable
from .shuffled_items import response_rows, shuffled_response_privacy
from .shuffled_table import shuffled_table_privacy

# Largest relative distance of epsilon below its budget, for steps by a closed formula and for steps that design a table.
TOLERANCE, DESIGN_TOLERANCE = 1e-4, 1e-3
# Relative decrease of the local epsilon if rounding a table to whole numbers breaks the budget, and largest number of such decreases.
BACKED_OFF, MOST_RETREATS = 1e-6, 20
# Largest epsilon of a letter; beyond it, a letter reveals nearly everything.
LARGEST_LOCAL_EPSILON = 15.0
# Accuracy of the local epsilon that a search starts from.
NEAR = 1e-3
# Number of letters of the randomised response whose local epsilon is close to that of most designed tables.
LIKE_DESIGNED = 4


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
        reached = privacy(local).epsilon(budget.delta, budget.adjacency, budget.rounds, budget.sampling, account=budget.method)
        # A larger local epsilon is not allowed, so the search ends there.
        return budget.epsilon if local == LARGEST_LOCAL_EPSILON and reached <= budget.epsilon else reached

    # Shuffling never weakens the privacy of a letter.
    first = start or min(LARGEST_LOCAL_EPSILON, max(1.5, budget.epsilon / budget.rounds))
    return safe_root(
        epsilon_of,
        budget.epsilon,
        start=first,
        low=EPSILON_LOW,
        high=LARGEST_LOCAL_EPSILON,
        tolerance=tolerance * budget.epsilon,
        jump=1e-4 if tolerance > TOLERANCE else 1e-7,
        # Epsilon grows with the root of the letters' largest ratio.
        power=1.0 if start is None else max(1.0, first / 2),
        name="the local epsilon",
    )


def likely_local_epsilon(rows: Callable[[float], ArrayLike], clients: int, budget: Budget) -> float:
    """Return a local epsilon close to the one that keeps a budget, as the start of a search.

    Nothing is proven of it. Several rounds count as one round of fewer clients.

    Parameters
    ----------
    rows : callable
        Function that returns the weights of the letters, shape (inputs, letters), for a local epsilon.
    clients : int
        Number of clients.
    budget : Budget
        The target, with delta above 0.
    """
    share = 1.0 if budget.sampling is None else sampled_share(budget.sampling, budget.adjacency)
    # The inverse of amplification by a sample is amplification by the inverse share.
    epsilon, delta = amplified_epsilon(budget.epsilon, 1 / share), delta_of_everyone(budget.delta, share)
    hiding = max(1, clients // budget.rounds)

    def excess(local: float) -> float:
        return depth(ShuffledLetters(rows(local), hiding).estimated_delta(epsilon)) - depth(delta)

    if excess(LARGEST_LOCAL_EPSILON) > 0:
        return LARGEST_LOCAL_EPSILON
    if excess(EPSILON_LOW) <= 0:
        return EPSILON_LOW
    return falling_root(excess, EPSILON_LOW, LARGEST_LOCAL_EPSILON, tolerance=NEAR, jump=NEAR / LARGEST_LOCAL_EPSILON)


def response_local_epsilon(categories: int, clients: int, budget: Budget) -> float:
    """Return the largest local epsilon at which shuffled randomised response keeps a budget."""
    start = None if budget.delta == 0 else likely_local_epsilon(lambda local: response_rows(local, categories), clients, budget)
    return local_epsilon(lambda local: shuffled_response_privacy(local, categories, clients), budget, start=start)


def shuffled_response_table(design: Callable[[float], LookupTable], categories: int, clients: int, budget: Budget) -> LookupTable:
    """Return randomised response as a table that keeps a budget when shuffled.

    A closed formula gives the epsilon.
    """
    hiding = budget.survivors(clients)
    local = response_local_epsilon(categories, hiding, budget)
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

    def privacy(epsilon: float) -> Privacy:
        return shuffled_table_privacy(designed(epsilon), hiding)

    if budget.delta == 0:
        return designed(local_epsilon(privacy, budget))
    start = likely_local_epsilon(lambda local: response_rows(local, LIKE_DESIGNED), hiding, budget)
    return designed(local_epsilon(privacy, budget, tolerance=DESIGN_TOLERANCE, start=start))
