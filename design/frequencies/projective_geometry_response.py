"""Projective geometry response: a point of the item's hyperplane, or any other one.

Feldman, Nelson, Nguyen, Talwar 2022, *Private frequency estimation via projective geometry*.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CATEGORIES, MOST_CLIENTS, check_integer
from ...arrays import FloatArray, IntegerArray
from ...solvers.numerics.projective_space import ProjectiveSpace
from ..local.message_checks import checked_messages
from ..noise.random_words import WordsLike, word_source
from .blocks import BlockMechanism

LARGEST_PRIME = 2**12
# Of those that are tried: a larger one would lower the variance by less than 1/250, and the server's time is proportional to it.
PRIMES = tuple(prime for prime in range(2, 252) if all(prime % divisor for divisor in range(2, math.isqrt(prime) + 1)))
# Outputs for each item, and for few items, that the server's memory is spent on.
OUTPUTS_PER_ITEM, LEAST_OUTPUTS = 16, 2**20


@dataclass(frozen=True)
class ProjectiveGeometryResponse(BlockMechanism):
    """Items and outputs of a block are points of a projective space over a prime field; an item's set is its hyperplane.

    With one block and prime - 1 = E the variance is that of subset selection, 4 E/(E - 1)**2 to first order, in log2(points) bits, and the
    server decodes as in `ProjectiveSpace.hyperplane_sums`. With several blocks of a smaller prime (the paper's hybrid) it is larger by a
    factor of about 1 + 1/(prime - 1). With two digits, a set is one output, which makes it randomised response.

    Attributes
    ----------
    epsilon, categories, blocks
        As in `BlockMechanism`.
    prime, digits : int
        Of the space: a prime up to 2**12, and 2 digits or more, with at least as many points as a block has items.

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
        """Points of a block."""
        return ProjectiveSpace(self.prime, self.digits)

    @property
    def block_outputs(self) -> int:
        """All points of the space."""
        return self.space.points

    @property
    def set_outputs(self) -> int:
        """Those of a hyperplane."""
        return self.space.hyperplane_points

    @property
    def common_outputs(self) -> float:
        """Those that two hyperplanes have in common."""
        return float(self.space.common_points)

    def encode(self, items: ArrayLike, words: WordsLike) -> IntegerArray:
        """Return each client's output, numbered through all blocks."""
        words, held = word_source(words), self.domain.clip(items)
        # Rounding errs toward privacy.
        lying = words.uniforms(held.shape) < self.lie_probability
        outputs = words.integers(self.blocks * self.block_outputs, held.shape)
        ranks = words.integers(self.set_outputs, held.shape)
        honest = np.flatnonzero(~lying)
        truth = self.space.on_hyperplanes(self.place_of(held[honest]), ranks[honest])
        outputs[honest] = self.block_of(held[honest]) * self.block_outputs + truth
        return outputs

    def aggregate(self, messages: NDArray[Any]) -> IntegerArray:
        """Return how often each output was sent."""
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
        """Whether the output is on the item's hyperplane."""
        block, place = divmod(item, self.block_items)
        blocks, points = np.divmod(messages, self.block_outputs)
        return np.asarray((blocks == block) & self.space.are_incident(points, np.array(place)))


@lru_cache(maxsize=64)
def projective_geometry_response(epsilon: float, categories: int) -> ProjectiveGeometryResponse:
    """Return projective geometry response with the prime and the number of blocks whose worst variance is the least.

    Of primes up to 251, with at most 16 outputs per item and 2**20 more. (Fields of prime powers would serve as well, and lower the
    variance by 3% at most.)

    Examples
    --------
    >>> found = [projective_geometry_response(epsilon, 100_000) for epsilon in (0.5, 1.0, 2.0, 5.0, 10.0)]
    >>> [(one.prime, one.digits, one.blocks) for one in found]
    [(3, 12, 1), (3, 12, 1), (7, 7, 1), (137, 4, 1), (107, 3, 205)]
    """
    check_integer("categories", categories, low=1, high=MOST_CATEGORIES - 1)
    smallest = ProjectiveGeometryResponse(epsilon, categories, 2, padded_digits(2, categories))
    epsilon, categories = smallest.epsilon, smallest.categories
    most_outputs = OUTPUTS_PER_ITEM * categories + LEAST_OUTPUTS
    found = []
    for prime in PRIMES:
        for digits in range(2, padded_digits(prime, categories) + 1):
            space = ProjectiveSpace(prime, digits)
            # Without the loss by blocks, the best share of outputs in a set would be 1/(E + 1).
            ideal = min(float(categories), (1 + math.exp(epsilon)) * space.hyperplane_points / space.points)
            fewest = -(-categories // space.points)
            choices = {max(fewest, round(ideal) + step) for step in (-1, 0, 1)} | {fewest}
            found += [
                ProjectiveGeometryResponse(epsilon, categories, prime, digits, blocks)
                for blocks in choices
                if 1 <= blocks <= categories and blocks * space.points <= most_outputs
            ]
    return min(found, key=lambda one: (one.worst_variance, one.bits_per_client))


def padded_digits(prime: int, points: int) -> int:
    """Return how many digits, at least 2, a space of that many points has.

    Examples
    --------
    >>> [padded_digits(3, points) for points in (1, 4, 5, 13, 14)]
    [2, 2, 3, 3, 4]
    """
    digits = 2
    while ProjectiveSpace(prime, digits).points < points:
        digits += 1
    return digits
