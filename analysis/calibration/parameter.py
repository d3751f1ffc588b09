"""The largest parameter with which all rounds of a mechanism stay within (epsilon, delta), on the safe side."""

import math
from collections.abc import Callable

from ...arguments import check_integer, check_real
from ...design.contracts.registry import Target
from ...design.contracts.task import LARGEST_TARGET, SMALLEST_TARGET
from ...solvers.accounting.renyi_curve import MOST_ROUNDS, check_delta
from ...solvers.numerics.safe_root import safe_root

# How far below its target epsilon may end, where it is a continuous function of what is calibrated; relative below epsilon 1.
TOLERANCE = 1e-6
# Epsilon near zero is a steep function of the parameter, where delta is large: a jump is only what is one at this scale. Not with
# sampling, whose accounts take longer and do jump.
JUMP, SAMPLED_JUMP = 1e-13, 1e-6


def calibrate_parameter(
    epsilon_of: Callable[[float], float],
    target: Target,
    *,
    low: float,
    high: float,
    name: str,
    start: float | None = None,
    shown: Callable[[float], float] = float,
    pure: bool = False,
) -> float:
    """Return the largest argument at which epsilon, a rising function of it, is within the target; errs toward more privacy.

    Parameters
    ----------
    epsilon_of : callable
        Epsilon of all rounds together; infinite where nothing is proven.
    target : Target
        What epsilon is to be: from 1e-5 to 10**4, with a delta above 0 and below 1.
    low, high : float
        Smallest and largest argument that may be tried.
    name : str
        What the argument is, for messages.
    start : float or None
        Where to begin; None for a guess from the target.
    shown : callable
        What messages say for an argument, where it is not the parameter itself.
    pure : bool
        Whether delta may be 0.

    Raises
    ------
    ValueError
        If the target is out of range.
    InfeasibleError
        If the target is out of reach between low and high.
    """
    epsilon, _ = check_target(target, pure=pure)
    guess = epsilon / math.sqrt(target.rounds) / 2 if start is None else start
    return safe_root(
        epsilon_of,
        epsilon,
        start=min(max(guess, low), high),
        low=low,
        high=high,
        tolerance=TOLERANCE * min(1.0, epsilon),
        jump=JUMP if target.sampling is None else SAMPLED_JUMP,
        name=name,
        shown=shown,
    )


def check_target(target: Target, *, pure: bool = False) -> tuple[float, float]:
    """Return a target's epsilon and delta, checked with its rounds; delta may be 0 where the mechanism is purely private."""
    check_integer("rounds", target.rounds, low=1, high=MOST_ROUNDS)
    delta = 0.0 if pure and target.delta == 0 else check_delta(target.delta)
    return check_real("epsilon", target.epsilon, low=SMALLEST_TARGET, high=LARGEST_TARGET), delta
