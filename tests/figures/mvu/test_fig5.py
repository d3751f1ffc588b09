"""Figure 5 of the MVU paper.

Points under test: maps, variances and bounds, and the point of diminishing returns.
"""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.figures.drawing.style import print_style
from quietbits.figures.mvu.fig5 import FIGURE, draw_bits_out
from quietbits.figures.mvu.table_entries import certificates, sent_letters
from quietbits.shown import percent_up


@pytest.fixture(scope="module")
def picture(entries: pd.DataFrame) -> Figure:
    with print_style():
        return draw_bits_out(entries, 5.0)


def test_fig5_draws_variances_over_the_bound_and_marks_where_more_bits_stop_helping(picture: Figure, entries: pd.DataFrame) -> None:
    figure = picture
    axes = figure.axes[-1]
    drawn = [np.asarray(line.get_ydata()) for line in axes.lines]
    bold = {text.get_text() for text in axes.texts if text.get_fontweight() == "bold"}
    for _, designs in certificates(entries).groupby("epsilon"):
        assert any(np.array_equal(designs["mean_variance"], data) for data in drawn)
        assert any(np.all(data == designs["lower_bound"].max()) for data in drawn if data.size)
        first = designs.loc[designs["optimality_gap"] < 0.01, "optimality_gap"].iloc[0]
        assert percent_up(first) in bold
    # A table of one bit has a gap of its own among tables of one bit.
    assert {text.get_text().split(" | ")[0] for text in axes.texts if "|" in text.get_text()} == {"0.0001 %"}
    assert len(axes.texts) == 8


def test_letters_never_sent_are_left_out_of_the_maps(picture: Figure, entries: pd.DataFrame) -> None:
    table = entries[(entries["epsilon"] == 5.0) & (entries["bits_out"] == 4)]
    sent = sent_letters(table)
    # A basic optimum has at most twice as many letters as inputs, so at least 8 of 16 are spare.
    assert sent["letter_index"].nunique() <= 8
    assert sent["probability"].sum() == pytest.approx(4.0)
    assert picture.axes[3].images[0].get_array().shape == (4, sent["letter_index"].nunique())


def test_what_is_drawn_by_default() -> None:
    tasks = FIGURE.tasks(0, False)
    assert [(task.epsilon, task.bits_in, task.bits_out) for task in tasks] == [
        (item, 5, bits) for item in (1.0, 3.0, 5.0) for bits in range(1, 7)
    ]
