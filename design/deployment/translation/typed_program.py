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
# Types of arguments that a call changes.
CHANGED = ("Source", "Fields", "Cells")
# Operators of numbers, of whole numbers, and of both.
NUMBERS_ONLY = (ast.Div,)
WHOLE_ONLY = (ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor)
BOTH = (ast.Add, ast.Sub, ast.Mult)
COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


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


def cell_lengths(function: Function, constants: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of floating-point numbers of each sequence that a client makes, by name."""
    lengths = {}
    for node in (part for statement in function.body for part in ast.walk(statement)):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="new_cells"), args=[ast.Name(id=length)])):
                lengths[name] = int(constants[length])
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="new_cells"), args=[ast.Constant(value=length)])):
                lengths[name] = int(str(length))
    return lengths


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
    _check_tree(tree)
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
        rebound=frozenset(_rebound(body, set(parameters))),
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


def _rebound(body: list[ast.stmt], seen: set[str]) -> Iterator[str]:
    """Yield the names that are assigned again where their first assignment is in scope."""
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]):
                if name in seen:
                    yield name
                seen.add(name)
            case ast.If() | ast.While() | ast.For():
                for block in (node.body, node.orelse):
                    yield from _rebound(block, set(seen))


def _check_tree(tree: ast.FunctionDef) -> None:
    """Refuse what Python evaluates in another way than other languages do, or what a translation would leave out."""
    if tree.args.defaults or any(tree.args.kw_defaults) or tree.args.vararg or tree.args.kwarg or tree.args.posonlyargs:
        raise TranslationError(f"{tree.name} must have parameters without defaults, each with a name")
    for node in ast.walk(tree):
        match node:
            case ast.Call(keywords=[_, *_]):
                raise TranslationError(f"{tree.name} must pass arguments by place, got {ast.unparse(node)}")
            case ast.While(orelse=[_, *_]) | ast.For(orelse=[_, *_]):
                raise TranslationError(f"{tree.name} has a loop with an else, which has no translation")
            case ast.For():
                # Python evaluates the ends of a range once, and keeps the loop's variable to itself.
                fixed = {part.id for part in (*ast.walk(node.iter), node.target) if isinstance(part, ast.Name)}
                changed = {
                    target.id
                    for part in ast.walk(node)
                    if isinstance(part, ast.Assign)
                    for target in part.targets
                    if isinstance(target, ast.Name)
                }
                if fixed & changed:
                    raise TranslationError(f"{tree.name} must not assign to {min(fixed & changed)} in a loop over it")


class _Typing(ast.NodeVisitor):
    """Computes the types of a function's expressions, and refuses what has no translation."""

    def __init__(self, function: Function, names: dict[str, Any], functions: dict[str, Function]) -> None:
        self.function, self.names, self.functions = function, names, functions
        self.known = {**function.parameters, **function.constants}

    def check(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.visit(statement)
            self.check_order(statement)

    def check_order(self, statement: ast.stmt) -> None:
        """Refuse two calls with effects in a statement's expression: C may evaluate them in any order."""
        parts = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.expr)]
        nodes = [node for part in parts for node in ast.walk(part)]
        calls = [ast.unparse(node) for node in nodes if isinstance(node, ast.Call) and self.has_effect(node)]
        if len(calls) > 1:
            raise TranslationError(f"{self.function.name} must draw and write in one call of a statement, got {' and '.join(calls)}")

    def has_effect(self, call: ast.Call) -> bool:
        """Return whether a call takes words from a source, or writes into a sequence."""
        if isinstance(call.func, ast.Attribute):
            return True
        callee = self.functions.get(call.func.id) if isinstance(call.func, ast.Name) else None
        return callee is not None and any(kind in CHANGED for kind in callee.parameters.values())

    def generic_visit(self, node: ast.AST) -> None:
        raise TranslationError(f"{self.function.name} uses {type(node).__name__}, which has no translation")

    def visit_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) > 1:
            raise TranslationError(f"{self.function.name} must assign to one name at a time, got {ast.unparse(node)}")
        (target,) = node.targets
        if isinstance(target, ast.Subscript):
            if isinstance(target.value, ast.Name) and self.known.get(target.value.id) in ("Words", "Numbers"):
                raise TranslationError(f"{self.function.name} must not write into {target.value.id}, which it only reads")
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
        if len(node.iter.args) > 2 or not isinstance(node.target, ast.Name):
            raise TranslationError(f"{self.function.name} must loop over a range in steps of 1, got {ast.unparse(node.iter)}")
        for end in node.iter.args:
            self.typed(end, "Count")
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
        if wanted is not None and kind != wanted and (kind, wanted) not in (("Fields", "Words"), ("Cells", "Numbers")):
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
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if isinstance(operator, COMPARED):
                self.same(left, right)
                return "Flag"
            case ast.BinOp(left=left, op=ast.LShift() | ast.RShift(), right=right):
                kind = self.typed(left, wanted if isinstance(left, ast.Constant) else None)
                self.typed(right, "Count")
                return kind
            case ast.BinOp(left=left, op=operator, right=right):
                kind = self.same(left, right)
                allowed = {"Number": (*BOTH, *NUMBERS_ONLY), "float": (*BOTH, *NUMBERS_ONLY)}.get(kind, (*BOTH, *WHOLE_ONLY))
                if kind == "Flag" or not isinstance(operator, allowed):
                    raise TranslationError(f"{ast.unparse(node)} in {self.function.name} has no translation for a {kind}")
                return kind
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
            self.check_number(name, arguments, 1)
            kind = self.typed(arguments[0])
            if kind in LITERALS:
                self.settle(arguments[0], name)
            return name
        if name in OPERATIONS:
            kinds = {"select": ("Flag", "Number", "Number"), "new_fields": ("Count",), "new_cells": ("Count",)}.get(name, ("Number",))
            self.check_number(name, arguments, len(kinds))
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
        if callee.constants:
            raise TranslationError(f"{self.function.name} must call functions without constants, got {name}")
        self.check_number(name, arguments, len(callee.parameters))
        for argument, kind in zip(arguments, callee.parameters.values(), strict=True):
            self.typed(argument, kind)
        return callee.result

    def check_number(self, name: str, arguments: list[ast.expr], number: int) -> None:
        """Refuse a call with another number of arguments."""
        if len(arguments) != number:
            raise TranslationError(f"{self.function.name} must call {name} with {number} arguments, got {len(arguments)}")
