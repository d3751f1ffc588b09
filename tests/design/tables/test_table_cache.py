"""The cache of tables.

Points under test: a hit designs nothing, a changed file is never used, and two processes may write at once.
"""

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from quietbits.design.tables import table_cache
from quietbits.design.tables.file import read_table
from quietbits.design.tables.lookup_table import LookupTable
from quietbits.design.tables.provenance import Provenance
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.table_cache import TableCache, default_folder
from quietbits.errors import ConvergenceError, TableError

SPECIFICATION = {"design": "generalised", "epsilon": 1.0, "bits": 2}
TABLE = generalised_randomised_response(1.0, 2)


class Designer:
    """Designer that counts its calls and returns the table."""

    def __init__(self, table: LookupTable = TABLE) -> None:
        self.table = table
        self.calls = 0

    def __call__(self) -> LookupTable:
        self.calls += 1
        return self.table


def never() -> LookupTable:
    raise AssertionError("nothing was to be designed")


def test_a_table_is_designed_once(tmp_path: Path) -> None:
    cache, designer = TableCache(tmp_path / "new" / "folder"), Designer()
    first = cache.fetch(SPECIFICATION, designer)
    second = cache.fetch(dict(reversed(SPECIFICATION.items())), never)
    assert designer.calls == 1
    assert first is TABLE
    np.testing.assert_array_equal(second.weights, TABLE.weights)
    assert second.alphabet == TABLE.alphabet
    assert [path.name for path in cache.folder.iterdir()] == [cache.path(SPECIFICATION).name]


@pytest.mark.parametrize("change", [{"epsilon": np.nextafter(1.0, 2.0)}, {"bits": 3}, {"metric": None}, {"design": "bitwise"}])
def test_every_part_of_the_specification_counts(change: dict[str, object], tmp_path: Path) -> None:
    cache = TableCache(tmp_path)
    assert cache.path(SPECIFICATION | change) != cache.path(SPECIFICATION)


def test_the_code_that_designs_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = {TableCache(tmp_path).path(SPECIFICATION)}
    monkeypatch.setattr(table_cache, "CACHE_FORMAT", -1)
    paths.add(TableCache(tmp_path).path(SPECIFICATION))
    monkeypatch.setattr(table_cache, "FORMAT", "another format")
    paths.add(TableCache(tmp_path).path(SPECIFICATION))
    # Other versions of a solver may design another table, so a sweep's rows name their versions.
    monkeypatch.setattr(table_cache, "record_provenance", lambda *_: Provenance((("scipy", "0.0"),), "", 0, 0.0))
    paths.add(TableCache(tmp_path).path(SPECIFICATION))
    assert len(paths) == 4


def changed_weights(path: Path) -> None:
    path.write_text(path.read_text().replace(str(int(TABLE.weights[0, 0])), str(int(TABLE.weights[0, 0]) + 1)))


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:300])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def not_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")


@pytest.mark.parametrize("damage", [changed_weights, cut_short, empty, not_text])
def test_a_file_that_does_not_verify_is_replaced(damage, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache, designer = TableCache(tmp_path), Designer()
    cache.fetch(SPECIFICATION, designer)
    path = cache.path(SPECIFICATION)
    damage(path)
    with pytest.raises(TableError):
        read_table(path)
    with caplog.at_level(logging.WARNING):
        result = cache.fetch(SPECIFICATION, designer)
    assert designer.calls == 2
    assert result is TABLE
    np.testing.assert_array_equal(read_table(path).weights, TABLE.weights)
    assert f"{path}: refused: " in caplog.text
    assert "the table is designed again" in caplog.text


def test_a_table_that_was_not_asked_for_is_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = TableCache(tmp_path)
    cache.fetch(SPECIFICATION, Designer(generalised_randomised_response(8.0, 2)))
    designer = Designer()
    assert cache.fetch(SPECIFICATION, designer, accept=lambda table: table.certificate.realised_epsilon <= 1.0) is TABLE
    assert designer.calls == 1
    assert "it is not the table that was asked for" in caplog.text
    assert cache.fetch(SPECIFICATION, never).epsilon == 1.0


def test_a_failed_design_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> LookupTable:
        raise ConvergenceError("it did not converge")

    cache = TableCache(tmp_path)
    with pytest.raises(ConvergenceError, match="it did not converge"):
        cache.fetch(SPECIFICATION, fail)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named_before_the_table_is_designed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        OSError, match=r"designed tables cannot be kept here \(this is a file: .*\): name another folder with --cache"
    ) as fault:
        TableCache(tmp_path / "file" / "folder").fetch(SPECIFICATION, never)
    assert fault.value.filename == str(tmp_path / "file" / "folder")


def test_what_json_cannot_say_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        TableCache(tmp_path).path({"norm": np.inf})


def test_the_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == TableCache().folder == tmp_path / "quietbits" / "tables"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert default_folder() == Path.home() / ".cache" / "quietbits" / "tables"


WRITER = """
import sys
from pathlib import Path
from quietbits.design.tables.table_cache import TableCache
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.file import read_table

cache, table = TableCache(Path(sys.argv[1])), generalised_randomised_response(1.0, 2)
sys.stdin.read()
for _ in range(40):
    cache.fetch({"epsilon": 1.0}, lambda: table, lambda found: False)
    read_table(cache.path({"epsilon": 1.0}))
"""


def test_two_processes_may_write_the_same_table_at_once(tmp_path: Path) -> None:
    # Both processes keep replacing the file, and read it after every turn: each read must verify.
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) for _ in range(2)]
    for writer in writers:
        writer.stdin.close()
    for writer in writers:
        errors = writer.stderr.read().decode()
        writer.stderr.close()
        assert writer.wait() == 0, errors
        assert "refused" not in errors
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]
