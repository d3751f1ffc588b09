"""A sample of a stated population for predictions, and the mean of the clients' inputs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...design.contracts.domains import Categories, Domain, Interval
from ...design.contracts.gaussian import l2_radius
from ...design.contracts.norm_ball import NormBall
from ..random_streams import named_stream
from ..simulation.populations import input_chunks, item_probabilities

# Default populations, whose means are far from the answers that need no message, so that errors can be distinguished from the errors of
# these answers.
USUAL: dict[type, str] = {NormBall: "positive-sphere", Interval: "rising", Categories: "zipf"}
# Largest number of clients over which predictions average, and largest number of their coordinates.
MOST_DRAWN, MOST_COORDINATES = 512, 2**18
# Number of standard errors within which a sample mean counts as zero.
CLEAR = 6.0


def usual_population(domain: Domain) -> str:
    """Return the default population, whose mean is not zero.

    Vectors are uniform on the part of the sphere without negative coordinates, numbers have a density that rises linearly from the low end
    of the interval, and items follow Zipf's law.
    """
    return USUAL[type(domain)]


def input_scale(domain: Domain) -> float:
    """Return the largest L2 distance of an input from the middle of the domain.

    The distance is a clip norm, or half an interval's width.

    For balls of a norm above 2, the scale is the L2 norm of the ball's longest vectors. For items the scale is 1, the frequency of an item
    that all clients hold.
    """
    match domain:
        case Interval():
            return (domain.high - domain.low) / 2
        case Categories():
            return 1.0
        case _:
            return l2_radius(domain)


@dataclass(frozen=True, eq=False)
class PopulationSample:
    """Inputs of a population, clipped to the domain, for predictions.

    Attributes
    ----------
    domain : NormBall, Interval or Categories
        Domain of the clients' inputs.
    clients : int
        Number of clients whose mean is predicted.
    inputs : ndarray
        A few clients' inputs.
    mean : ndarray
        Mean with the expected distance of all clients' mean from the domain's middle.
    probabilities : ndarray or None
        Probability of each item.
    """

    domain: Domain
    clients: int
    inputs: NDArray[Any]
    mean: FloatArray
    probabilities: FloatArray | None = None

    def drawn_means(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return means of all clients' inputs, one per row; items are drawn anew."""
        if self.probabilities is None:
            return np.repeat(np.asarray(self.mean)[None], count, axis=0)
        return rng.multinomial(self.clients, self.probabilities, count) / self.clients

    @property
    def zero_error(self) -> float:
        """Expected squared error of the estimate without messages: zero, the middle, or uniform."""
        return float(np.sum((self.mean - self.domain.middle) ** 2))


def draw_sample(population: str, domain: Domain, clients: int, seed: int, nonzero: int | None = None) -> PopulationSample:
    """Draw a sample of a population from its own random stream; `nonzero` as in `input_chunks`."""
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
    """Return a vector of the length expected of the mean of `clients` independent vectors.

    A sample's mean is longer than the mean of many clients: its expected square is the square of the expectation, plus the variance over
    the size of the sample.

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
    # The squared length of a mean of zero has a relative standard deviation of sqrt(2 / dimension).
    if expected <= CLEAR * scatter / size * np.sqrt(2 / dimension):
        expected = 0.0
    return np.asarray(mean * np.sqrt((expected + scatter / clients) / square)) if square > 0 else mean


def _frequencies(population: str, domain: Categories, clients: int) -> FloatArray:
    """Return frequencies with the expected sum of squares of the clients' frequencies."""
    expected = item_probabilities(population, domain.size)
    square = float(expected @ expected)
    # Multinomial frequencies have total variance (1 - sum of squares) / n. The function adds it along the expectation's own direction, for
    # lack of a better direction.
    centred = expected - 1 / domain.size
    varied = (1 - square) / clients
    spread = float(centred @ centred)
    if spread > 0:
        return np.asarray(1 / domain.size + centred * np.sqrt(1 + varied / spread))
    alternating = np.where(np.arange(domain.size) % 2 == 0, 1.0, -1.0)
    return np.asarray(expected + alternating * np.sqrt(varied / domain.size))
