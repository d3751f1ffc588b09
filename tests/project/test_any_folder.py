"""The checkout is the package, and its folder may have any name.

The name may even be that of a standard library module.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

# The test runs in the copy beside the copy's own tests, where quietbits is the copy, and its folder hides no module.
WHERE = """
import sys
from pathlib import Path

import quietbits

CHECKOUT = Path(__file__).resolve().parents[2]


def test_where():
    assert Path(quietbits.__file__).resolve().parent == CHECKOUT
    assert CHECKOUT.parent not in [Path(entry).resolve() for entry in sys.path]
    files = {name: Path(getattr(module, "__file__", None) or "") for name, module in sys.modules.items()}
    assert [name for name, file in files.items() if file.resolve() == CHECKOUT / "__init__.py"] == ["quietbits"]
"""


def test_tests_are_collected_and_run_in_a_folder_of_any_name(tmp_path: Path, copy_project: Callable[[Path], None]) -> None:
    copied, importable = tmp_path / "copied", tmp_path / "importable"
    copy_project(copied)
    (copied / "tests" / "project" / "test_where.py").write_text(WHERE)
    importable.mkdir()
    # PYTHONPATH takes precedence over an editable install of another checkout.
    environment = {**os.environ, "PYTHONPATH": str(importable), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    # pytest collects all of these tests, which detects hidden modules, and runs few.
    collected = ["tests/project/test_where.py", "tests/project/test_floors.py", "tests/solvers/numerics"]
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "test_where or forbidden", *collected]
    # Both names are modules of the standard library; pytest itself loads "copy", but not "wave". The test renames one copy, which keeps its
    # compiled files.
    for name in ("copy", "wave"):
        checkout, link = tmp_path / name, importable / "quietbits"
        copied = copied.rename(checkout)
        link.unlink(missing_ok=True)
        link.symlink_to(checkout)
        run = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        passed, deselected = re.search(r"(\d+) passed, (\d+) deselected", run.stdout).groups()
        assert int(passed) > 1
        assert int(deselected) > 100
