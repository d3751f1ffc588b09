"""Exact frequencies in a secure sum, without privacy beyond the sum itself.

Chen, Özgür, Cormode, Bharadwaj 2023, *The communication cost of security and privacy in federated frequency estimation*, section 4. Codes
of items are linear: a client sends the column of its item, and the secure sum is the code times the histogram, exactly and modulo M.

In the Bernoulli(1/2) code (theorem 4.2) every measurement counts a random half of the items. The Rademacher code is compressed sensing of a
histogram: random signs, decoded over the real numbers, by the vector of least L1 norm with the given measurements (basis pursuit; Candès,
Romberg, Tao 2006, and Donoho 2006). That decoder uses neither that counts are whole nor their sum.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self

import highspy
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CATEGORIES, check_integer, check_real
from ...arrays import FloatArray, IndexArray, IntegerArray, WordArray, check_unmasked
from ...errors import ConvergenceError, InfeasibleError
from ...solvers.decoders.exact_histogram import LONGEST_TIME, HistogramSolution, decode_histogram
from ...solvers.limits.histogram_code_size import code_size
from ...solvers.numerics.highs_program import new_highs
from ..contracts.mechanism import FrequencyMechanism, SecureSumMechanism
from ..contracts.privacy import Account, EpsilonBound, Privacy
from ..noise.random_words import WordsLike, word_source
from ..secure_sum.modular_arithmetic import aggregate_residues, centred_representatives, messages_modulo, summed_messages

LARGEST_SEED = 2**128 - 1
MOST_CLIENTS = 2**20
# Largest number of entries of a stored matrix or chunk of messages.
MOST_ENTRIES = 2**28
# Largest number of entries of the columns that are added up per batch.
AT_ONCE = 2**22

MOST_MEASUREMENTS = 2**20
# Number of bits of a block of the counter-based generator, which has four words.
BLOCK_BITS = 256

NOTHING_PROVEN = "the sum shows exactly how many clients hold each item, and nothing is proven beyond the secure sum"


class HistogramCode(ABC):
    """Base class of all codes; a frozen dataclass with the fields below derives from it.

    Sums of chunks of clients add up modulo M, by `modular_sum`. Clients may drop out: the sum of the others decodes for their number.

    Attributes
    ----------
    dimension : int
        Number d of items, which are numbered from 0; up to 2**40.
    clients : int
        Largest number n of clients in a sum; up to 2**20.
    measurements : int
        Number m of whole numbers that a client sends.
    """

    dimension: int
    clients: int
    measurements: int

    @property
    @abstractmethod
    def modulus(self) -> int:
        """The modulus M, which is so large that no sum of n columns wraps around."""

    @property
    def bits_per_client(self) -> float:
        """Number of bits of a message, ``measurements * log2(modulus)``."""
        return self.measurements * math.log2(self.modulus)

    @abstractmethod
    def columns(self, items: ArrayLike) -> NDArray[Any]:
        """Return the columns of items as rows of small whole numbers, shape (items, measurements).

        Numbers are signed if the code is.
        """

    def encode(self, items: ArrayLike) -> NDArray[Any]:
        """Return the messages of clients with given items, shape (clients, measurements).

        Messages are residues modulo M in the narrowest unsigned words.

        Raises
        ------
        ValueError
            If an item is unknown, or there are more clients than the modulus holds.
        """
        checked = self._items(items)
        if len(checked) > self.clients:
            raise ValueError(f"items must be of at most {self.clients} clients, for whom the modulus was chosen, got {len(checked)}")
        return messages_modulo(self.columns(checked), self.modulus)

    def summed_columns(self, items: ArrayLike) -> IntegerArray:
        """Return the sum of the columns of all items, shape (measurements,).

        Each distinct item's column is made once, for all its holders.
        """
        held, times = np.unique(self._checked(items), return_counts=True)
        total = np.zeros(self.measurements, dtype=np.int64)
        at_once = max(1, AT_ONCE // self.measurements)
        for start in range(0, len(held), at_once):
            total += times[start : start + at_once] @ self.columns(held[start : start + at_once]).astype(np.int64)
        return total

    def decode(self, aggregate: ArrayLike, clients: int, *, time_limit: float = 60.0) -> IntegerArray:
        """Return the number of clients that hold each item, shape (dimension,), from a sum modulo M.

        Raises
        ------
        ValueError
            If there are more clients than the modulus holds, or the sum is not over that number of clients.
        InfeasibleError
            If no histogram, or more than one, has this sum.
        ConvergenceError
            If no histogram was found, or proven to be the only one, within `time_limit`, in seconds.
        """
        clients = check_integer("clients", clients, low=0, high=self.clients)
        return self._decoded(aggregate_residues(aggregate, self.measurements, self.modulus).astype(np.int64), clients, time_limit)

    @abstractmethod
    def _decoded(self, residues: IntegerArray, clients: int, time_limit: float) -> IntegerArray:
        """Return the histogram of a sum modulo M."""

    def _items(self, items: ArrayLike) -> IndexArray:
        """Return the checked items, and refuse more items than the limit of stored entries allows."""
        array = self._checked(items)
        if array.size * self.measurements > MOST_ENTRIES:
            raise ValueError(
                f"items must be at most {MOST_ENTRIES // self.measurements} at a time, got {array.size}; encode them in chunks"
            )
        return array

    def _checked(self, items: ArrayLike) -> IndexArray:
        check_unmasked("items", items)
        array = np.asarray(items)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ValueError(f"items must be a list of whole numbers, got shape {array.shape} of {array.dtype}")
        unknown = (array < 0) | (array >= self.dimension)
        if unknown.any():
            raise ValueError(f"items must be from 0 to {self.dimension - 1}, the number of items less one, got {int(array[unknown][0])}")
        return array.astype(np.intp)

    def _check_domain(self) -> None:
        """Check the fields that all codes have."""
        object.__setattr__(self, "dimension", check_integer("dimension", self.dimension, low=1, high=MOST_CATEGORIES))
        object.__setattr__(self, "clients", check_integer("clients", self.clients, low=1, high=MOST_CLIENTS))


@dataclass(frozen=True)
class IdentityCode(HistogramCode):
    """A code of unit vectors: the sum of messages is the histogram.

    Examples
    --------
    >>> code = IdentityCode(dimension=4, clients=3)
    >>> code.decode(code.encode([1, 3, 1]).sum(axis=0), clients=3).tolist(), code.bits_per_client
    ([0, 2, 0, 1], 8.0)
    """

    dimension: int
    clients: int
    measurements: int = field(init=False)

    def __post_init__(self) -> None:
        """Check the fields."""
        self._check_domain()
        object.__setattr__(self, "measurements", self.dimension)

    @property
    def modulus(self) -> int:
        """The modulus n + 1, one more than the number of clients."""
        return self.clients + 1

    def columns(self, items: ArrayLike) -> NDArray[np.uint8]:
        """Return unit vectors."""
        checked = self._items(items)
        vectors = np.zeros((len(checked), self.dimension), dtype=np.uint8)
        vectors[np.arange(len(checked)), checked] = 1
        return vectors

    def summed_columns(self, items: ArrayLike) -> IntegerArray:
        """Return the histogram."""
        return np.bincount(self._checked(items), minlength=self.dimension)

    def _decoded(self, residues: IntegerArray, clients: int, time_limit: float) -> IntegerArray:  # noqa: ARG002
        if int(residues.sum()) != clients:
            raise ValueError(f"aggregate must be a sum over {clients} clients, got one over {int(residues.sum())}")
        return residues


@dataclass(frozen=True)
class BernoulliCode(HistogramCode):
    """A code whose column i is m fair bits of the generator Philox at (seed, i).

    NumPy promises not to change Philox's words. No matrix is stored: a client makes its own column, the server makes all columns to decode.

    Attributes
    ----------
    dimension, clients : int
        Numbers d of items and n of clients; the modulus is n + 1.
    measurements : int
        Number m of measurements, from 1 to 2**20; `of_rigorous_size` gives a sufficient number.
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
        """Return the code of `code_size` measurements, which separates histograms for most seeds.

        The failure probability is over seeds.
        """
        return cls(dimension, clients, code_size(clients, dimension, failure_probability), seed)

    @property
    def modulus(self) -> int:
        """The modulus n + 1, one more than the number of clients."""
        return self.clients + 1

    def columns(self, items: ArrayLike) -> NDArray[np.uint8]:
        """Return columns of zeros and ones."""
        checked = self._items(items)
        distinct, places = np.unique(checked, return_inverse=True)
        blocks = -(-self.measurements // BLOCK_BITS)
        words = np.empty((len(distinct), 4 * blocks), dtype="<u8")
        # Runs of neighbours are made at once: a generator costs as much as several columns.
        breaks = np.flatnonzero(np.diff(distinct) != 1) + 1
        for start, stop in zip([0, *breaks], [*breaks, len(distinct)], strict=True):
            if stop > start:
                generator = np.random.Philox(key=self.seed, counter=int(distinct[start]) * blocks)
                words[start:stop] = generator.random_raw((stop - start) * 4 * blocks).reshape(stop - start, -1)
        bits = np.unpackbits(words.view(np.uint8), axis=1, count=self.measurements, bitorder="little")
        return bits[places]

    def matrix(self) -> NDArray[np.uint8]:
        """Return the matrix S, shape (measurements, dimension); for at most 2**28 entries."""
        if self.measurements * self.dimension > MOST_ENTRIES:
            raise ValueError(
                f"dimension must be at most {MOST_ENTRIES // self.measurements} for the matrix to be stored, got {self.dimension}"
            )
        return np.ascontiguousarray(self.columns(np.arange(self.dimension)).T)

    def solve(self, aggregate: ArrayLike, clients: int, *, time_limit: float = 60.0, prove_unique: bool = True) -> HistogramSolution:
        """Return the histogram with the facts of its search.

        Arguments and errors are those of `decode` and `decode_histogram`.
        """
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


@dataclass(frozen=True)
class RademacherCode(HistogramCode):
    """A code with entries 1 and -1 in place of the 1 and 0 of `BernoulliCode`.

    The modulus is 2 n + 1. The decoder returns the vector of least L1 norm, rounded to whole numbers: fewer measurements suffice for fewer
    different items.
    """

    dimension: int
    clients: int
    measurements: int
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the fields."""
        self._bits()

    @property
    def modulus(self) -> int:
        """The modulus 2 n + 1, as sums are from -n to n."""
        return 2 * self.clients + 1

    def columns(self, items: ArrayLike) -> NDArray[np.int8]:
        """Return the columns, with entries 1 and -1."""
        return (2 * self._bits().columns(items).astype(np.int8) - 1).astype(np.int8)

    def _decoded(self, residues: IntegerArray, clients: int, time_limit: float) -> IntegerArray:
        signs: FloatArray = 2.0 * self._bits().matrix().astype(np.float64) - 1
        sums = centred_representatives(residues, self.modulus)
        real = least_l1_norm(signs, sums.astype(np.float64), time_limit)
        counts = np.rint(real).astype(np.int64)
        if (counts < 0).any() or int(counts.sum()) != clients or not np.array_equal(signs @ counts, sums):
            raise InfeasibleError(
                f"the vector of least L1 norm is not a histogram of {clients} items: {self.measurements} measurements are too few for "
                "compressed sensing, or the sum is not one of that many clients"
            )
        return counts

    def _bits(self) -> BernoulliCode:
        return BernoulliCode(self.dimension, self.clients, self.measurements, self.seed)


def least_l1_norm(matrix: FloatArray, values: FloatArray, time_limit: float) -> FloatArray:
    """Return a vector x of least L1 norm with ``matrix @ x = values``.

    Equality is within HiGHS's tolerances. Raises InfeasibleError if no vector meets them.
    """
    rows, columns = matrix.shape
    highs = new_highs()
    highs.setOptionValue("time_limit", time_limit)
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = rows, 2 * columns
    model.col_cost_ = np.ones(2 * columns)
    model.col_lower_, model.col_upper_ = np.zeros(2 * columns), np.full(2 * columns, highspy.kHighsInf)
    model.row_lower_ = model.row_upper_ = values
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.arange(0, 2 * rows * columns + 1, rows, dtype=np.int32)
    model.a_matrix_.index_ = np.tile(np.arange(rows, dtype=np.int32), 2 * columns)
    model.a_matrix_.value_ = np.concatenate([matrix.T.ravel(), -matrix.T.ravel()])
    highs.passModel(model)
    highs.run()
    status = highs.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        raise InfeasibleError("no vector has these measurements")
    if status != highspy.HighsModelStatus.kOptimal:
        raise ConvergenceError(
            f"basis pursuit ended with status {highs.modelStatusToString(status)!r}; the time limit was {time_limit:g} s"
        )
    solution = np.array(highs.getSolution().col_value)
    difference: FloatArray = solution[:columns] - solution[columns:]
    return difference


def exact_histogram_privacy() -> Privacy:
    """Return the privacy of an exact histogram, without a proven epsilon for any delta below 1."""
    return Privacy("secure-sum", (Account("none", "replace-one", lambda *_: EpsilonBound.nothing(NOTHING_PROVEN)),))


@dataclass(frozen=True)
class ExactHistogramMechanism(SecureSumMechanism, FrequencyMechanism):
    """A secure sum of codes: the server decodes exact frequencies of the arrived messages.

    There is no noise: messages are a function of items, and epsilon is infinite. With `BernoulliCode` the histogram is proven to be the
    only one with its sum, or `decode` raises ``InfeasibleError`` or ``ConvergenceError``. Clients may drop out if the secure sum recovers
    the sum of the remaining clients.

    Attributes
    ----------
    code : BernoulliCode or IdentityCode
        The code, whose number of clients is the largest number that may take part.
    time_limit : float
        Time limit of decoding, in seconds.

    Examples
    --------
    >>> mechanism = ExactHistogramMechanism(BernoulliCode.of_rigorous_size(dimension=50, clients=6, seed=1))
    >>> messages = mechanism.encode(np.array([3, 7, 7, 20, 49, 3]), np.random.default_rng(0))
    >>> (6 * mechanism.decode(mechanism.aggregate(messages), 6))[[3, 7, 20, 49]].tolist(), mechanism.guarantee.epsilon
    ([2.0, 2.0, 1.0, 1.0], inf)
    >>> (2 * mechanism.decode(mechanism.aggregate(messages[:2]), 2))[[3, 7, 20, 49]].tolist()
    [1.0, 1.0, 0.0, 0.0]
    """

    code: BernoulliCode | IdentityCode
    time_limit: float = 60.0
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the time limit."""
        object.__setattr__(self, "time_limit", check_real("time_limit", self.time_limit, low=0.0, high=LONGEST_TIME))

    @property
    def categories(self) -> int:  # type: ignore[override]
        """Number of items in the domain."""
        return self.code.dimension

    @property
    def clients(self) -> int:  # type: ignore[override]
        """Largest number of clients that the modulus holds."""
        return self.code.clients

    @property
    def holder_variance(self) -> float:
        """Variance of a decoded frequency: 0.0, as frequencies are exact."""
        return 0.0

    @property
    def other_variance(self) -> float:
        """Variance of a decoded frequency: 0.0, as frequencies are exact."""
        return 0.0

    @property
    def modulus(self) -> int:
        """The modulus n + 1 of the code."""
        return self.code.modulus

    @property
    def padded_dimension(self) -> int:
        """Number of measurements of the code."""
        return self.code.measurements

    @property
    def coordinate_wrap_probability(self) -> float:
        """Probability that a coordinate wraps, 0.0, as the modulus holds every sum of n columns."""
        return 0.0

    def noisy_steps(self, items: ArrayLike, random_words: WordsLike) -> IntegerArray:
        """Return the columns without noise, as the mechanism uses no random words."""
        word_source(random_words)
        return self.code.columns(self.domain.clip(items)).astype(np.int64)

    def summed_steps(self, items: ArrayLike, random_words: WordsLike) -> IntegerArray:
        """Return the sum of the columns."""
        word_source(random_words)
        return self.code.summed_columns(self.domain.clip(items))

    def encode(self, items: ArrayLike, random_words: WordsLike) -> NDArray[Any]:
        """Return the columns modulo M."""
        return messages_modulo(self.noisy_steps(items, random_words), self.modulus)

    def aggregate(self, messages: NDArray[Any]) -> WordArray:
        """Return the sum of the messages modulo M."""
        return summed_messages(messages, self.padded_dimension, self.modulus)

    def recovered_steps(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return the sums of the columns, from 0 to n."""
        return aggregate_residues(aggregate, self.padded_dimension, self.modulus).astype(np.int64)

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return exact frequencies among the clients whose messages are in the sum.

        At most n clients are allowed. Raises the errors of `HistogramCode.decode`.
        """
        clients = check_integer("clients", clients, low=1, high=self.clients)
        return np.asarray(self.code.decode(aggregate, clients, time_limit=self.time_limit) / clients)

    def sum_weights(self, first: ArrayLike, second: ArrayLike) -> FloatArray:
        """Return the difference of the two sums, as the decoder is not linear in the sum."""
        sums = [self.code.summed_columns(self.domain.clip(items)) for items in (first, second)]
        return np.asarray(sums[0] - sums[1], dtype=float)

    def privacy(self) -> Privacy:
        """Return the privacy of an exact histogram, which has no proven epsilon."""
        return exact_histogram_privacy()
