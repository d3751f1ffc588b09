"""By how much Theorem 1 of cpSGD overstates what binomial noise reveals."""

import math
from typing import Any

import pytest

from quietbits.analysis.comparisons.binomial_slack import SlackPoint
from quietbits.solvers.divergences.binomial_divergence import shifted_binomial_epsilon


def row(trials: int, scale: float) -> dict[str, Any]:
    (found,) = SlackPoint(seed=0, trials=trials, scale=scale, delta=1e-6).run()
    return found


def test_slack_over_trials_and_scales() -> None:
    assert math.isnan(row(1000, 1.0)["ratio"])
    coarse, least = row(10**4, 1.0), row(10**6, 1.0)
    assert coarse["ratio"] > least["ratio"] > 1.5
    fine = row(10**6, 0.1)
    assert fine["epsilon_exact"] == shifted_binomial_epsilon(10**6, 0.5, 10, 1e-6)
    # A scale of a tenth with a hundred times as many trials is noise of the same variance.
    assert fine["squared_error"] == pytest.approx(coarse["squared_error"])
    with pytest.raises(ValueError, match=r"scale must divide the sensitivity 1, got 0\.3"):
        row(1000, 0.3)
