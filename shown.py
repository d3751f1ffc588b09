"""Displays of results: a line of text, a table in a notebook, and a picture."""

import html
import math
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import ROUND_CEILING, Context, Decimal
from textwrap import shorten
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes as Axes

Name = TypeVar("Name")
BLUE, GREY = "#0072b2", "#555555"
# Python calls these two characters unprintable, but many scripts need them between letters.
JOINERS = "\u200c\u200d"
# Smaller shares are shown as this many percent.
LEAST_PERCENT = Decimal("0.0001")
# Gaps from here on are written as factors; the relative margin exceeds the rounding of the factor.
LARGE_GAP, ROUNDING = 0.5, 1e-14
# Characters of a value in a notebook's table.
VALUE_WIDTH = 200
# Columns that a reader of a result table looks for first. pandas shows the first ten and the last ten of a wide table.
FIRST_COLUMNS = (
    *("label", "name", "file", "mechanism", "recommended", "on_frontier"),
    *("round", "repetition", "rank", "metric", "value"),
    *(
        "accuracy",
        "relative_error",
        "error_per_coordinate",
        "squared_error",
        "mean_squared_error",
        "predicted_error",
        "worst_error",
        "mean_variance",
        "worst_variance",
    ),
    *("standard_error", "ratio_to_bound", "ratio_to_central", "letters_gap", "optimality_gap"),
    *("epsilon", "delta", "adjacency", "trust_model"),
    *("bytes_up", "bytes_down", "megabytes_up", "megabytes_down", "bits_per_client"),
)
EXPONENT = re.compile(r"\b(\d(?:\.\d+)?)e([+-]?\d+)\b")
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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


def results_first(columns: Iterable[Name]) -> list[Name]:
    """Return the columns of a result table in the order of a reader's interest.

    Mechanism, results, guarantee and cost (`FIRST_COLUMNS`) come first, then all others in their given order.
    """
    places: dict[Any, int] = {name: place for place, name in enumerate(FIRST_COLUMNS)}
    return sorted(columns, key=lambda name: places.get(name, len(places)))


def html_table(line: str, rows: Iterable[Sequence[object]], headings: Sequence[str] = ()) -> str:
    """Return a line of text above a table, as HTML for a notebook; all text is escaped."""
    head = "".join(f'<th style="text-align: left">{_cell(heading)}</th>' for heading in headings)
    cells = ("".join(f'<td style="text-align: left">{_cell(value)}</td>' for value in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    headed = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f"<p>{html.escape(printable(line))}</p><table>{headed}<tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    text = in_figures(value, 6) if isinstance(value, float) else str(value)
    return html.escape(shorten(printable(text), VALUE_WIDTH, placeholder=" ..."))


class ShownFields:
    """A dataclass that a notebook shows as a table of its fields and of some properties."""

    _shown_properties: ClassVar[Mapping[str, str]] = {}

    def _repr_html_(self) -> str:
        own: Any = self
        parameters = [(field.name, getattr(own, field.name)) for field in fields(own) if field.repr] if is_dataclass(own) else []
        return html_table(type(self).__name__, [*parameters, *((name, getattr(own, key)) for name, key in self._shown_properties.items())])


def percent_up(share: float) -> str:
    """Return a share in percent with two digits, rounded up so that "at most" stays true; at least 0.0001 %.

    Examples
    --------
    >>> percent_up(0.0321), percent_up(0.69501), percent_up(1e-9)
    ('3.3 %', '70 %', '0.0001 %')
    """
    return f"{_percent_up(share).normalize():f} %"


def gap_up(gap: float) -> str:
    """Return how much better the best can be than something with a gap to a lower bound, 1 less the bound over the variance.

    A gap below a half is written by `percent_up`. A larger one is written as the factor of the variance over the bound, since 90 % and 99 %
    are factors of 10 and 100; the factor has three digits, rounded up.

    Examples
    --------
    >>> gap_up(0.0321), gap_up(0.92157), gap_up(1.0)
    ('3.3 %', '12.8 times', 'infinitely many times')
    """
    if gap < LARGE_GAP:
        return percent_up(gap)
    if gap >= 1:
        return "infinitely many times"
    factor = Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(1 / (1 - gap) * (1 + ROUNDING))
    return f"{factor.normalize():,f} times"


def percent_number_up(share: float) -> float:
    """Return the number that `percent_up` writes; NaN for NaN."""
    return math.nan if math.isnan(share) else float(_percent_up(share))


def _percent_up(share: float) -> Decimal:
    return max(Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(100 * share), LEAST_PERCENT)


def in_figures(value: float | None, digits: int = 3) -> str:
    """Return a number as people write it.

    Whole numbers have all their digits, others the given number of significant ones; thousands have separators. Only numbers below 1e-4,
    or from 1e12 on, have an exponent.

    Examples
    --------
    >>> [in_figures(value) for value in (18432.0, 1234.56, 0.12345, 0.5, 6.934e-5, None)]
    ['18,432', '1,235', '0.123', '0.5', '6.93e-05', '–']
    """
    if value is None or math.isnan(value):
        return "\N{EN DASH}"
    if math.isinf(value):
        return "\N{INFINITY}" if value > 0 else "-\N{INFINITY}"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e12:
        return f"{value:.{digits}g}"
    if value == round(value):
        return f"{value:,.0f}"
    text = f"{value:,.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def with_powers(text: str) -> str:
    """Return text in which powers of ten replace exponents.

    Examples
    --------
    >>> with_powers("from 1e-05 to 6.93e-05")
    'from 10⁻⁵ to 6.93 × 10⁻⁵'
    """
    return EXPONENT.sub(_power, text)


def _power(match: re.Match[str]) -> str:
    power = "10" + f"{int(match[2])}".translate(SUPERSCRIPTS)
    return power if match[1] == "1" else f"{match[1]} \N{MULTIPLICATION SIGN} {power}"


def listed(words: Sequence[str], most: int = 6) -> str:
    """Return words as a list in a sentence, at most the given number of them.

    Examples
    --------
    >>> listed(["a", "b", "c"]), listed(list("abcde"), most=3)
    ('a, b and c', 'a, b, c and 2 more')
    """
    if len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural.

    Examples
    --------
    >>> counted(1, "task"), counted(1200, "task")
    ('1 task', '1,200 tasks')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


class Shown(ABC):
    """A result with a line of text, a table (`to_frame`) and a picture (`plot`).

    A notebook shows the line above the table.
    """

    @property
    @abstractmethod
    def summary(self) -> str:
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
        return f"<{type(self).__name__}: {printable(self.summary)}>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.summary)}</p>{self.to_frame().to_html(index=False, na_rep='')}"
