"""Interrupted runs end with the same bytes as uninterrupted runs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from quietbits.analysis.sweeps.run import run_tasks
from quietbits.analysis.training.checkpoint import Checkpoint
from quietbits.analysis.training.federation import Federation
from quietbits.analysis.training.run import run_training, run_training_tasks
from quietbits.analysis.training.spec import parse_training
from quietbits.analysis.training.task import TrainingTask

GRID = {
    "clients": 60,
    "clients_per_round": 15,
    "rounds": 40,
    "delta": 1e-5,
    "adjacency": "replace-one",
    "checkpoint_every": 7,
    "seed": [3, 4],
    "clipping": "adaptive",
    "download": "history",
    "server": "adam",
    "server_rate": 0.05,
    "local_epochs": 1,
    "batch": 5,
    "mechanism": [
        {"name": "none"},
        {"name": "dp-fedavg", "noise_multiplier": 1.0, "download": "model"},
        {"name": "rotating-simplex", "round_epsilon": 4.0, "clipping": "flat"},
    ],
}


class Killed(BaseException):
    """Exception that no task catches."""


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files of a finished grid except for the store."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".sqlite")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    run_training(parse_training(GRID), folder)
    return contents(folder)


def test_a_grid_that_is_interrupted_again_and_again_ends_with_the_same_bytes(
    whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, rounds = Federation._round, []

    def killing(self: Federation, number: int) -> None:
        rounds.append(number)
        if len(rounds) % 33 == 0:
            raise Killed
        step(self, number)

    monkeypatch.setattr(Federation, "_round", killing)
    kills = 0
    while True:
        try:
            run_training(parse_training(GRID), tmp_path)
            break
        except Killed:
            kills += 1
    assert kills >= 6
    # Per kill, a run repeats at most six of 240 rounds, the last rounds before the kill.
    assert 240 < len(rounds) <= 240 + 7 * kills
    assert contents(tmp_path) == whole


def test_a_grid_on_two_processes_that_is_killed_ends_with_the_same_bytes(whole: dict[str, bytes], tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from quietbits.analysis.training.run import run_training\n"
        "from quietbits.analysis.training.spec import parse_training\n"
        f"run_training(parse_training({GRID!r}), Path(sys.argv[1]))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], start_new_session=True)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("checkpoints/*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # The owner's file of a killed process stays until the next process ends.
    assert "results.parquet" not in contents(tmp_path)
    run_training(parse_training(GRID), tmp_path, workers=2)
    assert contents(tmp_path) == whole


def test_rows_say_what_happened(whole: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    path.write_bytes(whole["results.parquet"])
    frame = pd.read_parquet(path)
    assert len(frame) == 3 * 2 * 40
    needed = {"mechanism", "round", "accuracy", "epsilon", "delta", "bytes_up", "bytes_down", "adjacency", "trust_model", "seed", "model"}
    assert needed <= set(frame)
    assert frame.groupby("run")["round"].apply(list).map(lambda rounds: rounds == list(range(1, 41))).all()
    assert {f"models/{run}.npy" for run in frame["run"]} == {name for name in whole if name.startswith("models/")}


def test_trainings_of_a_figure_go_on_from_their_checkpoints(
    task: Callable[..., TrainingTask], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked_task = replace(task("none", rounds=5), checkpoint_every=2)
    began: list[int] = []
    whole_round = Federation._round

    def until_the_fourth(self: Federation, number: int) -> None:
        began.append(number)
        if began.count(4) == 1 and number == 4:
            raise KeyboardInterrupt
        whole_round(self, number)

    monkeypatch.setattr(Federation, "_round", until_the_fourth)
    with pytest.raises(KeyboardInterrupt):
        run_training_tasks([checked_task], tmp_path)
    output = run_training_tasks([checked_task], tmp_path)
    assert began == [1, 2, 3, 4, 3, 4, 5]
    pd.testing.assert_frame_equal(output, run_tasks([checked_task], tmp_path / "whole"))
    assert not {"checkpoints", "progress", "models"} & {path.name for path in tmp_path.iterdir()}


def test_checkpoints_of_others_and_damaged_ones_are_not_read(
    task: Callable[..., TrainingTask], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checked_task = replace(task("none", rounds=3), folder=tmp_path)
    federation = Federation(checked_task.training, checked_task.prepare(None), checked_task.training.federated_data(0), 0, "none")
    checkpoint = Checkpoint(tmp_path / "new" / "one.npz", 1, b"key")
    assert checkpoint.load() is None
    federation.run(checkpoint)
    loaded = checkpoint.load()
    assert loaded is not None
    assert int(loaded["rounds"]) == 3
    assert replace(checkpoint, key=b"other").load() is None
    content = bytearray(checkpoint.path.read_bytes())
    content[-30] ^= 1
    checkpoint.path.write_bytes(bytes(content))
    assert checkpoint.load() is None
    assert "is damaged, or of other software: the run begins again" in caplog.text
