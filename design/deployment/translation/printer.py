"""Printing of typed programs; each language states its own types, operators and statements."""

import ast
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import accumulate

from .typed_program import Function, cell_lengths

Constant = int | float | tuple[int, ...] | tuple[float, ...]
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}
WIDTH = 116


class Printer(ABC):
    """Prints the functions and constants of a client in one language.

    Parameters
    ----------
    program : sequence of Function
        Functions, callees first.
    constants : mapping
        Values of the client's constants, by name.
    """

    def __init__(self, program: Sequence[Function], constants: Mapping[str, Constant]) -> None:
        self.program, self.constants = program, constants
        self.constant_types = {name: kind for function in program for name, kind in function.constants.items()}
        self.function = program[-1]
        # Offset in a workspace of each sequence that the client does not keep on the stack.
        self.offsets: dict[str, int] = {}
        self.scopes: list[set[str]] = []

    @property
    @abstractmethod
    def types(self) -> Mapping[str, str]:
        """Name of each type of a local variable or of a result."""

    @abstractmethod
    def literal(self, value: int | float | bool, kind: str) -> str:
        """Return a literal."""

    @abstractmethod
    def signature(self, function: Function) -> str:
        """Return the first line of a function."""

    @abstractmethod
    def declaration(self, name: str, kind: str, value: ast.expr) -> str:
        """Return the statement that declares a variable with its first value."""

    @abstractmethod
    def loop(self, name: str, start: str, end: str) -> str:
        """Return the head of a loop over the whole numbers from start to below end."""

    @abstractmethod
    def conversion(self, kind: str, of: str, text: str) -> str:
        """Return the conversion of an expression of one type to another."""

    @abstractmethod
    def operation(self, name: str, arguments: list[str]) -> str:
        """Return the call of one of the operations of clients."""

    @abstractmethod
    def comment(self, text: str) -> list[str]:
        """Return a comment's lines."""

    @abstractmethod
    def document(self, paragraphs: Sequence[str]) -> list[str]:
        """Return the lines of a function's documentation."""

    def name(self, identifier: str) -> str:
        """Return the name of a variable."""
        return identifier

    def function_name(self, identifier: str) -> str:
        """Return the name of a function."""
        return self.name(identifier)

    def constant_name(self, identifier: str) -> str:
        """Return the name of a constant."""
        return identifier.upper()

    def negation(self, text: str) -> str:
        """Return the opposite of a condition."""
        return f"!{text}"

    def conjunction(self, *, both: bool) -> str:
        """Return the operator of two conditions."""
        return "&&" if both else "||"

    def choice(self, test: str, first: str, second: str) -> str:
        """Return the expression that has one of two values."""
        return f"{test} ? {first} : {second}"

    def binary(self, operator: str, left: str, right: str, kind: str) -> tuple[str, bool]:  # noqa: ARG002
        """Return a binary operation, and whether it needs no parentheses inside another one."""
        return f"{left} {'/' if operator == '//' else operator} {right}", False

    def shift(self, operator: str, left: str, right: ast.expr, kind: str) -> tuple[str, bool]:  # noqa: ARG002
        """Return a shift, and whether it needs no parentheses inside another operation."""
        return f"{left} {operator} {self.part(right)}", False

    def comparison(self, operator: str, left: str, right: str, kind: str) -> tuple[str, bool]:  # noqa: ARG002
        """Return a comparison, and whether it needs no parentheses."""
        return f"{left} {operator} {right}", False

    def next_word(self, source: str) -> str:
        """Return the call for a source's next word."""
        return f"{self.name(source)}.next()"

    def element(self, sequence: str, place: str) -> str:
        """Return an element of a sequence."""
        return f"{sequence}[{place}]"

    def argument(self, node: ast.expr, kind: str) -> str:  # noqa: ARG002
        """Return an argument of a call."""
        return self.text(node)

    def call(self, name: str, arguments: list[str]) -> str:
        """Return the call of another function of the program."""
        return f"{self.function_name(name)}({', '.join(arguments)})"

    def test(self, node: ast.expr) -> str:
        """Return the condition of an if or a loop."""
        return f"({self.text(node)})"

    def use_workspace(self, client: str) -> None:
        """Place the sequences of a client in a workspace, which its caller provides."""
        (function,) = (function for function in self.program if function.name == client)
        lengths = cell_lengths(function, self.constants)
        self.offsets = dict(zip(lengths, [0, *accumulate(lengths.values())], strict=False))

    def takes_workspace(self, function: Function) -> bool:
        """Return whether a function takes a workspace: a client alone, which has constants, makes sequences."""
        return bool(self.offsets) and bool(function.constants)

    # Printing of the tree, the same for all languages.

    def functions(self) -> str:
        """Return all functions."""
        return "\n\n".join("\n".join(self._function(function)) for function in self.program)

    def _function(self, function: Function) -> list[str]:
        self.function = function
        self.scopes = [set(function.parameters)]
        return [*self.document(function.summary), *self.signature(function).split("\n"), *self.block(function.body), "}"]

    def block(self, body: Sequence[ast.stmt]) -> list[str]:
        """Return the indented lines of statements."""
        self.scopes.append(set())
        lines = []
        for statement in body:
            above = self.function.comments.get(statement.lineno, ())
            lines += [*(self.comment(" ".join(above)) if above else ()), *self.statement(statement)]
        self.scopes.pop()
        return [f"    {line}" for line in lines]

    def statement(self, node: ast.stmt) -> list[str]:
        """Return the lines of a statement."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name) as target], value=value):
                if not any(name in scope for scope in self.scopes):
                    self.scopes[-1].add(name)
                    return [self.declaration(name, self.kind(target), value)]
                return [f"{self.name(name)} = {self.text(value)};"]
            case ast.Assign(targets=[target], value=value):
                return [f"{self.text(target)} = {self.text(value)};"]
            case ast.If(test=test, body=body, orelse=orelse):
                lines = [f"if {self.test(test)} {{", *self.block(body)]
                return [*lines, "} else {", *self.block(orelse), "}"] if orelse else [*lines, "}"]
            case ast.While(test=test, body=body):
                return [f"while {self.test(test)} {{", *self.block(body), "}"]
            case ast.For(target=ast.Name(id=name), iter=ast.Call(args=ends), body=body):
                texts = [self.text(end) for end in ends]
                start, end = texts if len(texts) == 2 else ("0", *texts)
                self.scopes.append({name})
                lines = [f"{self.loop(self.name(name), start, end)} {{", *self.block(body), "}"]
                self.scopes.pop()
                return lines
            case ast.Return(value=ast.expr() as value):
                return [f"return {self.text(value)};"]
            case ast.Expr(value=value):
                return [f"{self.text(value)};"]
            case ast.Return():
                return ["return;"]
        raise TypeError(f"no translation of {ast.unparse(node)}")

    def kind(self, node: ast.AST) -> str:
        """Return the type of an expression."""
        return self.function.types[node]

    def part(self, node: ast.expr) -> str:
        """Return an expression as a part of another one, in parentheses unless it needs none."""
        text, whole = self.expression(node)
        return text if whole else f"({text})"

    def text(self, node: ast.expr) -> str:
        """Return an expression."""
        return self.expression(node)[0]

    def expression(self, node: ast.expr) -> tuple[str, bool]:
        """Return an expression, and whether it needs no parentheses inside another one."""
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return self.literal(value, self.kind(node)), True
            case ast.Name(id=name):
                if name in self.function.constants:
                    return self.constant_name(name), True
                if name in self.function.module_constants:
                    return self.literal(self.function.module_constants[name], self.kind(node)), True
                return self.name(name), True
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.negation(self.part(operand)), True
            case ast.UnaryOp(operand=operand):
                return f"-{self.part(operand)}", False
            case ast.BoolOp(op=operator, values=values):
                return f" {self.conjunction(both=isinstance(operator, ast.And))} ".join(self.part(value) for value in values), False
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                return self.comparison(COMPARISONS[type(operator)], self.part(left), self.part(right), self.kind(left))
            case ast.BinOp(left=left, op=ast.LShift() | ast.RShift() as operator, right=right):
                return self.shift(OPERATORS[type(operator)], self.part(left), right, self.kind(node))
            case ast.BinOp(left=left, op=operator, right=right):
                return self.binary(OPERATORS[type(operator)], self.part(left), self.part(right), self.kind(node))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.choice(self.part(test), self.part(body), self.part(orelse)), False
            case ast.Subscript(value=value, slice=place):
                return self.element(self.text(value), self.text(place)), True
            case ast.Call(func=ast.Attribute(value=ast.Name(id=source))):
                return self.next_word(source), True
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._call(name, arguments), True
        raise TypeError(f"no translation of {ast.unparse(node)}")

    def _call(self, name: str, arguments: list[ast.expr]) -> str:
        if name in ("Word", "Count", "Number"):
            (argument,) = arguments
            if isinstance(argument, ast.Constant) and isinstance(argument.value, int | float):
                return self.literal(argument.value, name)
            return self.conversion(name, self.kind(argument), self.part(argument))
        for function in self.program:
            if function.name == name:
                kinds = function.parameters.values()
                return self.call(name, [self.argument(node, kind) for node, kind in zip(arguments, kinds, strict=True)])
        return self.operation(name, [self.text(argument) for argument in arguments])


def camel_case(identifier: str) -> str:
    """Return an identifier in camel case."""
    first, *others = identifier.split("_")
    return first + "".join(word.capitalize() for word in others)


def block_comment(paragraphs: Sequence[str], opening: str, width: int) -> list[str]:
    """Return the lines of a comment that ends with an asterisk and a slash."""
    lines = [line for paragraph in paragraphs for line in ["", *textwrap.wrap(paragraph.replace("`", ""), width - 6)]][1:]
    if len(lines) == 1:
        return [f"{opening} {lines[0]} */"]
    return [opening, *(f" * {line}".rstrip() for line in lines), " */"]
