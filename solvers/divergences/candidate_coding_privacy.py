"""Privacy of the index of a public candidate that is drawn in proportion to its density."""

import math

from ...arguments import check_integer, check_real

MOST_CANDIDATES = 2**62
LARGEST_EPSILON = 100.0


def minimal_random_coding_epsilon(epsilon: float, candidates: int) -> float:
    """Return the local epsilon of minimal random coding of a mechanism with two densities.

    The densities are e^epsilon apart, as in PrivUnit with its cap, subset selection and randomised response. All candidates are public; a
    client sends the index of a candidate, with probability proportional to its density. The ratio of two inputs' probabilities is largest
    if the first input's density is high at the sent candidate alone, and the second's at all other candidates: with K candidates the result
    is

        epsilon + ln( (1 + (K - 1) e^epsilon) / (e^epsilon + K - 1) )

    The result rises from 0 at K = 1 to 2 epsilon, the bound of Shah, Chen, Balle, Kairouz, Theis 2021, *Optimal compression of locally
    differentially private mechanisms*, for any number of candidates. Their modified coding, MMRC, gives the candidates fixed probabilities
    by their share with high density, and keeps epsilon.

    Parameters
    ----------
    epsilon : float
        Pure privacy parameter of the coded mechanism, from 1e-6 to 100.
    candidates : int
        Number of candidates K, 2**bits of a message; from 1 to 2**62.

    Returns
    -------
    float
        Pure epsilon for replace-one adjacency and the local trust model; an upper bound if no candidates can have these densities.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> [round(minimal_random_coding_epsilon(1.0, candidates), 4) for candidates in (1, 2, 16, 2**20)]
    [0.0, 1.0, 1.8577, 2.0]
    """
    epsilon = check_real("epsilon", epsilon, low=1e-6, high=LARGEST_EPSILON)
    others = check_integer("candidates", candidates, low=1, high=MOST_CANDIDATES) - 1
    # The logarithm's argument is 1 plus the following term: nothing cancels for small epsilon.
    return epsilon + math.log1p((others - 1) * math.expm1(epsilon) / (math.exp(epsilon) + others))
