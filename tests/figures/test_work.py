"""Expected work of figures: recorded durations in proportion to unfinished tasks, and progress in seconds of it."""

from pathlib import Path

import pytest

from quietbits.analysis.sweeps.run import run_tasks
from quietbits.analysis.sweeps.store import STORE_NAME
from quietbits.figures.listing import LISTING
from quietbits.figures.registry import FIGURES
from quietbits.figures.work import ExpectedWork, FigureWork, figure_work, finished_count, part_of

NAME = "dprec-communication"


def work(*figures: FigureWork, part: str = "", workers: int = 1) -> ExpectedWork:
    return ExpectedWork(figures=figures, part=part, left_out=(), workers=workers)


def test_work_is_in_proportion_to_unfinished_tasks(tmp_path: Path) -> None:
    tasks = FIGURES[NAME].tasks(0, True)
    some = [task for task in tasks if task.scheme == "uncompressed"]
    assert 0 < len(some) < len(tasks)
    run_tasks(some, tmp_path)
    assert finished_count(tasks, tmp_path) == len(some)
    assert finished_count(tasks, tmp_path / "none") == 0
    listed = LISTING[NAME]
    left = figure_work(NAME, tasks, tmp_path, of=len(tasks), quick=True, drawn=False, recorded=True)
    assert left.pending == len(tasks) - len(some)
    assert left.seconds == pytest.approx(listed.quick_seconds * left.pending / len(tasks))
    drawn = figure_work(NAME, tasks, tmp_path, of=len(tasks), quick=True, drawn=True, recorded=True)
    assert (drawn.pending, drawn.seconds, drawn.weight) == (0, 0.0, 0)
    assert figure_work(NAME, tasks, tmp_path, of=len(tasks), quick=True, drawn=False, recorded=False).seconds is None
    (tmp_path / STORE_NAME).write_bytes(b"no database")
    assert finished_count(tasks, tmp_path) == 0


def test_an_estimate_says_what_remains_and_how_long_it_takes() -> None:
    long = FigureWork(name="a", tasks=10, pending=5, drawn=False, seconds=700.0)
    done = FigureWork(name="b", tasks=4, pending=0, drawn=True, seconds=0.0)
    assert str(work(long, done)) == "2 figures, 1 of them drawn before: 5 of 14 tasks are left, about 12 min 0 s of processor time"
    assert str(work(long, workers=2)).endswith("about 12 min 0 s of processor time, 6 min 0 s with 2 workers")
    assert str(work(done)) == "1 figure, 1 of them drawn before: 0 of 4 tasks are left, nothing is left to do"
    unknown = FigureWork(name="c", tasks=4, pending=4, drawn=False, seconds=None)
    assert str(work(unknown, part="epsilon 4")) == "1 figure: 4 of 4 tasks are left, no duration is recorded on other data; part: epsilon 4"
    assert (int(work(long, done).steps), str(work(long, done).steps)) == (701, "701 s of work")
    assert str(work(unknown).steps) == "5"


def test_steps_of_an_earlier_run_are_no_progress() -> None:
    seen: list[tuple[int, int, str]] = []
    step = part_of(lambda *told: seen.append(told), 100, 11, 200, "a")
    for done in (30, 32, 40):
        step(done, 40, "ran")
    assert seen == [(100, 200, "a: ran"), (102, 200, "a: ran"), (110, 200, "a: ran")]
