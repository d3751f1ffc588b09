"""The page and the figures of a leaderboard show every row; its table sorts and searches in a browser without network."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

import quietbits
from quietbits.analysis.plan_grid.leaderboard import PROVEN_BOUND, TRUSTED_SERVER, judged, read_board
from quietbits.figures.drawing.style import print_style
from quietbits.figures.planner import leaderboard_page
from quietbits.figures.planner.leaderboard_figure import draw_tasks, draw_trust_models
from quietbits.figures.planner.leaderboard_page import FIRST_ROWS, leaderboard_parts, rows_table, standings_table, write_leaderboard_page
from quietbits.tests.browser import NARROW, WIDE, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

RESULTS = Path(quietbits.__file__).parent / "docs" / "leaderboard" / "results.csv"


@pytest.fixture(scope="module")
def board() -> pd.DataFrame:
    """Return the rows of six tasks of the stored leaderboard."""
    rows = read_board(RESULTS)
    return rows[rows["task"].isin(rows["task"].unique()[:6])]


@pytest.fixture(scope="module")
def page(board: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("board") / "report.html"
    write_leaderboard_page(board, path)
    return path


def test_the_page_has_every_task_mechanism_and_row(board: pd.DataFrame, page: Path) -> None:
    text, rows = page.read_text(encoding="utf-8"), judged(board)
    parts = leaderboard_parts(board)
    assert parts.winners.count("<tr") - 1 == 6
    assert parts.standings.count("<tr") - 1 == rows["mechanism"].nunique()
    assert parts.rows.count("<tr") - 1 == len(rows)
    assert parts.rows.count('class="best"') == rows["recommended"].sum()
    assert all(part in text for part in (parts.winners, parts.standings, parts.rows))
    assert f"6 tasks, {rows['mechanism'].nunique()} mechanisms, {len(rows)} rows" in text
    assert "src=" not in text


def test_guarantees_are_rounded_up(board: pd.DataFrame) -> None:
    rows = judged(board).assign(epsilon=1.00001)
    cells = [row.cells[7] for row in rows_table(rows, lambda _: None).rows]
    assert {cell.text.partition(",")[0] for cell in cells} == {"ε ≤ 1.001"}
    assert {cell.note for cell in cells} == {"replace-one", "add-or-remove-one"}


def test_names_of_other_packages_are_text(board: pd.DataFrame) -> None:
    rows = judged(board.assign(provider="<b>&co"))
    for table in (rows_table(rows, lambda _: None).html(), standings_table(rows, lambda _: None).html()):
        assert "<b>&co" not in table
        assert "&lt;b&gt;&amp;co" in table


def test_a_long_board_shows_its_first_tasks(board: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaderboard_page, "MOST_TASKS", 2)
    parts = leaderboard_parts(board)
    assert parts.winners.count("<tr") - 1 == 2
    assert parts.headline[0].endswith("; the page shows the first 2 tasks")
    with pytest.raises(ValueError, match="board must have a row with a mechanism, got none"):
        leaderboard_parts(board.assign(mechanism=None))


def test_a_panel_for_each_task_has_a_point_for_each_row(board: pd.DataFrame) -> None:
    rows = judged(board)
    with print_style():
        figure = draw_tasks(rows)
    panels = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title(loc="left").partition(":")[0] for axes in panels] == ["1", "2", "3", "4", "5", "6"]
    for axes, (_, task) in zip(panels, rows.groupby("number"), strict=True):
        lines = [line for line in axes.get_lines() if line.get_marker() not in ("", "None", None) and line.get_markersize() < 10]
        hollow = [line for line in lines if line.get_markerfacecolor() == "none"]
        assert sum(len(line.get_xdata()) for line in lines) == len(task)
        assert sum(len(line.get_xdata()) for line in hollow) == (task["reference"] == TRUSTED_SERVER).sum()
        large = [line for line in axes.get_lines() if line.get_markersize() == 10]
        for marker, marked in (("o", task["recommended"]), ("x", task["recommended"] & task["zero_wins"])):
            assert sum(len(line.get_xdata()) for line in large if line.get_marker() == marker) == marked.sum()


def test_a_panel_for_each_trust_model_names_its_mechanisms_by_ratio(board: pd.DataFrame) -> None:
    rows = judged(board)
    with print_style():
        figure = draw_trust_models(rows)
    panels, legends = figure.axes[::2], figure.axes[1::2]
    assert [axes.get_title(loc="left") for axes in panels] == ["local", "shuffled", "secure-sum", "central"]
    for axes, beside in zip(panels, legends, strict=True):
        served = rows[rows["trust_model"] == axes.get_title(loc="left")]
        medians = served.groupby("mechanism")["ratio"].median()
        names = [text.get_text() for text in beside.get_legend().get_texts()]
        assert set(names) == set(medians.index)
        assert medians[names].is_monotonic_increasing
    assert PROVEN_BOUND in set(rows["reference"])


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_table_searches_and_sorts(browser: "Browser", board: pd.DataFrame, page: Path, width: int) -> None:
    rows = judged(board)
    with visit(browser, page, width=width) as seen:
        assert seen.beyond_the_window() == []
        shown = seen.page.locator(".board.searchable tbody tr:visible")
        assert shown.count() == FIRST_ROWS
        seen.page.get_by_role("button", name="Show all").click()
        assert shown.count() == len(rows)
        seen.page.get_by_role("searchbox").fill("items shuffled")
        served = rows[rows["task"].str.contains("items") & (rows["trust_model"] == "shuffled")]
        assert sorted(shown.locator("th").evaluate_all("cells => cells.map(cell => cell.dataset.order)")) == sorted(served["mechanism"])
        seen.page.get_by_label("recommended only").check()
        assert shown.count() == served["recommended"].sum()
        seen.page.get_by_role("searchbox").fill("")
        seen.page.locator(".board.searchable").get_by_role("button", name="Error over reference").click()
        ratios = [float(text) for text in shown.locator("td:nth-child(4)").evaluate_all("cells => cells.map(cell => cell.dataset.order)")]
        assert ratios == sorted(rows.loc[rows["recommended"], "ratio"])


def test_search_is_part_of_long_tables_alone(board: pd.DataFrame) -> None:
    table = rows_table(judged(board), lambda name: f"{name}.html")
    assert "<form" in table.html()
    assert 'href="mvu.html"' in table.html()
    assert "<form" not in replace(table, searchable=False).html()


def test_a_figure_writes_the_names_of_other_packages_as_they_are(board: pd.DataFrame) -> None:
    task = board[board["task"] == board["task"].iloc[0]]
    name = "<b>$x^{$"
    parts = leaderboard_parts(task.assign(mechanism=task["mechanism"].replace("mvu", name)))
    assert f"local: {name} wins 1 of 1 task, with 1 different winner" in parts.headline
    assert parts.headline[0].startswith("1 task, ")
    assert name not in parts.rows + parts.winners + parts.standings + parts.trust_figure


def test_a_task_without_a_reference_has_no_panel(board: pd.DataFrame, tmp_path: Path) -> None:
    first = board["task"] == board["task"].iloc[0]
    without = board.assign(ratio_to_bound=board["ratio_to_bound"].mask(first), ratio_to_central=board["ratio_to_central"].mask(first))
    with print_style():
        figure = draw_tasks(judged(without))
    assert [axes.get_title(loc="left")[:1] for axes in figure.axes if axes.axison] == ["2", "3", "4", "5", "6"]
    write_leaderboard_page(without[first], tmp_path / "page.html")
    assert "<figure" not in (tmp_path / "page.html").read_text(encoding="utf-8")
    # A table of a task without a bound has no numbers in the column, and so no type.
    assert not judged(board[first].assign(central_error=None))["zero_wins"].any()
