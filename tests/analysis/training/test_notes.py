"""Notes of running trainings, on steps before the first round and on progress."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from quietbits.analysis.training.run import note_in_words
from quietbits.analysis.training.task import PROGRESS, TrainingTask, write_note


def noted(task: TrainingTask, run: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the notes that a task leaves while it runs, in words."""
    notes: list[str] = []

    def written(own: TrainingTask, note: dict[str, object]) -> None:
        write_note(own, note)
        notes.append(note_in_words(task.folder / PROGRESS / f"{task.run_name}.json"))

    monkeypatch.setattr("quietbits.analysis.training.task.write_note", written)
    run()
    return notes


def test_a_training_says_that_it_reads_data_and_calibrates(
    task: Callable[..., TrainingTask], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = replace(task("none", rounds=2), folder=tmp_path)
    notes = noted(own, lambda: own.run(own.prepare(None)), monkeypatch)
    label = f"none, seed {own.seed}"
    assert notes[:3] == [f"{label}: reading digits", f"{label}: calibrating none", f"{label}: reading digits"]
    assert notes[-1].startswith(f"{label}: round 2 of 2, accuracy ")


@pytest.mark.parametrize("imported", [False, True])
def test_a_training_says_that_it_imports_torch(
    imported: bool, task: Callable[..., TrainingTask], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The model of the digits does not need torch, so the test of the note runs without torch.
    monkeypatch.setattr("quietbits.analysis.training.task.needs_torch", lambda _: True)
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "torch", raising=False)
        if imported:
            patch.setitem(sys.modules, "torch", sys)
        own = replace(task("none"), folder=tmp_path)
        notes = noted(own, lambda: own.prepare(None), monkeypatch)
    assert [note.rpartition(": ")[2] for note in notes] == [
        "reading digits",
        *([] if imported else ["importing torch"]),
        "calibrating none",
    ]


def test_without_a_folder_there_are_no_notes(task: Callable[..., TrainingTask], monkeypatch: pytest.MonkeyPatch) -> None:
    own = task("none")
    assert own.folder is None
    monkeypatch.setattr("quietbits.analysis.training.task.write_note", lambda *_: pytest.fail("a note without a folder"))
    own.prepare(None)
