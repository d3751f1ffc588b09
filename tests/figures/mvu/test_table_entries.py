"""Tests of tables entry by entry: the designed tables, and bounds that agree."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from quietbits.design.tables.mvu import design_mvu
from quietbits.figures.mvu.table_entries import DesignPoint, certificates


@pytest.fixture(scope="module")
def entries(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> pd.DataFrame:
    return rows_of([DesignPoint(seed=0, epsilon=epsilon, bits_in=2, bits_out=bits) for epsilon in (1.0, 5.0) for bits in (1, 2, 4)])


def test_entries_are_the_designed_tables(entries: pd.DataFrame) -> None:
    assert len(entries) == 2 * 4 * (2 + 4 + 16)
    table = design_mvu(1.0, 2, 2, seed=0)
    rows = entries[(entries["epsilon"] == 1.0) & (entries["bits_out"] == 2)]
    assert np.array_equal(rows["probability"].to_numpy().reshape(4, 4), table.probabilities)
    assert np.array_equal(rows["letter"].to_numpy()[:4], [float(letter) for letter in table.alphabet])
    mean = (rows["probability"] * rows["letter"]).groupby(rows["input_index"]).sum()
    assert mean.to_numpy() == pytest.approx([0.0, 1 / 3, 2 / 3, 1.0], abs=1e-12)
    spread = (rows["probability"] * (rows["letter"] - rows["input"]) ** 2).groupby(rows["input_index"]).sum()
    assert spread.to_numpy() == pytest.approx(rows["input_variance"].to_numpy()[::4], rel=1e-9)
    assert spread.mean() == pytest.approx(rows["mean_variance"].iloc[0], rel=1e-9)


def test_bounds_of_every_number_of_bits_agree_and_more_bits_do_not_hurt(entries: pd.DataFrame) -> None:
    for _, designs in certificates(entries).groupby("epsilon"):
        assert (designs["mean_variance"] >= designs["lower_bound"]).all()
        assert designs["lower_bound"].to_numpy() == pytest.approx(designs["lower_bound"].iloc[0], rel=1e-5)
        assert (designs["mean_variance"].diff().dropna() <= 1e-6 * designs["mean_variance"].iloc[0]).all()
        assert designs["optimality_gap"].iloc[-1] < 1e-6
    assert (entries["realised_epsilon"] <= entries["epsilon"]).all()
    assert set(entries["adjacency"] + entries["trust_model"]) == {"replace-onelocal"}


def test_a_table_s_certificate_is_one_row(entries: pd.DataFrame) -> None:
    tables = certificates(entries)
    assert tables[["epsilon", "bits_out"]].to_numpy().tolist() == [[epsilon, bits] for epsilon in (1.0, 5.0) for bits in (1, 2, 4)]
    assert "probability" not in tables
