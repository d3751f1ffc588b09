"""A model's arrays as one vector.

Points under test: the update of a training, and the step by a mean of updates.
"""

import numpy as np
import pytest

from quietbits.analysis.federation.model_update import coordinates, update_vector, updated_arrays

BEFORE = {"weights": np.arange(6, dtype=np.float32).reshape(2, 3), "steps": np.array(7), "bias": np.array([1.0, -1.0])}


def test_the_update_moves_the_model_to_what_was_trained_except_for_counters() -> None:
    after = {name: array * 3 for name, array in BEFORE.items()}
    moved = updated_arrays(BEFORE, update_vector(BEFORE, after))
    assert coordinates(BEFORE) == 8
    for name in ("weights", "bias"):
        assert moved[name].dtype == BEFORE[name].dtype
        np.testing.assert_array_equal(moved[name], after[name])
    assert moved["steps"] == 7


def test_another_model_is_refused() -> None:
    with pytest.raises(ValueError, match="arrays must have the names and shapes"):
        update_vector(BEFORE, {**BEFORE, "bias": np.zeros(3)})
    with pytest.raises(ValueError, match=r"update must have 8 coordinates, got the shape \(7,\)"):
        updated_arrays(BEFORE, np.zeros(7))
