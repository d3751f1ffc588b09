"""`quietbits design grid` and `quietbits verify FOLDER` on the command line."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from quietbits.analysis.sweeps.example import example_specification
from quietbits.cli.main import app

GRID = "[grid]\nepsilon = [1, 2]\nbits_in = 1\nbits_out = [1, 2]\n"


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def refusals(run: Result) -> list[str]:
    """Return the lines that name a refused file, without the progress lines of slow commands."""
    return [line for line in run.stderr.splitlines() if ": refused: " in line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bulk")
    (folder / "grid.toml").write_text(GRID)
    run = invoke("design", "grid", folder / "grid.toml", "--output", folder / "tables", "--seed", 5)
    assert run.exit_code == 0, run.stderr
    assert "4, each as JSON" in run.stdout
    return folder / "tables"


def test_a_grid_is_designed_with_its_index(folder: Path) -> None:
    names = {f"epsilon_{epsilon}_bits_1_{bits}.json" for epsilon in (1, 2) for bits in (1, 2)}
    assert {path.name for path in folder.iterdir()} == names | {"index.html", "index.parquet", "tasks.sqlite"}
    page = (folder / "index.html").read_text()
    assert set(pq.read_table(folder / "index.parquet")["seed"].to_pylist()) == {5}
    assert all(f'href="{name}"' in page for name in names)


def test_a_folder_is_verified(folder: Path) -> None:
    run = invoke("verify", folder)
    assert (run.exit_code, run.stdout) == (0, f"{folder}: 4 tables, all verified\n")
    run = invoke("verify", folder, "--json")
    assert json.loads(run.stdout) == {"folder": str(folder), "tables": 4, "verified": True, "faults": []}
    assert "2 bits out" in invoke("verify", folder / "epsilon_1_bits_1_2.json").stdout


def test_each_refused_file_takes_a_line(folder: Path) -> None:
    changed = [folder / "epsilon_1_bits_1_2.json", folder / "epsilon_2_bits_1_1.json"]
    sound = [path.read_bytes() for path in changed]
    for path, content in zip(changed, sound, strict=True):
        path.write_bytes(content.replace(b"2", b"3"))
    run = invoke("verify", folder)
    assert run.exit_code == 1
    first, second = refusals(run)
    assert first.startswith(f"quietbits: {changed[0]}: refused: format: ")
    assert second.startswith(f"quietbits: {changed[1]}: refused: format: ")
    assert run.stdout == f"{folder}: 4 tables, 2 files refused\n"
    loaded = json.loads(invoke("verify", folder, "--json").stdout)
    assert [fault["check"] for fault in loaded["faults"]] == ["format", "format"]
    # Running the command again restores the original files.
    assert invoke("design", "grid", folder.parent / "grid.toml", "--output", folder, "--seed", 5).exit_code == 0
    assert [path.read_bytes() for path in changed] == sound


def test_tables_that_cannot_be_designed_take_one_line_and_are_on_the_page(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text('[grid]\nepsilon = [1, 30]\nbits_in = 2\nbits_out = 1\nmetric = ["none", "l2"]\n')
    run = invoke("design", "grid", tmp_path / "grid.toml", "--output", tmp_path / "tables")
    assert run.exit_code == 2
    assert run.stderr.endswith(
        "quietbits: 1 of 4 tasks failed, the others are saved: epsilon 30, 2 bits in, 1 out, objective mean, "
        "from 0 to 1: epsilon must be a number from 0.001 to 20, got 30.0\n"
    )
    assert "3, each as JSON" in run.stdout
    assert "epsilon must be a number from 0.001 to 20, got 30.0" in (tmp_path / "tables" / "index.html").read_text()


def test_examples_are_printed_and_faults_take_one_line(tmp_path: Path) -> None:
    assert invoke("design", "grid", "--example").stdout == example_specification("table_grid")
    assert invoke("sweep", "--example").stdout == example_specification("sweeps")
    (tmp_path / "grid.toml").write_text(GRID.replace("[1, 2]", "[1, 1]", 1))
    run = invoke("design", "grid", tmp_path / "grid.toml", "--output", tmp_path / "tables")
    assert run.exit_code == 2
    assert run.stderr == f"quietbits: {tmp_path / 'grid.toml'}: epsilon must not have the same value twice, got 1 twice\n"
    assert not (tmp_path / "tables").exists()
    run = invoke("verify", tmp_path)
    assert (run.exit_code, run.stderr.count("\n")) == (2, 1)


def test_unequal_promises_and_an_index_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(GRID.replace("[1, 2]", '1\nmetric = ["none", "l1"]', 1))
    run = invoke("design", "grid", tmp_path / "grid.toml", "--output", tmp_path / "tables")
    assert run.exit_code == 0
    assert "Guarantees: replace-one adjacency, local trust model, epsilon 1, delta 0." in run.stdout
    assert "WARNING: Tables differ in metric (none and l1)" in run.stdout
    (tmp_path / "tables" / "index.html").unlink()
    (tmp_path / "tables" / "index.html").mkdir()
    refused = invoke("design", "grid", tmp_path / "grid.toml", "--output", tmp_path / "tables")
    assert refused.exit_code == 2
    assert refused.stderr == f"quietbits: {tmp_path / 'tables' / 'index.html'}: this is a folder: name a file\n"


def test_a_folder_is_explored(folder: Path, tmp_path: Path) -> None:
    run = invoke("explore", folder, "--output", tmp_path / "explorer.html")
    assert (run.exit_code, run.stdout) == (0, f"Explorer of 4 tables: {tmp_path / 'explorer.html'}\n")
    assert '<option value="3">epsilon_2_bits_1_2.json</option>' in (tmp_path / "explorer.html").read_text()
    table = folder / "epsilon_2_bits_1_2.json"
    content = table.read_bytes()
    refused = invoke("explore", folder, "--output", table)
    assert (refused.exit_code, "which it would overwrite" in refused.stderr, table.read_bytes()) == (2, True, content)
    refused = invoke("explore", tmp_path, "--output", tmp_path / "nothing.html")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == f"quietbits: {tmp_path}: it has no tables: there must be .json files, or an index.parquet of some\n"
    (tmp_path / "bad.json").write_text("{}")
    refused = invoke("explore", tmp_path, "--output", tmp_path / "nothing.html")
    assert refused.exit_code == 2
    assert refused.stderr.splitlines()[-1].startswith(f"quietbits: {tmp_path / 'bad.json'}: refused: format: ")
    assert not (tmp_path / "nothing.html").exists()
