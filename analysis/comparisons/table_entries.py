"""Designed tables laid out entry by entry: what the pictures of probability tables, letters and variances are drawn from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...design.tables.lookup_table import LookupTable
from ...design.tables.mvu import design_mvu
from ..provenance_columns import guarantee_columns
from .point import Point


@dataclass(frozen=True, kw_only=True)
class DesignPoint(Point):
    """An MVU table: mean objective, local privacy (eq. 2 of Chaudhuri, Guo, Rabbat 2022), on the unit interval.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 0.001 to 20.
    bits_in, bits_out : int
        Bits of the input grid and of the message, 1 to 9.
    """

    epsilon: float
    bits_in: int
    bits_out: int

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return the table's entries (`table_entries`)."""
        return table_entries(design_mvu(self.epsilon, self.bits_in, self.bits_out, seed=self.seed))


def table_entries(table: LookupTable) -> list[dict[str, Any]]:
    """Return one row per entry of a table, on the unit interval's scale, each with the whole table's certificate.

    ``input_variance`` is that of the entry's input; ``realised_epsilon`` errs upward and ``lower_bound`` downward.
    """
    certificate, provenance = table.certificate, table.provenance
    head = {
        "mechanism": table.mechanism,
        **guarantee_columns(table.guarantee),
        "bits_in": table.bits_in,
        "bits_out": table.bits_out,
        "solver": provenance.solver,
    }
    tail = {
        "objective": certificate.objective,
        "realised_epsilon": certificate.realised_epsilon,
        "max_bias": certificate.max_bias,
        "mean_variance": certificate.mean_variance,
        "worst_variance": certificate.worst_variance,
        "lower_bound": certificate.lower_bound,
        "optimality_gap": certificate.optimality_gap,
    }
    inputs = len(table.weights)
    variances, letters = [float(variance) for variance in table.moments.variances], [float(letter) for letter in table.alphabet]
    return [
        head
        | {
            "input_index": row,
            "input": row / (inputs - 1),
            "input_variance": variances[row],
            "letter_index": column,
            "letter": letters[column],
            "probability": float(probability),
        }
        | tail
        for (row, column), probability in np.ndenumerate(table.probabilities)
    ]


def certificates(entries: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each table, without its entries."""
    of_an_entry = ["input_index", "input", "input_variance", "letter_index", "letter", "probability"]
    return entries.drop(columns=of_an_entry).drop_duplicates(["epsilon", "bits_in", "bits_out"], ignore_index=True)
