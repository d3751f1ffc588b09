"""Hadamard response and its recursive form: local mechanisms with Walsh-Hadamard decoders.

Hadamard response (Acharya, Sun, Zhang 2019, *Hadamard response: Estimating distributions privately, efficiently, and with little
communication*) sends an output of half of the item's block, or any other output. Recursive Hadamard response (Chen, Kairouz, Özgür 2020,
*Breaking the communication-privacy-accuracy trilemma*, section 4) sends the item's block and one sign of its place, by randomised response
on very few bits.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CLIENTS, check_integer
from ...arrays import FloatArray, IntegerArray, check_unmasked
from ...solvers.numerics.walsh_hadamard import hadamard_entries, padded_dimension, walsh_hadamard
from ..deployment.client_program import ClientProgram, bits_below, fields_below
from ..deployment.clients.items import hadamard_output, recursive_hadamard_symbol
from ..local.message_checks import checked_messages
from ..noise.random_words import WordsLike, word_source
from .blocks import BlockMechanism


@dataclass(frozen=True)
class HadamardResponse(BlockMechanism):
    """Hadamard response: the set of an item is the half of its block where a matrix row is 1.

    The set of item number r of a block is the outputs y at which row r + 1 of a Hadamard matrix is 1. With E = exp(epsilon) and D = 2
    blocks - 1 + E, the estimate is D / (E - 1) times the sum of that row's entries at the messages of the block, so that the variance is D
    (E + 1) / (E - 1)**2 for items of the block, minus 1 for the held item, and 2 D / (E - 1)**2 for other items.

    Items are spread evenly over the blocks. The paper fills one block after the other, which gives a larger error if items do not fill the
    last block.

    Attributes
    ----------
    epsilon, categories, blocks
        Fields of `BlockMechanism`; `blocks` is a power of two, at most twice the number of items.

    Examples
    --------
    >>> mechanism = hadamard_response(1.0, categories=4)
    >>> messages = mechanism.encode(np.array([0, 0, 0, 1] * 10_000), np.random.default_rng(0))
    >>> mechanism.decode(mechanism.aggregate(messages), 40_000).round(2).tolist()
    [0.75, 0.24, -0.0, 0.0]
    """

    epsilon: float
    categories: int
    blocks: int

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        check_power_of_two("blocks", self.blocks)

    @property
    def most_blocks(self) -> int:
        """Largest number of blocks: twice the number of items, for the paper's choice."""
        return 2 * self.categories

    @property
    def block_outputs(self) -> int:
        """Number of outputs of a block, a power of two.

        The number exceeds the number of items, as no item has the matrix's first row.
        """
        return padded_dimension(self.block_items + 1)

    @property
    def set_outputs(self) -> int:
        """Number of outputs of an item's set, half of the block."""
        return self.block_outputs // 2

    @property
    def common_outputs(self) -> float:
        """Number of common outputs of two items of a block, a quarter of the block."""
        return self.block_outputs / 4

    def encode(self, items: ArrayLike, random_words: WordsLike) -> IntegerArray:
        """Return each client's output, numbered through all blocks."""
        random_words, held = word_source(random_words), self.domain.clip(items)
        # Rounding errors only increase the lie probability.
        lying = random_words.uniforms(held.shape) < self.lie_probability
        anything = random_words.integers(self.blocks * self.block_outputs, held.shape)
        rows, outputs = self.place_of(held) + 1, random_words.integers(self.block_outputs, held.shape)
        # Flipping a bit of the row maps the half where its entries are -1 to the other half.
        outputs ^= np.where(hadamard_entries(rows, outputs) < 0, rows & -rows, 0)
        return np.where(lying, anything, self.block_of(held) * self.block_outputs + outputs)

    def client_program(self) -> ClientProgram:
        """Return the program: an output of the item's half of its block, or any output."""
        lie, outputs = self.lie_word(), self.blocks * self.block_outputs
        constants = {"lie": lie, "block_items": self.block_items, "block_outputs": self.block_outputs, "outputs": outputs}
        return ClientProgram(
            hadamard_output,
            constants,
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
        """Return unbiased frequencies, by a Walsh-Hadamard transform of each block."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        sums = walsh_hadamard(np.reshape(aggregate, (self.blocks, self.block_outputs)))[:, 1 : self.block_items + 1]
        return np.asarray(sums.ravel()[: self.categories] * (self.unit / 2 / clients))

    def block_messages(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return the sums over the outputs of each block."""
        return np.asarray(np.reshape(aggregate, (self.blocks, self.block_outputs)).sum(axis=1))

    def supports(self, messages: NDArray[Any], item: int) -> NDArray[np.bool_]:
        """Return whether each output is in the item's set."""
        block, place = divmod(item, self.block_items)
        blocks, outputs = np.divmod(messages, self.block_outputs)
        return np.asarray((blocks == block) & (hadamard_entries(place + 1, outputs) > 0))


def hadamard_response(epsilon: float, categories: int, blocks: int | None = None) -> HadamardResponse:
    """Return Hadamard response, by default with the blocks of least worst variance.

    The paper's number, `published_blocks`, has up to 39% more variance: from epsilon 0.7 to 1.3 it has two blocks, though a single block is
    better.

    Examples
    --------
    >>> [hadamard_response(epsilon, 1000).blocks for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0)]
    [1, 1, 4, 32, 1024]
    """
    if blocks is not None:
        return HadamardResponse(epsilon, categories, blocks)
    powers = range(padded_dimension(HadamardResponse(epsilon, categories, 1).categories).bit_length())
    return min((HadamardResponse(epsilon, categories, 1 << power) for power in powers), key=lambda mechanism: mechanism.variance_bound)


def published_blocks(epsilon: float, categories: int) -> int:
    """Return the paper's number of blocks, a power of two.

    The number is the largest power of two up to the smaller number of ``exp(epsilon)`` and ``2 categories``.

    Examples
    --------
    >>> [published_blocks(epsilon, 1000) for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0)]
    [1, 2, 4, 32, 1024]
    """
    return 1 << math.floor(math.log2(min(math.exp(epsilon), 2 * categories)))


def check_power_of_two(name: str, value: int) -> None:
    """Refuse a whole number that is not a power of two."""
    if value & (value - 1):
        raise ValueError(f"{name} must be a power of two, got {value}")


@dataclass(frozen=True)
class RecursiveHadamardResponse(BlockMechanism):
    """Recursive Hadamard response: the client sends its block and a sign of a public row.

    Public randomness draws a row of a Hadamard matrix; the client sends its item's block, and the row's entry at its place. The message is
    one of 2 blocks symbols: the client's own symbol has probability E / (2 blocks - 1 + E), and each other symbol 1 over that denominator.
    The variances, also over the public rows, are those of Hadamard response with as many blocks, in log2(blocks) + 1 bits.

    Attributes
    ----------
    epsilon, categories, blocks
        Fields of `BlockMechanism`; `blocks` is a power of two.

    Examples
    --------
    >>> mechanism = recursive_hadamard_response(1.0, categories=4)
    >>> messages = mechanism.encode(np.array([0, 0, 0, 1] * 10_000), np.random.default_rng(0))
    >>> mechanism.bits_per_client, mechanism.decode(mechanism.aggregate(messages), 40_000).round(2).tolist()
    (1.0, [0.74, 0.28, 0.0, -0.0])
    """

    epsilon: float
    categories: int
    blocks: int

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        check_power_of_two("blocks", self.blocks)

    @property
    def most_blocks(self) -> int:
        """The smallest power of two that is at least the number of items."""
        return padded_dimension(self.categories)

    @property
    def rows(self) -> int:
        """Number of rows of the matrix, from which public randomness draws."""
        return padded_dimension(self.block_items)

    @property
    def block_outputs(self) -> int:
        """Number of outputs of a block, which are the two signs."""
        return 2

    @property
    def set_outputs(self) -> int:
        """Number of outputs of an item's set, which holds one of the two signs."""
        return 1

    @property
    def common_outputs(self) -> float:
        """Mean number of common outputs, 1/2: two columns agree in half of the rows."""
        return 0.5

    def encode(self, items: ArrayLike, random_words: WordsLike) -> IntegerArray:
        """Return each client's public row and its symbol: twice the block, plus 1 for the sign -1."""
        random_words, held = word_source(random_words), self.domain.clip(items)
        rows = random_words.integers(self.rows, held.shape)
        lying = random_words.uniforms(held.shape) < self.lie_probability
        anything = random_words.integers(2 * self.blocks, held.shape)
        return np.column_stack([rows, np.where(lying, anything, self._symbols(rows, held))])

    def client_program(self) -> ClientProgram:
        """Return the program: the block and the sign of a public row, or any symbol."""
        lie, symbols = self.lie_word(), 2 * self.blocks
        return ClientProgram(
            recursive_hadamard_symbol,
            {"lie": lie, "block_items": self.block_items, "rows": self.rows, "symbols": symbols},
            bits_below(symbols),
            valid=fields_below(symbols),
            messages=lambda fields, public: np.column_stack([(public[:, 0] % np.uint64(self.rows)).astype(np.int64), fields[:, 0]]),
            public_words=1,
            likelihood_ratio=self.likelihood_ratio(lie),
            epsilon=self.epsilon,
        )

    def aggregate(self, messages: NDArray[Any]) -> IntegerArray:
        """Return the number of messages of each block, row and sign, shape (blocks * rows * 2,)."""
        check_unmasked("messages", messages)
        array = np.asarray(messages)
        if array.ndim != 2 or array.shape[1] != 2:
            raise ValueError(f"messages must have the shape (clients, 2), got {array.shape}")
        rows, symbols = checked_messages(array[:, 0], 0, self.rows - 1), checked_messages(array[:, 1], 0, 2 * self.blocks - 1)
        places = 2 * ((symbols >> 1) * self.rows + rows) + (symbols & 1)
        return np.bincount(places, minlength=2 * self.blocks * self.rows)

    def decode(self, aggregate: IntegerArray, clients: int) -> FloatArray:
        """Return unbiased frequencies, by a Walsh-Hadamard transform of each block."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        counts = np.reshape(aggregate, (self.blocks, self.rows, 2))
        sums = walsh_hadamard(counts[:, :, 0] - counts[:, :, 1])[:, : self.block_items]
        return np.asarray(sums.ravel()[: self.categories] * (self.unit / 2 / clients))

    def block_messages(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return the sums over the rows and signs of each block."""
        return np.asarray(np.reshape(aggregate, (self.blocks, 2 * self.rows)).sum(axis=1))

    def supports(self, messages: NDArray[Any], item: int) -> NDArray[np.bool_]:
        """Return whether each symbol is the item's for the public row."""
        return np.asarray(messages[:, 1] == self._symbols(messages[:, 0], np.array(item)))

    def _symbols(self, rows: IntegerArray, items: IntegerArray) -> IntegerArray:
        return 2 * self.block_of(items) + (hadamard_entries(rows, self.place_of(items)) < 0)


def recursive_hadamard_response(epsilon: float, categories: int, message_bits: int | None = None) -> RecursiveHadamardResponse:
    """Return recursive Hadamard response of some bits, by default those of least worst variance.

    Examples
    --------
    >>> [recursive_hadamard_response(epsilon, 1000).bits_per_client for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0)]
    [1.0, 1.0, 3.0, 6.0, 11.0]
    """
    of_single_bit = RecursiveHadamardResponse(epsilon, categories, 1)
    most = int(math.log2(of_single_bit.most_blocks)) + 1
    choices = range(1, most + 1) if message_bits is None else [check_integer("message_bits", message_bits, low=1, high=most)]
    return min(
        (RecursiveHadamardResponse(epsilon, categories, 1 << bits - 1) for bits in choices), key=lambda mechanism: mechanism.variance_bound
    )
