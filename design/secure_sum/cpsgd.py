"""cpSGD: clients quantise vectors and add binomial noise, and a secure sum adds them up.

Agarwal, Suresh, Yu, Kumar, McMahan 2018, *cpSGD: communication-efficient and differentially-private distributed SGD*.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_choice, check_integer
from ...arrays import FloatArray, IntegerArray, WordArray
from ...errors import InfeasibleError
from ...solvers.accounting.gaussian_privacy import LARGEST_DELTA, LARGEST_EPSILON, SMALLEST_DELTA, gaussian_noise_multiplier
from ...solvers.accounting.renyi_curve import MOST_ROUNDS, EpsilonAtDelta, check_delta
from ...solvers.accounting.sampling import Sampling
from ...solvers.divergences.binomial_divergence import VectorSteps, vector_binomial_renyi
from ...solvers.divergences.cpsgd_theorem import (
    LARGEST_THEOREM_EPSILON,
    MOST_TRIALS,
    binomial_theorem_epsilon,
    check_rate,
    is_theorem_doubtful,
)
from ...solvers.divergences.near_gaussian_noise import GaussianEpsilon, binomial_near_gaussian_epsilon
from ...solvers.divergences.quantised_divergence import (
    MOST_LEVELS,
    QuantisedSensitivity,
    quantised_epsilon,
    quantised_l2_bound,
    quantised_sensitivity,
)
from ...solvers.numerics.bisection import first_true
from ...solvers.numerics.rounding import SLACK
from ..contracts.accounts import amplified_rounds, composed_singles, needing_delta
from ..contracts.error import VarianceParts
from ..contracts.gaussian import near_gaussian_account
from ..contracts.guarantee import ADJACENCIES
from ..contracts.joint_messages import SURVIVORS
from ..contracts.mechanism import SecureSumMechanism, VectorMechanism
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.options import budgeted, check_parameters, parameter, parts
from ..contracts.privacy import Account, EpsilonBound, NearGaussianNoise, Privacy
from ..contracts.task import Budget
from ..noise.binomial_noise import MOST_TRIALS as MOST_CLIENT_TRIALS
from ..noise.binomial_noise import add_binomial
from ..noise.random_words import WordsLike, WordSource, word_source
from ..transforms.k_level_quantisation import quantisation_error, quantisation_step, write_k_levels
from ..transforms.rotation import LARGEST_SEED, RandomisedHadamard, flattened_bound, rotated_blocks
from ..transforms.vector_dithering import row_blocks
from .binomial_account import ORDERS, moments_epsilon, neglected_mass
from .modular_arithmetic import aggregate_residues, messages_in_parts, summed_messages
from .rounded_secure_sum import CLIENTS

# Share of delta for the event that rounded vectors are further apart than the account by Gaussian noise assumes.
SPARED = 0.01
Enough = Callable[[int, int], bool]
"""Whether a number of levels is hidden by a number of trials."""

# Names of the accounts, the quickest proven account first.
PROVEN = ("near-gaussian", "rdp")
ACCOUNTS = (*PROVEN, "theorem-1")
# No mechanism in range needs more bits.
MOST_BITS = 55
# Number of levels, and number of trials, that the search tries downward from the pair that uses up the bits.
TRIED = 3
# Ratio of an error to the least error that the search accepts without a given number of bits.
CLOSE = 1.01


@dataclass(frozen=True)
class CpsgdMechanism(SecureSumMechanism, VectorMechanism):
    """Clients round coordinates to a few levels and add binomial noise; their sum cannot wrap.

    A vector is clipped, rotated if `rotated`, and rounded to levels 0 to k - 1 on [-X, X], independently in each coordinate; the client
    adds Bin(m, p) to each. A message is at most k - 1 + m, and the modulus is one more than the largest sum of n such messages.

    Without rotation X is the clip norm D. With it, X = D sqrt(2 ln(2 n d / q) / d), d the padded dimension and q = delta / 3: with
    probability 1 - q over the seed, no coordinate of n vectors is beyond X. Coordinates beyond X are truncated, which moves no two vectors
    further apart, but biases the estimate (`bias_bound`). Vectors must not depend on the seed of the rotation.

    The guarantee counts the noise of `survivors` clients, or of all `clients` by default. The noise of clients that drop out is missing, so
    `decode` refuses a sum over fewer clients than that. Noise is drawn exactly.

    Attributes
    ----------
    ball : NormBall
        L2 ball of the vectors.
    clients : int
        Number n of clients that add noise, from 1 to 10**9.
    levels : int
        Number k of levels, from 2 to 2**24.
    trials : int
        Number m of trials of each client for each coordinate, from 1 to 2**40; 10**15 at most for all clients together.
    delta : float
        Failure probability of the guarantee, which includes all events; above 0 and below 1.
    probability : float
        Probability p of success of a trial.
    rotated : bool
        Whether vectors are rotated, which pads them to a power of two.
    rotation_seed : int
        Public seed of the rotation, from 0 to 2**128 - 1.
    adjacency : str
        With ``"replace-one"``, as in the paper, neighbours are two vectors of the ball, at most 2 D apart. With ``"add-or-remove-one"``, a
        client's vector is present or zero, with the noise of n clients either way, which halves the distance.
    survivors : int or None
        Number of clients whose noise suffices for the guarantee, if others drop out; None for all clients.

    Examples
    --------
    >>> mechanism = CpsgdMechanism(NormBall(dimension=3, norm=2.0), clients=1000, levels=65, trials=400, delta=1e-5)
    >>> print(mechanism.guarantee)
    epsilon = 0.758026, delta = 1e-05, replace-one adjacency, secure-sum trust model
    >>> round(mechanism.theorem_epsilon(1e-5), 4), round(mechanism.renyi_epsilon(1e-5).epsilon, 4), mechanism.step
    (1.3684, 0.8058, 0.03125)
    >>> messages = mechanism.encode(np.tile([0.6, 0.0, -0.8], (1000, 1)), np.random.default_rng(0))
    >>> messages.dtype, mechanism.decode(mechanism.aggregate(messages), 1000).round(1).tolist()
    (dtype('uint32'), [0.6, 0.0, -0.8])
    """

    ball: NormBall = parts(NormBall)
    clients: int = parameter(**CLIENTS)
    levels: int = parameter("Number of levels of a coordinate.", 2, MOST_LEVELS)
    trials: int = parameter("Trials of each client's noise for each coordinate.", 1, MOST_CLIENT_TRIALS)
    delta: float = budgeted()
    probability: float = parameter("Probability of success of a trial.", 1e-9, 1 - 1e-9, default=0.5)
    rotated: bool = parameter("Whether vectors are rotated before they are quantised.", default=False, flags="--rotated/--plain")
    rotation_seed: int = parameter("Public seed of the random rotation.", 0, LARGEST_SEED, default=0)
    adjacency: str = "replace-one"
    survivors: int | None = parameter(**SURVIVORS)

    def __post_init__(self) -> None:
        """Check the fields."""
        check_ball(self.ball, "cpSGD", 2)
        check_parameters(self)
        most = min(MOST_CLIENT_TRIALS, MOST_TRIALS // self.clients)
        object.__setattr__(self, "trials", check_integer("trials", self.trials, low=1, high=most))
        object.__setattr__(self, "delta", check_delta(self.delta))
        object.__setattr__(self, "probability", check_rate(self.probability))
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        # The constructor of the rotation checks its seed.
        _ = self._rotation

    @property
    def modulus(self) -> int:
        """The modulus ``clients * (levels - 1 + trials) + 1``, which no sum reaches.

        The modulus is below 2**55 for fields in their ranges.
        """
        return self.clients * (self.levels - 1 + self.trials) + 1

    @property
    def padded_dimension(self) -> int:
        """The dimension, padded to a power of two if vectors are rotated."""
        return self._rotation.padded_dimension if self.rotated else self.ball.dimension

    @property
    def coordinate_wrap_probability(self) -> float:
        """Probability that a coordinate wraps, 0.0, as no sum reaches the modulus."""
        return 0.0

    def facts(self) -> dict[str, Any]:
        """Return the sizes of a sum and of a message, and bounds on error and bias."""
        return {
            "padded_dimension": self.padded_dimension,
            "modulus": self.modulus,
            "bits": (self.modulus - 1).bit_length(),
            "bits_per_coordinate": self.bits_per_client / self.ball.dimension,
            "bits_before_aggregation": self.message_bits_before_aggregation,
            "worst_squared_error": self.error().of_mean(self.clients),
            "squared_error_bound": self.mean_squared_error_bound,
            "bias_bound": self.bias_bound,
        }

    @property
    def message_bits_before_aggregation(self) -> float:
        """Number of bits per coordinate of an unaggregated message, ``log2(levels + trials)``."""
        return math.log2(self.levels + self.trials)

    @property
    def level_bound(self) -> float:
        """The bound X of the levels, in the vectors' units."""
        if not self.rotated:
            return self.ball.clip_norm
        return flattened_bound(self.padded_dimension, self.ball.clip_norm, self._event_delta(self.delta) / self.clients)

    @property
    def step(self) -> float:
        """Size of one step in the vectors' units, ``2 * level_bound / (levels - 1)``."""
        return quantisation_step(self.levels, self.level_bound)

    @property
    def distance(self) -> float:
        """Upper bound on the L2 distance of two neighbours' vectors, in the vectors' units."""
        # Clipping has half the rounding error of a pairwise sum of squares, 160 units, and each of at most 31 rotation steps has an error
        # of one unit.
        return (2 if self.adjacency == "replace-one" else 1) * self.ball.clip_norm * (1 + SLACK)

    @property
    def bias_bound(self) -> float:
        """Upper bound on the bias averaged over the seed: 2 D delta / 3 with rotation, 0 without.

        Given a seed, the estimate has no bias if no rotated coordinate exceeds `level_bound`.
        """
        return 2 * self.ball.clip_norm * self._event_delta(self.delta) if self.rotated else 0.0

    @property
    def seed_bias_bound(self) -> float:
        """Upper bound on the truncation of a rotated vector for any seed; 0.0 without rotation.

        The bound is D - X, which a vector of norm D along an axis attains, or 0.0 if X is larger.
        """
        return max(0.0, self.ball.clip_norm * (1 + SLACK) - self.level_bound) if self.rotated else 0.0

    @property
    def mean_squared_error_bound(self) -> float:
        """Published bound on the expected squared L2 error, without the clipping of vectors.

        The bound is d D**2 (1 + 4 m p (1 - p)) / (n (k - 1)**2) (Theorem 3); with rotation, d D**2 becomes 2 ln(2 n d / q) D**2, d the
        padded dimension, and 4 D**2 q**2 is added for the bias (Theorem 4).
        """
        square = self.ball.clip_norm**2
        spread, bias = self.ball.dimension * square, 0.0
        if self.rotated:
            failure = self._event_delta(self.delta)
            spread = 2 * math.log(2 * self.clients * self.padded_dimension / failure) * square
            bias = 4 * square * failure**2
        noise = self.trials * self.probability * (1 - self.probability)
        # The rounding error is below 30 units, as in `variance_bound`: no terms are subtracted.
        return spread * (1 + 4 * noise) / (self.clients * (self.levels - 1) ** 2) * (1 + SLACK) + bias

    @property
    def variance_bound(self) -> float:
        """Upper bound on the variance over the ball, without clipping of coordinates."""
        return (self._noise_variance + self.ball.dimension * self.step**2 / 4) * (1 + SLACK)

    def privacy_of(self, clients: int) -> Privacy:
        """Return the privacy of sums of a number of clients by ``"theorem-1"``, ``"rdp"`` and ``"near-gaussian"``.

        The theorem is not proven: exact accounts contradict it for large epsilon, and its account has no bound in the ranges where it is
        known to fail (`theorem_epsilon`). Several rounds of the theorem's account compose as (epsilon, delta).
        """

        def theorem(delta: float) -> EpsilonBound:
            return EpsilonBound(self.theorem_epsilon(delta, clients))

        def renyi(delta: float, rounds: int = 1) -> EpsilonBound:
            least = self.renyi_epsilon(delta, rounds, clients)
            if least is None:
                return EpsilonBound.nothing("trials must be more, or fewer if probability is not 1/2, for Rényi divergences")
            return EpsilonBound(least.epsilon, order=least.order, order_at_edge=least.at_edge)

        def by_gaussian(delta: float, rounds: int, sampled: GaussianEpsilon | None) -> float | None:
            return self.gaussian_epsilon(delta, rounds, sampled, clients)

        def theorem_bound(delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
            if sampling is not None:
                return amplified_rounds(theorem, delta, rounds, sampling, self.adjacency)
            return composed_singles(theorem, delta, rounds)

        def renyi_bound(delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
            if sampling is None:
                return renyi(delta, rounds)
            if rounds > 1:
                return EpsilonBound.nothing("rounds must be 1 for the account of sampled vectors by Rényi divergences")
            return amplified_rounds(renyi, delta, 1, sampling, self.adjacency)

        too_little = "trials must be more for their noise to be nearly Gaussian"
        noise = NearGaussianNoise(by_gaussian, of_a_pair=True)
        return Privacy(
            "secure-sum",
            (
                Account("theorem-1", self.adjacency, needing_delta(theorem_bound), proven=False),
                Account("rdp", self.adjacency, needing_delta(renyi_bound)),
                near_gaussian_account(noise, self.adjacency, too_little),
            ),
        )

    def sensitivity(self, delta: float) -> QuantisedSensitivity:
        """Return bounds on the distance of two neighbours' rounded vectors in steps, equation (10).

        The bounds are for coupled rounding and fail with probability `delta`.
        """
        return quantised_sensitivity(self.padded_dimension, self.levels, self.level_bound, self.distance, delta)

    def theorem_epsilon(self, delta: float, clients: int | None = None) -> float:
        """Return epsilon of one sum by the published Theorem 1, unless exact accounts contradict it.

        The noise is that of `clients` clients, by default of `fewest_clients`, as for the other accounts.

        Theorem 1, equation (10) and, with rotation, the largest coordinate each fail with an equal share of delta: the paper's (epsilon, 2
        delta) and (epsilon, 3 delta). `quietbits.solvers.divergences.cpsgd_theorem.is_theorem_doubtful` states the ranges in which exact
        accounts contradict the theorem.

        Raises
        ------
        InfeasibleError
            If there are fewer trials, of all clients together, than the theorem requires, or its epsilon is too small to be true.
        """
        failure = self._event_delta(check_delta(delta))
        steps, total = self.sensitivity(failure), (clients or self.fewest_clients) * self.trials
        # Units of the clip norm keep all numbers in range.
        scale = self.step / self.ball.clip_norm
        l1, l2, linf = steps.l1 * scale, steps.l2 * scale, steps.linf * scale
        epsilon = binomial_theorem_epsilon(total, self.probability, scale, self.padded_dimension, l1, l2, linf, failure)
        if is_theorem_doubtful(epsilon, total, self.probability, scale, l2, failure):
            raise InfeasibleError(
                f"epsilon would be {epsilon:.6g} by Theorem 1 of cpSGD, which does not hold for so large an epsilon: it must be at most "
                f"{LARGEST_THEOREM_EPSILON:g}, and not less than that of Gaussian noise of the same variance"
            )
        return epsilon

    def renyi_epsilon(self, delta: float, rounds: int = 1, clients: int | None = None) -> EpsilonAtDelta | None:
        """Return an upper bound on epsilon of all rounds by Rényi divergences.

        With probability 1/2 the divergences average over the coupled rounding: no sensitivity can fail (`quantised_divergence`). Otherwise
        they are those of all vectors within the bound on the L2 distance of rounded vectors, which fails with a hundredth of delta
        (`vector_binomial_renyi`). None if trials are too few, or too many for the latter.
        """
        trials, apart, dimension = (clients or self.fewest_clients) * self.trials, self.distance / self.step, self.padded_dimension
        if self.probability == 0.5:
            return quantised_epsilon(trials, dimension, self.levels, apart, delta, rounds)
        spared = SPARED * check_delta(delta)
        norm = quantised_l2_bound(dimension, apart, spared / check_integer("rounds", rounds, low=1, high=MOST_ROUNDS))
        if norm == 0:
            return None
        squares, total = math.floor(norm**2 * (1 + SLACK)), math.floor(min(math.sqrt(dimension) * norm, norm**2) * (1 + SLACK))
        steps, changed = VectorSteps(squares, total, min(math.isqrt(squares), self.levels - 1)), min(dimension, total)
        if steps.largest == 0:
            return EpsilonAtDelta(0.0, math.inf, at_edge=False)
        neglected = neglected_mass(changed, delta, rounds)
        vector = vector_binomial_renyi(trials, self.probability, dimension, steps, ORDERS, neglected)
        return None if vector is None else moments_epsilon(vector, changed, delta - spared, rounds)

    def gaussian_epsilon(
        self, delta: float, rounds: int = 1, sampled: GaussianEpsilon | None = None, clients: int | None = None
    ) -> float | None:
        """Return an upper bound on epsilon of all rounds by comparison with Gaussian noise.

        The bound on the L2 distance of rounded vectors fails with a hundredth of delta (`quantised_l2_bound`). The result is None if trials
        are too few, or `probability` is too uneven (`near_gaussian_noise`, also for `sampled`).
        """
        trials, spared = (clients or self.fewest_clients) * self.trials, SPARED * check_delta(delta)
        rounds = check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)
        apart = quantised_l2_bound(self.padded_dimension, self.distance / self.step, spared / rounds)
        # The bound holds given the uniform numbers of the rounding, outside of the failure event.
        return binomial_near_gaussian_epsilon(trials, self.probability, apart, self.padded_dimension, delta - spared, rounds, sampled)

    def for_clients(self, clients: int) -> Self:
        """Return the mechanism for another number of clients.

        Levels of rotated vectors depend on the number of clients, which must then be the mechanism's own.
        """
        return super().for_clients(clients) if self.rotated else replace(self, clients=clients)

    def noisy_steps(self, vectors: ArrayLike, random_words: WordsLike) -> IntegerArray:
        """Return noisy levels, from 0 to levels - 1 + trials, shape (clients, padded_dimension).

        The call uses two arrays of that shape. Encode the messages of many clients in chunks.
        """
        array = self.ball.check(vectors)
        steps = np.empty((len(array), self.padded_dimension), dtype=np.int64)
        self._write_noisy(array, steps, word_source(random_words))
        return steps

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> NDArray[Any]:
        """Return `noisy_steps` in the narrowest words, as the numbers are below the modulus."""
        array, random_words = self.ball.check(vectors), word_source(random_words)
        return messages_in_parts(
            array, self.padded_dimension, self.modulus, lambda part, levels: self._write_noisy(part, levels, random_words), below=True
        )

    def aggregate(self, messages: NDArray[Any]) -> WordArray:
        """Return the sum of the messages, which is below the modulus."""
        return summed_messages(messages, self.padded_dimension, self.modulus)

    def recovered_steps(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return the sum of `noisy_steps`, from 0 to modulus - 1, without any wrap."""
        return aggregate_residues(aggregate, self.padded_dimension, self.modulus).astype(np.int64)

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the mean of the vectors of the clients whose messages arrived.

        The method divides by `clients`, from `fewest_clients` to all, subtracts the noise's mean and rotates back.
        """
        centred = self.recovered_steps(aggregate) / self.check_arrived(clients) - self.trials * self.probability
        flattened = centred * self.step - self.level_bound
        return self._rotation.inverse(flattened) if self.rotated else flattened

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the variance of each vector, exact if no rotated coordinate exceeds `level_bound`.

        The variance is ``dimension step**2 m p (1 - p)``, plus ``step**2 sum f (1 - f)`` with f the fractional parts in steps, times
        dimension / padded_dimension, as the error on the padding is dropped.
        """
        # Entries of a Hadamard matrix are 1 and -1, so the same share of each rotated coordinate's error remains.
        kept = self.ball.dimension / self.padded_dimension
        return self._noise_variance + kept * quantisation_error(self._flattened(vectors), self.levels, self.level_bound)

    def variance_parts(self, vectors: ArrayLike) -> VarianceParts:
        """Return the variance of each vector by noise and rounding."""
        variance = self.variance(vectors)
        return VarianceParts.split(variance, rounding=variance - self._noise_variance)

    def _write_noisy(self, vectors: FloatArray, steps: NDArray[Any], random_words: WordSource) -> None:
        """Write noisy levels of checked vectors into an array."""
        start, bound = 0, self.level_bound
        for part in rotated_blocks(vectors, self.ball, self._rotation) if self.rotated else self._clipped_blocks(vectors):
            write_k_levels(part, self.levels, bound, random_words, steps[start : start + len(part)])
            start += len(part)
        add_binomial(steps, self.trials, self.probability, random_words)

    def _clipped_blocks(self, vectors: FloatArray) -> Iterator[FloatArray]:
        for rows in row_blocks(len(vectors), self.ball.dimension):
            yield self.ball.clip_checked(vectors[rows], np.empty_like(vectors[rows]))

    def _event_delta(self, delta: float) -> float:
        """Return the failure probability of each event: noise, sensitivity, coordinate size."""
        return delta / (3 if self.rotated else 2)

    def _flattened(self, vectors: ArrayLike) -> FloatArray:
        clipped = self.ball.clip(vectors)
        return self._rotation.forward(clipped) if self.rotated else clipped

    @property
    def _noise_variance(self) -> float:
        return self.ball.dimension * self.step**2 * (self.trials * self.probability * (1 - self.probability))

    @cached_property
    def _rotation(self) -> RandomisedHadamard:
        return RandomisedHadamard(self.ball.dimension, self.rotation_seed)


def calibrate_cpsgd(
    ball: NormBall, clients: int, bits: int | None, budget: Budget, *, rotated: bool = True, rotation_seed: int = 0
) -> CpsgdMechanism:
    """Return cpSGD with the levels and trials of least predicted error within a budget.

    More levels mean finer steps and a larger sensitivity; more trials add more noise and need more of the modulus. Consider the pairs of
    levels and trials that use up the bits. The pair with the fewest sufficient trials is better than all pairs with more trials, which have
    no more levels. Pairs with fewer trials do not use up the bits, and have larger errors, except for the rounding of both numbers to whole
    numbers. So the search tries 3 numbers of levels, from that pair's number down, with the fewest sufficient trials, and the next 2
    smaller numbers of trials with the most possible levels.

    Parameters
    ----------
    ball : NormBall
        L2 ball of the vectors.
    clients : int
        Number of clients that add noise, 1 to 10**9.
    bits : int or None
        Number of bits of a coordinate of the sum, 1 to 55; None for the fewest bits with an error within 1 % of the least possible, whose
        search takes some seconds.
    budget : Budget
        The budget of all rounds; its method is ``"near-gaussian"``, ``"rdp"``, ``"theorem-1"`` as published, or None for the least proven
        account.
    rotated : bool
        Whether vectors are rotated.
    rotation_seed : int
        Public seed of the rotation.

    Returns
    -------
    CpsgdMechanism
        The mechanism, with fair trials.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If the bits are too few (the message states the necessary number), or if no number of trials suffices.

    Examples
    --------
    >>> mechanism = calibrate_cpsgd(NormBall(1024, 2.0), 1000, 16, Budget(1.0, 1e-5, "replace-one"))
    >>> mechanism.levels, mechanism.trials, mechanism.guarantee.epsilon <= 1.0
    (6, 49, True)
    """
    check_ball(ball, "cpSGD", 2)
    if bits is not None:
        bits = check_integer("bits", bits, low=1, high=MOST_BITS)
    epsilon, delta = budget.epsilon, check_delta(budget.delta)
    if budget.method is not None:
        check_choice("method", budget.method, ACCOUNTS)
    smallest = CpsgdMechanism(
        ball,
        clients,
        levels=2,
        trials=1,
        delta=delta,
        rotated=rotated,
        rotation_seed=rotation_seed,
        adjacency=budget.adjacency or "replace-one",
        survivors=budget.stated_survivors(clients),
    )

    @cache
    def enough(levels: int, trials: int) -> bool:
        return _keeps(replace(smallest, levels=levels, trials=trials), budget)

    within = min(max(delta, SMALLEST_DELTA), LARGEST_DELTA)
    multiplier = gaussian_noise_multiplier(min(epsilon, LARGEST_EPSILON), within) * math.sqrt(budget.rounds)

    @cache
    def likely(levels: int, trials: int) -> bool:
        # The test uses a bound for Gaussian noise of the clients that remain. Searches begin at the point at which its result changes.
        mechanism = replace(smallest, levels=levels, trials=trials)
        return math.sqrt(smallest.fewest_clients * trials) / 2 >= multiplier * quantised_l2_bound(
            mechanism.padded_dimension, mechanism.distance / mechanism.step, delta
        )

    most = min(MOST_CLIENT_TRIALS, MOST_TRIALS // smallest.clients)
    trials = _first(1, most, lambda number: (2, number), enough, likely)
    if not enough(2, trials):
        raise InfeasibleError(f"epsilon or delta must be larger: not even {most} trials of each client give {epsilon:g} at delta {delta:g}")
    fewest = (replace(smallest, trials=trials).modulus - 1).bit_length()
    if bits is None:
        least = CLOSE * _best(smallest, MOST_BITS, enough, likely).variance_bound
        bits = first_true(fewest, MOST_BITS, lambda width: _best(smallest, width, enough, likely).variance_bound <= least)
    if bits < fewest:
        raise InfeasibleError(
            f"bits must be at least {fewest} for {smallest.clients} clients to reach epsilon = {epsilon:g} at delta = {delta:g} in "
            f"{ball.dimension} dimensions, got {bits}: 2 levels need {trials} trials of each client"
        )
    return _best(smallest, bits, enough, likely)


def _keeps(mechanism: CpsgdMechanism, budget: Budget) -> bool:
    """Return whether the account that the budget selects is within the budget."""
    privacy = mechanism.privacy()

    def bound(name: str) -> EpsilonBound:
        try:
            return privacy.account(name).bound(budget.delta, budget.rounds, budget.sampling)
        except InfeasibleError as error:
            return EpsilonBound(math.inf, str(error))

    return any(bound(name).epsilon <= budget.epsilon for name in (PROVEN if budget.method is None else (budget.method,)))


def _first(low: int, high: int, levels_and_trials: Callable[[int], tuple[int, int]], enough: Enough, likely: Enough) -> int:
    """Return the first number whose levels and trials suffice, from a likely first number."""
    start = first_true(low, high, lambda number: likely(*levels_and_trials(number)))
    return first_true(low, high, lambda number: enough(*levels_and_trials(number)), start=start)


def _best(smallest: CpsgdMechanism, bits: int, enough: Enough, likely: Enough) -> CpsgdMechanism:
    """Return the mechanism with the smallest error among mechanisms within the bits."""
    room = ((1 << bits) - 1) // smallest.clients
    most = min(room - 1, MOST_CLIENT_TRIALS, MOST_TRIALS // smallest.clients)

    def widest(trials: int) -> int:
        return min(room - trials + 1, MOST_LEVELS)

    def most_levels(trials: int, ceiling: int) -> int:
        return ceiling - _first(0, ceiling - 2, lambda fewer: (ceiling - fewer, trials), enough, likely)

    def fewest_trials(levels: int, ceiling: int) -> int:
        return _first(1, ceiling, lambda trials: (levels, trials), enough, likely)

    # Once the bits are used up, more trials need fewer levels, and epsilon falls with the number of trials.
    crossing = _first(1, most, lambda trials: (widest(trials), trials), enough, likely)
    levels = most_levels(crossing, widest(crossing))
    pairs = [(fewer, fewest_trials(fewer, crossing)) for fewer in range(levels, max(1, levels - TRIED), -1)]
    pairs += [
        (most_levels(trials, min(levels, widest(trials))), trials)
        for trials in range(crossing - 1, max(0, crossing - TRIED), -1)
        if enough(2, trials)
    ]
    mechanisms = [replace(smallest, levels=levels, trials=trials) for levels, trials in pairs]
    return min(mechanisms, key=lambda mechanism: mechanism.variance_bound)
