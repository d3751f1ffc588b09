"""Releases and contributors' guides have no invented address, dead link or wrong name."""

import contextlib
import io
import re
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path

import typer

import quietbits
from quietbits.cli.main import app
from quietbits.extras import EXTRAS

ROOT = Path(quietbits.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DESCRIPTION = (ROOT / PROJECT["readme"]).read_text(encoding="utf-8")
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
GUIDES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def blocks(language: str) -> list[str]:
    """Return the description's blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", DESCRIPTION, flags=re.MULTILINE | re.DOTALL)


def test_the_project_links_only_to_addresses_that_the_citation_has() -> None:
    cited = set(re.findall(r"https?://\S+", (ROOT / "CITATION.cff").read_text(encoding="utf-8")))
    assert set(PROJECT["urls"].values()) <= cited
    for text in (DESCRIPTION, *((ROOT / name).read_text(encoding="utf-8") for name in GUIDES)):
        assert set(re.findall(r"https?://[^\s)>`]+", text)) <= cited
        # The files also contain no address of a person.
        assert re.findall(r"[\w.]+@[\w.]+", text) == []


def test_the_description_has_no_links_that_a_package_index_cannot_follow() -> None:
    assert [link for link in re.findall(r"\]\(([^)]*)\)|src=\"([^\"]*)\"", DESCRIPTION) if not link[0].startswith("https://")] == []


def test_the_description_names_every_extra_of_users() -> None:
    named = set(re.findall(r"quietbits\[(\w+)\]", DESCRIPTION))
    assert named == set(EXTRAS.values())


def test_the_example_of_the_description_prints_what_it_says() -> None:
    (example,), (said,) = (blocks(kind) for kind in ("python", "text"))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(example, {})  # noqa: S102 - the example is the project's own
    assert printed.getvalue() == said


def test_the_commands_of_the_description_exist() -> None:
    typed = re.findall(r"^quietbits (\w+)", "".join(blocks("sh")), flags=re.MULTILINE)
    assert set(typed) <= set(typer.main.get_command(app).commands)
    assert len(typed) > 3


def test_the_version_is_stated_once() -> None:
    assert quietbits.__version__ == PROJECT["version"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", changes, flags=re.MULTILINE)
    # The changelog lists changes before they have a version.
    assert headings[0] == "Unreleased"


def test_the_workflow_tests_each_python_that_the_project_names() -> None:
    named = {line.rpartition(" :: ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line}
    (tested,) = re.findall(r"python: \[(.*)\]", WORKFLOW)
    assert set(re.findall(r"[\d.]+", tested)) == named == {"3.11", "3.12", "3.13", "3.14"}
    assert PROJECT["requires-python"] == f">={min(named)}"
    assert "has not yet run on one" in WORKFLOW
    for guide in ("CHANGELOG.md", "CONTRIBUTING.md"):
        assert "not yet run on a public service" in " ".join((ROOT / guide).read_text(encoding="utf-8").split())


def test_the_targets_that_are_named_exist() -> None:
    run = set(re.findall(r"run: make ([\w-]+)$", WORKFLOW, flags=re.MULTILINE))
    assert run == {"test", "test-lowest", "test-torch", "lint", "docs", "package"}
    assert run <= TARGETS
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    spans = [words.split() for words in re.findall(r"`make ([^`]+)`", contributing)]
    named = {word for words in spans for word in words if "=" not in word}
    assert named <= TARGETS
    assert len(named) > 5


def test_the_files_that_guides_name_exist() -> None:
    for name in GUIDES:
        text = (ROOT / name).read_text(encoding="utf-8")
        files = re.findall(r"`([\w./-]+(?:/|\.(?:md|py|txt|toml|yml|cff)))`", text)
        built = {"dist/"}
        elsewhere = {"registry.py": ROOT / "analysis" / "catalogue" / "registry.py"}
        assert [file for file in files if file not in built and not elsewhere.get(file, ROOT / file).exists()] == [], name


def test_hooks_are_programs_of_the_environment() -> None:
    entries = re.findall(r"entry: (?:env \S+ )?(\S+)", (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert {Path(entry).parent.as_posix() for entry in entries} == {".venv/bin"}
    assert {Path(entry).name for entry in entries} == {"ruff", "mypy", "pytest"}


def test_the_source_distribution_has_the_whole_project(
    tmp_path: Path, copy_project: Callable[[Path], None], project_files: list[Path]
) -> None:
    copy_project(tmp_path / "checkout")
    (tmp_path / "built").mkdir()
    build = [sys.executable, "-c", "from setuptools.build_meta import build_sdist; build_sdist('../built')"]
    run = subprocess.run(build, cwd=tmp_path / "checkout", capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    (built,) = (tmp_path / "built").iterdir()
    with tarfile.open(built) as archive:
        there = {Path(*Path(name).parts[1:]) for name in archive.getnames()}
    left_out = {".ci", ".github", ".gitignore", ".pre-commit-config.yaml"}
    assert [path for path in project_files if path not in there and path.parts[0] not in left_out] == []
