"""Which tasks of a sweep run next: those that share a design together, in calls that are neither too short nor too long."""

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .protocol import SweepTask

# How long a call should take: long beside the milliseconds that it takes to travel, short beside a person's patience.
CALL_SECONDS = 0.25
MOST_TASKS_OF_CALL = 1024
# Estimates are of the past: a call may be this many times as large as the last one.
GROWTH = 8


@dataclass(eq=False)
class Group:
    """Pending tasks that share a design, and so what is prepared for them.

    Attributes
    ----------
    design : Hashable
        The design; None if each task prepares for itself.
    positions : deque of int
        Those that are still to be run.
    seconds : float or None
        What a task took of late.
    size : int
        Tasks of the last call.
    prepared : Prepared, or a call that returns it, or None
        What was prepared for them.
    """

    design: Hashable | None
    positions: deque[int] = field(default_factory=deque)
    seconds: float | None = None
    size: int = 0
    prepared: Any = None

    def next_size(self, share: int) -> int:
        """Return how many tasks the next call should have, of which all workers are to have `share`."""
        wanted = 1 if self.seconds is None else min(int(CALL_SECONDS / max(self.seconds, 1e-9)), GROWTH * self.size, MOST_TASKS_OF_CALL)
        return max(1, min(wanted, -(-len(self.positions) // share)))


class PendingGroups:
    """The pending tasks, a group at a time.

    Parameters
    ----------
    tasks : sequence of SweepTask
        All tasks of the sweep, which may be made when they are asked for.
    positions : array of int
        The pending ones; those of a design follow each other.
    designs : array of int
        A hash of each one's design, 0 for none.

    Attributes
    ----------
    designs : int
        Number of different designs, as far as hashes tell.
    """

    def __init__(self, tasks: Sequence[SweepTask], positions: NDArray[np.int64], designs: NDArray[np.int64]) -> None:
        self._tasks = tasks
        self._positions = positions
        self._ends = np.append(np.flatnonzero(np.diff(designs)) + 1, len(positions)) if len(positions) else np.empty(0, dtype=np.int64)
        self._start = 0
        self.designs = len(np.unique(designs[designs != 0]))
        self._others: deque[Group] = deque()

    def next_group(self) -> Group | None:
        """Return the next group; None if there is no more."""
        if self._others:
            return self._others.popleft()
        if self._start == len(self._positions):
            return None
        end = int(self._ends[np.searchsorted(self._ends, self._start, side="right")])
        positions = self._positions[self._start : end].tolist()
        self._start = end
        return Group(self._tasks[positions[0]].design, deque(positions))

    def take(self, group: Group, share: int) -> tuple[list[int], list[SweepTask]]:
        """Take the tasks of a group's next call: their positions, and themselves."""
        group.size = group.next_size(share)
        positions: list[int] = []
        tasks: list[SweepTask] = []
        while group.positions and len(tasks) < group.size:
            task = self._tasks[position := group.positions.popleft()]
            if task.design == group.design:
                positions.append(position)
                tasks.append(task)
            else:
                # Two designs with one hash.
                self._put_elsewhere(position, task.design)
        return positions, tasks

    def _put_elsewhere(self, position: int, design: Hashable | None) -> None:
        for other in self._others:
            if other.design == design:
                other.positions.append(position)
                return
        self._others.append(Group(design, deque([position])))
