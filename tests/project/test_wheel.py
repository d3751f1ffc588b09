"""Tests that the wheel is complete.

Points under test: every module and data file of the checkout is in it, and every module imports from it alone.
"""

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

NOT_INSTALLED = {".ci", "attack", "benchmarks", "docs", "pyproject.toml", "tests"}
DATA = {".gz", ".jinja", ".json", ".pyi", ".toml", ".typed"}

# The script's argument is the folder of the unpacked wheel. The script disables editable installs, which would supply modules missing from
# the wheel. Only models made of torch's parts may fail to import, for lack of torch.
IMPORT_ALL = """
import importlib
import sys
from pathlib import Path

wheel = Path(sys.argv[1])
sys.meta_path[:] = [finder for finder in sys.meta_path if not getattr(finder, "__module__", "").startswith("__editable__")]
sys.path.insert(0, str(wheel))
for file in sorted(wheel.rglob("*.py")):
    parts = file.relative_to(wheel).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    try:
        assert importlib.import_module(name).__file__ == str(file), (name, sys.modules[name].__file__)
    except ImportError as error:
        assert error.name == "torch" and file.name.startswith("torch_"), error
    print(name)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, copy_project: Callable[[Path], None]) -> Path:
    """Build the wheel of a copy of the checkout, as pip has setuptools build it, and unpack it."""
    folder = tmp_path_factory.mktemp("wheel")
    copy_project(folder / "checkout")
    (folder / "built").mkdir()
    build = [sys.executable, "-c", "from setuptools.build_meta import build_wheel; build_wheel('../built')"]
    run = subprocess.run(build, cwd=folder / "checkout", capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    (built,) = (folder / "built").iterdir()
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def test_the_wheel_holds_the_modules_and_data_of_the_checkout_and_no_tests(wheel: Path, project_files: list[Path]) -> None:
    expected = {path for path in project_files if path.parts[0] not in NOT_INSTALLED and path.suffix in {".py", *DATA}}
    assert {path.suffix for path in expected} == {".py", *DATA}
    assert {path.relative_to(wheel / "quietbits") for path in (wheel / "quietbits").rglob("*") if path.is_file()} == expected


def test_every_module_can_be_imported_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-I", "-c", IMPORT_ALL, str(wheel)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert len(run.stdout.split()) == len(list(wheel.rglob("*.py")))
