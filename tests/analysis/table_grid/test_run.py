"""Tests of tables in bulk.

Requirements: the files equal those of single designs byte for byte, for any workers, kills and changed files.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from quietbits.analysis.sweeps.run import IncompleteSweepError
from quietbits.analysis.sweeps.store import STORE_NAME
from quietbits.analysis.table_grid import task as task_module
from quietbits.analysis.table_grid.run import INDEX_NAME, design_tables
from quietbits.analysis.table_grid.spec import TableGrid
from quietbits.design.tables.file import read_table, write_table
from quietbits.design.tables.mvu import design_mvu
from quietbits.errors import ConvergenceError

GRID = TableGrid(epsilon=(1.0, 2.5), bits_in=(1, 2), bits_out=(1, 3), metric=(None, "l1"), interval=((0.0, 1.0), (-5.0, 5.0)), seed=4)
# The program is slow enough for a kill half-way.
PROGRAM = """
import sys
import time
from pathlib import Path
from quietbits.analysis.table_grid.run import design_tables
from quietbits.analysis.table_grid.spec import TableGrid

design_tables({grid!r}, Path(sys.argv[1]), on_step=lambda *_: time.sleep(0.1))
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "tables"
    design_tables(GRID, folder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != STORE_NAME}


def finished(folder: Path) -> dict[bytes, int]:
    with closing(sqlite3.connect(folder / STORE_NAME)) as database:
        return dict(database.execute("SELECT key, rowid FROM results"))


def test_the_files_are_those_of_single_designs(whole: Path, tmp_path: Path) -> None:
    result = contents(whole)
    assert len(result) == 32 + 1
    for task in (GRID.tasks()[0], GRID.tasks()[-1], GRID.tasks()[9]):
        options = {"metric": task.metric, "objective": task.objective, "interval": task.interval, "seed": 4}
        table = design_mvu(task.epsilon, task.bits_in, task.bits_out, **options)
        write_table(table, tmp_path / "table.json")
        assert result[f"{task.stem}.json"] == (tmp_path / "table.json").read_bytes()


def test_the_index_says_what_the_certificates_say(whole: Path) -> None:
    index = pq.read_table(whole / INDEX_NAME)
    assert not {"table_text"} & set(index.column_names)
    rows = index.to_pylist()
    assert len(rows) == len({row["file"] for row in rows}) == 32
    for row, task in zip(rows, GRID.tasks(), strict=True):
        table = read_table(whole / row["file"])
        certificate = table.certificate
        asked = (task.epsilon, task.bits_in, task.bits_out, task.metric, task.objective, *task.interval, 4)
        assert tuple(row[key] for key in ("epsilon", "bits_in", "bits_out", "metric", "objective", "low", "high", "seed")) == asked
        assert (table.epsilon, table.interval, table.metric) == (task.epsilon, task.interval, task.metric)
        for name in ("realised_epsilon", "max_bias", "mean_variance", "worst_variance", "lower_bound", "optimality_gap"):
            assert row[name] == getattr(certificate, name), name
        assert row["size"] == (whole / row["file"]).stat().st_size
        assert f'"sha256": "{row["checksum"]}"' in (whole / row["file"]).read_text()
        assert row["version_numpy"] == dict(table.provenance.versions)["numpy"]


def test_two_workers_give_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    design_tables(GRID, tmp_path, workers=2)
    assert contents(tmp_path) == contents(whole)


def test_a_killed_run_goes_on(whole: Path, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", PROGRAM.format(grid=GRID), str(tmp_path)], env=environment)
    end = time.monotonic() + 60
    while len(list(tmp_path.glob("epsilon_*.json"))) < 4:
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / INDEX_NAME).exists()
    before = finished(tmp_path)
    assert 1 <= len(before) < 32
    design_tables(GRID, tmp_path)
    assert before.items() <= finished(tmp_path).items()
    assert contents(tmp_path) == contents(whole)


def test_tables_are_designed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    designed = []

    def design(*arguments: object, **options: object) -> object:
        designed.append(arguments)
        return design_mvu(*arguments, **options)

    monkeypatch.setattr(task_module, "design_mvu", design)
    few = TableGrid(epsilon=(1.0,), bits_in=(1,), bits_out=(1, 2), interval=((0.0, 1.0), (0.0, 2.0)))
    design_tables(few, tmp_path)
    assert sorted(designed) == [(1.0, 1, 1), (1.0, 1, 2)]
    # More values add to the existing files; a run rewrites changed or removed files.
    before = contents(tmp_path)
    (tmp_path / "epsilon_1_bits_1_1.json").unlink()
    (tmp_path / "epsilon_1_bits_1_2.json").write_text("")
    more = TableGrid(epsilon=(1.0, 2.0), bits_in=(1,), bits_out=(1, 2), interval=((0.0, 1.0), (0.0, 2.0)))
    design_tables(more, tmp_path)
    assert sorted(designed) == [(1.0, 1, 1), (1.0, 1, 2), (2.0, 1, 1), (2.0, 1, 2)]
    before.pop(INDEX_NAME)
    assert before.items() <= contents(tmp_path).items()


def test_tables_that_cannot_be_designed_are_named_and_the_others_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def design(epsilon: float, bits_in: int, bits_out: int, **options: object) -> object:
        if bits_out == 3:
            raise ConvergenceError("stuck")
        return design_mvu(epsilon, bits_in, bits_out, **options)

    monkeypatch.setattr(task_module, "design_mvu", design)
    # Above epsilon = 20, a metric needs a power.
    grid = TableGrid(epsilon=(1.0, 30.0), bits_in=(2,), bits_out=(1, 3), metric=(None, "l2"))
    with pytest.raises(IncompleteSweepError) as caught:
        design_tables(grid, tmp_path)
    assert str(caught.value).startswith("5 of 8 tasks failed, the others are saved: ")
    assert "epsilon 1, 2 bits in, 3 out, objective mean, from 0 to 1: stuck" in str(caught.value)
    assert "epsilon 30, 2 bits in, 1 out, objective mean, from 0 to 1: epsilon must be a number from 0.001 to 20, got 30.0" in str(
        caught.value
    )
    assert pq.read_metadata(caught.value.results_path).num_rows == len(list(tmp_path.glob("*.json"))) == 3
    # The cache keeps no failed designs.
    monkeypatch.undo()
    with pytest.raises(IncompleteSweepError, match=r"^2 of 8 tasks failed"):
        design_tables(grid, tmp_path)


@pytest.mark.parametrize(("options", "message"), [({"workers": 0}, "workers must be a whole number from 1 to 1024, got 0")])
def test_bad_arguments_leave_no_folder(options: dict[str, int], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        design_tables(GRID, tmp_path / "tables", **options)
    assert not (tmp_path / "tables").exists()
