"""The worked examples of docs/development/adding-a-mechanism.md run.

The examples make a package of two files, whose mechanism the commands and the tests can then use.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import quietbits
from quietbits.analysis.conformance.mechanism_cases import Trial
from quietbits.analysis.conformance.mechanism_suite import conformance_suite
from quietbits.cli.main import app
from quietbits.design.contracts.registry import Entry

DOCUMENT = Path(quietbits.__file__).parent / "docs" / "development" / "adding-a-mechanism.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
(PROJECT,) = (text for language, text in BLOCKS if language == "toml")
(MODULE,) = (text for language, text in BLOCKS if language == "python")
(VECTORS,) = (text for language, text in BLOCKS if language == "py" and "VectorMechanism" in text)
(SHOWN,) = (text for language, text in BLOCKS if language == "text")
COMMANDS = [line for language, text in BLOCKS if language == "sh" for line in text.splitlines()]
# Programs in the example's commands run with this environment's interpreter and the program's module.
PROGRAMS = {"quietbits": ["-m", "quietbits"], "pip": ["-m", "pip"], "python": []}
# The test has no network: pip uses the installed packages.
OFFLINE = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
SWEEP = """
population = "uniform"
clients = 1000
interval = [0, 1]
epsilon = 1
delta = 0
adjacency = "replace-one"
repetitions = 2
[[mechanism]]
name = ["coin", "cldp"]
"""


def documented_entry(module: str) -> Entry:
    """Return the entry of an example."""
    names = {"__name__": __name__}
    exec(compile(module, str(DOCUMENT), "exec"), names)  # noqa: S102
    return names["ENTRY"]


ENTRY = documented_entry(MODULE)
TestDocumented = conformance_suite(ENTRY, Trial(audited_share=0.5))
TestDocumentedVectors = conformance_suite(documented_entry(VECTORS))


@pytest.fixture
def coin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setitem(quietbits.REGISTRY, "coin", ENTRY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with the files of the package, and a sweep."""
    for name, text in {"pyproject.toml": PROJECT, "quietbits_coin.py": MODULE, "sweep.toml": SWEEP}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def typed(project: Path) -> Callable[[str], str]:
    """Return a function that runs a command in a new environment with quietbits."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project / "env"], check=True)
    python = project / "env" / "bin" / "python"
    where = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip())
    # The new environment gets the packages of this environment, including the paths of their .pth files.
    (packages / "here.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"COLUMNS": "120", "OMP_NUM_THREADS": "1"}

    def run(command: str) -> str:
        program, *arguments = shlex.split(command)
        offline = OFFLINE if program == "pip" else []
        line = [python, *PROGRAMS[program], *arguments, *offline]
        result = subprocess.run(line, cwd=project, env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    return run


def test_a_user_installs_it_and_has_it_everywhere(project: Path, typed: Callable[[str], str]) -> None:
    printed = {command: typed(command) for command in COMMANDS if not command.startswith("python")}
    assert [line.rstrip() for line in printed["quietbits mechanisms coin"].splitlines()] == SHOWN.splitlines()
    assert "coin" in printed["quietbits simulate coin,cldp --clients 1000 --epsilon 1 --adjacency replace-one"]
    typed("quietbits sweep sweep.toml --workers 2 --output results")
    rows = pd.read_parquet(project / "results" / "results.parquet")
    versions = rows["version_mechanism"].fillna("none").groupby(rows["mechanism"]).unique().map(list).to_dict()
    assert versions == {"coin": ["quietbits-coin 1.0"], "cldp": ["none"]}
    assert set(rows["version_quietbits"]) == {version("quietbits")}
    (suite,) = (command for command in COMMANDS if command.startswith("python"))
    assert " passed" in typed(f"{suite} -k 'budget or chunks' --quiet")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mechanisms coin", {}),
        ("account coin --epsilon 1 --rounds 3", {"epsilon": 3.0, "trust_model": "local", "bits_per_client": 1.0}),
        ("calibrate coin --epsilon 1 --delta 1e-5 --rounds 2", {"epsilon_per_round": 0.5, "target_epsilon": 1.0}),
        ("simulate coin --clients 1000 --epsilon 1", {"bits_per_client": 1.0, "epsilon": 1.0}),
        ("simulate coin,cldp --clients 1000 --epsilon 1 --adjacency replace-one", {}),
        ("audit coin --epsilon 1 --repetitions 10000", {"refuted": False, "claimed_epsilon": 1.0}),
    ],
)
@pytest.mark.usefixtures("coin")
def test_every_command_has_it(line: str, expected: dict[str, object]) -> None:
    result = CliRunner().invoke(app, [*line.split(), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout).items() >= expected.items()
    shown = CliRunner().invoke(app, line.split())
    assert shown.exit_code == 0
    assert "coin" in shown.stdout or "randomised response" in shown.stdout


def test_sweeps_have_it(coin: Path) -> None:
    (coin / "sweep.toml").write_text(SWEEP)
    result = CliRunner().invoke(app, ["sweep", "sweep.toml", "--output", "results"])
    assert result.exit_code == 0, result.output
    rows = pd.read_parquet(coin / "results" / "results.parquet")
    assert set(rows["mechanism"]) == {"coin", "cldp"}
