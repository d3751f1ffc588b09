"""Tests of progress in words: steps, time, time left, and a line below a notebook's cell."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import quietbits
from quietbits import progress
from quietbits.progress import About, AtMost, Evaluations, Steps, counted, in_time, notebook_progress, reporting


class Clock:
    """Clock whose time a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_time_left_is_what_the_rest_takes_at_the_pace_so_far() -> None:
    clock = Clock()
    steps = Steps("reading", clock)
    assert (steps.count, steps.times, steps.seconds_left) == ("", "0 s", None)
    steps.report(0, 10, "first")
    clock.now += 8
    assert (steps.count, steps.times) == ("0 of 10", "8 s")
    steps.report(4, 10, "second")
    # Four steps took 8 s, so six take 12 s; the time that the fifth has taken so far counts.
    assert (steps.count, steps.times, steps.seconds_left) == ("4 of 10", "8 s, about 12 s left", 12.0)
    clock.now += 3
    assert steps.times == "11 s, about 9 s left"
    # A step that takes longer than all others gives no negative time left.
    clock.now += 100
    assert steps.times == "1 min 51 s, about 0 s left"
    steps.report(10, 10, "drawing")
    assert (steps.count, steps.seconds_left) == ("10 of 10", None)


def test_steps_of_an_earlier_run_do_not_count_as_fast() -> None:
    clock = Clock()
    steps = Steps("reading", clock)
    clock.now += 1
    steps.report(90, 100, "90 were finished before")
    clock.now += 20
    steps.report(92, 100, "ran")
    assert steps.seconds_left == 80.0


def test_other_steps_start_another_pace() -> None:
    clock = Clock()
    steps = Steps("planning", clock)
    steps.report(0, 10, "a")
    clock.now += 10
    steps.report(10, 10, "b")
    steps.report(0, 3, "checking")
    assert steps.seconds_left is None
    clock.now += 5
    steps.report(1, 3, "checking")
    assert steps.seconds_left == 10.0


def test_bounds_and_estimates_of_the_total_may_fall_without_another_pace() -> None:
    clock = Clock()
    steps = Steps("searching", clock)
    steps.report(0, AtMost(50), "theta")
    clock.now += 4
    steps.report(2, AtMost(12), "theta")
    assert (steps.count, steps.times) == ("2 of at most 12", "4 s, at most 20 s left")
    steps.report(2, About(4), "theta")
    assert (steps.count, steps.times) == ("2 of about 4", "4 s, about 4 s left")
    # An exact total is that of other steps.
    steps.report(2, 12, "drawing")
    assert steps.seconds_left is None


def test_only_the_outermost_search_and_loop_report() -> None:
    heard = []
    with reporting(lambda *step: heard.append(step)):
        inner = Evaluations(lambda number: number + 1, AtMost(5), "b")
        outer = Evaluations(lambda number: Evaluations(lambda other: other * 2, AtMost(9), "c")(number), AtMost(3), "a")
        assert ([outer(1), outer(2)], inner(1)) == ([2, 4], 2)
        assert [Evaluations(abs, AtMost(9), "d")(item) for item in counted([-1, -2], "items")] == [1, 2]
    assert [(done, str(total), text) for done, total, text in heard] == [
        (1, "at most 3", "searching a"),
        (2, "at most 3", "searching a"),
        (1, "at most 5", "searching b"),
        (0, "2", "items"),
        (1, "2", "items"),
    ]
    outer(1)
    assert len(heard) == 6
    assert Evaluations(abs, AtMost(9), "e")(-1) == 1
    assert len(heard) == 6


def test_totals_fall_or_grow_by_single_steps() -> None:
    heard = []
    with reporting(lambda done, total, _: heard.append((done, int(total)))):
        search = Evaluations(abs, About(4), "a")
        search(1)
        search.expect(9)
        search.expect(2)
        for _ in range(3):
            search(1)
        search.expect(7)
    assert heard == [(1, 4), (1, 4), (1, 3), (2, 3), (3, 3), (4, 4), (4, 5)]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (3599.7, "1 h 0 min"), (7500, "2 h 5 min")],
)
def test_durations_are_whole_numbers(seconds: float, words: str) -> None:
    assert in_time(seconds) == words


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A stand-in for IPython in a notebook, which records what is displayed and updated."""
    record = SimpleNamespace(shown=[], shell=SimpleNamespace(kernel=object(), execution_count=1))

    def display(content: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        record.shown.append([content])
        return SimpleNamespace(update=lambda content, **_: record.shown[-1].append(content))

    ipython, module = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: record.shell  # type: ignore[attr-defined]
    module.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(progress, "_LINE", None)
    monkeypatch.setattr(progress, "UPDATE_SECONDS", 0.0)
    return record


def test_a_notebook_shows_a_line_below_each_cell(notebook: SimpleNamespace) -> None:
    notebook_progress(0, 2, "reading <data>")
    notebook_progress(2, 2, "done")
    notebook.shell.execution_count = 2
    notebook_progress(1, 7, "another")
    first, second = notebook.shown
    assert [content["text/plain"] for content in first] == ["0 of 2, 0 s: reading <data>", "2 of 2, 0 s: done"]
    assert first[0]["text/html"] == '<progress value="0" max="2"></progress> 0 of 2, 0 s: reading &lt;data&gt;'
    assert [content["text/plain"] for content in second] == ["1 of 7, 0 s: another"]


def test_updates_that_follow_each_other_fast_are_left_out_but_for_the_last(
    notebook: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "UPDATE_SECONDS", 60.0)
    for done in range(101):
        notebook_progress(done, 100, "step")
    (line,) = notebook.shown
    assert [content["text/plain"].partition(",")[0] for content in line] == ["0 of 100", "100 of 100"]


def test_ipython_without_a_kernel_and_python_without_ipython_stay_silent(
    notebook: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    del notebook.shell.kernel
    notebook_progress(0, 2, "reading")
    notebook.shell = None
    notebook_progress(0, 2, "reading")
    monkeypatch.delitem(sys.modules, "IPython")
    notebook_progress(0, 2, "reading")
    assert notebook.shown == []


def test_long_functions_show_their_progress_by_default(notebook: SimpleNamespace) -> None:
    task = quietbits.Task(quietbits.NormBall(4, 2.0), clients=3, epsilon=2.0, delta=1e-5, adjacency="replace-one")
    mechanism = quietbits.build_mechanism("distributed-skellam", task, {"bits": 16})
    quietbits.repeat_mean(mechanism, "sphere", 2)
    quietbits.audit(mechanism, 100, np.random.default_rng(0))
    (line,) = notebook.shown
    words = [content["text/plain"] for content in line]
    assert [text.partition(",")[0] for text in words[:3]] == ["0 of 2", "1 of 2", "2 of 2"]
    assert words[-1].startswith("200 of 200, ")
    assert words[-1].endswith(": running the mechanism on neighbours")
