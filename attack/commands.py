"""Every command with random options: no traceback, no NaN, documented exit codes."""

import contextlib
import functools
import itertools
import json
import random
import re
from pathlib import Path
from typing import Any, NoReturn

import click
import typer
from typer.testing import CliRunner

from ..analysis.catalogue.accounts import account_options, calibration_options
from ..analysis.catalogue.registry import REGISTRY, accounted_names
from ..analysis.sweeps.example import example_specification
from ..cli.main import app
from ..design.contracts.domains import Categories, Interval
from ..design.contracts.norm_ball import NormBall
from ..design.contracts.registry import Option
from ..design.tables.file import write_table
from ..design.tables.randomised_response import generalised_randomised_response
from .cases import Arguments, Attack, Refused
from .parameters import draw_value, load_accounts

TABLE, DATA, ITEMS, SWEEP, TASKS = "table.json", "data.csv", "items.txt", "sweep.toml", "tasks.toml"
INPUTS = (TABLE, DATA, ITEMS, SWEEP, TASKS)
OUTPUTS = ("out.json", "out.csv", "out.parquet", "out.html", "out.svg", "out", "no/folder/out.json", ".", "table.json", "-")
# Lines that a command prints while it is at work.
AT_WORK = re.compile(r"quietbits: \d+ ((s|min \d+ s|h \d+ min)(, about [^:]* left)?|figures?(, \d+ of them drawn before)?): ")
# These commands end with 1 if their object fails their examination.
FINDING = ("verify", "audit")
# These commands name every fault of many tasks and keep finished tasks: the same command goes on.
RESUMABLE = (("sweep",), ("train",), ("reproduce",), ("design", "grid"))
# These commands take minutes, and are drawn rarely.
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
# Number of texts, counted from the first, that commands accept.
SOUND = {"adjacency": 2, "norm": 5, "metric": 2, "trust": 4}
DOMAINS = {"vectors": NormBall, "numbers": Interval, "items": Categories}
# These commands take any domain, by mutually exclusive options.
OF_DOMAINS = ("simulate", "audit", "plan")
OF_DOMAIN = {"vectors": ("dimension", "norm", "clip", "nonzero"), "numbers": ("interval",), "items": ("categories",)}
FITTING = ("delta", "dimension", "categories", "interval", "column")
NEED_OTHERS = (
    *("sampling_probability", "population", "sample_size", "option", "method", "prior_data", "most_megabytes", "objective", "dask"),
    *("symmetric", "rotation"),
)
ODD = ("", "x", "None", "nan", "inf", "-inf", "-1", "0", "1e400", "1e-320", "1e308", "9" * 400, "9223372036854775808", "0.5", "1_000", "é")


@functools.cache
def _leaves() -> tuple[tuple[str, ...], ...]:
    """Return every command by its words."""
    leaves: list[tuple[str, ...]] = []

    def walk(words: tuple[str, ...], command: Any) -> None:
        if hasattr(command, "list_commands"):
            context = click.Context(command)
            for name in command.list_commands(context):
                walk((*words, name), command.get_command(context, name))
        else:
            leaves.append(words)

    walk((), typer.main.get_command(app))
    return tuple(leaves)


@functools.cache
def _parameters(words: tuple[str, ...]) -> tuple[Any, ...]:
    command: Any = typer.main.get_command(app)
    for word in words:
        command = command.get_command(click.Context(command), word)
    return tuple(option for option in command.params if option.name != "help")


@functools.cache
def _ranges() -> dict[str, Option]:
    return {option.name: option for name in accounted_names() for option in (*account_options(name), *calibration_options(name))}


def _load() -> None:
    """Import the modules that commands import when they are called."""
    import rich.table  # noqa: F401

    load_accounts()


def draw(rng: random.Random) -> Arguments:
    """Draw a command line."""
    groups = sorted({words[0] for words in _leaves()})
    group = rng.choice(groups)
    if group in LONG and rng.random() < 0.9:
        group = rng.choice(("account", "calibrate"))
    words = rng.choice([leaf for leaf in _leaves() if leaf[0] == group])
    typed = list(words)
    wild = rng.random() < 0.25
    left_out = set() if wild else _left_out(rng, words)
    for option in _parameters(words):
        likely = 0.3 if wild else 0.95 if option.name in FITTING else 0.15
        if option.name not in left_out and (option.required or rng.random() < likely):
            if option.required and rng.random() < 0.01:
                continue
            typed += _typed(rng, words, option, wild=wild)
    if rng.random() < 0.02:
        typed.append(rng.choice(("--nonsense", "extra", "--", "--help")))
    return {"arguments": typed}


def _left_out(rng: random.Random, words: tuple[str, ...]) -> set[str]:
    """Return options that a sensible command line omits.

    The result has the options of other domains, and most options that need other options beside them.
    """
    domains = list(DOMAINS)
    if words[0] in ("simulate", "audit") and words[-1] in REGISTRY:
        domains = [name for name in DOMAINS if DOMAINS[name] in REGISTRY[words[-1]].domains]
    chosen = rng.choice(domains) if domains else ""
    others = {option for name, options in OF_DOMAIN.items() if name != chosen for option in options} if words[0] in OF_DOMAINS else set()
    return others | {option for option in NEED_OTHERS if rng.random() < 0.95}


def _typed(rng: random.Random, words: tuple[str, ...], option: Any, *, wild: bool) -> list[str]:
    """Return an option as it is typed."""
    if not wild and option.name == "interval":
        low, high = sorted((rng.uniform(-10, 10), rng.uniform(-10, 10)))
        return [option.opts[0], repr(low), repr(high)]
    if not wild and option.name == "adjacency" and words[-1] in REGISTRY:
        return [option.opts[0], rng.choice(REGISTRY[words[-1]].adjacencies)]
    if not wild and option.name == "plot":
        return [option.opts[0], rng.choice(("out.svg", "out.png", "out.pdf"))]
    if getattr(option, "is_flag", False):
        return [rng.choice([*option.opts, *option.secondary_opts])]
    values = [_value(rng, option, wild=wild) for _ in range(max(1, option.nargs))]
    return values if option.param_type_name == "argument" else [rng.choice(option.opts), *values]


def _value(rng: random.Random, option: Any, *, wild: bool) -> str:
    if wild and rng.random() < 0.15:
        return rng.choice(ODD)
    name, kind = option.name, option.type.name
    if choices := getattr(option.type, "choices", None):
        return str(rng.choice([getattr(choice, "value", choice) for choice in choices]))
    if name in ("output", "report", "plot"):
        return rng.choice(OUTPUTS if wild else OUTPUTS[:2])
    if kind in ("path", "file", "filename", "directory"):
        return rng.choice((*INPUTS, "missing")) if wild else {"data": DATA, "spec": SWEEP, "tasks": TASKS}.get(name, TABLE)
    if name == "workers":
        return "1"
    if (name in TEXTS and "text" in kind) or (name in TEXTS and kind == "str"):
        return rng.choice(TEXTS[name] if wild else TEXTS[name][: SOUND.get(name, 1)])
    if (ranged := _ranges().get(name)) is not None and not wild:
        return str(draw_value(rng, ranged))
    if "int" in kind:
        return str(rng.choice((0, 1, 2, 3, 5, 10, 100, 1000, 10**6, 10**9, 2**63, -1) if wild else (1, 2, 3, 5, 10, 100)))
    if "float" in kind:
        return repr(10 ** rng.uniform(-9, 0)) if name == "delta" else repr(10 ** (rng.uniform(-320, 308) if wild else rng.uniform(-2, 1)))
    return rng.choice(("x", "bits=8", "1", "2"))


def check(folder: Path, arguments: list[str]) -> None:
    """Run the command, and check its exit code, its output and its files."""
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
    # Only certify writes into its input, if no output is named: the same table with another certificate.
    in_place = result.exit_code == 0 and arguments[0] == "certify" and "--output" not in arguments
    kept = {path: content for path, content in before.items() if not (in_place and path.name == "table.json")}
    assert all(path.read_bytes() == content for path, content in kept.items()), "an input was overwritten"
    written = [path for path in folder.rglob("*") if path.is_file() and path not in before]
    pages = [folder / name for option, name in itertools.pairwise(arguments) if option == "--report"]
    for path in written:
        # A table may be exported under any name, and a page written.
        if path.suffix == ".json" and arguments[0] != "export" and path not in pages:
            json.loads(path.read_bytes(), parse_constant=_refuse)
    if result.exit_code == 2:
        complaint = [line for line in result.stderr.splitlines() if not AT_WORK.match(line)]
        assert len(complaint) >= 1, "refused without a reason"
        if not any(arguments[: len(words)] == list(words) for words in RESUMABLE):
            assert len(complaint) == 1, f"{len(complaint)} lines: {result.stderr[-500:]}"
            # A plan without a mechanism is written with the reasons.
            assert not written or arguments[0] == "plan", f"refused, and yet wrote {written}"
        raise Refused
    if "--json" in arguments and not {"--help", "--example"} & set(arguments):
        for line in result.stdout.splitlines():
            json.loads(line, parse_constant=_refuse)
    assert not re.search(r"\bnan\b", result.stdout), result.stdout[-1000:]


def _place_inputs(folder: Path) -> None:
    write_table(generalised_randomised_response(1.0, 2), folder / TABLE)
    (folder / DATA).write_text("value\n0.1\n0.5\n0.9\n", encoding="utf-8")
    (folder / ITEMS).write_text("a\nb\na\n", encoding="utf-8")
    document = "clients = 5\ndimension = 2\nnorm = 'l2'\nepsilon = 1\ndelta = 1e-5\nadjacency = 'replace-one'\nrepetitions = 1\n"
    (folder / SWEEP).write_text(document + "population = 'sphere'\n[[mechanism]]\nname = 'laplace'\n", encoding="utf-8")
    (folder / TASKS).write_text(example_specification("composition"), encoding="utf-8")


def _refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


ATTACK = Attack("commands", draw, check, share=3.0, prepare=_load)
