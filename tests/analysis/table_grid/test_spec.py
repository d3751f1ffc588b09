"""Tests of grids as files.

Points under test: every combination occurs once, with a unique name, and errors name faults before any work.
"""

import itertools
import tomllib
from pathlib import Path

import pytest

from quietbits.analysis.sweeps.example import example_specification
from quietbits.analysis.table_grid.spec import KEYS, load_grid, parse_grid
from quietbits.analysis.table_grid.task import TableTask
from quietbits.errors import DataError

LARGE = {
    "epsilon": [0.5, 1, 20],
    "bits_in": [1, 2],
    "bits_out": [2, 1],
    "metric": ["none", "l1", "l2.0"],
    "objective": ["mean", "worst"],
    "interval": [[0, 1], [-1.5, 2]],
}


def test_every_combination_is_a_task_in_the_order_of_the_file() -> None:
    tasks = parse_grid({"seed": 3, "grid": LARGE}).tasks()
    wanted = itertools.product([0.5, 1.0, 20.0], [1, 2], [2, 1], [None, "l1", "l2"], ["mean", "worst"], [(0.0, 1.0), (-1.5, 2.0)])
    assert list(tasks) == [TableTask(*values, seed=3, shared=True) for values in wanted]
    assert tasks[5:7] == [tasks[5], tasks[6]]
    assert len({task.stem for task in tasks}) == len({task.name for task in tasks}) == len(tasks) == 144
    assert tasks[-1].stem == "epsilon_20_bits_2_1_l2_worst_from_-1.5_to_2"
    # Tables that differ only in the interval share one design.
    assert len({task.design for task in tasks}) == 72


def test_what_is_left_out_has_one_value() -> None:
    (task,) = parse_grid({"grid": {"epsilon": 1, "bits_in": 2, "bits_out": 3}}).tasks()
    assert task == TableTask(1.0, 2, 3)
    assert task.design is None


def test_the_example_has_every_key_and_as_many_tables_as_it_says(tmp_path: Path) -> None:
    text = example_specification("table_grid")
    assert set(tomllib.loads(text)["grid"]) == set(KEYS)
    (tmp_path / "grid.toml").write_text(text)
    assert f"= {len(load_grid(tmp_path / 'grid.toml').tasks())} tables" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilons": 1}, "epsilons is not a key of .grid.: it has epsilon, bits_in, bits_out, metric, objective, interval"),
        ({"epsilon": [1, 1.0]}, "epsilon must not have the same value twice, got 1 twice"),
        ({"epsilon": []}, "epsilon must have at least one value, got none"),
        ({"epsilon": 61}, "epsilon must be a number from 0.001 to 60, got 61"),
        ({"epsilon": 21, "metric": "none"}, "epsilon must be a number from 0.001 to 20, got 21"),
        ({"epsilon": "1"}, "epsilon must be a number from 0.001 to 60, got '1'"),
        ({"bits_in": 10}, "bits_in must be a whole number from 1 to 9, got 10"),
        ({"certify_seconds": -1}, "certify_seconds must be a number from 0 to"),
        ({"bits_out": 2.5}, "bits_out must be a whole number from 1 to 9, got 2.5"),
        ({"metric": "l0.5"}, "metric must be none, l1, l2"),
        ({"metric": ["l1", "l1.0"]}, "metric must not have the same value twice, got l1 twice"),
        ({"objective": "prior"}, "objective must be one of mean, worst, got 'prior'"),
        ({"interval": []}, "interval must have at least one value, got none"),
        ({"interval": [1, 0]}, "interval must be two finite numbers with low < high"),
        ({"interval": [[0, 1], [0, 1, 2]]}, r"interval must be \[low, high\], or a list of such, got \[0, 1, 2\]"),
        ({"epsilon": [1 + k / 2000 for k in range(21_000)]}, "a grid must have at most 1000000 tables, got 1008000"),
    ],
)
def test_faults_are_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_grid({"grid": LARGE | change})


def test_a_file_is_named_with_its_fault(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    for text, message in (
        ("[grid]\nepsilon = 1", "bits_in is missing: .grid. must have epsilon, bits_in, bits_out"),
        ("epsilon = 1", "epsilon is not a key of a grid's file outside .grid.: it has seed"),
        ("grid = 1", ".grid. must be a table with epsilon, bits_in, bits_out, got 1"),
        ("seed = -1\n[grid]\nepsilon = 1\nbits_in = 1\nbits_out = 1", "seed must be a whole number from 0"),
        ("[grid", "Expected"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=message) as caught:
            load_grid(path)
        assert str(caught.value).startswith(str(path))
