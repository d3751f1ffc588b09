"""Tasks of mechanisms: a privacy budget, for clients of a domain."""

import math
from dataclasses import dataclass
from fractions import Fraction

from ...arguments import MOST_CLIENTS, check_choice, check_integer, check_real
from ...errors import InfeasibleError
from ...solvers.accounting.renyi_curve import MOST_ROUNDS
from ...solvers.accounting.sampling import FixedSizeSampling, Sampling
from .domains import Categories, Domain, Interval
from .guarantee import ADJACENCIES
from .norm_ball import NormBall

SMALLEST_TARGET, LARGEST_TARGET = 1e-5, 1e4
# Allowed bits of a coordinate and of a whole message.
FEWEST_BITS, MOST_BITS = 1e-9, 1e6
MOST_MESSAGE_BITS = 1e15
# Relative difference of two numbers of bits that count as equal. One may have been computed from the other.
SAME_BITS = 1e-9


@dataclass(frozen=True)
class Budget:
    """A privacy budget of one client for all rounds together.

    Attributes
    ----------
    epsilon : float
        Privacy parameter of all rounds together, from 1e-5 to 10**4.
    delta : float
        Failure probability of all rounds together, from 0 to below 1; 0 asks for pure privacy.
    adjacency : str
        Adjacency: ``"replace-one"`` or ``"add-or-remove-one"``.
    rounds : int
        Number of rounds in which the same client takes part.
    sampling : PoissonSampling, FixedSizeSampling or None
        Sampling of the clients of a round, in secret.
    method : str or None
        Name of the account that must keep the budget; None for the least proven account.
    dropout : float
        Largest share of the clients that may drop out of a round, from 0 to below 1. In a secure sum, or shuffled, clients hide each other:
        the budget is kept for every number of clients from `survivors` on.

    Raises
    ------
    ValueError
        If a field is out of range.

    Examples
    --------
    >>> Budget(1.0, 1e-6, "replace-one", dropout=0.2).survivors(10_001)
    8001
    """

    epsilon: float
    delta: float
    adjacency: str
    rounds: int = 1
    sampling: Sampling | None = None
    method: str | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "epsilon", check_real("epsilon", self.epsilon, low=SMALLEST_TARGET, high=LARGEST_TARGET))
        if self.delta == 1:
            raise ValueError(f"delta must be a number from 0 to below 1, got {self.delta!r}: delta = 1 permits any mechanism")
        object.__setattr__(self, "delta", check_real("delta", self.delta, low=0.0, high=1 - 1e-16))
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        object.__setattr__(self, "rounds", check_integer("rounds", self.rounds, low=1, high=MOST_ROUNDS))
        if self.dropout == 1:
            raise ValueError(f"dropout must be a share from 0 to below 1, got {self.dropout!r}: without clients there is no estimate")
        object.__setattr__(self, "dropout", check_real("dropout", self.dropout, low=0.0, high=1 - 1e-9))

    def survivors(self, clients: int) -> int:
        """Return the smallest number of clients that remain: at least 1, and not below (1 - dropout) clients."""
        # The share's decimal digits, as typed: the binary fraction of 0.41 would leave one client of a hundred more.
        return max(1, math.ceil((1 - Fraction(repr(self.dropout))) * clients))

    def stated_survivors(self, clients: int) -> int | None:
        """Return `survivors` as a mechanism's parameter, None if no client may drop out."""
        return self.survivors(clients) if self.dropout else None

    def check_delta(self, name: str) -> float:
        """Return delta, which must be above 0 for mechanisms without a pure guarantee."""
        if self.delta == 0:
            raise InfeasibleError(f"delta must be above 0 for {name}, got {self.delta!r}")
        return self.delta


@dataclass(frozen=True)
class Task:
    """A budget for the mean (or the frequencies) of clients' inputs.

    Attributes
    ----------
    domain : Interval, NormBall or Categories
        Domain of a client's input.
    clients : int
        Number of clients.
    epsilon : float
        Privacy parameter of all rounds together, from 1e-5 to 10**4.
    delta : float
        Failure probability of all rounds together, from 0 to below 1; 0 asks for pure privacy.
    adjacency : str
        Adjacency of the budget, without a default, so that comparisons state it.
    rounds : int
        Number of rounds in which the same client takes part.
    bits : float or None
        Largest number of bits of a coordinate: a message has at most `bits` times `dimension` bits. The coordinates are those of a vector,
        or the items of a list; a number has a single coordinate. None for any number of bits.
    sampling : PoissonSampling, FixedSizeSampling or None
        Sampling of the clients of a round, in secret.
    message_bits : float or None
        Largest number of bits of a whole message; None for any number of bits. `bits` states the same limit per coordinate: either field
        suffices.
    method : str or None
        Name of the account that must keep the budget; None for the least proven account.
    dropout : float
        Largest share of the clients that may drop out of a round, as in `Budget`; errors are those of all clients.

    Raises
    ------
    ValueError
        If a field is out of range, or `bits` and `message_bits` contradict each other.

    Examples
    --------
    >>> Task(NormBall(64, 2.0), 1000, 4.0, 0.0, "replace-one", bits=2).most_message_bits
    128.0
    >>> Task(NormBall(64, 2.0), 1000, 4.0, 0.0, "replace-one", message_bits=16).most_bits
    0.25
    """

    domain: Domain
    clients: int
    epsilon: float
    delta: float
    adjacency: str
    rounds: int = 1
    bits: float | None = None
    sampling: Sampling | None = None
    message_bits: float | None = None
    method: str | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        check_domain(self.domain)
        object.__setattr__(self, "clients", check_integer("clients", self.clients, low=1, high=MOST_CLIENTS))
        budget = self.budget
        for name in ("epsilon", "delta", "rounds", "dropout"):
            object.__setattr__(self, name, getattr(budget, name))
        if isinstance(self.sampling, FixedSizeSampling) and self.clients > self.sampling.population:
            raise ValueError(f"clients must be at most the population, {self.sampling.population}, got {self.clients}")
        if self.bits is not None:
            object.__setattr__(self, "bits", check_real("bits", self.bits, low=FEWEST_BITS, high=MOST_BITS))
        if self.message_bits is not None:
            bits = check_real("message_bits", self.message_bits, low=FEWEST_BITS, high=MOST_MESSAGE_BITS)
            object.__setattr__(self, "message_bits", bits)
            if self.bits is not None and not math.isclose(bits, self.bits * self.dimension, rel_tol=SAME_BITS):
                raise ValueError(
                    f"message_bits must be bits times the number of coordinates, {self.bits:g} x {self.dimension} = "
                    f"{self.bits * self.dimension:g}, got {bits:g}: leave one of them out"
                )

    @property
    def budget(self) -> Budget:
        """The privacy budget of all rounds together."""
        return Budget(self.epsilon, self.delta, self.adjacency, self.rounds, self.sampling, self.method, self.dropout)

    @property
    def survivors(self) -> int:
        """Smallest number of clients for which the guarantee of a joint mechanism must hold."""
        return self.budget.survivors(self.clients)

    def budget_of(self, name: str) -> Budget:
        """Return the budget; its delta must be above 0 for the named mechanism."""
        self.budget.check_delta(name)
        return self.budget

    def ball(self, name: str, norms: tuple[float, ...] | None = None) -> NormBall:
        """Return the domain as a ball with one of a mechanism's norms; None allows every norm."""
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
        return self.budget.check_delta(name)

    def check_adjacency(self, name: str, adjacencies: tuple[str, ...]) -> str:
        """Return the adjacency, or raise InfeasibleError if the mechanism does not offer it."""
        return check_offered_adjacency(name, self.adjacency, adjacencies)

    @property
    def dimension(self) -> int:
        """Number of coordinates of an estimate."""
        return self.domain.dimension

    @property
    def most_message_bits(self) -> float | None:
        """Largest number of bits of a message, by `message_bits` or `bits`; None without a limit."""
        if self.message_bits is not None:
            return self.message_bits
        return None if self.bits is None else self.bits * self.dimension

    @property
    def most_bits(self) -> float | None:
        """Largest number of bits of a coordinate, by `bits` or `message_bits`; None without a limit."""
        if self.bits is not None:
            return self.bits
        return None if self.message_bits is None else self.message_bits / self.dimension


def check_task(task: object) -> Task:
    """Return a task, or raise ValueError for anything else, such as a bare domain."""
    if not isinstance(task, Task):
        raise ValueError(f"task must be a Task, got {task!r}")
    return task


def check_domain(domain: object) -> None:
    """Raise ValueError for anything but a domain, such as a bare number of coordinates."""
    if not isinstance(domain, Interval | NormBall | Categories):
        raise ValueError(f"domain must be an Interval, a NormBall or Categories, got {domain!r}{_likely_domain(domain)}")


def _likely_domain(domain: object) -> str:
    if not isinstance(domain, int) or isinstance(domain, bool):
        return ""
    return f": NormBall({domain}, 2.0) has vectors of {domain} coordinates, Categories({domain}) one of {domain} items"


def check_offered_adjacency(name: str, adjacency: str, offered: tuple[str, ...]) -> str:
    """Return an adjacency, or raise InfeasibleError if a mechanism does not offer it."""
    if adjacency not in offered:
        raise InfeasibleError(f"adjacency must be {' or '.join(offered)} for {name}, got {adjacency!r}")
    return adjacency
