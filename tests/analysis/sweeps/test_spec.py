"""Sweeps as files: every fault is named when the file is read, and every combination becomes one task with a name of its own."""

import dataclasses
import json
import math
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import quietbits
from quietbits.analysis.catalogue.vector_mechanisms import PARAMETERS, MechanismSpec, check_design
from quietbits.analysis.random_streams import named_stream
from quietbits.analysis.simulation.vector_populations import POPULATIONS
from quietbits.analysis.sweeps.spec import KEYS, MECHANISM_KEYS, SweepSpec, load_sweep, parse_sweep
from quietbits.analysis.sweeps.store import METRICS, result_schema
from quietbits.analysis.sweeps.task import SweepTask
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.vector_table import DITHERINGS
from quietbits.errors import DataError
from quietbits.solvers.accounting.gaussian_privacy import LARGEST_DELTA

SMALLEST: dict[str, Any] = {
    "population": "sphere",
    "clients": 50,
    "dimension": 4,
    "norm": 2,
    "epsilon": 1,
    "delta": 1e-5,
    "mechanism": [{"name": "cldp"}],
}

WHOLE = """
seed = 7
repetitions = 2
population = ["sphere", "sparse"]
nonzero = [1, 2]
clients = [100, 200]
dimension = 4
norm = [1, inf]
clip_norm = 0.5
scale = 2
epsilon = [1, 2.5]
delta = 0

[[mechanism]]
name = "mvu"
bits_in = 3
bits_out = [1, 2]
metric = ["none", "l1"]

[[mechanism]]
name = "cldp"
"""


def test_a_file_becomes_every_combination(tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(WHOLE)
    sweep = load_sweep(path)
    assert sweep.mechanism == (
        MechanismSpec("mvu", bits_in=3, bits_out=1),
        MechanismSpec("mvu", bits_in=3, bits_out=1, metric="l1"),
        MechanismSpec("mvu", bits_in=3, bits_out=2),
        MechanismSpec("mvu", bits_in=3, bits_out=2, metric="l1"),
        MechanismSpec("cldp"),
    )
    tasks = sweep.tasks()
    assert len(tasks) == len(set(tasks)) == 3 * 2 * 2 * 2 * 5 * 2
    assert {task.seed for task in tasks} == {7}
    assert {task.scale for task in tasks} == {2.0}
    assert [(task.population, task.nonzero) for task in tasks[::80]] == [("sphere", None), ("sparse", 1), ("sparse", 2)]
    assert {task.design.ball for task in tasks} == {NormBall(4, 1.0, 0.5), NormBall(4, math.inf, 0.5)}
    assert [task.repetition for task in tasks[:4]] == [0, 1, 0, 1]
    assert [task.design.epsilon for task in tasks[:20:10]] == [1.0, 2.5]


def test_what_is_left_out() -> None:
    sweep = parse_sweep(SMALLEST)
    assert (sweep.repetitions, sweep.seed, sweep.clip_norm, sweep.scale, sweep.nonzero) == (10, 0, (1.0,), (1.0,), ())
    assert sweep == SweepSpec(
        mechanism=(MechanismSpec("cldp"),),
        population=("sphere",),
        clients=(50,),
        dimension=(4,),
        norm=(2.0,),
        epsilon=(1.0,),
        delta=(1e-5,),
    )


def test_names_say_everything_but_the_seed() -> None:
    document = SMALLEST | {
        "population": ["sphere", "sparse"],
        "nonzero": [1, 2],
        "clients": [50, 51],
        "dimension": [4, 5],
        "clip_norm": [1, 2],
        "scale": [1, 2],
        "epsilon": [1, 1.0000000000000002],
        "delta": [1e-5, 1e-6],
        "repetitions": 2,
        "mechanism": [{"name": "cldp"}, {"name": "mvu", "bits_in": [2, 3], "bits_out": 2, "dithering": ["systematic", "rejection"]}],
    }
    tasks = parse_sweep(document).tasks()
    assert len({task.name for task in tasks}) == len({task.key() for task in tasks}) == len(tasks) == 3 * 2**7 * 5
    reseeded = [dataclasses.replace(task, seed=1) for task in tasks[:3]]
    assert [task.name for task in reseeded] == [task.name for task in tasks[:3]]
    assert not {task.key() for task in reseeded} & {task.key() for task in tasks}
    assert tasks[0].key("another version") != tasks[0].key()


def test_a_name_is_kept_for_ever() -> None:
    # Streams derive from names: a name that changes changes every published number.
    task = parse_sweep(SMALLEST | {"mechanism": [{"name": "mvu", "bits_in": 3, "bits_out": 2, "metric": "l1"}]}).tasks()[3]
    assert json.loads(task.name) == {
        "clients": 50,
        "design": {
            "ball": {"clip_norm": 1.0, "dimension": 4, "norm": 2.0},
            "delta": 1e-5,
            "epsilon": 1.0,
            "mechanism": {"bits_in": 3, "bits_out": 2, "dithering": "systematic", "metric": "l1", "name": "mvu"},
        },
        "nonzero": None,
        "population": "sphere",
        "repetition": 3,
        "scale": 1.0,
    }
    assert task.data_name == "vectors: sphere, clients 50, dimension 4, repetition 3"
    assert task.setting == (
        "mvu (bits_in 3, bits_out 2, metric l1), epsilon 1, delta 1e-05, 50 clients from sphere, dimension 4, L2 ball of radius 1"
    )


def test_all_mechanisms_and_budgets_see_the_same_vectors() -> None:
    document = SMALLEST | {"epsilon": [1, 2], "norm": [1, 2], "repetitions": 1, "mechanism": [{"name": "cldp"}, {"name": "laplace"}]}
    tasks = parse_sweep(document).tasks()
    assert len({task.data_name for task in tasks}) == 1
    others = parse_sweep(SMALLEST | {"population": "sparse", "nonzero": [1, 2], "repetitions": 1}).tasks()
    assert len({task.data_name for task in others + tasks}) == 3
    first, second = (named_stream(0, task.data_name).random() for task in others)
    assert first != second


def changed(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in (SMALLEST | values).items() if value is not None}


def mechanism(**values: Any) -> dict[str, Any]:
    return changed(mechanism=[values])


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (changed(epsilons=1), "epsilons is no key of a sweep: there are mechanism, population, clients, dimension, norm, epsilon, delta, "),
        (changed(epsilon=None), "epsilon is missing: a sweep must have mechanism, population"),
        (changed(mechanism=None), "mechanism is missing"),
        (changed(mechanism=[]), "mechanism must have at least one value, got none"),
        (changed(mechanism="cldp"), r"mechanism must be written as blocks \[\[mechanism\]\], got 'cldp'"),
        (changed(mechanism=["cldp"]), r"mechanism must be written as blocks \[\[mechanism\]\], got \['cldp'\]"),
        (changed(epsilon=[]), "epsilon must have at least one value, got none"),
        (changed(epsilon=[1, 2, 1.0]), "epsilon must not have the same value twice, got 1.0 twice"),
        (changed(mechanism=[{"name": "cldp"}, {"name": "cldp"}]), "mechanism must not have the same value twice, got cldp twice"),
        (changed(epsilon=0), "epsilon must be a number from 0.001 to 100, got 0"),
        (changed(epsilon="1"), "epsilon must be a number from 0.001 to 100, got '1'"),
        (changed(epsilon=[1, math.nan]), "epsilon must be a number from 0.001 to 100, got nan"),
        (changed(epsilon=[[1]]), r"epsilon must be a number from 0.001 to 100, got \[1\]"),
        (changed(delta=-1e-9), f"delta must be a number from 0 to {LARGEST_DELTA:g}, got -1e-09"),
        (changed(delta=1), f"delta must be a number from 0 to {LARGEST_DELTA:g}, got 1"),
        (
            changed(population="spheres"),
            "population must be one of uniform-l1, positive-sphere, sphere, uniform-cube, sparse, got 'spheres'",
        ),
        (changed(population=3), "population must be one of .*, got 3"),
        (changed(nonzero=2), "nonzero must be left out where no population is sparse, got 2"),
        (changed(population="sparse", nonzero=5), "nonzero must be a whole number from 1 to 4, got 5"),
        (changed(population="sparse", nonzero=[1, 1]), "nonzero must not have the same value twice"),
        (changed(clients=0), "clients must be a whole number from 1 to"),
        (changed(clients=50.0), "clients must be a whole number from 1 to .*, got 50.0"),
        (changed(dimension=0), "dimension must be a whole number from 1 to"),
        (changed(dimension="4"), "dimension must be a whole number from 1 to .*, got '4'"),
        (changed(norm=0.5), "norm must be a number from 1 to 64, got 0.5"),
        (changed(norm="inf"), "norm must be a number from 1 to 64, got 'inf'; the number inf stands for the largest coordinate"),
        (changed(clip_norm=0), "clip_norm must be a number from .*, got 0"),
        (changed(scale=0), "scale must be a number from .*, got 0"),
        (changed(repetitions=0), "repetitions must be a whole number from 1 to 1000000, got 0"),
        (changed(repetitions=[1, 2]), r"repetitions must be a whole number from 1 to 1000000, got \[1, 2\]"),
        (changed(repetitions=10**6, epsilon=[1, 2]), "a sweep must have at most 1000000 tasks, got 2000000"),
        (changed(seed=-1), "seed must be a whole number from 0 to"),
        (mechanism(), r"\[\[mechanism\]\] number 1: name is missing"),
        (mechanism(name="mvo"), "name must be one of mvu, cldp, laplace, gaussian, skellam, sqkr, privunit, got 'mvo'"),
        (mechanism(name=[]), "number 1: name must have at least one value"),
        (mechanism(name="cldp", bits=3), "bits is no parameter of cldp: it has none; got bits = 3"),
        (mechanism(name="skellam", metric="l1"), "metric is no parameter of skellam: it has bits; got metric = 'l1'"),
        (mechanism(name="mvu", bits=3), "bits is no parameter of mvu: it has bits_in, bits_out, metric, dithering; got bits = 3"),
        (mechanism(name="mvu", bit_in=3), "bit_in is no key of a mechanism: there are name, bits_in, bits_out, metric, dithering, bits"),
        (mechanism(name="mvu", bits_in=3), "bits_out is missing: mvu needs bits_in and bits_out"),
        (mechanism(name="mvu", bits_in=3, bits_out=10), "bits_out must be a whole number from 1 to 9, got 10"),
        (mechanism(name="mvu", bits_in=1, bits_out=1), "bits_in must be at least 2 for mvu on a ball of norm 2, got 1"),
        (mechanism(name="mvu", bits_in=3, bits_out=2, metric="l0"), "metric must be None, 'l1', 'l2' or"),
        (mechanism(name="mvu", bits_in=3, bits_out=2, dithering=""), "dithering must be one of systematic, rejection, got ''"),
        (mechanism(name="mvu", bits_in=3, bits_out=2, dithering="plain"), "dithering must be one of systematic, rejection, got 'plain'"),
        (mechanism(name="skellam", bits=1), "bits must be a whole number from 2 to 32, got 1"),
        (mechanism(name="sqkr", bits=17), "bits must be a whole number from 1 to 16, got 17"),
        (mechanism(name="skellam") | {"delta": 0}, "delta must be above 0 for skellam, got 0"),
        (mechanism(name="gaussian") | {"delta": [1e-5, 0]}, "delta must be above 0 for gaussian, got 0"),
        (mechanism(name="skellam") | {"norm": 1}, "norm must be 2 for skellam, got 1"),
        (mechanism(name="sqkr") | {"norm": math.inf}, "norm must be 2 for sqkr, got inf"),
        (mechanism(name="sqkr") | {"epsilon": 30}, "epsilon must be a number from .* to 20, got 30"),
        (mechanism(name="privunit") | {"norm": 3}, "norm must be 2 for privunit, got 3"),
        (mechanism(name="cldp") | {"norm": 3}, "norm must be 1 or 2 or inf for cldp, got 3"),
    ],
)
def test_every_fault_is_named(document: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_sweep(document)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"epsilon = ", "sweep.toml: Invalid value"),
        (b"\xff\xfe", "sweep.toml: 'utf-8' codec can't decode"),
        (b"epsilon = 1\nepsilon = 2\n", "sweep.toml: Cannot overwrite a value"),
        (b"population = 'sphere'\nepsilons = 1\n", "sweep.toml: epsilons is no key of a sweep"),
        (b"", "sweep.toml: mechanism is missing"),
    ],
)
def test_faults_name_the_file(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_sweep(path)


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_sweep(tmp_path / "sweep.toml")


def test_every_mechanism_has_a_setting_that_passes() -> None:
    for name in PARAMETERS:
        bits = {"bits_in": 3, "bits_out": 2} if name == "mvu" else {}
        check_design(MechanismSpec(name, **bits), NormBall(4, 2.0), 1.0, 1e-5)


def test_the_documentation_shows_a_sweep_and_lists_every_key() -> None:
    text = (Path(quietbits.__file__).parent / "docs" / "sweeps.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```toml\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    sweep = parse_sweep(tomllib.loads(example))
    assert [str(spec) for spec in sweep.mechanism] == [
        "mvu (bits_in 5, bits_out 3, metric l1)",
        "mvu (bits_in 5, bits_out 3, metric l2)",
        "cldp",
        "skellam (bits 16)",
    ]
    words = {*KEYS, *MECHANISM_KEYS, *POPULATIONS, *PARAMETERS, *DITHERINGS, *METRICS, *result_schema().names}
    named = set(re.findall(r"`\W*([\w-]+)", text))
    assert {word for word in words if word not in named and not word.startswith("version_")} == {"name"}


def test_tasks_are_records() -> None:
    (task, *_) = parse_sweep(SMALLEST).tasks()
    assert isinstance(task, SweepTask)
    assert hash(task) == hash(dataclasses.replace(task))
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.seed = 3
