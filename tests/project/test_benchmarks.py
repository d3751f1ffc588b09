"""The tests do not run benchmarks, but check that their imports exist."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
BENCHMARKS = sorted([*FOLDER.glob("*.py"), *FOLDER.glob("long_runs/*.py")])


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_a_benchmark_can_be_loaded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Python puts a script's folder on the path.
    monkeypatch.syspath_prepend(FOLDER)
    assert callable(runpy.run_path(str(path), run_name="benchmark")["main"])
