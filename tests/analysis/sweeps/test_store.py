"""The file of finished tasks.

Points under test: damaged results are computed again, and only one process uses the file at a time.
"""

import logging
import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from quietbits.analysis.sweeps.folder_owner import OWNER_NAME
from quietbits.analysis.sweeps.run import run_tasks
from quietbits.analysis.sweeps.store import RESULTS_NAME, STORE_NAME, SweepStore, task_key
from quietbits.attack.toy_sweep import TASKS, Square, squares, whole
from quietbits.errors import DataError


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize("seed", range(4))
def test_no_flipped_bit_enters_the_results(seed: int, tmp_path: Path) -> None:
    store, results = whole().store, whole().results
    for bit in np.random.default_rng(seed).integers(0, 8 * len(store), 20).tolist():
        folder = tmp_path / str(bit)
        folder.mkdir()
        (folder / STORE_NAME).write_bytes(flipped(store, bit))
        run_tasks(squares(), folder)
        assert (folder / RESULTS_NAME).read_bytes() == results, bit


def test_a_damaged_value_is_named_and_computed_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, results = whole().store, whole().results
    place = store.index(b"[2, [[7], [0, 1], [49]")
    (tmp_path / STORE_NAME).write_bytes(store.replace(b"[2, [[7], [0, 1], [49]", b"[2, [[7], [0, 1], [48]"))
    assert place > 0
    ran = []
    run = Square.run
    monkeypatch.setattr(Square, "run", lambda self, prepared: ran.append(self.number) or run(self, prepared))
    with caplog.at_level(logging.WARNING):
        run_tasks(squares(), tmp_path)
    assert ran == [7]
    assert f"{tmp_path / STORE_NAME} has 1 damaged results: they are computed again" in caplog.text
    assert (tmp_path / RESULTS_NAME).read_bytes() == results


@pytest.mark.parametrize("cut", [0, 50, 5000, -1])
def test_a_file_that_cannot_be_read_is_set_aside_and_what_it_holds_is_saved(
    cut: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, results = whole().store, whole().results
    (tmp_path / STORE_NAME).write_bytes(store[:cut] if cut >= 0 else b"This is not a database" + store[22:])
    with caplog.at_level(logging.WARNING):
        run_tasks(squares(), tmp_path)
    assert (tmp_path / RESULTS_NAME).read_bytes() == results
    # An empty file is a database without tables.
    assert (tmp_path / f"{STORE_NAME}.damaged-1").exists() == (cut != 0)
    assert (f"{STORE_NAME} is damaged: it is now called {STORE_NAME}.damaged-1" in caplog.text) == (cut != 0)


@pytest.mark.parametrize(
    "damage", [(b"CREATE TABLE", b"CREATE \xf9ABLE"), (b"(name BLOB", b"(n\xf9me BLOB"), (b"(key BLOB", b"(k\xf9y BLOB")]
)
def test_names_of_tables_and_columns_that_are_no_text_cost_results_alone(
    damage: tuple[bytes, bytes], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, results = whole().store, whole().results
    assert damage[0] in store
    (tmp_path / STORE_NAME).write_bytes(store.replace(*damage))
    with caplog.at_level(logging.WARNING):
        run_tasks(squares(), tmp_path)
    assert (tmp_path / RESULTS_NAME).read_bytes() == results
    assert f"{STORE_NAME} is damaged: it is now called {STORE_NAME}.damaged-1" in caplog.text


def damaged_in_the_middle(folder: Path) -> list[Square]:
    """Run tasks, damage pages in the middle of their file, and return the tasks."""
    many = [Square(number) for number in range(2000)]
    run_tasks(many, folder)
    store = bytearray((folder / STORE_NAME).read_bytes())
    middle = len(store) // 2 // 4096 * 4096
    store[middle : middle + 8 * 4096] = b"\xff" * (8 * 4096)
    (folder / STORE_NAME).write_bytes(store)
    return many


def test_pages_that_cannot_be_read_leave_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    many = damaged_in_the_middle(tmp_path)
    results = (tmp_path / RESULTS_NAME).read_bytes()
    with caplog.at_level(logging.WARNING):
        run_tasks(many, tmp_path)
    assert (tmp_path / RESULTS_NAME).read_bytes() == results
    kept = int(caplog.text.split("damaged-1; ")[1].split()[0])
    assert 500 < kept < 2000


HOLD = """
import sys
from pathlib import Path
from quietbits.analysis.sweeps.store import SweepStore

with SweepStore(Path(sys.argv[1]), []):
    print("open", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Limit this process's file sizes, which SQLite reports as a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_is_full_names_the_file_and_loses_nothing(tmp_path: Path) -> None:
    half = squares()[: TASKS // 2]
    run_tasks(half, tmp_path)
    with files_of_at_most(2000), pytest.raises(OSError, match="disk I/O error") as full:
        run_tasks(squares(), tmp_path)
    assert full.value.filename == str(tmp_path / STORE_NAME)
    # The run renamed no file as damaged, and does not repeat saved tasks.
    assert [path.name for path in tmp_path.iterdir() if "damaged" in path.name or path.name == OWNER_NAME] == []
    steps: list[int] = []
    run_tasks(squares(), tmp_path, on_step=lambda done, *_: steps.append(done))
    assert steps[0] >= len(half)
    assert (tmp_path / RESULTS_NAME).read_bytes() == whole().results


@pytest.mark.parametrize("kind", ["folder", "link to nowhere"])
def test_what_is_no_file_is_named(kind: str, tmp_path: Path) -> None:
    path = tmp_path / STORE_NAME
    path.mkdir() if kind == "folder" else path.symlink_to(tmp_path / "missing" / "file")
    with pytest.raises(OSError, match="unable to open database") as refused:
        run_tasks(squares(), tmp_path)
    assert refused.value.filename == str(path)
    assert [item.name for item in tmp_path.iterdir()] == [STORE_NAME]


def test_tables_of_other_columns_are_damage(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / STORE_NAME)) as other:
        other.execute("CREATE TABLE results (key, payload)")
        other.execute("INSERT INTO results VALUES (1, 2)")
        other.commit()
    run_tasks(squares(), tmp_path)
    assert (tmp_path / RESULTS_NAME).read_bytes() == whole().results


@pytest.mark.parametrize("renamed", [0, 1])
def test_a_repair_that_is_killed_loses_nothing(renamed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repair loses no result if it is killed after any number of renamed files."""
    many = damaged_in_the_middle(tmp_path)
    results, rename, moves = (tmp_path / RESULTS_NAME).read_bytes(), Path.rename, list[Path]()

    def killed(self: Path, target: Path) -> Path:
        if len(moves) == renamed:
            raise KeyboardInterrupt
        moves.append(target)
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            run_tasks(many, tmp_path)
    assert (tmp_path / STORE_NAME).exists() == (renamed == 0)
    steps: list[int] = []
    run_tasks(many, tmp_path, on_step=lambda done, *_: steps.append(done))
    assert 500 < steps[0] < 2000
    assert (tmp_path / RESULTS_NAME).read_bytes() == results


@pytest.fixture
def holder(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Start another process that uses the folder."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        process.kill()


def test_two_sweeps_do_not_use_one_folder(holder: "subprocess.Popen[str]", tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"no other sweep uses, got {tmp_path}, used by process {holder.pid} on "):
        run_tasks(squares(), tmp_path)
    holder.kill()
    holder.wait()
    # The lock of a killed process does not block others.
    assert (tmp_path / OWNER_NAME).exists()
    assert len(run_tasks(squares(), tmp_path)) == 2 * TASKS
    assert not (tmp_path / OWNER_NAME).exists()


READ = """
import sqlite3
import sys

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
if sys.argv[2] == "write":
    connection.execute("BEGIN IMMEDIATE")
cursor = connection.execute("SELECT * FROM results")
cursor.fetchone()
print("open", flush=True)
sys.stdin.readline()
"""


@contextmanager
def opened(store: Path, how: str) -> Iterator[None]:
    """Let another program hold the file open, for a query or for writing."""
    command = [sys.executable, "-c", READ, str(store), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield
        process.kill()


def test_a_program_that_reads_the_file_keeps_no_sweep_out(tmp_path: Path) -> None:
    run_tasks(squares()[:5], tmp_path)
    # The process with this number has ended.
    (tmp_path / OWNER_NAME).write_text('{"process": 17778, "host": "here"}')
    with opened(tmp_path / STORE_NAME, "read"):
        assert len(run_tasks(squares(), tmp_path)) == 2 * TASKS
    assert (tmp_path / RESULTS_NAME).read_bytes() == whole().results
    assert not (tmp_path / OWNER_NAME).exists()


def test_a_program_that_writes_to_the_file_is_not_taken_for_a_dead_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quietbits.analysis.sweeps.store.READER_PATIENCE", 10)
    run_tasks(squares()[:5], tmp_path)
    (tmp_path / OWNER_NAME).write_text('{"process": 17778, "host": "here"}')
    with opened(tmp_path / STORE_NAME, "write"), pytest.raises(ValueError, match="used by another program that writes to its tasks"):
        run_tasks(squares(), tmp_path)


def test_where_there_are_no_locks_the_database_keeps_others_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quietbits.analysis.sweeps.folder_owner._lock", lambda _: False)
    with (
        SweepStore(tmp_path, []),
        pytest.raises(ValueError, match=rf"that no other sweep uses, got {tmp_path}, used by process {os.getpid()}"),
    ):
        SweepStore(tmp_path, [])
    assert len(run_tasks(squares(), tmp_path)) == 2 * TASKS


HOSTILE = {
    "deletes": "CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM results; END",
    "ignores": "CREATE TRIGGER t BEFORE INSERT ON results BEGIN SELECT RAISE(IGNORE); END",
    "changes": "CREATE TRIGGER t AFTER INSERT ON results BEGIN UPDATE results SET payload = zeroblob(3); END",
    "index": "CREATE UNIQUE INDEX i ON results (layout)",
    "table": "CREATE TABLE more (a)",
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("done", [0, 1], ids=["empty", "begun"])
def test_what_else_the_file_does_takes_no_rows(kind: str, done: int, tmp_path: Path) -> None:
    run_tasks(squares()[:done], tmp_path)
    with closing(sqlite3.connect(tmp_path / STORE_NAME)) as store:
        store.execute(HOSTILE[kind])
        store.commit()
    assert len(run_tasks(squares(), tmp_path)) == 2 * TASKS
    assert (tmp_path / RESULTS_NAME).read_bytes() == whole().results


def test_rows_that_are_lost_while_a_sweep_runs_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = SweepStore.commit

    def losing(self: SweepStore) -> None:
        commit(self)
        self._database.execute("DELETE FROM store.results WHERE rowid > 30")

    with monkeypatch.context() as patch:
        patch.setattr(SweepStore, "commit", losing)
        with pytest.raises(DataError, match=f"the rows of {TASKS - 30} tasks were saved and are not there: run the same command again"):
            run_tasks(squares(), tmp_path)
    assert len(run_tasks(squares(), tmp_path)) == 2 * TASKS


def test_what_was_committed_survives_and_what_was_not_does_not(tmp_path: Path) -> None:
    from quietbits.analysis.sweeps.rows import encode_rows

    with SweepStore(tmp_path, squares()) as store:
        store.add(3, encode_rows([{"a": 1}]))
        store.commit()
        store.add(4, encode_rows([{"a": 2}]))
        copy = (tmp_path / STORE_NAME).read_bytes(), (tmp_path / f"{STORE_NAME}-wal").read_bytes()
    other = tmp_path / "other"
    other.mkdir()
    (other / STORE_NAME).write_bytes(copy[0])
    (other / f"{STORE_NAME}-wal").write_bytes(copy[1])
    with SweepStore(other, squares()) as store:
        assert set(range(TASKS)) - set(store.pending()[0].tolist()) == {3}
    with SweepStore(tmp_path, squares()) as store:
        assert set(range(TASKS)) - set(store.pending()[0].tolist()) == {3, 4}


def test_pending_tasks_of_one_design_follow_each_other(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Designed(Square):
        design: str | None = None

    order = [Designed(number, design=design) for number, design in enumerate(["b", None, "a", "b", None, "a"])]
    with SweepStore(tmp_path, order) as store:
        positions, designs = store.pending()
    assert positions.tolist() == [0, 3, 1, 2, 5, 4]
    assert designs[0] == designs[1]
    assert designs[2] == designs[5] == 0


def test_keys_differ_with_name_and_seed() -> None:
    assert len({task_key(task) for task in (Square(1), Square(2), Square(1, seed=1))}) == 3
    assert task_key(Square(1)) == task_key(Square(1))


def test_no_tasks_at_all(tmp_path: Path) -> None:
    assert run_tasks([], tmp_path).empty
    assert pd.read_parquet(tmp_path / RESULTS_NAME).empty
