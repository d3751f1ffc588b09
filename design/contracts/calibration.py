"""Calibration: the largest parameter whose rounds stay within a budget."""

import math
from collections.abc import Callable
from functools import cache

from ...errors import InfeasibleError
from ...solvers.accounting.renyi_curve import check_delta
from ...solvers.numerics.safe_root import safe_root
from .accounts import pure_privacy
from .mechanism import Mechanism
from .task import Budget

# Largest distance of a continuous epsilon below its target; below epsilon 1 the distance is relative.
TOLERANCE = 1e-6
# Relative scales of jumps. For a large delta, epsilon near zero is a steep function of the parameter, and only a step at this scale counts
# as a jump. Accounts of sampled rounds take longer and do jump, so their scale is coarser.
JUMP, SAMPLED_JUMP = 1e-13, 1e-6
# Range of the pure epsilon of one round.
SMALLEST_PURE_EPSILON, LARGEST_PURE_EPSILON = 1e-6, 100.0


def calibrate_parameter(
    epsilon_of: Callable[[float], float],
    budget: Budget,
    *,
    low: float,
    high: float,
    name: str,
    start: float | None = None,
    shown: Callable[[float], float] = float,
    pure: bool = False,
) -> float:
    """Return the largest argument at which a rising epsilon is within a budget, rounded down.

    Parameters
    ----------
    epsilon_of : callable
        Epsilon of all rounds together; infinite if nothing is proven.
    budget : Budget
        The target for epsilon; its delta is above 0, unless `pure`.
    low, high : float
        Smallest and largest argument that may be tried.
    name : str
        Name of the argument in messages.
    start : float or None
        First argument that the search tries; None for a guess from the budget.
    shown : callable
        Function that gives the number for messages, if the argument is not the parameter itself.
    pure : bool
        Whether delta may be 0.

    Raises
    ------
    ValueError
        If delta is 0, unless `pure`.
    InfeasibleError
        If the budget is out of reach between low and high.
    """
    if not pure:
        check_delta(budget.delta)
    epsilon = budget.epsilon
    guess = epsilon / math.sqrt(budget.rounds) / 2 if start is None else start
    return safe_root(
        epsilon_of,
        epsilon,
        start=min(max(guess, low), high),
        low=low,
        high=high,
        tolerance=TOLERANCE * min(1.0, epsilon),
        jump=JUMP if budget.sampling is None else SAMPLED_JUMP,
        name=name,
        shown=shown,
    )


def per_round_epsilon(budget: Budget) -> float:
    """Return the largest pure epsilon of one round that keeps a budget, rounded down.

    A single round gets the whole epsilon: purely private mechanisms state their guarantee at delta = 0.
    """
    if budget.delta == 0 or (budget.rounds == 1 and budget.method in (None, "pure")):
        return budget.epsilon / budget.rounds
    return _pure_epsilon_of_rounds(budget)


@cache
def _pure_epsilon_of_rounds(budget: Budget) -> float:
    def epsilon_of(value: float) -> float:
        return pure_privacy(value).report(budget.delta, budget.adjacency, budget.rounds, budget.sampling).epsilon_by(budget.method)

    low, high = SMALLEST_PURE_EPSILON, LARGEST_PURE_EPSILON
    return calibrate_parameter(epsilon_of, budget, low=low, high=high, name="epsilon per round")


def over_rounds(budget: Budget, build: Callable[[float], Mechanism], high: float = 1e2) -> Mechanism:
    """Return the mechanism whose rounds together stay within a budget.

    `build` makes the mechanism for an epsilon of one round, which is at most `high`. A single round of a mechanism that states its
    guarantee at delta = 0 gets the budget's epsilon.
    """

    def reached_by(mechanism: Mechanism) -> float:
        return mechanism.privacy().epsilon(budget.delta, budget.adjacency, budget.rounds, budget.sampling, budget.method)

    if budget.sampling is None and (budget.delta == 0 or budget.rounds == 1):
        mechanism = build(budget.epsilon / budget.rounds)
        reached = reached_by(mechanism)
        states_pure = mechanism.delta == 0 and budget.method in (None, "pure")
        if reached <= budget.epsilon and (budget.delta == 0 or states_pure or budget.epsilon - reached <= TOLERANCE):
            return mechanism

    def epsilon_of(per_round: float) -> float:
        try:
            mechanism = build(per_round)
        except InfeasibleError as error:
            # The error names an epsilon that the user did not type, so the message adds the budget's epsilon.
            raise InfeasibleError(
                f"{error}, in each of the {budget.rounds} rounds that together have epsilon = {budget.epsilon:g}"
            ) from error
        return reached_by(mechanism)

    start = budget.epsilon / math.sqrt(budget.rounds)
    return build(
        calibrate_parameter(epsilon_of, budget, low=1e-3, high=high, name="epsilon per round", start=start, pure=budget.delta == 0)
    )
