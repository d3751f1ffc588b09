"""A command or a public name loads only the slow packages that it needs."""

import json
import subprocess
import sys
from pathlib import Path

# Each of these takes a tenth of a second or more to load. `import scipy` alone loads none of its parts; using `scipy.special` loads it.
SCIPY = {"scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats"}
HEAVY = {"cvxpy", "dp_accounting", "joblib", "jsonschema", "matplotlib", "numpy", "pandas", "pyarrow", *SCIPY}
# Packages that only a figure or one solver needs.
SPECIAL = {"cvxpy", "matplotlib"}
# Packages that listing and describing all mechanisms does not need.
UNUSUAL = HEAVY - {"numpy"}
# scipy 1.18 loads scipy.linalg with scipy.special.
SCIPY_SPECIAL = {"scipy.special", "scipy.linalg"}

# The order matters, because modules of one process accumulate. Each command loads no package of its set. The second command makes the table
# for the others.
COMMANDS = [
    ("--help", HEAVY),
    ("design mvu --epsilon 1 --bits-in 1 --bits-out 1 --output table.json", UNUSUAL),
    ("mechanisms", UNUSUAL),
    ("account gaussian --help", UNUSUAL),
    ("account cldp --epsilon 1", UNUSUAL),
    ("verify table.json", UNUSUAL - {"jsonschema"}),
    ("export table.json --format npz --output table.npz", UNUSUAL - {"jsonschema"}),
    ("account table table.json --delta 1e-5", UNUSUAL - {"jsonschema"}),
    ("account shuffled table.json --clients 1000 --delta 1e-5", UNUSUAL - {"jsonschema"}),
    ("account shuffled-randomised-response --epsilon 1 --clients 1000 --delta 1e-5", UNUSUAL - {"jsonschema"}),
    ("account laplace --epsilon 1 --delta 1e-5", UNUSUAL - {"jsonschema"}),
    ("account gaussian --noise-multiplier 2 --delta 1e-5", UNUSUAL - {"jsonschema"} - SCIPY_SPECIAL),
    ("calibrate gaussian --epsilon 1 --delta 1e-5", UNUSUAL - {"jsonschema"} - SCIPY_SPECIAL),
    ("account table table.json --delta 1e-5 --rounds 10", SPECIAL | {"joblib", "pandas", "pyarrow"}),
    ("estimate mean --data people.csv --column age --interval 0 100 --epsilon 3 --bits-in 2 --bits-out 1", SPECIAL),
]

RUN_COMMANDS = """
import json
import sys
from contextlib import redirect_stdout

from quietbits.cli.main import app

commands, heavy = json.loads(sys.argv[1])
for command in commands:
    with redirect_stdout(sys.stderr):
        code = app(command.split(), standalone_mode=False)
    assert not code, (command, code)
    print(json.dumps([name for name in heavy if name in sys.modules]))
"""


def loaded(*statements: str) -> list[set[str]]:
    """Return the heavy modules in a new process after each of these statements."""
    probe = "\n".join(["import sys", *(f"{statement}\nprint(*({HEAVY} & set(sys.modules)))" for statement in statements)])
    lines = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout.splitlines()
    return [set(line.split()) for line in lines]


# The order matters, as for the commands: each statement may load its set, and earlier statements need no more packages.
STATEMENTS = [
    ("import quietbits", set()),
    ("import quietbits.cli.main", set()),
    ("import quietbits.figures.drawing.directed_rounding", set()),
    ("quietbits.verify_file, quietbits.write_table, quietbits.export_table", {"numpy"}),
    ("quietbits.design_mvu", {"numpy"}),
    ("quietbits.RenyiCurve, quietbits.renyi_matrix", {"numpy"}),
    ("import quietbits.analysis.catalogue.registry", {"numpy"}),
    # The statements include write_report, which loads matplotlib only when it draws.
    ("[getattr(quietbits, name) for name in dir(quietbits)]", HEAVY - SPECIAL - {"dp_accounting", "scipy.optimize", "scipy.stats"}),
]


# Special packages are loaded by the statements that need them, and not earlier.
NEEDY = [
    ("import quietbits.figures.drawing.style", {"matplotlib"}),
    ("quietbits.design_mvu(1, 1, 1, solver='alternating', starts=1)", {"matplotlib", "cvxpy"}),
]


def test_importing_loads_nothing_heavy_that_is_not_needed() -> None:
    result = loaded(*(statements for statements, _ in STATEMENTS + NEEDY))
    for (statements, needed), there in zip(STATEMENTS, result, strict=False):
        assert there <= needed, statements
    for (statements, special), there in zip(NEEDY, result[len(STATEMENTS) :], strict=True):
        assert there & SPECIAL == special, statements


def test_commands_load_nothing_heavy_that_they_do_not_need(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age\n" + "".join(f"{age}\n" for age in range(20, 90)))
    arguments = json.dumps([[command for command, _ in COMMANDS], sorted(HEAVY)])
    run = subprocess.run([sys.executable, "-c", RUN_COMMANDS, arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    for (command, unneeded), line in zip(COMMANDS, run.stdout.splitlines(), strict=True):
        assert unneeded & set(json.loads(line)) == set(), command


def test_one_mechanism_loads_its_own_file_alone() -> None:
    probe = (
        "import sys; from quietbits.analysis.catalogue.registry import REGISTRY as known; "
        "assert 'cpsgd' in known; known['cldp']; print(*sys.modules)"
    )
    modules = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout.split()
    files = {name.rpartition(".")[2] for name in modules if name.startswith("quietbits.analysis.catalogue.")}
    assert "local" in files
    assert not files & {"tables", "linear_compression", "frequency_sums", "shuffled"}
