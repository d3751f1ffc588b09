"""Sweeps that are killed again and again, and end with every row in the same table."""

import os
import random
import signal
import time
from pathlib import Path

from ..analysis.sweeps.run import run_sweep
from .cases import Arguments, Attack
from .toy_sweep import squares, whole

TASKS = 300


def draw(rng: random.Random) -> Arguments:
    """Draw the seconds after which each run is killed."""
    return {"moments": [10 ** rng.uniform(-3, 0) for _ in range(rng.randint(1, 4))], "workers": rng.choice((1, 1, 1, 2))}


def check(folder: Path, moments: list[float], workers: int) -> None:
    """Kill run after run, let the last run finish, and compare."""
    for moment in moments:
        child = os.fork()
        if child == 0:
            os.setsid()
            run_sweep(squares(TASKS), folder, workers=workers)
            os._exit(0)
        time.sleep(moment)
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:
            # The child is not yet the leader of a new group.
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    results = run_sweep(squares(TASKS), folder, workers=workers)
    assert results.read_bytes() == whole(TASKS).results


ATTACK = Attack("kills", draw, check, seconds=60.0, prepare=lambda: whole(TASKS))
