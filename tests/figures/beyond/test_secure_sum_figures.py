"""Figures of secure sums: what is drawn of the numbers."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.analysis.comparisons.binomial_slack import binomial_slack as slack_of_theorem
from quietbits.analysis.comparisons.cpsgd import compare_noise
from quietbits.analysis.comparisons.secure_sum import ComparisonSize, compare_secure_sums
from quietbits.figures.beyond import secure_sum_bits
from quietbits.figures.cpsgd import binomial_slack
from quietbits.figures.cpsgd import fig1 as cpsgd_fig1
from quietbits.figures.drawing.style import print_style

SMALL_SUMS = ComparisonSize(dimension=16, clients=(150, 300), bits=(10, 12), simulated_bits=(12,), repetitions=2)


@pytest.fixture(scope="module")
def noise() -> pd.DataFrame:
    return compare_noise([0.5, 1.0, 2.0, 5.0], 1e-6, [1.0, 0.01], [1.0, 0.1], seed=0)


@pytest.fixture(scope="module")
def slack() -> pd.DataFrame:
    frame = slack_of_theorem([100, 10**4, 10**6], [1.0, 0.01], 1e-6)
    return frame.assign(adjacency="replace-one", trust_model="secure-sum")


@pytest.fixture(scope="module")
def sums() -> pd.DataFrame:
    return compare_secure_sums(SMALL_SUMS, seed=0, workers=1, on_step=lambda *_: None)


@pytest.fixture(scope="module")
def pictures(noise: pd.DataFrame, slack: pd.DataFrame, sums: pd.DataFrame) -> dict[str, Figure]:
    with print_style():
        return {
            "cpsgd-fig1": cpsgd_fig1.draw_noise(noise),
            "binomial-slack": binomial_slack.draw_slack(slack),
            "secure-sum-bits": secure_sum_bits.draw_bits(sums),
        }


@pytest.mark.parametrize("name", ["cpsgd-fig1", "binomial-slack", "secure-sum-bits"])
def test_figures_fit_a_page_and_can_be_read(pictures: dict[str, Figure], name: str, check_page: Callable[..., None]) -> None:
    check_page(pictures[name], "replace-one adjacency, secure-sum trust model")


def test_cpsgd_fig1_draws_every_series_and_hollow_points_where_a_condition_binds(pictures: dict[str, Figure], noise: pd.DataFrame) -> None:
    figure = pictures["cpsgd-fig1"]
    for axes, accounting in zip(figure.axes, ("theorem", "exact"), strict=True):
        drawn = [np.asarray(line.get_ydata()).tolist() for line in axes.lines]
        hollow = {
            (float(x), float(y))
            for line in axes.lines
            if line.get_markerfacecolor() == "white"
            for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
        }
        own = noise[noise["accounting"] == accounting]
        for _, series in own.groupby("scale"):
            assert series["squared_error"].tolist() in drawn
        binding = own[own["condition_binds"]]
        assert hollow == set(zip(binding["epsilon"], binding["squared_error"], strict=True)) != set()
        analytic = noise[noise["accounting"] == "analytic"]
        assert analytic["squared_error"].tolist() in drawn
        assert analytic["certified_error"].tolist() in drawn


def test_the_slack_is_drawn_where_there_are_both_accounts(pictures: dict[str, Figure], slack: pd.DataFrame) -> None:
    left, right = pictures["binomial-slack"].axes
    drawn = [np.asarray(line.get_ydata()) for line in left.lines]
    for _, series in slack[slack["epsilon_exact"] <= 30].groupby("scale"):
        for column in ("epsilon", "epsilon_exact"):
            assert any(np.array_equal(series[column], data, equal_nan=True) for data in drawn)
        assert any(np.array_equal(series["ratio"], line.get_ydata(), equal_nan=True) for line in right.lines)
    # 100 trials are too few for the theorem at every scale, and one step of 1/100 of the sensitivity needs more than 100 for anything.
    assert slack.loc[slack["trials"] == 100, "epsilon"].isna().all()
    assert np.isinf(slack.loc[(slack["trials"] == 100) & (slack["scale"] == 0.01), "epsilon_exact"]).all()


def test_secure_sums_are_drawn_as_lines_and_points_beside_the_trusted_server(pictures: dict[str, Figure], sums: pd.DataFrame) -> None:
    figure = pictures["secure-sum-bits"]
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    assert legend == {*sums["series"], "trusted server, Gaussian", "fewest bits"}
    for axes, (_, panel) in zip(figure.axes, sums.groupby("clients"), strict=True):
        drawn = [np.asarray(line.get_ydata()).tolist() for line in axes.lines]
        for _, series in panel.groupby("series"):
            assert series["worst_squared_error"].tolist() in drawn
            assert series.loc[series["rounds"] > 0, "measured_squared_error"].tolist() in drawn
            assert series.loc[series["fewest_bits"], "worst_squared_error"].tolist() in drawn
        low, high = axes.get_ylim()
        central = panel["central_squared_error"].iloc[0]
        assert [central, central] in drawn
        assert low < central < high
