"""How little privacy a mechanism can spend in each round so that all rounds together stay within (epsilon, delta)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from ...arguments import check_integer, check_real
from ...design.contracts.norm_ball import NormBall
from ...design.local.vector_calibration import calibrate_vector_table
from ...design.local.vector_skellam import SkellamMechanism, skellam_mechanism
from ...design.local.vector_table import VectorTableMechanism
from ...errors import InfeasibleError
from ...solvers.accounting.gaussian_privacy import SMALLEST_MULTIPLIER
from ...solvers.accounting.renyi_curve import MOST_ROUNDS, check_delta
from ...solvers.numerics.safe_root import safe_root
from ..accounting.mechanism_accounting import (
    LARGEST_MULTIPLIER,
    LARGEST_PURE_EPSILON,
    gaussian_accounting,
    laplace_accounting,
    protocol_accounting,
    pure_accounting,
)
from ..accounting.privacy_account import AccountedMechanism, PrivacyAccount
from ..accounting.subsampling import Sampling

SMALLEST_TARGET, LARGEST_TARGET = 1e-5, 1e4
SMALLEST_PURE_EPSILON = 1e-6
# How far below its target epsilon may end, where it is a continuous function of what is calibrated; relative below epsilon 1.
TOLERANCE = 1e-6
# Epsilon near zero is a steep function of the parameter, where delta is large: a jump is only what is one at this scale. Not with
# sampling, whose accounts take longer and do jump.
JUMP, SAMPLED_JUMP = 1e-13, 1e-6


@dataclass(frozen=True)
class Calibration:
    """A parameter of a mechanism, and the account that it gives.

    Attributes
    ----------
    target_epsilon : float
        Epsilon that was asked for, after all rounds.
    parameters : tuple of (str, float)
        What was found, by name.
    account : PrivacyAccount
        What holds with it: recomputed from the parameters. Its epsilon, the smaller of the two ways of composition, is at most the
        target and, where it depends continuously on the parameter, less than 1e-6 below it.
    """

    target_epsilon: float
    parameters: tuple[tuple[str, float], ...]
    account: PrivacyAccount

    def document(self) -> dict[str, str | float | bool | None]:
        """Return the calibration as JSON holds it.

        Returns
        -------
        dict
            The parameters, the target, and the fields of the account, by name.
        """
        return dict(self.parameters) | {"target_epsilon": self.target_epsilon} | self.account.document()


def calibrate_gaussian(
    epsilon: float,
    delta: float,
    rounds: int = 1,
    *,
    adjacency: str | None = None,
    trust_model: str | None = None,
    sampling: Sampling | None = None,
) -> Calibration:
    """Return the smallest noise multiplier of Gaussian noise; errs toward more noise.

    Parameters
    ----------
    epsilon : float
        Privacy parameter after all rounds, from 1e-5 to 10**4.
    delta : float
        Failure probability, above 0 and below 1.
    rounds : int
        Number of rounds, at least 1.
    adjacency, trust_model, sampling
        As in `gaussian_accounting`.

    Returns
    -------
    Calibration
        Of ``noise_multiplier``: standard deviation over the L2 sensitivity for the adjacency.

    Raises
    ------
    ValueError
        If an argument is out of range, or the sampling is not supported.
    InfeasibleError
        If no noise multiplier from 0.001 to 10**6 will do.

    Examples
    --------
    >>> found = calibrate_gaussian(2.0, 1e-5, rounds=100)
    >>> found.parameters[0][0], round(found.parameters[0][1], 3), 0 <= 2.0 - found.account.epsilon <= 1e-6
    ('noise_multiplier', 19.938, True)
    """

    def mechanism(inverse: float) -> AccountedMechanism:
        return gaussian_accounting(1 / inverse, adjacency=adjacency, trust_model=trust_model, sampling=sampling)

    inverse, account = _calibrate(
        mechanism, epsilon, delta, rounds, low=1 / LARGEST_MULTIPLIER, high=1 / SMALLEST_MULTIPLIER, name="one over the noise multiplier"
    )
    return Calibration(epsilon, (("noise_multiplier", 1 / inverse),), account)


def calibrate_pure(name: str, epsilon: float, delta: float, rounds: int = 1, *, sampling: Sampling | None = None) -> Calibration:
    """Return the largest epsilon of one round of a local mechanism that is known by its pure epsilon.

    Parameters
    ----------
    name : str
        Name of the mechanism: CLDP, SQKR, PrivUnit or any other.
    epsilon : float
        Privacy parameter after all rounds, from 1e-5 to 10**4.
    delta : float
        Failure probability, above 0 and below 1.
    rounds : int
        Number of rounds, at least 1.
    sampling : PoissonSampling, FixedSizeSampling or None
        Must be None: a local guarantee is not amplified.

    Returns
    -------
    Calibration
        Of ``epsilon_per_round``; errs downward.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If no epsilon from 1e-6 to 100 will do.
    """
    return _calibrate_epsilon(lambda value: pure_accounting(name, value, sampling), epsilon, delta, rounds)


def calibrate_laplace(epsilon: float, delta: float, rounds: int = 1, *, sampling: Sampling | None = None) -> Calibration:
    """Return the largest epsilon of one round of Laplace noise; its scale is the L1 sensitivity over that.

    Parameters
    ----------
    epsilon : float
        Privacy parameter after all rounds, from 1e-5 to 10**4.
    delta : float
        Failure probability, above 0 and below 1.
    rounds : int
        Number of rounds, at least 1.
    sampling : PoissonSampling or None
        As in `laplace_accounting`.

    Returns
    -------
    Calibration
        Of ``epsilon_per_round``; errs downward.

    Raises
    ------
    ValueError
        If an argument is out of range, or the sampling is not supported.
    InfeasibleError
        If no epsilon from 1e-6 to 100 will do.
    """
    return _calibrate_epsilon(lambda value: laplace_accounting(value, sampling), epsilon, delta, rounds)


def calibrate_skellam(epsilon: float, delta: float, ball: NormBall, bits: int, rounds: int = 1) -> tuple[SkellamMechanism, Calibration]:
    """Return Skellam noise, and the finest granularity for it that the bits allow.

    Parameters
    ----------
    epsilon : float
        Privacy parameter after all rounds, from 1e-5 to 10**4.
    delta : float
        Failure probability, above 0 and below 1.
    ball : NormBall
        L2 ball of the vectors.
    bits : int
        Bits per coordinate.
    rounds : int
        Number of rounds, at least 1.

    Returns
    -------
    mechanism : SkellamMechanism
        The mechanism.
    calibration : Calibration
        Of ``granularity``, in the vectors' units, and ``variance``, in squared steps of it; errs toward more noise.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If the bits are too few; the message says how many would do.
    """
    epsilon, delta, rounds = _checked(epsilon, delta, rounds)

    def mechanism(per_round: float) -> SkellamMechanism:
        try:
            return skellam_mechanism(per_round, delta, ball, bits)
        except InfeasibleError as error:
            if rounds == 1:
                raise
            # The message names the epsilon of one round, which nobody asked for.
            raise InfeasibleError(f"{error}, in each of the {rounds} rounds that together have epsilon = {epsilon:g}") from error

    def account(found: SkellamMechanism) -> PrivacyAccount:
        return protocol_accounting(f"Skellam noise, {bits} bits per coordinate", found).account(rounds, delta)

    per_round = safe_root(
        lambda value: _epsilon(account(mechanism(value))),
        epsilon,
        start=epsilon / math.sqrt(rounds),
        low=SMALLEST_TARGET / 100,
        high=LARGEST_TARGET,
        tolerance=_tolerance(epsilon),
        name="epsilon per round",
    )
    found = mechanism(per_round)
    parameters = (("granularity", found.granularity), ("variance", found.noise_variance))
    return found, Calibration(epsilon, parameters, account(found))


def calibrate_vector(
    epsilon: float,
    delta: float,
    ball: NormBall,
    bits_in: int,
    bits_out: int,
    metric: str | None = None,
    *,
    dithering: str = "systematic",
    rounds: int = 1,
    seed: int = 0,
) -> tuple[VectorTableMechanism, Calibration]:
    """Return a table for the coordinates of a vector, designed so that the vector is private (`calibrate_vector_table`).

    Parameters
    ----------
    epsilon : float
        Privacy parameter after all rounds, from 1e-5 to 10**4.
    delta : float
        Failure probability, above 0 and below 1.
    ball : NormBall
        The ball that vectors are clipped to.
    bits_in, bits_out, metric, dithering, seed
        As in `calibrate_vector_table`.
    rounds : int
        Number of rounds, at least 1.

    Returns
    -------
    mechanism : VectorTableMechanism
        The mechanism, with its table.
    calibration : Calibration
        Of ``table_epsilon``. Where a privacy loss distribution is known too, and proves less than Rényi divergences, those are given
        so much more that the account meets the target.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If no table will do.
    """
    epsilon, delta, rounds = _checked(epsilon, delta, rounds)

    @cache
    def calibrated(by_divergence: float) -> tuple[VectorTableMechanism, PrivacyAccount]:
        found = calibrate_vector_table(by_divergence, delta, ball, bits_in, bits_out, metric, dithering=dithering, rounds=rounds, seed=seed)
        return found, protocol_accounting(f"{found.table.mechanism} table for vectors", found).account(rounds, delta)

    mechanism, account = calibrated(epsilon)
    if account.method == "pld" and epsilon - _epsilon(account) > TOLERANCE:
        mechanism, account = calibrated(
            safe_root(
                lambda value: _epsilon(calibrated(value)[1]),
                epsilon,
                start=epsilon,
                low=epsilon,
                high=LARGEST_TARGET,
                tolerance=TOLERANCE,
                name="epsilon by Rényi divergences",
            )
        )
    return mechanism, Calibration(epsilon, (("table_epsilon", mechanism.table.epsilon),), account)


def _calibrate_epsilon(mechanism: Callable[[float], AccountedMechanism], epsilon: float, delta: float, rounds: int) -> Calibration:
    value, account = _calibrate(
        mechanism, epsilon, delta, rounds, low=SMALLEST_PURE_EPSILON, high=LARGEST_PURE_EPSILON, name="epsilon per round"
    )
    return Calibration(epsilon, (("epsilon_per_round", value),), account)


def _calibrate(
    mechanism: Callable[[float], AccountedMechanism], epsilon: float, delta: float, rounds: int, *, low: float, high: float, name: str
) -> tuple[float, PrivacyAccount]:
    """Return the largest argument whose mechanism stays within the target, and the account there."""
    epsilon, delta, rounds = _checked(epsilon, delta, rounds)
    start = min(max(epsilon / math.sqrt(rounds) / 2, low), high)
    value = safe_root(
        lambda argument: _epsilon(mechanism(argument).account(rounds, delta)),
        epsilon,
        start=start,
        low=low,
        high=high,
        tolerance=_tolerance(epsilon),
        jump=JUMP if mechanism(start).sampling is None else SAMPLED_JUMP,
        name=name,
    )
    return value, mechanism(value).account(rounds, delta)


def _checked(epsilon: float, delta: float, rounds: int) -> tuple[float, float, int]:
    epsilon = check_real("epsilon", epsilon, low=SMALLEST_TARGET, high=LARGEST_TARGET)
    return epsilon, check_delta(delta), check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)


def _tolerance(epsilon: float) -> float:
    return TOLERANCE * min(1.0, epsilon)


def _epsilon(account: PrivacyAccount) -> float:
    return math.inf if account.epsilon is None else account.epsilon
