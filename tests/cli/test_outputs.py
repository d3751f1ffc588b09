"""Output of every command.

Points under test: names are plain text on every stream, files come before the screen, and refusals before computations.
"""

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner, Result

import quietbits.cli.main
from quietbits.analysis.deployed_clients.encode_data import encode_inputs
from quietbits.cli import console
from quietbits.cli.commands import complain
from quietbits.design.deployment.deployment import Deployment
from quietbits.design.deployment.folder import write_deployment
from quietbits.design.deployment.message_files import write_messages
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.table_mean import TableMeanMechanism
from quietbits.files import check_output
from quietbits.shown import printable

Run, Fault = Callable[..., Result], Callable[..., str]
HOSTILE = {
    "closing tag": "dose [/mg]",
    "tag": "weight [kg]",
    "link": "[link=file:///etc/passwd]x",
    "emoji code": "a :smile: b",
    "colour": "a\x1b[31mred\x1b[0m",
    "title of the window": "\x1b]0;owned\x07b",
    "line": "a\rWARNING: b\nc\td",
    "mathematics": "$x_{ $",
    "right to left": "\u202eabc\u200f\u2066d",
    "separators": "a\u2028b\u0085c\ufeffd",
}
TURNING = (0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
CONTROLS = {chr(code) for code in (*range(32), *range(127, 160), 0x2028, 0x2029, 0xFEFF, *TURNING)}
SWEEP = """
clients = 10
dimension = 2
norm = 2
population = "sphere"
epsilon = 1
delta = 0
adjacency = "replace-one"
mechanism = [{ name = "laplace" }]
"""
TRAINING = """
clients = 100
clients_per_round = 50
rounds = 1
delta = 1e-5
adjacency = "replace-one"

[[mechanism]]
name = "sign-gaussian"
noise_multiplier = 0.5
"""
BUDGET = "--epsilon 2 --bits-in 2 --bits-out 1"
# Every command that takes an output's name, with its option and its computing function.
WRITING = {
    "account": ("account gaussian --noise-multiplier 2 --delta 1e-5 --output {}", "quietbits.analysis.catalogue.accounts.account"),
    "account, plot": ("account gaussian --noise-multiplier 2 --delta 1e-5 --plot {}.svg", "quietbits.analysis.catalogue.accounts.account"),
    "audit": ("audit laplace --epsilon 1 --repetitions 1000 --output {}", "quietbits.analysis.audits.mechanism_audit.audit"),
    "audit, table": ("audit table table.json --output {}", "quietbits.design.tables.file.read_table"),
    "calibrate": ("calibrate gaussian --epsilon 1 --delta 1e-5 --output {}", "quietbits.analysis.catalogue.accounts.calibrate"),
    "certify": ("certify table.json --output {}", "quietbits.design.tables.letter_certification.certify_letters"),
    "demo": ("demo --bits-in 2 --bits-out 1 --output {}", "quietbits.analysis.study.mean_study.study_mean"),
    "design grid": ("design grid grid.toml --output {}", "quietbits.analysis.sweeps.run._run_pending"),
    "design mvu": (f"design mvu {BUDGET} --output {{}}", "quietbits.design.tables.mvu.design_mvu"),
    "estimate frequencies": (
        "estimate frequencies --data items.txt --mechanism unary-encoding --output {}",
        "quietbits.analysis.study.frequency_study.study_frequencies",
    ),
    "estimate frequencies, report": (
        "estimate frequencies --data items.txt --mechanism unary-encoding --report {}",
        "quietbits.analysis.study.frequency_study.study_frequencies",
    ),
    "estimate mean": (
        f"estimate mean --data people.csv --interval 0 100 {BUDGET} --column age --output {{}}",
        "quietbits.analysis.study.mean_study.study_mean",
    ),
    "estimate mean, report": (
        f"estimate mean --data people.csv --interval 0 100 {BUDGET} --column age --report {{}}",
        "quietbits.analysis.study.mean_study.study_mean",
    ),
    "deploy": ("deploy table.json --output {}", "quietbits.analysis.deployed_clients.deploy.deploy_table"),
    "encode": (
        "encode deployed --data people.csv --column age --output {}",
        "quietbits.analysis.deployed_clients.encode_data.read_inputs",
    ),
    "decode": ("decode deployed messages.qbm --output {}", "quietbits.analysis.deployed_clients.decode_messages.decode_messages"),
    "decode, report": (
        "decode deployed messages.qbm --report {}.html",
        "quietbits.analysis.deployed_clients.decode_messages.decode_messages",
    ),
    "explore": ("explore tables --output {}", "quietbits.figures.explorer.explorer_page.write_explorer"),
    "export": ("export table.json --format npz --output {}", "quietbits.design.tables.export.export_table"),
    "plan": (
        "plan --clients 100 --dimension 2 --epsilon 1 --adjacency replace-one --trust local --output {}.csv",
        "quietbits.analysis.planner.plan.plan_task",
    ),
    "reproduce": ("reproduce dprec-communication --quick --output {}", "quietbits.analysis.sweeps.engine.SweepRun.run"),
    "simulate": ("simulate laplace --clients 5 --epsilon 1 --output {}", "quietbits.analysis.simulation.repeated_means.repeat_mean"),
    "sweep": ("sweep sweep.toml --output {}", "quietbits.analysis.sweeps.engine.SweepRun.run"),
    "train": ("train training.toml --output {}", "quietbits.analysis.sweeps.engine.SweepRun.run"),
}


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a deployment and a file of its messages."""
    place = tmp_path_factory.mktemp("deployed")
    table = generalised_randomised_response(2.0, 1, interval=(0.0, 100.0))
    deployment = Deployment(TableMeanMechanism(table), table.mechanism, name="age")
    write_deployment(deployment, place / "deployed", ["c"])
    write_messages(deployment, place / "messages.qbm", encode_inputs(deployment, np.arange(20.0, 60.0)))
    return place


@pytest.fixture(autouse=True)
def inputs(folder: Path, run: Run, deployed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(deployed, folder, dirs_exist_ok=True)
    (folder / "people.csv").write_text("age\n" + "".join(f"{age}\n" for age in range(20, 60)))
    (folder / "items.txt").write_text("a\nb\na\n")
    (folder / "sweep.toml").write_text(SWEEP)
    (folder / "training.toml").write_text(TRAINING)
    (folder / "grid.toml").write_text("[grid]\nepsilon = 1\nbits_in = 1\nbits_out = 1\n")
    (folder / "tables").mkdir()
    for path in (folder / "table.json", folder / "tables" / "table.json"):
        path.write_bytes(table_bytes(run, folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))


def table_bytes(run: Run, folder: Path, made: dict[str, bytes] = {}) -> bytes:  # noqa: B006 - kept on purpose: it is made once
    if not made:
        assert run("design", "mvu", *BUDGET.split(), "--output", folder / "made.json").exit_code == 0
        made["table"] = (folder / "made.json").read_bytes()
        (folder / "made.json").unlink()
    return made["table"]


# Tests of names


def named(name: str) -> dict[str, str]:
    """Return commands that print a name from the user's data, each with the expected text."""
    file = name.replace("/", "_")
    pq.write_table(pa.table({name: [1.0, 2.0]}), f"{file}.parquet")
    Path(f"{file}.json").write_bytes(Path("table.json").read_bytes())
    data, table, column = shlex.quote(f"{file}.parquet"), shlex.quote(f"{file}.json"), shlex.quote(name)
    return {
        f"estimate mean --data {data} --column {column} --interval 0 5 {BUDGET}": f"Mean of {name}: ",
        f"verify {table}": f"{file}.json: verified",
        f"audit table {table} --repetitions 1000": f"Audit of {file}.json",
    }


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_names_are_printed_as_text_and_control_nothing(name: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    # A name could spoil colours and bars on a terminal; the terminal is wide, so that no name is broken.
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(console, "_terminal", lambda: False)
    for command, shown in named(name).items():
        result = run(*shlex.split(command))
        assert result.exit_code == 0, result.output
        plain = without_styles(result.stdout)
        assert printable(shown) in plain, command
        assert CONTROLS & set(plain) <= {"\n"}


def test_items_and_faults_are_text_too(run: Run, fault: Fault, folder: Path) -> None:
    # Items with control and format characters are refused.
    names = [name for name in HOSTILE.values() if not {unicodedata.category(letter) for letter in name} & {"Cc", "Cf", "Zl"}]
    (folder / "items.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    result = run("estimate", "frequencies", "--data", "items.txt", "--mechanism", "unary-encoding", "--report", "r.html")
    assert result.exit_code == 0, result.output
    for name in names:
        assert printable(name) in result.stdout
        assert name not in (folder / "r.html").read_text(encoding="utf-8") or name == printable(name)
    assert CONTROLS & set(result.output) <= {"\n"}
    (folder / "refused.txt").write_text(HOSTILE["colour"] + "\n", encoding="utf-8")
    refused = fault("estimate", "frequencies", "--data", "refused.txt", "--mechanism", "unary-encoding")
    assert printable(HOSTILE["colour"]) in refused
    for name in HOSTILE.values():
        missing = fault("estimate", "mean", "--data", "people.csv", "--column", name, "--interval", 0, 5, "--epsilon", 1)
        assert CONTROLS & set(missing) == set()
        assert CONTROLS & set(fault("verify", f"{name.replace('/', '_')}.absent")) == set()


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("terminal", ["", "1"], ids=["pipe", "terminal"])
def test_every_way_to_print_takes_text(
    name: str, terminal: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.table import Table

    monkeypatch.setenv("FORCE_COLOR", terminal)
    monkeypatch.setenv("COLUMNS", "200")

    def in_a_table() -> None:
        table = Table(title=name, caption=name)
        table.add_column(name)
        table.add_row(name)
        console.console().print(table)

    def with_progress() -> None:
        with console.progress_bar() as on_step, console.working(name) if not terminal else console.progress_bar():
            on_step(1, 1, name)

    ways: dict[str, Callable[[], None]] = {
        "console": lambda: console.console().print(name),
        "grid": lambda: console.grid(name, [(name, name)]),
        "table": in_a_table,
        "warn": lambda: console.warn(name),
        "say": lambda: console.say(name),
        "progress": with_progress,
    }
    for way, print_name in ways.items():
        print_name()
        shown = capsys.readouterr()
        plain = without_styles(shown.out + shown.err)
        assert CONTROLS & set(plain) <= {"\n"}, way
        if way != "progress":
            assert printable(name) in plain, way
    complain(name)
    assert capsys.readouterr().err == f"quietbits: {printable(' '.join(name.split()))}\n"


def without_styles(text: str) -> str:
    """Remove the sequences that style text, or move a bar's cursor, from a terminal's output."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", text)


def test_nothing_is_printed_past_the_one_console() -> None:
    ways = {"typer.echo", "print", "Console", "typer.secho", "sys.stdout.write", "sys.stderr.write"}
    result = set()
    for file in Path(console.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ways:
                result.add((file.name, ast.unparse(node.func)))
    # The example and the version have their own calls; all other output goes through the last call.
    assert result == {("options.py", "typer.echo"), ("main.py", "typer.echo"), ("commands.py", "typer.echo")}


# Tests of streams


@pytest.mark.parametrize(
    ("way", "encoding"),
    [
        # The other commands print the same kinds of text, or only ASCII without the user's data.
        *((way, "ascii") for way in WRITING if "," not in way and way not in ("demo", "reproduce")),
        ("plan", "cp932"),
        ("estimate mean", "cp932"),
    ],
)
def test_no_result_is_lost_on_a_stream_that_cannot_encode_it(way: str, encoding: str, folder: Path) -> None:
    command = typer.main.get_command(quietbits.cli.main.app)
    (folder / "people.csv").write_text((folder / "people.csv").read_text().replace("age", "âge µ 年"), encoding="utf-8")
    (folder / "items.txt").write_text("é µs\nb 年\nb 年\n", encoding="utf-8")
    typed = shlex.split(WRITING[way][0].format("output").replace("--column age", "--column 'âge µ 年'"))
    result = CliRunner.__base__(charset=encoding).invoke(command, typed)
    assert result.exit_code == 0, result.output
    result.stdout_bytes.decode(encoding)
    assert list(folder.glob("output*")) != []
    if way == "estimate mean":
        assert "âge µ 年".encode(encoding, "backslashreplace") in result.stdout_bytes
    if way == "plan":
        assert "µs".encode(encoding, "backslashreplace") in result.stdout_bytes


def test_a_process_prints_what_its_streams_can_encode(folder: Path) -> None:
    encoding = "cp932"
    (folder / "data.csv").write_text("é µ\n1\n2\n", encoding="utf-8")
    typed = ["estimate", "mean", "--data", "data.csv", "--column", "é µ", "--interval", "0", "5", *BUDGET.split()]
    command = [sys.executable, "-m", "quietbits", *typed, "--output", "r.json", "--report", "r.html"]
    result = subprocess.run(command, env=os.environ | {"PYTHONIOENCODING": encoding}, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Mean of é µ".encode(encoding, "backslashreplace") in result.stdout
    assert (folder / "r.json").stat().st_size > 0
    assert "é µ" in (folder / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("way", ["demo", "estimate mean", "estimate mean, report", "estimate frequencies, report", "train", "plan"])
def test_files_are_written_before_the_screen(way: str, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise BrokenPipeError

    from quietbits.cli.plain_console import PlainConsole

    monkeypatch.setattr(PlainConsole, "print", broken)
    result = run(*shlex.split(WRITING[way][0].format("output")))
    assert result.exit_code != 0
    written = {path.name for path in folder.glob("output*")} | {path.name for path in folder.glob("output/*")}
    assert written >= {"demo": {"report.html", "results.json", "table.json"}, "train": {"report.html"}}.get(way, set())
    assert written != set()


# Tests of outputs that cannot be written


@pytest.fixture
def no_files(folder: Path) -> Iterator[Path]:
    """Folder that takes no files: read-only, or for root a folder of the kernel."""
    closed = folder / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    for place in (closed, Path("/sys/kernel"), Path("/sys")):
        try:
            check_output(place / "file")
        except PermissionError:
            yield place
            break
    else:
        pytest.skip("root may write everywhere here")
    closed.chmod(0o755)


@pytest.mark.parametrize("way", WRITING)
def test_an_output_that_cannot_be_written_is_named_before_anything_is_computed(
    way: str, no_files: Path, folder: Path, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, computes = WRITING[way]

    def never(*_: object, **__: object) -> Any:
        raise AssertionError("nothing was to be computed")

    monkeypatch.setattr(computes, never)
    before = sorted(folder.rglob("*"))
    refused = fault(*shlex.split(command.format(no_files / "output")))
    # The error names the folder that cannot be made.
    assert refused.startswith(f"{no_files}")
    assert refused.endswith(": Permission denied")
    assert ".part" not in refused
    if way not in ("demo", "deploy", "design grid", "reproduce", "sweep", "train"):
        assert refused.startswith(f"{no_files}/output")
    assert sorted(folder.rglob("*")) == before


def test_every_option_that_names_an_output_is_among_them() -> None:
    def outputs(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        context = typer.Context(command)
        if hasattr(command, "list_commands"):
            # One subcommand stands for the whole registry, since their output options are the same.
            names = command.list_commands(context)
            for name in names if words in ((), ("design",), ("estimate",)) else names[:1]:
                yield from outputs(command.get_command(context, name), (*words, name))
            return
        for parameter in command.params:
            for option in {"--output", "--report", "--plot"} & set(parameter.opts):
                yield (" ".join(words[:1] if words[0] not in ("design", "estimate") else words), option)

    options = ("--output", "--report", "--plot")
    exact = {(way.partition(",")[0], next(option for option in options if option in command)) for way, (command, _) in WRITING.items()}
    assert set(outputs(typer.main.get_command(quietbits.cli.main.app), ())) == exact
