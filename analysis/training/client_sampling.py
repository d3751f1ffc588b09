"""Who takes part in a round, what accounting may make of it, and how many seats a secure sum needs."""

import math
from dataclasses import dataclass

import numpy as np

from ...arguments import check_choice, check_integer
from ...arrays import IntegerArray
from ...solvers.accounting.sampling import FixedSizeSampling, PoissonSampling, Sampling

MOST_POPULATION = 10**12
KINDS = ("fixed", "poisson", "with-replacement", "passes")
# The golden ratio: steps of that share of the population spread a pass over it.
STEP_SHARE = (math.sqrt(5) - 1) / 2
# The share of delta that rounds with more clients than seats may cost.
OVERFLOW_SHARE = 1e-6


@dataclass(frozen=True)
class ClientSampling:
    """How the clients of a round are chosen.

    Attributes
    ----------
    kind : str
        ``"fixed"``: a number of different clients. ``"poisson"``: each client with the same probability. ``"with-replacement"``:
        independent draws. ``"passes"``: all clients in turn, each once in a pass.
    population : int
        Number of clients.
    clients_per_round : int
        Of a round; on average with Poisson sampling. With replacement, the number of draws.
    """

    kind: str
    population: int
    clients_per_round: int

    def __post_init__(self) -> None:
        """Check the fields."""
        check_choice("sampling", self.kind, KINDS)
        check_integer("population", self.population, low=1, high=MOST_POPULATION)
        most = 10**6 if self.kind == "with-replacement" else self.population
        check_integer("clients_per_round", self.clients_per_round, low=1, high=most)

    def draw(self, number: int, rng: np.random.Generator, *, repeats: bool = False, seats: int | None = None) -> IntegerArray:
        """Return the clients of a round, which is counted from 1.

        A client that is drawn twice takes part once, unless `repeats`. What is beyond the seats does not take part.
        """
        size, population = self.clients_per_round, self.population
        if self.kind == "passes":
            step = _coprime_step(population)
            first = (number - 1) * size
            return np.array([(first + place) % population * step % population for place in range(size)], dtype=np.int64)
        if self.kind == "with-replacement":
            drawn = rng.integers(0, population, size=size)
            return drawn if repeats else np.unique(drawn)
        if self.kind == "poisson":
            size = int(rng.binomial(population, size / population))
            size = size if seats is None else min(size, seats)
        return rng.choice(population, size=size, replace=False).astype(np.int64)

    def participations(self, rounds: int) -> int:
        """Return in how many of the first rounds a client can be at most."""
        return -(-rounds * self.clients_per_round // self.population) if self.kind == "passes" else rounds

    @property
    def amplifying(self) -> Sampling | None:
        """The sampling as accounting sees it, where a secret choice is known to amplify guarantees; None where it is not."""
        if self.kind == "poisson":
            return PoissonSampling(self.clients_per_round / self.population)
        return FixedSizeSampling(self.population, self.clients_per_round) if self.kind == "fixed" else None

    def seats(self, rounds: int, delta: float) -> int:
        """Return how many clients share the noise of a secure sum, some of them with nothing to report.

        With Poisson sampling, enough for the probability that the other clients leave no seat in some round to be at most a millionth of
        delta. Who else is drawn does not depend on the client's data: given that, rounds in which it finds a seat reveal what rounds
        without a limit do, and the other ones cost their probability.
        """
        if self.kind != "poisson":
            return self.clients_per_round
        from scipy.stats import binom

        allowed, share = OVERFLOW_SHARE * delta / rounds, self.clients_per_round / self.population
        return min(self.population, max(self.clients_per_round, int(binom.isf(allowed, self.population - 1, share)) + 1))


def _coprime_step(population: int) -> int:
    """Return a step with which all numbers below the population are reached."""
    step = max(1, round(STEP_SHARE * population))
    while math.gcd(step, population) > 1:
        step += 1
    return step
