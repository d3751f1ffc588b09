"""Clients in Java 11."""

import ast
import html
import struct
import textwrap
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from .printer import COMPARISONS, WIDTH, Printer, block_comment, camel_case
from .typed_program import CONVERSIONS, Function

TYPES: Mapping[str, str] = MappingProxyType(
    {
        "Word": "long",
        "Count": "int",
        "Number": "double",
        "Flag": "boolean",
        "None": "void",
        "Words": "long[]",
        "Fields": "long[]",
        "Numbers": "double[]",
        "Cells": "double[]",
        "Source": "WordSource",
    }
)
KEYWORDS = """
abstract assert boolean break byte case catch char class const continue default do double else enum extends false final
finally float for goto if implements import instanceof int interface long native new null package private protected public
return short static strictfp super switch synchronized this throw throws transient true try void volatile while
"""
OPERATIONS = MappingProxyType({"sqrt": "Math.sqrt", "floor": "Math.floor", "select": "select"})
# Longest table that is written as numbers: the code that fills tables may have 64 KiB in all. Longer tables are texts of at most 65535
# hexadecimal digits.
MOST_NUMBERS = 64
DIGITS, WORDS_OF_LINE, LINES_OF_TEXT = 16, 6, 600


class JavaPrinter(Printer):
    """Prints functions in Java, as static methods. Words are longs whose comparison and division are unsigned."""

    types = TYPES

    def name(self, identifier: str) -> str:
        """Return the name in camel case; a keyword gets an underscore."""
        name = camel_case(identifier)
        return f"{name}_" if name in KEYWORDS.split() else name

    def literal(self, value: int | float | bool, kind: str) -> str:
        """Return a literal; words from 2**63 are hexadecimal, as Java allows it."""
        if kind == "Flag":
            return str(bool(value)).lower()
        if kind == "Number":
            return repr(float(value))
        return str(value) if kind == "Count" else f"{value}L" if value < 2**63 else f"{value:#x}L"

    def constant_lines(self) -> str:
        """Return the definitions of all constants."""
        lines = []
        for name, value in self.constants.items():
            kind = self.constant_types[name]
            text = self._table(value, kind) if isinstance(value, tuple) else self.literal(value, kind)
            lines.append(f"private static final {TYPES[kind]} {self.constant_name(name)} = {text};")
        return "\n".join(lines)

    def _table(self, values: tuple[int, ...] | tuple[float, ...], kind: str) -> str:
        if len(values) <= MOST_NUMBERS:
            element = {"Words": "Word", "Numbers": "Number"}[kind]
            items = textwrap.fill(", ".join(self.literal(item, element) for item in values), WIDTH - 8, break_long_words=False)
            return f"{{\n{textwrap.indent(items, '    ')}\n}}"
        packed = struct.pack(f">{len(values)}{'Q' if kind == 'Words' else 'd'}", *values).hex()
        step = WORDS_OF_LINE * DIGITS
        lines = [f'"{packed[start : start + step]}"' for start in range(0, len(packed), step)]
        texts = [lines[start : start + LINES_OF_TEXT] for start in range(0, len(lines), LINES_OF_TEXT)]
        joined = ",\n".join("\n    + ".join(text) for text in texts)
        return f"{kind.lower()}(\n{textwrap.indent(joined, '    ')})"

    def signature(self, function: Function) -> str:
        """Return a function's head."""
        parameters = [f"{TYPES[kind]} {self.name(name)}" for name, kind in function.parameters.items()]
        head = f"private static {TYPES[function.result]} {self.function_name(function.name)}("
        line = f"{head}{', '.join(parameters)}) {{"
        if len(line) > WIDTH:
            line = head + "\n" + textwrap.indent(textwrap.fill(", ".join(parameters) + ") {", WIDTH - 8), " " * 8)
        return line

    def declaration(self, name: str, kind: str, value: ast.expr) -> str:
        """Return a declaration."""
        return f"{TYPES[kind]} {self.name(name)} = {self.text(value)};"

    def loop(self, name: str, start: str, end: str) -> str:
        """Return a for statement."""
        return f"for (int {name} = {start}; {name} < {end}; ++{name})"

    def expression(self, node: ast.expr) -> tuple[str, bool]:
        """Return an expression; comparisons and divisions of words are calls."""
        match node:
            case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() as operator], comparators=[right]) if (
                self.kind(left) == "Word"
            ):
                return f"Long.compareUnsigned({self.text(left)}, {self.text(right)}) {COMPARISONS[type(operator)]} 0", False
            case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod() as operator, right=right) if self.kind(node) == "Word":
                name = "divideUnsigned" if isinstance(operator, ast.FloorDiv) else "remainderUnsigned"
                return f"Long.{name}({self.text(left)}, {self.text(right)})", True
            case ast.Call(func=ast.Name(id="Number"), args=[argument]) if self.kind(argument) == "Word":
                return f"number({self.text(argument)})", True
            case ast.Call(func=ast.Name(id=kind), args=[argument]) if kind in CONVERSIONS and not isinstance(argument, ast.Constant):
                return self.conversion(kind, self.kind(argument), self.part(argument)), self.kind(argument) == kind
        return super().expression(node)

    def conversion(self, kind: str, of: str, text: str) -> str:
        """Return a cast; conditions count as 0 and 1."""
        if of == "Flag":
            one, zero = self.literal(1, kind), self.literal(0, kind)
            return f"{text} ? {one} : {zero}"
        return f"({TYPES[kind]}) {text}" if kind != of else text

    def operation(self, name: str, arguments: list[str]) -> str:
        """Return a new array, or the call of a static method."""
        if name in ("new_fields", "new_cells"):
            return f"new {'long' if name == 'new_fields' else 'double'}[{arguments[0]}]"
        return f"{OPERATIONS[name]}({', '.join(arguments)})"

    def shift(self, operator: str, left: str, right: ast.expr, kind: str) -> tuple[str, bool]:
        """Return a shift that fills with zeros."""
        return super().shift({">>": ">>>"}.get(operator, operator), left, right, kind)

    def comment(self, text: str) -> list[str]:
        """Return a comment."""
        return [f"// {line}" for line in textwrap.wrap(text.replace("`", ""), WIDTH - 15)]

    def document(self, paragraphs: Sequence[str]) -> list[str]:
        """Return a documenting comment, which is HTML."""
        return block_comment([html.escape(part, quote=False) for part in paragraphs], "/**", WIDTH - 4)
