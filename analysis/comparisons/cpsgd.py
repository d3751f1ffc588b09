"""How much noise a promise costs, Gaussian or binomial: the setting of figure 1 of Agarwal, Suresh, Yu, Kumar, McMahan 2018 (cpSGD)."""

import math
from collections.abc import Callable, Iterable

import pandas as pd

from ...arguments import check_real
from ...errors import InfeasibleError
from ...solvers.accounting.gaussian_privacy import gaussian_epsilon, gaussian_noise_multiplier
from ...solvers.divergences.binomial_divergence import MOST_EXACT_TRIALS, shifted_binomial_epsilon
from ...solvers.divergences.cpsgd_theorem import MOST_TRIALS, binomial_squared_error, binomial_theorem_epsilon
from ..accounting.worst_shift import worst_shift
from ..provenance_columns import with_provenance

PROBABILITY = 0.5
# How far the bracket of a number of trials grows each time, relative to a guess.
STRIDE = 1.25


def compare_noise(
    epsilons: Iterable[float], delta: float, theorem_scales: Iterable[float], exact_scales: Iterable[float], *, seed: int
) -> pd.DataFrame:
    """Return the least noise that keeps a promise, for one number that neighbours change by at most 1.

    Gaussian noise is calibrated exactly ("analytic", Balle, Wang 2018) and by the classic rule sigma = sqrt(2 ln(1.25 / delta)) / epsilon,
    which is proven for epsilon up to 1 and is the first term of cpSGD's Theorem 1. Binomial noise s (Z - N / 2) has the fewest trials N
    whose epsilon is within the target, by Theorem 1 or exactly. The number has to be a multiple of s; rounding it is not counted.

    Parameters
    ----------
    epsilons : iterable of float
        Targets, above 0.
    delta : float
        Failure probability, above 0 and below 1.
    theorem_scales, exact_scales : iterable of float
        Scales s of the binomial noise, for either way of accounting; each divides 1.
    seed : int
        Recorded; nothing here is random.

    Returns
    -------
    DataFrame
        One row for each target and series: ``mechanism``, ``accounting`` (analytic, classic, theorem or exact), ``scale`` (NaN for Gaussian
        noise), ``epsilon`` (the target), ``realised_epsilon`` (errs upward; infinite where the accounting proves nothing), ``delta``,
        ``trials`` (0 for Gaussian noise), ``squared_error`` (variance of the noise, in squared units of the number),
        ``condition_binds`` (one trial fewer breaks the condition of Theorem 1, or leaves the ends of the support likelier than delta),
        ``certified_error`` (`unbiased_error_bound`), ``adjacency``, ``trust_model``, and provenance.

    Raises
    ------
    ValueError
        If an argument is out of range, or a scale does not divide 1.
    InfeasibleError
        If no number of trials will do.

    Examples
    --------
    >>> frame = compare_noise([1.0], 1e-6, [1.0], [1.0], seed=0)
    >>> frame["accounting"].tolist(), frame["squared_error"].round(2).tolist()
    (['analytic', 'classic', 'theorem', 'exact'], [17.85, 28.08, 370.75, 20.0])
    """
    targets, by_theorem, exactly = tuple(epsilons), tuple(theorem_scales), tuple(exact_scales)
    rows = []
    for epsilon in targets:
        shared = {"delta": delta, "certified_error": unbiased_error_bound(epsilon, delta), "adjacency": "replace-one"}
        rows += [row | shared for row in _gaussian_rows(epsilon, delta)]
        rows += [_binomial_row("theorem", epsilon, delta, scale) | shared for scale in by_theorem]
        rows += [_binomial_row("exact", epsilon, delta, scale) | shared for scale in exactly]
    return with_provenance(pd.DataFrame(rows), "noise of cpSGD", seed)


def unbiased_error_bound(epsilon: float, delta: float) -> float:
    """Return a variance below which no unbiased private estimate of a number in [0, 1] stays at both ends.

    Whatever is (epsilon, delta)-private is made from four letters (Kairouz, Oh, Viswanath 2015, theorem 3.1): with probability delta one
    that reveals the number, and else randomised response. Letters 1/2 +- u and 1/2 +- v are unbiased if delta u + (1 - delta) t v = 1/2,
    t = tanh(epsilon / 2). The least second moment is at v = t u, and estimating from the letters with further randomness adds to it.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, 1e-6 to 100, for the two ends as neighbours.
    delta : float
        Failure probability, from 0 to 0.999.

    Returns
    -------
    float
        1 / (4 (delta + (1 - delta) t^2)) - 1 / 4, in squared lengths of the interval: a lower bound on the mean of the two variances, and
        so on the variance of noise that does not depend on the number.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> round(unbiased_error_bound(1.0, 1e-6), 4)
    0.9207
    """
    contrast = math.tanh(check_real("epsilon", epsilon, low=1e-6, high=100.0) / 2)
    delta = check_real("delta", delta, low=0.0, high=0.999)
    revealed = delta + (1 - delta) * contrast**2
    return (1 - revealed) / (4 * revealed)


def fewest_trials(epsilon_of: Callable[[int], float], epsilon: float, guess: int, most: int) -> int:
    """Return the fewest trials whose epsilon is within a target.

    Parameters
    ----------
    epsilon_of : callable
        Epsilon of a number of trials; falls with it. Infinite where there is no account.
    epsilon : float
        The target.
    guess : int
        Where to begin, from 1 to `most`.
    most : int
        The largest number that may be tried.

    Returns
    -------
    int
        The number; one trial fewer was tried and is too few, or it is 1.

    Raises
    ------
    InfeasibleError
        If `most` trials are too few.

    Examples
    --------
    >>> fewest_trials(lambda trials: 10 / trials, 0.3, 5, 1000)
    34
    """
    few, enough, step = 0, guess, STRIDE
    while epsilon_of(enough) > epsilon:
        if enough >= most:
            raise InfeasibleError(f"epsilon must be larger: no number of trials up to {most} gives {epsilon:g}")
        few, enough, step = enough, min(math.ceil(enough * step), most), step**2
    candidate = int(enough / STRIDE)
    while candidate > few:
        if epsilon_of(candidate) > epsilon:
            few = candidate
        else:
            enough, candidate = candidate, int(candidate / STRIDE)
    while enough - few > 1:
        middle = (few + enough) // 2
        if epsilon_of(middle) > epsilon:
            few = middle
        else:
            enough = middle
    return enough


def _gaussian_rows(epsilon: float, delta: float) -> list[dict[str, object]]:
    rows = []
    classic = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    for accounting, deviation in (("analytic", gaussian_noise_multiplier(epsilon, delta)), ("classic", classic)):
        rows.append(
            {
                "mechanism": "Gaussian",
                "accounting": accounting,
                "scale": math.nan,
                "epsilon": epsilon,
                "realised_epsilon": gaussian_epsilon(deviation, delta),
                "trials": 0,
                "squared_error": deviation**2,
                "condition_binds": False,
                "trust_model": "central",
            }
        )
    return rows


def _binomial_row(accounting: str, epsilon: float, delta: float, scale: float) -> dict[str, object]:
    epsilon_of, most = _accounts(accounting, delta, scale)
    # Binomial noise of as large a variance as Gaussian noise is about as private.
    guess = 4 * math.ceil((gaussian_noise_multiplier(epsilon, delta) / scale) ** 2)
    trials = fewest_trials(epsilon_of, epsilon, min(guess, most), most)
    return {
        "mechanism": "Binomial",
        "accounting": accounting,
        "scale": scale,
        "epsilon": epsilon,
        "realised_epsilon": epsilon_of(trials),
        "trials": trials,
        "squared_error": binomial_squared_error(trials, PROBABILITY, scale, 1),
        "condition_binds": trials == 1 or math.isinf(epsilon_of(trials - 1)),
        "trust_model": "secure-sum",
    }


def _accounts(accounting: str, delta: float, scale: float) -> tuple[Callable[[int], float], int]:
    """Return epsilon as a function of the number of trials, and the largest number."""
    shift = worst_shift(PROBABILITY, scale, 1, 1.0, 1.0, 1.0).shift
    if shift is None:
        raise ValueError(f"scales must divide 1, got {scale!r}")
    if accounting == "exact":
        return (lambda trials: shifted_binomial_epsilon(trials, PROBABILITY, shift, delta)), MOST_EXACT_TRIALS

    def by_theorem(trials: int) -> float:
        try:
            return binomial_theorem_epsilon(trials, PROBABILITY, scale, 1, 1.0, 1.0, 1.0, delta)
        except InfeasibleError:
            return math.inf

    return by_theorem, MOST_TRIALS
