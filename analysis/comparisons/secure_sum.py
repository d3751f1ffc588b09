"""What bits buy in a secure sum: every mechanism of a promise beside the noise of a trusted server, at one adjacency."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pandas as pd

from ...arguments import check_choice
from ...design.contracts.gaussian import central_gaussian_error
from ...design.contracts.mechanism import SecureSumMechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.task import Budget, Task
from ...design.secure_sum.cpsgd import MOST_BITS, calibrate_cpsgd
from ...errors import InfeasibleError
from ..catalogue.registry import build_mechanism
from ..random_streams import named_stream
from ..simulation.repeated_means import repeat_mean
from .point import Point

ADJACENCY = "replace-one"
POPULATION = "sphere"
# What a vector takes that is not compressed, as floating-point numbers of single precision.
UNCOMPRESSED_BITS = 32
PUBLISHED = "cpSGD, as published"
# By the name that a series has in pictures: the mechanism's in the registry.
SERIES: Mapping[str, str] = MappingProxyType(
    {
        "discrete Gaussian": "distributed-discrete-gaussian",
        "Skellam": "distributed-skellam",
        "cpSGD": "cpsgd",
        PUBLISHED: "cpsgd",
        "Poisson-binomial": "poisson-binomial",
    }
)
# A message of the Poisson-binomial mechanism has at least this many coordinates for each of the vector's.
COEFFICIENTS = 2


@dataclass(frozen=True)
class SumProblem:
    """One series with a number of clients, at one promise.

    Attributes
    ----------
    series : str
        One of `SERIES`. All are calibrated by the least of the proven accounts, except ``"cpSGD, as published"``, by Theorem 1.
    clients : int
        Number of clients.
    dimension : int
        Length of the vectors, which lie in the L2 ball of radius 1.
    epsilon, delta : float
        The promise, for replace-one adjacency.
    """

    series: str
    clients: int
    dimension: int = 1024
    epsilon: float = 1.0
    delta: float = 1e-5

    @property
    def ball(self) -> NormBall:
        """The ball."""
        return NormBall(self.dimension, 2.0)

    def mechanism(self, bits: int) -> SecureSumMechanism | None:
        """Return the mechanism whose messages have that many bits a coordinate; None where no mechanism has so few."""
        name = SERIES[check_choice("series", self.series, SERIES)]
        try:
            if self.series == PUBLISHED:
                budget = Budget(self.epsilon, self.delta, ADJACENCY, method="theorem-1")
                return calibrate_cpsgd(self.ball, self.clients, min(bits, MOST_BITS), budget)
            task = Task(self.ball, self.clients, self.epsilon, self.delta, ADJACENCY)
            return cast("SecureSumMechanism", build_mechanism(name, task, {"bits": bits}))
        except InfeasibleError:
            return None

    def realised_epsilon(self, mechanism: SecureSumMechanism) -> float:
        """Return epsilon by the account that the mechanism was calibrated with; errs upward."""
        account = "theorem-1" if self.series == PUBLISHED else None
        return mechanism.privacy().epsilon(self.delta, ADJACENCY, account=account)

    def fewest_bits(self) -> int:
        """Return the fewest bits of a coordinate with which there is a mechanism."""
        return next(bits for bits in range(1, MOST_BITS + 1) if self.mechanism(bits) is not None)


@dataclass(frozen=True, kw_only=True)
class SumPoint(Point):
    """A series at a number of bits: calibrated, its error predicted, and measured where rounds are simulated.

    Attributes
    ----------
    problem : SumProblem
        Series, clients and promise.
    bits : int
        Bits of a message's coordinate, 2 to 55.
    simulated : bool
        Whether rounds are simulated; they also are at the fewest bits.
    repetitions : int
        Rounds that are simulated, at least 2.
    """

    problem: SumProblem
    bits: int
    simulated: bool = False
    repetitions: int = 3

    @property
    def setting(self) -> str:
        """The point in words."""
        return f"{self.problem.series}, {self.problem.clients} clients, {self.bits} bits"

    @property
    def design(self) -> SumProblem:
        """The series: all its points ask for its fewest bits."""
        return self.problem

    def prepare(self, _: Path | None) -> int:
        """Find the fewest bits."""
        return self.problem.fewest_bits()

    def run(self, prepared: int) -> list[dict[str, Any]]:
        """Return a row, or none for too few bits, or more than are sent without compression.

        Errors are squared L2 distances, in squared radii of the ball. ``bits_per_coordinate`` are those of a message, over the dimension of
        the vector. ``realised_epsilon`` and ``coordinate_wrap_probability`` err upward; ``worst_mean_variance`` is the mean's largest
        variance; ``central_squared_error`` is that of a trusted server's Gaussian noise. ``measured_squared_error``, with
        ``standard_error``, and ``predicted_squared_error`` at the same vectors are means over ``rounds`` simulated rounds, and
        ``wrapped_coordinates`` is the number in all of them: NaN where there are none.
        """
        problem, ball = self.problem, self.problem.ball
        mechanism = problem.mechanism(self.bits) if self.bits >= prepared else None
        if mechanism is None or mechanism.bits_per_client > UNCOMPRESSED_BITS * ball.dimension:
            return []
        fewest = self.bits == prepared
        return [
            {
                "series": problem.series,
                "clients": problem.clients,
                "dimension": ball.dimension,
                "bits": self.bits,
                "bits_per_coordinate": mechanism.bits_per_client / ball.dimension,
                "fewest_bits": fewest,
                "epsilon": problem.epsilon,
                "delta": problem.delta,
                "realised_epsilon": problem.realised_epsilon(mechanism),
                "adjacency": ADJACENCY,
                "trust_model": "secure-sum",
                "worst_mean_variance": mechanism.worst_variance / problem.clients,
                "central_squared_error": central_gaussian_error(ball, problem.clients, problem.epsilon, problem.delta, ADJACENCY),
                "coordinate_wrap_probability": mechanism.coordinate_wrap_probability,
                **self._measured(mechanism, self.repetitions if fewest or self.simulated else 0),
            }
        ]

    def _measured(self, mechanism: SecureSumMechanism, repetitions: int) -> dict[str, Any]:
        names = ("predicted_squared_error", "measured_squared_error", "standard_error", "wrapped_coordinates")
        if repetitions == 0:
            return {"rounds": 0, **dict.fromkeys(names, math.nan)}
        stream = named_stream(self.seed, f"{self.problem.series}, {self.problem.clients} clients, {self.bits} bits")
        rounds = repeat_mean(mechanism, POPULATION, repetitions, seed=int(stream.integers(2**62)))
        errors = rounds["squared_error"]
        values = (rounds["predicted_squared_error"].mean(), errors.mean(), errors.sem(), float(rounds["wrapped_coordinates"].sum()))
        return {"rounds": repetitions, **dict(zip(names, values, strict=True))}


def sum_points(
    seed: int,
    *,
    clients: tuple[int, ...] = (100, 1000, 10_000),
    dimension: int = 1024,
    bits: tuple[int, ...] = tuple(range(6, 23)),
    simulated_bits: tuple[int, ...] = (13, 17, 20),
    repetitions: int = 3,
) -> list[SumPoint]:
    """Return the points of all series: those with the most clients first, which take the longest."""

    def is_compressed(name: str, width: int) -> bool:
        return SERIES[name] != "poisson-binomial" or COEFFICIENTS * width <= UNCOMPRESSED_BITS

    problems = [SumProblem(name, number, dimension) for number in sorted(clients, reverse=True) for name in SERIES]
    return [
        SumPoint(seed=seed, problem=problem, bits=width, simulated=width in simulated_bits, repetitions=repetitions)
        for problem in problems
        for width in sorted(bits)
        if is_compressed(problem.series, width)
    ]


def select_sums(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in the order of clients, without those whose mechanism does not use the bits that it may use more of."""
    used = rows.groupby(["clients", "series"])["bits_per_coordinate"].cummax()
    before = used.groupby([rows["clients"], rows["series"]]).shift(fill_value=0.0)
    return rows[rows["bits_per_coordinate"] > before].sort_values("clients", kind="stable", ignore_index=True)
