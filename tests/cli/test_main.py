"""Tests of the command line.

Points under test: arguments, answers, and one-line errors with exit code 2 and no output file.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from quietbits import version
from quietbits.cli.main import app
from quietbits.design.tables.file import read_table, write_table
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.figures.drawing import save

HEAVY = {
    *("numpy", "scipy", "pandas", "pyarrow", "matplotlib", "jinja2", "jsonschema"),
    *("sklearn", "highspy", "cvxpy", "joblib", "dp_accounting"),
}
DESIGN = ["design", "mvu", "--epsilon", "2", "--bits-in", "2", "--bits-out", "1"]


def typed(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `quietbits` in a new process."""
    return subprocess.run(
        [sys.executable, "-m", "quietbits", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def run(*arguments: object) -> Result:
    """Run `quietbits` in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def people(folder: Path) -> Path:
    path = folder / "people.csv"
    ages = np.random.default_rng(1).integers(18, 95, 500)
    path.write_text("age,name\n" + "".join(f"{age},x\n" for age in ages))
    return path


@pytest.fixture(scope="module")
def table_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("table") / "table.json"
    result = run(*DESIGN, "--output", path)
    assert result.exit_code == 0, result.output
    return path.read_bytes()


@pytest.fixture
def table(folder: Path, table_bytes: bytes) -> Path:
    path = folder / "table.json"
    path.write_bytes(table_bytes)
    return path


def fault(result: Result | subprocess.CompletedProcess[str]) -> str:
    """Return the one line that a fault printed."""
    code = result.exit_code if isinstance(result, Result) else result.returncode
    assert code == 2, result.stderr
    assert result.stdout == ""
    assert result.stderr.startswith("quietbits: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("quietbits: ").rstrip("\n")


# Tests of help, version and completion


# A separate process runs a list of commands one after the other, so modules that a command loads stay loaded.
PROBE = """
import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout

from quietbits.cli.main import app

for arguments in json.loads(sys.argv[1]):
    with redirect_stdout(io.StringIO()) as shown, redirect_stderr(io.StringIO()) as complaint:
        try:
            app(arguments)
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, shown.getvalue(), complaint.getvalue(), sorted(sys.modules)]))
"""


def probed(*commands: str) -> list[tuple[int, str, str, set[str]]]:
    """Return each command's exit code, output and errors, and the modules loaded after it."""
    typed = json.dumps([command.split() for command in commands])
    lines = subprocess.run([sys.executable, "-c", PROBE, typed], capture_output=True, text=True, check=True).stdout.splitlines()
    return [(code, shown, complaint, set(loaded)) for code, shown, complaint, loaded in map(json.loads, lines)]


def test_help_imports_nothing_heavy() -> None:
    light = ["", "design mvu", "estimate mean", "verify", "export", "demo", "sweep", "reproduce"]
    from_the_registry = ["account vector", "calibrate gaussian", "simulate cpsgd", "audit", "mechanisms"]
    result = probed(*(f"{command} --help" for command in light + from_the_registry))
    for command, (code, shown, _, loaded) in zip(light + from_the_registry, result, strict=True):
        assert (code, "Usage" in shown) == (0, True), command
        # The registry itself needs these packages.
        assert (HEAVY if command in light else HEAVY - {"numpy", "scipy", "highspy"}) & loaded == set(), command


def test_an_example_and_a_missing_file_load_nothing_heavy() -> None:
    commands = ["sweep", "train", "design grid"]
    for code, shown, complaint, loaded in probed(*(f"{command} none.toml --output x" for command in commands)):
        assert (code, shown, complaint) == (2, "", "quietbits: none.toml: No such file or directory\n")
        assert HEAVY & loaded == set()
    for code, shown, _, loaded in probed(*(f"{command} --example" for command in commands)):
        assert (code, shown[:2]) == (0, "# ")
        assert HEAVY & loaded == set()


def test_help_lists_the_commands() -> None:
    shown = run("--help").stdout
    for command in (
        "design",
        "verify",
        "export",
        "estimate",
        "account",
        "calibrate",
        "sweep",
        "demo",
        "reproduce",
        "--version",
        "--install-completion",
    ):
        assert command in shown


@pytest.mark.parametrize(("command", "help_text"), [("verify", "Lookup table, as JSON"), ("mechanisms", "One mechanism, in full.")])
def test_help_describes_arguments(command: str, help_text: str) -> None:
    assert help_text in run(command, "--help").stdout


def test_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "__version__", "1.2.3")
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, "quietbits 1.2.3\n")


def test_shell_completion(folder: Path) -> None:
    result = typed(folder=folder, _QUIETBITS_COMPLETE="complete_bash", COMP_WORDS="quietbits de", COMP_CWORD="1")
    assert set(result.stdout.split()) == {"decode", "demo", "deploy", "design"}


# Tests of design mvu


def test_design_writes_a_table_that_verifies(folder: Path) -> None:
    result = typed(*DESIGN, "--bits-out", "2", "--seed", "5", "--interval", "-1", "1", "--output", "t.json", folder=folder)
    assert result.returncode == 0, result.stderr
    table = read_table(folder / "t.json")
    assert (table.epsilon, table.bits_in, table.bits_out, table.interval, table.provenance.seed) == (2.0, 2, 2, (-1.0, 1.0), 5)
    for part in ("realised epsilon", "mean variance", "lower bound", "gaps", "replace-one", "written to t.json"):
        assert part in result.stdout


def test_design_without_output_writes_nothing(folder: Path) -> None:
    result = run(*DESIGN, "--metric", "l1", "--objective", "worst")
    assert result.exit_code == 0
    assert "worst" in result.stdout
    assert "not written" in result.stdout
    assert list(folder.iterdir()) == []


def test_design_with_the_prior_of_a_column(people: Path, folder: Path) -> None:
    prior = ["--objective", "prior", "--prior-data", people, "--prior-column", "age", "--interval", 0, 120]
    result = run(*DESIGN, *prior, "--output", "t.json")
    assert result.exit_code == 0, result.stderr
    table = read_table(folder / "t.json")
    assert table.certificate.objective == "prior"
    assert table.prior is not None
    assert "WARNING" not in result.stderr
    narrow = run(*DESIGN, *prior[:-1], 18)
    assert "WARNING: 497 of 500 values of the prior lie outside [0, 18] and count as its nearer end" in narrow.stderr
    # The prior has the mean age, which dithering preserves.
    ages = np.loadtxt(people, delimiter=",", skiprows=1, usecols=0)
    assert np.dot(table.prior, [0, 40, 80, 120]) == pytest.approx(ages.mean())


def test_no_metric_can_be_typed(folder: Path) -> None:
    for metric, name in (("none", "typed.json"), (None, "left-out.json")):
        assert run(*DESIGN, "--bits-out", 1, *(() if metric is None else ("--metric", metric)), "--output", name).exit_code == 0
    assert (folder / "typed.json").read_text() == (folder / "left-out.json").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--epsilon", "0"], "epsilon must be a number from 0.001 to 20, got 0.0"),
        (["--epsilon", "nan"], "epsilon must be a number from 0.001 to 20, got nan"),
        (["--bits-in", "10"], "bits_in must be a whole number from 1 to 9, got 10"),
        (["--bits-out", "0"], "bits_out must be a whole number from 1 to 9, got 0"),
        (["--metric", "None"], "metric must be none, l1, l2 or l<p> with a finite p >= 1, got 'None'"),
        (["--metric", "cosine"], "metric must be none, l1, l2 or l<p> with a finite p >= 1, got 'cosine'"),
        (["--interval", "1", "0"], "interval must be two finite numbers with low < high, got (1.0, 0.0)"),
        (["--objective", "prior"], "prior_data must be given with the objective prior"),
        (["--prior-data", "x.csv"], "prior_data must be given with the objective prior"),
        (["--objective", "prior", "--prior-data", "x.csv"], "x.csv: there is no such file"),
        (["--output", "nowhere/t.json"], "nowhere: there is no such folder"),
    ],
)
def test_a_bad_design_is_one_line(folder: Path, changes: list[str], message: str) -> None:
    result = run(*DESIGN, "--output", "t.json", *changes)
    assert fault(result).startswith(message)
    assert list(folder.iterdir()) == []


def test_a_mistyped_option_is_refused(folder: Path) -> None:
    result = typed(*DESIGN, "--solver", "magic", "--output", "t.json", folder=folder)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert "magic" in result.stderr
    assert list(folder.iterdir()) == []


# Tests of verify and export


def test_verify_prints_the_certificate(table: Path) -> None:
    result = run("verify", table)
    assert result.exit_code == 0
    assert "verified" in result.stdout
    assert repr(read_table(table).certificate.realised_epsilon) in result.stdout


def test_verify_for_machines(table: Path) -> None:
    document = json.loads(run("verify", table, "--json").stdout)
    assert document["verified"] is True
    assert document["certificate"] == json.loads(table.read_text())["certificate"]


def test_verify_says_which_check_failed_and_by_how_much(table: Path, folder: Path) -> None:
    document = json.loads(table.read_text())
    document["weights"][0][0] = str(int(document["weights"][0][0]) + 1)
    table.write_text(json.dumps(document))
    result = typed("verify", "table.json", folder=folder)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith("quietbits: table.json: refused: checksum: the file was changed")
    assert result.stderr.count("\n") == 1
    result = run("verify", table, "--json")
    assert result.exit_code == 1
    refusal = json.loads(result.stdout)
    assert (refusal["verified"], refusal["check"]) == (False, "checksum")
    assert "sha256" in refusal["detail"]


def test_certify_writes_the_bound_among_tables_of_as_many_letters(folder: Path) -> None:
    table = folder / "three.json"
    assert run("design", "mvu", "--epsilon", 5, "--bits-in", 3, "--bits-out", 3, "--output", table).exit_code == 0
    weights = json.loads(table.read_text())["weights"]
    document = json.loads(run("certify", table, "--json", "--seconds", 60).stdout)
    assert list(document) == ["file", "lower_bound", "gap", "letters_lower_bound", "letters_gap", "nodes", "seconds", "better"]
    assert 0 <= document["letters_gap"] <= 1e-3 < document["gap"]
    assert document["better"] is None
    certified = read_table(table)
    assert certified.certificate.letters_lower_bound == document["letters_lower_bound"]
    assert json.loads(table.read_text())["weights"] == weights
    result = run("verify", table)
    assert "no 3-bit table is more than 0.1 % better; no table of any size more than 1.5 %" in " ".join(result.stdout.split())
    again = run("certify", table, "--output", folder / "again.json")
    assert (again.exit_code, "after 0 nodes" in " ".join(again.stdout.split())) == (0, True)
    assert (folder / "again.json").read_bytes() == table.read_bytes()


def test_certify_says_that_it_proved_nothing(folder: Path) -> None:
    table = folder / "four.json"
    assert run("design", "mvu", "--epsilon", 3, "--bits-in", 4, "--bits-out", 3, "--output", table).exit_code == 0
    result = run("certify", table, "--seconds", 0)
    assert result.exit_code == 0
    assert "The search proved nothing beyond the bound that the file had" in " ".join(result.stdout.split())


def test_certify_writes_a_better_table_beside(folder: Path) -> None:
    poor = generalised_randomised_response(1.0, 3)
    write_table(poor, folder / "poor.json")
    document = json.loads(run("certify", folder / "poor.json", "--tolerance", 0.05, "--json").stdout)
    assert document["better"]["file"] == str(folder / "poor-better.json")
    assert document["better"]["letters_gap"] <= 0.05 < document["letters_gap"]
    assert (read_table(folder / "poor.json").weights == poor.weights).all()
    better = read_table(folder / "poor-better.json")
    assert better.certificate.mean_variance < poor.certificate.mean_variance


def test_certify_refuses_bad_numbers_before_it_reads_anything(folder: Path) -> None:
    (folder / "t.json").write_text("no table")
    for option, value in (("--seconds", "-1"), ("--tolerance", "0")):
        result = typed("certify", "t.json", option, value, folder=folder)
        assert fault(result).startswith(f"{option.removeprefix('--')} must be a number from")
    assert fault(typed("certify", "t.json", "--better", "t.json", folder=folder)).startswith("output t.json must be another file")


def test_a_design_can_search_for_its_proof(folder: Path) -> None:
    result = run("design", "mvu", "--epsilon", 5, "--bits-in", 3, "--bits-out", 3, "--certify-seconds", 60, "--output", folder / "t.json")
    assert result.exit_code == 0
    assert (read_table(folder / "t.json").certificate.letters_gap or 1) <= 1e-3
    assert "certify_seconds" not in fault(typed(*DESIGN, "--certify-seconds", "-1", folder=folder))


def test_verify_without_a_file_is_a_fault(folder: Path) -> None:
    assert fault(typed("verify", "absent.json", folder=folder)) == "absent.json: No such file or directory"


@pytest.mark.parametrize("file_format", ["npz", "csv", "parquet"])
def test_export(table: Path, folder: Path, file_format: str) -> None:
    result = run("export", table, "--format", file_format, "--output", "exported")
    assert result.exit_code == 0
    assert (folder / "exported").stat().st_size > 0


def test_a_changed_table_is_not_exported(table: Path, folder: Path) -> None:
    table.write_text(table.read_text().replace('"epsilon": 2.0', '"epsilon": 1.0'))
    assert fault(run("export", table, "--format", "npz", "--output", "t.npz")).startswith(
        f"{table}: refused: checksum: the file was changed"
    )
    assert not (folder / "t.npz").exists()


# Tests of estimate mean


def test_estimate_mean_prints_and_writes_the_comparison(people: Path, folder: Path) -> None:
    arguments = ["estimate", "mean", "--data", people.name, "--column", "age", "--interval", "18", "90", "--epsilon", "2", "--seed", "4"]
    result = run(*arguments, "--bits-in", "3", "--bits-out", "2", "--report", "r.html", "--output", "r.json")
    assert result.exit_code == 0, result.stderr
    # The comparison omits the lines that the command prints every few seconds while it works.
    assert all(line.startswith("quietbits: ") and " s" in line for line in result.stderr.splitlines())
    document = json.loads((folder / "r.json").read_text())
    for row in document["estimates"]:
        assert row["mechanism"][:20] in result.stdout
        assert f"{row['estimate']:.4g}" in result.stdout
    assert "Guarantee of every mechanism: epsilon = 2, replace-one adjacency, local trust model." in result.stdout
    shown = " ".join(result.stdout.split())
    assert f"WARNING: {document['data']['clipped']} of 500 values lie outside [18, 90] and were clipped, which moves the mean by" in shown
    # The notice comes first, on the terminal and in the report.
    assert document["notice"].startswith("This is an experiment, not a private release: it shows the true mean and errors, and its seed")
    assert shown.startswith(f"{document['notice']} WARNING")
    assert document["data"]["clipped"] > 0
    report = (folder / "r.html").read_text(encoding="utf-8")
    assert "people.csv" in report
    assert 0 < report.index(document["notice"]) < report.index("is estimated as")
    assert sorted(path.name for path in folder.iterdir()) == ["people.csv", "r.html", "r.json"]


def test_an_interval_from_the_data_is_labelled_everywhere(people: Path, folder: Path) -> None:
    budget = ["--epsilon", 2, "--bits-in", 2, "--bits-out", 1]
    arguments = ["--data", people, "--column", "age", "--output", "r.json", "--report", "r.html"]
    result = run("estimate", "mean", *budget, *arguments)
    assert result.exit_code == 0, result.stderr
    assert "WARNING: the interval was taken from the data. This is not private" in result.stdout
    assert json.loads((folder / "r.json").read_text())["data"]["interval_is_public"] is False
    assert "The interval was taken from the data, which is not private." in (folder / "r.html").read_text(encoding="utf-8")


def test_values_outside_the_interval_are_a_warning_everywhere(people: Path, folder: Path) -> None:
    ages = np.loadtxt(people, delimiter=",", skiprows=1, usecols=people.read_text().splitlines()[0].split(",").index("age"))
    budget = ["--epsilon", 2, "--bits-in", 2, "--bits-out", 1, "--interval", 0, 1]
    result = run("estimate", "mean", *budget, "--data", people, "--column", "age", "--report", "r.html")
    moved = f"{1 - ages.mean():+.6g}, from {ages.mean():.6g} to 1."
    warning = f"500 of 500 values lie outside [0, 1] and were clipped, which moves the mean by {moved}"
    shown = " ".join(result.stdout.split())
    # The warning follows the notice that this is an experiment, before the table.
    assert shown.startswith("This is an experiment, not a private release")
    assert shown.index(f"WARNING: {warning}") < shown.index("Mean of age")
    assert f"true mean {ages.mean():.6g}" in shown
    assert f"Warning: {warning}" in shown.partition("Guarantee of")[2]
    assert warning in (folder / "r.html").read_text(encoding="utf-8")
    result = run("estimate", "mean", *budget, "--data", people, "--column", "age", "--json", "--output", "r.json")
    assert f"WARNING: {warning}" in result.stderr
    document = json.loads((folder / "r.json").read_text())
    assert document == json.loads(result.stdout)
    assert document["warnings"] == [f"{warning} Estimates are of the clipped values' mean."]
    assert (document["true_mean"], document["clipped_mean"]) == (pytest.approx(ages.mean(), rel=1e-12), 1.0)


def test_a_file_name_may_be_in_any_encoding(people: Path) -> None:
    data, report, output = (Path(os.fsdecode(name)) for name in (b"caf\xe9.csv", b"r\xe9.html", b"r\xe9.json"))
    people.rename(data)
    budget = ["--epsilon", 2, "--bits-in", 2, "--bits-out", 1, "--interval", 0, 100]
    result = run("estimate", "mean", *budget, "--data", data, "--column", "age", "--report", report, "--output", output)
    assert result.exit_code == 0, result.stderr
    assert "Report: r\\xe9.html" in result.stdout
    assert json.loads(output.read_bytes())["data"]["source"] == "caf\\xe9.csv"
    assert "caf\\xe9.csv" in report.read_text(encoding="utf-8")
    assert fault(run("estimate", "mean", *budget, "--data", data, "--column", "x")).startswith("caf\\xe9.csv: there is no column 'x'")
    table = Path(os.fsdecode(b"t\xe9.json"))
    run(*DESIGN, "--output", table)
    assert "t\\xe9.json: verified" in run("verify", table).stdout
    assert json.loads(run("verify", table, "--json").stdout)["file"] == "t\\xe9.json"
    table.write_bytes(table.read_bytes()[:-9])
    assert run("verify", table).stderr.splitlines()[-1].startswith("quietbits: t\\xe9.json: refused: json")


def test_estimate_mean_for_machines(people: Path, folder: Path) -> None:
    budget = ["--epsilon", 2, "--bits-in", 2, "--bits-out", 1, "--interval", 0, 100]
    result = run("estimate", "mean", *budget, "--data", people, "--column", "age", "--json", "--output", "r.json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout) == json.loads((folder / "r.json").read_text())
    assert result.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "changes", "message"),
    [
        ("x\n1\n", ["--column", "y"], "data.csv: there is no column 'y'; the columns are: x"),
        ("x\n1\nNaN\n", [], "data.csv: column 'x': 1 of 2 values is missing or NaN, first in row 2"),
        ("x\n1\ninf\n", [], "data.csv: column 'x': 1 of 2 values is infinite, first in row 2"),
        ("x\n1\ntwo\n", [], "data.csv: column 'x': 1 of 2 values is not numeric, first in row 2 ('two')"),
        ("x\n", [], "data.csv: column 'x': there are no rows"),
        ("", [], "data.csv: the file is empty"),
        ("x\n1\n", ["--data", "other.csv"], "other.csv: there is no such file"),
        ("x\n1\n", ["--epsilon", "-1"], "epsilon must be a number from 0.001 to 20, got -1.0"),
        ("x\n1\n", ["--report", "no/r.html"], "no: there is no such folder"),
        ("x\n1\n", ["--seed", "-1"], "seed must be"),
    ],
)
def test_bad_data_is_one_line_and_nothing_is_written(folder: Path, text: str, changes: list[str], message: str) -> None:
    (folder / "data.csv").write_text(text)
    arguments = ["estimate", "mean", "--data", "data.csv", "--column", "x", "--interval", "0", "9", "--epsilon", "1"]
    result = run(*arguments, "--bits-in", "2", "--bits-out", "1", "--report", "r.html", "--output", "r.json", *changes)
    assert fault(result).startswith(message)
    assert [path.name for path in folder.iterdir()] == ["data.csv"]


def test_equal_values_make_no_interval(folder: Path) -> None:
    (folder / "data.csv").write_text("x\n1\n1\n")
    result = run("estimate", "mean", "--data", "data.csv", "--column", "x", "--epsilon", 1)
    assert "data.csv: all values are 1, which makes no interval: state one" in fault(result)


# Tests of demo and reproduce


def test_the_demo_writes_report_results_and_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = run("demo", "--output", "a/demo", "--bits-in", 2)
    assert result.exit_code == 0, result.stderr
    assert sorted(path.name for path in (folder / "a" / "demo").iterdir()) == ["report.html", "results.json", "table.json"]
    assert read_table(folder / "a" / "demo" / "table.json").bits_in == 2
    assert "body mass index" in (folder / "a" / "demo" / "report.html").read_text(encoding="utf-8")
    # The progress bar is on stderr, and only on a terminal.
    assert "9 of 9" in result.stderr


def test_a_demo_that_fails_leaves_no_folder(folder: Path) -> None:
    assert fault(run("demo", "--output", "demo", "--epsilon", 100)).startswith("epsilon must be")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("output", "named"), [("taken", "taken"), ("taken/below", "/taken")])
def test_a_demo_that_could_not_be_written_is_not_run(folder: Path, monkeypatch: pytest.MonkeyPatch, output: str, named: str) -> None:
    monkeypatch.delattr("quietbits.cli.estimate._run_study")
    (folder / "taken").touch()
    assert fault(run("demo", "--output", output)).endswith(f"{named}: this is a file: name a folder")


def test_reproduce_draws_the_figures_that_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # All formats of figures are written in the folder where the README's command runs.
    monkeypatch.setattr(save, "METADATA", {"svg": save.METADATA["svg"]})
    result = run("reproduce", "dprec-communication", "--output", "f", "--quick", "--seed", 3)
    assert result.exit_code == 0, result.output
    names = [*(f"f/dprec-communication.{kind}" for kind in ("csv", "md", "svg")), "f/index.html"]
    assert sorted(result.stdout.split()) == names
    assert "1 figure: 22 of 22 tasks are left, about 3 s of processor time" in result.stderr
    assert all((folder / name).stat().st_size > 0 for name in names)
    assert set(pd.read_csv(folder / names[0])["seed"]) == {3}
    refused = fault(run("reproduce", "mvu-fig1", "three", "--output", "g"))
    assert "figure must be a name that quietbits reproduce --help lists, got 'three'" in refused
    for typed, message in (
        (["--quick"], "figures must be names or --all, got neither: quietbits reproduce --help lists the names"),
        (["mvu-fig1", "--all"], "figures must be names or --all, got both: quietbits reproduce --help lists the names"),
        (["mvu-fig1", "--only", "epsilom=1"], "only must name a field of the figures' tasks, got 'epsilom=1': did you mean epsilon"),
    ):
        assert fault(run("reproduce", *typed, "--output", "g")).startswith(message)
    assert not (folder / "g").exists()


# Tests of outputs


def test_an_output_is_neither_an_input_nor_another_output(people: Path, table: Path, folder: Path) -> None:
    before = table.read_bytes(), people.read_bytes()
    (folder / "link").symlink_to(table)
    for output in (table, folder / "." / table.name, folder / "link"):
        assert "which it would overwrite" in fault(run("export", table, "--format", "csv", "--output", output))
        assert "which it would overwrite" in fault(run("account", "table", table, "--output", output))
    typed = ["estimate", "mean", "--data", people, "--column", "age", "--interval", 18, 90, "--epsilon", 2]
    assert "which it would overwrite" in fault(run(*typed, "--output", people))
    assert "the other output" in fault(run(*typed, "--report", "x", "--output", "x"))
    assert (table.read_bytes(), people.read_bytes()) == before
    assert not (folder / "x").exists()
