"""Factor by which Theorem 1 overstates epsilon, over trials and scales."""

import math

import pandas as pd
import pytest

from quietbits.figures.cpsgd.binomial_slack import SlackPoint
from quietbits.solvers.divergences.binomial_divergence import shifted_binomial_epsilon


def test_slack_over_trials_and_scales() -> None:
    points = [SlackPoint(seed=0, trials=trials, scale=scale, delta=1e-6) for scale in (1.0, 0.1) for trials in (1000, 10**4, 10**6)]
    table = pd.DataFrame([row for point in points for row in point.run()])
    assert len(table) == 6
    coarse = table[table["scale"] == 1.0]
    assert math.isnan(coarse["ratio"].iloc[0])
    assert coarse["ratio"].iloc[1] > coarse["ratio"].iloc[2] > 1.5
    fine = table[(table["scale"] == 0.1) & (table["trials"] == 10**6)]
    assert fine["epsilon_exact"].item() == shifted_binomial_epsilon(10**6, 0.5, 10, 1e-6)
    # A tenth of the scale with a hundred times as many trials has noise of the same variance.
    assert fine["noise_squared_error"].item() == pytest.approx(coarse["noise_squared_error"].iloc[1])
    assert set(table["adjacency"] + table["trust_model"]) == {"replace-onesecure-sum"}


def test_a_scale_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match=r"scale must divide the sensitivity 1, got 0\.3"):
        SlackPoint(seed=0, trials=1000, scale=0.3, delta=1e-6).run()
