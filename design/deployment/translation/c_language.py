"""Clients in C99."""

import ast
import textwrap
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from .printer import WIDTH, Constant, Printer, block_comment
from .typed_program import Function

TYPES = MappingProxyType({"Word": "uint64_t", "Count": "uint32_t", "Number": "double", "Flag": "int", "None": "void"})
PARAMETERS = MappingProxyType(
    {
        **TYPES,
        "Words": "const uint64_t *",
        "Fields": "uint64_t *",
        "Numbers": "const double *",
        "Cells": "double *",
        "Source": "{prefix}_source *",
    }
)


class CPrinter(Printer):
    """Prints functions in C99, with a prefix for all names that a program with several clients sees."""

    def __init__(self, program: Sequence[Function], constants: Mapping[str, Constant], prefix: str) -> None:
        super().__init__(program, constants)
        self.prefix = prefix

    types = TYPES

    def function_name(self, identifier: str) -> str:
        """Return the name with the prefix."""
        return f"{self.prefix}_{identifier}"

    def constant_name(self, identifier: str) -> str:
        """Return the name of a macro or an array."""
        kind = self.constant_types[identifier]
        return f"{self.prefix}_{identifier}" if kind in ("Words", "Numbers") else f"{self.prefix}_{identifier}".upper()

    def literal(self, value: int | float | bool, kind: str) -> str:
        """Return a literal; words are unsigned."""
        if kind == "Number":
            return repr(float(value))
        if kind == "Flag":
            return str(int(value))
        return f"UINT64_C({value})" if kind == "Word" else f"{value}u"

    def constant_lines(self) -> str:
        """Return the definitions of all constants."""
        lines = []
        for name, value in self.constants.items():
            kind = self.constant_types[name]
            if isinstance(value, tuple):
                element = {"Words": "Word", "Numbers": "Number"}[kind]
                items = textwrap.fill(", ".join(self.literal(item, element) for item in value), WIDTH - 4, break_long_words=False)
                lines.append(
                    f"static const {TYPES[element]} {self.constant_name(name)}[{len(value)}] = {{\n{textwrap.indent(items, '    ')}\n}};"
                )
            else:
                text = self.literal(value, kind)
                lines.append(f"#define {self.constant_name(name)} {f'({text})' if text.startswith('-') else text}")
        return "\n".join(lines)

    def signature(self, function: Function) -> str:
        """Return a function's head."""
        parameters = [
            f"{kind}{'' if kind.endswith('*') else ' '}{name}"
            for name, of in function.parameters.items()
            for kind in [PARAMETERS[of].format(prefix=self.prefix)]
        ] + ["double *workspace"] * self.takes_workspace(function)
        head = f"static inline {TYPES[function.result]} {self.function_name(function.name)}("
        line = f"{head}{', '.join(parameters)})"
        if len(line) > WIDTH:
            line = head + "\n" + textwrap.fill(", ".join(parameters) + ")", WIDTH, initial_indent="    ", subsequent_indent="    ")
        return line + "\n{"

    def declaration(self, name: str, kind: str, value: ast.expr) -> str:
        """Return a declaration; new sequences are arrays."""
        if kind in ("Fields", "Cells"):
            assert isinstance(value, ast.Call)  # noqa: S101 - only new_fields and new_cells make sequences
            if name in self.offsets:
                return f"double *{name} = {self.prefix}_zeros(workspace + {self.offsets[name]}u, {self.text(value.args[0])});"
            return f"{'uint64_t' if kind == 'Fields' else 'double'} {name}[{self.text(value.args[0])}] = {{0}};"
        return f"{TYPES[kind]} {name} = {self.text(value)};"

    def loop(self, name: str, start: str, end: str) -> str:
        """Return a for statement."""
        return f"for (uint32_t {name} = {start}; {name} < {end}; ++{name})"

    def conversion(self, kind: str, of: str, text: str) -> str:
        """Return a cast."""
        return f"({TYPES[kind]}){text}" if kind != of else text

    def operation(self, name: str, arguments: list[str]) -> str:
        """Return the call of a function of the client's frame."""
        return f"{self.prefix}_{name}({', '.join(arguments)})"

    def next_word(self, source: str) -> str:
        """Return the call of a source."""
        return f"{source}->next({source}->state)"

    def binary(self, operator: str, left: str, right: str, kind: str) -> tuple[str, bool]:
        """Return an operation; products of floating-point numbers are rounded before they are used."""
        if operator == "*" and kind == "Number":
            return f"{self.prefix}_product({left}, {right})", True
        return super().binary(operator, left, right, kind)

    def comment(self, text: str) -> list[str]:
        """Return a comment."""
        return block_comment([text], "/*", WIDTH - 8)

    def document(self, paragraphs: Sequence[str]) -> list[str]:
        """Return a comment above a function."""
        return block_comment(paragraphs, "/*", WIDTH)
