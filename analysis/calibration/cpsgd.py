"""How many levels and trials cpSGD should have for a target epsilon and a number of bits: those with the smallest predicted error."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from ...arguments import check_choice, check_integer, check_real
from ...design.contracts.norm_ball import NormBall
from ...design.noise.binomial_noise import MOST_TRIALS as MOST_CLIENT_TRIALS
from ...design.secure_sum.cpsgd import CpsgdMechanism
from ...errors import InfeasibleError
from ...solvers.accounting.renyi_curve import MOST_ROUNDS
from ...solvers.divergences.cpsgd_theorem import MOST_TRIALS
from ...solvers.divergences.quantised_sensitivity import MOST_LEVELS
from ...solvers.numerics.bisection import first_true
from ..accounting.cpsgd import CpsgdAccount, cpsgd_account, theorem_epsilon
from .privacy_calibration import LARGEST_TARGET, SMALLEST_TARGET

ACCOUNTS = ("smallest", "theorem", "rdp", "gaussian")
# No mechanism in range needs more.
MOST_BITS = 55
# So many levels and trials are tried, as both are whole numbers.
TRIED = 3
# Without a number of bits, errors this close to the least will do.
CLOSE = 1.01


@dataclass(frozen=True)
class CpsgdCalibration:
    """The mechanism that was found, and its account.

    Attributes
    ----------
    mechanism : CpsgdMechanism
        With the levels and trials that were found.
    account : CpsgdAccount
        What it promises, and its errors.
    target_epsilon : float
        What was asked for.
    method : str
        Which epsilon keeps to it: ``"theorem"``, ``"rdp"``, ``"gaussian"``, or ``"smallest"`` of them.
    bits : int
        Bits of a coordinate of the sum: the modulus is at most 2**bits.
    """

    mechanism: CpsgdMechanism
    account: CpsgdAccount
    target_epsilon: float
    method: str
    bits: int

    def document(self) -> dict[str, str | float | bool | None]:
        """Return the calibration as JSON holds it.

        Returns
        -------
        dict
            The account's fields, ``target_epsilon``, ``method`` and ``bits``.
        """
        return self.account.document() | {"target_epsilon": self.target_epsilon, "method": self.method, "bits": self.bits}


def calibrate_cpsgd(
    clients: int,
    dimension: int,
    clip_norm: float,
    bits: int | None,
    epsilon: float,
    delta: float,
    rounds: int = 1,
    *,
    rotated: bool = True,
    account: str = "smallest",
    adjacency: str = "replace-one",
    rotation_seed: int = 0,
) -> CpsgdCalibration:
    """Return cpSGD with the levels and trials that keep a promise within a number of bits, and whose predicted error is the smallest.

    More levels are finer, more sensitive steps; more trials hide more and take up room. Of the pairs that use the bits up, the one with
    the fewest trials that are enough is better than all with more trials, which have no more levels. With fewer trials the bits are not
    used up. There the error grows, but for the rounding of both numbers to whole ones: the next 3 numbers of levels are tried with as
    few trials as are enough, and the next 3 of trials with as many levels as there may be.

    Parameters
    ----------
    clients : int
        Number of clients that add noise, 1 to 10**9.
    dimension : int
        Number of coordinates of the vectors, before padding.
    clip_norm : float
        L2 norm that vectors are clipped to.
    bits : int or None
        Bits of a coordinate of the sum, 1 to 55. None: the fewest with which the error is within 1 % of the least there is,
        which takes some seconds to find.
    epsilon : float
        Privacy parameter after all rounds, from 1e-5 to 10**4.
    delta : float
        Failure probability of all rounds together, above 0 and below 1.
    rounds : int
        Number of rounds, at least 1.
    rotated : bool
        Whether vectors are rotated.
    account : str
        Which epsilon is to keep the promise: ``"theorem"`` as published, ``"rdp"``, ``"gaussian"``, or the ``"smallest"`` of them.
    adjacency : str
        ``"replace-one"`` or ``"add-or-remove-one"``.
    rotation_seed : int
        Public seed of the rotation.

    Returns
    -------
    CpsgdCalibration
        The mechanism, of fair trials, and its account.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If the bits are too few, and the message says how many would do; or if no number of trials is enough.

    Examples
    --------
    >>> found = calibrate_cpsgd(1000, 1024, 1.0, 16, 1.0, 1e-5)
    >>> found.mechanism.levels, found.mechanism.trials, found.account.smallest_epsilon <= 1.0
    (6, 49, True)
    """
    if bits is not None:
        bits = check_integer("bits", bits, low=1, high=MOST_BITS)
    epsilon = check_real("epsilon", epsilon, low=SMALLEST_TARGET, high=LARGEST_TARGET)
    rounds = check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)
    check_choice("account", account, ACCOUNTS)
    ball = NormBall(dimension, 2.0, clip_norm)
    smallest = CpsgdMechanism(
        ball, clients, levels=2, trials=1, delta=delta, rotated=rotated, rotation_seed=rotation_seed, adjacency=adjacency
    )

    def enough(levels: int, trials: int) -> bool:
        return _keeps(replace(smallest, levels=levels, trials=trials), rounds, account, epsilon)

    most = min(MOST_CLIENT_TRIALS, MOST_TRIALS // smallest.clients)
    trials = first_true(1, most, lambda number: enough(2, number))
    if not enough(2, trials):
        raise InfeasibleError(f"epsilon or delta must be larger: not even {most} trials of each client give {epsilon:g} at delta {delta:g}")
    fewest = (replace(smallest, trials=trials).modulus - 1).bit_length()
    if bits is None:
        least = CLOSE * _best(smallest, MOST_BITS, enough).worst_variance
        bits = first_true(fewest, MOST_BITS, lambda width: _best(smallest, width, enough).worst_variance <= least)
    if bits < fewest:
        raise InfeasibleError(
            f"bits must be at least {fewest} for {smallest.clients} clients to reach epsilon = {epsilon:g} at delta = {delta:g} in "
            f"{dimension} dimensions, got {bits}: 2 levels need {trials} trials of each client"
        )
    found = _best(smallest, bits, enough)
    return CpsgdCalibration(found, cpsgd_account(found, rounds), epsilon, account, bits)


def _keeps(mechanism: CpsgdMechanism, rounds: int, account: str, epsilon: float) -> bool:
    """Return whether the epsilon by which a mechanism is judged is within a target: the quickest account comes first."""
    if account in ("smallest", "theorem"):
        try:
            reached = theorem_epsilon(mechanism, rounds)
        except InfeasibleError:
            # Too few trials for the theorem; the other accounts ask for fewer.
            reached = math.inf
        if reached <= epsilon:
            return True
    if account in ("smallest", "rdp"):
        renyi = mechanism.renyi_epsilon(mechanism.delta, rounds)
        if renyi is not None and renyi.epsilon <= epsilon:
            return True
    if account in ("smallest", "gaussian"):
        gaussian = mechanism.gaussian_epsilon(mechanism.delta, rounds)
        return gaussian is not None and gaussian <= epsilon
    return False


def _best(smallest: CpsgdMechanism, bits: int, enough: Callable[[int, int], bool]) -> CpsgdMechanism:
    """Return the mechanism with the smallest error among those within the bits, of which there is one."""
    room = ((1 << bits) - 1) // smallest.clients
    most = min(room - 1, MOST_CLIENT_TRIALS, MOST_TRIALS // smallest.clients)

    def widest(trials: int) -> int:
        return min(room - trials + 1, MOST_LEVELS)

    def most_levels(trials: int, ceiling: int) -> int:
        return ceiling - first_true(0, ceiling - 2, lambda fewer: enough(ceiling - fewer, trials))

    def fewest_trials(levels: int, ceiling: int) -> int:
        return ceiling - first_true(0, ceiling - 1, lambda fewer: not enough(levels, ceiling - fewer - 1))

    # With the bits used up, epsilon falls with the trials: levels make room for them.
    crossing = first_true(1, most, lambda trials: enough(widest(trials), trials))
    levels = most_levels(crossing, widest(crossing))
    pairs = [(fewer, fewest_trials(fewer, crossing)) for fewer in range(levels, max(1, levels - TRIED), -1)]
    pairs += [
        (most_levels(trials, min(levels, widest(trials))), trials)
        for trials in range(crossing - 1, max(0, crossing - TRIED), -1)
        if enough(2, trials)
    ]
    found = [replace(smallest, levels=levels, trials=trials) for levels, trials in pairs]
    return min(found, key=lambda mechanism: mechanism.worst_variance)
