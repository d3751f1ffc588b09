"""Winners of the map keep their budgets, and are the best rows."""

from itertools import pairwise

import pandas as pd
import pytest

from quietbits.figures.frequencies.regimes import HISTOGRAM, PROBLEM, SHUFFLED, regime_points, winners

BUDGETS = (20.0, 1000.0, 1e5)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    points = regime_points(0, (2000,), (64, 500), (1.0,), BUDGETS)
    return pd.DataFrame([row for point in points for row in point.run()])


def test_budgets_are_kept_and_more_bits_do_no_harm(rows: pd.DataFrame) -> None:
    assert (rows["bits_per_client"] <= rows["budget"]).all()
    errors = rows.pivot_table(index=["categories", "mechanism"], columns="budget", values="predicted_squared_error")
    for fewer, more in pairwise(BUDGETS):
        both = errors[[fewer, more]].dropna()
        # Among sketches within a factor of 1.05, the largest error decides.
        assert (both[more] <= 1.06 * both[fewer]).all()


def test_no_mechanism_is_better_than_the_bound(rows: pd.DataFrame) -> None:
    # The errors of histograms do not depend on the data.
    histograms = rows[rows["kind"] == HISTOGRAM]
    assert (histograms["predicted_squared_error"] > histograms["lower_bound"]).all()
    # Discrete Laplace noise has less error than the reference, a trusted server's Gaussian noise.
    gaussian = histograms[~histograms["mechanism"].isin(["distributed-discrete-laplace", "split-and-mix"])]
    assert (gaussian["predicted_squared_error"] > 0.99 * gaussian["central_squared_error"]).all()
    assert (histograms["predicted_squared_error"] > 0.2 * histograms["central_squared_error"]).all()


def test_the_winner_is_the_best_row(rows: pd.DataFrame) -> None:
    best = winners(rows).set_index(PROBLEM)
    assert len(best) == 2 * len(BUDGETS)
    least = rows.groupby(PROBLEM)["predicted_squared_error"].min()
    assert best["predicted_squared_error"].to_dict() == least.to_dict()
    assert (best["next_kind_ratio"].dropna() >= 1).all()


def test_kinds_follow_the_bits(rows: pd.DataFrame) -> None:
    kinds = winners(rows).set_index(["categories", "budget"])["kind"].to_dict()
    assert kinds == {
        (64, 20.0): SHUFFLED,
        (64, 1000.0): HISTOGRAM,
        (64, 1e5): HISTOGRAM,
        (500, 20.0): SHUFFLED,
        (500, 1000.0): SHUFFLED,
        (500, 1e5): HISTOGRAM,
    }
