"""Messages from blocks of outputs; each item's block has a set of likelier outputs."""

import math
from abc import abstractmethod
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer
from ...arrays import FloatArray, IntegerArray
from ...solvers.decoders.simplex_projection import project_onto_simplex
from ...solvers.numerics.rounding import SHORT_SLACK
from ..contracts.mechanism import FrequencyEstimate, check_frequencies
from ..deployment.client_program import probability_word
from .squared_scores import OfCounts, SignLaw, SupportLaw, calibrating_levels, likely_shift
from .support import SupportMechanism


class BlockMechanism(SupportMechanism):
    """A mechanism with blocks of outputs and item sets that are e^epsilon times likelier.

    There are h blocks of m outputs. Each item's set has c outputs, and the sets of two items of a block have i outputs in common. With E =
    exp(epsilon) and Z = (E - 1) c + h m, an output of the set has probability E / Z, and any other output 1 / Z. The estimate of an item's
    frequency is

        (supporters - messages in its block i / c) Z / ((E - 1) (c - i)) / clients + a constant,

    which is unbiased: its mean for another item of the same block, and for an item of another block, is 0. The decoded frequency of one
    message has one of three values, for an output of the set, of the rest of the block, and of the other blocks. This gives the variances
    for the held item, for other items of its block, and for items of other blocks.

    Attributes
    ----------
    epsilon, categories
        Fields of `SupportMechanism`.
    blocks : int
        Number h of blocks, from 1 to `categories`.
    """

    blocks: int

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        object.__setattr__(self, "blocks", check_integer("blocks", self.blocks, low=1, high=self.most_blocks))

    @property
    def most_blocks(self) -> int:
        """Largest number of blocks."""
        return self.categories

    @property
    @abstractmethod
    def block_outputs(self) -> int:
        """Number m of outputs of a block."""

    @property
    @abstractmethod
    def set_outputs(self) -> int:
        """Number c of outputs of an item's set."""

    @property
    @abstractmethod
    def common_outputs(self) -> float:
        """Number i of common outputs of two items of a block; a mean over public randomness."""

    @property
    def block_items(self) -> int:
        """Number of items of every block; the last blocks may have fewer."""
        return -(-self.categories // self.blocks)

    @property
    def bits_per_client(self) -> float:
        """Number of bits of a message, the logarithm of the number of outputs."""
        return math.log2(self.blocks * self.block_outputs)

    @property
    def holder_variance(self) -> float:
        """Exact variance of one client's decoded frequency of its own item."""
        less = math.exp(-self.epsilon)
        return self._variance(1.0, self._scaled(self.set_outputs), less * self._scaled(self._rest), less * self._scaled(self._elsewhere))

    @property
    def same_block_variance(self) -> float:
        """Variance that one client adds to the frequency of another item of the same block."""
        less = math.exp(-self.epsilon)
        inside = self.common_outputs + less * (self.set_outputs - self.common_outputs)
        of_rest = self.set_outputs - self.common_outputs + less * (self._rest - self.set_outputs + self.common_outputs)
        return self._variance(0.0, self._scaled(inside), self._scaled(of_rest), less * self._scaled(self._elsewhere))

    @property
    def other_block_variance(self) -> float:
        """Variance of one client's decoded frequency of an item of another block."""
        less = math.exp(-self.epsilon)
        in_block = less * self._scaled(self.block_outputs)
        return self._variance(0.0, less * self._scaled(self.set_outputs), less * self._scaled(self._rest), 1 - in_block)

    @property
    def other_variance(self) -> float:
        """Larger of the variances of items of the same block and of other blocks."""
        same = [self.same_block_variance] if self.block_items > 1 else []
        return max(*same, *([self.other_block_variance] if self.blocks > 1 else []), 0.0)

    @property
    def variance_bound(self) -> float:
        """Largest variance, that of an item of the largest or of the smallest block."""
        return float(self._variances(np.array([self._items_of(0), self._items_of((self.categories - 1) // self.block_items)])).max())

    def variance(self, items: ArrayLike) -> FloatArray:
        """Return the variance of each item, which depends on the size of the item's block."""
        return self._variances(self._items_of(self.block_of(self.domain.clip(items))))

    def standard_errors(self, frequencies: ArrayLike, clients: int) -> FloatArray:
        """Return the standard error of each estimated frequency, for true frequencies."""
        own = check_frequencies(frequencies)
        blocks = self.block_of(np.arange(self.categories))
        of_block = np.bincount(blocks, weights=own)[blocks]
        variances = own * self.holder_variance + (of_block - own) * self.same_block_variance + (1 - of_block) * self.other_block_variance
        return np.asarray(np.sqrt(variances / clients))

    @abstractmethod
    def block_messages(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return the number of messages of each block, shape (blocks,)."""

    def lie_word(self) -> int:
        """Return the word below which a deployed client lies, and its probability is rounded up."""
        every, inside = self.blocks * self.block_outputs, self.set_outputs
        return probability_word(lambda odds: every / ((odds - 1) * inside + every), self.epsilon, up=True)

    def likelihood_ratio(self, lie: int) -> Fraction:
        """Return the ratio of the probabilities of an output of the set and of any other output, for a word below which clients lie."""
        return 1 + Fraction(2**64 - lie, lie) * Fraction(self.blocks * self.block_outputs, self.set_outputs)

    def block_shares(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the share of clients of each block with items; shares are at least 0 and sum to 1.

        The number of messages of each block determines the shares. Sums of the items' estimated frequencies would estimate the same
        shares, but with the noise of every item.
        """
        with_items = -(-self.categories // self.block_items)
        return project_onto_simplex(self._raw_shares(self.block_messages(aggregate)[:with_items], clients))

    def estimate(self, aggregate: NDArray[Any], clients: int) -> FrequencyEstimate:
        """Return unbiased frequencies with standard errors.

        The squared z-scores have a mean of 1 over the items (`SupportCounts`).
        """
        estimate = super().estimate(aggregate, clients)
        decoded, threshold = estimate.decoded, self.standing_frequency(clients)
        shares, blocks = self.block_shares(aggregate, clients), self.block_of(np.arange(self.categories))
        likely, standing = self.likely_frequencies(decoded, aggregate, clients), decoded > threshold
        held = np.bincount(blocks, weights=np.where(standing, decoded, 0.0), minlength=len(shares))
        scales = (shares / np.maximum(np.maximum(held, shares), 1e-300))[blocks]
        parts = [slice(start, start + self.block_items) for start in range(0, self.categories, self.block_items)]
        shifts = np.array([likely_shift(decoded[part], likely[part], standing[part]) for part in parts])[blocks]
        messages = self.block_messages(aggregate)[blocks].astype(float)
        # An item that is alone in its block has the share of the block.
        alone, share_shift = self._items_of(blocks) == 1, float(self._raw_shares(messages, clients).max() - shares.max())
        inside = (decoded - self.constant) * clients / self.unit + messages * self.common_outputs / self.set_outputs

        def variance(inside: FloatArray, messages: FloatArray) -> FloatArray:
            own = (self.unit * inside + self.block_unit * messages) / clients + self.constant
            of_block = np.maximum(self._raw_shares(messages, clients) - share_shift, 0.0)
            others = np.where(alone, of_block, np.maximum(own - shifts, 0.0))
            own = np.minimum(np.where(own > threshold, scales * own, others), of_block)
            others = (of_block - own) * self.same_block_variance + (1 - of_block) * self.other_block_variance
            return np.asarray((own * self.holder_variance + others) * clients / self.unit**2)

        if 2 * self.set_outputs == self.block_outputs:
            # The estimate is a multiple of the number of messages for the item, less the number of messages against it. Both together are
            # half of the messages that `variance` covers.
            support = self._scaled(self.set_outputs)
            law = SignLaw(support, math.exp(-self.epsilon) * support)
            scores = law.squared_scores(inside, messages - inside, lambda inside, outside: 4 * variance(inside, inside + outside))
        else:
            scores = self._support_scores(inside, messages, variance, clients)
        return replace(estimate, standard_errors=estimate.standard_errors * np.sqrt(calibrating_levels(scores, inside, standing)))

    def likely_frequencies(self, decoded: FloatArray, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return likely true frequencies, whose sums over blocks are `block_shares`."""
        shares = self.block_shares(aggregate, clients)
        # The last block may have fewer items: padding lies too far below its items to get a share.
        padded = np.full(len(shares) * self.block_items, decoded.min() - 2.0)
        padded[: self.categories] = decoded
        likely = self._likely(padded.reshape(len(shares), self.block_items), shares, clients)
        return np.asarray(likely.ravel()[: self.categories])

    def block_of(self, items: IntegerArray) -> IntegerArray:
        """Return the block of each item."""
        return items // self.block_items

    def place_of(self, items: IntegerArray) -> IntegerArray:
        """Return the number of each item within its block."""
        return items % self.block_items

    @property
    def lie_probability(self) -> float:
        """Probability, rounded up, of a uniform output in place of an output of the item's set."""
        return min(1.0, math.exp(-self.epsilon) * self._scaled(self.blocks * self.block_outputs) * (1 + SHORT_SLACK))

    @property
    def unit(self) -> float:
        """Weight of one supporter in an estimate, times clients: Z / ((E - 1) (c - i))."""
        return self._weight / (-math.expm1(-self.epsilon) * (self.set_outputs - self.common_outputs))

    @property
    def block_unit(self) -> float:
        """Weight of one message of the block in an estimate."""
        return -self.unit * self.common_outputs / self.set_outputs

    @property
    def constant(self) -> float:
        """Constant term of an estimate, which cancels the mean for an item of another block."""
        return -math.exp(-self.epsilon) * (self.unit * self._scaled(self.set_outputs) + self.block_unit * self._scaled(self.block_outputs))

    @property
    def _weight(self) -> float:
        """The weight ``Z / E``."""
        return -math.expm1(-self.epsilon) * self.set_outputs + math.exp(-self.epsilon) * self.blocks * self.block_outputs

    @property
    def _rest(self) -> int:
        """Number of outputs of a block that are not in an item's set."""
        return self.block_outputs - self.set_outputs

    @property
    def _elsewhere(self) -> int:
        """Number of outputs of all other blocks."""
        return (self.blocks - 1) * self.block_outputs

    def _scaled(self, outputs: float) -> float:
        return outputs / self._weight

    def _variance(self, mean: float, inside: float, of_rest: float, elsewhere: float) -> float:
        """Return the variance of a decoded frequency from its probabilities and values."""
        values = np.array([self.unit + self.block_unit, self.block_unit, 0.0]) + self.constant - mean
        return float(np.dot([inside, of_rest, elsewhere], values**2))

    def _support_scores(self, inside: FloatArray, messages: FloatArray, variance: OfCounts, clients: int) -> FloatArray:
        """Return estimates of squared z-scores from supporters in all messages or in a block's.

        The estimates are unbiased for a single block, or if the estimate does not depend on the messages of the block. With several large
        blocks, the number of a block's messages counts as fixed, although the item's holders are a random part of it.
        """
        less = math.exp(-self.epsilon)
        gained = -math.expm1(-self.epsilon) * self.common_outputs + less * self.set_outputs
        if self.blocks == 1 or self.common_outputs == 0:
            law = SupportLaw(clients, self._scaled(self.set_outputs), self._scaled(gained))
            return law.squared_scores(inside, lambda counts: variance(counts, messages))
        in_block = self._weight - less * self._elsewhere
        law = SupportLaw(messages, self.set_outputs / in_block, self.common_outputs / self.set_outputs)
        scores = law.squared_scores(inside, lambda counts: variance(counts, messages))
        holders = law.times_holders(lambda counts: 1 / variance(counts, messages))(inside)
        return scores + holders * self._scaled(self._elsewhere) * less * (law.held_support - law.other_support)

    def _raw_shares(self, messages: NDArray[Any], clients: int) -> FloatArray:
        """Return unbiased shares of clients by block, from numbers of messages."""
        of_others = math.exp(-self.epsilon) * self._scaled(self.block_outputs)
        gained = -math.expm1(-self.epsilon) * self._scaled(self.set_outputs)
        return np.asarray((messages / clients - of_others) / gained)

    def _items_of(self, blocks: IntegerArray | int) -> IntegerArray:
        """Return the number of items of blocks."""
        return np.asarray(np.clip(self.categories - np.asarray(blocks) * self.block_items, 0, self.block_items))

    def _variances(self, block_items: IntegerArray) -> FloatArray:
        """Return the variance of an item of a block with that many items."""
        others = self.categories - block_items
        return np.asarray(self.holder_variance + (block_items - 1) * self.same_block_variance + others * self.other_block_variance)
