"""Accounts of binomial noise in a secure sum: theorem, Rényi divergences, and exact losses.

The exact account needs the worst shift between two neighbours' vectors.
"""

import math
from dataclasses import dataclass

import numpy as np

from ...arguments import LARGEST_ACCOUNTED_DIMENSION, check_choice, check_integer
from ...solvers.accounting.exact_privacy_loss import SMALLEST_COMPOSED_DELTA, composed_exact_epsilon
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, EpsilonAtDelta, RenyiCurve
from ...solvers.accounting.sampling import Sampling
from ...solvers.divergences.binomial_divergence import (
    MOST_EXACT_TRIALS,
    ShiftedBinomialRenyi,
    VectorSteps,
    most_shifts,
    shifted_binomial_losses,
    shifted_binomial_renyi,
    vector_binomial_renyi,
)
from ...solvers.divergences.cpsgd_theorem import (
    binomial_squared_error,
    binomial_theorem_epsilon,
    check_rate,
    check_scale,
    check_sensitivity,
    check_trials,
    is_theorem_doubtful,
)
from ...solvers.divergences.near_gaussian_noise import GaussianEpsilon, binomial_near_gaussian_epsilon
from ..contracts.accounts import amplified_rounds, composed_singles, needing_delta
from ..contracts.gaussian import near_gaussian_account
from ..contracts.guarantee import ADJACENCIES
from ..contracts.privacy import Account, Bound, EpsilonBound, NearGaussianNoise, Privacy
from ..contracts.registry import AccountReport, AccountSubject, usual_adjacency

# Largest relative distance of a sensitivity from a whole number of steps that counts as rounding.
WHOLE = 1e-9
# Largest number of composed uses, and of uses of which each choice of directions is composed.
MOST_USES, MOST_MIXED_USES = 20_000, 64
# Orders of the moments accountant, and the probability it neglects as a share of delta.
ORDERS = DEFAULT_ORDERS[:-1:2]
NEGLECTED = 1e-9


@dataclass(frozen=True)
class WorstShift:
    """The worst pair of vectors that sensitivities allow, if they determine it.

    Attributes
    ----------
    shift : int or None
        Number of steps of the scale by which coordinates differ; None if the worst pair is not determined.
    coordinates : int or None
        Number of coordinates that differ; None if the worst pair is not determined.
    reason : str or None
        Reason why the worst pair is not determined.
    """

    shift: int | None
    coordinates: int | None
    reason: str | None


def worst_shift(probability: float, scale: float, dimension: int, l1: float, l2: float, linf: float) -> WorstShift:
    """Return the worst pair of neighbours' vectors for sensitivities in the vectors' units.

    Vectors of neighbours differ by v steps, v whole numbers with ``|v_i| <= linf / scale``, ``sum |v_i| <= l1 / scale`` and
    ``sum v_i**2 <= (l2 / scale)**2``. A larger shift of a coordinate reveals more, as binomial noise has a log-concave distribution. So
    the worst v is determined

    - in one dimension; - if every coordinate can be at its largest at the same time; - if no coordinate can change by more than one step:
    as many as possible do; - for probability 1/2, if the L1 sensitivity is no more than the largest coordinate: shifts s and t of two
    coordinates reveal no
      more than one shift by s + t, by group privacy (Dong, Roth, Su 2022, *Gaussian differential privacy*, theorem 2.14) and because
      trade-off functions of log-concave noise add up exactly, f_t(1 - f_s) = f_(s+t).

    The remaining coordinates of the pair are equal.

    Examples
    --------
    >>> worst_shift(0.5, 0.5, 10, 3.0, 3.0, 3.0)
    WorstShift(shift=6, coordinates=1, reason=None)
    """
    probability, scale = check_rate(probability), check_scale(scale)
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_ACCOUNTED_DIMENSION)
    l1 = check_sensitivity("l1_sensitivity", l1)
    l2 = check_sensitivity("l2_sensitivity", l2)
    linf = check_sensitivity("linf_sensitivity", linf)
    steps = linf / scale
    if abs(steps - round(steps)) > WHOLE * max(1.0, steps):
        return WorstShift(None, None, f"linf must be a whole multiple of scale for the exact account, got {steps:.9g} times the scale")
    total, squares = whole_steps(l1 / scale), whole_steps((l2 / scale) ** 2)
    largest = min(round(steps), total, math.isqrt(squares))
    if largest == 0:
        return WorstShift(0, 0, None)
    coordinates = min(dimension, total // largest, squares // largest**2)
    if largest == 1 or coordinates == dimension or (total == largest and probability == 0.5):
        return WorstShift(largest, coordinates, None)
    return WorstShift(None, None, "l1, l2 and linf do not tell which vectors are the worst")


def whole_steps(number: float) -> int:
    """Return a non-negative number rounded down to a whole number, up to rounding errors.

    Examples
    --------
    >>> whole_steps(0.3 / 0.1), whole_steps(2.9)
    (3, 2)
    """
    return math.floor(number * (1 + WHOLE) + WHOLE)


@dataclass(frozen=True)
class BinomialNoise:
    """Binomial noise in a secure sum, and the sensitivities of its neighbours.

    Attributes
    ----------
    trials : int
        Number of trials of a coordinate's noise, of all clients together.
    probability : float
        Probability of success of a trial.
    scale : float
        Size of one success; the vectors' coordinates are multiples of it.
    dimension : int
        Number of coordinates.
    l1, l2, linf : float
        Largest distance of two neighbours' vectors in each norm, in the vectors' units.
    adjacency : str
        The adjacency of the sensitivities.

    Raises
    ------
    ValueError
        If a field is out of its range.
    """

    trials: int
    probability: float
    scale: float
    dimension: int
    l1: float
    l2: float
    linf: float
    adjacency: str = "replace-one"

    def __post_init__(self) -> None:
        """Check the fields."""
        trials, probability, scale = check_trials(self.trials), check_rate(self.probability), check_scale(self.scale)
        object.__setattr__(self, "trials", trials)
        object.__setattr__(self, "probability", probability)
        object.__setattr__(self, "scale", scale)
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        # Computing the worst shift checks the dimension and the sensitivities.
        _ = self.worst_shift

    @property
    def worst_shift(self) -> WorstShift:
        """The worst pair of vectors, if the sensitivities determine it."""
        return worst_shift(self.probability, self.scale, self.dimension, self.l1, self.l2, self.linf)

    @property
    def l2_steps(self) -> float:
        """The L2 sensitivity in steps of the scale, the root of a whole number."""
        return math.sqrt(whole_steps((self.l2 / self.scale) ** 2))

    def privacy(self) -> Privacy:
        """Return the privacy of one sum.

        The account ``"theorem-1"`` of cpSGD is as published, and not proven: exact accounts contradict it for large epsilon (its detail
        ``doubtful`` marks these cases). The account ``"exact"`` uses the distribution of the privacy loss, if the sensitivities determine
        the worst pair of vectors; its upper bound exceeds the exact value by a relative error below 1e-5. The account ``"rdp"`` is a
        moments accountant, and ``"near-gaussian"`` compares the noise with Gaussian noise: both hold for every shape of the sensitivities.
        """
        noise, too_little = NearGaussianNoise(self._gaussian_epsilon), "trials must be more for the noise to be nearly Gaussian"
        accounts = (
            Account("theorem-1", self.adjacency, needing_delta(self._theorem), proven=False),
            Account("exact", self.adjacency, needing_delta(self._sampled_once(self._exact, "the exact account"))),
            Account("rdp", self.adjacency, needing_delta(self._sampled_once(self._moments, "the account by Rényi divergences"))),
            near_gaussian_account(noise, self.adjacency, too_little),
        )
        return Privacy("secure-sum", accounts)

    def _theorem(self, delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        """Return the bound of Theorem 1; rounds compose as (epsilon, delta)."""

        def single(delta: float) -> EpsilonBound:
            epsilon = binomial_theorem_epsilon(
                self.trials, self.probability, self.scale, self.dimension, self.l1, self.l2, self.linf, delta
            )
            doubtful = is_theorem_doubtful(epsilon, self.trials, self.probability, self.scale, self.l2, delta)
            return EpsilonBound(epsilon, details={"doubtful": doubtful})

        if sampling is not None:
            return amplified_rounds(single, delta, rounds, sampling, self.adjacency)
        return composed_singles(single, delta, rounds)

    def _gaussian_epsilon(self, delta: float, rounds: int, sampled: GaussianEpsilon | None) -> float | None:
        return binomial_near_gaussian_epsilon(self.trials, self.probability, self.l2_steps, self.dimension, delta, rounds, sampled=sampled)

    def _sampled_once(self, unsampled: "Bound", what: str) -> "Bound":
        """Return a bound that also holds for one sampled round."""

        def bound(delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
            if sampling is None:
                return unsampled(delta, rounds, None)
            if rounds > 1:
                return EpsilonBound.nothing(f"rounds must be 1 for {what} of sampled vectors")
            return amplified_rounds(lambda delta: unsampled(delta, 1, None), delta, 1, sampling, self.adjacency)

        return bound

    def _exact(self, delta: float, rounds: int, _: Sampling | None) -> EpsilonBound:
        worst = self.worst_shift
        if worst.shift is None or worst.coordinates is None:
            return EpsilonBound.nothing(worst.reason or "the worst pair of vectors is not known")
        uses = worst.coordinates * rounds
        if uses == 0:
            return EpsilonBound(0.0)
        if self.trials > MOST_EXACT_TRIALS:
            return EpsilonBound.nothing(f"trials must be at most {MOST_EXACT_TRIALS} for the exact account")
        symmetric = self.probability == 0.5
        if uses > MOST_USES:
            return EpsilonBound.nothing(f"the worst case of {uses} shifts is too expensive to compose")
        # Each round may shift in another direction, which may depend on earlier sums.
        adaptive = rounds > 1 or uses > MOST_MIXED_USES
        losses = shifted_binomial_losses(self.trials, self.probability, worst.shift, self._neglected(delta, rounds))
        epsilon = composed_exact_epsilon(losses.forth, None if symmetric else losses.back, uses, delta, adaptive=adaptive)
        if epsilon is None:
            return EpsilonBound.nothing(f"delta must be at least {SMALLEST_COMPOSED_DELTA:g} for the exact account of more than one shift")
        if math.isinf(epsilon):
            return EpsilonBound.nothing(
                "the exact epsilon is infinite: the ends of the noise's support, where a shift is certain, are likelier than delta"
            )
        return EpsilonBound(epsilon)

    def _neglected(self, delta: float, rounds: int) -> float:
        """Return the negligible probability of one coordinate in one round."""
        return neglected_mass(max(1, min(self.dimension, whole_steps(self.l1 / self.scale))), delta, rounds)

    def _moments(self, delta: float, rounds: int, _: Sampling | None) -> EpsilonBound:
        """Return epsilon by Rényi divergences of the worst vector, or of all vectors (`vector_binomial_renyi`)."""
        worst = self.worst_shift
        total, squares = whole_steps(self.l1 / self.scale), whole_steps((self.l2 / self.scale) ** 2)
        largest = min(whole_steps(self.linf / self.scale), total, math.isqrt(squares))
        changed = min(self.dimension, total)
        if worst.coordinates == 0 or largest == 0:
            return EpsilonBound(0.0)
        neglected, coordinates = self._neglected(delta, rounds), changed
        if worst.coordinates is not None and worst.shift is not None:
            coordinates = worst.coordinates
            if most_shifts(self.trials, self.probability) < 1:
                return EpsilonBound.nothing("too many trials and shifts for the account by Rényi divergences")
            single = shifted_binomial_renyi(self.trials, self.probability, worst.shift, ORDERS, neglected)
            vector = ShiftedBinomialRenyi(coordinates * single.divergences, single.failure)
        else:
            steps = VectorSteps(squares, total, largest)
            bound = vector_binomial_renyi(self.trials, self.probability, self.dimension, steps, ORDERS, neglected)
            if bound is None:
                return EpsilonBound.nothing("too many trials and shifts for the account by Rényi divergences")
            vector = bound
        best = moments_epsilon(vector, coordinates, delta, rounds)
        if best is None:
            return EpsilonBound.nothing("trials must be more for the account by Rényi divergences")
        return EpsilonBound(best.epsilon, order=best.order, order_at_edge=best.at_edge)


def neglected_mass(coordinates: int, delta: float, rounds: int) -> float:
    """Return the negligible probability of one of the coordinates that differ, in one round."""
    return min(NEGLECTED * delta / (coordinates * rounds), 0.5)


def moments_epsilon(vector: ShiftedBinomialRenyi, coordinates: int, delta: float, rounds: int) -> EpsilonAtDelta | None:
    """Return epsilon of all rounds by Rényi divergences of a vector, or None for too few trials.

    Failures of all coordinates that differ, in all rounds, are a part of delta.
    """
    spared = delta - rounds * coordinates * vector.failure
    if spared <= 0 or not np.isfinite(vector.divergences).any():
        return None
    return RenyiCurve(np.array(ORDERS), vector.divergences).composed(rounds).epsilon(spared)


def accounted_binomial(noise: BinomialNoise) -> AccountSubject:
    """Return binomial noise as a subject of accounts, with its worst pair and squared error."""
    worst = noise.worst_shift
    details = {name: getattr(noise, name) for name in ("trials", "probability", "scale", "dimension", "l1", "l2", "linf")}
    return AccountSubject(
        mechanism=f"binomial noise, {noise.trials} trials, probability {noise.probability:g}, scale {noise.scale:g}",
        privacy=noise.privacy(),
        adjacency=noise.adjacency,
        details=details
        | {
            "worst_shift": worst.shift,
            "worst_coordinates": worst.coordinates,
            "noise_squared_error": binomial_squared_error(noise.trials, noise.probability, noise.scale, noise.dimension),
        },
    )


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
    adjacency: str | None = None,
    sampling: Sampling | None = None,
) -> AccountReport:
    """Return the privacy of binomial noise in a secure sum by all accounts.

    Parameters
    ----------
    trials, probability, scale, dimension, l1, l2, linf
        Noise, number of coordinates and sensitivities, as in `BinomialNoise`.
    delta : float
        Failure probability of all rounds together, above 0 and below 1.
    rounds : int
        Number of rounds, at least 1.
    adjacency : str or None
        The adjacency of the sensitivities; None for that of the sampling, and replace-one without sampling.
    sampling : PoissonSampling, FixedSizeSampling or None
        Sampling of the clients' vectors of a round, in secret.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If every account is infinite.

    Examples
    --------
    >>> account = binomial_account(10**4, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6)
    >>> [round(account.epsilon_by(name), 4) for name in ("theorem-1", "exact", "rdp")], round(account.epsilon, 4)
    ([0.1861, 0.071, 0.0778], 0.071)
    """
    neighbours = usual_adjacency(adjacency, sampling, ("replace-one", "add-or-remove-one"))
    noise = BinomialNoise(trials, probability, scale, dimension, l1, l2, linf, neighbours)
    report = accounted_binomial(noise).report(delta, rounds, sampling)
    report.privacy.check_anything_is_known()
    return report
