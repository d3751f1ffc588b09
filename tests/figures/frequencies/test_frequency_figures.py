"""Figures of frequencies: each fits a page, draws what its table holds, and says what the guarantee is."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.analysis.comparisons.frequencies.needed_bits import needed_points
from quietbits.analysis.comparisons.frequencies.regimes import regime_points, winners
from quietbits.analysis.comparisons.frequencies.simulated_errors import frequency_points
from quietbits.figures.drawing.style import print_style
from quietbits.figures.entry import FigureEntry
from quietbits.figures.frequencies import fig2, fig5, needed_bits, regimes

TRUST = ("secure-sum trust model", "local trust model", "replace-one adjacency")
TASKS: dict[str, tuple[FigureEntry, Sequence[Any]]] = {
    "clients": (fig2.FIGURE, frequency_points(0, "geometric", 20, (25, 50), (5.0,), 2)),
    "epsilon": (fig5.FIGURE, frequency_points(0, "zipf", 20, (25,), (1.0, 5.0), 2)),
    "limits": (needed_bits.FIGURE, needed_points(0, ((50, 300),), {})),
    "regimes": (regimes.FIGURE, regime_points(0, (50, 100), (100,), (1.0,), (100.0, 1e5))),
}


@pytest.fixture(scope="module", params=TASKS)
def drawn(request: pytest.FixtureRequest, rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> tuple[str, pd.DataFrame, Figure]:
    entry, tasks = TASKS[request.param]
    table = entry.table(rows_of(tasks))
    with print_style():
        return request.param, table, entry.draw(table)


def test_it_fits_a_page_and_can_be_read(drawn: tuple[str, pd.DataFrame, Figure], check_page: Callable[..., None]) -> None:
    check_page(drawn[2], *TRUST)


def test_the_numbers_of_the_table_are_drawn(drawn: tuple[str, pd.DataFrame, Figure]) -> None:
    name, table, figure = drawn
    if name == "regimes":
        texts = sum(len(axes.texts) for axes in figure.axes)
        assert texts == len(winners(table)) == 4
        return
    points = np.concatenate([np.ravel(np.asarray(line.get_ydata(), dtype=float)) for axes in figure.axes for line in axes.lines])
    for column in ("bits_per_client",) if name == "limits" else ("largest_error", "error"):
        for value in table[column].dropna():
            assert np.isclose(points, value, rtol=1e-12).any()
