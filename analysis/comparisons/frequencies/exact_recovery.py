"""Exact secure histograms: how often the histogram is recovered, and proven the only one, against the number of measurements.

Items are drawn from a distribution, encoded, summed modulo M and decoded, by the Bernoulli code, with its integer program or the linear
relaxation of it, by Rademacher compressed sensing, and by the identity code. Bounds on the number of measurements are beside what was seen.
"""

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ....arguments import check_choice, check_integer, check_real
from ....arrays import FloatArray
from ....design.frequencies.histogram_codes import BernoulliCode, IdentityCode, RademacherCode
from ....design.secure_sum.modular_arithmetic import modular_sum
from ....errors import ConvergenceError, InfeasibleError
from ....solvers.decoders.histogram_problem import pose_histogram_problem, relaxed_histogram
from ....solvers.limits.histogram_code_size import code_size, code_size_of_histogram
from ...random_streams import named_stream
from ..point import Point

CODES = ("bernoulli", "relaxation", "rademacher", "identity")
PRIORS = ("uniform", "zipf", "geometric")
GEOMETRIC_RATIO = 0.8
MOST_CLIENTS, MOST_ITEMS = 1000, 10**6
FAILURE_PROBABILITY = 0.01
CLIENTS, DIMENSION, REPETITIONS, TIME_LIMIT = 30, 1000, 10, 60.0
MEASUREMENTS = (20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 150, 180, 210)
# Standard normal quantile of the 95% intervals.
QUANTILE = 1.959963984540054


@dataclass(frozen=True, kw_only=True)
class ExactRecoveryPoint(Point):
    """One histogram, encoded and decoded. Repetitions of all codes and numbers of measurements share their items.

    Attributes
    ----------
    code : str
        One of `CODES`; ``"relaxation"`` is the Bernoulli code, decoded by the linear relaxation of its integer program.
    prior : str
        Distribution of items: ``"uniform"``, ``"zipf"`` with exponent 1, ``"geometric"`` with ratio 0.8, all truncated to the dimension.
    measurements : int
        m; the dimension for the identity code.
    clients, dimension : int
        n, up to 1000, and d, up to 10**6.
    time_limit : float
        In seconds, of one decoding. Near it, whether a histogram is recovered depends on the machine.
    repetition : int
        Number of the repetition, from 0.
    """

    code: str
    prior: str
    measurements: int
    clients: int = CLIENTS
    dimension: int = DIMENSION
    time_limit: float = TIME_LIMIT
    repetition: int = 0

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return one row: whether the histogram was ``recovered``, whether it was ``proven`` the only one, and in how many ``seconds``.

        ``distinct`` is the number of different items; ``rigorous_measurements`` tell all histograms of n items apart, and
        ``histogram_measurements`` this one from all others, except with probability 0.01; ``reference_measurements`` is n ln d / ln n.

        Raises
        ------
        ValueError
            If a field is out of range.
        """
        clients = check_integer("clients", self.clients, low=2, high=MOST_CLIENTS)
        dimension = check_integer("dimension", self.dimension, low=1, high=MOST_ITEMS)
        check_real("time_limit", self.time_limit, low=1e-3, high=1e6)
        rng = named_stream(self.seed, f"exact recovery: {clients} of {dimension} {self.prior}, repetition {self.repetition}")
        items = rng.choice(dimension, clients, p=item_probabilities(self.prior, dimension))
        counts = np.bincount(items, minlength=dimension)
        code = self._code(int(rng.integers(2**62)))
        total = modular_sum(code.encode(items), code.modulus)
        start = time.monotonic()
        try:
            if self.code == "relaxation" and isinstance(code, BernoulliCode):
                real = relaxed_histogram(pose_histogram_problem(code.matrix(), total, clients))
                recovered, proven = np.array_equal(np.rint(real), counts), False
            elif isinstance(code, BernoulliCode):
                solution = code.solve(total, clients, time_limit=self.time_limit)
                recovered, proven = np.array_equal(solution.counts, counts), solution.unique is True
            else:
                recovered = np.array_equal(code.decode(total, clients, time_limit=self.time_limit), counts)
                proven = isinstance(code, IdentityCode)
        except (ConvergenceError, InfeasibleError):
            recovered = proven = False
        return [
            {
                "code": self.code,
                "prior": self.prior,
                "clients": clients,
                "dimension": dimension,
                "measurements": code.measurements,
                "repetition": self.repetition,
                "time_limit": self.time_limit,
                "distinct": int(np.count_nonzero(counts)),
                "recovered": recovered,
                "proven": proven,
                "seconds": time.monotonic() - start,
                "bits_per_client": code.bits_per_client,
                "rigorous_measurements": code_size(clients, dimension, FAILURE_PROBABILITY),
                "histogram_measurements": code_size_of_histogram(counts, dimension, FAILURE_PROBABILITY),
                "reference_measurements": clients * math.log(dimension) / math.log(clients),
            }
        ]

    def _code(self, seed: int) -> BernoulliCode | RademacherCode | IdentityCode:
        match check_choice("code", self.code, CODES):
            case "bernoulli" | "relaxation":
                return BernoulliCode(self.dimension, self.clients, self.measurements, seed)
            case "rademacher":
                return RademacherCode(self.dimension, self.clients, self.measurements, seed)
            case _:
                return IdentityCode(self.dimension, self.clients)


def item_probabilities(prior: str, dimension: int) -> FloatArray:
    """Return the probabilities of items 0 to d - 1, which fall."""
    places = np.arange(1, dimension + 1, dtype=np.float64)
    match check_choice("prior", prior, PRIORS):
        case "uniform":
            weights = np.ones(dimension)
        case "zipf":
            weights = 1 / places
        case _:
            weights = GEOMETRIC_RATIO**places
    shares: FloatArray = weights / weights.sum()
    return shares


def exact_recovery_tasks(
    seed: int,
    *,
    sizes: tuple[tuple[int, int], ...] = ((CLIENTS, DIMENSION),),
    measurements: tuple[int, ...] = MEASUREMENTS,
    priors: tuple[str, ...] = PRIORS,
    repetitions: int = REPETITIONS,
    time_limit: float = TIME_LIMIT,
) -> list[ExactRecoveryPoint]:
    """Return a task for each size (n, d), prior, code, number of measurements and repetition; one of the identity code for each size."""
    tasks = []
    for clients, dimension in sizes:
        for prior in priors:
            cases = [(code, size) for code in CODES[:-1] for size in measurements if size < dimension]
            for code, size in [*cases, ("identity", dimension)]:
                tasks += [
                    ExactRecoveryPoint(
                        seed=seed,
                        code=code,
                        prior=prior,
                        measurements=size,
                        clients=clients,
                        dimension=dimension,
                        time_limit=time_limit,
                        repetition=repetition,
                    )
                    for repetition in range(repetitions)
                ]
    return tasks


def arrange_exact_recovery(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per size, prior, code and number of measurements: the share of repetitions that were recovered, and proven.

    ``low`` and ``high`` are Wilson's 95% interval of ``success``; ``histogram_measurements`` and ``seconds`` are means, and
    ``most_seconds`` is the longest decoding.
    """
    setting = ["clients", "dimension", "prior", "code", "measurements", "time_limit"]
    order = rows.assign(
        prior=pd.Categorical(rows["prior"], PRIORS),
        code=pd.Categorical(rows["code"], CODES),
        recovered=rows["recovered"].astype(float),
        proven=rows["proven"].astype(float),
    )
    arranged = (
        order.groupby(setting, observed=True)
        .agg(
            repetitions=("recovered", "size"),
            success=("recovered", "mean"),
            proven=("proven", "mean"),
            seconds=("seconds", "mean"),
            most_seconds=("seconds", "max"),
            distinct=("distinct", "mean"),
            bits_per_client=("bits_per_client", "first"),
            rigorous_measurements=("rigorous_measurements", "first"),
            histogram_measurements=("histogram_measurements", "mean"),
            reference_measurements=("reference_measurements", "first"),
        )
        .reset_index()
        .astype({"prior": str, "code": str})
    )
    count, share = arranged["repetitions"], arranged["success"]
    scale = 1 + QUANTILE**2 / count
    middle = (share + QUANTILE**2 / (2 * count)) / scale
    reach = QUANTILE * np.sqrt(share * (1 - share) / count + QUANTILE**2 / (4 * count**2)) / scale
    return arranged.assign(low=(middle - reach).clip(lower=0.0), high=(middle + reach).clip(upper=1.0))


def recovery_frontier(arranged: pd.DataFrame, share: float = 0.9) -> pd.DataFrame:
    """Return per size, prior and code the fewest measurements from which at least `share` of the repetitions were recovered.

    That number and all larger ones that were tried; missing where the largest failed. Columns as in `arrange_exact_recovery`.
    """
    share = check_real("share", share, low=0.0, high=1.0)
    least = []
    for _, series in arranged.groupby(["clients", "dimension", "prior", "code"], sort=False):
        falling = series.sort_values("measurements", ascending=False)
        reached = falling[(falling["success"] >= share).cummin()]
        least.append(reached.tail(1))
    return pd.concat(least, ignore_index=True)
