"""Random rotating simplex coding: messages that name corners of a public random simplex.

A message is the number of a corner, probably of one near the client's vector.

Isik, Chen, Özgür, Weissman, No 2023, *Exact optimality of communication-privacy-utility tradeoffs in distributed mean estimation*.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ....arguments import MOST_CLIENTS, check_integer, check_real
from ....arrays import FloatArray, IntegerArray, WordArray
from ....errors import InfeasibleError
from ....solvers.bounds.privacy_constraint import EPSILON_HIGH, EPSILON_LOW
from ....solvers.numerics.bisection import first_true
from ....solvers.numerics.projected_norm import mean_norm
from ....solvers.numerics.rounding import SHORT_SLACK
from ....solvers.numerics.walsh_hadamard import hadamard_entries
from ...contracts.accounts import pure_privacy
from ...contracts.error import VarianceParts
from ...contracts.mechanism import VectorMechanism
from ...contracts.norm_ball import NormBall, check_ball
from ...contracts.privacy import Privacy
from ...deployment.client_program import ClientProgram, probability_word
from ...deployment.clients.simplex import corner_number
from ...noise.random_words import WordsLike, WordSource, word_source
from ...relative_entropy.shared_randomness import SEED_BITS, check_numbered
from .random_direction import checked_direction, direction_variance, random_directions
from .shared_frames import client_chunks, frame_coordinates, frame_sum, frame_words, lifted_vectors
from .shared_normals import normal_quantiles

# Number of steps of the trapezoidal rule per narrowest width of the integrand, and the rule's end, in standard deviations.
STEPS_PER_WIDTH = 2.5
REACH = 12.0

MOST_BITS = 12


@dataclass(frozen=True)
class RotatingSimplexMechanism(VectorMechanism):
    """Every client sends a corner's number; corners near its vector are likelier than others.

    The corners are those of a public simplex.

    The M = 2**b corners are unit vectors with the inner products -1 / (M - 1), rotated uniformly at random, anew for each client, from a
    public seed. Each of the k closest corners is sent with probability e^epsilon / (k e^epsilon + M - k), each other corner with 1 / (k
    e^epsilon + M - k): **pure epsilon privacy for every seed**. The mean of the projection on the vector is, with S the expected sum of the
    k largest of M normal numbers and chi the mean norm of d normal numbers,

        m = sqrt(M / (M - 1)) (e^epsilon - 1) / (k e^epsilon + M - k) S / chi

    and ``clip_norm / m`` times the corner is an unbiased estimate, of the variance clip_norm**2 (1 / m**2 - 1) on the sphere. The number k
    minimises the variance. The paper proves that no unbiased mechanism with this codebook has a smaller variance.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 0.001 to 20.
    message_bits : int
        Length b of a message, 1 to 12; at most log2(dimension + 1), since a simplex has no more corners.
    ball : NormBall
        L2 ball of the vectors.

    Examples
    --------
    Uncompressed PrivUnit has the worst variance 87.35.

    >>> ball = NormBall(dimension=200, norm=2.0)
    >>> [round(RotatingSimplexMechanism(4.0, bits, ball).variance_bound, 2) for bits in (1, 4, 7)]
    [337.2, 101.12, 88.75]
    """

    epsilon: float
    message_bits: int
    ball: NormBall
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "epsilon", check_real("epsilon", self.epsilon, low=EPSILON_LOW, high=EPSILON_HIGH))
        object.__setattr__(self, "message_bits", check_integer("message_bits", self.message_bits, low=1, high=MOST_BITS))
        check_ball(self.ball, "a rotating simplex", 2)
        if self.corners > self.ball.dimension + 1:
            most = most_simplex_bits(self.ball.dimension)
            raise InfeasibleError(
                f"message_bits must be at most {most} for a simplex in {self.ball.dimension} dimensions, got {self.message_bits}"
            )

    @property
    def corners(self) -> int:
        """Number M of corners."""
        return 1 << self.message_bits

    @cached_property
    def closest(self) -> int:
        """Number k of the likelier, closest corners, which maximises the mean.

        Privacy does not depend on this number.
        """
        # Sums of the k largest are concave in k, so their ratio to a linear function is unimodal.
        return first_true(1, self.corners // 2, lambda number: self._mean(number + 1) <= self._mean(number))

    @property
    def projection_mean(self) -> float:
        """Mean m of the sent corner's projection on the vector, over seeds and numbers."""
        return self._mean(self.closest)

    @property
    def bits_per_client(self) -> float:
        """Number of bits of a message, the length of the corner's number.

        The seed costs nothing: it is public randomness, which server and client share.
        """
        return float(self.message_bits)

    def privacy(self) -> Privacy:
        """Return the pure local privacy."""
        return pure_privacy(self.epsilon)

    @property
    def variance_bound(self) -> float:
        """Largest variance, that of the ball's centre: ``(clip_norm / m)**2``."""
        return (self.ball.clip_norm / self.projection_mean) ** 2

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return ``variance_bound - ||x||**2`` for each vector.

        The variance is exact, over seeds and numbers.
        """
        return np.asarray(self.variance_bound - np.square(self.ball.clip(vectors)).sum(axis=1))

    def variance_parts(self, vectors: ArrayLike) -> VarianceParts:
        """Return the variance by rounding to the sphere, the choice of a simplex, and noise.

        With C corners, of which the k closest are likelier by a difference c, the expectation of a message for a given simplex is c times
        the decoded sum of the closest corners. The squared norm of the sum of k unit vectors of a simplex is ``k (C - k) / (C - 1)``.
        """
        contrast = letter_contrast(self.epsilon, self.corners, self.closest)
        expected = self.variance_bound * contrast**2 * self.closest * (self.corners - self.closest) / (self.corners - 1)
        rounding = direction_variance(self.ball, vectors)
        return VarianceParts.split(self.variance(vectors), compression=expected - self.ball.clip_norm**2, rounding=rounding)

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> NDArray[np.uint64]:
        """Draw the public seed and a corner's number for each client, shape (clients, 2)."""
        random_words = word_source(random_words)
        directions = random_directions(self.ball, vectors, random_words)
        seeds = random_words(len(directions))
        near = closest_letters(simplex_projections(directions, seeds.tolist(), self.corners), self.closest)
        return np.column_stack([seeds, drawn_letters(near, self.closest, self._far_probability, random_words)])

    def client_program(self) -> ClientProgram:
        """Return the program: a corner of a simplex that public words rotate."""
        odds_against, closest = self.corners - self.closest, self.closest
        far = probability_word(lambda odds: odds_against / (closest * odds + odds_against), self.epsilon, up=True)
        return ClientProgram(
            corner_number,
            {
                "dimension": self.ball.dimension,
                "clip_norm": float(self.ball.clip_norm),
                "corners": self.corners,
                "closest": closest,
                "far": far,
                "quantiles": normal_quantiles(),
            },
            self.message_bits,
            aggregate=self._sum_of_corners,
            public_words=frame_words(self.ball.dimension, self.corners - 1),
            likelihood_ratio=Fraction(2**64 - far, far) * Fraction(odds_against, closest),
            epsilon=self.epsilon,
        )

    def _sum_of_corners(self, fields: IntegerArray, public: WordArray) -> FloatArray:
        """Return the sum of the corners that deployed clients sent, as `aggregate` does."""
        signs = hadamard_entries(fields[:, :1], np.arange(1, self.corners)).astype(float)
        return np.asarray(lifted_vectors(public, signs, self.ball.dimension).sum(axis=0) / math.sqrt(self.corners - 1))

    def number_probabilities(self, direction: ArrayLike, seed: int) -> FloatArray:
        """Return the distribution of the number for a unit vector and a public seed.

        An adversary sees this distribution; its shape is (2**b,).
        """
        seed = check_integer("seed", seed, low=0, high=2**SEED_BITS - 1)
        projections = simplex_projections(checked_direction(self.ball, direction), [seed], self.corners)
        near = closest_letters(projections, self.closest)[0]
        return np.where(near, (1 - self._far_probability) / self.closest, self._far_probability / (self.corners - self.closest))

    def aggregate(self, messages: NDArray[Any]) -> FloatArray:
        """Return the sum of the corners that were sent, shape (dimension,)."""
        check_numbered(messages, self.corners, "numbers of corners")
        return corner_sum(messages[:, 0].tolist(), messages[:, 1], self.corners, self.ball.dimension)

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the average of the decoded corners, which may lie outside the ball."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        return np.asarray(aggregate * (self.ball.clip_norm / (self.projection_mean * clients)))

    @property
    def _far_probability(self) -> float:
        """Probability of sending a corner that is not among the closest; rounded upward."""
        return far_probability(self.epsilon, self.corners, self.closest)

    def _mean(self, closest: int) -> float:
        return letter_contrast(self.epsilon, self.corners, closest) * closest_corners_sum(self.corners, closest, self.ball.dimension)


def letter_contrast(epsilon: float, letters: int, closest: int) -> float:
    """Return the difference of the probabilities of a closest letter and of another letter."""
    return -math.expm1(-epsilon) / (closest + (letters - closest) * math.exp(-epsilon))


def far_probability(epsilon: float, letters: int, closest: int) -> float:
    """Return the probability of a letter that is not among the closest; rounded upward.

    Each of the closest letters is e^epsilon times as likely as each other letter.
    """
    others = letters - closest
    return min(1.0, others / (closest * math.exp(epsilon) + others) * (1 + SHORT_SLACK))


def closest_corners_sum(corners: int, closest: int, dimension: int) -> float:
    """Return the mean of the sum of the closest corners' inner products with a unit vector."""
    return math.sqrt(corners / (corners - 1)) * largest_normals_sum(corners, closest) / mean_norm(dimension)


def closest_letters(projections: FloatArray, closest: int) -> NDArray[np.bool_]:
    """Return indicators of the letters with the largest inner products, shape (clients, letters)."""
    near = np.zeros(projections.shape, dtype=bool)
    np.put_along_axis(near, np.argsort(-projections, axis=1, kind="stable")[:, :closest], values=True, axis=1)
    return near


def drawn_letters(near: NDArray[np.bool_], closest: int, far: float, random_words: WordSource) -> NDArray[np.uint64]:
    """Draw a letter for each client, with the probability `far` one that is not among the closest.

    `near` has the indicators of the closest letters, shape (clients, letters).
    """
    clients, letters = near.shape
    # A uniform number of 53 bits falls below a probability at least as often as that probability states: the error adds privacy.
    is_far = random_words.uniforms(clients) < far
    places = np.where(is_far, random_words.integers(letters - closest, clients), random_words.integers(closest, clients))
    # The letters of the chosen kind, close or far, come before all other letters.
    order = np.argsort(near == is_far[:, None], axis=1, kind="stable")
    return np.take_along_axis(order, places[:, None], axis=1)[:, 0].astype(np.uint64)


def simplex_projections(directions: FloatArray, seeds: Sequence[int], corners: int) -> FloatArray:
    """Return inner products with the corners of each seed's simplex, up to a common factor.

    Corner i is the sum over a frame's M - 1 columns of the signs in column i of a Hadamard matrix, without its first row. The shape is
    (clients, corners).
    """
    projections = np.zeros((len(directions), corners))
    projections[:, 1:] = frame_coordinates(seeds, directions, corners - 1)
    return corner_projections(projections)


def corner_projections(coordinates: FloatArray) -> FloatArray:
    """Return the Walsh-Hadamard transform of rows, with the additions of deployed clients (`clients.sums.transform`) in the same order."""
    clients, corners = coordinates.shape
    transformed, distance = coordinates, 1
    while distance < corners:
        pairs = transformed.reshape(clients, -1, 2, distance)
        transformed = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2).reshape(clients, corners)
        distance *= 2
    return transformed


def corner_sum(seeds: Sequence[int], numbers: NDArray[Any], corners: int, dimension: int) -> FloatArray:
    """Return the sum of corners of the seeds' simplices, shape (dimension,)."""
    total = np.zeros(dimension)
    for part in client_chunks(len(numbers), dimension * corners):
        signs = hadamard_entries(numbers[part, None].astype(np.int64), np.arange(1, corners)).astype(float)
        total += frame_sum(seeds[part], signs, dimension)
    return total / math.sqrt(corners - 1)


def most_simplex_bits(dimension: int) -> int:
    """Return the largest number of bits for which a simplex has enough corners.

    The result is at most 12 bits, for vectors of the given number of dimensions.

    Examples
    --------
    >>> [most_simplex_bits(dimension) for dimension in (1, 3, 200, 10**6)]
    [1, 2, 7, 12]
    """
    return min((dimension + 1).bit_length() - 1, MOST_BITS)


@cache
def largest_normals_sum(count: int, largest: int) -> float:
    """Return the expected sum of the `largest` largest of `count` standard normal numbers.

    The numbers are independent. A number z is among the largest with probability P(Binomial(count - 1, 1 - Phi(z)) < largest): the sum is
    `count` times the integral of z phi(z) times that probability, by the trapezoidal rule, which converges exponentially for such
    functions.

    Parameters
    ----------
    count : int
        Number of normal numbers, from 1 to 2**20.
    largest : int
        Number of summands, from 0 to `count`.

    Examples
    --------
    The larger of two has the mean 1 / sqrt(pi).

    >>> round(largest_normals_sum(2, 1), 12), round(1 / math.sqrt(math.pi), 12), round(largest_normals_sum(128, 16), 4)
    (0.564189583548, 0.564189583548, 26.0866)
    """
    if largest in (0, count):
        return 0.0
    if largest > count / 2:
        # All numbers together have the mean 0, so the smallest numbers have minus the sum of the largest numbers.
        return largest_normals_sum(count, count - largest)
    # The probability, as a function of the tail, falls within sqrt(largest) / count about largest / count, whose logarithm has the slope z.
    width = 1 / (math.sqrt(largest) * (1 + math.sqrt(2 * math.log(count / largest))))
    points = np.linspace(-REACH, REACH, 2 * math.ceil(REACH * STEPS_PER_WIDTH / min(width, 0.5)) + 1)
    chosen = scipy.special.bdtr(largest - 1, count - 1, scipy.special.ndtr(-points))
    density = np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi)
    return float(count * (points[1] - points[0]) * np.sum(points * density * chosen))
