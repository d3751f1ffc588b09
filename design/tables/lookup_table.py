"""Exact lookup tables of integer weights and rational letters, without floating point.

A `LetterGuide` looks up letters by random words, from a guide to the cumulative weights: nearly every word needs a single look-up.
"""

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_interval
from ...arrays import FloatArray, WordArray, check_unmasked
from ...shown import BLUE, GREY, Shown, gap_up
from ..contracts.guarantee import Guarantee
from ..noise.random_words import WordsLike, word_source
from ..transforms.dithering import dither, finite_values, grid_position
from .provenance import Provenance
from .table_facts import RowMoments, row_moments

if TYPE_CHECKING:
    import pandas as pd

    from ...shown import Axes

# Number of words looked up per batch; their positions and results stay in the processor's cache.
PART = 2**15
# Number of bits by which a guide is finer than the letters, and binary logarithm of its largest number of entries, which take two
# megabytes.
GUIDE_BITS, MOST_GUIDE_BITS = 3, 19
# Number of bits of an entry, and number of bits of a word that nearly always decide.
ENTRY_BITS = FIRST_BITS = 32

LetterArray = NDArray[np.unsignedinteger]
# Number of values whose words are drawn per batch.
CHUNK = 2**15


@dataclass(frozen=True)
class DualCertificate:
    """Dual values that prove the lower bound on the variance, one of each kind per grid input.

    Attributes
    ----------
    normalisation : tuple of float
        Prices of the rows' sums.
    unbiasedness : tuple of float
        Prices of the rows' bias, sum_j P[i, j] (a_j - x_i) = 0.
    input_weights : tuple of float
        Weights of the rows' variances in the objective, non-negative, with the sum 1.
    """

    normalisation: tuple[float, ...]
    unbiasedness: tuple[float, ...]
    input_weights: tuple[float, ...]


@dataclass(frozen=True)
class LettersProof:
    """A proof that every unbiased private table with as many letters has an objective of at least a target.

    Each dual vector has a clause: a set of letters, of which every better table uses at least one letter. The proof holds because no choice
    of that many letters hits all clauses; docs/proofs/letter-bound.md has the theorem.

    Attributes
    ----------
    target : float
        The proven bound on the objective with input weights in floating point.
    normalisation, unbiasedness : tuple of tuple of float
        Prices of the rows' sums and of their bias: a dual vector per entry, with a price per grid input.
    input_weights : tuple of tuple of float or None
        Input weights of each dual vector, for the objective ``"worst"`` alone.
    split_letters : tuple of int
        Splits of the search over letters, a binary tree whose root is the first: number of the letter whose box is split. Splits only make
        the check fast.
    split_points : tuple of float
        Letters at which the boxes are split.
    splits_below, splits_above : tuple of int
        Number of the next split of the part below, and above, the point; -1 without a next split.
    """

    target: float
    normalisation: tuple[tuple[float, ...], ...]
    unbiasedness: tuple[tuple[float, ...], ...]
    input_weights: tuple[tuple[float, ...], ...] | None
    split_letters: tuple[int, ...]
    split_points: tuple[float, ...]
    splits_below: tuple[int, ...]
    splits_above: tuple[int, ...]

    @staticmethod
    def from_document(document: dict[str, Any]) -> "LettersProof":
        """Return the proof of a JSON document whose keys are the fields."""
        weights = document["input_weights"]
        return LettersProof(
            target=float(document["target"]),
            normalisation=_rows(document["normalisation"]),
            unbiasedness=_rows(document["unbiasedness"]),
            input_weights=None if weights is None else _rows(weights),
            split_points=tuple(float(point) for point in document["split_points"]),
            **{key: tuple(int(number) for number in document[key]) for key in ("split_letters", "splits_below", "splits_above")},
        )


def _rows(values: list[list[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(value) for value in row) for row in values)


@dataclass(frozen=True, repr=False)
class Certificate(Shown):
    """Recomputed facts of a table; variances are on the unit interval's scale.

    All facts except for the lower bound and the gap are computed in exact arithmetic.

    Attributes
    ----------
    realised_epsilon : float
        Privacy parameter of the integer weights, at most the declared epsilon; rounded up.
    max_bias : float
        Largest bias of a row; 0.0 means exactly unbiased, otherwise rounded up.
    mean_variance : float
        Average of the rows' variances (eq. 2 of Chaudhuri, Guo, Rabbat 2022, divided by the number of inputs).
    worst_variance : float
        Largest of the rows' variances.
    lower_bound : float or None
        Lower bound on the objective of every unbiased table with this privacy, with any number of letters. None if no bound was requested.
    optimality_gap : float or None
        (objective - lower_bound) / objective, from 0 to 1.
    objective : str
        The objective of the table: ``"mean"``, ``"worst"`` or ``"prior"``.
    dual : DualCertificate or None
        The proof of `lower_bound`.
    letters_lower_bound : float or None
        Lower bound on the objective of every unbiased table with this privacy and as many letters; errs downward. It is the largest of
        `lower_bound`, the bound of `letters_proof`, and the closed form for tables of one bit; None without any of them.
    letters_gap : float or None
        (objective - letters_lower_bound) / objective.
    letters_proof : LettersProof or None
        A proof of `letters_lower_bound` for tables of two bits and more, if `certify_letters` found one.
    """

    realised_epsilon: float
    max_bias: float
    mean_variance: float
    worst_variance: float
    lower_bound: float | None
    optimality_gap: float | None
    objective: str
    dual: DualCertificate | None
    letters_lower_bound: float | None = None
    letters_gap: float | None = None
    letters_proof: LettersProof | None = None

    @property
    def summary(self) -> str:
        """One line with the variances and the gaps."""
        return (
            f"epsilon {self.realised_epsilon:.6g}, bias {self.max_bias:g}, variance {self.mean_variance:.6g} (mean), "
            f"{self.worst_variance:.6g} (worst); {self.gaps('table of as many letters')}"
        )

    def gaps(self, of_this_size: str) -> str:
        """Return in words how much better a table of this size, and of any size, can be.

        Parameters
        ----------
        of_this_size : str
            Words for a table with as many letters, such as ``"3-bit table"``.

        Examples
        --------
        >>> from quietbits import design_mvu
        >>> design_mvu(epsilon=1.0, bits_in=3, bits_out=1).certificate.gaps("1-bit table")
        'no 1-bit table is more than 0.0001 % better; no table of any size more than 7.7 %'
        """
        any_size = None if self.optimality_gap is None else gap_up(self.optimality_gap)
        this_size = None if self.letters_gap is None else gap_up(self.letters_gap)
        if this_size is None:
            return "no proven lower bound"
        if any_size is None:
            return f"no {of_this_size} is more than {this_size} better"
        if any_size == this_size:
            return f"no table of any size is more than {any_size} better"
        return f"no {of_this_size} is more than {this_size} better; no table of any size more than {any_size}"

    def to_frame(self) -> "pd.DataFrame":
        """Return a data frame of one row with everything except for the proofs."""
        import pandas as pd

        facts = [field.name for field in dataclasses.fields(self) if field.name not in ("dual", "letters_proof")]
        return pd.DataFrame([{name: getattr(self, name) for name in facts}])

    def draw(self, axes: "Axes") -> None:
        """Draw the variances as bars, beside the bound on the objective."""
        axes.bar(["mean", "worst"], [self.mean_variance, self.worst_variance], color=BLUE)
        if self.lower_bound is not None:
            axes.axhline(self.lower_bound, color=GREY, linestyle="--", label=f"lower bound, {self.objective} variance")
            axes.legend()
        axes.set(
            xlabel="over the inputs of the grid", ylabel="variance, interval of length 1", title=f"epsilon = {self.realised_epsilon:.6g}"
        )


@dataclass(frozen=True, eq=False)
class LetterGuide:
    """A guide to the first cumulative weight above the upper `total_bits` bits of a word.

    The first bits of a word choose a cell of the row. Letters rise with the word. Most cells have at most two letters, and the second
    letter begins at some word. A cell's entry is the first letter times 2**inner, plus 2**inner, minus the next `inner` bits of that word.
    The lookup adds the same bits of a drawn word to the entry: the sum carries to the second letter if the drawn bits are greater, and not
    if they are smaller. All bits decide if they are equal, which leaves 0, and in cells of more letters.

    Attributes
    ----------
    cumulative : ndarray of uint64, shape (rows * letters,)
        Sums of weights up to and including each letter, row by row; rows end with 2**total_bits.
    letters, total_bits : int
        Number of letters, a power of two, and number of bits of a row's sum.
    cell_bits, inner : int
        Number of bits that choose a cell, and number of bits that are compared with entries.
    entries : ndarray of uint32, shape (rows * 2**cell_bits,)
        Entries of the cells. In cells of more than two letters, the number of letters replaces the first letter.
    crowded : bool
        Whether some cells have more than two letters.
    """

    cumulative: WordArray
    letters: int
    total_bits: int
    cell_bits: int
    inner: int
    entries: NDArray[np.uint32]
    crowded: bool

    def letters_of(self, rows: NDArray[np.integer], words: WordArray) -> NDArray[np.unsignedinteger]:
        """Return the letters of rows and words of shape (count,), in the smallest unsigned type."""
        letters = np.empty(len(rows), dtype=np.min_scalar_type(self.letters - 1))
        open_places = [np.empty(0, dtype=np.intp)]
        rest, inner_shift = np.uint32(32 - self.cell_bits), np.uint32(32 - self.cell_bits - self.inner)
        mask = np.uint32((1 << self.inner) - 1)
        for start in range(0, len(rows), PART):
            part = slice(start, start + PART)
            first_bits = (words[part] >> np.uint64(32)).astype(np.uint32)
            cells = first_bits >> rest
            cells += rows[part].astype(np.uint32) << np.uint32(self.cell_bits)
            reached = self.entries.take(cells.astype(np.int64), mode="clip")
            if inner_shift:
                first_bits >>= inner_shift
            first_bits &= mask
            reached += first_bits
            if self.inner < self.total_bits - self.cell_bits:
                np.bitwise_and(reached, mask, out=first_bits)
                if first_bits.min() == 0:
                    open_places.append(start + np.flatnonzero(first_bits == 0))
            reached >>= np.uint32(self.inner)
            if self.crowded:
                open_places.append(start + np.flatnonzero(reached == self.letters))
            letters[part] = reached
        places = np.concatenate(open_places)
        if places.size:
            letters[places] = self._searched(rows[places], words[places])
        return letters

    def _searched(self, rows: NDArray[np.integer], words: WordArray) -> NDArray[np.intp]:
        """Return letters by binary search without branches."""
        draws = words >> np.uint64(64 - self.total_bits)
        position = rows.astype(np.intp) * self.letters
        half = self.letters // 2
        while half:
            position += half * (self.cumulative.take(position + (half - 1)) <= draws)
            half //= 2
        return position & (self.letters - 1)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LookupTable(Shown):
    """A scalar mechanism: a dithered value chooses a row of weights that draw a letter.

    Row i belongs to the input x_i = i / (2**bits_in - 1), letter j stands for the number alphabet[j], both on the unit interval's scale;
    letter j is sent with probability weights[i, j] / total. Only `verify_table` checks a table: it does so before a table is written or
    exported, and after a table is read.

    Attributes
    ----------
    mechanism : str
        ``"mvu"``, ``"generalised-randomised-response"`` or ``"bitwise-randomised-response"``.
    epsilon : float
        The declared privacy parameter.
    metric : str or None
        ``"l1"``, ``"l2"``, ``"l<p>"`` for metric privacy, None for local privacy.
    bits_in, bits_out : int
        Number of bits of the grid index and of the message.
    interval : tuple of float
        Values (low, high) that the unit interval stands for.
    alphabet : tuple of Fraction
        The letters, sorted.
    total : int
        Sum of every row, a power of two up to 2**62.
    weights : ndarray of int64, shape (2**bits_in, 2**bits_out)
        The table; read-only.
    prior : tuple of float or None
        Weights of the inputs in the objective ``"prior"``, with the sum 1.
    certificate : Certificate
        Facts recomputed from the table.
    provenance : Provenance
        The record of the table's design.
    adjacency, trust_model : str
        Adjacency and trust model of the guarantee; ``"replace-one"`` and ``"local"``.
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
    def summary(self) -> str:
        """One line with mechanism, bits, interval and guarantee."""
        low, high = self.interval
        return f"{self.mechanism}, {self.bits_in} bits in, {self.bits_out} bits out, values from {low:g} to {high:g}, {self.guarantee}"

    @property
    def gaps(self) -> str:
        """Words that state how much better a table of as many bits, and of any size, can be."""
        return self.certificate.gaps(f"{self.bits_out}-bit table")

    def to_frame(self) -> "pd.DataFrame":
        """Return a data frame with one row per grid input and letter.

        Columns are `input`, `letter`, `decoded` (on the interval's scale), `weight`, `probability`.
        """
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
        """Number of bits of a message."""
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
        """Decoded letters on the interval's scale, shape (2**bits_out,): exact, rounded once."""
        low, high = (Fraction(end) for end in self.interval)
        return np.array([float(low + (high - low) * letter) for letter in self.alphabet])

    @cached_property
    def _guide(self) -> LetterGuide:
        return letter_guide(self.weights, self.total)

    def with_interval(self, low: float, high: float) -> "LookupTable":
        """Return the same table for another interval.

        Weights, unit-scale letters and certificate remain the same.
        """
        return dataclasses.replace(self, interval=check_interval("interval", (low, high)))

    def encode(self, values: ArrayLike, random_words: WordsLike) -> LetterArray:
        """Draw one letter per value, from two words each.

        Parameters
        ----------
        values : array_like
            Finite values; values outside the interval count as its nearer end.
        random_words : WordSource or numpy.random.Generator
            ``quietbits.secure_words`` for a release, which must not be predictable; a generator, which counts as ``seeded_words`` of it,
            for experiments.

        Returns
        -------
        ndarray of the smallest unsigned type, same shape
            Letter indices.

        Raises
        ------
        ValueError
            If a value is NaN or infinite, or `random_words` is not a source.
        """
        random_words = word_source(random_words)
        array = finite_values("values", values)
        letters = np.empty(array.size, dtype=np.min_scalar_type(len(self.alphabet) - 1))
        flat = array.ravel()
        for start in range(0, array.size, CHUNK):
            chunk, part = flat[start : start + CHUNK], letters[start : start + CHUNK]
            drawn = random_words(2 * len(chunk))
            dither_words, table_words = drawn[: len(chunk)], drawn[len(chunk) :]
            part[:] = self._look_up(chunk, dither_words, table_words)
        return letters.reshape(array.shape)

    def letters_from_words(self, values: ArrayLike, dither_words: WordArray, table_words: WordArray) -> LetterArray:
        """Return the letters of values for given random words, as the exported C code does.

        Parameters
        ----------
        values : array_like
            Finite values; values outside the interval count as its nearer end.
        dither_words : ndarray of uint64, same shape
            Words whose upper 53 bits decide between the two neighbouring grid inputs.
        table_words : ndarray of uint64, same shape
            Words whose upper log2(total) bits draw the letter from the row.
        """
        array = finite_values("values", values)
        words = (np.asarray(given, np.uint64).ravel() for given in (dither_words, table_words))
        return self._look_up(array.ravel(), *words).reshape(array.shape)

    def letters_of_rows(self, rows: ArrayLike, table_words: WordArray) -> LetterArray:
        """Return the letters of rows for given random words, without dithering.

        `rows` are indices of rows. The upper log2(total) bits of a word draw the letter.
        """
        check_unmasked("rows", rows)
        array = np.asarray(rows)
        if array.size and not np.issubdtype(array.dtype, np.integer):
            raise ValueError(f"rows must be whole numbers, got an array of {array.dtype}")
        if array.size and (array.min() < 0 or array.max() >= len(self.weights)):
            raise ValueError(f"rows must be from 0 to {len(self.weights) - 1}, got {int(array.min())} to {int(array.max())}")
        words = np.asarray(table_words, np.uint64).ravel()
        return self._guide.letters_of(array.ravel(), words).reshape(array.shape)

    def decode(self, indices: ArrayLike) -> FloatArray:
        """Return the numbers for which letter indices stand.

        The letters' average over clients is an unbiased estimate of the mean of the values.

        The numbers are on the interval's scale, and may lie outside the interval.
        """
        check_unmasked("indices", indices)
        array = np.asarray(indices)
        if array.size and not np.issubdtype(array.dtype, np.integer):
            raise ValueError(f"indices must be whole numbers, got an array of {array.dtype}")
        if array.size and (array.min() < 0 or array.max() >= len(self.alphabet)):
            raise ValueError(f"indices must be from 0 to {len(self.alphabet) - 1}, got {int(array.min())} to {int(array.max())}")
        return self.letters[array.astype(np.intp)]

    def variance(self, values: ArrayLike) -> FloatArray:
        """Return the exact variance of ``decode(encode(value))`` for each value, dithering included.

        Variances are in squared units of the values.
        """
        positions = grid_position(finite_values("values", values), self.interval, len(self.weights) - 1)
        lower = np.minimum(positions.astype(np.intp), len(self.weights) - 2)
        fraction = positions - lower
        variances = np.array([float(variance) for variance in self.moments.variances])
        steps = np.array([float(after - before) for before, after in pairwise(self.moments.means)])
        # The law of total variance applies to the two grid inputs between which the value is dithered.
        mixed = (1 - fraction) * variances[lower] + fraction * variances[lower + 1] + fraction * (1 - fraction) * steps[lower] ** 2
        low, high = self.interval
        return np.asarray(mixed * (high - low) ** 2)

    def _look_up(self, values: FloatArray, dither_words: WordArray, table_words: WordArray) -> LetterArray:
        """Return letters for values and words of one shape, (count,)."""
        steps = len(self.weights) - 1
        return self._guide.letters_of(dither(grid_position(values, self.interval, steps), dither_words, steps), table_words)


def letter_guide(weights: NDArray[np.int64], total: int) -> LetterGuide:
    """Return the guide to a table of weights.

    Rows sum to `total`, a power of two, and their length is also a power of two.
    """
    rows, letters = weights.shape
    cumulative, total_bits = np.cumsum(weights, axis=1, dtype=np.uint64), total.bit_length() - 1
    letter_bits = letters.bit_length() - 1
    cell_bits = min(letter_bits + GUIDE_BITS, max(MOST_GUIDE_BITS - (rows.bit_length() - 1), 0), total_bits)
    rest = total_bits - cell_bits
    inner = min(FIRST_BITS - cell_bits, ENTRY_BITS - 1 - letter_bits, rest)
    # First cell beyond each cumulative weight; the cell of the last letter lies beyond all cells.
    beyond = ((cumulative + ((np.uint64(1) << np.uint64(rest)) - np.uint64(1))) >> np.uint64(rest)).astype(np.intp)
    cells = 1 << cell_bits
    counts = np.bincount((beyond + np.arange(rows)[:, None] * (cells + 1)).ravel(), minlength=rows * (cells + 1))
    reached = counts.reshape(rows, cells + 1).cumsum(axis=1)
    first, several = reached[:, :-1], np.diff(reached)
    # Position of the cumulative weight at which the second letter begins, counted from the cell's beginning; 2**inner is the cell's end.
    start = np.take_along_axis(cumulative, np.minimum(first, letters - 1), axis=1) - (np.arange(cells, dtype=np.uint64) << np.uint64(rest))
    ahead = np.where(several == 1, (1 << inner) - (start >> np.uint64(rest - inner)).astype(np.int64), 0)
    entries = np.where(several > 1, letters << inner, (first << inner) + ahead).astype(np.uint32)
    return LetterGuide(cumulative.ravel(), letters, total_bits, cell_bits, inner, entries.ravel(), bool((several > 1).any()))
