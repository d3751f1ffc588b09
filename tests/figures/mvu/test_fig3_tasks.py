"""Tests of the comparison of vector means: the stated measurements, and each panel's series."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from quietbits.analysis.sweeps.task import MeanTask
from quietbits.figures.mvu.fig3 import BITS_EPSILON, COMPARISONS, Comparison, arrange_vector_means, vector_mean_tasks, with_small_tables

Rows = Callable[[Sequence[Any]], pd.DataFrame]


def smaller(comparison: Comparison) -> Comparison:
    """Return a comparison with tables of one bit, and also of two bits in the second half."""
    one_bit, two_bits = (with_small_tables(comparison, bits_in=2, most_bits_out=bits) for bits in (1, 2))
    return replace(one_bit, by_bits=two_bits.by_bits) if comparison.name == "L2" else one_bit


# The second epsilon is that of the comparison by bits, so that both share their tables.
SMALL: dict[str, Any] = {
    "comparisons": tuple(smaller(comparison) for comparison in COMPARISONS),
    "epsilons": (1.0, BITS_EPSILON),
    "clients": 50,
    "dimension": 8,
    "repetitions": 10,
}


@pytest.fixture(scope="module")
def vector_means(rows_of: Rows) -> pd.DataFrame:
    return arrange_vector_means(rows_of(vector_mean_tasks(0, **SMALL)))


def test_the_vector_comparison_states_what_it_measured(vector_means: pd.DataFrame) -> None:
    frame = vector_means
    assert set(frame["adjacency"]) == {"replace-one"}
    assert set(frame["trust_model"]) == {"local"}
    assert (frame["realised_epsilon"] <= frame["epsilon"]).all()
    # The mean of 10 repetitions with 8 coordinates each is chi-square with 80 degrees of freedom: 5 sigma are 0.8. Predictions omit the
    # bias.
    unbiased = frame[frame["series"] != "plain random coding"]
    assert (np.abs(unbiased["mean_squared_error"] / unbiased["predicted_squared_error"] - 1) <= 0.8).all()
    tables = frame[frame["mechanism"] == "mvu"]
    assert (tables["certified_error"] <= tables["predicted_squared_error"] * 1.05).all()
    assert frame.loc[frame["mechanism"] != "mvu", "certified_error"].isna().all()
    assert (frame["central_error"] < frame["predicted_squared_error"]).all()


def test_each_panel_has_its_series_in_order(vector_means: pd.DataFrame) -> None:
    for comparison in SMALL["comparisons"]:
        own = vector_means[vector_means["comparison"] == comparison.name]
        by_epsilon, by_bits = (own[own["panel"] == panel] for panel in ("epsilon", "bits"))
        expected = [(series.label, epsilon) for series in comparison.by_epsilon for epsilon in SMALL["epsilons"]]
        assert list(zip(by_epsilon["series"], by_epsilon["epsilon"], strict=True)) == expected
        assert by_bits["series"].tolist() == [series.label for series in comparison.by_bits]
        assert set(by_bits["epsilon"]) == {BITS_EPSILON}
        assert all(series["bits_per_client"].is_monotonic_increasing for _, series in by_bits.groupby("series"))
        # Runs that occur in both panels are done once.
        both = by_epsilon.merge(by_bits, on=[name for name in own if name != "panel"])
        assert len(both) >= len(comparison.by_epsilon) - 1


def test_a_task_s_rows_are_those_of_the_sweep(vector_means: pd.DataFrame, rows_of: Rows) -> None:
    task = next(vector_mean_task for vector_mean_task in vector_mean_tasks(0, **SMALL) if vector_mean_task.series == "PrivUnitG")
    alone = [replace(task.of, repetition=repetition) for repetition in range(SMALL["repetitions"])]
    assert all(isinstance(item, MeanTask) for item in alone)
    rows = rows_of(alone)
    errors = rows.loc[rows["metric"] == "squared_error", "value"]
    row = vector_means[(vector_means["series"] == "PrivUnitG") & (vector_means["epsilon"] == task.of.task.epsilon)].iloc[0]
    assert row["mean_squared_error"] == pytest.approx(errors.mean(), rel=1e-12)
    assert row["standard_error"] == pytest.approx(errors.sem(), rel=1e-12)
