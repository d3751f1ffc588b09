"""Outputs of commands in the docs are what the commands print.

A fenced block of `text` after the comment `<!-- output -->` has lines that one of the commands right above it prints: a label and its
value. The block may omit lines. Numbers may differ in their fourth digit, as another version of a library may end at a neighbouring design.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from click.testing import CliRunner

import quietbits
from quietbits.cli.main import app

DOCS = Path(quietbits.__file__).parent / "docs"
PAGES = sorted(page for page in DOCS.glob("[!_]*/**/*.md"))
BLOCK = re.compile(r"((?:^ {4}quietbits [^\n]*\n)+)\n<!-- output -->\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"^<!-- file: ([\w.-]+) -->\n```toml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CLOSE = 1e-3
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Shown:
    """Commands of a page, and the lines of their output that the page shows."""

    page: str
    commands: tuple[str, ...]
    lines: tuple[tuple[str, str], ...]


def shown(page: Path) -> Iterator[Shown]:
    """Return the outputs that a page shows."""
    for commands, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        lines = tuple((label, value) for label, value in (re.split(r" {2,}", line.strip(), maxsplit=1) for line in text.splitlines()))
        yield Shown(page.relative_to(DOCS).as_posix(), tuple(line.strip() for line in commands.splitlines()), lines)


ALL = [item for page in PAGES for item in shown(page)]


def printed(command: str) -> dict[str, str]:
    """Return the lines of the table that a command prints, by their labels."""
    result = CliRunner(env={"COLUMNS": "500"}).invoke(typer.main.get_command(app), shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
    rows = (re.split(r" *│ *", line.strip("│ \n")) for line in result.output.splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2}


def agree(first: str, second: str) -> bool:
    """Return whether two values are the same words, and nearly the same numbers."""
    numbers = zip(NUMBER.findall(first), NUMBER.findall(second), strict=False)
    same = NUMBER.sub("#", first) == NUMBER.sub("#", second)
    return same and all(abs(float(a) - float(b)) <= CLOSE * max(abs(float(a)), abs(float(b))) for a, b in numbers)


@pytest.mark.parametrize("item", ALL, ids=lambda item: f"{item.page}-{' '.join(item.commands[-1].split()[1:3])}")
def test_a_page_shows_what_its_command_prints(item: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILE.findall((DOCS / item.page).read_text(encoding="utf-8")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    outputs = [printed(command) for command in item.commands]
    # All lines come from one command.
    wrong = [[line for line in item.lines if not agree(output.get(line[0], ""), line[1])] for output in outputs]
    assert min(wrong, key=len) == []


def test_outputs_are_found() -> None:
    assert len(ALL) >= 10
    assert all(item.lines for item in ALL)


@pytest.mark.parametrize(
    ("written", "same"), [("0.9032 at delta 1e-05, by pld", True), ("0.91 at delta 1e-05, by pld", False), ("0.9032", False)]
)
def test_a_wrong_value_is_noticed(written: str, same: bool) -> None:
    assert agree(written, "0.903283 at delta 1e-05, by pld") is same
