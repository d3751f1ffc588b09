"""Clients in TypeScript, and in JavaScript without its types."""

import ast
import textwrap
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from .printer import WIDTH, Constant, Printer, block_comment, camel_case
from .typed_program import CONVERSIONS, Function

TYPES: Mapping[str, str] = MappingProxyType(
    {
        "Word": "bigint",
        "Count": "number",
        "Number": "number",
        "Flag": "boolean",
        "None": "void",
        "Words": "BigUint64Array",
        "Fields": "BigUint64Array",
        "Numbers": "Float64Array",
        "Cells": "Float64Array",
        "Source": "WordSource",
    }
)
OPERATIONS = MappingProxyType(
    {"sqrt": "Math.sqrt", "floor": "Math.floor", "new_fields": "new BigUint64Array", "new_cells": "new Float64Array", "select": "select"}
)
# Words that cannot be names in modules.
KEYWORDS = """
arguments await break case catch class const continue debugger default delete do else enum eval export extends false finally
for function if implements import in instanceof interface let new null package private protected public return static super
switch this throw true try typeof var void while with yield
"""


class TypeScriptPrinter(Printer):
    """Prints functions in TypeScript, or in JavaScript.

    Words are bigints and all other numbers are numbers, so that each operation is exact or rounded once, as in Python.

    Parameters
    ----------
    program : sequence of Function
        Functions, callees first.
    constants : mapping
        Values of the client's constants, by name.
    typed : bool
        Whether types are printed.
    """

    def __init__(self, program: Sequence[Function], constants: Mapping[str, Constant], *, typed: bool) -> None:
        super().__init__(program, constants)
        self.typed = typed

    types = TYPES

    def name(self, identifier: str) -> str:
        """Return the name in camel case; a keyword gets an underscore."""
        name = camel_case(identifier)
        return f"{name}_" if name in KEYWORDS.split() else name

    def literal(self, value: int | float | bool, kind: str) -> str:
        """Return a literal; words are bigints."""
        if kind == "Flag":
            return str(bool(value)).lower()
        return repr(float(value)) if kind == "Number" else f"{value}n" if kind == "Word" else str(value)

    def constant_lines(self) -> str:
        """Return the definitions of all constants."""
        lines = []
        for name, value in self.constants.items():
            kind = self.constant_types[name]
            if isinstance(value, tuple):
                element = {"Words": "Word", "Numbers": "Number"}[kind]
                items = textwrap.fill(", ".join(self.literal(item, element) for item in value) + ",", WIDTH - 4, break_long_words=False)
                text = f"{TYPES[kind]}.from([\n{textwrap.indent(items, '    ')}\n])"
            else:
                text = self.literal(value, kind)
            lines.append(f"const {self.constant_name(name)}{self._annotation(kind)} = {text};")
        return "\n".join(lines)

    def signature(self, function: Function) -> str:
        """Return a function's head."""
        parameters = [f"{self.name(name)}{self._annotation(kind)}" for name, kind in function.parameters.items()]
        head, result = f"function {self.function_name(function.name)}(", f"){self._annotation(function.result)} {{"
        line = f"{head}{', '.join(parameters)}{result}"
        return line if len(line) <= WIDTH else "\n".join([head, *(f"    {parameter}," for parameter in parameters), result])

    def _annotation(self, kind: str) -> str:
        return f": {TYPES[kind]}" if self.typed else ""

    def declaration(self, name: str, kind: str, value: ast.expr) -> str:  # noqa: ARG002
        """Return a declaration, whose type is inferred."""
        return f"{'let' if name in self.function.rebound else 'const'} {self.name(name)} = {self.text(value)};"

    def loop(self, name: str, start: str, end: str) -> str:
        """Return a for statement."""
        return f"for (let {name} = {start}; {name} < {end}; ++{name})"

    def expression(self, node: ast.expr) -> tuple[str, bool]:
        """Return an expression; conversions are calls, and elements that are read are never undefined."""
        match node:
            case ast.Subscript(value=value, slice=place, ctx=ast.Load()) if self.typed:
                return f"{self.element(self.text(value), self.text(place))}!", True
            case ast.Call(func=ast.Name(id=kind), args=[argument]) if kind in CONVERSIONS and not isinstance(argument, ast.Constant):
                return self.conversion(kind, self.kind(argument), self.text(argument)), True
        return super().expression(node)

    def conversion(self, kind: str, of: str, text: str) -> str:
        """Return the call of a converting function; Number rounds words as Python does."""
        if kind == "Word":
            return f"BigInt({text})"
        return f"Math.trunc({text})" if kind == "Count" and of == "Number" else f"Number({text})"

    def operation(self, name: str, arguments: list[str]) -> str:
        """Return the call of a built-in function, or of a function of the client's frame."""
        return f"{OPERATIONS[name]}({', '.join(arguments)})"

    def binary(self, operator: str, left: str, right: str, kind: str) -> tuple[str, bool]:
        """Return an operation; whole numbers that are no words are divided as numbers."""
        if operator == "//" and kind == "Count":
            return f"Math.floor({left} / {right})", True
        return super().binary(operator, left, right, kind)

    def shift(self, operator: str, left: str, right: ast.expr, kind: str) -> tuple[str, bool]:
        """Return a shift; a word is shifted by a bigint."""
        if kind != "Word":
            return super().shift(operator, left, right, kind)
        text = self.text(right)
        places = f"{text}n" if isinstance(right, ast.Constant) else f"BigInt({text})"
        return f"{left} {operator} {places}", False

    def comparison(self, operator: str, left: str, right: str, kind: str) -> tuple[str, bool]:
        """Return a comparison without conversions."""
        return super().comparison({"==": "===", "!=": "!=="}.get(operator, operator), left, right, kind)

    def comment(self, text: str) -> list[str]:
        """Return a comment."""
        return [f"// {line}" for line in textwrap.wrap(text.replace("`", ""), WIDTH - 11)]

    def document(self, paragraphs: Sequence[str]) -> list[str]:
        """Return a documenting comment."""
        return block_comment(paragraphs, "/**", WIDTH)
