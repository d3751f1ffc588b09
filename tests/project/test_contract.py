"""Mechanisms describe themselves.

Code above `design` uses the contract, and no mechanism's class or name.
"""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import quietbits
from quietbits.analysis.catalogue.registry import ENTRIES

ROOT = Path(quietbits.__file__).parent
NAMES = frozenset(name for names in ENTRIES.values() for name in names)
# The registry names mechanisms, and so do figures of papers.
NAMING = ("analysis/catalogue/",)
ASKING = sorted(
    path
    for floor in ("analysis", "cli")
    for path in (ROOT / floor).rglob("*.py")
    if not path.relative_to(ROOT).as_posix().startswith(NAMING)
)
# Literals that equal a registry name without choosing a mechanism.
OTHER_MEANINGS = {
    ("cli/design.py", "mvu"): "the command that designs MVU tables",
}


def bases_of(path: Path) -> Iterator[tuple[str, set[str]]]:
    """Yield each class of a file with the names of its bases."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            yield node.name, {name for base in node.bases for name in names_in(base)}


def mechanisms() -> frozenset[str]:
    """Return the names of all mechanism classes except for the contract's, from the source."""
    classes = {path: dict(bases_of(path)) for floor in ("design", "analysis") for path in (ROOT / floor).rglob("*.py")}
    contract = {name for path, of_file in classes.items() if path.parent == ROOT / "design" / "contracts" for name in of_file}
    every = [(name, bases) for of_file in classes.values() for name, bases in of_file.items()]
    derived, size = {"Mechanism"}, 0
    while len(derived) > size:
        size = len(derived)
        derived |= {name for name, bases in every if bases & derived}
    return frozenset(derived - contract)


def names_in(node: ast.AST) -> set[str]:
    """Return the names and attributes in an expression."""
    return {part.id if isinstance(part, ast.Name) else part.attr for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute)}


def questions(tree: ast.Module) -> Iterator[tuple[int, ast.AST]]:
    """Yield the expressions with which a module compares classes, and their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
            yield node.lineno, node.args[1]
        elif isinstance(node, ast.Compare):
            # The comparisons are `type(x) is K`, `type(x) in (K, L)`, `entry.mechanism is K`.
            yield from ((node.lineno, part) for part in (node.left, *node.comparators) if isinstance(part, ast.Name | ast.Tuple))
        elif isinstance(node, ast.MatchClass):
            yield node.lineno, node.cls
        elif isinstance(node, ast.Dict):
            yield from ((node.lineno, key) for key in node.keys if isinstance(key, ast.Name))
        elif isinstance(node, ast.FunctionDef):
            registers = [item for item in node.decorator_list if "register" in names_in(item)]
            yield from ((node.lineno, register) for register in registers)
            yield from ((node.lineno, argument.annotation) for argument in node.args.args[:1] if registers and argument.annotation)


def asked(tree: ast.Module, kinds: Iterable[str]) -> set[tuple[int, str]]:
    """Return the places where a module tests for a mechanism's class, and the class."""
    named = {
        target.id: names_in(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return {
        (line, name)
        for line, question in questions(tree)
        for first in names_in(question)
        for name in (named.get(first, set()) | {first}) & set(kinds)
    }


def literals(tree: ast.Module) -> set[tuple[int, str]]:
    """Return the places where a module has a mechanism's registry name as a literal."""
    return {(node.lineno, node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in NAMES}


def parsed(path: Path) -> tuple[str, ast.Module]:
    return path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def test_nothing_above_design_asks_for_the_class_of_a_mechanism() -> None:
    kinds = mechanisms()
    assert len(kinds) > 50
    assert not kinds & {"SecureSumMechanism", "VectorMechanism", "RealNumberMechanism", "SketchedMechanism"}
    result = {name: sorted(asked(tree, kinds)) for name, tree in map(parsed, ASKING)}
    assert len(result) > 100
    assert {name: places for name, places in result.items() if places} == {}


def test_nothing_above_design_chooses_a_mechanism_by_its_name() -> None:
    result = {(name, literal) for name, tree in map(parsed, ASKING) for _, literal in literals(tree)}
    assert result == set(OTHER_MEANINGS)


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(mechanism, Quiet)",
        "isinstance(mechanism, design.Quiet | Contract)",
        "TRUSTING = (Quiet, Contract)\ndef run(mechanism):\n    return isinstance(mechanism, TRUSTING)",
        "issubclass(kind, (Contract, Quiet))",
        "type(mechanism) is Quiet",
        "type(mechanism) in (Contract, Quiet)",
        "entry.mechanism is not Quiet",
        "match mechanism:\n    case Quiet(bits=3):\n        pass",
        "SCORES = {Contract: None, Quiet: None}",
        "@score.register\ndef _(mechanism: Quiet, inputs):\n    pass",
        "@score.register(Quiet)\ndef _(mechanism, inputs):\n    pass",
    ],
)
def test_a_question_about_a_class_is_found(source: str) -> None:
    assert {name for _, name in asked(ast.parse(source), {"Quiet"})} == {"Quiet"}


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(mechanism, Contract)",
        "Quiet(3)",
        "def run(mechanism: Quiet):\n    return mechanism.bits",
        "MECHANISM = Quiet(3)\nMECHANISM.bits == 3",
        "SCORES = {'quiet': Quiet}",
    ],
)
def test_a_use_of_a_class_passes(source: str) -> None:
    assert asked(ast.parse(source), {"Quiet"}) == set()


def test_a_name_of_the_registry_is_found() -> None:
    assert literals(ast.parse('"""mvu and dp-rec."""\nentry_named("mvu")\nname == "dp-rec"')) == {(2, "mvu"), (3, "dp-rec")}
