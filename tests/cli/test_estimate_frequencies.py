"""`quietbits estimate frequencies` on the command line, with its report."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from quietbits.cli import console

Answer = Callable[..., dict[str, Any]]
Run = Callable[..., Result]
SPARSE = ("--mechanism", "sparse-discrete-gaussian-frequencies", "--delta", "1e-5", "--count-share", ".2")
COMMAND = ("estimate", "frequencies", "--data", "data.csv", "--column", "fruit")


@pytest.fixture(autouse=True)
def data(folder: Path) -> None:
    rows = ["pear"] * 500 + ["apple"] * 300 + ["fig"] * 200
    (folder / "data.csv").write_text("fruit\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (folder / "list.txt").write_text("apple\nfig\npear\nplum\n", encoding="utf-8")


def test_the_answer_has_what_others_rely_on(answer: Answer) -> None:
    result = answer(*COMMAND, "--mechanism", "hadamard-response", "--epsilon", "2", "--domain", "list.txt")
    assert {"items", "epsilon", "bits_per_client", "lower_bound"} <= result.keys()
    assert [item.keys() for item in result["items"]] == [{"item", "frequency", "standard_error", "true_frequency", "exceeds_noise"}] * 4
    assert result["items"][0]["item"] == "pear"
    assert result["notice"].startswith("This is an experiment, not a private release: it shows true frequencies and errors")
    assert (result["epsilon"], result["adjacency"], result["numbering"]) == (2, "replace-one", "public list")


def test_sums_of_items_are_estimated_too(answer: Answer) -> None:
    result = answer(*COMMAND, "--mechanism", "sketched-discrete-gaussian-frequencies", "--epsilon", "1", "--delta", "1e-5")
    assert (result["trust_model"], result["items"][0]["item"]) == ("secure-sum", "pear")
    assert abs(result["items"][0]["frequency"] - 0.5) < 5 * result["items"][0]["standard_error"]


def test_a_first_round_may_count_different_items(answer: Answer) -> None:
    budget = ("--epsilon", "2", "--delta", "1e-5")
    result = answer(*COMMAND, "--mechanism", "sparse-discrete-gaussian-frequencies", *budget, "--count-share", "0.25")
    assert result["count"]["epsilon"] == 0.5
    assert 1.99 < result["epsilon"] <= 2
    assert (result["items"][0]["item"], result["count"]["upper"]) == ("pear", 3)
    assert answer(*COMMAND, "--mechanism", "hadamard-response")["count"] is None


def test_exact_frequencies_have_no_epsilon_and_no_error(answer: Answer) -> None:
    result = answer(*COMMAND, "--mechanism", "exact-histogram", "--domain", "list.txt")
    assert result["epsilon"] is None
    assert [(item["item"], item["frequency"], item["standard_error"]) for item in result["items"]] == [
        *(("pear", 0.5, 0.0), ("apple", 0.3, 0.0), ("fig", 0.2, 0.0), ("plum", 0.0, 0.0)),
    ]


def test_options_of_the_mechanism_are_typed(answer: Answer) -> None:
    result = answer(*COMMAND, "--mechanism", "recursive-hadamard-response", "--option", "message_bits=1")
    assert (result["bits_per_client"], result["options"]) == (1, {"message_bits": 1})


def test_what_takes_long_says_what_it_is_at(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "FIRST_LINE", 0.0)
    shown = run(*COMMAND, "--mechanism", "hadamard-response", "--domain", "list.txt").stderr
    assert "s: reading data.csv" in shown
    assert "s: running hadamard-response on 1000 clients" in shown


def test_a_list_from_the_data_is_warned_of_and_the_report_is_written(run: Run, folder: Path) -> None:
    result = run(*COMMAND, "--mechanism", "subset-selection", "--report", "report.html", "--output", "results.json")
    assert result.exit_code == 0, result.output
    assert "WARNING: the list of items was taken from the data. This is not private" in " ".join(result.stdout.split())
    assert "pear" in result.stdout
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert json.loads((folder / "results.json").read_text(encoding="utf-8"))["numbering"] == "taken from the data"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--mechanism", "sqkr"), "mechanism must be one for items, got 'sqkr'"),
        (("--mechanism", "unary-encoding", "--option", "foo"), "option must be left out: unary-encoding has none, got 'foo'"),
        (("--mechanism", "hadamard-response", "--option", "blocks"), "option must be NAME=VALUE, got 'blocks'"),
        (("--mechanism", "hadamard-response", "--option", "blocks=many"), "blocks must be of the type int, got 'many'"),
        (("--mechanism", "hadamard-response", "--option", "rows=1"), "option must be one of blocks, got 'rows'"),
        (
            ("--mechanism", "hadamard-response", "--count-share", ".2"),
            "mechanism must be sparse-discrete-gaussian-frequencies for",
        ),
        ((*SPARSE, "--option", "rows=3"), "options must not be given with count_share: the sketch is chosen by the count, got rows"),
        ((*SPARSE, "--count-share", "1"), "count_share must be a number above 0 and below 1, got 1.0"),
        (("--mechanism", "hadamard-response", "--buckets", "1"), "buckets must be a whole number from 2"),
        (("--mechanism", "hadamard-response", "--domain", "none.txt"), "none.txt: there is no such file"),
    ],
)
def test_faults_are_named(run: Run, arguments: tuple[str, ...], message: str) -> None:
    result = run(*COMMAND, *arguments)
    assert result.exit_code != 0
    assert message in str(result.exception) + result.stderr
