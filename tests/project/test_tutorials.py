"""Every tutorial of the site runs, and ends with its figure."""

import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from flwr.supercore.task_identity import TaskIdentity

import quietbits

TUTORIALS = sorted((Path(quietbits.__file__).parent / "docs" / "tutorials").glob("*.py"))


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_prints_and_draws(tutorial: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    # Environment variables that the tutorial on Flower sets for the whole process.
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
    drawn = list[int]()
    monkeypatch.setattr(plt, "show", lambda: drawn.extend(plt.get_fignums()))
    registered = set(quietbits.REGISTRY)
    with mpl.rc_context({"backend": "agg"}):
        runpy.run_path(str(tutorial))
        plt.close("all")
    assert drawn
    assert capsys.readouterr().out
    assert set(quietbits.REGISTRY) == registered


def test_every_family_has_a_tutorial() -> None:
    families = (
        "numbers location vectors secure_sums sketches histograms dp_rec training flower adding_a_mechanism "
        "certified_letters deployed_clients shuffled_messages trusted_server"
    )
    assert [path.stem.partition("_")[2] for path in TUTORIALS] == families.split()
