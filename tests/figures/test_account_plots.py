"""Tests of plots of accounts.

Points under test: solid lines for proven accounts, dashed lines for assumptions, and the given rounds.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from quietbits.analysis.catalogue.accounts import account_subject
from quietbits.design.contracts.registry import AccountSubject
from quietbits.figures.account_plots import draw_accounts, epsilon_by_rounds, shown_rounds, write_account_plot
from quietbits.figures.drawing.style import print_style
from quietbits.solvers.accounting.sampling import PoissonSampling, Sampling

BINOMIAL: dict[str, Any] = {"trials": 10**5, "probability": 0.5, "scale": 1.0, "dimension": 1, "l1": 1.0, "l2": 1.0, "linf": 1.0}
DP_REC: dict[str, Any] = {"clip_ratio": 0.545, "population": 100, "clients_per_round": 10, "index_bits": 42}


def subject(name: str, values: dict[str, Any], sampling: Sampling | None = None) -> AccountSubject:
    return account_subject(name, values, 1e-6, sampling=sampling)


def draw(item: AccountSubject, rounds: int, sampling: Sampling | None = None) -> Figure:
    reports = [item.report(1e-6, number, sampling) for number in shown_rounds(rounds)]
    asked = next(report for report in reports if report.privacy.rounds == rounds)
    with print_style():
        return draw_accounts(epsilon_by_rounds(reports), asked)


def lines(figure: Figure) -> dict[str, Any]:
    return {" ".join(line.get_label().split()): line for line in figure.axes[0].lines if not line.get_label().startswith("_")}


def caption(figure: Figure) -> str:
    return " ".join(figure.get_supxlabel().split())


def test_proven_accounts_are_solid_and_others_dashed() -> None:
    binomial = subject("binomial", BINOMIAL)
    figure = draw(binomial, 10)
    drawn = lines(figure)
    assert list(drawn)[:4] == ["Theorem 1 of cpSGD; not proven", "exact privacy loss", "Rényi divergences", "nearly Gaussian noise"]
    assert [line.get_linestyle() for line in drawn.values()] == ["--", "-", "-", "-", "None"]
    report = binomial.report(1e-6, 10)
    *_, guarantee = drawn.values()
    assert guarantee.get_xydata().tolist() == [[10, report.epsilon]]
    exact = drawn["exact privacy loss"]
    assert exact.get_xdata().tolist() == shown_rounds(10)
    assert exact.get_ydata()[exact.get_xdata().tolist().index(10)] == report.privacy.account("exact").bound.epsilon
    assert caption(figure).startswith("Binomial noise, 100000 trials")
    assert "after 10 rounds, replace-one adjacency, secure-sum trust model; every client takes part in every round." in caption(figure)


def test_assumptions_are_named_and_nothing_is_promised_without_them() -> None:
    figure = draw(replace(subject("dp-rec", DP_REC), adjacency="add-or-remove-one"), 1000)
    drawn = lines(figure)
    by_start = {name.split(";")[0]: (name, line.get_linestyle()) for name, line in drawn.items()}
    assert by_start["DP-REC, any bits and groups"] == (
        "DP-REC, any bits and groups; assumes: the other clients' messages count as samples of the prior",
        "--",
    )
    assert "not proven; assumes: " in by_start["DP-REC's theorem as printed"][0]
    # The account is proven only for another adjacency.
    assert by_start["the client's own messages"] == ("the client's own messages; replace-one adjacency", "-")
    assert by_start["DP-REC, any updates of other clients"][0].endswith("; replace-one adjacency")
    assert not any(name.startswith("guarantee") for name in drawn)
    assert "Nothing is proven without an assumption for 1000 rounds, add-or-remove-one adjacency, central trust model" in caption(figure)
    assert "10 of 100 clients drawn with replacement" in caption(figure)


def test_sampling_is_stated_and_infinite_epsilons_are_left_out() -> None:
    sampling = PoissonSampling(0.01)
    figure = draw(subject("laplace", {"epsilon": 0.1}, sampling), 5, sampling)
    assert "Poisson sampling with probability 0.01" in caption(figure)
    for line in lines(figure).values():
        heights = np.asarray(line.get_ydata(), dtype=float)
        assert np.isfinite(heights).all()
        assert (heights > 0).all()


def test_what_is_proven_whatever_others_hold_is_the_guarantee() -> None:
    figure = draw(subject("dp-rec", DP_REC), 10)
    drawn = lines(figure)
    assert drawn["DP-REC, any updates of other clients"].get_linestyle() == "-"
    assert "replace-one adjacency, central trust model" in caption(figure)
    assert "Nothing is proven" not in caption(figure)


@pytest.mark.parametrize(("name", "values"), [("binomial", BINOMIAL), ("dp-rec", DP_REC)])
def test_plots_fit_a_page(name: str, values: dict[str, Any], check_page: Any) -> None:
    check_page(draw(subject(name, values), 3))


def test_files_are_the_same_each_time(tmp_path: Path) -> None:
    """A pdf would contain a date; other tests write the other formats with `--plot`."""
    laplace = subject("laplace", {"epsilon": 0.1})
    for file in ("first.pdf", "second.pdf"):
        write_account_plot(laplace, 1e-6, 1, None, tmp_path / file)
    first, second = ((tmp_path / file).read_bytes() for file in ("first.pdf", "second.pdf"))
    assert first == second
    assert first.startswith(b"%PDF")


def test_another_suffix_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"plot must be a file that ends in .svg, .pdf, .png, got"):
        write_account_plot(subject("binomial", BINOMIAL), math.nan, 0, None, tmp_path / "plot.jpeg")
