"""Functions that format the numbers on all pages."""

import math
import tempfile
from functools import cache
from pathlib import Path

import pandas as pd


def up(value: float, digits: int) -> str:
    """Return a number rounded up to digits after the point, so that bounds on privacy stay true."""
    return f"{math.ceil(value * 10**digits - 1e-9) / 10**digits:.{digits}f}"


def spaced(value: float) -> str:
    """Return a whole number with spaces between thousands."""
    return f"{round(value):,}".replace(",", " ") if abs(value) >= 10_000 else f"{round(value)}"


def short(value: float, digits: int = 2) -> str:
    """Return a number with the given number of digits, without zeros in the exponent: 1.6e-3."""
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def three_digits(value: float) -> str:
    """Return a number in three digits.

    Numbers from 1000 are whole; numbers below a thousandth have a power of ten.
    """
    if value >= 1000:
        return f"{value:.0f}"
    if value >= 1e-3:
        return f"{value:#.3g}".rstrip(".")
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


@cache
def drawn(name: str) -> pd.DataFrame:
    """Return the table that ``quietbits reproduce NAME --quick`` draws."""
    from quietbits.figures.registry import reproduce

    with tempfile.TemporaryDirectory() as folder:
        reproduce([name], Path(folder), quick=True)
        return pd.read_csv(Path(folder) / f"{name}.csv")


def ends(name: str, index: int) -> list[str]:
    """Return the ends of the range of a finding in the quick picture, as its title prints them."""
    from quietbits.figures.findings import range_in_words
    from quietbits.figures.registry import FIGURES

    values = FIGURES[name].findings[index].range(drawn(name))
    assert values is not None
    words = range_in_words(*values).split(" to ")
    return [words[0], words[-1]]
