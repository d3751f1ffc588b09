"""By how much Theorem 1 of cpSGD overstates what binomial noise reveals."""

import math

import pandas as pd

from ...errors import InfeasibleError
from ...solvers.divergences.binomial_divergence import shifted_binomial_epsilon
from ...solvers.divergences.cpsgd_theorem import binomial_squared_error, binomial_theorem_epsilon
from ..accounting.worst_shift import worst_shift


def binomial_slack(
    trials: list[int], scales: list[float], delta: float, *, probability: float = 0.5, sensitivity: float = 1.0
) -> pd.DataFrame:
    """Return by how much Theorem 1 overstates epsilon, for one coordinate.

    Parameters
    ----------
    trials : list of int
        Numbers of trials.
    scales : list of float
        Scales; the sensitivity is a whole multiple of each.
    delta : float
        Failure probability, above 0 and below 1.
    probability : float
        Probability of success.
    sensitivity : float
        Largest distance of two neighbours' values.

    Returns
    -------
    DataFrame
        One row for each number of trials and scale: ``trials``, ``scale``, ``probability``, ``sensitivity``, ``delta``,
        ``squared_error``, ``epsilon`` (NaN where the theorem's condition does not hold), ``epsilon_exact`` (infinite where the ends of the
        support alone are likelier than delta), and their ``ratio``.

    Raises
    ------
    ValueError
        If an argument is out of range, or the sensitivity is no multiple of a scale.

    Examples
    --------
    >>> binomial_slack([10**4, 10**6], [1.0], 1e-6)["ratio"].round(3).tolist()
    [2.622, 1.949]
    """
    rows = []
    for scale in scales:
        worst = worst_shift(probability, scale, 1, sensitivity, sensitivity, sensitivity)
        if worst.shift is None:
            raise ValueError(f"scales must divide the sensitivity {sensitivity:g}, got {scale!r}")
        for number in trials:
            theorem = _theorem(number, probability, scale, sensitivity, delta)
            exact = shifted_binomial_epsilon(number, probability, worst.shift, delta)
            rows.append(
                {
                    "trials": number,
                    "scale": scale,
                    "probability": probability,
                    "sensitivity": sensitivity,
                    "delta": delta,
                    "squared_error": binomial_squared_error(number, probability, scale, 1),
                    "epsilon": theorem,
                    "epsilon_exact": exact,
                    "ratio": theorem / exact,
                }
            )
    return pd.DataFrame(rows)


def _theorem(trials: int, probability: float, scale: float, sensitivity: float, delta: float) -> float:
    try:
        return binomial_theorem_epsilon(trials, probability, scale, 1, sensitivity, sensitivity, sensitivity, delta)
    except InfeasibleError:
        return math.nan
