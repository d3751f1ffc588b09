"""The commands and the program of the page to get started run.

Their outputs equal the page's outputs.

Run as a script, this file writes the outputs into the page.
"""

import contextlib
import io
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import quietbits

PAGE = Path(quietbits.__file__).parent / "docs" / "get-started.md"
# A command with its output, or a program with its output in the block that follows.
BLOCK = re.compile(
    r"```console\n\$ (?P<command>[^\n]+)\n(?P<shown>.*?)```|```python\n(?P<program>.*?)```\n\n```text\n(?P<printed>.*?)```", re.DOTALL
)

DURATION = re.compile(r", [\d.]+ s(?= )")


def command_output(command: str, folder: Path) -> str:
    """Return what a command prints in a terminal of 100 columns."""
    program, *arguments = shlex.split(command)
    assert program == "quietbits"
    environment = {"COLUMNS": "100", "PATH": "", "PYTHONWARNINGS": "ignore"}
    run = subprocess.run(
        [sys.executable, "-m", "quietbits", *arguments], cwd=folder, capture_output=True, text=True, check=True, env=environment
    )
    # The duration of a design differs between runs.
    lines = DURATION.sub(lambda duration: " " * len(duration[0]), run.stdout).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def program_output(program: str, folder: Path) -> str:
    """Return what a program prints in the folder of the commands."""
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        exec(program, {})  # noqa: S102 - the page is the project's own
    return printed.getvalue()


def regenerated(text: str, folder: Path) -> str:
    """Return the page with the outputs of its blocks, which run in their order in one folder."""

    def run(block: re.Match[str]) -> str:
        if block["command"] is not None:
            return f"```console\n$ {block['command']}\n{command_output(block['command'], folder)}```"
        return f"```python\n{block['program']}```\n\n```text\n{program_output(block['program'], folder)}```"

    return BLOCK.sub(run, text)


def test_commands_and_program_print_what_the_page_shows(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(BLOCK.findall(text)) == 4
    assert regenerated(text, tmp_path).splitlines() == text.splitlines(), (
        "run python tests/project/test_get_started.py, and look at the change"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        PAGE.write_text(regenerated(PAGE.read_text(encoding="utf-8"), Path(scratch)), encoding="utf-8")
