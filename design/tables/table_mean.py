"""Mean estimation with a lookup table."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CLIENTS, check_integer
from ...arrays import FloatArray
from ..contracts.error import VarianceParts
from ..contracts.guarantee import Guarantee
from ..contracts.mechanism import MessageScore, ScalarMechanism
from ..contracts.privacy import Privacy
from ..deployment.client_program import ClientProgram
from ..deployment.clients.tables import letter_of_number, letter_of_number_in_constant_time
from ..noise.random_words import WordsLike
from ..transforms.dithering import finite_values, grid_position
from .lookup_table import LetterArray, LookupTable
from .table_privacy import table_privacy


@dataclass(frozen=True, eq=False)
class TableMeanMechanism(ScalarMechanism):
    """Mean estimation with a lookup table: the server keeps a histogram of letters.

    Examples
    --------
    >>> import numpy as np
    >>> from quietbits.design.tables.randomised_response import generalised_randomised_response
    >>> protocol = TableMeanMechanism(generalised_randomised_response(5.0, 3))
    >>> messages = protocol.encode(np.full(100_000, 0.3), np.random.default_rng(1))
    >>> round(protocol.decode(protocol.aggregate(messages), 100_000), 2)
    0.3
    """

    table: LookupTable
    delta = 0.0

    @property
    def interval(self) -> tuple[float, float]:  # type: ignore[override]
        """The table's interval (low, high)."""
        return self.table.interval

    def facts(self) -> dict[str, Any]:
        """Return the epsilon that the table is designed for."""
        return {**super().facts(), "epsilon_per_round": self.table.epsilon}

    def privacy(self) -> Privacy:
        """Return the realised local privacy, from the table's whole numbers."""
        return table_privacy(self.table)

    @property
    def guarantee(self) -> Guarantee:
        """The realised guarantee, or the stronger declared metric guarantee if there is one."""
        return super().guarantee if self.table.metric is None else self.table.guarantee

    @property
    def bits_per_client(self) -> float:
        """Number of bits of one letter."""
        return self.table.bits_per_client

    @property
    def variance_bound(self) -> float:
        """Largest variance over the interval, on the grid or between two grid points.

        Between grid points the variance is a parabola in the fractional part f, V + f (V' - V) + f (1 - f) s**2, whose top lies at
        f = 1/2 + (V' - V) / (2 s**2) if that is between 0 and 1, else at one of its ends.
        """
        low, high = self.interval
        steps = len(self.table.weights) - 1
        variances = self.table.variance(np.linspace(low, high, steps + 1))
        means = np.array([float(mean) for mean in self.table.moments.means])
        tops = 0.5 + np.diff(variances) / (2 * (np.diff(means) * (high - low)) ** 2)
        positions = np.arange(steps) + np.clip(tops, 0.0, 1.0)
        return float(max(variances.max(), self.table.variance(low + (high - low) * positions / steps).max()))

    def encode(self, values: ArrayLike, random_words: WordsLike) -> LetterArray:
        """Draw one letter index per value."""
        return self.table.encode(values, random_words)

    def message_score(self, first: NDArray[Any], second: NDArray[Any]) -> MessageScore:
        """Return the log-likelihood ratio of letters for two inputs, dithering included."""
        weights = np.array(self.table.weights, dtype=float)
        positions = grid_position(finite_values("inputs", np.ravel([first, second])), self.interval, len(weights) - 1)
        lower = np.minimum(positions.astype(np.intp), len(weights) - 2)
        fractions = (positions - lower)[:, None]
        rows = (1 - fractions) * weights[lower] + fractions * weights[lower + 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            log_ratios = np.nan_to_num(np.log(rows[0]) - np.log(rows[1]), nan=0.0)
        return lambda letters: np.asarray(log_ratios[letters])

    def client_program(self) -> ClientProgram:
        """Return the program: dither the value, and draw a letter of its row."""
        rows, letters = self.table.weights.shape
        low, high = self.interval
        size = {"letters": letters, "shift": 64 - (self.table.total.bit_length() - 1)}
        drawn = {"cumulative": tuple(np.cumsum(self.table.weights, axis=1).ravel().tolist())}
        position = {"low": low, "high": high, "width": high - low, "steps": float(rows - 1)}
        constant_time = ClientProgram(letter_of_number_in_constant_time, {**position, "rows": rows, **size, **drawn}, self.table.bits_out)
        return ClientProgram(letter_of_number, {**position, **size, **drawn}, self.table.bits_out, constant_time=constant_time)

    def standard_error(self, aggregate: NDArray[Any], clients: int) -> float:
        """Return the standard error from the sample variance of the letters' numbers."""
        mean = self.decode(aggregate, clients)
        square = float(aggregate @ (self.table.letters - mean) ** 2)
        return math.sqrt(square / max(1, clients - 1) / clients)

    def aggregate(self, messages: NDArray[Any]) -> NDArray[np.int64]:
        """Return the number of messages with each letter, shape (2**bits_out,)."""
        histogram = np.bincount(messages.ravel(), minlength=len(self.table.alphabet))
        if len(histogram) > len(self.table.alphabet):
            raise ValueError(f"messages must be from 0 to {len(self.table.alphabet) - 1}, got {len(histogram) - 1}")
        return histogram

    def decode(self, aggregate: NDArray[Any], clients: int) -> float:
        """Return the average of the letters' numbers; it may lie outside the interval."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        if aggregate.sum() != clients:
            raise ValueError(f"clients must be the number of letters in the histogram, {int(aggregate.sum())}, got {clients!r}")
        return float(aggregate @ self.table.letters / clients)

    def variance(self, values: ArrayLike) -> FloatArray:
        """Return the exact variance of one decoded letter for each value, dithering included."""
        return self.table.variance(values)

    def variance_parts(self, values: ArrayLike) -> VarianceParts:
        """Return the variance of each value by rounding to the table's inputs, and its letters as noise."""
        positions = grid_position(finite_values("values", values), self.interval, len(self.table.weights) - 1)
        lower = np.minimum(positions.astype(np.intp), len(self.table.weights) - 2)
        fraction, (low, high) = positions - lower, self.interval
        steps = np.diff([float(mean) for mean in self.table.moments.means])[lower] * (high - low)
        return VarianceParts.split(self.variance(values), rounding=fraction * (1 - fraction) * steps**2)
