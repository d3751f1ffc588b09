"""Where the calls of a sweep run: in this process, in others, or on the workers of a Dask scheduler."""

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
from typing import Any, Protocol

from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.backend import resource_tracker

from .calls import check_code_version

# Processes that are not used for so long end.
IDLE_SECONDS = 300
# How often a process looks whether the one that started it is still there.
PARENT_SECONDS = 1.0
# Warning of the process that removes the semaphores of a killed one; a user need not see it.
LEAKED_SEMAPHORES = "ignore:resource_tracker:UserWarning"
# Calls in flight for each thread of a cluster: one runs while the next travels.
CALLS_PER_THREAD = 2
# How often a cluster is asked for its workers.
POLL_SECONDS = 1.0
LINEAR_ALGEBRA_THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "VECLIB")}


class WorkerLostError(RuntimeError):
    """The process that ran a call ended before the call did."""


class Workers(Protocol):
    """What runs calls; a call in flight has `add_done_callback`, which calls a function with it, in any thread, when it has ended."""

    def capacity(self) -> int:
        """Return how many calls should be in flight; 0 if there is nobody to run them."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a call; among its arguments may be results of calls, as `shared` returns them."""

    def shared(self, call: Any) -> Any:
        """Return a finished call's result as an argument for others: where it is large, it stays where it was made."""

    def result(self, call: Any) -> Any:
        """Return a finished call's result, or raise what it raised; `WorkerLostError` if its process ended."""


class ThisProcess:
    """Runs calls here, when they are submitted."""

    def capacity(self) -> int:
        """One at a time."""
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
    """Runs calls in other processes of this machine, each with one thread for linear algebra."""

    def __init__(self, count: int) -> None:
        self._count = count

    def capacity(self) -> int:
        """One more than there are processes, so that none waits for this one."""
        return self._count + 1

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a call, in new processes where one of the old ones was killed."""
        try:
            return _executor(self._count).submit(function, *arguments)
        except BrokenExecutor:
            _executor.cache_clear()
            return _executor(self._count).submit(function, *arguments)

    def shared(self, call: Any) -> Any:
        """Return the result: it travels with each call."""
        return self.result(call)

    def result(self, call: Any) -> Any:
        """Return the result; if one process is killed, the calls of all have ended."""
        try:
            return call.result()
        except BrokenExecutor as error:
            raise WorkerLostError("its process was killed, or ran out of memory") from error


@lru_cache(maxsize=1)
def _executor(count: int) -> ProcessPoolExecutor:
    # The process that removes semaphores takes over how warnings are filtered here when it starts.
    sys.warnoptions.append(LEAKED_SEMAPHORES)
    try:
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(LEAKED_SEMAPHORES)
    # The sweeps of one process share it. It is not joblib's own, which does not take calls of others.
    return ProcessPoolExecutor(
        max_workers=count, timeout=IDLE_SECONDS, env=LINEAR_ALGEBRA_THREADS, initializer=_end_with, initargs=(os.getpid(),)
    )


def _end_with(parent: int) -> None:
    """End this process soon after the one that started it has ended, whatever ended that one."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_SECONDS)
        os._exit(1)

    if sys.platform != "win32":
        threading.Thread(target=watch, daemon=True).start()


class DaskWorkers:
    """Runs calls on the workers of a Dask scheduler, however many there are at the time.

    Each worker is asked for its software when it is first seen: one with other code might not even understand a call.
    """

    def __init__(self, client: Any, address: str) -> None:
        self._client = client
        self._address = address
        self._asked = -POLL_SECONDS
        self._threads = 0
        self._known = set[str]()

    def capacity(self) -> int:
        """Two for each thread of the cluster, as of a second ago."""
        if time.monotonic() - self._asked >= POLL_SECONDS:
            workers = self._connected()
            self._check_software(set(workers) - self._known)
            self._threads = sum(worker["nthreads"] for worker in workers.values())
            self._asked = time.monotonic()
        return CALLS_PER_THREAD * self._threads

    def _connected(self) -> dict[str, Any]:
        # After a lost connection there is nothing to wait for: the scheduler that might come back knows of no call.
        if self._client.status == "running":
            workers: dict[str, Any] | None = self._client.scheduler_info(n_workers=-1).get("workers")
            if workers is not None:
                return workers
        raise self.gone()

    def _check_software(self, addresses: set[str]) -> None:
        """Refuse workers with other code, or that cannot say; those that are gone before they answer are asked again if they come back."""
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
        """Run a call once, wherever it is."""
        return self._client.submit(function, *arguments, pure=False)

    def shared(self, call: Any) -> Any:
        """Return the call itself: its result travels between workers, and is made again if the worker that has it ends."""
        return call if call.status == "finished" else self.result(call)

    def result(self, call: Any) -> Any:
        """Return the result; if workers ended while they ran the call, several times, it is lost."""
        try:
            return call.result()
        except import_module("distributed").scheduler.KilledWorker as error:
            raise WorkerLostError("workers were lost while they ran it") from error
        except (CancelledError, import_module("distributed").CancelledError) as error:
            raise self.gone() from error


def _software_probe() -> Callable[[], str]:
    """Return a function that travels by its code, as it is nobody's attribute: it runs where this package is missing, too."""

    def software() -> str:
        try:
            return str(import_module("quietbits.analysis.sweeps.calls").code_version())
        except (ImportError, AttributeError) as error:
            return str(error)

    return software


@contextmanager
def open_workers(workers: int, dask: str | None) -> Iterator[Workers]:
    """Give what runs calls: this process if `workers` is 1, others if it is more, or those of the scheduler at the address `dask`."""
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
    """Keep what Dask logs and warns of off the screen: a lost scheduler and workers with other software are errors here, in one line."""
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
