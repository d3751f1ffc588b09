"""The Poisson-binomial mechanism for a number of bits: how many trials, and how far from 1/2 their probabilities go."""

import math
from dataclasses import dataclass

from ...arguments import check_integer, check_real
from ...design.contracts.norm_ball import NormBall
from ...design.secure_sum.poisson_binomial_mechanism import SMALLEST_THETA, PoissonBinomialMechanism
from ...errors import InfeasibleError
from ...solvers.accounting.renyi_curve import MOST_ROUNDS, check_delta
from ...solvers.divergences.poisson_binomial_divergence import MOST_CLIENTS
from ...solvers.numerics.safe_root import safe_root
from ..accounting.poisson_binomial import poisson_binomial_accounting
from ..accounting.privacy_account import PrivacyAccount
from .privacy_calibration import LARGEST_TARGET, SMALLEST_TARGET, TOLERANCE

MOST_BITS = 62
# The worst configuration of the other clients was searched for up to this theta.
LARGEST_SEARCHED_THETA = 0.45
# More trials take longer to account for: of one client, and of all together unless each has only one.
MOST_TRIALS, MOST_TRIALS_IN_ALL = 256, 2**20


@dataclass(frozen=True)
class PoissonBinomialCalibration:
    """The mechanism that was found, and its account.

    Attributes
    ----------
    mechanism : PoissonBinomialMechanism
        With the trials and the theta that were found. Theta errs downward and is at most 0.45.
    account : PrivacyAccount
        What holds with it after all rounds. Its epsilon is at most the target, and less than 1e-6 below it unless theta is 0.45.
    target_epsilon : float
        What was asked for.
    """

    mechanism: PoissonBinomialMechanism
    account: PrivacyAccount
    target_epsilon: float


def calibrate_poisson_binomial_mechanism(
    clients: int,
    dimension: int,
    clip_norm: float,
    bits: int,
    epsilon: float,
    delta: float,
    rounds: int = 1,
    *,
    frame_seed: int = 0,
) -> PoissonBinomialCalibration:
    """Return the Poisson-binomial mechanism with the least variance whose sums fit the bits.

    With many clients that is the one with the most trials, as the variance for a coefficient of zero at the largest theta is about
    ``level**2 (A + 1 / trials)``, A the same for all of them. With few clients, one trial with pure privacy may be better than any number.
    So the largest number of trials is tried, and all powers of two below.

    Parameters
    ----------
    clients : int
        Number n of clients, 1 to 10**7. Up to 10**6 it takes some seconds, above about a minute.
    dimension : int
        Number of coordinates of a vector; messages have from twice to four times as many.
    clip_norm : float
        L2 norm that vectors are clipped to.
    bits : int
        Bits of a coordinate of a message: n * trials + 1 is at most 2**bits; 1 to 62. No more trials are taken than 256, nor than 2**20 / n
        (but at least one): with t trials, all that more could gain is about ``level**2 / t``.
    epsilon : float
        Privacy parameter after all rounds, from 1e-5 to 10**4.
    delta : float
        Failure probability, above 0 and below 1.
    rounds : int
        Number of rounds, at least 1.
    frame_seed : int
        Public seed of the frame.

    Returns
    -------
    PoissonBinomialCalibration
        The mechanism, and its account.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If the bits do not hold one trial of each client, in which case the message says how many do; or if no theta from 1e-6 will do.

    Examples
    --------
    >>> found = calibrate_poisson_binomial_mechanism(1000, 100, 1.0, 12, 1.0, 1e-5)
    >>> found.mechanism.trials, round(found.mechanism.theta, 4), 0 <= 1.0 - found.account.epsilon <= 1e-6
    (4, 0.0605, True)
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    bits = check_integer("bits", bits, low=1, high=MOST_BITS)
    epsilon = check_real("epsilon", epsilon, low=SMALLEST_TARGET, high=LARGEST_TARGET)
    delta = check_delta(delta)
    rounds = check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)
    ball = NormBall(dimension, 2.0, clip_norm)
    # The number of coordinates does not depend on trials and theta.
    size = PoissonBinomialMechanism(ball, clients, 1, LARGEST_SEARCHED_THETA, delta, frame_seed).padded_dimension

    def account(trials: int, theta: float) -> PrivacyAccount:
        return poisson_binomial_accounting(clients, trials, theta, size).account(rounds, delta)

    def reached(trials: int, theta: float) -> float:
        found = account(trials, theta).epsilon
        return math.inf if found is None else found

    def largest_theta(trials: int, start: float) -> float:
        if reached(trials, LARGEST_SEARCHED_THETA) <= epsilon:
            return LARGEST_SEARCHED_THETA
        return safe_root(
            lambda theta: reached(trials, theta),
            epsilon,
            start=start,
            low=SMALLEST_THETA,
            high=LARGEST_SEARCHED_THETA,
            tolerance=TOLERANCE * min(1.0, epsilon),
            name="theta",
        )

    most = (2**bits - 1) // clients
    if most < 1:
        raise InfeasibleError(f"bits must be at least {clients.bit_length()} to hold one trial of each of {clients} clients, got {bits}")
    trials = min(most, MOST_TRIALS, max(1, MOST_TRIALS_IN_ALL // clients))
    theta = largest_theta(trials, min(0.25, epsilon * math.sqrt(clients / (8 * trials * size * rounds * math.log(1 / delta)))))
    for fewer in (2**power for power in reversed(range((trials - 1).bit_length()))):
        # The worst variance falls with trials * theta**2: it must be exceeded.
        needed = math.nextafter(theta * math.sqrt(trials / fewer), math.inf)
        if needed <= LARGEST_SEARCHED_THETA and reached(fewer, needed) <= epsilon:
            trials, theta = fewer, largest_theta(fewer, needed)
    mechanism = PoissonBinomialMechanism(ball, clients, trials, theta, delta, frame_seed)
    return PoissonBinomialCalibration(mechanism, account(trials, theta), epsilon)
