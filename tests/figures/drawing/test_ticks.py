"""Logarithmic axes have at least three labels, at round numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter

from quietbits.figures.drawing.style import print_style, solve_layout
from quietbits.figures.drawing.ticks import LEAST_LABELS, logarithmic_ticks

TIMES = "\N{MULTIPLICATION SIGN}"


@given(st.floats(-12, 12), st.floats(0.01, 20), st.integers(3, 12))
def test_there_are_at_least_three_ticks_within_the_axis_in_order(exponent: float, decades: float, most: int) -> None:
    low, high = 10**exponent, 10 ** (exponent + decades)
    ticks = logarithmic_ticks(low, high, most)
    assert ticks == sorted(set(ticks))
    assert len(ticks) >= 2
    if decades > 0.05:
        assert len(ticks) >= LEAST_LABELS or decades >= LEAST_LABELS
    assert low * (1 - 1e-6) <= ticks[0] < ticks[-1] <= high * (1 + 1e-6)
    assert len(ticks) <= max(most, 9)


@pytest.mark.parametrize(
    ("ends", "labels"),
    [
        ((0.0008, 0.3), ["0.001", "0.01", "0.1"]),
        ((3e-7, 2e-4), ["10⁻⁶", "10⁻⁵", "10⁻⁴"]),
        ((0.04, 0.6), ["0.05", "0.1", "0.2", "0.5"]),
        ((90.0, 60_000.0), ["100", "1,000", "10,000"]),
        ((2e5, 3e6), [f"2{TIMES}10⁵", f"5{TIMES}10⁵", "10⁶", f"2{TIMES}10⁶"]),
        ((2.1, 2.9), ["2.2", "2.4", "2.6", "2.8"]),
    ],
)
def test_labels_of_an_axis_are_all_plain_or_all_powers(ends: tuple[float, float], labels: list[str]) -> None:
    with print_style():
        figure = Figure(figsize=(7.0, 3.0), layout="constrained")
        axes = figure.subplots()
        axes.set(yscale="log", ylim=ends)
        solve_layout(figure)
        figure.draw_without_rendering()
    assert [label.get_text() for label in axes.get_yticklabels()] == labels


def test_places_that_a_figure_chose_and_axes_of_other_bases_stay() -> None:
    with print_style():
        figure = Figure(layout="constrained")
        fixed, binary = figure.subplots(1, 2)
        fixed.set(xscale="log", xlim=(1, 100))
        fixed.xaxis.set_major_locator(FixedLocator([3, 30]))
        fixed.xaxis.set_minor_formatter(NullFormatter())
        binary.set_xscale("log", base=2)
        binary.set_xlim(1, 16)
        solve_layout(figure)
        figure.draw_without_rendering()
    assert fixed.get_xticks().tolist() == [3, 30]
    assert {1.0, 2.0, 4.0, 8.0} <= set(np.round(binary.get_xticks(), 9).tolist())
