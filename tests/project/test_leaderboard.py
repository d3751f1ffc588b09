"""The stored rows of the leaderboard are those of the current planner, for all tasks of its file.

`make leaderboard` regenerates them.
"""

import sys
from pathlib import Path

import pandas as pd
import pytest

import quietbits
from quietbits.analysis.plan_grid.leaderboard import COLUMNS, judged, read_board
from quietbits.analysis.plan_grid.spec import load_plan_grid
from quietbits.analysis.planner.words import task_in_words

DOCS = Path(quietbits.__file__).parent / "docs"
sys.path.insert(0, str(DOCS))

from generators import leaderboard  # noqa: E402 - needs the path above

from .test_choosing import CLOSE, SETTINGS  # noqa: E402 - as above

GRID = load_plan_grid(leaderboard.TASKS)
BOARD = read_board(leaderboard.RESULTS)
# Tasks that are planned within half a second each: with numbers, with vectors of two norms, and with items.
RECOMPUTED = (2, 14, 18, 24)


def test_every_task_of_the_file_has_rows() -> None:
    assert BOARD["task"].unique().tolist() == [task_in_words(task) for task in GRID.tasks]
    assert len(GRID.tasks) == 26
    assert list(GRID.tasks[:6]) == [setting.task for setting in SETTINGS]
    assert list(BOARD) == [*COLUMNS, "date"]
    assert not BOARD.duplicated(["task", "mechanism"]).any()


def test_rows_are_of_this_version() -> None:
    assert set(BOARD["version_quietbits"]) == {quietbits.__version__}
    own = BOARD["provider"] == "quietbits"
    assert set(BOARD.loc[own, "provider_version"]) == {quietbits.__version__}
    assert BOARD["date"].str.fullmatch(r"\d{4}-\d\d-\d\d").all()


@pytest.mark.parametrize("number", RECOMPUTED)
def test_stored_rows_are_what_the_planner_says(number: int) -> None:
    plan = GRID.plans()[number - 1]
    stored = BOARD[(BOARD["task"] == plan.setting) & (BOARD["provider"] == "quietbits")]
    columns = [name for name in COLUMNS if name != "version_quietbits"]
    # Rows of plug-ins that happen to be installed are not compared.
    now = pd.DataFrame([row for row in plan.run(None) if row["provider"] == "quietbits"])[columns]
    message = "run `make leaderboard` if the planner should say so"
    for name in columns:
        if pd.api.types.is_numeric_dtype(stored[name]) and stored[name].dtype != bool:
            expected = pytest.approx(stored[name].astype(float).tolist(), rel=CLOSE, nan_ok=True)
            assert now[name].astype(float).tolist() == expected, f"{name}: {message}"
        else:
            assert now[name].fillna("").tolist() == stored[name].fillna("").tolist(), f"{name}: {message}"


def test_every_guarantee_keeps_the_budget_of_its_task() -> None:
    rows = judged(BOARD)
    assert (rows["epsilon"] <= rows["task_epsilon"] * (1 + 1e-9)).all()
    assert rows["ratio"].notna().all()
    # A proven bound is below every error, and below the rounding of both.
    assert (rows.loc[rows["reference"] == "proven bound", "ratio"] >= 1 - 1e-6).all()


def test_parts_of_the_page_have_the_stored_rows(tmp_path: Path) -> None:
    leaderboard.write(tmp_path)
    page = (DOCS / "leaderboard" / "index.md").read_text(encoding="utf-8")
    assert [path.name for path in sorted(tmp_path.iterdir()) if f"generated/leaderboard/{path.name}" not in page] == []
    assert (tmp_path / "rows.html").read_text(encoding="utf-8").count("<tr") - 1 == BOARD["mechanism"].notna().sum()
    assert (tmp_path / "winners.html").read_text(encoding="utf-8").count("<tr") - 1 == len(GRID.tasks)
    assert '<a href="../reference/generated/mechanisms/mvu.html">mvu</a>' in (tmp_path / "rows.html").read_text(encoding="utf-8")
    assert f"{len(GRID.tasks)} tasks" in (tmp_path / "headline.html").read_text(encoding="utf-8")
