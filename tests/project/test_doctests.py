"""Every example in a docstring or a page runs, and prints the stated output."""

import doctest
import importlib
import linecache
import pkgutil
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import quietbits

# The test imports modules by name, as collecting by path would import the checkout's folder as a second package.
MODULES = ["quietbits", *sorted(module.name for module in pkgutil.walk_packages(quietbits.__path__, "quietbits."))]

DOCS = Path(quietbits.__file__).parent / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "```pycon" in page.read_text(encoding="utf-8"))

NEED_TORCH = "quietbits.analysis.training.models.torch_"


def test_modules_of_every_floor_are_found() -> None:
    floors = {name.split(".")[1] for name in MODULES if name.count(".") > 1}
    assert floors == {"analysis", "attack", "cli", "design", "figures", "solvers"}


def test_modules_with_torch_are_found() -> None:
    assert 0 < len([name for name in MODULES if name.startswith(NEED_TORCH)]) < 10


@pytest.mark.parametrize("package", sorted({name.rpartition(".")[0] for name in MODULES}))
def test_examples_print_what_they_say(package: str) -> None:
    names = [name for name in MODULES if name.rpartition(".")[0] == package]
    if find_spec("torch") is None:
        names = [name for name in names if not name.startswith(NEED_TORCH)]
    failures = {}
    for name in names:
        # doctest's debugger checks every cached source file for each docstring, in this process.
        linecache.clearcache()
        failures[name] = doctest.testmod(importlib.import_module(name)).failed
    assert {name: failed for name, failed in failures.items() if failed} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_examples_of_a_page_print_what_they_say(page: Path) -> None:
    text = "\n".join(re.findall(r"^```pycon\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE))
    example = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    assert doctest.DocTestRunner().run(example) == doctest.TestResults(failed=0, attempted=text.count(">>> "))
