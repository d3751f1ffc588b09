"""Figure 1 of the MVU paper has the designed tables, letters and certificates."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from quietbits.figures.drawing.directed_rounding import rounded_down, rounded_up
from quietbits.figures.drawing.style import print_style
from quietbits.figures.mvu.fig1 import FIGURE, draw_tables
from quietbits.shown import percent_up


@pytest.fixture(scope="module")
def picture(entries: pd.DataFrame) -> Figure:
    with print_style():
        return draw_tables(entries[entries["bits_out"] == 2])


def test_fig1_shows_the_tables_and_their_certificates(picture: Figure, entries: pd.DataFrame) -> None:
    figure = picture
    for axes, epsilon in zip(figure.axes, (1.0, 5.0), strict=False):
        table = entries[(entries["epsilon"] == epsilon) & (entries["bits_out"] == 2)]
        (image,) = axes.images
        assert image.origin == "lower"
        assert np.array_equal(image.get_array(), table["probability"].to_numpy().reshape(4, 4))
        shown = {text.get_text() for text in figure.findobj(Text)}
        certificate = table.iloc[0]
        assert rounded_up(certificate.mean_variance, 5) in shown
        assert rounded_down(certificate.lower_bound, 5) in shown
        assert {percent_up(certificate.optimality_gap), percent_up(certificate.letters_gap)} <= shown


def test_what_is_drawn_by_default() -> None:
    assert [(task.epsilon, task.bits_in, task.bits_out) for task in FIGURE.tasks(0, False)] == [
        (item, 3, 3) for item in (1.0, 3.0, 5.0, 10.0)
    ]
    assert FIGURE.tasks(0, True) == FIGURE.tasks(0, False)
