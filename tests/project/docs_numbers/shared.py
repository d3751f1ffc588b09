"""Functions for the numbers of every page: how they are written, and what commands print."""

import json
import math
import shlex
from functools import cache
from typing import Any

from typer.testing import CliRunner

from quietbits.cli.main import app

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def up(value: float, digits: int) -> str:
    """Return a number rounded up to digits after the point: bounds on privacy stay true."""
    return f"{math.ceil(value * 10**digits - 1e-9) / 10**digits:.{digits}f}"


def down(value: float, digits: int) -> str:
    """Return a number rounded down to digits after the point."""
    return f"{math.floor(value * 10**digits + 1e-9) / 10**digits:.{digits}f}"


def spaced(value: float) -> str:
    """Return a whole number with spaces between thousands."""
    return f"{round(value):,}".replace(",", " ") if abs(value) >= 10_000 else f"{round(value)}"


def short(value: float, digits: int = 2) -> str:
    """Return a number with so many digits, and without zeros in the exponent: 1.6e-3."""
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def percent(ratio: float, digits: int = 0) -> str:
    """Return by how many percent a ratio is above 1."""
    return f"{100 * (ratio - 1):.{digits}f}"


@cache
def command(line: str) -> dict[str, Any]:
    """Return what a command of quietbits prints as JSON."""
    result = CliRunner().invoke(app, [*shlex.split(line), "--json"])
    if result.exit_code != 0:
        raise ValueError(f"{line} ended with exit code {result.exit_code}: {result.stderr}")
    return json.loads(result.stdout)
