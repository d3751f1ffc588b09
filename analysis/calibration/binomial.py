"""How many trials binomial noise needs for a target epsilon."""

import math

from ...errors import InfeasibleError
from ...solvers.divergences.binomial_divergence import MOST_EXACT_TRIALS
from ...solvers.divergences.cpsgd_theorem import MOST_TRIALS
from ...solvers.numerics.bisection import first_true
from ..accounting.binomial import METHODS, BinomialAccount, binomial_account, binomial_account_by
from ..accounting.subsampling import Sampling

FIELDS = {"theorem": "epsilon", "exact": "epsilon_exact", "rdp": "epsilon_rdp", "gaussian": "epsilon_gaussian"}


def calibrate_binomial(
    epsilon: float,
    delta: float,
    probability: float,
    scale: float,
    dimension: int,
    l1: float,
    l2: float,
    linf: float,
    rounds: int = 1,
    adjacency: str = "replace-one",
    method: str = "smallest",
    sampling: Sampling | None = None,
) -> BinomialAccount:
    """Return the account with the fewest trials that keep epsilon within a target.

    More trials are more noise that does not depend on the data: the exact epsilon falls with their number, and so does the theorem's.

    Parameters
    ----------
    epsilon : float
        Largest epsilon of all rounds together; above 0.
    delta, probability, scale, dimension, l1, l2, linf, rounds, adjacency
        As in `binomial_account`.
    method : str
        Which epsilon: ``"theorem"``, ``"exact"``, ``"rdp"``, ``"gaussian"``, or ``"smallest"`` of those that there are and
        are not doubtful.
    sampling : PoissonSampling, FixedSizeSampling or None
        As in `binomial_account`.

    Returns
    -------
    BinomialAccount
        With the fewest trials that were found: one fewer would be too few.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If no number of trials will do.

    Examples
    --------
    >>> found = calibrate_binomial(1.0, 1e-6, 0.5, 1.0, 1, 1.0, 1.0, 1.0)
    >>> found.trials, found.epsilon_exact <= 1.0
    (80, True)
    """
    if method not in (*METHODS, "smallest"):
        raise ValueError(f"method must be one of {', '.join(METHODS)}, smallest, got {method!r}")
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be a number above 0, got {epsilon!r}")
    methods = METHODS if method == "smallest" else (method,)
    most = MOST_TRIALS if method in ("theorem", "gaussian") else MOST_EXACT_TRIALS

    def enough_are(trials: int) -> bool:
        try:
            found = binomial_account_by(methods, trials, probability, scale, dimension, l1, l2, linf, delta, rounds, adjacency, sampling)
        except InfeasibleError:
            return False
        doubtful = found.epsilon_doubtful and method == "smallest"
        epsilons = [getattr(found, FIELDS[way]) for way in methods if not (way == "theorem" and doubtful)]
        return any(reached is not None and reached <= epsilon for reached in epsilons)

    enough = first_true(1, most, enough_are, growth=4)
    if enough == most and not enough_are(most):
        raise InfeasibleError(f"epsilon must be larger: no number of trials up to {most} gives {epsilon:g} at delta {delta:g}")
    return binomial_account(enough, probability, scale, dimension, l1, l2, linf, delta, rounds, adjacency, sampling)
