"""Numbers of docs/how-to/sweeps.md."""

from quietbits.figures.report.results_page import FIRST_ROWS, MOST_ROWS

__all__ = ["FIRST_ROWS", "MOST_ROWS"]
