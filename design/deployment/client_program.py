"""The program of a mechanism's deployed client: a function, its constants, and what its fields mean to the server."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import IntegerArray, WordArray
from ...errors import InfeasibleError
from .translation.printer import Constant

WORDS = 2**64
# Digits of probabilities before they become whole numbers of 64 bits, and the margin for the rounding of these digits.
DIGITS, MARGIN = 60, Decimal(10) ** -50


def _only_field(fields: IntegerArray, public: WordArray) -> NDArray[Any]:  # noqa: ARG001
    return fields[:, 0]


@dataclass(frozen=True, eq=False)
class ClientProgram:
    """A deployed client's function and constants, and the server's reading of its message.

    Attributes
    ----------
    client : callable
        A function of `quietbits.design.deployment.clients`. Its parameters are the input, the random words, the public words if
        `public_words` is not 0, and the fields to write; its other parameters are the constants.
    constants : mapping
        Values of the constants by name, in the order of a listing.
    field_bits : int
        Number of bits of each field of a message, 1 to 62.
    fields : int
        Number of fields of a message.
    valid : callable
        Function that returns for each row of fields, shape (clients, fields), whether a client may send it.
    messages : callable
        Function of fields and public words, shapes (clients, fields) and (clients, public_words), that returns the messages that the
        mechanism's `aggregate` takes.
    aggregate : callable or None
        Function of fields and public words that returns their aggregate, in place of the mechanism's `aggregate` of messages.
    public_words : int
        Number of public words that server and client derive for each client and round.
    likelihood_ratio : Fraction or None
        Upper bound on the ratio of the probabilities of a message for two inputs, from the constants in exact arithmetic; None if the
        guarantee rests on a table, which is verified by itself.
    epsilon : float
        Privacy parameter of a message by itself, which `likelihood_ratio` must keep.
    distance : Fraction
        Upper bound on the total variation distance between all clients' noise and the noise of the exact law; 0 for exact draws.
    constant_time : ClientProgram or None
        The same client without branches on the input, for languages that keep its time constant.
    """

    client: Callable[..., None]
    constants: Mapping[str, Constant]
    field_bits: int
    fields: int = 1
    valid: Callable[[IntegerArray], NDArray[np.bool_]] = lambda fields: np.ones(len(fields), dtype=bool)
    messages: Callable[[IntegerArray, WordArray], NDArray[Any]] = _only_field
    aggregate: Callable[[IntegerArray, WordArray], NDArray[Any]] | None = None
    public_words: int = 0
    likelihood_ratio: Fraction | None = None
    epsilon: float = math.inf
    distance: Fraction = Fraction(0)
    constant_time: "ClientProgram | None" = None

    def __post_init__(self) -> None:
        """Check that the whole-number probabilities keep epsilon."""
        realised = self.realised_epsilon
        if realised is not None and realised > self.epsilon:
            raise InfeasibleError(f"epsilon of the client's whole-number probabilities must be at most {self.epsilon!r}, got {realised!r}")

    @property
    def message_bits(self) -> int:
        """Number of bits of a message."""
        return self.fields * self.field_bits

    @property
    def message_bytes(self) -> int:
        """Number of bytes of a message: its bits, rounded up."""
        return -(-self.message_bits // 8)

    @property
    def realised_epsilon(self) -> float | None:
        """The logarithm of `likelihood_ratio`, rounded up."""
        if self.likelihood_ratio is None:
            return None
        with localcontext() as context:
            context.prec = DIGITS
            log = Decimal(self.likelihood_ratio.numerator).ln() - Decimal(self.likelihood_ratio.denominator).ln() + MARGIN
        return float_at_least(log)


def fields_below(number: int) -> Callable[[IntegerArray], NDArray[np.bool_]]:
    """Return the check that every field is below a number."""
    return lambda fields: np.asarray((fields >= 0).all(axis=1) & (fields < number).all(axis=1))


def bits_below(number: int) -> int:
    """Return the number of bits of the whole numbers below a number, at least 1."""
    return max(1, (number - 1).bit_length())


def probability_word(probability: Callable[[Decimal], Decimal], epsilon: float, *, up: bool) -> int:
    """Return the whole number w for which a word below w has a given probability, rounded in a stated direction.

    Parameters
    ----------
    probability : callable
        Function of exp(epsilon), computed with 60 digits, that returns the probability.
    epsilon : float
        Privacy parameter.
    up : bool
        Whether the probability is rounded up.

    Examples
    --------
    >>> probability_word(lambda odds: 1 / (odds + 1), 0.0, up=True) == 2**63 + 1
    True
    """
    with localcontext() as context:
        context.prec = DIGITS
        exact = probability(Decimal(epsilon).exp()) * WORDS
        moved = exact * (1 + MARGIN if up else 1 - MARGIN)
        word = int(moved.to_integral_value(ROUND_CEILING if up else ROUND_FLOOR))
    return min(max(word, 0), WORDS - 1)


def float_at_least(value: Decimal) -> float:
    """Return the least float that is at least a decimal number."""
    nearest = float(value)
    return nearest if Decimal(nearest) >= value else math.nextafter(nearest, math.inf)
