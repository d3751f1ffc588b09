"""Tests of the data of the figures of linear compression.

Points under test: measured and predicted errors, and omitted rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from quietbits.figures.linear_compression import bits, rate
from quietbits.figures.linear_compression.layers import ARRANGEMENTS, layer_points
from quietbits.figures.linear_compression.sketched_sums import SketchPoint

BASE = SketchPoint(seed=0, dimension=650, clients=30, noise_multiplier=0.5)


def test_measured_errors_are_those_that_are_predicted(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> None:
    # The average of ten rounds is within five standard errors.
    result = rows_of([replace(BASE, rate=5.0, repetition=k) for k in range(10)])
    spread = result["squared_error"].std() / np.sqrt(len(result))
    assert abs(result["squared_error"].mean() - result["predicted_squared_error"].mean()) < 5 * spread
    assert result["predicted_compression"].mean() == pytest.approx(result["compression"].mean(), rel=0.5)


def test_too_few_bits_leave_a_reason_and_no_point(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> None:
    result = rows_of([replace(BASE, bits=4, clients=3000), BASE])
    assert "bits must be at least" in result["reason"].iloc[0]
    assert len(rate.FIGURE.table(result)) == 1


def test_arrangements_of_layers_have_one_size(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> None:
    result = rows_of(layer_points(0, hidden=(20,), clients=20, rates=(4.0,), kept=(1.0, 0.1), repetitions=3))
    sizes = result.groupby("arrangement")["sketch_dimension"].max()
    assert set(sizes.index) == set(ARRANGEMENTS)
    # Each layer rounds up to a row of buckets.
    assert sizes.max() - sizes.min() <= 5 * 2 + 5
    kept_all = result[result["kept"] == 1]
    assert (kept_all["thresholding_squared_error"] == 0).all()
    dropped = result[result["kept"] < 1]
    assert (dropped["thresholding_squared_error"] > 0).all()
    assert (dropped["thresholding_squared_error"] <= dropped["thresholding_bound"]).all()


@pytest.mark.parametrize("changes", [{"epsilon": 1.0}, {"noise_multiplier": None}])
def test_noise_is_given_in_one_way(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="epsilon must be given where noise_multiplier is not"):
        replace(BASE, **changes).run()


def test_pairs_whose_noise_hides_too_little_are_not_compared(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> None:
    frame = bits.arrange_bits(rows_of([replace(BASE, bits=b, rate=r) for b in (6, 14, 16) for r in (1.0, 4.0)]))
    coarse = frame["bits"] == 6
    assert (frame[coarse]["realised_epsilon"] > bits.MOST_EPSILON * frame["realised_epsilon"].min()).all()
    assert frame[coarse]["ratio"].isna().all()
    assert frame[~coarse]["ratio"].min() == 1
    assert not frame[coarse]["cheapest"].any()
