"""Commands of `make`: its Python tests, and the lowest versions of dependencies."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import quietbits

ROOT = Path(quietbits.__file__).parent


def planned(*arguments: str) -> str:
    """Return the commands that `make` would run, for any options of the outer `make`."""
    apart = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTHON"))}
    return subprocess.run(["make", "--dry-run", *arguments], cwd=ROOT, capture_output=True, text=True, check=True, env=apart).stdout


OWN = f".venv-{sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.parametrize(("arguments", "folder"), [((), ".venv"), ((f"PYTHON={sys.executable}",), OWN)], ids=["usual", "named"])
def test_tests_say_which_python_runs_them(arguments: tuple[str, ...], folder: str) -> None:
    lines = planned("test", *arguments).splitlines()
    assert f'echo "Testing on $({folder}/bin/python --version), {folder}"' in lines
    assert any(line.startswith(f"{folder}/bin/pytest ") for line in lines)


def test_the_lowest_version_of_everything_is_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # Packages that only build the site serve no command and no test.
    extras = {name: extra for name, extra in project["optional-dependencies"].items() if name != "docs"}
    every = (project["dependencies"], *extras.values())
    bounds = {bound for bounds in every for bound in bounds if not bound.startswith("quietbits[")}
    lowest = dict(re.match(r"([^>]+)>=([^,]+)", bound).groups() for bound in bounds)
    expected = {f"{name}=={version}" for name, version in lowest.items() if name not in ("flwr", "opendp", "torch")}
    printed = subprocess.run([sys.executable, ".ci/lowest_versions.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(printed.split()) == expected
    assert ".ci/lowest_versions.py" in planned("test-lowest", "--always-make")
