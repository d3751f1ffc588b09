"""The functions of a deployed client as syntax trees with the type of every expression."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

# Types of elements of sequences.
ELEMENTS = {"Words": "Word", "Fields": "Word", "Numbers": "Number", "Cells": "Number"}
CONVERSIONS = ("Word", "Count", "Number")
# Type of the result of each operation.
OPERATIONS = {"select": "Number", "floor": "Number", "sqrt": "Number", "new_fields": "Fields", "new_cells": "Cells"}
# Types of literals, which take the type of their surroundings.
LITERALS = ("int", "float")


@dataclass(frozen=True, eq=False)
class Function:
    """A function of a client, with the types of its expressions.

    Attributes
    ----------
    name : str
        The function's name.
    summary : tuple of str
        Paragraphs of the docstring.
    parameters : mapping
        Type of each parameter that a call passes, by name.
    constants : mapping
        Type of each parameter that the deployment fixes, by name; only the client itself has constants.
    result : str
        Type of the result; ``"None"`` without a result.
    body : list of ast.stmt
        Statements without the docstring.
    types : dict
        Type of each expression's node.
    variables : dict
        Type of each local variable, by name.
    rebound : frozenset of str
        Local variables and parameters that are assigned again after their first value.
    comments : mapping
        Lines of comments above a statement, by the statement's line.
    module_constants : mapping
        Values of the names that the function's module defines or imports.
    """

    name: str
    summary: tuple[str, ...]
    parameters: Mapping[str, str]
    constants: Mapping[str, str]
    result: str
    body: list[ast.stmt]
    types: dict[ast.AST, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    rebound: frozenset[str] = frozenset()
    comments: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    module_constants: Mapping[str, int | float] = field(default_factory=dict)


class TranslationError(TypeError):
    """A client uses Python that has no translation."""


def typed_program(client: Callable[..., None]) -> list[Function]:
    """Return the functions of a client, callees first; the client itself is the last.

    Raises
    ------
    TranslationError
        If a function uses Python that `quietbits.design.deployment.clients.kinds` does not describe, or mixes types.
    """
    functions: dict[str, Function] = {}
    _add(client, functions)
    return list(functions.values())


def _add(source: Callable[..., Any], functions: dict[str, Function]) -> Function:
    if source.__name__ in functions:
        return functions[source.__name__]
    text = textwrap.dedent(inspect.getsource(source))
    (tree,) = ast.parse(text).body
    if not isinstance(tree, ast.FunctionDef):
        raise TranslationError(f"{source.__name__} must be a function")
    names = vars(sys.modules[source.__module__])
    parameters = {item.arg: _annotation(item.annotation) for item in tree.args.args}
    constants = {item.arg: _annotation(item.annotation) for item in tree.args.kwonlyargs}
    document = inspect.getdoc(source) or ""
    body = tree.body[1:] if ast.get_docstring(tree) else tree.body
    function = Function(
        source.__name__,
        tuple(" ".join(part.split()) for part in document.split("\n\n")),
        parameters,
        constants,
        _annotation(tree.returns),
        body,
        rebound=frozenset(_rebound(tree)),
        comments=_comments(text),
        module_constants={name: value for name, value in names.items() if type(value) in (int, float)},
    )
    _Typing(function, names, functions).check(body)
    functions[source.__name__] = function
    return function


def _comments(text: str) -> dict[int, tuple[str, ...]]:
    comments: dict[int, tuple[str, ...]] = {}
    above: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().startswith("#"):
            above += (line.strip().removeprefix("#").strip(),)
        else:
            comments[number], above = above, ()
    return comments


def _annotation(node: ast.expr | None) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant) and node.value is None:
        return "None"
    raise TranslationError(f"a type must be a name, got {ast.dump(node) if node else None}")


def _rebound(tree: ast.FunctionDef) -> Iterator[str]:
    """Yield the names that are assigned after their first assignment, or in a loop after one outside it."""
    seen = {item.arg for item in tree.args.args}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in seen:
                yield name
            seen.add(name)


class _Typing(ast.NodeVisitor):
    """Computes the types of a function's expressions, and refuses what has no translation."""

    def __init__(self, function: Function, names: dict[str, Any], functions: dict[str, Function]) -> None:
        self.function, self.names, self.functions = function, names, functions
        self.known = {**function.parameters, **function.constants}

    def check(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.visit(statement)

    def generic_visit(self, node: ast.AST) -> None:
        raise TranslationError(f"{self.function.name} uses {type(node).__name__}, which has no translation")

    def visit_Assign(self, node: ast.Assign) -> None:
        (target,) = node.targets
        if isinstance(target, ast.Subscript):
            element = self.typed(target)
            self.typed(node.value, element)
            return
        if not isinstance(target, ast.Name):
            raise TranslationError(f"{self.function.name} must assign to names and elements")
        kind = self.typed(node.value, self.known.get(target.id))
        kind = {"int": "Count", "float": "Number"}.get(kind, kind)
        self.settle(node.value, kind)
        if self.known.setdefault(target.id, kind) != kind:
            raise TranslationError(f"{target.id} must stay a {self.known[target.id]} in {self.function.name}, got a {kind}")
        self.function.types[target] = kind
        if target.id not in self.function.parameters:
            self.function.variables[target.id] = kind

    def visit_If(self, node: ast.If) -> None:
        self.typed(node.test, "Flag")
        self.check(node.body)
        self.check(node.orelse)

    def visit_While(self, node: ast.While) -> None:
        self.typed(node.test, "Flag")
        self.check(node.body)

    def visit_For(self, node: ast.For) -> None:
        if not (isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range"):
            raise TranslationError(f"{self.function.name} must loop over a range")
        for end in node.iter.args:
            self.typed(end, "Count")
        assert isinstance(node.target, ast.Name)  # noqa: S101 - a range yields whole numbers
        self.known[node.target.id] = "Count"
        self.check(node.body)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.typed(node.value, self.function.result)

    def visit_Expr(self, node: ast.Expr) -> None:
        self.typed(node.value)

    def typed(self, node: ast.expr, wanted: str | None = None) -> str:
        """Return an expression's type, after it is checked; literals take the wanted type."""
        kind = self.expression(node, wanted)
        if kind in LITERALS and wanted is not None:
            kind = wanted
            self.settle(node, kind)
        if wanted is not None and kind != wanted and {kind, wanted} not in ({"Words", "Fields"}, {"Numbers", "Cells"}):
            raise TranslationError(f"{ast.unparse(node)} must be a {wanted} in {self.function.name}, got a {kind}")
        self.function.types[node] = kind
        return kind

    def settle(self, node: ast.expr, kind: str) -> None:
        """Give literals, and expressions of literals alone, the type that their surroundings have."""
        for part in ast.walk(node):
            if isinstance(part, ast.expr) and self.function.types.get(part, "int") in LITERALS:
                self.function.types[part] = kind

    def expression(self, node: ast.expr, wanted: str | None) -> str:
        match node:
            case ast.Constant(value=bool()):
                return "Flag"
            case ast.Constant(value=int()):
                return "int"
            case ast.Constant(value=float()):
                return "float"
            case ast.Name(id=name) if name in self.known:
                return self.known[name]
            case ast.Name(id=name) if name in self.function.module_constants:
                return "float" if isinstance(self.names[name], float) else "int"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.typed(operand, "Flag")
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.typed(operand, "Number")
            case ast.BoolOp(values=values):
                for value in values:
                    self.typed(value, "Flag")
                return "Flag"
            case ast.Compare(left=left, comparators=[right]):
                self.same(left, right)
                return "Flag"
            case ast.BinOp(left=left, op=ast.LShift() | ast.RShift(), right=right):
                kind = self.typed(left, wanted if isinstance(left, ast.Constant) else None)
                self.typed(right, "Count")
                return kind
            case ast.BinOp(left=left, right=right):
                return self.same(left, right)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.typed(test, "Flag")
                kind = self.same(body, orelse)
                if kind in LITERALS and wanted is not None:
                    self.settle(body, wanted)
                    self.settle(orelse, wanted)
                    return wanted
                return kind
            case ast.Subscript(value=ast.Name(id=name), slice=place):
                self.typed(place, "Count")
                self.function.types[node.value] = self.known[name]
                return ELEMENTS[self.known[name]]
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="next"), args=[]) if self.known.get(name) == "Source":
                return "Word"
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self.call(name, arguments)
        raise TranslationError(f"{self.function.name} uses {ast.unparse(node)}, which has no translation")

    def same(self, left: ast.expr, right: ast.expr) -> str:
        """Return the common type of two expressions; a literal takes the other's type."""
        kinds = [self.typed(left), self.typed(right)]
        if kinds[0] in LITERALS and kinds[1] not in LITERALS:
            self.settle(left, kinds[1])
        elif kinds[1] in LITERALS and kinds[0] not in LITERALS:
            self.settle(right, kinds[0])
            return kinds[0]
        elif kinds[0] != kinds[1]:
            raise TranslationError(f"{ast.unparse(left)} and {ast.unparse(right)} differ in type in {self.function.name}: {kinds}")
        return kinds[1]

    def call(self, name: str, arguments: list[ast.expr]) -> str:
        if name in CONVERSIONS:
            kind = self.typed(arguments[0])
            if kind in LITERALS:
                self.settle(arguments[0], name)
            return name
        if name in OPERATIONS:
            kinds = {"select": ("Flag", "Number", "Number"), "new_fields": ("Count",), "new_cells": ("Count",)}.get(name, ("Number",))
            for argument, kind in zip(arguments, kinds, strict=True):
                self.typed(argument, kind)
            if name.startswith("new_") and not {node.id for node in ast.walk(arguments[0]) if isinstance(node, ast.Name)} <= {
                *self.function.constants
            }:
                raise TranslationError(f"{self.function.name} must make sequences of a constant length, got {ast.unparse(arguments[0])}")
            return OPERATIONS[name]
        if not inspect.isfunction(self.names.get(name)):
            raise TranslationError(f"{self.function.name} calls {name}, which has no translation")
        callee = _add(self.names[name], self.functions)
        for argument, kind in zip(arguments, callee.parameters.values(), strict=True):
            self.typed(argument, kind)
        return callee.result
