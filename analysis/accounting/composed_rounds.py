"""Rounds that are (epsilon, delta)-private each, together, whatever the mechanism is."""

from ...solvers.accounting.pure_composition import MOST_COMPOSED_ROUNDS, composed_pure_epsilon
from ...solvers.accounting.pure_privacy import LARGEST_EPSILON


def composed_rounds(epsilon: float, rounds: int, delta: float) -> float:
    """Return the epsilon of rounds that are (epsilon, d)-private each, at ``rounds * d + delta``.

    That of so many uses of binary randomised response (Kairouz, Oh, Viswanath 2015, *The composition theorem for differential privacy*,
    theorem 3.3), or the sum of all epsilons where these are too many, or epsilon too large, for it to be computed.

    Parameters
    ----------
    epsilon : float
        Privacy parameter of one round, at least 0.
    rounds : int
        Number of rounds, at least 1.
    delta : float
        Failure probability of the composition, above 0 and below 1.

    Returns
    -------
    float
        Privacy parameter; errs upward.

    Examples
    --------
    >>> round(composed_rounds(0.1, 100, 1e-5), 4), composed_rounds(2e6, 3, 1e-5)
    (4.3068, 6000000.0)
    """
    composable = rounds <= MOST_COMPOSED_ROUNDS and epsilon <= LARGEST_EPSILON
    return composed_pure_epsilon(epsilon, rounds, delta) if composable else rounds * epsilon
