"""A table as the searches hand it on: probabilities in floating point, and the letters."""

from dataclasses import dataclass

from ...arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Table:
    """Probabilities of letters for each input, and the letters.

    Attributes
    ----------
    probabilities : ndarray of shape (inputs, letters)
        The table; rows sum to one, up to rounding.
    alphabet : ndarray of shape (letters,)
        The letters on the unit interval's scale, increasing.
    """

    probabilities: FloatArray
    alphabet: FloatArray
