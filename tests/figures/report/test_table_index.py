"""The page of an index.

Points under test: the facts of its tables' certificates, no external resources, and a limited length.
"""

import re
from pathlib import Path

import pytest

from quietbits.analysis.sweeps.run import TaskFailure
from quietbits.analysis.table_grid.run import design_tables
from quietbits.analysis.table_grid.spec import TableGrid
from quietbits.analysis.table_grid.task import TableTask
from quietbits.design.tables.file import read_table, table_document
from quietbits.figures.report import table_index
from quietbits.figures.report.table_index import table_index_html, write_table_index


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return design_tables(TableGrid(epsilon=(1.0, 2.0), bits_in=(1,), bits_out=(1,), metric=(None, "l1")), tmp_path_factory.mktemp("tables"))


def test_the_page_says_what_the_tables_are(index: Path) -> None:
    page = write_table_index(index)
    assert page == index.with_name("index.html")
    text = page.read_text()
    rows = re.findall(r'<tr><th scope="row">.*?</tr>', text, flags=re.DOTALL)
    assert len(rows) == 4
    for name, row in zip(("epsilon_1_bits_1_1", "epsilon_1_bits_1_1_l1", "epsilon_2_bits_1_1", "epsilon_2_bits_1_1_l1"), rows, strict=True):
        table = read_table(index.with_name(f"{name}.json"))
        certificate = table.certificate
        assert f'href="{name}.json"' in row
        assert f'href="{name}.h"' in row
        for number in (certificate.mean_variance, certificate.worst_variance, certificate.lower_bound):
            assert f">{number:.6g}<" in row
        assert f">{certificate.realised_epsilon!r}<" in row
        assert f">{table.metric or 'none'}<" in row
        assert f'title="{table_document(table)["sha256"]}"' in row
    # The page works offline: all linked files are beside it.
    assert not re.findall(r"https?://|src=|@import", text)


def test_only_so_many_rows_are_shown(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_index, "MOST_ROWS", 3)
    text = table_index_html(index)
    assert text.count('<tr><th scope="row">') == 3
    assert "These are the first 3 of 4 tables" in text


def test_failures_are_listed_and_escaped(index: Path) -> None:
    failure = TaskFailure(TableTask(30.0, 2, 1), ValueError("epsilon <b>is</b> large"))
    text = table_index_html(index, [failure])
    assert "1 table could not be designed" in text
    assert "epsilon &lt;b&gt;is&lt;/b&gt; large" in text
    assert failure.task.setting in text
