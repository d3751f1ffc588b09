"""The figure of DP-REC's bytes: every number is drawn, and it fits a page."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.figures.dp_rec.communication import FIGURE, MARKS, draw_bytes
from quietbits.figures.drawing.style import print_style


@pytest.fixture(scope="module")
def frame(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> pd.DataFrame:
    return rows_of(FIGURE.tasks(11, False))


@pytest.fixture(scope="module")
def picture(frame: pd.DataFrame) -> Figure:
    with print_style():
        figure = draw_bytes(frame)
        figure.draw_without_rendering()
    return figure


def test_every_number_of_the_table_is_drawn(frame: pd.DataFrame, picture: Figure) -> None:
    (axes,) = picture.axes
    points = {mark.colour: [] for mark in MARKS}
    for line in axes.lines:
        if line.get_marker() not in ("", "None"):
            points[line.get_color()].append(float(line.get_xdata()[0]))
    sent, public = (frame[frame["first_model"] == kind] for kind in ("sent", "public"))
    assert list(points.values()) == [public["bytes_up"].tolist(), public["bytes_down"].tolist(), sent["bytes_down"].tolist()]
    lines = [line.get_xdata()[0] for line in axes.lines if len(set(line.get_xdata())) == 1 and len(line.get_xdata()) == 2]
    assert lines == public["uncompressed_bytes"].tolist()
    numbers = [float(text.get_text().removeprefix("\N{DIVISION SIGN} ").replace("\N{NARROW NO-BREAK SPACE}", "")) for text in axes.texts]
    factors = np.column_stack([public["compression_up"], public["compression_down"], sent["compression_down"]]).ravel()
    # Rounded down, to whole numbers or to one decimal.
    assert all(0 <= factor - number < (1 if factor >= 10 else 0.1) for number, factor in zip(numbers, factors, strict=True))


def test_the_figure_fits_a_page_and_can_be_read(picture: Figure, check_page: Callable[..., None]) -> None:
    check_page(picture, "add-or-remove-one adjacency, central trust model")
    # No number lies on another, or on the name of a training.
    (axes,) = picture.axes
    boxes = [text.get_window_extent() for text in (*axes.texts, *axes.get_yticklabels())]
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])
