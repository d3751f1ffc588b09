"""Benchmarks are not run by the tests, but what they import is there."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
BENCHMARKS = sorted([*FOLDER.glob("*.py"), *FOLDER.glob("long_runs/*.py")])


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_a_benchmark_can_be_loaded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As it is for a script.
    monkeypatch.syspath_prepend(FOLDER)
    assert callable(runpy.run_path(str(path), run_name="benchmark")["main"])
