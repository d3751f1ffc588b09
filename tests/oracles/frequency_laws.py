"""The exact law of a message about an item.

The law enumerates all messages of small domains, from the papers' definitions.
"""

import itertools
import math
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

from quietbits.design.contracts.mechanism import FrequencyMechanism
from quietbits.design.frequencies.hadamard_response import HadamardResponse, RecursiveHadamardResponse
from quietbits.design.frequencies.projective_geometry_response import ProjectiveGeometryResponse
from quietbits.design.frequencies.subset_selection import SubsetSelection
from quietbits.design.frequencies.unary_encoding import UnaryEncoding


@dataclass(frozen=True)
class Law:
    """All messages of `encode`, with their probabilities, shape (items, messages)."""

    messages: NDArray[Any]
    probabilities: NDArray[np.float64]


@singledispatch
def law(mechanism: FrequencyMechanism) -> Law:
    """Return the law of a mechanism's messages."""
    raise NotImplementedError(mechanism)


@law.register
def _(mechanism: HadamardResponse) -> Law:
    likelihood, items, blocks = math.exp(mechanism.epsilon), mechanism.categories, mechanism.blocks
    per_block = math.ceil(items / blocks)
    size = 2 ** math.ceil(math.log2(per_block + 1))
    matrix = hadamard(size)
    chosen = np.zeros((items, blocks * size), dtype=bool)
    for item in range(items):
        block, place = divmod(item, per_block)
        chosen[item, block * size : (block + 1) * size] = matrix[place + 1] == 1
    least = 2 / (size * (2 * blocks - 1 + likelihood))
    return Law(np.arange(blocks * size), np.where(chosen, likelihood, 1.0) * least)


@law.register
def _(mechanism: RecursiveHadamardResponse) -> Law:
    likelihood, items, blocks = math.exp(mechanism.epsilon), mechanism.categories, mechanism.blocks
    per_block = math.ceil(items / blocks)
    rows = 2 ** math.ceil(math.log2(per_block))
    matrix = hadamard(rows)
    messages = np.array(list(itertools.product(range(rows), range(2 * blocks))))
    chosen = np.array(
        [[2 * (item // per_block) + (matrix[row, item % per_block] < 0) == symbol for row, symbol in messages] for item in range(items)]
    )
    return Law(messages, np.where(chosen, likelihood, 1.0) / (likelihood + 2 * blocks - 1) / rows)


@law.register
def _(mechanism: ProjectiveGeometryResponse) -> Law:
    likelihood, items, blocks, prime = math.exp(mechanism.epsilon), mechanism.categories, mechanism.blocks, mechanism.prime
    per_block = math.ceil(items / blocks)
    # The last nonzero digit is 1; the last digit is the most significant.
    vectors = [digits[::-1] for digits in itertools.product(range(prime), repeat=mechanism.digits)]
    points = [digits for digits in vectors if any(digits) and [digit for digit in digits if digit][-1] == 1]
    incident = np.array([[np.dot(point, other) % prime == 0 for other in points] for point in points])
    chosen = np.zeros((items, blocks, len(points)), dtype=bool)
    for item in range(items):
        block, place = divmod(item, per_block)
        chosen[item, block] = incident[place]
    weights = np.where(chosen.reshape(items, -1), likelihood, 1.0)
    return Law(np.arange(blocks * len(points)), weights / weights.sum(axis=1, keepdims=True))


@law.register
def _(mechanism: UnaryEncoding) -> Law:
    likelihood, items = math.exp(mechanism.epsilon), mechanism.categories
    bits = np.array(list(itertools.product([0, 1], repeat=items)), dtype=np.uint8)
    ones = np.where(np.eye(items), 0.5, 1 / (likelihood + 1))[:, None, :]
    return Law(np.packbits(bits, axis=1, bitorder="little"), np.where(bits, ones, 1 - ones).prod(axis=2))


@law.register
def _(mechanism: SubsetSelection) -> Law:
    likelihood, items, size = math.exp(mechanism.epsilon), mechanism.categories, mechanism.subset_size
    subsets = np.array(list(itertools.combinations(range(items), size)))
    bits = np.zeros((len(subsets), items), dtype=np.uint8)
    np.put_along_axis(bits, subsets, 1, axis=1)
    least = 1 / (likelihood * math.comb(items - 1, size - 1) + math.comb(items - 1, size))
    messages = subsets if size == 1 else np.packbits(bits, axis=1, bitorder="little")
    return Law(messages, np.where(bits.T, likelihood, 1.0) * least)
