"""Entries of MVU tables, with tasks that design the tables, and maps of probabilities."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import PowerNorm

from ...analysis.provenance_columns import guarantee_columns
from ...design.tables.letter_certification import certify_letters
from ...design.tables.lookup_table import LookupTable
from ...design.tables.mvu import design_mvu
from ...progress import silent
from ..drawing.style import PROBABILITY_COLOURS
from ..point import Point

# A search for a proof ends after this time, whatever it has proven. Figures ask for tolerances that take a fraction of it.
MOST_SECONDS = 300.0
# The colours use a cube root: tables with many letters have no entry above 0.1, and with large epsilon most entries are below 0.01.
PROBABILITY_NORM = PowerNorm(1 / 3, vmin=0.0, vmax=1.0)
PROBABILITY_TICKS = (0.0, 0.001, 0.01, 0.1, 0.3, 1.0)


@dataclass(frozen=True, kw_only=True)
class DesignPoint(Point):
    """An MVU table on the unit interval, for the mean objective and local privacy.

    The design problem is eq. 2 of Chaudhuri, Guo, Rabbat 2022.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 0.001 to 20.
    bits_in, bits_out : int
        Bits of the input grid and of the message, 1 to 9.
    tolerance : float or None
        Gap at which a search for a proof among tables of as many bits stops; None without a search.
    """

    epsilon: float
    bits_in: int
    bits_out: int
    tolerance: float | None = None

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return the table's entries (`table_entries`)."""
        table = design_mvu(self.epsilon, self.bits_in, self.bits_out, seed=self.seed)
        if self.tolerance is not None:
            table = certify_letters(table, tolerance=self.tolerance, seconds=MOST_SECONDS, on_step=silent).best
        return table_entries(table)


def table_entries(table: LookupTable) -> list[dict[str, Any]]:
    """Return one row per entry of a table, each with the whole table's certificate.

    Values are on the scale of the unit interval. ``input_variance`` is the variance at the entry's input; ``realised_epsilon`` is rounded
    up and ``lower_bound`` rounded down.
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
        "letters_lower_bound": certificate.letters_lower_bound,
        "letters_gap": certificate.letters_gap,
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


def sent_letters(entries: pd.DataFrame) -> pd.DataFrame:
    """Return the entries of a table's letters that some input sends.

    Exact tables may hold spare letters of probability zero.
    """
    return entries[entries.groupby("letter_index")["probability"].transform("max") > 0]


def draw_probability_map(axes: Axes, entries: pd.DataFrame) -> ScalarMappable:
    """Draw the entries of a table: inputs upward and letters to the right, ascending.

    The columns ``input_index``, ``letter_index`` and ``probability`` hold every entry; the caller sets the ticks. The returned image makes
    a colour bar, with the same scale for every table.
    """
    table = entries.pivot_table(index="input_index", columns="letter_index", values="probability", aggfunc="sum")
    options: dict[str, Any] = {"origin": "lower", "aspect": "auto", "interpolation": "nearest"}
    image = axes.imshow(table.to_numpy(), cmap=PROBABILITY_COLOURS, norm=PROBABILITY_NORM, **options)
    for spine in axes.spines.values():
        spine.set_visible(True)
    return image
