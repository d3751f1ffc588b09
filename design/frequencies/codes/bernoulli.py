"""The Bernoulli(1/2) code: every measurement counts a random half of the items.

Chen, Özgür, Cormode, Bharadwaj 2023, *The communication cost of security and privacy in federated frequency estimation*, theorem 4.2.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....arguments import check_integer
from ....arrays import IntegerArray
from ....errors import ConvergenceError, InfeasibleError
from ....solvers.decoders.exact_histogram import HistogramSolution, decode_histogram
from ....solvers.limits.histogram_code_size import code_size
from ...secure_sum.modular_arithmetic import aggregate_residues
from .histogram import LARGEST_SEED, MOST_ENTRIES, HistogramCode

MOST_MEASUREMENTS = 2**20
# A block of the counter-based generator: four words.
BLOCK_BITS = 256


@dataclass(frozen=True)
class BernoulliCode(HistogramCode):
    """Column i is m fair bits of the counter-based generator Philox at (seed, i), whose words numpy promises not to change.

    No matrix is stored: a client makes its own column, the server makes all of them to decode.

    Attributes
    ----------
    dimension, clients : int
        d and n; modulus n + 1.
    measurements : int
        m, from 1 to 2**20; `of_rigorous_size` says how many are enough.
    seed : int
        Public seed, from 0 to 2**128 - 1, which items must not depend on.

    Examples
    --------
    >>> code = BernoulliCode.of_rigorous_size(dimension=50, clients=6, seed=1)
    >>> messages = code.encode([3, 7, 7, 20, 49, 3])
    >>> counts = code.decode(messages.sum(axis=0), clients=6)
    >>> code.measurements, np.flatnonzero(counts).tolist(), counts[counts > 0].tolist()
    (27, [3, 7, 20, 49], [2, 2, 1, 1])
    """

    dimension: int
    clients: int
    measurements: int
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the fields."""
        self._check_domain()
        object.__setattr__(self, "measurements", check_integer("measurements", self.measurements, low=1, high=MOST_MEASUREMENTS))
        object.__setattr__(self, "seed", check_integer("seed", self.seed, low=0, high=LARGEST_SEED))

    @classmethod
    def of_rigorous_size(cls, dimension: int, clients: int, failure_probability: float = 0.01, seed: int = 0) -> Self:
        """Return the code of `code_size` measurements: except with that probability over seeds, all histograms are told apart."""
        return cls(dimension, clients, code_size(clients, dimension, failure_probability), seed)

    @property
    def modulus(self) -> int:
        """One more than the clients, n + 1."""
        return self.clients + 1

    def columns(self, items: ArrayLike) -> NDArray[np.uint8]:
        """Return columns of zeros and ones."""
        checked = self._items(items)
        distinct, places = np.unique(checked, return_inverse=True)
        blocks = -(-self.measurements // BLOCK_BITS)
        words = np.empty((len(distinct), 4 * blocks), dtype="<u8")
        # Runs of neighbours are made at once: a generator costs as much as many columns.
        breaks = np.flatnonzero(np.diff(distinct) != 1) + 1
        for start, stop in zip([0, *breaks], [*breaks, len(distinct)], strict=True):
            if stop > start:
                generator = np.random.Philox(key=self.seed, counter=int(distinct[start]) * blocks)
                words[start:stop] = generator.random_raw((stop - start) * 4 * blocks).reshape(stop - start, -1)
        bits = np.unpackbits(words.view(np.uint8), axis=1, count=self.measurements, bitorder="little")
        return bits[places]

    def matrix(self) -> NDArray[np.uint8]:
        """Return S whole, shape (measurements, dimension); for at most 2**28 entries."""
        if self.measurements * self.dimension > MOST_ENTRIES:
            raise ValueError(
                f"dimension must be at most {MOST_ENTRIES // self.measurements} for the matrix to be stored, got {self.dimension}"
            )
        return np.ascontiguousarray(self.columns(np.arange(self.dimension)).T)

    def solve(self, aggregate: ArrayLike, clients: int, *, time_limit: float = 60.0, prove_unique: bool = True) -> HistogramSolution:
        """Return the histogram with what is known about it; arguments as in `decode` and `decode_histogram`, errors too."""
        clients = check_integer("clients", clients, low=0, high=self.clients)
        return decode_histogram(self.matrix(), self._sums(aggregate), clients, time_limit=time_limit, prove_unique=prove_unique)

    def _decoded(self, residues: IntegerArray, clients: int, time_limit: float) -> IntegerArray:
        solution = decode_histogram(self.matrix(), residues, clients, time_limit=time_limit)
        if solution.unique is False:
            raise InfeasibleError(
                f"two histograms of {clients} items have this sum: {self.measurements} measurements are too few; solve() returns both"
            )
        if solution.unique is None:
            raise ConvergenceError(f"a histogram was found, but not proven the only one in {time_limit:g} s; solve() returns it")
        return solution.counts

    def _sums(self, aggregate: ArrayLike) -> IntegerArray:
        return aggregate_residues(aggregate, self.measurements, self.modulus).astype(np.int64)
