"""Sketches of items in a secure sum with discrete Gaussian or Skellam noise of all clients.

Two items' sketches of whole numbers differ in at most two buckets of a row, for any number of buckets, and there is no rounding or
rotation: the L2 sensitivity is exact.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_choice, check_integer, check_real
from ...arrays import FloatArray, IntegerArray
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, LazyRenyiCurve, check_delta
from ...solvers.divergences.discrete_gaussian_divergence import MOST_CLIENTS, SMALLEST_SIGMA, discrete_gaussian_tau
from ...solvers.divergences.near_gaussian_noise import GaussianEpsilon, skellam_near_gaussian_epsilon
from ...solvers.divergences.skellam_divergence import least_skellam_divergences
from ..contracts.accounts import renyi_account
from ..contracts.gaussian import near_gaussian_account
from ..contracts.guarantee import ADJACENCIES
from ..contracts.joint_messages import SURVIVORS
from ..contracts.options import Declared, budgeted, check_parameters, parameter, parts
from ..contracts.privacy import NearGaussianNoise, Privacy
from ..noise.discrete_gaussian import LARGEST_SIGMA, discrete_gaussian_variance, sample_discrete_gaussian
from ..noise.random_words import WordsLike, WordSource, word_source
from ..noise.skellam_noise import LARGEST_RATE, LEAST_RATE, sample_skellam
from ..secure_sum.modular_arithmetic import aggregate_residues
from ..secure_sum.noisy_sum import NoisySum, noisy_sum_privacy
from ..secure_sum.rounded_secure_sum import CLIENTS
from .item_sketch import ItemSketch
from .sketched_frequencies import SketchedFrequencies
from .worst_pair import worst_pair

MOST_STEPS = 2**30
LEAST_VARIANCE, LARGEST_VARIANCE = 2 * LEAST_RATE, 2 * LARGEST_RATE
# Bound on the probability that any coordinate of a sum modulo M wraps.
WRAP_PROBABILITY = 1e-9
# Log-ratio between a sum of discrete Gaussians and a discrete Gaussian that a simulation cannot detect.
NEGLIGIBLE_TAU = 1e-12
# Cut of distributions, in standard deviations: the probability beyond is below 1e-60.
DEVIATIONS = 17.0


def discrete_gaussian_items_privacy(
    clients: int, rows: int, squared_distance: int, steps: int, local_sigma: float, adjacency: str = "replace-one"
) -> Privacy:
    """Return the privacy of a sum of items' sketches with discrete Gaussian noise of clients.

    Accounts are those of `noisy_sum_privacy`. Only the buckets in which neighbours differ count: 2 in a row at most.

    Parameters
    ----------
    clients : int
        Number of clients that add noise, 1 to 10**9.
    rows : int
        Number of rows of the sketch.
    squared_distance : int
        Largest squared L2 distance of two neighbours' sketches in squared steps, with a single step per item:
        `NoisySketchSum.squared_distance`.
    steps : int
        Number of steps that an item adds to a bucket.
    local_sigma : float
        Parameter of each client's noise, in whole numbers; from 0.001 to 10**12.
    adjacency : str
        ``"replace-one"``, or ``"add-or-remove-one"``: a client has an item or none, with the noise of all clients either way.

    Examples
    --------
    >>> privacy = discrete_gaussian_items_privacy(1000, rows=15, squared_distance=30, steps=8, local_sigma=5.0)
    >>> round(privacy.epsilon(1e-5), 4)
    1.0373
    """
    norm = _norm(squared_distance, steps)
    differing = _differing(rows, adjacency)
    return noisy_sum_privacy(clients, NoisySum(local_sigma, norm, differing), adjacency)


def skellam_items_privacy(
    clients: int, rows: int, squared_distance: int, steps: int, local_variance: float, adjacency: str = "replace-one"
) -> Privacy:
    """Return the privacy of a sum of items' sketches with Skellam noise of clients.

    Accounts are ``"rdp"`` and ``"near-gaussian"``. Arguments are those of `discrete_gaussian_items_privacy`, with the variance of each
    client's noise on a bucket, from 2e-6 to 2 * 10**10. Neighbours' L1 distance is that of buckets that differ by one each, 2 in a row at
    most.

    Examples
    --------
    >>> privacy = skellam_items_privacy(1000, rows=15, squared_distance=30, steps=8, local_variance=25.0)
    >>> round(privacy.epsilon(1e-5), 4)
    1.0454
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    variance = clients * check_real("local_variance", local_variance, low=LEAST_VARIANCE, high=LARGEST_VARIANCE) * (1 - 1e-15)
    norm = _norm(squared_distance, steps)
    # A bucket that differs by 2 has a larger square than two buckets that differ by 1, with the same L1 norm.
    differing = _differing(rows, adjacency)
    l1 = float(differing * steps)

    def curve() -> LazyRenyiCurve:
        return LazyRenyiCurve(lambda orders: least_skellam_divergences(variance, l1, norm, orders), DEFAULT_ORDERS[:-1])

    def by_gaussian(delta: float, rounds: int, sampled: GaussianEpsilon | None) -> float | None:
        return skellam_near_gaussian_epsilon(variance, norm, differing, delta, rounds, sampled)

    too_little = "local_variance must be larger for the noise to be nearly Gaussian"
    noise = NearGaussianNoise(by_gaussian, of_a_pair=True)
    return Privacy("secure-sum", (renyi_account(curve, adjacency), near_gaussian_account(noise, adjacency, too_little)))


def squared_distance(sketch: ItemSketch, adjacency: str) -> int:
    """Return the largest squared L2 distance of two neighbours' sketches, in squared steps.

    The distance is ``2 (rows + excess)`` with the excess of `worst_pair`, or `rows` for an item added or removed.
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    return 2 * (sketch.rows + worst_pair(sketch).excess) if adjacency == "replace-one" else sketch.rows


def _norm(squared_distance: int, steps: int) -> float:
    square = check_integer("squared_distance", squared_distance, low=1, high=2**40)
    return check_integer("steps", steps, low=1, high=MOST_STEPS) * math.sqrt(square) * (1 + 1e-15)


def _differing(rows: int, adjacency: str) -> int:
    check_choice("adjacency", adjacency, ADJACENCIES)
    return check_integer("rows", rows, low=1, high=2**31) * (2 if adjacency == "replace-one" else 1)


# Parameters of the mechanisms with either kind of noise.
SKETCH: Declared = {
    "width": {"default": None, "help": "Buckets of a row; by default one for each item: a histogram."},
    "signed": {"default": False},
}
STEPS: Declared = {"help": "Steps that an item adds to a bucket.", "low": 1, "high": MOST_STEPS}


class NoisySketchSum(SketchedFrequencies):
    """Base class of noisy sketches: the server sees the noisy sum of sketches modulo M.

    An item adds `steps`, or its negative, to one bucket of each row. More than one step is necessary if the noise of a single client would
    be too little for a grid. The modulus is the least that holds all clients' items, in any buckets, and all but 1e-9 of the noise.

    A frozen dataclass that derives from this class has the fields below, and defines the noise.

    Attributes
    ----------
    sketch : ItemSketch
        The sketch; with `ItemSketch.direct`, a histogram of all items.
    clients : int
        Number of clients that add noise, from 1 to 10**9.
    steps : int
        Number of steps that an item adds to a bucket, from 1 to 2**30.
    delta : float
        Failure probability of the guarantee, above 0 and below 1.
    adjacency : str
        ``"replace-one"``, or ``"add-or-remove-one"``: a client has an item or none, with the noise of all clients either way.
    survivors : int or None
        Number of clients whose noise suffices for the guarantee, if others drop out; None for all clients.
    """

    steps: int
    adjacency: str

    @property
    def squared_distance(self) -> int:
        """Largest squared L2 distance of two neighbours' sketches, in squared steps."""
        return squared_distance(self.sketch, self.adjacency)

    def facts(self) -> dict[str, Any]:
        """Return the facts, with the largest squared distance of two neighbours' sketches."""
        return {**super().facts(), "squared_distance": self.squared_distance}

    @property
    def rows(self) -> int:
        """Number of rows of the sketch."""
        return self.sketch.rows

    @property
    def padded_dimension(self) -> int:
        """Number of buckets of the sketch."""
        return self.sketch.coordinates

    @property
    def modulus(self) -> int:
        """The range of a bucket's sum without noise, and `_room` on either side."""
        return self.clients * self.steps * (2 if self.sketch.signed else 1) + 2 * self._room + 1

    @property
    def coordinate_wrap_probability(self) -> float:
        """Upper bound on the probability that a bucket wraps, for every data set."""
        return min(1.0, self.wrap_probability / self.padded_dimension)

    @property
    def wrap_probability(self) -> float:
        """Upper bound, 1e-9, on the probability that the noise of any bucket exceeds `_room`."""
        return WRAP_PROBABILITY

    @property
    def item_variance(self) -> float:
        """Variance of one client's noise on a bucket, times the share that decoding keeps."""
        return self.sketch.noise_share * self.step_noise_variance / self.steps**2

    @property
    @abstractmethod
    def step_noise_variance(self) -> float:
        """Variance of one client's noise on a bucket, in squared steps."""

    def noisy_steps(self, items: ArrayLike, random_words: WordsLike) -> IntegerArray:
        """Return each item's sketch with noise, shape (clients, padded_dimension).

        The call uses three arrays of that shape. Encode the messages of many clients in chunks.
        """
        held = self.domain.clip(items)
        noisy = self.noise_steps(len(held), random_words)
        buckets = self.sketch.buckets(held) + self.sketch.width * np.arange(self.sketch.rows)
        signs = self.sketch.signs(held) if self.sketch.signed else 1
        # A client's buckets are all different.
        noisy[np.arange(len(held))[:, None], buckets] += self.steps * signs
        return noisy

    def noise_steps(self, count: int, random_words: WordsLike) -> IntegerArray:
        """Return the messages of clients without items: noise, shape (count, padded_dimension)."""
        return self._noise((count, self.padded_dimension), word_source(random_words))

    def simulated_sum(self, counts: IntegerArray, random_words: WordsLike) -> IntegerArray:
        """Draw the sum of sketches with the noise of all clients in `counts`."""
        held = np.asarray(counts)
        noise = self._summed_noise(int(held.sum()), (self.padded_dimension,), word_source(random_words))
        return self.steps * self.sketch.counted(held).ravel() + noise

    def recovered_steps(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return the sums' representatives in the range of the modulus."""
        lowest = -self._room - (self.clients * self.steps if self.sketch.signed else 0)
        shifted = aggregate_residues(aggregate, self.padded_dimension, self.modulus).astype(np.int64) - lowest
        return np.mod(shifted, self.modulus) + lowest

    def bucket_counts(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return `recovered_steps` divided by `steps`, for an allowed number of clients."""
        self.check_arrived(clients)
        return self.recovered_steps(aggregate).reshape(self.sketch.rows, -1) / self.steps

    @abstractmethod
    def _noise(self, shape: tuple[int, ...], random_words: WordSource) -> IntegerArray:
        """Draw each client's noise for each bucket."""

    @abstractmethod
    def _summed_noise(self, clients: int, shape: tuple[int, ...], random_words: WordSource) -> IntegerArray:
        """Draw the sum of a number of clients' noise for each bucket."""

    @property
    @abstractmethod
    def _room(self) -> int:
        """Bound that the sum of noise in any bucket exceeds with probability 1e-9 at most."""

    @property
    def _tail_logarithm(self) -> float:
        """The logarithm of 2 m / 1e-9, an exponent that keeps both tails of m buckets within 1e-9."""
        return math.log(2 * self.padded_dimension / WRAP_PROBABILITY)

    def __post_init__(self) -> None:
        """Check the fields."""
        # The largest fields together, and noise of 10**12 for each client, need a modulus below 2**62.
        check_parameters(self)
        object.__setattr__(self, "delta", check_delta(self.delta))
        check_choice("adjacency", self.adjacency, ADJACENCIES)


@dataclass(frozen=True)
class SketchedDiscreteGaussianFrequencies(NoisySketchSum):
    """Sketches with discrete Gaussian noise; other fields are those of `NoisySketchSum`.

    Attributes
    ----------
    local_sigma : float
        Parameter of each client's noise on a bucket, in whole numbers; from 0.001 to 10**12.

    Examples
    --------
    >>> sketch = ItemSketch(categories=10_000, rows=5, width=512, signed=False)
    >>> mechanism = SketchedDiscreteGaussianFrequencies(sketch, clients=1000, steps=8, local_sigma=3.0, delta=1e-5)
    >>> print(mechanism.guarantee)
    epsilon = 0.994391, delta = 1e-05, replace-one adjacency, secure-sum trust model
    >>> messages = mechanism.encode(np.array([7] * 600 + [20] * 400), np.random.default_rng(0))
    >>> mechanism.decode(mechanism.aggregate(messages), 1000)[[7, 20, 30]].round(1).tolist()
    [0.6, 0.4, -0.0]
    """

    sketch: ItemSketch = parts(ItemSketch, **SKETCH)
    clients: int = parameter(**CLIENTS)
    steps: int = parameter(**STEPS)
    local_sigma: float = parameter("Parameter of each client's noise, in whole numbers.", SMALLEST_SIGMA, LARGEST_SIGMA, unit="steps")
    delta: float = budgeted()
    adjacency: str = "replace-one"
    survivors: int | None = parameter(**SURVIVORS)

    def privacy_of(self, clients: int) -> Privacy:
        """Return the privacy of one sum of a number of clients (`discrete_gaussian_items_privacy`)."""
        return discrete_gaussian_items_privacy(clients, self.rows, self.squared_distance, self.steps, self.local_sigma, self.adjacency)

    @property
    def step_noise_variance(self) -> float:
        """Variance of the discrete Gaussian noise of one client, in squared steps."""
        return discrete_gaussian_variance(self.local_sigma)

    @property
    def _room(self) -> int:
        # A sum of discrete Gaussians is sub-Gaussian with their parameters (Canonne, Kamath, Steinke 2020).
        return math.ceil(math.sqrt(2 * self.clients * self._tail_logarithm) * self.local_sigma * (1 + 1e-12))

    def _noise(self, shape: tuple[int, ...], random_words: WordSource) -> IntegerArray:
        return sample_discrete_gaussian(self.local_sigma, shape, random_words)

    def _summed_noise(self, clients: int, shape: tuple[int, ...], random_words: WordSource) -> IntegerArray:
        if clients == 0:
            return np.zeros(shape, dtype=np.int64)
        if clients > 1 and discrete_gaussian_tau(clients, self.local_sigma) > NEGLIGIBLE_TAU:
            return _drawn_sum(clients, self.local_sigma, shape, random_words)
        return sample_discrete_gaussian(math.sqrt(clients) * self.local_sigma, shape, random_words)


@dataclass(frozen=True)
class SketchedSkellamFrequencies(NoisySketchSum):
    """Sketches with Skellam noise; other fields are those of `NoisySketchSum`.

    The sum is Skellam noise for any noise of each client, so that fewer steps suffice than for discrete Gaussian noise.

    Attributes
    ----------
    local_variance : float
        Variance of each client's noise on a bucket, in squared steps; from 2e-6 to 2 * 10**10.

    Examples
    --------
    >>> sketch = ItemSketch(categories=10_000, rows=5, width=512, signed=False)
    >>> mechanism = SketchedSkellamFrequencies(sketch, clients=1000, steps=8, local_variance=9.0, delta=1e-5)
    >>> print(mechanism.guarantee)
    epsilon = 1.01696, delta = 1e-05, replace-one adjacency, secure-sum trust model
    """

    sketch: ItemSketch = parts(ItemSketch, **SKETCH)
    clients: int = parameter(**CLIENTS)
    steps: int = parameter(**STEPS)
    local_variance: float = parameter(
        "Variance of each client's noise on a bucket.", LEAST_VARIANCE, LARGEST_VARIANCE, unit="squared steps"
    )
    delta: float = budgeted()
    adjacency: str = "replace-one"
    survivors: int | None = parameter(**SURVIVORS)

    def privacy_of(self, clients: int) -> Privacy:
        """Return the privacy of one sum of a number of clients (`skellam_items_privacy`)."""
        return skellam_items_privacy(clients, self.rows, self.squared_distance, self.steps, self.local_variance, self.adjacency)

    @property
    def step_noise_variance(self) -> float:
        """Variance of the Skellam noise of one client, `local_variance`."""
        return self.local_variance

    @property
    def _room(self) -> int:
        # cosh t - 1 is at most t^2 / (2 (1 - t/3)): the sum is sub-gamma with its variance v and scale 1/3, and exceeds sqrt(2 v l) + l/3
        # with probability e^-l at most (Boucheron, Lugosi, Massart 2013, *Concentration inequalities*, section 2.4).
        exponent = self._tail_logarithm
        return math.ceil((math.sqrt(2 * self.clients * self.local_variance * exponent) + exponent / 3) * (1 + 1e-12))

    def _noise(self, shape: tuple[int, ...], random_words: WordSource) -> IntegerArray:
        return sample_skellam(self.local_variance, shape, random_words)

    def _summed_noise(self, clients: int, shape: tuple[int, ...], random_words: WordSource) -> IntegerArray:
        total = np.zeros(shape, dtype=np.int64)
        if clients == 0:
            return total
        parts = math.ceil(clients * self.local_variance / LARGEST_VARIANCE)
        for part in range(parts):
            total += sample_skellam((clients + part) // parts * self.local_variance, shape, random_words)
        return total


def _drawn_sum(clients: int, sigma: float, shape: tuple[int, ...], random_words: WordSource) -> IntegerArray:
    """Draw sums of little noise, which are not discrete Gaussian, by inversion."""
    distribution = _sum_distribution(clients, sigma)
    drawn = np.searchsorted(distribution, random_words.uniforms(shape), side="right")
    return np.minimum(drawn, len(distribution) - 1).astype(np.int64) - len(distribution) // 2


@lru_cache(maxsize=8)
def _sum_distribution(clients: int, sigma: float) -> FloatArray:
    """Return the distribution function of a sum of discrete Gaussians, by Fourier transform."""
    half = math.ceil(DEVIATIONS * (sigma * math.sqrt(clients) + 1))
    frequencies = 2 * math.pi * np.arange(2 * half + 1) / (2 * half + 1)
    points = np.arange(1, math.ceil(DEVIATIONS * sigma) + 2)
    masses = np.exp(-(points**2) / (2 * sigma**2))
    transform = (1 + 2 * np.cos(np.outer(frequencies, points)) @ masses) / (1 + 2 * masses.sum())
    probabilities = np.fft.fftshift(np.fft.ifft(transform**clients).real)
    distribution: FloatArray = np.cumsum(np.maximum(probabilities, 0.0))
    return np.asarray(distribution / distribution[-1])
