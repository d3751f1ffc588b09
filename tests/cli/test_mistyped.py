"""Tests of mistyped names.

Points under test: every command quotes the name, lists the valid names, and suggests the closest one once.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import Result

from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.cli.main import app
from quietbits.figures.listing import LISTING

Run = Callable[..., Result]
Fault = Callable[..., str]
PLAN = ["plan", "--clients", 10_000, "--epsilon", 4, "--adjacency", "replace-one"]


def groups(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the groups of commands, with the words before their subcommands."""
    if hasattr(command, "commands"):
        yield path, command
        for name, item in command.commands.items():
            yield from groups(item, (*path, name))


GROUPS = dict(groups(typer.main.get_command(app)))
# Commands that stand beside mechanisms in a group of mechanisms: a mistyped name may mean either.
BESIDE_MECHANISMS = {"compose"}
FROM_THE_REGISTRY = [path for path, group in GROUPS.items() if set(group.commands) <= BESIDE_MECHANISMS]
WRITTEN = [(path, name) for path, group in GROUPS.items() for name in group.commands if path not in FROM_THE_REGISTRY]


def test_there_are_groups_of_both_kinds() -> None:
    assert {("design",), ("estimate",), ()} <= {path for path, _ in WRITTEN}
    assert {("account",), ("calibrate",), ("simulate",), ("audit",), ("deploy",)} == set(FROM_THE_REGISTRY)


@pytest.mark.parametrize(("path", "name"), WRITTEN)
def test_a_mistyped_command_is_suggested_once(fault: Fault, path: tuple[str, ...], name: str) -> None:
    typed = f"{name[:-2]}{name[-1]}{name[-2]}" if name[-1] != name[-2] else f"{name}x"
    message = fault(*path, typed)
    assert message.startswith(f"command must be a name that {' '.join(('quietbits', *path))} --help lists, got '{typed}'")
    assert message.count("did you mean") == 1
    assert name in message.partition("did you mean ")[2].rstrip("?").split(" or ")


@pytest.mark.parametrize(("typed", "meant"), [("plna", "plan"), ("version", "--version"), ("help", "--help")])
def test_what_is_an_option_is_suggested_as_one(fault: Fault, typed: str, meant: str) -> None:
    assert fault(typed).endswith(f"got '{typed}': did you mean {meant}?")


@pytest.mark.parametrize("path", FROM_THE_REGISTRY)
def test_a_mistyped_mechanism_is_suggested(fault: Fault, path: tuple[str, ...]) -> None:
    expected = f"mechanism must be a name that quietbits {path[0]} --help lists, got 'gausian': did you mean gaussian"
    assert fault(*path, "gausian").startswith(expected)
    for command in GROUPS[path].commands:
        assert f"got '{command}x': did you mean {command}" in fault(*path, f"{command}x")
    assert "got 'laplce': did you mean laplace" in fault(*path, "gaussian", "laplce")
    allowed = "join them with commas: gaussian,laplace" if path == ("simulate",) else f"quietbits {path[0]} takes one at a time"
    assert fault(*path, "gaussian", "laplace") == f"mechanism must be a single word, got 'gaussian laplace': {allowed}"
    if path != ("simulate",):
        assert f"quietbits {path[0]} --help lists, got 'gaussian,laplace'" in fault(*path, "gaussian,laplace")


@pytest.mark.parametrize("name", LISTING)
def test_a_mistyped_figure_is_suggested(fault: Fault, name: str) -> None:
    message = fault("reproduce", f"{name}1", "--output", "figures")
    assert message.startswith(f"figure must be a name that quietbits reproduce --help lists, got '{name}1': did you mean ")
    assert name in message.partition("did you mean ")[2].rstrip("?").split(" or ")


def test_a_mistyped_option_of_a_plan_is_suggested(fault: Fault) -> None:
    assert fault(*PLAN, "--dimension", 3, "--option", "sparsty=3").endswith("got 'sparsty': did you mean sparsity?")


@pytest.mark.parametrize("command", ["sweep", "train", "design grid"])
def test_a_missing_file_names_the_example_and_another_kind_of_file_the_right_one(fault: Fault, folder: Path, command: str) -> None:
    missing = f"Missing argument 'SPEC'; quietbits {command} --example prints one; quietbits {command} --help lists the options"
    assert fault(*command.split()) == missing
    (folder / "people.csv").write_text("age,height\n30,170\n")
    (folder / "binary.toml").write_bytes(b"\x00\x01")
    for name in ("people.csv", "binary.toml"):
        assert fault(*command.split(), name, "--output", "results").startswith(f"{name}: the file is not TOML: ")


def test_a_missing_file_without_an_example_names_none(fault: Fault) -> None:
    assert fault("verify") == "Missing argument 'FILE'; quietbits verify --help lists the options"


# Tests of plans


def test_a_plan_without_a_mechanism_ends_with_an_error_and_is_written(run: Run, folder: Path) -> None:
    for kind in ("json", "html"):
        result = run(*PLAN, "--dimension", 256, "--bits", 0.0001, "--trust", "local", "--output", f"plan.{kind}")
        assert result.exit_code == 2, result.output
        assert (folder / f"plan.{kind}").stat().st_size > 0
    assert "Cannot serve" in result.stdout
    reason = result.stderr.splitlines()[-1]
    assert reason.startswith("quietbits: no mechanism can serve the task: bits must be at least 1 a coordinate, got 0.0001: ")
    # The reason states, for each mechanism, the least valid value and the given value.
    assert "bits must be at least 0.003907 a coordinate, got 0.0001: its message has 1 bit for 256 coordinates (sqkr" in reason
    assert "got 1" not in reason
    # Requirements on the clients' data are no reason for infeasibility.
    assert "clients must hold" not in reason
    enough = run(*PLAN, "--dimension", 256, "--bits", 0.003907, "--trust", "local", "--all")
    assert (enough.exit_code, " sqkr " in enough.stdout) == (0, True)


def test_a_plan_for_one_trust_model_has_its_mechanisms_alone(answer: Callable[..., Any]) -> None:
    task = ["--clients", 50, "--epsilon", 1, "--delta", 1e-5, "--adjacency", "replace-one", "--categories", 4]
    result = answer("plan", *task, "--trust", "secure-sum")["mechanisms"]
    assert {item["name"] for item in result} == {name for name, entry in REGISTRY.items() if entry.trust_model == "secure-sum"}


def test_two_limits_of_bits_must_agree(run: Run, fault: Fault) -> None:
    task = [*PLAN, "--dimension", 64, "--trust", "local"]
    expected = "message_bits must be bits times the number of coordinates, 2 x 64 = 128, got 16: leave one of them out"
    assert fault(*task, "--bits", 2, "--message-bits", 16) == expected
    either = [
        run(*task, *limit, "--json").stdout
        for limit in (["--bits", 0.0625], ["--message-bits", 4], ["--bits", 0.0625, "--message-bits", 4])
    ]
    plans = [[(item["feasible"], item["bits_per_client"], item["options"]) for item in json_of(text)["mechanisms"]] for text in either]
    assert plans[0] == plans[1] == plans[2]
    assert max(bits for feasible, bits, _ in plans[0] if feasible) <= 4


def json_of(text: str) -> Any:
    from json import loads

    return loads(text)
