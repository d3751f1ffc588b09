"""`quietbits account compose` on the command line.

Points under test: the form of other accounts, each part's line, outputs, the example, and one-line errors.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import quietbits

Run = Callable[..., Result]
Answer = Callable[..., dict[str, Any]]
TASKS = """
[[part]]
name = "laplace"
epsilon = 0.1
rounds = 10

[[part]]
name = "gaussian"
noise_multiplier = 1.0
trust_model = "central"
sampling_probability = 0.01
rounds = 5

[[part]]
name = "laplace"
epsilon = 0.1
rounds = 2
"""


@pytest.fixture
def tasks(folder: Path) -> Path:
    (folder / "tasks.toml").write_text(TASKS, encoding="utf-8")
    return folder / "tasks.toml"


@pytest.mark.usefixtures("tasks")
def test_the_answer_is_the_call(answer: Answer) -> None:
    result = answer("account", "compose", "tasks.toml", "--delta", "1e-6")
    report = quietbits.account_composition(quietbits.load_composition("tasks.toml"), delta=1e-6)
    assert result == report.document()
    assert result.keys() >= answer("account", "laplace", "--epsilon", "0.1").keys() - {"epsilon_per_round", "on_real_numbers"}
    assert set(result["accounts"]) == {"pure", "basic", "rdp", "pld"}
    assert (result["rounds"], result["adjacency"], result["trust_model"]) == (17, "replace-one", "central")
    assert result["epsilon"] == result["accounts"][result["method"]]["epsilon"]


def test_the_accounts_of_the_parts_and_of_all_parts_are_steps(tasks: Path) -> None:
    steps: list[tuple[int, int, str]] = []
    quietbits.account_composition(quietbits.load_composition(tasks), delta=1e-6, on_step=lambda *step: steps.append(step))
    reached = [done for done, _, _ in steps]
    assert reached == sorted(reached)
    assert {total for _, total, _ in steps} == {reached[-1]}
    texts = [text for *_, text in steps]
    assert {"account pure of part 1", "account pld of all parts", "accounts of each part"} <= {*texts}
    assert texts[-1] == "done"


def test_a_table_for_people_and_files(run: Run, tasks: Path) -> None:
    result = run("account", "compose", tasks, "--delta", "1e-6", "--output", "account.json", "--plot", "account.svg")
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.replace("│", " ").split())
    assert "1 laplace 10 0.998979 by pld replace-one local" in words
    assert "add-or-remove-one adjacency, counted for replace-one adjacency at twice the distance" in words
    assert "all 17 rounds together, by pld" in words
    document = json.loads((tasks.parent / "account.json").read_text())
    assert document == quietbits.account_composition(quietbits.load_composition(tasks), delta=1e-6).document()
    assert "<svg" in (tasks.parent / "account.svg").read_text()


def test_the_example_works(run: Run, folder: Path) -> None:
    (folder / "example.toml").write_text(run("account", "compose", "--example").stdout, encoding="utf-8")
    assert json.loads(run("account", "compose", "example.toml", "--delta", "1e-6", "--json").stdout)["epsilon"] > 0


@pytest.mark.usefixtures("tasks")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tasks.toml"], "delta must be given for parts without a pure guarantee"),
        (["tasks.toml", "--delta", "2"], "delta must be"),
        (["tasks.toml", "--plot", "a.svg"], "delta must be given for a plot of epsilon"),
        (["tasks.toml", "--delta", "1e-6", "--plot", "a.txt"], "plot must be a file that ends in"),
        (["tasks.toml", "--delta", "1e-6", "--output", "tasks.toml"], "tasks.toml, which it would overwrite"),
        (["tasks.toml", "--delta", "1e-6", "--adjacency", "add-or-remove-one"], "part 1, laplace: adjacency must be one of replace-one"),
        (["missing.toml"], "missing.toml: No such file"),
        ([], "quietbits account compose --example prints one"),
        (["wrong.toml"], "wrong.toml: [[part]] number 1: epsilon must be a number from"),
    ],
)
def test_errors_take_one_line(run: Run, folder: Path, arguments: list[str], message: str) -> None:
    (folder / "wrong.toml").write_text(TASKS.replace("0.1", "-1", 1), encoding="utf-8")
    result = run("account", "compose", *arguments)
    assert result.exit_code == 2
    lines = [line for line in result.stderr.splitlines() if "accounting for" not in line]
    assert len(lines) == 1
    assert message in lines[0]
    assert (folder / "tasks.toml").read_text(encoding="utf-8") == TASKS


def test_the_group_lists_it_and_suggests_it(run: Run) -> None:
    assert "compose" in run("account", "--help").stdout
    assert "did you mean compose" in run("account", "compos").stderr
    assert "compose" not in run("calibrate", "--help").stdout
