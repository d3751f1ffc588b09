"""All numbers of the figure of DP-REC's bytes are drawn and fit on a page."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.figures.dp_rec.communication import FIGURE, MARKS, draw_bytes
from quietbits.figures.drawing.marks import PAPER_VALUE
from quietbits.figures.drawing.style import print_style


@pytest.fixture(scope="module")
def frame(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> pd.DataFrame:
    return rows_of(FIGURE.tasks(11, False))


@pytest.fixture(scope="module")
def picture(frame: pd.DataFrame) -> Figure:
    with print_style():
        return draw_bytes(frame)


def test_every_number_of_the_table_is_drawn(frame: pd.DataFrame, picture: Figure) -> None:
    (axes,) = picture.axes
    schemes = {(mark.colour, mark.marker): scheme for scheme, mark in MARKS.items()}
    drawn = [((line.get_color(), line.get_marker()), float(line.get_xdata()[0])) for line in axes.lines]
    points = [(schemes[look], place) for look, place in drawn if look in schemes]
    assert points == list(zip(frame["scheme"], frame["total_gib"], strict=True))
    crosses = [place for look, place in drawn if look == (PAPER_VALUE.colour, PAPER_VALUE.marker)]
    assert pd.Series(crosses).dropna().tolist() == frame["paper_gib"].dropna().tolist()
    for text, (_, row) in zip(axes.texts, frame.iterrows(), strict=True):
        words = text.get_text().removeprefix("\N{DIVISION SIGN} ").replace("\N{NARROW NO-BREAK SPACE}", "").split(": ")
        total, *paper = words[-1].split(" ")
        assert float(total) == pytest.approx(row["total_gib"], rel=1e-3)
        assert paper == ([] if pd.isna(row["paper_gib"]) else [f"({row['paper_gib']:g})"])
        if len(words) == 2:
            # The printed numbers are rounded down, to whole numbers or to one decimal.
            assert 0 <= row["compression"] - float(words[0]) < (1 if row["compression"] >= 10 else 0.1)


def test_the_figure_fits_a_page_and_can_be_read(picture: Figure, check_page: Callable[..., None]) -> None:
    check_page(picture, "add-or-remove-one adjacency, central trust model")
    # No number overlaps another number, or the name of a training.
    (axes,) = picture.axes
    boxes = [text.get_window_extent() for text in (*axes.texts, *axes.get_yticklabels())]
    assert not any(box.overlaps(other) for place, box in enumerate(boxes) for other in boxes[:place])
