"""Tests of the projection onto the simplex: optimality conditions, and known cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietbits.solvers.decoders.simplex_projection import project_onto_simplex


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30), st.sampled_from([1.0, 0.25, 40.0]))
def test_the_optimality_conditions_hold(values: list[float], total: float) -> None:
    projection = project_onto_simplex(values, total)
    assert (projection >= 0).all()
    assert projection.sum() == pytest.approx(total, rel=1e-9, abs=1e-9)
    # The projection lowers all positive coordinates by the same shift, and zero coordinates are at most that shift.
    lowered = np.array(values) - projection
    shift = lowered[projection > 0].mean()
    np.testing.assert_allclose(lowered[projection > 0], shift, atol=1e-9)
    assert (np.array(values)[projection == 0] <= shift + 1e-9).all()
    np.testing.assert_allclose(project_onto_simplex(projection, total), projection, atol=1e-9)


def test_large_values_lose_no_digits() -> None:
    np.testing.assert_allclose(project_onto_simplex(np.array([0.7, 0.5, -0.1]) + 2**20), [0.6, 0.4, 0.0], atol=1e-9)
    assert project_onto_simplex(np.zeros(5)).tolist() == [0.2] * 5


def test_rows_are_projected_one_by_one_each_onto_its_own_total() -> None:
    rows, totals = np.random.default_rng(0).normal(size=(6, 5)), np.array([0.0, 1e-3, 0.5, 1.0, 3.0, 20.0])
    together = project_onto_simplex(rows, totals)
    np.testing.assert_allclose(together.sum(axis=1), totals, atol=1e-12)
    for row, total, projected in zip(rows, totals, together, strict=True):
        np.testing.assert_array_equal(project_onto_simplex(row, float(total)), projected)


@pytest.mark.parametrize("total", [-0.1, np.nan, 1e101])
def test_bad_totals_are_refused(total: float) -> None:
    with pytest.raises(ValueError, match=r"total must be from 0 to 1e\+100, got"):
        project_onto_simplex([0.5], total)


@pytest.mark.parametrize("values", [[], 0.5, [np.nan], [np.inf, 0.0]])
def test_bad_values_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="values must be finite numbers, shape"):
        project_onto_simplex(values)
