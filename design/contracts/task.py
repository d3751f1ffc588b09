"""What is wanted of a mechanism: a budget, for clients of a domain."""

from dataclasses import dataclass

from ...arguments import check_choice, check_integer, check_real
from ...errors import InfeasibleError
from ...solvers.accounting.renyi_curve import MOST_ROUNDS
from ...solvers.accounting.sampling import FixedSizeSampling, Sampling
from .domains import Categories, Domain, Interval
from .guarantee import ADJACENCIES
from .mechanism import MOST_CLIENTS
from .norm_ball import NormBall

SMALLEST_TARGET, LARGEST_TARGET = 1e-5, 1e4
# Of a message, for each coordinate.
FEWEST_BITS, MOST_BITS = 1e-9, 1e6


@dataclass(frozen=True)
class Task:
    """A budget for the mean (or the frequencies) of clients' inputs.

    Attributes
    ----------
    domain : Interval, NormBall or Categories
        What a client may hold.
    clients : int
        Number of clients.
    epsilon : float
        Privacy parameter of all rounds together, from 1e-5 to 10**4.
    delta : float
        Failure probability of all rounds together, from 0 to below 1; 0 asks for pure privacy.
    adjacency : str
        Which data sets are neighbours. There is no default: comparisons state one.
    rounds : int
        Number of rounds in which the same client takes part.
    bits : float or None
        Bits of the largest message over the number of coordinates, at most; None for any.
    sampling : PoissonSampling, FixedSizeSampling or None
        How the clients of a round are chosen, in secret.
    """

    domain: Domain
    clients: int
    epsilon: float
    delta: float
    adjacency: str
    rounds: int = 1
    bits: float | None = None
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "clients", check_integer("clients", self.clients, low=1, high=MOST_CLIENTS))
        object.__setattr__(self, "epsilon", check_real("epsilon", self.epsilon, low=SMALLEST_TARGET, high=LARGEST_TARGET))
        if self.delta == 1:
            raise ValueError(f"delta must be a number from 0 to below 1, got {self.delta!r}: at 1 nothing is promised")
        object.__setattr__(self, "delta", check_real("delta", self.delta, low=0.0, high=1 - 1e-16))
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        object.__setattr__(self, "rounds", check_integer("rounds", self.rounds, low=1, high=MOST_ROUNDS))
        if isinstance(self.sampling, FixedSizeSampling) and self.clients > self.sampling.population:
            raise ValueError(f"clients must be at most the population, {self.sampling.population}, got {self.clients}")
        if self.bits is not None:
            object.__setattr__(self, "bits", check_real("bits", self.bits, low=FEWEST_BITS, high=MOST_BITS))

    def ball(self, name: str, norms: tuple[float, ...] | None = None) -> NormBall:
        """Return the domain as a ball of one of the norms that a mechanism is for; None for every norm."""
        if not isinstance(self.domain, NormBall):
            raise InfeasibleError(f"domain must be a ball of vectors for {name}, got {self.domain}")
        if norms is not None and self.domain.norm not in norms:
            raise InfeasibleError(f"norm must be {' or '.join(f'{norm:g}' for norm in norms)} for {name}, got {self.domain.norm:g}")
        return self.domain

    def interval(self, name: str) -> tuple[float, float]:
        """Return the domain as the ends of an interval."""
        if not isinstance(self.domain, Interval):
            raise InfeasibleError(f"domain must be an interval of numbers for {name}, got {self.domain}")
        return self.domain.low, self.domain.high

    def categories(self, name: str) -> int:
        """Return the domain as a number of items."""
        if not isinstance(self.domain, Categories):
            raise InfeasibleError(f"domain must be a list of items for {name}, got {self.domain}")
        return self.domain.size

    def check_delta(self, name: str) -> float:
        """Return delta, which must be above 0 for mechanisms without a pure guarantee."""
        if self.delta == 0:
            raise InfeasibleError(f"delta must be above 0 for {name}, got {self.delta!r}")
        return self.delta

    def check_adjacency(self, name: str, adjacencies: tuple[str, ...]) -> str:
        """Return the adjacency, if the mechanism can state its guarantee for it."""
        return check_offered_adjacency(name, self.adjacency, adjacencies)

    @property
    def dimension(self) -> int:
        """Number of coordinates of an estimate."""
        return self.domain.dimension


def check_offered_adjacency(name: str, adjacency: str, offered: tuple[str, ...]) -> str:
    """Return an adjacency, if it is among those for which a mechanism can state its guarantee."""
    if adjacency not in offered:
        raise InfeasibleError(f"adjacency must be {' or '.join(offered)} for {name}, got {adjacency!r}")
    return adjacency
