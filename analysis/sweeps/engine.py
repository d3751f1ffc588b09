"""The engine of a sweep: it keeps calls in flight, saves rows, and retries lost tasks.

Tasks that share a design run together, in calls that are neither too short nor too long.
"""

import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from textwrap import shorten
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...progress import OnStep
from .calls import FinishedTasks, check_code_version, prepare, run_together
from .protocol import SweepTask
from .rows import EncodedRows
from .store import SweepStore
from .workers import WorkerLostError, Workers

# Target duration of a call in seconds, long beside its transfer and short for a waiting user.
CALL_SECONDS = 0.25
MOST_TASKS_OF_CALL = 1024
# Largest ratio of a call's size to the last call's, because the estimates of durations rest on past calls.
GROWTH = 8
# Largest delay of saving in seconds, unless more rows arrive.
COMMIT_SECONDS = 0.1
# Seconds between checks while no worker can run calls.
WAIT_SECONDS = 1.0
STEP_WIDTH = 60

OnRows = Callable[[EncodedRows], None]


@dataclass(eq=False)
class Group:
    """Pending tasks that share a design and its preparation.

    Attributes
    ----------
    design : Hashable
        The design; None if each task prepares for itself.
    positions : deque of int
        Positions of the tasks that are still to be run.
    seconds : float or None
        Recent duration of a task.
    size : int
        Number of tasks of the last call.
    prepared : Prepared, or a call that returns it, or None
        Preparation of the tasks.
    """

    design: Hashable | None
    positions: deque[int] = field(default_factory=deque)
    seconds: float | None = None
    size: int = 0
    prepared: Any = None

    def next_size(self, share: int) -> int:
        """Return the number of tasks of the next call, at most the pending tasks over `share`."""
        wanted = 1 if self.seconds is None else min(int(CALL_SECONDS / max(self.seconds, 1e-9)), GROWTH * self.size, MOST_TASKS_OF_CALL)
        return max(1, min(wanted, -(-len(self.positions) // share)))


class PendingGroups:
    """The pending tasks, in groups.

    Parameters
    ----------
    tasks : sequence of SweepTask
        All tasks of the sweep, which may be made on demand.
    positions : array of int
        Positions of the pending tasks; tasks of a design follow each other.
    designs : array of int
        A hash of each pending task's design, 0 for none.

    Attributes
    ----------
    designs : int
        Number of different designs, as counted by their hashes.
    """

    def __init__(self, tasks: Sequence[SweepTask], positions: NDArray[np.int64], designs: NDArray[np.int64]) -> None:
        self._tasks = tasks
        self._positions = positions
        self._ends = np.append(np.flatnonzero(np.diff(designs)) + 1, len(positions)) if len(positions) else np.empty(0, dtype=np.int64)
        self._start = 0
        self.designs = len(np.unique(designs[designs != 0]))
        self._others: deque[Group] = deque()

    def next_group(self) -> Group | None:
        """Return the next group, or None after the last."""
        if self._others:
            return self._others.popleft()
        if self._start == len(self._positions):
            return None
        end = int(self._ends[np.searchsorted(self._ends, self._start, side="right")])
        positions = self._positions[self._start : end].tolist()
        self._start = end
        return Group(self._tasks[positions[0]].design, deque(positions))

    def take(self, group: Group, share: int) -> tuple[list[int], list[SweepTask]]:
        """Take the tasks of a group's next call, with their positions."""
        group.size = group.next_size(share)
        positions: list[int] = []
        tasks: list[SweepTask] = []
        while group.positions and len(tasks) < group.size:
            task = self._tasks[position := group.positions.popleft()]
            if task.design == group.design:
                positions.append(position)
                tasks.append(task)
            else:
                # Two designs have the same hash.
                self._put_elsewhere(position, task.design)
        return positions, tasks

    def _put_elsewhere(self, position: int, design: Hashable | None) -> None:
        for other in self._others:
            if other.design == design:
                other.positions.append(position)
                return
        self._others.append(Group(design, deque([position])))


@dataclass(frozen=True, eq=False)
class _Flight:
    """A call in flight, which runs tasks of a group or prepares the group.

    A preparation has no positions.
    """

    group: Group
    tasks: list[SweepTask]
    positions: list[int]
    alone: bool = False


class SweepRun:
    """A run of a sweep's pending tasks.

    Parameters
    ----------
    tasks : sequence of SweepTask
        All tasks of the sweep.
    store : SweepStore
        Store of the tasks and their rows.
    workers : Workers
        Workers that run calls.
    cache : Path
        Folder of designed tables.
    check_code : bool
        Whether workers may have other software than this process, in which case the run refuses their results.
    registered : bytes
        Mechanisms that the script has registered, as `Registry.packed` returns them, for workers; empty if workers do not need them.
    on_step : callable
        Callback, as in `run_sweep`.
    on_rows : callable
        Called with the rows of each task that is finished, before they are saved.

    Attributes
    ----------
    errors : dict of int to Exception
        Errors of the failed tasks, by their positions.
    """

    def __init__(
        self,
        tasks: Sequence[SweepTask],
        store: SweepStore,
        workers: Workers,
        *,
        cache: Path,
        check_code: bool,
        registered: bytes = b"",
        on_step: OnStep,
        on_rows: OnRows | None = None,
    ) -> None:
        self.errors: dict[int, Exception] = {}
        self._tasks, self._store, self._workers = tasks, store, workers
        self._with_all = cache, check_code, registered
        self._check_code, self._on_step, self._on_rows = check_code, on_step, on_rows
        positions, designs = store.pending()
        self._groups = PendingGroups(tasks, positions, designs)
        self._steps = len(tasks) + self._groups.designs
        self._done = len(tasks) - len(positions)
        self._ended: SimpleQueue[Any] = SimpleQueue()
        self._flying: dict[Any, _Flight] = {}
        # Ready groups, and calls whose process was lost with other calls. Each of these calls is retried alone, to identify the call at
        # fault.
        self._ready: deque[Group] = deque()
        self._suspects: deque[_Flight] = deque()
        self._saved = 0.0

    def run(self) -> None:
        """Run the pending tasks and save the rows of each at once."""
        if self._done:
            self._say(f"{self._done} of {len(self._tasks)} tasks were finished before")
        while True:
            capacity = self._workers.capacity()
            while len(self._flying) < capacity and (flight := self._next_flight(capacity)) is not None:
                self._launch(flight)
            if self._flying:
                self._land()
            elif capacity:
                self._say("writing the table of results")
                return
            if not capacity:
                self._say("no worker is connected: waiting for one")
                time.sleep(WAIT_SECONDS)

    def _next_flight(self, capacity: int) -> _Flight | None:
        if any(flight.alone for flight in self._flying.values()) or (self._suspects and self._flying):
            return None
        if self._suspects:
            return self._suspects.popleft()
        while self._ready:
            group = self._ready[0]
            positions, tasks = self._groups.take(group, 2 * capacity)
            if not group.positions:
                self._ready.popleft()
            if tasks:
                return _Flight(group, tasks, positions)
        group_or_none = self._groups.next_group()
        if group_or_none is None:
            return None
        if group_or_none.design is None:
            self._ready.append(group_or_none)
            return self._next_flight(capacity)
        return _Flight(group_or_none, [self._tasks[group_or_none.positions[0]]], [])

    def _launch(self, flight: _Flight) -> None:
        # No other step reports progress while the first call runs, or while `submit` runs a call in this process.
        if not self._flying:
            self._say(_step("running" if flight.positions else "preparing", flight.tasks[0]))
        if flight.positions:
            call = self._workers.submit(run_together, flight.group.prepared, flight.tasks, *self._with_all)
        else:
            call = self._workers.submit(prepare, flight.tasks[0], *self._with_all)
        self._flying[call] = flight
        call.add_done_callback(self._ended.put)

    def _land(self) -> None:
        """Wait for a call, take its results, and save them if no other call has ended meanwhile."""
        try:
            call = self._ended.get(timeout=COMMIT_SECONDS)
        except Empty:
            self._store.commit()
            return
        flight = self._flying.pop(call)
        try:
            if flight.positions:
                self._take(flight, self._workers.result(call))
            else:
                flight.group.prepared = self._workers.shared(call)
                self._ready.append(flight.group)
                self._say(_step("prepared", flight.tasks[0]), 1)
        except WorkerLostError as error:
            self._lose(flight, error)
        now = time.monotonic()
        if self._ended.empty() or now - self._saved > COMMIT_SECONDS:
            self._store.commit()
            self._saved = now

    def _take(self, flight: _Flight, ran: FinishedTasks) -> None:
        if self._check_code:
            check_code_version(" ".join(sorted(ran.codes)), "a worker")
        group, count = flight.group, len(ran.outcomes)
        for position, outcome in zip(flight.positions, ran.outcomes, strict=False):
            if isinstance(outcome, EncodedRows):
                if self._on_rows is not None:
                    self._on_rows(outcome)
                self._store.add(position, outcome)
            else:
                self.errors[position] = outcome
        if ran.mistake is not None:
            raise ran.mistake
        group.seconds = ran.seconds / max(count, 1)
        self._put_back(group, flight.positions[count:])
        self._say(_step("ran", flight.tasks[count - 1]), count)

    def _put_back(self, group: Group, positions: list[int]) -> None:
        if positions:
            if not group.positions:
                self._ready.appendleft(group)
            group.positions.extendleft(reversed(positions))

    def _lose(self, flight: _Flight, error: WorkerLostError) -> None:
        """Retry the tasks of a lost call separately; a task that ran alone has failed."""
        if not flight.alone:
            ones = zip(flight.positions, flight.tasks, strict=True) if flight.positions else ()
            self._suspects += [_Flight(flight.group, [task], [position], alone=True) for position, task in ones]
            if not flight.positions:
                self._suspects.append(_Flight(flight.group, flight.tasks, [], alone=True))
            return
        positions = flight.positions or list(flight.group.positions)
        self.errors |= dict.fromkeys(positions, error)
        self._say(_step("lost", flight.tasks[0]), len(positions) + (not flight.positions))

    def _say(self, text: str, done: int = 0) -> None:
        self._done += done
        self._on_step(self._done, self._steps, text)


def _step(verb: str, task: SweepTask) -> str:
    return f"{verb} {shorten(task.setting, STEP_WIDTH, placeholder=' ...')}"
