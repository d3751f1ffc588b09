"""Mechanisms of plug-in packages and scripts appear in registry, commands and results."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quietbits.analysis.catalogue.plug_ins import InstalledPlugIns, Registry, script_of
from quietbits.analysis.catalogue.registry import BUILT_IN, NOISE, REGISTRY, accounted_names, entry_named
from quietbits.analysis.planner.plan import plan_task
from quietbits.analysis.sweeps.spec import parse_sweep
from quietbits.analysis.sweeps.task import MeanTask, MechanismChoice
from quietbits.analysis.training.baselines import training_entry
from quietbits.analysis.training.task import TrainedMechanism
from quietbits.cli.main import app
from quietbits.design.contracts.domains import Interval
from quietbits.design.contracts.registry import Option
from quietbits.design.contracts.task import Task
from quietbits.errors import DataError, PlugInError

NUMBERS = Task(Interval(0.0, 1.0), 100, 1.0, 0.0, "replace-one")
# The plug-in copies a mechanism of quietbits under another name, with an option that has a column's name.
COPY = """
from dataclasses import replace
from quietbits import REGISTRY
from quietbits.design.contracts.registry import Option

OPTIONS = Option("clients", int, "Unused.", 5, 1, 9), Option("own", float, "Unused.", 0.5)


def build(task, options):
    return REGISTRY["cldp"].build(task, {"draws": 1})


ENTRY = replace(REGISTRY["cldp"], name="NAME", options=OPTIONS, build=build)
"""
Install = Callable[..., None]


def copy_of(name: str) -> str:
    """Return the source text of the module of a plug-in that copies a mechanism."""
    return COPY.replace("NAME", name)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Install:
    """Return a function that installs a package with given entry points for this test."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def installed(distribution: str, module: str, text: str, *points: str, version: str = "1.0") -> None:
        (tmp_path / f"{module}.py").write_text(text)
        about = tmp_path / f"{distribution}.dist-info"
        about.mkdir(exist_ok=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (about / "entry_points.txt").write_text("\n".join(["[quietbits.mechanisms]", *points]))
        monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.setattr(REGISTRY, "_installed", InstalledPlugIns({*BUILT_IN, *NOISE}))

    return installed


def test_an_installed_mechanism_is_listed_and_imported_when_it_is_asked_for(install: Install) -> None:
    install("copies", "copies_module", copy_of("copy"), "copy = copies_module:ENTRY", version="2.5")
    assert list(REGISTRY)[-1] == "copy"
    assert "copy" in accounted_names()
    assert len(REGISTRY) == len(BUILT_IN) + 1
    assert "copies_module" not in sys.modules
    assert REGISTRY.provider("copy") == "copies 2.5"
    assert entry_named("copy").name == "copy"
    assert REGISTRY.provider("cldp") is None
    document = json.loads(CliRunner().invoke(app, ["mechanisms", "copy", "--json"]).stdout)
    assert document["mechanisms"][0]["provider"] == "copies 2.5"
    assert training_entry("copy").name == "copy"
    assert TrainedMechanism("copy").provider == "copies 2.5"


def test_a_mechanism_that_cannot_be_built_stops_no_plan(install: Install) -> None:
    faulty = copy_of("faulty") + "\nENTRY = replace(ENTRY, build=lambda task, options: None)\n"
    install("copies", "faulty_module", faulty, "faulty = faulty_module:ENTRY")
    plan = plan_task(Task(Interval(), 10, 1.0, 0.0, "replace-one"), trust="local", timed=False)
    assert "bitwise-randomised-response" in {mechanism.name for mechanism in plan.feasible}
    reason = plan.named("faulty").reason
    assert reason is not None
    assert reason.startswith("mechanism must be built without a fault, got AttributeError: ")
    assert reason.endswith("repair or uninstall copies 1.0")


@pytest.mark.parametrize(
    ("point", "text", "message"),
    [
        ("bad = bad_module:ENTRY", "1 / 0", r"mechanism must be importable, got 'bad' by faulty 1.0, which raised ZeroDivisionError"),
        ("bad = no_such_module:ENTRY", "", "mechanism must be importable, got 'bad' by faulty 1.0, which raised ModuleNotFoundError"),
        ("bad = bad_module:ENTRY", "", "mechanism must be importable, got 'bad' by faulty 1.0, which raised AttributeError"),
        ("bad = bad_module:ENTRY", "ENTRY = 3", "must be a quietbits.Entry, got an object of type int for 'bad' by faulty 1.0"),
        (
            "bad = bad_module:ENTRY",
            copy_of("good"),
            "must have the name of its entry point, 'bad', got an Entry named 'good' by faulty 1.0",
        ),
        (
            "laplace = bad_module:ENTRY",
            copy_of("laplace"),
            "must not have a name of quietbits itself, got 'laplace' by faulty 1.0",
        ),
        ("table = bad_module:ENTRY", copy_of("table"), "must not have a name of quietbits itself, got 'table' by faulty 1.0"),
    ],
)
def test_a_package_at_fault_is_named_and_stops_no_other_mechanism(
    install: Install, monkeypatch: pytest.MonkeyPatch, point: str, text: str, message: str
) -> None:
    install("faulty", "bad_module", text, point)
    name = point.partition(" ")[0]
    with pytest.raises(PlugInError, match=message):
        entry_named(name)
    others = [entry.name for entry in REGISTRY.values()]
    assert others == [other for other in BUILT_IN if other != name]
    refused = CliRunner().invoke(app, f"simulate {name} --clients 10 --epsilon 1".split())
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "faulty 1.0" in refused.stderr
    monkeypatch.setattr(REGISTRY, "_warned", set())
    listed = CliRunner().invoke(app, ["mechanisms"])
    assert listed.exit_code == 0
    assert "bitwise-randomised-response" in listed.stdout
    assert "faulty 1.0" in listed.stderr
    assert "until then it is left out" in listed.stderr
    for typed in ("mechanisms cldp", "account cldp --epsilon 1", "calibrate cldp --epsilon 1", "simulate cldp --clients 10 --epsilon 1"):
        assert CliRunner().invoke(app, typed.split()).exit_code == 0, typed
    assert parse_sweep({"population": "uniform", "clients": 5, "epsilon": 1, "delta": 0, "interval": [0, 1], "adjacency": "replace-one",
                        "mechanism": [{"name": "cldp"}]}).mechanism  # fmt: skip
    assert training_entry("cldp").name == "cldp"


def test_a_name_that_two_packages_offer_is_refused(install: Install) -> None:
    for distribution, version in (("first", "1.0"), ("second", "3.0")):
        install(distribution, "copies_module", copy_of("copy"), "copy = copies_module:ENTRY", version=version)
    with pytest.raises(PlugInError, match=r"one package only, got 'copy' by first 1.0 and second 3.0: uninstall one of them"):
        entry_named("copy")
    assert entry_named("cldp").name == "cldp"


def test_keys_and_rows_name_the_provider_and_its_version(install: Install) -> None:
    def task(name: str) -> MeanTask:
        return MeanTask(MechanismChoice(name), NUMBERS, "uniform")

    names, values = [], []
    for version in ("1.0", "2.0"):
        install("copies", "copies_module", copy_of("copy"), "copy = copies_module:ENTRY", version=version)
        names.append(task("copy").name)
        rows = task("copy").run(task("copy").prepare(None))
        assert {row["version_mechanism"] for row in rows} == {f"copies {version}"}
        assert (rows[0]["clients"], rows[0]["option_clients"], rows[0]["own"]) == (100, 5, 0.5)
        values.append(rows[0]["value"])
        # Only the plug-in's own rows have its columns.
        other = task("cldp").run(task("cldp").prepare(None))[0]
        assert {"own", "option_clients", "version_mechanism"}.isdisjoint(other)
    assert names[0] != names[1]
    assert "copies 1.0" in names[0]
    # Both versions of the plug-in use the same draws.
    assert values[0] == values[1]
    assert json.loads(task("cldp").name).keys() == {"clients", "design", "nonzero", "population", "repetition", "scale"}


def test_another_provider_elsewhere_is_refused(install: Install) -> None:
    install("copies", "copies_module", copy_of("copy"), "copy = copies_module:ENTRY")
    choice = MechanismChoice("copy")
    install("copies", "copies_module", copy_of("copy"), "other = copies_module:ENTRY")
    with pytest.raises(DataError, match=r"mechanism copy must be that of copies 1\.0 wherever the work is done, got none: install"):
        choice.build(NUMBERS)
    with pytest.raises(DataError, match=r"mechanism cldp must be that of copies 1\.0 .*, got that of quietbits: install"):
        REGISTRY.provided("cldp", "copies 1.0")


DESIGNING = """
from dataclasses import replace
from pathlib import Path
from quietbits import REGISTRY
from quietbits.design.contracts.registry import Option


def build(task, options):
    options["cache"].mkdir(parents=True)
    return REGISTRY["cldp"].build(task, {"draws": 1})


CACHE = Option("cache", Path, "Folder of designed tables; by default the usual one.", None)
ENTRY = replace(REGISTRY["cldp"], name="designing", options=(CACHE,), build=build)
"""


def test_tables_of_each_version_have_a_folder_of_their_own(install: Install, tmp_path: Path) -> None:
    install("tables", "tables_module", DESIGNING, "designing = tables_module:ENTRY")
    MechanismChoice("designing").build(NUMBERS, tmp_path / "cache")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["tables-1.0"]


# Tests of scripts


def test_a_script_registers_replaces_and_removes_entries() -> None:
    registry = Registry(BUILT_IN, reserved=NOISE)
    own = replace(BUILT_IN["cldp"], name="own")
    registry["own"] = own
    assert (registry["own"], list(registry)[-1], len(registry)) == (own, "own", len(BUILT_IN) + 1)
    changed = replace(BUILT_IN["laplace"], title="Changed")
    registry["laplace"] = changed
    assert registry["laplace"] is changed
    assert registry.provider("laplace") is not None
    registry["laplace"] = BUILT_IN["laplace"]
    assert registry.provider("laplace") is None
    del registry["own"]
    assert "own" not in registry
    with pytest.raises(KeyError):
        del registry["cldp"]


def test_what_is_no_entry_or_has_another_name_is_not_registered() -> None:
    registry = Registry(BUILT_IN, reserved=NOISE)
    with pytest.raises(ValueError, match=r"must be registered as a quietbits\.Entry, got 3"):
        registry["three"] = 3  # type: ignore[assignment]
    with pytest.raises(ValueError, match="by the name of its entry, 'cldp', not a reserved one, got 'other'"):
        registry["other"] = BUILT_IN["cldp"]
    with pytest.raises(ValueError, match="not a reserved one, got 'table'"):
        registry["table"] = replace(BUILT_IN["cldp"], name="table")


@pytest.mark.parametrize("name", ["", " ", "-h", "two\nlines"])
def test_a_name_that_no_command_can_take_is_not_registered(name: str) -> None:
    with pytest.raises(ValueError, match="a mechanism's name must have printable characters and no hyphen in front, got "):
        REGISTRY[name] = replace(REGISTRY["cldp"], name=name)
    assert name not in REGISTRY


def test_a_script_is_named_with_a_digest_of_its_file() -> None:
    def build(*_: object) -> None:
        """Build nothing: a stand-in for a script's function."""

    named = script_of(replace(BUILT_IN["cldp"], build=build))
    assert named.startswith(f"{__name__} (sha256 ")
    build.__module__ = "no_such_module"
    assert script_of(replace(BUILT_IN["cldp"], build=build)) == "no_such_module"


def test_entries_travel_by_value_and_replace_those_that_came_before() -> None:
    here, there = Registry(BUILT_IN), Registry(BUILT_IN)
    assert here.packed() == b""
    here["own"] = replace(BUILT_IN["cldp"], name="own", options=(Option("width", int, "Unused.", 3),))
    there.adopt(here.packed())
    assert there["own"].options == here["own"].options
    assert there.provided("own", here.provider("own")).name == "own"
    there.adopt(b"")
    assert "own" not in there


SCRIPT = """
import sys
from pathlib import Path

import pandas as pd
from quietbits import REGISTRY, Interval, Task
from quietbits.analysis.planner.plan import plan_task
from quietbits.analysis.sweeps.run import run_tasks
from quietbits.analysis.sweeps.task import MeanTask, MechanismChoice
from quietbits.analysis.training.run import run_training
from quietbits.analysis.training.spec import parse_training
from own_mechanism import ENTRY, OwnMechanism

REGISTRY["own"] = ENTRY
TRAINING = {"clients": 20, "clients_per_round": 5, "rounds": 2, "delta": 1e-5, "adjacency": "replace-one", "seed": [0, 1],
            "mechanism": [{"name": "none"}, {"name": "own", "epsilon": 2.0}]}

if __name__ == "__main__":
    task = Task(Interval(0.0, 1.0), 50, 1.0, 0.0, "replace-one")
    plan = plan_task(task, trust="local", timed=False, workers=2)
    (own,) = (planned for planned in plan.mechanisms if planned.name == "own")
    assert own.feasible and type(own.mechanism) is OwnMechanism, own
    tasks = [MeanTask(MechanismChoice(name), task, "uniform", repetition=number) for name in ("own", "cldp") for number in range(2)]
    one, two = (run_tasks(tasks, Path(f"workers-{workers}"), workers=workers) for workers in (1, 2))
    pd.testing.assert_frame_equal(one, two)
    assert one["version_mechanism"].dropna().unique()[0].startswith("own_mechanism (sha256 ")
    trained = pd.read_parquet(run_training(parse_training(TRAINING), Path("trained"), workers=2))
    assert trained["version_mechanism"].dropna().unique()[0].startswith("own_mechanism (sha256 ")
    assert trained["mechanism"].value_counts().to_dict() == {"own": 4, "none": 4}
    print("done")
"""
OWN = """
from dataclasses import replace
from quietbits import REGISTRY, Interval
from quietbits.design.local.cldp import CLDPMechanism


class OwnMechanism(CLDPMechanism):
    pass


def build(task, options):
    if isinstance(task.domain, Interval):
        return OwnMechanism(task.epsilon / task.rounds, task.interval("own"))
    return REGISTRY["cldp"].build(task, {"draws": 1})


ENTRY = replace(REGISTRY["cldp"], name="own", options=(), build=build)
"""


def test_plans_sweeps_and_trainings_of_a_script_have_its_mechanism_with_two_workers(tmp_path: Path) -> None:
    (tmp_path / "own_mechanism.py").write_text(OWN)
    (tmp_path / "script.py").write_text(SCRIPT)
    run = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (run.stdout, run.returncode) == ("done\n", 0), run.stderr
