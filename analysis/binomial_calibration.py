"""How many trials binomial noise needs for a target epsilon."""

import math

from ..errors import InfeasibleError
from ..solvers.binomial_divergence import MOST_EXACT_TRIALS
from ..solvers.binomial_privacy import MOST_TRIALS
from .binomial_accounting import BinomialAccount, binomial_account
from .subsampling import Sampling

METHODS = ("theorem", "exact", "rdp", "gaussian", "smallest")


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
    delta, probability, scale, dimension, l1, l2, linf, rounds, adjacency, sampling
        As in `binomial_account`.
    method : str
        Which epsilon: ``"theorem"``, ``"exact"``, ``"rdp"``, ``"gaussian"``, or ``"smallest"`` of those that there are and
        are not doubtful.

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
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be a number above 0, got {epsilon!r}")
    fields = {"theorem": ("epsilon",), "exact": ("epsilon_exact",), "rdp": ("epsilon_rdp",), "gaussian": ("epsilon_gaussian",)}.get(
        method, ("epsilon", "epsilon_exact", "epsilon_rdp", "epsilon_gaussian")
    )
    most = MOST_TRIALS if method in ("theorem", "gaussian") else MOST_EXACT_TRIALS

    def account(trials: int) -> BinomialAccount | None:
        try:
            found = binomial_account(trials, probability, scale, dimension, l1, l2, linf, delta, rounds, adjacency, sampling)
        except InfeasibleError:
            return None
        epsilons = [getattr(found, field) for field in fields if getattr(found, field) is not None]
        if found.epsilon_doubtful and method == "smallest" and found.epsilon is not None:
            epsilons.remove(found.epsilon)
        return found if epsilons and min(epsilons) <= epsilon else None

    # Trials without any privacy, and trials with enough: from the account of the largest number down would be the slowest.
    few, enough = 0, 1
    found = account(enough)
    while found is None:
        if enough >= most:
            raise InfeasibleError(f"epsilon must be larger: no number of trials up to {most} gives {epsilon:g} at delta {delta:g}")
        few, enough = enough, min(4 * enough, most)
        found = account(enough)
    while enough - few > 1:
        middle = (few + enough) // 2
        candidate = account(middle)
        if candidate is None:
            few = middle
        else:
            enough, found = middle, candidate
    return found
