"""Workers of a sweep: this process, other processes, or workers of a Dask scheduler."""

import atexit
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from .calls import check_code_version

if TYPE_CHECKING:
    from joblib.externals.loky import ProcessPoolExecutor

# Idle time in seconds after which processes end.
IDLE_SECONDS = 300
# Seconds between a process's checks that its parent is alive.
PARENT_SECONDS = 1.0
# Warning of the process that removes the semaphores of a killed process; users need not see it.
LEAKED_SEMAPHORES = "ignore:resource_tracker:UserWarning"
# Number of calls in flight for each thread of a cluster, so that a call runs while the next call travels.
CALLS_PER_THREAD = 2
# Seconds between checks of a cluster's workers.
POLL_SECONDS = 1.0
LINEAR_ALGEBRA_THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "VECLIB")}


class WorkerLostError(RuntimeError):
    """The process that ran a call ended before the call did."""


class Workers(Protocol):
    """Interface of workers, which run calls.

    A call in flight has `add_done_callback`, which passes the call to a function, in any thread, when it has ended.
    """

    def capacity(self) -> int:
        """Return the number of calls that should be in flight; 0 without workers."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a call; its arguments may include results of calls, as `shared` returns them."""

    def shared(self, call: Any) -> Any:
        """Return a finished call's result as an argument of `submit`, or raise as `result` does.

        The result may be a reference to the place where a value was computed, instead of the value.
        """

    def result(self, call: Any) -> Any:
        """Return a finished call's result, or raise its error, or `WorkerLostError`."""


class ThisProcess:
    """Workers that run calls in this process, when they are submitted."""

    def capacity(self) -> int:
        """Return 1: this process runs a single call at a time."""
        return 1

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the call when it has ended."""
        future: Future[Any] = Future()
        future.set_result(function(*arguments))
        return future

    def shared(self, call: Any) -> Any:
        """Return the result."""
        return call.result()

    def result(self, call: Any) -> Any:
        """Return the result."""
        return call.result()


class Processes:
    """Workers in other processes of this machine, each with a thread for linear algebra."""

    def __init__(self, count: int) -> None:
        self._count = count

    def capacity(self) -> int:
        """Return the number of processes plus 1, so that no process waits for this process."""
        return self._count + 1

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a call, in new processes if an old process was killed."""
        try:
            return _executor(self._count).submit(function, *arguments)
        except BrokenExecutor:
            _executor.cache_clear()
            return _executor(self._count).submit(function, *arguments)

    def shared(self, call: Any) -> Any:
        """Return the result, which travels with each call."""
        return self.result(call)

    def result(self, call: Any) -> Any:
        """Return the result; if a process is killed, the calls of all processes end."""
        try:
            return call.result()
        except BrokenExecutor as error:
            raise WorkerLostError("its process was killed, or ran out of memory") from error


@lru_cache(maxsize=1)
def _executor(count: int) -> "ProcessPoolExecutor":
    # Sweeps in a single process do not wait for this import.
    from joblib.externals.loky import ProcessPoolExecutor
    from joblib.externals.loky.backend import resource_tracker

    # The process that removes semaphores inherits the warning filters at its start.
    sys.warnoptions.append(LEAKED_SEMAPHORES)
    try:
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(LEAKED_SEMAPHORES)
    # The executor ends while the modules that it uses are still there.
    atexit.register(_executor.cache_clear)
    # All sweeps of a process share this executor, as joblib's own executor accepts only joblib's calls.
    return ProcessPoolExecutor(
        max_workers=count, timeout=IDLE_SECONDS, env=LINEAR_ALGEBRA_THREADS, initializer=_end_with, initargs=(os.getpid(),)
    )


def _end_with(parent: int) -> None:
    """End this process soon after its parent has ended, for any reason."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_SECONDS)
        os._exit(1)

    if sys.platform != "win32":
        threading.Thread(target=watch, daemon=True).start()


class DaskWorkers:
    """Workers of a Dask scheduler, whose number may change.

    Each worker reports its software at first contact, as a worker with other code might not even understand a call.
    """

    def __init__(self, client: Any, address: str) -> None:
        self._client = client
        self._address = address
        self._asked = -POLL_SECONDS
        self._threads = 0
        self._known = set[str]()

    def capacity(self) -> int:
        """Return two calls for each thread of the cluster, counted at most a second ago."""
        if time.monotonic() - self._asked >= POLL_SECONDS:
            workers = self._connected()
            self._check_software(set(workers) - self._known)
            self._threads = sum(worker["nthreads"] for worker in workers.values())
            self._asked = time.monotonic()
        return CALLS_PER_THREAD * self._threads

    def _connected(self) -> dict[str, Any]:
        # After a lost connection no call can be awaited, as a scheduler that comes back has no record of the call.
        if self._client.status == "running":
            workers: dict[str, Any] | None = self._client.scheduler_info(n_workers=-1).get("workers")
            if workers is not None:
                return workers
        raise self.gone()

    def _check_software(self, addresses: set[str]) -> None:
        """Refuse workers with other code, or without a report of their code.

        Workers that leave before they answer are asked again if they come back.
        """
        if not addresses:
            return
        answers = self._client.run(_software_probe(), workers=sorted(addresses), on_error="return")
        for address, answer in answers.items():
            if not isinstance(answer, OSError):
                check_code_version(str(answer), f"the worker at {address}")
                self._known.add(address)

    def gone(self) -> ConnectionError:
        """Return the error of a lost connection."""
        return ConnectionError(
            f"the scheduler at {self._address} is gone: what was finished is saved; run the same command again to resume"
        )

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a call once, on any worker."""
        return self._client.submit(function, *arguments, pure=False)

    def shared(self, call: Any) -> Any:
        """Return a finished call itself, so that its result travels between workers.

        The method treats any other call as `result` does. If the worker that has the result ends, the result is computed again.
        """
        return call if call.status == "finished" else self.result(call)

    def result(self, call: Any) -> Any:
        """Return the result; a call is lost if several workers ended while they ran it."""
        try:
            return call.result()
        except import_module("distributed").scheduler.KilledWorker as error:
            raise WorkerLostError("workers were lost while they ran it") from error
        except (CancelledError, import_module("distributed").CancelledError) as error:
            raise self.gone() from error


def _software_probe() -> Callable[[], str]:
    """Return a function that pickle sends as code, because it is no module's attribute.

    The probe runs even on workers without this package.
    """

    def software() -> str:
        try:
            return str(import_module("quietbits.analysis.sweeps.calls").code_version())
        except (ImportError, AttributeError) as error:
            return str(error)

    return software


@contextmanager
def open_workers(workers: int, dask: str | None) -> Iterator[Workers]:
    """Open workers: this process, `workers` other processes, or a Dask scheduler's workers.

    `dask` is the address of the scheduler.
    """
    if dask is not None:
        distributed = import_module("distributed")
        with _silent_dask(), distributed.Client(dask, set_as_default=False) as client:
            pool = DaskWorkers(client, dask)
            try:
                yield pool
            except distributed.comm.CommClosedError as error:
                raise pool.gone() from error
    elif workers == 1:
        yield ThisProcess()
    else:
        yield Processes(workers)


@contextmanager
def _silent_dask() -> Iterator[None]:
    """Keep Dask's logs and warnings off the screen.

    quietbits reports a lost scheduler, and workers with other software, in a single line.
    """
    names = [name for name in logging.Logger.manager.loggerDict if name.partition(".")[0] == "distributed"]
    levels = {logger: logger.level for logger in map(logging.getLogger, names)}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=import_module("distributed.versions").VersionMismatchWarning)
        warnings.filterwarnings("ignore", message="Sending large graph")
        for logger in levels:
            logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            for logger, level in levels.items():
                logger.setLevel(level)
