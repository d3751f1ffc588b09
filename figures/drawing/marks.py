"""Marks of the series of a figure, in Okabe and Ito's palette and a grey.

The colours stay distinct under the common kinds of colour blindness.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Mark:
    """Mark of a series, whose colour, marker and line each distinguish it alone.

    Attributes
    ----------
    colour : str
        Colour of Okabe and Ito's palette, or grey.
    marker : str
        Matplotlib's name of the marker.
    line : str or tuple
        Matplotlib's line style.
    """

    colour: str
    marker: str
    line: str | tuple[float, tuple[float, ...]]

    @property
    def look(self) -> dict[str, Any]:
        """Keywords of matplotlib's lines for the mark."""
        return {"color": self.colour, "linestyle": self.line, "marker": self.marker}


BLUE = Mark("#0072B2", "o", "-")
VERMILION = Mark("#D55E00", "s", (0, (4, 1.5)))
GREEN = Mark("#009E73", "^", (0, (6, 1.5, 1, 1.5)))
PURPLE = Mark("#CC79A7", "D", (0, (2, 1)))
ORANGE = Mark("#E69F00", "v", (0, (1, 1)))
BLACK = Mark("#000000", "x", (0, (3, 1, 1, 1, 1, 1)))
SKY = Mark("#56B4E9", "P", (0, (5, 1, 1, 1, 1, 1)))
GREY = Mark("#7F7F7F", "*", (0, (8, 2)))
