"""Settings of all tests.

Property tests have fixed examples and no deadlines, and fixtures check every figure.
"""

import gc
import platform
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partialmethod
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from playwright.sync_api import Browser

settings.register_profile("repeatable", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")


class CheckoutIsNoTestPackage:
    """Plugin that keeps pytest from importing the checkout as a test package."""

    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        return pytest.Dir.from_parent(parent, path=path) if path == Path(__file__).parents[1] else None


class FewerReports:
    """Plugin that drops reports of passed setups and teardowns, which are slow."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed:
                item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exempt the collected tests from garbage collection, during their collection and after it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        # Tests leave little garbage, so collections are rarer than by default.
        gc.set_threshold(20_000)
        gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    # The class is a plugin because pytest does not ask a conftest about the folders above it.
    config.pluginmanager.register(CheckoutIsNoTestPackage())
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(FewerReports())
    # The CliRunner of click 8.1, which typer 0.15 installs, mixes stdout and stderr by default; later versions of click keep them apart.
    if version("click").startswith("8.1."):
        from click.testing import CliRunner

        CliRunner.__init__ = partialmethod(CliRunner.__init__, mix_stderr=False)


def pytest_report_header() -> str:
    """Return the Python version for the header, also in quiet runs."""
    return f"Python {platform.python_version()} ({sys.executable})"


@pytest.fixture(scope="session")
def check_page() -> Callable[..., None]:
    """Return a check that a figure fits a page, is legible, and states guarantees."""
    # The import is local, so that tests of numerics do not load matplotlib.
    from matplotlib.text import Text

    from quietbits.figures.drawing.style import CAPTION_LINES, SMALLEST_TYPE, WIDTH, solve_layout

    def check(figure: "Figure", *guarantees: str) -> None:
        assert figure.get_size_inches()[0] == WIDTH <= 7
        assert min(text.get_fontsize() for text in figure.findobj(Text) if text.get_text()) >= SMALLEST_TYPE >= 8
        lines = figure.get_supxlabel().splitlines()
        assert len(lines) <= CAPTION_LINES == 3, lines
        caption = " ".join(" ".join(lines).split())
        assert [guarantee for guarantee in guarantees if guarantee not in caption] == []
        solve_layout(figure)
        box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
        assert 0 <= box.x0 < box.x1 <= width
        assert 0 <= box.y0 < box.y1 <= height

    return check


@pytest.fixture(scope="session")
def rows_of(tmp_path_factory: pytest.TempPathFactory) -> "Callable[[Sequence[Any]], pd.DataFrame]":
    """Return a function that runs sweep tasks in this process and returns rows without versions."""
    from quietbits.analysis.sweeps.run import run_tasks

    cache = tmp_path_factory.mktemp("tables")

    def rows(tasks: Sequence[Any]) -> "pd.DataFrame":
        output = run_tasks(tasks, tmp_path_factory.mktemp("sweep"), cache=cache)
        return output.drop(columns=[name for name in output if name == "seed" or name.startswith("version_")])

    return rows


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Return headless Chromium; `quietbits.tests.browser` opens pages in it.

    The fixture ends with its module, because the event loop of playwright counts as running in all tests of the process meanwhile.
    """
    from quietbits.tests.browser import chromium

    path = chromium()
    if path is None:
        pytest.skip("no Chromium: install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path)
        yield started
        started.close()
