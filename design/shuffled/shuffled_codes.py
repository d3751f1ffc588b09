"""Unit vectors by letters of public random codebooks, shuffled: rotated simplices, or random points of the sphere.

A client draws one of 2**seed_bits public codebooks and a letter of it, and sends both numbers: a shuffler has no sender from whom a server
could derive the codebook. The k letters closest to the vector are e^local_epsilon times as likely as the others.

The worst pair of inputs has no closest letter in common, for any codebooks: ``docs/proofs/shuffled-codes.md`` has the proof. The account is
therefore that of a table of two rows and three letters (`shuffled_code_privacy`).
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer, check_probability
from ...arrays import FloatArray
from ...errors import InfeasibleError
from ...solvers.bounds.privacy_constraint import EPSILON_LOW
from ...solvers.divergences.shuffled_letters import MOST_CLIENTS
from ..contracts.joint_messages import SURVIVORS
from ..contracts.mechanism import MessageScore, VectorMechanism
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.options import check_parameters, parameter, parts
from ..contracts.privacy import Privacy
from ..local.unit_vectors.random_direction import random_directions
from ..local.unit_vectors.rotating_simplex import (
    closest_corners_sum,
    closest_letters,
    corner_sum,
    drawn_letters,
    far_probability,
    letter_contrast,
    most_simplex_bits,
    simplex_projections,
)
from ..local.unit_vectors.shared_frames import client_chunks
from ..noise.random_words import WordsLike, word_source
from ..relative_entropy.shared_randomness import MOST_SEED_BITS, seeds_of_round, vectors_of_seeds
from ..transforms.kashin import LARGEST_SEED
from .shuffled_items import LARGEST_EPSILON
from .shuffled_mechanism import ShuffledMechanism
from .shuffled_privacy import shuffled_privacy

MOST_LETTER_BITS = 12
# Numbers of the integral over the sphere's coordinate: panels, Gauss-Legendre points of a panel, and standard deviations of its range.
PANELS, POINTS, REACH = 200, 16, 14.0
# Size of a batch of clients' candidates, which fits into caches.
BATCH = 2**18


def shuffled_code_privacy(local_epsilon: float, letters: int, closest: int, clients: int) -> Privacy:
    """Return the privacy of shuffled letters of which k are e^local_epsilon times as likely as the others.

    The account is that of two inputs without a common closest letter; equally likely letters are merged into a single letter.
    """
    # The account depends on the share of closest letters alone; whole numbers without a common factor make it the same to the last digit.
    common = math.gcd(letters, closest)
    letters, closest = letters // common, closest // common
    near = closest * math.exp(local_epsilon)
    others = [] if letters == 2 * closest else [letters - 2 * closest]
    return shuffled_privacy([[near, closest, *others], [closest, near, *others]], local_epsilon, clients)


@dataclass(frozen=True)
class ShuffledCodeMechanism(ShuffledMechanism, VectorMechanism):
    """Every client sends the numbers of a public codebook and of one of its letters, shuffled.

    The codebooks are drawn anew for each round from `public_seed`, on which vectors must not depend: then the estimate has no bias. Clients
    share the 2**seed_bits codebooks of a round, and with them an error, which falls with the number of codebooks (`worst_shared_variance`).

    Attributes
    ----------
    ball : NormBall
        L2 ball of the vectors.
    clients : int
        Number of clients, from 1 to 10**12.
    local_epsilon : float
        Privacy parameter of a message by itself, 0.001 to 20.
    letter_bits : int
        Binary logarithm of the number of a codebook's letters, 1 to 12.
    seed_bits : int
        Binary logarithm of the number of public codebooks, 0 to 48.
    closest : int
        Number k of the likelier letters, those closest to the vector; at most half of the letters.
    public_seed : int
        Public seed of the round's codebooks, from 0 to 2**63 - 1.
    delta : float
        Failure probability of `guarantee`, from 0, for the messages' own privacy, to below 1.
    survivors : int or None
        Number of clients whose messages suffice for the guarantee, if others drop out; None for all clients.
    """

    ball: NormBall = parts(NormBall)
    clients: int = parameter(
        "Number of clients whose letters are shuffled.", 1, MOST_CLIENTS, default=1, unit="clients", at_most="population"
    )
    local_epsilon: float = parameter(
        "Pure privacy parameter of a message by itself.", EPSILON_LOW, LARGEST_EPSILON, default=1.0, unit="nats"
    )
    letter_bits: int = parameter("log2 of the number of letters of a codebook.", 1, MOST_LETTER_BITS, default=1, unit="bits")
    seed_bits: int = parameter("log2 of the number of public seeds, one for each codebook.", 0, MOST_SEED_BITS, default=16, unit="bits")
    closest: int = parameter("Number of the likelier letters, those closest to the vector.", 1, 2 ** (MOST_LETTER_BITS - 1), default=1)
    public_seed: int = parameter("Public seed of a round's codebooks.", 0, LARGEST_SEED, default=0)
    delta: float = 1e-5
    survivors: int | None = parameter(**SURVIVORS)

    def __post_init__(self) -> None:
        """Check the fields."""
        check_ball(self.ball, "a code of unit vectors", 2)
        check_parameters(self)
        object.__setattr__(self, "delta", 0.0 if self.delta == 0 else check_probability("delta", self.delta))
        if self.closest > self.letters // 2:
            raise ValueError(f"closest must be at most half of the {self.letters} letters, got {self.closest}")
        most = self.most_letter_bits(self.ball.dimension)
        if self.letter_bits > most:
            raise InfeasibleError(f"letter_bits must be at most {most} in {self.ball.dimension} dimensions, got {self.letter_bits}")

    @staticmethod
    def most_letter_bits(dimension: int) -> int:  # noqa: ARG004
        """Return the largest number of bits of a letter."""
        return MOST_LETTER_BITS

    @property
    @abstractmethod
    def closest_sum(self) -> float:
        """Mean of the sum of the closest letters' inner products with a unit vector."""

    @property
    @abstractmethod
    def mean_letter_square(self) -> float:
        """Upper bound on the mean squared norm of a client's mean letter, given its codebook."""

    @abstractmethod
    def projections(self, directions: FloatArray, seeds: list[int]) -> FloatArray:
        """Return inner products with all letters of each seed's codebook, up to a common factor."""

    @abstractmethod
    def letter_sum(self, seeds: list[int], numbers: NDArray[Any]) -> FloatArray:
        """Return the sum of letters of the seeds' codebooks, shape (dimension,)."""

    @property
    def letters(self) -> int:
        """Number M of letters of a codebook."""
        return 1 << self.letter_bits

    @property
    def codebooks(self) -> int:
        """Number of public codebooks of a round."""
        return 1 << self.seed_bits

    @property
    def bits_per_client(self) -> float:
        """Number of bits of a message: those of the codebook's number and of the letter's."""
        return float(self.seed_bits + self.letter_bits)

    @property
    def projection_mean(self) -> float:
        """Mean m of the sent letter's inner product with the vector, over codebooks and letters."""
        return letter_contrast(self.local_epsilon, self.letters, self.closest) * self.closest_sum

    @property
    def variance_bound(self) -> float:
        """Largest variance, that of the ball's centre: ``(clip_norm / m)**2``."""
        return (self.ball.clip_norm / self.projection_mean) ** 2

    @property
    def worst_shared_variance(self) -> float:
        """Upper bound on the error that clients share, since they share a round's codebooks.

        Clients with equal vectors of the sphere share most. `variance` includes the part that a client has by itself.
        """
        square = self.ball.clip_norm**2 * max(0.0, self.mean_letter_square / self.projection_mean**2 - 1)
        return square / self.codebooks

    def shared_variance(self, mean: FloatArray) -> float:  # noqa: ARG002
        """Return the largest shared variance, which clients with different vectors may stay below."""
        return self.worst_shared_variance

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return ``variance_bound - ||x||**2`` for each vector: the variance over codebooks and letters."""
        return np.asarray(self.variance_bound - np.square(self.ball.clip(vectors)).sum(axis=1))

    def renewed(self, seed: int) -> Self:
        """Return the mechanism with the codebooks of another round."""
        return replace(self, public_seed=seed)

    def privacy_of(self, clients: int) -> Privacy:
        """Return the privacy of a number of clients' messages, for any other clients' vectors and any codebooks."""
        return shuffled_code_privacy(self.local_epsilon, self.letters, self.closest, clients)

    def facts(self) -> dict[str, Any]:
        """Return the error, and the part that clients share."""
        return {
            "worst_squared_error": self.error().of_mean(self.clients),
            "worst_shared_squared_error": self.worst_shared_variance,
        }

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> NDArray[np.uint64]:
        """Draw a codebook and a letter for each client, shape (clients, 2)."""
        random_words = word_source(random_words)
        directions = random_directions(self.ball, vectors, random_words)
        numbers = random_words.integers(self.codebooks, len(directions)).astype(np.uint64)
        letters = np.empty(len(numbers), dtype=np.uint64)
        far = far_probability(self.local_epsilon, self.letters, self.closest)
        for part in client_chunks(len(numbers), self.letters):
            letters[part] = drawn_letters(self._near(directions[part], numbers[part]), self.closest, far, random_words)
        return np.column_stack([numbers, letters])

    def aggregate(self, messages: NDArray[Any]) -> FloatArray:
        """Return the sum of the letters that were sent, shape (dimension,)."""
        check_coded(messages, self.codebooks, self.letters)
        return self.letter_sum(self._seeds(messages[:, 0]), messages[:, 1])

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the average of the decoded letters, which may lie outside the ball."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        return np.asarray(aggregate * (self.ball.clip_norm / (self.projection_mean * clients)))

    def letter_law(self, vector: ArrayLike, numbers: NDArray[Any]) -> FloatArray:
        """Return the probabilities of letters for a vector, given codebooks, shape (codebooks, letters).

        A vector inside the ball has the mixture of its direction and the opposite direction.
        """
        scaled = self.ball.clip(np.asarray(vector)[None])[0] / self.ball.clip_norm
        norm = float(np.linalg.norm(scaled))
        direction = scaled / norm if norm > 0 else np.eye(1, len(scaled))[0]
        far = far_probability(self.local_epsilon, self.letters, self.closest)
        law = np.zeros((len(numbers), self.letters))
        for sign, share in ((1.0, (1 + norm) / 2), (-1.0, (1 - norm) / 2)):
            if share > 0:
                near = self._near(np.tile(sign * direction, (len(numbers), 1)), numbers)
                law += share * np.where(near, (1 - far) / self.closest, far / (self.letters - self.closest))
        return law

    def message_score(self, first: NDArray[Any], second: NDArray[Any]) -> MessageScore:
        """Return the log-likelihood ratio of two rounds whose first clients differ.

        All other clients hold the last client's vector. Relative to their law, the density of a round's messages is the mean of the ratios
        of the first client's law to theirs.
        """

        def score(messages: NDArray[Any]) -> FloatArray:
            flat = messages.reshape(-1, 2)
            kinds, kind = np.unique(flat[:, 0], return_inverse=True)
            laws = [self.letter_law(vector, kinds)[kind, flat[:, 1].astype(np.int64)] for vector in (first[0], second[0], first[-1])]
            ratios = [np.log((law / laws[2]).reshape(messages.shape[:2]).sum(axis=1)) for law in laws[:2]]
            return np.asarray(ratios[0] - ratios[1])

        return score

    def _near(self, directions: FloatArray, numbers: NDArray[Any]) -> NDArray[np.bool_]:
        return closest_letters(self.projections(directions, self._seeds(numbers)), self.closest)

    def _seeds(self, numbers: NDArray[Any]) -> list[int]:
        """Return the seeds of codebooks from their numbers: words of the round's public seed."""
        keys: list[int] = seeds_of_round(self.public_seed, numbers.tolist()).tolist()
        return keys


@dataclass(frozen=True)
class ShuffledRotatingSimplex(ShuffledCodeMechanism):
    """Every client sends the number of a public rotation and of a corner of the rotated simplex, shuffled.

    The M = 2**letter_bits corners are those of `RotatingSimplexMechanism`, whose local guarantee a message has by itself. The best number
    of closest corners depends on the shuffled guarantee, so it is a field. A simplex has at most dimension + 1 corners.

    Examples
    --------
    >>> ball = NormBall(dimension=256, norm=2.0)
    >>> mechanism = ShuffledRotatingSimplex(ball, clients=10_000, local_epsilon=5.69, letter_bits=8, seed_bits=19, closest=4, delta=1e-6)
    >>> round(mechanism.guarantee.epsilon, 2), mechanism.bits_per_client, round(mechanism.error().of_mean(10_000), 4)
    (0.99, 27.0, 0.0062)
    """

    @staticmethod
    def most_letter_bits(dimension: int) -> int:
        """Return the largest number of bits for which a simplex has enough corners, at most 12."""
        return most_simplex_bits(dimension)

    @property
    def closest_sum(self) -> float:
        """Mean of the sum of the closest corners' inner products with a unit vector."""
        return closest_corners_sum(self.letters, self.closest, self.ball.dimension)

    @property
    def mean_letter_square(self) -> float:
        """Squared norm of the mean corner: the sum of k corners has the squared norm k (M - k) / (M - 1)."""
        contrast = letter_contrast(self.local_epsilon, self.letters, self.closest)
        return contrast**2 * self.closest * (self.letters - self.closest) / (self.letters - 1)

    def projections(self, directions: FloatArray, seeds: list[int]) -> FloatArray:
        """Return inner products with the corners of each seed's simplex, up to a common factor."""
        return simplex_projections(directions, seeds, self.letters)

    def letter_sum(self, seeds: list[int], numbers: NDArray[Any]) -> FloatArray:
        """Return the sum of corners of the seeds' simplices."""
        return corner_sum(seeds, numbers, self.letters, self.ball.dimension)


@dataclass(frozen=True)
class ShuffledRandomCoding(ShuffledCodeMechanism):
    """Every client sends the number of a public list and of a random unit vector of that list, shuffled.

    A list has M = 2**letter_bits candidates, independent and uniform on the sphere. Minimal random coding sends one of the candidates in a
    cap, whose number varies from list to list. Here the k closest candidates are likelier, whatever their distance: every list then has as
    many of them, and the account of the rotating simplex holds. For a given list no rule with these two probabilities has a larger mean.

    A list may have more candidates than a simplex has corners, which pays in few dimensions and for many
    clients.

    Examples
    --------
    >>> ball = NormBall(dimension=16, norm=2.0)
    >>> mechanism = ShuffledRandomCoding(ball, clients=10_000, local_epsilon=5.69, letter_bits=8, seed_bits=16, closest=6, delta=1e-6)
    >>> round(mechanism.guarantee.epsilon, 2), mechanism.bits_per_client, round(mechanism.error().of_mean(10_000), 6)
    (1.04, 24.0, 0.000432)
    """

    @property
    def closest_sum(self) -> float:
        """Mean of the sum of the closest candidates' inner products with a unit vector."""
        return largest_coordinates_sum(self.letters, self.closest, self.ball.dimension)

    @property
    def mean_letter_square(self) -> float:
        """Upper bound on the mean squared norm of a client's mean candidate, given its list.

        With p the probabilities of candidates and t their inner products with the vector, it is ``m**2 + E sum p**2 (1 - t**2) d / (d -
        1)``. Across the vector the parts of candidates are uncorrelated, with the squared norms 1 - t**2. Along the vector, the mean has a
        variance of at most ``E sum p**2 (1 - t**2) / (d - 1)``, by the Poincaré inequality of the sphere. A mean of
        unit vectors has at most the norm 1.
        """
        contrast, dimension = letter_contrast(self.local_epsilon, self.letters, self.closest), self.ball.dimension
        if dimension == 1:
            return 1.0
        far = contrast / math.expm1(self.local_epsilon)
        along = largest_coordinates_sum(self.letters, self.closest, dimension, power=2)
        closest, others = self.closest - along, self.letters - self.closest - (self.letters / dimension - along)
        across = (far + contrast) ** 2 * closest + far**2 * others
        return min(1.0, self.projection_mean**2 + across * dimension / (dimension - 1))

    def projections(self, directions: FloatArray, seeds: list[int]) -> FloatArray:
        """Return inner products with the candidates of each seed's list."""
        products = np.empty((len(directions), self.letters))
        for part in client_chunks(len(directions), self.letters * self.ball.dimension, BATCH):
            candidates = vectors_of_seeds(seeds[part], self.ball.dimension, self.letters)
            inner = (candidates @ directions[part, :, None].astype(np.float32))[:, :, 0]
            products[part] = inner / np.sqrt(np.vecdot(candidates, candidates))
        return products

    def letter_sum(self, seeds: list[int], numbers: NDArray[Any]) -> FloatArray:
        """Return the sum of candidates; the server generates no other candidates."""
        total = np.zeros(self.ball.dimension)
        for part in client_chunks(len(numbers), self.ball.dimension, BATCH):
            sent = vectors_of_seeds(seeds[part], self.ball.dimension, first=numbers[part].tolist())[:, 0].astype(float)
            total += (sent / np.linalg.norm(sent, axis=1)[:, None]).sum(axis=0)
        return total


@cache
def largest_coordinates_sum(count: int, largest: int, dimension: int, power: int = 1) -> float:
    """Return the expected sum of powers of the largest first coordinates of random unit vectors.

    A coordinate t is among the `largest` largest of `count` with probability P(Binomial(count - 1, P(T > t)) < largest): the sum is `count`
    times the mean of the power of t times that probability, by Gauss-Legendre quadrature over the angle.

    Parameters
    ----------
    count : int
        Number of independent vectors, from 1 to 2**12.
    largest : int
        Number of summands, from 1 to `count`.
    dimension : int
        Length of the vectors, at least 1.
    power : int
        Power of the coordinates, 1 or 2.

    Examples
    --------
    The larger of two coordinates of points on the circle has the mean 4 / pi**2.

    >>> round(largest_coordinates_sum(2, 1, 2), 12), round(4 / math.pi**2, 12)
    (0.405284734569, 0.405284734569)
    """
    if dimension == 1:
        # A coordinate is 1 or -1.
        positive = np.arange(count + 1)
        sums = 2.0 * np.minimum(positive, largest) - largest if power == 1 else np.full(count + 1, float(largest))
        return float(scipy.stats.binom.pmf(positive, count, 0.5) @ sums)
    reach = min(math.pi / 2, REACH / math.sqrt(dimension - 1))
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    half = reach / PANELS
    angles = (np.linspace(-reach, reach, PANELS, endpoint=False) + half)[:, None] + half * nodes
    sines, cosines = np.sin(angles), np.cos(angles)
    upper = scipy.special.betainc((dimension - 1) / 2, 0.5, cosines**2) / 2
    tails = np.where(sines > 0, upper, 1 - upper)
    log_constant = scipy.special.gammaln(dimension / 2) - scipy.special.gammaln((dimension - 1) / 2) - math.log(math.pi) / 2
    density = np.exp((dimension - 2) * np.log(cosines) + log_constant)
    chosen = scipy.special.bdtr(largest - 1, count - 1, tails)
    return float(count * half * np.sum(weights * sines**power * density * chosen))


def check_coded(messages: NDArray[Any], codebooks: int, letters: int) -> None:
    """Raise ValueError unless each message is a codebook's number and a letter's."""
    if messages.ndim != 2 or messages.shape[1] != 2 or messages.dtype.kind not in "ui":
        raise ValueError(f"messages must be whole numbers of the shape (clients, 2), got {messages.dtype} of the shape {messages.shape}")
    for column, end, name in ((0, codebooks, "codebooks"), (1, letters, "letters")):
        numbers = messages[:, column]
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < end:
            wrong = numbers[(numbers < 0) | (numbers >= end)][0]
            raise ValueError(f"messages must hold {name} from 0 to {end - 1}, got {wrong}")
