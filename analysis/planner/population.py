"""A stated population, as predictions need it: a few of its inputs, and the mean that clients' inputs have."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...design.contracts.domains import Categories, Domain, Interval
from ...design.contracts.norm_ball import NormBall
from ..random_streams import named_stream
from ..simulation.populations import input_chunks, item_probabilities

USUAL: dict[type, str] = {NormBall: "sphere", Interval: "uniform", Categories: "zipf"}
# Predictions average over at most this many clients, and over fewer where their inputs have more coordinates than this in all.
MOST_DRAWN, MOST_COORDINATES = 512, 2**18
# A sample's mean that is this many standard errors from zero, or nearer, is taken for zero.
CLEAR = 6.0


def usual_population(domain: Domain) -> str:
    """Return the population of predictions where none is asked for: uniform on the sphere or interval, Zipf's law for items."""
    return USUAL[type(domain)]


@dataclass(frozen=True, eq=False)
class PopulationSample:
    """Inputs of a population, clipped to the domain, for predictions.

    Attributes
    ----------
    domain : NormBall, Interval or Categories
        What clients may hold.
    clients : int
        Number of clients whose mean is predicted.
    inputs : ndarray
        A few clients' inputs.
    mean : ndarray
        A mean whose distance from the domain's middle is that which is expected of all clients' mean.
    probabilities : ndarray or None
        Probability of each item.
    """

    domain: Domain
    clients: int
    inputs: NDArray[Any]
    mean: FloatArray
    probabilities: FloatArray | None = None

    def drawn_means(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return means of all clients' inputs, drawn anew for items, and `mean` for other domains; one per row."""
        if self.probabilities is None:
            return np.repeat(np.asarray(self.mean)[None], count, axis=0)
        return rng.multinomial(self.clients, self.probabilities, count) / self.clients

    @property
    def zero_error(self) -> float:
        """Expected squared error of the answer zero, or the middle of the interval, or that all items are as frequent."""
        return float(np.sum((self.mean - self.domain.middle) ** 2))


def draw_sample(population: str, domain: Domain, clients: int, seed: int, nonzero: int | None = None) -> PopulationSample:
    """Return a sample of a population, drawn from a stream of its own; `nonzero` as in `input_chunks`."""
    drawn = max(2, min(MOST_DRAWN, MOST_COORDINATES // (1 if isinstance(domain, Categories) else domain.dimension)))
    if domain.dimension == 1:
        drawn = MOST_COORDINATES
    chunks = input_chunks(population, domain, drawn, named_stream(seed, f"planner: {population}"), nonzero=nonzero)
    inputs = np.asarray(domain.clip(np.concatenate(list(chunks))))
    if isinstance(domain, Categories):
        return PopulationSample(
            domain, clients, inputs, _frequencies(population, domain, clients), np.asarray(item_probabilities(population, domain.size))
        )
    offsets = np.asarray(inputs.reshape(len(inputs), -1) - domain.middle, dtype=float)
    mean = mean_of_clients(offsets, clients) + domain.middle
    return PopulationSample(domain, clients, inputs, mean if isinstance(domain, NormBall) else mean[0])


def mean_of_clients(vectors: FloatArray, clients: int) -> FloatArray:
    """Return a vector as long as the mean of that many independent clients' vectors is expected to be, from a sample of them.

    A sample's mean is longer than that of many clients: its square is that of the expectation, and the sample's variance over its size.

    Parameters
    ----------
    vectors : ndarray, shape (sample, dimension)
        At least two vectors.
    clients : int
        Number of clients.
    """
    size, dimension = vectors.shape
    mean = vectors.mean(axis=0)
    square, scatter = float(mean @ mean), float(np.sum((vectors - mean) ** 2)) / (size - 1)
    expected = square - scatter / size
    # The squared length of a mean of zero varies by a factor of sqrt(2 / dimension).
    if expected <= CLEAR * scatter / size * np.sqrt(2 / dimension):
        expected = 0.0
    return np.asarray(mean * np.sqrt((expected + scatter / clients) / square)) if square > 0 else mean


def _frequencies(population: str, domain: Categories, clients: int) -> FloatArray:
    """Return frequencies whose sum of squares is that which is expected of the clients'."""
    expected = item_probabilities(population, domain.size)
    square = float(expected @ expected)
    # Multinomial frequencies vary by (1 - sum of squares) / n in all: along the expectation's own direction, for lack of a better one.
    centred = expected - 1 / domain.size
    varied = (1 - square) / clients
    spread = float(centred @ centred)
    if spread > 0:
        return np.asarray(1 / domain.size + centred * np.sqrt(1 + varied / spread))
    alternating = np.where(np.arange(domain.size) % 2 == 0, 1.0, -1.0)
    return np.asarray(expected + alternating * np.sqrt(varied / domain.size))
