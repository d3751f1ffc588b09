"""Every command with random options, within their ranges and beyond: no traceback, no NaN, an exit code that is documented, whole files."""

import contextlib
import functools
import json
import random
import re
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.testing import CliRunner

from ..analysis.catalogue.registry import accountables
from ..cli.main import app
from ..design.contracts.registry import Option
from ..design.tables.file import write_table
from ..design.tables.randomised_response import generalised_randomised_response
from .cases import Arguments, Attack, Refused
from .parameters import draw_value, load_accounts

TABLE, DATA, ITEMS, SWEEP = "table.json", "data.csv", "items.txt", "sweep.toml"
INPUTS = (TABLE, DATA, ITEMS, SWEEP)
OUTPUTS = ("out.json", "out.csv", "out.parquet", "out.html", "out.svg", "out", "no/folder/out.json", ".", "table.json", "-")
# Commands that end with 1 where what they look at does not hold.
FINDING = ("verify", "audit")
# Commands that name every fault of many tasks, and keep what is finished: the same command goes on.
RESUMABLE = (("sweep",), ("train",), ("reproduce",), ("design", "grid"))
# Drawn rarely: they take minutes.
LONG = ("demo", "reproduce", "train")
TEXTS = {
    "adjacency": ("replace-one", "add-or-remove-one", "replace-all", ""),
    "norm": ("1", "2", "inf", "l1", "l2", "linf", "l0.5", "l", "nan", "3"),
    "metric": ("l1", "l2", "l3", "linf", "l0.5", "x"),
    "trust": ("local", "shuffled", "secure-sum", "central", "nobody"),
    "population": ("sphere", "uniform", "zipf", "x"),
    "column": ("value", "other", ""),
    "mechanism": ("hadamard-response", "unary-encoding", "cpsgd", "x"),
}
ODD = ("", "x", "None", "nan", "inf", "-inf", "-1", "0", "1e400", "1e-320", "1e308", "9" * 400, "9223372036854775808", "0.5", "1_000", "é")


@functools.cache
def _leaves() -> tuple[tuple[str, ...], ...]:
    """Return every command by its words."""
    found: list[tuple[str, ...]] = []

    def walk(words: tuple[str, ...], command: Any) -> None:
        if hasattr(command, "list_commands"):
            for name in command.list_commands(None):
                walk((*words, name), command.get_command(None, name))
        else:
            found.append(words)

    walk((), typer.main.get_command(app))
    return tuple(found)


@functools.cache
def _parameters(words: tuple[str, ...]) -> tuple[Any, ...]:
    command: Any = typer.main.get_command(app)
    for word in words:
        command = command.get_command(None, word)
    return tuple(one for one in command.params if one.name != "help")


@functools.cache
def _ranges() -> dict[str, Option]:
    return {one.name: one for owner in accountables().values() for one in (*owner.parameters, *owner.given)}


def _load() -> None:
    """Import what commands import when they are called."""
    import rich.table  # noqa: F401

    load_accounts()


def draw(rng: random.Random) -> Arguments:
    """Draw a command line."""
    groups = sorted({words[0] for words in _leaves()})
    group = rng.choice(groups)
    if group in LONG and rng.random() < 0.9:
        group = rng.choice(("account", "calibrate"))
    words = rng.choice([one for one in _leaves() if one[0] == group])
    typed = list(words)
    wild = rng.random() < 0.5
    for one in _parameters(words):
        if one.required or rng.random() < 0.3:
            if one.required and rng.random() < 0.02:
                continue
            typed += _typed(rng, one, wild=wild)
    if rng.random() < 0.02:
        typed.append(rng.choice(("--nonsense", "extra", "--", "--help")))
    return {"arguments": typed}


def _typed(rng: random.Random, one: Any, *, wild: bool) -> list[str]:
    """Return an option as it is typed."""
    if getattr(one, "is_flag", False):
        return [rng.choice([*one.opts, *one.secondary_opts])]
    values = [_value(rng, one, wild=wild) for _ in range(max(1, one.nargs))]
    return values if one.param_type_name == "argument" else [rng.choice(one.opts), *values]


def _value(rng: random.Random, one: Any, *, wild: bool) -> str:
    if wild and rng.random() < 0.15:
        return rng.choice(ODD)
    name, kind = one.name, one.type.name
    if choices := getattr(one.type, "choices", None):
        return str(rng.choice([getattr(choice, "value", choice) for choice in choices]))
    if name in ("output", "report", "plot"):
        return rng.choice(OUTPUTS if wild else OUTPUTS[:6])
    if kind in ("path", "file", "filename", "directory"):
        return rng.choice((*INPUTS, "missing")) if wild else {"data": DATA, "spec": SWEEP}.get(name, TABLE)
    if name == "workers":
        return "1"
    if (name in TEXTS and "text" in kind) or (name in TEXTS and kind == "str"):
        return rng.choice(TEXTS[name])
    if (known := _ranges().get(name)) is not None and not wild:
        return str(draw_value(rng, known))
    if "int" in kind:
        return str(rng.choice((0, 1, 2, 3, 5, 10, 100, 1000, 10**6, 10**9, 2**63, -1) if wild else (1, 2, 3, 5, 10, 100)))
    if "float" in kind:
        return repr(10 ** rng.uniform(-9, 0)) if name == "delta" else repr(10 ** (rng.uniform(-320, 308) if wild else rng.uniform(-2, 1)))
    return rng.choice(("x", "bits=8", "1", "2"))


def check(folder: Path, arguments: list[str]) -> None:
    """Run the command, and look at all that it leaves."""
    _place_inputs(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with contextlib.chdir(folder):
        result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    allowed = (0, 1, 2) if arguments[0] in FINDING else (0, 2)
    assert result.exit_code in allowed, f"exit code {result.exit_code}: {result.output[-500:]}"
    assert "Traceback" not in result.output, result.output[-2000:]
    assert not re.search(r"Warning: |\.py:\d+", result.stderr), result.stderr[-1000:]
    assert not list(folder.rglob("*.part")), "something half-written was left"
    assert all(path.read_bytes() == content for path, content in before.items()), "an input was overwritten"
    written = [path for path in folder.rglob("*") if path.is_file() and path not in before]
    for path in written:
        # A table may be exported to any name.
        if path.suffix == ".json" and arguments[0] != "export":
            json.loads(path.read_bytes(), parse_constant=_refuse)
    if result.exit_code == 2:
        complaint = [line for line in result.stderr.splitlines() if not re.match(r"quietbits: \d+ s: ", line)]
        assert len(complaint) >= 1, "refused without a reason"
        if not any(arguments[: len(words)] == list(words) for words in RESUMABLE):
            assert len(complaint) == 1, f"{len(complaint)} lines: {result.stderr[-500:]}"
            # A plan without a mechanism is written with the reasons.
            assert not written or arguments[0] == "plan", f"refused, and yet wrote {written}"
        raise Refused
    if "--json" in arguments and "--help" not in arguments:
        for line in result.stdout.splitlines():
            json.loads(line, parse_constant=_refuse)
    assert not re.search(r"\bnan\b", result.stdout), result.stdout[-1000:]


def _place_inputs(folder: Path) -> None:
    write_table(generalised_randomised_response(1.0, 2), folder / TABLE)
    (folder / DATA).write_text("value\n0.1\n0.5\n0.9\n", encoding="utf-8")
    (folder / ITEMS).write_text("a\nb\na\n", encoding="utf-8")
    document = "clients = 5\ndimension = 2\nepsilon = 1\ndelta = 1e-5\nadjacency = 'replace-one'\nrepetitions = 1\n"
    (folder / SWEEP).write_text(document + "population = 'sphere'\n[[mechanism]]\nname = 'laplace'\n", encoding="utf-8")


def _refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


ATTACK = Attack("commands", draw, check, share=3.0, prepare=_load)
