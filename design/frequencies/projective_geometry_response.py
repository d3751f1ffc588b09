"""Projective geometry response: a message is a point, probably of the item's hyperplane.

Feldman, Nelson, Nguyen, Talwar 2022, *Private frequency estimation via projective geometry*. `ProjectiveSpace` numbers the points of a
projective space over the numbers modulo a prime, and sums over its hyperplanes.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CATEGORIES, MOST_CLIENTS, check_integer
from ...arrays import FloatArray, IntegerArray
from ..deployment.client_program import ClientProgram, bits_below, fields_below
from ..deployment.clients.items import projective_point
from ..local.message_checks import checked_messages
from ..noise.random_words import WordsLike, word_source
from .blocks import BlockMechanism

MOST_POINTS = 2**40

LARGEST_PRIME = 2**12
# Primes of the search: a larger prime would lower the variance by less than 1/250, and the server's time is proportional to it.
PRIMES = tuple(prime for prime in range(2, 252) if all(prime % divisor for divisor in range(2, math.isqrt(prime) + 1)))
# Largest number of outputs per item, and in all for few items, in the server's memory.
OUTPUTS_PER_ITEM, LEAST_OUTPUTS = 16, 2**20


@dataclass(frozen=True)
class ProjectiveSpace:
    """The projective space of lines through the origin of F^length, F a prime field.

    F has the numbers modulo the prime. Each line has exactly one vector whose last nonzero digit is 1. Points are numbered in the order of
    these vectors, read as numbers whose first digit is the least significant. Two lines are incident if their vectors' inner product is 0:
    the points that are incident with a point are its hyperplane.

    Attributes
    ----------
    prime : int
        The prime, at least 2; whether it is a prime is not checked.
    length : int
        Number of digits, at least 1; there are at most 2**40 points.

    Examples
    --------
    The Fano plane: seven points, three on each line.

    >>> plane = ProjectiveSpace(prime=2, length=3)
    >>> plane.points, plane.vectors(np.arange(3)).tolist()
    (7, [[1, 0, 0], [0, 1, 0], [1, 1, 0]])
    >>> plane.on_hyperplanes(np.array([6, 6, 6]), np.arange(3)).tolist()
    [4, 5, 2]
    """

    prime: int
    length: int

    def __post_init__(self) -> None:
        """Check the size."""
        if self.prime < 2 or self.length < 1 or self.points > MOST_POINTS:
            raise ValueError(
                f"prime and length must be at least 2 and 1, and give 2**40 points at most, got {self.prime} and {self.length}"
            )

    @property
    def points(self) -> int:
        """Number of points, ``(prime**length - 1) / (prime - 1)``."""
        return self._points_of(self.length)

    @property
    def hyperplane_points(self) -> int:
        """Number of points of a hyperplane."""
        return self._points_of(self.length - 1)

    @property
    def common_points(self) -> int:
        """Number of points that two hyperplanes have in common."""
        return self._points_of(max(self.length - 2, 0))

    def vectors(self, points: IntegerArray) -> IntegerArray:
        """Return the digits of points, shape (..., length)."""
        last = self._last_digits(points)
        code = points - self._starts[last] + self._powers[last]
        return np.asarray(code[..., None] // self._powers % self.prime)

    def numbers(self, vectors: IntegerArray) -> IntegerArray:
        """Return the points that vectors other than 0 lie on, shape (...,)."""
        last = self.length - 1 - np.argmax(vectors[..., ::-1] != 0, axis=-1)
        scales = self._inverses[np.take_along_axis(vectors, last[..., None], axis=-1)]
        code = (vectors * scales % self.prime) @ self._powers
        return np.asarray(code - self._powers[last] + self._starts[last])

    def on_hyperplanes(self, points: IntegerArray, ranks: IntegerArray) -> IntegerArray:
        """Return the point of a rank on the hyperplane of each point.

        Ranks from 0 to ``hyperplane_points - 1`` give each point once.
        """
        normals = self.vectors(points)
        # The other digits of a point on the hyperplane are those of any point of a space with one dimension less. They determine the digit
        # at which the normal has its 1.
        free = np.arange(self.length) != self._last_digits(points)[:, None]
        vectors = np.zeros(normals.shape, dtype=np.int64)
        vectors[free] = ProjectiveSpace(self.prime, self.length - 1).vectors(ranks).ravel()
        vectors[~free] = -(normals * vectors).sum(axis=1) % self.prime
        return self.numbers(vectors)

    def are_incident(self, points: IntegerArray, others: IntegerArray) -> "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]":
        """Return whether points lie on the hyperplanes of other points."""
        return np.asarray((self.vectors(points) * self.vectors(others)).sum(axis=-1) % self.prime == 0)

    def hyperplane_sums(self, counts: IntegerArray, normals: int) -> FloatArray:
        """Return the number of counted points on the hyperplanes of the first points.

        An inner product is 0 modulo the prime in ``1/prime sum_s exp(-2 pi i s <x, y> / prime)`` cases, over all s modulo the prime. For
        points y whose last digit is the m-th, the sum over y is a Fourier transform in m dimensions, at s x: time is proportional to
        ``points log(points) + normals length prime``, instead of ``points normals``. The result is exact for at most 2**40 copies of each
        point.

        Parameters
        ----------
        counts : ndarray of shape (..., points)
            Number of copies of each point.
        normals : int
            Number of hyperplanes, those of the first points.
        """
        spectra = [self._spectrum(counts, digit) for digit in range(self.length)]
        vectors = self.vectors(np.arange(normals))
        roots = np.exp(-2j * np.pi * np.arange(self.prime) / self.prime)
        total = np.zeros((*counts.shape[:-1], normals))
        # Sums for s and for prime - s are conjugate.
        for scale in range(1, self.prime // 2 + 1):
            digits = vectors * scale % self.prime
            place = np.zeros(normals, dtype=np.int64)
            part = np.zeros(total.shape)
            for digit, spectrum in enumerate(spectra):
                part += (roots[digits[:, digit]] * spectrum[..., place]).real
                place += digits[:, digit] * self._powers[digit]
            total += part if 2 * scale == self.prime else 2 * part
        return np.asarray(np.rint((counts.sum(axis=-1, keepdims=True) + total) / self.prime))

    def _spectrum(self, counts: IntegerArray, digit: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.complex128]]":
        """Return the Fourier transform of the counts of points by their last nonzero digit.

        These are the points whose last nonzero digit has the given place.
        """
        of_these = counts[..., self._starts[digit] : self._starts[digit + 1]]
        if digit == 0:
            return np.asarray(of_these, dtype=complex)
        cube = of_these.reshape(*counts.shape[:-1], *[self.prime] * digit)
        return np.asarray(np.fft.fftn(cube, axes=range(-digit, 0)).reshape(of_these.shape))

    def _points_of(self, length: int) -> int:
        return int((self.prime**length - 1) // (self.prime - 1))

    def _last_digits(self, points: IntegerArray) -> IntegerArray:
        return np.searchsorted(self._starts[1:], points, side="right")

    def client_constants(self) -> dict[str, int | tuple[int, ...]]:
        """Return the constants with which a deployed client numbers points."""
        return {
            "prime": self.prime,
            "digits": self.length,
            "starts": tuple(self._starts.tolist()),
            "powers": tuple(self._powers.tolist()),
            "inverses": tuple(self._inverses.tolist()),
        }

    @cached_property
    def _powers(self) -> IntegerArray:
        return np.array([self.prime**digit for digit in range(self.length)], dtype=np.int64)

    @cached_property
    def _starts(self) -> IntegerArray:
        """First point for each place of the last nonzero digit, then the number of points."""
        return np.array([self._points_of(digit) for digit in range(self.length + 1)], dtype=np.int64)

    @cached_property
    def _inverses(self) -> IntegerArray:
        return np.array([0, *(pow(digit, -1, self.prime) for digit in range(1, self.prime))], dtype=np.int64)


@dataclass(frozen=True)
class ProjectiveGeometryResponse(BlockMechanism):
    """Projective geometry response: an item's set is its hyperplane in a projective space.

    Items and outputs of a block are points of the space. With one block and prime - 1 = E the variance is that of subset selection, 4 E/(E
    - 1)**2 to first order, in log2(points) bits, and the server decodes as in `ProjectiveSpace.hyperplane_sums`. With several blocks of a
    smaller prime (the paper's hybrid) it is larger by a factor of about 1 + 1/(prime - 1). With two digits, a set is one output, which
    makes it randomised response.

    Attributes
    ----------
    epsilon, categories, blocks
        Fields of `BlockMechanism`.
    prime, digits : int
        Prime of the space, up to 2**12, and number of its digits, at least 2. The space has at least as many points as a block has items.

    Examples
    --------
    >>> mechanism = projective_geometry_response(1.0, categories=4)
    >>> messages = mechanism.encode(np.array([0, 0, 0, 1] * 10_000), np.random.default_rng(0))
    >>> mechanism.prime, mechanism.digits, mechanism.decode(mechanism.aggregate(messages), 40_000).round(2).tolist()
    (3, 2, [0.75, 0.25, -0.0, 0.0])
    """

    epsilon: float
    categories: int
    prime: int
    digits: int
    blocks: int = 1

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        prime = check_integer("prime", self.prime, low=2, high=LARGEST_PRIME)
        if any(prime % divisor == 0 for divisor in range(2, math.isqrt(prime) + 1)):
            raise ValueError(f"prime must be a prime, got {prime}")
        object.__setattr__(self, "prime", prime)
        object.__setattr__(self, "digits", check_integer("digits", self.digits, low=2, high=40))
        if self.space.points < self.block_items:
            raise ValueError(
                f"digits must be enough for {self.block_items} points of each block, got {self.digits} of the prime {prime}: "
                f"{self.space.points} points"
            )

    @cached_property
    def space(self) -> ProjectiveSpace:
        """The projective space of the points of a block."""
        return ProjectiveSpace(self.prime, self.digits)

    @property
    def block_outputs(self) -> int:
        """Number of outputs of a block, which are all points of the space."""
        return self.space.points

    @property
    def set_outputs(self) -> int:
        """Number of outputs of an item's set, which are the points of a hyperplane."""
        return self.space.hyperplane_points

    @property
    def common_outputs(self) -> float:
        """Number of common outputs, which are the points common to two hyperplanes."""
        return float(self.space.common_points)

    def encode(self, items: ArrayLike, random_words: WordsLike) -> IntegerArray:
        """Return each client's output, numbered through all blocks."""
        random_words, held = word_source(random_words), self.domain.clip(items)
        # Rounding only adds privacy.
        lying = random_words.uniforms(held.shape) < self.lie_probability
        outputs = random_words.integers(self.blocks * self.block_outputs, held.shape)
        ranks = random_words.integers(self.set_outputs, held.shape)
        honest = np.flatnonzero(~lying)
        truth = self.space.on_hyperplanes(self.place_of(held[honest]), ranks[honest])
        outputs[honest] = self.block_of(held[honest]) * self.block_outputs + truth
        return outputs

    def client_program(self) -> ClientProgram:
        """Return the program: a point of the item's hyperplane, or any point."""
        lie, outputs = self.lie_word(), self.blocks * self.block_outputs
        sizes = {"block_items": self.block_items, "block_outputs": self.block_outputs, "outputs": outputs, "set_outputs": self.set_outputs}
        return ClientProgram(
            projective_point,
            {"lie": lie, **sizes, **self.space.client_constants()},
            bits_below(outputs),
            valid=fields_below(outputs),
            likelihood_ratio=self.likelihood_ratio(lie),
            epsilon=self.epsilon,
        )

    def aggregate(self, messages: NDArray[Any]) -> IntegerArray:
        """Return the number of messages with each output."""
        size = self.blocks * self.block_outputs
        return np.bincount(checked_messages(messages, 0, size - 1), minlength=size)

    def decode(self, aggregate: IntegerArray, clients: int) -> FloatArray:
        """Return unbiased frequencies, by a Fourier transform of each block."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        counts = np.reshape(aggregate, (self.blocks, self.block_outputs))
        supporters = self.space.hyperplane_sums(counts, self.block_items)
        sums = self.unit * supporters + self.block_unit * counts.sum(axis=1, keepdims=True)
        return np.asarray(sums.ravel()[: self.categories] / clients + self.constant)

    def block_messages(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return the sums over the outputs of each block."""
        return np.asarray(np.reshape(aggregate, (self.blocks, self.block_outputs)).sum(axis=1))

    def supports(self, messages: NDArray[Any], item: int) -> NDArray[np.bool_]:
        """Return whether each output lies on the item's hyperplane."""
        block, place = divmod(item, self.block_items)
        blocks, points = np.divmod(messages, self.block_outputs)
        return np.asarray((blocks == block) & self.space.are_incident(points, np.array(place)))


@lru_cache(maxsize=64)
def projective_geometry_response(epsilon: float, categories: int) -> ProjectiveGeometryResponse:
    """Return projective geometry response with the prime and blocks of least worst variance.

    The search tries primes up to 251, with at most 16 outputs per item and 2**20 more. (Fields of prime powers would serve as well, and
    lower the variance by at most 3%.)

    Examples
    --------
    >>> mechanisms = [projective_geometry_response(epsilon, 100_000) for epsilon in (0.5, 1.0, 2.0, 5.0, 10.0)]
    >>> [(mechanism.prime, mechanism.digits, mechanism.blocks) for mechanism in mechanisms]
    [(3, 12, 1), (3, 12, 1), (7, 7, 1), (137, 4, 1), (107, 3, 205)]
    """
    check_integer("categories", categories, low=1, high=MOST_CATEGORIES - 1)
    smallest = ProjectiveGeometryResponse(epsilon, categories, 2, padded_digits(2, categories))
    epsilon, categories = smallest.epsilon, smallest.categories
    most_outputs = OUTPUTS_PER_ITEM * categories + LEAST_OUTPUTS
    mechanisms = []
    for prime in PRIMES:
        for digits in range(2, padded_digits(prime, categories) + 1):
            space = ProjectiveSpace(prime, digits)
            # Without the loss from several blocks, the best share of outputs in a set would be 1/(E + 1).
            ideal = min(float(categories), (1 + math.exp(epsilon)) * space.hyperplane_points / space.points)
            fewest = -(-categories // space.points)
            choices = {max(fewest, round(ideal) + step) for step in (-1, 0, 1)} | {fewest}
            mechanisms += [
                ProjectiveGeometryResponse(epsilon, categories, prime, digits, blocks)
                for blocks in choices
                if 1 <= blocks <= categories and blocks * space.points <= most_outputs
            ]
    return min(mechanisms, key=lambda mechanism: (mechanism.variance_bound, mechanism.bits_per_client))


def padded_digits(prime: int, points: int) -> int:
    """Return the fewest digits, at least 2, of a space with at least that many points.

    Examples
    --------
    >>> [padded_digits(3, points) for points in (1, 4, 5, 13, 14)]
    [2, 2, 3, 3, 4]
    """
    digits = 2
    while ProjectiveSpace(prime, digits).points < points:
        digits += 1
    return digits
