"""The figure of both gaps of tables over epsilon and bits out."""

import numpy as np
import pandas as pd
import pytest

from quietbits.figures.beyond.letters_gap import FIGURE, LEAST_SHOWN, TOLERANCE, draw_gaps
from quietbits.figures.drawing.style import print_style


def test_both_gaps_are_drawn_and_the_gap_of_as_many_bits_is_proven() -> None:
    tasks = [task for task in FIGURE.tasks(0, True) if task.epsilon in (1.0, 5.0)]

    table = FIGURE.table(pd.DataFrame([row for task in tasks for row in task.run()]))
    assert sorted(table["bits_out"].unique()) == [1, 2, 3]
    assert (table["letters_gap"] <= np.minimum(table["optimality_gap"], TOLERANCE) + 1e-12).all()
    # A table of one bit is the best of one bit, and more bits help.
    one_bit = table[table["bits_out"] == 1]
    assert (one_bit["letters_gap"] < 1e-8).all()
    assert (one_bit["optimality_gap"] > 0.02).all()
    with print_style():
        figure = draw_gaps(table)
    for axes, (_, panel) in zip(figure.axes, table.groupby("bits_out"), strict=True):
        panel = panel.sort_values("epsilon")
        same, unlimited = (np.asarray(line.get_ydata(), dtype=float) for line in axes.lines)
        for drawn, bound in ((same, panel["letters_gap"]), (unlimited, panel["optimality_gap"])):
            factor = 1 / (1 - bound.to_numpy())
            assert drawn + 1 == pytest.approx(np.maximum(factor, 1 + LEAST_SHOWN))
    assert figure.axes[0].yaxis.get_major_formatter().format_ticks([1.0, 9.0]) == ["2 times", "10 times"]
