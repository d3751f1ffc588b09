"""How many levels and trials cpSGD should have for a budget epsilon and a number of bits: those with the smallest predicted error."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from ...arguments import check_choice, check_integer
from ...design.contracts.norm_ball import NormBall, check_ball
from ...design.contracts.privacy import EpsilonBound
from ...design.contracts.task import Budget
from ...design.noise.binomial_noise import MOST_TRIALS as MOST_CLIENT_TRIALS
from ...design.secure_sum.cpsgd import CpsgdMechanism
from ...errors import InfeasibleError
from ...solvers.accounting.gaussian_privacy import LARGEST_DELTA, LARGEST_EPSILON, SMALLEST_DELTA, gaussian_noise_multiplier
from ...solvers.accounting.renyi_curve import check_delta
from ...solvers.divergences.cpsgd_theorem import MOST_TRIALS
from ...solvers.divergences.quantised_divergence import MOST_LEVELS, quantised_l2_bound
from ...solvers.numerics.bisection import first_true

Enough = Callable[[int, int], bool]
"""Whether a number of levels is hidden by a number of trials."""

# The quickest proven account comes first.
PROVEN = ("near-gaussian", "rdp")
ACCOUNTS = (*PROVEN, "theorem-1")
# No mechanism in range needs more.
MOST_BITS = 55
# This many levels and trials are tried, as both are whole numbers.
TRIED = 3
# Without a number of bits, errors this close to the least are good enough.
CLOSE = 1.01


def calibrate_cpsgd(
    ball: NormBall, clients: int, bits: int | None, budget: Budget, *, rotated: bool = True, rotation_seed: int = 0
) -> CpsgdMechanism:
    """Return cpSGD with the levels and trials that stay within a budget, and whose predicted error is the smallest.

    More levels are finer, more sensitive steps; more trials hide more and take up room. Of the pairs that use the bits up, the one with
    the fewest trials that are enough is better than all with more trials, which have no more levels. With fewer trials the bits are not
    used up. There the error grows, except for the rounding of both numbers to whole ones: the next 3 numbers of levels are tried with as
    few trials as are enough, and the next 3 of trials with as many levels as there may be.

    Parameters
    ----------
    ball : NormBall
        L2 ball of the vectors.
    clients : int
        Number of clients that add noise, 1 to 10**9.
    bits : int or None
        Bits of a coordinate of the sum, 1 to 55. None: the fewest with which the error is within 1 % of the least there is,
        which takes some seconds to find.
    budget : Budget
        What all rounds are to keep to; its method is ``"near-gaussian"``, ``"rdp"``, ``"theorem-1"`` as published, or None for the least
        of the proven ones.
    rotated : bool
        Whether vectors are rotated.
    rotation_seed : int
        Public seed of the rotation.

    Returns
    -------
    CpsgdMechanism
        Of fair trials.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If the bits are too few, and the message says how many are enough; or if no number of trials is enough.

    Examples
    --------
    >>> found = calibrate_cpsgd(NormBall(1024, 2.0), 1000, 16, Budget(1.0, 1e-5, "replace-one"))
    >>> found.levels, found.trials, found.guarantee.epsilon <= 1.0
    (6, 49, True)
    """
    check_ball(ball, "cpSGD", 2)
    if bits is not None:
        bits = check_integer("bits", bits, low=1, high=MOST_BITS)
    epsilon, delta = budget.epsilon, check_delta(budget.delta)
    if budget.method is not None:
        check_choice("method", budget.method, ACCOUNTS)
    smallest = CpsgdMechanism(
        ball,
        clients,
        levels=2,
        trials=1,
        delta=delta,
        rotated=rotated,
        rotation_seed=rotation_seed,
        adjacency=budget.adjacency or "replace-one",
    )

    @cache
    def enough(levels: int, trials: int) -> bool:
        return _keeps(replace(smallest, levels=levels, trials=trials), budget)

    within = min(max(delta, SMALLEST_DELTA), LARGEST_DELTA)
    multiplier = gaussian_noise_multiplier(min(epsilon, LARGEST_EPSILON), within) * math.sqrt(budget.rounds)

    @cache
    def likely(levels: int, trials: int) -> bool:
        # For Gaussian noise and everyone: searches begin where this changes.
        one = replace(smallest, levels=levels, trials=trials)
        return math.sqrt(clients * trials) / 2 >= multiplier * quantised_l2_bound(one.padded_dimension, one.distance / one.step, delta)

    most = min(MOST_CLIENT_TRIALS, MOST_TRIALS // smallest.clients)
    trials = _first(1, most, lambda number: (2, number), enough, likely)
    if not enough(2, trials):
        raise InfeasibleError(f"epsilon or delta must be larger: not even {most} trials of each client give {epsilon:g} at delta {delta:g}")
    fewest = (replace(smallest, trials=trials).modulus - 1).bit_length()
    if bits is None:
        least = CLOSE * _best(smallest, MOST_BITS, enough, likely).worst_variance
        bits = first_true(fewest, MOST_BITS, lambda width: _best(smallest, width, enough, likely).worst_variance <= least)
    if bits < fewest:
        raise InfeasibleError(
            f"bits must be at least {fewest} for {smallest.clients} clients to reach epsilon = {epsilon:g} at delta = {delta:g} in "
            f"{ball.dimension} dimensions, got {bits}: 2 levels need {trials} trials of each client"
        )
    return _best(smallest, bits, enough, likely)


def _keeps(mechanism: CpsgdMechanism, budget: Budget) -> bool:
    """Return whether the account by which a mechanism is judged is within a budget."""
    privacy = mechanism.privacy()

    def bound(name: str) -> EpsilonBound:
        try:
            return privacy.account(name).bound(budget.delta, budget.rounds, budget.sampling)
        except InfeasibleError as error:
            return EpsilonBound(math.inf, str(error))

    return any(bound(name).epsilon <= budget.epsilon for name in (PROVEN if budget.method is None else (budget.method,)))


def _first(low: int, high: int, levels_and_trials: Callable[[int], tuple[int, int]], enough: Enough, likely: Enough) -> int:
    """Return the first number whose levels and trials are enough; the search begins at the first for which they are likely to be."""
    start = first_true(low, high, lambda number: likely(*levels_and_trials(number)))
    return first_true(low, high, lambda number: enough(*levels_and_trials(number)), start=start)


def _best(smallest: CpsgdMechanism, bits: int, enough: Enough, likely: Enough) -> CpsgdMechanism:
    """Return the mechanism with the smallest error among those within the bits, of which there is one."""
    room = ((1 << bits) - 1) // smallest.clients
    most = min(room - 1, MOST_CLIENT_TRIALS, MOST_TRIALS // smallest.clients)

    def widest(trials: int) -> int:
        return min(room - trials + 1, MOST_LEVELS)

    def most_levels(trials: int, ceiling: int) -> int:
        return ceiling - _first(0, ceiling - 2, lambda fewer: (ceiling - fewer, trials), enough, likely)

    def fewest_trials(levels: int, ceiling: int) -> int:
        return _first(1, ceiling, lambda trials: (levels, trials), enough, likely)

    # With the bits used up, epsilon falls with the trials: levels make room for them.
    crossing = _first(1, most, lambda trials: (widest(trials), trials), enough, likely)
    levels = most_levels(crossing, widest(crossing))
    pairs = [(fewer, fewest_trials(fewer, crossing)) for fewer in range(levels, max(1, levels - TRIED), -1)]
    pairs += [
        (most_levels(trials, min(levels, widest(trials))), trials)
        for trials in range(crossing - 1, max(0, crossing - TRIED), -1)
        if enough(2, trials)
    ]
    found = [replace(smallest, levels=levels, trials=trials) for levels, trials in pairs]
    return min(found, key=lambda mechanism: mechanism.worst_variance)
