"""Lookup tables for the Rényi divergence of a vector's whole message."""

from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray
from ...errors import ConvergenceError
from ...solvers.bounds.privacy_constraint import RatioConstraint
from ...solvers.table_search.renyi_search import RenyiDesign
from .certificate import certified_table
from .exact_rounding import DUST, TOTAL_BITS, round_table
from .lookup_table import LookupTable
from .provenance import Provenance
from .table_facts import realised_epsilon

# Relative reserve of the table's ratios for the rounding.
RATIO_SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class RenyiTable:
    """A float table from which exact tables of slightly more or less privacy are made.

    Attributes
    ----------
    probabilities : ndarray of shape (inputs, letters)
        Unbiased probabilities, equal to their own mirror image.
    alphabet : ndarray of shape (letters,)
        Letters on the unit interval's scale, rising.
    """

    probabilities: FloatArray
    alphabet: FloatArray

    @classmethod
    def of(cls, design: RenyiDesign) -> "RenyiTable":
        """Return the table of a search's design."""
        table, reaches = design.solution.probabilities, design.reaches
        letters = 0.5 + np.concatenate([-reaches, reaches[::-1]]) / (len(table) - 1)
        order = np.argsort(letters, kind="stable")
        return cls(table[:, order], letters[order])

    def stretched(self, factor: float) -> "RenyiTable":
        """Return the table with inputs moved from the middle by a factor, and letters moved back.

        Rows between grid inputs are mixtures of their neighbours, and rows just outside the grid extrapolate the first two and the last two
        rows. So the table is unbiased again, and more private for a smaller factor. Entries may be negative for factors above 1.
        """
        inputs = len(self.probabilities)
        positions = (inputs - 1) / 2 + factor * (np.arange(inputs) - (inputs - 1) / 2)
        lower = np.clip(np.floor(positions), 0, inputs - 2).astype(np.intp)
        fraction = (positions - lower)[:, None]
        table = (1 - fraction) * self.probabilities[lower] + fraction * self.probabilities[lower + 1]
        return RenyiTable(table, 0.5 + (self.alphabet - 0.5) / factor)

    def exact(self, metric: str | None, provenance: Provenance) -> LookupTable:
        """Return the lookup table of whole numbers.

        The method raises ConvergenceError if an entry is not positive, or the rounding fails. The declared epsilon is the realised epsilon
        of the weights under the metric, not the target of the design.
        """
        used = self.probabilities[:, self.probabilities.sum(axis=0) >= DUST]
        if used.min() <= 0:
            raise ConvergenceError(f"the stretched table has entries that are not positive, down to {used.min():.3g}")
        largest = float(np.abs(np.diff(np.log(used), axis=0)).max())
        rounded = round_table(self.probabilities, self.alphabet, RatioConstraint(largest * (1 + RATIO_SLACK), True), symmetric=True)
        return certified_table(
            mechanism="mvu",
            epsilon=realised_epsilon(rounded.weights, metric),
            metric=metric,
            alphabet=rounded.alphabet,
            total=2**TOTAL_BITS,
            weights=rounded.weights,
            provenance=provenance,
            objective="worst",
        )
