"""What bits buy in a secure sum: every mechanism of a promise beside the noise of a trusted server, at one adjacency."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import pandas as pd
from joblib import Parallel, delayed, parallel_config

from ...arguments import check_integer
from ...design.contracts.gaussian import central_gaussian_error
from ...design.contracts.mechanism import SecureSumMechanism
from ...design.contracts.norm_ball import NormBall
from ...errors import InfeasibleError
from ...progress import OnStep
from ..calibration.cpsgd import MOST_BITS, calibrate_cpsgd
from ..catalogue.secure_sum_mechanisms import build_secure_sum_mechanism
from ..provenance_columns import with_provenance
from ..random_streams import named_stream
from ..simulation.secure_sum import repeat_secure_sum

ADJACENCY = "replace-one"
POPULATION = "sphere"
# What a vector takes that is not compressed, as floating-point numbers of single precision.
UNCOMPRESSED_BITS = 32


@dataclass(frozen=True)
class ComparisonSize:
    """How much is compared.

    Attributes
    ----------
    dimension : int
        Length of the vectors, which lie in the L2 ball of radius 1.
    clients : tuple of int
        Numbers of clients.
    epsilon, delta : float
        The promise.
    bits : tuple of int
        Bits of a message's coordinate, at least 2, in rising order.
    simulated_bits : tuple of int
        Those of them at which rounds are simulated as well; they also are at the fewest bits of each mechanism.
    repetitions : int
        Rounds that are simulated, at least 2.
    """

    dimension: int = 1024
    clients: tuple[int, ...] = (100, 1000, 10_000)
    epsilon: float = 1.0
    delta: float = 1e-5
    bits: tuple[int, ...] = tuple(range(6, 23))
    simulated_bits: tuple[int, ...] = (13, 17, 20)
    repetitions: int = 3


@dataclass(frozen=True, eq=False)
class CalibratedSum:
    """A mechanism of a secure sum that keeps a promise for replace-one adjacency.

    Attributes
    ----------
    mechanism : SecureSumMechanism
        The mechanism.
    epsilon : float
        Epsilon by the account that the mechanism was calibrated with; errs upward.
    """

    mechanism: SecureSumMechanism
    epsilon: float


Build = Callable[[NormBall, int, int, float, float], CalibratedSum]


def _named(name: str) -> Build:
    """Return what calibrates the mechanism of a name, by the best account that there is."""

    def build(ball: NormBall, clients: int, bits: int, epsilon: float, delta: float) -> CalibratedSum:
        mechanism = build_secure_sum_mechanism(name, ball, clients, bits, epsilon, delta, adjacency=ADJACENCY)
        return CalibratedSum(mechanism, mechanism.guarantee.epsilon)

    return build


def _cpsgd_published(ball: NormBall, clients: int, bits: int, epsilon: float, delta: float) -> CalibratedSum:
    mechanism = calibrate_cpsgd(
        clients, ball.dimension, ball.clip_norm, min(bits, MOST_BITS), epsilon, delta, account="theorem", adjacency=ADJACENCY
    ).mechanism
    return CalibratedSum(mechanism, mechanism.theorem_epsilon(delta))


# By the name that a series has in pictures.
SERIES: Mapping[str, Build] = MappingProxyType(
    {
        "discrete Gaussian": _named("distributed-discrete-gaussian"),
        "Skellam": _named("distributed-skellam"),
        "cpSGD": _named("cpsgd"),
        "cpSGD, as published": _cpsgd_published,
        "Poisson-binomial": _named("poisson-binomial"),
    }
)


def compare_secure_sums(size: ComparisonSize, *, seed: int, workers: int, on_step: OnStep) -> pd.DataFrame:
    """Calibrate every mechanism for each number of clients and bits, predict its error, and measure some of it.

    All of them keep the same promise for replace-one adjacency.

    Parameters
    ----------
    size : ComparisonSize
        How much.
    seed : int
        Root seed of simulated vectors and noise.
    workers : int
        Number of processes; the result does not depend on it.
    on_step : callable
        Called with steps done, steps in all, and what was done.

    Returns
    -------
    DataFrame
        One row for each mechanism that there is: ``series``, ``clients``, ``dimension``, ``bits`` (of a message's coordinate, that were
        allowed), ``bits_per_coordinate`` (of a message, over the dimension of the vector), ``fewest_bits`` (with one bit less there is no
        such mechanism), ``epsilon``, ``delta``, ``realised_epsilon`` (errs upward), ``adjacency``, ``trust_model``,
        ``worst_squared_error`` (of the mean, but for bias and wrapping), ``central_squared_error`` (a trusted server's Gaussian noise),
        ``coordinate_wrap_probability`` (errs upward); and ``measured_squared_error`` with ``standard_error``, the mean over ``rounds``
        simulated rounds, ``predicted_squared_error`` at their vectors, and ``wrapped_coordinates`` in all of them, NaN where no round was
        simulated (``rounds`` is 0); and provenance.
        Errors are squared L2 distances, in squared radii of the ball. More bits than a mechanism can use add no row, nor do messages
        of more than 32 bits per coordinate.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    check_integer("repetitions", size.repetitions, low=2, high=1000)
    check_integer("bits", min(size.bits), low=2, high=62)
    ball = NormBall(size.dimension, 2.0)
    # The most clients first: they take the longest.
    cases = [(clients, name) for clients in sorted(size.clients, reverse=True) for name in SERIES]
    rows: list[dict[str, object]] = []
    with parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=1), Parallel(return_as="generator") as parallel:
        found = parallel(delayed(_rows)(size, ball, clients, name, seed) for clients, name in cases)
        for step, ((clients, name), own) in enumerate(zip(cases, found, strict=True), start=1):
            rows += own
            on_step(step, len(cases), f"{name}, {clients} clients")
    frame = pd.DataFrame(rows).sort_values("clients", kind="stable", ignore_index=True)
    return with_provenance(frame, "secure sums against bits", seed)


def _rows(size: ComparisonSize, ball: NormBall, clients: int, name: str, seed: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    used = 0.0
    for bits in size.bits:
        found = _calibrated(size, ball, clients, name, bits)
        if found is None or found.mechanism.bits_per_client <= used:
            continue
        mechanism = found.mechanism
        if mechanism.bits_per_client > UNCOMPRESSED_BITS * ball.dimension:
            break
        used = mechanism.bits_per_client
        fewest = not rows and _calibrated(size, ball, clients, name, bits - 1) is None
        repetitions = size.repetitions if fewest or bits in size.simulated_bits else 0
        own_seed = int(named_stream(seed, f"{name}, {clients} clients, {bits} bits").integers(2**62))
        rows.append(
            {
                "series": name,
                "clients": clients,
                "dimension": ball.dimension,
                "bits": bits,
                "bits_per_coordinate": used / ball.dimension,
                "fewest_bits": fewest,
                "epsilon": size.epsilon,
                "delta": size.delta,
                "realised_epsilon": found.epsilon,
                "adjacency": mechanism.guarantee.adjacency,
                "trust_model": mechanism.guarantee.trust_model,
                "worst_squared_error": mechanism.worst_variance / clients,
                "central_squared_error": central_gaussian_error(ball, clients, size.epsilon, size.delta, ADJACENCY),
                "coordinate_wrap_probability": mechanism.coordinate_wrap_probability,
                **_measured(mechanism, repetitions, own_seed),
            }
        )
    return rows


def _calibrated(size: ComparisonSize, ball: NormBall, clients: int, name: str, bits: int) -> CalibratedSum | None:
    """Return a mechanism, or None where there is none for so few bits."""
    try:
        return SERIES[name](ball, clients, bits, size.epsilon, size.delta)
    except InfeasibleError:
        return None


def _measured(mechanism: SecureSumMechanism, repetitions: int, seed: int) -> dict[str, object]:
    names = ("predicted_squared_error", "measured_squared_error", "standard_error", "wrapped_coordinates")
    if repetitions == 0:
        return {"rounds": 0, **dict.fromkeys(names, math.nan)}
    rounds = repeat_secure_sum(mechanism, POPULATION, repetitions, seed=seed)
    errors = rounds["squared_error"]
    values = (rounds["predicted_squared_error"].mean(), errors.mean(), errors.sem(), float(rounds["wrapped_coordinates"].sum()))
    return {"rounds": repetitions, **dict(zip(names, values, strict=True))}
