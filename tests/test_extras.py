"""Each missing package of an extra is an error that names the extra.

The core works without any of the extras' packages.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

import quietbits
from quietbits.extras import EXTRAS, IMPORTED, optional, require

ROOT = Path(quietbits.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Packages whose distributions have other names.
DISTRIBUTIONS = {"sklearn": "scikit-learn"}
TABLE = "design mvu --epsilon 2 --bits-in 2 --bits-out 1 --output table.json"
# Commands of the core, in their order: the first makes the table for the others.
CORE = [
    TABLE,
    "verify table.json",
    "deploy table.json --name value --output deployed",
    *(f"export table.json --format {kind} --output table.{kind}" for kind in ("npz", "csv")),
    "plan --clients 100 --dimension 4 --epsilon 2 --delta 1e-5 --adjacency replace-one --output plan.html",
    "plan --clients 100 --epsilon 2 --adjacency replace-one --trust local --bits 1 --check --output plan.csv",
    "account table table.json --delta 1e-5 --rounds 10",
    "account gaussian --noise-multiplier 2 --delta 1e-5 --rounds 3 --plot account.svg",
    "calibrate gaussian --epsilon 1 --delta 1e-5",
    "calibrate vector --epsilon 4 --delta 1e-5 --dimension 4 --norm 2 --bits-in 2 --bits-out 1 --metric l1 --output vector.json",
    "simulate cldp,gaussian --clients 100 --dimension 4 --epsilon 1 --delta 1e-5 --adjacency replace-one",
    "audit table table.json --repetitions 1000",
    "mechanisms cpsgd",
]
# Commands that need an extra, with the package that is missing and the extra.
NEEDY = [
    ("export table.json --format parquet --output t.parquet", "pyarrow", "experiments"),
    ("estimate mean --data people.csv --column age --interval 0 100 --epsilon 1", "pyarrow", "experiments"),
    ("estimate frequencies --data people.csv --column age --mechanism subset-selection", "pyarrow", "experiments"),
    ("demo --output demo", "pyarrow", "experiments"),
    ("sweep people.csv --output swept", "pyarrow", "experiments"),
    ("train people.csv --output trained", "pyarrow", "experiments"),
    ("design grid people.csv --output tables", "pyarrow", "experiments"),
    ("reproduce binomial-slack --output figures", "pyarrow", "experiments"),
    ("simulate gaussian --clients 10 --dimension 650 --epsilon 1 --delta 1e-5 --population digits-gradients", "sklearn", "experiments"),
]
# Program that hides packages as if they were not installed. An entry None in `sys.modules` would not suffice, since scipy looks there for
# torch.
HIDE = """
import json
import sys

packages, commands = json.loads(sys.argv[1])
finders = list(sys.meta_path)


class Hiding:
    def find_spec(self, name, *where):
        if name.partition(".")[0] in packages:
            return None
        return next((spec for finder in finders if (spec := finder.find_spec(name, *where)) is not None), None)

    def find_distributions(self, *context):
        return [metadata for finder in finders if hasattr(finder, "find_distributions") for metadata in finder.find_distributions(*context)]


sys.meta_path[:] = [Hiding()]
"""
# Program that runs commands of `quietbits`, one after the other.
RUN = f"""{HIDE}
import io
from contextlib import redirect_stderr, redirect_stdout

from quietbits.cli.main import app

for command in commands:
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as complaint:
        try:
            app(command.split())
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, complaint.getvalue()]))
"""


def python_without(packages: Iterable[str], source: str, commands: Iterable[str] = (), folder: Path | None = None) -> str:
    """Run source code in a process without some packages, and return its output.

    If the process fails, return the last line of its traceback.
    """
    arguments = json.dumps([list(packages), list(commands)])
    run = subprocess.run([sys.executable, "-c", source, arguments], cwd=folder, capture_output=True, text=True, check=False)
    return run.stdout if run.returncode == 0 else run.stderr.splitlines()[-1]


def results_without(packages: Iterable[str], commands: Iterable[str], folder: Path) -> list[tuple[int, str]]:
    """Return each command's exit code and error message, in a process without some packages."""
    (folder / "people.csv").write_text("age\n" + "".join(f"{age}\n" for age in range(20, 90)))
    return [tuple(json.loads(line)) for line in python_without(packages, RUN, commands, folder).splitlines()]


def bounds_of(extra: str) -> set[str]:
    """Return the requirements of an extra and of the extras that it names."""
    bounds = set(PROJECT["optional-dependencies"][extra])
    named = {name for bound in bounds if (match := re.fullmatch(r"quietbits\[(.*)\]", bound)) for name in match[1].split(",")}
    return {bound for bound in bounds if not bound.startswith("quietbits[")}.union(*map(bounds_of, named))


def test_extras_are_those_of_the_project_and_none_is_a_dependency() -> None:
    for package, extra in EXTRAS.items():
        name = DISTRIBUTIONS.get(package, package)
        assert [bound for bound in PROJECT["optional-dependencies"][extra] if bound.startswith(f"{name}>=")], package
        assert [bound for bound in PROJECT["dependencies"] if bound.startswith(f"{name}>=")] == []


def test_the_checkout_installs_what_the_demo_and_the_tests_need() -> None:
    for extra in set(EXTRAS.values()) - {"torch"}:
        assert bounds_of(extra) <= bounds_of("dev"), extra


def test_commands_of_the_core_need_no_extra(tmp_path: Path) -> None:
    results = results_without(EXTRAS, CORE, tmp_path)
    assert [(command, complaint) for command, (code, complaint) in zip(CORE, results, strict=True) if code] == []
    assert {path.name for path in tmp_path.iterdir()} > {"table.json", "table.npz", "plan.html", "plan.csv", "account.svg", "vector.json"}


def test_encoding_and_decoding_need_no_extra() -> None:
    # The mechanisms are a table, noise in a secure sum, and a sketch whose decoder solves a Lasso problem without a matrix.
    source = f"""{HIDE}
import numpy as np
import quietbits
table = quietbits.design_mvu(2.0, 2, 1)
assert table.decode(table.encode(np.full(9, 0.5), quietbits.secure_words)).shape == (9,)
ball = quietbits.NormBall(64, 2.0)
task = quietbits.Task(ball, clients=9, epsilon=2.0, delta=1e-5, adjacency="add-or-remove-one")
for name, options in (("distributed-skellam", {{"bits": 16}}), ("sparse-discrete-gaussian", {{"bits": 16, "sparsity": 2}})):
    mechanism = quietbits.build_mechanism(name, task, options)
    messages = mechanism.encode(np.eye(9, 64), quietbits.secure_words)
    assert mechanism.decode(mechanism.aggregate(messages), 9).shape == (64,)
"""
    assert python_without(EXTRAS, source) == ""


def test_a_command_without_its_extra_is_one_line_that_names_it(tmp_path: Path) -> None:
    commands = [TABLE, *(command for command, _, _ in NEEDY)]
    results = results_without(EXTRAS, commands, tmp_path)[1:]
    for (command, package, extra), (code, complaint) in zip(NEEDY, results, strict=True):
        assert code == 2, (command, complaint)
        assert complaint.startswith(f"quietbits: {package} must be installed for "), command
        assert complaint.endswith(f", got none: pip install 'quietbits[{extra}]'\n"), command
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv", "table.json"]


# Modules that import an optional package, and calls that need an optional package.
IMPORTS = {
    "pyarrow": "from quietbits.analysis.sweeps.run import run_tasks",
    "flwr": "import quietbits.analysis.federation.strategy",
    "pytest": "import quietbits.analysis.conformance",
    "torch": "import quietbits.analysis.training.models.torch_models",
    "sklearn": "from quietbits.analysis.simulation.digit_gradients import digits; digits()",
    "distributed": "from quietbits.analysis.sweeps.run import check_workers; check_workers(1, 'tcp://127.0.0.1:8786')",
    "h5py": "from pathlib import Path; import quietbits.analysis.datasets.stackoverflow as posts; posts._h5_users(Path('a')).__enter__()",
}


@pytest.mark.parametrize("package", EXTRAS)
def test_each_missing_package_names_its_extra(package: str) -> None:
    last = python_without([package], HIDE + IMPORTS[package])
    assert last.startswith(f"quietbits.errors.MissingExtraError: {package} must be installed for ")
    assert last.endswith(f", got none: pip install 'quietbits[{EXTRAS[package]}]'")


def test_a_public_name_without_its_extra_is_an_import_error_that_names_it() -> None:
    last = python_without(["pyarrow"], f"{HIDE}import quietbits; quietbits.run_sweep")
    assert last.endswith("pip install 'quietbits[experiments]'")
    assert issubclass(quietbits.MissingExtraError, ImportError)


def test_the_listed_names_are_those_that_can_be_loaded() -> None:
    source = f"""{HIDE}
import pydoc
import quietbits
for name in dir(quietbits):
    getattr(quietbits, name)
print(len(pydoc.render_doc(quietbits).splitlines()), *dir(quietbits))
"""
    lines, *core = python_without(EXTRAS, source).split()
    assert int(lines) < 80
    assert set(core) < set(dir(quietbits))
    assert {"design_mvu", "plan", "account", "build_mechanism", "secure_words"} <= set(core)
    assert {"run_sweep", "run_training", "study_mean"}.isdisjoint(core)
    # Packages that are imported at their use hide no name.
    _, *others = python_without(set(EXTRAS) - set(IMPORTED), source).split()
    assert set(others) == set(dir(quietbits))


def test_another_failed_import_passes_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "json.tool", None)
    with pytest.raises(ModuleNotFoundError, match=r"json\.tool") as caught, optional("torch", "models"):
        import json.tool  # noqa: F401
    assert not isinstance(caught.value, quietbits.MissingExtraError)
    require("json")


def test_a_missing_package_of_a_solver_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    for name in [name for name in sys.modules if name.startswith("sklearn.")]:
        monkeypatch.delitem(sys.modules, name)
    solve: Callable[..., object] = quietbits.solve_lasso
    with pytest.raises(quietbits.MissingExtraError, match=r"^sklearn must be installed for the solver coordinate-descent, got none: "):
        solve(np.eye(3), np.ones(3), 0.1)
    solve(np.eye(3), np.ones(3), 0.1, solver="fista")
