"""Displays of results: a line of text, a table in a notebook, and a picture."""

import html
import unicodedata
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes as Axes

BLUE, GREY = "#0072b2", "#555555"
# Python calls these two characters unprintable, but many scripts need them between letters.
JOINERS = "\u200c\u200d"


def printable(text: str, encoding: str = "utf-8") -> str:
    r"""Return text for one line of a terminal or a picture: escapes replace control characters.

    Parameters
    ----------
    text : str
        Text, such as the name of a column of a user's file.
    encoding : str
        Encoding of the output stream.

    Returns
    -------
    str
        The text, in which an escape such as ``\x1b`` replaces each character that controls a terminal, breaks the line, turns the direction
        of writing, is half of a surrogate pair, or is not in the encoding.
    """
    if not text.isprintable():
        text = "".join(character if _is_plain(character) else character.encode("unicode_escape").decode() for character in text)
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _is_plain(character: str) -> bool:
    return character.isprintable() or character in JOINERS or unicodedata.category(character) == "Zs"


class Shown(ABC):
    """A result with a line of text, a table (`to_frame`) and a picture (`plot`).

    A notebook shows the line above the table.
    """

    @property
    @abstractmethod
    def line(self) -> str:
        """Summary of the result in one line."""

    @abstractmethod
    def to_frame(self) -> "pd.DataFrame":
        """Return the result as a tidy table."""

    @abstractmethod
    def draw(self, axes: "Axes") -> None:
        """Draw the result into axes."""

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the result into axes (new ones by default), and return the axes.

        `quietbits reproduce` makes figures for print.
        """
        if axes is None:
            from matplotlib import pyplot as plt

            axes = plt.subplots(layout="constrained")[1]
        self.draw(axes)
        return axes

    def __repr__(self) -> str:
        """Return the line after the name of the class."""
        return f"<{type(self).__name__}: {printable(self.line)}>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.line)}</p>{self.to_frame().to_html(index=False, na_rep='')}"
