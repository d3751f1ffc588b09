"""A case in a separate process: the case may crash, fill memory, or run forever."""

import enum
import os
import resource
import signal
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from .cases import Arguments, Attack, Refused

STEP_SECONDS = 0.002


class Outcome(enum.IntEnum):
    """The outcomes of a case; the values are exit codes."""

    HELD = 0
    FAILED = 1
    REFUSED = 3
    TOO_LARGE = 4
    TOO_SLOW = 5


@dataclass(frozen=True)
class Ended:
    """The outcome of a case, with its message if it failed."""

    outcome: Outcome
    text: str = ""


def isolate(folder: Path, most_memory: int) -> None:
    """Limit this forked process's memory, silence it, and move it to its own group and folder."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (most_memory, most_memory))
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    os.chdir(folder)


def run_apart(attack: Attack, case: Arguments) -> Ended:
    """Run a case in a fork with limits on time and memory, and end all that it started.

    The case runs in an empty folder.
    """
    with tempfile.TemporaryDirectory(prefix="attack-") as name:
        folder, said = Path(name) / "case", Path(name) / "said"
        folder.mkdir()
        child = os.fork()
        if child == 0:
            _run_here(attack, case, folder, said)
        deadline = time.monotonic() + attack.seconds
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
            time.sleep(STEP_SECONDS)
        _end_group(child)
        if ended[0] == 0:
            os.waitpid(child, 0)
            return Ended(Outcome.TOO_SLOW)
        code = os.waitstatus_to_exitcode(ended[1])
        text = said.read_text(encoding="utf-8", errors="replace") if said.exists() else f"the process ended with code {code}"
        return Ended(Outcome(code) if code in set(Outcome) else Outcome.FAILED, text)


def _end_group(child: int) -> None:
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _run_here(attack: Attack, case: Arguments, folder: Path, said: Path) -> None:
    """Run the case in this process, which is the fork, and end the process."""
    outcome = Outcome.FAILED
    try:
        isolate(folder, attack.most_memory)
        attack.run(folder, case)
        outcome = Outcome.HELD
    except Refused:
        outcome = Outcome.REFUSED
    except MemoryError:
        outcome = Outcome.TOO_LARGE
    except BaseException:  # noqa: BLE001 - no exception of any kind may happen
        said.write_text(traceback.format_exc(), encoding="utf-8", errors="replace")
    finally:
        os._exit(outcome)
