"""The work of a sweep's processes, which prepare and run tasks and reuse freed memory."""

import ctypes
import hashlib
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from functools import cache as keep
from pathlib import Path
from typing import Any

from threadpoolctl import ThreadpoolController

from ...errors import ConvergenceError, DataError
from ..catalogue.registry import REGISTRY
from .protocol import SweepTask
from .rows import EncodedRows, encode_rows
from .store import software_versions

# An infeasible task may raise these errors; any other exception is a program error and ends the sweep.
FAULTS = (ValueError, ArithmeticError, ConvergenceError, MemoryError)
# Seconds after which a call starts no further tasks and returns them.
LONGEST_CALL_SECONDS = 1.0
# Folders, and modules beside them, that affect results.
SOURCE = ("solvers/**/*", "design/**/*", "analysis/**/*", "figures/**/*", "*.py")
SOURCE_KINDS = {".py", ".jinja", ".json", ".toml"}
# Parameters of mallopt in glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
# The largest size that glibc accepts; arrays of a chunk of clients take a few megabytes.
LARGEST_REUSED = 32 * 2**20
MOST_KEPT = 64 * 2**20


@dataclass(frozen=True)
class Prepared:
    """Preparation for a design's tasks, or its error, and its process's code version."""

    value: Any = None
    error: Exception | None = None
    code: str | None = None


@dataclass(frozen=True)
class FinishedTasks:
    """Outcome of the first tasks of a call.

    Attributes
    ----------
    outcomes : list of EncodedRows or Exception
        Rows of the tasks, or their errors.
    seconds : float
        Total duration of the tasks.
    codes : frozenset of str
        Code versions of the processes that took part.
    mistake : BaseException or None
        Exception other than an infeasible task's, or an interruption.
    """

    outcomes: list[EncodedRows | Exception]
    seconds: float
    codes: frozenset[str]
    mistake: BaseException | None = None


def prepare(task: SweepTask, cache: Path, with_code: bool, registered: bytes) -> Prepared:
    """Prepare for all tasks of a design; `registered` has the script's mechanisms."""
    REGISTRY.adopt(registered)
    code = code_version() if with_code else None
    try:
        with ONE_THREAD.held():
            return Prepared(task.prepare(cache), None, code)
    except FAULTS as error:
        # The traceback would keep the call's data in memory.
        return Prepared(None, error.with_traceback(None), code)


def run_together(prepared: Prepared | None, tasks: Sequence[SweepTask], cache: Path, with_code: bool, registered: bytes) -> FinishedTasks:
    """Run the tasks that start within a second, in turn; `prepared` may serve them all."""
    REGISTRY.adopt(registered)
    reuse_memory()
    start = time.perf_counter()
    codes = {code for code in (code_version() if with_code else None, None if prepared is None else prepared.code) if code is not None}
    outcomes: list[EncodedRows | Exception] = []
    mistake: BaseException | None = None
    with ONE_THREAD.held():
        for task in tasks:
            try:
                outcomes.append(_run(task, prepared, cache))
            except BaseException as error:  # noqa: BLE001 - it is raised when what was done is saved: an interruption too
                error.add_note(f"Task: {task.setting}\n{traceback.format_exc()}")
                mistake = error.with_traceback(None)
                break
            if time.perf_counter() - start > LONGEST_CALL_SECONDS:
                break
    return FinishedTasks(outcomes, time.perf_counter() - start, frozenset(codes), mistake)


def _run(task: SweepTask, prepared: Prepared | None, cache: Path) -> EncodedRows | Exception:
    if prepared is not None and prepared.error is not None:
        return prepared.error
    try:
        return encode_rows(task.run(task.prepare(cache) if prepared is None else prepared.value))
    except FAULTS as error:
        return error.with_traceback(None)


@keep
def code_version() -> str:
    """Return a hash of the software's versions, and of this package's modules and templates."""
    root = Path(__file__).parents[2]
    files = sorted(path for pattern in SOURCE for path in root.glob(pattern) if path.suffix in SOURCE_KINDS)
    digest = hashlib.sha256(repr(software_versions()).encode())
    for path in files:
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def check_code_version(version: str, where: str) -> None:
    """Raise ``DataError`` unless a worker has this process's code."""
    if version != code_version():
        raise DataError(
            f"{where} has other versions of quietbits or its libraries than this process, or none: install the same on all machines"
        )


class _OneThread:
    """A limit of libraries to one thread, as the order of additions must not depend on threads.

    The limit applies to the process. If several threads run calls, as in a worker of Dask, the limit ends with the last thread's run.
    """

    def __init__(self) -> None:
        self._lock, self._users, self._limit = threading.Lock(), 0, ExitStack()

    @contextmanager
    def held(self) -> Iterator[None]:
        with self._lock:
            if self._users == 0:
                self._limit.enter_context(_libraries().limit(limits=1))
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._limit.close()


ONE_THREAD = _OneThread()


@keep
def _libraries() -> ThreadpoolController:
    # Searching for the libraries takes longer than a small task.
    return ThreadpoolController()


@cache
def reuse_memory() -> None:
    """Keep up to `MOST_KEPT` bytes of freed memory for reuse; do nothing without glibc.

    The limit for arrays is `LARGEST_REUSED`. Without reuse each array of a chunk costs the page faults of all its memory, which take half
    of a task's time, and two thirds under the nanny of a Dask worker, which sets ``MALLOC_TRIM_THRESHOLD_``.
    """
    if not sys.platform.startswith("linux"):
        return
    # Other libraries, such as musl, have no such function.
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGEST_REUSED)
        mallopt(M_TRIM_THRESHOLD, MOST_KEPT)
