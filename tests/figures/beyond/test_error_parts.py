"""The figure of errors by cause: parts add up to predicted errors, and bars and marks have their numbers."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.figures.beyond.error_parts import FIGURE, PARTS, SETTINGS, PartsPoint, draw_parts
from quietbits.figures.drawing.style import print_style


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    points = [PartsPoint(seed=0, case=case) for case in ("summed items", "local vectors", "numbers")]
    return FIGURE.table(pd.DataFrame([row for point in points for row in point.run()]))


@pytest.fixture(scope="module")
def picture(table: pd.DataFrame) -> Figure:
    with print_style():
        return draw_parts(table)


def test_parts_add_up_to_the_predicted_error(table: pd.DataFrame) -> None:
    assert table[list(PARTS)].sum(axis=1).to_numpy() == pytest.approx(table["predicted_error"].to_numpy(), rel=1e-9)
    assert (table[list(PARTS)] >= 0).all(axis=None)
    assert list(dict.fromkeys(table["setting"])) == ["numbers", "local vectors", "summed items"]
    # A sketch of too few bits loses more by collisions than by noise.
    sketches = table[table["setting"] == "summed items"]
    assert (sketches["compression"] > sketches["noise"]).all()


def test_bars_are_shares_and_marks_are_errors(picture: Figure, table: pd.DataFrame) -> None:
    panels = [panel for _, panel in table.groupby("setting", sort=False)]
    for panel, shares, errors in zip(panels, picture.axes[::2], picture.axes[1::2], strict=True):
        drawn = np.array([[bar.get_width() for bar in bars] for bars in shares.containers])
        assert drawn.sum(axis=0) == pytest.approx(np.full(len(panel), 100.0))
        assert drawn == pytest.approx(100 * (panel[list(PARTS)].div(panel["predicted_error"], axis=0)).to_numpy().T)
        marks = [line.get_xdata()[0] for line in errors.lines[: len(panel)]]
        assert marks == panel["predicted_error"].tolist()
        assert [label.get_text().partition(",")[0] for label in shares.get_yticklabels()] == panel["mechanism"].tolist()


def test_settings_are_planned_once_each() -> None:
    assert [task.case for task in FIGURE.tasks(0, False)] == list(SETTINGS)
    assert {task.case for task in FIGURE.tasks(0, True)} < set(SETTINGS)
