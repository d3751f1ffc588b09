"""The Poisson-binomial mechanism and its calibration: clients send coin tosses.

Chen, Özgür, Kairouz 2022, *The Poisson binomial mechanism for unbiased federated learning with secure aggregation*.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import LARGEST_ACCOUNTED_DIMENSION, check_integer
from ...arrays import FloatArray, IntegerArray, WordArray
from ...errors import InfeasibleError
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, LazyRenyiCurve, RenyiCurve, check_delta, check_order
from ...solvers.accounting.sampling import Sampling
from ...solvers.divergences.extreme_tosses import ExtremeTosses, affordable_cells, extreme_tosses
from ...solvers.divergences.poisson_binomial_divergence import (
    LARGEST_THETA,
    MOST_CLIENTS,
    MOST_TRIALS,
    all_configurations,
    check_sums,
    largest_toss_loss,
    poisson_binomial_pairs,
    poisson_binomial_renyi,
    windows,
)
from ..contracts.accounts import loss_account, pure_account, renyi_account
from ..contracts.calibration import calibrate_parameter
from ..contracts.error import MessageLaw, VarianceParts
from ..contracts.joint_messages import SURVIVORS
from ..contracts.mechanism import SecureSumMechanism, VectorMechanism
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.options import budgeted, check_parameters, parameter, parts
from ..contracts.privacy import Account, EpsilonBound, Privacy
from ..contracts.task import Budget
from ..noise.binomial_noise import count_successes
from ..noise.random_words import WordsLike, WordSource, word_source
from ..transforms.kashin import (
    KASHIN_CONSTANT,
    LARGEST_DIMENSION,
    LARGEST_SEED,
    KashinFrame,
    KashinRepresentation,
    kashin_representation,
    largest_bias,
)
from .modular_arithmetic import aggregate_residues, summed_messages

SMALLEST_THETA = 1e-6
LARGEST_KASHIN_CONSTANT = 1e5
# Every second default order, because with many clients each order costs a sum over all possible values.
ORDERS = (*DEFAULT_ORDERS[:-1:2], math.inf)
# Largest relative rounding error of a slope of divergences.
EXTRAPOLATED = 1e-6
MOST_BITS = 62
# Largest theta of searches for the worst configuration of the other clients.
LARGEST_SEARCHED_THETA = 0.45
# Largest number of trials per client, and of all clients with several trials each; accounts of more trials take longer.
MOST_CALIBRATED_TRIALS, MOST_TRIALS_IN_ALL = 256, 2**20


def poisson_binomial_privacy(clients: int, trials: int, theta: float, dimension: int = 1) -> Privacy:
    """Return the privacy of sums of coin tosses, all coordinates together.

    ``"pure"``, ``"rdp"`` and, for one coordinate and one round, ``"pld"`` are proven for every configuration of the other clients. If not
    all configurations were computed, ``"rdp"`` is the smaller of two bounds: by cells of configurations (`extreme_tosses`), and by half of
    the other clients (`hiding_clients`); and ``"rdp-extremes"`` assumes that the worst has all other clients at the same extreme; no
    search has found a worse configuration.

    Parameters
    ----------
    clients : int
        Number of clients, 1 to 10**7.
    trials : int
        Number of trials of each client for each coordinate, 1 to 4096.
    theta : float
        Largest distance of a trial's probability from 1/2, from 1e-6 to 0.499.
    dimension : int
        Number of coordinates that a client sends, each of which may be at either extreme.

    Examples
    --------
    >>> report = poisson_binomial_privacy(1000, 4, 0.1, dimension=16).report(1e-5)
    >>> round(report.epsilon, 4), round(report.account("rdp-extremes").bound.epsilon, 4)
    (0.3911, 0.3895)
    """
    return _privacy(clients, trials, theta, dimension, first_cell=False)


def _privacy(clients: int, trials: int, theta: float, dimension: int, *, first_cell: bool) -> Privacy:
    """Return the privacy, or a quick guess by the first cell of configurations, which is no guarantee."""
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_ACCOUNTED_DIMENSION)
    check_sums(clients, trials, theta)
    searched = all_configurations(clients, trials, theta)

    def by_loss(rounds: int, delta: float) -> float | None:
        return poisson_binomial_pairs(clients, trials, theta).epsilon(delta) if searched and rounds * dimension == 1 else None

    accounts: tuple[Account, ...] = (
        pure_account(dimension * largest_toss_loss(trials, theta)),
        _proven_account(clients, trials, theta, dimension, first_cell),
        loss_account("pld", by_loss, "replace-one"),
    )
    if not searched:
        assumes = "all other clients at the same extreme hide a client the least"
        accounts = (*accounts, _renyi_account(clients, trials, theta, dimension, "rdp-extremes", assumes))
    return Privacy("secure-sum", accounts)


def _proven_account(clients: int, trials: int, theta: float, dimension: int, first_cell: bool) -> Account:
    """Return the account by Rényi divergences that holds for every configuration of the other clients."""
    halves = hiding_clients(clients, trials, theta)
    by_half = _renyi_account(halves, trials, theta, dimension, "rdp")
    if not _has_cells(clients, trials, theta):
        return by_half

    def divergences(orders: FloatArray) -> FloatArray:
        return dimension * _tosses(clients, trials, theta, first_cell).renyi_divergences(orders)

    by_cells = renyi_account(lambda: LazyRenyiCurve(divergences, ORDERS), "replace-one")

    def bound(delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        return min((account.bound(delta, rounds, sampling) for account in (by_cells, by_half)), key=lambda bound: bound.epsilon)

    def curve() -> RenyiCurve:
        orders, widest = np.array(ORDERS), windows(halves, trials, theta)[-1]
        of_halves = dimension * np.array(_divergences(halves, trials, theta, widest)[0])
        return RenyiCurve(orders, np.minimum(of_halves, divergences(orders)))

    return Account("rdp", "replace-one", bound, curve=renyi_account(curve, "replace-one").curve)


@lru_cache(maxsize=4)
def _tosses(clients: int, trials: int, theta: float, first_cell: bool = False) -> ExtremeTosses:
    return extreme_tosses(clients, trials, theta, first_cell=first_cell)


def _renyi_account(clients: int, trials: int, theta: float, dimension: int, name: str, assumes: str | None = None) -> Account:
    """Return the account by divergences of the widest window, or of an equal narrower window."""

    def curve_of(window: float, share: int) -> RenyiCurve:
        return RenyiCurve(np.array(ORDERS), dimension * np.array(_divergences(clients, trials, theta, window)[share]))

    def account(window: float, share: int) -> Account:
        return renyi_account(lambda: curve_of(window, share), "replace-one", name=name, assumes=assumes)

    *narrow, widest = windows(clients, trials, theta)
    if not narrow:
        # This call refuses too small probabilities before any other computation.
        _divergences(clients, trials, theta, widest)

    def bound(delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        for above, below in tries:
            upper = above.bound(delta, rounds, sampling)
            if upper.epsilon == below.bound(delta, rounds, sampling).epsilon:
                return upper
        return last.bound(delta, rounds, sampling)

    tries, last = [(account(window, 0), account(window, 1)) for window in narrow], account(widest, 0)
    return Account(name, "replace-one", bound, assumes=assumes, curve=last.curve)


@lru_cache(maxsize=64)
def _divergences(clients: int, trials: int, theta: float, window: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return upper and lower bounds on the divergences of one coordinate for rising orders."""
    pairs, orders = poisson_binomial_pairs(clients, trials, theta, window), np.array(ORDERS)
    tight = pairs.tight(orders)
    # Divergences of a narrow window are useful only if they are tight.
    counts = tight | (window == windows(clients, trials, theta)[-1])
    above = np.full(len(orders), pairs.largest_loss)
    above[counts] = pairs.renyi_divergences(orders[counts])
    below = np.where(tight, above, 0.0)
    last = np.flatnonzero(tight & np.isfinite(orders))[-2:]
    if len(last) == 2:
        # (a - 1) D_a is convex in a: beyond its last two values it rises at least as a straight line, less their rounding.
        logarithms, later = (orders[last] - 1) * above[last], ~tight & (orders > orders[last[1]])
        slope = (logarithms[1] - logarithms[0]) / (orders[last[1]] - orders[last[0]]) * (1 - EXTRAPOLATED)
        below[later] = (logarithms[1] + slope * (orders[later] - orders[last[1]])) / (orders[later] - 1)
    return tuple(above.tolist()), tuple(below.tolist())


def hiding_clients(clients: int, trials: int, theta: float) -> int:
    """Return the number of clients at one extreme that bounds every configuration's divergences.

    The worst configuration has each of the other clients' trials at one of two extremes, so that half of them or more are at the same
    extreme. The sum consists of the messages of these clients and of the client itself, and further noise, which cannot raise a divergence.
    So the number is all clients if all configurations were computed, and half of the other clients if not: small divergences then double.
    """
    return clients if all_configurations(clients, trials, theta) else (clients - 1) // 2 + 1


@dataclass(frozen=True)
class PoissonBinomialMechanism(SecureSumMechanism, VectorMechanism):
    """Clients send numbers of successes in a few trials per coefficient; the server sees sums.

    A vector is clipped and written as a combination of the columns of a public tight frame, with coefficients z of at most `level` in
    absolute value: Kashin's representation. Each coefficient becomes the number of successes in `trials` trials of probability ``1/2 +
    theta z / level``. The tosses of the other clients hide a client's tosses. The guarantee counts the tosses of `survivors` clients, or of
    all `clients` by default, and `decode` refuses a sum over fewer clients than that. The vectors must not depend on the seed of the frame.

    A sum is at most clients * trials, which the modulus holds, so that no sum wraps. The estimate has no bias for vectors that have a
    Kashin representation at the level; other vectors are scaled down until they have one. `scaled_down_count` returns their number, and
    `bias_bound` bounds the length that scaling removes. With a constant of sqrt(dimension) or more no vector is scaled down. Privacy does
    not depend on the scaling.

    Trials are exact (`quietbits.design.noise.binomial_noise`): no probability is further from 1/2 than theta. Rounding shifts the mean of a
    decoded coefficient by no more than ``level (2**-52 + 2**-64 / theta)``.

    Attributes
    ----------
    ball : NormBall
        L2 ball of the vectors, of at most 2**24 dimensions.
    clients : int
        Number of clients, from 1 to 10**7.
    trials : int
        Number of trials of each client for each coefficient, from 1 to 4096.
    theta : float
        Largest distance of a trial's probability from 1/2, from 1e-6 to 0.499; the paper uses at most 1/4.
    delta : float
        Failure probability of the guarantee, above 0 and below 1.
    frame_seed : int
        Public seed of the frame, from 0 to 2**63 - 1.
    kashin_constant : float
        Constant K, from 1 to 10**5: the level is min(K, sqrt(dimension)) clip_norm / sqrt(size).
    survivors : int or None
        Number of clients whose tosses suffice for the guarantee, if others drop out; None for all clients.

    Examples
    --------
    >>> ball = NormBall(dimension=3, norm=2.0)
    >>> mechanism = PoissonBinomialMechanism(ball, clients=1000, trials=8, theta=0.125, delta=1e-5)
    >>> print(mechanism.guarantee)
    epsilon = 0.504536, delta = 1e-05, replace-one adjacency, secure-sum trust model
    >>> messages = mechanism.encode(np.tile([0.6, 0.2, -0.7], (1000, 1)), np.random.default_rng(0))
    >>> messages.dtype, mechanism.decode(mechanism.aggregate(messages), 1000).round(1).tolist()
    (dtype('uint16'), [0.6, 0.2, -0.7])
    """

    ball: NormBall = parts(NormBall, dimension={"default": 1, "high": LARGEST_DIMENSION})
    clients: int = parameter("Number of clients whose messages are added up.", 1, MOST_CLIENTS, unit="clients", at_most="population")
    trials: int = parameter("Trials of each client for each coordinate.", 1, MOST_TRIALS)
    theta: float = parameter("Largest distance of a trial's probability from 1/2.", SMALLEST_THETA, LARGEST_THETA)
    delta: float = budgeted()
    frame_seed: int = parameter("Public seed of the frame.", 0, LARGEST_SEED, default=0, name="rotation_seed")
    kashin_constant: float = parameter(
        "K: the largest coefficient is min(K, sqrt(dimension)) clip / sqrt(size).", 1.0, LARGEST_KASHIN_CONSTANT, default=KASHIN_CONSTANT
    )
    survivors: int | None = parameter(**SURVIVORS)

    def __post_init__(self) -> None:
        """Check the fields."""
        check_ball(self.ball, "the Poisson-binomial mechanism", 2)
        check_parameters(self)
        object.__setattr__(self, "delta", check_delta(self.delta))

    @cached_property
    def frame(self) -> KashinFrame:
        """The public frame."""
        return KashinFrame(self.ball.dimension, self.frame_seed)

    @property
    def level(self) -> float:
        """Largest coefficient that a client can send, in the vectors' units."""
        return self._constant * self.ball.clip_norm / math.sqrt(self.frame.size)

    @property
    def modulus(self) -> int:
        """The modulus ``clients * trials + 1``, one more than the largest sum."""
        return self.clients * self.trials + 1

    @property
    def padded_dimension(self) -> int:
        """Size of the frame, from twice to four times the dimension."""
        return self.frame.size

    def privacy_of(self, clients: int) -> Privacy:
        """Return the privacy of one sum of a number of clients, for any vectors (`poisson_binomial_privacy`)."""
        return poisson_binomial_privacy(clients, self.trials, self.theta, self.padded_dimension)

    def facts(self) -> dict[str, Any]:
        """Return the size of the frame, the configurations searched for the worst, and error bounds."""
        every = all_configurations(self.fewest_clients, self.trials, self.theta)
        return {
            "padded_dimension": self.padded_dimension,
            "worst_case": "all configurations" if every else "all others at one extreme",
            "worst_squared_error": self.error().of_mean(self.clients),
            "bias_bound": self.bias_bound,
        }

    def divergences(self, order: float) -> dict[str, float]:
        """Return the divergence of a coefficient, and the proven bound on it, by name.

        The value ``"rdp"`` is for the worst configuration of the other clients, or for all of them at one extreme if not all configurations
        are computed; ``"rdp_proven"`` holds for every configuration.
        """
        check_order(order)
        sums = self.fewest_clients, self.trials, self.theta
        at_extremes, by_half = (poisson_binomial_renyi(clients, *sums[1:], [order])[0] for clients in (sums[0], hiding_clients(*sums)))
        if _has_cells(*sums):
            by_half = min(by_half, _tosses(*sums).renyi_divergences([order])[0])
        return {"rdp": float(at_extremes), "rdp_proven": float(by_half)}

    @property
    def coordinate_wrap_probability(self) -> float:
        """Probability that a coordinate wraps, 0.0, as no sum exceeds clients * trials."""
        return 0.0

    @property
    def bias_bound(self) -> float:
        """Upper bound on the length by which scaling shortens a vector of the ball, for any seed."""
        return largest_bias(self.frame, self._constant) * self.ball.clip_norm

    def known_bias(self, vectors: ArrayLike) -> FloatArray:
        """Return the bias from scaling of each clipped vector, or a single 0.0.

        The call costs as much as encoding.
        """
        clipped = self.ball.clip(vectors)
        return np.zeros(()) if self.bias_bound == 0 else self._bias(clipped, self._represent(clipped))

    @property
    def variance_bound(self) -> float:
        """Largest variance of a vector of the ball, the variance of the zero vector."""
        return self._tosses

    def for_clients(self, clients: int) -> Self:
        """Return the mechanism for another number of clients, on which tosses do not depend."""
        return replace(self, clients=clients)

    def noisy_steps(self, vectors: ArrayLike, random_words: WordsLike) -> IntegerArray:
        """Return each client's successes, from 0 to `trials`, shape (clients, padded_dimension).

        The call uses five arrays of that shape. Encode the messages of many clients in chunks.
        """
        return self._successes(self._represent(vectors), word_source(random_words))

    def add_steps(self, total: IntegerArray, inputs: ArrayLike, random_words: WordsLike) -> MessageLaw:
        """Add the sum of `noisy_steps` to a total in place, and return the messages' law, from one representation."""
        clipped = self.ball.clip(inputs)
        represented = kashin_representation(clipped, self.frame, self.level)
        total += self._successes(represented, word_source(random_words)).sum(axis=0)
        return MessageLaw(self._bias(clipped, represented), self._variance(represented))

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> NDArray[Any]:
        """Return `noisy_steps` in the narrowest words; the numbers are below the modulus."""
        return self.noisy_steps(vectors, random_words).astype(np.min_scalar_type(self.modulus - 1))

    def aggregate(self, messages: NDArray[Any]) -> WordArray:
        """Return the sum of messages modulo clients * trials + 1.

        Sums of chunks need not be reduced.
        """
        return summed_messages(messages, self.padded_dimension, self.modulus)

    def recovered_steps(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return the sums of the clients' counts, from 0 to clients * trials."""
        return aggregate_residues(aggregate, self.padded_dimension, self.modulus).astype(np.int64)

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the estimated mean: the excess of the sums over half of all trials, by the frame.

        `clients` is the number of clients whose messages arrived, from `fewest_clients` to all; the estimate may lie outside the ball.
        """
        arrived = self.check_arrived(clients)
        # The excess is doubled to be a whole number.
        excess = 2 * self.recovered_steps(aggregate) - arrived * self.trials
        coefficients = excess.astype(float) * (self.level / (2 * self.theta * self.trials * arrived))
        return np.asarray(self.frame.synthesis(coefficients[None, :])[0])

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the exact variance of each vector, at the cost of encoding.

        With D the size of the frame and a the coefficients, the variance is

            dimension ( level**2 / (4 trials theta**2) - ||a||**2 / (D trials) )

        because a decoded coefficient has the variance ``(level / theta)**2 (1/4 - (theta a / level)**2) / trials``, and each of the frame's
        columns the squared norm dimension / D.
        """
        return self._variance(self._represent(vectors))

    def variance_parts(self, vectors: ArrayLike) -> VarianceParts:
        """Return the variance of each vector as noise, that of the tosses."""
        return VarianceParts.split(self.variance(vectors))

    def scaled_down_count(self, vectors: ArrayLike) -> int:
        """Return the number of clipped vectors without a Kashin representation at the level."""
        return int(np.count_nonzero(self._represent(vectors).scales < 1))

    @property
    def _constant(self) -> float:
        return min(self.kashin_constant, math.sqrt(self.ball.dimension))

    @property
    def _tosses(self) -> float:
        """Expected squared norm of the decoded message of the zero vector."""
        return self.ball.dimension * self.level**2 / (4 * self.trials * self.theta**2)

    def _successes(self, represented: KashinRepresentation, random_words: WordSource) -> IntegerArray:
        # No ratio exceeds 1 in absolute value, and rounding is monotone, so no bias exceeds theta.
        return count_successes(self.theta * (represented.coefficients / self.level), self.trials, random_words)

    def _bias(self, clipped: FloatArray, represented: KashinRepresentation) -> FloatArray:
        return np.zeros(()) if self.bias_bound == 0 else (represented.scales - 1)[:, None] * clipped

    def _variance(self, represented: KashinRepresentation) -> FloatArray:
        share = self.ball.dimension / (self.frame.size * self.trials)
        return np.asarray(self._tosses - share * np.einsum("ij,ij->i", represented.coefficients, represented.coefficients))

    def _represent(self, vectors: ArrayLike) -> KashinRepresentation:
        return kashin_representation(self.ball.clip(vectors), self.frame, self.level)


def calibrate_theta(
    clients: int, trials: int, dimension: int, budget: Budget, *, largest: float = LARGEST_THETA, start: float | None = None
) -> float:
    """Return the largest theta, from 1e-6 to `largest`, that keeps a budget, rounded down.

    Examples
    --------
    >>> round(calibrate_theta(1000, 4, 16, Budget(1.0, 1e-5, "replace-one", method="rdp-extremes")), 4)
    0.2183
    """
    epsilon, delta = budget.epsilon, check_delta(budget.delta)
    if start is None:
        first = epsilon * math.sqrt(clients / (16 * trials * dimension * budget.rounds * math.log(1 / delta)))
    else:
        first = _ratio(start)

    # Epsilon is nearly proportional to the ratio of theta to a trial's deviation, up to theta = 1/2, so a search over the ratio needs fewer
    # evaluations.
    def theta_of(ratio: float) -> float:
        return min(max(ratio / math.sqrt(1 + 4 * ratio**2), SMALLEST_THETA), largest)

    def largest_ratio(start: float, first_cell: bool) -> float:
        return calibrate_parameter(
            lambda ratio: _epsilon(clients, trials, theta_of(ratio), dimension, budget, first_cell),
            budget,
            low=_ratio(SMALLEST_THETA),
            high=_ratio(largest),
            name="theta",
            start=start,
            shown=theta_of,
        )

    # The first cell is mostly the worst cell: its theta then needs a single evaluation of all cells.
    if _has_cells(clients, trials, largest) and _epsilon(clients, trials, largest, dimension, budget, first_cell=True) > epsilon:
        first = largest_ratio(first, first_cell=True)
    return theta_of(largest_ratio(first, first_cell=False))


def calibrate_poisson_binomial(
    ball: NormBall, clients: int, bits: int, budget: Budget, *, trials: int | None = None, frame_seed: int = 0
) -> PoissonBinomialMechanism:
    """Return the Poisson-binomial mechanism with the least variance whose sums fit the bits.

    With many clients that mechanism has the most trials, as the variance for a coefficient of zero at the largest theta is about ``level**2
    (A + 1 / trials)``, with A the same for all numbers of trials. With few clients, a single trial with pure privacy may be better than any
    larger number. So the search tries the largest number of trials and all smaller powers of two.

    Parameters
    ----------
    ball : NormBall
        L2 ball of the vectors; messages have from twice to four times as many coordinates.
    clients : int
        Number n of clients, 1 to 10**7.
    bits : int
        Number of bits of a coordinate of a message: n * trials + 1 is at most 2**bits; 1 to 62. The search takes at most 256 trials, and at
        most 2**20 / n (but at least one), because beyond t trials further trials could gain at most about ``level**2 / t``.
    budget : Budget
        The budget of all rounds together.
    trials : int or None
        Number of trials of each client; None for the best number that the bits hold.
    frame_seed : int
        Public seed of the frame.

    Returns
    -------
    PoissonBinomialMechanism
        Mechanism whose theta is rounded down, toward more privacy, and is at most 0.45, or 0.499 for a given number of trials.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If the bits do not hold one trial of each client (the message states the necessary number), or if no theta from 1e-6 is small
        enough.

    Examples
    --------
    >>> mechanism = calibrate_poisson_binomial(NormBall(100, 2.0), 1000, 12, Budget(1.0, 1e-5, "replace-one"))
    >>> mechanism.trials, 0 <= 1.0 - mechanism.guarantee.epsilon <= 1e-6
    (4, True)
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    bits = check_integer("bits", bits, low=1, high=MOST_BITS)
    epsilon, delta, hiding = budget.epsilon, check_delta(budget.delta), budget.survivors(clients)

    def made(trials: int, theta: float) -> PoissonBinomialMechanism:
        return PoissonBinomialMechanism(ball, clients, trials, theta, delta, frame_seed, survivors=budget.stated_survivors(clients))

    # The number of coordinates does not depend on trials and theta.
    size = made(1, LARGEST_SEARCHED_THETA).padded_dimension

    def keeps(trials: int, theta: float) -> bool:
        quick = (True, False) if _has_cells(hiding, trials, theta) else (False,)
        return all(_epsilon(hiding, trials, theta, size, budget, first_cell) <= epsilon for first_cell in quick)

    def largest_theta(trials: int, start: float | None) -> float:
        if keeps(trials, LARGEST_SEARCHED_THETA):
            return LARGEST_SEARCHED_THETA
        return calibrate_theta(hiding, trials, size, budget, largest=LARGEST_SEARCHED_THETA, start=start)

    most = (2**bits - 1) // clients
    if most < 1:
        raise InfeasibleError(f"bits must be at least {clients.bit_length()} to hold one trial of each of {clients} clients, got {bits}")
    if trials is not None:
        if trials > most:
            enough = (clients * trials).bit_length()
            raise InfeasibleError(f"bits must be at least {enough} to hold {trials} trials of each of {clients} clients, got {bits}")
        return made(trials, calibrate_theta(hiding, trials, size, budget))
    trials = min(most, MOST_CALIBRATED_TRIALS, max(1, MOST_TRIALS_IN_ALL // clients))
    theta = largest_theta(trials, None)
    for fewer in (2**power for power in reversed(range((trials - 1).bit_length()))):
        # The worst variance falls with trials * theta**2, so fewer trials are better only with a larger theta.
        needed = math.nextafter(theta * math.sqrt(trials / fewer), math.inf)
        if needed <= LARGEST_SEARCHED_THETA and keeps(fewer, needed):
            trials, theta = fewer, largest_theta(fewer, needed)
    return made(trials, theta)


def _has_cells(clients: int, trials: int, theta: float) -> bool:
    return not all_configurations(clients, trials, theta) and affordable_cells(clients, trials, theta)


def _epsilon(clients: int, trials: int, theta: float, dimension: int, budget: Budget, first_cell: bool = False) -> float:
    privacy = _privacy(clients, trials, theta, dimension, first_cell=first_cell)
    return privacy.epsilon(budget.delta, budget.adjacency, budget.rounds, budget.sampling, account=budget.method)


def _ratio(theta: float) -> float:
    """Return half of theta over the deviation of a trial with the probability 1/2 + theta."""
    return theta / math.sqrt(1 - 4 * theta**2)
