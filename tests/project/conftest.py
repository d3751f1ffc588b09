"""The project's files, for tests that work on a copy of the project."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import quietbits

ROOT = Path(quietbits.__file__).parent


@pytest.fixture(scope="session")
def project_files() -> list[Path]:
    """Return git's tracked and unignored new files, relative to the checkout."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted(path for path in map(Path, filter(None, names)) if (ROOT / path).is_file())


@pytest.fixture(scope="session")
def copy_project(project_files: list[Path]) -> Callable[[Path], None]:
    """Return a function that copies the project's files to a new folder."""

    def copy(folder: Path) -> None:
        for parent in sorted({path.parent for path in project_files}):
            (folder / parent).mkdir(parents=True, exist_ok=True)
        for path in project_files:
            shutil.copyfile(ROOT / path, folder / path)

    return copy
