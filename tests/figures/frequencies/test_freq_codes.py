"""Tests of the figure of exact recovery.

Points under test: the figure fits a page, and draws its table and bounds; the table does not depend on the machine.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.figures.drawing.style import print_style
from quietbits.figures.frequencies.freq_codes import BOUNDS, FIGURE, LABELS, TIME_LIMIT

TASKS = [
    replace(task, clients=5, dimension=40) for task in FIGURE.tasks(0, True) if task.measurements in (16, 32, 100) and task.repetition < 2
]


@pytest.fixture(scope="module")
def table(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> pd.DataFrame:
    return FIGURE.table(rows_of(TASKS))


@pytest.fixture(scope="module")
def figure(table: pd.DataFrame) -> Figure:
    with print_style():
        return FIGURE.draw(table)


def test_the_table_is_drawn_with_its_bounds(table: pd.DataFrame, figure: Figure) -> None:
    assert len(figure.axes) == 3
    for axes, prior in zip(figure.axes, ("uniform", "zipf", "geometric"), strict=True):
        panel = table[table["prior"] == prior]
        drawn = [np.asarray(line.get_xydata(), dtype=float) for line in axes.lines]
        for row in panel.itertuples():
            assert any(np.isclose(points, [row.measurements, 100 * row.success]).all(axis=1).any() for points in drawn)
        for column in BOUNDS:
            assert any(np.allclose(points[:, 0], panel[column].mean()) for points in drawn)


def test_every_code_is_there_and_durations_are_not(table: pd.DataFrame) -> None:
    assert set(table["code"]) == set(LABELS)
    assert (table.loc[table["code"] == "identity", "success"] == 1).all()
    assert not {"seconds", "most_seconds"} & set(table)
    assert all(task.time_limit == TIME_LIMIT for quick in (True, False) for task in FIGURE.tasks(0, quick))
