"""A probability table as a heat map."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import PowerNorm

from .style import PROBABILITY_COLOURS

# A cube-root scale: tables with many letters have no entry above 0.1, and with large epsilon most entries are below 0.01.
PROBABILITY_NORM = PowerNorm(1 / 3, vmin=0.0, vmax=1.0)
PROBABILITY_TICKS = (0.0, 0.001, 0.01, 0.1, 0.3, 1.0)


def sent_letters(entries: pd.DataFrame) -> pd.DataFrame:
    """Return the entries of one table's letters that some input sends; exact tables may hold spare letters of probability zero."""
    return entries[entries.groupby("letter_index")["probability"].transform("max") > 0]


def draw_probability_map(axes: Axes, entries: pd.DataFrame) -> ScalarMappable:
    """Draw the entries of one table, inputs upward and letters to the right, both in increasing order.

    The columns ``input_index``, ``letter_index`` and ``probability`` hold every entry; ticks are left to the caller. What is returned makes
    a colour bar, with the same scale for every table.
    """
    table = entries.pivot_table(index="input_index", columns="letter_index", values="probability", aggfunc="sum")
    options: dict[str, Any] = {"origin": "lower", "aspect": "auto", "interpolation": "nearest"}
    image = axes.imshow(table.to_numpy(), cmap=PROBABILITY_COLOURS, norm=PROBABILITY_NORM, **options)
    for spine in axes.spines.values():
        spine.set_visible(True)
    return image
