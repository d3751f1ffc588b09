"""No operation of a client leaves the range of its type, for which languages differ.

Each client runs with a check around every operation, on known answers and cases at thresholds.
"""

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from deployed_clients import cases, deployments

from quietbits.design.deployment.client_program import ClientProgram
from quietbits.design.deployment.clients import kinds
from quietbits.design.deployment.clients.kinds import Fields, Source, Word
from quietbits.design.deployment.public_words import public_words
from quietbits.design.deployment.python_client import GivenWords
from quietbits.design.deployment.translation.typed_program import Function, typed_program
from quietbits.design.deployment.wire_format import pack_fields

RANGES = {"Word": 2**64, "Count": 2**31}
PYTHON = {"Word": int, "Count": int, "Number": float, "Flag": bool}


def checked(value: Any, kind: str) -> Any:
    assert type(value) is PYTHON[kind], (value, kind)
    if kind in RANGES:
        assert 0 <= value < RANGES[kind], (value, kind)
    return value


class Checks(ast.NodeTransformer):
    """Puts a check around every expression with a value."""

    def __init__(self, types: dict[ast.AST, str]) -> None:
        self.types, self.number = types, 0

    def visit(self, node: ast.AST) -> ast.AST:
        kind = self.types.get(node)
        if isinstance(node, ast.Call):
            # The name of the function or the source is no value.
            node.args = [self.visit(argument) for argument in node.args]
            inside: ast.AST = node
        else:
            inside = self.generic_visit(node)
        if kind in PYTHON and isinstance(inside, ast.expr) and isinstance(getattr(inside, "ctx", ast.Load()), ast.Load):
            self.number += 1
            return ast.Call(ast.Name("checked", ast.Load()), [inside, ast.Constant(kind)], [])
        return inside


def instrumented(client: Callable[..., None]) -> tuple[Callable[..., None], int]:
    """Return a client with checks in all its functions, and their number."""
    names: dict[str, Any] = {"checked": checked, **vars(kinds)}
    number = 0
    for function in typed_program(client):
        names |= function.module_constants
        checks = Checks(function.types)
        body = [checks.visit(statement) for statement in function.body]
        number += checks.number
        exec(compile(ast.fix_missing_locations(ast.Module([definition(function, body)], [])), "instrumented", "exec"), names)  # noqa: S102
    return names[client.__name__], number


def definition(function: Function, body: list[Any]) -> ast.FunctionDef:
    source = (
        f"def {function.name}({', '.join(function.parameters)}{', *, ' if function.constants else ''}{', '.join(function.constants)}): pass"
    )
    (head,) = ast.parse(source).body
    assert isinstance(head, ast.FunctionDef)
    head.body = body
    return head


@pytest.mark.parametrize("name", deployments())
def test_operations_stay_in_their_range(name: str) -> None:
    deployment = deployments()[name]
    program: ClientProgram | None = deployment.program
    while program is not None:
        client, number = instrumented(program.client)
        assert number > 10
        for case in [case for case in cases() if case.client == name][::6]:
            key = bytes.fromhex(deployment.hash)
            public = public_words(key, case.round_number, np.array([case.index], dtype=np.uint64), program.public_words)
            own = GivenWords(np.array(case.words, dtype=np.uint64))
            sources = (own, GivenWords(public[0])) if program.public_words else (own,)
            fields = [0] * program.fields
            client(case.value if deployment.input_kind == "vector" else case.value[0], *sources, fields, **program.constants)
            assert pack_fields(np.array([fields]), program.field_bits).tobytes().hex() == case.message
        program = program.constant_time


def overflowing(item: Word, words: Source, fields: Fields) -> None:
    fields[0] = (item - 1) * 2 + words.next()


@pytest.mark.parametrize(("item", "word"), [(0, 5), (2**63 + 1, 0), (2**63, 2)])
def test_an_overflow_is_seen(item: int, word: int) -> None:
    client, _ = instrumented(overflowing)
    fields = [0]
    client(3, GivenWords(np.array([7], dtype=np.uint64)), fields)
    assert fields == [11]
    with pytest.raises(AssertionError):
        client(item, GivenWords(np.array([word], dtype=np.uint64)), fields)
