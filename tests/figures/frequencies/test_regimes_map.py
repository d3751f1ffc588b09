"""The map of regimes: each of its fields says which mechanism wins there."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from quietbits.analysis.comparisons.frequencies.regimes import regime_points, winners
from quietbits.figures.drawing.style import print_style
from quietbits.figures.frequencies.regimes import FIGURE


def test_every_field_of_the_map_has_its_winner(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> None:
    table = FIGURE.table(rows_of(regime_points(0, (50, 100), (100,), (1.0,), (100.0, 1e5))))
    with print_style():
        figure = FIGURE.draw(table)
    assert sum(len(axes.texts) for axes in figure.axes) == len(winners(table)) == 4
