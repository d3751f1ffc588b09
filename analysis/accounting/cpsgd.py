"""What cpSGD promises over rounds, by the published theorem and by two closer accounts, and how far its estimates are off."""

import math
from dataclasses import dataclass

from ...arguments import check_integer
from ...design.contracts.vector_epsilon import EPSILON_HIGH, EPSILON_LOW
from ...design.local.vector_gaussian import central_gaussian_error
from ...design.secure_sum.cpsgd_parameters import CpsgdParameters
from ...errors import InfeasibleError
from ...solvers.accounting.gaussian_privacy import LARGEST_DELTA, SMALLEST_DELTA
from ...solvers.accounting.renyi_curve import MOST_ROUNDS
from .composed_rounds import composed_rounds
from .secret_sampling import delta_of_everyone, sampled_share
from .subsampling import Sampling, amplified_pure_epsilon


@dataclass(frozen=True)
class CpsgdAccount:
    """What cpSGD promises, and the errors it is predicted to make.

    Attributes
    ----------
    mechanism : str
        The mechanism, in words.
    clients, dimension, padded_dimension, clip_norm, levels, trials, probability, rotated, rounds, delta
        What was asked, and the coordinates of a message; `trials` are those of each client, and delta is that of all rounds together.
    epsilon : float or None
        By Theorem 1 and equation (10) of cpSGD; several rounds by the composition theorem of Kairouz, Oh, Viswanath 2015. Errs upward.
        None where the theorem's condition does not hold, or where it is false:
        see `CpsgdParameters.theorem_epsilon`.
    epsilon_reason : str or None
        Why that is None.
    epsilon_rdp : float or None
        By Rényi divergences, averaged over coupled rounding. Errs upward. None where the probability is not 1/2, or trials are too few.
    order : float or None
        The Rényi order that gave it.
    epsilon_gaussian : float or None
        By the privacy of the Gaussian noise that it nearly is. Errs upward. None where there is too little noise, or it is too different.
    adjacency, trust_model : str
        Which data sets are neighbours; ``"secure-sum"``.
    bits_per_coordinate : float
        log2 of the modulus, under secure aggregation.
    bits_before_aggregation : float
        log2(levels + trials): what the paper counts.
    squared_error : float
        Predicted expected squared L2 error of one round's mean, for the worst vectors of the ball.
    squared_error_bound : float
        The published bound on it, Theorem 3 or, with rotation, 4.
    bias_bound : float
        Bound on the norm of the bias that cutting off rotated coordinates causes; 0 without rotation.
    squared_error_gaussian : float or None
        That of a trusted server that adds Gaussian noise, for the smallest epsilon and the same delta, adjacency and rounds. None where
        that epsilon or delta is out of the range of `central_gaussian_error`, and with sampling.
    sampling : str or None
        How clients' vectors are chosen for a round; None for all of them.
    """

    mechanism: str
    clients: int
    dimension: int
    padded_dimension: int
    clip_norm: float
    levels: int
    trials: int
    probability: float
    rotated: bool
    rounds: int
    delta: float
    epsilon: float | None
    epsilon_reason: str | None
    epsilon_rdp: float | None
    order: float | None
    epsilon_gaussian: float | None
    adjacency: str
    trust_model: str
    bits_per_coordinate: float
    bits_before_aggregation: float
    squared_error: float
    squared_error_bound: float
    bias_bound: float
    squared_error_gaussian: float | None
    sampling: str | None = None

    @property
    def smallest_epsilon(self) -> float:
        """The smallest of `epsilon`, `epsilon_rdp` and `epsilon_gaussian`."""
        return min(found for found in (self.epsilon, self.epsilon_rdp, self.epsilon_gaussian) if found is not None)

    def document(self) -> dict[str, str | float | bool | None]:
        """Return the account as JSON holds it.

        Returns
        -------
        dict
            The fields by name, always the same ones.
        """
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def cpsgd_account(parameters: CpsgdParameters, rounds: int = 1, sampling: Sampling | None = None) -> CpsgdAccount:
    """Return what so many rounds of cpSGD promise, and how far each one's estimate is off.

    Parameters
    ----------
    parameters : CpsgdParameters
        The mechanism; its delta is that of all rounds together.
    rounds : int
        Number of rounds in which the same client takes part, at least 1.
    sampling : PoissonSampling, FixedSizeSampling or None
        How clients' vectors are chosen for a round, in secret (`secret_sampling`). Rounds then compose by their
        (epsilon, delta), and not by Rényi divergences.

    Returns
    -------
    CpsgdAccount
        The account.

    Raises
    ------
    ValueError
        If the number of rounds is out of range.
    InfeasibleError
        If no account proves anything: the message says why the theorem does not.

    Examples
    --------
    >>> from quietbits.design.contracts.norm_ball import NormBall
    >>> account = cpsgd_account(CpsgdParameters(NormBall(100, 2.0), clients=1000, levels=129, trials=5000, delta=1e-5), rounds=10)
    >>> round(account.epsilon, 3), round(account.epsilon_rdp, 3), account.adjacency
    (8.715, 1.52, 'replace-one')
    >>> round(account.epsilon_gaussian, 3)
    1.432
    """
    rounds = check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)
    epsilons = _epsilons(parameters, rounds, parameters.delta) if sampling is None else _sampled_epsilons(parameters, rounds, sampling)
    ball = parameters.ball
    return CpsgdAccount(
        mechanism=f"cpSGD, {parameters.clients} clients, {parameters.levels} levels, {parameters.trials} trials of each client",
        clients=parameters.clients,
        dimension=ball.dimension,
        padded_dimension=parameters.padded_dimension,
        clip_norm=ball.clip_norm,
        levels=parameters.levels,
        trials=parameters.trials,
        probability=parameters.probability,
        rotated=parameters.rotated,
        rounds=rounds,
        delta=parameters.delta,
        epsilon=epsilons.theorem,
        epsilon_reason=epsilons.reason,
        epsilon_rdp=epsilons.renyi,
        order=epsilons.order,
        epsilon_gaussian=epsilons.gaussian,
        adjacency=parameters.adjacency,
        trust_model="secure-sum",
        bits_per_coordinate=math.log2(parameters.modulus),
        bits_before_aggregation=parameters.message_bits_before_aggregation,
        squared_error=parameters.worst_variance / parameters.clients,
        squared_error_bound=parameters.mean_squared_error_bound,
        bias_bound=parameters.bias_bound,
        # For sampled rounds the error of central Gaussian noise is another one.
        squared_error_gaussian=_gaussian_error(parameters, rounds, epsilons.smallest) if sampling is None else None,
        sampling=None if sampling is None else str(sampling),
    )


@dataclass(frozen=True)
class _Epsilons:
    """Epsilon by each way of accounting, None where it proves nothing, and why the theorem does not."""

    theorem: float | None
    reason: str | None
    renyi: float | None
    order: float | None
    gaussian: float | None

    @property
    def smallest(self) -> float:
        return min(found for found in (self.theorem, self.renyi, self.gaussian) if found is not None)


def _epsilons(parameters: CpsgdParameters, rounds: int, delta: float) -> _Epsilons:
    """Return what is known at a delta, which need not be the mechanism's own: that decides where the levels of rotated vectors end."""
    found = parameters.renyi_epsilon(delta, rounds)
    gaussian = parameters.gaussian_epsilon(delta, rounds)
    theorem: float | None = None
    reason = None
    try:
        theorem = _theorem_epsilon(parameters, rounds, delta)
    except InfeasibleError as error:
        if found is None and gaussian is None:
            raise
        reason = str(error)
    return _Epsilons(theorem, reason, None if found is None else found.epsilon, None if found is None else found.order, gaussian)


def _sampled_epsilons(parameters: CpsgdParameters, rounds: int, sampling: Sampling) -> _Epsilons:
    """Return ln(1 + q (e^epsilon - 1)) at q delta for each round with sampled vectors, composed as in `theorem_epsilon`."""
    share = sampled_share(sampling, parameters.adjacency)
    of_one_round = parameters.delta if rounds == 1 else parameters.delta / (2 * rounds)
    everyone = _epsilons(parameters, 1, delta_of_everyone(of_one_round, share))

    def over_rounds(epsilon: float | None) -> float | None:
        if epsilon is None:
            return None
        single = amplified_pure_epsilon(epsilon, share)
        return single if rounds == 1 else composed_rounds(single, rounds, parameters.delta / 2)

    theorem, gaussian = over_rounds(everyone.theorem), over_rounds(everyone.gaussian)
    if rounds == 1:
        return _Epsilons(theorem, everyone.reason, over_rounds(everyone.renyi), everyone.order, gaussian)
    if theorem is None and gaussian is None:
        raise InfeasibleError(f"{everyone.reason}; rounds must be 1 for the account of sampled vectors by Rényi divergences")
    return _Epsilons(theorem, everyone.reason, None, None, gaussian)


def theorem_epsilon(parameters: CpsgdParameters, rounds: int = 1) -> float:
    """Return the epsilon of so many rounds by Theorem 1 of cpSGD.

    Rounds that are (e, d)-private each are, for every d', (e', T d + d')-private together, e' being that of T uses of binary randomised
    response (Kairouz, Oh, Viswanath 2015, theorem 3.3): half of delta is spent on either.

    Parameters
    ----------
    parameters, rounds
        As in `cpsgd_account`.

    Returns
    -------
    float
        Privacy parameter; errs upward.

    Raises
    ------
    InfeasibleError
        As `CpsgdParameters.theorem_epsilon`.
    """
    return _theorem_epsilon(parameters, rounds, parameters.delta)


def _theorem_epsilon(parameters: CpsgdParameters, rounds: int, delta: float) -> float:
    if rounds == 1:
        return parameters.theorem_epsilon(delta)
    return composed_rounds(parameters.theorem_epsilon(delta / (2 * rounds)), rounds, delta / 2)


def _gaussian_error(parameters: CpsgdParameters, rounds: int, epsilon: float) -> float | None:
    """Return the error of central Gaussian noise at the same epsilon; over T rounds its variance is T times as large."""
    if not (EPSILON_LOW <= epsilon <= EPSILON_HIGH and SMALLEST_DELTA <= parameters.delta <= LARGEST_DELTA):
        return None
    return rounds * central_gaussian_error(parameters.ball, parameters.clients, epsilon, parameters.delta, parameters.adjacency)
