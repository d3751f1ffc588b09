"""A sweep's page has the sentence, table and plot of its results.

The page flags unequal budgets.
"""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from quietbits.analysis.sweeps.run import TaskFailure, run_tasks
from quietbits.analysis.sweeps.spec import parse_sweep
from quietbits.analysis.sweeps.summary import summarise_sweep
from quietbits.figures.report.results_page import FIRST_ROWS, remove_results_page
from quietbits.figures.report.sweep_page import sweep_page_html, write_sweep_page
from quietbits.shown import in_figures, with_powers

FEW: dict[str, Any] = {
    "population": "sphere",
    "clients": 50,
    "dimension": 4,
    "norm": 2,
    "epsilon": [1, 3],
    "delta": 1e-5,
    "adjacency": "replace-one",
    "repetitions": 3,
    "mechanism": [{"name": "gaussian"}, {"name": "privunit"}, {"name": "distributed-discrete-gaussian", "bits": 16}],
}
ITEMS: dict[str, Any] = {key: value for key, value in FEW.items() if key not in ("dimension", "norm")} | {
    "population": "zipf",
    "categories": [4, 8],
    "mechanism": [{"name": "unary-encoding"}, {"name": "exact-histogram"}],
}


def results_of(folder: Path, document: dict[str, Any], **changes: Any) -> pd.DataFrame:
    return run_tasks(parse_sweep(document | changes).tasks(), folder)


def cells(page: str, body: str) -> list[list[str]]:
    """Return the texts of a table's rows; `body` is the class of the table's part."""
    match = re.search(rf'<tbody class="{body}">(.*?)</tbody>', page, flags=re.DOTALL)
    parts = re.findall(r"<tr.*?</tr>", match[1], flags=re.DOTALL) if match else []
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", part) for part in parts]


def headings(page: str) -> list[str]:
    return re.findall(r'<button type="button">(.*?)</button>', page)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    return results_of(tmp_path_factory.mktemp("few"), FEW)


@pytest.fixture(scope="module")
def page(results: pd.DataFrame) -> str:
    return sweep_page_html(results, command="quietbits sweep few.toml")


def test_the_table_has_what_the_summary_says(results: pd.DataFrame, page: str) -> None:
    summary = summarise_sweep(results)
    assert headings(page) == [
        *("Mechanism", "Trust model", "Squared error", "Over central", "Worst over proven bound", "Bits per client", "ε", "Flag")
    ]
    rows = cells(page, "compared")
    assert [row[:2] for row in rows] == summary[["label", "trust_model"]].to_numpy().tolist()
    for row, stated in zip(rows, summary.to_dict("records"), strict=True):
        error, margin = in_figures(stated["mean_squared_error"]), in_figures(stated["standard_error"], 2)
        assert row[2] == with_powers(f"{error} ± {margin}")
        assert row[3] == in_figures(stated["ratio_to_central"])
        # Bounds of secure sums are too weak, so the page omits them.
        ratio = stated["worst_squared_error"] / stated["lower_bound"]
        assert row[4] == (in_figures(ratio) if stated["trust_model"] == "local" else "")
        assert row[5:7] == [in_figures(stated["bits_per_client"]), in_figures(stated["epsilon"])]
    # No number is written with an exponent.
    assert not re.search(r">[^<]*\d+e[+-]\d+[^<]*<", page)


def test_the_sentence_is_computed_and_rows_of_other_budgets_are_flagged(results: pd.DataFrame, page: str) -> None:
    summary = summarise_sweep(results)
    local = summary[summary["trust_model"] == "local"]
    leaders = local.loc[local.groupby("epsilon")["mean_squared_error"].idxmin(), "label"]
    assert set(leaders) == {"privunit"}
    assert "3 mechanisms in 2 settings; the least squared error among mechanisms of the same guarantee: privunit (local, in 2 of 2" in page
    # A single mechanism of a trust model has no mechanism to compare with.
    assert page.count('<tr class="best">') == 2
    assert "Rows differ in trust model: compare only those of the same trust model." in page
    assert "Guarantees: replace-one adjacency, local and secure-sum trust models, epsilon 1 and 3, delta 10⁻⁵." in page
    flags = {row[0]: row[-1].split(", ")[0] for row in cells(page, "compared")}
    assert flags["privunit"] == "δ = 0"
    assert "stronger promise (privunit)" in page


def test_the_page_loads_nothing_and_names_its_data(page: str) -> None:
    assert set(re.findall(r'(?:src|href)="(?!#)([^"]*)"', page)) == {"summary.csv", "results.parquet"}
    assert not re.findall(r"https?://(?!www\.w3\.org)|@import|<link", page)
    drawn = set(re.findall(r"<!-- (.*?) -->", page))
    assert {"ε", "squared error of the mean", "privunit, local", "trusted server, same ε and δ", "answering zero"} <= drawn
    for text in ("sphere", "clients 50", "quietbits sweep few.toml", "numpy"):
        assert text in page


def test_what_keeps_no_budget_is_a_reference(tmp_path: Path) -> None:
    page = sweep_page_html(results_of(tmp_path, ITEMS))
    assert {row[0] for row in cells(page, "compared")} == {"unary-encoding"}
    references = cells(page, "references")
    assert [row[0] for row in references] == ["exact-histogram"] * 4
    assert all("∞" in row and row[-1].startswith("no finite ε") for row in references)
    assert 'class="best"' not in page
    assert "Without a finite epsilon, and so only references: exact-histogram." in page
    assert "squared error of the frequencies" in page
    assert "Not drawn: 4 rows whose value is zero or missing." in page


def test_no_column_is_empty_and_intervals_are_one_setting(tmp_path: Path) -> None:
    document = {key: value for key, value in FEW.items() if key not in ("dimension", "norm")}
    mechanisms = [{"name": "laplace"}, {"name": "bitwise-randomised-response", "bits": 2}]
    changes: dict[str, Any] = {"population": "uniform", "interval": [[0, 1], [0, 5]], "delta": 0, "epsilon": 2, "mechanism": mechanisms}
    page = sweep_page_html(results_of(tmp_path, document, **changes))
    # A trusted server needs no delta for numbers.
    assert {"Interval", "Over central"} <= set(headings(page))
    rows = cells(page, "compared")
    assert all(any(row[place] for row in rows) for place in range(len(headings(page))))
    assert {row[1] for row in rows} == {"0 to 1", "0 to 5"}


def test_many_rows_are_folded(tmp_path: Path) -> None:
    epsilons = [1 + place / 10 for place in range(20)]
    page = sweep_page_html(results_of(tmp_path, FEW, epsilon=epsilons, repetitions=1, mechanism=FEW["mechanism"][:2]))
    assert f"Show all 40 rows, not only the first {FIRST_ROWS}" in page
    assert f"tr:nth-child(n + {FIRST_ROWS + 1}) {{ display: none; }}" in page
    assert len(cells(page, "compared")) == 40
    # One repetition has no standard error.
    assert "±" not in cells(page, "compared")[0][2]


def test_files_are_written_and_removed_together(results: pd.DataFrame, tmp_path: Path) -> None:
    failure = TaskFailure(parse_sweep(FEW).tasks()[0], ValueError("bits <b>must</b> be more"))
    assert write_sweep_page(results, tmp_path, [failure, failure]) == tmp_path / "report.html"
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("bits &lt;b&gt;must&lt;/b&gt; be more") == 1
    summary = pd.read_csv(tmp_path / "summary.csv")
    assert summary["flag"].fillna("").tolist() == summarise_sweep(results)["flag"].tolist()
    assert len(summary) == 6
    remove_results_page(tmp_path)
    assert list(tmp_path.iterdir()) == []
