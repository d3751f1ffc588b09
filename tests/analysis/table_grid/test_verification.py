"""A folder of tables.

Points under test: the verification detects every kind of fault and names it with its file.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from quietbits.analysis.table_grid.run import INDEX_NAME, design_tables
from quietbits.analysis.table_grid.spec import TableGrid
from quietbits.analysis.table_grid.verification import verify_folder
from quietbits.errors import DataError

FIRST, SECOND = "epsilon_1_bits_1_1", "epsilon_2_bits_1_1"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    design_tables(TableGrid(epsilon=(1.0, 2.0), bits_in=(1,), bits_out=(1,)), folder)
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "tables"))


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def falsify(index: Path, column: str, value: object) -> None:
    frame = pd.read_parquet(index)
    frame.loc[0, column] = value
    frame.to_parquet(index)


def test_a_sound_folder(folder: Path) -> None:
    result = verify_folder(folder)
    assert (result.tables, result.faults, result.verified) == (2, (), True)


@pytest.mark.parametrize(
    ("spoil", "name", "check"),
    [
        (lambda folder: change(folder / f"{FIRST}.json", '"epsilon": 1.0', '"epsilon": 0.5'), f"{FIRST}.json", "checksum"),
        (lambda folder: (folder / f"{FIRST}.json").write_text("{"), f"{FIRST}.json", "json"),
        (lambda folder: (folder / f"{FIRST}.json").unlink(), f"{FIRST}.json", "index"),
        (lambda folder: shutil.copy(folder / f"{SECOND}.json", folder / f"{FIRST}.json"), f"{FIRST}.json", "index"),
        (lambda folder: falsify(folder / INDEX_NAME, "realised_epsilon", 0.001), f"{FIRST}.json", "index"),
        (lambda folder: falsify(folder / INDEX_NAME, "mean_variance", 1e-9), f"{FIRST}.json", "index"),
        (lambda folder: falsify(folder / INDEX_NAME, "size", 1), f"{FIRST}.json", "index"),
        (lambda folder: falsify(folder / INDEX_NAME, "high", 2.0), f"{FIRST}.json", "index"),
        (lambda folder: (folder / INDEX_NAME).write_bytes(b"PAR1"), INDEX_NAME, "file"),
        (lambda folder: (folder / "another.json").write_text("{}"), "another.json", "format"),
        (lambda folder: (folder / "another.json").mkdir(), "another.json", "file"),
    ],
)
def test_what_is_wrong_is_named(spoil: Callable[[Path], object], name: str, check: str, folder: Path) -> None:
    spoil(folder)
    result = verify_folder(folder)
    assert not result.verified
    named = {(fault.path.name, fault.check) for fault in result.faults}
    assert (name, check) in named
    assert {path for path, _ in named} == {name}
    assert all(str(fault).startswith(f"{fault.path}: refused: {fault.check}: ") for fault in result.faults)


def test_tables_without_an_index_are_verified_too(folder: Path) -> None:
    (folder / INDEX_NAME).unlink()
    assert verify_folder(folder).verified
    change(folder / f"{SECOND}.json", '"bits_in": 1', '"bits_in": 2')
    (fault,) = verify_folder(folder).faults
    assert (fault.path.name, fault.check) == (f"{SECOND}.json", "checksum")


def test_a_folder_without_tables_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"it has no tables: there must be \.json files, or an index\.parquet"):
        verify_folder(tmp_path)
    # The folder of a grid whose designs all failed has no tables.
    pd.DataFrame().to_parquet(tmp_path / INDEX_NAME)
    with pytest.raises(DataError, match="it has no tables"):
        verify_folder(tmp_path)
