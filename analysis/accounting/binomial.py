"""The privacy of binomial noise in a secure sum: the published theorem, Rényi divergences, and exactly where the worst case is known."""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from ...arguments import check_choice, check_integer
from ...design.contracts.guarantee import ADJACENCIES
from ...errors import InfeasibleError
from ...solvers.accounting.exact_privacy_loss import SMALLEST_COMPOSED_DELTA, composed_exact_epsilon
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, MOST_ROUNDS, RenyiCurve, check_delta
from ...solvers.divergences.binomial_divergence import MOST_EXACT_TRIALS, shifted_binomial_losses, shifted_binomial_renyi
from ...solvers.divergences.cpsgd_theorem import binomial_squared_error, binomial_theorem_epsilon, check_noise, is_theorem_doubtful
from ...solvers.divergences.near_gaussian_noise import binomial_near_gaussian_epsilon
from .composed_rounds import composed_rounds
from .secret_sampling import delta_of_everyone, sampled_share
from .subsampling import Sampling, amplified_pure_epsilon
from .worst_shift import WorstShift, whole_steps, worst_shift

# Ways of accounting.
METHODS = ("theorem", "exact", "rdp", "gaussian")
# Uses that are composed: in one direction, and where each may be in either of two.
MOST_USES, MOST_MIXED_USES = 20_000, 64
# Orders of the moments accountant, the values it may look at in all, and what it counts as failure, as a share of delta.
ORDERS = DEFAULT_ORDERS[:-1:2]
MOST_VALUES = 4e7
NEGLECTED = 1e-9


@dataclass(frozen=True)
class BinomialAccount:
    """What binomial noise in a secure sum promises, by four ways of accounting.

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
    epsilon_doubtful : bool
        Whether it is where exact accounts are known to contradict the theorem, so that it is no guarantee
        (`quietbits.solvers.divergences.cpsgd_theorem.is_theorem_doubtful`).
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
    epsilon_gaussian : float or None
        By the privacy of the Gaussian noise that it nearly is: for every shape of the sensitivities, from the L2 sensitivity alone. Errs
        upward. None where there is too little noise, or it is too different.
    worst_shift, worst_coordinates : int or None
        The pair that is the worst: so many coordinates, each shifted by so many steps of the scale.
    squared_error : float
        Expected squared L2 norm of the noise of one round; exact.
    adjacency : str
        Which data sets are neighbours: those that the sensitivities are for.
    trust_model : str
        ``"secure-sum"``.
    sampling : str or None
        How clients' vectors are chosen for a round; None for all of them.
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
    epsilon_doubtful: bool
    epsilon_exact: float | None
    epsilon_exact_reason: str | None
    epsilon_rdp: float | None
    order: float | None
    epsilon_gaussian: float | None
    worst_shift: int | None
    worst_coordinates: int | None
    squared_error: float
    adjacency: str
    trust_model: str
    sampling: str | None = None

    def document(self) -> dict[str, str | float | bool | None]:
        """Return the account as JSON holds it.

        Returns
        -------
        dict
            The fields by name, always the same ones.
        """
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


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
    sampling: Sampling | None = None,
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
    sampling : PoissonSampling, FixedSizeSampling or None
        How clients' vectors are chosen for a round, in secret (`secret_sampling`). More than one sampled round is
        accounted for by composition of (epsilon, delta), and not by Rényi divergences.

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
    >>> round(binomial_account(10**6, 0.5, 1.0, 1024, 4000.0, 500.0, 100.0, 1e-6).epsilon_gaussian, 3)
    4.887
    """
    return binomial_account_by(METHODS, trials, probability, scale, dimension, l1, l2, linf, delta, rounds, adjacency, sampling)


def binomial_account_by(
    methods: Collection[str],
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
    sampling: Sampling | None = None,
) -> BinomialAccount:
    """Return `binomial_account` by some ways of accounting alone, which is quicker.

    Parameters
    ----------
    methods : collection of str
        Which of ``"theorem"``, ``"exact"``, ``"rdp"`` and ``"gaussian"``; what the others would say is None.
    trials, probability, scale, dimension, l1, l2, linf, delta, rounds, adjacency, sampling
        As in `binomial_account`.

    Returns
    -------
    BinomialAccount
        The account.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If none of the ways proves anything.
    """
    trials, probability, scale = check_noise(trials, probability, scale)
    delta = check_delta(delta)
    rounds = check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)
    check_choice("adjacency", adjacency, ADJACENCIES)
    if sampling is not None:
        return _sampled(methods, trials, probability, scale, dimension, l1, l2, linf, delta, rounds, adjacency, sampling)
    worst = worst_shift(probability, scale, dimension, l1, l2, linf)
    theorem, exact, reason, rdp, order, gaussian = _Theorem(None, None, doubtful=False), None, None, None, None, None
    if "theorem" in methods:
        theorem = _theorem(trials, probability, scale, dimension, l1, l2, linf, delta, rounds)
    if "exact" in methods:
        exact, reason = _exact(trials, probability, worst, delta, rounds)
    if "rdp" in methods:
        rdp, order = _moments(trials, probability, scale, dimension, l1, l2, linf, worst, delta, rounds)
    if "gaussian" in methods:
        steps = math.sqrt(whole_steps((l2 / scale) ** 2))
        gaussian = binomial_near_gaussian_epsilon(trials, probability, steps, dimension, delta, rounds)
    if theorem.epsilon is None and exact is None and rdp is None and gaussian is None:
        reasons = "; ".join(text for text in (theorem.reason, reason) if text)
        raise InfeasibleError(reasons or "trials must be more for these ways of accounting")
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
        epsilon=theorem.epsilon,
        epsilon_reason=theorem.reason,
        epsilon_doubtful=theorem.doubtful,
        epsilon_exact=exact,
        epsilon_exact_reason=reason,
        epsilon_rdp=rdp,
        order=order,
        epsilon_gaussian=gaussian,
        worst_shift=worst.shift,
        worst_coordinates=worst.coordinates,
        squared_error=binomial_squared_error(trials, probability, scale, dimension),
        adjacency=adjacency,
        trust_model="secure-sum",
    )


def _sampled(
    methods: Collection[str],
    trials: int,
    probability: float,
    scale: float,
    dimension: int,
    l1: float,
    l2: float,
    linf: float,
    delta: float,
    rounds: int,
    adjacency: str,
    sampling: Sampling,
) -> BinomialAccount:
    """Return the account of rounds with sampled vectors: ln(1 + q (e^epsilon - 1)) at q delta for each (Balle, Barthe, Gaboardi 2018).

    For a pair that is the worst at every epsilon this is exact. Rounds compose as in `_theorem`.
    """
    share = sampled_share(sampling, adjacency)
    of_one_round = delta if rounds == 1 else delta / (2 * rounds)
    everyone = binomial_account_by(
        methods, trials, probability, scale, dimension, l1, l2, linf, delta_of_everyone(of_one_round, share), adjacency=adjacency
    )

    def amplified(epsilon: float | None) -> float | None:
        return None if epsilon is None else amplified_pure_epsilon(epsilon, share)

    account = replace(everyone, delta=delta, rounds=rounds, sampling=str(sampling), epsilon=amplified(everyone.epsilon))
    if rounds == 1:
        return replace(
            account,
            epsilon_exact=amplified(everyone.epsilon_exact),
            epsilon_rdp=amplified(everyone.epsilon_rdp),
            epsilon_gaussian=amplified(everyone.epsilon_gaussian),
        )
    reason = "rounds must be 1 for the exact account of sampled vectors"
    if account.epsilon is None and everyone.epsilon_gaussian is None:
        raise InfeasibleError("; ".join(text for text in (everyone.epsilon_reason, reason) if text))

    def over_rounds(epsilon: float | None) -> float | None:
        return None if epsilon is None else composed_rounds(epsilon, rounds, delta / 2)

    return replace(
        account,
        epsilon=over_rounds(account.epsilon),
        epsilon_exact=None,
        epsilon_exact_reason=reason,
        epsilon_rdp=None,
        order=None,
        epsilon_gaussian=over_rounds(amplified(everyone.epsilon_gaussian)),
    )


@dataclass(frozen=True)
class _Theorem:
    """Epsilon by Theorem 1, or why there is none, and whether what it says of one round is doubtful."""

    epsilon: float | None
    reason: str | None
    doubtful: bool


def _theorem(
    trials: int, probability: float, scale: float, dimension: int, l1: float, l2: float, linf: float, delta: float, rounds: int
) -> _Theorem:
    """Return what Theorem 1 says.

    Rounds that are (e, d)-private each are, for every d', (e', T d + d')-private together, e' being that of T uses of binary randomised
    response (Kairouz, Oh, Viswanath 2015, theorem 3.3): half of delta is spent on either.
    """
    of_one_round = delta if rounds == 1 else delta / (2 * rounds)
    try:
        single = binomial_theorem_epsilon(trials, probability, scale, dimension, l1, l2, linf, of_one_round)
    except InfeasibleError as error:
        return _Theorem(None, str(error), doubtful=False)
    doubtful = is_theorem_doubtful(single, trials, probability, scale, l2, of_one_round)
    return _Theorem(single if rounds == 1 else composed_rounds(single, rounds, delta / 2), None, doubtful)


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
    total, squares = whole_steps(l1 / scale), whole_steps((l2 / scale) ** 2)
    largest = min(whole_steps(linf / scale), total, math.isqrt(squares))
    changed = min(dimension, total)
    # Rare values end about nine deviations from the mean.
    values = min(trials, 18 * math.sqrt(trials * probability * (1 - probability)) + 100)
    shifts = [largest] if worst.shift is not None else range(1, largest + 1)
    if largest == 0:
        return 0.0, None
    if trials > MOST_EXACT_TRIALS or values * len(shifts) * len(ORDERS) > MOST_VALUES:
        return None, None
    neglected = min(NEGLECTED * delta / (changed * rounds), 0.5)
    found = [shifted_binomial_renyi(trials, probability, shift, ORDERS, neglected) for shift in shifts]
    divergences = np.array([one.divergences for one in found])
    if worst.coordinates is not None:
        coordinates, vector = worst.coordinates, worst.coordinates * divergences[0]
    else:
        steps = np.array(list(shifts), dtype=float)[:, None]
        coordinates = changed
        bounds = (squares * (divergences / steps**2), total * (divergences / steps), dimension * divergences)
        vector = np.minimum.reduce([bound.max(axis=0) for bound in bounds])
    spared = delta - rounds * coordinates * max(one.failure for one in found)
    if spared <= 0 or not np.isfinite(vector).any():
        return None, None
    best = RenyiCurve(np.array(ORDERS), vector).composed(rounds).epsilon(spared)
    return best.epsilon, best.order
