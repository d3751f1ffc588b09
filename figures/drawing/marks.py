"""Marks of the series of figures, the same for a mechanism, a trust model or a reference in every figure.

A mark is a colour, a marker and a line. The colours are those of Okabe and Ito with four of Tol's muted ones, which stay distinct under
the common kinds of colour blindness. Marks colour markers, lines and areas; text stays black.

A figure selects marks by what its series are:

- mechanisms: `mechanism_mark`, by the name in the registry;
- several designs of one mechanism beside other mechanisms: `variant`;
- trust models: `TRUST_MARKS`;
- settings of one mechanism alone, such as bits or rates: `series_marks`, an ordered scale from dark to light;
- references: `TRUSTED_SERVER`, `LOWER_BOUND`, `ANSWER_ZERO`, `PROVEN_ACCOUNT`, `PUBLISHED_ACCOUNT`, `PAPER_VALUE`; accounts of several
  mechanisms beside each other: `Mark.look` as proven, and `Mark.published`;
- other series, such as decoders: the named colours, `BLUE` to `GREY`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

SOLID, DASHED, DOTTED = "-", (0.0, (4.0, 1.5)), (0.0, (1.0, 1.0))


@dataclass(frozen=True)
class Mark:
    """Mark of a series: its colour, marker and line.

    Attributes
    ----------
    colour : str
        Colour in hexadecimal digits.
    marker : str
        Matplotlib's name of the marker; empty for a reference that is only a line.
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

    @property
    def points(self) -> dict[str, Any]:
        """Keywords of matplotlib's lines for points without a line."""
        return {"color": self.colour, "linestyle": "", "marker": self.marker}

    @property
    def rule(self) -> dict[str, Any]:
        """Keywords of matplotlib's lines for a line without markers, such as a reference."""
        return {"color": self.colour, "linestyle": self.line, "marker": ""}

    @property
    def published(self) -> dict[str, Any]:
        """Keywords of matplotlib's lines for the mechanism under an account that is published but not proven: hollow and finely dotted."""
        return {"color": self.colour, "linestyle": (0.0, (1.0, 2.0)), "marker": self.marker, "markerfacecolor": "white"}


# Okabe and Ito's palette without yellow, which is too pale for lines, and a grey.
BLUE = Mark("#0072B2", "o", SOLID)
VERMILION = Mark("#D55E00", "s", DASHED)
GREEN = Mark("#009E73", "^", (0.0, (6.0, 1.5, 1.0, 1.5)))
PURPLE = Mark("#CC79A7", "D", (0.0, (2.0, 1.0)))
ORANGE = Mark("#E69F00", "v", DOTTED)
BLACK = Mark("#000000", "x", (0.0, (3.0, 1.0, 1.0, 1.0, 1.0, 1.0)))
SKY = Mark("#56B4E9", "P", (0.0, (5.0, 1.0, 1.0, 1.0, 1.0, 1.0)))
GREY = Mark("#7F7F7F", "*", (0.0, (8.0, 2.0)))
# Tol's muted colours.
INDIGO = Mark("#332288", "D", (0.0, (5.0, 1.0)))
WINE = Mark("#882255", "P", (0.0, (3.0, 1.0)))
OLIVE = Mark("#999933", "d", (0.0, (4.0, 1.0, 1.0, 1.0)))
TEAL = Mark("#44AA99", "<", (0.0, (2.0, 2.0)))

# Mechanisms of one family share a colour. Families of items alone reuse the colours of families of vectors alone, which no picture compares
# with them. A pentagon marks the shuffled letters of a local mechanism, and a star marks sketches of vectors.
_FAMILIES: tuple[tuple[Mark, Mapping[str, str]], ...] = (
    (BLUE, {"mvu": "o", "shuffled-mvu": "p"}),
    (
        VERMILION,
        {
            "generalised-randomised-response": "s",
            "frequency-randomised-response": "P",
            "bitwise-randomised-response": "D",
            "shuffled-randomised-response": "p",
            "shuffled-frequency-randomised-response": "v",
        },
    ),
    (
        GREEN,
        {
            "distributed-discrete-gaussian": "^",
            "sketched-discrete-gaussian": "*",
            "sketched-discrete-gaussian-frequencies": "<",
            "sparse-discrete-gaussian": "d",
            "sparse-discrete-gaussian-frequencies": ">",
        },
    ),
    (
        PURPLE,
        {"distributed-skellam": "D", "skellam": "o", "sketched-skellam": "*", "sketched-skellam-frequencies": "<"},
    ),
    (
        ORANGE,
        {
            "laplace": "v",
            "distributed-discrete-laplace": "o",
            "central-laplace": "X",
            "central-discrete-laplace": "P",
            "central-staircase": "s",
        },
    ),
    (BLACK, {"central-gaussian": "X", "gaussian": "s", "subsampled-gaussian": "d", "central-sketch": "*"}),
    (WINE, {"cpsgd": "P", "subset-selection": "s"}),
    (INDIGO, {"poisson-binomial": "D", "sketched-poisson-binomial": "*"}),
    (
        SKY,
        {
            "privunit": "o",
            "privunit-g": "s",
            "projunit": "^",
            "fast-projunit": "v",
            "hadamard-response": "P",
            "recursive-hadamard-response": "X",
        },
    ),
    (
        OLIVE,
        {
            "rotating-simplex": "^",
            "shuffled-rotating-simplex": "p",
            "cldp": "X",
            "sqkr": "D",
            "unary-encoding": "o",
            "projective-geometry-response": "v",
        },
    ),
    (
        TEAL,
        {
            "minimal-random-coding": "v",
            "minimal-random-coding-plain": "X",
            "poisson-private-representation": "P",
            "shuffled-random-coding": "p",
            "dp-rec": "s",
        },
    ),
    (GREY, {"exact-histogram": "D", "split-and-mix": "o"}),
)
_LINES = {
    "o": SOLID,
    "s": DASHED,
    "^": GREEN.line,
    "D": PURPLE.line,
    "v": DOTTED,
    "P": SKY.line,
    "X": BLACK.line,
    "p": (0.0, (1.0, 2.0)),
    "*": GREY.line,
    "<": TEAL.line,
    ">": (0.0, (6.0, 2.0, 2.0, 2.0)),
    "d": (0.0, (7.0, 1.0)),
}
MECHANISM_MARKS: Mapping[str, Mark] = MappingProxyType(
    {name: Mark(base.colour, marker, _LINES[marker]) for base, markers in _FAMILIES for name, marker in markers.items()}
)
"""Marks of the package's mechanisms, by name in the registry."""

# Marks of mechanisms of other packages, in two colours of Tol's that no mechanism of this package has.
_SPARES = tuple(Mark(colour, marker, line) for colour in ("#AA4499", "#CC6677") for marker, line in _LINES.items())

# The server of the central trust model sees everything, as the reference `TRUSTED_SERVER` does.
TRUST_MARKS: Mapping[str, Mark] = MappingProxyType(
    {"local": VERMILION, "shuffled": ORANGE, "secure-sum": BLUE, "central": Mark(BLACK.colour, "X", (0.0, (6.0, 1.0)))}
)
"""Marks of trust models, by name."""

TRUSTED_SERVER = MECHANISM_MARKS["central-gaussian"]
LOWER_BOUND = Mark("#555555", "", SOLID)
ANSWER_ZERO = Mark(GREY.colour, "", (0.0, (1.0, 1.5)))
PROVEN_ACCOUNT = BLUE
PUBLISHED_ACCOUNT = VERMILION
# A value that a paper prints, beside the one computed here.
PAPER_VALUE = Mark(BLACK.colour, "+", "")

# Colours of the map viridis, from dark to a yellow green that still shows on white.
SERIES_MARKS = (
    Mark("#440154", "o", SOLID),
    Mark("#443A83", "s", SOLID),
    Mark("#31688E", "^", SOLID),
    Mark("#21908C", "D", SOLID),
    Mark("#35B779", "v", SOLID),
    Mark("#6CCD5A", "P", SOLID),
    Mark("#AADC32", "X", SOLID),
)
"""Marks of ordered settings of one mechanism, from dark to light."""


def mechanism_mark(name: str) -> Mark:
    """Return the mark of a mechanism, by its name in the registry.

    A mechanism of another package gets a spare mark that depends on its name alone.

    Examples
    --------
    >>> mechanism_mark("mvu") == BLUE, mechanism_mark("my-mechanism") == mechanism_mark("my-mechanism")
    (True, True)
    """
    mark = MECHANISM_MARKS.get(name)
    if mark is not None:
        return mark
    digest = hashlib.sha256(name.encode()).digest()
    return _SPARES[int.from_bytes(digest[:8], "big") % len(_SPARES)]


def variant(mark: Mark, number: int) -> Mark:
    """Return the mark of another design of a mechanism: its colour, with a marker and line that no mechanism of this colour has.

    Number 0 is the mechanism's own mark.

    Examples
    --------
    >>> [variant(mechanism_mark("mvu"), number).marker for number in range(3)]
    ['o', 's', '^']
    """
    if number == 0:
        return mark
    taken = {other.marker for other in MECHANISM_MARKS.values() if other.colour == mark.colour}
    free = [marker for marker in _LINES if marker not in taken]
    marker = free[(number - 1) % len(free)]
    return Mark(mark.colour, marker, _LINES[marker])


def series_marks(count: int) -> tuple[Mark, ...]:
    """Return marks of ordered settings, from dark to light, spread over the scale; there are at most seven.

    Examples
    --------
    >>> [mark.marker for mark in series_marks(3)]
    ['o', 'D', 'X']
    """
    if not 1 <= count <= len(SERIES_MARKS):
        raise ValueError(f"count must be between 1 and {len(SERIES_MARKS)}, got {count}: draw the settings as an axis")
    last = len(SERIES_MARKS) - 1
    return tuple(SERIES_MARKS[round(index * last / max(count - 1, 1))] for index in range(count))
