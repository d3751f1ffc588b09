"""A module imports only from its own floor and lower floors, without import circles."""

import ast
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

import quietbits

ROOT = Path(quietbits.__file__).parent

# Floor of every name at the root, counted from the ground. An unlisted name belongs to the public face, `__init__`.
FLOORS = {
    "errors": 0,
    "extras": 0,
    "arguments": 0,
    "files": 0,
    "loaded_by_name": 0,
    "arrays": 0,
    "progress": 0,
    "shown": 0,
    "version": 0,
    "solvers": 1,
    "design": 2,
    "analysis": 3,
    "figures": 4,
    "__init__": 5,
    "cli": 6,
    "__main__": 7,
}
PACKAGES = ["analysis", "cli", "design", "figures", "solvers"]
MODULES = sorted([*ROOT.glob("*.py"), *(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))])


class Import(NamedTuple):
    """An imported name with its place, its dotted name, and whether the import is relative."""

    line: int
    name: str
    relative: bool


def imports(source: str, module: tuple[str, ...]) -> Iterator[Import]:
    """Yield a module's imports, at its top or inside functions, as tuples of names."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name, relative=False) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            climbed = ("quietbits", *module)[: -node.level] if node.level else ()
            parent = [*climbed, *(node.module or "").split(".")] if node.module else climbed
            yield from (Import(node.lineno, ".".join([*parent, alias.name]), relative=bool(node.level)) for alias in node.names)


@cache
def imports_of(path: Path) -> list[Import]:
    """Return the imports of a file."""
    return list(imports(path.read_text(encoding="utf-8"), path.relative_to(ROOT).with_suffix("").parts))


def violations(imported: Iterable[Import], module: tuple[str, ...]) -> list[str]:
    """Return the imports from a floor above the module's own, and absolute imports of quietbits."""
    result = []
    for line, name, relative in imported:
        top, *inside = name.split(".")
        if not relative and (top == "quietbits" or top in FLOORS):
            result.append(f"line {line}: {name} belongs to quietbits and is not imported relatively")
        elif relative and top != "quietbits":
            result.append(f"line {line}: {name} is looked for above quietbits")
        elif relative and FLOORS.get(inside[0], FLOORS["__init__"]) > FLOORS[module[0]]:
            result.append(f"line {line}: {name} is on a floor above")
    return result


def test_modules_import_only_from_their_floor_and_below() -> None:
    result = {path.relative_to(ROOT): violations(imports_of(path), path.relative_to(ROOT).with_suffix("").parts) for path in MODULES}
    assert len(result) > 400
    assert {path.as_posix(): wrong for path, wrong in result.items() if wrong} == {}


def import_circle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Return modules that import each other in a circle, or none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle[::-1]
    return []


def dotted(path: Path) -> str:
    return ".".join(["quietbits", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")


def imported_modules(path: Path, modules: Iterable[str]) -> set[str]:
    """Return the modules that a file imports anywhere, without its package."""
    named = {name for imported in imports_of(path) for name in (imported.name, imported.name.rpartition(".")[0])}
    return named.intersection(modules) - {dotted(path), dotted(path.parent / "__init__.py")}


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = {dotted(path): path for path in MODULES}
    graph = {module: imported_modules(path, modules) for module, path in modules.items()}
    assert sum(map(len, graph.values())) > 2500
    assert import_circle(graph) == []


def test_a_circle_is_found_though_an_import_stands_inside_a_function() -> None:
    sources = {"first": "from .second import a", "second": "def a():\n    from .third import b", "third": "from .first import c"}
    graph = {
        f"quietbits.design.{name}": {imported.name.rpartition(".")[0] for imported in imports(source, ("design", name))}
        for name, source in sources.items()
    }
    circle = import_circle(graph)
    assert circle[0] == circle[-1]
    assert set(pairwise(circle)) == {
        (f"quietbits.design.{a}", f"quietbits.design.{b}") for a, b in pairwise(["first", "second", "third", "first"])
    }


@pytest.mark.parametrize(
    ("package", "users"),
    [("flwr", {"analysis"}), ("torch", {"analysis"}), ("matplotlib", {"figures", "shown.py"}), ("typer", {"cli"}), ("rich", {"cli"})],
)
def test_packages_that_belong_to_a_floor_are_imported_there_alone(package: str, users: set[str]) -> None:
    importing = {
        path.relative_to(ROOT).parts[0]
        for path in MODULES
        for imported in imports_of(path)
        if not imported.relative and imported.name.partition(".")[0] == package
    }
    assert importing == users


def test_every_module_of_the_checkout_has_a_floor_and_is_installed() -> None:
    packages = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
    # Attacks are outside the floors, as no module imports them, and they are not installed.
    assert packages == sorted(["attack", *PACKAGES])
    assert {path.stem for path in ROOT.glob("*.py")} <= FLOORS.keys()
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    result = {path.parent for path in MODULES}
    assert sorted(listed) == sorted(".".join(["quietbits", *folder.relative_to(ROOT).parts]) for folder in result)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (("solvers", "staircase"), "from ..design.lookup_table import LookupTable"),
        (("solvers", "staircase"), "from .. import design"),
        (("solvers", "staircase"), "from .. import design_mvu"),
        (("design", "mvu"), "def draw():\n    from ..figures import heat_map"),
        (("analysis", "__init__"), "from ..figures.registry import FIGURES"),
        (("figures", "registry"), "from ..cli import main"),
        (("errors",), "from .solvers import staircase"),
        (("arguments",), "from . import solvers"),
        (("__init__",), "from .cli import main"),
        (("design", "mvu"), "import quietbits.solvers.bounds.staircase"),
        (("design", "mvu"), "from quietbits.solvers.bounds.staircase import solve"),
        (("design", "mvu"), "import solvers.staircase"),
        (("design", "mvu"), "from solvers.staircase import solve"),
        (("design", "mvu"), "from ...other import x"),
    ],
)
def test_a_forbidden_import_is_found(module: tuple[str, ...], source: str) -> None:
    assert len(violations(imports(source, module), module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (("design", "mvu"), "import numpy as np\nfrom scipy.optimize import linprog"),
        (
            ("design", "mvu"),
            "from ..solvers.staircase import solve\nfrom ..errors import InfeasibleError\nfrom .guarantee import Guarantee",
        ),
        (("design", "__init__"), "from .mvu import design_mvu\nfrom ..solvers import staircase\nfrom .. import arguments"),
        (("arguments",), "from .errors import DataError"),
        (("__init__",), "from .design.mvu import design_mvu"),
        (("cli",), "from . import __version__\nfrom .figures.registry import FIGURES"),
    ],
)
def test_a_valid_import_passes(module: tuple[str, ...], source: str) -> None:
    assert violations(imports(source, module), module) == []
