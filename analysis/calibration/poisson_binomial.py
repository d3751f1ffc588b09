"""The Poisson-binomial mechanism for a number of bits: how many trials, and how far from 1/2 their probabilities go."""

import math

from ...arguments import check_integer
from ...design.contracts.calibration import calibrate_parameter
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.task import Budget
from ...design.secure_sum.poisson_binomial_mechanism import SMALLEST_THETA, PoissonBinomialMechanism, poisson_binomial_privacy
from ...errors import InfeasibleError
from ...solvers.accounting.renyi_curve import check_delta
from ...solvers.divergences.poisson_binomial_divergence import LARGEST_THETA, MOST_CLIENTS

MOST_BITS = 62
# The worst configuration of the other clients was searched for up to this theta.
LARGEST_SEARCHED_THETA = 0.45
# More trials take longer to account for: of one client, and of all together unless each has only one.
MOST_TRIALS, MOST_TRIALS_IN_ALL = 256, 2**20


def calibrate_theta(
    clients: int, trials: int, dimension: int, budget: Budget, *, largest: float = LARGEST_THETA, start: float | None = None
) -> float:
    """Return the largest theta, from 1e-6 to `largest`, with which all rounds stay within a budget; errs downward.

    Examples
    --------
    >>> round(calibrate_theta(1000, 4, 16, Budget(1.0, 1e-5, "replace-one", method="rdp-extremes")), 4)
    0.2183
    """
    epsilon, delta = budget.epsilon, check_delta(budget.delta)
    if start is None:
        first = epsilon * math.sqrt(clients / (16 * trials * dimension * budget.rounds * math.log(1 / delta)))
    else:
        first = _ratio(start)

    # Epsilon is nearly proportional to the ratio of theta to a trial's deviation, up to theta = 1/2: fewer evaluations find it.
    def theta_of(ratio: float) -> float:
        return min(max(ratio / math.sqrt(1 + 4 * ratio**2), SMALLEST_THETA), largest)

    found = calibrate_parameter(
        lambda ratio: _epsilon(clients, trials, theta_of(ratio), dimension, budget),
        budget,
        low=_ratio(SMALLEST_THETA),
        high=_ratio(largest),
        name="theta",
        start=first,
        shown=theta_of,
    )
    return theta_of(found)


def calibrate_poisson_binomial(
    ball: NormBall, clients: int, bits: int, budget: Budget, *, trials: int | None = None, frame_seed: int = 0
) -> PoissonBinomialMechanism:
    """Return the Poisson-binomial mechanism with the least variance whose sums fit the bits.

    With many clients that is the one with the most trials, as the variance for a coefficient of zero at the largest theta is about
    ``level**2 (A + 1 / trials)``, A the same for all of them. With few clients, one trial with pure privacy may be better than any number.
    So the largest number of trials is tried, and all powers of two below.

    Parameters
    ----------
    ball : NormBall
        L2 ball of the vectors; messages have from twice to four times as many coordinates.
    clients : int
        Number n of clients, 1 to 10**7.
    bits : int
        Bits of a coordinate of a message: n * trials + 1 is at most 2**bits; 1 to 62. No more trials are taken than 256, nor than 2**20 / n
        (but at least one): with t trials, all that more could gain is about ``level**2 / t``.
    budget : Budget
        What all rounds are to keep to.
    trials : int or None
        Number of trials of each client; None for the best number that the bits hold.
    frame_seed : int
        Public seed of the frame.

    Returns
    -------
    PoissonBinomialMechanism
        Its theta errs downward and is at most 0.45.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If the bits do not hold one trial of each client, in which case the message says how many do; or if no theta from 1e-6 is small
        enough.

    Examples
    --------
    >>> found = calibrate_poisson_binomial(NormBall(100, 2.0), 1000, 12, Budget(1.0, 1e-5, "replace-one"))
    >>> found.trials, 0 <= 1.0 - found.guarantee.epsilon <= 1e-6
    (4, True)
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    bits = check_integer("bits", bits, low=1, high=MOST_BITS)
    epsilon, delta = budget.epsilon, check_delta(budget.delta)
    # The number of coordinates does not depend on trials and theta.
    size = PoissonBinomialMechanism(ball, clients, 1, LARGEST_SEARCHED_THETA, delta, frame_seed).padded_dimension

    def reached(trials: int, theta: float) -> float:
        return _epsilon(clients, trials, theta, size, budget)

    def largest_theta(trials: int, start: float | None) -> float:
        if reached(trials, LARGEST_SEARCHED_THETA) <= epsilon:
            return LARGEST_SEARCHED_THETA
        return calibrate_theta(clients, trials, size, budget, largest=LARGEST_SEARCHED_THETA, start=start)

    most = (2**bits - 1) // clients
    if most < 1:
        raise InfeasibleError(f"bits must be at least {clients.bit_length()} to hold one trial of each of {clients} clients, got {bits}")
    if trials is not None:
        if trials > most:
            enough = (clients * trials).bit_length()
            raise InfeasibleError(f"bits must be at least {enough} to hold {trials} trials of each of {clients} clients, got {bits}")
        return PoissonBinomialMechanism(ball, clients, trials, calibrate_theta(clients, trials, size, budget), delta, frame_seed)
    trials = min(most, MOST_TRIALS, max(1, MOST_TRIALS_IN_ALL // clients))
    theta = largest_theta(trials, None)
    for fewer in (2**power for power in reversed(range((trials - 1).bit_length()))):
        # The worst variance falls with trials * theta**2: it must be exceeded.
        needed = math.nextafter(theta * math.sqrt(trials / fewer), math.inf)
        if needed <= LARGEST_SEARCHED_THETA and reached(fewer, needed) <= epsilon:
            trials, theta = fewer, largest_theta(fewer, needed)
    return PoissonBinomialMechanism(ball, clients, trials, theta, delta, frame_seed)


def _epsilon(clients: int, trials: int, theta: float, dimension: int, budget: Budget) -> float:
    privacy = poisson_binomial_privacy(clients, trials, theta, dimension)
    return privacy.epsilon(budget.delta, budget.adjacency, budget.rounds, budget.sampling, account=budget.method)


def _ratio(theta: float) -> float:
    """Return half of theta over the standard deviation of a trial with the probability 1/2 + theta."""
    return theta / math.sqrt(1 - 4 * theta**2)
