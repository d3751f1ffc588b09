"""By how much Theorem 1 of cpSGD overstates what binomial noise reveals."""

import math
from dataclasses import dataclass
from typing import Any

from ...design.secure_sum.binomial_account import worst_shift
from ...errors import InfeasibleError
from ...solvers.divergences.binomial_divergence import shifted_binomial_epsilon
from ...solvers.divergences.cpsgd_theorem import binomial_squared_error, binomial_theorem_epsilon
from .point import Point


@dataclass(frozen=True, kw_only=True)
class SlackPoint(Point):
    """Binomial noise on one number, accounted for by the theorem and exactly.

    Attributes
    ----------
    trials : int
        Number of trials.
    scale : float
        What one success adds; the sensitivity is a whole multiple of it.
    delta : float
        Failure probability, above 0 and below 1.
    probability : float
        Probability of success.
    sensitivity : float
        Largest distance of two neighbours' values.
    """

    trials: int
    scale: float
    delta: float
    probability: float = 0.5
    sensitivity: float = 1.0

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row with both epsilons and their ratio.

        ``epsilon`` is the theorem's, NaN where its condition does not hold; ``epsilon_exact`` is infinite where the ends of the support
        alone are more likely than delta.

        Raises
        ------
        ValueError
            If a field is out of range, or the sensitivity is not a multiple of the scale.

        Examples
        --------
        >>> [round(SlackPoint(seed=0, trials=trials, scale=1.0, delta=1e-6).run()[0]["ratio"], 3) for trials in (10**4, 10**6)]
        [2.622, 1.949]
        """
        worst = worst_shift(self.probability, self.scale, 1, self.sensitivity, self.sensitivity, self.sensitivity)
        if worst.shift is None:
            raise ValueError(f"scale must divide the sensitivity {self.sensitivity:g}, got {self.scale!r}")
        theorem = self._theorem()
        exact = shifted_binomial_epsilon(self.trials, self.probability, worst.shift, self.delta)
        return [
            {
                "trials": self.trials,
                "scale": self.scale,
                "probability": self.probability,
                "sensitivity": self.sensitivity,
                "delta": self.delta,
                "noise_squared_error": binomial_squared_error(self.trials, self.probability, self.scale, 1),
                "epsilon": theorem,
                "epsilon_exact": exact,
                "ratio": theorem / exact,
                "adjacency": "replace-one",
                "trust_model": "secure-sum",
            }
        ]

    def _theorem(self) -> float:
        sensitivities = (self.sensitivity,) * 3
        try:
            return binomial_theorem_epsilon(self.trials, self.probability, self.scale, 1, *sensitivities, self.delta)
        except InfeasibleError:
            return math.nan
