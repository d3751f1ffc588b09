"""Tests of sweeps as files.

Points under test: errors name every fault, and every combination is a task with a unique name.
"""

import dataclasses
import json
import math
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import quietbits
from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.analysis.random_streams import named_stream
from quietbits.analysis.simulation.populations import NUMBERS, POPULATIONS
from quietbits.analysis.sweeps.spec import KEYS, SweepSpec, load_sweep, parse_sweep
from quietbits.analysis.sweeps.task import METRICS, MeanTask, MechanismChoice, design_options
from quietbits.design.contracts.domains import Categories, Interval
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task
from quietbits.design.local.vector_table import DITHERINGS
from quietbits.errors import DataError
from quietbits.solvers.accounting.sampling import PoissonSampling

SMALLEST: dict[str, Any] = {
    "population": "sphere",
    "clients": 50,
    "dimension": 4,
    "norm": 2,
    "epsilon": 1,
    "delta": 1e-5,
    "adjacency": "replace-one",
    "mechanism": [{"name": "cldp"}],
}
NUMBERS_ONLY = {key: value for key, value in SMALLEST.items() if key not in ("dimension", "norm")} | {
    "population": "uniform",
    "interval": [-1, 3],
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
adjacency = "replace-one"

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
        MechanismChoice.of("mvu", bits_in=3, bits_out=1),
        MechanismChoice.of("mvu", bits_in=3, bits_out=1, metric="l1"),
        MechanismChoice.of("mvu", bits_in=3, bits_out=2),
        MechanismChoice.of("mvu", bits_in=3, bits_out=2, metric="l1"),
        MechanismChoice.of("cldp"),
    )
    tasks = sweep.tasks()
    assert len(tasks) == len(set(tasks)) == 3 * 2 * 2 * 2 * 5 * 2
    assert {task.seed for task in tasks} == {7}
    assert {task.scale for task in tasks} == {2.0}
    assert [(task.population, task.nonzero) for task in tasks[::80]] == [("sphere", None), ("sparse", 1), ("sparse", 2)]
    assert {task.task.domain for task in tasks} == {NormBall(4, 1.0, 0.5), NormBall(4, math.inf, 0.5)}
    assert [task.repetition for task in tasks[:4]] == [0, 1, 0, 1]
    assert [task.task.epsilon for task in tasks[:20:10]] == [1.0, 2.5]


def test_what_is_left_out() -> None:
    sweep = parse_sweep(SMALLEST)
    assert (sweep.repetitions, sweep.seed, sweep.clip_norm, sweep.scale, sweep.nonzero) == (10, 0, (1.0,), (1.0,), ())
    assert (sweep.rounds, sweep.interval) == ((1,), ())
    assert sweep == SweepSpec(
        mechanism=(MechanismChoice.of("cldp"),),
        population=("sphere",),
        clients=(50,),
        dimension=(4,),
        norm=(2.0,),
        epsilon=(1.0,),
        delta=(1e-5,),
        adjacency="replace-one",
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
        "rounds": [1, 7],
        "repetitions": 2,
        "mechanism": [{"name": "cldp"}, {"name": "mvu", "bits_in": [2, 3], "bits_out": 2, "dithering": ["systematic", "rejection"]}],
    }
    tasks = parse_sweep(document).tasks()
    assert len({task.name for task in tasks}) == len(tasks) == 3 * 2**8 * 5
    reseeded = [dataclasses.replace(task, seed=1) for task in tasks[:3]]
    assert [task.name for task in reseeded] == [task.name for task in tasks[:3]]
    other = parse_sweep(document | {"adjacency": "add-or-remove-one"}).tasks()
    assert not {task.name for task in other} & {task.name for task in tasks}


def test_a_name_is_kept_for_ever() -> None:
    # Random streams derive from task names, so a changed name would change all published numbers.
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
    assert task.name == json.dumps(json.loads(task.name), sort_keys=True, separators=(",", ":"))
    assert task.data_name == "vectors: sphere, clients 50, dimension 4, repetition 3"
    assert task.setting == (
        "mvu (bits_in 3, bits_out 2, metric l1), epsilon 1, delta 1e-05, 50 clients from sphere, dimension 4, L2 ball of radius 1"
    )


def test_names_of_other_problems_say_what_is_special() -> None:
    document = NUMBERS_ONLY | {"rounds": 5, "mechanism": [{"name": "cpsgd", "bits": 12}]}
    task = parse_sweep(document | {"adjacency": "add-or-remove-one", "scale": 2}).tasks()[0]
    design = json.loads(task.name)["design"]
    assert design == {
        "interval": {"high": 3.0, "low": -1.0},
        "delta": 1e-5,
        "epsilon": 1.0,
        "adjacency": "add-or-remove-one",
        "rounds": 5,
        "mechanism": {"bits": 12, "name": "cpsgd", "rotated": True, "rotation_seed": 0},
    }
    assert task.data_name == "numbers: uniform, clients 50, repetition 0"
    assert task.setting == (
        "cpsgd (bits 12), epsilon 1, delta 1e-05 over 5 rounds, add-or-remove-one, 50 clients from uniform of scale 2, "
        "interval from -1 to 3"
    )
    sampled = dataclasses.replace(task, task=dataclasses.replace(task.task, sampling=PoissonSampling(0.1), bits=4))
    assert json.loads(sampled.name)["design"] == design | {"sampling": {"PoissonSampling": {"probability": 0.1}}, "bits": 4}
    of_message = dataclasses.replace(task, task=dataclasses.replace(task.task, message_bits=4))
    assert json.loads(of_message.name)["design"] == design | {"message_bits": 4}


def test_numbers_of_intervals() -> None:
    tasks = parse_sweep(NUMBERS_ONLY | {"interval": [[0, 1], [-1, 1]], "population": ["uniform", "ends"], "repetitions": 2}).tasks()
    assert [task.population for task in tasks] == ["uniform"] * 4 + ["ends"] * 4
    assert [task.task.domain for task in tasks[:4:2]] == [Interval(0.0, 1.0), Interval(-1.0, 1.0)]
    # All intervals share the same draws.
    assert len({task.data_name for task in tasks}) == 4


def test_a_task_has_a_population_of_its_domain() -> None:
    problem = Task(Categories(3), 10, 1.0, 0.0, "replace-one")
    with pytest.raises(ValueError, match="population must be one of uniform, zipf, geometric, got 'sphere'"):
        MeanTask(MechanismChoice("frequency-randomised-response"), problem, "sphere")


def test_items_of_categories() -> None:
    document = NUMBERS_ONLY | {
        "categories": [5, 50],
        "population": ["zipf", "geometric"],
        "mechanism": [{"name": "frequency-randomised-response"}],
        "repetitions": 1,
    }
    tasks = parse_sweep({key: value for key, value in document.items() if key != "interval"}).tasks()
    assert [(task.population, task.task.domain) for task in tasks] == [
        (population, Categories(size)) for population in ("zipf", "geometric") for size in (5, 50)
    ]
    # Different lists of items have different draws.
    assert len({task.data_name for task in tasks}) == 4
    (rows,) = {len(task.run(task.prepare(None))) for task in tasks}
    assert rows == len(METRICS) - 1


def test_all_mechanisms_and_budgets_see_the_same_vectors() -> None:
    document = SMALLEST | {"epsilon": [1, 2], "norm": [1, 2], "repetitions": 1, "mechanism": [{"name": "cldp"}, {"name": "laplace"}]}
    tasks = parse_sweep(document).tasks()
    assert len({task.data_name for task in tasks}) == 1
    others = parse_sweep(SMALLEST | {"population": "sparse", "nonzero": [1, 2], "repetitions": 1}).tasks()
    assert len({task.data_name for task in (*others, *tasks)}) == 3
    first, second = (named_stream(0, task.data_name).random() for task in others)
    assert first != second


def changed(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in (SMALLEST | values).items() if value is not None}


def mechanism(**values: Any) -> dict[str, Any]:
    return changed(mechanism=[values])


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (changed(epsilons=1), "epsilons is not a key of a sweep: it has mechanism, population, clients, epsilon, delta, adjacency, "),
        (changed(epsilon=None), "epsilon is missing: a sweep must have mechanism, population"),
        (changed(adjacency=None), "adjacency is missing: a sweep must state one, replace-one or add-or-remove-one"),
        (changed(adjacency="swap"), "adjacency must be one of replace-one, add-or-remove-one, got 'swap'"),
        (changed(adjacency=["replace-one"]), r"adjacency must be one of replace-one, add-or-remove-one, got \['replace-one'\]"),
        (changed(rounds=0), "rounds must be a whole number from 1 to"),
        (
            changed(norm=None),
            "norm is missing: a sweep must have dimension and norm, for vectors, interval, for numbers, or categories, for items",
        ),
        (changed(dimension=None), "dimension is missing: a sweep must have dimension and norm"),
        (changed(dimension=None, norm=None), "interval is missing: a sweep must have dimension and norm"),
        (changed(interval=[0, 1]), "interval must be left out where dimension or norm is given: clients hold numbers, vectors, or items"),
        (NUMBERS_ONLY | {"interval": [1, 0]}, r"interval must be two finite numbers with low < high, got \(1, 0\)"),
        (NUMBERS_ONLY | {"interval": []}, "interval must have at least one value, got none"),
        (NUMBERS_ONLY | {"interval": 3}, r"interval must be \[low, high\], or a list of such, got 3"),
        (NUMBERS_ONLY | {"interval": [1, 2, 3]}, r"interval must be \[low, high\], or a list of such, got \[1, 2, 3\]"),
        (NUMBERS_ONLY | {"population": "sphere"}, "population must be one of uniform, rising, ends, got 'sphere'"),
        (NUMBERS_ONLY | {"nonzero": 1}, "nonzero must be left out where no population is sparse, got 1"),
        (changed(mechanism=None), "mechanism is missing"),
        (changed(mechanism=[]), r"mechanism must be written as one or more blocks \[\[mechanism\]\], got \[\]"),
        (changed(mechanism="cldp"), r"mechanism must be written as one or more blocks \[\[mechanism\]\], got 'cldp'"),
        (changed(mechanism=["cldp"]), r"mechanism must be written as one or more blocks \[\[mechanism\]\], got \['cldp'\]"),
        (changed(epsilon=[]), "epsilon must have at least one value, got none"),
        (changed(epsilon=[1, 2, 1.0]), "epsilon must not have the same value twice, got 1 twice"),
        (changed(mechanism=[{"name": "cldp"}, {"name": "cldp"}]), "mechanism must not have the same value twice, got cldp twice"),
        (changed(epsilon=0), "epsilon must be a number from 1e-05 to 10000, got 0"),
        (changed(epsilon="1"), "epsilon must be a number from 1e-05 to 10000, got '1'"),
        (changed(epsilon=[1, math.nan]), "epsilon must be a number from 1e-05 to 10000, got nan"),
        (changed(epsilon=[[1]]), r"epsilon must be a number from 1e-05 to 10000, got \[1\]"),
        (changed(delta=-1e-9), "delta must be a number from 0 to 1, got -1e-09"),
        (changed(delta=1), "delta must be a number from 0 to below 1, got 1"),
        (
            changed(population="spheres"),
            "population must be one of uniform-l1, positive-sphere, sphere, uniform-cube, "
            "sparse, sparse-mean, digits-gradients, got 'spheres'",
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
        (changed(norm="infinite"), "norm must be a number of at least 1, or inf, got 'infinite'"),
        (changed(clip_norm=0), "clip_norm must be a number from .*, got 0"),
        (changed(scale=0), "scale must be a number from .*, got 0"),
        (changed(repetitions=0), "repetitions must be a whole number from 1 to 1000000, got 0"),
        (changed(repetitions=[1, 2]), r"repetitions must be a whole number from 1 to 1000000, got \[1, 2\]"),
        (changed(repetitions=10**6, epsilon=[1, 2]), "a sweep must have at most 1000000 tasks, got 2000000"),
        (changed(seed=-1), "seed must be a whole number from 0 to"),
        (mechanism(), r"\[\[mechanism\]\] number 1: name is missing"),
        (mechanism(name="mvo"), "mechanism must be a name that .* lists, got 'mvo': did you mean mvu"),
        (mechanism(name=[]), "number 1: name must have at least one value"),
        (mechanism(name="cldp", bits=3), "bits is not a parameter of cldp: it has draws; got bits = 3"),
        (mechanism(name="skellam", metric="l1"), "metric is not a parameter of skellam: it has bits; got metric = 'l1'"),
        (
            mechanism(name="mvu", bits=3),
            "bits is not a parameter of mvu: it has bits_in, bits_out, metric, objective, dithering, design_seed; got bits = 3",
        ),
        (
            mechanism(name="mvu", cache="x"),
            "cache is not a parameter of mvu: it has bits_in, bits_out, metric, objective, dithering, design_seed; got cache = 'x'",
        ),
        (mechanism(name="mvu", bits_in=3, bits_out=10), "bits_out must be a whole number from 1 to 9, got 10"),
        (mechanism(name="mvu", dithering=""), "dithering must be one of systematic, rejection, got ''"),
        (mechanism(name="mvu", dithering="plain"), "dithering must be one of systematic, rejection, got 'plain'"),
        (mechanism(name="mvu", bits_in="none"), "bits_in must be a whole number from 1 to 9, got 'none'"),
        (mechanism(name="skellam", bits=1), "bits must be a whole number from 2 to 32, got 1"),
        (mechanism(name="sqkr", message_bits=21), "message_bits must be a whole number from 1 to 16, got 21"),
    ],
)
def test_every_fault_is_named(document: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_sweep(document)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"epsilon = ", "sweep.toml: the file is not TOML: Invalid value"),
        (b"\xff\xfe", "sweep.toml: the file is UTF-16 or UTF-32: save it in UTF-8"),
        (b"\xff", "sweep.toml: line 1 is not UTF-8 text: save the file in UTF-8"),
        (b"epsilon = 1\nepsilon = 2\n", "sweep.toml: the file is not TOML: Cannot overwrite a value"),
        (b"population = 'sphere'\nepsilons = 1\n", "sweep.toml: epsilons is not a key of a sweep"),
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


def test_every_option_of_the_registry_is_a_key_of_its_mechanism() -> None:
    for name, entry in REGISTRY.items():
        required = {option.name: option.low for option in design_options(entry) if option.required}
        options = {option.name: "none" if option.default is None else option.default for option in design_options(entry)} | required
        (choice,) = parse_sweep(SMALLEST | {"mechanism": [{"name": name, **options}]}).mechanism
        assert choice == MechanismChoice.of(name, **required)
        assert str(choice).startswith(name)


def test_the_documentation_shows_a_sweep_and_lists_every_key() -> None:
    docs = Path(quietbits.__file__).parent / "docs"
    text = "".join((docs / page).read_text(encoding="utf-8") for page in ("how-to/sweeps.md", "reference/sweep-files.md"))
    (example,) = re.findall(r"^```toml\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    sweep = parse_sweep(tomllib.loads(example))
    assert [str(choice) for choice in sweep.mechanism] == [
        "mvu (bits_in 5, bits_out 3, metric l1)",
        "mvu (bits_in 5, bits_out 3, metric l2)",
        "cldp",
        "skellam (bits 16)",
        "distributed-discrete-gaussian (bits 12)",
        "distributed-discrete-gaussian (bits 16)",
    ]
    options = {option.name for entry in REGISTRY.values() for option in design_options(entry)}
    words = {*KEYS, *options, *POPULATIONS, *NUMBERS, *REGISTRY, *DITHERINGS, *METRICS}
    named = set(re.findall(r"`\W*([\w-]+)", text))
    assert [word for word in words if word not in named] == []


def test_tasks_are_records() -> None:
    (task, *_) = parse_sweep(SMALLEST).tasks()
    assert isinstance(task, MeanTask)
    assert hash(task) == hash(dataclasses.replace(task))
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.seed = 3


def test_combinations_are_counted_before_they_are_made() -> None:
    numbers = list(range(2000))
    block = {"name": "distributed-discrete-gaussian", "bits": numbers, "rotation_seed": numbers}
    with pytest.raises(ValueError, match=r"number 1: number of combinations must be a whole number from 1 to 1000000, got 4000000"):
        parse_sweep({**SMALLEST, "mechanism": [block]})
