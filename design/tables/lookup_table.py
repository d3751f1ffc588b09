"""Exact lookup tables: integer weights and rational letters, from which a client draws with no floating point in between."""

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_interval
from ...arrays import FloatArray, WordArray
from ...shown import BLUE, GREY, Shown
from ..contracts.guarantee import Guarantee
from ..noise.random_words import WordsLike, word_source
from ..transforms.dithering import dither, finite_values, grid_position
from .provenance import Provenance
from .table_facts import RowMoments, row_moments

if TYPE_CHECKING:
    import pandas as pd

    from ...shown import Axes

LetterArray = NDArray[np.unsignedinteger]
# Values whose words are drawn at a time, and those looked up at a time: positions and table indices stay in the processor's cache.
CHUNK, PART = 2**15, 2**13
# Bits by which a guide is finer than the letters, and logarithm of its entries at most, which take a megabyte.
GUIDE_BITS, MOST_GUIDE_BITS = 3, 19


@dataclass(frozen=True)
class DualCertificate:
    """Dual values from which the lower bound on the variance can be recomputed; one of each kind per grid input.

    Attributes
    ----------
    normalisation : tuple of float
        Prices of the rows' sums.
    unbiasedness : tuple of float
        Prices of the rows' bias, sum_j P[i, j] (a_j - x_i) = 0.
    input_weights : tuple of float
        Weights of the rows' variances in the objective, non-negative, summing to one.
    """

    normalisation: tuple[float, ...]
    unbiasedness: tuple[float, ...]
    input_weights: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class Certificate(Shown):
    """What was recomputed from a table in exact arithmetic; variances are on the unit interval's scale.

    Attributes
    ----------
    realised_epsilon : float
        Privacy parameter of the integer weights, at most the declared one; rounded up.
    max_bias : float
        Largest bias of a row; 0.0 means exactly unbiased, otherwise rounded up.
    mean_variance : float
        Average of the rows' variances (eq. 2 of Chaudhuri, Guo, Rabbat 2022, divided by the number of inputs).
    worst_variance : float
        Largest of the rows' variances.
    lower_bound : float or None
        No unbiased table with this privacy, with any number of letters, has a smaller objective; errs downward. None if not asked for.
    optimality_gap : float or None
        (objective - lower_bound) / objective, from 0 to 1.
    objective : str
        What the table minimises: ``"mean"``, ``"worst"`` or ``"prior"``.
    dual : DualCertificate or None
        The proof of `lower_bound`.
    """

    realised_epsilon: float
    max_bias: float
    mean_variance: float
    worst_variance: float
    lower_bound: float | None
    optimality_gap: float | None
    objective: str
    dual: DualCertificate | None

    @property
    def line(self) -> str:
        """The variances and the bound, in one line."""
        bound = (
            "no lower bound"
            if self.lower_bound is None
            else f"at least {self.lower_bound:.6g} ({100 * (self.optimality_gap or 0):.2g} % below)"
        )
        return (
            f"epsilon {self.realised_epsilon:.6g}, bias {self.max_bias:g}, variance {self.mean_variance:.6g} (mean), "
            f"{self.worst_variance:.6g} (worst), {bound}"
        )

    def to_frame(self) -> "pd.DataFrame":
        """Return one row with everything except for the proof."""
        import pandas as pd

        return pd.DataFrame([{field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "dual"}])

    def draw(self, axes: "Axes") -> None:
        """Draw the variances as bars, beside the bound on what is minimised."""
        axes.bar(["mean", "worst"], [self.mean_variance, self.worst_variance], color=BLUE)
        if self.lower_bound is not None:
            axes.axhline(self.lower_bound, color=GREY, linestyle="--", label=f"lower bound, {self.objective} variance")
            axes.legend()
        axes.set(
            xlabel="over the inputs of the grid", ylabel="variance, interval of length 1", title=f"epsilon = {self.realised_epsilon:.6g}"
        )


@dataclass(frozen=True, eq=False)
class _Guide:
    """Numbers of cumulative weights that draws have reached, by row and by their first `bits` bits."""

    bits: int
    reached: NDArray[np.uint16]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LookupTable(Shown):
    """A scalar mechanism: a value is dithered to a grid input, and a letter is drawn from that input's row of integer weights.

    Row i belongs to the input x_i = i / (2**bits_in - 1), letter j stands for the number alphabet[j], both on the unit interval's
    scale; letter j is sent with probability weights[i, j] / total. Nothing is checked here: `verify_table` does that, and every table
    that quietbits designs or reads has passed it.

    Attributes
    ----------
    mechanism : str
        ``"mvu"``, ``"generalised-randomised-response"`` or ``"bitwise-randomised-response"``.
    epsilon : float
        The declared privacy parameter.
    metric : str or None
        ``"l1"``, ``"l2"``, ``"l<p>"`` for metric privacy, None for local privacy.
    bits_in, bits_out : int
        Bits of the grid index and of the message.
    interval : tuple of float
        Values (low, high) that the unit interval stands for.
    alphabet : tuple of Fraction
        The letters, sorted.
    total : int
        Sum of every row, a power of two up to 2**62.
    weights : ndarray of int64, shape (2**bits_in, 2**bits_out)
        The table; read-only.
    prior : tuple of float or None
        Weights of the inputs in the objective ``"prior"``, summing to one.
    certificate : Certificate
        What was recomputed from the table.
    provenance : Provenance
        How it was made.
    adjacency, trust_model : str
        What the guarantee holds for; ``"replace-one"`` and ``"local"``.
    """

    mechanism: str
    epsilon: float
    metric: str | None
    bits_in: int
    bits_out: int
    interval: tuple[float, float]
    alphabet: tuple[Fraction, ...]
    total: int
    weights: NDArray[np.int64]
    prior: tuple[float, ...] | None
    certificate: Certificate
    provenance: Provenance
    adjacency: str = "replace-one"
    trust_model: str = "local"

    def __post_init__(self) -> None:
        """Keep a read-only copy of the weights."""
        weights = np.array(self.weights, dtype=np.int64)
        weights.flags.writeable = False
        object.__setattr__(self, "weights", weights)

    @property
    def line(self) -> str:
        """Mechanism, bits, interval and guarantee, in one line."""
        low, high = self.interval
        return f"{self.mechanism}, {self.bits_in} bits in, {self.bits_out} bits out, values from {low:g} to {high:g}, {self.guarantee}"

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per grid input and letter: `input`, `letter`, `decoded` (on the interval's scale), `weight`, `probability`."""
        import pandas as pd

        rows, letters = self.weights.shape
        low, high = self.interval
        return pd.DataFrame(
            {
                "input": np.repeat(low + (high - low) * np.arange(rows) / (rows - 1), letters),
                "letter": np.tile(np.arange(letters), rows),
                "decoded": np.tile(self.letters, rows),
                "weight": self.weights.ravel(),
                "probability": self.probabilities.ravel(),
            }
        )

    def draw(self, axes: "Axes") -> None:
        """Draw the probability of each letter, one row per grid input."""
        low, high = self.interval
        picture = axes.imshow(self.probabilities, cmap="Blues", vmin=0, aspect="auto")
        axes.figure.colorbar(picture, ax=axes, label="probability")
        axes.set_xticks(range(len(self.alphabet)), [f"{letter:.3g}" for letter in self.letters], rotation=45)
        axes.set_yticks([0, len(self.weights) - 1], [f"{low:g}", f"{high:g}"])
        axes.set(xlabel="letter, as it is decoded", ylabel="grid input", title=f"{self.mechanism}, epsilon = {self.epsilon:g}")

    @property
    def bits_per_client(self) -> float:
        """Bits that one message takes."""
        return float(self.bits_out)

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee, with the declared epsilon."""
        return Guarantee(self.epsilon, adjacency=self.adjacency, trust_model=self.trust_model, metric=self.metric)

    @property
    def probabilities(self) -> FloatArray:
        """The table as floats, shape (2**bits_in, 2**bits_out)."""
        return self.weights / float(self.total)

    @cached_property
    def moments(self) -> RowMoments:
        """Exact mean and variance of every row, on the unit interval's scale."""
        return row_moments(self.weights, self.alphabet, self.total)

    @cached_property
    def letters(self) -> FloatArray:
        """What each letter decodes to, on the interval's scale: the exact number, rounded once. Shape (2**bits_out,)."""
        low, high = (Fraction(end) for end in self.interval)
        return np.array([float(low + (high - low) * letter) for letter in self.alphabet])

    @cached_property
    def _cumulative(self) -> WordArray:
        return np.cumsum(self.weights, axis=1, dtype=np.uint64).ravel()

    def with_interval(self, low: float, high: float) -> "LookupTable":
        """Return the same table for values on another interval; weights, unit-scale letters and certificate stay."""
        return dataclasses.replace(self, interval=check_interval("interval", (low, high)))

    def encode(self, values: ArrayLike, words: WordsLike) -> LetterArray:
        """Draw one letter per value, from two words each.

        Parameters
        ----------
        values : array_like
            Finite values; those outside the interval count as its nearer end.
        words : WordSource or numpy.random.Generator
            ``quietbits.secure_words`` for a release, which must not be predictable; a generator, which counts as ``seeded_words`` of it,
            for experiments.

        Returns
        -------
        ndarray of the smallest unsigned type, same shape
            Letter indices.

        Raises
        ------
        ValueError
            If a value is NaN or infinite, or `words` is not a source.
        """
        words = word_source(words)
        array = finite_values("values", values)
        letters = np.empty(array.size, dtype=self._letter_type)
        flat = array.ravel()
        for start in range(0, array.size, CHUNK):
            chunk, found = flat[start : start + CHUNK], letters[start : start + CHUNK]
            drawn = words(2 * len(chunk))
            dither_words, table_words = drawn[: len(chunk)], drawn[len(chunk) :]
            for first in range(0, len(chunk), PART):
                part = slice(first, first + PART)
                found[part] = self._look_up(chunk[part], dither_words[part], table_words[part])
        return letters.reshape(array.shape)

    def letters_from_words(self, values: ArrayLike, dither_words: WordArray, table_words: WordArray) -> LetterArray:
        """Return the letters that given random words lead to: the deterministic core of the encoder and of the exported C code.

        Parameters
        ----------
        values : array_like
            Finite values; those outside the interval count as its nearer end.
        dither_words : ndarray of uint64, same shape
            Words whose upper 53 bits decide between the two neighbouring grid inputs.
        table_words : ndarray of uint64, same shape
            Words whose upper log2(total) bits draw the letter from the row.
        """
        return self._look_up(finite_values("values", values), np.asarray(dither_words, np.uint64), np.asarray(table_words, np.uint64))

    def letters_of_rows(self, rows: ArrayLike, table_words: WordArray) -> LetterArray:
        """Return the letters that given random words draw from rows, given by their indices: for mechanisms with their own dithering.

        The upper log2(total) bits of a word draw the letter.
        """
        array = np.asarray(rows)
        if array.size and not np.issubdtype(array.dtype, np.integer):
            raise ValueError(f"rows must be whole numbers, got an array of {array.dtype}")
        if array.size and (array.min() < 0 or array.max() >= len(self.weights)):
            raise ValueError(f"rows must be from 0 to {len(self.weights) - 1}, got {int(array.min())} to {int(array.max())}")
        return self._draw(array.astype(np.intp, copy=False), np.asarray(table_words, np.uint64))

    def decode(self, indices: ArrayLike) -> FloatArray:
        """Return the numbers that letter indices stand for; their average over clients is an unbiased estimate of the values' mean.

        They are on the interval's scale, and may lie outside the interval.
        """
        array = np.asarray(indices)
        if array.size and not np.issubdtype(array.dtype, np.integer):
            raise ValueError(f"indices must be whole numbers, got an array of {array.dtype}")
        if array.size and (array.min() < 0 or array.max() >= len(self.alphabet)):
            raise ValueError(f"indices must be from 0 to {len(self.alphabet) - 1}, got {int(array.min())} to {int(array.max())}")
        return self.letters[array.astype(np.intp)]

    def variance(self, values: ArrayLike) -> FloatArray:
        """Return the exact variance of ``decode(encode(value))`` for each value, dithering included, in squared units of the values."""
        positions = grid_position(finite_values("values", values), self.interval, len(self.weights) - 1)
        lower = np.minimum(positions.astype(np.intp), len(self.weights) - 2)
        fraction = positions - lower
        variances = np.array([float(variance) for variance in self.moments.variances])
        steps = np.array([float(after - before) for before, after in pairwise(self.moments.means)])
        # Law of total variance over the two grid inputs between which the value is dithered.
        mixed = (1 - fraction) * variances[lower] + fraction * variances[lower + 1] + fraction * (1 - fraction) * steps[lower] ** 2
        low, high = self.interval
        return np.asarray(mixed * (high - low) ** 2)

    @property
    def _letter_type(self) -> np.dtype[np.unsignedinteger]:
        return np.min_scalar_type(len(self.alphabet) - 1)

    def _look_up(self, values: FloatArray, dither_words: WordArray, table_words: WordArray) -> LetterArray:
        return self._draw(dither(grid_position(values, self.interval, len(self.weights) - 1), dither_words), table_words)

    @cached_property
    def _guide(self) -> _Guide:
        """Where to look for a letter, by the row and the first bits of its word.

        A number of cumulative weights is reached by every draw that begins with these bits; where two or more others lie among such
        draws, the number of letters takes its place: those draws are searched for.
        """
        rows, letters = self.weights.shape
        total_bits = self.total.bit_length() - 1
        bits = min(letters.bit_length() - 1 + GUIDE_BITS, max(MOST_GUIDE_BITS - (rows.bit_length() - 1), 0), total_bits)
        rest = np.uint64(total_bits - bits)
        # The first of the buckets that lie beyond each cumulative weight; that of the last letter lies beyond all of them.
        beyond = ((self._cumulative + ((np.uint64(1) << rest) - np.uint64(1))) >> rest).astype(np.intp).reshape(rows, letters)
        buckets = 1 << bits
        counts = np.bincount((beyond + np.arange(rows)[:, None] * (buckets + 1)).ravel(), minlength=rows * (buckets + 1))
        reached = counts.reshape(rows, buckets + 1).cumsum(axis=1)
        return _Guide(bits, np.where(np.diff(reached) > 1, letters, reached[:, :-1]).astype(np.uint16).ravel())

    def _draw(self, rows: NDArray[np.intp], table_words: WordArray) -> LetterArray:
        shape, rows, letters = rows.shape, rows.ravel(), len(self.alphabet)
        draws = table_words.ravel() >> np.uint64(65 - self.total.bit_length())
        if letters == 2:
            return self._search(rows, draws).astype(self._letter_type).reshape(shape)
        guide = self._guide
        places = (draws >> np.uint64(self.total.bit_length() - 1 - guide.bits)).view(np.int64)
        places += rows << guide.bits
        found = guide.reached.take(places, mode="clip")
        np.left_shift(rows, letters.bit_length() - 1, out=places)
        places += found
        drawn = found + (self._cumulative.take(places, mode="clip") <= draws)
        several = np.flatnonzero(found == letters)
        if several.size:
            drawn[several] = self._search(rows[several], draws[several])
        return drawn.astype(self._letter_type, copy=False).reshape(shape)

    def _search(self, rows: NDArray[np.intp], draws: WordArray) -> NDArray[np.intp]:
        """Return the number of cumulative weights that each draw has reached, by binary search without branches."""
        letters = len(self.alphabet)
        position = rows * letters
        half = letters // 2
        while half:
            position += half * (self._cumulative.take(position + (half - 1)) <= draws)
            half //= 2
        return position & (letters - 1)
