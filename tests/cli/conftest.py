"""Fixtures that run `quietbits` in this process, in a temporary folder."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from quietbits.cli import console
from quietbits.cli.main import app

Document = dict[str, object]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session", autouse=True)
def no_lines_on_work_in_progress() -> Iterator[None]:
    """Keep commands from the lines that they print only on a slow machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(console, "FIRST_LINE", 1e6)
        yield


@pytest.fixture(scope="session")
def run() -> Callable[..., Result]:
    """Return a function that runs `quietbits` in click's runner, without building all commands."""
    runner, command = CliRunner.__base__, typer.main.get_command(app)
    return lambda *arguments: runner().invoke(command, [str(argument) for argument in arguments], prog_name="quietbits")


@pytest.fixture(scope="session")
def answer(run: Callable[..., Result]) -> Callable[..., Document]:
    """Return a function that runs `quietbits ... --json` and returns the printed object."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    def ask(*arguments: object) -> Document:
        result = run(*arguments, "--json")
        assert result.exit_code == 0, result.output
        assert result.stderr == ""
        assert result.stdout.count("\n") == 1
        loaded = json.loads(result.stdout, parse_constant=refuse)
        assert isinstance(loaded, dict)
        return loaded

    return ask


@pytest.fixture
def fault(run: Callable[..., Result]) -> Callable[..., str]:
    """Return a function that runs `quietbits` and returns the one line of its error."""

    def ask(*arguments: object) -> str:
        result = run(*arguments)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        complaint = result.stderr
        assert complaint.startswith("quietbits: ")
        assert complaint.count("\n") == 1
        return complaint.removeprefix("quietbits: ").rstrip("\n")

    return ask
