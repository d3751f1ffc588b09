"""Clients in Rust."""

import ast
import textwrap
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from .printer import OPERATORS, WIDTH, Printer
from .typed_program import CONVERSIONS, Function

TYPES: Mapping[str, str] = MappingProxyType({"Word": "u64", "Count": "usize", "Number": "f64", "Flag": "bool"})
PARAMETERS = MappingProxyType(
    {**TYPES, "Words": "&[u64]", "Fields": "&mut [u64]", "Numbers": "&[f64]", "Cells": "&mut [f64]", "Source": "&mut impl Words"}
)
# Keywords of Rust that are names in Python.
KEYWORDS = (
    "abstract become box const do dyn enum extern final fn gen impl let loop macro match mod move mut override priv pub ref static struct"
    " trait type typeof unsafe unsized use virtual where"
)


class RustPrinter(Printer):
    """Prints functions in Rust, as items of a private module."""

    types = TYPES

    def name(self, identifier: str) -> str:
        """Return the name; a keyword is written as a raw identifier."""
        return f"r#{identifier}" if identifier in KEYWORDS.split() else identifier

    def literal(self, value: int | float | bool, kind: str) -> str:
        """Return a literal, whose type follows from its surroundings."""
        if kind == "Flag":
            return str(bool(value)).lower()
        return repr(float(value)) if kind == "Number" else str(value)

    def constant_lines(self) -> str:
        """Return the definitions of all constants."""
        lines = []
        for name, value in self.constants.items():
            kind = self.constant_types[name]
            if isinstance(value, tuple):
                element = {"Words": "Word", "Numbers": "Number"}[kind]
                items = textwrap.fill(", ".join(self.literal(item, element) for item in value) + ",", WIDTH - 4, break_long_words=False)
                items = textwrap.indent(items, "    ")
                lines.append(f"static {self.constant_name(name)}: [{TYPES[element]}; {len(value)}] = [\n{items}\n];")
            else:
                lines.append(f"const {self.constant_name(name)}: {TYPES[kind]} = {self.literal(value, kind)};")
        return "\n".join(lines)

    def signature(self, function: Function) -> str:
        """Return a function's head; the client itself is visible to the crate."""
        parameters = [
            f"{'mut ' if name in function.rebound else ''}{self.name(name)}: {PARAMETERS[kind]}"
            for name, kind in function.parameters.items()
        ] + ["mut workspace: &mut [f64]"] * self.takes_workspace(function)
        head = f"{'pub(crate) ' if function.constants else ''}fn {self.function_name(function.name)}("
        result = f" -> {TYPES[function.result]}" if function.result != "None" else ""
        line = f"{head}{', '.join(parameters)}){result} {{"
        if len(line) > WIDTH:
            line = "\n".join([head, *(f"    {parameter}," for parameter in parameters), f"){result} {{"])
        return line

    def declaration(self, name: str, kind: str, value: ast.expr) -> str:
        """Return a let statement; new sequences are arrays."""
        if kind in ("Fields", "Cells"):
            assert isinstance(value, ast.Call)  # noqa: S101 - only new_fields and new_cells make sequences
            if name in self.offsets:
                return f"let {self.name(name)} = zeros(&mut workspace, {self.text(value.args[0])});"
            element = "0_u64" if kind == "Fields" else "0.0_f64"
            return f"let mut {self.name(name)} = [{element}; {self.text(value.args[0])}];"
        return f"let {'mut ' if name in self.function.rebound else ''}{self.name(name)}: {TYPES[kind]} = {self.text(value)};"

    def loop(self, name: str, start: str, end: str) -> str:
        """Return a for expression."""
        return f"for {name} in {start}..{end}"

    def conversion(self, kind: str, of: str, text: str) -> str:
        """Return a cast; only flags have lossless conversions to all types."""
        if of == "Flag":
            return f"f64::from(u8::from({text}))" if kind == "Number" else f"{TYPES[kind]}::from({text})"
        return f"{text} as {TYPES[kind]}"

    def operation(self, name: str, arguments: list[str]) -> str:
        """Return the call of a function of the module's frame."""
        return f"{name}({', '.join(arguments)})"

    def argument(self, node: ast.expr, kind: str) -> str:
        """Return an argument; arrays are borrowed, and parameters are borrowed already."""
        text = self.text(node)
        borrowed = {*self.function.parameters, *(self.offsets if self.takes_workspace(self.function) else ())}
        if kind not in ("Words", "Fields", "Numbers", "Cells") or (isinstance(node, ast.Name) and node.id in borrowed):
            return text
        return f"&mut {text}" if kind in ("Fields", "Cells") else f"&{text}"

    def test(self, node: ast.expr) -> str:
        """Return a condition, without parentheses."""
        return self.text(node)

    def statement(self, node: ast.stmt) -> list[str]:
        """Return the lines of a statement; a function ends with an expression, and `x = x + y` is `x += y`."""
        match node:
            case ast.Return() if node is self.function.body[-1]:
                return [] if node.value is None else [self.text(node.value)]
            case ast.Assign(targets=[target], value=ast.BinOp(left=left, op=operator, right=right)) if ast.dump(left) == ast.dump(
                _read(target)
            ):
                sign = self.binary(OPERATORS[type(operator)], "", "", self.kind(node.value))[0].strip()
                return [f"{self.text(left)} {sign}= {self.text(right)};"]
        return super().statement(node)

    def expression(self, node: ast.expr) -> tuple[str, bool]:
        """Return an expression, without parentheses in which Rust's blocks and calls need none."""
        match node:
            case ast.IfExp(test=test, body=body, orelse=orelse):
                other = self.text(orelse) if isinstance(orelse, ast.IfExp) else f"{{ {self.text(orelse)} }}"
                return f"if {self.text(test)} {{ {self.text(body)} }} else {other}", False
            case ast.Call(func=ast.Name(id=kind), args=[argument]) if kind in CONVERSIONS and not isinstance(argument, ast.Constant):
                of = self.kind(argument)
                if of == kind:
                    return self.expression(argument)
                flag = of == "Flag"
                return self.conversion(kind, of, self.text(argument) if flag else self.part(argument)), flag
        return super().expression(node)

    def comment(self, text: str) -> list[str]:
        """Return a comment."""
        return textwrap.wrap(text, WIDTH - 8, initial_indent="// ", subsequent_indent="// ")

    def document(self, paragraphs: Sequence[str]) -> list[str]:
        """Return a documentation comment above a function."""
        wrapped = [textwrap.wrap(paragraph, WIDTH - 8) for paragraph in paragraphs]
        return [f"/// {line}".rstrip() for lines in wrapped for line in ["", *lines]][1:]


def _read(target: ast.expr) -> ast.expr:
    """Return a target as an expression that is read."""
    return ast.parse(ast.unparse(target), mode="eval").body
