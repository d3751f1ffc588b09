"""`quietbits plan` on the command line.

Points under test: results equal the call's, commands run, pages are self-contained, and errors have one line.
"""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import Result

import quietbits

Answer = Callable[..., dict[str, Any]]
Run = Callable[..., Result]

ITEMS = ["plan", "--clients", 500, "--categories", 20, "--epsilon", 1, "--adjacency", "replace-one", "--workers", 1]
# Least set of keys of each mechanism's JSON.
KEYS = {
    *("name", "trust_model", "feasible", "reason", "predicted_error", "bits_per_client", "bits_per_coordinate", "epsilon", "delta"),
    *(
        "adjacency",
        "ratio_to_bound",
        "ratio_to_central",
        "command",
        "design_command",
        "deploy_command",
        "recommended",
        "on_frontier",
        "relative_error",
    ),
}


@pytest.fixture(scope="module")
def answered(answer: Answer) -> dict[str, Any]:
    return answer(*ITEMS)


def test_the_answer_is_that_of_the_call(answered: dict[str, Any]) -> None:
    plan = quietbits.plan_task(quietbits.Task(quietbits.Categories(20), 500, 1.0, 0.0, "replace-one"))
    assert [item["name"] for item in answered["mechanisms"]] == [mechanism.name for mechanism in plan.mechanisms]
    assert [item["predicted_error"] for item in answered["mechanisms"]] == [mechanism.predicted_error for mechanism in plan.mechanisms]
    for entry in answered["mechanisms"]:
        assert entry.keys() >= KEYS
    assert [item["name"] for item in answered["references"]] == ["answer-zero", "central-discrete-laplace", "central-gaussian"]


def test_commands_run_and_simulate_what_was_predicted(answered: dict[str, Any], answer: Answer) -> None:
    feasible = [item for item in answered["mechanisms"] if item["feasible"]]
    assert len(feasible) >= 5
    for entry in feasible:
        simulated = answer(*shlex.split(entry["command"])[1:])
        assert simulated["mechanism"] == entry["name"]
        assert simulated["predicted_squared_error"] == pytest.approx(entry["predicted_error"], rel=0.02)
        assert simulated["bits_per_client"] == entry["bits_per_client"]
        assert (simulated["epsilon"], simulated["delta"]) == (entry["epsilon"], entry["delta"])
        designed = answer(*shlex.split(entry["design_command"])[1:])
        assert designed["bits_per_client"] == entry["bits_per_client"]
        assert designed["epsilon"] == pytest.approx(entry["epsilon"], rel=1e-9)


def test_deploy_commands_write_the_planned_mechanism(answered: dict[str, Any], answer: Answer) -> None:
    rows = [entry for entry in answered["mechanisms"] if entry["feasible"] and entry["deploy_command"] is not None]
    assert rows
    for entry in rows:
        assert not entry["on_real_numbers"]
        deployed = answer(*shlex.split(entry["deploy_command"])[1:])
        assert deployed["mechanism"] == entry["name"]
        assert float(deployed["bits_per_client"]) == entry["bits_per_client"]
        assert float(deployed["guarantee_per_message"]["epsilon"]) <= entry["epsilon"] * (1 + 1e-9)


def test_each_trust_model_has_one_recommendation(answered: dict[str, Any]) -> None:
    rows = {item["trust_model"]: item for item in answered["mechanisms"] if item["recommended"]}
    assert {model: item["name"] for model, item in rows.items()} == answered["recommended"]
    assert all(item["feasible"] and not item["on_real_numbers"] for item in rows.values())
    assert [item["mechanism"] for item in answered["advice"] if item["mechanism"]] == list(answered["recommended"].values())


def test_vectors_and_numbers_have_commands_that_run(answer: Answer) -> None:
    vectors = ["--dimension", 5, "--clip", 2.5, "--delta", 1e-5, "--rounds", 2, "--bits", 16, "--trust", "secure-sum", "--norm", "l2"]
    for given in (vectors, ["--interval", -2, 3, "--bits", 1, "--trust", "local"]):
        plan = answer("plan", "--clients", 12, "--epsilon", 2, "--adjacency", "replace-one", "--workers", 1, *given)
        feasible = [item for item in plan["mechanisms"] if item["feasible"]]
        assert len(feasible) >= 3
        for entry in feasible:
            simulated = answer(*shlex.split(entry["command"])[1:])
            assert simulated["on_real_numbers"] == entry["on_real_numbers"]
            assert simulated["bits_per_client"] == entry["bits_per_client"]
            assert simulated["predicted_squared_error"] == pytest.approx(entry["predicted_error"], rel=0.3)
            designed = answer(*shlex.split(entry["design_command"])[1:])
            assert designed["bits_per_client"] == entry["bits_per_client"]
            assert designed["epsilon"] == pytest.approx(entry["epsilon"], rel=1e-9)


def test_files_of_every_kind_are_written(run: Run, folder: Path) -> None:
    for kind in ("csv", "parquet", "json", "html"):
        result = run(*ITEMS, "--trust", "local", "--output", f"plan.{kind}")
        assert result.exit_code == 0, result.output
    frame = pd.read_csv(folder / "plan.csv")
    pd.testing.assert_series_equal(frame["predicted_error"], pd.read_parquet(folder / "plan.parquet")["predicted_error"])
    assert len(json.loads((folder / "plan.json").read_text())["mechanisms"]) == len(frame)
    page = (folder / "plan.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "http-equiv" not in page
    for item in frame.to_dict("records"):
        assert item["name"] in page


def test_what_people_read_has_a_table_for_each_trust_model(run: Run) -> None:
    result = run(*ITEMS, "--clients", 50, "--delta", 1e-5, "--check")
    assert result.exit_code == 0, result.output
    first = result.stdout.index("local: ")
    assert result.stdout.index("secure-sum: ") < result.stdout.index("Trust model: local")
    assert first < result.stdout.index("$ quietbits calibrate ") < result.stdout.index("$ quietbits simulate ")
    for text in ("Trust model: local", "Trust model: secure-sum", "References", "Clients needed", "--all shows", "off by", " *"):
        assert text in result.stdout
    every = run(*ITEMS, "--all").stdout
    assert "Cannot serve" in every
    assert "No shorter and no better" not in every


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--epsilon", 0], "epsilon must be a number from 1e-05 to 10000, got 0"),
        (["--delta", 1], "delta must be a number from 0 to below 1, got 1"),
        (["--bits", 0], "bits must be a number from 1e-09 to 1e+06, got 0"),
        (["--trust", "me"], "trust must be one of local, shuffled, secure-sum, central, got 'me'"),
        (["--dimension", 3], "dimension must be left out where clients hold one of 20 items, got 3"),
        (["--interval", 0, 9], "interval must be left out where clients hold one of 20 items, got 0 9"),
        (["--output", "plan.txt"], "output must end in .csv, .parquet, .html or .json, got 'plan.txt'"),
        (["--option", "bitz=3"], "option must be one of"),
    ],
)
def test_bad_questions_say_what_is_needed(fault: Callable[..., str], given: list[Any], message: str) -> None:
    assert fault(*ITEMS, *given).startswith(message)


def test_a_number_of_bits_that_several_mechanisms_share_is_whole_where_it_is_typed_so(answer: Callable[..., Any]) -> None:
    task = ["plan", "--clients", 100, "--epsilon", 4, "--adjacency", "replace-one", "--dimension", 20, "--trust", "local"]
    result = {item["name"]: item for item in answer(*task, "--option", "message_bits=3")["mechanisms"]}
    assert [result[name]["bits_per_client"] for name in ("sqkr", "rotating-simplex", "minimal-random-coding")] == [3, 3, 3]


def test_no_dimension_and_a_norm_that_is_none_are_refused(fault: Callable[..., str]) -> None:
    task = ["plan", "--clients", 10, "--epsilon", 1, "--adjacency", "replace-one"]
    assert fault(*task, "--dimension", 0).startswith("dimension must be a whole number from 1")
    assert fault(*task, "--dimension", 3, "--norm", "big").startswith("norm must be a number of at least 1, or inf")


def test_no_number_loses_its_end(run: Run) -> None:
    # The task has the longest names and all columns.
    budget = ["--epsilon", 1.22, "--delta", 1e-3, "--adjacency", "replace-one", "--rounds", 4, "--workers", 1]
    output = run("plan", "--clients", 427, "--categories", 9, *budget, "--trust", "secure-sum", "--message-bits", 105.3)
    rows = [line for line in output.stdout.splitlines() if re.match(r"  sketched-[\w-]+ ", line)]
    assert len(rows) == 3
    assert not any("…" in row for row in rows), rows
