"""The figure of DP-REC's accounts has its series, and fits a page."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.figures.dp_rec import references as references
from quietbits.figures.dp_rec.accounting import FIGURE, MARKS, NOISE_LOOK, draw_accounts, reference_table
from quietbits.figures.drawing.style import print_style


@pytest.fixture(scope="module")
def frame(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> pd.DataFrame:
    # The setting has enough bits for a small clip ratio, but not for its own. A stand-in replaces the slow account of sampled Gaussian
    # noise, which is drawn in the same way.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(references, "gaussian_reference_epsilon", lambda noise_multiplier, *_: 3 / noise_multiplier)
        setting = references.PublishedSetting("few bits", 50, 5, 3, 1.6, 1.0, index_bits=17, noise_multiplier=2.5, noise_rounds=2)
        points = [references.ReferencePoint(seed=0, published=setting, account=account) for account in references.ACCOUNTS]
        return reference_table(rows_of(points))


@pytest.fixture(scope="module")
def picture(frame: pd.DataFrame) -> Figure:
    again = frame.assign(dataset="enough bits", epsilon=frame["epsilon"].replace(np.inf, 2.0))
    with print_style():
        return draw_accounts(pd.concat([frame, again]))


def test_too_few_bits_are_infinite_and_drawn_hollow(frame: pd.DataFrame, picture: Figure) -> None:
    few = frame["account"].isin(["DP-REC, published", "DP-REC, conservative"])
    assert np.isinf(frame["epsilon"][few]).all()
    assert np.isfinite(frame["epsilon"][~few]).all()
    left = picture.axes[0]
    points = [line for line in left.lines if line.get_marker() != "None"]
    shown = np.where(few, frame["epsilon_at_minimum_bits"], frame["epsilon"]).tolist()
    assert [line.get_xdata()[0] for line in points[:6]] == shown
    assert [line.get_markerfacecolor() == "white" for line in points[:6]] == few.tolist()
    assert not any(line.get_markerfacecolor() == "white" for line in points[6:])
    notes = [text.get_text() for text in left.texts]
    assert notes == [f"{frame['minimum_bits'].iloc[0]} bits"]


def test_every_account_is_drawn_in_both_panels_and_in_the_legend(frame: pd.DataFrame, picture: Figure) -> None:
    for axes in picture.axes:
        drawn = [(line.get_color(), line.get_marker()) for line in axes.lines if line.get_marker() != "None"]
        assert drawn == 2 * [(mark.colour, mark.marker) for mark in MARKS.values()]
        assert axes.get_xscale() == "log"
    right = [line.get_xdata()[0] for line in picture.axes[1].lines if line.get_marker() != "None"]
    assert right == 2 * frame["target_noise_multiplier"].tolist()
    noise = [line.get_xdata()[0] for line in picture.axes[1].lines if line.get_linewidth() == NOISE_LOOK["linewidth"]]
    assert noise == [2.5] * 2
    assert len(picture.legends[0].get_texts()) == len(MARKS) + 2


def test_what_is_drawn_by_default() -> None:
    points = FIGURE.tasks(0, False)
    assert [point.published for point in points[::6]] == list(references.PUBLISHED_SETTINGS)
    assert [point.account for point in points[:6]] == list(MARKS)
