"""The page of an index.

Points under test: the facts of the tables' certificates, no external resources, and a limited length.
"""

import re
from pathlib import Path

import pytest

from quietbits.analysis.sweeps.run import TaskFailure
from quietbits.analysis.table_grid.run import design_tables
from quietbits.analysis.table_grid.spec import TableGrid
from quietbits.analysis.table_grid.task import TableTask
from quietbits.design.tables.file import read_table
from quietbits.figures.report import results_page, table_index
from quietbits.figures.report.table_index import table_index_html, write_table_index
from quietbits.shown import in_figures


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return design_tables(TableGrid(epsilon=(1.0, 2.0), bits_in=(1,), bits_out=(1,), metric=(None, "l1")), tmp_path_factory.mktemp("tables"))


def rows_of(page: str) -> list[str]:
    return re.findall(r"<tr[^>]*><th scope=\"row\" data-order.*?</tr>", page, flags=re.DOTALL)


def test_the_page_says_what_the_tables_are(index: Path) -> None:
    page = write_table_index(index)
    assert page == index.with_name("index.html")
    text = page.read_text(encoding="utf-8")
    names = ("epsilon_1_bits_1_1", "epsilon_1_bits_1_1_l1", "epsilon_2_bits_1_1", "epsilon_2_bits_1_1_l1")
    for name, row in zip(names, rows_of(text), strict=True):
        table = read_table(index.with_name(f"{name}.json"))
        assert f'href="{name}.json"' in row
        for number in (table.certificate.mean_variance, table.certificate.lower_bound):
            assert f">{in_figures(number, 4)}<" in row
        assert f">{table.epsilon:g}<" in row
        assert f">{table.metric or 'none'}<" in row
    links = {f"{name}.json" for name in names}
    assert set(re.findall(r'(?:src|href)="(?!#)([^"]*)"', text)) == {"index.parquet", *links}
    assert not re.findall(r"https?://(?!www\.w3\.org)|@import|<link", text)
    assert "Guarantees: replace-one adjacency, local trust model, epsilon 1 and 2, delta 0." in text


def test_tables_of_other_metrics_are_not_compared_in_silence(index: Path, tmp_path: Path) -> None:
    assert "Tables differ in metric (none and l1)" in table_index_html(index)
    alone = design_tables(TableGrid(epsilon=(1.0, 2.0), bits_in=(1,), bits_out=(1,)), tmp_path)
    assert "differ in metric" not in table_index_html(alone)
    assert "metric none" in table_index_html(alone)


def test_the_plot_and_the_sentence_are_those_of_the_tables(index: Path) -> None:
    text = table_index_html(index)
    drawn = set(re.findall(r"<!-- (.*?) -->", text))
    assert {"ε", "variance of a decoded message", "no metric", "metric l1", "proven lower bound, however many bits"} <= drawn
    assert (
        "4 of 4 tables: the proven gap to the least variance that any unbiased mechanism of the same privacy can have is below 1 %" in text
    )


def test_only_so_many_rows_are_shown(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_index, "MOST_ROWS", 3)
    monkeypatch.setattr(results_page, "MOST_ROWS", 3)
    text = table_index_html(index)
    assert len(rows_of(text)) == 3
    assert "These are the first 3 of 4 rows" in text


def test_failures_are_listed_and_escaped(index: Path) -> None:
    failure = TaskFailure(TableTask(30.0, 2, 1), ValueError("epsilon <b>is</b> large"))
    text = table_index_html(index, [failure])
    assert "1 table could not be designed" in text
    assert "epsilon &lt;b&gt;is&lt;/b&gt; large" in text
    assert failure.task.setting in text
