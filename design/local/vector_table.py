"""A lookup table for each coordinate of a vector, with a guarantee for the whole vector.

Messages take few bits, and the proof of the guarantee uses the table itself. `VectorGrid` is the grid that a vector's coordinates are
dithered to, with the table row for each of its points.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CLIENTS, check_choice, check_integer, check_real
from ...arrays import FloatArray
from ...errors import InfeasibleError
from ...solvers.divergences.dithered_norm import least_shrinkable_radius, rounded_norm_bound, shrinkage
from ...solvers.numerics.separable_budget import largest_piecewise_sum
from ...solvers.table_search.renyi_budget import RenyiBudget
from ..contracts.error import VarianceParts
from ..contracts.mechanism import VectorMechanism
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.privacy import Privacy
from ..deployment.client_program import ClientProgram
from ..deployment.clients.tables import letters_of_ball, letters_of_ball_by_rejection, letters_of_cube
from ..noise.random_words import WordsLike, WordSource, word_source
from ..tables.lookup_table import CHUNK, LetterArray, LookupTable
from ..tables.table_privacy import table_privacy
from ..transforms.dithering import dither
from ..transforms.vector_dithering import ROUNDING, bounded_rounding, rejection_bias_bound, rejection_rounding
from .message_checks import checked_messages

DITHERINGS = ("systematic", "rejection")
# Largest number of letters counted at a time; each letter takes an index of eight bytes.
COUNTED = 2**20
# Largest number of letters, and smallest dimension, at which comparing messages with each letter is faster than counting indices; and
# number of comparisons whose count fits into a byte.
MOST_COMPARED, LEAST_COMPARED, IN_A_BYTE = 16, 64, 255


@dataclass(frozen=True)
class VectorGrid:
    """The grid of each coordinate, with a point for every input of a table.

    For finite p zero is a grid point: N = 2**(bits_in - 1) - 1 grid steps reach the clip norm on either side, and position k, counted in
    steps from zero, takes row k + N of the table; its last row is unused. (With an even number of inputs from -clip_norm to clip_norm, zero
    would lie between two of them, and the dithered zero vector would have an L1 norm of d/2 steps.) For p = infinity the grid uses all rows
    and runs from -clip_norm to clip_norm, and positions are counted from its low end.

    Attributes
    ----------
    ball : NormBall
        Ball of the vectors.
    bits_in : int
        Logarithm to base 2 of the number of the table's inputs; at least 2 for finite p.

    Examples
    --------
    >>> grid = VectorGrid(NormBall(dimension=2, norm=1.0, clip_norm=6.0), bits_in=3)
    >>> grid.positions(np.array([[4.0, -1.0]])).tolist(), grid.zero, grid.step
    ([[2.0, -0.5]], 3, 2.0)
    """

    ball: NormBall
    bits_in: int

    def __post_init__(self) -> None:
        """Refuse a grid whose only point is zero."""
        if self.centred and self.bits_in < 2:
            raise ValueError(f"table must have bits_in of 2 or more for a finite norm, got {self.bits_in}")

    @property
    def centred(self) -> bool:
        """Whether positions count from zero, a grid point; true for finite p."""
        return math.isfinite(self.ball.norm)

    @property
    def steps(self) -> int:
        """Grid steps from the table's first input to its last."""
        return int(2**self.bits_in - 1)

    @property
    def half_width(self) -> Fraction:
        """Length of the clip norm in grid steps: N for finite p, half of all steps for p = infinity."""
        return Fraction(self.steps // 2) if self.centred else Fraction(self.steps, 2)

    @property
    def radius(self) -> float:
        """The ball's radius in steps, `half_width` as a float."""
        return float(self.half_width)

    @property
    def zero(self) -> int:
        """Row of position 0: N for finite p, 0 for p = infinity."""
        return self.steps // 2 if self.centred else 0

    @property
    def step(self) -> float:
        """Length of a grid step, in the vectors' units."""
        return self.ball.clip_norm / self.radius

    def positions(self, vectors: FloatArray, shrinkage: float = 1.0) -> FloatArray:
        """Return the grid positions of vectors after clipping, shape (clients, dimension).

        Clipped vectors are multiplied by a shrinkage of at most 1. Positions are in steps: from -N to N for finite p, from 0 to `steps` for
        p = infinity.
        """
        positions = self.ball.clip(vectors)
        positions /= self.ball.clip_norm
        positions *= shrinkage
        if self.centred:
            np.clip(positions, -1.0, 1.0, out=positions)
            positions *= self.radius
            return positions
        positions += 1
        positions /= 2
        positions *= self.steps
        return positions


@dataclass(frozen=True, eq=False)
class VectorGridVariance:
    """Variances of a table's letters at grid positions, in the vectors' squared units.

    At a fraction f of a step between two rows, the variance is V + f (V' - V) + f (1 - f) step**2, by the law of total variance. The
    table must be exactly unbiased.

    Examples
    --------
    >>> from quietbits.design.contracts.norm_ball import NormBall
    >>> from quietbits.design.tables.randomised_response import generalised_randomised_response
    >>> grid = VectorGrid(NormBall(dimension=2, norm=1.0), bits_in=2)
    >>> variance = VectorGridVariance(generalised_randomised_response(3.0, 2), grid)
    >>> at_zero, at_vertex = variance.of_positions(np.array([[0.0, 0.0], [1.0, 0.0]]))
    >>> bool(max(at_zero, at_vertex) <= variance.largest(1.0))
    True
    """

    table: LookupTable
    grid: VectorGrid

    @cached_property
    def rows(self) -> FloatArray:
        """Variance of each row, in squared units of the vectors, shape (2**bits_in,)."""
        scale = (self.grid.steps * Fraction(self.grid.step)) ** 2
        return np.array([float(scale * variance) for variance in self.table.moments.variances])

    def of_positions(self, positions: FloatArray) -> FloatArray:
        """Return each vector's sum of its coordinates' variances, shape (clients,).

        The argument is that of `VectorGrid.positions`. The variances are expected squared L2 distances between decoded letters and
        positions, in squared units of the vectors.
        """
        rows = positions + self.grid.zero
        lower = np.minimum(rows.astype(np.intp), len(self.rows) - 2)
        fraction = rows - lower
        terms = self.rows[lower] + fraction * (np.diff(self.rows)[lower] + self.grid.step**2 * (1 - fraction))
        return np.asarray(terms.sum(axis=1))

    def largest(self, radius: float) -> float:
        """Return a bound on the variance of every vector of a ball with a radius in steps.

        For p = infinity the radius is that of the grid, and the bound is exact. Otherwise the bound is the value of the concave envelope of
        a coordinate's variance, as a function of its p-th power. The line is an upper bound.
        """
        growths, step_square = np.diff(self.rows), self.grid.step**2
        dimension = self.grid.ball.dimension
        if not self.grid.centred:
            tops = np.clip(0.5 + growths / (2 * step_square), 0.0, 1.0)
            return float(dimension * (self.rows[:-1] + (growths + step_square * (1 - tops)) * tops).max())
        zero = self.grid.zero
        # A coordinate may lie on either side of zero; on the left the row at distance k is zero - k.
        right, left = self.rows[zero : 2 * zero + 1], self.rows[zero::-1]
        return largest_piecewise_sum(
            lefts=np.tile(np.arange(zero, dtype=float), 2),
            constants=np.concatenate([right[:-1], left[:-1]]),
            slopes=np.concatenate([np.diff(right), np.diff(left)]) + step_square,
            curvatures=np.full(2 * zero, step_square),
            dimension=dimension,
            norm=self.grid.ball.norm,
            radius=radius,
        )


@dataclass(frozen=True, eq=False)
class VectorTableMechanism(VectorMechanism):
    """Every client dithers its vector to a grid and sends a letter of the table per coordinate.

    Dithering hardly increases the norm. The grid is `VectorGrid`. For finite p zero is a grid point; for p = infinity coordinates are
    dithered independently.

    The guarantee for the whole vector is computed from the table's weights, not from the table's own guarantee for two inputs.

    Attributes
    ----------
    table : LookupTable
        An exactly unbiased table, with at least 2 bits_in for finite p; its interval is not used.
    ball : NormBall
        Public ball of the vectors.
    delta : float
        Failure probability of the guarantee; 0 for a pure guarantee.
    dithering : str
        ``"systematic"``: unbiased, and the norm's growth is bounded with certainty; ``"rejection"``: vectors are shrunk, rounded
        independently, and rounded again if they left the ball (section 4.1 of Chaudhuri, Guo, Rabbat 2022), with a bias that
        `bias_bound` bounds. Coordinates are dithered independently in any case for p = infinity.
    rejection_probability : float
        Bound on the probability of rejection, for ``"rejection"``; 1e-12 to 0.99.

    Raises
    ------
    InfeasibleError
        If vectors cannot be shrunk enough for the rejection probability; the message states the necessary bits_in.

    Examples
    --------
    >>> from quietbits.design.tables.randomised_response import generalised_randomised_response
    >>> table = generalised_randomised_response(3.0, 3)
    >>> mechanism = VectorTableMechanism(table, NormBall(dimension=4, norm=1.0), delta=1e-5)
    >>> print(mechanism.guarantee)
    epsilon = 12, delta = 1e-05, replace-one adjacency, local trust model
    >>> vectors = np.tile([0.5, 0.0, -0.3, 0.0], (200_000, 1))
    >>> messages = mechanism.encode(vectors, np.random.default_rng(0))
    >>> (mechanism.decode(mechanism.aggregate(messages), len(vectors)).round(1) + 0.0).tolist()
    [0.5, 0.0, -0.3, 0.0]
    """

    table: LookupTable
    ball: NormBall
    delta: float = 0.0
    dithering: str = "systematic"
    rejection_probability: float = 0.05

    def __post_init__(self) -> None:
        """Check the fields, and that they agree with each other."""
        check_ball(self.ball, "a table")
        if check_real("delta", self.delta, low=0.0, high=1.0) == 1:
            raise ValueError(f"delta must be a number from 0 to below 1, got {self.delta!r}")
        object.__setattr__(self, "delta", float(self.delta))
        check_choice("dithering", self.dithering, DITHERINGS)
        check_real("rejection_probability", self.rejection_probability, low=1e-12, high=0.99)
        if self.table.certificate.max_bias != 0:
            raise ValueError(f"table must be exactly unbiased, got one with a bias of up to {self.table.certificate.max_bias:g}")
        if self._rejecting and self.shrinkage == 0:
            least = least_shrinkable_radius(self.ball.dimension, self.ball.norm, self.rejection_probability)
            raise InfeasibleError(
                f"dithering by rejection needs {math.floor(math.log2(least + 1)) + 2} bits_in or more for dimension {self.ball.dimension} "
                f"and norm {self.ball.norm:g}, got {self.table.bits_in}; systematic dithering needs 2"
            )

    @cached_property
    def shrinkage(self) -> float:
        """Factor that scales vectors before dithering; 1.0 unless dithering rejects.

        The server divides by the shrinkage.
        """
        if not self._rejecting:
            return 1.0
        return shrinkage(self.ball.dimension, self.ball.norm, self._grid.radius, self.rejection_probability)

    @cached_property
    def input_distance(self) -> float:
        """Upper bound on the L_p distance of two dithered vectors, on the table's unit scale.

        For p = infinity this is the largest distance of two coordinates.
        """
        return dithered_distance(self._grid, rejecting=self._rejecting)

    @property
    def bias_bound(self) -> float:
        """Bound on the L2 distance between the mean of a decoded message and the vector.

        The bound is in the vectors' units, and 0.0 without rejection.
        """
        if not self._rejecting:
            return 0.0
        return rejection_bias_bound(self.rejection_probability) * self._grid.step / self.shrinkage

    @property
    def bits_per_client(self) -> float:
        """Number of bits of a message, which has one letter for each coordinate."""
        return float(self.ball.dimension * self.table.bits_out)

    def facts(self) -> dict[str, Any]:
        """Return the largest distance of dithered vectors and the table's design epsilon."""
        return {"input_distance": self.input_distance, "table_epsilon": self.table.epsilon}

    def privacy(self) -> Privacy:
        """Return the local privacy of the whole vector, for every two vectors.

        A message is a mixture, over dithered vectors, of products of rows. Divergence is quasi-convex: the divergence of two mixtures is at
        most the largest divergence of their parts. So the bound covers all pairs of dithered vectors, at most `input_distance` apart.
        """
        return table_privacy(self.table, dimension=self.ball.dimension, norm=self.ball.norm, radius=self.input_distance)

    def renyi_budget(self, epsilon: float, rounds: int = 1) -> RenyiBudget:
        """Return the budget of two inputs of a coordinate, for an epsilon of all rounds.

        The budget holds at this delta, for finite p.
        """
        inputs, ball = len(self.table.weights), self.ball
        return RenyiBudget(inputs, ball.dimension, ball.norm, self.input_distance, epsilon, self.delta, rounds)

    @cached_property
    def variance_bound(self) -> float:
        """Upper bound on the expected squared L2 error of a decoded message, over the ball.

        The bound is exact for p = infinity. The expected squared error of accepted vectors is at most that of all vectors, divided by the
        probability of acceptance; this includes the bias.
        """
        largest = self._grid_variance.largest(self._grid.radius * self.shrinkage)
        return largest / (self.shrinkage**2 * (1 - self.rejection_probability if self._rejecting else 1.0))

    @cached_property
    def letters(self) -> FloatArray:
        """Decoded value of each letter, in the vectors' units, shape (2**bits_out,)."""
        step, zero = Fraction(self.ball.clip_norm) / self._grid.half_width / Fraction(self.shrinkage), self._grid.half_width
        return np.array([float(step * (letter * self._grid.steps - zero)) for letter in self.table.alphabet])

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> LetterArray:
        """Return random letters in the smallest unsigned type, shape (clients, dimension)."""
        random_words = word_source(random_words)
        array = self.ball.check(vectors)
        letters = np.empty(array.shape, dtype=np.min_scalar_type(len(self.table.alphabet) - 1))
        clients = max(1, CHUNK // self.ball.dimension)
        for start in range(0, len(array), clients):
            rows = self._dithered_rows(array[start : start + clients], random_words)
            letters[start : start + clients] = self.table.letters_of_rows(rows, random_words(rows.size).reshape(rows.shape))
        return letters

    def client_program(self) -> ClientProgram:
        """Return the program: round the vector to the grid, and draw a letter of each coordinate's row."""
        ball, norm = self.ball, self.ball.norm
        if norm not in (1.0, 2.0, math.inf):
            raise InfeasibleError(f"norm must be 1, 2 or infinity for clients in other languages, got {norm:g}")
        size: dict[str, Any] = {"letters": len(self.table.alphabet), "shift": 64 - (self.table.total.bit_length() - 1)}
        drawn: dict[str, Any] = {**size, "cumulative": tuple(np.cumsum(self.table.weights, axis=1).ravel().tolist())}
        bits, messages = self.table.bits_out, lambda fields, _: fields
        if not self._grid.centred:
            cube = {"dimension": ball.dimension, "clip_norm": float(ball.clip_norm), "steps": float(self._grid.steps), **drawn}
            return ClientProgram(letters_of_cube, cube, bits, fields=ball.dimension, messages=messages)
        # Whole numbers, so that the bound's power may be rounded down.
        largest = math.floor(Fraction(self._norm_bound) ** int(norm) * (1 + Fraction(ROUNDING)))
        bounded = {"radius": self._grid.zero, "largest": largest, **drawn}
        constants: dict[str, Any] = {"dimension": ball.dimension, "order": int(norm), "clip_norm": float(ball.clip_norm)}
        if self._rejecting:
            constants |= {"scale": float(self._grid.radius * self.shrinkage)}
            return ClientProgram(letters_of_ball_by_rejection, {**constants, **bounded}, bits, fields=ball.dimension, messages=messages)
        return ClientProgram(letters_of_ball, {**constants, **bounded}, bits, fields=ball.dimension, messages=messages)

    def aggregate(self, messages: NDArray[Any]) -> NDArray[np.int64]:
        """Return counts of each letter for each coordinate, shape (dimension, 2**bits_out)."""
        letters, dimension = len(self.table.alphabet), self.ball.dimension
        array = checked_messages(messages, 0, letters - 1, dimension)
        if letters <= MOST_COMPARED and dimension >= LEAST_COMPARED:
            return _compared_counts(array, letters)
        cells = np.arange(dimension, dtype=np.intp) * letters
        histogram = np.zeros(dimension * letters, dtype=np.int64)
        clients = max(1, COUNTED // dimension)
        for start in range(0, len(array), clients):
            histogram += np.bincount((array[start : start + clients] + cells).ravel(), minlength=dimension * letters)
        return histogram.reshape(dimension, letters)

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the average of the decoded letters, which may lie outside the ball."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        sums = aggregate.sum(axis=1)
        if np.any(sums != clients):
            raise ValueError(f"clients must be the number of letters in each histogram, {int(sums[sums != clients][0])}, got {clients!r}")
        return np.asarray(aggregate @ self.letters / clients)

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the variance of each vector, which includes dithering.

        The variance is exact for systematic dithering, whose coordinates have the same marginal distributions as independent ones. With
        rejection the result is the variance of vectors that are never rejected, an approximation that omits the bias.
        """
        array = self.ball.check(vectors)
        result = np.empty(len(array))
        clients = max(1, CHUNK // self.ball.dimension)
        for start in range(0, len(array), clients):
            positions = self._grid.positions(array[start : start + clients], self.shrinkage)
            result[start : start + clients] = self._grid_variance.of_positions(positions) / self.shrinkage**2
        return result

    def variance_parts(self, vectors: ArrayLike) -> VarianceParts:
        """Return the variance of each vector by rounding to the table's inputs, and its letters as noise."""
        array = self.ball.check(vectors)
        rounding = np.empty(len(array))
        clients = max(1, CHUNK // self.ball.dimension)
        for start in range(0, len(array), clients):
            fractions = (self._grid.positions(array[start : start + clients], self.shrinkage) + self._grid.zero) % 1.0
            rounding[start : start + clients] = (fractions * (1 - fractions)).sum(axis=1)
        return VarianceParts.split(self.variance(array), rounding=rounding * (self._grid.step / self.shrinkage) ** 2)

    @cached_property
    def _grid(self) -> VectorGrid:
        return VectorGrid(self.ball, self.table.bits_in)

    @cached_property
    def _grid_variance(self) -> VectorGridVariance:
        return VectorGridVariance(self.table, self._grid)

    @property
    def _rejecting(self) -> bool:
        return self._grid.centred and self.dithering == "rejection"

    @cached_property
    def _norm_bound(self) -> float:
        """Largest norm of a dithered vector, in steps, for finite p."""
        return _dithered_norm_bound(self._grid, rejecting=self._rejecting)

    def _dithered_rows(self, vectors: FloatArray, random_words: WordSource) -> NDArray[np.integer]:
        positions = self._grid.positions(vectors, self.shrinkage)
        if not self._grid.centred:
            return dither(positions, random_words(positions.size).reshape(positions.shape), len(self.table.weights) - 1)
        if self._rejecting:
            rounded = rejection_rounding(positions, self.ball.norm, self._norm_bound, random_words.uniforms)
        else:
            rounded = bounded_rounding(positions, random_words.uniforms(len(positions)), self.ball.norm, self._norm_bound)
        return rounded + self._grid.zero


def _compared_counts(messages: NDArray[Any], letters: int) -> NDArray[np.int64]:
    """Return counts of each letter for each coordinate, shape (dimension, letters)."""
    counts = np.zeros((letters, messages.shape[1]), dtype=np.int64)
    for start in range(0, len(messages), IN_A_BYTE):
        part = messages[start : start + IN_A_BYTE]
        for letter, count in enumerate(counts):
            count += (part == letter).sum(axis=0, dtype=np.uint8)
    return np.ascontiguousarray(counts.T)


def dithered_distance(grid: VectorGrid, *, rejecting: bool) -> float:
    """Return the largest L_p distance of two dithered vectors, on the tables' unit scale.

    The result is an upper bound; for p = infinity it is the largest distance of two coordinates. `rejecting` says whether vectors are
    rounded until they are in the ball.
    """
    return 2 * _dithered_norm_bound(grid, rejecting=rejecting) / grid.steps if grid.centred else 1.0


def _dithered_norm_bound(grid: VectorGrid, *, rejecting: bool) -> float:
    return grid.radius if rejecting else rounded_norm_bound(grid.ball.dimension, grid.ball.norm, grid.radius)
