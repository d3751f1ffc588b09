"""The figure of Theorem 1's slack is drawn where both accounts exist."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.figures.cpsgd.binomial_slack import SlackPoint, draw_slack
from quietbits.figures.drawing.style import print_style


@pytest.fixture(scope="module")
def slack(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> pd.DataFrame:
    return rows_of([SlackPoint(seed=0, trials=trials, scale=scale, delta=1e-6) for scale in (1.0, 0.01) for trials in (100, 10**4, 10**6)])


@pytest.fixture(scope="module")
def picture(slack: pd.DataFrame) -> Figure:
    with print_style():
        return draw_slack(slack)


def test_the_slack_is_drawn_where_there_are_both_accounts(picture: Figure, slack: pd.DataFrame) -> None:
    left, right = picture.axes
    drawn = [np.asarray(line.get_ydata()) for line in left.lines]
    for _, series in slack[slack["epsilon_exact"] <= 30].groupby("scale"):
        for column in ("epsilon", "epsilon_exact"):
            assert any(np.array_equal(series[column], data, equal_nan=True) for data in drawn)
        assert any(np.array_equal(series["ratio"], line.get_ydata(), equal_nan=True) for line in right.lines)
    # 100 trials are too few for the theorem at every scale, and a step of 1/100 of the sensitivity needs more than 100 trials in any
    # account.
    assert slack.loc[slack["trials"] == 100, "epsilon"].isna().all()
    assert np.isinf(slack.loc[(slack["trials"] == 100) & (slack["scale"] == 0.01), "epsilon_exact"]).all()
