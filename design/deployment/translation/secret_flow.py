"""Flow of secrets through a client: the statements whose time, or place in memory, depends on the input or the random words.

The input and all random words are secret, and so is all that is computed from them. Public words and constants are not. The analysis
follows every assignment and call. Operations on floating-point numbers count as constant in time; some processors take longer for quotients
and for tiny numbers.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .typed_program import ELEMENTS, Function

PUBLIC_SOURCE = "public_words"


@dataclass(frozen=True)
class Leak:
    """An expression through which time tells something about a secret.

    Attributes
    ----------
    function : str
        Name of the function.
    kind : str
        ``"branch"``, ``"loop"``, ``"index"``, ``"division"`` or ``"shift"``.
    text : str
        The condition, the end of the loop, or the operation.
    """

    function: str
    kind: str
    text: str


def leaks_of(program: Sequence[Function]) -> tuple[Leak, ...]:
    """Return the leaks of a client, the last function of a program, with those of the functions that it calls.

    Leaks are branches and loops on secrets, indices of memory that are secret, and divisions of whole numbers and shifts by secrets, whose
    time depends on the numbers in some processors. A client without leaks takes every step in the same order for all inputs and words.
    """
    analysis = _Analysis({function.name: function for function in program})
    client = program[-1]
    secret = tuple(name != PUBLIC_SOURCE and kind != "Fields" for name, kind in client.parameters.items())
    analysis.called(client, secret)
    return tuple(dict.fromkeys(analysis.leaks))


class _Analysis:
    """Leaks of all functions, each analysed for every pattern of secret arguments."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self.functions = functions
        self.leaks: list[Leak] = []
        self._results: dict[tuple[str, tuple[bool, ...]], tuple[bool, tuple[bool, ...]]] = {}

    def called(self, function: Function, secret: tuple[bool, ...]) -> tuple[bool, tuple[bool, ...]]:
        """Return whether the result is secret, and which arguments hold secrets after the call."""
        key = function.name, secret
        if key not in self._results:
            flow = _Flow(self, function, {name for name, held in zip(function.parameters, secret, strict=True) if held})
            # Loops carry secrets back to their beginnings, until no further variable is secret.
            before = -1
            while before != len(flow.secret) + flow.returns:
                before = len(flow.secret) + flow.returns
                flow.run(function.body)
            self._results[key] = flow.returns, tuple(name in flow.secret for name in function.parameters)
        return self._results[key]


class _Flow:
    """Secret variables of a function; a sequence is secret if any element is."""

    def __init__(self, analysis: _Analysis, function: Function, secret: set[str]) -> None:
        self.analysis, self.function, self.secret = analysis, function, secret
        self.returns = False

    def run(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    if self.holds(value):
                        self.secret.add(name)
                case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name)) as target], value=value):
                    self.holds(target)
                    if self.holds(value):
                        self.secret.add(name)
                case ast.If(test=test, body=chosen, orelse=other):
                    self.check(test, "branch")
                    self.run(chosen)
                    self.run(other)
                case ast.While(test=test, body=repeated):
                    self.check(test, "loop")
                    self.run(repeated)
                case ast.For(iter=ast.Call(args=ends), body=repeated):
                    for end in ends:
                        self.check(end, "loop")
                    self.run(repeated)
                case ast.Return(value=ast.expr() as value):
                    self.returns |= self.holds(value)
                case ast.Expr(value=value):
                    self.holds(value)

    def check(self, node: ast.expr, kind: str, whole: ast.expr | None = None) -> bool:
        """Return whether an expression is secret, and record that its value decides about time."""
        secret = self.holds(node)
        if secret:
            self.analysis.leaks.append(Leak(self.function.name, kind, ast.unparse(whole or node)))
        return secret

    def holds(self, node: ast.expr) -> bool:
        """Return whether an expression's value depends on a secret, and record the leaks inside."""
        match node:
            case ast.Name(id=name):
                return name in self.secret
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return any([self.check(test, "branch"), self.holds(body), self.holds(orelse)])
            case ast.BoolOp(values=values):
                # All but the last operand decide whether the next is evaluated.
                return any([*(self.check(value, "branch") for value in values[:-1]), self.holds(values[-1])])
            case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod(), right=right):
                return any([self.check(left, "division", node), self.check(right, "division", node)])
            case ast.BinOp(left=left, op=ast.LShift() | ast.RShift(), right=right):
                return any([self.holds(left), self.check(right, "shift", node)])
            case ast.Subscript(value=ast.Name(id=name), slice=place):
                return any([self.check(place, "index", node), name in self.secret])
            case ast.Call(func=ast.Attribute(value=ast.Name(id=source))):
                return source in self.secret
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in self.analysis.functions:
                return self.call(self.analysis.functions[name], arguments)
        # All parts are looked at, also after a secret one.
        parts = [self.holds(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        return any(parts)

    def call(self, function: Function, arguments: Sequence[ast.expr]) -> bool:
        result, after = self.analysis.called(function, tuple([self.holds(argument) for argument in arguments]))
        for argument, held, kind in zip(arguments, after, function.parameters.values(), strict=True):
            if held and kind in ELEMENTS and isinstance(argument, ast.Name):
                self.secret.add(argument.id)
        return result
