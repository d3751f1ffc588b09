"""Sketches of items by coin tosses: Poisson-binomial noise on transforms of count sketches.

Chen, Özgür, Cormode, Bharadwaj 2023, *The communication cost of security and privacy in federated frequency estimation*, algorithms 1 and
2. The paper normalises the encoder's Hadamard matrix, which makes its decoder biased; in this module the entries are 1 and -1.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import LARGEST_ACCOUNTED_DIMENSION, check_integer
from ...arrays import FloatArray, IntegerArray
from ...solvers.accounting.renyi_curve import LazyRenyiCurve, check_delta
from ...solvers.divergences.extreme_tosses import ExtremeTosses, extreme_tosses
from ...solvers.divergences.poisson_binomial_divergence import LARGEST_THETA, MOST_CLIENTS, MOST_TRIALS
from ...solvers.numerics.walsh_hadamard import hadamard_entries, walsh_hadamard
from ..contracts.accounts import pure_account, renyi_account
from ..contracts.joint_messages import SURVIVORS
from ..contracts.options import budgeted, check_parameters, parameter, parts
from ..contracts.privacy import Privacy
from ..noise.binomial_noise import count_successes
from ..noise.random_words import SeededWords, WordsLike, word_source
from ..secure_sum.modular_arithmetic import aggregate_residues
from ..secure_sum.poisson_binomial_mechanism import ORDERS, SMALLEST_THETA
from .item_sketch import ItemSketch
from .sketched_frequencies import SketchedFrequencies
from .worst_pair import worst_pair


def sketched_tosses_privacy(clients: int, trials: int, theta: float, differing_coordinates: int, *, first_cell: bool = False) -> Privacy:
    """Return the privacy of a client's item in sums of coin tosses.

    Coordinates that two items have in common reveal nothing. The accounts ``"pure"`` and ``"rdp"`` are proven for all items of the other
    clients (`extreme_tosses`).

    Parameters
    ----------
    clients : int
        Number of clients, 1 to 10**7.
    trials : int
        Number of tosses of each client for each coordinate, 1 to 4096.
    theta : float
        Distance of a toss's probability from 1/2, from 1e-6 to 0.499.
    differing_coordinates : int
        Largest number of coordinates in which two items differ.
    first_cell : bool
        Whether to return a quick guess, which is no guarantee, as in `extreme_tosses`.

    Examples
    --------
    >>> privacy = sketched_tosses_privacy(1000, 1, 0.1, differing_coordinates=64)
    >>> round(privacy.epsilon(1e-5), 4)
    0.391
    """
    differing = check_integer("differing_coordinates", differing_coordinates, low=1, high=LARGEST_ACCOUNTED_DIMENSION)
    tosses = _tosses(clients, trials, theta, first_cell)

    def curve() -> LazyRenyiCurve:
        return LazyRenyiCurve(lambda orders: differing * tosses.renyi_divergences(orders), ORDERS)

    return Privacy("secure-sum", (pure_account(differing * tosses.largest_loss), renyi_account(curve, "replace-one")))


def differing_coordinates(sketch: ItemSketch) -> int:
    """Return the largest number of coordinates in which the transforms of two items differ.

    The transforms differ in half of a row, or in all of it if the items have opposite signs in one bucket (`worst_pair`).
    """
    _check_width(sketch)
    return sketch.width // 2 * (sketch.rows + worst_pair(sketch).excess)


def _check_width(sketch: ItemSketch) -> None:
    if sketch.width & (sketch.width - 1):
        raise ValueError(f"width must be a power of two for Hadamard transforms of rows, got {sketch.width}")


@lru_cache(maxsize=4)
def _tosses(clients: int, trials: int, theta: float, first_cell: bool) -> ExtremeTosses:
    return extreme_tosses(clients, trials, theta, first_cell=first_cell, whole_clients=True)


@dataclass(frozen=True)
class SketchedPoissonBinomialFrequencies(SketchedFrequencies):
    """Clients toss coins for their sketches' Hadamard transforms; the server counts successes.

    Row r of an item's sketch is s e_h, and its transform has the entries s H[k, h], 1 or -1: the probability of success is ``1/2 + theta s
    H[k, h]``. Without signs the first entry is always 1, and is not sent. The tosses of the other clients hide a client's tosses, so the
    guarantee counts the tosses of `survivors` clients, or of all `clients` by default. A sum is at most clients * trials, which the
    modulus holds, so that no sum wraps.

    Attributes
    ----------
    sketch : ItemSketch
        The sketch; its width is a power of two. With `ItemSketch.direct`, the transform of the histogram itself.
    clients : int
        Number of clients, from 1 to 10**7.
    trials : int
        Number of tosses of each client for each coordinate, from 1 to 4096.
    theta : float
        Distance of a toss's probability from 1/2, from 1e-6 to 0.499.
    delta : float
        Failure probability of the guarantee, above 0 and below 1.
    survivors : int or None
        Number of clients whose tosses suffice for the guarantee, if others drop out; None for all clients.

    Examples
    --------
    >>> sketch = ItemSketch(categories=10_000, rows=5, width=64, signed=False)
    >>> mechanism = SketchedPoissonBinomialFrequencies(sketch, clients=1000, trials=1, theta=0.2, delta=1e-5)
    >>> print(mechanism.guarantee)
    epsilon = 1.46896, delta = 1e-05, replace-one adjacency, secure-sum trust model
    >>> messages = mechanism.encode(np.array([7] * 600 + [20] * 400), np.random.default_rng(0))
    >>> messages.shape, mechanism.decode(mechanism.aggregate(messages), 1000)[[7, 20, 30]].round(1).tolist()
    ((1000, 315), [0.6, 0.4, -0.0])
    """

    sketch: ItemSketch = parts(ItemSketch, width={"default": None, "help": "Buckets of a row; by default one for each item: a histogram."})
    clients: int = parameter("Number of clients whose messages are added up.", 1, MOST_CLIENTS, unit="clients", at_most="population")
    trials: int = parameter("Tosses of each client for each coordinate.", 1, MOST_TRIALS, usual=1)
    theta: float = parameter("Distance of a toss's probability from 1/2.", SMALLEST_THETA, LARGEST_THETA)
    delta: float = budgeted()
    survivors: int | None = parameter(**SURVIVORS)

    def __post_init__(self) -> None:
        """Check the fields."""
        _check_width(self.sketch)
        check_parameters(self)
        object.__setattr__(self, "delta", check_delta(self.delta))

    @property
    def differing_coordinates(self) -> int:
        """Largest number of coordinates in which two items differ."""
        return differing_coordinates(self.sketch)

    @property
    def modulus(self) -> int:
        """The modulus ``clients * trials + 1``, one more than the largest sum."""
        return self.clients * self.trials + 1

    @property
    def padded_dimension(self) -> int:
        """Number of sent entries: all entries, or without signs all but the first of each row."""
        return self.sketch.rows * self._sent

    @property
    def coordinate_wrap_probability(self) -> float:
        """Probability that a coordinate wraps, 0.0, as no sum exceeds clients * trials."""
        return 0.0

    @property
    def item_variance(self) -> float:
        """Variance of one client's decoded frequency of any item, from uncorrelated entries.

        Each entry has the variance ``(1/4 - theta**2) / (trials theta**2)``.
        """
        of_entry = (0.25 - self.theta**2) / (self.trials * self.theta**2)
        width = self.sketch.width
        if self.sketch.direct:
            return of_entry * (width - 1) / width**2
        # Without signs the factor is (w / (w - 1))^2 times (w - 1) / w^2.
        return of_entry / (self._sent * self.sketch.rows)

    def facts(self) -> dict[str, Any]:
        """Return the facts, with the largest number of differing coordinates."""
        return {**super().facts(), "differing_coordinates": self.differing_coordinates}

    def privacy_of(self, clients: int) -> Privacy:
        """Return the privacy of one sum of a number of clients (`sketched_tosses_privacy`)."""
        return sketched_tosses_privacy(clients, self.trials, self.theta, self.differing_coordinates)

    def noisy_steps(self, items: ArrayLike, random_words: WordsLike) -> IntegerArray:
        """Return each client's successes, from 0 to `trials`, shape (clients, padded_dimension).

        The call uses three arrays of that shape. Encode the messages of many clients in chunks.
        """
        random_words = word_source(random_words)
        held = self.domain.clip(items)
        entries = np.arange(self.sketch.width - self._sent, self.sketch.width)
        biases: FloatArray = self.theta * hadamard_entries(self.sketch.buckets(held)[:, :, None], entries).astype(float)
        if self.sketch.signed:
            biases *= self.sketch.signs(held)[:, :, None]
        return count_successes(biases.reshape(len(held), -1), self.trials, random_words)

    def simulated_sum(self, counts: IntegerArray, random_words: WordsLike) -> IntegerArray:
        """Draw the successes of all clients per coordinate, by numpy's binomial sampler."""
        held = np.asarray(counts)
        clients = int(held.sum())
        transformed = walsh_hadamard(self.sketch.counted(held))[:, -self._sent :]
        upper = (clients + np.rint(transformed).astype(np.int64).ravel()) // 2
        random_words = word_source(random_words)
        rng = random_words.rng if isinstance(random_words, SeededWords) else np.random.default_rng(random_words(4))
        sums = rng.binomial(self.trials * upper, 0.5 + self.theta) + rng.binomial(self.trials * (clients - upper), 0.5 - self.theta)
        return np.asarray(sums, dtype=np.int64)

    def recovered_steps(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return the sums of the clients' counts, from 0 to clients * trials."""
        return aggregate_residues(aggregate, self.padded_dimension, self.modulus).astype(np.int64)

    def bucket_counts(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the inverse transform of the sums' excess over half of all tosses.

        The excess is divided by trials * theta.
        """
        arrived = self.check_arrived(clients)
        excess = 2 * self.recovered_steps(aggregate).reshape(self.sketch.rows, -1) - arrived * self.trials
        entries = excess / (2 * self.theta * self.trials)
        if self._sent < self.sketch.width:
            # Each client adds 1 to every row.
            entries = np.concatenate([np.full((self.sketch.rows, 1), float(arrived)), entries], axis=1)
        return walsh_hadamard(entries) / self.sketch.width

    @property
    def _sent(self) -> int:
        """Number of entries of a row that are sent."""
        return self.sketch.width if self.sketch.signed else self.sketch.width - 1
