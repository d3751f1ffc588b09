"""Completions that a shell offers after TAB, and the list in the help of a group."""

import re
from pathlib import Path

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.cli.main import app
from quietbits.design.contracts.guarantee import ADJACENCIES
from quietbits.figures.listing import LISTING

ADJACENCY = "estimate frequencies --data people.csv --mechanism sqkr --adjacency"


def offered(typed: str, incomplete: str = "") -> list[str]:
    """Return what bash offers for an incomplete word after the words that were typed."""
    words = ["quietbits", *typed.split()]
    environment = {"_QUIETBITS_COMPLETE": "complete_bash", "COMP_WORDS": " ".join([*words, incomplete]), "COMP_CWORD": str(len(words))}
    result = CliRunner().invoke(app, [], env=environment, prog_name="quietbits")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.stderr == ""
    return result.stdout.splitlines()


@pytest.fixture
def people(folder: Path) -> Path:
    (folder / "people.csv").write_text("age,first name,agent\n1,2,3\n")
    pd.DataFrame({"weight": [1.0], "height": [2.0]}).to_parquet(folder / "people.parquet")
    return folder


@pytest.mark.parametrize("command", [ADJACENCY, "account gaussian --adjacency", "simulate cpsgd --adjacency", "audit cpsgd --adjacency"])
def test_an_adjacency_is_completed(command: str) -> None:
    assert offered(command) == list(ADJACENCIES)
    assert offered(command, "add") == ["add-or-remove-one"]


def test_an_adjacency_that_the_mechanism_lacks_is_not_offered() -> None:
    assert offered("simulate cldp --adjacency") == ["replace-one"]


def test_figures_are_completed() -> None:
    assert offered("reproduce") == list(LISTING)
    assert offered("reproduce mvu-fig1", "binomial") == ["binomial-slack"]


def test_mechanisms_are_completed_one_by_one_and_after_a_comma() -> None:
    assert offered("mechanisms", "cps") == ["cpsgd"]
    assert offered("simulate", "cldp,cps") == ["cldp,cpsgd"]
    assert offered("estimate frequencies --mechanism", "subset") == ["subset-selection"]


@pytest.mark.parametrize(
    ("command", "columns"),
    [
        ("estimate mean --data people.csv --column", ["age", "first name", "agent"]),
        ("estimate mean --data people.parquet --column", ["weight", "height"]),
        ("estimate frequencies --epsilon 1 --data people.csv --column", ["age", "first name", "agent"]),
        ("design mvu --prior-data people.csv --prior-column", ["age", "first name", "agent"]),
        ("estimate mean --data absent.csv --column", []),
        ("estimate mean --data people.npy --column", []),
        ("estimate mean --column", []),
    ],
)
def test_the_columns_of_the_file_are_completed(people: Path, command: str, columns: list[str]) -> None:
    assert (people / "people.csv").is_file()
    assert [name for name in offered(command) if name] == columns


def test_choices_of_the_registry_are_completed() -> None:
    options = {option.name: option for option in REGISTRY["distributed-skellam"].options}
    assert offered("simulate distributed-skellam --rotation") == list(options["rotation"].choices) != []


@pytest.mark.parametrize("typed", ["foo", "account foo --delta", "simulate cldp,foo --delta"])
def test_an_unknown_name_before_the_word_is_no_error_in_a_shell(typed: str) -> None:
    own = {"", "--help", "--version", "--install-completion", "--show-completion"}
    assert set(offered(typed, "--")) <= own


@pytest.mark.parametrize("group", ["account", "calibrate", "simulate", "audit"])
def test_the_help_of_a_group_says_each_thing_once(group: str) -> None:
    result = CliRunner().invoke(app, [group, "--help"], env={"COLUMNS": "400"}, prog_name="quietbits")
    shown = re.sub(r"[ ─│╭╮╰╯\n]+", " ", result.stdout)
    assert shown.count("(`quietbits.") == 1
    command = typer.main.get_command(app).commands[group]
    context = typer.Context(command)
    for name in command.list_commands(context):
        title = command.get_command(context, name).get_short_help_str(200)
        assert f"{name} {title} " in shown, name
        assert shown.count(f"{title} ") < 3, name
