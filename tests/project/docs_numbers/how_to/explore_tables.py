"""Numbers of docs/how-to/explore-tables.md."""

from functools import cache

from quietbits import design_mvu
from quietbits.figures.explorer.explorer_page import explorer_html

TABLES = 200


@cache
def page_bytes(bits: int) -> int:
    """Return the bytes that a table of as many bits in and out adds to a page."""
    table = design_mvu(epsilon=1.0, bits_in=bits, bits_out=bits)
    alone, twice = (explorer_html({f"{name}.json": table for name in names}) for names in ("a", "ab"))
    return len(twice) - len(alone)


def page_kilobytes(bits: int) -> str:
    return f"{page_bytes(bits) / 1e3:.0f}"


def page_megabytes(bits: int) -> str:
    return f"{TABLES * page_bytes(bits) / 1e6:.1f}"
