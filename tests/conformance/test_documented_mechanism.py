"""The worked example of docs/architecture.md: a class and an entry, and every command and test has the mechanism."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import quietbits
from quietbits.analysis.conformance.mechanism_suite import MechanismSuite
from quietbits.cli.main import app
from quietbits.design.contracts.registry import Entry

DOCUMENT = Path(quietbits.__file__).parent / "docs" / "architecture.md"
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


def documented_entry() -> Entry:
    """Return the entry that the example adds, and take it out of the registry again."""
    (example,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example, str(DOCUMENT), "exec"), {"__name__": __name__})  # noqa: S102
    return quietbits.REGISTRY.pop("coin")


ENTRY = documented_entry()


@pytest.fixture
def coin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setitem(quietbits.REGISTRY, "coin", ENTRY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class TestDocumented(MechanismSuite):
    entries = (ENTRY,)


@pytest.mark.parametrize(
    ("typed", "expected"),
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
def test_every_command_has_it(typed: str, expected: dict[str, object]) -> None:
    result = CliRunner().invoke(app, [*typed.split(), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout).items() >= expected.items()
    shown = CliRunner().invoke(app, typed.split())
    assert shown.exit_code == 0
    assert "coin" in shown.stdout or "randomised response" in shown.stdout


def test_sweeps_have_it(coin: Path) -> None:
    (coin / "sweep.toml").write_text(SWEEP)
    result = CliRunner().invoke(app, ["sweep", "sweep.toml", "--output", "results"])
    assert result.exit_code == 0, result.output
    rows = pd.read_parquet(coin / "results" / "results.parquet")
    assert set(rows["mechanism"]) == {"coin", "cldp"}
