"""Tests of the structure of folders and files.

Points under test: readable sizes of files and folders, descriptive names, and tests that mirror modules.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import quietbits

ROOT = Path(quietbits.__file__).parent
FLOORS = ["analysis", "cli", "design", "figures", "solvers"]
MOST_LINES = 600
MOST_MODULES = 18
# Names of modules that describe no content.
NAMELESS = {"common", "helper", "helpers", "misc", "util", "utils"}

FOLDERS = [*FLOORS, "attack", "benchmarks", "tests"]
FILES = sorted([*ROOT.glob("*.py"), *(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))])
PACKAGES = [ROOT, *sorted({file.parent for floor in FLOORS for file in (ROOT / floor).rglob("*.py")})]
TEST_FOLDERS = sorted({file.parent for floor in FLOORS for file in (ROOT / "tests" / floor).rglob("*.py")})


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_file_is_too_long_to_be_one_idea() -> None:
    lines = {name(file): len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert {file: count for file, count in lines.items() if count > MOST_LINES} == {}


def test_no_folder_has_too_many_modules_to_look_over() -> None:
    modules = {name(folder): len(list(folder.glob("[!_]*.py"))) for folder in PACKAGES}
    assert {folder: count for folder, count in modules.items() if count > MOST_MODULES} == {}


def test_every_folder_is_a_package_that_says_what_is_in_it() -> None:
    starts = {folder: folder / "__init__.py" for folder in PACKAGES}
    assert [name(folder) for folder, start in starts.items() if not start.is_file()] == []
    assert [name(folder) for folder, start in starts.items() if not ast.get_docstring(ast.parse(start.read_text(encoding="utf-8")))] == []


def test_every_name_says_what_is_inside() -> None:
    assert [name(path) for path in [*FILES, *PACKAGES] if path.stem.removeprefix("test_") in NAMELESS] == []


def test_tests_of_a_folder_stand_in_a_folder_of_the_same_name() -> None:
    assert [name(folder) for folder in TEST_FOLDERS if ROOT / folder.relative_to(ROOT / "tests") not in PACKAGES] == []


def test_every_floor_has_tests() -> None:
    assert [floor for floor in FLOORS if not list((ROOT / "tests" / floor).rglob("test_*.py"))] == []


def items(docstring: str, section: str) -> Iterator[str]:
    """Yield the names that a numpydoc section describes, or its lines without names."""
    listed = re.search(rf"^{section}\n-+\n(.*?)(?=\n\n[A-Z]\w*(?: \w+)?\n-+$|\Z)", docstring, re.DOTALL | re.MULTILINE)
    for line in listed[1].splitlines() if listed else []:
        if line and not line.startswith(" "):
            yield from (item.strip().lstrip("*") for item in line.split(" : ")[0].split(","))


def test_docstrings_describe_items_by_name() -> None:
    assert list(items("Round.\n\nParameters\n----------\nx, y : int\n    Two.\nNumber of z.\n\nReturns\n-------\nint", "Parameters")) == [
        "x",
        "y",
        "Number of z.",
    ]
    wrong = []
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                arguments = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
                described = items(ast.get_docstring(node) or "", "Parameters")
                wrong += [(name(file), node.name, item) for item in described if item not in arguments]
            elif isinstance(node, ast.ClassDef):
                described = items(ast.get_docstring(node) or "", "Attributes")
                wrong += [(name(file), node.name, item) for item in described if not item.isidentifier()]
    assert wrong == []
