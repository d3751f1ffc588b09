"""Every module and public function of the floors is used.

The use is in another module, a benchmark, an attack, or a page.
"""

import ast
import re
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path

import quietbits

ROOT = Path(quietbits.__file__).parent
FLOORS = ("analysis", "cli", "design", "figures", "solvers")
MODULES = sorted(file for floor in FLOORS for file in (ROOT / floor).rglob("*.py") if file.name != "__init__.py")
# Further files whose use of modules counts.
OTHERS = [ROOT / "__init__.pyi", *ROOT.glob("*.py"), *(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "attack").rglob("*.py")]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
WORD = re.compile(r"[A-Za-z_]\w*")
LONGEST_TEXT = 200


def docstrings(tree: ast.Module) -> set[int]:
    """Return the identities of the constants that are docstrings."""
    owners = (node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef))
    return {id(first.value) for owner in owners if (first := owner.body[0]) and isinstance(first, ast.Expr)}


@cache
def used_names(file: Path) -> frozenset[str]:
    """Return the names that a file uses, without docstrings and definitions."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    documentation, names = docstrings(tree), set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=text, ctx=ast.Load()):
                names.add(text)
            case ast.Attribute(attr=text) | ast.keyword(arg=str(text)):
                names.add(text)
            case ast.ImportFrom(module=module, names=imported):
                names.update(WORD.findall(module or ""), (alias.name for alias in imported))
            case ast.Constant(value=str(text)) if id(node) not in documentation and len(text) < LONGEST_TEXT:
                names.update(WORD.findall(text))
    return frozenset(names)


@cache
def pages() -> frozenset[str]:
    """Return the words of README and docs."""
    return frozenset(word for page in PAGES for word in WORD.findall(page.read_text(encoding="utf-8")))


def public_definitions(file: Path) -> list[str]:
    """Return the undecorated public functions and classes at the top of a file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef) or (isinstance(node, ast.FunctionDef) and not any(map(registers, node.decorator_list)))
        if not node.name.startswith("_")
    ]


def registers(decorator: ast.expr) -> bool:
    """Return whether a decorator is one of typer's."""
    return isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute) and decorator.func.attr in ("command", "callback")


def unused_definitions(files: Iterable[Path], users: Iterable[Path], words: Collection[str]) -> list[str]:
    """Return the public functions and classes that neither a file nor the words name."""
    used = {word for user in users for word in used_names(user)}
    return [f"{file.name}: {word}" for file in files for word in public_definitions(file) if word not in used and word not in words]


def unused_modules(files: Iterable[Path], users: Collection[Path], words: Collection[str]) -> list[str]:
    """Return the modules that no other file and no given word names."""
    return [
        file.name
        for file in files
        if not any(file.stem in used_names(user) for user in users if user != file)
        and not {file.stem, *public_definitions(file)}.intersection(words)
    ]


def test_every_public_function_is_used_or_on_a_page() -> None:
    assert sum(len(public_definitions(file)) for file in MODULES) > 1000
    assert unused_definitions(MODULES, [*MODULES, *OTHERS], pages()) == []


def test_every_module_is_used_or_on_a_page() -> None:
    assert unused_modules(MODULES, [*MODULES, *OTHERS], pages()) == []


def test_what_only_its_own_documentation_names_is_unused(tmp_path: Path) -> None:
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text(
        '"""Call `forgotten` of second."""\n\n\ndef forgotten() -> None:\n    """Use forgotten."""\n\n\ndef called():\n    return 1\n'
    )
    second.write_text("from .first import called\n\n\ndef documented():\n    return called()\n")
    files = [first, second]
    assert unused_definitions(files, files, {"documented"}) == ["first.py: forgotten"]
    assert unused_modules(files, files, {"documented"}) == []
    assert unused_modules(files, files, ()) == ["second.py"]
