"""Mutants: copies of a module's source, each with a small fault that tests should notice."""

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

KINDS = ("terms", "roundings", "checks", "comparisons", "operators", "constants", "limits")
"""Dropped terms and factors; safe sides; dropped checks and calls; logic; operators; numbers; ranges."""

SLACK = "1e-9"
SWAPPED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult}
NEGATED = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
# Functions that choose a side, with their opposites; "" stands for the argument itself.
SIDES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "ceil": "floor",
    "floor": "ceil",
    "nextafter": "",
    "abs": "",
    "fabs": "",
    "round_up": "",
    "round_down": "",
}
# Names of module constants that bound arguments begin with these prefixes.
LIMIT_NAMES = ("LEAST_", "LARGEST_", "SMALLEST_", "MOST_", "FEWEST_")
# Numbers of these keywords choose a layout or an argument's range.
LAYOUT = {"axis", "strict", "low", "high", "dtype", "default", "ndmin", "initial"}


@dataclass(frozen=True)
class Mutant:
    """A fault of a module's source.

    Attributes
    ----------
    module : str
        Path of the module below the root, as ``solvers/divergences/skellam_divergence.py``.
    function : str
        Qualified name of the function with the fault; empty for code that runs when the module is imported.
    line, first, last : int
        Line of the fault, and the lines of its statement; of a compound statement only the head.
    before, after : str
        The source of the expression or statement, and its replacement.
    kind : str
        Kind of the mutant, in `KINDS`.
    statement : str
        The line of source, without its indentation.
    start, end : int
        Bytes of the module that the fault replaces.
    copy : int
        Number of equal faults before this one in the same function.
    """

    module: str
    function: str
    line: int
    first: int
    last: int
    before: str
    after: str
    kind: str
    statement: str
    start: int
    end: int
    copy: int = 0

    @property
    def key(self) -> str:
        """Name that stays the same while the function's text stays the same."""
        return f"{self.module}:{self.function}: {self.statement} | {self.before} -> {self.after} #{self.copy}"

    @property
    def name(self) -> tuple[str, ...]:
        """Place and text of the fault, as in `accepted_mutants.toml`."""
        return self.module, self.function, self.statement, self.before, self.after

    def applied_to(self, source: str) -> str:
        """Return the module's source with the fault."""
        content = source.encode()
        return (content[: self.start] + self.after.encode() + content[self.end :]).decode()


def mutants_of(module: str, source: str) -> tuple[Mutant, ...]:
    r"""Return every mutant of a module, in the order of its lines.

    Examples
    --------
    >>> [(mutant.before, mutant.after) for mutant in mutants_of("m.py", "def f(x):\n    return 6 * x\n")]
    [('6 * x', '(6)'), ('6 * x', '(x)'), ('6 * x', '(6 / x)'), ('6', '(5)'), ('6', '(7)')]
    """
    made: list[Mutant] = []
    copies: Counter[tuple[str, ...]] = Counter()
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    content = source.encode()
    for function, place, node, kind, after in _faults(ast.parse(source)):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        before = content[start:end].decode()
        statement = lines[node.lineno - 1].decode().strip()
        text = after if isinstance(node, ast.stmt) else f"({after})"
        name = (function, statement, before, text)
        made.append(Mutant(module, function, node.lineno, *_lines(place), before, text, kind, statement, start, end, copies[name]))
        copies[name] += 1
    return tuple(sorted(made, key=lambda mutant: mutant.line))


def _lines(statement: ast.stmt) -> tuple[int, int]:
    """Return the first and the last line of a statement, without the statements inside it."""
    inside: list[ast.stmt] = getattr(statement, "body", [])
    last = inside[0].lineno - 1 if inside else statement.end_lineno or statement.lineno
    return statement.lineno, max(statement.lineno, last)


_Fault = tuple[str, ast.stmt, ast.expr | ast.stmt, str, str]


def _faults(tree: ast.Module) -> Iterator[_Fault]:
    """Yield function, statement, node, kind and replacement of every fault."""

    def walk(node: ast.AST, function: str, limit: bool, place: ast.stmt) -> Iterator[_Fault]:
        if isinstance(node, ast.stmt):
            place = node
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".lstrip(".")
            children: list[ast.AST | None] = [*node.body]
            # Defaults and fields are evaluated when the module is imported, before any test: they count as constants of the module.
            imported: list[ast.AST]
            if isinstance(node, ast.FunctionDef):
                imported = [default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None]
            else:
                imported = [part for part in node.body if not isinstance(part, ast.FunctionDef | ast.ClassDef)]
                children = [part for part in node.body if part not in imported]
            for part in imported:
                yield from walk(part, "", limit, place)
        elif isinstance(node, ast.AnnAssign):
            children = [node.value] if node.value is not None else []
        elif isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert) or _is_text(node):
            return
        else:
            children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Assign) and not function and _is_limit(node.targets[0]):
            limit = True
        if isinstance(node, ast.Tuple | ast.Slice | ast.Subscript) and isinstance(getattr(node, "ctx", ast.Load()), ast.Store):
            return
        if isinstance(node, ast.keyword) and node.arg in LAYOUT:
            if node.arg in {"axis", "dtype", "strict"}:
                return
            limit = True
        for kind, after in _changes(node):
            assert isinstance(node, ast.expr | ast.stmt)
            yield function, place, node, "limits" if limit else kind, after
        if isinstance(node, ast.Subscript):
            # Indices choose a value and bound nothing.
            children = [node.value, *(part for part in ast.walk(node.slice) if isinstance(part, ast.BinOp))]
        for child in children:
            if child is not None:
                yield from walk(child, function, limit, place)

    for statement in tree.body:
        yield from walk(statement, "", False, statement)


def _is_text(node: ast.AST) -> bool:
    """Return whether the node is a docstring or another text."""
    value = node.value if isinstance(node, ast.Expr) else node
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _is_limit(target: ast.expr) -> bool:
    first = target.elts[0] if isinstance(target, ast.Tuple) else target
    return isinstance(first, ast.Name) and first.id.startswith(LIMIT_NAMES)


def _changes(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield kind and text of every possible replacement of a node."""
    change = _CHANGES.get(type(node))
    if change is not None:
        yield from change(node)


def _of_operation(node: ast.BinOp) -> Iterator[tuple[str, str]]:
    left, right = ast.unparse(node.left), ast.unparse(node.right)
    if isinstance(node.op, ast.BitOr) or _is_text(node.left) or _is_text(node.right):
        return
    yield "terms", left
    if isinstance(node.op, ast.Add | ast.Mult):
        yield "terms", right
    other = SWAPPED.get(type(node.op))
    if other is not None:
        yield "operators", ast.unparse(ast.BinOp(node.left, other(), node.right))


def _of_constant(node: ast.Constant) -> Iterator[tuple[str, str]]:
    value = node.value
    if isinstance(value, bool):
        yield "comparisons", str(not value)
    elif isinstance(value, int):
        yield from (("constants", str(value - 1)), ("constants", str(value + 1)))
    elif isinstance(value, float):
        yield from (("constants", other) for other in ((f"{value!r} / 2", f"{value!r} * 2") if value else ("1.0",)))


def _of_comparison(node: ast.Compare) -> Iterator[tuple[str, str]]:
    for index, operator in enumerate(node.ops):
        others = [*node.ops]
        others[index] = NEGATED[type(operator)]()
        yield "comparisons", ast.unparse(ast.Compare(node.left, others, node.comparators))


def _of_logic(node: ast.BoolOp) -> Iterator[tuple[str, str]]:
    for index in range(len(node.values)):
        rest = [value for number, value in enumerate(node.values) if number != index]
        yield "comparisons", ast.unparse(ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0])


def _of_unary(node: ast.UnaryOp) -> Iterator[tuple[str, str]]:
    if isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield "terms" if isinstance(node.op, ast.USub) else "comparisons", ast.unparse(node.operand)


def _of_call(node: ast.Call) -> Iterator[tuple[str, str]]:
    name = _called(node)
    if name in SIDES and node.args:
        if not SIDES[name] or name in {"ceil", "floor"}:
            yield "roundings", ast.unparse(node.args[0])
        if SIDES[name]:
            function = ast.unparse(node.func)
            side = function[: len(function) - len(name)] + SIDES[name]
            yield "roundings", side + ast.unparse(node)[len(function) :]
    if name.startswith("check_") and len(node.args) > 1:
        yield "limits", ast.unparse(node.args[1])
    elif name.startswith("check_") and node.args:
        yield "limits", ast.unparse(node.args[0])


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""


def _of_choice(node: ast.IfExp) -> Iterator[tuple[str, str]]:
    yield from (("comparisons", ast.unparse(part)) for part in (node.body, node.orelse))


def _of_statement(node: ast.Expr) -> Iterator[tuple[str, str]]:
    if isinstance(node.value, ast.Call):
        yield "limits" if _called(node.value).startswith("check_") else "checks", "pass"


def _of_change(node: ast.AugAssign) -> Iterator[tuple[str, str]]:
    yield "terms", "pass"
    other = SWAPPED.get(type(node.op))
    if other is not None:
        yield "operators", ast.unparse(ast.AugAssign(node.target, other(), node.value))


def _of_condition(node: ast.If) -> Iterator[tuple[str, str]]:
    """Drop refusals, and weaken comparisons that refuse by a little."""
    if not any(isinstance(part, ast.Raise) for part in node.body) or node.orelse:
        return
    yield "checks", "pass"
    if isinstance(node.test, ast.Compare) and len(node.test.ops) == 1 and isinstance(node.test.ops[0], ast.Gt | ast.GtE):
        bound = ast.BinOp(node.test.comparators[0], ast.Mult(), ast.Name(f"(1 + {SLACK})"))
        loose = ast.unparse(ast.Compare(node.test.left, node.test.ops, [bound]))
        body = ast.unparse(ast.Module(node.body, [])).replace("\n", "; ")
        yield "checks", f"if {loose}: {body}"


_CHANGES: dict[type[ast.AST], Callable[..., Iterator[tuple[str, str]]]] = {
    ast.BinOp: _of_operation,
    ast.Constant: _of_constant,
    ast.Compare: _of_comparison,
    ast.BoolOp: _of_logic,
    ast.UnaryOp: _of_unary,
    ast.Call: _of_call,
    ast.IfExp: _of_choice,
    ast.Expr: _of_statement,
    ast.AugAssign: _of_change,
    ast.If: _of_condition,
}
