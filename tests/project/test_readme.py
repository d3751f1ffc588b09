"""The commands and examples of README and of the pages run.

Their outputs equal the pages' outputs.

Run as a script, this file draws the pictures of README and of the page on the demo again.
"""

import contextlib
import io
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import quietbits
from quietbits.analysis.study import mean_study
from quietbits.analysis.study.column_data import body_mass_index
from quietbits.cli.main import app
from quietbits.figures.drawing.style import print_style
from quietbits.figures.planner.pareto import draw_plan
from quietbits.figures.report.report_figures import svg_text, variance_figure

ROOT = Path(quietbits.__file__).parent
GUIDES = ROOT / "docs" / "how-to"
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS, EXAMPLES_PAGE, FIRST_RESULT = (
    (GUIDES / f"{page}.md").read_text(encoding="utf-8") for page in ("commands", "python-examples", "estimate-a-mean")
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
BLOCKS = [block for page in (COMMANDS, README, EXAMPLES_PAGE) for block in BLOCK.findall(page)]
LINES = [line for language, text in BLOCKS if language == "sh" for line in text.splitlines()]
# A page's words break lines within a command.
SPANS = [" ".join(span.split()) for page in (COMMANDS, README) for span in re.findall(r"`((?:make|quietbits) [^`]+)`", page)]
MOST_WORDS = 900
TARGETS = sorted({command for command in [*LINES, *SPANS] if command.startswith("make ")})
# Commands may use the outputs of earlier commands. A span may also name an option of the program, or omit the options of a command.
SESSION = [command for command in LINES if command.startswith("quietbits ")]
# Output files of each command, by its first words.
WRITES = {
    "quietbits design mvu": ["table.json"],
    "quietbits design grid": [
        *(f"tables/epsilon_{epsilon}_bits_1_2.json" for epsilon in (1, 2)),
        *(f"tables/index.{kind}" for kind in ("html", "parquet")),
    ],
    "quietbits explore": ["explorer.html"],
    "quietbits verify": [],
    "quietbits deploy": [f"deployed/{name}" for name in ("README.md", "c/mvu_HASH.h", "deployment.json", "table.json", "vectors.json")],
    "quietbits encode": ["messages.qbm"],
    "quietbits export": ["table.npz"],
    "quietbits decode": [],
    "quietbits estimate": ["report.html"],
    "quietbits demo": ["demo/report.html", "demo/results.json", "demo/table.json"],
    "quietbits account": [],
    "quietbits calibrate": ["vector.json"],
    "quietbits sweep": ["results/report.html", "results/results.parquet", "results/summary.csv"],
    "quietbits train": ["trained/report.html", "trained/results.parquet", "trained/summary.csv"],
    "quietbits simulate": [],
    "quietbits mechanisms": [],
    "quietbits plan": ["plan.html"],
    "quietbits audit": [],
    "quietbits reproduce": [
        *(f"reproduced/binomial-slack.{kind}" for kind in ("csv", "md", "pdf", "png", "svg")),
        "reproduced/index.html",
        "reproduced/results/binomial-slack/figure.json",
        "reproduced/results/binomial-slack/results.parquet",
    ],
}


SWEEP = """
population = "sphere"
clients = 100
dimension = 4
norm = 2
epsilon = [1, 4]
delta = 1e-5
adjacency = "replace-one"
repetitions = 2

[[mechanism]]
name = ["cldp", "gaussian"]
"""


TRAINING = """
clients = 100
clients_per_round = 20
rounds = 2
delta = 0.0
adjacency = "replace-one"

[[mechanism]]
name = ["none", "cldp"]
round_epsilon = 4.0
"""


@pytest.fixture(scope="module", autouse=True)
def studies_design_once() -> Iterator[None]:
    """Design the tables of `quietbits demo` once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mean_study, "design_mvu", cache(mean_study.design_mvu))
        yield


@pytest.fixture(scope="module")
def study() -> quietbits.MeanStudy:
    """Result of `make demo`."""
    return quietbits.study_mean(body_mass_index(), 3.0)


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert [language for language, _ in BLOCKS] == ["sh", "console", "sh", *["python", "text"] * 6]
    assert [line for line in LINES if line not in {*TARGETS, *SESSION}] == ["pip install '.[experiments]'"]


def test_readme_is_read_in_two_minutes() -> None:
    assert len(re.sub(r"<!--.*?-->", "", README, flags=re.DOTALL).split()) <= MOST_WORDS


def test_the_make_targets_exist(tmp_path: Path) -> None:
    assert {"make demo", "make test"} <= set(TARGETS)
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    # All targets run at once, since make looks for an interpreter each time.
    arguments = [argument for command in TARGETS for argument in shlex.split(command)[1:] if "=" not in argument]
    run = subprocess.run(["make", "--dry-run", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_every_quietbits_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ages = np.random.default_rng(1).integers(18, 95, 500)
    (tmp_path / "people.csv").write_text("age\n" + "".join(f"{age}\n" for age in ages))
    (tmp_path / "sweep.toml").write_text(SWEEP)
    (tmp_path / "training.toml").write_text(TRAINING)
    (tmp_path / "grid.toml").write_text("[grid]\nepsilon = [1, 2]\nbits_in = 1\nbits_out = 2\n")
    # Designed tables go to the user's cache.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path.parent / "cache"))
    there = files(tmp_path)
    for command in dict.fromkeys(SESSION):
        # A search for better bounds ends within its seconds, however few.
        result = CliRunner().invoke(app, shlex.split(command.replace("--seconds 60", "--seconds 1"))[1:])
        assert result.exit_code == 0, f"{command}\n{result.stderr}"
        written = {
            re.sub(r"mvu_[0-9a-f]{8}", "mvu_HASH", name) for name in files(tmp_path) - there if not name.endswith((".sqlite", ".npy"))
        }
        expected = set(next(names for words, names in WRITES.items() if command.startswith(words))) if "--output" in command else set()
        expected = {"report.html"} if "--report" in command else expected
        # An earlier command may have written the same files.
        assert written == expected - there, command
        there = files(tmp_path)


def test_every_command_of_the_program_is_shown() -> None:
    shown = {command.split()[1] for command in SESSION}
    assert shown == set(typer.main.get_command(app).commands)


def test_the_first_result_is_what_a_run_gives(study: quietbits.MeanStudy) -> None:
    comparison = study.comparison
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in FIRST_RESULT.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if len(row) == 6][1:]
    assert [row[0] for row in rows] == [estimate.mechanism for estimate in comparison.estimates]
    for (_, *printed), row in zip(rows, comparison.estimates, strict=True):
        assert row.ratio_to_bound is not None
        exact = (row.bits_per_client, row.estimate, row.standard_error, row.worst_standard_error, row.ratio_to_bound)
        for text, number in zip(printed, exact, strict=True):
            # The tolerance is a unit of the last digit, as another solver version may end at slightly different letters.
            unit = 10.0 ** -len(text.partition(".")[2])
            assert float(text) == pytest.approx(number, abs=unit, rel=0)
    prose = " ".join(FIRST_RESULT.split())
    assert f"{comparison.true_mean:.2f} kg/m²" in prose
    mvu, laplace = comparison.estimates[0], comparison.estimates[-1]
    assert f"come within {np.ceil(1000 * (mvu.ratio_to_bound - 1)) / 10} % of it" in prose
    assert f"needs {(laplace.worst_standard_error / mvu.worst_standard_error) ** 2:.2f} times as many clients" in prose
    guarantees = {str(estimate.guarantee) for estimate in comparison.estimates}
    assert guarantees == {"epsilon = 3, replace-one adjacency, local trust model"}
    assert f"Every row has the same guarantee: {guarantees.pop()}." in prose


EXAMPLES = [text for language, text in BLOCKS if language == "python"]
OUTPUTS = [text for language, text in BLOCKS if language == "text"]


@pytest.mark.parametrize(
    ("example", "said"), list(zip(EXAMPLES, OUTPUTS, strict=True)), ids=["table", "number", "vector", "secure-sum", "sketch", "dp-rec"]
)
def test_the_python_examples_print_what_they_say(example: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(example, {})  # noqa: S102 - the example is the project's own
    assert printed.getvalue() == said


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert "docs/plan.svg" in links
    assert [link for link in links if not (ROOT / link).is_file()] == []


def picture_of_the_plan() -> str:
    """Return README's picture."""
    task = quietbits.Task(quietbits.NormBall(100, 2.0), 10_000, 2.0, 1e-5, "replace-one")
    with print_style():
        return svg_text(draw_plan(quietbits.plan_task(task, timed=False).designs_frame()), "plan")


@pytest.mark.parametrize("picture", ["docs/plan.svg", "docs/how-to/first-result.svg"])
def test_the_pictures_show_what_the_program_draws(picture: str, study: quietbits.MeanStudy) -> None:
    labels = set(re.findall(r"<!-- (.*?) -->", (ROOT / picture).read_text(encoding="utf-8")))
    drawn = picture_of_the_plan() if picture == "docs/plan.svg" else variance_figure(study)
    assert labels == set(re.findall(r"<!-- (.*?) -->", drawn))
    assert len(labels) > len(study.protocols)


if __name__ == "__main__":
    (ROOT / "docs" / "plan.svg").write_text(picture_of_the_plan(), encoding="utf-8")
    (GUIDES / "first-result.svg").write_text(variance_figure(quietbits.study_mean(body_mass_index(), 3.0)), encoding="utf-8")
