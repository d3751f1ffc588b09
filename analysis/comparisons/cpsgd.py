"""How much noise a promise costs, Gaussian or binomial: the setting of figure 1 of Agarwal, Suresh, Yu, Kumar, McMahan 2018 (cpSGD)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...arguments import check_choice, check_real
from ...design.secure_sum.binomial_account import worst_shift
from ...errors import InfeasibleError
from ...solvers.accounting.gaussian_privacy import gaussian_epsilon, gaussian_noise_multiplier
from ...solvers.divergences.binomial_divergence import MOST_EXACT_TRIALS, shifted_binomial_epsilon
from ...solvers.divergences.cpsgd_theorem import MOST_TRIALS, binomial_squared_error, binomial_theorem_epsilon
from ...solvers.numerics.bisection import first_true
from .point import Point

PROBABILITY = 0.5
# Ways to account for either noise.
GAUSSIAN, BINOMIAL = ("analytic", "classic"), ("theorem", "exact")
# Of the numbers of trials that are tried, each is this many times the last.
GROWTH = 4


@dataclass(frozen=True, kw_only=True)
class NoisePoint(Point):
    """The least noise that keeps a promise, for one number that neighbours change by at most 1.

    Gaussian noise is calibrated exactly (``"analytic"``, Balle, Wang 2018) or by the ``"classic"`` rule sigma = sqrt(2 ln(1.25 / delta)) /
    epsilon, which is proven for epsilon up to 1 and is the first term of cpSGD's Theorem 1. Binomial noise s (Z - N / 2) has the fewest
    trials N whose epsilon is within the target, by Theorem 1 (``"theorem"``) or exactly (``"exact"``). The number has to be a multiple of
    s; rounding it is not counted.

    Attributes
    ----------
    accounting : str
        As above.
    epsilon : float
        The target, above 0.
    delta : float
        Failure probability, above 0 and below 1.
    scale : float or None
        Scale s of binomial noise, which divides 1; None for Gaussian noise.
    """

    accounting: str
    epsilon: float
    delta: float
    scale: float | None = None

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row with the noise.

        ``realised_epsilon`` errs upward, and is infinite where the accounting proves nothing; ``noise_squared_error`` is the noise's
        variance, in squared units of the number; ``condition_binds`` says that one trial fewer breaks the condition of Theorem 1, or leaves
        the ends of the support more likely than delta; ``certified_error`` is `unbiased_error_bound`.

        Raises
        ------
        ValueError
            If a field is out of range, or the scale does not divide 1.
        InfeasibleError
            If no number of trials is enough.

        Examples
        --------
        >>> targets = [("analytic", None), ("classic", None), ("theorem", 1.0), ("exact", 1.0)]
        >>> points = [NoisePoint(seed=0, accounting=name, epsilon=1.0, delta=1e-6, scale=scale) for name, scale in targets]
        >>> [round(point.run()[0]["noise_squared_error"], 2) for point in points]
        [17.85, 28.08, 370.75, 20.0]
        """
        check_choice("accounting", self.accounting, GAUSSIAN if self.scale is None else BINOMIAL)
        noise = self._gaussian() if self.scale is None else self._binomial(self.scale)
        return [
            {
                "mechanism": "Gaussian" if self.scale is None else "Binomial",
                "accounting": self.accounting,
                "scale": math.nan if self.scale is None else self.scale,
                "epsilon": self.epsilon,
                **noise,
                "trust_model": "central" if self.scale is None else "secure-sum",
                "delta": self.delta,
                "certified_error": unbiased_error_bound(self.epsilon, self.delta),
                "adjacency": "replace-one",
            }
        ]

    def _gaussian(self) -> dict[str, Any]:
        if self.accounting == "analytic":
            deviation = gaussian_noise_multiplier(self.epsilon, self.delta)
        else:
            deviation = math.sqrt(2 * math.log(1.25 / self.delta)) / self.epsilon
        return {
            "realised_epsilon": gaussian_epsilon(deviation, self.delta),
            "trials": 0,
            "noise_squared_error": deviation**2,
            "condition_binds": False,
        }

    def _binomial(self, scale: float) -> dict[str, Any]:
        epsilon_of, most = self._account(scale)
        trials = first_true(1, most, lambda number: epsilon_of(number) <= self.epsilon, growth=GROWTH)
        reached = epsilon_of(trials)
        if reached > self.epsilon:
            raise InfeasibleError(f"epsilon must be larger: no number of trials up to {most} gives {self.epsilon:g}")
        return {
            "realised_epsilon": reached,
            "trials": trials,
            "noise_squared_error": binomial_squared_error(trials, PROBABILITY, scale, 1),
            "condition_binds": trials == 1 or math.isinf(epsilon_of(trials - 1)),
        }

    def _account(self, scale: float) -> tuple[Callable[[int], float], int]:
        """Return epsilon as a function of the number of trials, and the largest number."""
        shift = worst_shift(PROBABILITY, scale, 1, 1.0, 1.0, 1.0).shift
        if shift is None:
            raise ValueError(f"scale must divide 1, got {scale!r}")
        if self.accounting == "exact":
            return (lambda trials: shifted_binomial_epsilon(trials, PROBABILITY, shift, self.delta)), MOST_EXACT_TRIALS

        def by_theorem(trials: int) -> float:
            try:
                return binomial_theorem_epsilon(trials, PROBABILITY, scale, 1, 1.0, 1.0, 1.0, self.delta)
            except InfeasibleError:
                return math.inf

        return by_theorem, MOST_TRIALS


def unbiased_error_bound(epsilon: float, delta: float) -> float:
    """Return a variance below which no unbiased private estimate of a number in [0, 1] stays at both ends; errs downward.

    Whatever is (epsilon, delta)-private is made from four letters (Kairouz, Oh, Viswanath 2015, theorem 3.1): with probability delta one
    that reveals the number, and else randomised response. Letters 1/2 +- u and 1/2 +- v are unbiased if delta u + (1 - delta) t v = 1/2,
    t = tanh(epsilon / 2). The least second moment is at v = t u, and estimating from the letters with further randomness adds to it: the
    mean of the two variances is at least 1 / (4 (delta + (1 - delta) t^2)) - 1 / 4, and so is the variance of noise that does not depend
    on the number.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, 1e-6 to 100, for the two ends as neighbours.
    delta : float
        Failure probability, from 0 to 0.999.

    Examples
    --------
    >>> round(unbiased_error_bound(1.0, 1e-6), 4)
    0.9207
    """
    contrast = math.tanh(check_real("epsilon", epsilon, low=1e-6, high=100.0) / 2)
    delta = check_real("delta", delta, low=0.0, high=0.999)
    revealed = delta + (1 - delta) * contrast**2
    return (1 - revealed) / (4 * revealed)
