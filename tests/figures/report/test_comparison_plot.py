"""Plots choose their axis among the settings that vary, and state omissions."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from quietbits.figures.report.comparison_plot import (
    BITS,
    MARKS,
    MOST_PANELS,
    ComparisonPlot,
    Ruler,
    chosen_axis,
    draw_comparison,
    not_drawn,
    varied_columns,
)

AXES = ("epsilon", "clients")
NAMES = {"epsilon": "ε", "clients": "clients", "label": "mechanism", "kind": "kind", BITS: "bits per client"}
PLOT = ComparisonPlot(value="error", words="squared error", axis="epsilon", lines=("label",), panels=(), names=NAMES)


def rows_of(epsilons: tuple[float, ...] = (1, 2), labels: tuple[str, ...] = ("a", "b"), **columns: Any) -> pd.DataFrame:
    index = pd.MultiIndex.from_product([epsilons, labels], names=["epsilon", "label"])
    rows = index.to_frame(index=False).astype({"epsilon": float})
    return rows.assign(error=1 / rows["epsilon"], **columns)


def texts(svg: str) -> set[str]:
    """Return the texts of a figure, which matplotlib writes in comments above their outlines."""
    return set(re.findall(r"<!-- (.*?) -->", svg))


@pytest.mark.parametrize(
    ("columns", "axis"),
    [
        ({}, "epsilon"),
        ({"clients": [1, 2, 3, 4]}, "clients"),
        ({"clients": [1, 2, 1, 2]}, "epsilon"),
        ({"epsilon": 1.0, BITS: [1, 2, 3, 3]}, BITS),
        ({"epsilon": 1.0, BITS: 3}, "label"),
        ({"epsilon": 1.0, "clients": [1.0, np.nan, 2.0, 3.0]}, "label"),
    ],
)
def test_the_axis_is_what_varies_most_or_bits(columns: dict[str, Any], axis: str) -> None:
    assert chosen_axis(rows_of().assign(**columns), AXES, "label") == axis


def test_missing_counts_as_a_value_that_varies() -> None:
    rows = rows_of(kind=["x", None, None, None], clients=5)
    assert varied_columns(rows, ("kind", "clients", "epsilon", "absent")) == ("kind", "epsilon")


def test_every_line_ruler_and_axis_is_named() -> None:
    rows = rows_of(kind="x", ruler=0.1)
    drawn = draw_comparison(rows, replace(PLOT, rulers=(Ruler("ruler", "a reference", "--"),)), "plot")
    assert {"a", "b", "a reference", "ε", "squared error", "1", "2"} <= texts(drawn.svg)
    assert (drawn.left_out, not_drawn(drawn)) == ((), "")
    assert drawn.svg.startswith('<svg style="max-width: ')


def test_panels_have_titles_and_what_is_left_out_is_said() -> None:
    labels = tuple(f"m{place}" for place in range(len(MARKS) + 2))
    kinds = [f"kind {place}" for place in range(MOST_PANELS + 1)]
    rows = pd.concat([rows_of(labels=labels, kind=kind) for kind in kinds], ignore_index=True)
    rows["error"] += rows["label"].str[1:].astype(int)
    rows.loc[0, "error"] = 0.0
    drawn = draw_comparison(rows, replace(PLOT, panels=("kind",)), "plot")
    assert set(kinds[:-1]) <= texts(drawn.svg)
    assert kinds[-1] not in texts(drawn.svg)
    assert {*labels[: len(MARKS)]} <= texts(drawn.svg)
    assert not {*labels[len(MARKS) :]} & texts(drawn.svg)
    assert not_drawn(drawn) == (
        " Not drawn: 1 rows whose value is zero or missing, the 2 lines of the largest values and 1 of 7 combinations of kind."
    )


def test_rows_without_a_varied_number_have_a_line_each() -> None:
    drawn = draw_comparison(rows_of(epsilons=(1,)), replace(PLOT, axis="label"), "plot")
    assert {"a", "b", "squared error"} <= texts(drawn.svg)


def test_names_are_text() -> None:
    drawn = draw_comparison(rows_of(labels=("<script>", "$x_{")), PLOT, "plot")
    assert "<script" not in drawn.svg.replace("<!-- <script> -->", "")
