"""Subsampled and quantised Kashin's response (SQKR): vectors in a handful of bits.

SQKR works with and without pure privacy.

Chen, Kairouz, Özgür 2020, *Breaking the communication-privacy-accuracy trilemma*. Kerdock's frame consists of mutually unbiased bases, in
which every vector has a Kashin representation at a proven level.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CLIENTS, check_integer, check_real
from ...arrays import FloatArray, IntegerArray
from ...errors import InfeasibleError
from ...solvers.bounds.privacy_constraint import EPSILON_HIGH, EPSILON_LOW
from ...solvers.numerics.rounding import SHORT_SLACK
from ...solvers.numerics.walsh_hadamard import walsh_hadamard
from ..contracts.accounts import pure_privacy
from ..contracts.error import VarianceParts
from ..contracts.mechanism import VectorMechanism
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.privacy import Privacy
from ..deployment.client_program import ClientProgram, probability_word
from ..deployment.clients.kashin import kashin_symbol
from ..noise.random_words import WordsLike, word_source
from ..transforms.kashin import (
    FARTHEST,
    INNER_BOX,
    KASHIN_CONSTANT,
    LARGEST_SEED,
    ROUNDING,
    KashinFrame,
    TightFrame,
    kashin_blocks,
    largest_bias,
)

LARGEST_KERDOCK_DIMENSION = 1024
# Number of steps in single precision, as few vectors need a third step.
FIRST_STEPS = 2
# Irreducible polynomials over the field of two elements, by degree; bit i is the coefficient of x**i.
POLYNOMIALS = {1: 0b11, 3: 0b1011, 5: 0b100101, 7: 0b10000011, 9: 0b1000010001}

MOST_BITS = 16
# Largest dimension of clients in other languages. Their code holds the frame's rows and signs, and Python's client, which makes the known
# answers, takes seconds for a vector.
MOST_CLIENT_DIMENSION = 2**18
LARGEST_KASHIN_CONSTANT = 1e5


@dataclass(frozen=True)
class SQKRMechanism(VectorMechanism):
    """Every client sends the signs of a few coefficients of its vector by randomised response.

    The coefficients are those of the vector's Kashin representation.

    Public randomness draws b = `message_bits` of the frame's coordinates for each client, independently and with replacement. Each
    coefficient a, at most `level` in absolute value, becomes one bit, up with probability (1 + a / level) / 2; the b bits are one symbol,
    which randomised response keeps with probability C = (e^epsilon - 1) / (e^epsilon + 2**b - 1) and otherwise replaces by one of all 2**b
    symbols at random. The server adds up signs by coordinate, multiplies by size * level / (b * C), and combines the frame's columns.

    The estimate has no bias up to 1024 dimensions: in the frame of mutually unbiased bases (`KerdockFrame`) every vector has a Kashin
    representation at the level. In more dimensions the frame has random rows (`KashinFrame`). The mechanism then scales vectors without a
    representation down until they have one (`scaled_down_count` counts them), and `bias_bound` bounds the norm that this removes. With a
    constant of sqrt(dimension) or more it scales no vector down. Privacy does not depend on the frame.

    The mechanism suits releases with ``secure_words``, up to rounding: symbols are drawn exactly, and a replacement's probability is right
    to within 2**-51, which adds less than 1e-6 to epsilon, even at 20. The vectors must not depend on the seed of the frame.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 0.001 to 20; infinity gives no privacy: clients send the quantised signs themselves.
    message_bits : int
        Number of coordinates drawn for a client, which is also the length of its message, 1 to 16.
    ball : NormBall
        L2 ball of the vectors, of at most 2**24 dimensions.
    seed : int
        Public seed of the frame.
    kashin_constant : float
        Constant K, from 1: the level is min(K, sqrt(dimension)) clip_norm / sqrt(size).

    Examples
    --------
    The example gives the error of one bit each from 10 000 clients without privacy, in 200 dimensions.

    >>> mechanism = SQKRMechanism(math.inf, 1, NormBall(dimension=200, norm=2.0))
    >>> round(mechanism.variance_bound / 10_000, 4)
    0.0694
    """

    epsilon: float
    message_bits: int
    ball: NormBall
    seed: int = 0
    kashin_constant: float = KASHIN_CONSTANT
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        if not (isinstance(self.epsilon, float) and math.isinf(self.epsilon) and self.epsilon > 0):
            object.__setattr__(self, "epsilon", check_real("epsilon", self.epsilon, low=EPSILON_LOW, high=EPSILON_HIGH))
        object.__setattr__(self, "message_bits", check_integer("message_bits", self.message_bits, low=1, high=MOST_BITS))
        check_ball(self.ball, "SQKR", 2)
        object.__setattr__(self, "seed", self.frame.seed)
        constant = check_real("kashin_constant", self.kashin_constant, low=1.0, high=LARGEST_KASHIN_CONSTANT)
        object.__setattr__(self, "kashin_constant", constant)

    @cached_property
    def frame(self) -> TightFrame:
        """Public frame: Kerdock's, or random rows.

        Random rows serve if they represent every vector, or if there are too many mutually unbiased bases.
        """
        dimension = self.ball.dimension
        kerdock = KASHIN_CONSTANT**2 < dimension <= LARGEST_KERDOCK_DIMENSION
        return KerdockFrame(dimension, self.seed) if kerdock else KashinFrame(dimension, self.seed)

    @property
    def level(self) -> float:
        """Largest coefficient that a client can send, in the vectors' units."""
        return self._constant * self.ball.clip_norm / math.sqrt(self.frame.size)

    @property
    def contrast(self) -> float:
        """Probability C with which randomised response keeps a symbol; 1 without privacy.

        C does not count redraws that hit the same symbol by chance.
        """
        return -math.expm1(-self.epsilon) / (1 + ((1 << self.message_bits) - 1) * math.exp(-self.epsilon))

    @property
    def bits_per_client(self) -> float:
        """Number of bits of a message, the length of the symbol.

        The coordinates cost nothing: they come from public randomness, which server and client share.
        """
        return float(self.message_bits)

    def privacy(self) -> Privacy:
        """Return the pure local privacy."""
        return pure_privacy(self.epsilon)

    @property
    def bias_bound(self) -> float:
        """Largest norm that scaling down takes off a vector of the ball, for every seed.

        The norm is 0.0 up to 1024 dimensions.
        """
        return largest_bias(self.frame, self._constant) * self.ball.clip_norm

    def known_bias(self, vectors: ArrayLike) -> FloatArray:
        """Return the bias from scaling down for each clipped vector.

        The call costs as much as encoding; the result is a single 0.0 if no vector is scaled down.
        """
        clipped = self.ball.clip(vectors)
        return np.zeros(()) if self.bias_bound == 0 else (self._scales(clipped) - 1)[:, None] * clipped

    @property
    def variance_bound(self) -> float:
        """Bound on the largest variance of a vector of the ball; exact without scaling down."""
        return (self._second_moment + max(0.0, self._growth)) * self.ball.clip_norm**2

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> NDArray[np.int32]:
        """Draw public coordinates and, in the last column, the symbol of each client.

        Bit m of the symbol (of value 2**m) is the sign at coordinate m.
        """
        random_words, clipped = word_source(random_words), self.ball.clip(vectors)
        clients = len(clipped)
        coordinates = random_words.integers(self.frame.size, (clients, self.message_bits))
        up = random_words.uniforms(coordinates.shape) < self._up_probabilities(clipped, coordinates)
        # A uniform number of 53 bits falls below a probability at least as often as that probability states: the error adds privacy.
        replaced = random_words.uniforms(clients) < self._replacement
        symbols = np.where(replaced, random_words.integers(2**self.message_bits, clients), up @ (1 << np.arange(self.message_bits)))
        return np.column_stack([coordinates, symbols]).astype(np.int32)

    def client_program(self) -> ClientProgram:
        """Return the program: signs of the vector's coefficients at public coordinates, or any symbol."""
        frame, dimension = self.frame, self.ball.dimension
        if dimension > MOST_CLIENT_DIMENSION:
            raise InfeasibleError(f"dimension must be at most {MOST_CLIENT_DIMENSION} for clients in other languages, got {dimension}")
        if math.isinf(self.epsilon):
            raise InfeasibleError("epsilon must be finite for clients in other languages, got infinity")
        symbols, size = 1 << self.message_bits, frame.size
        replacement = probability_word(lambda odds: symbols / (odds + symbols - 1), self.epsilon, up=True)
        return ClientProgram(
            kashin_symbol,
            {
                "dimension": dimension,
                "length": frame.length,
                "bases": size // frame.length,
                "size": size,
                "clip_norm": float(self.ball.clip_norm),
                "scale": 1 / math.sqrt(size),
                "level": self.level,
                "limit": self.level * (1 + ROUNDING),
                "box": INNER_BOX * self.level,
                "message_bits": self.message_bits,
                "symbols": symbols,
                "replacement": replacement,
                "rows": bit_words(frame.rows),
                "signs": bit_words(frame.negative),
            },
            self.message_bits,
            messages=lambda fields, public: np.column_stack([public % np.uint64(size), fields.astype(np.uint64)]).astype(np.int32),
            public_words=self.message_bits,
            likelihood_ratio=1 + Fraction(2**64 - replacement, replacement) * symbols,
            epsilon=self.epsilon,
        )

    def symbol_probabilities(self, vectors: ArrayLike, coordinates: NDArray[Any]) -> FloatArray:
        """Return the distribution of each client's symbol, given its public coordinates.

        An adversary sees this distribution. The shape is (clients, 2**b), for coordinates of shape (clients, b) with b = `message_bits`;
        the probabilities of two vectors differ by at most a factor of e^epsilon.
        """
        up = self._up_probabilities(self.ball.clip(vectors), coordinates)
        bit_is_up = (np.arange(2**self.message_bits)[:, None] >> np.arange(self.message_bits)) & 1
        quantised = np.where(bit_is_up, up[:, None, :], 1 - up[:, None, :]).prod(axis=2)
        return np.asarray(self.contrast * quantised + self._replacement / 2**self.message_bits)

    def aggregate(self, messages: NDArray[Any]) -> NDArray[np.int64]:
        """Return each coordinate's excess of ones over zeros, shape (size,).

        The coordinates are those of the frame.
        """
        if messages.ndim != 2 or messages.shape[1] != self.message_bits + 1:
            raise ValueError(f"messages must have the shape (clients, {self.message_bits + 1}), got {messages.shape}")
        coordinates, symbols = messages[:, :-1], messages[:, -1:]
        for name, numbers, end in (("coordinates", coordinates, self.frame.size), ("symbols", symbols, 2**self.message_bits)):
            if numbers.size and not 0 <= numbers.min() <= numbers.max() < end:
                wrong = numbers[(numbers < 0) | (numbers >= end)][0]
                raise ValueError(f"messages must hold {name} from 0 to {end - 1}, got {int(wrong)}")
        up = ((symbols >> np.arange(self.message_bits)) & 1).astype(bool)
        every = np.bincount(coordinates.ravel(), minlength=self.frame.size)
        return np.asarray(2 * np.bincount(coordinates[up], minlength=self.frame.size) - every, dtype=np.int64)

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the average of the decoded messages, which may lie outside the ball."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        scale = self.frame.size * self.level / (self.message_bits * self.contrast * clients)
        return np.asarray(self.frame.synthesis(np.asarray(aggregate, dtype=float)[None, :] * scale)[0])

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the exact variance for each vector.

        The call costs as much as encoding if vectors may be scaled down.

        With B the clip norm and s the factor by which a vector x was scaled down, 1 for nearly all vectors, the variance is

            dimension (K B)**2 / (b C**2) + ( (b - 1) / (b C) - 1 ) s**2 ||x||**2

        because each sign adds size * level / C times a column of squared norm dimension / size, divided by b, and two signs of the same
        client, whose coordinates are independent, have the mean product s**2 ||x||**2 / C. The mean is s x.
        """
        clipped = self.ball.clip(vectors)
        squares = np.square(self._scales(clipped)) * np.sum(clipped**2, axis=1)
        return np.asarray(self._second_moment * self.ball.clip_norm**2 + self._growth * squares)

    def variance_parts(self, vectors: ArrayLike) -> VarianceParts:
        """Return the variance of each vector by sampling coefficients, rounding them to signs, and noise.

        With a the coefficients, sampling adds ``(dimension ||a||**2 - s**2 ||x||**2) / b``, and rounding
        ``dimension ((K B)**2 - ||a||**2) / b``, in the symbols of `variance`.
        """
        clipped = self.ball.clip(vectors)
        squares, scales = np.empty(len(clipped)), np.empty(len(clipped))
        for part, block in kashin_blocks(clipped, self.frame, self.level):
            squares[part], scales[part] = np.square(block.coefficients).sum(axis=1), block.scales
        compression = (self.ball.dimension * squares - np.square(scales) * np.square(clipped).sum(axis=1)) / self.message_bits
        rounding = self.ball.dimension * ((self._constant * self.ball.clip_norm) ** 2 - squares) / self.message_bits
        return VarianceParts.split(self.variance(vectors), compression=compression, rounding=rounding)

    def scaled_down_count(self, vectors: ArrayLike) -> int:
        """Return the number of clipped vectors that have no Kashin representation at the level.

        The mechanism scales these vectors down.
        """
        return int(np.count_nonzero(self._scales(self.ball.clip(vectors)) < 1))

    @property
    def _replacement(self) -> float:
        """Probability 1 - C of drawing a symbol again, without cancellation; rounded upward."""
        others = math.exp(-self.epsilon)
        symbols = 1 << self.message_bits
        return symbols * others / (1 + (symbols - 1) * others) * (1 + SHORT_SLACK)

    @property
    def _constant(self) -> float:
        return min(self.kashin_constant, math.sqrt(self.ball.dimension))

    @property
    def _second_moment(self) -> float:
        """Expected sum of a message's squared decoded signs, over the ball's squared radius."""
        return self.ball.dimension * self._constant**2 / (self.message_bits * self.contrast**2)

    @property
    def _growth(self) -> float:
        """Derivative of the variance by the squared norm of the represented vector."""
        return (self.message_bits - 1) / (self.message_bits * self.contrast) - 1

    def _scales(self, clipped: FloatArray) -> FloatArray:
        scales = np.ones(len(clipped))
        if self.bias_bound > 0:
            for part, block in kashin_blocks(clipped, self.frame, self.level):
                scales[part] = block.scales
        return scales

    def _up_probabilities(self, clipped: FloatArray, coordinates: NDArray[Any]) -> FloatArray:
        """Return the probability that each drawn sign is 1, before randomised response."""
        up = np.empty(coordinates.shape)
        for part, block in kashin_blocks(clipped, self.frame, self.level):
            up[part] = 0.5 + np.take_along_axis(block.coefficients, coordinates[part], axis=1) / (2 * self.level)
        return up


def sqkr_mechanism(epsilon: float, ball: NormBall, seed: int = 0) -> SQKRMechanism:
    """Return the SQKR mechanism whose number of bits, 1 to 16, minimises the worst variance.

    More bits draw more coordinates and make randomised response noisier. The paper takes about epsilon * log2(e) bits, which is the right
    order of magnitude. The best number is up to four bits less, and at epsilon = 8 its error is a third of the error with the paper's
    number. `epsilon` is from 0.001 to 20: without privacy more bits are always better.

    Examples
    --------
    >>> ball = NormBall(dimension=128, norm=2.0)
    >>> [sqkr_mechanism(epsilon, ball).message_bits for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0)]
    [1, 1, 2, 4, 8]
    """
    epsilon = check_real("epsilon", epsilon, low=EPSILON_LOW, high=EPSILON_HIGH)
    candidates = (SQKRMechanism(epsilon, bits, ball, seed) for bits in range(1, MOST_BITS + 1))
    return min(candidates, key=lambda mechanism: mechanism.variance_bound)


@dataclass(frozen=True)
class KerdockFrame(TightFrame):
    """A tight frame of p / 2 bases of p vectors each, p the next power of 4.

    Unit vectors of different bases have inner products of 1 / sqrt(p) in absolute value.

    Basis a consists of the rows of the Walsh-Hadamard matrix times the signs of a quadratic form; the forms are Kerdock's
    (Calderbank, Cameron, Kantor, Seidel 1997, *Z4-Kerdock codes, orthogonal spreads, and extremal Euclidean line-sets*). The frame
    takes the first `dimension` coordinates of all columns, whose squared norm is dimension / size.

    **Every vector has coefficients of at most sqrt(3 - 2 / p) / sqrt(size) times its length.** Let y be a unit vector of p coordinates, r =
    p / 2 the number of bases, and t the inner products of y with the r p unit vectors of all bases. The matrices u u^T - I / p of one
    basis are orthogonal to those of another, as (u^T v)**2 = 1 / p. The squared length of y y^T - I / p, which is 1 - 1 / p, is at
    least the sum of the squared lengths of its projections on the spans of all bases, sum (t**2 - 1 / p)**2 = sum t**4 - r / p. By
    Hölder's inequality r = sum t**2 is at most (sum |t|)**(2/3) (sum t**4)**(1/3). So ``||U^T y||_1``, which is (sum |t|) / sqrt(r), is at
    least r / sqrt(3 / 2 - 1 / p). The least largest coefficient of a vector x is the largest <x, y> / ||U^T y||_1, by the duality of
    linear programmes.

    Attributes
    ----------
    dimension : int
        Length of the vectors, 1 to 1024.
    seed : int
        Public seed of the signs of coordinates, from 0 to 2**63 - 1. The bound above holds for every seed.

    Examples
    --------
    >>> frame = KerdockFrame(dimension=12, seed=1)
    >>> frame.size, np.allclose(frame.synthesis(frame.analysis(np.eye(12))), np.eye(12)), round(frame.certain_constant, 4)
    (128, True, 1.8232)
    """

    dimension: int
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the ranges of the fields."""
        object.__setattr__(self, "dimension", check_integer("dimension", self.dimension, low=1, high=LARGEST_KERDOCK_DIMENSION))
        object.__setattr__(self, "seed", check_integer("seed", self.seed, low=0, high=LARGEST_SEED))

    @property
    def length(self) -> int:
        """Number p of coordinates of a padded vector, a power of 4."""
        return 1 << 2 * max(1, -(-(self.dimension - 1).bit_length() // 2))

    @property
    def size(self) -> int:
        """Number of columns, p**2 / 2."""
        return self.length**2 // 2

    @property
    def certain_constant(self) -> float:
        """Level constant that every vector meets: ``sqrt(3 - 2 / p)`` with a margin for projections.

        The shortest coefficients keep the bound sqrt(dimension).
        """
        return min(math.sqrt(self.dimension), math.sqrt(3 - 2 / self.length) / INNER_BOX)

    def analysis(self, vectors: FloatArray) -> FloatArray:
        """Return the inner products of vectors with the columns, shape (clients, size).

        The result has the vectors' precision.
        """
        return self._analysed(vectors, self._signs)

    def synthesis(self, coefficients: FloatArray) -> FloatArray:
        """Return the frame's combinations of coefficients, shape (clients, dimension)."""
        return self._synthesised(coefficients, self._signs)

    def first_coefficients(self, vectors: FloatArray, level: float) -> FloatArray:
        """Return coefficients after a few steps and a correction.

        The steps are those of `kashin_representation`, in single precision; the correction is in double precision. A vector whose steps are
        too large for single precision gets its shortest coefficients.
        """
        single, signs = np.float32, self._signs.astype(np.float32)
        # Steps are in units of the level.
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            current = self._analysed((vectors * (1 / level)).astype(single), signs)
            for _ in range(FIRST_STEPS):
                excess = current - np.clip(current, single(-INNER_BOX), single(INNER_BOX))
                across = self._analysed(self._synthesised(excess, signs), signs)
                squares = np.vecdot(excess, excess)
                projected = squares - np.vecdot(excess, across)
                excess -= across
                steps = squares / np.maximum(projected, np.maximum(squares / single(FARTHEST), np.finfo(single).tiny))
                excess *= steps[:, None]
                current -= excess
        usable = np.isfinite(squares)
        current[~usable] = 0.0
        coefficients = current.astype(float)
        coefficients *= level
        # The correction removes the error of single precision; for unusable steps the correction starts from the vector itself.
        rest = vectors - self.synthesis(coefficients)
        coefficients += self.analysis(rest)
        return coefficients

    def _analysed(self, vectors: NDArray[Any], signs: NDArray[Any]) -> NDArray[Any]:
        padded = np.zeros((len(vectors), len(signs), self.length), dtype=vectors.dtype)
        np.multiply(vectors[:, None, :], signs, out=padded[:, :, : self.dimension])
        return np.asarray(walsh_hadamard(padded).reshape(len(vectors), self.size))

    def _synthesised(self, coefficients: NDArray[Any], signs: NDArray[Any]) -> NDArray[Any]:
        transformed = walsh_hadamard(coefficients.reshape(len(coefficients), -1, self.length))
        return np.asarray(np.einsum("cbi,bi->ci", transformed[:, :, : self.dimension], signs))

    @property
    def rows(self) -> NDArray[np.bool_]:
        """Indicators of the places of a basis that hold a vector's coordinates: the first ones, shape (length,)."""
        return np.arange(self.length) < self.dimension

    @property
    def negative(self) -> NDArray[np.bool_]:
        """Indicators of the sign -1 of each basis's coordinates, shape (bases, dimension)."""
        return np.asarray(self._signs < 0)

    @cached_property
    def _signs(self) -> FloatArray:
        """Signs of each basis times the seed's signs and the scale, shape (bases, dimension)."""
        chosen = np.random.default_rng(self.seed).choice([-1.0, 1.0], self.dimension)
        return kerdock_signs(self.length)[:, : self.dimension] * (chosen / math.sqrt(self.size))


def bit_words(flags: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return flags as bits of words, the least significant first."""
    bits = np.packbits(flags.ravel(), bitorder="little")
    padded = np.zeros(-(-len(bits) // 8) * 8, dtype=np.uint8)
    padded[: len(bits)] = bits
    return tuple(padded.view("<u8").tolist())


@cache
def kerdock_signs(length: int) -> NDArray[np.int8]:
    """Return the signs (-1)**Q_a(x) of Kerdock's quadratic forms Q_a, as 1 and -1.

    The columns are all binary vectors x; the shape is (length / 2, length).

    With m odd and length = 2**(m + 1), x is a pair of an element v of the field of 2**m elements and a bit y, a is an element, and

        Q_a(v, y) = sum over i from 1 to (m - 1) / 2 of Tr((a v)**(2**i + 1))  +  y Tr(a v).
    """
    degree = length.bit_length() - 2
    logarithms, powers = _field(degree)
    order = 2**degree - 1
    products = np.zeros((order + 1, order + 1), dtype=np.int64)
    products[1:, 1:] = powers[(logarithms[1:, None] + logarithms[1:]) % order]

    def power(elements: IntegerArray, exponent: int) -> IntegerArray:
        return np.where(elements == 0, 0, powers[logarithms[elements] * exponent % order])

    traces = np.bitwise_xor.reduce([power(np.arange(order + 1), 2**i) for i in range(degree)])
    forms = np.zeros_like(products)
    for i in range(1, (degree - 1) // 2 + 1):
        forms ^= traces[power(products, 2**i + 1)]
    return np.asarray(1 - 2 * np.hstack([forms, forms ^ traces[products]]), dtype=np.int8)


def _field(degree: int) -> tuple[IntegerArray, IntegerArray]:
    """Return the logarithms of the field's 2**degree elements, 0 for 0, and the powers of x."""
    order = 2**degree - 1
    powers = np.empty(order, dtype=np.int64)
    element = 1
    for exponent in range(order):
        powers[exponent] = element
        element <<= 1
        if element >> degree:
            element ^= POLYNOMIALS[degree]
    logarithms = np.zeros(order + 1, dtype=np.int64)
    logarithms[powers] = np.arange(order)
    return logarithms, powers
