import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deployments import NAMES, deployment_of_name

from quietbits.design.deployment import folder as module
from quietbits.design.deployment.folder import deployment_files, load_deployment, verify_deployment, write_deployment
from quietbits.errors import DataError


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the deployment of a table."""
    folder = tmp_path_factory.mktemp("deployed") / "table"
    write_deployment(deployment_of_name("table"), folder)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_the_same_deployment_has_the_same_bytes(name: str, tmp_path: Path) -> None:
    deployment = deployment_of_name(name)
    first, again = deployment_files(deployment, ["c"]), deployment_files(deployment_of_name.__wrapped__(name), ["c"])
    assert first == again
    assert len(write_deployment(deployment, tmp_path / "new", ["c"])) == len(first)
    assert {str(path.relative_to(tmp_path / "new")): path.read_bytes() for path in (tmp_path / "new").rglob("*.*")} == first
    verification = verify_deployment(tmp_path / "new")
    assert verification.deployment.hash == deployment.hash == load_deployment(tmp_path / "new").hash
    assert set(verification.files) == set(first)
    assert verification.uncompared == ()


def test_any_changed_byte_is_refused(written: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(written, copy)
    for path in sorted(file for file in copy.rglob("*") if file.is_file()):
        content = path.read_bytes()
        for place in (0, len(content) // 2, len(content) - 2):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            with pytest.raises(DataError, match=r"^.+$"):
                verify_deployment(copy)
        odd = (b"", b"[" * 100_000, b"1" * 5000, b"{}", b"null", b"\xff") if path.suffix == ".json" else ()
        for changed in (content[:-1], content + b"\n", *odd):
            path.write_bytes(changed)
            with pytest.raises(DataError, match=r"^[^\n]+$"):
                verify_deployment(copy)
        path.write_bytes(content)
    verify_deployment(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "vectors.json").unlink(), "vectors.json: the file is missing"),
        (lambda folder: (folder / "README.md").unlink(), "README.md: the file is missing"),
        (lambda folder: (folder / "c" / "more.h").write_text(""), "more.h: the folder must hold the deployment's files only"),
        (lambda folder: (folder / "c" / "table.h").write_text("int x;"), "table.h: the file was changed"),
        (lambda folder: (folder / "table.json").unlink(), "deployment.json: table.json must be the table"),
    ],
)
def test_faults_of_folders_are_named(written: Path, tmp_path: Path, change: Callable[[Path], object], message: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(written, copy)
    change(copy)
    with pytest.raises(DataError, match=message):
        verify_deployment(copy)


def test_another_deployment_is_not_written_over(written: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in written.rglob("*.*")}
    with pytest.raises(DataError, match="output must be a new or empty folder, or one of this very deployment"):
        write_deployment(deployment_of_name("number"), written)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="output must be a new or empty folder"):
        write_deployment(deployment_of_name("table"), tmp_path)
    assert {path: path.read_bytes() for path in written.rglob("*.*")} == before
    write_deployment(deployment_of_name("table"), written)
    assert {path: path.read_bytes() for path in written.rglob("*.*")} == before


def test_code_of_another_version_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_deployment(deployment_of_name("table"), tmp_path / "new", ["c"])
    (tmp_path / "new" / "c" / "table.h").write_text("/* older text */\n")
    monkeypatch.setattr(module, "__version__", "99.0")
    verification = verify_deployment(tmp_path / "new")
    assert set(verification.uncompared) == {"README.md", "c/table.h"}
    assert set(verification.files) == {"deployment.json", "table.json", "vectors.json"}


def test_unknown_languages_are_refused() -> None:
    with pytest.raises(ValueError, match="language must be one of c"):
        deployment_files(deployment_of_name("table"), ["cobol"])


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"deployment\.json"):
        load_deployment(tmp_path)


def test_the_document_is_ascii_json(written: Path) -> None:
    content = (written / "deployment.json").read_bytes()
    assert content.isascii()
    document = json.loads(content)
    assert document["sha256"] == deployment_of_name("table").hash
