"""The line of progress in a pseudo-terminal, and its lines in a pipe."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

SOURCE = """
import time
from quietbits.cli.console import progress_bar, working
with progress_bar("reading data") as on_step:
    time.sleep(0.2)
    on_step(0, 4, "preparing a")
    time.sleep(0.2)
    on_step(2, 4, "running a step whose name is far too long for a line of a terminal, so that its end must be cut off somewhere")
    time.sleep(0.2)
    on_step(3, 4, "drawing a")
    time.sleep(0.2)
with working("drawing b"):
    time.sleep(0.2)
"""


def in_a_terminal(*command: str, folder: Path) -> list[str]:
    """Run a command with stderr as a terminal, and return the lines on the terminal.

    The function omits repeated lines.
    """
    here, there = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=there)
    os.close(there)
    shown = bytearray()
    # A terminal without a process is an error on Linux, and the end of a file elsewhere.
    try:
        while piece := os.read(here, 2**16):
            shown += piece
    except OSError:
        pass
    os.close(here)
    assert process.wait() == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    lines = [line.strip(" ━╸╺⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏") for line in re.split(r"[\r\n]+", text)]
    return [line for line in dict.fromkeys(lines) if line]


def test_a_terminal_shows_steps_with_the_time_left(tmp_path: Path) -> None:
    lines = in_a_terminal(sys.executable, "-c", SOURCE, folder=tmp_path)
    assert lines[0] == "0 s reading data"
    assert "0 of 4 0 s preparing a" in lines
    assert any(re.fullmatch(r"2 of 4 [01] s, about [01] s left running a step whose name is .*…", line) for line in lines), lines
    assert any(re.fullmatch(r"3 of 4 [01] s, about [01] s left drawing a", line) for line in lines), lines
    assert lines[-1].endswith("drawing b")
    assert max(map(len, lines)) <= 100


def test_a_figure_shows_that_it_is_drawn_before_all_steps_are_done(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "quietbits", "reproduce", "dprec-communication", "--quick", "--output", "figures"]
    lines = in_a_terminal(*command, folder=tmp_path)
    (drawing,) = {re.split(r"(?<=work) ", line)[0] for line in lines if line.endswith(" drawing dprec-communication")}
    done, total = map(int, re.findall(r"\d+", drawing))
    assert drawing == f"{done} of {total} s of work"
    assert done == total - 1


def test_calibrations_show_the_evaluations_of_their_searches(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "quietbits", "calibrate", "laplace", "--epsilon", "2", "--delta", "1e-6", "--rounds", "50"]
    lines = in_a_terminal(*command, folder=tmp_path)
    assert any(re.match(r"\d of about \d \d s.* searching epsilon per round", line) for line in lines), lines
