"""The privacy of binomial noise in a secure sum: the published theorem, Rényi divergences, and exactly where the worst case is known."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..arguments import check_integer
from ..design.guarantee import ADJACENCIES
from ..errors import InfeasibleError
from ..solvers.binomial_divergence import MOST_EXACT_TRIALS, shifted_binomial_epsilon, shifted_binomial_losses, shifted_binomial_renyi
from ..solvers.binomial_privacy import (
    LARGEST_DIMENSION,
    MOST_TRIALS,
    binomial_squared_error,
    binomial_theorem_epsilon,
    check_noise,
    check_sensitivities,
)
from ..solvers.exact_privacy_loss import SMALLEST_COMPOSED_DELTA, composed_exact_epsilon
from ..solvers.pure_composition import MOST_COMPOSED_ROUNDS, composed_pure_epsilon
from ..solvers.renyi_curve import DEFAULT_ORDERS, MOST_ROUNDS, RenyiCurve, check_delta

# How far from a whole number of steps a sensitivity may be, relative to itself.
WHOLE = 1e-9
# Uses that are composed: in one direction, and where each may be in either of two.
MOST_USES, MOST_MIXED_USES = 20_000, 64
# Orders of the moments accountant, the values it may look at in all, and what it counts as failure, as a share of delta.
ORDERS = DEFAULT_ORDERS[:-1:2]
MOST_VALUES = 4e7
NEGLECTED = 1e-9


@dataclass(frozen=True)
class BinomialAccount:
    """What binomial noise in a secure sum promises, by three ways of accounting.

    Attributes
    ----------
    mechanism : str
        The noise, in words.
    trials, probability, scale, dimension, l1, l2, linf, rounds, delta
        What was asked.
    epsilon : float or None
        By Theorem 1 of cpSGD; several rounds by the composition theorem of Kairouz, Oh, Viswanath 2015. Errs upward. None where the
        theorem's condition does not hold.
    epsilon_reason : str or None
        Why that is None.
    epsilon_exact : float or None
        By the distribution of the privacy loss; errs upward, by less than a share of 1e-5. None where the sensitivities do not tell which
        pair of vectors is the worst, or it is too expensive.
    epsilon_exact_reason : str or None
        Why that is None.
    epsilon_rdp : float or None
        By Rényi divergences, a moments accountant: it holds for every shape of the sensitivities. Errs upward. None where it is too
        expensive, or proves nothing.
    order : float or None
        The Rényi order that gave it.
    worst_shift, worst_coordinates : int or None
        The pair that is the worst: so many coordinates, each shifted by so many steps of the scale.
    squared_error : float
        Expected squared L2 norm of the noise of one round; exact.
    adjacency : str
        Which data sets are neighbours: those that the sensitivities are for.
    trust_model : str
        ``"secure-sum"``.
    """

    mechanism: str
    trials: int
    probability: float
    scale: float
    dimension: int
    l1: float
    l2: float
    linf: float
    rounds: int
    delta: float
    epsilon: float | None
    epsilon_reason: str | None
    epsilon_exact: float | None
    epsilon_exact_reason: str | None
    epsilon_rdp: float | None
    order: float | None
    worst_shift: int | None
    worst_coordinates: int | None
    squared_error: float
    adjacency: str
    trust_model: str

    def document(self) -> dict[str, str | float | bool | None]:
        """Return the account as JSON holds it.

        Returns
        -------
        dict
            The fields by name, always the same ones.
        """
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class WorstShift:
    """The pair of vectors that sensitivities allow and that binomial noise hides least, if it is known.

    Attributes
    ----------
    shift : int or None
        Steps of the scale by which coordinates differ; None where the worst pair is not known.
    coordinates : int or None
        Number of coordinates that differ; None where the worst pair is not known.
    reason : str or None
        Why it is not known.
    """

    shift: int | None
    coordinates: int | None
    reason: str | None


def worst_shift(probability: float, scale: float, dimension: int, l1: float, l2: float, linf: float) -> WorstShift:
    """Return which pair of vectors is hidden least by binomial noise, of all that sensitivities allow.

    Vectors of neighbours differ by v steps, v whole numbers with ``|v_i| <= linf / scale``, ``sum |v_i| <= l1 / scale`` and
    ``sum v_i**2 <= (l2 / scale)**2``. A larger shift of a coordinate reveals more, as binomial noise has a log-concave distribution. So
    the worst v is known

    - in one dimension;
    - where every coordinate can be at its largest at the same time;
    - where no coordinate can change by more than one step: as many as possible do;
    - for probability 1/2, where the L1 sensitivity is no more than the largest coordinate: shifts s and t of two coordinates reveal no
      more than one shift by s + t, by group privacy (Dong, Roth, Su 2022, *Gaussian differential privacy*, theorem 2.14) and because
      trade-off functions of log-concave noise add up exactly, f_t(1 - f_s) = f_(s+t).

    Parameters
    ----------
    probability, scale, dimension
        As in `binomial_theorem_epsilon`.
    l1, l2, linf : float
        Sensitivities in the vectors' units.

    Returns
    -------
    WorstShift
        Zero coordinates where neighbours do not differ.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> worst_shift(0.5, 0.5, 10, 3.0, 3.0, 3.0)
    WorstShift(shift=6, coordinates=1, reason=None)
    """
    _, probability, scale = check_noise(1, probability, scale)
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION)
    l1, l2, linf = check_sensitivities(l1, l2, linf)
    steps = linf / scale
    if abs(steps - round(steps)) > WHOLE * max(1.0, steps):
        return WorstShift(None, None, f"linf must be a whole multiple of scale for the exact account, got {steps:.9g} times the scale")
    total = math.floor(l1 / scale * (1 + WHOLE) + WHOLE)
    squares = math.floor((l2 / scale) ** 2 * (1 + WHOLE) + WHOLE)
    largest = min(round(steps), total, math.isqrt(squares))
    if largest == 0:
        return WorstShift(0, 0, None)
    coordinates = min(dimension, total // largest, squares // largest**2)
    if largest == 1 or coordinates == dimension or (total == largest and probability == 0.5):
        return WorstShift(largest, coordinates, None)
    return WorstShift(None, None, "l1, l2 and linf do not tell which vectors are the worst")


def binomial_account(
    trials: int,
    probability: float,
    scale: float,
    dimension: int,
    l1: float,
    l2: float,
    linf: float,
    delta: float,
    rounds: int = 1,
    adjacency: str = "replace-one",
) -> BinomialAccount:
    """Return what binomial noise in a secure sum promises.

    Parameters
    ----------
    trials, probability, scale, dimension
        As in `binomial_theorem_epsilon`; the vectors' coordinates are multiples of the scale.
    l1, l2, linf : float
        Largest distance of two neighbours' vectors in each norm, in the vectors' units.
    delta : float
        Failure probability of all rounds together, above 0 and below 1.
    rounds : int
        Number of rounds, at least 1.
    adjacency : str
        Which neighbours the sensitivities are for: ``"replace-one"`` or ``"add-or-remove-one"``.

    Returns
    -------
    BinomialAccount
        The account.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If the condition of Theorem 1 does not hold, and there is no other account either.

    Examples
    --------
    >>> found = binomial_account(10**4, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6)
    >>> round(found.epsilon, 4), round(found.epsilon_exact, 4), round(found.epsilon_rdp, 4)
    (0.1861, 0.071, 0.0778)
    """
    trials, probability, scale = check_noise(trials, probability, scale)
    delta = check_delta(delta)
    rounds = check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)
    if adjacency not in ADJACENCIES:
        raise ValueError(f"adjacency must be one of {', '.join(ADJACENCIES)}, got {adjacency!r}")
    worst = worst_shift(probability, scale, dimension, l1, l2, linf)
    epsilon, refusal = _theorem(trials, probability, scale, dimension, l1, l2, linf, delta, rounds)
    exact, reason = _exact(trials, probability, worst, delta, rounds)
    rdp, order = _moments(trials, probability, scale, dimension, l1, l2, linf, worst, delta, rounds)
    if epsilon is None and exact is None and rdp is None:
        raise InfeasibleError(f"{refusal}; {reason}")
    return BinomialAccount(
        mechanism=f"binomial noise, {trials} trials, probability {probability:g}, scale {scale:g}",
        trials=trials,
        probability=probability,
        scale=scale,
        dimension=dimension,
        l1=l1,
        l2=l2,
        linf=linf,
        rounds=rounds,
        delta=delta,
        epsilon=epsilon,
        epsilon_reason=refusal,
        epsilon_exact=exact,
        epsilon_exact_reason=reason,
        epsilon_rdp=rdp,
        order=order,
        worst_shift=worst.shift,
        worst_coordinates=worst.coordinates,
        squared_error=binomial_squared_error(trials, probability, scale, dimension),
        adjacency=adjacency,
        trust_model="secure-sum",
    )


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
            theorem, _ = _theorem(number, probability, scale, 1, sensitivity, sensitivity, sensitivity, delta, 1)
            exact = shifted_binomial_epsilon(number, probability, worst.shift, delta)
            rows.append(
                {
                    "trials": number,
                    "scale": scale,
                    "probability": probability,
                    "sensitivity": sensitivity,
                    "delta": delta,
                    "squared_error": binomial_squared_error(number, probability, scale, 1),
                    "epsilon": math.nan if theorem is None else theorem,
                    "epsilon_exact": exact,
                    "ratio": math.nan if theorem is None else theorem / exact,
                }
            )
    return pd.DataFrame(rows)


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
        Which epsilon: ``"theorem"``, ``"exact"``, ``"rdp"``, or ``"smallest"`` of those that there are.

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
    if method not in ("theorem", "exact", "rdp", "smallest"):
        raise ValueError(f"method must be one of theorem, exact, rdp, smallest, got {method!r}")
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be a number above 0, got {epsilon!r}")
    fields = {"theorem": ("epsilon",), "exact": ("epsilon_exact",), "rdp": ("epsilon_rdp",)}.get(
        method, ("epsilon", "epsilon_exact", "epsilon_rdp")
    )
    most = MOST_TRIALS if method == "theorem" else MOST_EXACT_TRIALS

    def account(trials: int) -> BinomialAccount | None:
        try:
            found = binomial_account(trials, probability, scale, dimension, l1, l2, linf, delta, rounds, adjacency)
        except InfeasibleError:
            return None
        epsilons = [getattr(found, field) for field in fields if getattr(found, field) is not None]
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


def _theorem(
    trials: int, probability: float, scale: float, dimension: int, l1: float, l2: float, linf: float, delta: float, rounds: int
) -> tuple[float | None, str | None]:
    """Return epsilon by Theorem 1, or why there is none.

    Rounds that are (e, d)-private each are, for every d', (e', T d + d')-private together, e' being that of T uses of binary randomised
    response (Kairouz, Oh, Viswanath 2015, theorem 3.3): half of delta is spent on either.
    """
    try:
        if rounds == 1:
            return binomial_theorem_epsilon(trials, probability, scale, dimension, l1, l2, linf, delta), None
        single = binomial_theorem_epsilon(trials, probability, scale, dimension, l1, l2, linf, delta / (2 * rounds))
    except InfeasibleError as error:
        return None, str(error)
    return (composed_pure_epsilon(single, rounds, delta / 2) if rounds <= MOST_COMPOSED_ROUNDS else rounds * single), None


def _exact(trials: int, probability: float, worst: WorstShift, delta: float, rounds: int) -> tuple[float | None, str | None]:
    """Return the exact epsilon, or why there is none."""
    if worst.shift is None or worst.coordinates is None:
        return None, worst.reason
    uses = worst.coordinates * rounds
    if uses == 0:
        return 0.0, None
    if trials > MOST_EXACT_TRIALS:
        return None, f"trials must be at most {MOST_EXACT_TRIALS} for the exact account"
    symmetric = probability == 0.5
    if not symmetric and rounds > 1:
        return None, "rounds must be 1 for the exact account unless probability is 0.5: each round may shift in another direction"
    if uses > (MOST_USES if symmetric else MOST_MIXED_USES):
        return None, f"the worst case of {uses} shifts is too expensive to compose"
    forth, back = shifted_binomial_losses(trials, probability, worst.shift)
    found = composed_exact_epsilon(forth, None if symmetric else back, uses, delta)
    if found is None:
        return None, f"delta must be at least {SMALLEST_COMPOSED_DELTA:g} for the exact account of more than one shift"
    if math.isinf(found):
        return None, "the exact epsilon is infinite: the ends of the noise's support, where a shift is certain, are likelier than delta"
    return found, None


def _moments(
    trials: int,
    probability: float,
    scale: float,
    dimension: int,
    l1: float,
    l2: float,
    linf: float,
    worst: WorstShift,
    delta: float,
    rounds: int,
) -> tuple[float | None, float | None]:
    """Return epsilon by Rényi divergences and the order that gave it, or None.

    Divergences of coordinates add up. Where the worst vector is not known, let r_j be the divergence of a shift by j: a vector's is at most
    max_j (r_j / j^2) sum v_i^2, and max_j (r_j / j) sum |v_i|, and max_j r_j for each coordinate.
    """
    if worst.coordinates == 0:
        return 0.0, None
    total = math.floor(l1 / scale * (1 + WHOLE) + WHOLE)
    squares = math.floor((l2 / scale) ** 2 * (1 + WHOLE) + WHOLE)
    largest = min(math.floor(linf / scale * (1 + WHOLE) + WHOLE), total, math.isqrt(squares))
    changed = min(dimension, total)
    # Rare values end about nine deviations from the mean.
    values = min(trials, 18 * math.sqrt(trials * probability * (1 - probability)) + 100)
    shifts = [largest] if worst.shift is not None else range(1, largest + 1)
    if largest == 0:
        return 0.0, None
    if trials > MOST_EXACT_TRIALS or values * len(shifts) * len(ORDERS) > MOST_VALUES:
        return None, None
    neglected = min(NEGLECTED * delta / (changed * rounds), 0.5)
    rows, failures = zip(*(shifted_binomial_renyi(trials, probability, shift, ORDERS, neglected) for shift in shifts), strict=True)
    divergences = np.array(rows)
    if worst.coordinates is not None:
        coordinates, vector = worst.coordinates, worst.coordinates * divergences[0]
    else:
        steps = np.array(list(shifts), dtype=float)[:, None]
        coordinates = changed
        bounds = (squares * (divergences / steps**2), total * (divergences / steps), dimension * divergences)
        vector = np.minimum.reduce([bound.max(axis=0) for bound in bounds])
    spared = delta - rounds * coordinates * max(failures)
    if spared <= 0 or not np.isfinite(vector).any():
        return None, None
    found = RenyiCurve(np.array(ORDERS), vector).composed(rounds).epsilon(spared)
    return found.epsilon, found.order
