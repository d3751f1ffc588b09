"""A grid of plans that is killed resumes without losing or repeating a row."""

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from quietbits.analysis.plan_grid.run import plan_grid
from quietbits.analysis.plan_grid.spec import PlanGrid, parse_plan_grid
from quietbits.analysis.plan_grid.task import PlanTask
from quietbits.progress import silent

DOCUMENT = {
    "trust": "local",
    "grid": {
        "clients": [100, 1000],
        "epsilon": [1, 2, 3],
        "delta": 0,
        "adjacency": "replace-one",
        "dimension": [16, 32],
        "bits": ["none", 0.01],
    },
}
GRID = parse_plan_grid(DOCUMENT)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plan_grid(GRID, tmp_path_factory.mktemp("whole"), on_step=silent)


def finished(folder: Path) -> int:
    """Return the number of saved plans of a running or killed process."""
    try:
        with sqlite3.connect(f"file:{folder / 'tasks.sqlite'}?mode=ro", uri=True) as database:
            tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
            return max(database.execute(f"select count(*) from {name}").fetchone()[0] for name in tables) if tables else 0  # noqa: S608
    except sqlite3.OperationalError:
        return 0


def test_the_table_has_rows_of_every_task(whole: Path) -> None:
    rows = pd.read_parquet(whole)
    assert len(rows[["clients", "task_epsilon", "dimension", "task_bits"]].drop_duplicates()) == len(GRID.tasks) == 24
    unserved = rows[rows["mechanism"].isna()]
    assert len(unserved) == 12
    assert set(unserved["task_bits"]) == {0.01}
    assert unserved["reason"].str.startswith("no mechanism can serve the task").all()
    assert rows[rows["mechanism"].notna()]["reason"].isna().all()
    assert len(pd.read_csv(whole.with_name("results.csv"))) == len(rows)
    assert {"seed", "version_numpy", "provider", "provider_version", "ratio_to_central"} <= set(rows)


def test_a_killed_grid_resumes_with_the_same_bytes(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from quietbits.analysis.plan_grid.run import plan_grid\n"
        "from quietbits.analysis.plan_grid.spec import parse_plan_grid\n"
        "from quietbits.analysis.plan_grid.task import PlanTask\n"
        "run, calls = PlanTask.run, []\n"
        "def killing(self, prepared):\n"
        "    calls.append(self)\n"
        "    if len(calls) == 12: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return run(self, prepared)\n"
        "PlanTask.run = killing\n"
        f"plan_grid(parse_plan_grid({DOCUMENT!r}), Path(sys.argv[1]))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False, capture_output=True, timeout=300)
    assert ended.returncode == -signal.SIGKILL
    assert not (tmp_path / "results.parquet").exists()
    saved = finished(tmp_path)
    assert 0 < saved < 12
    ran = list[str]()
    run = PlanTask.run

    def counted(self: PlanTask, prepared: None) -> list[dict[str, object]]:
        ran.append(self.name)
        return run(self, prepared)  # type: ignore[return-value]

    monkeypatch.setattr(PlanTask, "run", counted)
    path = plan_grid(GRID, tmp_path, on_step=silent)
    assert path.read_bytes() == whole.read_bytes()
    assert len(ran) == len(set(ran)) == len(GRID.tasks) - saved
    assert path.with_name("results.csv").read_bytes() == whole.with_name("results.csv").read_bytes()
    ran.clear()
    plan_grid(GRID, tmp_path, on_step=silent)
    assert ran == []


def test_tasks_must_differ() -> None:
    with pytest.raises(ValueError, match="tasks must not have the same value twice"):
        PlanGrid(tasks=[GRID.tasks[0]] * 2)
