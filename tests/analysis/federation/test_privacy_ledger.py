"""Tests of a client's ledger.

Points under test: sums of epsilons, refusals, and records that survive errors and restarts.
"""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quietbits import Guarantee, InfeasibleError
from quietbits.analysis.federation.privacy_ledger import PrivacyLedger
from quietbits.errors import DataError


def ledger(folder: Path, epsilon: float = 1.0, delta: float = 1e-2, adjacency: str = "replace-one") -> PrivacyLedger:
    return PrivacyLedger(folder / "spent.sqlite", epsilon, delta, adjacency)


def local(epsilon: float, delta: float = 0.0) -> Guarantee:
    return Guarantee(epsilon, "replace-one", "local", delta=delta)


def test_a_task_is_paid_for_once_and_again_beyond_its_rounds(tmp_path: Path) -> None:
    for _ in range(4):
        ledger(tmp_path).record("task", local(0.5), 2)
    assert ledger(tmp_path).spent() == (local(0.5), local(0.5))
    with pytest.raises(
        InfeasibleError, match=r"epsilon must be at most 1 for this client over all its tasks, .*got 1\.5 with this message"
    ):
        ledger(tmp_path).record("task", local(0.5), 2)
    assert ledger(tmp_path).spent() == (local(0.5), local(0.5))


def test_sums_are_exact(tmp_path: Path) -> None:
    # Ten times 0.1 is less than 1 in floating-point addition, but more than 1 in exact arithmetic of the same doubles.
    for number in range(9):
        ledger(tmp_path).record(f"task {number}", local(0.1), 1)
    with pytest.raises(InfeasibleError):
        ledger(tmp_path).record("task 9", local(0.1), 1)
    ledger(tmp_path, epsilon=1.0000000000000002).record("task 9", local(0.1), 1)


def test_deltas_add_up_too(tmp_path: Path) -> None:
    ledger(tmp_path).record("one", local(0.1, 6e-3), 1)
    with pytest.raises(InfeasibleError, match=r"delta must be at most 0\.01 .*, got 0\.012 with this message"):
        ledger(tmp_path).record("other", local(0.1, 6e-3), 1)


def test_add_or_remove_one_counts_twice_towards_replace_one(tmp_path: Path) -> None:
    half = Guarantee(0.25, "add-or-remove-one", "secure-sum", delta=1e-6)
    ledger(tmp_path).record("one", half, 1)
    ledger(tmp_path).record("two", half, 1)
    with pytest.raises(InfeasibleError, match=r"got 1\.5 with this message"):
        ledger(tmp_path).record("three", half, 1)
    # Under add-or-remove-one adjacency, the same record costs half of the epsilon.
    ledger(tmp_path, epsilon=0.75, adjacency="add-or-remove-one").record("three", half, 1)
    with pytest.raises(InfeasibleError, match="adjacency must be replace-one, of which the guarantee is"):
        ledger(tmp_path, adjacency="add-or-remove-one").record("four", local(0.01), 1)


def test_a_check_writes_nothing(tmp_path: Path) -> None:
    ledger(tmp_path).check("task", local(1.0), 1)
    assert ledger(tmp_path).spent() == ()
    with pytest.raises(InfeasibleError):
        ledger(tmp_path).check("task", local(1.1), 1)


def test_an_entry_becomes_weaker_and_never_stronger(tmp_path: Path) -> None:
    entry = ledger(tmp_path).record("task", local(0.5), 3)
    for epsilon in (0.7, 0.6):
        ledger(tmp_path).weaken(entry, local(epsilon))
    ledger(tmp_path).record("task", local(0.4), 3)
    assert ledger(tmp_path).spent() == (local(0.7),)
    with pytest.raises(InfeasibleError):
        ledger(tmp_path).weaken(entry, local(1.1))
    ledger(tmp_path).path.unlink()
    with pytest.raises(DataError, match="ledger must have the entry 1 of this round: the file is an earlier or another one"):
        ledger(tmp_path).weaken(entry, local(0.5))


def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    path = ledger(tmp_path).path
    path.write_text("nothing of a database, and longer than the header of one\n" * 10)
    with pytest.raises(DataError, match="ledger must be a file that can be read and written"):
        ledger(tmp_path).record("task", local(0.1), 1)
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 7")
    database.close()
    with pytest.raises(DataError, match="ledger must be of version 1, got 7"):
        ledger(tmp_path).record("task", local(0.1), 1)


def test_the_database_of_another_program_and_changed_entries_are_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "spent.sqlite") as database:
        database.execute("CREATE TABLE bookmarks (name TEXT)")
    with pytest.raises(DataError, match="ledger must be a file of its own, got the database of another program"):
        ledger(tmp_path).record("task", local(0.1), 1)
    (tmp_path / "spent.sqlite").unlink()
    ledger(tmp_path).record("task", local(0.1), 1)
    with sqlite3.connect(tmp_path / "spent.sqlite") as database:
        database.execute("UPDATE spent SET epsilon = 'little'")
    with pytest.raises(DataError, match="ledger must have entries as they were written"):
        ledger(tmp_path).check("task", local(0.1), 1)


@pytest.mark.parametrize("name", [":memory:", "file::memory:?cache=shared", "file:spent?mode=memory"])
def test_names_that_mean_memory_to_sqlite_are_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    PrivacyLedger(Path(name), 1.0, 1e-2, "replace-one").record("one", local(0.75), 1)
    assert (tmp_path / name).is_file()
    with pytest.raises(InfeasibleError):
        PrivacyLedger(Path(name), 1.0, 1e-2, "replace-one").record("other", local(0.75), 1)


def test_several_runs_share_a_budget_at_the_same_time(tmp_path: Path) -> None:
    def is_recorded(number: int) -> bool:
        try:
            ledger(tmp_path).record(f"task {number}", local(0.25), 1)
        except InfeasibleError:
            return False
        return True

    # Each thread opens the file by itself, as separate processes do.
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(is_recorded, range(16))) == 4
    assert ledger(tmp_path).spent() == (local(0.25),) * 4
